// SPDX-License-Identifier: Apache-2.0
// The loop over a function of the module.
#include "tenon/graph/ops/loop.h"

#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

struct LoopAttrs {
  bool while_first = false;
  std::vector<int64_t> reversed_inputs, reversed_outputs;
  static auto table() {
    return std::tuple{
        attr<&LoopAttrs::while_first>("while_first",
                                      "the first state says whether there is another iteration"),
        attr<&LoopAttrs::reversed_inputs>("reversed_inputs", "slices that are taken from the end"),
        attr<&LoopAttrs::reversed_outputs>("reversed_outputs",
                                           "stacked results that begin at the end")};
  }
};

template <typename T>
const T& part(const Call& call, size_t i, std::string_view expected) {
  const auto* typed = call.args[i].as<T>();
  if (!typed)
    throw CompileError(kBadArgument, call.origin, "argument `{}` of `loop` is {}; expected {}",
                       input_name(call, i), str(type_of(call.args[i])), expected);
  return *typed;
}

void check_places(const Call& call, const char* name, const std::vector<int64_t>& places,
                  size_t count) {
  for (const int64_t place : places)
    if (place < 0 || place >= static_cast<int64_t>(count))
      throw CompileError(kBadAttribute, call.origin,
                         "attribute `{}` of `loop` has {}, of {} values", name, place, count);
}

Type infer_loop(const Call& call) {
  const auto attrs = attrs_as<LoopAttrs>(call);
  (void)part<FuncRef>(call, 0, "a function of the module");
  const auto& count = part<PrimValue>(call, 1, "a number");
  if (!count.value->dtype.is_integer())
    throw CompileError(kDTypeMismatch, call.origin,
                       "argument `count` of `loop` is {}; expected an integer",
                       count.value->dtype.str());
  (void)part<ShapeExpr>(call, 2, "a shape");
  for (size_t i = 3; i < 6; ++i) (void)part<Tuple>(call, i, "a tuple of tensors");
  const auto& states = call.args[3].to<Tuple>().values;
  const auto& slices = call.args[4].to<Tuple>().values;
  for (const Value& slice : slices)
    if (const Ref<TensorType> type = tensor_type(slice); type->ndim == 0)
      throw CompileError(kRankMismatch, call.origin, "a scalar has no slices for `loop`");
  if (attrs.while_first) {
    const Ref<TensorType> first = states.empty() ? nullptr : tensor_type(states[0]);
    if (!first || first->dtype != kBool || first->static_shape() != std::vector<int64_t>{})
      throw CompileError(kTypeMismatch, call.origin,
                         "the first state of `loop` is {}; expected a condition, a bool of rank 0",
                         first ? str(first) : "missing");
  }
  const auto* results = call.type_args.size() == 1 ? call.type_args[0].as<TupleType>() : nullptr;
  if (!results || results->types.size() < states.size())
    throw CompileError(kBadArgument, call.origin,
                       "`loop` needs the types of its results, a tuple of {} and more",
                       states.size());
  check_places(call, "reversed_inputs", attrs.reversed_inputs, slices.size());
  check_places(call, "reversed_outputs", attrs.reversed_outputs,
               results->types.size() - states.size());
  return call.type_args[0];
}

}  // namespace

OpDef loop_op() {
  OpDef op;
  op.name = "loop";
  op.summary = "Calls a function of the module again and again.";
  op.inputs = {
      {"body",
       "a graph function: from numbers (the iteration, then `dims`), states, "
       "slices and captured values to the next states and what is stacked"},
      OpInput{"count", "iterations at most; none where it is negative"}.used_as(InputUse::kSteers),
      {"dims", "a shape: numbers that the body uses"},
      {"states", "a tuple: as they begin"},
      {"slices", "a tuple: an iteration gets a part along the first axis"},
      {"captured", "a tuple: the same in each iteration"}};
  op.attrs = attrs_of<LoopAttrs>();
  op.infer_type = infer_loop;
  op.traits = {.calls = true, .legal = true};
  op.source = "ONNX Loop-21, Scan-21";
  return op;
}

}  // namespace tenon::graph
