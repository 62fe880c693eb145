// SPDX-License-Identifier: Apache-2.0
#include "generators.h"

#include "tenon/graph/shape.h"

namespace tenon::fuzz {

std::span<const GeneratorRow> generators() {
  static const std::vector<GeneratorRow> kRows = [] {
    std::vector<GeneratorRow> rows;
    for (auto family :
         {elementwise_generators, reduction_generators, shape_generators, index_generators,
          product_generators, window_generators, norm_generators, create_generators,
          recurrent_generators, select_generators, tree_generators, signal_generators})
      for (const GeneratorRow& row : family()) rows.push_back(row);
    return rows;
  }();
  return kRows;
}

std::span<const Excluded> without_generator() {
  static constexpr const char* kOnTexts = "texts: drawn in ONNX models (onnx_models.py)";
  static constexpr const char* kOfBytes = "what ConvertLayout makes of products of 8 bits";
  static constexpr const char* kOfDigits = "what ConvertLayout makes of nn.matmul_nbits";
  static constexpr Excluded kRows[] = {
      {"assert_op", "bounds of numbers: beside the rows"},
      {"call_dps_packed", "calls what is no operator"},
      {"call_inplace_packed", "calls what is no operator"},
      {"call_pure_packed", "calls what is no operator"},
      {"call_tir", "random PrimFuncs have a generator of their own"},
      {"call_tir_inplace", "random PrimFuncs have a generator of their own"},
      {"image.decode", "pictures: recorded cases, and random bytes in the tests of the runtime"},
      {"image.decode_size",
       "pictures: recorded cases, and random bytes in the tests of the runtime"},
      {"loop", "its body is drawn from all rows: beside them"},
      {"nn.conv2d_of_words", kOfBytes},
      {"nn.digits", kOfDigits},
      {"nn.matmul_nbits_of_digits", kOfDigits},
      {"nn.packed_matmul_of_words", kOfBytes},
      {"null_value", "an argument that is missing, which generators leave out"},
      {"pairwise_coupling", "ends when little moves, which a last digit decides"},
      {"print", "prints; the interpreter alone runs it"},
      {"shape_of", "the interpreter alone runs it"},
      {"signal.twiddle", "what `signal.dft` makes of its steps"},
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
      {"tensor_to_shape", "numbers that only the run knows: operands of many rows"},
      {"undefined", "the body of a declared function"},
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

static void add_operator(Draft& draft);

// Rows behind those of x, or before them.
static std::optional<Item> with_more_rows(Draft& draft, const Item& x) {
  Choices& c = draft.choices;
  std::vector<Expr> shape = *x.type->shape;
  shape[0] = int64(1 + c.below(3));
  const Item rows = draft.like(x.dtype(), shape);
  const bool first = c.chance(30);
  return draft.call("concat",
                    {make<graph::Tuple>(std::vector<graph::Value>{first ? rows.value : x.value,
                                                                  first ? x.value : rows.value})},
                    {{"axis", 0}}, Rounds::kNever);
}

// One to three states that run through some operators; beside them slices, and what is stacked.
static void add_loop(Draft& draft) {
  Choices& c = draft.choices;
  Draft::Loop loop;
  const int64_t count = c.of({2, 3, 1, 5, 0});
  loop.count = draft.number(count);
  loop.while_first = c.chance(30);
  if (loop.while_first) {
    loop.states.push_back(draft.fresh(kBool, std::vector<int64_t>{}));
    if (c.chance(30)) loop.count = int64(7);
  }
  const auto moderate = [](const Item& item) {
    return item.data->elements() <= 512 && item.magnitude() < 100;
  };
  for (uint32_t left = 1 + c.below(3); left > 0; --left)
    loop.states.push_back(
        draft.operand([&] { return draft.any_dtype(); }, 0, 3, moderate, {}, 256));
  loop.grows.resize(loop.states.size());
  if (c.chance(30)) {
    const auto fits = [&](const Item& item) { return item.ndim() > 0 && moderate(item); };
    const Item rows = draft.operand([&] { return draft.any_dtype(); }, 1, 3, fits, {}, 64);
    if (fits(rows)) {
      loop.states.push_back(rows);
      loop.grows.push_back(true);
    }
  }
  for (uint32_t left = c.below(3); left > 0 && as_int(loop.count).value_or(count) == count;
       --left) {
    std::vector<Expr> dims = {loop.count};
    for (const int64_t dim : draft.shape(c.below(3), 64)) dims.push_back(int64(dim));
    loop.slices.push_back(draft.like(draft.any_dtype(), dims));
    if (c.chance(30)) loop.reversed_inputs.push_back(static_cast<int64_t>(loop.slices.size() - 1));
  }
  for (int64_t k = 0; k < 2; ++k)
    if (c.chance(25) && !loop.while_first) loop.reversed_outputs.push_back(k);
  draft.loop(loop, [&](Draft::LoopBody& body) {
    const size_t before = draft.size();
    for (uint32_t left = c.below(4); left > 0; --left) add_operator(draft);
    for (size_t k = 0; k < body.states.size(); ++k) {
      const Item& state = body.states[k];
      if (k == 0 && loop.while_first) {
        // Another iteration while what is compared says so: exact, so that all agree.
        const auto known = draft.find([&](const Item& item) {
          return item.dtype().is_bool() && item.ndim() == 0 && item.exact;
        });
        body.next.push_back(known && c.chance(70) ? *known : state);
        continue;
      }
      if (loop.grows[k]) {
        const auto longer = with_more_rows(draft, state);
        if (!longer) return false;
        body.next.push_back(*longer);
        continue;
      }
      // Of the state, or of what the body made of this type.
      const auto made = draft.size() > before && c.chance(60) ? draft.find([&](const Item& item) {
        return item.dtype() == state.dtype() && item.magnitude() < 100 &&
               graph::shapes_agree(*item.type->shape, *state.type->shape) == graph::DimsAgree::kYes;
      })
                                                              : std::nullopt;
      const auto next = same_type(draft, made ? *made : state);
      if (!next) return false;
      body.next.push_back(*next);
    }
    for (uint32_t left = c.below(3); left > 0; --left)
      if (const auto item = draft.find(moderate); item && item->data->elements() <= 256)
        body.stacked.push_back(*item);
    return true;
  });
}

// The elements of a tensor that are not 0: as many as there are in this run.
static void add_selection(Draft& draft) {
  const Item x = draft.operand([&] { return draft.any_dtype(); }, 1, 3,
                               [](const Item& item) {
                                 return item.exact && item.ndim() > 0 && item.finite &&
                                        item.data->elements() > 0;
                               },
                               {}, 256);
  if (!x.exact || !x.finite) return;
  const auto is_there = x.dtype().is_bool()
                            ? std::optional(x)
                            : draft.call("astype", {x.value}, {{"dtype", kBool}}, Rounds::kNever);
  if (!is_there) return;
  const auto ones = draft.call("astype", {is_there->value}, {{"dtype", kInt64}}, Rounds::kNever);
  const auto count = ones ? draft.call("sum", {ones->value}, {}, Rounds::kNever) : std::nullopt;
  if (!count) return;
  const std::vector<Expr> numbers = draft.numbers_of(*count);
  draft.call("nonzero", {x.value, make<graph::ShapeExpr>(numbers)}, {}, Rounds::kNever);
}

static void add_operator(Draft& draft) {
  Choices& choices = draft.choices;
  constexpr size_t kDeepestLoop = 2;
  switch (choices.of({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4})) {
    case 1: return add_branch(draft);
    case 2:
      if (draft.loops_around() < kDeepestLoop) return add_loop(draft);
      break;
    case 3: return add_selection(draft);
    case 4: return add_quantised(draft);
    default: break;
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
