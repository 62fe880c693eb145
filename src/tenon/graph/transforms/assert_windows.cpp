// SPDX-License-Identifier: Apache-2.0
// AssertWindows: a window that is larger than its symbolic axis ends the program. All that later
// passes see of it is a result with a dimension of 0, or less.
#include <algorithm>
#include <unordered_map>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/assertion.h"
#include "tenon/graph/assumed_dims.h"
#include "tenon/graph/dimensions.h"
#include "tenon/graph/kernels.h"
#include "tenon/graph/op.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"

namespace tenon::graph {

namespace {

using Conditions = std::vector<AssumedDims::Condition>;

Conditions conditions_of(const Value& value) {
  const auto* call = value.as<Call>();
  if (!call || !call->op || !call->op->infer_type) return {};
  AssumedDims assumed;
  (void)call->op->infer_type(*call);
  arith::Analyzer analyzer;
  std::erase_if(assumed.conditions, [&](const auto& c) { return analyzer.proves(c.holds); });
  return std::move(assumed.conditions);
}

/// Asserts what the calls of a function assume as soon as the dimensions are known: operators between
/// that place and the call are fused across no assertion.
class Asserter {
 public:
  explicit Asserter(const Ref<Function>& function) : function_(function) {
    for (const Ref<Var>& param : function->params) define(param->type, 0);
    size_t place = 0;  // of a binding, from 1 on
    for (const Ref<BindingBlock>& block : function->body->blocks)
      for (const Ref<Binding>& binding : block->bindings) {
        ++place;
        for (const AssumedDims::Condition& condition : conditions_of(binding->value))
          note(condition, place, binding->value->origin);
        if (binding->match) define(binding->match, place);
        places_.emplace(binding.get(), place);
      }
    walk<If>(function->body, [&](const If& branch) {
      for (const Ref<SeqExpr>& arm : {branch.then_branch, branch.else_branch})
        walk<Binding>(arm, [&](const Binding& binding) {
          is_needed_ |= !conditions_of(binding.value).empty();
        });
    });
  }

  Ref<Function> run(IRModule& module) {
    if (!is_needed_) return function_;
    BlockBuilder builder(module);
    builder.begin_function(function_->params);
    emit_until(builder, 0);
    const Value result = emit_body(
        builder, *function_->body, {},
        [&](BlockBuilder&, const Binding& binding, const Value& value) -> std::optional<Value> {
          const auto place = places_.find(&binding);
          if (place != places_.end())
            emit_until(builder, place->second - 1);
          else  // in a branch
            for (const AssumedDims::Condition& condition : conditions_of(value))
              if (!is_emitted(condition.holds))
                builder.emit(assertion(condition.holds, condition.otherwise, value->origin));
          return std::nullopt;
        });
    const Ref<Function> out =
        builder.end_function(result, function_->attrs, function_->pure, function_->origin);
    return with(*out, [&](Function& copy) { copy.is_private = function_->is_private; });
  }

 private:
  struct Assertion {
    size_t after;  // the binding at this place; 0: the parameters
    AssumedDims::Condition condition;
    Origin origin;
    bool is_emitted = false;
  };

  void define(const Type& type, size_t place) {
    each_dimension(type, [&](const Expr& dim) {
      if (dim.as<tenon::Var>()) defined_.emplace(dim.get(), place);
    });
  }

  void note(const AssumedDims::Condition& condition, size_t place, const Origin& origin) {
    is_needed_ = true;
    size_t after = 0;
    walk<tenon::Var>(condition.holds, [&](const tenon::Var& var) {
      const auto found = defined_.find(&var);
      after = std::max(after, found == defined_.end() ? place - 1 : found->second);
    });
    assertions_.push_back({after, condition, origin});
  }

  bool is_emitted(const Expr& holds) const {
    return std::ranges::any_of(assertions_, [&](const Assertion& known) {
      return known.is_emitted && structural_equal(known.condition.holds, holds);
    });
  }

  void emit_until(BlockBuilder& builder, size_t place) {
    for (Assertion& assertion : assertions_) {
      if (assertion.after > place || assertion.is_emitted) continue;
      if (!is_emitted(assertion.condition.holds))
        builder.emit(graph::assertion(assertion.condition.holds, assertion.condition.otherwise,
                                      assertion.origin));
      assertion.is_emitted = true;
    }
  }

  Ref<Function> function_;
  std::unordered_map<const Node*, size_t> defined_, places_;  // of symbols, of bindings
  std::vector<Assertion> assertions_;
  bool is_needed_ = false;
};

}  // namespace

IRModule assert_windows(IRModule module) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, function] : entries) {
    const auto graph = cast<Function>(function);
    const bool is_part =
        graph && (graph->attrs.contains("Pattern") || graph->attrs.contains("Primitive") ||
                  graph->attrs.contains("Composite") || graph->attrs.contains("Codegen") ||
                  declares_operator(*graph));
    if (graph && !is_part) module.set(name, Asserter(graph).run(module));
  }
  return module;
}

}  // namespace tenon::graph
