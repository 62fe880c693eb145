// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/loop.h"

#include "tenon/graph/infer.h"
#include "tenon/graph/op.h"
#include "tenon/graph/shape.h"

namespace tenon::graph {

std::vector<Value> LoopCall::operands() const {
  std::vector<Value> all = states;
  all.insert(all.end(), slices.begin(), slices.end());
  all.insert(all.end(), captured.begin(), captured.end());
  return all;
}

static std::set<size_t> places(const Call& call, const std::string& attr) {
  std::set<size_t> out;
  for (const int64_t place : call.attrs.ints(attr).value_or(std::vector<int64_t>{}))
    out.insert(static_cast<size_t>(place));
  return out;
}

LoopCall loop_call(const Call& call) {
  LoopCall out;
  out.body = call.args.at(0).to<FuncRef>().name;
  out.count = call.args.at(1).to<PrimValue>().value;
  out.dims = call.args.at(2).to<ShapeExpr>().values;
  out.states = call.args.at(3).to<Tuple>().values;
  out.slices = call.args.at(4).to<Tuple>().values;
  out.captured = call.args.at(5).to<Tuple>().values;
  out.while_first = call.attrs.flag("while_first");
  out.reversed_inputs = places(call, "reversed_inputs");
  out.reversed_outputs = places(call, "reversed_outputs");
  return out;
}

Type loop_numbers(const LoopCall& loop, const Expr& iteration) {
  std::vector<Expr> numbers = {iteration};
  numbers.insert(numbers.end(), loop.dims.begin(), loop.dims.end());
  return make<ShapeType>(std::move(numbers));
}

std::vector<Type> loop_operand_types(const LoopCall& loop) {
  std::vector<Type> types;
  for (const Value& state : loop.states) types.push_back(type_of(state));
  for (const Value& slice : loop.slices) {
    const Ref<TensorType> whole = tensor_type(slice);
    types.push_back(
        whole->shape
            ? make<TensorType>(std::vector<Expr>(whole->shape->begin() + 1, whole->shape->end()),
                               whole->dtype)
            : make<TensorType>(whole->dtype, whole->ndim < 0 ? -1 : whole->ndim - 1));
  }
  for (const Value& value : loop.captured) types.push_back(type_of(value));
  return types;
}

std::vector<Type> loop_result_types(const Function& body) {
  const Type type = body.result ? body.result : type_of(body.body->body);
  const auto* tuple = type.as<TupleType>();
  if (!tuple)
    throw CompileError(kTypeMismatch, body.origin, "a loop's body gives {}; expected a tuple",
                       str(type));
  return tuple->types;
}

std::vector<std::vector<bool>> changing_dims(const Function& body, size_t states) {
  std::vector<std::vector<bool>> out;
  const std::vector<Type> results = loop_result_types(body);
  for (size_t k = 0; k < states; ++k) {
    const auto* before = body.params.at(k + 1)->type.as<TensorType>();
    const auto* after = results.at(k).as<TensorType>();
    std::vector<bool> changes;
    if (before && before->shape)
      for (size_t d = 0; d < before->shape->size(); ++d)
        changes.push_back(!after || !after->shape || d >= after->shape->size() ||
                          dims_agree((*before->shape)[d], (*after->shape)[d]) != DimsAgree::kYes);
    out.push_back(std::move(changes));
  }
  return out;
}

std::set<std::string> loop_bodies(const IRModule& module) {
  std::set<std::string> names;
  for (const auto& [name, function] : module.functions())
    if (function.as<Function>())
      walk<Call>(function, [&](const Call& call) {
        if (call.is("loop"))
          if (const auto* ref = call.args.at(0).as<FuncRef>()) names.insert(ref->name);
      });
  return names;
}

std::string steps_message(int64_t most) {
  return fmt::format("the loop runs for more than {} iterations", most);
}

namespace {

template <typename... Args>
[[noreturn]] void wrong(const Call& call, const Function& body, fmt::format_string<Args...> format,
                        Args&&... args) {
  throw CompileError(kTypeMismatch, call.origin, format, std::forward<Args>(args)...)
      .note(body.origin, "the body of the loop");
}

void check_states(const Call& call, const Function& body, const LoopCall& loop) {
  const std::vector<Type> results = loop_result_types(body);
  const auto changing = changing_dims(body, loop.states.size());
  for (size_t k = 0; k < loop.states.size(); ++k) {
    const Type &before = body.params[k + 1]->type, &after = results[k];
    const auto *x = before.as<TensorType>(), *y = after.as<TensorType>();
    bool fits = x && y && x->shape && y->shape && x->dtype == y->dtype && x->ndim == y->ndim;
    // A dimension that changes is a variable.
    for (size_t d = 0; fits && d < changing[k].size(); ++d)
      fits = !changing[k][d] || (*x->shape)[d].as<tenon::Var>() != nullptr;
    if (!fits)
      wrong(call, body, "state {} of the loop is {} and becomes {}", k, str(before), str(after));
  }
}

}  // namespace

void check_loop(const Call& call, const Function& body) {
  const LoopCall loop = loop_call(call);
  const std::vector<Value> operands = loop.operands();
  if (body.params.size() != operands.size() + 1)
    wrong(call, body, "`{}` is called with {} operands; it has {} parameters", loop.body,
          operands.size() + 1, body.params.size());
  const Type numbers = loop_numbers(loop, int64(0));
  const auto* taken = body.params[0]->type.as<ShapeType>();
  if (!taken || !taken->values || taken->values->size() != loop.dims.size() + 1 ||
      !(*taken->values)[0].as<tenon::Var>())
    wrong(call, body, "parameter `{}` of `{}` is {}; expected a shape of the iteration and {} more",
          body.params[0]->name, loop.body, str(body.params[0]->type), loop.dims.size());
  const std::vector<Type> given = loop_operand_types(loop);
  Substitution bound;
  unify(body.params[0]->type, numbers, bound);
  for (size_t i = 0; i < given.size(); ++i) unify(body.params[i + 1]->type, given[i], bound);
  for (size_t i = 0; i < given.size(); ++i) {
    const Type wanted = substitute(body.params[i + 1]->type, bound);
    if (!given[i].as<ObjectType>() && !is_subtype(given[i], wanted))
      wrong(call, body, "operand {} of `{}` has type {}; parameter `{}` has type {}", i + 1,
            loop.body, str(given[i]), body.params[i + 1]->name, str(wanted));
  }
  const std::vector<Type> results = loop_result_types(body);
  const auto* declared = call.type_args.at(0).as<TupleType>();
  if (results.size() < loop.states.size() || !declared || declared->types.size() != results.size())
    wrong(call, body, "`{}` gives {} results for {} states; the loop has {}", loop.body,
          results.size(), loop.states.size(), declared ? declared->types.size() : 0);
  check_states(call, body, loop);
  for (size_t k = 0; k < results.size(); ++k) {
    const auto *one = results[k].as<TensorType>(), *all = declared->types[k].as<TensorType>();
    const int64_t more = k < loop.states.size() ? 0 : 1;
    if (!one || !one->shape || !all || all->dtype != one->dtype || all->ndim != one->ndim + more)
      wrong(call, body, "result {} of the loop is {}; the body gives {}", k,
            str(declared->types[k]), str(results[k]));
  }
}

}  // namespace tenon::graph
