// SPDX-License-Identifier: Apache-2.0
// What is selected by data: places of elements that are not 0, distinct elements, boxes.
#include "generators.h"

namespace tenon::fuzz {

namespace {

// A wrong bit would be another selection.
bool selects_surely(const Item& item) { return item.exact && item.data->elements() > 0; }

void nonzero(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const auto fits = [](const Item& item) { return selects_surely(item) && item.ndim() > 0; };
  const Item x = draft.operand([&] { return draft.any_dtype(); }, 1, 3, fits, {}, 512);
  if (!fits(x)) return;
  const int64_t size = c.below(static_cast<uint32_t>(x.data->elements()) + 3);
  draft.call(op, {x.value, make<graph::ShapeExpr>(std::vector<Expr>{draft.number(size)})}, {},
             Rounds::kNever);
}

void unique(Draft& draft, std::string_view op) {
  const auto fits = [](const Item& item) {
    return selects_surely(item) && !item.dtype().is_bool() &&
           (item.ndim() == 1 || item.ndim() == 2);
  };
  const Item x = draft.operand([&] { return draft.number_dtype(); }, 1, 2, fits, {}, 512);
  if (!fits(x)) return;
  draft.calls(op, {x.value}, {{"sorted", draft.choices.chance(60)}}, Rounds::kNever);
}

void suppression(Draft& draft, std::string_view op) {
  Choices& c = draft.choices;
  const int64_t batch = 1 + c.below(2), classes = 1 + c.below(3), boxes = draft.extent(40);
  const Item places = draft.fresh(kFloat32, std::vector<int64_t>{batch, boxes, 4});
  const Item scores = draft.fresh(kFloat32, std::vector<int64_t>{batch, classes, boxes});
  if (!selects_surely(places) || !selects_surely(scores)) return;
  std::vector<graph::Value> args = {
      places.value, scores.value,
      c.chance(50) ? graph::Value(make<graph::PrimValue>(draft.number(c.below(8))))
                   : draft.fresh(kInt64, std::vector<int64_t>{}).value,
      draft.constant(kFloat32, {}, from_to(0, 1)).value};
  if (c.chance(70)) args.push_back(draft.fresh(kFloat32, std::vector<int64_t>{1}).value);
  draft.calls(op, args, {{"center_point_box", c.chance(50)}}, Rounds::kNever);
}

}  // namespace

std::vector<GeneratorRow> select_generators() {
  return {{"nonzero", nonzero, 1},
          {"unique_positions", unique, 1},
          {"vision.all_class_non_max_suppression", suppression, 1}};
}

}  // namespace tenon::fuzz
