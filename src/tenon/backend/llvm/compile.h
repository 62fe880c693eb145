// SPDX-License-Identifier: Apache-2.0
// Compiles a module of lowered PrimFuncs to an object file: the one path to machine code, shared by
// the JIT (jit.h) and by shared libraries (shared_library.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tenon/backend/constants.h"
#include "tenon/backend/functions.h"
#include "tenon/backend/libraries.h"
#include "tenon/ir/module.h"
#include "tenon/support/target.h"

namespace tenon::llvm_backend {

using backend::ConstantsLayout;
using backend::kConstantAlignment;

struct CompileOptions {
  std::string name = "model";  // of the model, for reports and symbols
  std::string manifest = {};   // JSON text that the artefact carries; may be empty
  int optimize = 2;            // 0: none, for looking at what was generated
  /// Packed functions are called in these where they have them; others must be registered when the
  /// program is loaded.
  const backend::Libraries* libraries = nullptr;
};

/// A program before it is linked: the object defines `tenon_program` and refers to the symbol
/// `tenon_constants` where there are constants.
struct CompiledProgram {
  std::string name;
  Target target;
  std::string object;  // a relocatable ELF file, or an archive of such (parts.h)
  ConstantsLayout constants;
  std::vector<backend::LibraryFunction>
      libraries;  // what it calls: undefined symbols of the object
  std::vector<backend::PackedFunction> registered;  // packed functions that are in no library
};
inline constexpr const char* kConstantsSymbol = "tenon_constants";

/// Compiles the entry PrimFunc (attribute "tenon.entry") of `lowered` and all that it calls. The
/// module holds PrimFuncs without blocks, as kernel lowering leaves them (tir/transforms.h).
/// Deterministic: the same module, target and options give the same bytes on every host.
/// \throws CompileError (kWrongForm) where a block, graph function or unlowered intrinsic is left;
/// kUnsupported at a form that is not translated; kUnknownCallee, kRegionMismatch at a bad call.
CompiledProgram compile(const IRModule& lowered, const Target& target,
                        const CompileOptions& options = {});

/// The same program as LLVM IR after optimisation (before it with optimize = 0), or as assembly.
std::string emit_llvm(const IRModule& lowered, const Target& target,
                      const CompileOptions& options = {});
std::string emit_assembly(const IRModule& lowered, const Target& target,
                          const CompileOptions& options = {});

}  // namespace tenon::llvm_backend
