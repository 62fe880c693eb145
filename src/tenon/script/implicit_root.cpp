// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/implicit_root.h"

#include "tenon/ir/visit.h"

namespace tenon::script {

bool contains_block(const tir::Stmt& stmt) {
  bool found = false;
  walk_if(stmt, [&](const NodePtr& node) {
    if (node.as<tir::Block>()) found = true;
    return !found && node.as<tir::StmtNode>() != nullptr;
  });
  return found;
}

bool gets_root_block(const tir::Stmt& body, bool allocates) {
  if (allocates) return true;
  if (const auto* realize = body.as<tir::BlockRealize>()) return !realize->block->iter_vars.empty();
  return contains_block(body);
}

}  // namespace tenon::script
