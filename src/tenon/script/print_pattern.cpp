// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "tenon/script/pattern_file.h"
#include "tenon/script/printer.h"

namespace tenon::script {

using graph::PatternNode;
using graph::PatternPtr;

namespace {

class PatternPrinter {
 public:
  std::string run(const PatternPtr& pattern, const std::string& name) {
    count(pattern);
    uses_[pattern.get()] = 1;  // has its own name
    const std::string text = expr(pattern);
    return lines_ + name + " = " + text + "\n";
  }

 private:
  void count(const PatternPtr& pattern) {
    if (!pattern || ++uses_[pattern.get()] > 1) return;
    each_member(pattern, [&](const NodePtr& member, FieldRole) {
      if (member.as<PatternNode>()) count(downcast<PatternNode>(member));
    });
  }

  std::string expr(const PatternPtr& pattern) {
    if (!pattern) return "None";
    const auto named = names_.find(pattern.get());
    if (named != names_.end()) return named->second;
    const std::string text = spelled(pattern);
    if (uses_[pattern.get()] < 2) return text;
    const std::string name = fmt::format("p{}", names_.size());
    names_.emplace(pattern.get(), name);
    lines_ += name + " = " + text + "\n";
    return name;
  }

  std::string list(const std::vector<PatternPtr>& patterns) {
    std::string out;
    for (const PatternPtr& pattern : patterns) out += (out.empty() ? "" : ", ") + expr(pattern);
    return out;
  }

  // As the subject of a method or an operator.
  std::string atom(const PatternPtr& pattern) {
    const std::string text = expr(pattern);
    const bool is_operator = pattern.as<graph::OrPattern>() || pattern.as<graph::AndPattern>() ||
                             pattern.as<graph::NotPattern>();
    return is_operator && !names_.count(pattern.get()) ? "(" + text + ")" : text;
  }

  static std::string quote(const std::string& text) { return AttrValue(text).str(); }

  static std::string dims(const std::vector<Expr>& dims) {
    std::string out = "(";
    for (const Expr& dim : dims) {
      const auto number = as_int(dim);
      out += number ? std::to_string(*number) : quote(print(dim));
      out += ", ";
    }
    if (dims.size() > 1) out.resize(out.size() - 2);
    if (dims.size() == 1) out.pop_back();
    return out + ")";
  }

  // Dimensions that are no numbers are strings, as they stand outside of functions.
  static std::string type(const graph::Type& type) {
    if (const auto* tuple = type.as<graph::TupleType>()) {
      std::string out;
      for (const graph::Type& item : tuple->types)
        out += (out.empty() ? "" : ", ") + PatternPrinter::type(item);
      return "R.Tuple(" + out + ")";
    }
    const auto* tensor = type.as<graph::TensorType>();
    if (!tensor || !tensor->shape) return print(type);
    return "R.Tensor(" + dims(*tensor->shape) +
           (tensor->dtype.is_void() ? ")" : ", dtype=" + quote(tensor->dtype.str()) + ")");
  }

  std::string spelled(const PatternPtr& pattern) {
    if (pattern.as<graph::WildcardPattern>()) return "wildcard()";
    if (const auto* p = pattern.as<graph::VarPattern>())
      return std::string(p->dataflow ? "is_dfv(" : "is_var(") +
             (p->name.empty() ? "" : quote(p->name)) + ")";
    if (const auto* p = pattern.as<graph::GlobalVarPattern>())
      return "is_gv(" + (p->name.empty() ? "" : quote(p->name)) + ")";
    if (const auto* p = pattern.as<graph::ExternFuncPattern>())
      return "extern_func(" + (p->symbol.empty() ? "" : quote(p->symbol)) + ")";
    if (pattern.as<graph::PrimFuncPattern>()) return "prim_func(...)";
    if (pattern.as<graph::ConstantPattern>()) return "is_const()";
    if (const auto* p = pattern.as<graph::ExprPattern>()) return "is_expr(" + print(p->value) + ")";
    if (const auto* p = pattern.as<graph::OpPattern>())
      return "is_op(" + quote("relax." + p->op->name) + ")";
    if (const auto* p = pattern.as<graph::CallPattern>()) {
      std::string args = p->args ? list(*p->args) : "";
      if (p->more_args)
        args += std::string(args.empty() ? "" : ", ") + "varg_default_wildcard=True";
      return atom(p->callee) + "(" + args + ")";
    }
    if (const auto* p = pattern.as<graph::FunctionPattern>())
      return "function_pattern([" + list(p->params) + "], " + expr(p->body) + ")";
    if (const auto* p = pattern.as<graph::TuplePattern>())
      return "is_tuple([" + list(p->items) + (p->unordered ? "], unordered=True)" : "])");
    if (const auto* p = pattern.as<graph::TupleGetItemPattern>())
      return "is_tuple_get_item(" + expr(p->tuple) +
             (p->index >= 0 ? fmt::format(", {})", p->index) : ")");
    if (const auto* p = pattern.as<graph::OrPattern>()) return atom(p->lhs) + " | " + atom(p->rhs);
    if (const auto* p = pattern.as<graph::AndPattern>()) return atom(p->lhs) + " & " + atom(p->rhs);
    if (const auto* p = pattern.as<graph::NotPattern>()) return "~" + atom(p->pattern);
    if (const auto* p = pattern.as<graph::DTypePattern>())
      return atom(p->pattern) + ".has_dtype(" + quote(p->dtype.str()) + ")";
    if (const auto* p = pattern.as<graph::ShapePattern>())
      return atom(p->pattern) + ".has_shape(" + dims(p->dims) + ")";
    if (const auto* p = pattern.as<graph::AttrPattern>())
      return atom(p->pattern) + ".has_attr(" + p->attrs.str() + ")";
    if (const auto* p = pattern.as<graph::TypePattern>())
      return atom(p->pattern) + ".has_type(" + type(p->value_type) + ")";
    if (const auto* p = pattern.as<graph::ShapeExprPattern>())
      return "is_shape(" + dims(p->dims) + ")";
    if (const auto* p = pattern.as<graph::ParamPattern>())
      return "param(" + quote(p->name) + ", " + type(p->value_type) + ")";
    if (const auto* p = pattern.as<graph::TransposedPattern>())
      return "transposed(" + expr(p->param) + ")";
    if (const auto* p = pattern.as<graph::GraphPattern>())
      return "graph_pattern([" + list(p->params) + "], [" + list(p->results) + "]" +
             (p->tuple ? ", tuple=True" : "") + (p->exclusive ? ")" : ", exclusive=False)");
    return "...";
  }

  std::unordered_map<const Node*, int> uses_;
  std::unordered_map<const Node*, std::string> names_;
  std::string lines_;
};

}  // namespace

std::string print_pattern(const graph::DFPattern& pattern, const std::string& name) {
  return PatternPrinter().run(pattern, name);
}

}  // namespace tenon::script
