// SPDX-License-Identifier: Apache-2.0
// Operators on the contents of strings.
#include <algorithm>
#include <map>

#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/operators.h"
#include "tenon/import/onnx/text.h"
#include "tenon/ir/text_constant.h"

namespace tenon::onnx {

Value text_table(const std::vector<std::string>& texts, const Ints& shape) {
  return make<graph::Constant>(tensor_of_texts(shape, texts));
}

namespace {

void check_text(Context& c, size_t i) {
  if (!c.dtype(i).is_string())
    c.bad(kDTypeMismatch, "operand {} of `{}` has dtype {}; expected string", i, c.node().op_type,
          c.dtype(i).str());
}

Results convert_string_concat(Context& c) {
  check_text(c, 0);
  check_text(c, 1);
  Value x = c.value(0), y = c.value(1);
  if (!arith::proves_equal(c.shape(0), c.shape(1))) {
    // The shape of both together is that of a comparison.
    const Value shape = c.shape_value(*shaped(c.op("equal", {x, y}))->shape);
    x = c.op("broadcast_to", {x, shape});
    y = c.op("broadcast_to", {y, shape});
  }
  return {c.op("string.concat", {x, y})};
}

Results convert_regex_full_match(Context& c) {
  check_text(c, 0);
  const std::string pattern = c.string_attr("pattern", "");
  return {c.op("string.regex_full_match", {c.value(0)}, {{"pattern", pattern}})};
}

}  // namespace

std::vector<OperatorRow> text_rows() {
  return {
      {"RegexFullMatch", 20, 1, 1, convert_regex_full_match, "string"},
      {"StringConcat", 20, 2, 2, convert_string_concat, "string"},
  };
}

}  // namespace tenon::onnx
