// SPDX-License-Identifier: Apache-2.0
// InjectSoftwarePipeline: step t of the new loop runs stage s on iteration t - s, for all stages at
// the same time:
//
//     for t in range(n + S - 1):
//         for s in T.parallel(S):
//             if s == 0: if t < n: <stage 0 of iteration t>
//             elif s == 1: if 1 <= t and t < n + 1: <stage 1 of iteration t - 1>
//             ...
//
// The stages of one step work on different iterations, so they need nothing of one another; a step
// ends when all have. A pool with fewer threads than stages runs them one after the other.

#include <unordered_set>

#include "tenon/support/remarks.h"
#include "tenon/tir/analysis/pipeline.h"
#include "tenon/tir/call_graph.h"
#include "tenon/tir/call_transforms.h"
#include "tenon/tir/extern_function.h"
#include "tenon/tir/region_rewriter.h"

namespace tenon::tir {

namespace {

// Accesses of buffers get a leading index: the version of the iteration.
class Versioner final : public RegionRewriter {
 public:
  Versioner(const std::unordered_map<const Node*, Ref<Buffer>>& versions, Expr version)
      : versions_(versions), version_(std::move(version)) {}

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    if (const auto* load = node.as<BufferLoad>())
      if (const Ref<Buffer> buffer = versioned(load->buffer))
        return make<BufferLoad>(buffer, indices(buffer, load->indices), load->origin);
    if (const auto* store = node.as<BufferStore>())
      if (const Ref<Buffer> buffer = versioned(store->buffer))
        return make<BufferStore>(buffer, (*this)(store->value), indices(buffer, store->indices),
                                 store->origin);
    if (const auto* region = node.as<BufferRegion>())
      if (const Ref<Buffer> buffer = versioned(region->buffer)) {
        const Expr version = version_of(buffer);
        std::vector<Range> ranges{{version, imm(version->dtype, int64_t{1})}};
        std::vector<bool> drop{true};
        for (size_t d = 0; d < region->region.size(); ++d) {
          ranges.push_back({(*this)(region->region[d].min), (*this)(region->region[d].extent)});
          drop.push_back(region->drops(d));
        }
        if (in_lists()) drop.clear();
        return make<BufferRegion>(buffer, std::move(ranges), std::move(drop), region->origin);
      }
    return rewrite_others(node);
  }

 private:
  Ref<Buffer> versioned(const Ref<Buffer>& buffer) const {
    const auto it = versions_.find(buffer.get());
    return it == versions_.end() ? Ref<Buffer>() : it->second;
  }
  Expr version_of(const Ref<Buffer>& buffer) const {
    return floormod(version_, tenon::cast(version_->dtype, buffer->shape[0]));
  }
  std::vector<Expr> indices(const Ref<Buffer>& buffer, const std::vector<Expr>& inner) {
    std::vector<Expr> out{version_of(buffer)};
    for (const Expr& index : inner) out.push_back((*this)(index));
    return out;
  }

  const std::unordered_map<const Node*, Ref<Buffer>>& versions_;
  Expr version_;
};

class Injector final : public Rewriter {
 public:
  Injector(std::string name, const PrimFunc& function, const IRModule& module, CallEffects& effects)
      : name_(std::move(name)), module_(module), effects_(effects) {
    walk(function.body, [&](const NodePtr& node) {
      if (const auto* block = node.as<Block>())
        for (const Ref<Buffer>& buffer : block->alloc_buffers) own_.push_back(buffer);
      if (const auto* alloc = node.as<AllocBuffer>()) own_.push_back(alloc->buffer);
    });
    count(function.body);
  }

  // Buffers that moved to the loop leave the block or sequence that defined them.
  Stmt without_moved(const Stmt& body) const {
    if (moved_.empty()) return body;
    return downcast<StmtNode>(
        tenon::rewrite(NodePtr(body), [&](const NodePtr& node) -> std::optional<NodePtr> {
          if (const auto* block = node.as<Block>()) {
            Block::Parts parts = block->parts();
            const auto stale = [&](const Ref<BufferRegion>& region) {
              return moved_.count(region->buffer.get()) != 0;
            };
            size_t gone = std::erase_if(parts.alloc_buffers, [&](const Ref<Buffer>& buffer) {
              return moved_.count(buffer.get()) != 0;
            });
            gone += std::erase_if(parts.reads, stale) + std::erase_if(parts.writes, stale);
            if (gone == 0) return std::nullopt;
            return make<Block>(std::move(parts), block->origin);
          }
          if (const auto* alloc = node.as<AllocBuffer>();
              alloc && moved_.count(alloc->buffer.get()))
            return make<Seq>(std::vector<Stmt>{});
          return std::nullopt;
        }));
  }

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    const auto* loop = node.as<For>();
    if (!loop || !loop->annotations.contains(kPipelineStage)) return rewrite_members(node);
    return pipelined(*loop);
  }

 private:
  // Uses of each buffer outside of the lists of blocks.
  static std::unordered_map<const Node*, int> uses_in(const NodePtr& root) {
    std::unordered_map<const Node*, int> uses;
    const std::function<void(const NodePtr&)> visit = [&](const NodePtr& node) {
      if (!node) return;
      if (const auto* buffer = node.as<Buffer>()) {
        ++uses[buffer];
        return;
      }
      if (const auto* block = node.as<Block>()) {
        for (const MatchBuffer& match : block->match_buffers) visit(match.source);
        visit(block->init);
        return visit(block->body);
      }
      if (node.as<Var>()) {
        ++uses[node.get()];
        return;
      }
      each_member(node, [&](const NodePtr& member, FieldRole role) {
        if (role == FieldRole::kUse) visit(member);
      });
    };
    visit(root);
    return uses;
  }
  void count(const Stmt& body) { uses_ = uses_in(body); }

  NodePtr pipelined(const For& loop) {
    // Allocated around the loop and used nowhere else.
    const auto inside = uses_in(loop.body);
    std::vector<Ref<Buffer>> outer;
    for (const Ref<Buffer>& buffer : own_) {
      const auto here = inside.find(buffer.get());
      if (here != inside.end() && here->second == uses_.at(buffer.get())) outer.push_back(buffer);
    }
    const PipelinePlan plan = plan_pipeline(loop, outer, pipeline_oracle(effects_));
    check_threads(loop, plan);
    const DType dtype = loop.loop_var->dtype;
    const int64_t stages = plan.stages;

    std::vector<Stmt> out;
    std::unordered_map<const Node*, Ref<Buffer>> versions;
    std::unordered_map<int64_t, std::vector<Ref<Buffer>>> local;  // of one stage
    std::unordered_set<const Node*> own;  // defined in the loop, which is made afresh
    for (const Ref<Buffer>& buffer : plan.body.allocated) own.insert(buffer.get());
    for (const PipelineBuffer& use : plan.buffers) {
      const Ref<Buffer>& buffer = use.buffer;
      if (inside.count(buffer->data.get()))
        throw CompileError(kScheduleIllegal, buffer->origin,
                           "the address of buffer `{}` is taken in a pipelined loop", buffer->name);
      if (use.versions == 1) {
        if (own.count(buffer.get())) local[use.first].push_back(buffer);
        continue;
      }
      moved_.insert(buffer.get());
      std::vector<Expr> shape{int64(use.versions)};
      shape.insert(shape.end(), buffer->shape.begin(), buffer->shape.end());
      const auto many = make<Buffer>(buffer->name, buffer->dtype, shape,
                                     Buffer::Options{.scope = buffer->scope,
                                                     .alignment = buffer->alignment,
                                                     .offset_factor = buffer->offset_factor},
                                     buffer->origin);
      versions.emplace(buffer.get(), many);
      out.push_back(make<AllocBuffer>(many, Attrs(), buffer->origin));
    }

    const Ref<Var> step = make<Var>(loop.loop_var->name + "_step", dtype);
    const Ref<Var> stage_var = make<Var>("stage", dtype);
    const auto number = [&](int64_t value) { return imm(dtype, value); };
    Stmt chain;
    for (int64_t stage = stages; stage-- > 0;) {
      const Expr iteration = step - number(stage);
      std::vector<Stmt> body;
      for (const Ref<Buffer>& buffer : local[stage])
        body.push_back(make<AllocBuffer>(buffer, Attrs(), buffer->origin));
      Versioner versioner(versions, iteration);
      versioner.replace(loop.loop_var, loop.min + iteration);
      for (size_t i = 0; i < plan.body.stmts.size(); ++i)
        if (plan.stage[i] == stage) body.push_back((*this)(versioner(plan.body.stmts[i])));
      Stmt stmt = seq(std::move(body));
      // While the pipeline fills and drains, stages without an iteration rest.
      if (stage > 0) stmt = make<IfThenElse>(number(stage) <= Expr(step), stmt);
      if (stage + 1 < stages) stmt = make<IfThenElse>(step < loop.extent + number(stage), stmt);
      chain = chain ? Stmt(make<IfThenElse>(eq(stage_var, number(stage)), stmt, chain)) : stmt;
    }
    Stmt body = make<For>(stage_var, number(0), number(stages), ForKind::kParallel, chain, Attrs(),
                          loop.origin);
    // Nothing runs where there are no iterations.
    Expr steps = loop.extent + number(stages - 1);
    if (!as_int(loop.extent)) steps = select(loop.extent > number(0), steps, number(0));
    Attrs annotations =
        loop.annotations.without(kPipelineStage).without(kPipelineOrder).without(kPipelineVersions);
    if (is_int(loop.extent, 0)) return make<Seq>(std::vector<Stmt>{});
    out.push_back(make<For>(step, number(0), steps, ForKind::kSerial, body, std::move(annotations),
                            loop.origin));
    record({"InjectSoftwarePipeline",
            name_,
            "pipelined",
            "annotated",
            {{"stages", static_cast<double>(stages)},
             {"buffers", static_cast<double>(versions.size())}},
            loop.loop_var->name,
            loop.origin});
    return make<Seq>(std::move(out));
  }

  // Stages run beside one another, so a function that may not run beside itself is in one of them.
  void check_threads(const For& loop, const PipelinePlan& plan) const {
    std::unordered_map<const Node*, int64_t> stage_of;
    for (size_t i = 0; i < plan.body.stmts.size(); ++i)
      walk<CallTir>(plan.body.stmts[i], [&](const CallTir& call) {
        const ExternFunction* found = unsafe_function(module_, call.callee->name);
        if (!found) return;
        const auto [known, is_new] = stage_of.emplace(found, plan.stage[i]);
        if (known->second == plan.stage[i]) return;
        throw CompileError(kNotThreadSafe, call.origin,
                           "stages {} and {} of a pipelined loop call library function `{}`, which "
                           "is declared with `\"thread_safe\": False`; put them into one stage",
                           known->second, plan.stage[i], found->symbol)
            .note(loop.origin, "the loop is here")
            .note(found->origin, "`{}` is declared here", found->symbol);
      });
  }

  std::string name_;
  const IRModule& module_;
  CallEffects& effects_;
  std::vector<Ref<Buffer>> own_;
  std::unordered_map<const Node*, int> uses_;
  std::unordered_set<const Node*> moved_;
};

}  // namespace

IRModule inject_software_pipeline(IRModule module) {
  CallEffects effects(module);
  IRModule out = module;
  for (const auto& [name, base] : module.functions()) {
    const auto function = cast<PrimFunc>(base);
    if (!function) continue;
    bool marked = false;
    walk_if(function->body, [&](const NodePtr& node) {
      if (const auto* loop = node.as<For>()) marked |= loop->annotations.contains(kPipelineStage);
      return !marked && !node.as<ExprNode>();
    });
    if (!marked) continue;
    Injector injector(name, *function, module, effects);
    const Stmt body = injector(function->body);
    out.set(name, function->with_body(injector.without_moved(body)));
  }
  return out;
}

}  // namespace tenon::tir
