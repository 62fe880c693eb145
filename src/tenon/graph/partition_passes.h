// SPDX-License-Identifier: Apache-2.0
// The passes that hand parts of a graph to back ends, up to RunCodegen (graph/backend.h). The
// guide: docs/byoc.md.
#pragma once

#include <string>
#include <vector>

#include "tenon/graph/patterns/fusion_pattern.h"

namespace tenon::graph {

struct FuseOptions {
  /// Constants stand in the composite; otherwise they are parameters of it. What a parameter of a
  /// pattern function matched always is one.
  bool bind_constants = true;
  /// Each composite comes into a region of its own (attr `Codegen`), ready for RunCodegen.
  bool annotate_codegen = false;
  /// An inner value that is used elsewhere too becomes one more output of the composite; otherwise
  /// such a match is refused, as one of a pattern function always is: its results are those that it
  /// states.
  bool extra_outputs = false;
  /// The patterns are the user's own: a remark for each says whether it matched.
  bool tells_unmatched = false;
};

/// Makes private functions with attr `Composite` of what matches `patterns`: the one of higher
/// priority first, then the larger; one that contains another replaces it. Records a remark for
/// each match that is refused.
IRModule fuse_ops_by_pattern(IRModule module, const std::vector<FusionPattern>& patterns,
                             const FuseOptions& options = {});
/// The same of the module's own patterns: its graph functions with attr `Pattern` (the composite's
/// name), which it takes out of the module. Records a remark for each pattern, too.
/// \throws CompileError (kBadPattern).
IRModule fuse_ops_by_pattern(IRModule module, const FuseOptions& options);

/// Joins neighbouring calls of composites of one back end: the largest regions that no path leaves
/// and enters again. Each becomes a private function with attrs `Codegen` (the back end) and
/// `global_symbol`, with the composites as local functions; its results are what is used outside.
/// Records a remark for each region.
IRModule merge_composite_functions(IRModule module);

/// Relay's passes towards external compilers. A region is a private function with attr `Compiler`;
/// until PartitionGraph names it, it has no `global_symbol`.
/// Composites as fuse_ops_by_pattern makes them, with attr `PartitionedFromPattern`:
/// "nn.conv2d_nn.relu_". Without `patterns` of the module's own.
IRModule merge_composite(IRModule module, const std::vector<FusionPattern>& patterns);
IRModule merge_composite(IRModule module);
/// Puts calls of the targets' composites, and operators that a pattern of theirs matches by itself,
/// into regions of one call each; the first target that takes a call has it.
IRModule annotate_target(IRModule module, const std::vector<std::string>& targets);
/// Joins neighbouring regions of one target where no path leaves and enters again.
IRModule merge_compiler_regions(IRModule module);
struct PartitionOptions {
  std::string mod_name = "default";
  bool bind_constants = true;  // constants that a region is called with stand in it
};
/// Names each region `tvmgen_<mod>_<target>_<caller>_<n>`, its parameters `<target>_<n>_i<k>`, with
/// attrs `Compiler`, `Primitive`, `Inline` and `global_symbol`.
/// \throws CompileError (kRedefined) where the module has a function of this name.
IRModule partition_graph(IRModule module, const PartitionOptions& options = {});
/// Functions inside of others with attrs `Compiler` (`compiler`, or any where it is empty) and
/// `global_symbol` become functions of the module under that name, once for each.
/// \throws CompileError (kRedefined) where two of one name differ.
IRModule outline_compiler_functions(IRModule module, const std::string& compiler);

}  // namespace tenon::graph
