// SPDX-License-Identifier: Apache-2.0
// Hooks by which a back end takes over parts of a graph: from its graph functions to PrimFuncs, and
// from PrimFuncs to code. A guide with an example: docs/contributing/backend.md.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/graph/codegen_attrs.h"
#include "tenon/graph/expr.h"
#include "tenon/graph/external_modules.h"
#include "tenon/graph/patterns/fusion_pattern.h"
#include "tenon/ir/pass.h"
#include "tenon/tir/extern_function.h"

namespace tenon::graph {

/// What Tenon offers to a hook.
struct BackendContext {
  /// A graph function as a PrimFunc, by the passes of the standard pipeline from legalising to
  /// lowering: its operators become kernels of the module. Parameters, then outputs.
  std::function<IRModule(IRModule module, const std::string& function)> lower = {};
  /// `options` of RunCodegen: what the user asks of this back end.
  AttrValue::Map options = {};
  /// `symbol` of RunCodegen: the symbol to use for the function at hand; empty: the back end's
  /// choice.
  std::string symbol = {};
};

/// What `lower` throws where the back end makes no code for a unit that its checks let through: the
/// unit is compiled like everything else. The error says the same, for where there is no other way.
class BackendRefusal : public CompileError {
 public:
  BackendRefusal(std::string reason, std::string words, CompileError error)
      : CompileError(std::move(error)), reason(std::move(reason)), words(std::move(words)) {}
  std::string reason;  // a reason code: "memory"
  std::string words;
};

/// Code for functions of a back end, which becomes part of the module's `external_mods` and is
/// linked into the program. What is empty is not there.
struct BackendCode {
  std::string c_source = {};           // C99
  std::string object = {};             // relocatable object
  std::vector<std::string> link = {};  // shared libraries that it needs, by name ("libfoo.so.1")
};

struct Backend {
  /// Its target: composites are its own whose attr `Composite` begins with the name and a dot,
  /// regions those whose attr `Compiler` (or `Codegen`) is the name.
  std::string name;
  std::string version = {};

  /// What it takes; set_user_patterns adds to it.
  std::vector<FusionPattern> patterns = {};

  /// What `lower` is given: each composite by itself, or each region with the composites in it.
  enum class Unit : uint8_t { kComposite, kRegion };
  Unit unit = Unit::kComposite;

  /// kOwnPool: its calls bring threads of their own. They run alone, one at a time, while the
  /// program's own workers sleep.
  enum class Threads : uint8_t { kCaller, kOwnPool };
  Threads threads = Threads::kCaller;
  /// Its results are bit-equal for every number of threads.
  bool same_at_every_thread_count = true;

  /// A library that is called by name (call_by_name).
  bool by_name = false;

  int priority = 0;  // among back ends that take the same: higher first
  /// Seconds that a match takes on one thread; nothing: not declared.
  std::function<std::optional<double>(const PatternCheck&)> cost = {};

  /// Graph to TensorIR: replaces graph function `function` of the module by a PrimFunc of the same
  /// name over its parameters, then its outputs, and adds what that calls. The PrimFunc gets attr
  /// `target`; with attr `tenon.inline` its statements (allocations and calls, no blocks) come to
  /// stand in the place of each call, and its allocations become the caller's. An extern function
  /// (tir::ExternFunction) in its place is called as it is, by R.call_dps_packed.
  /// It may add artefacts (add_external_module). \throws BackendRefusal where it does not.
  std::function<IRModule(IRModule module, const std::string& function, const BackendContext&)>
      lower = {};

  /// TensorIR to code: for the PrimFuncs `functions` of the module, each as a C function of that
  /// name that takes its parameters in order: `float*` and the like for buffers (const where it
  /// only reads), then the value of a scalar. Where it is empty they are compiled like all others.
  std::function<BackendCode(const IRModule& module, const std::vector<std::string>& functions)>
      generate = {};

  /// Passes of its own; `--passes` finds them by name.
  std::vector<Pass> passes = {};
};

/// The one registry, of this process: back ends in the tree come from driver/, others from
/// --plugin and --call-by-name. Safe to use from several threads. A library by name makes room for
/// another back end of its name.
/// \throws CompileError (kBadBackend) at a name that is empty, has a dot, or is taken.
void register_backend(Backend backend);
/// The same in place of one that is registered under its name. Who has that keeps it as it was.
void replace_backend(Backend backend);
/// The user's patterns, instead of all that were set before: those of `BACKEND.` come behind that
/// back end's own. What belongs to no registered one is left out.
void set_user_patterns(const std::vector<FusionPattern>& patterns);
/// False where there was none.
bool unregister_backend(const std::string& name);
/// Null where there is none.
std::shared_ptr<const Backend> find_backend(const std::string& name);
/// By priority, then in the order of registration.
std::vector<std::shared_ptr<const Backend>> all_backends();

/// What becomes of a unit that the hook refuses: own code, or an error.
enum class OnRefusal : uint8_t { kOwnCode, kError };

/// Hands its part of the graph to `backend`: runs its `lower` on each unit, checks what came of it,
/// and makes the calls of these functions R.call_tir, or R.call_dps_packed of an extern function.
/// Records a remark for each unit.
/// A unit that the hook refuses becomes a function like others, with the composites in it; a remark
/// for each of its operators at each call says why (pass "RunCodegen", verdict "refused", number
/// "flop"; of a kernel one for each call, number "kernels"). What it takes has such remarks, too:
/// verdict "placed", reason: the composite.
/// \throws CompileError (kBadBackend) where the hook broke its contract; (kBackendRefused) where it
/// refuses, with OnRefusal::kError.
IRModule run_backend(IRModule module, const Backend& backend, const BackendContext& context,
                     OnRefusal on_refusal = OnRefusal::kOwnCode);

/// Runs its `generate`, where it has one, replaces the PrimFuncs that it made code for by extern
/// functions of the same names, and adds the code to the module's `external_mods`.
IRModule generate_backend_code(IRModule module, const Backend& backend);

/// What RunCodegen is asked for; what is empty is not said.
struct CodegenRequest {
  std::string backend = {};   // else every one that the module names
  std::string function = {};  // this function of the module alone, whatever its attributes
  std::string symbol = {};    // what it is called afterwards
  AttrValue::Map options = {};
};
/// Hands regions and composites to their back ends, as run_backend and generate_backend_code do.
/// A back end that is named and not registered is a library that is called by name: a composite
/// `NAME.f` by symbol `f`, a region by its `global_symbol`, function `function` by `symbol`.
/// \throws CompileError kUndefined where there is no such function; kBadOption where nothing calls
/// it, or the module names a back end that is not there; kRedefined where `symbol` is taken.
IRModule run_codegen(IRModule module, const CodegenRequest& request,
                     const BackendContext& context = {});

/// The back end that calls a library by name: composite `NAME.f` becomes a call of the C function
/// `f` (what is no letter or digit of C in it: `_`). Its signature is that of an extern function of
/// the module with this symbol; where there is none it follows from the composite's type (pointers
/// to the inputs in order, then to the outputs), and the composite is its reference body.
Backend call_by_name(const std::string& name);
/// Whether the signature that the module declares takes a match; refusals have the code
/// `signature`. One that is not declared is derived, which fits.
Verdict fits_signature(const PatternCheck& check);

}  // namespace tenon::graph
