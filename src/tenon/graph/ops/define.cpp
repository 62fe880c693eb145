// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/ops/define.h"

#include <algorithm>

#include "tenon/graph/assumed_dims.h"

namespace tenon::graph {

Value arg_or_null(const Call& call, size_t i) {
  return i < call.args.size() ? call.args[i] : Value();
}

std::string input_name(const Call& call, size_t i) {
  if (!call.op || call.op->inputs.empty()) return std::to_string(i);
  return call.op->inputs[std::min(i, call.op->inputs.size() - 1)].name;
}

Ref<TensorType> tensor_arg(const Call& call, size_t i) {
  const Value value = arg_or_null(call, i);
  check(static_cast<bool>(value), "a type rule reads an argument that was left out");
  const Type type = type_of(value);
  if (const auto* tensor = type.as<TensorType>()) return ref_to(tensor);
  throw CompileError(kTypeMismatch, call.origin, "argument `{}` of `{}` is {}; expected a tensor",
                     input_name(call, i), call.op->name, str(type));
}

static void require_shape(const TensorType& type, const Call& call, std::string_view what) {
  if (type.shape && !type.dtype.is_void()) return;
  if (type.shape)
    throw CompileError(kUnsupported, call.origin,
                       "`{}` cannot be lowered: its {} is {}, without a dtype; expected one where "
                       "the value comes from, as in R.Tensor((2, 3), \"float32\")",
                       call.op->name, what, str(ref_to(&type)));
  throw CompileError(kUnsupported, call.origin,
                     "`{}` cannot be lowered: its {} is {}; a match_cast can state its shape",
                     call.op->name, what, str(ref_to(&type)));
}

Ref<TensorType> shaped_arg(const Call& call, size_t i) {
  Ref<TensorType> type = tensor_arg(call, i);
  require_shape(*type, call, fmt::format("argument `{}`", input_name(call, i)));
  return type;
}

std::optional<std::vector<Expr>> dims_arg(const Call& call, size_t i) {
  const Type type = type_of(call.args.at(i));
  if (const auto* shape = type.as<ShapeType>()) return shape->values;
  if (const auto* prim = type.as<PrimType>()) {
    if (!prim->value) return std::nullopt;
    return std::vector<Expr>{tenon::cast(kInt64, prim->value)};
  }
  if (const auto* tuple = type.as<TupleType>()) {
    std::vector<Expr> values;
    bool known = true;
    for (const Type& item : tuple->types) {
      const auto* prim = item.as<PrimType>();
      if (!prim || !prim->dtype.is_integer()) break;
      known = known && prim->value;
      values.push_back(prim->value ? tenon::cast(kInt64, prim->value) : Expr());
    }
    if (values.size() == tuple->types.size())
      return known ? std::optional(std::move(values)) : std::nullopt;
  }
  throw CompileError(kBadArgument, call.origin,
                     "argument `{}` of `{}` is {}; expected a shape or a tuple of integers",
                     input_name(call, i), call.op->name, str(type));
}

Expr scalar_arg(const Call& call, size_t i) {
  const Value value = arg_or_null(call, i);
  if (const auto* prim = value.as<PrimValue>()) return prim->value;
  if (const auto* var = value.as<Var>())
    if (const auto* prim = var->type.as<PrimType>(); prim && prim->value) return prim->value;
  if (const Expr constant = scalar_constant(value)) return constant;
  throw CompileError(kBadArgument, call.origin,
                     "argument `{}` of `{}` is {}; expected a scalar whose value is known",
                     input_name(call, i), call.op->name, value ? str(type_of(value)) : "missing");
}

std::vector<Ref<TensorType>> tensors_arg(const Call& call, size_t i) {
  const Type type = type_of(call.args.at(i));
  std::vector<Ref<TensorType>> out;
  const auto* tuple = type.as<TupleType>();
  for (size_t j = 0; tuple && j < tuple->types.size(); ++j) {
    const auto* tensor = tuple->types[j].as<TensorType>();
    if (!tensor) break;
    out.push_back(ref_to(tensor));
  }
  if (!tuple || out.size() != tuple->types.size())
    throw CompileError(kBadArgument, call.origin,
                       "argument `{}` of `{}` is {}; expected a tuple of tensors",
                       input_name(call, i), call.op->name, str(type));
  return out;
}

std::vector<Value> tuple_values(const Value& tuple) {
  if (const auto* items = tuple.as<Tuple>()) return items->values;
  const Type type = type_of(tuple);
  const auto* items = type.as<TupleType>();
  check(items != nullptr, "the items of what is no tuple");
  std::vector<Value> out;
  for (size_t i = 0; i < items->types.size(); ++i)
    out.push_back(make<TupleGetItem>(tuple, static_cast<int64_t>(i)));
  return out;
}

std::optional<std::vector<int64_t>> constant_ints(const Value& value) {
  const auto* constant = value.as<Constant>();
  if (!constant || !constant->data->dtype.is_integer()) return std::nullopt;
  return constant->data->to_ints();
}

// ---- attributes ---------------------------------------------------------------------------------

const AttrValue* given_attr(const Call& call, const char* name, bool may_be_none) {
  const AttrValue* value = call.attrs.find(name);
  if (value || may_be_none) return value;
  throw CompileError(kBadAttribute, call.origin, "`{}` needs attribute `{}`", call.op->name, name);
}

void throw_bad_kind(const Call& call, const char* name, const AttrValue& value) {
  throw CompileError(kBadAttribute, call.origin, "attribute `{}` of `{}` is {}", name,
                     call.op->name, value.str());
}

// ---- checks -------------------------------------------------------------------------------------

size_t axis_of(const Call& call, int64_t axis, int64_t ndim) {
  if (axis < -ndim || axis >= ndim)
    throw CompileError(kBadAttribute, call.origin, "`{}` has axis {}; expected {} to {}",
                       call.op->name, axis, -ndim, ndim - 1);
  return static_cast<size_t>(axis < 0 ? axis + ndim : axis);
}

std::vector<size_t> axes_of(const Call& call, const std::vector<int64_t>& axes, int64_t ndim) {
  std::vector<size_t> out;
  for (const int64_t axis : axes) {
    const size_t index = axis_of(call, axis, ndim);
    if (contains(out, index))
      throw CompileError(kBadAttribute, call.origin, "`{}` has axis {} twice in {}", call.op->name,
                         axis, AttrValue(axes).str());
    out.push_back(index);
  }
  return out;
}

void check_rank(const Call& call, size_t i, int64_t ndim) {
  const Ref<TensorType> type = tensor_arg(call, i);
  if (type->ndim >= 0 && type->ndim != ndim)
    throw CompileError(kRankMismatch, call.origin, "argument `{}` of `{}` is {}; expected rank {}",
                       input_name(call, i), call.op->name, str(type), ndim);
}

void check_dtype(const Call& call, size_t i, DType dtype) {
  const Ref<TensorType> type = tensor_arg(call, i);
  if (!type->dtype.is_void() && !dtype.is_void() && type->dtype != dtype)
    throw CompileError(kDTypeMismatch, call.origin,
                       "argument `{}` of `{}` has dtype {}; expected {}", input_name(call, i),
                       call.op->name, type->dtype.str(), dtype.str());
}

void check_float(const Call& call, size_t i) {
  const Ref<TensorType> type = tensor_arg(call, i);
  if (!type->dtype.is_void() && !type->dtype.is_float())
    throw CompileError(kDTypeMismatch, call.origin,
                       "argument `{}` of `{}` has dtype {}; expected a floating-point dtype",
                       input_name(call, i), call.op->name, type->dtype.str());
}

bool accepts(Takes takes, DType dtype) {
  if (dtype.is_void()) return true;
  switch (takes) {
    case Takes::kNumber: return dtype.is_float() || dtype.is_integer();
    case Takes::kFloat: return dtype.is_float();
    case Takes::kInteger: return dtype.is_integer();
    case Takes::kBits: return dtype.is_integer() || dtype.is_bool();
    case Takes::kBool: return dtype.is_bool();
    case Takes::kAny: return true;
  }
  return true;
}

std::string_view name_of(Takes takes) {
  switch (takes) {
    case Takes::kFloat: return "a floating-point dtype";
    case Takes::kInteger:
    case Takes::kBits: return "an integer dtype";
    case Takes::kBool: return "bool";
    default: return "a number";
  }
}

void check_dim(const Call& call, size_t i, const Expr& dim, const Expr& expected,
               std::string_view what) {
  if (!may_agree(dim, expected))
    throw CompileError(kShapeMismatch, call.origin,
                       "{} of argument `{}` of `{}` is {}; expected {}", what, input_name(call, i),
                       call.op->name, tenon::str(dim), tenon::str(expected));
}

Type tensor_of(const std::optional<std::vector<Expr>>& shape, DType dtype, int64_t ndim) {
  if (!shape) return make<TensorType>(dtype, ndim);
  std::vector<Expr> dims;
  for (const Expr& dim : *shape) dims.push_back(simplify_dim(dim));
  return make<TensorType>(std::move(dims), dtype);
}

Type same_shape(const Call& call, size_t i, DType dtype) {
  const Ref<TensorType> type = tensor_arg(call, i);
  if (type->dtype == dtype) return type;
  return type->shape ? make<TensorType>(*type->shape, dtype) : make<TensorType>(dtype, type->ndim);
}

bool contains(const std::vector<size_t>& axes, size_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

std::vector<Expr> reduced_shape(const std::vector<Expr>& shape, const std::vector<size_t>& axes,
                                bool keepdims) {
  std::vector<Expr> out;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!contains(axes, i)) {
      out.push_back(shape[i]);
    } else if (keepdims) {
      out.push_back(int64(1));
    }
  }
  return out;
}

void check_choice(const Call& call, std::string_view attr, std::string_view value,
                  std::initializer_list<std::string_view> choices) {
  std::string list;
  for (const std::string_view choice : choices) {
    if (value == choice) return;
    list += (list.empty() ? "\"" : ", \"") + std::string(choice) + "\"";
  }
  throw CompileError(kBadAttribute, call.origin,
                     "attribute `{}` of `{}` is \"{}\"; expected one of {}", attr, call.op->name,
                     value, list);
}

bool present(const Call& call, size_t i) {
  const Value value = arg_or_null(call, i);
  if (!value) return false;
  const Type type = type_of(value);
  if (type.as<ObjectType>()) return false;
  const auto* tuple = type.as<TupleType>();
  return !tuple || !tuple->types.empty();
}

std::string name_for_messages(const Call& call) {
  return call.origin ? fmt::format("`{}` ({})", call.op->name, call.origin.name())
                     : fmt::format("`{}`", call.op->name);
}

// ---- lowering -----------------------------------------------------------------------------------

Expr scalar_constant(const Value& value) {
  const auto* constant = value.as<Constant>();
  if (!constant || constant->data->elements() != 1) return {};
  const DType dtype = constant->data->dtype;
  if (dtype.is_string()) return {};  // its number is the program's to give
  if (dtype.is_float()) return imm(dtype, constant->data->at_float(0));
  return imm(dtype, constant->data->at_int(0));
}

Expr float_call(IntrinsicId id, std::vector<Expr> args) {
  const DType dtype = args.at(0)->dtype;
  const bool narrow = dtype.bits < 32;
  std::vector<NodePtr> nodes;
  for (Expr& arg : args) nodes.push_back(narrow ? tenon::cast(kFloat32, arg) : arg);
  const Expr result = tenon::call(id, std::move(nodes));
  return narrow && result->dtype.is_float() ? tenon::cast(dtype, result) : result;
}

KernelOf::KernelOf(BlockBuilder& builder, const Call& call) : builder_(builder), call_(call) {
  const size_t dot = call.op->name.rfind('.');
  name_ = dot == std::string::npos ? call.op->name : call.op->name.substr(dot + 1);
  const Type type = call.op->infer_type(call);
  const auto* tuple = type.as<TupleType>();
  for (const Type& item : tuple ? tuple->types : std::vector<Type>{type}) {
    const auto* tensor = item.as<TensorType>();
    check(tensor != nullptr, "a kernel whose result is no tensor");
    require_shape(*tensor, call, "result");
    out_types_.push_back(ref_to(tensor));
  }
}

Operand KernelOf::parameter(const Value& value, const std::string& name,
                            const Ref<TensorType>& type) {
  const auto known = known_.find(value.get());
  if (known != known_.end()) return known->second;
  const Operand operand = input(name, *type->shape, type->dtype);
  args_.push_back(value);
  known_.emplace(value.get(), operand);
  return operand;
}

Operand KernelOf::arg(size_t i) {
  const Ref<TensorType> type = shaped_arg(call_, i);
  if (const Expr constant = scalar_constant(call_.args[i])) return {constant, *type->shape};
  return parameter(call_.args[i], input_name(call_, i), type);
}

bool is_of_words(const Call& call) { return call.op->name.ends_with("_of_words"); }

void check_words(const Call& call, DType out_dtype) {
  for (size_t i = 0; i < 2; ++i) {
    const DType dtype = tensor_arg(call, i)->dtype;
    if (!dtype.is_void() && !(dtype.is_integer() && dtype.bits == 32))
      throw CompileError(kDTypeMismatch, call.origin,
                         "argument `{}` of `{}` has dtype {}; expected words, int32 or uint32",
                         input_name(call, i), call.op->name, dtype.str());
  }
  if (out_dtype != kInt32)
    throw CompileError(kBadAttribute, call.origin, "`{}` of words has out_dtype {}; expected int32",
                       call.op->name, out_dtype.str());
}

void check_units(const Call& call, int64_t units, const TensorType& b) {
  const auto panels = as_int(b.dim(0)), width = as_int(b.dim(-1));
  if (units < 1 ||
      (panels && width && (units > *panels * *width || units <= (*panels - 1) * *width)))
    throw CompileError(kBadAttribute, call.origin, "`{}` has {} units; the weight is {}",
                       call.op->name, units, str(ref_to(&b)));
}

Expr product_of(bool words, const Expr& a, const Expr& b, DType dtype) {
  if (words) return tenon::cast(dtype, tenon::call(IntrinsicId::kDot4, {a, b}));
  return tenon::cast(dtype, a) * tenon::cast(dtype, b);
}

double product_of(const std::vector<double>& shape) {
  double product = 1;
  for (const double dim : shape) product *= dim;
  return product;
}

DType wide_dtype(DType dtype) { return dtype.is_float() && dtype.bits < 32 ? kFloat32 : dtype; }

Operand KernelOf::wide(Operand operand) {
  operand.dtype = wide_dtype(operand.dtype);
  return operand;
}

Operand KernelOf::buffer_arg(size_t i) {
  return parameter(call_.args[i], input_name(call_, i), shaped_arg(call_, i));
}

Operand KernelOf::value(const Value& value, const std::string& name) {
  const Ref<TensorType> type = tensor_type(value);
  require_shape(*type, call_, fmt::format("argument `{}`", name));
  if (const Expr constant = scalar_constant(value)) return {constant, *type->shape};
  return parameter(value, name, type);
}

Value KernelOf::emit(const std::vector<Operand>& results) {
  check(results.size() == out_types_.size(), "a kernel with another number of results");
  std::vector<Operand> outputs = results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const DType dtype = out_types_[i]->dtype;
    if (outputs[i].dtype != dtype && outputs[i].dtype == wide_dtype(dtype))
      outputs[i] = compute(out_name(), *out_types_[i]->shape,
                           [&](const Indices& at) { return tenon::cast(dtype, results[i](at)); });
    check(outputs[i].dtype == out_types_[i]->dtype,
          fmt::format("the lowering of `{}` gives {}, its type rule {}", call_.op->name,
                      outputs[i].dtype.str(), out_types_[i]->dtype.str()));
  }
  set_attr("op_pattern", static_cast<int64_t>(call_.op->fusion));
  tir::Kernel kernel = finish(outputs, attrs_, call_.origin);
  const Origin before = builder_.origin();
  if (call_.origin) builder_.set_origin(call_.origin);
  Value result =
      builder_.call_tir(name_, kernel.function, args_,
                        std::vector<Type>(out_types_.begin(), out_types_.end()), kernel.scalars);
  builder_.set_origin(before);
  return result;
}

Value KernelOf::emit_contraction(
    const std::vector<Expr>& extents,
    const std::function<Expr(const Indices&, const Indices&, DType)>& element) {
  const DType sums = wide_dtype(dtype());
  const bool narrow = sums != dtype();
  const Operand out =
      reduce(narrow ? out_name() + "_sum" : out_name(), shape(), extents, tir::sum_reducer(),
             [&](const Indices& i, const Indices& k) { return element(i, k, sums); });
  return emit({out});
}

Value KernelOf::emit_compute(const std::function<Expr(const Indices&)>& element) {
  return emit({compute(out_name(), shape(), [&](const Indices& i) {
    const Expr value = element(i);
    return value->dtype == wide_dtype(dtype()) ? tenon::cast(dtype(), value) : value;
  })});
}

}  // namespace tenon::graph
