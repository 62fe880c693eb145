// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/linker_script.h"

#include <dlfcn.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <utility>

namespace tenon::backend {

namespace fs = std::filesystem;

// Words and parentheses, without comments. Scripts are short: only so much is read.
static std::vector<std::string> tokens_of(const std::string& file) {
  constexpr size_t kMostBytes = size_t{1} << 16;
  std::string text(kMostBytes, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.find('\0') != std::string::npos) return {};  // an ELF file, an archive
  std::vector<std::string> tokens;
  bool in_word = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (text.compare(i, 2, "/*") == 0) {
      const size_t end = text.find("*/", i + 2);
      if (end == std::string::npos) break;
      i = end + 1;
      in_word = false;
    } else if (c == '(' || c == ')') {
      tokens.emplace_back(1, c);
      in_word = false;
    } else if (std::isspace(static_cast<unsigned char>(c)) || c == ',' || c == ';' || c == '"') {
      in_word = false;
    } else {
      if (!in_word) tokens.emplace_back();
      tokens.back() += c;
      in_word = true;
    }
  }
  return tokens;
}

static bool is_shared(const std::string& file) {
  const std::string name = fs::path(file).filename().string();
  return name.ends_with(".so") || name.find(".so.") != std::string::npos;
}

std::vector<std::string> libraries_of_script(const std::string& file) {
  const std::vector<std::string> tokens = tokens_of(file);
  std::vector<std::string> libraries;
  int depth = 0;             // of parentheses
  bool names_files = false;  // within those of GROUP or INPUT
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string& token = tokens[i];
    if (token == "(") {
      const std::string command = i > 0 ? tokens[i - 1] : "";
      if (depth++ == 0) names_files = command == "GROUP" || command == "INPUT";
    } else if (token == ")") {
      if (depth > 0) --depth;
    } else if (depth > 0 && names_files && token != "AS_NEEDED") {
      const fs::path beside = fs::path(file).parent_path() / token;
      if (token.starts_with("-l"))
        libraries.push_back("lib" + token.substr(2) + ".so");
      else if (is_shared(token))
        libraries.push_back(fs::exists(beside) ? beside.string() : token);
    }
  }
  return libraries;
}

// Where the loader looks for a library.
static std::vector<std::string> loader_folders() {
  std::vector<std::string> folders;
  void* self = dlopen(nullptr, RTLD_NOW);
  Dl_serinfo size = {};
  if (self && dlinfo(self, RTLD_DI_SERINFOSIZE, &size) == 0) {
    std::vector<char> memory(size.dls_size);
    auto* info = reinterpret_cast<Dl_serinfo*>(memory.data());
    if (dlinfo(self, RTLD_DI_SERINFOSIZE, info) == 0 && dlinfo(self, RTLD_DI_SERINFO, info) == 0)
      for (unsigned i = 0; i < info->dls_cnt; ++i)
        folders.emplace_back(info->dls_serpath[i].dls_name);
  }
  if (self) dlclose(self);
  return folders;
}

std::vector<std::string> libraries_behind(const std::string& name) {
  for (const std::string& folder : loader_folders()) {
    std::vector<std::string> libraries = libraries_of_script((fs::path(folder) / name).string());
    if (!libraries.empty()) return libraries;
  }
  static constexpr std::pair<const char*, const char*> kPartsOfC[] = {
      {"libc.so", "libc.so.6"},   {"libm.so", "libm.so.6"},
      {"libdl.so", "libdl.so.2"}, {"libpthread.so", "libpthread.so.0"},
      {"librt.so", "librt.so.1"},
  };
  for (const auto& [part, file] : kPartsOfC)
    if (name == part) return {file};
  return {};
}

}  // namespace tenon::backend
