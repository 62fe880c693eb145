// SPDX-License-Identifier: Apache-2.0
// Looks through bindings, for graph rewrites that ask which call computes a value.
#pragma once

#include "tenon/graph/transforms/rebuild.h"

namespace tenon::graph {

/// Remembers what each variable that a rebuild emits is bound to, so that rules can look at
/// producers.
class Producers {
 public:
  /// Notes that `var` is bound to `value`; called by a rule for what it returns or lets pass. An
  /// emit of a variable gives the variable itself, which is bound to nothing by that.
  void note(const Value& var, const Value& value) {
    if (var.as<Var>() && !var.same_as(value)) values_[var.get()] = value;
  }
  /// The call that gives `value`, or null.
  const Call* call(const Value& value) const {
    const auto it = values_.find(value.get());
    if (it == values_.end()) return value.as<Call>();
    const auto* call = it->second.as<Call>();
    return call ? call : it->second.as<Var>() ? this->call(it->second) : nullptr;
  }
  /// The call of operator `op` that gives `value`, or null.
  const Call* call(const Value& value, std::string_view op) const {
    const Call* found = call(value);
    return found && found->is(op) ? found : nullptr;
  }

 private:
  std::unordered_map<const Node*, Value> values_;
};

/// The one number that a constant holds (a scalar, or every element of a splat), or nothing.
std::optional<double> constant_number(const Value& value);

/// True where `value` is a constant tensor.
inline bool is_constant_tensor(const Value& value) { return value.as<Constant>() != nullptr; }

/// An emit that also notes the producer.
Value emit_noted(BlockBuilder& builder, Producers& producers, Value value, const std::string& name);

}  // namespace tenon::graph
