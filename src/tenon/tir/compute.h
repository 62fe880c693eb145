// SPDX-License-Identifier: Apache-2.0
// Builds PrimFuncs of plain definitions, as tensor expressions do: each buffer is defined by one
// block in a nest of serial loops, with its reads and writes found from its body.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::tir {

using Indices = std::vector<Expr>;

/// What a definition reads: a buffer, or one value that stands for every element.
struct Operand {
  Ref<Buffer> buffer;  // null where `value` is set
  Expr value;
  DType dtype;  // that elements are read in; they are cast where theirs is another
  std::vector<Expr> shape;

  Operand() = default;
  Operand(Ref<Buffer> buffer);
  Operand(Expr value, std::vector<Expr> shape);
  explicit operator bool() const { return buffer || value; }
  size_t ndim() const { return shape.size(); }
  /// The element at `indices`, one for each dimension.
  Expr operator()(const Indices& indices) const;
  /// The element that NumPy's broadcasting pairs with `indices` of a result of at least this rank.
  Expr broadcast(const Indices& indices) const;
};

/// A commutative reduction. `identity` gives its neutral element in a dtype.
struct Reducer {
  std::function<Expr(DType)> identity;
  std::function<Expr(Expr, Expr)> combine;
};
Reducer sum_reducer();
Reducer prod_reducer();
Reducer max_reducer();  // least value of the dtype, -inf for floats; NaN where an element is NaN
Reducer min_reducer();
/// The least and greatest value of a dtype: -inf and inf for floats.
Expr least_value(DType dtype);
Expr greatest_value(DType dtype);

/// An axis of a block to be built. With `loop` null the block is inside a loop that its builder
/// makes: `value` is what the axis is bound to, and no loop is made for it.
struct Axis {
  Ref<Var> var;
  Expr extent;
  IterKind kind = IterKind::kSpatial;
  Ref<Var> loop = {};
  Expr value = {};
};

/// The regions that `body` (and `init`) load from and store to, in terms of the block's axes; one
/// for each different region. An index that depends on a load, or on a variable defined inside,
/// gives the whole dimension. What the body reads back of its own reduction is no read.
struct Access {
  std::vector<Ref<BufferRegion>> reads, writes;
};
Access access_of(const Stmt& init, const Stmt& body);

/// The loops over `axes` around one block.
Stmt define(const std::string& name, const std::vector<Axis>& axes, Stmt init, Stmt body);

/// A PrimFunc with the values, in terms of its builder's variables, of the scalar parameters that
/// stand after its buffers.
struct Kernel {
  Ref<PrimFunc> function;
  std::vector<Expr> scalars;
};

/// Collects the definitions of one PrimFunc. Symbolic variables may be anyone's: `finish` gives the
/// function its own.
class KernelBuilder {
 public:
  /// A parameter that is read. Names are made unique.
  Operand input(const std::string& name, std::vector<Expr> shape, DType dtype);
  /// `buffer[i...] = element(i...)` for all i in `shape`; its dtype is the element's.
  Operand compute(const std::string& name, const std::vector<Expr>& shape,
                  const std::function<Expr(const Indices&)>& element);
  /// `buffer[i...] = reduction over r in extents of element(i..., r...)`. Without extents, the
  /// element itself.
  Operand reduce(const std::string& name, const std::vector<Expr>& shape,
                 const std::vector<Expr>& extents, const Reducer& reducer,
                 const std::function<Expr(const Indices&, const Indices&)>& element);
  /// `buffer[i...] = element(i..., buffer)` where element i may read those with a smaller index on
  /// `axis`, which is computed in order.
  Operand scan(const std::string& name, const std::vector<Expr>& shape, size_t axis, DType dtype,
               const std::function<Expr(const Indices&, const Operand&)>& element);
  /// A buffer that statements added with `append` define.
  Operand allocate(const std::string& name, const std::vector<Expr>& shape, DType dtype);
  void append(Stmt stmt) { stmts_.push_back(std::move(stmt)); }
  /// Spatial axes with fresh loops, named after the position.
  static std::vector<Axis> axes(const std::vector<Expr>& extents,
                                IterKind kind = IterKind::kSpatial,
                                const std::string& prefix = "i");
  static Indices indices(const std::vector<Axis>& axes);

  /// The function: parameters are the inputs, `outputs`, then the scalars that its dimensions need;
  /// every other buffer is allocated in the root block.
  Kernel finish(const std::vector<Operand>& outputs, Attrs attrs, Origin origin = {});

 private:
  std::string unique(const std::string& name);
  std::vector<Ref<Buffer>> inputs_, defined_;
  std::vector<Stmt> stmts_;
  std::set<std::string> names_;
};

/// `y[i...] = x[i...]`.
Ref<PrimFunc> copy_kernel(const std::vector<Expr>& shape, DType dtype, Origin origin = {});

}  // namespace tenon::tir
