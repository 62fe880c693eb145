// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/resolve_expr.h"

#include <algorithm>

#include "tenon/interp/machine.h"
#include "tenon/interp/scalar.h"
#include "tenon/tir/analysis/element_places.h"

namespace tenon::interp {

int32_t ExpressionResolver::define_var(const Node* var, const Bounds& bounds) {
  const DType dtype = static_cast<const Var*>(var)->dtype;
  const int32_t slot = dtype.lanes > 1 ? new_slots(dtype.lanes) : emitter_.definition(bounds);
  vars_[var] = slot;
  return slot;
}

void ExpressionResolver::bind_var(const Ref<Var>& var, const Expr& value) {
  if (!options_.watched && var->dtype.is_integer() && var->dtype.lanes == 1) {
    Affine known = indices_.affine(value);
    if (indices_.is_settled(known)) return indices_.define(var.get(), std::move(known));
  }
  const int32_t slot = expr(value);
  indices_.forget(var.get());  // in a copy of the loop's body it may have been a sum
  if (!options_.watched && emitter_.is_settled(slot)) {
    vars_[var.get()] = slot;
    return;
  }
  emit({.op = Op::kMove,
        .lanes = var->dtype.lanes,
        .dst = define_var(var.get(), emitter_.bounds_of(slot)),
        .a = slot});
}

int32_t ExpressionResolver::define_view(const Ref<Buffer>& buffer) {
  const auto index = static_cast<int32_t>(code_->views.size());
  code_->views.push_back(
      {buffer, !buffer->strides.empty(), static_cast<bool>(buffer->elem_offset)});
  views_[buffer.get()] = index;
  pointers_[buffer->data.get()] = index;
  return index;
}

int32_t ExpressionResolver::view_of(const Buffer& buffer, const Origin& origin) const {
  const auto it = views_.find(&buffer);
  if (it == views_.end())
    throw CompileError(kUndefined, origin, "buffer `{}` is used where it is not defined",
                       buffer.name);
  return it->second;
}

void ExpressionResolver::know_geometry(const Buffer& buffer, const Indices::Geometry* source) {
  Indices::Geometry known;
  const auto numbers = [&](const std::vector<Expr>& exprs, std::vector<int64_t>& out) {
    for (const Expr& e : exprs) {
      const auto value = indices_.sum(e);
      if (!value || !value->terms.empty() || value->constant < 0) return false;
      out.push_back(value->constant);
    }
    return true;
  };
  if (options_.watched || !buffer.dtype.is_scalar() || !numbers(buffer.shape, known.shape) ||
      !numbers(buffer.strides, known.strides))
    return;
  if (buffer.strides.empty() && source && source->strides.size() >= known.shape.size())
    known.strides.assign(source->strides.end() - static_cast<std::ptrdiff_t>(known.shape.size()),
                         source->strides.end());
  else if (buffer.strides.empty())
    known.strides = compact(known.shape);
  geometries_[&buffer] = std::move(known);
}

const Indices::Geometry* ExpressionResolver::geometry_of(const Buffer& buffer) const {
  const auto found = geometries_.find(&buffer);
  return found == geometries_.end() ? nullptr : &found->second;
}

Instr& ExpressionResolver::emit(Instr instr) {
  emitter_.set_origin(origin_);
  return emitter_.emit(instr);
}

int32_t ExpressionResolver::value(Instr instr, std::initializer_list<int32_t> operands,
                                  const Bounds& bounds) {
  emitter_.set_origin(origin_);
  return emitter_.value(instr, operands, bounds);
}

void ExpressionResolver::bind_dims(const PrimFunc& function) {
  const std::vector<DimSource> sources = dim_sources(function);
  check(sources.size() == options_.dims.size(), "code is made for values of all dimensions");
  for (size_t i = 0; i < sources.size(); ++i) {
    indices_.define(sources[i].var.get(), Affine{{}, options_.dims[i]});
    vars_[sources[i].var.get()] = immediate(kInt64, {.i = options_.dims[i]});
  }
  for (size_t p = 0; p < function.buffers.size(); ++p) {
    if (!function.buffers[p]) continue;
    const std::vector<Expr>& shape = function.buffers[p]->shape;
    for (size_t d = 0; d < shape.size(); ++d)
      if (!is_source(sources, p, d)) code_->checks.push_back({p, d, expr(shape[d])});
  }
}

bool ExpressionResolver::is_source(const std::vector<DimSource>& sources, size_t param,
                                   size_t dim) {
  for (const DimSource& source : sources)
    if (source.what == DimSource::What::kDim && source.param == param && source.dim == dim)
      return true;
  return false;
}

int32_t ExpressionResolver::immediate(DType dtype, Slot number) {
  check(dtype.is_scalar(), "an immediate with lanes");
  const int32_t slot = emitter_.constant(dtype.is_float(), number);
  if (slot >= 0) return slot;
  Instr instr{.op = Op::kImmediate, .dtype = dtype};
  instr.immediate = number;
  return value(instr, {}, dtype.is_float() ? Bounds() : Bounds::of(number.i));
}

int32_t ExpressionResolver::expr(const Expr& e, Sums sums) {
  const Origin outer = origin_;
  if (e->origin) origin_ = e->origin;
  emitter_.set_origin(origin_);
  const auto sum = sums == Sums::kYes && !options_.watched ? indices_.sum(e) : std::nullopt;
  const int32_t slot = sum ? indices_.slot(*sum) : expr_inner(e);
  origin_ = outer;
  return slot;
}

int32_t ExpressionResolver::consecutive(const std::vector<Expr>& indices) {
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

bool ExpressionResolver::has_load(const Expr& e) {
  bool found = false;
  walk<BufferLoad>(e, [&](const BufferLoad&) { found = true; });
  return found;
}

int32_t ExpressionResolver::expr_inner(const Expr& e) {
  const uint16_t lanes = e->dtype.lanes;
  switch (kind_of(e)) {
    case ExprKind::kIntImm: return immediate(e->dtype, {.i = e.to<IntImm>().value});
    case ExprKind::kFloatImm: return immediate(e->dtype, {.f = e.to<FloatImm>().value});
    // The function that the code is of keeps the text.
    case ExprKind::kStringImm:
      return immediate(kInt64, {.i = reinterpret_cast<int64_t>(e.to<StringImm>().value.c_str())});
    case ExprKind::kVar: return variable(e.to<Var>());
    case ExprKind::kBinary: {
      const auto& op = e.to<Binary>();
      if (is_logical(op.op) && lanes == 1 && has_load(op.rhs)) return short_circuit(op);
      if (const auto known = lanes == 1 && !options_.watched ? indices_.decide(e) : std::nullopt)
        return immediate(kBool, {.i = *known});
      return binary(op);
    }
    case ExprKind::kNot: {
      const int32_t a = expr(e.to<Not>().value);
      return value({.op = Op::kNot, .lanes = lanes, .a = a}, {a}, {0, 1});
    }
    case ExprKind::kCast: {
      const Expr& from = e.to<Cast>().value;
      const int32_t a = expr(from);
      // A slot holds the value itself, whatever the width of its type.
      if (holds_all_of(e->dtype.element(), from->dtype.element())) return a;
      return value({.op = Op::kCast,
                    .lanes = lanes,
                    .dtype = e->dtype.element(),
                    .dtype2 = from->dtype.element(),
                    .a = a},
                   {a}, Bounds::of(e->dtype));
    }
    case ExprKind::kSelect: {
      const auto& op = e.to<Select>();
      int32_t c = expr(op.condition);
      if (op.condition->dtype.lanes == 1 && lanes > 1) c = splat(c, lanes);
      return select(c, expr(op.true_value), expr(op.false_value), lanes);
    }
    case ExprKind::kBroadcast: return splat(expr(e.to<Broadcast>().value), lanes);
    case ExprKind::kRamp: {
      const auto& op = e.to<Ramp>();
      const int32_t a = expr(op.base), b = expr(op.stride);
      return value({.op = Op::kRamp, .lanes = lanes, .dtype = e->dtype.element(), .a = a, .b = b},
                   {a, b});
    }
    case ExprKind::kShuffle: return shuffle(e.to<Shuffle>());
    case ExprKind::kLet: {
      const auto& op = e.to<Let>();
      bind_var(op.var, op.value);
      return expr(op.body);
    }
    case ExprKind::kBufferLoad: return load(e.to<BufferLoad>());
    case ExprKind::kCall: return intrinsic(e.to<tenon::Call>());
    case ExprKind::kGlobalVar: break;
  }
  throw CompileError(kUnsupported, e->origin, "`{}` cannot be interpreted", e->type().name);
}

int32_t ExpressionResolver::variable(const Var& var) {
  const auto it = vars_.find(&var);
  if (it != vars_.end()) return it->second;
  const auto pointer = pointers_.find(&var);
  if (pointer == pointers_.end())
    throw CompileError(kUndefined, var.origin, "variable `{}` is used where it is not defined",
                       var.name);
  const int32_t dst = new_slots(1);
  emit({.op = Op::kViewPointer, .dst = dst, .a = pointer->second});
  return dst;
}

int32_t ExpressionResolver::shuffle(const Shuffle& op) {
  int total = 0;
  for (const Expr& v : op.vectors) total += v->dtype.lanes;
  const int32_t base = new_slots(total);
  int32_t at = base;
  for (const Expr& v : op.vectors) {
    const int32_t slot = expr(v);
    emit({.op = Op::kMove, .lanes = v->dtype.lanes, .dst = at, .a = slot});
    at += v->dtype.lanes;
  }
  const int32_t dst = new_slots(op.dtype.lanes);
  code_->tables.push_back(op.lanes);
  emit({.op = Op::kShuffle,
        .lanes = op.dtype.lanes,
        .dst = dst,
        .a = base,
        .c = static_cast<int32_t>(code_->tables.size()) - 1});
  return dst;
}

int32_t ExpressionResolver::load(const BufferLoad& load) {
  const uint16_t lanes = load.dtype.lanes;
  if (const auto at = access(load.buffer, load.indices, lanes, load.origin)) {
    const int32_t dst = new_slots(lanes);
    emit({.op = load_op(load.buffer->dtype, lanes), .lanes = lanes, .dst = dst, .a = *at});
    return dst;
  }
  const int32_t indices = consecutive(load.indices), dst = new_slots(lanes);
  emit({.op = Op::kLoad,
        .lanes = lanes,
        .dtype = load.buffer->dtype,
        .dst = dst,
        .a = view_of(*load.buffer, load.origin),
        .b = indices});
  return dst;
}

int32_t ExpressionResolver::select(int32_t condition, int32_t a, int32_t b, uint16_t lanes) {
  const Bounds x = emitter_.bounds_of(a), y = emitter_.bounds_of(b);
  return value({.op = Op::kSelect, .lanes = lanes, .a = condition, .b = a, .c = b},
               {condition, a, b}, {std::min(x.low, y.low), std::max(x.high, y.high)});
}

bool ExpressionResolver::holds_all_of(DType to, DType from) {
  if (from.is_bool()) return to.is_integer() || to.is_bool();
  if (from.is_integer() && to.is_integer() && !to.is_bool())
    return from.is_uint() == to.is_uint() ? to.bits >= from.bits
                                          : from.is_uint() && to.bits > from.bits;
  return (from == kFloat16 || from == kBFloat16 || from == kFloat32) &&
         (to == kFloat64 || (to == kFloat32 && from != kFloat64));
}

std::optional<Op> ExpressionResolver::quick_op(BinaryOp op, DType dtype, const Bounds& a,
                                               const Bounds& b) const {
  if (options_.watched || dtype.lanes != 1) return std::nullopt;
  if (dtype == kFloat32) {
    switch (op) {
      case BinaryOp::kLT:
      case BinaryOp::kGT: return Op::kLessF;
      case BinaryOp::kLE:
      case BinaryOp::kGE: return Op::kLessEqualF;
      case BinaryOp::kMin: return Op::kMinF;
      case BinaryOp::kMax: return Op::kMaxF;
      default: break;
    }
    if (options_.random_rounding) return std::nullopt;
    switch (op) {
      case BinaryOp::kAdd: return Op::kAddF;
      case BinaryOp::kSub: return Op::kSubF;
      case BinaryOp::kMul: return Op::kMulF;
      case BinaryOp::kDiv: return Op::kDivF;
      default: return std::nullopt;
    }
  }
  if (dtype.is_bool()) {
    if (op == BinaryOp::kAnd) return Op::kAndB;
    return op == BinaryOp::kOr ? std::optional(Op::kOrB) : std::nullopt;
  }
  if (!dtype.is_integer() || dtype == kUInt64) return std::nullopt;
  switch (op) {
    case BinaryOp::kMin: return Op::kMinI;
    case BinaryOp::kMax: return Op::kMaxI;
    case BinaryOp::kEQ: return Op::kEqualI;
    case BinaryOp::kNE: return Op::kNotEqualI;
    case BinaryOp::kLT:
    case BinaryOp::kGT: return Op::kLessI;
    case BinaryOp::kLE:
    case BinaryOp::kGE: return Op::kLessEqualI;
    default: break;
  }
  if (dtype.bits < 64 && !stays_within(op, dtype, a, b)) {
    if (dtype != kInt32) return std::nullopt;
    switch (op) {
      case BinaryOp::kAdd: return Op::kAddI32;
      case BinaryOp::kSub: return Op::kSubI32;
      case BinaryOp::kMul: return Op::kMulI32;
      default: return std::nullopt;
    }
  }
  switch (op) {
    case BinaryOp::kAdd: return Op::kAddI;
    case BinaryOp::kSub: return Op::kSubI;
    case BinaryOp::kMul: return Op::kMulI;
    default: return std::nullopt;
  }
}

bool ExpressionResolver::stays_within(BinaryOp op, DType dtype, const Bounds& a, const Bounds& b) {
  constexpr int64_t kSmall = int64_t{1} << 30;
  const Bounds small{-kSmall, kSmall};
  if (!a.within(small) || !b.within(small)) return false;
  const auto products = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  const Bounds result = op == BinaryOp::kAdd   ? Bounds{a.low + b.low, a.high + b.high}
                        : op == BinaryOp::kSub ? Bounds{a.low - b.high, a.high - b.low}
                                               : Bounds{std::min(products), std::max(products)};
  return (op == BinaryOp::kAdd || op == BinaryOp::kSub || op == BinaryOp::kMul) &&
         result.within(Bounds::of(dtype));
}

int32_t ExpressionResolver::binary(const Binary& op) {
  const uint16_t lanes = op.lhs->dtype.lanes;
  const DType dtype = op.lhs->dtype.element();
  const bool divides = op.op == BinaryOp::kFloorDiv || op.op == BinaryOp::kFloorMod ||
                       op.op == BinaryOp::kDiv || op.op == BinaryOp::kMod;
  const auto divisor = as_int(op.rhs);
  int32_t a = expr(op.lhs);
  const Bounds range = emitter_.bounds_of(a);
  if (divides && dtype.is_integer() && lanes == 1 && !options_.watched && divisor && *divisor > 0 &&
      range.low >= 0) {
    const bool quotient = op.op == BinaryOp::kFloorDiv || op.op == BinaryOp::kDiv;
    if (range.high < *divisor) return quotient ? immediate(dtype, {.i = 0}) : a;
    Instr instr{.op = quotient ? Op::kDivI : Op::kModI, .a = a};
    instr.immediate.i = *divisor;
    return value(instr, {a},
                 quotient
                     ? Bounds{range.low / *divisor,
                              range.high == Bounds::kFar ? Bounds::kFar : range.high / *divisor}
                     : Bounds{0, *divisor - 1});
  }
  int32_t b = expr(op.rhs);
  const Bounds other = emitter_.bounds_of(b);
  Bounds bounds = Bounds::of(is_comparison(op.op) ? kBool : dtype);
  if (op.op == BinaryOp::kMin)
    bounds = {std::min(range.low, other.low), std::min(range.high, other.high)};
  if (op.op == BinaryOp::kMax)
    bounds = {std::max(range.low, other.low), std::max(range.high, other.high)};
  if (const auto quick = lanes == 1 ? quick_op(op.op, dtype, range, other) : std::nullopt) {
    if (op.op == BinaryOp::kGT || op.op == BinaryOp::kGE) std::swap(a, b);
    return value({.op = *quick, .a = a, .b = b}, {a, b}, bounds);
  }
  Instr instr{.op = Op::kBinary,
              .code = static_cast<uint8_t>(op.op),
              .lanes = lanes,
              .dtype = dtype,
              .a = a,
              .b = b};
  const bool plain = op.op <= BinaryOp::kDiv || op.op == BinaryOp::kMin || op.op == BinaryOp::kMax;
  if (lanes > 1 && dtype == kFloat32 && plain && !options_.random_rounding && !options_.watched)
    instr.op = Op::kBinaryLanes;
  // A division may fail, so it stays where it is.
  if (!divides || dtype.is_float() || (divisor && *divisor != 0))
    return value(instr, {a, b}, bounds);
  instr.dst = new_slots(lanes);
  return emit(instr).dst;
}

std::optional<int32_t> ExpressionResolver::access(const Ref<Buffer>& buffer,
                                                  const std::vector<Expr>& at, uint16_t lanes,
                                                  const Origin& origin) {
  const int32_t view = view_of(*buffer, origin);
  const Indices::Geometry* geometry = geometry_of(*buffer);
  if (!geometry || lanes > kMostQuickLanes || (lanes > 1 && buffer->dtype != kFloat32))
    return std::nullopt;
  emitter_.set_origin(origin_);
  return indices_.access(view, *geometry, buffer->dtype, at, lanes);
}

Op ExpressionResolver::load_op(DType dtype, uint16_t lanes) {
  if (lanes > 1) return Op::kLoadLanes;
  if (dtype == kFloat32) return Op::kLoadF;
  if (dtype == kInt64) return Op::kLoadI64;
  return dtype == kInt32 ? Op::kLoadI32 : Op::kLoadAt;
}

int32_t ExpressionResolver::short_circuit(const Binary& op) {
  const int32_t dst = new_slots(1);
  emit({.op = Op::kMove, .dst = dst, .a = expr(op.lhs)});
  int32_t test = dst;
  if (op.op == BinaryOp::kOr) {
    test = new_slots(1);
    emit({.op = Op::kNot, .dst = test, .a = dst});
  }
  const int32_t jump = here();
  emit({.op = Op::kJumpIfZero, .a = test});
  const size_t branch = emitter_.enter_branch();
  const int32_t rhs = expr(op.rhs);
  emit({.op = Op::kMove, .dst = dst, .a = rhs});
  emitter_.leave_branch(branch);
  land(jump);
  return dst;
}

ExpressionResolver::Guard ExpressionResolver::guard(const Expr& condition) {
  Guard out;
  out.branch = emitter_.enter_branch();
  out.assumed = indices_.mark();
  std::vector<Expr> terms;
  const bool in_order = options_.watched || has_load(condition);
  conjuncts(condition, in_order, terms);
  // What varies least is tested first: it decides most steps of the loops inside.
  std::vector<std::pair<unsigned, size_t>> order;
  std::vector<int32_t> slots(terms.size());
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!in_order) slots[i] = expr(terms[i]);
    order.emplace_back(in_order ? 0U : static_cast<unsigned>(emitter_.depth_of(slots[i])), i);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [depth, i] : order) {
    const int32_t test = in_order ? expr(terms[i]) : slots[i];
    if (emitter_.bounds_of(test).within({1, 1})) continue;  // it always holds
    out.jumps.push_back(here());
    emit({.op = Op::kJumpIfZero, .a = test});
  }
  if (!options_.watched)
    for (const Expr& term : terms) indices_.assume(term);
  return out;
}

void ExpressionResolver::conjuncts(const Expr& condition, bool in_order,
                                   std::vector<Expr>& out) const {
  const auto* both = condition.as<Binary>();
  if (const auto* call = condition.as<tenon::Call>(); call && call->is(IntrinsicId::kLikely))
    return conjuncts(call->arg(0), in_order, out);
  if (!both || both->op != BinaryOp::kAnd || condition->dtype.lanes != 1 || options_.watched) {
    out.push_back(condition);
    return;
  }
  conjuncts(both->lhs, in_order, out);
  conjuncts(both->rhs, in_order, out);
}

void ExpressionResolver::end_guard(const Guard& guard) {
  indices_.restore(guard.assumed);
  emitter_.leave_branch(guard.branch);
  for (const int32_t jump : guard.jumps) land(jump);
}

int32_t ExpressionResolver::conditional(const tenon::Call& call) {
  const uint16_t lanes = call.dtype.lanes;
  const Expr condition = call.arg(0);
  if (condition->dtype.lanes > 1) {  // lane by lane: both sides are evaluated, as Select
    const int32_t c = expr(condition), a = expr(call.arg(1)), b = expr(call.arg(2));
    return select(c, a, b, lanes);
  }
  const int32_t dst = new_slots(lanes);
  const Guard guarded = guard(condition);
  const int32_t a = expr(call.arg(1));
  emit({.op = Op::kMove, .lanes = lanes, .dst = dst, .a = a});
  const int32_t to_end = here();
  emit({.op = Op::kJump});
  end_guard(guarded);
  const size_t branch = emitter_.enter_branch();
  const int32_t b = expr(call.arg(2));
  emit({.op = Op::kMove, .lanes = lanes, .dst = dst, .a = b});
  emitter_.leave_branch(branch);
  land(to_end);
  return dst;
}

int32_t ExpressionResolver::masked(const tenon::Call& call, Op op) {
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

int32_t ExpressionResolver::region_view(const BufferRegion& region, const Origin& origin) {
  std::vector<Expr> parts;
  for (const Range& range : region.region) parts.push_back(range.min);
  for (const Range& range : region.region) parts.push_back(range.extent);
  const int32_t slots = consecutive(parts);
  const auto view = static_cast<int32_t>(code_->views.size());
  code_->views.push_back({region.buffer, true, true});
  emit({.op = Op::kRegion, .dst = view_of(*region.buffer, origin), .a = view, .b = slots});
  return view;
}

int32_t ExpressionResolver::address_of(const tenon::Call& call, bool is_followed) {
  const auto load = tenon::cast<BufferLoad>(call.args.at(0));
  if (!load)
    throw CompileError(kBadArgument, call.origin,
                       "the argument of `T.address_of` names no element");
  const int32_t indices = consecutive(load->indices), dst = new_slots(1);
  emit({.op = Op::kAddress,
        .code = is_followed,
        .dst = dst,
        .a = view_of(*load->buffer, call.origin),
        .b = indices});
  return dst;
}

int32_t ExpressionResolver::opaque(const tenon::Call& call) {
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
                              (address && (address->is(IntrinsicId::kAddressOf) ||
                                           address->is(IntrinsicId::kTvmAccessPtr)));
      if (scalar->dtype.is_handle() && !is_pointer)
        throw CompileError(kUnsupported, call.origin,
                           "argument {} of `T.{}` is a handle that the interpreter cannot follow; "
                           "expected a buffer's data, T.address_of or T.tvm_access_ptr",
                           i, call.op->name);
      info.args.push_back({is_pointer ? Kind::kPointer : Kind::kScalar,
                           address && address->is(IntrinsicId::kAddressOf)
                               ? address_of(*address, true)
                               : expr(scalar)});
    }
  }
  const int32_t dst = new_slots(1);
  code_->opaque_calls.push_back(std::move(info));
  emit({.op = Op::kOpaque, .dst = dst, .c = static_cast<int32_t>(code_->opaque_calls.size()) - 1});
  return dst;
}

int32_t ExpressionResolver::intrinsic(const tenon::Call& call) {
  if (!call.op) {
    const int32_t dst = new_slots(1);
    this->call(*call.callee, call.args, call.origin, dst);
    return dst;
  }
  using enum IntrinsicId;
  switch (call.op->id) {
    case kIfThenElse: return conditional(call);
    case kLikely: return expr(call.arg(0));
    case kMaskedLoad: return masked(call, Op::kMaskedLoad);
    case kMaskedStore: return masked(call, Op::kMaskedStore);
    case kPrefetch:
    case kAssume: return new_slots(1);
    case kRet:
      if (!call.args.empty() && code_->result_slot >= 0)
        emit({.op = Op::kMove, .dst = code_->result_slot, .a = expr(call.arg(0))});
      emit({.op = Op::kReturn});
      return new_slots(1);
    case kAddressOf: return address_of(call, false);
    case kTvmAccessPtr: return access_pointer(call);
    case kCallExtern:
    case kCallPureExtern:
    case kCallPacked:
    case kCallCpacked: return opaque(call);
    // Computed by apply_intrinsic, which refuses those that it has no meaning for.
    case kExp:
    case kExp2:
    case kExp10:
    case kLog:
    case kLog1p:
    case kLog2:
    case kLog10:
    case kSqrt:
    case kRsqrt:
    case kSin:
    case kCos:
    case kTan:
    case kAsin:
    case kAcos:
    case kAtan:
    case kSinh:
    case kCosh:
    case kTanh:
    case kAsinh:
    case kAcosh:
    case kAtanh:
    case kErf:
    case kSigmoid:
    case kFloor:
    case kCeil:
    case kTrunc:
    case kRound:
    case kNearbyint:
    case kFabs:
    case kAbs:
    case kPow:
    case kAtan2:
    case kFmod:
    case kHypot:
    case kCopysign:
    case kLdexp:
    case kNextafter:
    case kFma:
    case kIsnan:
    case kIsinf:
    case kIsfinite:
    case kShiftLeft:
    case kShiftRight:
    case kBitwiseAnd:
    case kBitwiseOr:
    case kBitwiseXor:
    case kBitwiseNot:
    case kPopcount:
    case kClz:
    case kDot4:
    case kMinValue:
    case kMaxValue:
    case kInfinity:
    case kNumThreads:
    case kCheckIndex:
    case kUndef:
    case kReinterpret:
    case kIsnullptr:
    case kVectorlow:
    case kVectorhigh:
    case kVectorcombine:
    case kCallLlvmPureIntrin:
    case kTvmTuple: return scalar_intrinsic(call);
    // Without a meaning here.
    case kQMultiplyShift:
    case kCallLlvmIntrin:
    case kCallIntrin: break;
  }
  no_meaning(call);
}

void ExpressionResolver::no_meaning(const tenon::Call& call) {
  throw CompileError(kUnsupported, call.origin, "`T.{}` cannot be interpreted", call.op->name);
}

int32_t ExpressionResolver::access_pointer(const tenon::Call& call) {
  const DType dtype = tir::element_of_access_ptr(call);
  const Expr data = call.arg(1);
  const auto view = pointers_.find(data.get());
  const auto& offset = view == pointers_.end()
                           ? Expr()
                           : code_->views[static_cast<size_t>(view->second)].buffer->elem_offset;
  if (view == pointers_.end() || (offset && !is_int(offset, 0)))
    throw CompileError(kUnsupported, call.origin,
                       "the interpreter cannot follow pointer `{}`; expected the data of a buffer "
                       "without an offset",
                       tenon::str(data));
  const int32_t pointer = expr(data), begin = expr(call.arg(2)), count = expr(call.arg(3)),
                dst = new_slots(1);
  emit({.op = Op::kMovePointer,
        .dtype = dtype,
        .dst = dst,
        .a = pointer,
        .b = begin,
        .c = count,
        .immediate = {.i = view->second}});
  return dst;
}

// Of up to three scalars, or lane by lane.
int32_t ExpressionResolver::scalar_intrinsic(const tenon::Call& call) {
  if (call.args.size() > 3) no_meaning(call);
  int32_t args[3] = {0, 0, 0};
  DType from = call.dtype.element();
  for (size_t i = 0; i < call.args.size(); ++i) {
    const Expr arg = call.arg(i);
    args[i] = expr(arg);
    if (arg->dtype.lanes == 1 && call.dtype.lanes > 1) args[i] = splat(args[i], call.dtype.lanes);
    if (i == 0) from = arg->dtype.element();
  }
  const int32_t dst = new_slots(call.dtype.lanes);
  if (call.is(IntrinsicId::kFma) && call.dtype.element() == kFloat32 && !options_.random_rounding &&
      !options_.watched) {
    emit({.op = Op::kFmaLanes,
          .lanes = call.dtype.lanes,
          .dst = dst,
          .a = args[0],
          .b = args[1],
          .c = args[2]});
    return dst;
  }
  const auto place_in = [](auto& table, const auto& entry) {
    const auto at = std::find(table.begin(), table.end(), entry) - table.begin();
    if (static_cast<size_t>(at) == table.size()) table.push_back(entry);
    return static_cast<uint8_t>(at);
  };
  if (call.dtype == kFloat32 && from == kFloat32 && call.args.size() == 1 &&
      !options_.random_rounding && !options_.watched) {
    if (const FloatFunction function = float_function(call.op->id)) {
      emit({.op = Op::kFunctionF,
            .code = place_in(code_->functions, function),
            .dst = dst,
            .a = args[0]});
      return dst;
    }
  }
  emit({.op = Op::kIntrinsic,
        .code = static_cast<uint8_t>(call.op->id),
        .lanes = call.dtype.lanes,
        .dtype = call.dtype.element(),
        .dtype2 = from,
        .dst = dst,
        .a = args[0],
        .b = args[1],
        .c = args[2]});
  return dst;
}

void ExpressionResolver::call(const GlobalVar& callee, const std::vector<NodePtr>& args,
                              const Origin& origin, int32_t result) {
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

}  // namespace tenon::interp
