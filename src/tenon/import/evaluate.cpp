// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/evaluate.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/op.h"
#include "tenon/graph/transforms.h"
#include "tenon/interp/interpreter.h"
#include "tenon/ir/visit.h"
#include "tenon/tir/stmt.h"

namespace tenon::importers {

namespace {

constexpr int kMostTerms = 1000;                  // of an element
constexpr int64_t kMostSteps = 100'000;           // statements of one function, on expressions
constexpr int64_t kMostInterpreted = 10'000'000;  // steps of one function, on constants

/// What the run needs is not known during import.
struct NotKnown {};

// Integers of every width are int64 expressions; a constant that its dtype would wrap is not.
Expr as_element(DType dtype, const Expr& value) {
  if (!dtype.is_integer()) return value;
  const auto n = as_int(value);
  if (n ? fold_int(BinaryOp::kAdd, dtype, *n, 0) != n : dtype.is_uint()) throw NotKnown();
  return value;
}

Expr converted(const Expr& value, DType from, DType to) {
  if (to.is_bool()) {
    if (from.is_bool()) return value;
    return ne(value, imm(value->dtype, int64_t{0}));
  }
  if (to.is_float() || from.is_float()) {
    const auto number = as_float(from.is_bool() ? cast(kInt64, value) : value);
    if (!number) throw NotKnown();
    if (to.is_float()) return imm(to, *number);
    if (!(std::fabs(*number) < 9.0e18)) throw NotKnown();
    return as_element(to, int64(static_cast<int64_t>(*number)));
  }
  return as_element(to, from.is_bool() ? cast(kInt64, value) : value);
}

// Whether `value`, written out, has more than `left` terms: products of a value with itself share
// them, and text does not.
bool is_long(const Expr& value, int& left) {
  if (--left < 0) return true;
  bool found = false;
  each_member(value, [&](const NodePtr& member, FieldRole) {
    found = found || (member.as<ExprNode>() && is_long(downcast<ExprNode>(member), left));
  });
  return found;
}

/// Runs PrimFuncs of plain definitions on expressions: loops, indices and conditions must come out
/// as constants, elements need not.
class KernelRun {
 public:
  void bind(const Ref<tir::Buffer>& buffer, Elements elements) {
    buffers_.insert_or_assign(buffer.get(), std::move(elements));
  }
  void bind(const Ref<Var>& var, Expr value) {
    vars_.insert_or_assign(var.get(), std::move(value));
  }
  Elements take(const Ref<tir::Buffer>& buffer) { return std::move(buffers_.at(buffer.get())); }

  void allocate(const Ref<tir::Buffer>& buffer) {
    Elements out{buffer->dtype, {}, {}};
    for (const Expr& dim : buffer->shape) out.shape.push_back(number(dim));
    const int64_t count = checked_elements(out.shape);
    if (count > kMostElements || !buffer->is_compact() || buffer->elem_offset) throw NotKnown();
    out.values.resize(static_cast<size_t>(count));
    bind(buffer, std::move(out));
  }

  void run(const tir::Stmt& stmt) {
    if (++steps_ > kMostSteps) throw NotKnown();
    if (const auto* s = stmt.as<tir::Seq>()) {
      for (const tir::Stmt& each : s->stmts) run(each);
    } else if (const auto* s = stmt.as<tir::For>()) {
      const int64_t min = number(s->min), extent = number(s->extent);
      for (int64_t i = 0; i < extent; ++i) {
        bind(s->loop_var, int64(min + i));
        run(s->body);
      }
    } else if (const auto* s = stmt.as<tir::BlockRealize>()) {
      run_block(*s);
    } else if (const auto* s = stmt.as<tir::BufferStore>()) {
      Expr value = arith::simplify(eval(s->value));
      element(*s->buffer, s->indices) = as_element(s->buffer->dtype, value);
    } else if (const auto* s = stmt.as<tir::IfThenElse>()) {
      const tir::Stmt& taken = number(s->condition) ? s->then_case : s->else_case;
      if (taken) run(taken);
    } else if (const auto* s = stmt.as<tir::Assert>()) {
      if (!number(s->condition)) throw NotKnown();
    } else if (const auto* s = stmt.as<tir::Bind>()) {
      bind(s->var, eval(s->value));
    } else {
      throw NotKnown();
    }
  }

 private:
  void run_block(const tir::BlockRealize& realize) {
    if (!number(realize.predicate)) return;
    const tir::Block& block = *realize.block;
    if (!block.match_buffers.empty()) throw NotKnown();
    bool first = true;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      const tir::IterVar& axis = block.iter_vars[i];
      const int64_t value = number(realize.iter_values[i]);
      if (axis.kind == tir::IterKind::kReduce) first = first && value == number(axis.domain.min);
      bind(axis.var, int64(value));
    }
    for (const Ref<tir::Buffer>& buffer : block.alloc_buffers) allocate(buffer);
    if (block.init && first) run(block.init);
    run(block.body);
  }

  int64_t number(const Expr& expr) {
    const auto n = as_int(arith::simplify(eval(expr)));
    if (!n) throw NotKnown();
    return *n;
  }

  Expr& element(const tir::Buffer& buffer, const std::vector<Expr>& indices) {
    const auto found = buffers_.find(&buffer);
    if (found == buffers_.end()) throw NotKnown();
    Elements& x = found->second;
    int64_t offset = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      const int64_t at = number(indices[d]);
      if (at < 0 || at >= x.shape[d]) throw NotKnown();
      offset = offset * x.shape[d] + at;
    }
    return x.values[static_cast<size_t>(offset)];
  }

  Expr eval(const Expr& expr) {
    if (const auto n = as_int(expr)) return expr->dtype.is_bool() ? expr : int64(*n);
    if (expr.as<FloatImm>()) return expr;
    if (expr.as<Var>()) {
      const auto found = vars_.find(expr.get());
      if (found == vars_.end()) throw NotKnown();
      return found->second;
    }
    if (const auto* e = expr.as<tir::BufferLoad>()) {
      const Expr value = element(*e->buffer, e->indices);
      if (!value) throw NotKnown();
      return value;
    }
    if (const auto* e = expr.as<Cast>())
      return converted(eval(e->value), e->value->dtype, e->dtype);
    if (const auto* e = expr.as<Not>()) return logical_not(eval(e->value));
    if (const auto* e = expr.as<Binary>()) return eval_binary(*e);
    if (const auto* e = expr.as<Select>())
      return choose(e->condition, e->true_value, e->false_value);
    if (const auto* e = expr.as<Call>(); e && e->is(IntrinsicId::kIfThenElse))
      return choose(e->arg(0), e->arg(1), e->arg(2));
    throw NotKnown();
  }

  Expr eval_binary(const Binary& e) {
    const Expr a = eval(e.lhs), b = eval(e.rhs);
    BinaryOp op = e.op;
    if (!a->dtype.is_float() && op >= BinaryOp::kDiv && op <= BinaryOp::kFloorMod) {
      if (is_int(b, 0)) throw NotKnown();
      // Of sizes towards zero is towards minus infinity, which is simplified better.
      const bool of_sizes =
          arith::Analyzer().proves_nonnegative(a) && arith::Analyzer().proves_positive(b);
      if (of_sizes && op == BinaryOp::kDiv) op = BinaryOp::kFloorDiv;
      if (of_sizes && op == BinaryOp::kMod) op = BinaryOp::kFloorMod;
    }
    return as_element(e.dtype, binary(op, a, b));
  }

  Expr choose(const Expr& condition, const Expr& a, const Expr& b) {
    const Expr holds = arith::simplify(eval(condition));
    if (const auto known = as_int(holds)) return eval(*known ? a : b);
    return select(holds, eval(a), eval(b));
  }

  std::unordered_map<const Node*, Elements> buffers_;
  std::unordered_map<const Node*, Expr> vars_;
  int64_t steps_ = 0;
};

/// Runs a graph function whose operators are legalized to calls of PrimFuncs.
class GraphRun {
 public:
  explicit GraphRun(const IRModule& module) : module_(module) {}

  std::vector<Elements> run(const graph::Function& function,
                            const std::vector<const Elements*>& args) {
    for (size_t i = 0; i < args.size(); ++i) values_[function.params[i].get()] = {*args[i]};
    for (const Ref<graph::BindingBlock>& block : function.body->blocks)
      for (const Ref<graph::Binding>& binding : block->bindings) {
        if (binding->match) throw NotKnown();
        values_[binding->var.get()] = eval(binding->value);
      }
    return eval(function.body->body);
  }

 private:
  std::vector<Elements> eval(const graph::Value& value) {
    if (value.as<graph::Var>()) return values_.at(value.get());
    if (const auto* v = value.as<graph::Constant>()) {
      const auto known = elements_of(*v->data);
      if (!known) throw NotKnown();
      return {*known};
    }
    if (const auto* v = value.as<graph::Tuple>()) {
      std::vector<Elements> all;
      all.reserve(v->values.size());
      for (const graph::Value& item : v->values) all.push_back(only(item));
      return all;
    }
    if (const auto* v = value.as<graph::TupleGetItem>())
      return {eval(v->tuple).at(static_cast<size_t>(v->index))};
    const auto* call = value.as<graph::Call>();
    if (call && call->is("call_tir")) return call_tir(*call);
    if (call && call->op && call->op->traits.view) return reshaped(*call);
    throw NotKnown();
  }

  Elements only(const graph::Value& value) {
    std::vector<Elements> all = eval(value);
    if (all.size() != 1) throw NotKnown();
    return std::move(all[0]);
  }

  std::vector<Elements> reshaped(const graph::Call& call) {
    const graph::Type type = graph::type_of(ref_to(&call));
    const auto shape = type.as<graph::TensorType>()->static_shape();
    if (!shape) throw NotKnown();
    Elements x = only(call.args[0]);
    x.shape = *shape;
    return {std::move(x)};
  }

  std::vector<Elements> call_tir(const graph::Call& call) {
    const auto function = module_.find<tir::PrimFunc>(call.args[0].as<graph::FuncRef>()->name);
    const std::vector<graph::Value>& operands = call.args[1].as<graph::Tuple>()->values;
    KernelRun run;
    size_t next_scalar = 0;
    std::vector<Ref<tir::Buffer>> outputs;
    for (size_t i = 0; i < function->params.size(); ++i) {
      const Ref<tir::Buffer>& buffer = function->buffers[i];
      if (!buffer) {
        const auto* scalars = call.args.size() > 2 ? call.args[2].as<graph::ShapeExpr>() : nullptr;
        if (!scalars) throw NotKnown();
        run.bind(function->params[i], scalars->values.at(next_scalar++));
      } else if (i < operands.size()) {
        run.bind(buffer, only(operands[i]));
      } else {
        run.allocate(buffer);
        outputs.push_back(buffer);
      }
    }
    run.run(function->body);
    std::vector<Elements> out;
    out.reserve(outputs.size());
    for (const Ref<tir::Buffer>& buffer : outputs) out.push_back(run.take(buffer));
    return out;
  }

  const IRModule& module_;
  std::unordered_map<const Node*, std::vector<Elements>> values_;
};

bool is_held(const graph::Type& type) {
  if (const auto* tuple = type.as<graph::TupleType>())
    return std::all_of(tuple->types.begin(), tuple->types.end(), is_held);
  const auto* tensor = type.as<graph::TensorType>();
  const auto shape = tensor ? tensor->static_shape() : std::nullopt;
  return shape && holds(tensor->dtype) && checked_elements(*shape) <= kMostElements;
}

// Numbers stand in `function` as constants, as they do in a network whose operands are
// initialisers: lowerings check them.
Ref<graph::Function> with_constants(const Ref<graph::Function>& function,
                                    std::vector<const Elements*>& args) {
  Substitution constants;
  std::vector<Ref<graph::Var>> params;
  std::vector<const Elements*> others;
  for (size_t i = 0; i < args.size(); ++i) {
    if (auto data = tensor_of(*args[i])) {
      constants[function->params[i].get()] = make<graph::Constant>(std::move(data));
    } else {
      params.push_back(function->params[i]);
      others.push_back(args[i]);
    }
  }
  args = std::move(others);
  return make<graph::Function>(std::move(params), substitute(function->body, constants));
}

std::vector<Elements> run(const Ref<graph::Function>& function,
                          const std::vector<const Elements*>& args) {
  IRModule module;
  module.set("main", function);
  module = graph::legalize_ops(std::move(module));
  if (!args.empty()) return GraphRun(module).run(*module.find<graph::Function>("main"), args);
  std::vector<Elements> out;
  interp::Interpreter interpreter(module, {.step_limit = kMostInterpreted});
  for (const auto& data : interpreter.run_main({})) out.push_back(*elements_of(*data));
  return out;
}

bool is_short(const Elements& elements) {
  return std::ranges::all_of(elements.values, [&](const Expr& value) {
    int left = kMostTerms;
    return value && (!elements.dtype.is_float() || as_float(value)) && !is_long(value, left);
  });
}

}  // namespace

std::optional<std::vector<Elements>> evaluate(const Ref<graph::Function>& function,
                                              std::vector<const Elements*> args) {
  if (!is_held(graph::type_of(function->body->body))) return std::nullopt;
  const Ref<graph::Function> open = with_constants(function, args);
  try {
    std::vector<Elements> out = run(open, args);
    if (std::ranges::all_of(out, is_short)) return out;
  } catch (const NotKnown&) {
    return std::nullopt;
  } catch (const CompileError& error) {
    if (error.first().code.id == kOutOfBounds.id) throw;
  }
  return std::nullopt;
}

}  // namespace tenon::importers
