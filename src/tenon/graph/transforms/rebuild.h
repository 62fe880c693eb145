// SPDX-License-Identifier: Apache-2.0
// Rebuilds graph functions binding by binding: shared by most graph passes.
#pragma once

#include <functional>

#include "tenon/graph/builder.h"

namespace tenon::graph {

/// Sees the value of each binding with its uses already replaced. Emits what it likes through the
/// builder and returns what stands for the bound variable; nothing: the value is emitted as it is.
using BindingRule = std::function<std::optional<Value>(BlockBuilder& builder,
                                                       const Binding& binding, const Value& value)>;

/// `function` with every binding passed through `rule`, branches of If included. Parameters and
/// bindings that nothing changes stay the very same, and so does a function of which this is true
/// of all; the other variables are new, with inferred types.
Ref<Function> rebuild(IRModule& module, const Ref<Function>& function, const BindingRule& rule);

/// `function` with the types of all variables but the parameters inferred afresh, under new
/// variables with names of their own.
Ref<Function> with_inferred_types(IRModule& module, const Ref<Function>& function);

/// Emits the bindings of `body`, a function's, with `values` for its parameters and dimensions,
/// each passed through `rule`; returns what stands for its result.
Value emit_body(BlockBuilder& builder, const SeqExpr& body, const Substitution& values,
                const BindingRule& rule);

/// Every graph function of the module rebuilt.
IRModule rebuild_all(IRModule module, const BindingRule& rule);

/// How often each variable is used in `function` (results and nested functions included).
std::unordered_map<const Node*, int> count_uses(const Function& function);

}  // namespace tenon::graph
