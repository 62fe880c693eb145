// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/assertion.h"

#include "tenon/graph/op.h"

namespace tenon::graph {

std::string assert_message(const Call& call) {
  for (size_t i = 1; i < call.args.size(); ++i)
    if (const auto* text = call.args[i].as<StringValue>()) return text->value;
  return "an assertion does not hold";
}

Value assertion(const Expr& condition, const std::string& message, const Origin& origin) {
  return call_op("assert_op", {make<PrimValue>(condition), make<StringValue>(message)}, {}, origin);
}

}  // namespace tenon::graph
