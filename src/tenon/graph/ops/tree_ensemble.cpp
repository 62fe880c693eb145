// SPDX-License-Identifier: Apache-2.0
// Decision trees and tables of keys: a search that reads a few rows of constant tables.
#include <algorithm>

#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

// ---- tree_ensemble ------------------------------------------------------------------------------

enum Input : size_t {
  kX,
  kFeatures,
  kSplits,
  kChildren,
  kRoots,
  kTargets,
  kWeights,
  kOffsets,
  kModes
};

// How a node compares; the table of modes has these numbers, plus kMissing where a NaN goes the way
// of a comparison that holds.
constexpr std::string_view kComparisons[] = {"<=", "<", ">=", ">", "==", "!="};
constexpr int64_t kMissing = 8;

struct TreeEnsembleAttrs {
  int64_t n_targets = 1;
  std::string mode = "<=", aggregate = "sum";
  bool missing_tracks_true = false;
  static auto table() {
    return std::tuple{
        required<&TreeEnsembleAttrs::n_targets>("n_targets", "columns of the result"),
        attr<&TreeEnsembleAttrs::mode>(
            "mode",
            "how all nodes compare, where there is no table of modes: \"<=\", \"<\", "
            "\">=\", \">\", \"==\" or \"!=\""),
        attr<&TreeEnsembleAttrs::aggregate>("aggregate",
                                            "of the weights of a target: \"sum\", \"min\" or "
                                            "\"max\"; 0 where there are none"),
        attr<&TreeEnsembleAttrs::missing_tracks_true>(
            "missing_tracks_true", "NaN goes where the comparison holds (without table of modes)")};
  }
};

int64_t comparison_of(const Call& call, const std::string& mode) {
  const auto* const at = std::ranges::find(kComparisons, mode);
  if (at == std::end(kComparisons))
    throw CompileError(kBadAttribute, call.origin,
                       "attribute `mode` of `tree_ensemble` is \"{}\"; expected \"<=\", \"<\", "
                       "\">=\", \">\", \"==\" or \"!=\"",
                       mode);
  return at - kComparisons;
}

Expr compare(int64_t how, const Expr& x, const Expr& split) {
  switch (how) {
    case 0: return x <= split;
    case 1: return x < split;
    case 2: return x >= split;
    case 3: return x > split;
    case 4: return eq(x, split);
    default: return ne(x, split);
  }
}

// Tables that are constants are checked here, others by the kernel: what it reads lies in its tables,
// and each walk comes to a leaf, since a child stands behind its parent.
class TableChecks {
 public:
  TableChecks(KernelOf& kernel) : kernel_(kernel) {}

  /// Every element lies in [first, end); both may depend on the place of the element.
  void within(size_t i, const std::function<Expr(const Indices&)>& first, const Expr& end) {
    const Call& call = kernel_.call();
    const auto last = as_int(end);
    if (const auto values = constant_ints(call.args[i]); values && last) {
      const int64_t columns = i == kChildren ? 2 : 1;
      for (size_t k = 0; k < values->size(); ++k) {
        const int64_t row = static_cast<int64_t>(k) / columns;
        const int64_t least = as_int(simplify_dim(first({int64(row)}))).value_or(0);
        if ((*values)[k] < least || (*values)[k] >= *last)
          throw CompileError(kOutOfBounds, call.origin,
                             "row {} of argument `{}` of `tree_ensemble` has {}; expected {} to {}",
                             row, input_name(call, i), (*values)[k], least, *last - 1);
      }
      return;
    }
    const Operand table = kernel_.buffer_arg(i);
    const auto axes = tir::KernelBuilder::axes(table.shape);
    const Indices at = tir::KernelBuilder::indices(axes);
    const Expr value = tenon::cast(kInt64, table(at));
    kernel_.append(tir::define(
        "check_" + input_name(call, i), axes, {},
        make<tir::Assert>(logical_and(value >= first(at), value < end),
                          fmt::format("`tree_ensemble`: an element of `{}` is out of range",
                                      input_name(call, i)))));
  }

 private:
  KernelOf& kernel_;
};

Type infer_tree_ensemble(const Call& call) {
  const auto attrs = attrs_as<TreeEnsembleAttrs>(call);
  const Ref<TensorType> x = tensor_arg(call, kX), weights = tensor_arg(call, kWeights);
  check_rank(call, kX, 2);
  (void)comparison_of(call, attrs.mode);
  if (attrs.aggregate != "sum" && attrs.aggregate != "min" && attrs.aggregate != "max")
    throw CompileError(kBadAttribute, call.origin,
                       "attribute `aggregate` of `tree_ensemble` is \"{}\"; expected \"sum\", "
                       "\"min\" or \"max\"",
                       attrs.aggregate);
  if (attrs.n_targets < 1)
    throw CompileError(kBadAttribute, call.origin,
                       "`tree_ensemble` has n_targets {}; expected at least 1", attrs.n_targets);
  check_float(call, kWeights);
  if (!x->dtype.is_void()) check_dtype(call, kSplits, x->dtype);
  for (const size_t i :
       {size_t{kFeatures}, size_t{kSplits}, size_t{kRoots}, size_t{kTargets}, size_t{kWeights}})
    check_rank(call, i, 1);
  check_rank(call, kChildren, 2);
  const Ref<TensorType> features = tensor_arg(call, kFeatures);
  if (features->shape) {
    const Ref<TensorType> children = tensor_arg(call, kChildren),
                          splits = tensor_arg(call, kSplits);
    if (splits->shape) check_dim(call, kSplits, splits->dim(0), features->dim(0), "dimension 0");
    if (children->shape) {
      check_dim(call, kChildren, children->dim(0), features->dim(0), "dimension 0");
      check_dim(call, kChildren, children->dim(1), int64(2), "dimension 1");
    }
  }
  const Ref<TensorType> targets = tensor_arg(call, kTargets);
  if (targets->shape && weights->shape)
    check_dim(call, kTargets, targets->dim(0), weights->dim(0), "dimension 0");
  if (!x->shape) return make<TensorType>(weights->dtype, 2);
  return make<TensorType>(Shape{x->dim(0), int64(attrs.n_targets)}, weights->dtype);
}

// The tables as operands of the kernel.
struct Tables {
  Operand x, features, splits, children, roots, targets, weights, offsets, modes;
};

// Whether the walk takes the second child of `node`.
Expr goes_on(const Tables& t, const TreeEnsembleAttrs& attrs, int64_t how, const Expr& row,
             const Expr& node) {
  const Expr x = t.x({row, tenon::cast(kInt64, t.features({node}))}), split = t.splits({node});
  const bool may_miss = x->dtype.is_float();
  const auto missing = [&]() { return ne(x, x); };
  if (!t.modes) {
    const Expr holds = compare(how, x, split);
    return attrs.missing_tracks_true && may_miss ? logical_or(holds, missing()) : holds;
  }
  const Expr mode = tenon::cast(kInt32, t.modes({node}));
  const Expr kind = floormod(mode, int32(static_cast<int32_t>(kMissing)));
  Expr holds = compare(5, x, split);
  for (int64_t m = 4; m >= 0; --m)
    holds = select(eq(kind, int32(static_cast<int32_t>(m))), compare(m, x, split), holds);
  if (!may_miss) return holds;
  return logical_or(holds, logical_and(mode >= int32(static_cast<int32_t>(kMissing)), missing()));
}

// How many steps the longest way from a root to a leaf has, where the tables are constants whose
// longest ways are no more than three times as long as those to their leaves on average.
std::optional<int64_t> even_depth(const Call& call, int64_t nodes) {
  const auto children = constant_ints(call.args[kChildren]),
             roots = constant_ints(call.args[kRoots]);
  if (!children || !roots) return std::nullopt;
  // A child stands behind its parent.
  std::vector<int64_t> depth(static_cast<size_t>(nodes));
  std::vector<bool> is_reached(static_cast<size_t>(nodes));
  int64_t most = 0, leaves = 0;
  double total = 0;
  const auto reach = [&](int64_t place, int64_t steps) {
    if (place < nodes) {
      depth[static_cast<size_t>(place)] = std::max(depth[static_cast<size_t>(place)], steps);
      is_reached[static_cast<size_t>(place)] = true;
      return;
    }
    most = std::max(most, steps);
    total += static_cast<double>(steps);
    ++leaves;
  };
  for (const int64_t root : *roots) reach(root, 0);
  for (int64_t node = 0; node < nodes; ++node)
    for (size_t way = 0; is_reached[static_cast<size_t>(node)] && way < 2; ++way)
      reach((*children)[2 * static_cast<size_t>(node) + way], depth[static_cast<size_t>(node)] + 1);
  if (static_cast<double>(most) * static_cast<double>(leaves) > 3 * total) return std::nullopt;
  return most;
}

// How many trees are walked side by side: a divisor of their number where one suits.
int64_t trees_abreast(int64_t trees) {
  constexpr int64_t kLeast = 8, kMost = 24, kOtherwise = 16;
  if (trees <= kMost) return trees;
  for (int64_t n = kMost; n >= kLeast; --n)
    if (trees % n == 0) return n;
  return kOtherwise;
}

// The kernel: a row is a block, which walks the trees and adds up the weights of the leaves that it
// comes to, in their order.
class Ensemble {
 public:
  Ensemble(KernelOf& kernel, const Tables& tables, const TreeEnsembleAttrs& attrs)
      : kernel_(kernel),
        t_(tables),
        attrs_(attrs),
        dtype_(tables.weights.dtype),
        how_(comparison_of(kernel.call(), attrs.mode)),
        nodes_(tables.features.shape[0]),
        axes_(tir::KernelBuilder::axes({tables.x.shape[0]})),
        row_(axes_[0].var) {}

  Value run() {
    const auto nodes = as_int(nodes_), trees = as_int(t_.roots.shape[0]);
    const auto depth = nodes && trees ? even_depth(kernel_.call(), *nodes) : std::nullopt;
    out_ = kernel_.allocate(kernel_.out_name(), kernel_.shape(), dtype_);
    // One tree is a chain of loads, each of which waits for the one before.
    constexpr int64_t kFewTrees = 4;
    const tir::Stmt walks =
        depth && *nodes > 0 && *trees >= kFewTrees ? abreast(*trees, *depth) : one_by_one();
    std::vector<tir::Stmt> body = {each_target([&](const Expr&) { return none(); }), walks};
    if (!sums())
      body.push_back(each_target(
          [&](const Expr& c) { return select(eq(total(c), none()), imm(dtype_, 0.0), total(c)); }));
    kernel_.append(tir::define(kernel_.name(), axes_, {}, tir::seq(std::move(body))));
    return kernel_.emit({out_});
  }

 private:
  bool sums() const { return attrs_.aggregate == "sum"; }
  Expr none() const {
    if (sums()) return imm(dtype_, 0.0);
    return attrs_.aggregate == "min" ? tir::greatest_value(dtype_) : tir::least_value(dtype_);
  }
  Expr total(const Expr& target) const { return out_({row_, target}); }

  template <typename Body>
  static tir::Stmt loop(const char* name, const Expr& extent, const Body& body) {
    const auto var = make<tenon::Var>(name, kInt64);
    return make<tir::For>(var, int64(0), extent, tir::ForKind::kSerial, body(Expr(var)));
  }
  template <typename ValueOf>
  tir::Stmt each_target(const ValueOf& value) const {
    return loop("c", int64(attrs_.n_targets), [&](const Expr& c) {
      return make<tir::BufferStore>(out_.buffer, value(c), Indices{row_, c});
    });
  }

  tir::Stmt add(const Expr& k) const {
    const Expr target = tenon::cast(kInt64, t_.targets({k}));
    const Expr old = total(target), weight = t_.weights({k});
    return make<tir::BufferStore>(out_.buffer,
                                  sums()                      ? old + weight
                                  : attrs_.aggregate == "min" ? min(old, weight)
                                                              : max(old, weight),
                                  Indices{row_, target});
  }
  tir::Stmt votes(const Expr& leaf) const {
    if (!t_.offsets) return add(leaf);
    const Expr first = tenon::cast(kInt64, t_.offsets({leaf}));
    const Expr count = tenon::cast(kInt64, t_.offsets({leaf + 1})) - first;
    return loop("k", count, [&](const Expr& k) { return add(first + k); });
  }
  Expr child(const Expr& node) const {
    const Expr way = tenon::cast(kInt64, goes_on(t_, attrs_, how_, row_, node));
    return tenon::cast(kInt32, t_.children({node, way}));
  }

  tir::Stmt one_by_one() {
    const Operand place = kernel_.allocate("place", {t_.x.shape[0]}, kInt32);
    const Expr at = tenon::cast(kInt64, place({row_}));
    const auto go_to = [&](const Expr& node) {
      return make<tir::BufferStore>(place.buffer, tenon::cast(kInt32, node), Indices{row_});
    };
    return loop("tree", t_.roots.shape[0], [&](const Expr& which) {
      std::vector<tir::Stmt> body = {go_to(t_.roots({which}))};
      if (!is_int(nodes_, 0)) body.push_back(make<tir::While>(at < nodes_, go_to(child(at))));
      body.push_back(votes(at - nodes_));
      return tir::seq(std::move(body));
    });
  }

  // All trees of a group take a step before any takes the next: their loads wait side by side. At a
  // leaf a walk stays where it is.
  tir::Stmt abreast(int64_t trees, int64_t depth) {
    const int64_t width = trees_abreast(trees);
    const Operand places = kernel_.allocate("places", {t_.x.shape[0], int64(width)}, kInt32);
    return loop("group", int64((trees + width - 1) / width), [&](const Expr& group) {
      const Expr first = group * int64(width);
      const Expr count =
          trees % width == 0 ? Expr(int64(width)) : min(int64(width), int64(trees) - first);
      const auto go_to = [&](const Expr& tree, const Expr& node) {
        return make<tir::BufferStore>(places.buffer, tenon::cast(kInt32, node),
                                      Indices{row_, tree});
      };
      const auto step = [&](const Expr& tree) {
        const Expr place = places({row_, tree}), at = tenon::cast(kInt64, place);
        return go_to(tree, select(at < nodes_, child(min(at, nodes_ - 1)), place));
      };
      return tir::seq(
          {loop("tree", count, [&](const Expr& t) { return go_to(t, t_.roots({first + t})); }),
           loop("step", int64(depth), [&](const Expr&) { return loop("tree", count, step); }),
           loop("tree", count, [&](const Expr& tree) {
             return votes(tenon::cast(kInt64, places({row_, tree})) - nodes_);
           })});
    });
  }

  KernelOf& kernel_;
  const Tables& t_;
  const TreeEnsembleAttrs& attrs_;
  DType dtype_;
  int64_t how_;
  Expr nodes_;
  std::vector<tir::Axis> axes_;
  Expr row_;
  Operand out_;
};

Value lower_tree_ensemble(BlockBuilder& builder, const Call& call) {
  const auto attrs = attrs_as<TreeEnsembleAttrs>(call);
  KernelOf kernel(builder, call);
  const auto arg = [&](size_t i) {
    return arg_or_null(call, i) ? kernel.buffer_arg(i) : Operand();
  };
  const Tables t{arg(kX),       arg(kFeatures), arg(kSplits),  arg(kChildren), arg(kRoots),
                 arg(kTargets), arg(kWeights),  arg(kOffsets), arg(kModes)};
  const Expr nodes = t.features.shape[0], weights = t.weights.shape[0];
  const Expr leaves = t.offsets ? simplify_dim(t.offsets.shape[0] - 1) : weights;
  const Expr places = simplify_dim(nodes + leaves);
  const auto zero = [](const Indices&) { return int64(0); };
  TableChecks checks(kernel);
  checks.within(kFeatures, zero, t.x.shape[1]);
  checks.within(kChildren, [](const Indices& at) { return at[0] + 1; }, places);
  checks.within(kRoots, zero, places);
  checks.within(kTargets, zero, int64(attrs.n_targets));
  if (t.offsets) checks.within(kOffsets, zero, simplify_dim(weights + 1));
  return Ensemble(kernel, t, attrs).run();
}

OpDef tree_ensemble() {
  OpDef op;
  op.name = "tree_ensemble";
  op.summary = "The weights of the leaf of each decision tree, added up for each row of x.";
  op.inputs = {
      {"x", "(rows, features)"},
      {"features", "(nodes,), integers: the column of x that a node compares"},
      {"splits", "(nodes,), dtype of x: what it is compared with"},
      {"children",
       "(nodes, 2), integers: where to go when the comparison does not hold and when it does; a "
       "node behind this one, or leaf i as nodes + i"},
      {"roots", "(trees,), integers: where each tree begins"},
      {"targets", "(weights,), integers: the column of the result of each weight"},
      {"weights", "(weights,), floats; without offsets one for each leaf"},
      {"offsets", "(leaves + 1,), integers: leaf i has weights offsets[i] to offsets[i + 1]", true},
      {"modes",
       "(nodes,), integers: 0 to 5 for <=, <, >=, >, ==, !=; plus 8 where NaN goes the way of a "
       "comparison that holds",
       true}};
  op.attrs = attrs_of<TreeEnsembleAttrs>();
  op.infer_type = infer_tree_ensemble;
  op.lower = lower_tree_ensemble;
  op.source = "ONNX TreeEnsemble-5 of ai.onnx.ml";
  return op;
}

// ---- lookup -------------------------------------------------------------------------------------

OpDef lookup() {
  OpDef op;
  op.name = "lookup";
  op.summary = "The value of the key that equals each element, found by binary search.";
  op.inputs = {{"x", "any shape"},
               {"keys", "(keys,), dtype of x, rising"},
               {"values", "(keys,), any dtype"},
               {"otherwise", "(), dtype of values: where no key equals"}};
  op.infer_type = [](const Call& call) -> Type {
    const Ref<TensorType> x = tensor_arg(call, 0), values = tensor_arg(call, 2);
    if (!x->dtype.is_void()) check_dtype(call, 1, x->dtype);
    if (!values->dtype.is_void()) check_dtype(call, 3, values->dtype);
    check_rank(call, 1, 1);
    check_rank(call, 2, 1);
    check_rank(call, 3, 0);
    const Ref<TensorType> keys = tensor_arg(call, 1);
    if (keys->shape && values->shape)
      check_dim(call, 2, values->dim(0), keys->dim(0), "dimension 0");
    return same_shape(call, 0, values->dtype);
  };
  op.lower = [](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const Operand x = kernel.arg(0), otherwise = kernel.arg(3);
    const auto count = as_int(shaped_arg(call, 1)->dim(0));
    if (!count)
      throw CompileError(kUnsupported, call.origin,
                         "argument `keys` of `lookup` is {}; expected a dimension that is known",
                         str(shaped_arg(call, 1)));
    if (*count == 0) return kernel.emit_compute([&](const Indices&) { return otherwise({}); });
    const Operand keys = kernel.buffer_arg(1), values = kernel.buffer_arg(2);
    const Operand out = kernel.allocate(kernel.out_name(), x.shape, values.dtype);
    const Operand place = kernel.allocate("place", x.shape, kInt32);
    const std::vector<tir::Axis> axes = tir::KernelBuilder::axes(x.shape);
    const Indices i = tir::KernelBuilder::indices(axes);
    const auto go_to = [&](const Expr& key) {
      return make<tir::BufferStore>(place.buffer, key, i);
    };
    const auto key_at = [&](const Expr& key) { return keys({tenon::cast(kInt64, key)}); };
    // The last key that is not above x is one of `width` from place on: each step halves the width.
    std::vector<tir::Stmt> body = {go_to(int32(0))};
    for (int64_t width = *count; width > 1; width -= width / 2) {
      const Expr middle = place(i) + int32(static_cast<int32_t>(width / 2));
      body.push_back(go_to(select(key_at(middle) <= x(i), middle, place(i))));
    }
    const Expr found = tenon::cast(kInt64, place(i));
    body.push_back(make<tir::BufferStore>(
        out.buffer, select(eq(keys({found}), x(i)), values({found}), otherwise({})), i));
    kernel.append(tir::define(kernel.name(), axes, {}, tir::seq(std::move(body))));
    return kernel.emit({out});
  };
  op.source = "ONNX LabelEncoder-4 of ai.onnx.ml";
  return op;
}

}  // namespace

std::vector<OpDef> tree_ensemble_ops() { return {tree_ensemble(), lookup()}; }

}  // namespace tenon::graph
