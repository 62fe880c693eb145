#include <map>
#include <unordered_map>

#include "tenon/interp/races.h"
#include "tenon/tir/analysis/reduction_start.h"

namespace tenon::interp {

namespace {

using namespace tir;

class Resolver {
 public:
  Resolver(const Ref<PrimFunc>& function, bool watched)
      : code_(std::make_unique<Code>()), watched_(watched) {
    code_->function = function;
  }

  std::unique_ptr<Code> run() {
    const PrimFunc& function = *code_->function;
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
    code_->body_start = static_cast<int32_t>(code_->instrs.size());
    stmt(function.body);
    emit({.op = Op::kReturn});
    return std::move(code_);
  }

 private:
  // ---- slots and views ----

  int32_t new_slots(int lanes) {
    const int32_t slot = next_;
    next_ += lanes;
    code_->slots = std::max(code_->slots, next_);
    return slot;
  }
  int32_t define_var(const Node* var) {
    const int32_t slot = new_slots(static_cast<const Var*>(var)->dtype.lanes);
    vars_[var] = slot;
    return slot;
  }
  int32_t define_view(const Ref<Buffer>& buffer) {
    const auto index = static_cast<int32_t>(code_->views.size());
    code_->views.push_back(
        {buffer, !buffer->strides.empty(), static_cast<bool>(buffer->elem_offset)});
    views_[buffer.get()] = index;
    pointers_[buffer->data.get()] = index;
    return index;
  }
  int32_t view_of(const Buffer& buffer, const Origin& origin) const {
    const auto it = views_.find(&buffer);
    if (it == views_.end())
      throw CompileError(kUndefined, origin, "buffer `{}` is used where it is not defined",
                         buffer.name);
    return it->second;
  }

  static Fast fast_of(const Instr& instr) {
    const bool suits = instr.op == Op::kBinary || instr.op == Op::kLoad || instr.op == Op::kStore;
    if (!suits || instr.lanes != 1) return Fast::kNo;
    if (instr.dtype == kInt64) return Fast::kInt64;
    return instr.dtype == kFloat32 ? Fast::kFloat32 : Fast::kNo;
  }

  Instr& emit(Instr instr) {
    instr.fast = fast_of(instr);
    code_->instrs.push_back(instr);
    code_->origins.push_back(origin_);
    return code_->instrs.back();
  }
  int32_t here() const { return static_cast<int32_t>(code_->instrs.size()); }

  void bind_dims(const PrimFunc& function) {
    using What = Code::DimBinding::What;
    const auto bind = [&](const Expr& dim, size_t param, What what, size_t index) {
      const auto* var = dim.as<Var>();
      if (!var || vars_.count(var)) return false;
      code_->bindings.push_back({define_var(var), param, what, index});
      return true;
    };
    std::vector<std::tuple<size_t, size_t, Expr>> others;
    for (size_t p = 0; p < function.buffers.size(); ++p) {
      const Ref<Buffer>& buffer = function.buffers[p];
      if (!buffer) continue;
      for (size_t d = 0; d < buffer->shape.size(); ++d)
        if (!bind(buffer->shape[d], p, What::kDim, d)) others.emplace_back(p, d, buffer->shape[d]);
      for (size_t d = 0; d < buffer->strides.size(); ++d)
        bind(buffer->strides[d], p, What::kStride, d);
      if (buffer->elem_offset) bind(buffer->elem_offset, p, What::kOffset, 0);
    }
    for (const auto& [param, dim, expr_] : others)
      code_->checks.push_back({param, dim, expr(expr_)});
  }

  // ---- expressions ----

  /// Scalar constants have slots of their own, which hold them from the start.
  int32_t immediate(DType dtype, Slot value) {
    check(dtype.is_scalar(), "an immediate with lanes");
    const auto [it, is_new] = constants_.try_emplace(
        {dtype.is_float(), value.i}, static_cast<int32_t>(code_->constants_in_slots.size()));
    if (it->second < kConstantSlots) {
      if (is_new) code_->constants_in_slots.push_back(value);
      return it->second;
    }
    const int32_t dst = new_slots(1);
    emit({.op = Op::kImmediate, .dtype = dtype, .dst = dst}).immediate = value;
    return dst;
  }

  int32_t expr(const Expr& e) {
    const Origin outer = origin_;
    if (e->origin) origin_ = e->origin;
    const int32_t slot = expr_inner(e);
    origin_ = outer;
    return slot;
  }

  /// The slots of `indices` copied next to each other; the last may be a vector.
  int32_t consecutive(const std::vector<Expr>& indices) {
    std::vector<int32_t> slots;
    int total = 0;
    for (const Expr& index : indices) {
      slots.push_back(expr(index));
      total += index->dtype.lanes;
    }
    const int32_t base = new_slots(std::max(1, total));
    int32_t at = base;
    for (size_t i = 0; i < slots.size(); ++i) {
      const uint16_t lanes = indices[i]->dtype.lanes;
      emit({.op = Op::kMove, .lanes = lanes, .dst = at, .a = slots[i]});
      at += lanes;
    }
    return base;
  }

  static bool has_load(const Expr& e) {
    bool found = false;
    walk<BufferLoad>(e, [&](const BufferLoad&) { found = true; });
    return found;
  }

  int32_t expr_inner(const Expr& e) {
    const uint16_t lanes = e->dtype.lanes;
    if (const auto* imm_ = e.as<IntImm>()) return immediate(e->dtype, {.i = imm_->value});
    if (const auto* imm_ = e.as<FloatImm>()) return immediate(e->dtype, {.f = imm_->value});
    // The function that the code is of keeps the text.
    if (const auto* text = e.as<StringImm>())
      return immediate(kInt64, {.i = reinterpret_cast<int64_t>(text->value.c_str())});
    if (const auto* var = e.as<Var>()) {
      const auto it = vars_.find(var);
      if (it != vars_.end()) return it->second;
      const auto pointer = pointers_.find(var);
      if (pointer != pointers_.end()) {
        const int32_t dst = new_slots(1);
        emit({.op = Op::kViewPointer, .dst = dst, .a = pointer->second});
        return dst;
      }
      throw CompileError(kUndefined, e->origin, "variable `{}` is used where it is not defined",
                         var->name);
    }
    if (const auto* op = e.as<Binary>()) {
      if (is_logical(op->op) && lanes == 1 && has_load(op->rhs)) return short_circuit(*op);
      const int32_t a = expr(op->lhs), b = expr(op->rhs), dst = new_slots(lanes);
      emit({.op = Op::kBinary,
            .code = static_cast<uint8_t>(op->op),
            .lanes = lanes,
            .dtype = op->lhs->dtype.element(),
            .dst = dst,
            .a = a,
            .b = b});
      return dst;
    }
    if (const auto* op = e.as<Not>()) {
      const int32_t a = expr(op->value), dst = new_slots(lanes);
      emit({.op = Op::kNot, .lanes = lanes, .dst = dst, .a = a});
      return dst;
    }
    if (const auto* op = e.as<Cast>()) {
      const int32_t a = expr(op->value), dst = new_slots(lanes);
      emit({.op = Op::kCast,
            .lanes = lanes,
            .dtype = e->dtype.element(),
            .dtype2 = op->value->dtype.element(),
            .dst = dst,
            .a = a});
      return dst;
    }
    if (const auto* op = e.as<Select>()) {
      int32_t c = expr(op->condition);
      if (op->condition->dtype.lanes == 1 && lanes > 1) c = splat(c, lanes);
      const int32_t a = expr(op->true_value), b = expr(op->false_value), dst = new_slots(lanes);
      emit({.op = Op::kSelect, .lanes = lanes, .dst = dst, .a = c, .b = a, .c = b});
      return dst;
    }
    if (const auto* op = e.as<Broadcast>()) return splat(expr(op->value), lanes);
    if (const auto* op = e.as<Ramp>()) {
      const int32_t a = expr(op->base), b = expr(op->stride), dst = new_slots(lanes);
      emit({.op = Op::kRamp,
            .lanes = lanes,
            .dtype = e->dtype.element(),
            .dst = dst,
            .a = a,
            .b = b});
      return dst;
    }
    if (const auto* op = e.as<Shuffle>()) {
      std::vector<Expr> vectors(op->vectors.begin(), op->vectors.end());
      int total = 0;
      for (const Expr& v : vectors) total += v->dtype.lanes;
      const int32_t base = new_slots(total);
      int32_t at = base;
      for (const Expr& v : vectors) {
        const int32_t slot = expr(v);
        emit({.op = Op::kMove, .lanes = v->dtype.lanes, .dst = at, .a = slot});
        at += v->dtype.lanes;
      }
      const int32_t dst = new_slots(lanes);
      code_->tables.push_back(op->lanes);
      emit({.op = Op::kShuffle,
            .lanes = lanes,
            .dst = dst,
            .a = base,
            .c = static_cast<int32_t>(code_->tables.size()) - 1});
      return dst;
    }
    if (const auto* op = e.as<Let>()) {
      const int32_t value = expr(op->value);
      vars_[op->var.get()] = value;
      return expr(op->body);
    }
    if (const auto* load = e.as<BufferLoad>()) {
      const int32_t indices = consecutive(load->indices), dst = new_slots(lanes);
      emit({.op = Op::kLoad,
            .lanes = lanes,
            .dtype = load->buffer->dtype,
            .dst = dst,
            .a = view_of(*load->buffer, e->origin),
            .b = indices});
      return dst;
    }
    if (const auto* op = e.as<tenon::Call>()) return intrinsic(*op);
    throw CompileError(kUnsupported, e->origin, "`{}` cannot be interpreted", e->type().name);
  }

  int32_t splat(int32_t slot, uint16_t lanes) {
    const int32_t dst = new_slots(lanes);
    emit({.op = Op::kSplat, .lanes = lanes, .dst = dst, .a = slot});
    return dst;
  }

  int32_t short_circuit(const Binary& op) {
    const int32_t dst = new_slots(1);
    emit({.op = Op::kMove, .dst = dst, .a = expr(op.lhs)});
    int32_t test = dst;
    if (op.op == BinaryOp::kOr) {
      test = new_slots(1);
      emit({.op = Op::kNot, .dst = test, .a = dst});
    }
    const int32_t jump = here();
    emit({.op = Op::kJumpIfZero, .a = test});
    const int32_t rhs = expr(op.rhs);
    emit({.op = Op::kMove, .dst = dst, .a = rhs});
    code_->instrs[static_cast<size_t>(jump)].c = here();
    return dst;
  }

  int32_t conditional(const tenon::Call& call) {
    const uint16_t lanes = call.dtype.lanes;
    const Expr condition = call.arg(0);
    if (condition->dtype.lanes > 1) {  // lane by lane: both sides are evaluated, as Select
      const int32_t c = expr(condition), a = expr(call.arg(1)), b = expr(call.arg(2)),
                    dst = new_slots(lanes);
      emit({.op = Op::kSelect, .lanes = lanes, .dst = dst, .a = c, .b = a, .c = b});
      return dst;
    }
    const int32_t dst = new_slots(lanes);
    const int32_t test = expr(condition);
    const int32_t to_else = here();
    emit({.op = Op::kJumpIfZero, .a = test});
    const int32_t a = expr(call.arg(1));
    emit({.op = Op::kMove, .lanes = lanes, .dst = dst, .a = a});
    const int32_t to_end = here();
    emit({.op = Op::kJump});
    code_->instrs[static_cast<size_t>(to_else)].c = here();
    const int32_t b = expr(call.arg(2));
    emit({.op = Op::kMove, .lanes = lanes, .dst = dst, .a = b});
    code_->instrs[static_cast<size_t>(to_end)].c = here();
    return dst;
  }

  int32_t masked(const tenon::Call& call, Op op) {
    const auto load = tenon::cast<BufferLoad>(call.args.at(0));
    if (!load)
      throw CompileError(kBadArgument, call.origin, "the first argument of `T.{}` names no element",
                         call.op->name);
    const uint16_t lanes = load->dtype.lanes;
    const int32_t mask = expr(call.arg(1)), value = expr(call.arg(2)),
                  indices = consecutive(load->indices);
    const int32_t dst = new_slots(lanes);
    emit({.op = Op::kMove, .lanes = lanes, .dst = dst, .a = value});
    emit({.op = op,
          .lanes = lanes,
          .dtype = load->buffer->dtype,
          .dst = dst,
          .a = view_of(*load->buffer, call.origin),
          .b = indices,
          .c = mask});
    return dst;
  }

  /// The view that a call is given for a region.
  int32_t region_view(const BufferRegion& region, const Origin& origin) {
    std::vector<Expr> parts;
    for (const Range& range : region.region) parts.push_back(range.min);
    for (const Range& range : region.region) parts.push_back(range.extent);
    const int32_t slots = consecutive(parts);
    const auto view = static_cast<int32_t>(code_->views.size());
    code_->views.push_back({region.buffer, true, true});
    emit({.op = Op::kRegion, .dst = view_of(*region.buffer, origin), .a = view, .b = slots});
    return view;
  }

  int32_t opaque(const tenon::Call& call) {
    if (call.args.empty() || !call.args[0].as<StringImm>())
      throw CompileError(kBadArgument, call.origin, "`T.{}` without a function's name",
                         call.op->name);
    if (call.dtype.is_handle() || call.dtype.is_vector())
      throw CompileError(kUnsupported, call.origin,
                         "the interpreter takes no {} from `T.{}`; expected a scalar",
                         call.dtype.str(), call.op->name);
    using Kind = OpaqueCallInfo::Arg::Kind;
    OpaqueCallInfo info;
    info.call = ref_to(&call);
    for (size_t i = 1; i < call.args.size(); ++i) {
      const NodePtr& arg = call.args[i];
      auto region = tenon::cast<BufferRegion>(arg);
      if (const auto buffer = tenon::cast<Buffer>(arg)) region = BufferRegion::whole(buffer);
      if (region) {
        info.args.push_back({Kind::kView, region_view(*region, call.origin), region->drop});
      } else if (arg.as<StringImm>()) {
        info.args.push_back({Kind::kText});
      } else {
        const Expr scalar = downcast<ExprNode>(arg);
        if (scalar->dtype.is_vector())
          throw CompileError(kUnsupported, call.origin,
                             "argument {} of `T.{}` is a vector; expected a scalar", i,
                             call.op->name);
        const auto* address = scalar.as<tenon::Call>();
        const bool is_pointer = (scalar.as<Var>() && pointers_.count(scalar.get())) ||
                                (address && address->is("address_of"));
        if (scalar->dtype.is_handle() && !is_pointer)
          throw CompileError(
              kUnsupported, call.origin,
              "argument {} of `T.{}` is a handle that the interpreter cannot follow; "
              "expected a buffer's data or T.address_of",
              i, call.op->name);
        info.args.push_back({is_pointer ? Kind::kPointer : Kind::kScalar, expr(scalar)});
      }
    }
    const int32_t dst = new_slots(1);
    code_->opaque_calls.push_back(std::move(info));
    emit(
        {.op = Op::kOpaque, .dst = dst, .c = static_cast<int32_t>(code_->opaque_calls.size()) - 1});
    return dst;
  }

  int32_t intrinsic(const tenon::Call& call) {
    if (!call.op) {
      const int32_t dst = new_slots(1);
      this->call(*call.callee, call.args, call.origin, dst);
      return dst;
    }
    if (call.is("if_then_else")) return conditional(call);
    if (call.is("likely")) return expr(call.arg(0));
    if (call.is("masked_load")) return masked(call, Op::kMaskedLoad);
    if (call.is("masked_store")) return masked(call, Op::kMaskedStore);
    if (call.is("prefetch") || call.is("assume")) return new_slots(1);
    if (call.is("ret")) {
      if (!call.args.empty() && code_->result_slot >= 0)
        emit({.op = Op::kMove, .dst = code_->result_slot, .a = expr(call.arg(0))});
      emit({.op = Op::kReturn});
      return new_slots(1);
    }
    if (call.is("address_of")) {
      const auto load = tenon::cast<BufferLoad>(call.args.at(0));
      if (!load)
        throw CompileError(kBadArgument, call.origin,
                           "the argument of `T.address_of` names no element");
      const int32_t indices = consecutive(load->indices), dst = new_slots(1);
      emit(
          {.op = Op::kAddress, .dst = dst, .a = view_of(*load->buffer, call.origin), .b = indices});
      return dst;
    }
    if (call.is("call_extern") || call.is("call_pure_extern") || call.is("call_packed") ||
        call.is("call_cpacked"))
      return opaque(call);
    if (call.op->effect == Effect::kOpaque || call.args.size() > 3)
      throw CompileError(kUnsupported, call.origin, "`T.{}` cannot be interpreted", call.op->name);
    int32_t args[3] = {0, 0, 0};
    DType from = call.dtype.element();
    for (size_t i = 0; i < call.args.size(); ++i) {
      const Expr arg = call.arg(i);
      args[i] = expr(arg);
      if (arg->dtype.lanes == 1 && call.dtype.lanes > 1) args[i] = splat(args[i], call.dtype.lanes);
      if (i == 0) from = arg->dtype.element();
    }
    const int32_t dst = new_slots(call.dtype.lanes);
    size_t code = 0;
    while (code < code_->intrinsics.size() && code_->intrinsics[code] != call.op) ++code;
    if (code == code_->intrinsics.size()) code_->intrinsics.push_back(call.op);
    emit({.op = Op::kIntrinsic,
          .code = static_cast<uint8_t>(code),
          .lanes = call.dtype.lanes,
          .dtype = call.dtype.element(),
          .dtype2 = from,
          .dst = dst,
          .a = args[0],
          .b = args[1],
          .c = args[2]});
    return dst;
  }

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

  void allocate(const Ref<Buffer>& buffer) {
    const int32_t shape = geometry(*buffer);
    emit({.op = Op::kAlloc, .dtype = buffer->dtype, .a = define_view(buffer), .b = shape});
  }

  void stmt_inner(const Stmt& s) {
    if (const auto* sequence = s.as<Seq>()) {
      for (const Stmt& inner : sequence->stmts) stmt(inner);
    } else if (const auto* store = s.as<BufferStore>()) {
      const int32_t mark = next_;
      const int32_t value = expr(store->value), indices = consecutive(store->indices);
      emit({.op = Op::kStore,
            .lanes = store->value->dtype.lanes,
            .dtype = store->buffer->dtype,
            .dst = value,
            .a = view_of(*store->buffer, s->origin),
            .b = indices});
      next_ = mark;
    } else if (const auto* evaluate = s.as<Evaluate>()) {
      const int32_t mark = next_;
      expr(evaluate->value);
      next_ = mark;
    } else if (const auto* bind = s.as<Bind>()) {
      const int32_t value = expr(bind->value);
      emit({.op = Op::kMove,
            .lanes = bind->var->dtype.lanes,
            .dst = define_var(bind->var.get()),
            .a = value});
    } else if (const auto* alloc = s.as<AllocBuffer>()) {
      allocate(alloc->buffer);
    } else if (const auto* constant = s.as<AllocConst>()) {
      code_->constants.push_back(constant->data);
      emit({.op = Op::kConstant,
            .a = define_view(constant->buffer),
            .c = static_cast<int32_t>(code_->constants.size()) - 1});
    } else if (const auto* view = s.as<DeclBuffer>()) {
      const int32_t pointer = expr(view->data), shape = geometry(*view->buffer);
      emit({.op = Op::kView, .a = define_view(view->buffer), .b = shape, .c = pointer});
    } else if (const auto* loop = s.as<For>()) {
      for_loop(*loop);
    } else if (const auto* loop = s.as<While>()) {
      const int32_t begin = here();
      const int32_t test = expr(loop->condition);
      const int32_t jump = here();
      emit({.op = Op::kJumpIfZero, .a = test});
      stmt(loop->body);
      emit({.op = Op::kJump, .c = begin});
      code_->instrs[static_cast<size_t>(jump)].c = here();
    } else if (const auto* branch = s.as<IfThenElse>()) {
      const int32_t test = expr(branch->condition);
      const int32_t to_else = here();
      emit({.op = Op::kJumpIfZero, .a = test});
      stmt(branch->then_case);
      if (branch->else_case) {
        const int32_t to_end = here();
        emit({.op = Op::kJump});
        code_->instrs[static_cast<size_t>(to_else)].c = here();
        stmt(branch->else_case);
        code_->instrs[static_cast<size_t>(to_end)].c = here();
      } else {
        code_->instrs[static_cast<size_t>(to_else)].c = here();
      }
    } else if (const auto* check_ = s.as<Assert>()) {
      const int32_t test = expr(check_->condition);
      code_->messages.push_back(check_->message);
      emit({.op = Op::kAssert, .a = test, .c = static_cast<int32_t>(code_->messages.size()) - 1});
    } else if (const auto* attr = s.as<AttrStmt>()) {
      stmt(attr->body);
    } else if (const auto* realize = s.as<BlockRealize>()) {
      block(*realize);
    } else if (const auto* call = s.as<CallTir>()) {
      this->call(*call->callee, call->args, call->origin, -1);
    } else {
      throw CompileError(kUnsupported, s->origin, "`{}` cannot be interpreted", s->type().name);
    }
  }

  void for_loop(const For& loop) {
    if (const Stmt start = tir::start_where_empty(loop)) stmt(start);
    const int32_t mark = next_;
    const int32_t var = define_var(loop.loop_var.get()), end = new_slots(1);
    const int32_t min = expr(loop.min), extent = expr(loop.extent);
    const bool at_once =
        watched_ && (loop.kind == ForKind::kParallel || loop.kind == ForKind::kVectorized ||
                     loop.kind == ForKind::kThreadBinding);
    if (at_once)
      emit({.op = Op::kEnterLoop, .c = watch({loop.loop_var->name, {}, {}, false, loop.origin})});
    emit({.op = Op::kMove, .dst = var, .a = min});
    emit({.op = Op::kBinary,
          .code = static_cast<uint8_t>(BinaryOp::kAdd),
          .dtype = loop.loop_var->dtype,
          .dst = end,
          .a = min,
          .b = extent});
    const int32_t begin = here();
    emit({.op = Op::kJumpIfGE, .a = var, .b = end});
    if (at_once) emit({.op = Op::kIterate, .a = var});
    stmt(loop.body);
    emit({.op = Op::kAddImm, .dst = var, .a = var}).immediate.i = 1;
    emit({.op = Op::kJump, .c = begin});
    code_->instrs[static_cast<size_t>(begin)].c = here();
    if (at_once) emit({.op = Op::kLeaveLoop});
    next_ = mark;
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
    const int32_t mark = next_;
    int32_t skip = -1;
    if (!is_int(realize.predicate, 1)) {
      const int32_t test = expr(realize.predicate);
      skip = here();
      emit({.op = Op::kJumpIfZero, .a = test});
    }
    for (size_t i = 0; i < b.iter_vars.size(); ++i) {
      const int32_t value = expr(realize.iter_values[i]);
      emit({.op = Op::kMove, .dst = define_var(b.iter_vars[i].var.get()), .a = value});
    }
    if (watched_) emit({.op = Op::kEnterBlock, .c = watch(axes_of(b))});
    for (const Ref<Buffer>& buffer : b.alloc_buffers) allocate(buffer);
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
    }
    if (b.init) {
      Expr first = boolean(true);
      for (const IterVar& iter : b.iter_vars)
        if (iter.kind == IterKind::kReduce)
          first = logical_and(first, eq(iter.var, iter.domain.min));
      const int32_t test = expr(first);
      const int32_t jump = here();
      emit({.op = Op::kJumpIfZero, .a = test});
      stmt(b.init);
      code_->instrs[static_cast<size_t>(jump)].c = here();
    }
    stmt(b.body);
    if (watched_) emit({.op = Op::kLeaveBlock});
    if (skip >= 0) code_->instrs[static_cast<size_t>(skip)].c = here();
    for (const Node* var : named) vars_.erase(var);  // another run of the block names them again
    next_ = mark;
  }

  /// The variables that stand for extents, strides and the offset of a view, by what it views.
  void name_geometry(const MatchBuffer& match, std::vector<const Node*>& named) {
    const Buffer &view = *match.buffer, &source = *match.source->buffer;
    const auto wide = [](const Expr& value) { return tenon::cast(kInt64, value); };
    const auto name = [&](const Expr& declared, const Expr& value) {
      const auto* var = declared ? declared.as<Var>() : nullptr;
      if (!var || vars_.count(var)) return;
      const int32_t slot = expr(value);
      emit({.op = Op::kMove, .dst = define_var(var), .a = slot});
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

  void call(const GlobalVar& callee, const std::vector<NodePtr>& args, const Origin& origin,
            int32_t result) {
    CallInfo info;
    info.callee = callee.name;
    info.origin = origin;
    info.result = result;
    for (const NodePtr& arg : args) {
      const auto* region = arg.as<BufferRegion>();
      if (!region) {
        info.args.push_back({false, expr(downcast<ExprNode>(arg)), {}});
        continue;
      }
      info.args.push_back({true, region_view(*region, origin), region->drop});
    }
    code_->calls.push_back(std::move(info));
    emit({.op = Op::kCall, .c = static_cast<int32_t>(code_->calls.size()) - 1});
  }

  std::unique_ptr<Code> code_;
  std::unordered_map<const Node*, int32_t> vars_, views_, pointers_;
  static constexpr int32_t kConstantSlots = 256;
  std::map<std::pair<bool, int64_t>, int32_t> constants_;
  int32_t next_ = kConstantSlots;
  Origin origin_;
  bool watched_;
};

}  // namespace

std::unique_ptr<Code> resolve(const Ref<tir::PrimFunc>& function, bool watched) {
  return Resolver(function, watched).run();
}

}  // namespace tenon::interp
