// SPDX-License-Identifier: Apache-2.0
// Parts of a kernel's result: a kernel that computes some rows of what another one computes whole.
// What FuseRows makes kernels of several kernels from.
#pragma once

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// Attribute of a PrimFunc that runs inside of a task: DefaultSchedule makes no tasks of it.
inline constexpr const char* kRunsInTask = "tir.runs_in_task";

/// Elements [first, first + extent) along dimension `dim`.
struct Slice {
  size_t dim;
  Expr first;  // in terms of variables of the caller's
  int64_t extent;
};

/// A buffer that holds a slice of another one: index i of that is `i + shift` of this. A null `shift`
/// is 0.
struct Place {
  Ref<Buffer> buffer;
  std::vector<Expr> shift;  // one for each dimension
};

/// What a kernel reads of a buffer while it computes a slice of its result. No slice of a dimension
/// that it reads whole.
using Needed = std::vector<std::optional<Slice>>;

/// A kernel of nests with a block and a store each, its result the last parameter, of constant sizes.
class SlicedKernel {
 public:
  /// \param ranges  of the variables that slices are in terms of
  SlicedKernel(const PrimFunc& kernel, std::vector<std::pair<Ref<Var>, int64_t>> ranges);

  const Ref<Buffer>& result() const { return kernel_.buffers.back(); }

  /// The buffer stands for memory of the caller's, which is parameter `param` from then on; blocks that
  /// write it go.
  void take_out(const Ref<Buffer>& buffer, size_t param) {
    taken_out_ = buffer;
    param_ = param;
  }

  /// Whether the kernel is one of those and can compute the slices alone: every block has less to do. What it needs of
  /// the buffer that was taken out is in `needed` then.
  bool compute(const std::vector<Slice>& slices);
  const Needed& needed() const { return needed_; }

  /// The kernel of what `compute` was given, with memory of the caller's in the place of the buffer that
  /// was taken out and of the result. \param scalars  parameters that follow the buffers
  Ref<PrimFunc> kernel(const std::optional<Place>& taken_out, const std::optional<Place>& result,
                       const std::vector<Ref<Var>>& scalars) const;

 private:
  struct Part {
    Ref<Block> block;  // with its axes' new domains
    Substitution values;
  };
  bool add_needs(const Block& block, const Substitution& values,
                 const std::vector<IterVar>& sliced);

  const PrimFunc& kernel_;
  std::vector<std::pair<Ref<Var>, int64_t>> ranges_;
  std::vector<Ref<Block>> blocks_;
  bool is_suited_ = true;
  Ref<Buffer> taken_out_;
  size_t param_ = 0;
  std::vector<Part> parts_;  // of the last `compute`, in the order of the kernel
  std::unordered_map<const Node*, Needed> needs_;
  Needed needed_;
};

/// How a kernel reads a buffer by a window that moves along with its result.
struct RowWindow {
  size_t row = 0;                // the dimension of rows, of the buffer and of the result
  int64_t stride = 1, rows = 1;  // rows of the padded buffer for each row of the result
  std::vector<size_t> shared;    // dimensions before it that both have in common, longer than 1
  std::vector<size_t> inner;     // and those behind it
  int64_t taps = 1;              // steps of the reduction
  Ref<Buffer> padded;            // the kernel's own copy with a padding, or the buffer itself
  std::vector<int64_t> before;   // padding, by dimension; of rows also what it reads and drops
  Expr outside;                  // what stands in the padding; null: anything
};
/// Nothing where the kernel reads parameter `input` otherwise.
std::optional<RowWindow> row_window(const PrimFunc& kernel, size_t input);

}  // namespace tenon::tir
