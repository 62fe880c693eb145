// SPDX-License-Identifier: Apache-2.0
// Groups the operators of a graph for oneDNN: a primitive with weights, and the post-operations on
// its result.
#pragma once

#include <vector>

#include "tenon/backend/match_graph.h"

namespace tenon::backend::dnnl {

/// Elementwise work on a value, in the library's terms.
struct Post {
  enum class Kind : uint8_t { kEltwise, kBinary };
  Kind kind = Kind::kEltwise;
  int alg = 0;  // dnnl_alg_kind_t
  float alpha = 0, beta = 0;
  int value = -1;  // kBinary: the second operand, which broadcasts to the first
};

struct Group {
  enum class Root : uint8_t {
    kNone,  // elementwise work alone, on `source`
    kConvolution,
    kDeconvolution,
    kMatmul,
    kPooling,
    kGlobalPooling,
    kBatchNorm,
    kLayerNorm,
    kSoftmax
  };
  Root root = Root::kNone;
  const MatchGraph::Operator* op = nullptr;  // of the root; null with kNone
  int source = -1;                           // kNone: the first operand
  int bias = -1;                             // a vector; -1: none
  std::vector<Post> posts;
  /// The value before the first post, after the first, ...: one more than posts. -1 inside of an
  /// operator that is several posts.
  std::vector<int> results;
  /// Operands that are permuted views: of each matrix operand the permutation, where it has one.
  std::vector<int64_t> permutation[2];
  int operands[2] = {-1, -1};  // kMatmul: what is multiplied, before these permutations
};

/// What patterns.py calls the values that `group` asks for: what GELU is applied to, and its numbers.
inline constexpr const char* kNames[] = {"gelu_source", "half",        "one",         "erf_divisor",
                                         "erf_factor",  "tanh_factor", "cube_factor", "exponent"};

/// In an order in which they can be run.
/// \throws Refusal where an operator has no such form.
std::vector<Group> group(const MatchGraph& graph);

}  // namespace tenon::backend::dnnl
