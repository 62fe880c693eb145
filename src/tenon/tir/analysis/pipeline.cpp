// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/pipeline.h"

#include <algorithm>
#include <unordered_set>

namespace tenon::tir {

PipelineBody pipeline_body(const For& loop) {
  PipelineBody out;
  Stmt body = loop.body;
  while (const auto* realize = body.as<BlockRealize>()) {
    const Block& block = *realize->block;
    const bool is_frame = block.iter_vars.empty() && is_int(realize->predicate, 1) && !block.init &&
                          block.match_buffers.empty() && block.body.as<Seq>();
    if (!is_frame) break;
    out.allocated.insert(out.allocated.end(), block.alloc_buffers.begin(),
                         block.alloc_buffers.end());
    body = block.body;
  }
  Substitution values;
  for (const Stmt& stmt : stmts_of(body)) {
    if (const auto* alloc = stmt.as<AllocBuffer>()) {
      out.allocated.push_back(alloc->buffer);
      continue;
    }
    if (const auto* bind = stmt.as<Bind>()) {
      bool reads = false;
      walk(bind->value, [&](const NodePtr& node) {
        const auto* call = node.as<Call>();
        reads |= node.as<BufferLoad>() || (call && !call->op);
      });
      if (reads)
        throw CompileError(kScheduleIllegal, bind->origin,
                           "`{}` is read from memory in a pipelined loop; read it inside the stage "
                           "that needs it",
                           bind->var->name);
      values.emplace(bind->var.get(), substitute(bind->value, values));
      continue;
    }
    out.stmts.push_back(values.empty() ? stmt : substitute(stmt, values));
  }
  return out;
}

namespace {

// Buffers that a statement uses and does not define.
std::vector<Ref<Buffer>> buffers_of(const std::vector<Stmt>& stmts) {
  std::vector<Ref<Buffer>> order;
  std::unordered_set<const Node*> seen;
  for (const Stmt& stmt : stmts) {
    std::unordered_set<const Node*> own;
    walk(stmt, [&](const NodePtr& node) {
      if (const auto* block = node.as<Block>()) {
        for (const Ref<Buffer>& buffer : block->alloc_buffers) own.insert(buffer.get());
        for (const MatchBuffer& match : block->match_buffers) own.insert(match.buffer.get());
      }
      if (const auto* alloc = node.as<AllocBuffer>()) own.insert(alloc->buffer.get());
      if (const auto* alloc = node.as<AllocConst>()) own.insert(alloc->buffer.get());
      if (const auto* decl = node.as<DeclBuffer>()) own.insert(decl->buffer.get());
    });
    walk(stmt, [&](const NodePtr& node) {
      const auto* buffer = node.as<Buffer>();
      if (buffer && !own.count(buffer) && seen.insert(buffer).second)
        order.push_back(ref_to(buffer));
    });
  }
  return order;
}

class Planner {
 public:
  Planner(const For& loop, const PipelineOracle& oracle) : loop_(loop), oracle_(oracle) {}

  PipelinePlan run(const std::vector<Ref<Buffer>>& outer) {
    plan_.body = pipeline_body(loop_);
    read_marks();
    buffers_ = buffers_of(plan_.body.stmts);
    for (const Stmt& stmt : plan_.body.stmts) uses_.push_back(oracle_.effects(stmt, buffers_));
    std::unordered_set<const Node*> inside, around;
    for (const Ref<Buffer>& buffer : plan_.body.allocated) inside.insert(buffer.get());
    for (const Ref<Buffer>& buffer : outer) around.insert(buffer.get());
    const int64_t least = loop_.annotations.get<int64_t>(kPipelineVersions).value_or(2);
    if (least < 2) fail(kPipelineVersions, fmt::format("{}; expected at least 2", least));
    for (size_t b = 0; b < buffers_.size(); ++b) {
      const Ref<Buffer>& buffer = buffers_[b];
      check_order(b);
      // What is allocated inside lives for one iteration; what is allocated around it does where
      // each iteration writes it before it reads it.
      bool is_private = inside.count(buffer.get()) != 0;
      if (around.count(buffer.get()))
        for (const auto& uses : uses_) {
          if (!uses[b].reads && !uses[b].writes) continue;
          is_private = is_private || !uses[b].reads;
          break;
        }
      if (!is_private) {
        check_shared(b);
        continue;
      }
      PipelineBuffer use{buffer, first_stage(b), last_stage(b), 1};
      if (use.last > use.first) use.versions = std::max(use.last - use.first + 1, least);
      if (use.versions > 1 && (!buffer->strides.empty() || buffer->elem_offset))
        throw CompileError(kScheduleIllegal, buffer->origin,
                           "buffer `{}` between stages has strides or an offset of its own",
                           buffer->name);
      plan_.buffers.push_back(use);
    }
    return std::move(plan_);
  }

 private:
  [[noreturn]] void fail(const char* key, const std::string& what) const {
    throw CompileError(kScheduleIllegal, loop_.origin, "annotation `{}` of loop `{}` is {}", key,
                       loop_.loop_var->name, what);
  }

  void read_marks() {
    const AttrValue* given = loop_.annotations.find(kPipelineStage);
    const auto stages = loop_.annotations.ints(kPipelineStage);
    const size_t count = plan_.body.stmts.size();
    if (!stages)
      fail(kPipelineStage,
           fmt::format("{}; expected the stage of each statement, as [0, 1]", given->str()));
    if (stages->size() != count)
      fail(kPipelineStage, fmt::format("{}, {} stages; the body of the loop has {} statements",
                                       given->str(), stages->size(), count));
    plan_.stage = *stages;
    for (const int64_t stage : plan_.stage) {
      if (stage < 0) fail(kPipelineStage, fmt::format("{}; stages count from 0", given->str()));
      plan_.stages = std::max(plan_.stages, stage + 1);
    }
    if (plan_.stages > 64)
      fail(kPipelineStage, fmt::format("{}; expected at most 64 stages", given->str()));
    for (int64_t stage = 0; stage < plan_.stages; ++stage)
      if (std::find(plan_.stage.begin(), plan_.stage.end(), stage) == plan_.stage.end())
        fail(kPipelineStage, fmt::format("{}; no statement is of stage {}", given->str(), stage));
    if (const AttrValue* order = loop_.annotations.find(kPipelineOrder)) {
      auto positions = loop_.annotations.ints(kPipelineOrder);
      bool good = positions && positions->size() == count;
      if (good) std::sort(positions->begin(), positions->end());
      for (size_t i = 0; good && i < count; ++i) good = (*positions)[i] == static_cast<int64_t>(i);
      if (!good)
        fail(kPipelineOrder,
             fmt::format("{}; expected each of 0..{} once", order->str(), count - 1));
    }
    if (loop_.kind != ForKind::kSerial)
      throw CompileError(kScheduleIllegal, loop_.origin,
                         "loop `{}` is a software pipeline; its iterations begin in order, so it "
                         "must be a serial loop",
                         loop_.loop_var->name);
  }

  bool uses(size_t stmt, size_t buffer) const {
    return uses_[stmt][buffer].reads || uses_[stmt][buffer].writes;
  }
  int64_t first_stage(size_t buffer) const {
    int64_t first = plan_.stages;
    for (size_t s = 0; s < uses_.size(); ++s)
      if (uses(s, buffer)) first = std::min(first, plan_.stage[s]);
    return first;
  }
  int64_t last_stage(size_t buffer) const {
    int64_t last = 0;
    for (size_t s = 0; s < uses_.size(); ++s)
      if (uses(s, buffer)) last = std::max(last, plan_.stage[s]);
    return last;
  }

  // Within an iteration stages keep the order of the statements that need one another.
  void check_order(size_t buffer) const {
    for (size_t p = 0; p < uses_.size(); ++p)
      for (size_t q = p + 1; q < uses_.size(); ++q) {
        if (!uses(p, buffer) || !uses(q, buffer) || plan_.stage[p] <= plan_.stage[q]) continue;
        if (!uses_[p][buffer].writes && !uses_[q][buffer].writes) continue;
        CompileError error(
            kScheduleIllegal, plan_.body.stmts[q]->origin,
            "this statement is of stage {} and needs `{}` as a statement of stage {} "
            "leaves it; it must be of stage {} or later",
            plan_.stage[q], buffers_[buffer]->name, plan_.stage[p], plan_.stage[p]);
        error.note(plan_.body.stmts[p]->origin, "the statement of stage {} is here",
                   plan_.stage[p]);
        throw error;
      }
  }

  // What outlives an iteration belongs to one stage, or each iteration has a slab of its own.
  void check_shared(size_t buffer) {
    bool written = false;
    for (const auto& stmt : uses_) written |= stmt[buffer].writes;
    if (!written || first_stage(buffer) == last_stage(buffer) || has_slabs(buffers_[buffer]))
      return;
    size_t a = 0;
    while (!uses_[a][buffer].writes) ++a;
    size_t b = 0;
    while (!uses(b, buffer) || plan_.stage[b] == plan_.stage[a]) ++b;
    CompileError error(
        kScheduleIllegal, plan_.body.stmts[a]->origin,
        "`{}` is written in stage {} and used in stage {}, and iterations that run at the same "
        "time "
        "are not proved to use different parts of it; allocate it inside the loop, or use a slice "
        "of its own in each iteration",
        buffers_[buffer]->name, plan_.stage[a], plan_.stage[b]);
    error.note(plan_.body.stmts[b]->origin, "the use in stage {} is here", plan_.stage[b]);
    error.note(buffers_[buffer]->origin, "`{}` is defined here", buffers_[buffer]->name);
    throw error;
  }

  // Along one dimension every access of iteration i lies in [i * c + r, i * c + r + c).
  bool has_slabs(const Ref<Buffer>& buffer) {
    std::vector<Ref<BufferRegion>> regions;
    for (const Stmt& stmt : plan_.body.stmts) {
      const Accesses found = oracle_.accesses(stmt);
      for (const auto* list : {&found.reads, &found.writes})
        for (const Ref<BufferRegion>& region : *list)
          if (region->buffer.same_as(buffer)) regions.push_back(region);
    }
    if (regions.empty()) return false;
    arith::Analyzer analyzer;
    const std::vector<Ref<Var>> vars{loop_.loop_var};
    for (size_t d = 0; d < buffer->ndim(); ++d) {
      std::optional<int64_t> step, low, high;
      bool good = true;
      for (const Ref<BufferRegion>& region : regions) {
        const auto form = analyzer.linear(region->region[d].min, vars);
        const auto factor = form ? as_int(form->coefficients[0]) : std::nullopt;
        const auto rest = form ? as_int(form->rest) : std::nullopt;
        const auto extent = as_int(analyzer.simplify(region->region[d].extent));
        good = factor && *factor > 0 && rest && extent && (!step || *step == *factor);
        if (!good) break;
        step = factor;
        low = std::min(low.value_or(*rest), *rest);
        high = std::max(high.value_or(*rest + *extent), *rest + *extent);
      }
      if (good && *high - *low <= *step) return true;
    }
    return false;
  }

  const For& loop_;
  const PipelineOracle& oracle_;
  PipelinePlan plan_;
  std::vector<Ref<Buffer>> buffers_;
  std::vector<std::vector<ParamEffect>> uses_;  // by statement, then by buffer
};

}  // namespace

PipelineOracle pipeline_oracle(CallEffects& effects) {
  return {[&effects](const Stmt& stmt, const std::vector<Ref<Buffer>>& buffers) {
            return effects_on(stmt, buffers, effects);
          },
          [&effects](const Stmt& stmt) { return find_accesses(stmt, effects); }};
}

PipelinePlan plan_pipeline(const For& loop, const std::vector<Ref<Buffer>>& outer,
                           const PipelineOracle& oracle) {
  return Planner(loop, oracle).run(outer);
}

}  // namespace tenon::tir
