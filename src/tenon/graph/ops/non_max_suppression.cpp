// SPDX-License-Identifier: Apache-2.0
// Boxes in the order of their scores, without those that overlap one before them. The boxes of a
// class lie in a heap, so that only those are put in order that are looked at before enough are
// chosen; a chosen one takes a place at the heap's end, which has become free.
//
// A box is compared with the chosen ones that may reach it: these lie in buckets by their least x, each
// bucket with the greatest x of its own boxes and of all buckets before it. Boxes of classes that a
// network has moved apart, to suppress them all at once, are hardly compared with one another.
#include "tenon/graph/ops/non_max_suppression.h"

#include <algorithm>

#include "tenon/graph/ops/merge_sort.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

enum Input : size_t { kBoxes, kScores, kMost, kOverlap, kLeastScore };

struct SuppressionAttrs {
  std::string output_format = "onnx";
  bool center_point_box = false;
  static auto table() {
    return std::tuple{attr<&SuppressionAttrs::output_format>("output_format", "\"onnx\""),
                      attr<&SuppressionAttrs::center_point_box>(
                          "center_point_box",
                          "boxes are x, y of the centre, width and height, not two corners y, x")};
  }
};

// The most boxes of one class, where a scalar says it; a tensor is read by the kernel.
Expr most_chosen(const Call& call, const Expr& boxes) {
  const Value& most = call.args.at(kMost);
  if (most.as<PrimValue>())
    return simplify_dim(min(max(tenon::cast(kInt64, scalar_arg(call, kMost)), int64(0)), boxes));
  return boxes;
}

// Buckets of the chosen boxes of a class: few where there are few boxes.
int64_t buckets_for(const Expr& boxes) {
  constexpr int64_t kMostBuckets = 256, kBoxesToABucket = 16;
  const auto count = as_int(boxes);
  return count ? std::clamp<int64_t>(*count / kBoxesToABucket, 1, kMostBuckets) : kMostBuckets;
}

Type infer(const Call& call) {
  const auto attrs = attrs_as<SuppressionAttrs>(call);
  check_choice(call, "output_format", attrs.output_format, {"onnx"});
  const Ref<TensorType> boxes = tensor_arg(call, kBoxes), scores = tensor_arg(call, kScores);
  check_rank(call, kBoxes, 3);
  check_rank(call, kScores, 3);
  check_float(call, kBoxes);
  check_float(call, kScores);
  const Type count = make<TensorType>(Shape{int64(1)}, kInt64);
  if (!boxes->shape || !scores->shape)
    return make<TupleType>(std::vector<Type>{make<TensorType>(kInt64, 2), count});
  check_dim(call, kBoxes, boxes->dim(2), int64(4), "dimension 2");
  check_dim(call, kScores, scores->dim(0), boxes->dim(0), "dimension 0");
  check_dim(call, kScores, scores->dim(2), boxes->dim(1), "dimension 2");
  const Expr rows =
      simplify_dim(scores->dim(0) * scores->dim(1) * most_chosen(call, boxes->dim(1)));
  return make<TupleType>(std::vector<Type>{make<TensorType>(Shape{rows, int64(3)}, kInt64), count});
}

class Suppression {
 public:
  Suppression(KernelOf& kernel, const Call& call)
      : kernel_(kernel),
        centred_(attrs_as<SuppressionAttrs>(call).center_point_box),
        boxes_(kernel.wide_arg(kBoxes)),
        scores_(kernel.arg(kScores)),
        overlap_(scalar(kOverlap)),
        batches_(scores_.shape[0]),
        classes_(scores_.shape[1]),
        extent_(boxes_.shape[1]),
        buckets_(buckets_for(extent_)) {
    most_ = call.args.at(kMost).as<PrimValue>() ? tenon::cast(kInt64, scalar_arg(call, kMost))
                                                : tenon::cast(kInt64, scalar(kMost));
    if (present(call, kLeastScore)) least_score_ = scalar(kLeastScore);
    heap_ = kernel.allocate("heap", {batches_, classes_, extent_}, kInt32);
    state_ = kernel.allocate("state", {batches_, classes_, int64(kStates)}, kInt64);
    chosen_ = kernel.allocate("chosen", {batches_, classes_}, kInt64);
    total_ = kernel.allocate("total", {batches_, classes_}, kInt64);
    next_ = kernel.allocate("next", {batches_, classes_, extent_}, kInt32);
    first_ = kernel.allocate("first", {batches_, classes_, int64(buckets_)}, kInt32);
    reach_ = kernel.allocate("reach", {batches_, classes_, int64(buckets_)}, boxes_.dtype);
    range_ = kernel.allocate("range", {batches_, classes_, int64(2)}, boxes_.dtype);
  }

  Value emit() {
    const auto axes = tir::KernelBuilder::axes({batches_, classes_});
    at_ = tir::KernelBuilder::indices(axes);
    const auto valid = [&](const Expr& holds, const char* what) {
      kernel_.append(
          make<tir::Assert>(holds, fmt::format("{}: {}", name_for_messages(kernel_.call()), what)));
    };
    const char* bounds = "`iou_threshold` is not in [0, 1]";
    if (const auto known = as_float(overlap_); !known)
      valid(
          logical_and(overlap_ >= imm(overlap_->dtype, 0.0), overlap_ <= imm(overlap_->dtype, 1.0)),
          bounds);
    else if (!(*known >= 0 && *known <= 1))
      throw CompileError(kBadArgument, kernel_.call().origin, "{}: {}",
                         name_for_messages(kernel_.call()), bounds);
    if (!as_int(extent_)) valid(extent_ < int64(int64_t{1} << 31), "more than 2^31 boxes");
    Statements body;
    fill(body);
    choose(body);
    kernel_.append(tir::define("choose", axes, {}, std::move(body).all()));
    return collect();
  }

 private:
  enum State : int64_t { kSize, kAt, kOther, kIsKept, kBucket, kStates };

  // A box along the axes y and x.
  struct Box {
    Expr least[2], most[2], area;
  };

  Expr scalar(size_t i) {
    const Operand operand = kernel_.arg(i);
    return operand(Indices(operand.ndim(), int64(0)));
  }
  Indices state_at(State which) const { return {at_[0], at_[1], int64(which)}; }
  Expr state(State which) const { return state_(state_at(which)); }
  void set(Statements& body, State which, const Expr& value) const {
    body.store(state_, state_at(which), value);
  }
  Expr heap(const Expr& i) const { return tenon::cast(kInt64, heap_({at_[0], at_[1], i})); }
  void set_heap(Statements& body, const Expr& i, const Expr& box) const {
    body.store(heap_, {at_[0], at_[1], i}, tenon::cast(kInt32, box));
  }
  Expr score(const Expr& box) const { return scores_({at_[0], at_[1], box}); }

  // Of equal scores the first.
  Expr is_before(const Expr& a, const Expr& b) const {
    return logical_or(is_less(score(b), score(a)),
                      logical_and(tenon::logical_not(is_less(score(a), score(b))), a < b));
  }

  // The heap of the boxes that count.
  void fill(Statements& body) {
    set(body, kSize, int64(0));
    body.store(range_, of_class(int64(0)), tir::greatest_value(boxes_.dtype));
    body.store(range_, of_class(int64(1)), tir::least_value(boxes_.dtype));
    body.loop("i", extent_, [&](Statements& inner, const Expr& i) {
      const auto add = [&](Statements& to) {
        set_heap(to, state(kSize), i);
        set(to, kSize, state(kSize) + 1);
        const Expr x = box_at(to, i).least[1];
        to.store(range_, of_class(int64(0)), min(range_(of_class(int64(0))), x));
        to.store(range_, of_class(int64(1)), max(range_(of_class(int64(1))), x));
      };
      if (least_score_)
        inner.when(score(i) > tenon::cast(scores_.dtype, least_score_), add);
      else
        add(inner);
    });
    const Expr half = body.bind("half", floordiv(state(kSize), 2));
    body.loop("node", half, [&](Statements& inner, const Expr& i) { sink(inner, half - 1 - i); });
  }

  // Moves what lies at `start` down to where nothing below is before it.
  void sink(Statements& body, const Expr& start) {
    set(body, kAt, start);
    body.loop_while(state(kAt) * 2 + 1 < state(kSize), [&](Statements& inner) {
      const Expr at = inner.bind("at", state(kAt));
      const Expr left = inner.bind("left", at * 2 + 1);
      const Expr right = inner.bind("right", min(left + 1, state(kSize) - 1));
      const Expr l = inner.bind("left_box", heap(left)), r = inner.bind("right_box", heap(right));
      const Expr takes_right = inner.bind("takes_right", is_before(r, l));
      const Expr child = inner.bind("child", select(takes_right, right, left));
      const Expr box = inner.bind("box", heap(at));
      const Expr other = inner.bind("other", select(takes_right, r, l));
      inner.when(
          is_before(other, box),
          [&](Statements& swaps) {
            set_heap(swaps, at, other);
            set_heap(swaps, child, box);
            set(swaps, kAt, child);
          },
          [&](Statements& ends) { set(ends, kAt, state(kSize)); });
    });
  }

  void choose(Statements& body) {
    body.store(total_, at_, state(kSize));
    const Expr total = body.bind("last", total_(at_));
    const auto place = [&](const Expr& i) { return total - 1 - i; };
    const Expr chosen = chosen_(at_);
    body.store(chosen_, at_, int64(0));
    body.loop("bucket", int64(buckets_), [&](Statements& inner, const Expr& i) {
      inner.store(first_, of_class(i), imm(kInt32, int64_t{-1}));
      inner.store(reach_, of_class(i), tir::least_value(boxes_.dtype));
    });
    body.loop_while(logical_and(state(kSize) > int64(0), chosen < most_), [&](Statements& inner) {
      const Expr top = inner.bind("top", heap(int64(0)));
      set(inner, kSize, state(kSize) - 1);
      set_heap(inner, int64(0), heap(state(kSize)));
      sink(inner, int64(0));
      const Box mine = box_at(inner, top);
      set(inner, kIsKept, int64(1));
      compare(inner, mine);
      inner.when(eq(state(kIsKept), int64(1)), [&](Statements& keeps) {
        set_heap(keeps, place(chosen), top);
        keeps.store(chosen_, at_, chosen + 1);
        // A box without a place overlaps none.
        keeps.when(mine.least[1] <= mine.most[1],
                   [&](Statements& places) { put(places, mine, top); });
      });
    });
  }

  Indices of_class(const Expr& i) const { return {at_[0], at_[1], i}; }

  // The bucket of a place along x: of a greater one none before it, however it is rounded.
  Expr bucket_of(Statements& body, const Expr& x) const {
    const DType dtype = boxes_.dtype;
    const Expr zero = imm(dtype, 0.0), first = range_(of_class(int64(0)));
    const Expr extent = body.bind("extent", range_(of_class(int64(1))) - first);
    const Expr is_finite = logical_and(extent > zero, extent < tir::greatest_value(dtype));
    const Expr count = imm(dtype, static_cast<double>(buckets_));
    const Expr place = body.bind("place", select(is_finite, (x - first) * (count / extent), zero));
    return body.bind(
        "bucket",
        tenon::cast(kInt64, select(place > zero, min(place, count - imm(dtype, 1.0)), zero)));
  }

  // Whether a chosen box overlaps this one: from the last bucket where one may begin that does, to the
  // first behind which all end in front of it.
  void compare(Statements& body, const Box& mine) const {
    const auto bucket = [&] { return max(int64(0), min(state(kBucket), int64(buckets_ - 1))); };
    set(body, kBucket, bucket_of(body, mine.most[1]));
    const Expr reaches = reach_(of_class(bucket())) > mine.least[1];
    const Expr is_kept = eq(state(kIsKept), int64(1));
    body.loop_while(
        logical_and(is_kept, logical_and(state(kBucket) >= int64(0), reaches)),
        [&](Statements& buckets) {
          set(buckets, kOther, tenon::cast(kInt64, first_(of_class(bucket()))));
          buckets.loop_while(
              logical_and(is_kept, state(kOther) >= int64(0)), [&](Statements& compares) {
                const Expr other =
                    compares.bind("other", max(int64(0), min(state(kOther), extent_ - 1)));
                where_overlapping(compares, mine, box_at(compares, other),
                                  [&](Statements& drops) { set(drops, kIsKept, int64(0)); });
                set(compares, kOther, tenon::cast(kInt64, next_(of_class(other))));
              });
          set(buckets, kBucket, state(kBucket) - 1);
        });
  }

  // A chosen box comes first in its bucket.
  void put(Statements& body, const Box& mine, const Expr& index) const {
    const Expr bucket = bucket_of(body, mine.least[1]);
    const Expr box = body.bind("box", max(int64(0), min(index, extent_ - 1)));
    body.store(next_, of_class(box), first_(of_class(bucket)));
    body.store(first_, of_class(bucket), tenon::cast(kInt32, box));
    set(body, kBucket, bucket);
    const Expr at = max(int64(0), min(state(kBucket), int64(buckets_ - 1)));
    body.loop_while(
        logical_and(state(kBucket) < int64(buckets_), reach_(of_class(at)) < mine.most[1]),
        [&](Statements& inner) {
          inner.store(reach_, of_class(at), mine.most[1]);
          set(inner, kBucket, state(kBucket) + 1);
        });
  }

  Box box_at(Statements& body, const Expr& index) const {
    const auto part = [&](int64_t i) { return boxes_({at_[0], index, int64(i)}); };
    Box box;
    for (const int64_t axis : {0, 1}) {
      if (centred_) {
        const Expr half = body.bind("half", part(3 - axis) / imm(boxes_.dtype, 2.0));
        box.least[axis] = body.bind("least", part(1 - axis) - half);
        box.most[axis] = body.bind("most", part(1 - axis) + half);
      } else {
        box.least[axis] = body.bind("least", min(part(axis), part(axis + 2)));
        box.most[axis] = body.bind("most", max(part(axis), part(axis + 2)));
      }
    }
    box.area = body.bind("area", (box.most[0] - box.least[0]) * (box.most[1] - box.least[1]));
    return box;
  }

  // Runs `then` where the boxes have too much in common; most have nothing, which is seen first.
  void where_overlapping(Statements& body, const Box& a, const Box& b,
                         const std::function<void(Statements&)>& then) const {
    const Expr zero = imm(boxes_.dtype, 0.0);
    const auto common = [&](Statements& to, size_t axis) {
      return to.bind("common", min(a.most[axis], b.most[axis]) - max(a.least[axis], b.least[axis]));
    };
    const Expr rows = common(body, 0), columns = common(body, 1);
    body.when(logical_and(rows > zero, columns > zero), [&](Statements& meets) {
      const Expr both = meets.bind("both", rows * columns);
      const Expr all = meets.bind("all", a.area + b.area - both);
      Expr valid = boolean(true);
      for (const Expr& area : {both, a.area, b.area, all}) valid = logical_and(valid, area > zero);
      meets.when(logical_and(valid, both / all > tenon::cast(boxes_.dtype, overlap_)), then);
    });
  }

  // The rows of all classes, one behind the other.
  Value collect() {
    const Operand rows = kernel_.allocate(kernel_.out_name(), kernel_.shape(0), kInt64);
    const Operand count = kernel_.allocate("count", {int64(1)}, kInt64);
    const Expr row = count({int64(0)});
    Statements body;
    body.store(count, {int64(0)}, int64(0));
    if (is_int(rows.shape[0], 0)) {
      kernel_.append(tir::define("collect", {}, {}, std::move(body).all()));
      return kernel_.emit({rows, count});
    }
    body.loop("b", batches_, [&](Statements& of_batch, const Expr& b) {
      of_batch.loop("c", classes_, [&](Statements& of_class, const Expr& c) {
        const Expr total = of_class.bind("last", total_({b, c}));
        of_class.loop("j", chosen_({b, c}), [&](Statements& inner, const Expr& j) {
          inner.store(rows, {row, int64(0)}, b);
          inner.store(rows, {row, int64(1)}, c);
          inner.store(rows, {row, int64(2)}, tenon::cast(kInt64, heap_({b, c, total - 1 - j})));
          inner.store(count, {int64(0)}, row + 1);
        });
      });
    });
    body.loop("rest", rows.shape[0] - row, [&](Statements& inner, const Expr& j) {
      for (int64_t k = 0; k < 3; ++k)
        inner.store(rows, {rows.shape[0] - 1 - j, int64(k)}, int64(0));
    });
    kernel_.append(tir::define("collect", {}, {}, std::move(body).all()));
    return kernel_.emit({rows, count});
  }

  KernelOf& kernel_;
  bool centred_;
  Operand boxes_, scores_, heap_, state_, chosen_, total_;
  Operand next_, first_, reach_,
      range_;  // lists of chosen boxes, their heads, and ranges of places
  Expr overlap_, most_, least_score_, batches_, classes_, extent_;
  int64_t buckets_;
  Indices at_;
};

}  // namespace

OpDef all_class_non_max_suppression() {
  OpDef op;
  op.name = "vision.all_class_non_max_suppression";
  op.summary =
      "Boxes that overlap no other box of a higher score in their class too much: rows of batch, "
      "class and box, highest scores of a class first, 0 behind the last; and their number. A "
      "tuple.";
  op.inputs = {{"boxes", "(batch, boxes, 4)"},
               {"scores", "(batch, classes, boxes)"},
               {"max_output_boxes_per_class", "a scalar or one element: how many of a class"},
               {"iou_threshold", "one element: the most that is common to two boxes, of both"},
               {"score_threshold", "one element: only higher scores count", true}};
  op.attrs = attrs_of<SuppressionAttrs>();
  op.infer_type = infer;
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    return Suppression(kernel, call).emit();
  };
  op.onnx = {"NonMaxSuppression", {}};
  op.source = "ONNX NonMaxSuppression-11";
  return op;
}

}  // namespace tenon::graph
