// SPDX-License-Identifier: Apache-2.0
// A golden file: its module, the passes that it names and the back ends that are there for it
// (tests/golden/runner.cpp says how it is written).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tenon/ir/module.h"
#include "tenon/ir/pass.h"

namespace tenon::golden {

/// The folder tests/golden.
std::filesystem::path root();
/// Every golden file below it, sorted.
std::vector<std::filesystem::path> all_files();

std::string read(const std::filesystem::path& path);
void write(const std::filesystem::path& path, const std::string& text);
std::vector<std::string> lines_of(const std::string& text);

/// What begins a comment: `#`, and `//` in a Relay file.
std::string comment_of(const std::filesystem::path& path);
/// A file whose passes are to find an error.
bool expects_errors(const std::filesystem::path& path);
/// What stands before the line EXPECT or TRACE.
std::string input_of(const std::string& text, const std::string& comment);
/// Its origins have the file's name alone, wherever the tests lie. Paths in options of passes begin
/// at the file's folder, which becomes the working directory.
/// \throws CompileError where the text is no module.
IRModule module_of(const std::filesystem::path& path, const std::string& text);
/// `module` with its function `main` after the primitives that follow the line SCHEDULE, if it has
/// one. \throws CompileError.
IRModule scheduled(const std::filesystem::path& path, const std::string& text, IRModule module);
/// The passes of the lines RUN.
Pipeline passes_of(const std::string& text, const std::string& comment);

/// The back ends of a file, registered while it lives.
class Backends {
 public:
  /// Takes their patterns out of `module`.
  Backends(const std::string& text, const std::string& comment, IRModule& module);
  ~Backends();
  Backends(const Backends&) = delete;
  Backends& operator=(const Backends&) = delete;

 private:
  void add(const std::string& words, IRModule& module);

  std::vector<std::string> names_;
};

}  // namespace tenon::golden
