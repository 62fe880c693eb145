// SPDX-License-Identifier: Apache-2.0
// ShareBuffers: results of `main` lie in the memory of parameters, and caches grow there.
//
// What is shared has one type: where a result has more rows than its parameter, both become buffers
// of a capacity, and how many rows they hold follows from another parameter.
#include <algorithm>
#include <map>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/assertion.h"
#include "tenon/graph/op.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/support/names.h"
#include "tenon/support/nearest.h"
#include "tenon/tir/shared_buffers.h"

namespace tenon::graph {

namespace {

struct Pair {
  size_t input = 0, output = 0;
  size_t axis = 0;        // along which the result grows
  bool is_grown = false;  // by concat
};

size_t find_name(const std::vector<std::string>& names, const std::string& name, const char* what) {
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end())
    throw CompileError(kUndefined, {}, "`ShareBuffers`: `main` has no {} `{}`{}", what, name,
                       did_you_mean(name, names));
  return static_cast<size_t>(at - names.begin());
}

// "past.*=present.*" for each input that fits.
void find_pairs(const std::string& text, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs, std::vector<Pair>& pairs) {
  const size_t equals = text.find('=');
  const std::string input = text.substr(0, equals),
                    output = equals == std::string::npos ? "" : text.substr(equals + 1);
  const size_t star = input.find('*'), other = output.find('*');
  if (input.empty() || output.empty() ||
      (star == std::string::npos) != (other == std::string::npos))
    throw CompileError(kBadOption, {},
                       "option `pairs` of `ShareBuffers` has \"{}\"; expected \"INPUT=OUTPUT\", "
                       "with one * in each or none",
                       text);
  if (star == std::string::npos) {
    pairs.push_back({find_name(inputs, input, "input"), find_name(outputs, output, "output")});
    return;
  }
  const std::string front = input.substr(0, star), back = input.substr(star + 1);
  bool found = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = inputs[i];
    if (name.size() < front.size() + back.size() || !name.starts_with(front) ||
        !name.ends_with(back))
      continue;
    const std::string middle = name.substr(front.size(), name.size() - front.size() - back.size());
    pairs.push_back(
        {i, find_name(outputs, output.substr(0, other) + middle + output.substr(other + 1),
                      "output")});
    found = true;
  }
  if (!found)
    throw CompileError(kUndefined, {}, "`ShareBuffers`: no input of `main` fits \"{}\"", input);
}

bool is_concat(const Call* call) {
  return call && call->op && call->op->layout == LayoutRule::kConcat;
}

class Sharing {
 public:
  Sharing(IRModule& module, const Ref<Function>& main) : module_(module), main_(main) {
    const auto* results = main->body->body.as<Tuple>();
    results_ = results ? results->values : std::vector<Value>{main->body->body};
    for (const Ref<BindingBlock>& block : main->body->blocks)
      for (const Ref<Binding>& binding : block->bindings) bindings_[binding->var.get()] = &*binding;
    for (const Ref<Var>& param : main->params) names_.reserve(param->name);
    walk<tenon::Var>(main, [&](const tenon::Var& var) { names_.reserve(var.name); });
  }

  size_t results() const { return results_.size(); }

  Ref<Function> apply(std::vector<Pair> pairs) {
    for (Pair& pair : pairs) look_at(pair);
    for (const Pair& pair : pairs)
      if (pair.is_grown) find_length(pair);
    std::vector<Ref<Var>> params = new_params(pairs);
    AttrList attr;
    for (const Pair& pair : pairs)
      attr.push_back(AttrList{static_cast<int64_t>(pair.input), static_cast<int64_t>(pair.output)});
    Attrs attrs = main_->attrs;
    attrs.set(tir::kSharedBuffers, attr);
    return built(std::move(params), pairs, std::move(attrs));
  }

 private:
  const TensorType& type_of_param(const Pair& pair) const {
    const auto* type = main_->params[pair.input]->type.as<TensorType>();
    if (!type || !type->shape) misfit(pair, "have shapes");
    return *type;
  }
  [[noreturn]] void misfit(const Pair& pair, const std::string& expected) const {
    throw CompileError(kShapeMismatch, main_->params[pair.input]->origin,
                       "result {} of type {} is to share the memory of `{}`, of type {}; expected "
                       "that they {}",
                       pair.output, str(type_of(results_[pair.output])),
                       main_->params[pair.input]->name, str(main_->params[pair.input]->type),
                       expected);
  }

  // The axis along which they differ, and how: by rows behind those that are there, or by an extent
  // of at least so many rows, which must then suffice.
  void look_at(Pair& pair) {
    const TensorType& input = type_of_param(pair);
    const Type type = type_of(results_[pair.output]);
    const auto* output = type.as<TensorType>();
    if (!output || !output->shape || output->dtype != input.dtype ||
        output->shape->size() != input.shape->size())
      misfit(pair, "have the same dtype and rank");
    size_t differ = 0;
    for (size_t d = 0; d < input.shape->size(); ++d) {
      if (arith::proves_equal((*input.shape)[d], (*output->shape)[d])) continue;
      pair.axis = d;
      ++differ;
    }
    if (differ == 0) return;
    const Expr held = (*input.shape)[pair.axis], grown = (*output->shape)[pair.axis];
    if (differ > 1) misfit(pair, "differ along one axis");
    if (const auto* most = grown.as<Binary>(); most && most->op == BinaryOp::kMax) {
      const bool first = structural_equal(most->lhs, held);
      if (first || structural_equal(most->rhs, held)) {
        enough(first ? most->rhs : most->lhs, held, pair);
        return;
      }
    }
    const auto binding = bindings_.find(results_[pair.output].get());
    const auto* call = binding == bindings_.end() ? nullptr : binding->second->value.as<Call>();
    const auto* parts = is_concat(call) ? call->args[0].as<Tuple>() : nullptr;
    const bool appends = parts && parts->values.size() == 2 &&
                         parts->values[0].same_as(main_->params[pair.input]) &&
                         held.as<tenon::Var>();
    if (!appends) misfit(pair, "are equal, or that the result is a concat of it and new rows");
    pair.is_grown = true;
    grown_.emplace(results_[pair.output].get(), pair);
  }

  // Known from here on: `rows` <= `room`.
  void enough(const Expr& rows, const Expr& room, const Pair& pair) {
    const Expr fits = rows <= room;
    analyzer_.assume(fits);
    if (std::any_of(conditions_.begin(), conditions_.end(),
                    [&](const auto& other) { return structural_equal(other.first, fits); }))
      return;
    conditions_.emplace_back(
        fits, fmt::format("`{}` has no room for all rows", main_->params[pair.input]->name));
  }

  // The length of what a parameter holds is no dimension of it any more.
  void find_length(const Pair& pair) {
    const Expr held = (*type_of_param(pair).shape)[pair.axis];
    const auto length = downcast<tenon::Var>(held);
    if (capacities_.count(length.get())) return;
    capacities_[length.get()] = tenon::Var::size(names_.take(length->name + "_capacity"));
    const auto is_shared = [&](const Ref<Var>& param) {
      return std::any_of(grown_.begin(), grown_.end(), [&](const auto& other) {
        return main_->params[other.second.input].same_as(param);
      });
    };
    const std::vector<Ref<tenon::Var>> wanted = {length};
    for (const Ref<Var>& param : main_->params) {
      const auto* type = param->type.as<TensorType>();
      if (!type || !type->shape || is_shared(param)) continue;
      for (size_t d = 0; d < type->shape->size(); ++d) {
        const Expr& dim = (*type->shape)[d];
        if (dim.same_as(held)) return;
        const auto form = analyzer_.linear(dim, wanted);
        if (!form || !form->is_constant(0, 1)) continue;
        const auto whole = tenon::Var::size(names_.take(fmt::format("{}_dim{}", param->name, d)));
        const Expr value = analyzer_.simplify(whole - form->rest);
        values_[length.get()] = value;
        conditions_.emplace_back(
            value >= int64(0),
            fmt::format("dimension {} of `{}` is less than {}", d, param->name, str(form->rest)));
        return;
      }
    }
    throw CompileError(kUnsupported, main_->params[pair.input]->origin,
                       "how many rows `{}` holds follows from no dimension of another input, such "
                       "as that of a mask",
                       main_->params[pair.input]->name);
  }

  // A condition, of which nothing is assumed yet.
  Expr given(const Expr& condition) const {
    return arith::simplify(downcast<ExprNode>(substitute(NodePtr(condition), values_)));
  }
  Expr with_values(const Expr& expr) {
    return analyzer_.simplify(downcast<ExprNode>(substitute(NodePtr(expr), values_)));
  }

  std::vector<Ref<Var>> new_params(const std::vector<Pair>& pairs) {
    std::vector<Ref<Var>> params = main_->params;
    for (size_t i = 0; i < params.size(); ++i) {
      const auto* type = params[i]->type.as<TensorType>();
      if (!type || !type->shape) continue;
      std::vector<Expr> dims;
      for (const Expr& dim : *type->shape) dims.push_back(with_values(dim));
      for (const Pair& pair : pairs)
        if (pair.is_grown && pair.input == i)
          dims[pair.axis] = capacities_.at((*type->shape)[pair.axis].get());
      if (arith::proves_equal(dims, *type->shape)) continue;
      params[i] = make<Var>(params[i]->name, make<TensorType>(std::move(dims), type->dtype), false,
                            params[i]->origin);
    }
    return params;
  }

  // Shapes and numbers by what is known of them; types follow.
  Ref<SeqExpr> known_body() {
    return rewrite(main_->body, [&](const NodePtr& node) -> std::optional<NodePtr> {
      if (const auto* shape = node.as<ShapeExpr>()) {
        std::vector<Expr> dims;
        for (const Expr& dim : shape->values) dims.push_back(with_values(dim));
        return make<ShapeExpr>(std::move(dims), shape->origin);
      }
      if (const auto* number = node.as<PrimValue>())
        return make<PrimValue>(with_values(number->value), number->origin);
      return std::nullopt;
    });
  }

  Value rows_of(BlockBuilder& builder, const Value& buffer, size_t axis, const Expr& count) {
    const auto one = [&](Expr value) {
      return make<ShapeExpr>(std::vector<Expr>{std::move(value)});
    };
    return builder.op("strided_slice",
                      {buffer, one(int64(static_cast<int64_t>(axis))), one(int64(0)), one(count)},
                      {{"assume_inbound", true}});
  }

  Ref<Function> built(std::vector<Ref<Var>> params, const std::vector<Pair>& pairs, Attrs attrs) {
    BlockBuilder builder(module_);
    builder.begin_function(params);
    Substitution values = values_;
    std::map<const Node*, Pair> by_rows;  // by what stands for the rows of a parameter
    for (size_t i = 0; i < params.size(); ++i)
      if (!params[i].same_as(main_->params[i])) values[main_->params[i].get()] = params[i];
    for (const auto& [condition, message] : conditions_)
      builder.emit(assertion(given(condition), message, main_->origin));
    std::map<const Node*, Value> buffers;  // by the result: all of the memory
    for (const Pair& pair : pairs) {
      if (!pair.is_grown) continue;
      const Expr held = with_values((*type_of_param(pair).shape)[pair.axis]);
      values[main_->params[pair.input].get()] =
          rows_of(builder, params[pair.input], pair.axis, held);
    }
    const BindingRule rule = [&](BlockBuilder& to, const Binding& binding,
                                 const Value& value) -> std::optional<Value> {
      const auto* call = value.as<Call>();
      if (!is_concat(call)) return std::nullopt;
      const auto grown = grown_.find(binding.var.get());
      if (grown == grown_.end()) return without_empty(*call);
      const Pair& pair = grown->second;
      const Value next = call->args[0].as<Tuple>()->values[1];
      const Expr held = with_values((*type_of_param(pair).shape)[pair.axis]);
      const Value all = append(to, params[pair.input], next, pair.axis, held);
      buffers[binding.var.get()] = all;
      const Expr count = with_values((*dims_of_value(binding.var))[pair.axis]);
      return rows_of(to, all, pair.axis, count);
    };
    Value result = emit_body(builder, *known_body(), values, rule);
    if (const auto* tuple = result.as<Tuple>()) {
      std::vector<Value> items = tuple->values;
      for (size_t i = 0; i < items.size(); ++i)
        if (const auto all = buffers.find(results_[i].get()); all != buffers.end())
          items[i] = all->second;
      result = make<Tuple>(std::move(items));
    } else if (const auto all = buffers.find(results_[0].get()); all != buffers.end()) {
      result = all->second;
    }
    return builder.end_function(result, std::move(attrs), main_->pure, main_->origin);
  }

  static const std::vector<Expr>* dims_of_value(const Value& value) {
    const Type type = type_of(value);
    const auto* tensor = type.as<TensorType>();
    return tensor && tensor->shape ? &*tensor->shape : nullptr;
  }

  // `buffer` with `next` in its rows from `held` on.
  Value append(BlockBuilder& builder, const Value& buffer, const Value& next, size_t axis,
               const Expr& held) {
    const std::vector<Expr> dims = *dims_of_value(buffer);
    const Value starts =
        builder.op("full", {make<ShapeExpr>(std::vector<Expr>{dims[0]}), make<PrimValue>(held)},
                   {{"dtype", kInt64}});
    return builder.op("tensor_scatter", {buffer, next, starts},
                      {{"axis", static_cast<int64_t>(axis)}, {"mode", std::string("linear")}});
  }

  // A concat with a part that has no rows, as one is that would make room.
  std::optional<Value> without_empty(const Call& call) {
    const auto* parts = call.args[0].as<Tuple>();
    const auto axis = call.attrs.get<int64_t>("axis");
    if (!parts || !axis || parts->values.size() != 2) return std::nullopt;
    for (size_t i = 0; i < 2; ++i) {
      const std::vector<Expr>* dims = dims_of_value(parts->values[i]);
      const auto at = static_cast<size_t>(*axis);
      if (dims && at < dims->size() && analyzer_.proves_equal((*dims)[at], 0))
        return parts->values[1 - i];
    }
    return std::nullopt;
  }

  IRModule& module_;
  const Ref<Function> main_;
  std::vector<Value> results_;
  std::unordered_map<const Node*, const Binding*> bindings_;
  NameSupply names_;
  arith::Analyzer analyzer_;
  std::vector<std::pair<Expr, std::string>> conditions_;
  std::map<const Node*, Pair> grown_;                 // by the result's variable; looked up only
  std::unordered_map<const Node*, Expr> capacities_;  // by the variable of the length
  Substitution values_;                               // lengths that other inputs give
};

}  // namespace

IRModule share_buffers(IRModule module, const Attrs& options) {
  check_options("ShareBuffers", options, {"pairs"});
  const auto main = module.find<Function>("main");
  if (!main) throw CompileError(kUndefined, {}, "the module has no graph function `main`");
  const auto texts = options.strings("pairs");
  if (!texts)
    throw CompileError(kBadOption, {},
                       "option `pairs` of `ShareBuffers` is absent; expected a list of "
                       "\"INPUT=OUTPUT\"");
  Sharing sharing(module, main);
  std::vector<std::string>
      inputs = main->attrs.strings("input_names").value_or(std::vector<std::string>{}),
      outputs = main->attrs.strings("output_names").value_or(std::vector<std::string>{});
  for (size_t i = inputs.size(); i < main->params.size(); ++i)
    inputs.push_back(main->params[i]->name);
  for (size_t i = outputs.size(); i < sharing.results(); ++i)
    outputs.push_back(sharing.results() == 1 ? "output" : fmt::format("output_{}", i));
  std::vector<Pair> pairs;
  for (const std::string& text : *texts) find_pairs(text, inputs, outputs, pairs);
  AttrList seen;
  for (const Pair& pair : pairs)
    seen.push_back(AttrList{static_cast<int64_t>(pair.input), static_cast<int64_t>(pair.output)});
  (void)tir::shared_buffers({{tir::kSharedBuffers, seen}}, inputs.size(), outputs.size(),
                            main->origin);
  if (pairs.empty()) return module;
  module.set("main", sharing.apply(std::move(pairs)));
  return module;
}

}  // namespace tenon::graph
