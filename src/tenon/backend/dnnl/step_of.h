// SPDX-License-Identifier: Apache-2.0
// Drafts one call of oneDNN whose layouts are not all chosen yet.
#pragma once

#include <utility>
#include <vector>

#include "tenon/backend/dnnl/region.h"

namespace tenon::backend::dnnl {

/// A step whose operands are positions in a list of layouts of its own.
struct StepDraft {
  tenon_dnnl_step step = {};
  std::vector<dnnl_memory_desc_t> layouts;
  dnnl_memory_desc_t plain_weights = {};  // as they lie in the program's memory
  bool src_is_view = false;               // other dimensions or strides than those of the value
  std::vector<std::pair<int32_t, int>> vectors;  // further operands and their values
  std::vector<int> post_values;                  // of each post; -1: none

  explicit StepDraft(int kind);
  int32_t add(const dnnl_memory_desc_t& layout);
  void add_eltwise(int alg, float alpha, float beta);
  void add_sum(int value);
  void add_binary(int alg, const dnnl_memory_desc_t& layout, int value);
  /// The value of the sum; -1: none.
  int summed() const;
  /// Replaces layouts that were left open by those that the library chose.
  void choose(const_dnnl_primitive_desc_t descriptor);
};

dnnl_memory_desc_t plain_layout(const std::vector<int64_t>& shape);

/// The value that the root of a group works on.
int root_input(const Group& group);
/// Whether that must lie there plain.
bool takes_plain(const Group& group);

/// The root of a group without posts.
/// \param src  the layout of its input; null: the library chooses, or plain where it cannot
/// \throws Refusal
StepDraft draft_root(const MatchGraph& graph, const Group& group, const dnnl_memory_desc_t* src);

}  // namespace tenon::backend::dnnl
