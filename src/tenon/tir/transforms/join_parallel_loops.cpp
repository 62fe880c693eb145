// SPDX-License-Identifier: Apache-2.0
// Parallel loops that stand next to each other become one, where neither touches what the other
// writes; so does what stands behind one, as an iteration of its own:
//
//     for i in T.parallel(7): a(i)          for i in T.parallel(8):
//     b()                                       if i < 7: a(i)
//                                               else: b()
//
// Schedules cut a loop where its last part differs: a last panel of columns that is not full, columns
// that fill no tile. One after the other, each part waits for the slowest thread of the one before,
// and a last panel runs on one thread. Iterations keep their order, so that a single thread does
// the same as before.
#include <algorithm>

#include "tenon/tir/analysis/region.h"
#include "tenon/tir/effects.h"
#include "tenon/tir/transforms.h"

namespace tenon::tir {

namespace {

bool is_parallel(const Stmt& stmt) {
  const auto* loop = stmt.as<For>();
  return loop && loop->kind == ForKind::kParallel;
}

// Whether a statement does no more than access memory that is named, and allocates registers only:
// other memory is planned, in as many pieces as there are iterations.
bool is_plain(const Stmt& stmt) {
  bool plain = true;
  walk<AllocBuffer>(
      stmt, [&](const AllocBuffer& alloc) { plain = plain && alloc.buffer->scope == "local"; });
  each_effect(stmt, unknown_callee, [&](const StmtEffect& effect) {
    using Kind = StmtEffect::Kind;
    plain = plain && (effect.kind == Kind::kRead || effect.kind == Kind::kAccumulate ||
                      effect.kind == Kind::kWrite || effect.kind == Kind::kDivide);
  });
  return plain;
}

// Whether a statement can be an iteration, with those beside it: names that it gives to memory or
// to values must end with it.
bool may_be_iteration(const Stmt& stmt) {
  if (!stmt.as<For>() && !stmt.as<IfThenElse>() && !stmt.as<BufferStore>() &&
      !stmt.as<AllocBuffer>())
    return false;
  bool parallel = false;
  walk<For>(stmt, [&](const For& loop) { parallel |= loop.kind == ForKind::kParallel; });
  return !parallel && is_plain(stmt);
}

bool is_joinable(const Stmt& stmt) {
  if (!is_parallel(stmt)) return false;
  const For& loop = *stmt.as<For>();
  return is_int(loop.min, 0) && as_int(loop.extent).value_or(0) > 0 && loop.annotations.empty() &&
         is_plain(stmt);
}

// Whether two boxes of one buffer are proved to have no element in common.
bool are_apart(const BufferRegion& a, const BufferRegion& b, arith::Analyzer& analyzer) {
  for (size_t d = 0; d < std::min(a.region.size(), b.region.size()); ++d) {
    const Range &x = a.region[d], &y = b.region[d];
    if (analyzer.proves_less_equal(x.min + x.extent, y.min) ||
        analyzer.proves_less_equal(y.min + y.extent, x.min))
      return true;
  }
  return false;
}

// Whether nothing that `a` writes is accessed by `b`.
bool leaves_alone(const Accesses& a, const Accesses& b, arith::Analyzer& analyzer) {
  for (const Ref<BufferRegion>& write : a.writes)
    for (const auto* list : {&b.reads, &b.writes})
      for (const Ref<BufferRegion>& other : *list)
        if (write->buffer.same_as(other->buffer) && !are_apart(*write, *other, analyzer))
          return false;
  return true;
}

// Whether different buffers of a function are different memory.
bool has_no_aliases(const PrimFunc& function) {
  bool viewed = false;
  walk<DeclBuffer>(function.body, [&](const DeclBuffer&) { viewed = true; });
  return !viewed && function.attrs.flag("tir.noalias");
}

// Statements that become iterations of one loop: those of a loop, or one.
struct Part {
  std::vector<Stmt> stmts;
  int64_t iterations = 1;
  Accesses accesses;
};

class Joiner final : public Rewriter {
 protected:
  NodePtr rewrite(const NodePtr& node) override {
    if (const auto* stmt = node.as<StmtNode>(); stmt && is_parallel(ref_to(stmt))) return node;
    NodePtr inner = rewrite_members(node);
    const auto* list = inner.as<Seq>();
    if (!list || std::none_of(list->stmts.begin(), list->stmts.end(), is_parallel)) return inner;
    return NodePtr(joined(*list));
  }

 private:
  static Stmt joined(const Seq& list) {
    std::vector<Stmt> out;
    for (size_t at = 0; at < list.stmts.size();) {
      if (!is_joinable(list.stmts[at])) {
        out.push_back(list.stmts[at++]);
        continue;
      }
      std::vector<Part> parts{part_of(list.stmts, at, at + 1)};
      for (++at; at < list.stmts.size();) {
        const size_t end =
            is_joinable(list.stmts[at]) ? at + 1 : end_of_tail(list.stmts, at, parts);
        if (end == at) break;
        Part next = part_of(list.stmts, at, end);
        if (!is_apart(next, parts)) break;
        parts.push_back(std::move(next));
        at = end;
      }
      out.push_back(parts.size() > 1 ? loop_of(parts) : parts[0].stmts[0]);
    }
    return out.size() == list.stmts.size() ? Stmt(ref_to(&list)) : seq(std::move(out));
  }

  static Part part_of(const std::vector<Stmt>& stmts, size_t begin, size_t end) {
    Part part;
    part.stmts.assign(stmts.begin() + static_cast<ptrdiff_t>(begin),
                      stmts.begin() + static_cast<ptrdiff_t>(end));
    part.accesses = find_accesses(end == begin + 1 ? stmts[begin] : seq(part.stmts));
    if (is_parallel(part.stmts[0])) part.iterations = *as_int(part.stmts[0].as<For>()->extent);
    return part;
  }

  static bool is_apart(const Part& next, const std::vector<Part>& parts) {
    arith::Analyzer analyzer;
    return std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
      const auto index = [](const Part& p) { return p.stmts[0].as<For>()->loop_var->dtype; };
      if (is_parallel(part.stmts[0]) && is_parallel(next.stmts[0]) && index(part) != index(next))
        return false;
      return leaves_alone(part.accesses, next.accesses, analyzer) &&
             leaves_alone(next.accesses, part.accesses, analyzer);
    });
  }

  // The end of the statements from `begin` on that are one iteration together: `begin` where there
  // is none that is worth it.
  static size_t end_of_tail(const std::vector<Stmt>& stmts, size_t begin,
                            const std::vector<Part>& parts) {
    size_t end = begin;
    while (end < stmts.size() && may_be_iteration(stmts[end])) {
      // An allocation says nothing by itself.
      if (!stmts[end].as<AllocBuffer>() && !is_apart(part_of(stmts, end, end + 1), parts)) break;
      ++end;
    }
    // Registers that are used further on stay where they are: the last first, as what ends in front of them
    // may leave uses of others behind.
    for (size_t i = end; i-- > begin;)
      if (const auto* alloc = stmts[i].as<AllocBuffer>())
        for (size_t later = end; later < stmts.size(); ++later)
          walk<Buffer>(stmts[later], [&](const Buffer& buffer) {
            if (&buffer == alloc->buffer.get()) end = std::min(end, i);
          });
    const bool has_loop = std::any_of(stmts.begin() + static_cast<ptrdiff_t>(begin),
                                      stmts.begin() + static_cast<ptrdiff_t>(end),
                                      [](const Stmt& stmt) { return stmt.as<For>() != nullptr; });
    return has_loop ? end : begin;
  }

  static Stmt loop_of(const std::vector<Part>& parts) {
    const For& first = *parts[0].stmts[0].as<For>();
    const DType type = first.loop_var->dtype;
    const Ref<Var> task = var(first.loop_var->name, type);
    int64_t end = 0;
    for (const Part& part : parts) end += part.iterations;
    const Expr extent = imm(type, end);
    Stmt body;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      const int64_t begin = end - part->iterations;
      Stmt mine = seq(part->stmts);
      if (const auto* loop = part->stmts[0].as<For>(); loop && is_parallel(part->stmts[0])) {
        const Expr iteration = begin > 0 ? task - imm(type, begin) : Expr(task);
        mine = substitute(loop->body, {{loop->loop_var.get(), iteration}});
      }
      body = body ? Stmt(make<IfThenElse>(task < imm(type, end), mine, body)) : mine;
      end = begin;
    }
    return make<For>(task, imm(type, int64_t{0}), extent, ForKind::kParallel, body, Attrs(),
                     first.origin);
  }
};

}  // namespace

IRModule join_parallel_loops(IRModule module) {
  // Tasks run one after the other there.
  if (is_c_target(module)) return module;
  return map_kernels(std::move(module), [](const Ref<PrimFunc>& function) {
    return has_no_aliases(*function) ? Joiner()(function) : function;
  });
}

}  // namespace tenon::tir
