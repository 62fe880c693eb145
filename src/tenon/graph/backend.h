// Hooks by which a back end takes over parts of a graph: from its graph functions to PrimFuncs, and
// from PrimFuncs to code. A guide with an example: docs/contributing/adding_a_backend.md.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tenon/graph/expr.h"
#include "tenon/tir/extern_function.h"

namespace tenon::graph {

/// What Tenon offers to a hook.
struct BackendContext {
  /// A graph function as a PrimFunc, by the passes of the standard pipeline from legalising to
  /// lowering: its operators become kernels of the module. Parameters, then outputs.
  std::function<IRModule(IRModule module, const std::string& function)> lower;
};

/// Code for functions of a back end: C99 source, or a relocatable object; it is linked into the
/// program. Either may be empty.
struct BackendCode {
  std::string c_source;
  std::string object;
};

struct Backend {
  /// Its target: composites are its own whose attr `Composite` begins with the name and a dot,
  /// regions those whose attr `Compiler` is the name.
  std::string name;

  /// What `lower` is given: each composite by itself, or each region with the composites in it.
  enum class Unit : uint8_t { kComposite, kRegion };
  Unit unit = Unit::kComposite;

  /// Graph to TensorIR: replaces graph function `function` of the module by a PrimFunc of the same
  /// name over its parameters, then its outputs, and adds what that calls. The PrimFunc gets attr
  /// `target`; with attr `tenon.inline` its statements (allocations and calls, no blocks) come to
  /// stand in the place of each call, and its allocations become the caller's.
  std::function<IRModule(IRModule module, const std::string& function, const BackendContext&)>
      lower;

  /// TensorIR to code: for the PrimFuncs `functions` of the module, each as a C function of that
  /// name that takes its parameters in order: `float*` and the like for buffers (const where it
  /// only reads), then the value of a scalar. Where it is empty they are compiled like all others.
  std::function<BackendCode(const IRModule& module, const std::vector<std::string>& functions)>
      generate = {};
};

/// Hands its part of the graph to `backend`: runs its `lower` on each unit, checks what came of it,
/// and makes the calls of these functions R.call_tir. Records a remark for each unit.
/// \throws CompileError (kBadBackend) where the hook broke its contract.
IRModule run_backend(IRModule module, const Backend& backend, const BackendContext& context);

/// Runs its `generate`, where it has one, and replaces the PrimFuncs that it made code for by
/// extern functions of the same names.
IRModule generate_backend_code(IRModule module, const Backend& backend, BackendCode& code);

/// The back end that calls a library by name: composite `NAME.f` becomes a call of the C function
/// `f` (what is no letter or digit of C in it: `_`). Its signature is that of an extern function of
/// the module with this symbol; where there is none it follows from the composite's type (pointers
/// to the inputs in order, then to the outputs), and the composite is its reference body.
Backend call_by_name(const std::string& name);

/// The part of attr `Composite` (or all of attr `Compiler`) that names a back end, and of a
/// composite the rest; empty where the function has no such attr.
std::string backend_of(const FunctionNode& function);
std::string composite_name(const FunctionNode& function);

}  // namespace tenon::graph
