// SPDX-License-Identifier: Apache-2.0
// Writes a module of lowered PrimFuncs, the one backend/llvm takes too, as freestanding C99.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tenon/backend/constants.h"
#include "tenon/backend/entry.h"
#include "tenon/ir/module.h"
#include "tenon/support/target.h"

namespace tenon::c_backend {

enum class Constants : uint8_t {
  kArrays,   // in the source
  kPointer,  // the caller hands them over: a file that it maps, or memory of its own
};

struct EmitOptions {
  std::string name = "model";
  Constants constants = Constants::kArrays;
  std::string constants_pool = "constants";  // the name of their pointer
  /// Static arrays instead of a planned workspace, for measuring what planning costs.
  bool separate_arrays = false;
  /// Headers with the prototypes of library functions, instead of generated prototypes.
  std::vector<std::string> includes = {};
};

/// Memory that the caller hands to the entry.
struct PoolParameter {
  std::string name;    // as the C parameter
  int64_t offset = 0;  // in the workspace of the module
  Expr bytes;          // int64; over the symbols of the entry
  std::optional<int64_t> capacity = {};
  int64_t alignment = backend::kLeastAlignment;  // bytes, of its address
};

/// The texts of a program. Deterministic.
struct Program {
  std::string name;    // identifier that all its external names begin with
  std::string source;  // NAME.c
  std::string header;  // NAME.h
  backend::Entry entry;
  std::vector<PoolParameter> pools;  // in the order of the entry's parameters
  backend::ConstantsLayout constants;
  bool has_constants_parameter = false;
  std::string constants_parameter;  // its name
  bool can_fail = false;            // the entry has a parameter for the error
  int64_t late_slots = 0;           // parts of the workspace that are asked for during the run
  bool has_shapes = false;          // NAME_shapes says sizes that are known only at run time
  /// What the Makefile links besides: files in its folder, and shared libraries by name.
  struct Linked {
    std::string name;
    bool is_beside = false;
  };
  std::vector<Linked> linked = {};
  // Members of the structs, as many as inputs, outputs and symbols.
  std::vector<std::string> inputs, outputs, dims;
  /// Bytes: the greatest alignment that any of its memory needs.
  int64_t alignment = backend::kLeastAlignment;
};

/// \throws CompileError as llvm_backend::compile does; kBadAttribute where the pools of the module
/// are malformed.
Program emit(const IRModule& lowered, const Target& target, const EmitOptions& options);
/// The part of its source that each function of the module is, by the function's name.
std::map<std::string, std::string> emit_functions(const IRModule& lowered, const Target& target,
                                                  const EmitOptions& options);

/// `main_NAME.c`: a hosted program that reads inputs from files, runs, and writes outputs.
std::string main_program(const Program& program);
/// Builds both into `main_NAME`.
std::string makefile(const Program& program, const Target& target);
/// `adapter`: what makes the program one of runtime/abi.h, for `tenon run` (see load.h).
std::string adapter(const Program& program);

}  // namespace tenon::c_backend
