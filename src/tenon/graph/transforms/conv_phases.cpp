// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/transforms/conv_phases.h"

#include "tenon/arith/analyzer.h"

namespace tenon::graph {

std::vector<int64_t> ConvPhases::padding() const {
  return {taps[0] - 1, taps[1] - 1, taps[0] - 1, taps[1] - 1};
}

// A number for height and one for width, where one may stand for both.
static std::array<int64_t, 2> pair_of(const Call& call, const char* attr, int64_t otherwise) {
  const auto all = call.attrs.ints(attr).value_or(std::vector<int64_t>{otherwise});
  return {all.at(0), all.size() > 1 ? all[1] : all[0]};
}

std::optional<ConvPhases> phases_of(const Call& call, const Ref<TensorType>& data) {
  const auto* weight = call.args[1].as<Constant>();
  const DType asked = call.attrs.get<DType>("out_dtype").value_or(kVoid);
  const std::string out_layout = call.attrs.get<std::string>("out_layout").value_or("");
  if (!weight || weight->data->dtype != kFloat32 || weight->data->shape.size() != 4 ||
      data->dtype != kFloat32 || !data->shape || !(asked.is_void() || asked == kFloat32) ||
      call.attrs.get<std::string>("data_layout") != "NCHW" ||
      call.attrs.get<std::string>("kernel_layout") != "IOHW" ||
      !(out_layout.empty() || out_layout == "NCHW") ||
      call.attrs.get<int64_t>("groups").value_or(1) != 1 ||
      pair_of(call, "dilation", 1) != std::array<int64_t, 2>{1, 1})
    return std::nullopt;
  std::vector<Value> args = call.args;
  args[0] = make<Var>("x", data);
  const Ref<TensorType> out =
      tensor_type(make<Call>(call.op, std::move(args), call.attrs, call.type_args, call.origin));
  ConvPhases phases{pair_of(call, "strides", 1), {}, pair_of(call, "padding", 0),
                    weight->data->shape[1],      {}, {}};
  arith::Analyzer analyzer;
  for (size_t d = 0; d < 2; ++d) {
    const auto axis = static_cast<int64_t>(2 + d);
    phases.taps[d] = (weight->data->shape[2 + d] + phases.stride[d] - 1) / phases.stride[d];
    phases.whole[d] =
        analyzer.simplify((data->dim(axis) + (phases.taps[d] - 1)) * phases.stride[d]);
    phases.extent[d] = out->dim(axis);
    // With output_padding the result may go on where no phase does.
    if (phases.taps[d] < 1 ||
        !analyzer.proves_less_equal(phases.extent[d] + phases.begin[d], phases.whole[d]))
      return std::nullopt;
  }
  return phases;
}

Value filters_of(const TensorData& weights, const ConvPhases& phases, int64_t lanes) {
  const std::vector<int64_t>& shape = weights.shape;
  const auto given = weights.as_span<float>();
  const int64_t inputs = shape[0], filled = (shape[1] + lanes - 1) / lanes * lanes;
  const int64_t rows = phases.taps[0], columns = phases.taps[1];
  const int64_t count = phases.stride[0] * phases.stride[1] * filled;
  std::vector<float> out(static_cast<size_t>(count * inputs * rows * columns), 0.0f);
  // Taps are mirrored: those of a convolution read data in front of the element.
  for (int64_t i = 0; i < inputs; ++i)
    for (int64_t o = 0; o < shape[1]; ++o)
      for (int64_t y = 0; y < shape[2]; ++y)
        for (int64_t x = 0; x < shape[3]; ++x) {
          const int64_t phase = y % phases.stride[0] * phases.stride[1] + x % phases.stride[1];
          const int64_t row = rows - 1 - y / phases.stride[0];
          const int64_t column = columns - 1 - x / phases.stride[1];
          const int64_t to = (((phase * filled + o) * inputs + i) * rows + row) * columns + column;
          out[static_cast<size_t>(to)] =
              given[static_cast<size_t>(((i * shape[1] + o) * shape[2] + y) * shape[3] + x)];
        }
  return make<Constant>(TensorData::of<float>(kFloat32, {count, inputs, rows, columns}, out));
}

Value side_by_side(BlockBuilder& builder, const Value& filtered, const ConvPhases& phases,
                   const std::string& name) {
  const std::vector<Expr> dims = *tensor_type(filtered)->shape;
  const Expr& lanes = dims[4];
  const int64_t blocks = *as_int(dims[1]) / (phases.stride[0] * phases.stride[1]);
  const auto reshaped = [&](const Value& value, std::vector<Expr> shape) {
    return builder.op("reshape", {value, make<ShapeExpr>(std::move(shape))}, {}, "phases");
  };
  Value out = reshaped(filtered, {dims[0], int64(phases.stride[0]), int64(phases.stride[1]),
                                  int64(blocks), dims[2], dims[3], lanes});
  out = builder.op("permute_dims", {out}, {{"axes", std::vector<int64_t>{0, 3, 4, 1, 5, 2, 6}}},
                   "phases");
  out = reshaped(out, {dims[0], int64(blocks), phases.whole[0], phases.whole[1], lanes});
  std::vector<Value> axes, begin, end;
  for (size_t d = 0; d < 2; ++d) {
    if (phases.begin[d] == 0 && structural_equal(phases.whole[d], phases.extent[d])) continue;
    axes.push_back(make<PrimValue>(int64(static_cast<int64_t>(2 + d))));
    begin.push_back(make<PrimValue>(int64(phases.begin[d])));
    end.push_back(make<PrimValue>(arith::simplify(phases.extent[d] + phases.begin[d])));
  }
  if (axes.empty()) return out;
  return builder.op("strided_slice", {out, make<Tuple>(axes), make<Tuple>(begin), make<Tuple>(end)},
                    {}, name);
}

}  // namespace tenon::graph
