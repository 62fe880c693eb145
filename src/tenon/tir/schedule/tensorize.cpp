// SPDX-License-Identifier: Apache-2.0
// tensorize: replaces a block by a call of a kernel that computes the same.
#include "tenon/tir/schedule/tensorize.h"

#include <algorithm>

#include "tenon/tir/call_verifier.h"
#include "tenon/tir/patterns/unify.h"
#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

namespace {

// Both sides take the same arguments.
void check_signature(const TensorIntrin& intrin) {
  const PrimFunc &a = *intrin.description, &b = *intrin.implementation;
  const auto differ = [&](const std::string& words) {
    illegal(b.origin, "implementation `{}` {}; description `{}` differs",
            intrin.implementation_name, words, intrin.description_name);
  };
  if (a.params.size() != b.params.size()) differ(fmt::format("has {} parameters", b.params.size()));
  for (size_t i = 0; i < a.params.size(); ++i) {
    const Ref<Buffer>&x = a.buffers[i], &y = b.buffers[i];
    if (static_cast<bool>(x) != static_cast<bool>(y))
      differ(fmt::format("has {} as parameter {}", y ? "a buffer" : "a scalar", i));
    if (!x) {
      if (a.params[i]->dtype != b.params[i]->dtype)
        differ(fmt::format("has a {} as parameter {}", b.params[i]->dtype.str(), i));
      continue;
    }
    bool same = x->dtype == y->dtype && x->ndim() == y->ndim() && x->scope == y->scope;
    for (size_t d = 0; same && d < x->ndim(); ++d) {
      const auto p = as_int(x->shape[d]), q = as_int(y->shape[d]);
      same = !q || p == q;
    }
    if (!same)
      differ(fmt::format("has `{}`: {} {} in scope `{}`", y->name, str(y->shape), y->dtype.str(),
                         y->scope));
  }
}

// `expr`, widened for comparison, in the dtype of its variables where these are narrower; null
// where they are not.
Expr narrowed(const Expr& expr, DType dtype) {
  if (const auto number = as_int(expr)) return imm(dtype, *number);
  if (const auto* conversion = expr.as<Cast>())
    return conversion->value->dtype == dtype ? conversion->value : Expr();
  const auto* op = expr.as<Binary>();
  if (!op || is_comparison(op->op) || is_logical(op->op)) return {};
  const Expr a = narrowed(op->lhs, dtype), b = narrowed(op->rhs, dtype);
  return a && b ? binary(op->op, a, b) : Expr();
}

/// The arguments of the call, where the description fits what `content` does.
class Arguments {
 public:
  Arguments(const PreparedPattern& pattern, const BlockGraph& graph, arith::Analyzer& analyzer)
      : pattern_(pattern), graph_(graph), analyzer_(analyzer) {}

  std::vector<NodePtr> args;
  std::vector<Ref<BufferRegion>> reads, writes;
  bool adds = false;  // to what it writes

  bool accept(const Solution& solution, std::string& why) {
    size_t used = solution.blocks.size();
    for (const size_t b : solution.blocks) used += graph_.blocks()[b].start.has_value();
    if (used != graph_.blocks().size()) {
      why = "the block holds more than the description";
      return false;
    }
    for (const Node* local : pattern_.locals) {
      const auto bound = solution.buffers.find(local);
      if (bound == solution.buffers.end() || graph_.is_intermediate(bound->second.buffer)) continue;
      why = fmt::format("`{}` is seen from outside; the description has it for itself",
                        bound->second.buffer->name);
      return false;
    }
    args.clear();
    reads.clear();
    writes.clear();
    adds = std::any_of(solution.blocks.begin(), solution.blocks.end(),
                       [&](size_t b) { return graph_.blocks()[b].definition->reads_itself(); });
    Substitution values;
    for (const auto& [scalar, value] : solution.values) {
      const auto* variable = static_cast<const Var*>(scalar);
      values[scalar] = variable->dtype.is_integer() ? tenon::cast(variable->dtype, value) : value;
    }
    for (size_t i = 0; i < pattern_.function.params.size(); ++i) {
      const Ref<Buffer>& param = pattern_.function.buffers[i];
      if (!param) {
        args.push_back(values.at(pattern_.function.params[i].get()));
        continue;
      }
      const auto region = region_of(*param, solution.buffers.at(param.get()), values, why);
      if (!region) return false;
      args.push_back(region);
      const bool is_written = pattern_.written.count(param.get()) != 0;
      const auto plain = make<BufferRegion>(region->buffer, region->region);
      if (is_written) writes.push_back(plain);
      if (!is_written || adds) reads.push_back(plain);
    }
    return true;
  }

 private:
  Ref<BufferRegion> region_of(const Buffer& param, const Bound& bound, const Substitution& values,
                              std::string& why) {
    if (!std::is_sorted(bound.dims.begin(), bound.dims.end())) {
      why = fmt::format("the dimensions of `{}` are in another order than those of `{}`",
                        bound.buffer->name, param.name);
      return {};
    }
    std::vector<Range> ranges;
    std::vector<bool> drop;
    for (size_t e = 0; e < bound.buffer->ndim(); ++e) {
      const auto at = std::find(bound.dims.begin(), bound.dims.end(), e);
      const bool is_kept = at != bound.dims.end();
      const auto d = static_cast<size_t>(at - bound.dims.begin());
      const Expr extent =
          is_kept ? analyzer_.simplify(tenon::cast(kInt64, substitute(param.shape[d], values)))
                  : int64(1);
      const Expr low = analyzer_.simplify(bound.base[e]);
      if (!analyzer_.proves_nonnegative(low) ||
          !analyzer_.proves_less_equal(low + extent, tenon::cast(kInt64, bound.buffer->shape[e]))) {
        why = fmt::format("`{}` from {} on does not hold {} elements in dimension {}",
                          bound.buffer->name, str(low), str(extent), e);
        return {};
      }
      const Expr narrow_low = narrowed(low, kInt32), narrow_extent = narrowed(extent, kInt32);
      if (narrow_low && narrow_extent && !as_int(low))
        ranges.push_back({narrow_low, narrow_extent});
      else
        ranges.push_back({low, extent});
      drop.push_back(!is_kept);
    }
    return make<BufferRegion>(bound.buffer, std::move(ranges), std::move(drop));
  }

  const PreparedPattern& pattern_;
  const BlockGraph& graph_;
  arith::Analyzer& analyzer_;
};

/// The implementation may ask more of the memory than the description says: dense rows, say.
void check_memory(const std::vector<NodePtr>& args, const TensorIntrin& intrin,
                  const Origin& origin) {
  IRModule module;
  module.set(intrin.implementation_name, intrin.implementation);
  CallEffects effects(module);
  Diagnostics diagnostics;
  CallVerifier(module, effects, diagnostics)
      .check({.in = "", .callee = intrin.implementation_name, .args = &args, .origin = origin});
  if (!diagnostics.empty())
    illegal(origin, "implementation `{}` cannot be given these regions: {}",
            intrin.implementation_name, diagnostics.items()[0].message);
}

}  // namespace

void Schedule::replace_by_call(const BlockRV& block, const TensorIntrin& intrin) {
  const Path path = path_of(block);
  const Ref<BlockRealize> old = realize(block);
  if (realizes_in(old->block->body).empty())
    illegal(old->origin, "block `{}` holds no block; expected one that blockize has made",
            block.name);
  check_signature(intrin);
  const PreparedPattern pattern(*intrin.description);
  // What the block holds, as a function.
  Block::Parts content;
  content.name = "root";
  content.alloc_buffers = old->block->alloc_buffers;
  content.body = old->block->body;
  const auto function = make<PrimFunc>(
      func_->params, func_->buffers,
      make<BlockRealize>(std::vector<Expr>{}, boolean(true), make<Block>(std::move(content))),
      Attrs(), old->origin);
  const BlockGraph graph(*function, AxesOf::kLoops);
  arith::Analyzer analyzer;
  bind_path(path, analyzer);
  Arguments arguments(pattern, graph, analyzer);
  Unifier unifier(pattern, graph, Extent::kRegion);
  bool fits = false;
  for (size_t b = 0; b < graph.blocks().size() && !fits; ++b)
    fits = unifier
               .find(b, [&](const Solution& solution,
                            std::string& why) { return arguments.accept(solution, why); })
               .has_value();
  if (!fits)
    illegal(old->origin, "block `{}` does not do what `{}` describes: {}", block.name,
            intrin.description_name, unifier.nearest());
  check_memory(arguments.args, intrin, old->origin);
  Block::Parts parts = old->block->parts();
  parts.alloc_buffers.clear();
  parts.reads = arguments.reads;
  parts.writes = arguments.writes;
  if (parts.init)  // what the init stores is not read
    std::erase_if(parts.reads, [&](const Ref<BufferRegion>& read) {
      return std::any_of(parts.writes.begin(), parts.writes.end(),
                         [&](const auto& write) { return write->buffer.same_as(read->buffer); });
    });
  parts.body = make<CallTir>(make<GlobalVar>(intrin.implementation_name), arguments.args, Attrs(),
                             old->origin);
  commit(replace(path, make<BlockRealize>(old->iter_values, old->predicate,
                                          with_parts(old->block, std::move(parts)), old->origin)));
}

void Schedule::tensorize(const BlockRV& block, const TensorIntrin& intrin) {
  replace_by_call(block, intrin);
  trace_.intrins[intrin.implementation_name] = intrin;
  record("tensorize", {block}, {{"tensor_intrin", intrin.implementation_name}});
}

void Schedule::tensorize(const LoopRV& loop, const TensorIntrin& intrin) {
  Schedule next = *this;
  next.replace_by_call(next.blockize(loop), intrin);
  func_ = next.func_;
  trace_.intrins[intrin.implementation_name] = intrin;
  record("tensorize", {loop}, {{"tensor_intrin", intrin.implementation_name}});
}

IRModule tensorize(IRModule module, const TensorizeOptions& options) {
  const auto function_of = [&](const char* key, const std::string& name) {
    const auto function = module.find<PrimFunc>(name);
    if (!function)
      throw CompileError(kBadOption, {},
                         "option `{}` of `Tensorize` is `{}`; expected a PrimFunc of the module",
                         key, name);
    return function;
  };
  const TensorIntrin intrin{options.description, options.implementation,
                            function_of("description", options.description),
                            function_of("implementation", options.implementation)};
  Schedule schedule(function_of("function", options.function));
  if (options.loop.empty()) {
    schedule.tensorize(schedule.get_block(options.block), intrin);
  } else {
    const Path path = find_path(schedule.func()->body, [&](const Stmt& stmt) {
      const auto* loop = stmt.as<For>();
      return loop && loop->loop_var->name == options.loop;
    });
    if (!path)
      throw CompileError(kBadOption, schedule.func()->origin,
                         "option `loop` of `Tensorize` is `{}`; expected a loop of `{}`",
                         options.loop, options.function);
    schedule.tensorize(LoopRV{path.target().as<For>()->loop_var}, intrin);
  }
  module.set(options.function, schedule.func());
  return module;
}

}  // namespace tenon::tir
