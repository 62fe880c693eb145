// SPDX-License-Identifier: Apache-2.0
// Finds the entry of a module: `main`, or the one function that can only be meant.
#pragma once

#include "tenon/ir/module.h"

namespace tenon {

/// The module with a `main` that compiles and runs. Where it has none, the one graph function that
/// nothing calls is renamed to it; in a module of PrimFuncs alone, the one that nothing calls gets
/// a `main` which calls it. So does a PrimFunc `main` that is a kernel: its inputs are what it
/// reads, its outputs what it writes, in the order of its parameters; what it does both to is an
/// input, copied into an output of the same name. A scalar parameter is an input of rank 0.
/// \throws CompileError kUndefined where several functions or none can be the entry, kUnsupported
/// for a kernel that writes nothing, returns a value, or has a parameter that is no buffer
IRModule with_entry(IRModule module);

/// The same with `name` as what is to be run; it stays what others call.
/// \throws CompileError also kUndefined where there is no such function
IRModule with_entry(IRModule module, const std::string& name);

}  // namespace tenon
