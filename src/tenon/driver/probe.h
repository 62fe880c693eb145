// SPDX-License-Identifier: Apache-2.0
// Runs a command and describes how it ended, in a form in which two runs can be compared.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tenon {

/// How a command ended.
struct Outcome {
  enum class Kind : uint8_t { kSuccess, kFailure, kSignal, kTimeLimit };
  Kind kind = Kind::kSuccess;
  int status = 0;      // the exit status, or the signal's number
  std::string key;     // equal for two runs that fail in the same way: "status 1, error[TN0104]"
  std::string output;  // the end of both streams
  int64_t peak_bytes = 0;  // of memory that it held; of the largest process, where it had several

  bool failed() const { return kind != Kind::kSuccess; }
};

struct ProbeOptions {
  double time_limit = 60;                   // seconds
  int64_t memory_limit = int64_t{8} << 30;  // bytes of address space; 0: none
  std::string file = {};                    // whose name in the output does not tell two runs apart
};

/// Starts `arguments[0]` and waits; it does not outlive the caller. \throws CompileError (kRunFailed) where it cannot be started.
Outcome probe(const std::vector<std::string>& arguments, const ProbeOptions& options = {});
/// The same of a line for the shell.
Outcome probe_shell(const std::string& line, const ProbeOptions& options = {});

/// The same of a function in a process of its own; it returns the exit status. What it throws is
/// printed as the command line prints it. Threads of this process are not in that one.
Outcome probe_call(const std::function<int()>& body, const ProbeOptions& options = {});

/// What starts this program again, with these arguments.
std::vector<std::string> own_command(const std::vector<std::string>& arguments);
/// The words that start it, where it is no file of its own: an interpreter and what it runs.
void set_own_command(std::vector<std::string> words);
/// `text` as one word of the shell.
std::string shell_word(const std::string& text);
/// A command line that the shell splits into `arguments`.
std::string shell_line(const std::vector<std::string>& arguments);

}  // namespace tenon
