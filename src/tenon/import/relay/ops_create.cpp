// SPDX-License-Identifier: Apache-2.0
// Operators that make tensors.
#include <cmath>

#include "tenon/import/relay/operators.h"

namespace tenon::relay {

namespace {

OperatorRow constant_fill(const char* name, double value) {
  const auto convert = [value](OpCall& c) {
    const Ints shape = c.count() > 0 ? c.ints(0, "shape") : c.list("shape");
    return c.filled(c.dtype_attr("dtype", kFloat32), shape, value);
  };
  return {name, 0, 1, convert, "a constant", "shape a constant"};
}

Value convert_full(OpCall& c) {
  const Ints shape = c.count() > 1 ? c.ints(1, "shape") : c.list("shape");
  const DType dtype = c.dtype_attr("dtype", c.dtype(0));
  if (c.constant(0)) return c.filled(dtype, shape, c.float_scalar(0, "fill_value"));
  return c.op("full", {OpCall::shape_value(to_exprs(shape)), c.cast(c.arg(0), dtype)},
              {{"dtype", dtype}});
}

Value convert_full_like(OpCall& c) { return c.op("full_like", {c.arg(0), c.arg(1)}); }

Value convert_arange(OpCall& c) {
  c.ignore({"start", "stop", "step"});  // what the operands say
  const Expr start = c.scalar_expr(0, "start"), stop = c.scalar_expr(1, "stop"),
             step = c.scalar_expr(2, "step");
  const auto zero = as_float(step);
  if (is_int(step, 0) || (zero && *zero == 0)) c.bad(kBadArgument, "`arange` has a step of 0");
  return c.op("arange", {OpCall::prim(start), OpCall::prim(stop), OpCall::prim(step)},
              {{"dtype", c.dtype_attr("dtype", c.dtype(0))}});
}

Value convert_shape_of(OpCall& c) {
  const DType dtype = c.dtype_attr("dtype", kInt32);
  const Dims shape = c.shape(0);
  if (const auto known = as_ints(shape)) return c.cast(OpCall::ints_constant(*known), dtype);
  return c.cast(c.op("shape_to_tensor", {OpCall::shape_value(shape)}), dtype);
}

Value convert_ndarray_size(OpCall& c) {
  const auto count = as_int(graph::product(c.shape(0)));
  if (!count) unsupported("a symbolic size");
  return c.scalar(c.dtype_attr("dtype", kInt32), static_cast<double>(*count));
}

Value convert_trilu(OpCall& c) {
  const Ints k = c.ints(1, "k");
  if (k.size() != 1) c.bad(kShapeMismatch, "operand `k` of `trilu` has {} elements", k.size());
  return c.op(c.flag("upper", true) ? "triu" : "tril", {c.arg(0)}, {{"k", k[0]}});
}

}  // namespace

std::vector<OperatorRow> create_rows() {
  return {
      constant_fill("zeros", 0),
      constant_fill("ones", 1),
      constant_fill("dyn.zeros", 0),
      constant_fill("dyn.ones", 1),
      {"full", 1, 2, convert_full, "a constant, full", "shape a constant"},
      {"dyn.full", 2, 2, convert_full, "a constant, full", "shape a constant"},
      {"full_like", 2, 2, convert_full_like},
      {"arange", 3, 3, convert_arange, "arange", "constant operands"},
      {"shape_of", 1, 1, convert_shape_of, "a constant, shape_to_tensor"},
      {"ndarray_size", 1, 1, convert_ndarray_size, "a constant", "static shapes"},
      {"trilu", 2, 2, convert_trilu, "tril, triu", "k a constant"},
  };
}

}  // namespace tenon::relay
