// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/open_ranks.h"

#include <algorithm>
#include <set>

namespace tenon::onnx {

namespace {

using Names = std::set<std::string>;

// Results have the greatest rank of the operands, which are broadcast.
bool broadcasts(const std::string& op) {
  static const Names names = {
      "Add",        "And",         "BitShift", "BitwiseAnd", "BitwiseOr",
      "BitwiseXor", "Div",         "Equal",    "Greater",    "GreaterOrEqual",
      "Less",       "LessOrEqual", "Max",      "Mean",       "Min",
      "Mod",        "Mul",         "Or",       "Pow",        "Sub",
      "Sum",        "Where",       "Xor"};
  return names.count(op) != 0;
}

// Each element of the result is made of one of operand 0.
bool is_elementwise(const std::string& op) {
  static const Names names = {
      "Abs", "Cast",     "CastLike", "Ceil",        "Clip",     "Cos",   "Elu",     "Erf",
      "Exp", "Floor",    "Gelu",     "HardSigmoid", "Identity", "IsInf", "IsNaN",   "LeakyRelu",
      "Log", "Neg",      "Not",      "Reciprocal",  "Relu",     "Round", "Sigmoid", "Sign",
      "Sin", "Softplus", "Sqrt",     "Tan",         "Tanh"};
  return names.count(op) != 0;
}

// Whether the numbers of an operand say nothing of the ranks of others: a shape without a 0, which
// would be the dimension of a place.
bool has_no_zero(const Item& shape) {
  return shape.elements && std::ranges::all_of(shape.elements->values, [](const Expr& dim) {
           const auto known = as_int(dim);
           return known && *known != 0;
         });
}

}  // namespace

void open_rank(Item& item, int64_t least) {
  item.least_rank = least;
  item.unsupported = "whose branches have several ranks, which only operators that broadcast take";
}

int64_t least_rank(const Item& item) { return item.least_rank.value_or(item.type()->ndim); }

bool takes_open_rank(const Node& node, size_t i, const std::vector<ItemRef>& inputs) {
  if (!inputs[i]->least_rank || !node.domain.empty()) return false;
  const std::string& op = node.op_type;
  if (node.attributes.count("axis")) return false;  // of the broadcasting before opset 7
  if (broadcasts(op) || op == "Size" || op == "If") return true;
  if (op == "CastLike" && i == 1) return true;
  if (op == "Reshape") return i == 0 && inputs.size() > 1 && inputs[1] && has_no_zero(*inputs[1]);
  return i == 0 && is_elementwise(op);
}

void pass_open_rank(const Node& node, const std::vector<ItemRef>& inputs, Item& result) {
  const bool all = broadcasts(node.op_type);
  if ((!all && !is_elementwise(node.op_type)) || result.collection) return;
  int64_t least = 0;
  for (size_t i = 0; i < (all ? inputs.size() : 1); ++i)
    if (inputs[i]) least = std::max(least, least_rank(*inputs[i]));
  if (least < result.type()->ndim) open_rank(result, least);
}

}  // namespace tenon::onnx
