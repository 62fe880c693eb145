// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/pass_list.h"

#include "tenon/driver/passes.h"
#include "tenon/graph/backend.h"
#include "tenon/script/literals.h"
#include "tenon/support/nearest.h"

namespace tenon {

namespace {

using script::ast::Expr;
using script::ast::ExprKind;

class Reader {
 public:
  explicit Reader(std::shared_ptr<const SourceFile> file) : file_(std::move(file)) {}

  Pipeline pipeline() {
    Pipeline passes;
    for (const auto& expr : script::ast::parse_expressions(file_)) passes.push_back(pass(*expr));
    return passes;
  }

 private:
  Pass pass(const Expr& expr) {
    const bool has_options = expr.kind == ExprKind::kCall;
    const Expr& callee = has_options ? *expr.items[0] : expr;
    const std::string name = name_of(callee);
    if (name.empty()) fail(kSyntax, callee.place, "this is no name of a pass");
    auto known = find_pass(name);
    if (!known) unknown(name, callee.place);
    Pass pass = std::move(*known);
    pass.origin = origin(callee.place);
    if (has_options) pass.options = options(expr);
    return pass;
  }

  [[noreturn]] void unknown(const std::string& name, const script::Place& place) const {
    std::vector<std::string> names;
    for (const Pass& pass : all_passes()) names.push_back(pass.name);
    for (const auto& backend : graph::all_backends())
      for (const Pass& pass : backend->passes) names.push_back(pass.name);
    for (std::string& registered : registered_passes()) names.push_back(std::move(registered));
    std::string hint = did_you_mean(name, names);
    if (hint.empty()) hint = "; `tenon opt --list-passes` lists them";
    fail(kUnknownPass, place, fmt::format("no pass `{}`{}", name, hint));
  }

  Origin origin(const script::Place& place) const {
    return Origin::script(file_, place.line, place.column, place.length);
  }
  [[noreturn]] void fail(const Code& code, const script::Place& place,
                         const std::string& text) const {
    throw CompileError(code, origin(place), "{}", text);
  }

  // A plugin's passes have its name and a dot in front.
  static std::string name_of(const Expr& expr) {
    std::string name;
    const Expr* at = &expr;
    for (; at->kind == ExprKind::kAttribute; at = at->items[0].get())
      name.insert(0, "." + at->text);
    return at->kind == ExprKind::kName ? at->text + name : "";
  }

  Attrs options(const Expr& call) const {
    if (call.items.size() > 1)
      fail(kSyntax, call.items[1]->place, "an option without a name; expected `NAME=VALUE`");
    Attrs options;
    for (const script::ast::Keyword& option : call.keywords) {
      if (options.contains(option.name))
        fail(kBadOption, option.place, fmt::format("option `{}` is given twice", option.name));
      options.set(option.name,
                  script::ast::literal_value(*option.value, [&](const Expr& other) -> AttrValue {
                    std::string name = name_of(other);  // needs no quotes: RunCodegen(backend=toy)
                    if (name.empty())
                      fail(kSyntax, other.place,
                           "this is no literal; expected None, True, a number, a string, a list");
                    return name;
                  }));
    }
    return options;
  }

  std::shared_ptr<const SourceFile> file_;
};

}  // namespace

Pipeline parse_pass_list(const std::shared_ptr<const SourceFile>& file) {
  return Reader(file).pipeline();
}

Pipeline parse_pass_list(std::string_view text) {
  return parse_pass_list(
      std::make_shared<const SourceFile>(SourceFile{"--passes", std::string(text)}));
}

std::string pass_text(const Pass& pass) {
  if (pass.options.empty()) return pass.name;
  std::string text;
  for (const auto& [name, value] : pass.options)
    text += (text.empty() ? "" : ", ") + name + "=" + value.str();
  return pass.name + "(" + text + ")";
}

}  // namespace tenon
