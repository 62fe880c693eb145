// SPDX-License-Identifier: Apache-2.0
#include "schedule_evaluate.h"

#include <cmath>
#include <random>
#include <stdexcept>

namespace tenon::tir::testing {

namespace {

struct Evaluator {
  Data& data;
  Env env;

  int64_t integer(const Expr& e) {
    if (const auto* v = e.as<IntImm>()) return v->value;
    if (const auto* v = e.as<Var>()) {
      const auto it = env.find(v);
      if (it == env.end()) throw std::runtime_error("no value of " + v->name);
      return it->second;
    }
    if (const auto* c = e.as<Cast>())
      return c->value->dtype.is_float() ? static_cast<int64_t>(number(c->value))
                                        : integer(c->value);
    if (const auto* n = e.as<Not>()) return !integer(n->value);
    if (const auto* s = e.as<Select>())
      return integer(s->condition) ? integer(s->true_value) : integer(s->false_value);
    if (const auto* l = e.as<BufferLoad>()) return static_cast<int64_t>(load(*l));
    if (const auto* b = e.as<Binary>()) {
      if (is_comparison(b->op) && b->lhs->dtype.is_float()) {
        const double x = number(b->lhs), y = number(b->rhs);
        switch (b->op) {
          case BinaryOp::kEQ: return x == y;
          case BinaryOp::kNE: return x != y;
          case BinaryOp::kLT: return x < y;
          case BinaryOp::kLE: return x <= y;
          case BinaryOp::kGT: return x > y;
          default: return x >= y;
        }
      }
      if (b->op == BinaryOp::kAnd) return integer(b->lhs) && integer(b->rhs);
      if (b->op == BinaryOp::kOr) return integer(b->lhs) || integer(b->rhs);
      const auto value = fold_int(b->op, b->lhs->dtype, integer(b->lhs), integer(b->rhs));
      if (!value) throw std::runtime_error("division by zero");
      return *value;
    }
    if (const auto* c = e.as<Call>(); c && c->is(IntrinsicId::kIfThenElse))
      return integer(c->arg(0)) ? integer(c->arg(1)) : integer(c->arg(2));
    throw std::runtime_error("integer " + str(e));
  }

  double number(const Expr& e) {
    if (!e->dtype.is_float()) return static_cast<double>(integer(e));
    if (const auto* v = e.as<FloatImm>()) return v->value;
    if (const auto* l = e.as<BufferLoad>()) return load(*l);
    if (const auto* c = e.as<Cast>()) return number(c->value);
    if (const auto* s = e.as<Select>())
      return integer(s->condition) ? number(s->true_value) : number(s->false_value);
    if (const auto* b = e.as<Binary>()) {
      const double x = number(b->lhs), y = number(b->rhs);
      switch (b->op) {
        case BinaryOp::kAdd: return x + y;
        case BinaryOp::kSub: return x - y;
        case BinaryOp::kMul: return x * y;
        case BinaryOp::kDiv: return x / y;
        case BinaryOp::kMin: return std::min(x, y);
        case BinaryOp::kMax: return std::max(x, y);
        default: break;
      }
    }
    if (const auto* c = e.as<Call>()) {
      if (c->is(IntrinsicId::kIfThenElse))
        return integer(c->arg(0)) ? number(c->arg(1)) : number(c->arg(2));
      if (c->is(IntrinsicId::kExp)) return std::exp(number(c->arg(0)));
      if (c->is(IntrinsicId::kTanh)) return std::tanh(number(c->arg(0)));
      if (c->is(IntrinsicId::kSqrt)) return std::sqrt(number(c->arg(0)));
      if (c->is(IntrinsicId::kRsqrt)) return 1 / std::sqrt(number(c->arg(0)));
    }
    throw std::runtime_error("number " + str(e));
  }

  size_t place(const Ref<Buffer>& buffer, const std::vector<Expr>& indices) {
    int64_t at = 0;
    for (size_t i = 0; i < indices.size(); ++i) {
      const int64_t index = integer(indices[i]), dim = integer(buffer->shape[i]);
      if (index < 0 || index >= dim)
        throw std::runtime_error(buffer->name + "[" + str(indices[i]) + "] is " +
                                 std::to_string(index) + " of " + std::to_string(dim));
      at = at * dim + index;
    }
    return static_cast<size_t>(at);
  }

  double load(const BufferLoad& l) {
    const double value = data.at(l.buffer.get()).at(place(l.buffer, l.indices));
    if (std::isnan(value)) throw std::runtime_error("uninitialised " + str(ref_to(&l)));
    return value;
  }

  void run(const Stmt& stmt) {
    if (const auto* list = stmt.as<Seq>()) {
      for (const Stmt& s : list->stmts) run(s);
    } else if (const auto* loop = stmt.as<For>()) {
      const int64_t low = integer(loop->min), extent = integer(loop->extent);
      for (int64_t i = 0; i < extent; ++i) {
        env[loop->loop_var.get()] = low + i;
        run(loop->body);
      }
    } else if (const auto* store = stmt.as<BufferStore>()) {
      const double value = number(store->value);
      data.at(store->buffer.get()).at(place(store->buffer, store->indices)) = value;
    } else if (const auto* branch = stmt.as<IfThenElse>()) {
      if (integer(branch->condition))
        run(branch->then_case);
      else if (branch->else_case)
        run(branch->else_case);
    } else if (const auto* realize = stmt.as<BlockRealize>()) {
      if (!integer(realize->predicate)) return;
      const Block& block = *realize->block;
      bool first = true;
      for (size_t i = 0; i < block.iter_vars.size(); ++i) {
        const IterVar& iter = block.iter_vars[i];
        const int64_t value = integer(realize->iter_values[i]);
        const int64_t low = integer(iter.domain.min);
        if (value < low || value >= low + integer(iter.domain.extent))
          throw std::runtime_error(block.name + ": axis " + iter.var->name + " is " +
                                   std::to_string(value));
        env[iter.var.get()] = value;
        if (iter.kind == IterKind::kReduce) first = first && value == low;
      }
      for (const Ref<Buffer>& buffer : block.alloc_buffers) {
        size_t count = 1;
        for (const Expr& dim : buffer->shape) count *= static_cast<size_t>(integer(dim));
        data[buffer.get()].assign(count, std::nan(""));
      }
      if (block.init && first) run(block.init);
      run(block.body);
    } else if (const auto* evaluate = stmt.as<Evaluate>()) {
      const auto* hint = evaluate->value.as<Call>();
      if (!hint || !hint->is(IntrinsicId::kPrefetch)) throw std::runtime_error("evaluate");
      const auto* l = hint->args[0].as<BufferLoad>();
      place(l->buffer, l->indices);
    } else {
      throw std::runtime_error("statement " + std::string(stmt->type().name));
    }
  }
};

void print(const Stmt& stmt, int depth, std::string& out) {
  const std::string pad(static_cast<size_t>(depth) * 2, ' ');
  if (!stmt) return;
  if (const auto* list = stmt.as<Seq>()) {
    for (const Stmt& s : list->stmts) print(s, depth, out);
  } else if (const auto* loop = stmt.as<For>()) {
    static const char* kinds[] = {"for", "parallel", "vectorized", "unrolled", "thread"};
    out += fmt::format("{}{} {} in {}, {}\n", pad, kinds[static_cast<int>(loop->kind)],
                       loop->loop_var->name, str(loop->min), str(loop->extent));
    print(loop->body, depth + 1, out);
  } else if (const auto* store = stmt.as<BufferStore>()) {
    out += fmt::format("{}{}{} = ", pad, store->buffer->name, str(store->indices));
    std::string value = str(store->value);
    out += value + "\n";
    walk<BufferLoad>(store->value, [&](const BufferLoad& l) {
      out += fmt::format("{}   reads {}{}\n", pad, l.buffer->name, str(l.indices));
    });
  } else if (const auto* realize = stmt.as<BlockRealize>()) {
    const Block& b = *realize->block;
    out += fmt::format("{}block {}", pad, b.name);
    for (size_t i = 0; i < b.iter_vars.size(); ++i)
      out += fmt::format(" {}{}:[{},{})={}", b.iter_vars[i].kind == IterKind::kReduce ? "R." : "",
                         b.iter_vars[i].var->name, str(b.iter_vars[i].domain.min),
                         str(b.iter_vars[i].domain.extent), str(realize->iter_values[i]));
    if (!is_int(realize->predicate, 1)) out += " where " + str(realize->predicate);
    out += "\n";
    for (const auto& a : b.alloc_buffers)
      out += fmt::format("{}  alloc {}{} {}\n", pad, a->name, str(a->shape), a->scope);
    if (b.init) {
      out += pad + "  init\n";
      print(b.init, depth + 2, out);
    }
    print(b.body, depth + 1, out);
  } else {
    out += pad + std::string(stmt->type().name) + "\n";
  }
}

}  // namespace

void run(const PrimFunc& function, Data& data, Env symbols) {
  Evaluator evaluator{data, std::move(symbols)};
  evaluator.run(function.body);
}

std::vector<std::vector<double>> results(const PrimFunc& function, const Env& symbols) {
  Data data;
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Evaluator sizes{data, symbols};
  for (const Ref<Buffer>& buffer : function.buffers) {
    size_t count = 1;
    for (const Expr& dim : buffer->shape) count *= static_cast<size_t>(sizes.integer(dim));
    auto& values = data[buffer.get()];
    for (size_t i = 0; i < count; ++i) values.push_back(uniform(random));
  }
  run(function, data, symbols);
  std::vector<std::vector<double>> out;
  for (const Ref<Buffer>& buffer : function.buffers) out.push_back(data.at(buffer.get()));
  return out;
}

std::string dump(const PrimFunc& function) {
  std::string out;
  print(function.body, 0, out);
  return out;
}

}  // namespace tenon::tir::testing
