// SPDX-License-Identifier: Apache-2.0
// Plain definitions of kernels, as operators lower to them, for tests and benchmarks of schedules.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tenon/tir/analysis/region.h"
#include "tenon/tir/stmt.h"

namespace tenon::tir::testing {

inline Ref<Buffer> tensor(const std::string& name, std::vector<Expr> shape) {
  return make<Buffer>(name, kFloat32, std::move(shape));
}
inline Ref<Buffer> tensor(const std::string& name, const std::vector<int64_t>& shape) {
  return tensor(name, to_exprs(shape));
}

/// A nest with one block that stores `value(axes)` at `indices(axes)`; the last `reduce` axes are
/// reductions that add up to what starts at `start`.
inline Stmt compute(const std::string& name, const Ref<Buffer>& to,
                    const std::vector<Expr>& extents,
                    const std::function<Expr(const std::vector<Expr>&)>& value, size_t reduce = 0,
                    BinaryOp op = BinaryOp::kAdd, double start = 0,
                    const std::function<std::vector<Expr>(const std::vector<Expr>&)>& at = {}) {
  std::vector<Ref<Var>> loops;
  std::vector<Expr> values, axes;
  Block::Parts parts;
  parts.name = name;
  for (size_t i = 0; i < extents.size(); ++i) {
    loops.push_back(var(fmt::format("i{}", i)));
    const Ref<Var> axis = var(fmt::format("v{}", i));
    parts.iter_vars.push_back(
        {axis,
         {int64(0), extents[i]},
         i + reduce >= extents.size() ? IterKind::kReduce : IterKind::kSpatial});
    values.push_back(loops.back());
    axes.push_back(axis);
  }
  std::vector<Expr> place =
      at ? at(axes)
         : std::vector<Expr>(axes.begin(), axes.end() - static_cast<std::ptrdiff_t>(reduce));
  Expr result = value(axes);
  if (reduce) {
    parts.init = make<BufferStore>(to, imm(kFloat32, start), place);
    result = binary(op, load(to, place), result);
  }
  parts.body = make<BufferStore>(to, result, place);
  const auto block = with_accesses(make<Block>(std::move(parts)));
  return nest(loops, extents, make<BlockRealize>(values, boolean(true), block));
}

inline Ref<PrimFunc> function(std::vector<Ref<Buffer>> params, std::vector<Ref<Buffer>> allocs,
                              std::vector<Stmt> stmts) {
  Block::Parts root;
  root.name = "root";
  root.alloc_buffers = std::move(allocs);
  root.body = seq(std::move(stmts));
  return PrimFunc::of_buffers(
      std::move(params),
      make<BlockRealize>(std::vector<Expr>{}, boolean(true), make<Block>(std::move(root))),
      {{"tir.noalias", true}});
}

inline Expr relu(const Expr& x) { return max(x, imm(kFloat32, 0.0)); }

/// out[m, n] = relu(sum_k a[m, k] * b[n // nr, k, n % nr] + bias[n]); `plain`: the product alone.
inline Ref<PrimFunc> dense(Expr m, int64_t n, int64_t k, int64_t nr, bool plain = false) {
  const auto a = tensor("a", {m, int64(k)}), b = tensor("b", {(n + nr - 1) / nr, k, nr});
  const auto bias = tensor("bias", std::vector<int64_t>{n}), out = tensor("out", {m, int64(n)});
  const auto t = tensor("t", {m, int64(n)});
  const auto product = [&](const Ref<Buffer>& to) {
    return compute(
        "matmul", to, {m, int64(n), int64(k)},
        [&](const std::vector<Expr>& v) {
          return load(a, {v[0], v[2]}) * load(b, {floordiv(v[1], nr), v[2], floormod(v[1], nr)});
        },
        1);
  };
  if (plain) return function({a, b, out}, {}, {product(out)});
  const auto t2 = tensor("t2", {m, int64(n)});
  return function({a, b, bias, out}, {t, t2},
                  {product(t),
                   compute("add", t2, {m, int64(n)},
                           [&](const std::vector<Expr>& v) {
                             return load(t, {v[0], v[1]}) + load(bias, {v[1]});
                           }),
                   compute("relu", out, {m, int64(n)}, [&](const std::vector<Expr>& v) {
                     return relu(load(t2, {v[0], v[1]}));
                   })});
}

/// A convolution over [1, ic/v, h, w, v] with weights [oc/v/g][ic/v][kh][kw][v][g*v], bias,
/// optional residual, relu.
struct Conv {
  int64_t ic, oc, h, w, kernel = 1, stride = 1, pad = 0, v = 16, group = 1;
  bool residual = false;
};
inline Ref<PrimFunc> conv(const Conv& c) {
  const int64_t icb = (c.ic + c.v - 1) / c.v, ocb = (c.oc + c.v - 1) / c.v;
  const int64_t oh = (c.h + 2 * c.pad - c.kernel) / c.stride + 1;
  const int64_t ow = (c.w + 2 * c.pad - c.kernel) / c.stride + 1;
  const auto x = tensor("x", {1, icb, c.h, c.w, c.v});
  const auto w = tensor("w", {ocb / c.group, icb, c.kernel, c.kernel, c.v, c.v * c.group});
  const auto bias = tensor("bias", {ocb, c.v});
  const std::vector<int64_t> shape{1, ocb, oh, ow, c.v};
  const auto r = tensor("r", shape), out = tensor("out", shape);
  const auto t = tensor("t", shape), t2 = tensor("t2", shape), t3 = tensor("t3", shape);
  std::vector<Stmt> stmts;
  std::vector<Ref<Buffer>> allocs;
  Ref<Buffer> in = x;
  if (c.pad) {
    in = tensor("p", {1, icb, c.h + 2 * c.pad, c.w + 2 * c.pad, c.v});
    allocs.push_back(in);
    stmts.push_back(compute("pad", in, in->shape, [&](const std::vector<Expr>& v) {
      const Expr y = v[2] - c.pad, z = v[3] - c.pad;
      const Expr inside = logical_and(logical_and(int64(c.pad) <= v[2], v[2] < int64(c.h + c.pad)),
                                      logical_and(int64(c.pad) <= v[3], v[3] < int64(c.w + c.pad)));
      return if_then_else(inside, load(x, {v[0], v[1], y, z, v[4]}), imm(kFloat32, 0.0));
    }));
  }
  stmts.push_back(compute(
      "conv", t, to_exprs({1, ocb, oh, ow, c.v, icb, c.kernel, c.kernel, c.v}),
      [&](const std::vector<Expr>& v) {
        return load(in, {v[0], v[5], v[2] * c.stride + v[6], v[3] * c.stride + v[7], v[8]}) *
               load(w, {floordiv(v[1], c.group), v[5], v[6], v[7], v[8],
                        floormod(v[1], c.group) * c.v + v[4]});
      },
      4));
  stmts.push_back(compute("add", t2, to_exprs(shape), [&](const std::vector<Expr>& v) {
    return load(t, v) + load(bias, {v[1], v[4]});
  }));
  Ref<Buffer> last = t2;
  allocs.push_back(t);
  allocs.push_back(t2);
  if (c.residual) {
    allocs.push_back(t3);
    stmts.push_back(compute("residual", t3, to_exprs(shape),
                            [&](const std::vector<Expr>& v) { return load(t2, v) + load(r, v); }));
    last = t3;
  }
  stmts.push_back(compute("relu", out, to_exprs(shape),
                          [&](const std::vector<Expr>& v) { return relu(load(last, v)); }));
  return function({x, w, bias, r, out}, allocs, stmts);
}

/// A convolution over planar input [1, ic, h, w], already padded, with weights
/// [oc/v/g][ic][kh][kw][g*v], bias, relu; blocked output.
inline Ref<PrimFunc> planar_conv(const Conv& c) {
  const int64_t ocb = (c.oc + c.v - 1) / c.v;
  const int64_t height = c.h + 2 * c.pad, width = c.w + 2 * c.pad;
  const int64_t oh = (height - c.kernel) / c.stride + 1, ow = (width - c.kernel) / c.stride + 1;
  const auto x = tensor("x", {1, c.ic, height, width});
  const auto w = tensor("w", {ocb / c.group, c.ic, c.kernel, c.kernel, c.v * c.group});
  const auto bias = tensor("bias", {ocb, c.v});
  const std::vector<int64_t> shape{1, ocb, oh, ow, c.v};
  const auto out = tensor("out", shape), t = tensor("t", shape);
  const Stmt product = compute(
      "conv", t, to_exprs({1, ocb, oh, ow, c.v, c.ic, c.kernel, c.kernel}),
      [&](const std::vector<Expr>& v) {
        return load(x, {v[0], v[5], v[2] * c.stride + v[6], v[3] * c.stride + v[7]}) *
               load(w, {floordiv(v[1], c.group), v[5], v[6], v[7],
                        floormod(v[1], c.group) * c.v + v[4]});
      },
      3);
  return function({x, w, bias, out}, {t},
                  {product, compute("relu", out, to_exprs(shape), [&](const std::vector<Expr>& v) {
                     return relu(load(t, v) + load(bias, {v[1], v[4]}));
                   })});
}

/// A depthwise convolution over blocked input, already padded, with relu.
inline Ref<PrimFunc> depthwise(const Conv& c) {
  const int64_t blocks = (c.ic + c.v - 1) / c.v;
  const int64_t height = c.h + 2 * c.pad, width = c.w + 2 * c.pad;
  const int64_t oh = (height - c.kernel) / c.stride + 1, ow = (width - c.kernel) / c.stride + 1;
  const auto x = tensor("x", {1, blocks, height, width, c.v});
  const auto w = tensor("w", {blocks, c.kernel, c.kernel, c.v});
  const std::vector<int64_t> shape{1, blocks, oh, ow, c.v};
  const auto out = tensor("out", shape), t = tensor("t", shape);
  const Stmt product = compute(
      "depthwise", t, to_exprs({1, blocks, oh, ow, c.v, c.kernel, c.kernel}),
      [&](const std::vector<Expr>& v) {
        return load(x, {v[0], v[1], v[2] * c.stride + v[5], v[3] * c.stride + v[6], v[4]}) *
               load(w, {v[1], v[5], v[6], v[4]});
      },
      2);
  return function({x, w, out}, {t},
                  {product, compute("relu", out, to_exprs(shape),
                                    [&](const std::vector<Expr>& v) { return relu(load(t, v)); })});
}

/// Products of two variables, as attention has them: q [heads, m, d] by the transpose of
/// k [heads, n, d] (`scores`), or by v [heads, d, n].
inline Ref<PrimFunc> batched(int64_t heads, const Expr& m, const Expr& n, const Expr& d,
                             bool scores) {
  const auto a = tensor("a", {int64(heads), m, d});
  const auto b = tensor(
      "b", scores ? std::vector<Expr>{int64(heads), n, d} : std::vector<Expr>{int64(heads), d, n});
  const auto out = tensor("out", {int64(heads), m, n});
  return function({a, b, out}, {},
                  {compute(
                      "product", out, {int64(heads), m, n, d},
                      [&](const std::vector<Expr>& v) {
                        return load(a, {v[0], v[1], v[3]}) *
                               (scores ? load(b, {v[0], v[2], v[3]}) : load(b, {v[0], v[3], v[2]}));
                      },
                      1)});
}

}  // namespace tenon::tir::testing
