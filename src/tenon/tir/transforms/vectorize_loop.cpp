// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tenon/tir/transforms.h"

namespace tenon::tir {

namespace {

// Thrown inside this file only: the loop has no vector form and stays serial.
struct NoVectorForm {};

bool reads_memory(const Expr& expr) {
  bool reads = false;
  walk<BufferLoad>(expr, [&](const BufferLoad&) { reads = true; });
  return reads;
}

// Whether the divisor of an integer division may be 0.
bool may_fail(const Binary& node) {
  const bool divides = node.op == BinaryOp::kDiv || node.op == BinaryOp::kMod ||
                       node.op == BinaryOp::kFloorDiv || node.op == BinaryOp::kFloorMod;
  const auto divisor = as_int(node.rhs);
  return divides && node.dtype.is_integer() && (!divisor || *divisor == 0);
}

bool may_fail(const Expr& expr) {
  bool fails = false;
  walk<Binary>(expr, [&](const Binary& node) { fails = fails || may_fail(node); });
  return fails;
}

// Whether lane i of the result follows from lanes i of the arguments alone.
bool is_lanewise(IntrinsicId id) {
  using enum IntrinsicId;
  switch (id) {
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
    case kQMultiplyShift:
    case kMinValue:
    case kMaxValue:
    case kInfinity:
    case kNumThreads:
    case kLikely:
    case kUndef:
    case kReinterpret:
    case kIsnullptr:
    case kCallLlvmPureIntrin: return true;
    case kIfThenElse:  // has a form of its own, as has check_index
    case kCheckIndex:
    case kAddressOf:
    case kTvmAccessPtr:
    case kMaskedLoad:
    case kVectorlow:
    case kVectorhigh:
    case kVectorcombine:
    case kCallPureExtern:
    case kTvmTuple:
    case kAssume:
    case kRet:
    case kPrefetch:
    case kMaskedStore:
    case kCallExtern:
    case kCallPacked:
    case kCallCpacked:
    case kCallLlvmIntrin:
    case kCallIntrin: return false;
  }
  unreachable("an intrinsic");
}

// The body of one loop with the loop's variable as a vector of lanes.
class Vectorizer {
 public:
  Vectorizer(const For& loop, int lanes) : lanes_(lanes) {
    values_[loop.loop_var.get()] =
        make<Ramp>(loop.min, imm(loop.loop_var->dtype, int64_t{1}), lanes);
  }

  Stmt statement(const Stmt& stmt) {
    switch (kind_of(stmt)) {
      case StmtKind::kSeq: {
        std::vector<Stmt> stmts;
        for (const Stmt& inner : stmt.to<Seq>().stmts) stmts.push_back(statement(inner));
        return make<Seq>(std::move(stmts), stmt->origin);
      }
      case StmtKind::kBufferStore: return vector_store(stmt.to<BufferStore>());
      case StmtKind::kBind: {
        const auto& bind = stmt.to<Bind>();
        const Expr value = vector(bind.value);
        if (value->dtype.is_scalar()) return make<Bind>(renewed(bind.var, value), value);
        const auto var = make<Var>(bind.var->name, value->dtype);
        values_[bind.var.get()] = var;
        return make<Bind>(var, value, stmt->origin);
      }
      case StmtKind::kIfThenElse: {
        const auto& branch = stmt.to<IfThenElse>();
        const Expr condition = vector(branch.condition);
        if (condition->dtype.is_scalar())
          return make<IfThenElse>(condition, statement(branch.then_case),
                                  branch.else_case ? statement(branch.else_case) : Stmt(),
                                  stmt->origin);
        const Expr outer = mask_;
        const bool outer_guarded = guarded_;
        const auto arm = [&](const Expr& holds, const Stmt& body) {
          // Where the first lane decides whether any lane runs, a branch on it keeps what all lanes
          // share from running for none.
          const Expr any = first_lane(holds);
          mask_ = outer ? logical_and(outer, holds) : holds;
          guarded_ = any && (!outer || outer_guarded);
          Stmt next = statement(body);
          mask_ = outer;
          guarded_ = outer_guarded;
          return any ? Stmt(make<IfThenElse>(any, next, Stmt(), stmt->origin)) : next;
        };
        std::vector<Stmt> stmts{arm(condition, branch.then_case)};
        if (branch.else_case) stmts.push_back(arm(logical_not(condition), branch.else_case));
        return seq(std::move(stmts));
      }
      case StmtKind::kFor: {
        const auto& loop = stmt.to<For>();
        const Expr min = vector(loop.min), extent = vector(loop.extent);
        if (min->dtype.is_vector() || extent->dtype.is_vector()) throw NoVectorForm{};
        if (loop.kind == ForKind::kParallel || loop.kind == ForKind::kVectorized)
          throw NoVectorForm{};
        return loop.with(min, extent, statement(loop.body));
      }
      case StmtKind::kAttrStmt: {
        const auto& attr = stmt.to<AttrStmt>();
        return make<AttrStmt>(attr.subject, attr.key, attr.value, statement(attr.body),
                              stmt->origin);
      }
      case StmtKind::kEvaluate: {
        const auto* call = stmt.to<Evaluate>().value.as<Call>();
        if (call && call->is(IntrinsicId::kPrefetch)) return vector_prefetch(*call, stmt->origin);
        break;
      }
      case StmtKind::kAllocBuffer:
      case StmtKind::kAllocConst:
      case StmtKind::kDeclBuffer:
      case StmtKind::kWhile:
      case StmtKind::kAssert:
      case StmtKind::kBlock:
      case StmtKind::kBlockRealize:
      case StmtKind::kCallTir: break;
    }
    throw NoVectorForm{};
  }

 private:
  Ref<Var> renewed(const Ref<Var>& var, const Expr& value) {
    const auto copy = make<Var>(var->name, value->dtype);
    values_[var.get()] = copy;
    return copy;
  }

  Stmt vector_store(const BufferStore& store) {
    if (store.indices.size() != 1) throw NoVectorForm{};
    const Expr index = vector(store.indices[0]);
    if (index->dtype.is_scalar()) throw NoVectorForm{};  // every lane into one element: in turn
    const Expr value = broadcast_to_lanes(vector(store.value), lanes_);
    if (!mask_)
      return make<BufferStore>(store.buffer, value, std::vector<Expr>{index}, store.origin);
    require_dense(index);
    return make<Evaluate>(
        call(IntrinsicId::kMaskedStore,
             {make<BufferLoad>(store.buffer, std::vector<Expr>{index}), mask_, value}, kVoid,
             store.origin),
        store.origin);
  }

  Stmt vector_prefetch(const Call& prefetch, const Origin& origin) {
    // One line of the cache holds the lanes, or nearly: the first lane's address.
    const auto* element = prefetch.args[0].as<BufferLoad>();
    if (!element || element->indices.size() != 1) throw NoVectorForm{};
    Expr index = vector(element->indices[0]);
    if (const auto* ramp = index.as<Ramp>()) index = ramp->base;
    if (index->dtype.is_vector()) throw NoVectorForm{};
    return make<Evaluate>(call(IntrinsicId::kPrefetch, {load(element->buffer, {index}),
                                                        prefetch.args[1], prefetch.args[2]}),
                          origin);
  }

  // A scalar condition that holds where any lane's does: that of lane 0, for conditions that can
  // only change from true to false along the lanes. Null for others.
  static Expr first_lane(const Expr& mask) {
    if (const auto* splat = mask.as<Broadcast>()) return splat->value;
    const auto* op = mask.as<Binary>();
    if (!op) return {};
    if (op->op == BinaryOp::kAnd) {
      const Expr a = first_lane(op->lhs), b = first_lane(op->rhs);
      return a && b ? logical_and(a, b) : Expr();
    }
    if (op->op != BinaryOp::kLT && op->op != BinaryOp::kLE) return {};
    const auto* ramp = op->lhs.as<Ramp>();
    const auto* bound = op->rhs.as<Broadcast>();
    const auto stride = ramp ? as_int(ramp->stride) : std::nullopt;
    if (!ramp || !bound || !stride || *stride < 0) return {};
    return binary(op->op, ramp->base, bound->value);
  }

  static void require_dense(const Expr& index) {
    const auto* ramp = index.as<Ramp>();
    if (!ramp || !is_int(ramp->stride, 1)) throw NoVectorForm{};
  }

  // `a op b` of vectors that are progressions stays one.
  static Expr progression(BinaryOp op, const Expr& a, const Expr& b) {
    const auto* ra = a.as<Ramp>();
    const auto* rb = b.as<Ramp>();
    const Expr sa = a->dtype.is_scalar() ? a
                    : a.as<Broadcast>()  ? a.as<Broadcast>()->value
                                         : Expr();
    const Expr sb = b->dtype.is_scalar() ? b
                    : b.as<Broadcast>()  ? b.as<Broadcast>()->value
                                         : Expr();
    if (op == BinaryOp::kAdd) {
      if (ra && sb) return make<Ramp>(ra->base + sb, ra->stride, ra->lanes);
      if (rb && sa) return make<Ramp>(sa + rb->base, rb->stride, rb->lanes);
      if (ra && rb) return make<Ramp>(ra->base + rb->base, ra->stride + rb->stride, ra->lanes);
    }
    if (op == BinaryOp::kSub) {
      if (ra && sb) return make<Ramp>(ra->base - sb, ra->stride, ra->lanes);
      if (rb && sa)
        return make<Ramp>(sa - rb->base, imm(rb->stride->dtype, int64_t{0}) - rb->stride,
                          rb->lanes);
    }
    if (op == BinaryOp::kMul) {
      if (ra && sb) return make<Ramp>(ra->base * sb, ra->stride * sb, ra->lanes);
      if (rb && sa) return make<Ramp>(sa * rb->base, sa * rb->stride, rb->lanes);
    }
    return {};
  }

  // The expression for all lanes; scalar where every lane has the same value.
  Expr vector(const Expr& expr) {
    if (const auto it = memo_.find(expr.get()); it != memo_.end() && it->second.mask.same_as(mask_))
      return it->second.result;
    Expr result = compute(expr);
    memo_.insert_or_assign(expr.get(), Memo{expr, mask_, result});
    return result;
  }

  Expr compute(const Expr& expr) {
    if (expr->dtype.is_vector()) throw NoVectorForm{};
    switch (kind_of(expr)) {
      case ExprKind::kVar: {
        const auto it = values_.find(expr.get());
        return it == values_.end() ? expr : it->second;
      }
      case ExprKind::kIntImm:
      case ExprKind::kFloatImm:
      case ExprKind::kStringImm: return expr;
      case ExprKind::kCast: {
        const auto& node = expr.to<Cast>();
        const Expr value = vector(node.value);
        if (const auto* ramp = value.as<Ramp>();
            ramp && node.dtype.is_int() && node.dtype.bits >= value->dtype.bits)
          return make<Ramp>(tenon::cast(node.dtype, ramp->base),
                            tenon::cast(node.dtype, ramp->stride), ramp->lanes);
        return make<Cast>(node.dtype.with_lanes(value->dtype.lanes), value, expr->origin);
      }
      case ExprKind::kBinary: {
        const auto& node = expr.to<Binary>();
        Expr a = vector(node.lhs), b = vector(node.rhs);
        if (mask_ && may_fail(node)) {
          // Lanes that do not run divide by 1.
          if (b->dtype.is_vector() || a->dtype.is_vector())
            b = make<Select>(mask_, broadcast_to_lanes(b, lanes_),
                             broadcast_to_lanes(imm(node.dtype, int64_t{1}), lanes_));
          else if (!guarded_)
            throw NoVectorForm{};
        }
        if (a->dtype.is_vector() || b->dtype.is_vector()) {
          if (a->dtype.is_integer())
            if (const Expr ramp = progression(node.op, a, b)) return ramp;
          a = broadcast_to_lanes(a, lanes_);
          b = broadcast_to_lanes(b, lanes_);
        }
        return make<Binary>(node.op, a, b, expr->origin);
      }
      case ExprKind::kNot: return make<Not>(vector(expr.to<Not>().value), expr->origin);
      case ExprKind::kSelect: {
        const auto& node = expr.to<Select>();
        Expr condition = vector(node.condition);
        Expr a = vector(node.true_value), b = vector(node.false_value);
        if (condition->dtype.is_vector() || a->dtype.is_vector() || b->dtype.is_vector()) {
          condition = broadcast_to_lanes(condition, lanes_);
          a = broadcast_to_lanes(a, lanes_);
          b = broadcast_to_lanes(b, lanes_);
        }
        return make<Select>(condition, a, b, expr->origin);
      }
      case ExprKind::kLet: {
        const auto& node = expr.to<Let>();
        const Expr value = vector(node.value);
        const auto var = renewed(node.var, value);
        return make<Let>(var, value, vector(node.body), expr->origin);
      }
      case ExprKind::kBufferLoad: return vector_load(expr.to<BufferLoad>());
      case ExprKind::kCall: return vector_call(expr.to<Call>());
      case ExprKind::kRamp:
      case ExprKind::kBroadcast:
      case ExprKind::kShuffle:
      case ExprKind::kGlobalVar: break;
    }
    throw NoVectorForm{};
  }

  Expr vector_load(const BufferLoad& node) {
    std::vector<Expr> indices;
    for (const Expr& index : node.indices) indices.push_back(vector(index));
    for (size_t i = 0; i + 1 < indices.size(); ++i)
      if (indices[i]->dtype.is_vector()) throw NoVectorForm{};
    const Expr loaded = make<BufferLoad>(node.buffer, indices, node.origin);
    if (!mask_ || indices.empty() || indices.back()->dtype.is_scalar()) {
      // A scalar load under a mask may run where no lane would have: not outside its buffer.
      if (mask_ && !guarded_ && loaded->dtype.is_scalar() && !is_safe_scalar(node))
        throw NoVectorForm{};
      return loaded;
    }
    require_dense(indices.back());
    return call(IntrinsicId::kMaskedLoad, {loaded, mask_, zero(loaded->dtype)}, kVoid, node.origin);
  }

  // Constant indices inside constant shapes.
  static bool is_safe_scalar(const BufferLoad& node) {
    for (size_t i = 0; i < node.indices.size(); ++i) {
      const auto index = as_int(node.indices[i]), extent = as_int(node.buffer->shape[i]);
      if (!index || !extent || *index < 0 || *index >= *extent) return false;
    }
    return true;
  }

  static Expr zero(DType dtype) {
    return dtype.is_float() ? imm(dtype, 0.0) : imm(dtype, int64_t{0});
  }

  Expr vector_call(const Call& node) {
    if (!node.op || node.op->effect == Effect::kOpaque) throw NoVectorForm{};
    if (node.is(IntrinsicId::kIfThenElse)) {
      const Expr condition = vector(node.arg(0));
      if (condition->dtype.is_scalar()) {
        Expr a = vector(node.arg(1)), b = vector(node.arg(2));
        if (a->dtype.is_vector() || b->dtype.is_vector()) {
          a = broadcast_to_lanes(a, lanes_);
          b = broadcast_to_lanes(b, lanes_);
        }
        return make<Call>(node.op, std::vector<NodePtr>{condition, a, b}, a->dtype, node.origin);
      }
      const Expr outer = mask_;
      const auto arm = [&](const Expr& value, const Expr& holds) {
        const bool outer_guarded = guarded_;
        if (reads_memory(value) || may_fail(value)) {
          mask_ = outer ? logical_and(outer, holds) : holds;
          guarded_ = false;
        }
        const Expr result = broadcast_to_lanes(vector(value), lanes_);
        mask_ = outer;
        guarded_ = outer_guarded;
        return result;
      };
      const Expr a = arm(node.arg(1), condition), b = arm(node.arg(2), logical_not(condition));
      // masked_load fills in a value itself.
      if (const auto* load = a.as<Call>();
          load && load->is(IntrinsicId::kMaskedLoad) && !outer && !reads_memory(node.arg(2)))
        return make<Call>(load->op, std::vector<NodePtr>{load->args[0], load->args[1], b}, a->dtype,
                          node.origin);
      return make<Select>(condition, a, b, node.origin);
    }
    if (node.is(IntrinsicId::kCheckIndex)) return vector_check(node);
    if (!is_lanewise(node.op->id)) throw NoVectorForm{};
    std::vector<NodePtr> args;
    bool any = false;
    for (size_t i = 0; i < node.args.size(); ++i) {
      const Expr arg = vector(node.arg(i));
      any |= arg->dtype.is_vector();
      args.push_back(arg);
    }
    if (any)
      for (NodePtr& arg : args) arg = broadcast_to_lanes(downcast<ExprNode>(arg), lanes_);
    const DType result = node.dtype.with_lanes(any ? lanes_ : 1);
    return make<Call>(node.op, std::move(args), result, node.origin);
  }

  // A check fails for lanes that run only. Of a progression the first and the last lane are
  // checked.
  Expr vector_check(const Call& node) {
    if (mask_ && !guarded_) throw NoVectorForm{};
    const Expr index = vector(node.arg(0)), extent = vector(node.arg(1));
    const auto check = [&](const Expr& one) {
      return call(IntrinsicId::kCheckIndex, {one, extent, node.args[2]}, kVoid, node.origin);
    };
    if (extent->dtype.is_vector()) throw NoVectorForm{};
    if (index->dtype.is_scalar()) return check(index);
    const auto* ramp = index.as<Ramp>();
    if (!ramp || mask_) throw NoVectorForm{};
    const Expr span = ramp->stride * (ramp->lanes - 1);
    return make<Ramp>(check(check(ramp->base + span) - span), ramp->stride, ramp->lanes);
  }

  struct Memo {
    Expr expr, mask, result;
  };
  int lanes_;
  Expr mask_;             // lanes that run; null: all
  bool guarded_ = false;  // a branch around the statement: at least one lane runs
  std::unordered_map<const Node*, Expr> values_;
  std::unordered_map<const Node*, Memo> memo_;
};

/// What a back end takes as one vector.
struct VectorLimits {
  int64_t bits;    // of more it makes many operations each, and keeps them on the stack
  bool any_lanes;  // also numbers of lanes that are no power of two
};
// A few registers of any target. C compilers take long to take apart what is no register.
constexpr VectorLimits kOfLlvm = {2048, true}, kOfC = {512, false};

int64_t widest_element(const Stmt& stmt) {
  int64_t bits = 8;
  walk(stmt, [&](const NodePtr& node) {
    if (const auto* load = node.as<BufferLoad>())
      bits = std::max<int64_t>(bits, load->dtype.storage().bits);
    if (const auto* store = node.as<BufferStore>())
      bits = std::max<int64_t>(bits, store->buffer->dtype.storage().bits);
  });
  return bits;
}

// The loop in vectors: of all its iterations, or, where these are many, of `most` at a time and one
// of the rest.
Stmt in_vectors(const For& loop, int64_t extent, VectorLimits limits) {
  const int64_t most = limits.bits / widest_element(loop.body);
  if (extent <= most) return Vectorizer(loop, static_cast<int>(extent)).statement(loop.body);
  const DType dtype = loop.loop_var->dtype;
  const int64_t whole = extent / most, rest = extent % most;
  const auto part = [&](const Expr& min, int64_t lanes) -> Stmt {
    const bool in_turn = lanes == 1 || (!limits.any_lanes && lanes < most);
    const auto piece = make<For>(loop.loop_var, min, imm(dtype, lanes),
                                 in_turn ? ForKind::kSerial : ForKind::kVectorized, loop.body,
                                 loop.annotations, loop.origin);
    return in_turn ? Stmt(piece) : Vectorizer(*piece, static_cast<int>(lanes)).statement(loop.body);
  };
  const auto outer = make<Var>(loop.loop_var->name + "_0", dtype);
  const Stmt vectors =
      make<For>(outer, imm(dtype, int64_t{0}), imm(dtype, whole), ForKind::kSerial,
                part(loop.min + outer * imm(dtype, most), most), loop.annotations, loop.origin);
  if (rest == 0) return vectors;
  return make<Seq>(std::vector<Stmt>{vectors, renew_definitions(
                                                  part(loop.min + imm(dtype, whole * most), rest))},
                   loop.origin);
}

}  // namespace

IRModule vectorize_loop(IRModule module) {
  const VectorLimits limits = is_c_target(module) ? kOfC : kOfLlvm;
  return map_kernels(std::move(module), [&](const Ref<PrimFunc>& function) {
    return rewrite(function, [&](const NodePtr& node) -> std::optional<NodePtr> {
      const auto* loop = node.as<For>();
      if (!loop || loop->kind != ForKind::kVectorized) return std::nullopt;
      const auto extent = as_int(loop->extent);
      if (extent && *extent > 1) {
        try {
          return in_vectors(*loop, *extent, limits);
        } catch (const NoVectorForm&) {
        }
      }
      return make<For>(loop->loop_var, loop->min, loop->extent, ForKind::kSerial, loop->body,
                       loop->annotations, loop->origin);
    });
  });
}

}  // namespace tenon::tir
