// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/transforms/match.h"

namespace tenon::graph {

std::optional<double> constant_number(const Value& value) {
  const auto* constant = value.as<Constant>();
  if (!constant || (constant->data->elements() != 1 && !constant->data->is_splat()))
    return std::nullopt;
  if (constant->data->elements() == 0) return std::nullopt;
  return constant->data->at_float(0);
}

Value emit_noted(BlockBuilder& builder, Matcher& matcher, const Value& value,
                 const std::string& name) {
  const size_t before = builder.emitted();
  Value var = builder.emit(value, name);
  if (builder.emitted() > before) matcher.redefine(ref_to(&builder.last()));
  return var;
}

}  // namespace tenon::graph
