// SPDX-License-Identifier: Apache-2.0
// Shows progress while something long runs: a line on a terminal, nothing in a pipe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tenon/support/temporary_files.h"

namespace tenon {

/// A line on the error stream that is replaced as work goes on, and gone in the end. Silent where
/// the error stream is no terminal.
class Progress {
 public:
  Progress();
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const std::string& text);
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

/// "1.2 ms", "3.4 s".
std::string time_text(double seconds);
/// "512 bytes", "1.5 KiB", "4.0 MiB", "2.00 GiB".
std::string bytes_text(int64_t bytes);

/// On the standard output.
void print_json(const nlohmann::ordered_json& json);

/// \throws CompileError (kFileError).
std::string read_file(const std::string& path);

}  // namespace tenon
