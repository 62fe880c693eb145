// SPDX-License-Identifier: Apache-2.0
// The reader of pattern files, shared by pattern_file.cpp (statements, names) and pattern_calls.cpp
// (combinators). No other file includes this.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "tenon/script/graph_builder.h"
#include "tenon/script/pattern_file.h"

namespace tenon::script {

struct PatternValue;
using Items = std::shared_ptr<const std::vector<PatternValue>>;

/// What an expression of a pattern file gives; an Object is what is no pattern.
struct PatternValue {
  std::variant<Object, graph::DFPattern, graph::PatternSeq, std::shared_ptr<graph::PatternContext>,
               Items, std::shared_ptr<const graph::FusionPattern>, graph::PatternRewriter, BaseFunc,
               const ast::Stmt*>
      value = Object();
  std::vector<std::string> keys = {};  // of a dict: of its items

  PatternValue() = default;
  template <typename T>
    requires(!std::is_same_v<std::decay_t<T>, PatternValue>)
  PatternValue(T v) : value(std::move(v)) {}
  template <typename T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
};

/// One file. Statements run in order; functions of Python are run where they are called.
class PatternReader {
 public:
  PatternReader(const std::shared_ptr<const SourceFile>& file, const PatternOptions& options)
      : options_(options) {
    parse_options_.constants = options.constants;
    context_.file = file;
    context_.options = &parse_options_;
    context_.diagnostics = &diagnostics_;
  }

  PatternFile read();

 private:
  Origin origin(const Place& place) const {
    return Origin::script(context_.file, place.line, place.column, place.length);
  }
  template <typename... Args>
  [[noreturn]] void fail(const Code& code, const Place& place, fmt::format_string<Args...> format,
                         Args&&... args) const {
    throw CompileError(code, origin(place), format, std::forward<Args>(args)...);
  }

  // ---- functions and modules in the file --------------------------------------------------------

  void read_functions(const ast::Body& body);

  // The functions that stand beside classes: the parser would take the class instead.
  IRModule functions_alone(const ast::Body& body, const ParseOptions& options);

  void module_of_class(const ast::Stmt& stmt, const IRModule& module);

  void finish();

  std::string full_name(const std::string& name) const {
    return options_.backend.empty() || name.find('.') != std::string::npos
               ? name
               : options_.backend + "." + name;
  }

  void name_constants(graph::FusionPattern& pattern) const;

  // A part of another pattern that has a name.
  void add_labels(graph::FusionPattern& pattern) const;
  bool is_part(const graph::DFPattern& pattern) const;

  // ---- statements -------------------------------------------------------------------------------

  void attempt(const ast::Stmt& stmt) {
    try {
      (void)statement(stmt);
    } catch (const CompileError& error) {
      diagnostics_.add(error);
    }
  }

  // What a `return` gave.
  std::optional<PatternValue> statement(const ast::Stmt& stmt);

  std::optional<PatternValue> statements(const ast::Body& body) {
    for (const auto& stmt : body)
      if (auto value = statement(*stmt)) return value;
    return std::nullopt;
  }

  // `with PatternContext() as ctx:`; calls that stand in no other pattern are a part of it.
  std::optional<PatternValue> with(const ast::Stmt& stmt);

  void assign(const ast::Expr& target, const PatternValue& value);

  // `patterns = [("dnnl.conv2d", conv), FusionPattern(...), relu]`
  std::vector<graph::FusionPattern> listed(const PatternValue& value, const Place& place);

  graph::FusionPattern fusion_pattern(const std::vector<PatternValue>& parts, const Place& place);

  // ---- expressions ------------------------------------------------------------------------------

  void charge(const Place& place) {
    if (--work_left_ < 0)
      fail(kLimitExceeded, place, "more than {} steps to read a pattern file", kMostWork);
  }

  const PatternValue* lookup(const std::string& name) const;

  static std::string last_name(const ast::Expr& expr) {
    return expr.kind == ast::ExprKind::kName || expr.kind == ast::ExprKind::kAttribute ? expr.text
                                                                                       : "";
  }

  const std::vector<PatternValue>& items(const PatternValue& value, const Place& place) {
    const auto* list = value.as<Items>();
    if (!list || !*list) fail(kTypeMismatch, place, "something else than a list of patterns");
    return **list;
  }

  bool holds(const ast::Expr& condition);

  graph::DFPattern pattern(const ast::Expr& expr) {
    const PatternValue value = eval(expr);
    if (const auto* pattern = value.as<graph::DFPattern>()) return *pattern;
    if (const auto* seq = value.as<graph::PatternSeq>(); seq && seq->patterns.size() == 1)
      return seq->patterns[0];
    fail(kTypeMismatch, expr.place, "something else than a pattern");
  }
  graph::PatternSeq sequence(const ast::Expr& expr) {
    const PatternValue value = eval(expr);
    if (const auto* seq = value.as<graph::PatternSeq>()) return *seq;
    return pattern(expr);
  }
  std::vector<graph::DFPattern> patterns(const ast::Expr& expr) {
    std::vector<graph::DFPattern> out;
    const PatternValue list = eval(expr);
    for (const PatternValue& item : items(list, expr.place)) {
      const auto* pattern = item.as<graph::DFPattern>();
      if (!pattern) fail(kTypeMismatch, expr.place, "a list of something else than patterns");
      out.push_back(*pattern);
    }
    return out;
  }
  std::string text(const ast::Expr& expr) {
    const PatternValue value = eval(expr);
    const auto* object = value.as<Object>();
    const auto* text = object ? object->as<std::string>() : nullptr;
    if (!text) fail(kTypeMismatch, expr.place, "something else than a string");
    return *text;
  }
  int64_t number(const ast::Expr& expr) {
    const PatternValue value = eval(expr);
    const auto* object = value.as<Object>();
    const auto* number = object ? object->as<ast::Integer>() : nullptr;
    if (!number || *number > 1'000'000 || *number < -1'000'000)
      fail(kTypeMismatch, expr.place, "something else than a small integer");
    return static_cast<int64_t>(*number);
  }

  // Notes where a pattern was written, and that it was.
  PatternValue made(graph::DFPattern pattern, const Place& place) {
    if (!pattern->origin) const_cast<graph::PatternNode*>(pattern.get())->origin = origin(place);
    if (!open_.empty()) made_.push_back(pattern);
    return pattern;
  }
  // Notes constraints in the context that is open.
  PatternValue constrained(graph::PatternSeq seq, const Place& place) {
    if (open_.empty())
      fail(kBadPattern, place, "a constraint between patterns outside of `with PatternContext()`");
    open_.back()->add(seq);
    return seq;
  }

  PatternValue eval(const ast::Expr& expr);

  PatternValue joined(const PatternValue& lhs, const PatternValue& rhs, const Place& place);

  PatternValue combined(const std::string& op, const PatternValue& lhs, const PatternValue& rhs,
                        const Place& place);

  struct Arguments;
  PatternValue call(const ast::Expr& expr);
  PatternValue call_pattern(const graph::DFPattern& callee, Arguments& args);
  std::optional<PatternValue> call_method(const std::string& name, const ast::Expr& self,
                                          Arguments& args);
  std::optional<PatternValue> call_combinator(const std::string& name, Arguments& args);
  graph::DFPattern any_of(Arguments& args);
  graph::DFPattern call_tir_pattern(Arguments& args);
  graph::DFPattern graph_pattern(Arguments& args);
  PatternValue fusion_pattern(Arguments& args);
  PatternValue call_python(const ast::Stmt& definition, Arguments& args);
  std::optional<std::vector<graph::DFPattern>> optional_patterns(const ast::Expr* expr);

  static constexpr int kMostWork = 200'000;
  static constexpr size_t kMostCalls = 40;

  const PatternOptions& options_;
  ParseOptions parse_options_;
  Diagnostics diagnostics_;
  ModuleContext context_;
  GraphBuilder* builder_ = nullptr;
  int work_left_ = kMostWork;
  std::vector<std::map<std::string, PatternValue>> names_;  // the file's, then those of calls
  std::vector<std::shared_ptr<graph::PatternContext>> open_;
  std::vector<graph::DFPattern> made_;  // in the context that is open
  IRModule functions_;
  std::set<std::string> parts_;  // functions that patterns name
  std::vector<graph::FusionPattern> of_functions_;
  std::optional<std::vector<graph::FusionPattern>> listed_;
  PatternFile out_;
};

}  // namespace tenon::script
