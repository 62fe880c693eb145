// SPDX-License-Identifier: Apache-2.0
// Operators of the graph level: each is one OpDef, which holds its attributes, type rule, lowering
// and fusion kind.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tenon/graph/expr.h"

namespace tenon::graph {

class BlockBuilder;  // graph/builder.h

/// Which values the elements of an input may have.
enum class InputUse : uint8_t {
  kValue,     // any
  kIndex,     // into an axis of some extent; below 0 from its end
  kCount,     // 0 to some extent: lengths
  kDivisor,   // not 0
  kPositive,  // arguments of logarithms and roots, variances, scales
  kUnit,      // in [-1, 1]: arguments of asin and acos
  kShift,     // 0 to one below the bits of its type
  kSteers,    // dimensions, bounds and conditions, or what these are computed from
};

struct OpInput {
  std::string name;
  std::string doc;
  bool optional = false;  // may be left out at the end (or be a None)
  bool variadic = false;  // the last: any number
  InputUse use = InputUse::kValue;
  /// Of an index or a count: the extent of the axis; null where it is not known.
  std::function<Expr(const Call& call)> extent = {};
  bool moved = false;    // its elements are those of the result, perhaps of another type
  bool literal = false;  // a number in the text is a scalar, which shapes may follow from

  OpInput used_as(InputUse how, std::function<Expr(const Call&)> along = {}) const {
    OpInput out = *this;
    out.use = how;
    out.extent = std::move(along);
    return out;
  }
  OpInput as_moved() const {
    OpInput out = *this;
    out.moved = true;
    return out;
  }
  OpInput as_literal() const {
    OpInput out = *this;
    out.literal = true;
    return out;
  }
};

/// What a value of an attribute may be.
enum class AttrKind : uint8_t {
  kInt,
  kFloat,
  kBool,
  kString,
  kDType,
  kInts,
  kFloats,
  kStrings,
  kAny
};

struct OpAttr {
  std::string name;
  AttrKind kind;
  std::optional<AttrValue> default_value = {};  // none: must be given
  std::string doc = {};
};

/// How FuseOps may combine it with its neighbours, as TVM's op_pattern.
enum class FusionKind : uint8_t {
  kElementwise,  // 0: output element i needs input elements i only
  kBroadcast,    // 1: the same with dimensions repeated
  kInjective,    // 2: each output element from one element of each input (transpose, slice, concat)
  kReduction,    // 3: a commutative reduction
  kContraction,  // 4: elementwise operators may follow (convolution, matrix product)
  kTuple = 7,
  kOpaque = 8,
};

/// How ConvertLayout gives the operator operands whose channels lie in blocks.
enum class LayoutRule : uint8_t {
  kPlanar,       // not at all: it gets planar ones
  kElementwise,  // as they are: its result is finite where operands are 0, as in the pad lanes
  kConvolution,
  kPooling,
  kSpatialReduction,  // where it reduces height and width, and keeps the axes
  kConcat,            // along the channels
  kFlatten,           // planes of one element, whose order is the same in blocks
  kProduct,           // its weights are packed in panels
};

/// What passes ask of an operator, beside its types and its lowering.
struct OpTraits {
  bool commutative = false;  // of two operands: op(a, b) is op(b, a)
  bool view = false;         // the elements of the first argument in order, in another shape
  bool broadcasts = false;   // the shapes of all arguments, as NumPy does
  bool calls = false;        // a call primitive: calls a function of the module or a foreign one
  bool legal = false;        // LegalizeOps leaves it: LowerGraph gives it its meaning
};

/// The shape of an operand or result, where all of it is known.
using KnownShape = std::optional<std::vector<double>>;
/// Multiply-accumulates of a call; nothing where a shape that it needs is not known.
using MacsRule = std::optional<double> (*)(const std::vector<KnownShape>& args,
                                           const KnownShape& result);

/// How ONNX calls the operator, where that is more than `nn.` and small letters away from here, or
/// where attributes have other names: pairs of ONNX's name and the one here.
struct OnnxName {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attrs = {};
};

/// Builds the values that compute `call`, through the builder, and returns the result: calls of
/// other operators, or `builder.call_tir(...)` of a PrimFunc of plain definitions (no schedule).
using LowerRule = std::function<Value(BlockBuilder& builder, const Call& call)>;

struct OpDef {
  std::string name;  // "nn.conv2d", without "R."
  std::string summary;
  std::vector<OpInput> inputs;
  std::vector<OpAttr> attrs = {};
  /// The result's type from the arguments' types. \throws CompileError with the place of the call.
  std::function<Type(const Call& call)> infer_type;
  LowerRule lower = {};  // empty: a call primitive, or run by the interpreter only
  FusionKind fusion = FusionKind::kOpaque;
  bool pure = true;
  OpTraits traits = {};
  LayoutRule layout = LayoutRule::kPlanar;
  MacsRule macs = nullptr;  // null: no products to speak of
  /// The operators that its lowering gives, where DecomposeOps gives them first: back ends and
  /// kernels may take the parts.
  std::vector<std::string> parts = {};
  OnnxName onnx = {};
  std::string source = {};  // the definition followed
};

/// Every operator, sorted by name.
std::span<const OpDef* const> all_ops();
/// Null where there is none of this name ("matmul", "nn.relu", also with a leading "relax.").
const OpDef* find_op(std::string_view name);

/// Builds a call of an operator: fills in default attributes, checks their names and kinds and the
/// number of arguments.
/// \throws CompileError (kUnknownOperator, kBadAttribute, kBadArgument)
Ref<Call> call_op(std::string_view op, std::vector<Value> args, Attrs attrs = {},
                  Origin origin = {});
/// The same checks for a call that exists (the parser's).
Attrs checked_attrs(const OpDef& op, const Attrs& attrs, const Origin& origin);

/// Lists of the families, one for each file of graph/ops/; all_ops() joins them.
std::vector<OpDef> unary_ops(), binary_ops(), reduction_ops(), manipulate_ops(), index_ops(),
    linear_algebra_ops(), nn_conv_ops(), nn_pool_ops(), nn_norm_ops(), nn_activation_ops(),
    create_ops(), recurrent_ops(), packing_ops(), call_ops(), slice_ops(), layout_ops(), sort_ops(),
    image_ops(), quantize_ops(), tree_ensemble_ops(), resize_ops(), sampling_ops(), fold_ops(),
    region_ops(), signal_ops(), random_ops(), determinant_ops(), text_ops(), coupling_ops(),
    digit_ops();

}  // namespace tenon::graph

namespace tenon {
template <>
struct FieldTraits<const graph::OpDef*> : PlainTraits<const graph::OpDef*> {
  static uint64_t hash(const graph::OpDef* m) {
    return m ? hash_bytes(m->name.data(), m->name.size()) : 0;
  }
  static std::string text(const graph::OpDef* m) { return m ? m->name : "no operator"; }
};
}  // namespace tenon
