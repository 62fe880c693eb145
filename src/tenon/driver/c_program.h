// SPDX-License-Identifier: Apache-2.0
// Writes programs as C files, and compiles them to something that runs by the system's C compiler.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tenon/backend/c/emit.h"
#include "tenon/driver/compiler.h"

namespace tenon {

/// What the command line says about C.
struct COptions {
  std::vector<std::string> pools;  // "sram=64KiB", "flash=ro"
  bool constants_file = false;     // beside the source, for the caller to map
  bool separate_arrays = false;
  std::vector<std::string> includes;
};

/// The C of a lowered module. \throws CompileError (kBadOption) at a pool that is not understood;
/// kDoesNotFit where the constants do not fit their pool; kPrototypeMismatch where a header of
/// --include declares a function otherwise. Prototypes that are not found or not understood become
/// remarks of `lowered`.
c_backend::Program generate_c(LoweredModule& lowered, const CompileRequest& request,
                              const COptions& options);

/// The C of each function of a lowered module, by its name: parts of what generate_c gives.
std::map<std::string, std::string> functions_in_c(const LoweredModule& lowered,
                                                  const CompileRequest& request,
                                                  const COptions& options);

/// Writes NAME.c, NAME.h, main_NAME.c, a Makefile and, where the caller provides them, the
/// constants to `folder`; gives the paths. \throws CompileError (kFileError).
std::vector<std::string> write_c(const c_backend::Program& program, const Target& target,
                                 const std::string& folder);

/// The program compiled by the system's C compiler ($CC, else cc) with the libraries that it calls
/// and loaded into this process. \throws CompileError (kLinkFailed) with the compiler's words.
std::shared_ptr<runtime::Program> compile_c(
    const c_backend::Program& program, const CompileRequest& request, const LoweredModule& lowered,
    const std::shared_ptr<const backend::Libraries>& libraries = {});

/// The module attribute that PlanMemory reads, for the pools of the options.
IRModule with_pools(IRModule module, const COptions& options);

}  // namespace tenon
