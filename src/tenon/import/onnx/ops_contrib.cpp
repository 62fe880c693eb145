// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft that stand for those of ai.onnx: fused with what follows them, as graph
// optimisers write them, and forms from before ai.onnx had them.
#include <algorithm>
#include <limits>

#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

namespace {

OperatorRow same(const std::string& name, int64_t opset, int least, int most, std::string types) {
  const auto convert = [=](Context& c) { return read_as(c, name, opset); };
  return contrib(name, least, most, convert, std::move(types));
}

// Parameters of an activation, in the order of its attributes: `otherwise` for those not given.
using Parameters = std::function<double(size_t index, double otherwise)>;

Value activated(Context& c, const Value& x, const std::string& name, const Parameters& parameter) {
  if (name.empty()) return x;
  if (name == "Relu") return c.op("nn.relu", {x});
  if (name == "Sigmoid") return c.op("sigmoid", {x});
  if (name == "Tanh") return c.op("tanh", {x});
  if (name == "Softplus" || name == "Softsign")
    return c.op(name == "Softplus" ? "nn.softplus" : "nn.softsign", {x});
  if (name == "LeakyRelu") return c.op("nn.leakyrelu", {x}, {{"alpha", parameter(0, 0.01)}});
  if (name == "Elu") return c.op("nn.elu", {x}, {{"alpha", parameter(0, 1)}});
  if (name == "ThresholdedRelu")
    return c.op("nn.thresholdedrelu", {x}, {{"alpha", parameter(0, 1)}});
  if (name == "HardSigmoid")
    return c.op("nn.hardsigmoid", {x}, {{"alpha", parameter(0, 0.2)}, {"beta", parameter(1, 0.5)}});
  if (name == "Clip") {
    const double most = std::numeric_limits<float>::max();
    const auto bound = [&](size_t i, double otherwise) {
      return c.prim(imm(shaped(x)->dtype, parameter(i, otherwise)));
    };
    return c.op("clip", {x, bound(0, -most), bound(1, most)});
  }
  unsupported("activation `{}`", printable(name));
}

Results convert_fused_conv(Context& c) {
  Value y = read_as(c, "Conv", 11, 3)[0];
  if (c.has(3)) y = c.op("add", {y, c.value(3)});
  const auto parameters = c.floats_attr("activation_params", {});
  return {activated(c, y, c.string_attr("activation", ""), [&](size_t i, double otherwise) {
    return i < parameters.size() ? parameters[i] : otherwise;
  })};
}

Results convert_fused_gemm(Context& c) {
  const Value y = read_as(c, "Gemm", 13)[0];
  const auto parameter = [&](size_t i, double otherwise) {
    return c.float_attr(i == 0 ? "activation_alpha" : "activation_beta", otherwise);
  };
  c.ignore({"activation_gamma"});
  return {activated(c, y, c.string_attr("activation", ""), parameter)};
}

Results convert_expand_dims(Context& c) {
  const Ints axes = c.axes_operand(1, "axis", c.ndim(0) + 1);
  Dims dims = c.shape(0);
  dims.insert(dims.begin() + axes.at(0), int64(1));
  return {c.reshape(c.value(0), dims)};
}

Results convert_range(Context& c) {
  std::vector<ItemRef> items = {c.ref(0), c.ref(1), c.has(2) ? c.ref(2) : nullptr};
  if (!c.has(2)) {
    items[2] = std::make_shared<Item>();
    items[2]->elements = Elements{c.dtype(0), {}, {imm(c.dtype(0), 1.0)}};
  }
  Context inner = c.with_operands(std::move(items), 11);
  return find_operator("", "Range")->convert(inner);
}

// Two numbers of 4 bits in a byte, the lower ones first, along the last axis.
Value unpacked(Context& c, const Value& x) {
  Dims shape = *shaped(x)->shape;
  shape.push_back(int64(1));
  const Elements shifts{kUInt8, {2}, {imm(kUInt8, int64_t{0}), imm(kUInt8, int64_t{4})}};
  const Value parts = c.op(
      "bitwise_and",
      {c.op("right_shift", {c.reshape(x, shape), c.materialise(shifts)}), c.scalar(kUInt8, 15)});
  shape.pop_back();
  shape.back() = arith::simplify(shape.back() * int64_t{2});
  return c.reshape(parts, shape);
}

// Rows of a table whose numbers have a scale, and perhaps a zero point, for each block of them.
Results convert_gather_block_quantized(Context& c) {
  const int64_t ndim = c.ndim(0), rank = c.ndim(1);
  const int64_t bits = c.int_attr("bits", 4), block = c.int_attr("block_size", 128);
  const int64_t gathered = c.axis(c.int_attr("gather_axis", 0), ndim),
                blocked = c.axis(c.int_attr("quantize_axis", 1), ndim);
  if (block < 16 || (block & (block - 1)) != 0)
    c.bad(kBadAttribute,
          "attribute `block_size` of `GatherBlockQuantized` is {}; expected a power "
          "of 2 from 16",
          block);
  if (gathered == blocked)
    c.bad(kBadAttribute, "`GatherBlockQuantized` gathers along axis {}, which has the blocks",
          gathered);
  const bool in_bytes = c.dtype(0) == kUInt8, in_halves = in_bytes && bits == 4;
  if (in_bytes && bits != 4 && bits != 8)
    c.bad(kBadAttribute, "attribute `bits` of `GatherBlockQuantized` is {}; expected 4 or 8", bits);
  if (in_halves && blocked != ndim - 1)
    c.bad(kBadAttribute,
          "`GatherBlockQuantized` of numbers in halves of bytes has blocks along axis {}; expected "
          "the last",
          blocked);
  const DType dtype = c.dtype(2), wide = dtype == kFloat64 ? dtype : kFloat32;
  const auto rows = [&](size_t i) {
    return c.op("take", {c.value(i), c.value(1)}, {{"axis", gathered}});
  };
  const auto numbers = [&](size_t i) {
    return c.cast(in_halves ? unpacked(c, rows(i)) : rows(i), wide);
  };
  const int64_t axis = blocked > gathered ? blocked + rank - 1 : blocked;
  // A scale for each number: blocks repeated, without what is behind the last number.
  Value x = numbers(0);
  const Expr count = (*shaped(x)->shape)[static_cast<size_t>(axis)];
  const auto spread = [&](const Value& value) {
    const Value wider = c.op("repeat", {value}, {{"repeats", block}, {"axis", axis}});
    const auto one = [&](const Expr& number) { return c.shape_value({number}); };
    return c.op("strided_slice", {wider, one(int64(axis)), one(int64(0)), one(count)});
  };
  if (c.has(3)) {
    x = c.op("subtract", {x, spread(numbers(3))});
  } else if (in_bytes) {
    x = c.op("subtract", {x, c.scalar(wide, static_cast<double>(int64_t{1} << (bits - 1)))});
  }
  return {c.cast(c.op("multiply", {x, spread(c.cast(rows(2), wide))}), dtype)};
}

}  // namespace

std::vector<OperatorRow> contrib_rows() {
  return {
      contrib("FusedConv", 2, 4, convert_fused_conv, "floats", "1 to 3 spatial axes"),
      contrib("FusedGemm", 2, 3, convert_fused_gemm, "floats"),
      contrib("ExpandDims", 2, 2, convert_expand_dims, "all"),
      contrib("Range", 2, 3, convert_range, "numbers"),
      contrib("GatherBlockQuantized", 3, 4, convert_gather_block_quantized, "int4, uint4, uint8"),
      same("Trilu", 14, 1, 2, "all"),
      same("GatherND", 12, 2, 2, "all"),
      same("Pad", 11, 2, 3, "floats"),
      same("GridSample", 16, 2, 2, "floats"),
  };
}

}  // namespace tenon::onnx
