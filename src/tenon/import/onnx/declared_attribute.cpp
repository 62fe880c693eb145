// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/declared_attribute.h"

#include "tenon/import/onnx/scope.h"

namespace tenon::onnx {

// The node's attribute of a parameter's name; the declaration's `op_attrs` hold defaults.
Value declared_attribute(Context& context, const graph::Function& function, const graph::Var& param,
                         int64_t number) {
  const auto defaults = function.attrs.get<AttrValue::Map>("op_attrs");
  const AttrValue* otherwise = nullptr;
  if (defaults)
    if (const auto found = defaults->find(param.name); found != defaults->end())
      otherwise = &found->second;
  const bool given = context.has_attr(param.name);
  if (!given && !otherwise)
    throw CompileError(kBadAttribute, context.origin(),
                       "`{}` has no attribute `{}`, and its declaration no default",
                       name_of(context.node()), param.name)
        .note(param.origin, "it is declared here");
  const auto wrong = [&]() {
    return CompileError(kBadAttribute, function.origin, "the default of `{}` is {}; it is {}",
                        param.name, otherwise->str(), graph::str(param.type));
  };
  if (const auto* prim = param.type.as<graph::PrimType>()) {
    // Each node has its own number, so that seeds which the file leaves open differ.
    const auto* word = !given ? otherwise->as<std::string>() : nullptr;
    if (word && *word == "node")
      return make<graph::PrimValue>(prim->dtype.is_float()
                                        ? imm(prim->dtype, static_cast<double>(number))
                                        : imm(prim->dtype, number));
    if (prim->dtype.is_float()) {
      double value = 0;
      if (given) {
        value = context.float_attr(param.name);
      } else if (const auto* real = otherwise->as<double>()) {
        value = *real;
      } else if (const auto* whole = otherwise->as<int64_t>()) {
        value = static_cast<double>(*whole);
      } else {
        throw wrong();
      }
      return make<graph::PrimValue>(imm(prim->dtype, value));
    }
    if (!given && !otherwise->as<int64_t>() && !otherwise->as<bool>()) throw wrong();
    const int64_t value = given                   ? context.int_attr(param.name)
                          : otherwise->as<bool>() ? int64_t{*otherwise->as<bool>()}
                                                  : *otherwise->as<int64_t>();
    return make<graph::PrimValue>(imm(prim->dtype, value));
  }
  if (param.type.as<graph::ShapeType>()) {
    if (given) return make<graph::ShapeExpr>(to_exprs(context.ints_attr(param.name)));
    const auto values = Attrs{{param.name, *otherwise}}.ints(param.name);
    if (!values) throw wrong();
    return make<graph::ShapeExpr>(to_exprs(*values));
  }
  if (given) return make<graph::StringValue>(context.string_attr(param.name, ""));
  if (!otherwise->as<std::string>()) throw wrong();
  return make<graph::StringValue>(*otherwise->as<std::string>());
}

}  // namespace tenon::onnx
