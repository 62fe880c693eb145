// SPDX-License-Identifier: Apache-2.0
#include "generators.h"

namespace tenon::fuzz {

std::span<const GeneratorRow> generators() {
  static const std::vector<GeneratorRow> kRows = [] {
    std::vector<GeneratorRow> rows;
    for (auto family :
         {elementwise_generators, reduction_generators, shape_generators, index_generators,
          product_generators, window_generators, norm_generators, create_generators,
          recurrent_generators, select_generators, tree_generators})
      for (const GeneratorRow& row : family()) rows.push_back(row);
    return rows;
  }();
  return kRows;
}

std::span<const Excluded> without_generator() {
  static constexpr const char* kRecorded = "recorded cases (tests/onnx) alone, so far";
  static constexpr const char* kOnTexts = "calls a function of the runtime, which C programs lack";
  static constexpr const char* kOfBytes = "what ConvertLayout makes of products of 8 bits";
  static constexpr Excluded kRows[] = {
      {"assert_op", "stops the program"},
      {"bitcast", kRecorded},
      {"call_dps_packed", "calls what is no operator"},
      {"call_inplace_packed", "calls what is no operator"},
      {"call_pure_packed", "calls what is no operator"},
      {"call_tir", "random PrimFuncs have a generator of their own"},
      {"call_tir_inplace", "random PrimFuncs have a generator of their own"},
      {"center_crop_pad", kRecorded},
      {"image.affine_grid", kRecorded},
      {"image.decode", "pictures: recorded cases, and random bytes in the tests of the runtime"},
      {"image.decode_size",
       "pictures: recorded cases, and random bytes in the tests of the runtime"},
      {"image.grid_sample", kRecorded},
      {"image.resize", kRecorded},
      {"linalg.det", kRecorded},
      {"loop", "its body is a function, which generators do not draw"},
      {"nn.col2im", kRecorded},
      {"nn.conv2d_of_words", kOfBytes},
      {"nn.deformable_columns", kRecorded},
      {"nn.linear_attention", kRecorded},
      {"nn.matmul_nbits", kRecorded},
      {"nn.max_pool_positions", kRecorded},
      {"nn.packed_matmul_of_words", kOfBytes},
      {"null_value", "an argument that is missing, which generators leave out"},
      {"pairwise_coupling", "ends when little moves, which a last digit decides"},
      {"print", "prints; the interpreter alone runs it"},
      {"random.normal", kRecorded},
      {"random.uniform", kRecorded},
      {"shape_of", "the interpreter alone runs it"},
      {"signal.dft", kRecorded},
      {"signal.frame", kRecorded},
      {"signal.twiddle", kRecorded},
      {"string.concat", kOnTexts},
      {"string.find", kOnTexts},
      {"string.lower", kOnTexts},
      {"string.parse", kOnTexts},
      {"string.rank", kOnTexts},
      {"string.regex_full_match", kOnTexts},
      {"string.split", kOnTexts},
      {"string.split_counts", kOnTexts},
      {"string.to_text", kOnTexts},
      {"string.upper", kOnTexts},
      {"tensor_scatter", kRecorded},
      {"tensor_to_shape", "random networks draw no operands that only the run knows yet"},
      {"undefined", "the body of a declared function"},
      {"vision.roi_align", kRecorded},
      {"vision.roi_pool", kRecorded},
      {"words", kOfBytes},
  };
  return kRows;
}

// One to three operators that keep the type.
static std::optional<Item> same_type(Draft& draft, const Item& x) {
  Choices& c = draft.choices;
  std::optional<Item> y = x;
  for (uint32_t left = c.below(4); y && left > 0; --left) {
    const Item before = *y;
    if (x.dtype().is_bool()) {
      y = draft.call("logical_not", {before.value}, {}, Rounds::kNever);
    } else if (x.dtype().is_integer() || before.magnitude() > 50) {
      y = draft.call("maximum", {before.value, draft.like(x.dtype(), *x.type->shape).value}, {},
                     Rounds::kNever);
    } else {
      switch (c.below(5)) {
        case 0: y = draft.call("nn.relu", {before.value}, {}, Rounds::kNever); break;
        case 1:
          y = draft.call("add", {before.value, draft.like(x.dtype(), *x.type->shape).value}, {},
                         Rounds::kArithmetic);
          break;
        case 2: y = draft.call("tanh", {before.value}); break;
        case 3:
          y = draft.call("multiply", {before.value, before.value}, {}, Rounds::kArithmetic);
          break;
        default:
          if (before.ndim() == 0) break;
          y = draft.call("flip", {before.value}, {{"axis", -1}}, Rounds::kNever);
      }
    }
  }
  return y;
}

static void add_branch(Draft& draft) {
  const auto known =
      draft.find([](const Item& item) { return item.dtype().is_bool() && item.ndim() == 0; });
  const Item condition =
      known && draft.choices.chance(50) ? *known : draft.fresh(kBool, std::vector<int64_t>{});
  const Item x = draft.operand([&] { return draft.any_dtype(); }, 0, 4);
  draft.branch(condition, x, [&](const Item& item) { return same_type(draft, item); });
}

static void add_operator(Draft& draft) {
  Choices& choices = draft.choices;
  if (choices.chance(3)) {
    add_branch(draft);
    return;
  }
  static const std::vector<const GeneratorRow*> kDrawn = [] {
    std::vector<const GeneratorRow*> rows;
    for (const GeneratorRow& row : generators())
      for (int i = 0; i < row.weight; ++i) rows.push_back(&row);
    return rows;
  }();
  // What it proposes may be refused; the network then has an operator less.
  const GeneratorRow& row = *choices.of(kDrawn);
  row.generate(draft, row.op);
}

Network random_network(Choices& choices, std::map<std::string, Tally>* tally) {
  Draft draft(choices);
  // Each decides whether it is there, so that leaving it out leaves the others as they are.
  constexpr uint32_t kMostOperators = 12;
  choices.mark();
  add_operator(draft);
  for (uint32_t left = kMostOperators; left > 1; --left) {
    choices.mark();
    if (choices.below(left) == 0) break;
    add_operator(draft);
  }
  choices.mark();
  if (draft.size() == 0)
    draft.call("nn.relu", {draft.fresh(kFloat32, std::vector<int64_t>{1}).value});
  if (tally)
    for (const auto& [op, counts] : draft.tally()) {
      Tally& sum = (*tally)[op];
      sum.made += counts.made;
      sum.refused += counts.refused;
      sum.wild += counts.wild;
      for (const auto& [reason, times] : counts.reasons) sum.reasons[reason] += times;
    }
  return draft.finish();
}

}  // namespace tenon::fuzz
