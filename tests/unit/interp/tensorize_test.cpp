// SPDX-License-Identifier: Apache-2.0
// tensorize does not change what a function computes.
#include "tenon/tir/schedule/tensorize.h"

#include <gtest/gtest.h>

#include "../tir/schedule_kernels.h"
#include "tenon/interp/interpreter.h"
#include "tenon/tir/analysis/verifier.h"

namespace tenon {
namespace {

using tir::Buffer;
using tir::PrimFunc;
using tir::testing::compute;
using tir::testing::tensor;

/// c[2, 3] += a[2, 4] * b[4, 3]; of regions of larger buffers where `strided`.
Ref<PrimFunc> tile(bool strided) {
  const auto view = [&](const char* name, int64_t rows, int64_t columns) {
    Buffer::Options options;
    if (strided) options.strides = {Var::size(std::string(name) + "_row"), int64(1)};
    return make<Buffer>(name, kFloat32, to_exprs({rows, columns}), options);
  };
  const auto a = view("a", 2, 4), b = view("b", 4, 3), c = view("c", 2, 3);
  tir::Schedule sch(tir::testing::function(
      {a, b, c}, {},
      {compute(
          "tile", c, to_exprs({2, 3, 4}),
          [&](const auto& v) { return load(a, {v[0], v[2]}) * load(b, {v[2], v[1]}); }, 1)}));
  sch.decompose_reduction(sch.get_block("tile"), sch.get_loops(sch.get_block("tile"))[0]);
  return tir::testing::function({a, b, c}, {}, {stmts_of(root_block(*sch.func())->body).back()});
}

Ref<TensorData> numbers(const std::vector<int64_t>& shape) {
  std::vector<float> values;
  for (int64_t i = 0; i < shape[0] * shape[1]; ++i)
    values.push_back(static_cast<float>(i * 37 % 11 - 5));
  return TensorData::of(kFloat32, shape, values);
}

TEST(Tensorize, KeepsResults) {
  const auto x = tensor("x", std::vector<int64_t>{4, 8}),
             w = tensor("w", std::vector<int64_t>{8, 9});
  const auto y = tensor("y", std::vector<int64_t>{4, 9});
  const auto plain = tir::testing::function(
      {x, w, y}, {},
      {compute(
          "product", y, to_exprs({4, 9, 8}),
          [&](const auto& v) { return load(w, {v[2], v[1]}) * load(x, {v[0], v[2]}); }, 1)});
  tir::Schedule sch(plain);
  const auto loops = sch.get_loops(sch.get_block("product"));
  const auto i = sch.split(loops[0], 2), j = sch.split(loops[1], 3), k = sch.split(loops[2], 4);
  sch.reorder({j[0], i[0], k[0], k[1], i[1], j[1]});
  sch.tensorize(k[1], {"tile", "tile_kernel", tile(false), tile(true)});
  IRModule before, after;
  before.set("main", plain);
  after.set("main", sch.func());
  after.set("tile_kernel", tile(true));
  Diagnostics diagnostics;
  tir::verify(after, diagnostics);
  diagnostics.throw_if_any();
  const std::vector<Ref<TensorData>> inputs{numbers({4, 8}), numbers({8, 9}), {}};
  const auto a = interp::Interpreter(before).run_prim_func("main", inputs);
  const auto b = interp::Interpreter(after).run_prim_func("main", inputs);
  for (int64_t n = 0; n < 36; ++n) EXPECT_EQ(a[2]->at_float(n), b[2]->at_float(n)) << n;
}

}  // namespace
}  // namespace tenon
