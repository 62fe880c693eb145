// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/artefact_cache.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tenon/driver/compiler.h"
#include "tenon/driver/console.h"
#include "tenon/driver/usage.h"
#include "tenon/support/content_hash.h"
#include "tenon/support/temporary_files.h"

namespace tenon {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLibrary = "program.so";
constexpr const char* kFiles = "files.json";  // that the program was made of: path and content

// This compiler: the file that holds it, which every build writes anew.
std::string this_compiler() {
  static const std::string kText = [] {
    Dl_info info{};
    struct stat status{};
    if (::dladdr(reinterpret_cast<const void*>(&this_compiler), &info) == 0 ||
        ::stat(info.dli_fname, &status) != 0)
      return std::string();
    return fmt::format("{} {} {}.{}", info.dli_fname, status.st_size, status.st_mtim.tv_sec,
                       status.st_mtim.tv_nsec);
  }();
  return kText;
}

// Whether nobody but this user (and root) can change what lies there.
bool is_ours(const std::string& folder) {
  struct stat status{};
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::optional<std::string> folder_of_user() {
  if (const char* named = std::getenv("TENON_CACHE"); named && *named)
    return std::string_view(named) == "off" ? std::nullopt : std::optional<std::string>(named);
  if (const char* caches = std::getenv("XDG_CACHE_HOME"); caches && caches[0] == '/')
    return std::string(caches) + "/tenon";
  if (const char* home = std::getenv("HOME"); home && home[0] == '/')
    return std::string(home) + "/.cache/tenon";
  return std::nullopt;
}

int64_t most_bytes() {
  const char* text = std::getenv("TENON_CACHE_BYTES");
  if (!text) return ArtefactCache::kDefaultBytes;
  int64_t bytes = -1;
  const std::string_view given(text);
  const auto [end, error] = std::from_chars(given.begin(), given.end(), bytes);
  if (error != std::errc() || end != given.end() || bytes < 0)
    throw UsageError("TENON_CACHE_BYTES={}: expected a number of bytes", text);
  return bytes;
}

// The path from `folder` on, where it leads below that.
std::string name_in(const fs::path& folder, const fs::path& path) {
  const fs::path name = path.lexically_normal().lexically_relative(folder.lexically_normal());
  return name.empty() || *name.begin() == ".." ? path.string() : name.string();
}

struct Entry {
  fs::path path;
  fs::file_time_type used;
  int64_t bytes = 0;
};

}  // namespace

ArtefactKey::ArtefactKey(const std::string& model, const FileHashes& hashes)
    : text_(this_compiler()) {
  add("model", hashes.of(model));
  add("name", fs::path(model).filename().string());  // errors of the program name it
}

void ArtefactKey::add(std::string_view name, std::string_view value) {
  text_ += fmt::format("\n{} {} {}", name, value.size(), value);
}

std::string ArtefactKey::str() const { return content_hash(text_); }

std::optional<ArtefactCache> ArtefactCache::of_user() {
  const auto folder = folder_of_user();
  const int64_t bytes = most_bytes();
  if (!folder || bytes == 0 || this_compiler().empty()) return std::nullopt;
  std::error_code error;
  fs::create_directories(fs::path(*folder).parent_path(), error);
  ::mkdir(folder->c_str(), S_IRWXU);
  if (!is_ours(*folder)) return std::nullopt;
  return ArtefactCache(*folder, bytes);
}

std::shared_ptr<runtime::Program> ArtefactCache::find(const std::string& key,
                                                      const std::string& folder) const {
  const fs::path entry = fs::path(folder_) / key;
  std::error_code error;
  if (!fs::exists(entry / kLibrary, error) || error) return nullptr;
  try {
    const auto files = nlohmann::json::parse(read_file(entry / kFiles));
    for (const auto& [path, hash] : files.items())
      if (hash != hashes_.of(fs::path(folder) / path)) return nullptr;
    auto program = load_program(entry / kLibrary);
    fs::last_write_time(entry, fs::file_time_type::clock::now(), error);
    return program;
  } catch (const CompileError&) {  // gone in the meantime, or a file that the model refers to is
    return nullptr;
  } catch (const nlohmann::json::exception&) {
    return nullptr;
  }
}

std::shared_ptr<runtime::Program> ArtefactCache::store(
    const std::string& key, const std::string& folder, const std::vector<std::string>& files,
    const std::function<void(const std::string&)>& write) const {
  const fs::path entry = fs::path(folder_) / key;
  try {
    auto contents = nlohmann::json::object();
    std::error_code error;
    for (const std::string& path : files)
      contents[name_in(fs::absolute(folder, error), fs::absolute(path, error))] = hashes_.of(path);
    const TemporaryFolder made = TemporaryFolder::beside(entry);
    write(made.file(kLibrary));
    write_file(made.file(kFiles), contents.dump());
    // Loaded before it has its place: there is a program even where another process takes it away.
    auto program = load_program(made.file(kLibrary));
    fs::remove_all(entry, error);  // one whose files have changed
    fs::rename(made.path(), entry, error);
    make_room();
    return program;
  } catch (const CompileError&) {  // no room on the disk, mostly
    return nullptr;
  } catch (const nlohmann::json::exception&) {  // a path that is no UTF-8
    return nullptr;
  }
}

void ArtefactCache::make_room() const try {
  std::vector<Entry> entries;
  int64_t all = 0;
  std::error_code error;
  for (const auto& at : fs::directory_iterator(folder_, error)) {
    const std::string name = at.path().filename();
    const fs::file_time_type used = at.last_write_time(error);
    const bool is_left_over = name.starts_with(".tenon-") &&  // by a process that was killed
                              fs::file_time_type::clock::now() - used > std::chrono::hours(24);
    if (is_left_over) fs::remove_all(at.path(), error);
    if (!is_content_hash(name)) continue;  // an entry has that of its key
    Entry entry{at.path(), used};
    for (const auto& file : fs::directory_iterator(at.path(), error))
      entry.bytes += static_cast<int64_t>(file.file_size(error));
    all += entry.bytes;
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (all <= most_bytes_) return;
    fs::remove_all(entry.path, error);
    all -= entry.bytes;
  }
} catch (const fs::filesystem_error&) {
  return;  // another process removes entries too
}

}  // namespace tenon
