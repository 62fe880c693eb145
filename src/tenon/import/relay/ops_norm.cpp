// SPDX-License-Identifier: Apache-2.0
// Normalisations and softmax.
#include "tenon/import/relay/operators.h"

namespace tenon::relay {

namespace {

Value convert_batch_norm(OpCall& c) {
  c.ignore({"momentum"});
  if (c.flag("training", false)) unsupported("training=True");
  return c.op("nn.batch_norm", {c.arg(0), c.arg(1), c.arg(2), c.arg(3), c.arg(4)},
              {{"axis", c.integer("axis", 1)},
               {"epsilon", c.real("epsilon", 1e-5)},
               {"center", c.flag("center", true)},
               {"scale", c.flag("scale", true)},
               {"training", false}});
}

Value convert_layer_norm(OpCall& c) {
  return c.op("nn.layer_norm", {c.arg(0), c.arg(1), c.arg(2)},
              {{"axes", Ints{c.axis(c.integer("axis", -1), c.ndim(0))}},
               {"epsilon", c.real("epsilon", 1e-5)},
               {"center", c.flag("center", true)},
               {"scale", c.flag("scale", true)}});
}

void check_plain(OpCall& c) {
  if (c.axis(c.integer("axis", 1), c.ndim(0)) != 1) unsupported("an axis other than 1");
  if (!c.flag("center", true)) unsupported("center=False");
  if (!c.flag("scale", true)) unsupported("scale=False");
}

Value convert_instance_norm(OpCall& c) {
  check_plain(c);
  return c.op("nn.instance_norm", {c.arg(0), c.arg(1), c.arg(2)},
              {{"epsilon", c.real("epsilon", 1e-5)}});
}

Value convert_group_norm(OpCall& c) {
  check_plain(c);
  return c.op("nn.group_norm", {c.arg(0), c.arg(1), c.arg(2)},
              {{"num_groups", c.integer("num_groups")}, {"epsilon", c.real("epsilon", 1e-5)}});
}

Value convert_lrn(OpCall& c) {
  if (c.integer("axis", 1) != 1) unsupported("an axis other than 1");
  return c.op("nn.lrn", {c.arg(0)},
              {{"size", c.integer("size", 5)},
               {"alpha", c.real("alpha", 1e-4)},
               {"beta", c.real("beta", 0.75)},
               {"bias", c.real("bias", 2)}});
}

// x / sqrt(max(sum of squares, eps))
Value convert_l2_normalize(OpCall& c) {
  const Value x = c.arg(0);
  Ints axes = c.axes(c.list("axis", Ints{}), c.ndim(0));
  Attrs reduce{{"keepdims", true}};
  if (!axes.empty()) reduce.set("axis", axes);
  const Value sum = c.op("sum", {c.op("square", {x})}, reduce);
  const Value bounded = c.op("maximum", {sum, c.scalar(c.dtype(0), c.real("eps"))});
  return c.op("divide", {x, c.op("sqrt", {bounded})});
}

OperatorRow along_axis(const char* name, const char* op) {
  const auto convert = [op](OpCall& c) {
    return c.op(op, {c.arg(0)}, {{"axis", c.axis(c.integer("axis", -1), c.ndim(0))}});
  };
  return {name, 1, 1, convert, op};
}

}  // namespace

std::vector<OperatorRow> norm_rows() {
  return {
      {"nn.batch_norm", 5, 5, convert_batch_norm, "nn.batch_norm, a tuple", "inference"},
      {"nn.layer_norm", 3, 3, convert_layer_norm, "nn.layer_norm"},
      {"nn.instance_norm", 3, 3, convert_instance_norm, "nn.instance_norm",
       "axis 1, with scale and center"},
      {"nn.group_norm", 3, 3, convert_group_norm, "nn.group_norm", "axis 1, with scale and center"},
      {"nn.lrn", 1, 1, convert_lrn, "nn.lrn", "axis 1"},
      {"nn.l2_normalize", 1, 1, convert_l2_normalize, "square, sum, maximum, sqrt, divide"},
      along_axis("nn.softmax", "nn.softmax"),
      along_axis("nn.fast_softmax", "nn.softmax"),
      along_axis("nn.log_softmax", "nn.log_softmax"),
  };
}

}  // namespace tenon::relay
