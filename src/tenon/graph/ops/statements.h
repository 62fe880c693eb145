// SPDX-License-Identifier: Apache-2.0
// The body of a block whose definition is a small program: names, stores, loops, conditions.
#pragma once

#include <functional>
#include <vector>

#include "tenon/graph/ops/define.h"

namespace tenon::graph {

class Statements {
 public:
  /// A name for a value, which is computed here.
  Expr bind(const char* name, const Expr& value) {
    const auto var = make<tenon::Var>(name, value->dtype);
    stmts_.push_back(make<tir::Bind>(var, value));
    return var;
  }
  void store(const Operand& to, const Indices& at, const Expr& value) {
    stmts_.push_back(make<tir::BufferStore>(to.buffer, value, at));
  }
  void loop(const char* name, const Expr& extent,
            const std::function<void(Statements&, const Expr&)>& body) {
    const auto var = make<tenon::Var>(name, kInt64);
    Statements inner;
    body(inner, var);
    stmts_.push_back(
        make<tir::For>(var, int64(0), extent, tir::ForKind::kSerial, std::move(inner).all()));
  }
  void loop_while(const Expr& condition, const std::function<void(Statements&)>& body) {
    Statements inner;
    body(inner);
    stmts_.push_back(make<tir::While>(condition, std::move(inner).all()));
  }
  void when(const Expr& condition, const std::function<void(Statements&)>& body,
            const std::function<void(Statements&)>& otherwise = {}) {
    Statements inner, other;
    body(inner);
    if (otherwise) otherwise(other);
    stmts_.push_back(
        otherwise ? make<tir::IfThenElse>(condition, std::move(inner).all(), std::move(other).all())
                  : make<tir::IfThenElse>(condition, std::move(inner).all()));
  }
  tir::Stmt all() && { return tir::seq(std::move(stmts_)); }

 private:
  std::vector<tir::Stmt> stmts_;
};

}  // namespace tenon::graph
