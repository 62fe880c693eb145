// SPDX-License-Identifier: Apache-2.0
// merge: one loop in the place of several that follow each other.
#include <algorithm>

#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

namespace {

/// The dimensions of `buffer` in which every block below `loop` that uses it does so at the loop's
/// own iteration: other iterations use other elements.
std::vector<bool> dims_of_iteration(const Stmt& stmt, const Buffer& buffer) {
  const auto* loop = stmt.as<For>();
  std::vector<bool> dims(buffer.ndim(), true);
  arith::Analyzer analyzer;
  for (const Ref<BlockRealize>& realize : outermost_realizes_in(loop->body)) {
    Substitution axes;
    for (size_t a = 0; a < realize->iter_values.size(); ++a)
      axes[realize->block->iter_vars[a].var.get()] = realize->iter_values[a];
    for (const auto* regions : {&realize->block->reads, &realize->block->writes})
      for (const Ref<BufferRegion>& region : *regions) {
        if (region->buffer.get() != &buffer) continue;
        const auto bound = substitute(region, axes);
        for (size_t d = 0; d < dims.size(); ++d)
          dims[d] = dims[d] && is_int(bound->region[d].extent, 1) &&
                    analyzer.proves_equal(bound->region[d].min, loop->loop_var);
      }
  }
  return dims;
}

std::vector<Ref<Buffer>> buffers_of(const Stmt& stmt) {
  std::vector<Ref<Buffer>> out;
  for (const Ref<BlockRealize>& realize : outermost_realizes_in(stmt))
    for (const auto* regions : {&realize->block->reads, &realize->block->writes})
      for (const Ref<BufferRegion>& region : *regions)
        if (std::none_of(out.begin(), out.end(),
                         [&](const auto& other) { return other.same_as(region->buffer); }))
          out.push_back(region->buffer);
  return out;
}

/// What one loop writes and another one uses lies apart from iteration to iteration.
void check_meets_in_iterations(const Stmt& root, const Stmt& one, const Stmt& other) {
  for (const Ref<Buffer>& buffer : buffers_of(one)) {
    const bool is_shared = (writes_buffer(one, buffer) &&
                            (reads_buffer(other, buffer) || writes_buffer(other, buffer))) ||
                           (reads_buffer(one, buffer) && writes_buffer(other, buffer));
    if (!is_shared) continue;
    check_only_blocks_use(root, buffer, one->origin);
    const std::vector<bool> a = dims_of_iteration(one, *buffer),
                            b = dims_of_iteration(other, *buffer);
    bool meets = false;
    for (size_t d = 0; d < a.size(); ++d) meets = meets || (a[d] && b[d]);
    if (!meets)
      illegal(other->origin,
              "loops `{}` and `{}` both use `{}`, and not in each iteration elements of its own",
              one.as<For>()->loop_var->name, other.as<For>()->loop_var->name, buffer->name);
  }
}

}  // namespace

LoopRV Schedule::merge(const std::vector<LoopRV>& loops) {
  if (loops.size() < 2) illegal(func_->origin, "{} loops to merge; expected two", loops.size());
  const Path path = path_of(loops[0]);
  check_outermost(path);
  const auto* first = path.target().as<For>();
  if (path.stmts.size() < 2) illegal(first->origin, "a loop outside of the root block");
  const Stmt parent = path.stmts[path.stmts.size() - 2];
  const std::vector<Stmt> all = stmts_of(parent);
  if (!parent.as<Seq>())
    illegal(first->origin, "loop `{}` stands alone; expected loops one right after the other",
            loops[0].var->name);
  const auto start = std::find_if(all.begin(), all.end(),
                                  [&](const Stmt& stmt) { return stmt.same_as(path.target()); });
  const Ref<Var> merged = var(first->loop_var->name, first->loop_var->dtype);
  std::vector<Stmt> bodies;
  for (size_t i = 0; i < loops.size(); ++i) {
    const auto at = start + static_cast<std::ptrdiff_t>(i);
    const auto* loop = at < all.end() ? at->as<For>() : nullptr;
    if (!loop || !loop->loop_var.same_as(loops[i].var))
      illegal(first->origin, "loop `{}` does not follow `{}`; expected one right after the other",
              loops[i].var->name, loops[i > 0 ? i - 1 : 0].var->name);
    check_no_pipeline(*loop, "merged");
    if (loop->kind != ForKind::kSerial || !is_zero(loop->min) ||
        !arith::proves_equal(loop->extent, first->extent))
      illegal(loop->origin, "loop `{}` is not a serial one of {} iterations from 0",
              loop->loop_var->name, str(first->extent));
    for (size_t before = 0; before < i; ++before)
      check_meets_in_iterations(root(), start[static_cast<std::ptrdiff_t>(before)], *at);
    bodies.push_back(substitute(loop->body, {{loop->loop_var.get(), Expr(merged)}}));
  }
  std::vector<Stmt> rest(all.begin(), start);
  rest.push_back(make<For>(merged, first->min, first->extent, ForKind::kSerial,
                           seq(std::move(bodies)), first->annotations, first->origin));
  rest.insert(rest.end(), start + static_cast<std::ptrdiff_t>(loops.size()), all.end());
  Path outer = path;
  outer.stmts.pop_back();
  commit(replace(outer, seq(std::move(rest))));
  std::vector<TraceValue> inputs(loops.begin(), loops.end());
  record("merge", std::move(inputs), {}, {LoopRV{merged}});
  return {merged};
}

}  // namespace tenon::tir
