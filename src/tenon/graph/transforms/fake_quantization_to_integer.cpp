// SPDX-License-Identifier: Apache-2.0
// Networks that are quantised by pairs of quantize and dequantize compute on floats between them.
// Here products of what is dequantised become sums of integers, times the product of the scales:
//
//     conv(dequantize(x, s, z), dequantize(w, t, 0))
//       = (conv(x, w) - z * sums of w) * (s * t),  x padded by z
//
// That is also so where x is quantised in the run, and z a number that the run finds.
// A bias in the same scale joins the sums, and what is quantised again is scaled once. A zero point
// of the weights is taken off them here. Operators that only move or compare elements do that with
// the integers. What remains between dequantize and quantize is element-wise and becomes one kernel,
// which reads and stores integers. Re-associating: floats of sums are not rounded in between.
//
// The rules are patterns, as users write theirs (docs/patterns.md).

#include <algorithm>
#include <cmath>

#include "tenon/graph/patterns/rewriter.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/match.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<int64_t>;

bool is_8_bit(const Value& value) {
  const DType dtype = tensor_type(value)->dtype;
  return dtype == kInt8 || dtype == kUInt8;
}

Ref<TensorData> data_of(const Value& value) {
  const auto* constant = value.as<Constant>();
  return constant ? constant->data : Ref<TensorData>();
}

std::vector<float> floats_of(const TensorData& data) {
  std::vector<float> out;
  for (int64_t i = 0; i < data.elements(); ++i) out.push_back(static_cast<float>(data.at_float(i)));
  return out;
}

Value floats(const Shape& shape, const std::vector<float>& values) {
  return make<Constant>(TensorData::of<float>(kFloat32, shape, values));
}
Value int32s(const Shape& shape, const std::vector<int64_t>& values) {
  const std::vector<int32_t> narrow(values.begin(), values.end());
  return make<Constant>(TensorData::of<int32_t>(kInt32, shape, narrow));
}

/// A dequantised operand, or one in int32 less its zero point.
struct Operand {
  Value steps;                             // of 8 bits
  std::vector<float> scales = {1};         // one, or one for each place along `axis`
  std::vector<int64_t> zeros = {0};        // the same
  int64_t axis = -1;                       // from the front
  bool is_integer = false, flips = false;  // flips: the transpose of a matrix is meant
  Value late_zero = nullptr;  // of an integer operand: its only zero point, where the run gives it
};

/// Weights minus their zero points, and their sum for each channel.
struct Weights {
  Value steps;
  std::vector<int64_t> sums;
};

/// The rules, of one function while it is rebuilt.
class Folder {
 public:
  Folder() : matcher_(nullptr) {
    using Rules = PatternRewriter;
    const DFPattern any_product =
        any_of({is_op("nn.conv1d"), is_op("nn.conv2d"), is_op("nn.conv3d"), is_op("matmul")});
    const auto moved = any_of({is_op("nn.max_pool1d"), is_op("nn.max_pool2d"),
                               is_op("nn.max_pool3d"), is_op("permute_dims"), is_op("max")});
    rules_ =
        Rules::from_pattern(any_product(left_, right_),
                            [this](const Value& v, const Match& m) { return product(v, m); })
            .named("product") |
        Rules::from_pattern(is_op("add")(scaled_, bias_),
                            [this](const Value& v, const Match& m) { return biased(v, m); })
            .named("bias") |
        Rules::from_pattern(is_op("quantize")(dequantize_, scale_, zero_),
                            [this](const Value& v, const Match& m) { return same_steps(v, m); })
            .named("same-steps") |
        Rules::from_pattern(
            is_op("quantize")(is_op("nn.relu")(scaled_) | clip_ | scaled_, scale_, zero_),
            [this](const Value& v, const Match& m) { return requantized(v, m); })
            .named("requantize") |
        Rules::from_pattern(moved(dequantize_),
                            [this](const Value& v, const Match& m) { return moves(v, m); })
            .named("moves") |
        Rules::from_pattern(is_op("reshape")(dequantize_, shape_),
                            [this](const Value& v, const Match& m) { return moves(v, m); })
            .named("moves") |
        Rules::from_pattern(is_op("concat")(parts_), [this](const Value& v, const Match&) {
          return concat(v);
        }).named("moves");
  }

  /// A BindingRule.
  Value operator()(BlockBuilder& builder, const Binding& binding, const Value& value) {
    builder_ = &builder;
    name_ = binding.var->name;
    const auto rewrite = rules_.at(matcher_, value);
    if (rewrite)
      record(
          {"FakeQuantizationToInteger", name_, "rewritten", rewrite->name, {}, "", binding.origin});
    return emit_noted(builder, matcher_, rewrite ? rewrite->value : value, name_);
  }

 private:
  Value op(std::string_view name, std::vector<Value> args, Attrs attrs = {}) {
    return emit_noted(*builder_, matcher_, call_op(name, std::move(args), std::move(attrs)), name_);
  }

  /// What is bound to a variable.
  Value bound(const Value& value) const {
    const Ref<Binding> binding = value.as<Var>() ? matcher_.binding_of(value) : nullptr;
    return binding ? binding->value : value;
  }
  const Call* call_of(const Value& value, std::string_view op) const {
    const Value expr = bound(value);
    const auto* call = expr.as<Call>();
    return call && call->is(op) ? call : nullptr;
  }
  /// Integers of a constant, perhaps cast or reshaped.
  std::optional<std::vector<int64_t>> known_ints(const Value& value) const {
    Value at = bound(value);
    for (int depth = 0; depth < 4; ++depth) {
      const auto* call = at.as<Call>();
      if (!call || (!call->is("astype") && !call->is("reshape"))) break;
      at = bound(call->args[0]);
    }
    const Ref<TensorData> data = data_of(at);
    if (!data || !data->dtype.is_integer()) return std::nullopt;
    return data->to_ints();
  }

  /// Whether scales are for blocks of an axis, and so no vector of it.
  static bool has_blocks(const Call& call) {
    return call.attrs.get<int64_t>("block_size").value_or(0) != 0;
  }
  /// Whether steps are counted in the precision of their scale, which is float32 here.
  static bool divides_plainly(const Call& quantize) {
    const DType precision = quantize.attrs.get<DType>("precision").value_or(kVoid);
    return precision.is_void() || precision == kFloat32;
  }

  std::optional<Operand> dequantized(const Call& call) const {
    Operand out{call.args[0]};
    const Ref<TensorData> scales = data_of(bound(call.args[1]));
    const auto zeros = known_ints(call.args[2]);
    const Ref<TensorType> type = tensor_type(out.steps);
    if (!scales || !zeros || scales->dtype != kFloat32 || !type->has_shape() || has_blocks(call) ||
        tensor_type(ref_to(&call))->dtype != kFloat32)
      return std::nullopt;
    out.scales = floats_of(*scales);
    out.zeros = *zeros;
    const int64_t axis = call.attrs.get<int64_t>("axis").value_or(-1);
    out.axis = axis < 0 ? axis + type->ndim : axis;
    return out;
  }

  std::optional<Operand> operand(const Value& value) const {
    if (const Call* call = call_of(value, "dequantize"))
      return is_8_bit(call->args[0]) ? dequantized(*call) : std::nullopt;
    if (const Call* call = call_of(value, "permute_dims")) {
      auto inner = operand(call->args[0]);
      if (!inner || inner->flips || tensor_type(inner->steps)->ndim != 2) return std::nullopt;
      const auto axes = call->attrs.ints("axes").value_or(Shape{1, 0});
      inner->flips = axes == Shape{1, 0} || axes == Shape{-1, -2};
      return inner->flips ? inner : std::nullopt;
    }
    const Call* difference = call_of(value, "subtract");
    const Call* cast = call_of(difference ? difference->args[0] : value, "astype");
    if (!cast || tensor_type(value)->dtype != kInt32 || !is_8_bit(cast->args[0]))
      return std::nullopt;
    Operand out{cast->args[0]};
    out.is_integer = true;
    if (!difference) return out;
    const auto zeros = known_ints(difference->args[1]);
    const Ref<TensorType> type = tensor_type(difference->args[1]);
    if (!zeros && type->static_shape() == Shape{}) {
      out.late_zero = difference->args[1];
      return out;
    }
    // One number, or the first axis of a kernel's weights.
    if (!zeros || (zeros->size() != 1 && !as_int(type->dim(0)))) return std::nullopt;
    out.zeros = *zeros;
    out.axis = zeros->size() == 1 ? -1
               : type->ndim == tensor_type(out.steps)->ndim &&
                       as_int(type->dim(0)) == static_cast<int64_t>(zeros->size())
                   ? 0
               : type->ndim == 1 ? tensor_type(out.steps)->ndim - 1
                                 : -2;
    return out.axis == -2 ? std::nullopt : std::optional(out);
  }

  /// Whether each number belongs to one channel.
  static bool fits(size_t numbers, int64_t axis, int64_t channel_axis, int64_t channels) {
    return numbers == 1 || (axis == channel_axis && numbers == static_cast<size_t>(channels));
  }

  // conv or matmul of operand `left_` and constant weights.
  Value product(const Value& root, const Match& m) {
    const auto* call = root.as<Call>();
    const bool is_matmul = call->is("matmul");
    const auto x = operand(m[left_]), w = operand(m[right_]);
    if (!x || !w || x->is_integer != w->is_integer || x->flips || (w->flips && !is_matmul))
      return {};
    const Ref<TensorData> data = data_of(bound(w->steps));
    if (call->args.size() > 2) return {};
    const DType asked = call->attrs.get<DType>("out_dtype").value_or(kVoid);
    const DType result = tensor_type(root)->dtype;
    if (!data || x->scales.size() != 1 || x->zeros.size() != 1 ||
        !(asked.is_void() || asked == result) || result != (x->is_integer ? kInt32 : kFloat32) ||
        w->late_zero)
      return {};
    if (is_matmul ? data->shape.size() != 2 || tensor_type(x->steps)->ndim < 2 : !is_planar(*call))
      return {};
    // Of the weights as they are stored.
    const int64_t axis = is_matmul && !w->flips ? 1 : 0;
    const int64_t channels = data->shape[static_cast<size_t>(axis)];
    if (!fits(w->scales.size(), w->axis, axis, channels) ||
        !fits(w->zeros.size(), w->axis, axis, channels))
      return {};
    const Weights weights = centred(*data, axis, w->zeros, w->flips);
    Attrs attrs = call->attrs;
    attrs.set("out_dtype", kInt32);
    const int64_t zero = x->zeros[0];
    Shape along(is_matmul ? 1 : data->shape.size() - 1, 1);
    along[0] = channels;
    std::vector<Value> args = {x->steps, weights.steps};
    if (x->late_zero && !is_matmul && pads(*call)) {
      args[0] = padded(*call, *x);
      attrs.set("padding", int64_t{0});
    }
    if (!is_matmul && zero != 0 && pads(*call)) {
      const bool is_signed = tensor_type(x->steps)->dtype == kInt8;
      args.push_back(
          is_signed
              ? make<Constant>(TensorData::of<int8_t>(kInt8, {}, {static_cast<int8_t>(zero)}))
              : make<Constant>(TensorData::of<uint8_t>(kUInt8, {}, {static_cast<uint8_t>(zero)})));
    }
    Value sums = op(call->op->name, args, attrs);
    const auto is_zero = [](int64_t n) { return n == 0; };
    if (x->late_zero)
      return op("subtract", {sums, op("multiply", {x->late_zero, int32s(along, weights.sums)})});
    if (zero != 0 && !std::all_of(weights.sums.begin(), weights.sums.end(), is_zero)) {
      std::vector<int64_t> correction;
      for (const int64_t sum : weights.sums) correction.push_back(-zero * sum);
      sums = op("add", {sums, int32s(along, correction)});
    }
    if (x->is_integer) return sums;
    std::vector<float> scales = w->scales;
    for (float& scale : scales) scale *= x->scales[0];
    return scaled(sums, floats(scales.size() == 1 ? Shape{} : along, scales));
  }

  /// The data of a convolution padded by a zero point that the run gives.
  Value padded(const Call& conv, const Operand& x) {
    const Ref<TensorType> type = tensor_type(x.steps);
    const auto rank = static_cast<size_t>(type->ndim - 2);
    // One number, one for each axis, or those before all axes and then those after.
    const Shape each = conv.attrs.ints("padding").value_or(Shape{0});
    const size_t step = each.size() == 1 ? 0 : 1, behind = each.size() == 2 * rank ? rank : 0;
    Shape widths(4, 0);
    for (size_t d = 0; d < rank; ++d)
      widths.insert(widths.end(), {each[d * step], each[d * step + behind]});
    const Value zero = op("astype", {x.late_zero}, {{"dtype", type->dtype}});
    return op("nn.pad", {x.steps, Value(), zero}, {{"pad_width", widths}});
  }

  static bool pads(const Call& conv) {
    const auto padding = conv.attrs.ints("padding").value_or(Shape{});
    return std::any_of(padding.begin(), padding.end(), [](int64_t n) { return n != 0; });
  }
  static bool is_planar(const Call& conv) {
    const auto begins = [&](const char* layout, const char* axes) {
      const std::string text = conv.attrs.get<std::string>(layout).value_or("");
      return text.empty() || text.starts_with(axes);
    };
    return begins("data_layout", "NC") && begins("kernel_layout", "OI") &&
           begins("out_layout", "NC");
  }

  /// Weights less their zero points along `axis`, in 8 bits where these hold them, else in 16.
  static Weights centred(const TensorData& data, int64_t axis, const std::vector<int64_t>& zeros,
                         bool flips) {
    const std::vector<int64_t> given = data.to_ints();
    const int64_t channels = data.shape[static_cast<size_t>(axis)];
    int64_t inner = 1;
    for (size_t d = static_cast<size_t>(axis) + 1; d < data.shape.size(); ++d)
      inner *= data.shape[d];
    Weights out;
    out.sums.assign(static_cast<size_t>(channels), 0);
    std::vector<int16_t> wide(given.size());
    bool fits = true;
    for (size_t i = 0; i < given.size(); ++i) {
      const auto channel = static_cast<size_t>(static_cast<int64_t>(i) / inner % channels);
      const int64_t value = given[i] - zeros[zeros.size() == 1 ? 0 : channel];
      out.sums[channel] += value;
      fits = fits && value >= -128 && value <= 127;
      size_t at = i;
      if (flips) {
        const auto columns = static_cast<size_t>(data.shape[1]),
                   rows = static_cast<size_t>(data.shape[0]);
        at = i % columns * rows + i / columns;
      }
      wide[at] = static_cast<int16_t>(value);
    }
    Shape shape = data.shape;
    if (flips) std::swap(shape[0], shape[1]);
    if (fits) {
      const std::vector<int8_t> narrow(wide.begin(), wide.end());
      out.steps = make<Constant>(TensorData::of<int8_t>(kInt8, shape, narrow));
    } else {
      out.steps = make<Constant>(TensorData::of<int16_t>(kInt16, shape, wide));
    }
    return out;
  }

  /// Floats of integer sums: a call.
  Value scaled(const Value& sums, const Value& scales) {
    return call_op("multiply", {op("astype", {sums}, {{"dtype", kFloat32}}), scales});
  }

  /// A constant's floats, perhaps reshaped or still dequantised.
  std::optional<std::vector<float>> known_floats(const Value& value) const {
    const Call* reshaped = call_of(value, "reshape");
    const Value source = bound(reshaped ? reshaped->args[0] : value);
    if (const Ref<TensorData> data = data_of(source))
      return data->dtype == kFloat32 ? std::optional(floats_of(*data)) : std::nullopt;
    const Call* call = call_of(source, "dequantize");
    const auto x = call ? dequantized(*call) : std::nullopt;
    const auto steps = x ? known_ints(x->steps) : std::nullopt;
    if (!steps || !fits(x->scales.size(), 0, 0, static_cast<int64_t>(steps->size())) ||
        !fits(x->zeros.size(), 0, 0, static_cast<int64_t>(steps->size())))
      return std::nullopt;
    std::vector<float> out;
    for (size_t i = 0; i < steps->size(); ++i)
      out.push_back(static_cast<float>((*steps)[i] - x->zeros[x->zeros.size() == 1 ? 0 : i]) *
                    x->scales[x->scales.size() == 1 ? 0 : i]);
    return out;
  }

  // A bias that is a whole number of the sums' scale, for each channel.
  Value biased(const Value&, const Match& m) {
    const Value &scales = m[scales_], &given = m[bias_];
    const auto shape = tensor_type(given)->static_shape();
    const auto bias = known_floats(given);
    if (!bias || !shape) return {};
    Shape along = *shape;
    while (along.size() > 1 && along[0] == 1) along.erase(along.begin());
    const std::vector<float> wanted = floats_of(*data_of(scales));
    if (wanted.size() != 1 && data_of(scales)->shape != along) return {};
    std::vector<int64_t> values;
    for (size_t i = 0; i < bias->size(); ++i) {
      const double steps = static_cast<double>((*bias)[i]) / wanted[wanted.size() == 1 ? 0 : i];
      const double whole = std::nearbyint(steps);
      // Floats of sums that large are no whole numbers themselves, and NaN is none.
      const double rest = std::abs(steps - whole);
      if (!(std::abs(whole) <= (1 << 30) && rest <= 1e-3 + 1e-6 * std::abs(whole))) return {};
      values.push_back(static_cast<int64_t>(whole));
    }
    const auto* old = m[correction_].as<Constant>();
    const Call* cast = call_of(bound(m[scaled_]).as<Call>()->args[0], "astype");
    Value sums = cast ? cast->args[0] : m[sums_];
    if (tensor_type(sums)->dtype != kInt32) return {};  // other integers that become floats
    if (old && old->data->shape == along) {
      const std::vector<int64_t> before = old->data->to_ints();
      for (size_t i = 0; i < values.size(); ++i) values[i] += before[i];
      sums = m[sums_];
    }
    return scaled(op("add", {sums, int32s(along, values)}), scales);
  }

  static std::optional<float> one_float(const Value& value) {
    const Ref<TensorData> data = data_of(value);
    if (!data || data->dtype != kFloat32 || data->elements() != 1) return std::nullopt;
    return static_cast<float>(data->at_float(0));
  }
  static std::optional<int64_t> one_int(const Value& value) {
    const Ref<TensorData> data = data_of(value);
    if (!data || !data->dtype.is_integer() || data->elements() != 1) return std::nullopt;
    return data->at_int(0);
  }

  // Sums that are scaled to steps of the result at once.
  Value requantized(const Value& root, const Match& m) {
    const auto scale = one_float(m[scale_]);
    const auto zero = one_int(m[zero_]);
    const DType dtype = tensor_type(root)->dtype;
    if (!scale || !zero || *scale == 1 || !divides_plainly(*root.as<Call>()) ||
        (dtype != kInt8 && dtype != kUInt8))
      return {};
    const double least = dtype == kInt8 ? -128 : 0, most = dtype == kInt8 ? 127 : 255;
    const auto step_of = [&](double value) {
      return std::nearbyint(value / *scale) + static_cast<double>(*zero);
    };
    std::vector<float> scales = floats_of(*data_of(m[scales_]));
    for (float& s : scales) s /= *scale;
    const Value product = bound(m[scaled_]);
    const auto* multiply = product.as<Call>();
    const size_t of_sums = m[scales_].same_as(multiply->args[1]) ? 0 : 1;
    Value y = op("multiply", {multiply->args[of_sums], floats(data_of(m[scales_])->shape, scales)});
    // What saturates anyhow needs no bound.
    const Value source = bound(root.as<Call>()->args[0]);
    const auto* curve = source.as<Call>();
    if (curve->is("nn.relu") && step_of(0) > least) y = op("nn.relu", {y});
    if (curve->is("clip")) {
      const auto low = number(curve->args[1]), high = number(curve->args[2]);
      if (!low || !high) return {};
      if (step_of(*low) > least || step_of(*high) < most)
        y = op("clip", {y, make<PrimValue>(imm(kFloat32, *low / *scale)),
                        make<PrimValue>(imm(kFloat32, *high / *scale))});
    }
    return call_op("quantize", {y, floats({}, {1}), m[zero_]}, root.as<Call>()->attrs);
  }

  static std::optional<double> number(const Value& value) {
    if (const auto* prim = value.as<PrimValue>()) return as_float(prim->value);
    return constant_number(value);
  }

  // Back to the steps that were there.
  Value same_steps(const Value& root, const Match& m) {
    const Value inner = bound(m[dequantize_]);
    const auto* call = inner.as<Call>();
    const auto scale = one_float(m[scale_]);
    const auto zero = one_int(m[zero_]);
    if (!scale || !zero || !divides_plainly(*root.as<Call>()) ||
        scale != one_float(bound(call->args[1])) || zero != one_int(bound(call->args[2])))
      return {};
    const Value& steps = call->args[0];
    return tensor_type(steps)->dtype == tensor_type(root)->dtype ? steps : Value();
  }

  // Operators that move elements or pick the largest work on the integers: scales are above 0.
  Value moves(const Value& root, const Match& m) {
    const Value inner = bound(m[dequantize_]);
    const auto* call = inner.as<Call>();
    const auto x = dequantized(*call);
    if (!x || !is_8_bit(x->steps) || x->scales.size() != 1 || x->zeros.size() != 1 ||
        !(x->scales[0] > 0) || x->steps.as<Constant>())
      return {};
    const auto* outer = root.as<Call>();
    std::vector<Value> args = outer->args;
    args[0] = x->steps;
    Attrs attrs = call->attrs;
    attrs.set("axis", int64_t{-1});
    return call_op("dequantize",
                   {op(outer->op->name, args, outer->attrs), call->args[1], call->args[2]}, attrs);
  }

  Value concat(const Value& root) {
    const auto* outer = root.as<Call>();
    const Value items = bound(outer->args[0]);
    const auto* tuple = items.as<Tuple>();
    if (!tuple || tuple->values.empty()) return {};
    std::vector<Value> steps;
    const Call* first = call_of(tuple->values[0], "dequantize");
    if (!first) return {};
    const auto scale = one_float(bound(first->args[1]));
    const auto zero = one_int(bound(first->args[2]));
    for (const Value& value : tuple->values) {
      const Call* call = call_of(value, "dequantize");
      if (!call || !scale || !zero || has_blocks(*call) ||
          one_float(bound(call->args[1])) != scale || one_int(bound(call->args[2])) != zero ||
          tensor_type(call->args[0])->dtype != tensor_type(first->args[0])->dtype)
        return {};
      steps.push_back(call->args[0]);
    }
    const Value joined = op("concat", {make<Tuple>(std::move(steps))}, outer->attrs);
    return call_op("dequantize", {joined, first->args[1], first->args[2]}, first->attrs);
  }

  DFPattern left_ = wildcard(), right_ = wildcard(), bias_ = wildcard(), sums_ = wildcard(),
            parts_ = wildcard(), shape_ = wildcard();
  DFPattern correction_ = is_const(), scales_ = is_const(), scale_ = is_const(), zero_ = is_const();
  DFPattern scaled_ =
      is_op("multiply")(is_op("astype")(is_op("add")(sums_, correction_) | sums_), scales_);
  DFPattern dequantize_ = is_op("dequantize")(wildcard(), is_const(), is_const());
  DFPattern clip_ = is_op("clip")(scaled_, wildcard(), wildcard());
  PatternRewriter rules_;
  Matcher matcher_;
  BlockBuilder* builder_ = nullptr;
  std::string name_;
};

}  // namespace

IRModule fake_quantization_to_integer(IRModule module) {
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, function] : entries) {
    const auto graph = cast<Function>(function);
    if (!graph) continue;
    Folder folder;
    module.set(name, rebuild(module, graph, std::ref(folder)));
  }
  return module;
}

}  // namespace tenon::graph
