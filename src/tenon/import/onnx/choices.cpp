// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/choices.h"

#include "tenon/arith/analyzer.h"
#include "tenon/import/onnx/branch_numbers.h"
#include "tenon/import/refusals.h"

namespace tenon::onnx {

using graph::TensorType;
using graph::Value;

namespace {

// What is of type `a` where `condition` holds and of `b` elsewhere.
graph::Type common_type(const Expr& condition, const graph::Type& a, const graph::Type& b) {
  if (structural_equal(a, b)) return a;
  const auto *x = a.as<TensorType>(), *y = b.as<TensorType>();
  if (x && y && x->dtype == y->dtype && x->ndim == y->ndim && x->shape && y->shape) {
    std::vector<Expr> dims;
    for (size_t d = 0; d < x->shape->size(); ++d) {
      const Expr &one = (*x->shape)[d], &other = (*y->shape)[d];
      dims.push_back(
          arith::proves_equal(one, other) ? one : arith::simplify(select(condition, one, other)));
    }
    return make<TensorType>(std::move(dims), x->dtype);
  }
  const auto *s = a.as<graph::TupleType>(), *t = b.as<graph::TupleType>();
  if (!s || !t || s->types.size() != t->types.size())
    importers::unsupported("branches that give {} and {}", graph::str(a), graph::str(b));
  std::vector<graph::Type> types;
  for (size_t i = 0; i < s->types.size(); ++i)
    types.push_back(common_type(condition, s->types[i], t->types[i]));
  return make<graph::TupleType>(std::move(types));
}

// Each version with its numbers read outside: it is taken where its condition holds and none before.
std::vector<Ref<graph::SeqExpr>> numbers_outside(graph::BlockBuilder& builder,
                                                 std::vector<Ref<graph::SeqExpr>> versions,
                                                 const std::vector<Expr>& conditions,
                                                 const std::string& name) {
  Expr none_before = boolean(true);
  for (size_t i = 0; i < versions.size(); ++i) {
    const bool last = i + 1 == versions.size();
    const Expr taken = last ? none_before : logical_and(none_before, conditions[i]);
    versions[i] = with_numbers_outside(builder, versions[i], arith::simplify(taken), name);
    if (!last) none_before = logical_and(none_before, logical_not(conditions[i]));
  }
  return versions;
}

class Choice {
 public:
  Choice(graph::BlockBuilder& builder, const std::vector<Ref<graph::SeqExpr>>& versions,
         const std::vector<Expr>& conditions, std::string name)
      : builder_(builder),
        versions_(versions),
        conditions_(conditions),
        name_(std::move(name)),
        type_(graph::type_of(versions.back()->body)) {
    for (size_t i = versions.size() - 1; i-- > 0;)
      type_ = common_type(conditions[i], graph::type_of(versions[i]->body), type_);
  }

  // Of version `i` and those behind it.
  Value from(size_t i) {
    if (i + 1 == versions_.size()) return of_type(builder_.emit(versions_[i], name_));
    builder_.begin_branch();
    const auto then_branch = builder_.end_branch(of_type(builder_.emit(versions_[i], name_)));
    builder_.begin_branch();
    const auto else_branch = builder_.end_branch(from(i + 1));
    return builder_.emit(make<graph::If>(make<graph::PrimValue>(conditions_[i]), then_branch,
                                         else_branch, builder_.origin()),
                         name_);
  }

 private:
  // A tensor, or a tuple of some, with the type of the result.
  Value of_type(const Value& value) {
    const auto* types = type_.as<graph::TupleType>();
    if (!types) return tensor_of_type(value, type_);
    std::vector<Value> items;
    for (size_t i = 0; i < types->types.size(); ++i)
      items.push_back(tensor_of_type(
          builder_.emit(make<graph::TupleGetItem>(value, static_cast<int64_t>(i)), name_),
          types->types[i]));
    return make<graph::Tuple>(std::move(items));
  }
  Value tensor_of_type(const Value& value, const graph::Type& type) {
    return structural_equal(graph::type_of(value), type) ? value
                                                         : builder_.match_cast(value, type, name_);
  }

  graph::BlockBuilder& builder_;
  const std::vector<Ref<graph::SeqExpr>>& versions_;
  const std::vector<Expr>& conditions_;
  std::string name_;
  graph::Type type_;
};

}  // namespace

Value choose(graph::BlockBuilder& builder, const std::vector<Ref<graph::SeqExpr>>& versions,
             const std::vector<Expr>& conditions, const std::string& name) {
  const auto closed = numbers_outside(builder, versions, conditions, name);
  return Choice(builder, closed, conditions, name).from(0);
}

}  // namespace tenon::onnx
