// SPDX-License-Identifier: Apache-2.0
// Operators on the contents of strings: calls of functions of the runtime, which know the texts.
// What only moves or compares strings is any operator that takes numbers of 64 bits.
#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

void check_string(const Call& call, size_t i) {
  const DType dtype = tensor_arg(call, i)->dtype;
  if (!dtype.is_void()) check_dtype(call, i, kString);
}

// `tenon.` and the operator's name, on the arguments and then on `more`.
Value call_runtime(BlockBuilder& builder, const Call& call, std::vector<Value> more = {},
                   Type type = {}) {
  std::vector<Value> args = {make<ExternRef>("tenon." + call.op->name)};
  for (const Value& arg : call.args) args.push_back(arg);
  args.insert(args.end(), more.begin(), more.end());
  if (!type) type = call.op->infer_type(call);
  return builder.emit(make<Call>(find_op("call_pure_packed"), std::move(args), Attrs(),
                                 std::vector<Type>{type}, call.origin));
}

// Of strings of one shape, which the result has.
OpDef of_strings(const char* name, const char* summary, std::vector<OpInput> inputs, DType result) {
  OpDef op;
  op.name = name;
  op.summary = summary;
  op.inputs = std::move(inputs);
  op.infer_type = [result](const Call& call) -> Type {
    for (size_t i = 0; i < call.args.size(); ++i) check_string(call, i);
    const Ref<TensorType> x = tensor_arg(call, 0);
    for (size_t i = 1; i < call.args.size(); ++i) {
      const Ref<TensorType> other = tensor_arg(call, i);
      if (x->ndim >= 0) check_rank(call, i, x->ndim);
      for (size_t d = 0; x->shape && other->shape && d < x->shape->size(); ++d)
        check_dim(call, i, (*other->shape)[d], (*x->shape)[d], fmt::format("dimension {}", d));
    }
    return same_shape(call, 0, result);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) { return call_runtime(builder, call); };
  return op;
}

OpDef rank() {
  OpDef op;
  op.name = "string.rank";
  op.summary = "How many distinct strings of x are before each, in the order of their bytes.";
  op.inputs = {{"x", "strings"}};
  op.infer_type = [](const Call& call) -> Type {
    check_string(call, 0);
    return same_shape(call, 0, kInt64);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) { return call_runtime(builder, call); };
  op.source = "ONNX Unique-11, whose results are in order";
  return op;
}

OpDef to_text() {
  OpDef op;
  op.name = "string.to_text";
  op.summary = "Numbers in decimal, with the fewest digits that are read as the same number.";
  op.inputs = {{"x", "bools, integers, float32 or float64"}};
  op.infer_type = [](const Call& call) -> Type {
    const DType dtype = tensor_arg(call, 0)->dtype;
    if (!dtype.is_void() && !dtype.is_bool() && !dtype.is_integer() && dtype != kFloat32 &&
        dtype != kFloat64)
      throw CompileError(kDTypeMismatch, call.origin,
                         "argument `x` of `string.to_text` has dtype {}; expected a bool, an "
                         "integer, float32 or float64",
                         dtype.str());
    return same_shape(call, 0, kString);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) { return call_runtime(builder, call); };
  op.source = "ONNX Cast-25";
  return op;
}

struct ParseAttrs {
  DType dtype = kFloat32;
  static auto table() {
    return std::tuple{required<&ParseAttrs::dtype>("dtype", "float32, float64 or int64")};
  }
};

OpDef parse() {
  OpDef op;
  op.name = "string.parse";
  op.summary = "The numbers that texts are; another text ends the run.";
  op.inputs = {{"x", "strings"}};
  op.attrs = attrs_of<ParseAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    check_string(call, 0);
    const DType dtype = attrs_as<ParseAttrs>(call).dtype;
    if (dtype != kFloat32 && dtype != kFloat64 && dtype != kInt64)
      throw CompileError(kBadAttribute, call.origin,
                         "attribute `dtype` of `string.parse` is {}; expected float32, float64 or "
                         "int64",
                         dtype.str());
    return same_shape(call, 0, dtype);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) { return call_runtime(builder, call); };
  op.source = "ONNX Cast-25";
  return op;
}

OpDef find() {
  OpDef op;
  op.name = "string.find";
  op.summary = "The place of each string among the keys, the last of equal ones; -1: it is none.";
  op.inputs = {{"x", "strings, any shape"}, {"keys", "(keys,) strings"}};
  op.infer_type = [](const Call& call) -> Type {
    check_string(call, 0);
    check_string(call, 1);
    check_rank(call, 1, 1);
    return same_shape(call, 0, kInt64);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) { return call_runtime(builder, call); };
  op.source = "ONNX LabelEncoder-4 of ai.onnx.ml";
  return op;
}

struct RegexAttrs {
  std::string pattern;
  static auto table() {
    return std::tuple{required<&RegexAttrs::pattern>("pattern", "in RE2's syntax")};
  }
};

OpDef regex_full_match() {
  OpDef op;
  op.name = "string.regex_full_match";
  op.summary = "Whether all of a string matches a regular expression.";
  op.inputs = {{"x", "strings"}};
  op.attrs = attrs_of<RegexAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    check_string(call, 0);
    return same_shape(call, 0, kBool);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    return call_runtime(builder, call, {make<StringValue>(attrs_as<RegexAttrs>(call).pattern)});
  };
  op.source = "ONNX RegexFullMatch-20";
  return op;
}

struct SplitAttrs {
  std::string delimiter;
  int64_t max_splits = -1;
  static auto table() {
    return std::tuple{
        attr<&SplitAttrs::delimiter>("delimiter", "empty: runs of white space"),
        attr<&SplitAttrs::max_splits>("max_splits",
                                      "what is left behind the last one is a part; -1: no limit")};
  }
};

// A function on x and these attributes.
Value call_split(BlockBuilder& builder, const Call& call) {
  const auto attrs = attrs_as<SplitAttrs>(call);
  Call alone = call;
  alone.args.resize(1);
  return call_runtime(
      builder, alone,
      {make<StringValue>(attrs.delimiter), make<PrimValue>(int64(attrs.max_splits))},
      call.op->infer_type(call));
}

OpDef split_counts() {
  OpDef op;
  op.name = "string.split_counts";
  op.summary = "How many parts delimiters divide each string into.";
  op.inputs = {{"x", "strings"}};
  op.attrs = attrs_of<SplitAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    check_string(call, 0);
    return same_shape(call, 0, kInt64);
  };
  op.lower = call_split;
  op.source = "ONNX StringSplit-20";
  return op;
}

OpDef split() {
  OpDef op;
  op.name = "string.split";
  op.summary = "The first parts of each string along a new last axis, empty strings behind them.";
  op.inputs = {{"x", "strings"}, {"parts", "a scalar: the length of the axis"}};
  op.attrs = attrs_of<SplitAttrs>();
  op.infer_type = [](const Call& call) -> Type {
    check_string(call, 0);
    const Ref<TensorType> x = tensor_arg(call, 0);
    const Expr parts = scalar_arg(call, 1);
    if (!x->shape) return make<TensorType>(kString, x->ndim < 0 ? -1 : x->ndim + 1);
    std::vector<Expr> shape = *x->shape;
    shape.push_back(tenon::cast(kInt64, parts));
    return make<TensorType>(std::move(shape), kString);
  };
  op.lower = call_split;
  op.source = "ONNX StringSplit-20";
  return op;
}

}  // namespace

std::vector<OpDef> text_ops() {
  const OpInput x{"x", "strings"};
  return {of_strings("string.concat", "x with y behind it.", {x, {"y", "strings, shape of x"}},
                     kString),
          of_strings("string.lower", "Small letters, of Latin, Greek and Cyrillic.", {x}, kString),
          of_strings("string.upper", "Capitals, of Latin, Greek and Cyrillic.", {x}, kString),
          rank(),
          to_text(),
          parse(),
          find(),
          regex_full_match(),
          split_counts(),
          split()};
}

}  // namespace tenon::graph
