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

struct OpInput {
  std::string name;
  std::string doc;
  bool optional = false;  // may be left out at the end (or be a None)
  bool variadic = false;  // the last: any number
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
    image_ops(), quantize_ops();

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
