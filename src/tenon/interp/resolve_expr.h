// SPDX-License-Identifier: Apache-2.0
// Makes flat code for expressions and conditions; resolve.cpp makes it for
// statements.
#pragma once

#include <algorithm>
#include <unordered_map>

#include "tenon/interp/indices.h"

namespace tenon::interp {

using tir::Buffer, tir::BufferLoad, tir::BufferRegion, tir::PrimFunc, tir::Range;

class ExpressionResolver {
 protected:
  ExpressionResolver(const Ref<PrimFunc>& function, ResolveOptions options)
      : code_(std::make_unique<Code>()),
        options_(std::move(options)),
        emitter_(*code_, !options_.watched),
        indices_(emitter_, *code_, [this](const Expr& e) { return expr(e, Sums::kNo); }) {
    code_->function = function;
  }

  // ---- slots and views ----

  int32_t new_slots(int lanes) { return emitter_.temporary(lanes); }
  int32_t define_var(const Node* var, const Bounds& bounds = {});
  // A variable with a value that is in `slot`, or is known as a sum.
  void bind_var(const Ref<Var>& var, const Expr& value);
  int32_t define_view(const Ref<Buffer>& buffer);
  int32_t view_of(const Buffer& buffer, const Origin& origin) const;
  // Shape and strides of a buffer as numbers, where they are; `source`: of what a match_buffer
  // without strides is a view of.
  void know_geometry(const Buffer& buffer, const Indices::Geometry* source);
  const Indices::Geometry* geometry_of(const Buffer& buffer) const;

  Instr& emit(Instr instr);
  int32_t value(Instr instr, std::initializer_list<int32_t> operands, const Bounds& bounds = {});
  int32_t here() const { return emitter_.here(); }
  void land(int32_t jump) { emitter_.at(jump).c = here(); }

  void bind_dims(const PrimFunc& function);
  static bool is_source(const std::vector<DimSource>& sources, size_t param, size_t dim);

  // ---- expressions ----

  /// Scalar constants have slots of their own, which hold them from the start.
  int32_t immediate(DType dtype, Slot number);

  enum class Sums : uint8_t { kYes, kNo };  // whether an integer sum may be computed as such
  int32_t expr(const Expr& e, Sums sums = Sums::kYes);

  /// The slots of `indices` copied next to each other; the last may be a vector.
  int32_t consecutive(const std::vector<Expr>& indices);

  static bool has_load(const Expr& e);

  int32_t expr_inner(const Expr& e);

  int32_t splat(int32_t slot, uint16_t lanes) {
    return value({.op = Op::kSplat, .lanes = lanes, .a = slot}, {slot});
  }
  int32_t select(int32_t condition, int32_t a, int32_t b, uint16_t lanes);

  // Whether every value of `from` is one of `to`, so that converting changes none.
  static bool holds_all_of(DType to, DType from);

  // The one instruction for a scalar operation, where there is one.
  std::optional<Op> quick_op(BinaryOp op, DType dtype, const Bounds& a, const Bounds& b) const;

  // Whether a result of narrow integers cannot wrap.
  static bool stays_within(BinaryOp op, DType dtype, const Bounds& a, const Bounds& b);

  int32_t binary(const Binary& op);

  // An access whose view's geometry is known, of a dtype as it lies in memory.
  std::optional<int32_t> access(const Ref<Buffer>& buffer, const std::vector<Expr>& at,
                                uint16_t lanes, const Origin& origin);
  static Op load_op(DType dtype, uint16_t lanes);

  int32_t short_circuit(const Binary& op);

  // ---- branches ----

  /// Where a condition has to hold: jumps that land where it does not, and what holds after them.
  struct Guard {
    std::vector<int32_t> jumps;
    size_t branch = 0, assumed = 0;
  };
  Guard guard(const Expr& condition);
  void conjuncts(const Expr& condition, bool in_order, std::vector<Expr>& out) const;
  /// What was guarded ends: the jumps land here.
  void end_guard(const Guard& guard);

  int32_t conditional(const tenon::Call& call);

  int32_t masked(const tenon::Call& call, Op op);

  /// The view that a call is given for a region.
  int32_t region_view(const BufferRegion& region, const Origin& origin);

  /// \param is_followed  somebody accesses what is there: it must be an element
  int32_t address_of(const tenon::Call& call, bool is_followed);

  int32_t opaque(const tenon::Call& call);

  int32_t intrinsic(const tenon::Call& call);
  int32_t scalar_intrinsic(const tenon::Call& call);
  int32_t access_pointer(const tenon::Call& call);
  [[noreturn]] static void no_meaning(const tenon::Call& call);
  int32_t variable(const Var& var);
  int32_t shuffle(const Shuffle& op);
  int32_t load(const BufferLoad& load);

  void call(const GlobalVar& callee, const std::vector<NodePtr>& args, const Origin& origin,
            int32_t result);

  std::unique_ptr<Code> code_;
  const ResolveOptions options_;
  Emitter emitter_;
  Indices indices_;
  std::unordered_map<const Node*, int32_t> vars_, views_, pointers_;
  std::unordered_map<const Node*, Indices::Geometry> geometries_;
  Origin origin_;
};

}  // namespace tenon::interp
