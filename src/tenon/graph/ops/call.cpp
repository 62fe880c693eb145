// SPDX-License-Identifier: Apache-2.0
// Call primitives and other operators on values that are no tensors.
#include "tenon/graph/ops/define.h"
#include "tenon/graph/ops/loop.h"

namespace tenon::graph {

namespace {

// What `out_sinfo` says: one type, or a tuple of them.
Type declared_result(const Call& call) {
  if (call.type_args.empty())
    throw CompileError(kBadArgument, call.origin, "`{}` needs the type of its result",
                       call.op->name);
  if (call.type_args.size() == 1) return call.type_args[0];
  return make<TupleType>(call.type_args);
}

OpDef primitive(std::string name, std::string summary, std::vector<OpInput> inputs,
                std::function<Type(const Call&)> infer, bool pure = true) {
  OpDef op;
  op.name = std::move(name);
  op.summary = std::move(summary);
  op.inputs = std::move(inputs);
  op.infer_type = std::move(infer);
  op.pure = pure;
  return op;
}

// What runs a function of the module, or a foreign one.
OpDef call_primitive(std::string name, std::string summary, std::vector<OpInput> inputs,
                     std::function<Type(const Call&)> infer) {
  OpDef op = primitive(std::move(name), std::move(summary), std::move(inputs), std::move(infer));
  op.traits = {.calls = true, .legal = true};
  return op;
}

Type infer_call_tir(const Call& call) {
  if (!call.args[0].as<FuncRef>())
    throw CompileError(kBadArgument, call.origin,
                       "argument `func` of `{}` is {}; expected a function of the module",
                       call.op->name, str(type_of(call.args[0])));
  if (const Type args = type_of(call.args[1]); !args.as<TupleType>())
    throw CompileError(kBadArgument, call.origin,
                       "argument `args` of `{}` is {}; expected a tuple of tensors", call.op->name,
                       str(args));
  return declared_result(call);
}

struct InplaceAttrs {
  std::vector<int64_t> inplace_indices;
  static auto rows(const char* doc) {
    return std::tuple{required<&InplaceAttrs::inplace_indices>("inplace_indices", doc)};
  }
};
struct CallTirInplaceAttrs : InplaceAttrs {
  static auto table() { return rows("for each output the argument whose memory it takes, or -1"); }
};
struct CallInplacePackedAttrs : InplaceAttrs {
  static auto table() { return rows("for each output the argument that it is made of, or -1"); }
};

OpDef call_tir_inplace() {
  OpDef op =
      call_primitive("call_tir_inplace",
                     "call_tir where an output is the memory of an input, which ends its life.",
                     {{"func", "a PrimFunc of the module"},
                      {"args", "a tuple of tensors"},
                      {"tir_vars", "a shape", true}},
                     infer_call_tir);
  op.attrs = attrs_of<CallTirInplaceAttrs>();
  return op;
}

OpDef call_inplace_packed() {
  OpDef op = call_primitive(
      "call_inplace_packed",
      "call_pure_packed where outputs are arguments that the function changes.",
      {{"func", "an extern function"}, {"args", "its arguments", true, true}}, declared_result);
  op.attrs = attrs_of<CallInplacePackedAttrs>();
  return op;
}

// TVM's takes int64 vectors only. The numbers of a network stand in other integers too.
Type infer_tensor_to_shape(const Call& call) {
  const Ref<TensorType> x = tensor_arg(call, 0);
  if (x->ndim > 1)
    throw CompileError(kRankMismatch, call.origin,
                       "argument `x` of `tensor_to_shape` has rank {}; expected 0 or 1", x->ndim);
  if (!x->dtype.is_void() && !x->dtype.is_integer() && !x->dtype.is_bool())
    throw CompileError(kDTypeMismatch, call.origin,
                       "argument `x` of `tensor_to_shape` has dtype {}; expected integers",
                       x->dtype.str());
  if (const auto values = constant_ints(call.args[0])) return make<ShapeType>(to_exprs(*values));
  if (x->ndim == 0) return make<ShapeType>(int64_t{1});
  const auto length = x->shape ? as_int(x->dim(0)) : std::nullopt;
  return make<ShapeType>(length.value_or(-1));
}

}  // namespace

std::vector<OpDef> call_ops() {
  std::vector<OpDef> ops;
  ops.push_back(
      call_primitive("call_tir",
                     "Runs a PrimFunc of the module on the tensors and on outputs that are "
                     "allocated here.",
                     {{"func", "a PrimFunc of the module"},
                      {"args", "a tuple of tensors"},
                      {"tir_vars", "a shape: the scalars after the buffers", true}},
                     infer_call_tir));
  ops.push_back(call_tir_inplace());
  ops.push_back(call_primitive("call_dps_packed",
                               "Runs a foreign function on the tensors and on outputs that are "
                               "allocated here.",
                               {{"func", "an extern function"}, {"args", "a tuple"}},
                               declared_result));
  ops.push_back(call_primitive(
      "call_pure_packed", "Runs a packed function that has no effect but its result.",
      {{"func", "an extern function"}, {"args", "its arguments", true, true}}, declared_result));
  ops.push_back(call_inplace_packed());
  ops.push_back(loop_op());
  ops.push_back(primitive(
      "print", "Prints its arguments.", {{"args", "format, then values", true, true}},
      [](const Call&) { return void_type(); }, false));
  ops.push_back(primitive(
      "assert_op", "Stops the program where the condition does not hold.",
      {OpInput{"condition", "a bool"}.used_as(InputUse::kSteers),
       {"args", "what the message shows", true, true}},
      [](const Call&) { return void_type(); }, false));
  ops.back().traits.legal = true;
  ops.push_back(primitive("undefined",
                          "The result of a function that is declared without a body (`...`).", {},
                          declared_result));
  ops.back().traits.legal = true;
  ops.push_back(primitive("null_value", "The None that stands for a missing argument.", {},
                          [](const Call&) -> Type { return make<ObjectType>(); }));
  ops.push_back(primitive("shape_of", "The shape of a tensor as a value.", {{"x", "any shape"}},
                          [](const Call& call) -> Type {
                            const Ref<TensorType> x = tensor_arg(call, 0);
                            return x->shape ? make<ShapeType>(*x->shape) : make<ShapeType>(x->ndim);
                          }));
  ops.push_back(primitive("tensor_to_shape", "The elements of a small integer tensor as a shape.",
                          {OpInput{"x", "(n,) or (), integers"}.used_as(InputUse::kSteers)},
                          infer_tensor_to_shape));
  ops.back().traits.legal = true;

  OpDef shape_to_tensor;
  shape_to_tensor.name = "shape_to_tensor";
  shape_to_tensor.summary = "The numbers of a shape as an int64 vector.";
  shape_to_tensor.inputs = {{"shape", "a shape"}};
  shape_to_tensor.infer_type = [](const Call& call) -> Type {
    const Type type = type_of(call.args[0]);
    const auto* shape = type.as<ShapeType>();
    if (!shape)
      throw CompileError(kTypeMismatch, call.origin,
                         "argument `shape` of `shape_to_tensor` is {}; expected a shape",
                         str(type));
    if (shape->ndim < 0) return make<TensorType>(kInt64, 1);
    return TensorType::of({shape->ndim}, kInt64);
  };
  shape_to_tensor.lower = [](BlockBuilder& builder, const Call& call) {
    const auto values = dims_arg(call, 0);
    if (!values)
      throw CompileError(kUnsupported, call.origin,
                         "`shape_to_tensor` of a shape whose values are not known cannot be "
                         "lowered");
    KernelOf kernel(builder, call);
    return kernel.emit_compute([&](const Indices& i) {
      Expr element = int64(0);
      for (size_t d = values->size(); d-- > 0;)
        element = d + 1 == values->size()
                      ? (*values)[d]
                      : select(eq(i[0], int64(static_cast<int64_t>(d))), (*values)[d], element);
      return element;
    });
  };
  shape_to_tensor.fusion = FusionKind::kInjective;
  ops.push_back(std::move(shape_to_tensor));
  return ops;
}

}  // namespace tenon::graph
