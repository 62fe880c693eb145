// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/analysis/parallel_accesses.h"

#include <algorithm>

#include "tenon/tir/analysis/element_places.h"
#include "tenon/tir/analysis/reduction_start.h"
#include "tenon/tir/analysis/region.h"
#include "tenon/tir/callee.h"

namespace tenon::tir {

namespace {

// Calls are followed until there are so many accesses, and so deep.
constexpr size_t kMostAccesses = 2048;
constexpr int kMostDepth = 16;

// What a buffer shows of memory.
struct View {
  Ref<Buffer> memory;
  bool is_known = true;
  bool is_flat = false;
  // Not flat: where the view begins in each dimension of `memory`, and which of them its own are.
  std::vector<Expr> mins;
  std::vector<size_t> dims;
  // Flat: the place of its first element, and its strides.
  Expr base;
  std::vector<Expr> strides;
};

class Walker {
 public:
  Walker(const PrimFunc& function, const IRModule& module, CallEffects& effects)
      : function_(function), module_(module), effects_(effects) {
    out_.symbols = symbolic_vars(function);
    const std::vector<ParamEffect> uses = effects_on(function.body, function.buffers, effects);
    for (size_t i = 0; i < function.buffers.size(); ++i) {
      const Ref<Buffer>& buffer = function.buffers[i];
      if (!buffer) continue;
      own(buffer);
      if (!uses[i].writes) constant_.insert(buffer.get());
    }
  }

  ParallelAccesses run() {
    stmt(function_.body);
    return std::move(out_);
  }

 private:
  // ---- memory

  void own(const Ref<Buffer>& buffer) {
    View view{.memory = buffer, .mins = {}, .dims = {}, .base = {}, .strides = {}};
    for (size_t d = 0; d < buffer->ndim(); ++d) {
      view.mins.push_back(imm(buffer->shape[d]->dtype, int64_t{0}));
      view.dims.push_back(d);
    }
    views_[buffer.get()] = std::move(view);
    by_data_[buffer->data.get()] = buffer;
  }
  void allocate(const Ref<Buffer>& buffer, const Block* block) {
    own(buffer);
    // What a callee allocates is its own.
    out_.allocated[buffer.get()] = {loops_.size(), depth_ > 0 ? nullptr : block};
  }

  static View unknown(const Ref<Buffer>& memory) {
    return {.memory = memory, .is_known = false, .mins = {}, .dims = {}, .base = {}, .strides = {}};
  }

  // `ndim`: dimensions of the view of the region, its last ones.
  View view_of(const BufferRegion& region, size_t ndim) {
    const auto known = views_.find(region.buffer.get());
    if (known == views_.end()) return unknown(region.buffer);
    const View& source = known->second;
    if (!source.is_known) return unknown(source.memory);
    View view = source;
    std::vector<size_t> kept;
    for (size_t d = 0; d < region.region.size(); ++d) {
      if (!region.drops(d)) kept.push_back(d);
      const Expr min = current(region.region[d].min);
      if (source.is_flat)
        view.base = view.base + cast(kInt64, min) * cast(kInt64, source.strides[d]);
      else if (Expr& at = view.mins[source.dims[d]]; true)
        at = at + cast(at->dtype, min);
    }
    if (kept.size() < ndim) return unknown(source.memory);
    kept.erase(kept.begin(), kept.end() - static_cast<std::ptrdiff_t>(ndim));
    view.dims.clear();
    view.strides.clear();
    for (const size_t d : kept) {
      if (source.is_flat)
        view.strides.push_back(source.strides[d]);
      else
        view.dims.push_back(source.dims[d]);
    }
    return view;
  }

  void declare(const DeclBuffer& declared) {
    const Buffer& shown = *declared.buffer;
    const auto* address = declared.data.as<Call>();
    const auto* element = address && address->is(IntrinsicId::kAddressOf)
                              ? address->args[0].as<BufferLoad>()
                              : nullptr;
    const auto known = by_data_.find(declared.data.get());
    const auto defines = [](const Expr& expr) { return expr && expr.as<Var>(); };
    by_data_.emplace(shown.data.get(), declared.buffer);
    if (!element && known == by_data_.end()) {
      views_[&shown] = unknown(declared.buffer);
      return;
    }
    const Ref<Buffer> from = element ? element->buffer : known->second;
    const auto seen = views_.find(from.get());
    const Ref<Buffer> memory = seen == views_.end() ? from : seen->second.memory;
    if (!memory.same_as(from) || from->dtype != shown.dtype || !from->is_compact() ||
        from->elem_offset || defines(shown.elem_offset) ||
        std::any_of(shown.strides.begin(), shown.strides.end(), defines)) {
      views_[&shown] = unknown(memory);
      return;
    }
    View view{.memory = memory, .is_flat = true, .mins = {}, .dims = {}, .base = {}, .strides = {}};
    view.base = element ? current(place_of(*element)) : int64(0);
    if (shown.elem_offset) view.base = view.base + cast(kInt64, current(shown.elem_offset));
    view.strides = shown.is_compact() ? compact_strides(shown.shape) : shown.strides;
    for (Expr& stride : view.strides) stride = current(stride);
    views_[&shown] = std::move(view);
  }

  // ---- values

  Expr current(const Expr& expr) const { return now_.empty() ? expr : substitute(expr, now_); }

  // Whether it has one value wherever its loops are in one iteration.
  bool is_plain(const Expr& expr) const {
    bool plain = true;
    walk_if(expr, [&](const NodePtr& node) {
      if (const auto* load = node.as<BufferLoad>())
        plain = plain && constant_.count(load->buffer.get()) > 0;
      if (const auto* call = node.as<Call>())
        plain = plain && call->op && call->op->effect == Effect::kPure;
      return plain && !node.as<Buffer>();
    });
    return plain;
  }

  template <typename F>
  void where(const Expr& condition, const F& body) {
    const Expr holds = current(condition);
    const bool plain = is_plain(holds);
    if (plain)
      guards_.push_back({holds, loops_.size()});
    else
      ++uncertain_;
    body();
    if (plain)
      guards_.pop_back();
    else
      --uncertain_;
  }

  // ---- accesses

  struct How {
    bool writes = false, is_certain = true;
  };

  // `box`: of `buffer`, in terms of the function.
  void access(const Ref<Buffer>& buffer, std::vector<Range> box, How how, const Origin& origin) {
    ParallelAccess access;
    access.writes = how.writes;
    access.is_certain = how.is_certain && uncertain_ == 0;
    access.loops = loops_;
    access.guards = guards_;
    access.origin = depth_ > 0 ? site_.of(memory_of(buffer).get()) : origin;
    if (depth_ > 0) {
      access.inner = origin;
      access.callee = callee_;
    }
    access.block = block_;
    const auto known = views_.find(buffer.get());
    const View view = known == views_.end() ? unknown(buffer) : known->second;
    access.memory = view.memory;
    access.is_known =
        view.is_known && box.size() == (view.is_flat ? view.strides.size() : view.dims.size());
    for (Range& range : box) {
      range = {current(range.min), current(range.extent)};
      if (is_plain(range.min) && is_plain(range.extent)) continue;
      access.is_certain = false;
      access.from_memory = true;
      range = {};
    }
    if (access.is_known && view.is_flat) {
      Expr at = view.base, length = int64(1);
      for (size_t d = 0; d < box.size() && at; ++d) {
        if (!box[d].min) {
          at = {};
          break;
        }
        const Expr stride = cast(kInt64, view.strides[d]);
        at = at + cast(kInt64, box[d].min) * stride;
        length = length + (cast(kInt64, box[d].extent) - 1) * stride;
        access.is_certain = access.is_certain && is_int(box[d].extent, 1);
      }
      access.is_flat = true;
      access.is_known = static_cast<bool>(at);
      if (at) access.box = {{at, length}};
    } else if (access.is_known) {
      for (size_t d = 0; d < view.mins.size(); ++d)
        access.box.push_back({view.mins[d], imm(view.mins[d]->dtype, int64_t{1})});
      for (size_t d = 0; d < box.size(); ++d) {
        Range& shown = access.box[view.dims[d]];
        const Expr& dim = view.memory->shape[view.dims[d]];
        // An index from memory: anywhere in its dimension.
        if (!box[d].min)
          shown = {imm(dim->dtype, int64_t{0}), dim};
        else
          shown = {shown.min + cast(shown.min->dtype, box[d].min), box[d].extent};
      }
    }
    if (!access.is_known) access.is_certain = false;
    out_.accesses.push_back(std::move(access));
  }
  Ref<Buffer> memory_of(const Ref<Buffer>& buffer) const {
    const auto known = views_.find(buffer.get());
    return known == views_.end() ? buffer : known->second.memory;
  }
  void whole(const Ref<Buffer>& buffer, How how, const Origin& origin) {
    access(buffer, {}, how, origin);
    out_.accesses.back().is_known = out_.accesses.back().is_certain = false;
  }

  // An element, or the lanes of a vector of them.
  void element(const Ref<Buffer>& buffer, const std::vector<Expr>& indices, How how,
               const Origin& origin) {
    std::vector<Range> box;
    for (const Expr& index : indices) {
      const auto* ramp = index.as<Ramp>();
      const auto* splat = index.as<Broadcast>();
      if (ramp) {
        const auto stride = as_int(ramp->stride);
        how.is_certain = how.is_certain && stride && *stride == 1;
        if (stride && *stride >= 0)
          box.push_back({ramp->base, imm(ramp->base->dtype, *stride * (ramp->lanes - 1) + 1)});
        else
          box.push_back({index, imm(buffer->shape[0]->dtype, int64_t{1})});  // not understood
      } else {
        const Expr& at = splat ? splat->value : index;
        box.push_back({at, imm(at->dtype.element(), int64_t{1})});
      }
      if (!box.back().min->dtype.is_scalar()) {
        whole(buffer, how, origin);
        return;
      }
    }
    access(buffer, std::move(box), how, origin);
  }

  void region(const BufferRegion& region, const ParamEffect& effect, const Origin& origin) {
    if (effect.reads) access(region.buffer, region.region, {false, false}, origin);
    if (effect.writes)
      access(region.buffer, region.region, {true, effect.fills && !effect.reads}, origin);
  }

  // ---- expressions

  void expr(const NodePtr& node, const Origin& outer) {
    if (!node || node.as<Var>() || node.as<IntImm>() || node.as<FloatImm>() || node.as<Buffer>())
      return;
    const Origin& origin = node.get()->origin ? node.get()->origin : outer;
    if (const auto* load = node.as<BufferLoad>()) {
      for (const Expr& index : load->indices) expr(index, origin);
      return element(load->buffer, load->indices, {}, origin);
    }
    if (const auto* let = node.as<Let>()) {
      expr(let->value, origin);
      now_[let->var.get()] = current(let->value);
      return expr(let->body, origin);
    }
    if (const auto* op = node.as<Binary>(); op && is_logical(op->op) && op->dtype.is_scalar()) {
      expr(op->lhs, origin);
      return where(op->op == BinaryOp::kAnd ? op->lhs : logical_not(op->lhs),
                   [&] { expr(op->rhs, origin); });
    }
    if (const auto* call = node.as<Call>()) return this->call(*call, origin);
    each_member(node, [&](const NodePtr& member, FieldRole) { expr(member, origin); });
  }

  void call(const Call& call, const Origin& origin) {
    if (call.is(IntrinsicId::kIfThenElse) && call.arg(0)->dtype.is_scalar()) {
      expr(call.args[0], origin);
      where(call.arg(0), [&] { expr(call.args[1], origin); });
      return where(logical_not(call.arg(0)), [&] { expr(call.args[2], origin); });
    }
    if (call.is(IntrinsicId::kPrefetch)) return;
    if (call.callee) {
      for (size_t i = 0; i < call.args.size(); ++i) {
        const auto* given = call.args[i].as<BufferRegion>();
        if (!given)
          expr(call.args[i], origin);
        else
          region(*given, effects_.of(call.callee->name, i), given->origin ? given->origin : origin);
      }
      return;
    }
    const bool masked = call.is(IntrinsicId::kMaskedLoad) || call.is(IntrinsicId::kMaskedStore);
    for (size_t i = 0; i < call.args.size(); ++i) {
      const NodePtr& arg = call.args[i];
      const auto* place = arg.as<BufferLoad>();
      if (masked && i == 0 && place) {
        for (const Expr& index : place->indices) expr(index, origin);
        element(place->buffer, place->indices, {call.is(IntrinsicId::kMaskedStore), false}, origin);
      } else if (call.is(IntrinsicId::kAddressOf) && place) {
        for (const Expr& index : place->indices) expr(index, origin);
        for (const bool writes : {false, true}) whole(place->buffer, {writes, false}, origin);
      } else if (const auto known = by_data_.find(arg.get());
                 known != by_data_.end() && !call.is(IntrinsicId::kTvmAccessPtr)) {
        for (const bool writes : {false, true}) whole(known->second, {writes, false}, origin);
      } else {
        expr(arg, origin);
      }
    }
    if (call.is(IntrinsicId::kTvmAccessPtr)) pointer(call, origin);
  }

  void pointer(const Call& call, const Origin& origin) {
    const auto known = by_data_.find(call.args[1].get());
    if (known == by_data_.end()) return;
    const Ref<Buffer>& source = known->second;
    const int64_t mode = as_int(call.arg(4)).value_or(3);
    for (const bool writes : {false, true}) {
      if (!(mode & (writes ? 2 : 1))) continue;
      whole(source, {writes, false}, origin);
      ParallelAccess& access = out_.accesses.back();
      const Range range{current(cast(kInt64, call.arg(2))), current(cast(kInt64, call.arg(3)))};
      if (element_of_access_ptr(call) != source->dtype || !access.memory.same_as(source) ||
          !is_plain(range.min) || !is_plain(range.extent))
        continue;
      access.box = {range};
      access.is_flat = access.is_known = true;
    }
  }

  // ---- statements

  void stmt(const Stmt& s) {
    if (!s) return;
    const Origin& origin = s->origin;
    if (const auto* list = s.as<Seq>()) {
      for (const Stmt& item : list->stmts) stmt(item);
    } else if (const auto* loop = s.as<For>()) {
      this->loop(*loop);
    } else if (const auto* branch = s.as<IfThenElse>()) {
      expr(branch->condition, origin);
      where(branch->condition, [&] { stmt(branch->then_case); });
      if (branch->else_case)
        where(logical_not(branch->condition), [&] { stmt(branch->else_case); });
    } else if (const auto* loop = s.as<While>()) {
      ++uncertain_;
      expr(loop->condition, origin);
      stmt(loop->body);
      --uncertain_;
    } else if (const auto* attr = s.as<AttrStmt>()) {
      stmt(attr->body);
    } else if (const auto* realize = s.as<BlockRealize>()) {
      block(*realize);
    } else if (const auto* bind = s.as<Bind>()) {
      expr(bind->value, origin);
      now_[bind->var.get()] = current(bind->value);
    } else if (const auto* store = s.as<BufferStore>()) {
      expr(store->value, origin);
      for (const Expr& index : store->indices) expr(index, origin);
      element(store->buffer, store->indices, {.writes = true}, origin);
    } else if (const auto* alloc = s.as<AllocBuffer>()) {
      allocate(alloc->buffer, nullptr);
    } else if (const auto* alloc = s.as<AllocConst>()) {
      own(alloc->buffer);
      constant_.insert(alloc->buffer.get());
    } else if (const auto* view = s.as<DeclBuffer>()) {
      declare(*view);
    } else if (const auto* evaluate = s.as<Evaluate>()) {
      expr(evaluate->value, origin);
    } else if (const auto* claim = s.as<Assert>()) {
      expr(claim->condition, origin);
    } else if (const auto* call = s.as<CallTir>()) {
      this->call(*call);
    }
  }

  void loop(const For& loop) {
    expr(loop.min, loop.origin);
    expr(loop.extent, loop.origin);
    const Expr min = current(loop.min), extent = current(loop.extent);
    now_.erase(loop.loop_var.get());
    const bool plain = is_plain(min) && is_plain(extent);
    if (!plain) ++uncertain_;
    ParallelLoop here{&loop, loops_.size(), out_.accesses.size(), 0};
    loops_.push_back({loop.loop_var, min, extent});
    stmt(loop.body);
    loops_.pop_back();
    if (!plain) --uncertain_;
    here.end = out_.accesses.size();
    if (loop.kind == ForKind::kParallel && depth_ == 0) out_.loops.push_back(here);
  }

  void block(const BlockRealize& realize) {
    const Block& block = *realize.block;
    for (const Expr& value : realize.iter_values) expr(value, realize.origin);
    expr(realize.predicate, realize.origin);
    where(realize.predicate, [&] {
      for (size_t i = 0; i < block.iter_vars.size(); ++i)
        now_[block.iter_vars[i].var.get()] = current(realize.iter_values[i]);
      for (const Ref<Buffer>& buffer : block.alloc_buffers) allocate(buffer, &block);
      for (const MatchBuffer& match : block.match_buffers) {
        views_[match.buffer.get()] = view_of(*match.source, match.buffer->ndim());
        name_extents(match);
      }
      const Block* around = block_;
      block_ = &block;
      if (block.init) where(first_iteration(block), [&] { stmt(block.init); });
      stmt(block.body);
      block_ = around;
    });
  }
  void name_extents(const MatchBuffer& match) {
    std::vector<Expr> extents = kept_extents(*match.source);
    const size_t ndim = match.buffer->ndim();
    if (extents.size() < ndim) return;
    extents.erase(extents.begin(), extents.end() - static_cast<std::ptrdiff_t>(ndim));
    for (size_t d = 0; d < ndim; ++d)
      if (const auto symbol = cast<Var>(match.buffer->shape[d]))
        now_.try_emplace(symbol.get(), current(cast(symbol->dtype, extents[d])));
  }

  void call(const CallTir& call) {
    const std::optional<Callee> callee = callee_of(module_, call.callee->name);
    const bool fits = callee && callee->params.size() == call.args.size();
    for (const NodePtr& arg : call.args)
      if (!arg.as<BufferRegion>()) expr(arg, call.origin);
    if (fits && callee->prim() && depth_ < kMostDepth && out_.accesses.size() < kMostAccesses)
      return follow(call, *callee);
    for (size_t i = 0; i < call.args.size(); ++i)
      if (const auto* given = call.args[i].as<BufferRegion>())
        region(*given, effects_.of(call.callee->name, i),
               given->origin ? given->origin : call.origin);
  }

  void follow(const CallTir& call, const Callee& callee) {
    const Substitution bound = bind_symbols(callee, call.args);
    std::vector<View> views(call.args.size());
    std::unordered_map<const Node*, Origin> site;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const auto* given = call.args[i].as<BufferRegion>();
      if (!given || !callee.buffers[i]) continue;
      views[i] = view_of(*given, callee.buffers[i]->ndim());
      site.emplace(views[i].memory.get(), given->origin ? given->origin : call.origin);
    }
    Substitution values;
    for (const auto& [var, value] : bound) values[var] = current(downcast<ExprNode>(value));
    for (const auto& [var, value] : values) now_[var] = value;
    for (size_t i = 0; i < call.args.size(); ++i)
      if (views[i].memory) {
        views_[callee.buffers[i].get()] = views[i];
        by_data_[callee.buffers[i]->data.get()] = callee.buffers[i];
      }
    const Block* around = block_;
    if (depth_ == 0) {
      site_ = {std::move(site), call.origin};
      callee_ = callee.name;
    }
    ++depth_;
    stmt(callee.prim()->body);
    --depth_;
    block_ = around;
    for (const auto& [var, value] : values) now_.erase(var);
  }

  const PrimFunc& function_;
  const IRModule& module_;
  CallEffects& effects_;
  ParallelAccesses out_;
  std::unordered_set<const Node*> constant_;  // buffers that nothing here writes
  std::unordered_map<const Node*, View> views_;
  std::unordered_map<const Node*, Ref<Buffer>> by_data_;
  Substitution now_;  // axes and bound variables, in terms of the loops
  std::vector<Running> loops_;
  std::vector<ParallelAccess::Guard> guards_;
  const Block* block_ = nullptr;
  int uncertain_ = 0;  // conditions around that are not followed
  // Of the call in the function that is looked at.
  struct Site {
    std::unordered_map<const Node*, Origin> places;  // its arguments, by the memory
    Origin call;
    const Origin& of(const Node* memory) const {
      const auto known = places.find(memory);
      return known == places.end() ? call : known->second;
    }
  };
  Site site_;
  std::string callee_;
  int depth_ = 0;  // calls around
};

}  // namespace

bool uses_var(const ParallelAccess& access, const Var* var) {
  const auto in = [&](const Expr& expr) { return expr && uses_var(NodePtr(expr), var); };
  return std::any_of(access.box.begin(), access.box.end(),
                     [&](const Range& range) { return in(range.min) || in(range.extent); }) ||
         std::any_of(access.guards.begin(), access.guards.end(),
                     [&](const ParallelAccess::Guard& guard) { return in(guard.condition); });
}

ParallelAccesses parallel_accesses(const PrimFunc& function, const IRModule& module,
                                   CallEffects& effects) {
  return Walker(function, module, effects).run();
}

}  // namespace tenon::tir
