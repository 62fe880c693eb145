// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/transforms/size_checks.h"

#include <functional>

#include "tenon/arith/analyzer.h"
#include "tenon/ir/visit.h"

namespace tenon::graph {

using tir::Buffer;
using tir::Stmt;

static constexpr double kMostElements = 17592186044416;  // 2^44

static Stmt not_negative(const Buffer& buffer, size_t d) {
  const Expr& dim = buffer.shape[d];
  return make<tir::Assert>(
      dim >= imm(dim->dtype, int64_t{0}),
      fmt::format("dimension {} of `{}`, {}, is negative", d, buffer.name, str(dim)),
      buffer.origin);
}

// In floats: products of integers may wrap.
static Stmt not_too_large(const Buffer& buffer) {
  Expr elements = imm(kFloat64, 1.0);
  for (const Expr& dim : buffer.shape) elements = elements * cast(kFloat64, dim);
  return make<tir::Assert>(
      elements <= imm(kFloat64, kMostElements),
      fmt::format("`{}` of shape {} has more than 2^44 elements", buffer.name, str(buffer.shape)),
      buffer.origin);
}

namespace {

class GivenSizes {
 public:
  GivenSizes(std::span<const Ref<Buffer>> inputs, std::span<const Ref<tenon::Var>> scalars,
             std::vector<Stmt>& checks)
      : checks_(checks) {
    for (const Ref<Buffer>& input : inputs)
      for (const Expr& dim : input->shape)
        if (dim.as<tenon::Var>()) dims_.insert(dim.get());
    for (const Ref<tenon::Var>& scalar : scalars) scalars_.insert(scalar.get());
  }

  void check(const Buffer& buffer) {
    bool has_scalar = false, all_known = true;
    for (size_t d = 0; d < buffer.ndim(); ++d) {
      const Expr& dim = buffer.shape[d];
      bool is_known = true;
      walk<tenon::Var>(dim, [&](const tenon::Var& var) {
        has_scalar |= scalars_.count(&var) > 0;
        is_known &= scalars_.count(&var) > 0 || dims_.count(&var) > 0;
      });
      all_known &= is_known;
      if (!is_known || as_int(dim) || dims_.count(dim.get()) || !checked_.insert(str(dim)).second)
        continue;
      if (!analyzer_.proves_nonnegative(dim)) checks_.push_back(not_negative(buffer, d));
    }
    // The dimensions of inputs are those of memory that there is; numbers in them may be anything.
    if (has_scalar && all_known && checked_.insert("elements of " + str(buffer.shape)).second)
      checks_.push_back(not_too_large(buffer));
  }

 private:
  std::unordered_set<const Node*> dims_, scalars_;
  std::vector<Stmt>& checks_;
  arith::Analyzer analyzer_;
  std::set<std::string> checked_;
};

}  // namespace

// The allocations of these statements, in loops too: what is planned for a loop is planned whether it
// runs or not.
static void each_allocation(const std::vector<Stmt>& stmts,
                            const std::function<void(const Buffer&)>& visit) {
  for (const Stmt& stmt : stmts) {
    if (const auto* alloc = stmt.as<tir::AllocBuffer>()) visit(*alloc->buffer);
    if (const auto* loop = stmt.as<tir::For>()) each_allocation(tir::stmts_of(loop->body), visit);
    if (const auto* loop = stmt.as<tir::While>()) each_allocation(tir::stmts_of(loop->body), visit);
  }
}

void check_given_sizes(std::span<const Ref<Buffer>> inputs, std::span<const Ref<Buffer>> outputs,
                       std::span<const Ref<tenon::Var>> scalars, const std::vector<Stmt>& stmts,
                       std::vector<Stmt>& checks) {
  GivenSizes sizes(inputs, scalars, checks);
  for (const Ref<Buffer>& output : outputs) sizes.check(*output);
  each_allocation(stmts, [&](const Buffer& buffer) { sizes.check(buffer); });
}

bool LateSizeChecks::depends(const NodePtr& node) const {
  bool found = false;
  if (!late_.empty())
    walk<tenon::Var>(node, [&](const tenon::Var& var) { found |= late_.count(&var) > 0; });
  return found;
}

void LateSizeChecks::check(const Buffer& buffer, std::vector<Stmt>& out) {
  bool is_late = false;
  for (size_t d = 0; d < buffer.ndim(); ++d) {
    const Expr& dim = buffer.shape[d];
    if (!depends(dim)) continue;
    is_late = true;
    if (checked_.insert(str(dim)).second && !arith::Analyzer().proves_nonnegative(dim))
      out.push_back(not_negative(buffer, d));
  }
  if (is_late) out.push_back(not_too_large(buffer));
}

}  // namespace tenon::graph
