// SPDX-License-Identifier: Apache-2.0
// Reads files of patterns and rewriters: graph functions, combinators in Python's syntax, classes
// under `@R.rewriter`. docs/patterns.md is the guide.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tenon/graph/patterns/fusion_pattern.h"
#include "tenon/graph/patterns/rewriter.h"
#include "tenon/script/parser.h"

namespace tenon::script {

struct PatternFile {
  /// What `patterns = [...]` lists, and the graph functions and PrimFuncs of the file; without such
  /// a list each pattern that a name was given and that no other contains.
  std::vector<graph::FusionPattern> patterns;
  /// Classes or modules of `pattern` and `replacement`; where the file names `rewriter`, that one
  /// alone.
  std::vector<std::pair<std::string, graph::PatternRewriter>> rewriters;
  /// `with PatternContext() as NAME`.
  std::vector<std::pair<std::string, graph::PatternContext>> contexts;
  /// Every pattern that a name was given, in order.
  std::vector<std::pair<std::string, graph::DFPattern>> named;

  /// All of its rewriters, in order.
  graph::PatternRewriter rewriter() const;
};

struct PatternOptions {
  /// Put before names of patterns that have no dot.
  std::string backend = {};
  const ConstantStore* constants = nullptr;
};

/// \throws CompileError with every error found, at its place.
PatternFile read_pattern_file(const std::shared_ptr<const SourceFile>& file,
                              const PatternOptions& options = {});
PatternFile read_pattern_file(const std::string& text, const PatternOptions& options = {});

/// The pattern as statements in Python's syntax that give it to `name`: a part that stands in
/// several places has a name of its own.
std::string print_pattern(const graph::DFPattern& pattern, const std::string& name = "pattern");

}  // namespace tenon::script
