// SPDX-License-Identifier: Apache-2.0
#include <unordered_set>

#include "tenon/interp/inner_loop.h"
#include "tenon/interp/races.h"
#include "tenon/interp/resolve_expr.h"
#include "tenon/interp/steady_loop.h"
#include "tenon/tir/analysis/reduction_start.h"
#include "tenon/tir/host_memory.h"

namespace tenon::interp {

namespace {

using namespace tir;

class Resolver : ExpressionResolver {
 public:
  Resolver(const Ref<PrimFunc>& function, ResolveOptions options)
      : ExpressionResolver(function, std::move(options)) {}

  std::unique_ptr<Code> run() {
    const PrimFunc& function = *code_->function;
    code_->watched = options_.watched;
    for (size_t i = 0; i < function.params.size(); ++i) {
      if (function.buffers[i]) {
        code_->param_view.push_back(define_view(function.buffers[i]));
        code_->param_slot.push_back(-1);
      } else {
        code_->param_view.push_back(-1);
        code_->param_slot.push_back(define_var(function.params[i].get()));
      }
    }
    bind_dims(function);
    if (!function.result.is_void()) code_->result_slot = new_slots(1);
    emit({.op = Op::kCheckDims});
    for (size_t i = 0; i < function.buffers.size(); ++i)
      if (function.buffers[i]) know_geometry(*function.buffers[i], nullptr);
    stmt(function.body);
    emit({.op = Op::kReturn});
    emitter_.finish();
    if (!options_.watched) {
      find_inner_loops(*code_);
      find_steady_loops(*code_);
    }
    return std::move(code_);
  }

 private:
  // ---- statements ----

  void stmt(const Stmt& s) {
    if (!s) return;
    const Origin outer = origin_;
    if (s->origin) origin_ = s->origin;
    stmt_inner(s);
    origin_ = outer;
  }

  /// Shape (and strides, offset) of a buffer in consecutive slots.
  int32_t geometry(const Buffer& buffer) {
    std::vector<Expr> all = buffer.shape;
    all.insert(all.end(), buffer.strides.begin(), buffer.strides.end());
    if (buffer.elem_offset) all.push_back(buffer.elem_offset);
    return consecutive(all);
  }

  /// `owner`: a watch of the block that allocates it, or -1.
  void allocate(const Ref<Buffer>& buffer, int32_t owner = -1) {
    const int32_t shape = geometry(*buffer);
    emit({.op = Op::kAlloc,
          .dtype = buffer->dtype,
          .a = define_view(buffer),
          .b = shape,
          .c = owner});
    know_geometry(*buffer, nullptr);
  }

  void stmt_inner(const Stmt& s) {
    switch (kind_of(s)) {
      case StmtKind::kSeq:
        for (const Stmt& inner : s.to<Seq>().stmts) stmt(inner);
        break;
      case StmtKind::kBufferStore: {
        const auto& store = s.to<BufferStore>();
        const int32_t mark = emitter_.mark();
        this->store(store);
        emitter_.release(mark);
        break;
      }
      case StmtKind::kEvaluate: {
        const int32_t mark = emitter_.mark();
        expr(s.to<Evaluate>().value);
        emitter_.release(mark);
        break;
      }
      case StmtKind::kBind: {
        const auto& bind = s.to<Bind>();
        bind_var(bind.var, bind.value);
        break;
      }
      case StmtKind::kAllocBuffer: {
        const auto& alloc = s.to<AllocBuffer>();
        allocate(alloc.buffer);
        if (const auto output = tir::host_output(alloc))
          code_->host_outputs[view_of(*alloc.buffer, alloc.origin)] = *output;
        if (const auto slot = tir::host_workspace(alloc))
          code_->host_slots[view_of(*alloc.buffer, alloc.origin)] = *slot;
        break;
      }
      case StmtKind::kAllocConst: {
        const auto& constant = s.to<AllocConst>();
        code_->constants.push_back(constant.data);
        emit({.op = Op::kConstant,
              .a = define_view(constant.buffer),
              .c = static_cast<int32_t>(code_->constants.size()) - 1});
        know_geometry(*constant.buffer, nullptr);
        break;
      }
      case StmtKind::kDeclBuffer: {
        const auto& view = s.to<DeclBuffer>();
        const int32_t pointer = expr(view.data), shape = geometry(*view.buffer);
        emit({.op = Op::kView, .a = define_view(view.buffer), .b = shape, .c = pointer});
        know_geometry(*view.buffer, nullptr);
        break;
      }
      case StmtKind::kFor: for_loop(s.to<For>()); break;
      case StmtKind::kWhile: {
        const auto& loop = s.to<While>();
        const size_t branch = emitter_.enter_branch();
        const int32_t begin = here();
        const int32_t test = expr(loop.condition);
        const int32_t jump = here();
        emit({.op = Op::kJumpIfZero, .a = test});
        stmt(loop.body);
        emit({.op = Op::kJump, .c = begin});
        emitter_.leave_branch(branch);
        land(jump);
        break;
      }
      case StmtKind::kIfThenElse: {
        const auto& branch = s.to<IfThenElse>();
        const Guard guarded = guard(branch.condition);
        stmt(branch.then_case);
        if (branch.else_case) {
          const int32_t to_end = here();
          emit({.op = Op::kJump});
          end_guard(guarded);
          const size_t otherwise = emitter_.enter_branch();
          stmt(branch.else_case);
          emitter_.leave_branch(otherwise);
          land(to_end);
        } else {
          end_guard(guarded);
        }
        break;
      }
      case StmtKind::kAssert: {
        const auto& check_ = s.to<Assert>();
        const int32_t test = expr(check_.condition);
        code_->messages.push_back(check_.message);
        emit({.op = Op::kAssert, .a = test, .c = static_cast<int32_t>(code_->messages.size()) - 1});
        break;
      }
      case StmtKind::kAttrStmt: stmt(s.to<AttrStmt>().body); break;
      case StmtKind::kBlockRealize: block(s.to<BlockRealize>()); break;
      case StmtKind::kCallTir: {
        const auto& call = s.to<CallTir>();
        this->call(*call.callee, call.args, call.origin, -1);
        break;
      }
      case StmtKind::kBlock:  // of a BlockRealize, or without meaning
        throw CompileError(kUnsupported, s->origin, "`{}` cannot be interpreted", s->type().name);
    }
  }

  void store(const BufferStore& store) {
    const uint16_t lanes = store.value->dtype.lanes;
    if (accumulate(store)) return;
    const int32_t value = expr(store.value);
    if (const auto at = access(store.buffer, store.indices, lanes, store.origin)) {
      const Op op = lanes > 1                         ? Op::kStoreLanes
                    : store.buffer->dtype == kFloat32 ? Op::kStoreF
                                                      : Op::kStoreAt;
      emit({.op = op, .lanes = lanes, .dst = value, .a = *at});
      return;
    }
    const int32_t indices = consecutive(store.indices);
    emit({.op = Op::kStore,
          .lanes = lanes,
          .dtype = store.buffer->dtype,
          .dst = value,
          .a = view_of(*store.buffer, store.origin),
          .b = indices});
  }

  // `x[i] = x[i] + a[j] * b[k]` of float32, the step of every contraction, in one instruction; of
  // vectors too, where a factor may be one element for all lanes.
  bool accumulate(const BufferStore& store) {
    if (options_.watched || options_.random_rounding || store.buffer->dtype != kFloat32)
      return false;
    const uint16_t lanes = store.value->dtype.lanes;
    Expr sum, a, b;
    bool once = false;
    if (const auto* add = store.value.as<Binary>(); add && add->op == BinaryOp::kAdd) {
      const auto* product = add->rhs.as<Binary>();
      sum = add->lhs;
      if (!product || product->op != BinaryOp::kMul) return false;
      a = product->lhs;
      b = product->rhs;
    } else if (const auto* fma = store.value.as<tenon::Call>(); fma && fma->is(IntrinsicId::kFma)) {
      a = fma->arg(0);
      b = fma->arg(1);
      sum = fma->arg(2);
      once = true;
    } else {
      return false;
    }
    const auto* own = sum.as<BufferLoad>();
    if (!own || !own->buffer.same_as(store.buffer) || !same_indices(own->indices, store.indices))
      return false;
    const BufferLoad* factors[2] = {};
    uint16_t factor_lanes[2] = {lanes, lanes};
    for (size_t i = 0; i < 2; ++i) {
      Expr factor = i == 0 ? a : b;
      if (const auto* all = factor.as<Broadcast>(); all && lanes > 1) {
        factor = all->value;
        factor_lanes[i] = 1;
      }
      factors[i] = factor.as<BufferLoad>();
      if (!factors[i] || factors[i]->buffer->dtype != kFloat32 ||
          !geometry_of(*factors[i]->buffer) || has_load_inside(*factors[i]))
        return false;
    }
    if (!geometry_of(*own->buffer) || has_load_inside(*own)) return false;
    const auto x = access(own->buffer, own->indices, lanes, store.origin);
    if (!x) return false;
    std::optional<int32_t> at[2];
    for (size_t i = 0; i < 2; ++i) {
      at[i] = access(factors[i]->buffer, factors[i]->indices, factor_lanes[i], store.origin);
      if (!at[i]) return false;
    }
    emit({.op = lanes > 1 ? Op::kAccumulateLanes : Op::kAccumulate,
          .code = once,
          .lanes = lanes,
          .a = *x,
          .b = *at[0],
          .c = *at[1]});
    return true;
  }
  static bool same_indices(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Expr& x, const Expr& y) {
      return x.same_as(y) || structural_equal(x, y);
    });
  }
  static bool has_load_inside(const BufferLoad& load) {
    return std::any_of(load.indices.begin(), load.indices.end(), has_load);
  }

  void for_loop(const For& loop) {
    if (const Stmt start = tir::start_where_empty(loop)) stmt(start);
    const int32_t mark = emitter_.mark();
    if (is_int(loop.extent, 1) && !options_.watched) {
      bind_var(loop.loop_var, loop.min);
      stmt(loop.body);
      return emitter_.release(mark);
    }
    const auto extent = as_int(loop.extent);
    const std::vector<const Node*> starting = !options_.watched && extent && *extent > 1
                                                  ? starting_with(loop)
                                                  : std::vector<const Node*>();
    if (starting.empty()) return iterate(loop, loop.min, loop.extent);
    // All but the first iteration have nothing to ask for.
    bind_var(loop.loop_var, loop.min);
    stmt(loop.body);
    emitter_.release(mark);
    started_.insert(starting.begin(), starting.end());
    iterate(loop, loop.min + imm(loop.loop_var->dtype, int64_t{1}),
            imm(loop.extent->dtype, *extent - 1));
    for (const Node* block : starting) started_.erase(block);
  }

  // The blocks whose results begin in the first iteration of a loop, or before it.
  std::vector<const Node*> starting_with(const For& loop) const {
    std::vector<const Node*> blocks;
    walk<BlockRealize>(loop.body, [&](const BlockRealize& realize) {
      const Block& block = *realize.block;
      if (!block.init || started_.count(&block)) return;
      for (size_t i = 0; i < block.iter_vars.size(); ++i)
        if (block.iter_vars[i].kind == IterKind::kReduce &&
            realize.iter_values[i].same_as(loop.loop_var))
          blocks.push_back(&block);
    });
    return blocks;
  }

  void iterate(const For& loop, const Expr& from, const Expr& iterations) {
    const int32_t mark = emitter_.mark();
    const int32_t min = expr(from), extent = expr(iterations);
    const Bounds first = emitter_.bounds_of(min),
                 last = first + emitter_.bounds_of(extent) + Bounds::of(-1);
    const int32_t end = value({.op = Op::kBinary,
                               .code = static_cast<uint8_t>(BinaryOp::kAdd),
                               .dtype = loop.loop_var->dtype,
                               .a = min,
                               .b = extent},
                              {min, extent});
    const bool at_once =
        options_.watched && (loop.kind == ForKind::kParallel || loop.kind == ForKind::kVectorized ||
                             loop.kind == ForKind::kThreadBinding);
    if (at_once)
      emit({.op = Op::kEnterLoop,
            .c = watch({loop.loop_var->name,
                        {},
                        {},
                        false,
                        loop.origin,
                        loop.kind != ForKind::kParallel})});
    emitter_.open_loop();
    const int32_t var = define_var(loop.loop_var.get(), {first.low, last.high});
    if (!options_.watched) indices_.define(loop.loop_var.get(), {{{var, 1}}, 0});
    emit({.op = Op::kMove, .dst = var, .a = min});
    const int32_t test = here();
    emit({.op = Op::kJumpIfGE, .a = var, .b = end});
    const int32_t begin = here();
    if (at_once) emit({.op = Op::kIterate, .a = var});
    stmt(loop.body);
    const int32_t length = here() - begin + 1;
    emit({.op = Op::kNext, .a = var, .b = end, .c = begin}).immediate.i = length;
    emitter_.at(test).c = here();
    emitter_.close_loop();
    if (at_once) emit({.op = Op::kLeaveLoop});
    emitter_.release(mark);
  }

  int32_t watch(WatchInfo info) {
    code_->watches.push_back(std::make_shared<const WatchInfo>(std::move(info)));
    return static_cast<int32_t>(code_->watches.size()) - 1;
  }

  /// Data-parallel axes of a block. What it does to memory inside is checked where it is a
  /// definition, which may be scheduled; elsewhere its author sees to its scratch.
  WatchInfo axes_of(const Block& b) {
    WatchInfo info{b.name, {}, {}, !b.body.as<BufferStore>(), b.origin};
    for (const IterVar& iter : b.iter_vars) {
      if (iter.kind != IterKind::kSpatial) continue;
      info.axes.push_back(iter.var->name);
      info.slots.push_back(vars_.at(iter.var.get()));
    }
    return info;
  }

  void block(const BlockRealize& realize) {
    const Block& b = *realize.block;
    const int32_t mark = emitter_.mark();
    Guard guarded = guard(realize.predicate);
    for (size_t i = 0; i < b.iter_vars.size(); ++i)
      bind_var(b.iter_vars[i].var, realize.iter_values[i]);
    int32_t watched = -1;
    if (options_.watched) {
      watched = watch(axes_of(b));
      emit({.op = Op::kEnterBlock, .c = watched});
    }
    for (const Ref<Buffer>& buffer : b.alloc_buffers) allocate(buffer, watched);
    std::vector<const Node*> named;
    for (const MatchBuffer& match : b.match_buffers) {
      std::vector<Expr> mins;
      for (const Range& range : match.source->region) mins.push_back(range.min);
      const int32_t indices = consecutive(mins);
      const int32_t pointer = new_slots(1);
      const int32_t source = view_of(*match.source->buffer, b.origin);
      emit({.op = Op::kAddress, .dst = pointer, .a = source, .b = indices});
      name_geometry(match, named);
      const int32_t shape = geometry(*match.buffer);
      emit({.op = Op::kView,
            .code = 1,
            .dst = source,
            .a = define_view(match.buffer),
            .b = shape,
            .c = pointer});
      know_geometry(*match.buffer, geometry_of(*match.source->buffer));
    }
    if (b.init) {
      Expr first = boolean(true);
      bool never = false;  // it began in an iteration before this
      for (const IterVar& iter : b.iter_vars) {
        if (iter.kind != IterKind::kReduce) continue;
        const Expr begins = eq(iter.var, iter.domain.min);
        never |= !options_.watched && indices_.decide(begins) == std::optional(false);
        first = logical_and(first, begins);
      }
      if (!never) {
        const Guard starts = guard(first);
        stmt(b.init);
        end_guard(starts);
      }
    }
    stmt(b.body);
    if (options_.watched) emit({.op = Op::kLeaveBlock});
    end_guard(guarded);
    emitter_.release(mark);
    for (const Node* var : named) {  // another run of the block names them again
      vars_.erase(var);
      indices_.forget(var);
    }
  }

  /// The variables that stand for extents, strides and the offset of a view, by what it views.
  void name_geometry(const MatchBuffer& match, std::vector<const Node*>& named) {
    const Buffer &view = *match.buffer, &source = *match.source->buffer;
    const auto wide = [](const Expr& value) { return tenon::cast(kInt64, value); };
    const auto name = [&](const Expr& declared, const Expr& value) {
      const auto* var = declared ? declared.as<Var>() : nullptr;
      if (!var || vars_.count(var) || indices_.find(var)) return;
      bind_var(ref_to(var), value);
      named.push_back(var);
    };
    const std::vector<Expr> strides =
        source.strides.empty() ? compact_strides(source.shape) : source.strides;
    std::vector<size_t> kept;
    Expr offset = source.elem_offset ? wide(source.elem_offset) : int64(0);
    for (size_t d = 0; d < source.ndim(); ++d) {
      if (!match.source->drops(d)) kept.push_back(d);
      offset = offset + wide(match.source->region[d].min) * wide(strides[d]);
    }
    const size_t skipped = kept.size() - std::min(kept.size(), view.ndim());
    for (size_t i = 0; i < view.ndim() && skipped + i < kept.size(); ++i) {
      name(view.shape[i], match.source->region[kept[skipped + i]].extent);
      if (!view.strides.empty()) name(view.strides[i], strides[kept[skipped + i]]);
    }
    name(view.elem_offset, offset);
  }

  std::unordered_set<const Node*> started_;  // blocks whose init is not to run where code is made
};

}  // namespace

std::vector<DimSource> dim_sources(const PrimFunc& function) {
  using What = DimSource::What;
  std::vector<DimSource> sources;
  std::unordered_map<const Node*, bool> known;
  for (const Ref<Var>& param : function.params) known[param.get()] = true;
  const auto add = [&](const Expr& dim, size_t param, What what, size_t index) {
    const auto var = tenon::cast<Var>(dim);
    if (var && known.emplace(var.get(), true).second) sources.push_back({var, param, what, index});
  };
  for (size_t p = 0; p < function.buffers.size(); ++p) {
    const Ref<Buffer>& buffer = function.buffers[p];
    if (!buffer) continue;
    for (size_t d = 0; d < buffer->shape.size(); ++d) add(buffer->shape[d], p, What::kDim, d);
    for (size_t d = 0; d < buffer->strides.size(); ++d)
      add(buffer->strides[d], p, What::kStride, d);
    if (buffer->elem_offset) add(buffer->elem_offset, p, What::kOffset, 0);
  }
  return sources;
}

std::unique_ptr<Code> resolve(const Ref<tir::PrimFunc>& function, ResolveOptions options) {
  return Resolver(function, std::move(options)).run();
}

}  // namespace tenon::interp
