// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/external_files.h"

#include <algorithm>
#include <filesystem>

#include "tenon/driver/c_program.h"
#include "tenon/driver/console.h"

namespace tenon {

std::vector<std::string> write_external_modules(const std::vector<graph::ExternalModule>& artefacts,
                                                const std::string& folder) {
  using Kind = graph::ExternalModule::Kind;
  std::vector<std::string> files;
  const auto add = [&](const std::string& file) {
    if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
  };
  // Libraries that an artefact needs are opened before it.
  for (const graph::ExternalModule& artefact : artefacts)
    for (const std::string& library : artefact.link) add(library);
  for (size_t i = 0; i < artefacts.size(); ++i) {
    const graph::ExternalModule& artefact = artefacts[i];
    if (!artefact.code) {
      add(artefact.name);
      continue;
    }
    if (artefact.kind == Kind::kHost)
      continue;  // no code that could be linked: a registered function
    std::string stem = artefact.origin.empty() ? "external" : artefact.origin;
    for (char& c : stem)
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    const char* ending = artefact.kind == Kind::kC         ? ".c"
                         : artefact.kind == Kind::kObject  ? ".o"
                         : artefact.kind == Kind::kArchive ? ".a"
                                                           : ".so";
    // A shared library stays a file beside the program: its name says what it is.
    const std::string tail = artefact.kind == Kind::kShared
                                 ? artefact.code->content_hash().substr(0, 12)
                                 : std::to_string(i);
    const std::string path = folder + "/" + stem + "_" + tail + ending;
    const auto bytes = artefact.code->data();
    write_file(path, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    add(path);
  }
  return files;
}

std::vector<std::string> write_c_program(c_backend::Program program, const IRModule& lowered,
                                         const Target& target, const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;  // what is wrong with the folder is told by the first file
  std::filesystem::create_directories(folder, error);
  for (const std::string& file : write_external_modules(graph::external_modules(lowered), folder)) {
    const bool is_written = std::filesystem::path(file).has_parent_path();
    if (is_written) files.push_back(file);
    program.linked.push_back({std::filesystem::path(file).filename().string(), is_written});
  }
  for (std::string& file : write_c(program, target, folder)) files.push_back(std::move(file));
  return files;
}

}  // namespace tenon
