// SPDX-License-Identifier: Apache-2.0
// Blocks the channels of convolutional networks by the target's vector width.
//
// Every value of rank 3 to 5 has up to two variants: planar (NCHW, as imported) and blocked (NCHW{V}c,
// channels padded to a multiple of V with whatever the operators make of zeros). An operator that
// can work on blocked operands does so where one of its operands is blocked already; a conversion
// is emitted only where the variant that is needed is not there.

#include "tenon/graph/transforms/convert_layout.h"

#include <algorithm>
#include <functional>
#include <map>

#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/branches_of.h"
#include "tenon/graph/transforms/conv_phases.h"
#include "tenon/graph/transforms/match.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tir/schedule/layout_choice.h"

namespace tenon::graph {

namespace {

class Converter {
 public:
  /// \param is_fast  whether sums may be computed by forms that are not term by term
  Converter(BlockBuilder& builder, const Target& target, const LayoutOptions& options, bool is_fast)
      : builder_(builder), target_(target), options_(options), is_fast_(is_fast) {}

  /// The replacement of a call, or nothing where the plain one stays (on planar operands).
  std::optional<Value> convert(const Call& call, const std::string& name) {
    switch (call.op->layout) {
      case LayoutRule::kPlanar:
        return is_elementwise(call) && without_pad_lanes(call) ? elementwise(call, name)
                                                               : std::nullopt;
      case LayoutRule::kElementwise: return elementwise(call, name);
      case LayoutRule::kConvolution:
        return call.attrs.contains("output_padding") ? transposed_convolution(call, name)
                                                     : convolution(call, name);
      case LayoutRule::kPooling: return pooling(call, name);
      case LayoutRule::kSpatialReduction: return spatial_reduction(call, name);
      case LayoutRule::kConcat: return concat(call, name);
      case LayoutRule::kFlatten: return flatten(call, name);
      case LayoutRule::kProduct: return product(call, name);
    }
    unreachable("a layout rule");
  }

  /// `value` in planar form: itself where it is that already.
  Value planar(const Value& value) {
    const auto it = blocked_only_.find(value.get());
    if (it == blocked_only_.end()) return value;
    Variant& variant = it->second;
    if (!variant.planar) {
      Value plain = builder_.op("layout_transform", {variant.blocked},
                                {{"src_layout", blocked_name(variant.ndim())},
                                 {"dst_layout", planar_name(variant.ndim())}},
                                "planar");
      if (variant.channels % lanes() != 0)
        plain =
            builder_.op("strided_slice",
                        {plain, prim_tuple({1}), prim_tuple({0}), prim_tuple({variant.channels})},
                        {}, "planar");
      variant.planar = plain;
      forgets([this, key = value.get()] { blocked_only_.at(key).planar = nullptr; });
    }
    return variant.planar;
  }

  /// What comes next stands in the innermost of these branches, each inside of the one before it: what
  /// was converted in others is not seen there.
  void enter(const std::vector<const SeqExpr*>& branches) {
    size_t same = 0;
    while (same < std::min(branches.size(), branches_.size()) &&
           branches[same] == branches_[same].body)
      ++same;
    for (; branches_.size() > same; branches_.pop_back())
      for (; forgotten_.size() > branches_.back().known; forgotten_.pop_back()) forgotten_.back()();
    for (; same < branches.size(); ++same) branches_.push_back({branches[same], forgotten_.size()});
  }

 private:
  struct Variant {
    Value blocked, planar;  // planar: null until somebody needs it
    int64_t channels;
    int64_t ndim() const { return tensor_type(blocked)->ndim - 1; }  // in planar form
  };

  /// A branch, and how much was known in front of it.
  struct Branch {
    const SeqExpr* body;
    size_t known;
  };

  /// \param undo  what makes something unknown that was converted in a branch.
  void forgets(std::function<void()> undo) {
    if (!branches_.empty()) forgotten_.push_back(std::move(undo));
  }

  int64_t lanes() const { return target_.vector_lanes(32); }
  /// The spatial axes of planar values of `ndim` dimensions: "W", "HW" or "DHW".
  static std::string spatial(int64_t ndim) {
    return std::string("DHW").substr(static_cast<size_t>(5 - ndim));
  }
  static std::string planar_name(int64_t ndim) { return "NC" + spatial(ndim); }
  std::string blocked_name(int64_t ndim) const {
    return fmt::format("{}{}c", planar_name(ndim), lanes());
  }
  static Value prim_tuple(const std::vector<int64_t>& numbers) {
    std::vector<Value> values;
    for (const int64_t number : numbers) values.push_back(make<PrimValue>(int64(number)));
    return make<Tuple>(std::move(values));
  }

  static std::optional<int64_t> channels_of(const Ref<TensorType>& type) {
    const bool may_block = type->dtype == kFloat32 ? type->ndim >= 3 && type->ndim <= 5
                                                   : type->ndim == 4 && is_8_bit(type->dtype);
    return type->has_shape() && may_block ? as_int(type->dim(1)) : std::nullopt;
  }
  static bool is_8_bit(DType dtype) { return dtype == kInt8 || dtype == kUInt8; }
  /// Whether products of these are summed in 32 bits: lanes are those of the sums.
  static bool sums_32_bits(DType data, DType weight, DType sums) {
    if (data == kFloat32) return weight == kFloat32;
    return is_8_bit(data) && (is_8_bit(weight) || weight == kInt16) && sums == kInt32;
  }

  /// Where the value is blocked (also where a planar variant exists beside it): its variant.
  const Variant* blocked_variant(const Value& value) const {
    const auto it = blocked_only_.find(value.get());
    return it == blocked_only_.end() ? nullptr : &it->second;
  }

  /// The blocked variant of a planar value, emitted once.
  Value block(const Value& value) {
    if (const Variant* variant = blocked_variant(value)) return variant->blocked;
    Value& slot = blocked_of_[value.get()];
    if (!slot) {
      const int64_t ndim = tensor_type(value)->ndim;
      slot = builder_.op("layout_transform", {value},
                         {{"src_layout", planar_name(ndim)}, {"dst_layout", blocked_name(ndim)}},
                         "blocked");
      kept_.push_back(value);
      forgets([this, key = value.get()] { blocked_of_.erase(key); });
    }
    return slot;
  }

  /// Records that the variable which stands for a result is blocked: later rules see the same
  /// handle.
  Value result(const Value& blocked, int64_t channels) {
    blocked_only_[blocked.get()] = {blocked, Value(), channels};
    kept_.push_back(blocked);
    forgets([this, key = blocked.get()] { blocked_only_.erase(key); });
    return blocked;
  }

  /// Whether the result has the planar layout of the data.
  static bool keeps_layout(const Call& call, int64_t ndim) {
    const std::string out = call.attrs.get<std::string>("out_layout").value_or("");
    return out.empty() || out == planar_name(ndim);
  }

  /// Data and weight, and what else a convolution takes.
  static std::vector<Value> operands_of(const Call& call, const Value& data, const Value& weight) {
    std::vector<Value> out = call.args;
    out[0] = data;
    out[1] = weight;
    return out;
  }

  std::optional<Value> convolution(const Call& call, const std::string& name) {
    const Ref<TensorType> data = logical_type(call.args[0]), weight = tensor_type(call.args[1]);
    const auto shape = weight->static_shape();
    if (!channels_of(data) || !shape || !call.args[1].as<Constant>() ||
        !sums_32_bits(data->dtype, weight->dtype,
                      call.attrs.get<DType>("out_dtype").value_or(kVoid)))
      return std::nullopt;
    const int64_t ndim = data->ndim;
    const std::string plain_kernel = "OI" + spatial(ndim);
    if (call.attrs.get<std::string>("data_layout") != planar_name(ndim) ||
        call.attrs.get<std::string>("kernel_layout") != plain_kernel || !keeps_layout(call, ndim))
      return std::nullopt;
    // With planar operands.
    const auto plain = make<Call>(call.op, operands_of(call, make<Var>("x", data), call.args[1]),
                                  call.attrs, call.type_args, call.origin);
    if (stays_plain(*plain, name)) return std::nullopt;
    tir::ConvShape facts = facts_of(call, data, *shape, tensor_type(plain));
    if (sums_words(data->dtype, weight->dtype) && facts.in_channels >= 3) facts.word = 4;
    const tir::ConvLayout layout = tir::choose_conv_layout(facts, target_);
    using Kind = tir::ConvLayout::Kind;
    if (layout.kind == Kind::kPlain) {
      if (auto grouped = convolution_of_groups(call, name, facts)) return grouped;
      record({"ConvertLayout", name, "planar", "too-few-channels", {}, "", call.origin});
      return std::nullopt;
    }
    const int64_t v = layout.block;
    check(v == lanes(), "convolutions are blocked by another width than activations");
    const auto note = [&](const char* what) {
      record({"ConvertLayout",
              name,
              what,
              "",
              {{"block", static_cast<double>(v)},
               {"weight_group", static_cast<double>(layout.weight_group)}},
              "",
              call.origin});
    };
    if (layout.kind == Kind::kBlocked && facts.word > 1) {
      note("words");
      return convolution_of_words(call, name, facts, layout);
    }
    Attrs attrs = call.attrs;
    std::string kernel;
    if (layout.kind == Kind::kDepthwise) {
      kernel = fmt::format("{}{}o", plain_kernel, v);
    } else if (layout.kind == Kind::kPlanarInput) {
      kernel = fmt::format("{}{}o", plain_kernel, v * layout.weight_group);
    } else {
      kernel =
          fmt::format("{}{}i{}o", plain_kernel, input_block(facts, v), v * layout.weight_group);
    }
    const Value input =
        layout.kind == Kind::kPlanarInput ? planar(call.args[0]) : block(call.args[0]);
    attrs.set("data_layout",
              layout.kind == Kind::kPlanarInput ? planar_name(ndim) : blocked_name(ndim));
    attrs.set("kernel_layout", kernel);
    attrs.set("out_layout", blocked_name(ndim));
    if (layout.kind == Kind::kDepthwise) {
      // Groups count channels, pad lanes included.
      const int64_t padded = (facts.in_channels + v - 1) / v * v;
      attrs.set("groups", padded);
    }
    const Value packed =
        builder_.op("layout_transform", {call.args[1]},
                    {{"src_layout", plain_kernel}, {"dst_layout", kernel}}, name + "_weight");
    note(layout.kind == Kind::kDepthwise     ? "depthwise"
         : layout.kind == Kind::kPlanarInput ? "planar-input"
                                             : "blocked");
    return result(builder_.op(call.op->name, operands_of(call, input, packed), attrs, name),
                  facts.out_channels);
  }

  /// Groups of channels that do not fill vectors: a group is a block, so that vectors go along the
  /// filters of one group. Nothing else takes such blocks.
  std::optional<Value> convolution_of_groups(const Call& call, const std::string& name,
                                             const tir::ConvShape& facts) {
    const int64_t in = facts.in_channels / facts.groups, out = facts.out_channels / facts.groups;
    const Ref<TensorType> data = logical_type(call.args[0]);
    if (facts.groups < 2 || in < 2 || out * 2 < lanes() || data->dtype != kFloat32)
      return std::nullopt;
    const std::string plain = planar_name(data->ndim), letters = spatial(data->ndim);
    const auto of = [&](int64_t block) { return fmt::format("{}{}c", plain, block); };
    const std::string kernel = fmt::format("O{}I{}o", letters, out);
    const auto moved = [&](const Value& value, const std::string& from, const std::string& to,
                           const std::string& hint) {
      return builder_.op("layout_transform", {value}, {{"src_layout", from}, {"dst_layout", to}},
                         hint);
    };
    Attrs attrs = call.attrs;
    attrs.set("data_layout", of(in));
    attrs.set("kernel_layout", kernel);
    attrs.set("out_layout", of(out));
    const Value input = moved(planar(call.args[0]), plain, of(in), "groups");
    const Value weight = moved(call.args[1], "OI" + letters, kernel, name + "_weight");
    record({"ConvertLayout",
            name,
            "groups",
            "",
            {{"block", static_cast<double>(out)}},
            "",
            call.origin});
    const Value made =
        builder_.op(call.op->name, operands_of(call, input, weight), attrs, name + "_groups");
    return moved(made, of(out), plain, name);
  }

  /// A transposed convolution: one that gives its phases as channels, which come to stand side by side.
  std::optional<Value> transposed_convolution(const Call& call, const std::string& name) {
    const Ref<TensorType> data = logical_type(call.args[0]);
    if (!channels_of(data) || stays_plain(call, name)) return std::nullopt;
    const std::optional<ConvPhases> phases = phases_of(call, data);
    if (!phases || phases->channels * 2 < lanes()) return std::nullopt;
    const Value filters = filters_of(*call.args[1].as<Constant>()->data, *phases, lanes());
    const auto all = call_op("nn.conv2d", {call.args[0], filters}, {{"padding", phases->padding()}},
                             call.origin);
    const std::optional<Value> made = convolution(*all, name);
    const Variant* variant = made ? blocked_variant(*made) : nullptr;
    if (!variant) return made;
    return result(side_by_side(builder_, variant->blocked, *phases, name), phases->channels);
  }

  static tir::ConvShape facts_of(const Call& call, const Ref<TensorType>& data,
                                 const std::vector<int64_t>& kernel, const Ref<TensorType>& out) {
    // Of axes that are not there, and of the innermost ones: depth, height, width.
    const size_t missing = 5 - kernel.size();
    const auto attr = [&](const std::string& key, size_t axis) -> int64_t {
      const auto values = call.attrs.ints(key).value_or(std::vector<int64_t>{1});
      if (axis < missing) return 1;
      return values.size() == 1 ? values[0] : values.at(axis - missing);
    };
    const auto size = [&](size_t axis) { return axis < missing ? 1 : kernel[2 + axis - missing]; };
    const auto extent = [&](size_t axis) -> int64_t {
      const auto dim = static_cast<int64_t>(2 + axis - missing);
      return axis < missing ? 1 : as_int(out->dim(dim)).value_or(0);
    };
    tir::ConvShape facts;
    facts.batch = as_int(data->dim(0)).value_or(0);
    facts.in_channels = *channels_of(data);
    facts.out_channels = kernel[0];
    facts.groups = call.attrs.get<int64_t>("groups").value_or(1);
    facts.kernel_depth = size(0);
    facts.kernel_height = size(1);
    facts.kernel_width = size(2);
    facts.out_height = extent(1);
    facts.out_width = extent(2);
    facts.stride_depth = attr("strides", 0);
    facts.stride_height = attr("strides", 1);
    facts.stride_width = attr("strides", 2);
    return facts;
  }

  /// Input channels to a block of the weights: half of the data's where its last block is no more
  /// than half full, so that the rest of it is not read.
  static int64_t input_block(const tir::ConvShape& facts, int64_t block) {
    const int64_t used = facts.in_channels % block;
    const bool halves = facts.groups == 1 && used > 0 && used * 2 <= block;
    return halves && block / 2 >= facts.word ? block / 2 : block;
  }

  // ---- words: four numbers of 8 bits that are neighbours along the reduction

  /// Whether the target sums products of four at once. Other weights are of 16 bits.
  bool sums_words(DType data, DType weight) const {
    return is_8_bit(data) && weight == kInt8 && target_.dot_products() != DotProducts::kNone;
  }

  /// What is added to a number of 8 bits that it has the sign which the target's dot products want.
  int64_t shift_of(DType data) const {
    const bool wants_signs = target_.dot_products() == DotProducts::kSigned;
    return (data == kInt8) == wants_signs ? 0 : wants_signs ? -128 : 128;
  }

  /// The numbers, shifted so: by the first bit.
  Value shifted(const Value& value, DType data) {
    if (shift_of(data) == 0) return value;
    Value& slot = shifted_of_[value.get()];
    if (!slot) {
      Value bits = value;
      if (data == kInt8) bits = builder_.op("bitcast", {value}, {{"dtype", kUInt8}}, "unsigned");
      const Value first = make<Constant>(TensorData::of<uint8_t>(kUInt8, {}, {128}));
      slot = builder_.op("bitwise_xor", {bits, first}, {}, "shifted");
      if (data == kUInt8) slot = builder_.op("bitcast", {slot}, {{"dtype", kInt8}}, "signed");
      kept_.push_back(value);
      forgets([this, key = value.get()] { shifted_of_.erase(key); });
    }
    return slot;
  }

  /// Sums of the shifted numbers, less what the shift adds to those of the first axis of `weight` (of
  /// the last, where it is a matrix): integers wrap alike.
  Value unshifted(const Value& sums, const Value& weight, DType data, bool is_blocked) {
    const int64_t shift = shift_of(data);
    if (shift == 0) return sums;
    const Ref<TensorData> numbers = weight.as<Constant>()->data;
    const std::vector<int64_t> given = numbers->to_ints();
    const auto channels =
        static_cast<size_t>(is_blocked ? numbers->shape.front() : numbers->shape.back());
    const size_t inner = given.size() / channels;
    std::vector<int32_t> added(channels, 0);
    for (size_t i = 0; i < given.size(); ++i)
      added[is_blocked ? i / inner : i % channels] -= static_cast<int32_t>(shift * given[i]);
    std::vector<int64_t> shape{static_cast<int64_t>(channels)};
    if (is_blocked) shape.insert(shape.end(), {1, 1});
    Value constant = make<Constant>(TensorData::of<int32_t>(kInt32, shape, added));
    if (is_blocked)
      constant = *operand(constant, tensor_type(constant), static_cast<int64_t>(channels), 4);
    return builder_.op("add", {sums, constant}, {}, "unshifted");
  }

  Value reshaped(const Value& value, const std::vector<int64_t>& shape) {
    return builder_.op("reshape", {value, make<ShapeExpr>(to_exprs(shape))}, {}, "words");
  }

  /// Weights in the layout `to`, of which `inner` numbers along the reduction and then `columns`
  /// stand last, as words along the reduction.
  Value packed_words(const Value& weight, const char* from, const std::string& to, int64_t inner,
                     int64_t columns, const std::string& name) {
    const Value packed = builder_.op("layout_transform", {weight},
                                     {{"src_layout", from}, {"dst_layout", to}}, name + "_weight");
    const std::vector<int64_t> given = *tensor_type(packed)->static_shape();
    std::vector<int64_t> shape(given.begin(), given.end() - 2), order;
    std::vector<int64_t> whole = shape;
    whole.insert(whole.end(), {inner / 4, columns});
    shape.insert(shape.end(), {inner / 4, 4, columns});
    for (size_t d = 0; d < shape.size(); ++d) order.push_back(static_cast<int64_t>(d));
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    Value words =
        builder_.op("permute_dims", {reshaped(packed, shape)}, {{"axes", order}}, "words");
    words = builder_.op("words", {words}, {}, "words");
    return reshaped(words, whole);
  }

  Value convolution_of_words(const Call& call, const std::string& name, const tir::ConvShape& facts,
                             const tir::ConvLayout& layout) {
    const DType dtype = tensor_type(call.args[0])->dtype;
    const int64_t in = layout.input_block, columns = layout.block * layout.weight_group;
    Value blocked =
        in == layout.block
            ? block(call.args[0])
            : builder_.op("layout_transform", {planar(call.args[0])},
                          {{"src_layout", "NCHW"}, {"dst_layout", fmt::format("NCHW{}c", in)}},
                          "blocked");
    blocked = shifted(blocked, dtype);
    Value data = builder_.op("words", {blocked}, {}, "words");
    std::vector<Expr> dims = *tensor_type(data)->shape;
    if (in == 4) {
      dims.pop_back();
      data = builder_.op("reshape", {data, make<ShapeExpr>(dims)}, {}, "words");
    }
    const int64_t inner = input_block(facts, in);
    Value weight = packed_words(call.args[1], "OIHW", fmt::format("OIHW{}i{}o", inner, columns),
                                inner, columns, name);
    if (inner == 4) {  // a block of one word is none
      std::vector<int64_t> whole = *tensor_type(weight)->static_shape();
      whole.erase(whole.end() - 2);
      weight = reshaped(weight, whole);
    }
    Attrs attrs = call.attrs;
    attrs.set("data_layout", in == 4 ? std::string("NCHW") : fmt::format("NCHW{}c", in / 4));
    attrs.set("kernel_layout", inner == 4 ? fmt::format("OIHW{}o", columns)
                                          : fmt::format("OIHW{}i{}o", inner / 4, columns));
    attrs.set("out_layout", blocked_name(4));
    std::vector<Value> args = {data, weight};
    if (shift_of(dtype) != 0 || call.args.size() > 2) {
      int64_t outside = 0;
      if (call.args.size() > 2) outside = call.args[2].as<Constant>()->data->at_int(0);
      const auto byte = static_cast<uint8_t>(outside + shift_of(dtype));
      args.push_back(word_of(byte, tensor_type(data)->dtype));
    }
    const Value sums = builder_.op("nn.conv2d_of_words", args, attrs, name);
    return result(unshifted(sums, call.args[1], dtype, true), facts.out_channels);
  }

  static Value word_of(uint8_t byte, DType dtype) {
    const uint32_t word = byte * 0x01010101u;
    return make<Constant>(dtype == kInt32
                              ? TensorData::of<int32_t>(dtype, {}, {static_cast<int32_t>(word)})
                              : TensorData::of<uint32_t>(dtype, {}, {word}));
  }

  // ---- products

  /// A product with a constant matrix of a few bits, which is packed in panels with its scales.
  std::optional<Value> narrow_product(const Call& call, const std::string& name) {
    const auto shape = tensor_type(call.args[1])->static_shape();
    for (size_t i = 1; i < call.args.size(); ++i)
      if (call.args[i] && !call.args[i].as<Constant>()) return std::nullopt;
    if (!shape || shape->size() != 3 || stays_plain(call, name)) return std::nullopt;
    const int64_t units = shape->back();
    const int64_t depth = as_int(tensor_type(call.args[0])->dim(-1)).value_or(0);
    if (units < 2) return std::nullopt;
    const auto bits = call.attrs.get<int64_t>("bits").value_or(4);
    if (takes_digits(call, (*shape)[1], bits)) return product_of_digits(call, name, *shape, bits);
    const int64_t width = tir::choose_panel_width(0, units, depth, target_);
    const bool words = tir::packs_words(target_) && bits < 8 && (*shape)[1] % 4 == 0;
    const std::string panel = fmt::format("{}o", width);
    std::vector<Value> args = call.args;
    for (size_t i = 1; i < args.size(); ++i)
      if (args[i])
        args[i] = builder_.op(
            "layout_transform", {args[i]},
            {{"src_layout", i == 1 ? "KBO" : "KO"},
             {"dst_layout", (i == 1 ? "OKB" : "OK") + panel + (i == 1 && words ? "4b" : "")}},
            name + "_weight");
    if (words) {
      std::vector<int64_t> whole = *tensor_type(args[1])->static_shape();
      whole.pop_back();
      args[1] = reshaped(builder_.op("words", {args[1]}, {}, "words"), whole);
    }
    record({"ConvertLayout",
            name,
            "panels",
            "",
            {{"width", static_cast<double>(width)}},
            "",
            call.origin});
    Attrs attrs = call.attrs;
    attrs.set("units", units);
    return builder_.op(call.op->name, std::move(args), std::move(attrs), name);
  }

  /// Whether the product is one of digits (nn.digits), with blocks of so many bytes.
  bool takes_digits(const Call& call, int64_t bytes, int64_t bits) const {
    return is_fast_ && tir::takes_digits(target_) && bytes % 4 == 0 && bytes * 8 / bits <= 256 &&
           tensor_type(call.args[0])->dtype == kFloat32;
  }

  /// The product with weights (blocks, bytes, units) as one of digits, which all products of the same
  /// operand share.
  Value product_of_digits(const Call& call, const std::string& name,
                          const std::vector<int64_t>& shape, int64_t bits) {
    const int64_t units = shape[2], words = shape[1] / 4;
    // Rows of a tile take the registers: one vector of weights has several sums for each.
    const int64_t width = target_.vector_lanes();
    const int64_t length = shape[1] * 8 / bits;
    Value& digits = digits_of_[{call.args[0].get(), length}];
    if (!digits) {
      digits = builder_.op("nn.digits", {call.args[0]}, {{"block", length}}, "digits");
      kept_.push_back(call.args[0]);
      forgets([this, key = std::pair(call.args[0].get(), length)] { digits_of_.erase(key); });
    }
    std::vector<Value> args;
    for (int64_t i = 0; i < 3; ++i) args.push_back(builder_.emit(make<TupleGetItem>(digits, i)));
    // Byte j of word i: byte j * words + i of the block.
    const auto packed = [&](size_t i, const char* from, const std::string& to) {
      return builder_.op("layout_transform", {call.args[i]},
                         {{"src_layout", from}, {"dst_layout", to}}, name + "_weight");
    };
    const std::vector<int64_t> order = {0, 1, 4, 3, 2};
    const Value bytes =
        builder_.op("permute_dims", {packed(1, "KBO", fmt::format("OKB{}o{}b", width, words))},
                    {{"axes", order}}, "words");
    std::vector<int64_t> whole = *tensor_type(bytes)->static_shape();
    whole.pop_back();
    args.push_back(reshaped(builder_.op("words", {bytes}, {}, "words"), whole));
    for (size_t i = 2; i < call.args.size(); ++i)
      args.push_back(call.args[i] ? packed(i, "KO", fmt::format("OK{}o", width)) : Value());
    record({"ConvertLayout", name, "digits", "", {}, "", call.origin});
    return builder_.op("nn.matmul_nbits_of_digits", std::move(args),
                       {{"bits", bits}, {"units", units}}, name);
  }

  /// A product with a constant matrix, which is packed in panels.
  std::optional<Value> product(const Call& call, const std::string& name) {
    if (call.op->inputs.size() > 2) return narrow_product(call, name);
    if (!call.args[1].as<Constant>() || blocked_variant(call.args[0])) return std::nullopt;
    const Ref<TensorType> a = tensor_type(call.args[0]), b = tensor_type(call.args[1]);
    const auto shape = b->static_shape();
    const DType sums = tensor_type(ref_to(&call))->dtype;
    if (!a->has_shape() || a->ndim < 1 || !shape || shape->size() != 2 ||
        !sums_32_bits(a->dtype, b->dtype, sums) || (a->dtype == kFloat32 && sums != kFloat32))
      return std::nullopt;
    const int64_t k = (*shape)[0], n = (*shape)[1];
    if (n < 2 || k < 1 || stays_plain(call, name)) return std::nullopt;
    int64_t rows = 1;
    for (int64_t i = 0; i + 1 < a->ndim; ++i) {
      const auto extent = as_int(a->dim(i));
      rows = extent ? rows * *extent : 0;
      if (!extent) break;
    }
    const bool words = sums_words(a->dtype, b->dtype) && k % 4 == 0;
    const int64_t width = tir::choose_panel_width(rows, n, words ? k / 4 : k, target_);
    const std::string panels = fmt::format("OI{}o", width);
    record({"ConvertLayout",
            name,
            words ? "word-panels" : "panels",
            "",
            {{"width", static_cast<double>(width)}},
            "",
            call.origin});
    Attrs attrs{{"units", n}};
    if (sums != a->dtype) attrs.set("out_dtype", sums);
    if (words) {
      const Value data = builder_.op("words", {shifted(call.args[0], a->dtype)}, {}, "words");
      const Value weight = packed_words(call.args[1], "IO", panels, k, width, name);
      return unshifted(builder_.op("nn.packed_matmul_of_words", {data, weight}, attrs, name),
                       call.args[1], a->dtype, false);
    }
    const Value packed =
        builder_.op("layout_transform", {call.args[1]},
                    {{"src_layout", "IO"}, {"dst_layout", panels}}, name + "_weight");
    return builder_.op("nn.packed_matmul", {call.args[0], packed}, attrs, name);
  }

  /// The type that the value has in planar form.
  Ref<TensorType> logical_type(const Value& value) const {
    const Ref<TensorType> type = tensor_type(value);
    const Variant* variant = blocked_variant(value);
    if (!variant) return type;
    std::vector<Expr> shape(type->shape->begin(), type->shape->end() - 1);
    shape[1] = int64(variant->channels);
    return make<TensorType>(std::move(shape), type->dtype);
  }

  std::optional<Value> pooling(const Call& call, const std::string& name) {
    const Variant* variant = blocked_variant(call.args[0]);
    const int64_t ndim = variant ? variant->ndim() : 0;
    if (!variant || call.attrs.get<std::string>("layout") != planar_name(ndim) ||
        !keeps_layout(call, ndim))
      return std::nullopt;
    const int64_t channels = variant->channels;
    Attrs attrs = call.attrs;
    attrs.set("layout", blocked_name(ndim));
    if (attrs.contains("out_layout")) attrs.set("out_layout", "");
    return result(builder_.op(call.op->name, {variant->blocked}, attrs, name), channels);
  }

  /// A reduction over all spatial axes, kept: one value for each channel.
  std::optional<Value> spatial_reduction(const Call& call, const std::string& name) {
    const Variant* variant = blocked_variant(call.args[0]);
    const auto axes = call.attrs.ints("axis");
    if (!variant || !axes || !call.attrs.flag("keepdims")) return std::nullopt;
    const int64_t ndim = variant->ndim();
    std::vector<int64_t> positive, all;
    for (const int64_t axis : *axes) positive.push_back(axis < 0 ? axis + ndim : axis);
    std::sort(positive.begin(), positive.end());
    for (int64_t axis = 2; axis < ndim; ++axis) all.push_back(axis);
    if (positive != all) return std::nullopt;
    const int64_t channels = variant->channels;
    Attrs attrs = call.attrs;
    attrs.set("axis", positive);
    return result(builder_.op(call.op->name, {variant->blocked}, attrs, name), channels);
  }

  std::optional<Value> concat(const Call& call, const std::string& name) {
    const auto* tuple = call.args[0].as<Tuple>();
    if (!tuple || call.attrs.get<int64_t>("axis") != 1) return std::nullopt;
    std::vector<Value> parts;
    int64_t channels = 0;
    for (size_t i = 0; i < tuple->values.size(); ++i) {
      const Variant* variant = blocked_variant(tuple->values[i]);
      if (!variant) return std::nullopt;
      // Pad lanes between two operands would shift the channels behind them.
      if (variant->channels % lanes() != 0 && i + 1 != tuple->values.size()) return std::nullopt;
      parts.push_back(variant->blocked);
      channels += variant->channels;
    }
    return result(
        builder_.op("concat", {make<Tuple>(std::move(parts))}, {{"axis", int64_t{1}}}, name),
        channels);
  }

  /// [N, C, 1...] as [N, C] has the same order of elements blocked or not, where no lane is
  /// padding.
  std::optional<Value> flatten(const Call& call, const std::string& name) {
    const Variant* variant = blocked_variant(call.args[0]);
    if (!variant || variant->channels % lanes() != 0) return std::nullopt;
    const Ref<TensorType> type = tensor_type(variant->blocked);
    for (int64_t axis = 2; axis < variant->ndim(); ++axis)
      if (!is_int(type->dim(axis), 1)) return std::nullopt;
    std::vector<Value> args = call.args;
    args[0] = make<Var>("x", logical_type(call.args[0]));
    const Ref<TensorType> out = tensor_type(make<Call>(call.op, args, call.attrs));
    if (!out->has_shape()) return std::nullopt;
    return builder_.op("reshape", {variant->blocked, make<ShapeExpr>(*out->shape)}, {}, name);
  }

  bool stays_plain(const Call& call, const std::string& name) const {
    if (!options_.stays_plain || !options_.stays_plain(call)) return false;
    record({"ConvertLayout", name, "planar", "kernel-pattern", {}, "", call.origin});
    return true;
  }

  /// Whether elements of the result follow from those of operands at the same place, and of them alone.
  bool is_elementwise(const Call& call) const {
    if (!call.op->traits.broadcasts && call.op->fusion != FusionKind::kElementwise) return false;
    // Its type is that with planar operands: blocked ones need not fit beside others.
    std::vector<Value> args = call.args;
    for (Value& arg : args)
      if (arg.as<Var>() && blocked_variant(arg)) arg = make<Var>("x", logical_type(arg));
    return tensor_type(make<Call>(call.op, std::move(args), call.attrs, call.type_args))->dtype ==
           kFloat32;
  }

  /// Whether no lane of the blocked operands is padding, of which an operator may make what is not
  /// finite.
  bool without_pad_lanes(const Call& call) const {
    return std::all_of(call.args.begin(), call.args.end(), [&](const Value& arg) {
      const Variant* variant = arg ? blocked_variant(arg) : nullptr;
      return !variant || variant->channels % lanes() == 0;
    });
  }

  /// Element-wise: all operands are blocked, or broadcast along everything but the channels.
  std::optional<Value> elementwise(const Call& call, const std::string& name) {
    // Blocks of an axis are none of another layout's.
    if (call.attrs.get<int64_t>("block_size").value_or(0) != 0) return std::nullopt;
    int64_t channels = 0, ndim = 0;
    for (const Value& arg : call.args) {
      const Variant* variant = arg.as<Var>() ? blocked_variant(arg) : nullptr;
      if (!variant) continue;
      if (ndim != 0 && variant->ndim() != ndim) return std::nullopt;
      ndim = variant->ndim();
      channels = std::max(channels, variant->channels);
    }
    if (ndim == 0) return std::nullopt;
    std::vector<Value> args;
    for (const Value& arg : call.args) {
      if (arg.as<PrimValue>()) {
        args.push_back(arg);
        continue;
      }
      const Ref<TensorType> type = logical_type(arg);
      if (const Variant* variant = blocked_variant(arg)) {
        if (variant->channels != channels) return std::nullopt;
        args.push_back(variant->blocked);
        continue;
      }
      const auto blocked = operand(arg, type, channels, ndim);
      if (!blocked) return std::nullopt;
      args.push_back(*blocked);
    }
    return result(builder_.op(call.op->name, std::move(args), call.attrs, name), channels);
  }

  /// An operand that is not blocked, made to fit beside blocked ones of `channels` channels and `ndim`
  /// dimensions.
  std::optional<Value> operand(const Value& value, const Ref<TensorType>& type, int64_t channels,
                               int64_t ndim) {
    if (!type->has_shape() || (type->dtype != kFloat32 && !type->dtype.is_integer()) ||
        type->ndim > ndim)
      return std::nullopt;
    const auto shape = type->static_shape();
    int64_t elements = 0;
    if (shape) elements = checked_elements(*shape);
    if (elements == 1) {
      if (type->ndim == 0) return value;
      return builder_.op("reshape", {value, make<ShapeExpr>(std::vector<Expr>{})}, {}, "scalar");
    }
    if (type->ndim == ndim && as_int(type->dim(1)) == channels) return block(value);
    if (!shape || !value.as<Constant>()) return std::nullopt;
    // A constant vector of channels: [C, 1, 1].
    std::vector<int64_t> full(static_cast<size_t>(ndim) - shape->size(), 1);
    full.insert(full.end(), shape->begin(), shape->end());
    std::vector<int64_t> channel(full.size(), 1);
    channel[1] = channels;
    if (full != channel) return std::nullopt;
    const Value planar =
        builder_.op("reshape", {value, make<ShapeExpr>(to_exprs(full))}, {}, "channels");
    return builder_.op("layout_transform", {planar},
                       {{"src_layout", planar_name(ndim)}, {"dst_layout", blocked_name(ndim)}},
                       "channels");
  }

  BlockBuilder& builder_;
  const Target& target_;
  const LayoutOptions& options_;
  const bool is_fast_;
  std::unordered_map<const Node*, Variant> blocked_only_;  // by the variable that later uses name
  std::unordered_map<const Node*, Value> blocked_of_;      // of planar values
  std::unordered_map<const Node*, Value> shifted_of_;      // of values of 8 bits
  std::map<std::pair<const Node*, int64_t>, Value> digits_of_;  // of values in blocks
  std::vector<Value> kept_;                                     // keeps the keys alive
  std::vector<Branch> branches_;                                // that what comes next stands in
  std::vector<std::function<void()>> forgotten_;                // where they end
};

/// Every use of a blocked variable in a value, replaced by its planar variant.
class Planarizer final : public Rewriter {
 public:
  explicit Planarizer(Converter& converter) : converter_(converter) {}

 protected:
  NodePtr rewrite_use(const NodePtr& node) override {
    return node.as<Var>() ? NodePtr(converter_.planar(downcast<Var>(node))) : node;
  }

 private:
  Converter& converter_;
};

}  // namespace

IRModule convert_layout(IRModule module) { return convert_layout(std::move(module), {}); }

IRModule convert_layout(IRModule module, const LayoutOptions& options) {
  const Target target = target_of(module);
  const bool is_fast = tir::takes_fast_forms(module, target);
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, function] : entries) {
    const auto graph = cast<Function>(function);
    if (!graph || graph->attrs.flag("Primitive")) continue;
    // The converter lives as long as the function's builder; the rule is handed that builder with
    // its first binding.
    std::optional<Converter> converter;
    const BranchesOf branches(*graph->body);
    const BindingRule rule = [&](BlockBuilder& builder, const Binding& binding,
                                 const Value& value) -> std::optional<Value> {
      if (!converter) converter.emplace(builder, target, options, is_fast);
      converter->enter(branches(binding.var));
      const auto* call = value.as<Call>();
      if (call && call->op) {
        if (auto converted = converter->convert(*call, binding.var->name))
          return branches.stays_planar(binding.var) ? converter->planar(*converted) : *converted;
      }
      return Planarizer(*converter)(value);
    };
    module.set(name, rebuild(module, graph, rule));
  }
  return module;
}

}  // namespace tenon::graph
