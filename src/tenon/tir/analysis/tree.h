// SPDX-License-Identifier: Apache-2.0
// Finds and replaces statements of a function by the path from its root to them.
#pragma once

#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "tenon/arith/analyzer.h"
#include "tenon/tir/analysis/region.h"
#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// The statements from the function's body down to one of them, which is the last.
struct Path {
  std::vector<Stmt> stmts;
  const Stmt& target() const { return stmts.back(); }
  explicit operator bool() const { return !stmts.empty(); }
};

/// The statements directly below `stmt` (of a BlockRealize: the block's init and body).
std::vector<Stmt> children_of(const Stmt& stmt);
/// `parent` with `child` replaced; a null replacement drops it. Null where nothing is left.
Stmt with_child(const Stmt& parent, const Stmt& child, const Stmt& replacement);

Path find_path(const Stmt& root, const std::function<bool(const Stmt&)>& is_target);
Path find_loop(const Stmt& root, const Var* var);
Path find_block(const Stmt& root, const std::string& name);
/// The root with the target of `path` replaced (null: removed, with loops that become empty).
Stmt replace(const Path& path, Stmt replacement);

/// Every BlockRealize below `root` (not `root`'s own enclosing ones), in program order; blocks
/// inside blocks after them.
std::vector<Ref<BlockRealize>> realizes_in(const Stmt& root);
/// The same without blocks inside blocks.
std::vector<Ref<BlockRealize>> outermost_realizes_in(const Stmt& root);
/// The loops of `path` that lie below its innermost enclosing block (outermost first). The target
/// counts where it is a loop and `with_target`.
std::vector<Ref<For>> loops_of(const Path& path);
/// Ranges of the loops, for asking how an expression behaves while they run.
VarRanges ranges_of(const std::vector<Ref<For>>& loops);
/// Binds the loops of `path` (all of them, outside blocks too) and the axes of blocks on it.
void bind_path(const Path& path, arith::Analyzer& analyzer);

/// `stmt` with the bindings and predicates of its blocks simplified, knowing what `analyzer` knows
/// and the loops inside.
Stmt simplify_bindings(const Stmt& stmt, arith::Analyzer& analyzer);

/// Whether both are proved to be the same.
bool same_range(const Range& a, const Range& b, arith::Analyzer& analyzer);

}  // namespace tenon::tir
