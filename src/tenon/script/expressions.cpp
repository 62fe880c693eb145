// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/expressions.h"

#include "tenon/script/graph_builder.h"

namespace tenon::script {

namespace {

/// Reads one text whose names are given values.
class Reading {
 public:
  explicit Reading(const std::string& text) {
    context_.file = std::make_shared<const SourceFile>(SourceFile{"<python>", text});
    context_.options = &options_;
    context_.diagnostics = &diagnostics_;
    expr_ = ast::parse_expression(context_.file, text,
                                  {1, 1, static_cast<uint32_t>(std::max<size_t>(1, text.size()))});
    builder_.emplace(context_, GraphBuilder::Form::kTrees);
  }
  GraphBuilder& builder() { return *builder_; }
  const ast::Expr& expr() const { return *expr_; }
  const IRModule& captured() const { return context_.captured; }

 private:
  ParseOptions options_;
  Diagnostics diagnostics_;
  ModuleContext context_;
  ast::ExprPtr expr_;
  std::optional<GraphBuilder> builder_;
};

}  // namespace

Object call_word(const std::string& word, const std::vector<Object>& args,
                 const HostValue::Keywords& keywords, IRModule* captured) {
  std::string text = word + "(";
  for (size_t i = 0; i < args.size() + keywords.size(); ++i) {
    if (i > 0) text += ", ";
    if (i >= args.size()) text += keywords[i - args.size()].first + "=";
    text += fmt::format("arg{}", i);
  }
  Reading reading(text + ")");
  for (size_t i = 0; i < args.size() + keywords.size(); ++i)
    reading.builder().set(fmt::format("arg{}", i),
                          i < args.size() ? args[i] : keywords[i - args.size()].second);
  Object out = reading.builder().eval(reading.expr());
  if (captured)
    for (const auto& [name, function] : reading.captured().functions())
      captured->set(name, function);
  return out;
}

Object operate(const std::string& op, const Object& lhs, const Object& rhs) {
  Reading reading("lhs " + op + " rhs");
  reading.builder().set("lhs", lhs);
  reading.builder().set("rhs", rhs);
  return reading.builder().eval(reading.expr());
}

Object item_of(const Object& lhs, const Object& index) {
  Reading reading("lhs[index]");
  reading.builder().set("lhs", lhs);
  reading.builder().set("index", index);
  return reading.builder().eval(reading.expr());
}

graph::Value value_of(const Object& object) {
  Reading reading("value");
  reading.builder().set("value", object);
  return reading.builder().value(reading.expr());
}

graph::Type type_of(const Object& object) {
  Reading reading("type");
  reading.builder().set("type", object);
  return reading.builder().type(reading.expr());
}

std::vector<Expr> dimensions_of(const Object& object) {
  Reading reading("shape");
  reading.builder().set("shape", object);
  return reading.builder().dimensions(reading.expr());
}

}  // namespace tenon::script
