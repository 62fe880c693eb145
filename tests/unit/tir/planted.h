// SPDX-License-Identifier: Apache-2.0
// Computations that a pattern is made of, planted in functions that are then transformed at random.
#pragma once

#include <map>
#include <random>

#include "schedule_kernels.h"
#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir::testing {

using Axes = std::vector<Expr>;

enum class Change { kNone, kIndex, kOperation, kInit };

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  size_t below(size_t n) { return engine_() % n; }
  int64_t from(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(below(static_cast<size_t>(high - low + 1)));
  }
  bool coin() { return below(2) == 0; }

 private:
  std::mt19937 engine_;
};

/// Blocks over given buffers: the pattern and what is planted are both made of it.
struct Planted {
  std::vector<Ref<Buffer>> inputs, locals;
  Ref<Buffer> output;
  std::vector<Stmt> stmts;
  std::vector<std::string> names;
};

constexpr int kKinds = 6;

/// Extents in the order in which a kind uses them; `change` is made in its first block.
inline Planted plant(int kind, const std::vector<Expr>& e, Change change) {
  Planted out;
  const auto input = [&](const std::string& name, std::vector<Expr> shape) {
    out.inputs.push_back(tensor(name, std::move(shape)));
    return out.inputs.back();
  };
  const auto local = [&](const std::string& name, std::vector<Expr> shape) {
    out.locals.push_back(tensor(name, std::move(shape)));
    return out.locals.back();
  };
  const auto add = [&](const std::string& name, const Ref<Buffer>& to, const Axes& extents,
                       const std::function<Expr(const Axes&)>& value, size_t reduce = 0,
                       BinaryOp op = BinaryOp::kAdd, double start = 0) {
    const bool first = out.stmts.empty();
    if (first && change == Change::kInit) start = 7;
    if (first && change == Change::kOperation)
      op = op == BinaryOp::kAdd ? BinaryOp::kMul : BinaryOp::kAdd;
    out.stmts.push_back(compute(name, to, extents, value, reduce, op, start));
    out.names.push_back(name);
  };
  const auto shifted = [&](const Expr& index, const Expr& extent) {
    return change == Change::kIndex ? floormod(index + 1, extent) : index;
  };
  const auto product = [&](const Ref<Buffer>& to) {
    const auto a = input("a", {e[0], e[2]}), b = input("b", {e[2], e[1]});
    add(
        "product", to, {e[0], e[1], e[2]},
        [&](const Axes& v) { return load(a, {v[0], shifted(v[2], e[2])}) * load(b, {v[2], v[1]}); },
        1);
  };
  switch (kind) {
    case 0: {
      out.output = tensor("y", {e[0], e[1]});
      product(out.output);
      break;
    }
    case 1: {
      const auto t = local("t", {e[0], e[1]}), u = local("u", {e[0], e[1]});
      out.output = tensor("y", {e[0], e[1]});
      product(t);
      const auto bias = input("bias", {e[1]});
      add("plus", u, {e[0], e[1]}, [&](const Axes& v) { return load(t, v) + load(bias, {v[1]}); });
      add("clip", out.output, {e[0], e[1]}, [&](const Axes& v) { return relu(load(u, v)); });
      break;
    }
    case 2: {  // n o c h w r s, input height and width
      const auto x = input("x", {e[0], e[2], e[7], e[8]}), f = input("f", {e[1], e[2], e[5], e[6]});
      out.output = tensor("y", {e[0], e[1], e[3], e[4]});
      add(
          "conv", out.output, {e[0], e[1], e[3], e[4], e[2], e[5], e[6]},
          [&](const Axes& v) {
            return load(x, {v[0], v[4], v[2] + v[5], v[3] + v[6]}) *
                   load(f, {v[1], shifted(v[4], e[2]), v[5], v[6]});
          },
          3);
      break;
    }
    case 3: {
      const auto x = input("x", {e[0], e[1]});
      const auto top = local("top", {e[0]}), power = local("power", {e[0], e[1]});
      const auto sum = local("sum", {e[0]});
      out.output = tensor("y", {e[0], e[1]});
      add(
          "top", top, {e[0], e[1]},
          [&](const Axes& v) { return load(x, {shifted(v[0], e[0]), v[1]}); }, 1, BinaryOp::kMax,
          -1e30);
      add("power", power, {e[0], e[1]},
          [&](const Axes& v) { return call(IntrinsicId::kExp, {load(x, v) - load(top, {v[0]})}); });
      add("sum", sum, {e[0], e[1]}, [&](const Axes& v) { return load(power, v); }, 1);
      add("share", out.output, {e[0], e[1]},
          [&](const Axes& v) { return load(power, v) / load(sum, {v[0]}); });
      break;
    }
    case 4: {
      const auto a = input("a", {e[0], e[1], e[2]}), b = input("b", {e[0], e[1], e[2]});
      const auto t = local("t", a->shape);
      out.output = tensor("y", a->shape);
      add("join", t, a->shape, [&](const Axes& v) {
        const Expr left = load(a, v), right = load(b, {shifted(v[0], e[0]), v[1], v[2]});
        return change == Change::kOperation || change == Change::kInit ? left - right
                                                                       : left + right;
      });
      add("clip", out.output, a->shape, [&](const Axes& v) { return relu(load(t, v)); });
      break;
    }
    default: {  // n c h w r s, input height and width
      const auto x = input("x", {e[0], e[1], e[6], e[7]});
      out.output = tensor("y", {e[0], e[1], e[2], e[3]});
      add(
          "pool", out.output, {e[0], e[1], e[2], e[3], e[4], e[5]},
          [&](const Axes& v) {
            return load(x, {v[0], shifted(v[1], e[1]), v[2] * 2 + v[4], v[3] * 2 + v[5]});
          },
          2, BinaryOp::kMax, -1e30);
    }
  }
  return out;
}

inline Ref<PrimFunc> pattern_of(int kind) {
  std::vector<Expr> symbols;
  for (int i = 0; i < 9; ++i) symbols.push_back(Var::size(fmt::format("n{}", i)));
  if (kind == 5) symbols[4] = symbols[5] = int64(2);  // no parameter shows the window
  Planted p = plant(kind, symbols, Change::kNone);
  std::vector<Ref<Buffer>> params = p.inputs;
  params.push_back(p.output);
  return function(params, p.locals, p.stmts);
}

/// Sizes of a target; extents above 1, so that every axis counts.
inline std::vector<Expr> sizes(int kind, Random& random) {
  std::vector<int64_t> e;
  for (int i = 0; i < 9; ++i) e.push_back(random.from(2, 6));
  if (kind == 2) {
    e[5] = e[6] = 3;
    e[7] = e[3] + 2;
    e[8] = e[4] + 2;
  }
  if (kind == 5) {
    e[4] = e[5] = 2;
    e[6] = e[2] * 2;
    e[7] = e[3] * 2;
  }
  return to_exprs(e);
}

/// The planted blocks with neighbours before, after and beside them.
inline Ref<PrimFunc> with_neighbours(Planted p, Random& random) {
  std::vector<Ref<Buffer>> params, allocs = p.locals;
  std::vector<Stmt> before, after, beside;
  int count = 0;
  const auto unary = [&](const Ref<Buffer>& from, const Ref<Buffer>& to) {
    const double factor = 1.5 + count;
    return compute(fmt::format("near{}", count++), to, from->shape,
                   [&](const Axes& v) { return load(from, v) * imm(kFloat32, factor); });
  };
  for (const Ref<Buffer>& input : p.inputs) {
    if (random.coin()) {
      params.push_back(input);
      continue;
    }
    params.push_back(tensor(input->name + "_raw", input->shape));
    allocs.push_back(input);
    before.push_back(unary(params.back(), input));
  }
  if (random.coin()) {
    params.push_back(p.output);
  } else {
    params.push_back(tensor("result", p.output->shape));
    allocs.push_back(p.output);
    after.push_back(unary(p.output, params.back()));
  }
  if (random.coin()) {
    params.push_back(tensor("q", std::vector<int64_t>{5}));
    params.push_back(tensor("r", std::vector<int64_t>{5}));
    (random.coin() ? before : after).push_back(unary(params[params.size() - 2], params.back()));
  }
  before.insert(before.end(), p.stmts.begin(), p.stmts.end());
  before.insert(before.end(), after.begin(), after.end());
  return function(params, allocs, before);
}

/// What may be done to it without changing what it means.
inline Ref<PrimFunc> scheduled(const Ref<PrimFunc>& function, Random& random) {
  Schedule sch(function);
  for (int step = 0; step < 8; ++step) {
    const auto blocks = sch.blocks();
    const BlockRV block = blocks[random.below(blocks.size())];
    const auto loops = sch.get_loops(block);
    const auto loop = [&]() { return loops[random.below(loops.size())]; };
    try {
      switch (loops.empty() ? 9 : random.below(10)) {
        case 0:
        case 1: sch.split(loop(), random.from(2, 4)); break;
        case 2: {
          const size_t i = random.below(loops.size()), j = random.below(loops.size());
          if (i != j) sch.reorder({loops[i], loops[j]});
          break;
        }
        case 3:
          if (loops.size() > 1) {
            const size_t i = random.below(loops.size() - 1);
            sch.fuse({loops[i], loops[i + 1]});
          }
          break;
        case 4: sch.parallel(loop()); break;
        case 5: sch.unroll(loop()); break;
        case 6: sch.decompose_reduction(block, loop()); break;
        case 7: sch.split_block_iter(block, random.from(0, 2), 2); break;
        case 8: {
          const auto consumers = sch.consumers(block);
          // A neighbour that reads each element once, so that nothing is computed twice.
          if (!consumers.empty() && consumers[0].name.starts_with("near"))
            sch.reverse_compute_at(consumers[0], loop());
          break;
        }
        default: sch.fuse_block_iters(block, 0, 2); break;
      }
    } catch (const CompileError&) {
    }
  }
  return sch.func();
}

inline Ref<PrimFunc> swapped(const Ref<PrimFunc>& function, Random& random) {
  return rewrite(function, [&](const NodePtr& node) -> std::optional<NodePtr> {
    const auto* op = node.as<Binary>();
    if (!op || op->dtype != kFloat32 || random.coin()) return std::nullopt;
    if (op->op != BinaryOp::kAdd && op->op != BinaryOp::kMul && op->op != BinaryOp::kMax)
      return std::nullopt;
    return NodePtr(make<Binary>(op->op, op->rhs, op->lhs));
  });
}

struct Order {
  Ref<Buffer> buffer;
  std::vector<size_t> dims;
  template <typename T>
  std::vector<T> of(const std::vector<T>& items) const {
    std::vector<T> out;
    for (const size_t d : dims) out.push_back(items[d]);
    return out;
  }
};

/// Every buffer with its dimensions in another order.
inline Ref<PrimFunc> permuted(const Ref<PrimFunc>& function, Random& random) {
  std::map<const Node*, Order> orders;
  const auto reorder = [&](const Ref<Buffer>& buffer) {
    Order order;
    for (size_t d = 0; d < buffer->ndim(); ++d)
      order.dims.insert(order.dims.begin() + static_cast<std::ptrdiff_t>(random.below(d + 1)), d);
    order.buffer = make<Buffer>(buffer->name, buffer->dtype, order.of(buffer->shape));
    orders[buffer.get()] = order;
    return order.buffer;
  };
  std::vector<Ref<Buffer>> params, allocs;
  for (const Ref<Buffer>& buffer : function->buffers) params.push_back(reorder(buffer));
  for (const Ref<Buffer>& buffer : root_block(*function)->alloc_buffers)
    allocs.push_back(reorder(buffer));
  const Stmt body =
      rewrite(root_block(*function)->body, [&](const NodePtr& node) -> std::optional<NodePtr> {
        if (const auto* access = node.as<BufferLoad>()) {
          const Order& order = orders.at(access->buffer.get());
          return NodePtr(load(order.buffer, order.of(access->indices)));
        }
        if (const auto* access = node.as<BufferStore>()) {
          const Order& order = orders.at(access->buffer.get());
          return NodePtr(make<BufferStore>(order.buffer, access->value, order.of(access->indices)));
        }
        if (const auto* access = node.as<BufferRegion>()) {
          const Order& order = orders.at(access->buffer.get());
          return NodePtr(make<BufferRegion>(order.buffer, order.of(access->region)));
        }
        return std::nullopt;
      });
  return testing::function(params, allocs, {body});
}

}  // namespace tenon::tir::testing
