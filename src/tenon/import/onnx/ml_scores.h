// SPDX-License-Identifier: Apache-2.0
// What the models of ai.onnx.ml share: rows of features, tables of constants, and what is made of the
// scores of classes and targets.
#pragma once

#include <string>
#include <vector>

#include "tenon/import/onnx/context.h"

namespace tenon::onnx {

/// Operand 0 as (rows, features): a vector is one row. \throws Unsupported for another rank.
Value feature_rows(Context& c);
/// A constant of these elements.
Value float_table(DType dtype, const std::vector<double>& values, const Ints& shape);
Value int_table(DType dtype, const std::vector<int64_t>& values, const Ints& shape);

/// Attribute `post_transform`. \throws CompileError (kBadAttribute) for a text that is none.
std::string post_transform(Context& c);
/// The scores (rows, columns) transformed by it.
Value transformed(Context& c, const Value& scores, const std::string& transform);

/// How one score becomes those of two classes.
enum class SecondClass : uint8_t {
  kComplement,  // 1 - s, s
  kNegative,    // -s, s
};
/// Scores (rows, 1) as (rows, 2). LOGISTIC gives the shares of -s and s; PROBIT leaves one column;
/// other transforms are of more than one score and leave it alone.
Value with_second_class(Context& c, const Value& score, SecondClass how,
                        const std::string& transform);

/// The labels of a classifier: attribute `ints` or `strings`.
struct Labels {
  Value values;  // (classes,)
  int64_t count = 0;
};
Labels class_labels(Context& c, const std::string& ints, const std::string& strings);
/// The label at each of `index`, (rows,) of int64.
Value labels_at(Context& c, const Labels& labels, const Value& index);
/// The index of the greatest score of each row, (rows,) of int64.
Value winner(Context& c, const Value& scores);

}  // namespace tenon::onnx
