// SPDX-License-Identifier: Apache-2.0
// Command lines with bad input, and what `tenon` says to each.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace tenon::bad_input {

struct Case {
  std::string name;
  std::vector<std::string> arguments;                      // of `tenon`, run in a new folder
  std::vector<std::pair<std::string, std::string>> files;  // what is in that folder
  int status;                                              // 0: may warn, 1: bad input, 2: usage
  std::string says;                                        // part of what is printed on stderr
  std::function<void()> prepare = {};  // for what is no file; runs in that folder
  std::string names = {};              // what is named beside: it may stand in the files too
  std::string other = {};              // says this, or that
};

inline std::ostream& operator<<(std::ostream& out, const Case& one) { return out << one.name; }

std::vector<Case> onnx_cases();
std::vector<Case> onnx_operator_cases();
std::vector<Case> onnx_sequence_cases();
std::vector<Case> onnx_function_cases();
std::vector<Case> tensor_cases();
std::vector<Case> constant_cases();
std::vector<Case> script_cases();
std::vector<Case> graph_operator_cases();
std::vector<Case> program_cases();
std::vector<Case> usage_cases();
std::vector<Case> option_cases();
std::vector<Case> command_cases();
std::vector<Case> access_cases();
std::vector<Case> blowup_cases();
std::vector<Case> run_time_cases();

}  // namespace tenon::bad_input
