// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/reference/kernel_value.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "tenon/graph/extern_call.h"
#include "tenon/interp/reference/strided_copy.h"
#include "tenon/interp/reference/strided_steps.h"
#include "tenon/support/check.h"

namespace tenon::interp {

namespace {

// Elements of a batch: the values of a step's nodes stay in the first-level cache.
constexpr int64_t kLanes = 256;

template <typename T, typename F>
void combine(const std::byte* a, const std::byte* b, std::byte* out, int64_t n, F operation) {
  using Out = decltype(operation(T{}, T{}));
  const T *x = reinterpret_cast<const T*>(a), *y = reinterpret_cast<const T*>(b);
  Out* to = reinterpret_cast<Out*>(out);
  for (int64_t i = 0; i < n; ++i) to[i] = operation(x[i], y[i]);
}

// As the interpreter computes them in double, and rounds: double has more than twice the digits.
template <typename T>
void combine(BinaryOp op, const std::byte* a, const std::byte* b, std::byte* out, int64_t n) {
  const auto with = [&](auto operation) { combine<T>(a, b, out, n, operation); };
  switch (op) {
    case BinaryOp::kAdd: return with([](T x, T y) { return x + y; });
    case BinaryOp::kSub: return with([](T x, T y) { return x - y; });
    case BinaryOp::kMul: return with([](T x, T y) { return x * y; });
    case BinaryOp::kDiv: return with([](T x, T y) { return x / y; });
    case BinaryOp::kMin:
      return with([](T x, T y) { return std::isnan(x) ? x : std::isnan(y) || y < x ? y : x; });
    case BinaryOp::kMax:
      return with([](T x, T y) { return std::isnan(x) ? x : std::isnan(y) || x < y ? y : x; });
    case BinaryOp::kEQ: return with([](T x, T y) { return x == y; });
    case BinaryOp::kNE: return with([](T x, T y) { return x != y; });
    case BinaryOp::kLT: return with([](T x, T y) { return x < y; });
    case BinaryOp::kLE: return with([](T x, T y) { return x <= y; });
    case BinaryOp::kGT: return with([](T x, T y) { return x > y; });
    case BinaryOp::kGE: return with([](T x, T y) { return x >= y; });
    default: unreachable("an operation on elements that a step does not have");
  }
}

void combine_bools(BinaryOp op, const std::byte* a, const std::byte* b, std::byte* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = op == BinaryOp::kAnd ? a[i] & b[i] : a[i] | b[i];
}

bool holds(BinaryOp op, int64_t difference) {
  switch (op) {
    case BinaryOp::kEQ: return difference == 0;
    case BinaryOp::kNE: return difference != 0;
    case BinaryOp::kLT: return difference < 0;
    case BinaryOp::kLE: return difference <= 0;
    case BinaryOp::kGT: return difference > 0;
    default: return difference >= 0;
  }
}

// The elements of 1, 2, 4 or 8 bytes.
template <typename F>
void with_bits(int64_t element_bytes, F body) {
  switch (element_bytes) {
    case 1: return body(uint8_t{});
    case 2: return body(uint16_t{});
    case 4: return body(uint32_t{});
    case 8: return body(uint64_t{});
    default: unreachable("elements of another size");
  }
}

// Mapped files hold elements at any address.
void copy_strided(std::byte* to, int64_t to_stride, const std::byte* from, int64_t from_stride,
                  int64_t n, int64_t element_bytes) {
  with_bits(element_bytes, [&](auto bits) {
    constexpr auto size = static_cast<int64_t>(sizeof bits);
    for (int64_t i = 0; i < n; ++i)
      std::memcpy(to + i * to_stride * size, from + i * from_stride * size, sizeof bits);
  });
}

/// The loops of a step whose iterations are lanes: along them each access has one stride.
struct Lanes {
  std::vector<bool> loops;
  int64_t extent = 1, stride = 1;  // of the place that is written
  size_t innermost = 0;            // where there are several lanes
};

std::vector<bool> loops_in_conditions(const StridedStep& step) {
  std::vector<bool> found(step.extents.size(), false);
  for (const StepNode& node : step.nodes)
    if (node.kind == StepNode::Kind::kCondition)
      for (size_t i = 0; i < found.size(); ++i)
        if (node.affine.coefficients[i] != 0) found[i] = true;
  return found;
}

// The loop that is densest in what is written, and those that go on without a gap in all accesses.
// Any order of the loops gives the same: each element is written once.
Lanes lanes_of(const StridedStep& step) {
  Lanes lanes{.loops = std::vector<bool>(step.extents.size(), false)};
  const std::vector<bool> conditional = loops_in_conditions(step);
  const auto stride = [&](size_t i) { return std::abs(step.place.coefficients[i]); };
  size_t best = step.extents.size();
  for (size_t i = 0; i < step.extents.size(); ++i)
    if (!conditional[i] && (best == step.extents.size() || stride(i) < stride(best))) best = i;
  if (best == step.extents.size()) return lanes;
  lanes.loops[best] = true;
  lanes.extent = step.extents[best];
  lanes.stride = step.place.coefficients[best];
  lanes.innermost = best;
  const auto goes_on = [&](const LoopSum& access, size_t i) {
    return access.coefficients[i] == access.coefficients[best] * lanes.extent;
  };
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < step.extents.size(); ++i) {
      if (lanes.loops[i] || conditional[i] || !goes_on(step.place, i)) continue;
      if (!std::all_of(step.nodes.begin(), step.nodes.end(), [&](const StepNode& node) {
            return node.kind != StepNode::Kind::kLoad || goes_on(node.affine, i);
          }))
        continue;
      lanes.loops[i] = true;
      lanes.extent *= step.extents[i];
      more = true;
    }
  }
  return lanes;
}

/// Runs one step on memory.
class StepRun {
 public:
  StepRun(const StridedStep& step, const StridedKernel& kernel,
          const std::vector<std::byte*>& memory)
      : step_(step),
        kernel_(kernel),
        memory_(memory),
        lanes_(lanes_of(step)),
        values_(step.nodes.size() * kLanes * kMostBytes),
        at_(step.extents.size(), 0) {
    for (size_t i = 0; i < step.nodes.size(); ++i)
      if (step.nodes[i].kind == StepNode::Kind::kConstant)
        copy_strided(values(i), 1, reinterpret_cast<const std::byte*>(&step.nodes[i].bytes), 0,
                     kLanes, step.nodes[i].dtype.bytes());
  }

  void run() {
    if (step_.value().kind == StepNode::Kind::kLoad) return copy();
    for (;;) {
      for (int64_t lane = 0; lane < lanes_.extent; lane += kLanes)
        run_batch(lane, std::min(kLanes, lanes_.extent - lane));
      size_t i = at_.size();
      while (i-- > 0) {
        if (lanes_.loops[i]) continue;
        if (++at_[i] < step_.extents[i]) break;
        at_[i] = 0;
      }
      if (i == static_cast<size_t>(-1)) return;
    }
  }

 private:
  static constexpr int64_t kMostBytes = 8;  // of an element

  std::byte* values(size_t node) {
    return values_.data() + node * static_cast<size_t>(kLanes * kMostBytes);
  }

  int64_t element_bytes(size_t buffer) const { return kernel_.buffers[buffer].dtype.bytes(); }

  void copy() {
    std::vector<CopyDim> dims;
    dims.reserve(step_.extents.size());
    const StepNode& load = step_.value();
    for (size_t i = 0; i < step_.extents.size(); ++i)
      dims.push_back({step_.extents[i], step_.place.coefficients[i], load.affine.coefficients[i]});
    const int64_t bytes = element_bytes(step_.buffer);
    strided_copy(memory_[step_.buffer] + step_.place.offset * bytes,
                 memory_[load.buffer] + load.affine.offset * bytes, std::move(dims), bytes);
  }

  int64_t value_of(const LoopSum& form) const {
    int64_t value = form.offset;
    for (size_t i = 0; i < at_.size(); ++i) value += form.coefficients[i] * at_[i];
    return value;
  }

  void run_batch(int64_t lane, int64_t n) {
    lane_ = lane;
    n_ = n;
    const int64_t bytes = element_bytes(step_.buffer);
    std::byte* const to =
        memory_[step_.buffer] + (value_of(step_.place) + lane * lanes_.stride) * bytes;
    const size_t value = step_.nodes.size() - 1;
    const bool is_dense = lanes_.stride == 1;
    const std::byte* made = evaluate(value, is_dense ? to : values(value));
    if (made != to) copy_strided(to, lanes_.stride, made, 1, n, bytes);
  }

  bool truth(size_t index) const {
    const StepNode& node = step_.nodes[index];
    const auto operand = [&](int i) { return truth(static_cast<size_t>(i)); };
    switch (node.kind) {
      case StepNode::Kind::kCondition: return holds(node.op, value_of(node.affine));
      case StepNode::Kind::kNot: return !operand(node.a);
      default:
        return node.op == BinaryOp::kAnd ? operand(node.a) && operand(node.b)
                                         : operand(node.a) || operand(node.b);
    }
  }

  // Lanes of a node, at `out` or where they are already.
  const std::byte* evaluate(size_t index, std::byte* out) {
    const StepNode& node = step_.nodes[index];
    const auto operand = [&](int i) {
      return evaluate(static_cast<size_t>(i), values(static_cast<size_t>(i)));
    };
    switch (node.kind) {
      case StepNode::Kind::kConstant: return values(index);
      case StepNode::Kind::kLoad: return load(node, out);
      case StepNode::Kind::kBinary: {
        const std::byte *a = operand(node.a), *b = operand(node.b);
        if (node.dtype.is_bool())
          combine_bools(node.op, a, b, out, n_);
        else if (node.dtype == kFloat32)
          combine<float>(node.op, a, b, out, n_);
        else
          combine<double>(node.op, a, b, out, n_);
        return out;
      }
      case StepNode::Kind::kNot: {
        const std::byte* a = operand(node.a);
        for (int64_t i = 0; i < n_; ++i) out[i] = a[i] ^ std::byte{1};
        return out;
      }
      case StepNode::Kind::kSelect: return select(node, out);
      case StepNode::Kind::kCondition: break;
    }
    unreachable("a condition on loops has no lanes");
  }

  const std::byte* load(const StepNode& node, std::byte* out) {
    const int64_t bytes = element_bytes(node.buffer);
    const int64_t stride = lanes_.extent > 1 ? node.affine.coefficients[lanes_.innermost] : 1;
    const std::byte* from = memory_[node.buffer] + (value_of(node.affine) + lane_ * stride) * bytes;
    const bool is_aligned = reinterpret_cast<uintptr_t>(from) % static_cast<size_t>(bytes) == 0;
    if (stride == 1 && is_aligned) return from;
    copy_strided(out, 1, from, stride, n_, bytes);
    return out;
  }

  const std::byte* select(const StepNode& node, std::byte* out) {
    const auto a = static_cast<size_t>(node.a), b = static_cast<size_t>(node.b),
               c = static_cast<size_t>(node.c);
    if (step_.nodes[c].is_uniform) return evaluate(truth(c) ? a : b, out);
    const std::byte *x = evaluate(a, values(a)), *y = evaluate(b, values(b)),
                    *chooses = evaluate(c, values(c));
    with_bits(node.dtype.bytes(), [&](auto bits) {
      using Bits = decltype(bits);
      const Bits *p = reinterpret_cast<const Bits*>(x), *q = reinterpret_cast<const Bits*>(y);
      Bits* to = reinterpret_cast<Bits*>(out);
      for (int64_t i = 0; i < n_; ++i) to[i] = chooses[i] != std::byte{0} ? p[i] : q[i];
    });
    return out;
  }

  const StridedStep& step_;
  const StridedKernel& kernel_;
  const std::vector<std::byte*>& memory_;
  Lanes lanes_;
  std::vector<std::byte> values_;  // kLanes elements of each node
  std::vector<int64_t> at_;        // of the loops; 0 of those that are lanes
  int64_t lane_ = 0, n_ = 0;       // of the batch
};

void run_kernel(const StridedKernel& kernel, const std::vector<Ref<TensorData>>& inputs,
                std::span<std::byte> result) {
  std::vector<std::byte*> memory;
  std::vector<std::unique_ptr<std::byte[]>> allocated;
  memory.reserve(kernel.buffers.size());
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    if (i < inputs.size()) {
      // Only read: a step writes what no step has written.
      memory.push_back(const_cast<std::byte*>(inputs[i]->data().data()));
    } else if (i == inputs.size()) {
      memory.push_back(result.data());
    } else {
      const StridedKernel::Memory& one = kernel.buffers[i];
      allocated.push_back(std::make_unique_for_overwrite<std::byte[]>(
          static_cast<size_t>(checked_elements(one.shape, one.dtype.bytes()) * one.dtype.bytes())));
      memory.push_back(allocated.back().get());
    }
  }
  for (const StridedStep& step : kernel.steps) StepRun(step, kernel, memory).run();
}

}  // namespace

Ref<TensorData> kernel_value(const IRModule& module, const graph::Call& call) {
  if (!call.is("call_tir") || call.args.size() != 2) return nullptr;
  const auto* name = call.args[0].as<graph::FuncRef>();
  const auto* tuple = call.args[1].as<graph::Tuple>();
  const auto function = name ? module.find<tir::PrimFunc>(name->name) : nullptr;
  const std::vector<graph::Type> types = graph::output_types(call);
  if (!function || !tuple || types.size() != 1 ||
      function->params.size() != tuple->values.size() + 1)
    return nullptr;
  std::vector<Ref<TensorData>> inputs;
  inputs.reserve(tuple->values.size());
  for (const graph::Value& value : tuple->values) {
    const auto* constant = value.as<graph::Constant>();
    if (!constant) return nullptr;
    inputs.push_back(constant->data);
  }
  auto kernel = strided_kernel(*function);
  if (!kernel) return nullptr;
  const auto is_of = [](const StridedKernel::Memory& memory, DType dtype,
                        const std::vector<int64_t>& shape) {
    return memory.dtype == dtype && memory.shape == shape;
  };
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!is_of(kernel->buffers[i], inputs[i]->dtype, inputs[i]->shape)) return nullptr;
  const auto* type = types[0].as<graph::TensorType>();
  const auto shape = type ? type->static_shape() : std::nullopt;
  if (!shape || !is_of(kernel->buffers[inputs.size()], type->dtype, *shape)) return nullptr;
  return TensorData::filled_later(
      type->dtype, *shape,
      [kernel = std::move(*kernel), inputs](std::span<std::byte> result) {
        run_kernel(kernel, inputs, result);
      },
      call.origin);
}

}  // namespace tenon::interp
