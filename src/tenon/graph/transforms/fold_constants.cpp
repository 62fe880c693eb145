// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"

namespace tenon::graph {

// Bytes of constants that folding may add in all; and that it may make, results of which only
// later results are kept included, with as much again for each byte that the module brings.
static constexpr int64_t kMostGrowth = int64_t{256} << 20, kMostMade = int64_t{256} << 20,
                         kMadeForEachByte = 4;

static bool is_constant(const Value& value) {
  if (value.as<Constant>() || value.as<StringValue>() || value.as<FuncRef>()) return true;
  if (const auto* shape = value.as<ShapeExpr>()) return as_ints(shape->values).has_value();
  if (const auto* prim = value.as<PrimValue>()) return as_int(prim->value) || as_float(prim->value);
  if (const auto* tuple = value.as<Tuple>()) {
    for (const Value& item : tuple->values)
      if (!is_constant(item)) return false;
    return true;
  }
  return false;
}

// Bytes of the result, and of the arguments, where all are static tensors.
static std::optional<int64_t> bytes_of(const Type& type) {
  if (const auto* tuple = type.as<TupleType>()) {
    int64_t total = 0;
    for (const Type& item : tuple->types) {
      const auto bytes = bytes_of(item);
      if (!bytes) return std::nullopt;
      total += *bytes;
    }
    return total;
  }
  const auto* tensor = type.as<TensorType>();
  if (!tensor) return std::nullopt;
  const auto shape = tensor->static_shape();
  if (!shape || tensor->dtype.is_void()) return std::nullopt;
  return checked_elements(*shape, tensor->dtype.bytes()) * tensor->dtype.bytes();
}

static int64_t constant_bytes(const Call& call) {
  int64_t total = 0;
  for (const Value& arg : call.args)
    if (const auto* constant = arg.as<Constant>())
      total += constant->data->is_splat() ? 0 : constant->data->bytes();
  return total;
}

static int64_t constant_bytes(const IRModule& module) {
  int64_t total = 0;
  for (const auto& [name, function] : module.functions())
    walk<Constant>(function, [&](const Constant& constant) {
      if (!constant.data->is_splat()) total += constant.data->bytes();
    });
  return total;
}

// Bytes that a value takes: those of a splat are not written out.
static int64_t bytes_held(const Value& value) {
  if (const auto* constant = value.as<Constant>())
    return constant->data->is_splat() ? 0 : constant->data->bytes();
  int64_t total = 0;
  if (const auto* tuple = value.as<Tuple>())
    for (const Value& item : tuple->values) total += bytes_held(item);
  return total;
}

IRModule fold_constants(IRModule module, const ConstantEvaluator& evaluate) {
  int64_t growth = 0, made = 0, most_made = kMostMade;
  bool weighed = false;  // whether `most_made` counts the module's own constants
  return rebuild_all(
      std::move(module),
      [&](BlockBuilder& builder, const Binding&, const Value& value) -> std::optional<Value> {
        const auto* call = value.as<Call>();
        if (!call || !call->op || !call->op->pure) return std::nullopt;
        // A generator of a constant (full, zeros, arange) folds too: it has static arguments only.
        for (const Value& arg : call->args)
          if (!is_constant(arg)) return std::nullopt;
        const auto bytes = bytes_of(type_of(value));
        if (!bytes) return std::nullopt;
        const int64_t more = std::max<int64_t>(0, *bytes - constant_bytes(*call));
        if (growth + more > kMostGrowth) return std::nullopt;
        if (made + *bytes > most_made && !weighed) {
          most_made += kMadeForEachByte * constant_bytes(builder.module());
          weighed = true;
        }
        if (made + *bytes > most_made) return std::nullopt;
        auto folded = evaluate(builder.module(), ref_to(call));
        if (!folded) return std::nullopt;
        growth += more;
        made += bytes_held(*folded);
        return folded;
      });
}

}  // namespace tenon::graph
