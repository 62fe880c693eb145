// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/reference/strided_steps.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "tenon/interp/scalar.h"

namespace tenon::interp {

namespace {

// Below it products of two numbers, and sums of them, fit 64 bits.
constexpr int64_t kMost = int64_t{1} << 30;
// A value is walked, and evaluated, as a tree: its shared parts count as often as they are used.
constexpr size_t kMostNodes = 512;
constexpr int kMostDepth = 200;
constexpr int kMostWalked = 1 << 16;  // nodes of a step's indices

bool is_moderate(int64_t value) { return value > -kMost && value < kMost; }

std::optional<LoopSum> moderate(LoopSum form) {
  const bool fits = is_moderate(form.offset) &&
                    std::all_of(form.coefficients.begin(), form.coefficients.end(), is_moderate);
  return fits ? std::optional(std::move(form)) : std::nullopt;
}

LoopSum sum(LoopSum a, const LoopSum& b, int64_t factor = 1) {
  a.offset += factor * b.offset;
  a.coefficients.resize(std::max(a.coefficients.size(), b.coefficients.size()), 0);
  for (size_t i = 0; i < b.coefficients.size(); ++i)
    a.coefficients[i] += factor * b.coefficients[i];
  return a;
}

bool is_constant(const LoopSum& form) {
  return std::all_of(form.coefficients.begin(), form.coefficients.end(),
                     [](int64_t coefficient) { return coefficient == 0; });
}

std::optional<std::vector<int64_t>> plain_shape(const tir::Buffer& buffer) {
  auto shape = as_ints(buffer.shape);
  const DType dtype = buffer.dtype;
  if (!shape || !buffer.is_compact() || dtype.lanes != 1) return std::nullopt;
  if (dtype.is_string() || dtype.is_handle()) return std::nullopt;
  if (buffer.elem_offset && !is_int(buffer.elem_offset, 0)) return std::nullopt;
  int64_t elements = 1;
  for (const int64_t dim : *shape) {
    if (dim <= 0 || dim >= kMost) return std::nullopt;
    elements *= dim;
    if (elements >= kMost) return std::nullopt;
  }
  return shape;
}

/// Where a loop is split for divisions of its variable: v = a piece + divisor * the next + ...
struct Splits {
  const Var* loop;
  std::vector<int64_t> divisors;  // rising; each divides the next, and the last the loop's extent
};

class StepFinder {
 public:
  explicit StepFinder(const tir::PrimFunc& function) : function_(function) {}

  std::optional<StridedKernel> run() {
    for (const Ref<tir::Buffer>& buffer : function_.buffers)
      if (!buffer || !add_buffer(buffer)) return std::nullopt;
    if (buffers_.empty()) return std::nullopt;
    written_.assign(buffers_.size(), true);
    written_.back() = false;
    if (!take(function_.body) || !written_[function_.buffers.size() - 1]) return std::nullopt;
    return std::move(kernel_);
  }

 private:
  bool add_buffer(const Ref<tir::Buffer>& buffer) {
    auto shape = plain_shape(*buffer);
    if (!shape) return false;
    buffers_.push_back(buffer.get());
    kernel_.buffers.push_back({buffer->dtype, std::move(*shape)});
    return true;
  }

  std::optional<size_t> index_of(const tir::Buffer& buffer) const {
    const auto found = std::find(buffers_.begin(), buffers_.end(), &buffer);
    if (found == buffers_.end()) return std::nullopt;
    return static_cast<size_t>(found - buffers_.begin());
  }

  // What stands outside of all loops: allocations, and steps in order.
  bool take(const tir::Stmt& stmt) {
    if (const auto* all = stmt.as<tir::Seq>())
      return std::all_of(all->stmts.begin(), all->stmts.end(),
                         [&](const tir::Stmt& one) { return take(one); });
    if (const auto* allocation = stmt.as<tir::AllocBuffer>()) return allocate(allocation->buffer);
    const auto* realize = stmt.as<tir::BlockRealize>();
    if (realize && realize->block->iter_vars.empty() && is_plain(*realize))
      return std::all_of(realize->block->alloc_buffers.begin(), realize->block->alloc_buffers.end(),
                         [&](const Ref<tir::Buffer>& buffer) { return allocate(buffer); }) &&
             take(realize->block->body);
    return take_step(stmt);
  }

  bool allocate(const Ref<tir::Buffer>& buffer) {
    written_.push_back(false);
    return add_buffer(buffer);
  }

  static bool is_plain(const tir::BlockRealize& realize) {
    return is_int(realize.predicate, 1) && !realize.block->init &&
           realize.block->match_buffers.empty();
  }

  // A division asks for a split of a loop, and the step is read anew.
  bool take_step(const tir::Stmt& stmt) {
    splits_.clear();
    for (;;) {
      step_ = {};
      owners_.clear();
      variables_.clear();
      walked_ = 0;
      has_split_ = false;
      if (take_nest(stmt)) break;
      if (!has_split_) return false;
    }
    if (written_[step_.buffer] || !writes_all()) return false;
    written_[step_.buffer] = true;
    kernel_.steps.push_back(std::move(step_));
    return true;
  }

  bool take_nest(const tir::Stmt& stmt) {
    if (const auto* loop = stmt.as<tir::For>()) return enter(*loop) && take_nest(loop->body);
    if (const auto* realize = stmt.as<tir::BlockRealize>()) {
      const tir::Block& block = *realize->block;
      if (!is_plain(*realize) || !block.alloc_buffers.empty()) return false;
      for (size_t i = 0; i < block.iter_vars.size(); ++i) {
        auto value = affine(realize->iter_values[i]);
        if (!value) return false;
        variables_.emplace_back(block.iter_vars[i].var.get(), std::move(*value));
      }
      return take_nest(block.body);
    }
    const auto* store = stmt.as<tir::BufferStore>();
    if (!store) return false;
    const auto buffer = index_of(*store->buffer);
    auto place = buffer ? place_in(*buffer, store->indices) : std::nullopt;
    if (!place || store->value->dtype != store->buffer->dtype || node_of(store->value, 0) < 0 ||
        step_.value().is_uniform)
      return false;
    step_.buffer = *buffer;
    step_.place = std::move(*place);
    for (StepNode& node : step_.nodes) node.affine.coefficients.resize(step_.extents.size(), 0);
    step_.place.coefficients.resize(step_.extents.size(), 0);
    return true;
  }

  bool enter(const tir::For& loop) {
    const auto extent = as_int(loop.extent), first = as_int(loop.min);
    if (loop.kind == tir::ForKind::kThreadBinding || !extent || *extent <= 0 || *extent >= kMost ||
        !first || !is_moderate(*first))
      return false;
    LoopSum value{*first, {}};
    std::vector<int64_t> ends = splits_of(loop.loop_var.get()).divisors;
    ends.push_back(*extent);
    // The slowest piece is the outermost.
    for (size_t i = ends.size(); i-- > 0;) {
      const int64_t stride = i == 0 ? 1 : ends[i - 1];
      if (ends[i] == stride) continue;
      step_.extents.push_back(ends[i] / stride);
      owners_.push_back({loop.loop_var.get(), stride});
      value.coefficients.resize(step_.extents.size(), 0);
      value.coefficients.back() = stride;
    }
    variables_.emplace_back(loop.loop_var.get(), std::move(value));
    return true;
  }

  // ---- indices

  std::pair<int64_t, int64_t> bounds(const LoopSum& form) const {
    int64_t least = form.offset, most = form.offset;
    for (size_t i = 0; i < form.coefficients.size(); ++i) {
      const int64_t reach = form.coefficients[i] * (step_.extents[i] - 1);
      (reach < 0 ? least : most) += reach;
    }
    return {least, most};
  }

  std::optional<LoopSum> affine(const Expr& expr, int depth = 0) {
    if (depth > kMostDepth || ++walked_ > kMostWalked) return std::nullopt;
    if (expr->dtype != kInt64 && expr->dtype != kInt32) return std::nullopt;  // they do not wrap
    if (const auto* number = expr.as<IntImm>()) return moderate({number->value, {}});
    if (const auto* var = expr.as<Var>()) {
      for (const auto& [known, value] : variables_)
        if (known == var) return value;
      return std::nullopt;
    }
    const auto* binary = expr.as<Binary>();
    const auto a = binary ? affine(binary->lhs, depth + 1) : std::nullopt;
    const auto b = a ? affine(binary->rhs, depth + 1) : std::nullopt;
    if (!b) return std::nullopt;
    switch (binary->op) {
      case BinaryOp::kAdd: return moderate(sum(*a, *b));
      case BinaryOp::kSub: return moderate(sum(*a, *b, -1));
      case BinaryOp::kMul:
        if (is_constant(*b)) return moderate(sum({}, *a, b->offset));
        if (is_constant(*a)) return moderate(sum({}, *b, a->offset));
        return std::nullopt;
      case BinaryOp::kFloorDiv:
      case BinaryOp::kFloorMod:
        if (!is_constant(*b) || b->offset <= 0) return std::nullopt;
        return divided(*a, b->offset, binary->op == BinaryOp::kFloorMod);
      default: return std::nullopt;
    }
  }

  // What the divisor divides leaves the remainder out, whose rest lies below the divisor.
  std::optional<LoopSum> divided(const LoopSum& form, int64_t divisor, bool remainder) {
    LoopSum whole{0, std::vector<int64_t>(form.coefficients.size(), 0)}, rest = form;
    for (size_t i = 0; i < form.coefficients.size(); ++i)
      if (form.coefficients[i] % divisor == 0) {
        whole.coefficients[i] = form.coefficients[i] / divisor;
        rest.coefficients[i] = 0;
      }
    rest.offset = ((form.offset % divisor) + divisor) % divisor;
    whole.offset = (form.offset - rest.offset) / divisor;
    const auto [least, most] = bounds(rest);
    if (least >= 0 && most < divisor) return remainder ? rest : whole;
    for (size_t i = 0; i < rest.coefficients.size(); ++i) {
      const int64_t step = rest.coefficients[i];
      if (step > 0 && divisor % step == 0 && split(i, divisor / step)) break;
    }
    return std::nullopt;
  }

  // Loop `i` becomes two, of which the inner one has `inner` iterations, when the step is read anew.
  bool split(size_t i, int64_t inner) {
    const Owner& owner = owners_[i];
    if (inner <= 1 || inner >= step_.extents[i] || step_.extents[i] % inner != 0) return false;
    std::vector<int64_t>& divisors = splits_of(owner.loop).divisors;
    divisors.insert(std::lower_bound(divisors.begin(), divisors.end(), owner.stride * inner),
                    owner.stride * inner);
    has_split_ = true;
    return true;
  }

  Splits& splits_of(const Var* loop) {
    for (Splits& one : splits_)
      if (one.loop == loop) return one;
    return splits_.emplace_back(Splits{loop, {}});
  }

  // In elements of the buffer; nothing where an index may be outside.
  std::optional<LoopSum> place_in(size_t buffer, const std::vector<Expr>& indices) {
    const std::vector<int64_t>& shape = kernel_.buffers[buffer].shape;
    if (indices.size() != shape.size()) return std::nullopt;
    LoopSum place{0, std::vector<int64_t>(step_.extents.size(), 0)};
    int64_t stride = 1;
    for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) {
      const auto index = affine(indices[d]);
      if (!index) return std::nullopt;
      const auto [least, most] = bounds(*index);
      if (least < 0 || most >= shape[d]) return std::nullopt;
      place = sum(std::move(place), *index, stride);
    }
    return place;
  }

  // Every element, each once: no two points have one place, and there are as many of either.
  bool writes_all() const {
    const std::vector<int64_t>& shape = kernel_.buffers[step_.buffer].shape;
    int64_t left = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    std::vector<std::pair<int64_t, int64_t>> loops;  // stride, extent
    for (size_t i = 0; i < step_.extents.size(); ++i)
      if (step_.extents[i] > 1)
        loops.emplace_back(std::abs(step_.place.coefficients[i]), step_.extents[i]);
    std::sort(loops.begin(), loops.end());
    int64_t reach = 0;
    for (const auto& [stride, extent] : loops) {
      if (stride <= reach || left % extent != 0) return false;
      left /= extent;
      reach += stride * (extent - 1);
    }
    return left == 1;
  }

  // ---- values: the node's index, or -1

  int add(StepNode node) {
    if (step_.nodes.size() >= kMostNodes) return -1;
    step_.nodes.push_back(std::move(node));
    return static_cast<int>(step_.nodes.size()) - 1;
  }

  int node_of(const Expr& expr, int depth) {
    using Kind = StepNode::Kind;
    const DType dtype = expr->dtype;
    if (depth > kMostDepth || dtype.lanes != 1) return -1;
    switch (kind_of(*expr)) {
      case ExprKind::kIntImm: return constant(dtype, Slot{.i = expr.as<IntImm>()->value});
      case ExprKind::kFloatImm: return constant(dtype, Slot{.f = expr.as<FloatImm>()->value});
      case ExprKind::kBufferLoad: {
        const auto& load = *expr.as<tir::BufferLoad>();
        const auto buffer = index_of(*load.buffer);
        if (!buffer || !written_[*buffer] || load.buffer->dtype != dtype) return -1;
        auto place = place_in(*buffer, load.indices);
        if (!place) return -1;
        return add({.kind = Kind::kLoad, .dtype = dtype, .buffer = *buffer, .affine = *place});
      }
      case ExprKind::kNot: {
        const int a = node_of(expr.as<Not>()->value, depth + 1);
        if (a < 0) return -1;
        return add({.kind = Kind::kNot, .dtype = dtype, .a = a, .is_uniform = uniform(a)});
      }
      case ExprKind::kSelect: {
        const auto& select = *expr.as<Select>();
        const int c = node_of(select.condition, depth + 1);
        const int a = c < 0 ? -1 : node_of(select.true_value, depth + 1);
        const int b = a < 0 ? -1 : node_of(select.false_value, depth + 1);
        if (b < 0 || uniform(a) || uniform(b)) return -1;
        return add({.kind = Kind::kSelect, .dtype = dtype, .a = a, .b = b, .c = c});
      }
      case ExprKind::kBinary: return binary_of(*expr.as<Binary>(), depth);
      default: return -1;
    }
  }

  bool uniform(int node) const { return step_.nodes[static_cast<size_t>(node)].is_uniform; }

  int constant(DType dtype, Slot value) {
    StepNode node{.dtype = dtype};
    write_element(dtype, reinterpret_cast<std::byte*>(&node.bytes), value);
    return add(std::move(node));
  }

  int binary_of(const Binary& binary, int depth) {
    using Kind = StepNode::Kind;
    const BinaryOp op = binary.op;
    const DType dtype = binary.lhs->dtype;
    if (is_comparison(op) && !dtype.is_float() && !dtype.is_bool()) {
      const auto a = affine(binary.lhs, depth), b = affine(binary.rhs, depth);
      if (!a || !b) return -1;
      const auto difference = moderate(sum(*a, *b, -1));
      if (!difference) return -1;
      return add({.kind = Kind::kCondition, .op = op, .affine = *difference, .is_uniform = true});
    }
    const bool is_float = dtype == kFloat32 || dtype == kFloat64;
    const bool is_known = is_logical(op) || is_comparison(op) || op == BinaryOp::kAdd ||
                          op == BinaryOp::kSub || op == BinaryOp::kMul || op == BinaryOp::kDiv ||
                          op == BinaryOp::kMin || op == BinaryOp::kMax;
    if (!is_known || is_float == is_logical(op) || !(is_float || dtype.is_bool())) return -1;
    const int a = node_of(binary.lhs, depth + 1);
    const int b = a < 0 ? -1 : node_of(binary.rhs, depth + 1);
    if (b < 0 || uniform(a) != uniform(b)) return -1;
    return add({.kind = Kind::kBinary,
                .dtype = dtype,
                .op = op,
                .a = a,
                .b = b,
                .is_uniform = uniform(a)});
  }

  /// The loop that a loop of the step is a piece of.
  struct Owner {
    const Var* loop;
    int64_t stride;
  };

  const tir::PrimFunc& function_;
  StridedKernel kernel_;
  std::vector<const tir::Buffer*> buffers_;  // as kernel_.buffers
  std::vector<bool> written_;
  // Of the step that is read.
  StridedStep step_;
  std::vector<Owner> owners_;
  std::vector<std::pair<const Var*, LoopSum>> variables_;
  std::vector<Splits> splits_;
  int walked_ = 0;
  bool has_split_ = false;
};

}  // namespace

std::optional<StridedKernel> strided_kernel(const tir::PrimFunc& function) {
  return StepFinder(function).run();
}

}  // namespace tenon::interp
