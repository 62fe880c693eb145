// SPDX-License-Identifier: Apache-2.0
// Kernels as steps that write whole buffers, element by element, at constant strides. Private to
// interp/reference.
#pragma once

#include <optional>
#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::interp {

/// offset + the sum of coefficients[i] * loop i of a step, each from 0 to its extent - 1.
struct LoopSum {
  int64_t offset = 0;
  std::vector<int64_t> coefficients;
};

/// One operation of a step's value.
struct StepNode {
  enum class Kind : uint8_t {
    kConstant,   // `bytes`, an element of `dtype`
    kLoad,       // the element of `buffer` at `affine`
    kCondition,  // `affine` `op` 0
    kBinary,     // node a `op` node b, of `dtype`: float32 or float64, or bool for `and` and `or`
    kNot,        // not node a
    kSelect,     // node c ? node a : node b, of `dtype`
  } kind = Kind::kConstant;
  DType dtype = {};  // of what it gives; of a comparison that of its operands
  BinaryOp op = BinaryOp::kAdd;
  int a = -1, b = -1, c = -1;
  size_t buffer = 0;
  LoopSum affine = {};
  uint64_t bytes = 0;
  bool is_uniform = false;  // a condition on loops: the same whatever is in memory
};

/// For every point of the loops: the element of `buffer` at `place` is the value of the last node.
/// The steps of a kernel are in order; each writes every element of its buffer once, and reads
/// those that were written before it. All elements lie inside.
struct StridedStep {
  std::vector<int64_t> extents;
  std::vector<StepNode> nodes;  // operands stand before what uses them
  size_t buffer = 0;
  LoopSum place = {};
  const StepNode& value() const { return nodes.back(); }
};

struct StridedKernel {
  struct Memory {
    DType dtype;
    std::vector<int64_t> shape;
  };
  std::vector<Memory> buffers;  // the parameters, then what the function allocates
  std::vector<StridedStep> steps;
};

/// Nothing for a kernel that is not of this form: with sums, casts, intrinsics, integer arithmetic
/// on elements, dimensions or indices that are not constant or affine, or several results (the
/// last parameter is the only one that is written).
std::optional<StridedKernel> strided_kernel(const tir::PrimFunc& function);

}  // namespace tenon::interp
