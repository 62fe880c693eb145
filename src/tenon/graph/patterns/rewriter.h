// SPDX-License-Identifier: Apache-2.0
// Replaces matches of patterns in graph functions.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tenon/graph/patterns/matcher.h"

namespace tenon::graph {

/// What stands for a matched value: a Call, a leaf, or a tree of them (calls as arguments are
/// bound). Null: the rule has a condition that does not hold, so that other ways of matching are
/// tried, then the next rules. `value` itself: nothing changes.
using CallRule = std::function<Value(const Value& value, const Match& match)>;
/// What stands for variables of a match over a dataflow block.
using BindingsRule = std::function<std::vector<std::pair<Ref<Var>, Value>>(const Match& match)>;

struct RewriteOptions {
  /// How often a function is gone through again while something changes. A replacement that
  /// contains its own pattern never ends by itself.
  int max_rounds = 64;
};

/// Looks for `context` in every dataflow block and puts in place what `rule` gives, until it is
/// found no more or nothing changes.
/// \throws CompileError (kEndlessRewrite) beyond max_rounds, or where the function grows without
/// end; (kBadPattern) where a replacement needs what depends on it.
Ref<Function> rewrite_bindings(const PatternContext& context, const BindingsRule& rule,
                               const Ref<Function>& function, const IRModule* module = nullptr,
                               const RewriteOptions& options = {});

/// Rewrites of patterns, tried in order at each binding. A value: copies are cheap.
class PatternRewriter {
 public:
  static PatternRewriter from_pattern(DFPattern pattern, CallRule rule);
  /// From functions `pattern` and `replacement` of one signature; a tuple as result: each of its
  /// items is replaced. Other functions of the module come along where the replacement calls them.
  /// \throws CompileError (kBadPattern).
  static PatternRewriter from_module(const IRModule& module);

  /// The same, under this name in remarks.
  PatternRewriter named(const std::string& name) const;
  /// Rewrites of both, this one's first.
  PatternRewriter operator|(const PatternRewriter& other) const;

  Ref<Function> operator()(const Ref<Function>& function, const IRModule* module = nullptr,
                           const RewriteOptions& options = {}) const;
  /// Every graph function of the module; records a remark for each rewrite rule.
  IRModule operator()(IRModule module, const RewriteOptions& options = {}) const;

  bool empty() const { return rules_.empty(); }

  /// What the first rule that applies to a value gives for it.
  struct Rewrite {
    size_t rule;
    std::string name;
    Value value;
  };
  /// Nothing where no rule applies to `root`, a value that `matcher` knows or a call. Rules are
  /// found by their root's operator, so that time does not grow with the number of the others.
  std::optional<Rewrite> at(const Matcher& matcher, const Value& root) const;

 private:
  friend class RewriteRun;
  struct Rule;
  PatternRewriter& add(Rule rule);

  std::vector<std::shared_ptr<const Rule>> rules_;
  /// Rules with one result, in order: by the operator at the root, and those of any other root.
  std::unordered_map<const OpDef*, std::vector<size_t>> by_operator_;
  std::vector<size_t> of_any_root_;
};

}  // namespace tenon::graph
