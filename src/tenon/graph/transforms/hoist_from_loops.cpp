// SPDX-License-Identifier: Apache-2.0
// HoistFromLoops: what no iteration changes is computed once, and products of slices by what no
// iteration changes are one product of all slices.
#include <algorithm>
#include <set>

#include "tenon/graph/infer.h"
#include "tenon/graph/loop.h"
#include "tenon/graph/op.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

namespace {

/// What leaves one loop's body.
class Hoisting {
 public:
  Hoisting(const LoopCall& loop, const Function& body) {
    const auto& numbers = body.params[0]->type.to<ShapeType>();
    for (const Expr& number : *numbers.values) changing_numbers_.insert(number.get());
    for (size_t i = 1; i < numbers.values->size(); ++i)
      changing_numbers_.erase((*numbers.values)[i].get());
    const size_t first_slice = 1 + loop.states.size();
    const auto changes = changing_dims(body, loop.states.size());
    for (size_t i = 1; i < body.params.size(); ++i) {
      const bool is_state = i < first_slice;
      if (is_state) {
        const auto& shape = *body.params[i]->type.to<TensorType>().shape;
        for (size_t d = 0; d < shape.size(); ++d)
          if (changes[i - 1][d]) changing_numbers_.insert(shape[d].get());
      } else if (i < first_slice + loop.slices.size()) {
        slices_.insert(body.params[i].get());
      } else {
        fixed_.insert(body.params[i].get());
      }
    }
    // Where no iteration runs, nothing that could fail may run in its place.
    const auto count = as_int(loop.count);
    always_runs_ = count && *count > 0 && !loop.while_first;
    walk<Binding>(body.body, [&](const Binding& binding) {
      if (binding.match)
        walk<tenon::Var>(binding.match,
                         [&](const tenon::Var& var) { changing_numbers_.insert(&var); });
    });
    for (const Ref<BindingBlock>& block : body.body->blocks)
      for (const Ref<Binding>& binding : block->bindings) visit(*binding);
  }

  const std::vector<const Binding*>& once() const { return once_; }
  const std::vector<const Binding*>& of_all_slices() const { return of_all_slices_; }
  bool empty() const { return once_.empty() && of_all_slices_.empty(); }

 private:
  bool is_fixed(const Value& value) const {
    if (value.as<Constant>() || value.as<StringValue>() || value.as<FuncRef>() ||
        value.as<PrimValue>() || value.as<ShapeExpr>())
      return !names_changing(value);
    if (const auto* tuple = value.as<Tuple>())
      return std::all_of(tuple->values.begin(), tuple->values.end(),
                         [&](const Value& item) { return is_fixed(item); });
    if (const auto* get = value.as<TupleGetItem>()) return is_fixed(get->tuple);
    return fixed_.count(value.get()) > 0;
  }
  bool names_changing(const NodePtr& node) const {
    bool found = false;
    walk<tenon::Var>(node,
                     [&](const tenon::Var& var) { found |= changing_numbers_.count(&var) > 0; });
    return found;
  }

  void visit(const Binding& binding) {
    const auto* call = binding.value.as<Call>();
    if (!call || binding.match || !call->op || !call->op->pure || call->op->traits.calls) return;
    if (names_changing(binding.value) || names_changing(binding.var->type)) return;
    const bool uses_values = std::any_of(call->args.begin(), call->args.end(), [](const Value& a) {
      return a && (a.as<Var>() || a.as<Tuple>() || a.as<TupleGetItem>());
    });
    if (std::all_of(call->args.begin(), call->args.end(),
                    [&](const Value& arg) { return !arg || is_fixed(arg); })) {
      if (!always_runs_ || !uses_values || !binding.var->type.as<TensorType>()) return;
      once_.push_back(&binding);
      fixed_.insert(binding.var.get());
    } else if (is_of_slices(*call, binding.var->type)) {
      of_all_slices_.push_back(&binding);
      slices_.insert(binding.var.get());
    }
  }

  // A product of a slice by a matrix, or such a product and what is broadcast to it.
  bool is_of_slices(const Call& call, const Type& type) const {
    const auto* result = type.as<TensorType>();
    if (!result || !result->shape || !result->dtype.is_float() || call.args.size() != 2)
      return false;
    const auto rank = [](const Value& value) {
      const auto* tensor = type_of(value).as<TensorType>();
      return tensor ? tensor->ndim : -1;
    };
    const Value &a = call.args[0], &b = call.args[1];
    if (call.is("matmul")) return slices_.count(a.get()) && is_fixed(b) && rank(b) == 2;
    if (!call.is("add")) return false;
    const auto fits = [&](const Value& slice, const Value& fixed) {
      return is_product(slice) && is_fixed(fixed) && rank(fixed) <= rank(slice) &&
             rank(fixed) >= 0 && is_subtype(type_of(slice), type);
    };
    return fits(a, b) || fits(b, a);
  }
  bool is_product(const Value& value) const {
    return std::any_of(of_all_slices_.begin(), of_all_slices_.end(),
                       [&](const Binding* made) { return made->var.get() == value.get(); });
  }

  bool always_runs_ = false;
  std::set<const Node*> changing_numbers_, fixed_, slices_;
  std::vector<const Binding*> once_, of_all_slices_;
};

/// A loop with another body, and the values that are computed before it.
class HoistedLoop {
 public:
  HoistedLoop(BlockBuilder& builder, const Call& call, const Ref<Function>& body)
      : builder_(builder), call_(call), loop_(loop_call(call)), body_(renew_definitions(body)) {}

  std::optional<Value> emit(const std::string& name) {
    const Hoisting hoisting(loop_, *body_);
    if (hoisting.empty()) return std::nullopt;
    Substitution outside;
    unify(body_->params[0]->type, loop_numbers(loop_, int64(0)), outside);
    outside.erase(body_->params[0]->type.to<ShapeType>().values->at(0).get());
    const std::vector<Type> given = loop_operand_types(loop_);
    for (size_t i = loop_.states.size(); i < given.size(); ++i)
      unify(body_->params[i + 1]->type, given[i], outside);
    const size_t first_slice = 1 + loop_.states.size();
    for (size_t i = first_slice; i < body_->params.size(); ++i) {
      const size_t at = i - first_slice;
      if (at < loop_.slices.size()) place_.emplace(body_->params[i].get(), at);
      outside.emplace(body_->params[i].get(), at < loop_.slices.size()
                                                  ? loop_.slices[at]
                                                  : loop_.captured[at - loop_.slices.size()]);
    }
    std::vector<Ref<Var>> slices, captured;
    const auto leave = [&](const Binding* binding, std::vector<Value>& values,
                           std::vector<Ref<Var>>& params) {
      const auto& call = binding->value.to<Call>();
      const Ref<Call> moved = substitute(ref_to(&call), outside);
      const Value value =
          builder_.op(moved->op->name, moved->args, moved->attrs, binding->var->name);
      outside.emplace(binding->var.get(), value);
      values.push_back(value);
      params.push_back(
          make<Var>(binding->var->name, binding->var->type, false, binding->var->origin));
      replaced_.emplace(binding->var.get(), params.back());
      record({"HoistFromLoops", moved->op->name, "hoisted", "", {}, "", binding->value->origin});
    };
    for (const Binding* binding : hoisting.once()) leave(binding, loop_.captured, captured);
    for (const Binding* binding : hoisting.of_all_slices()) {
      if (is_reversed(binding->value.to<Call>())) loop_.reversed_inputs.insert(loop_.slices.size());
      leave(binding, loop_.slices, slices);
      place_.emplace(binding->var.get(), loop_.slices.size() - 1);
    }
    const std::string rest = with_params(slices, captured, first_slice);
    std::vector<Value> args = call_.args;
    args[0] = make<FuncRef>(rest);
    args[4] = make<Tuple>(loop_.slices);
    args[5] = make<Tuple>(loop_.captured);
    Attrs attrs = call_.attrs;
    attrs.set("reversed_inputs",
              std::vector<int64_t>(loop_.reversed_inputs.begin(), loop_.reversed_inputs.end()));
    return builder_.emit(
        make<Call>(call_.op, std::move(args), std::move(attrs), call_.type_args, call_.origin),
        name);
  }

 private:
  // What is computed of slices is taken in their order.
  bool is_reversed(const Call& call) const {
    return std::any_of(call.args.begin(), call.args.end(), [&](const Value& arg) {
      const auto it = place_.find(arg.get());
      return it != place_.end() && loop_.reversed_inputs.count(it->second) > 0;
    });
  }

  std::string with_params(const std::vector<Ref<Var>>& slices,
                          const std::vector<Ref<Var>>& captured, size_t first_slice) {
    std::vector<Ref<Var>> params = body_->params;
    const size_t old_slices = loop_.slices.size() - slices.size();
    params.insert(params.begin() + static_cast<std::ptrdiff_t>(first_slice + old_slices),
                  slices.begin(), slices.end());
    params.insert(params.end(), captured.begin(), captured.end());
    BlockBuilder inside(builder_.module());
    inside.begin_function(params);
    const Value result =
        emit_body(inside, *body_->body, {},
                  [&](BlockBuilder&, const Binding& binding, const Value&) -> std::optional<Value> {
                    const auto it = replaced_.find(binding.var.get());
                    if (it == replaced_.end()) return std::nullopt;
                    return it->second;
                  });
    Ref<Function> function = inside.end_function(result, body_->attrs, body_->pure, body_->origin);
    params = used_params(*function, first_slice);
    function = with(*function, [&](Function& copy) {
      copy.params = std::move(params);
      copy.is_private = true;
    });
    return builder_.module().add_unique(loop_.body, renew_definitions(function));
  }

  // Slices and captured values that nobody uses any more are not passed, unless they define
  // dimensions.
  std::vector<Ref<Var>> used_params(const Function& function, size_t first_slice) {
    std::set<const Node*> used, needed;
    walk(function.body, [&](const NodePtr& node) {
      if (node.as<Var>()) used.insert(node.get());
      if (node.as<tenon::Var>()) needed.insert(node.get());
    });
    const auto is_kept = [&](size_t i) {
      return i < first_slice || used.count(function.params[i].get()) > 0;
    };
    std::set<const Node*> defined;
    for (size_t i = 0; i < function.params.size(); ++i) {
      if (!is_kept(i)) continue;
      each_dim(function.params[i]->type, [&](const Expr& dim) {
        if (dim.as<tenon::Var>()) defined.insert(dim.get());
      });
      walk<tenon::Var>(function.params[i]->type,
                       [&](const tenon::Var& var) { needed.insert(&var); });
    }
    std::vector<Ref<Var>> params;
    std::vector<Value> slices, captured;
    std::set<size_t> reversed;
    for (size_t i = 0; i < function.params.size(); ++i) {
      bool keeps = is_kept(i);
      each_dim(function.params[i]->type, [&](const Expr& dim) {
        keeps |= needed.count(dim.get()) && defined.insert(dim.get()).second;
      });
      if (!keeps) continue;
      params.push_back(function.params[i]);
      if (i < first_slice) continue;
      const size_t at = i - first_slice;
      if (at >= loop_.slices.size()) {
        captured.push_back(loop_.captured[at - loop_.slices.size()]);
        continue;
      }
      if (loop_.reversed_inputs.count(at)) reversed.insert(slices.size());
      slices.push_back(loop_.slices[at]);
    }
    loop_.slices = std::move(slices);
    loop_.captured = std::move(captured);
    loop_.reversed_inputs = std::move(reversed);
    return params;
  }
  static void each_dim(const Type& type, const std::function<void(const Expr&)>& visit) {
    const auto* tensor = type.as<TensorType>();
    const auto* shape = type.as<ShapeType>();
    if (tensor && tensor->shape)
      for (const Expr& dim : *tensor->shape) visit(dim);
    if (shape && shape->values)
      for (const Expr& dim : *shape->values) visit(dim);
  }

  BlockBuilder& builder_;
  const Call& call_;
  LoopCall loop_;
  const Ref<Function> body_;
  std::unordered_map<const Node*, Value> replaced_;
  std::unordered_map<const Node*, size_t> place_;  // among the slices
};

}  // namespace

IRModule hoist_from_loops(IRModule module) {
  // What leaves the body of a loop within a loop may leave that one too.
  constexpr int kMostRounds = 8;
  for (int round = 0; round < kMostRounds && !loop_bodies(module).empty(); ++round) {
    bool changed = false;
    const std::vector<IRModule::Entry> entries = module.functions();
    for (const auto& [name, base] : entries) {
      const auto function = cast<Function>(base);
      if (!function) continue;
      module.set(name, rebuild(module, function,
                               [&](BlockBuilder& builder, const Binding& binding,
                                   const Value& value) -> std::optional<Value> {
                                 const auto* call = value.as<Call>();
                                 if (!call || !call->is("loop")) return std::nullopt;
                                 const auto body =
                                     module.find<Function>(call->args.at(0).to<FuncRef>().name);
                                 auto hoisted =
                                     HoistedLoop(builder, *call, body).emit(binding.var->name);
                                 changed |= hoisted.has_value();
                                 return hoisted;
                               }));
    }
    if (!changed) break;
    module = eliminate_dead_code(std::move(module));
  }
  return module;
}

}  // namespace tenon::graph
