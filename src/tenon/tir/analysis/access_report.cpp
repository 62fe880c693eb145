// SPDX-License-Identifier: Apache-2.0
// Words the report of an access that is not proved to lie inside its buffer.
#include "tenon/tir/analysis/access_bounds.h"

namespace tenon::tir {

using Kind = AccessCheck::Kind;

// The C function that a call names.
static std::string callee_of(const AccessCheck& check) {
  const auto* call = check.node.as<Call>();
  const auto* name = call && !call->args.empty() ? call->args[0].as<StringImm>() : nullptr;
  return name ? name->value : "?";
}

static std::string as_written(const Expr& value) {
  const auto* widened = value.as<Cast>();
  return str(widened ? widened->value : value);
}

std::string subject_of(const AccessCheck& check) {
  switch (check.kind) {
    case Kind::kIndex:
      return fmt::format("index {} of dimension {} of buffer `{}`", str(check.index), check.dim,
                         check.buffer->name);
    case Kind::kRegion:
      return fmt::format("region {}:{} of dimension {} of buffer `{}`", str(check.index),
                         str(check.index + check.length), check.dim, check.buffer->name);
    case Kind::kDivisor: return fmt::format("divisor {}", str(check.index));
    case Kind::kShift: return fmt::format("shift by {}", str(check.index));
    case Kind::kView:
      if (check.node.as<DeclBuffer>())
        return fmt::format("the end of view `{}`, {}", check.buffer->name, str(check.index));
      return fmt::format("dimension {} of view `{}`, {}", check.dim, check.buffer->name,
                         str(check.index));
    case Kind::kPointer:
      return fmt::format("pointer to {} elements from {} on of the memory of buffer `{}`",
                         as_written(check.length), as_written(check.index), check.buffer->name);
    case Kind::kWhole:
      return fmt::format("{}, which `{}` is given without an end",
                         check.buffer ? fmt::format("the memory of buffer `{}`", check.buffer->name)
                                      : fmt::format("pointer {}", str(check.index)),
                         callee_of(check));
  }
  unreachable("a kind of check");
}

static std::string fault_of(const AccessCheck& check, const std::string& in) {
  const std::string at = check.iteration.empty() ? "" : " where " + check.iteration;
  const std::string subject = subject_of(check);
  switch (check.kind) {
    case Kind::kIndex:
    case Kind::kRegion:
    case Kind::kPointer: {
      if (at.empty())
        return fmt::format("{} lies outside of its extent {}", subject, check.extent_value);
      return fmt::format("{} is {}{}; its extent is {}", subject, check.value, at,
                         check.extent_value);
    }
    case Kind::kDivisor:
      return fmt::format("`{}` in `{}` divides by zero{}", str(downcast<ExprNode>(check.node)), in,
                         at);
    case Kind::kView:
      return fmt::format("{}, is{} beyond what it shows, which has {}", subject,
                         check.iteration.empty() ? "" : fmt::format(" {}{} and", check.value, at),
                         check.extent_value);
    case Kind::kShift:
      return fmt::format("`{}` in `{}` shifts by {}{}; its dtype has {} bits",
                         str(downcast<ExprNode>(check.node)), in, check.value, at,
                         check.extent_value);
    case Kind::kWhole: break;
  }
  unreachable("a kind of check that fails");
}

static const Code& code_of(const AccessCheck& check) {
  if (check.kind == Kind::kDivisor) return kDivisionByZero;
  return check.kind == Kind::kShift ? kShiftOutOfRange : kOutOfBounds;
}

void report(const AccessCheck& check, const std::string& in, Diagnostics& diagnostics) {
  Diagnostic& diagnostic =
      diagnostics.error(code_of(check), check.origin, "{}", fault_of(check, in));
  if (check.buffer && check.buffer->origin && check.kind != Kind::kView)
    diagnostic.notes.push_back(
        {check.buffer->origin, fmt::format("`{}` is defined here", check.buffer->name)});
}

}  // namespace tenon::tir
