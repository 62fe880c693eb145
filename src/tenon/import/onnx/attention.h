// SPDX-License-Identifier: Apache-2.0
// Attention as operators of the graph: what all ONNX operators of that family are made of.
#pragma once

#include <functional>

#include "tenon/import/onnx/operators.h"

namespace tenon::onnx {

/// What is asked for beside the result.
enum class Shown : uint8_t { kNothing, kScores, kCapped, kMasked, kWeights };

/// Softmax(query key^T * scale, capped, masked) value for each head.
struct AttentionForm {
  Value query;       // (batch, heads, rows, depth)
  Value key, value;  // (batch, groups, columns, depth) and (..., width); groups divides heads
  std::optional<double> scale = {};  // none: 1 / sqrt(depth)
  double softcap = 0;                // c tanh(scores / c), where it is above 0
  Value bias = nullptr;              // added, of any dtype; broadcast to the scores
  Value allowed = nullptr;           // bool, broadcast to the scores: others become -inf
  Value sink = nullptr;              // (heads): a score beside those of columns, of no value
  bool may_be_empty = false;         // rows where every score is -inf are possible: these give 0
  DType softmax = kVoid;             // that weights are computed in; kVoid: the query's or float32
  Shown shows = Shown::kNothing;
  std::function<Value(const Value&)> change_scores = {}, change_weights = {};
};

struct AttentionResults {
  Value y;      // (batch, heads, rows, width), of the query's dtype
  Value shown;  // (batch, heads, rows, columns), of the dtype that it is computed in; or null
};

/// A mask or bias that is to be broadcast to the scores of query and key, with their dimensions
/// where its own have other names and are not 1, which a run checks. Null stays null.
Value fitted_mask(Context& c, const AttentionForm& form, const Value& x);

AttentionResults attend(Context& c, const AttentionForm& form);

/// (batch, rows, heads * depth) as (batch, heads, rows, depth). \throws CompileError
/// (kShapeMismatch) where `heads` does not divide the last dimension, which the run checks where it is
/// a symbol.
Value split_heads(Context& c, const Value& x, int64_t heads);
/// The inverse of split_heads.
Value join_heads(Context& c, const Value& x);

/// (batch, rows, heads * depth) as (batch, rows, heads, depth). \throws as split_heads.
Value as_heads(Context& c, const Value& x, int64_t heads);

/// Pairs of elements of each head, turned by the angles of their row.
struct RotaryForm {
  Value x;         // rank 4, elements of a head last
  int64_t rows;    // the axis of x: 1 or 2
  Value cos, sin;  // (positions, dims / 2), or without `positions` (batch, rows, dims / 2)
  Value positions = nullptr;  // (batch, rows), integers
  Expr dims = {};             // elements of a head that are turned; null: all
  bool interleaved = false;   // pairs are neighbours, otherwise halves apart
};
/// Of the shape of `form.x`.
Value rotate(Context& c, const RotaryForm& form);

/// 1 / sqrt(dim), in float64.
Value inverse_root(Context& c, const Expr& dim);

/// The positions first, first + 1, ... of `count` rows: (count, 1).
Value row_positions(Context& c, const Expr& first, const Expr& count);
/// The positions of columns: (count).
Value column_positions(Context& c, const Expr& count);
/// Both conditions; one of them may be null.
Value both(Context& c, const Value& a, const Value& b);

}  // namespace tenon::onnx
