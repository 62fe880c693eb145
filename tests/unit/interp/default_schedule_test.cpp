// SPDX-License-Identifier: Apache-2.0
// The default schedule keeps what kernels compute: operators of every kind, on small odd sizes, for
// two vector widths.
#include "tenon/tir/schedule/default_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tenon/graph/builder.h"
#include "tenon/graph/transforms.h"
#include "tenon/interp/interpreter.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {
namespace {

Ref<TensorData> random_tensor(const Ref<TensorType>& type, uint32_t seed) {
  const std::vector<int64_t> shape = *as_ints(*type->shape);
  uint32_t state = seed * 2654435761U + 12345U;
  const auto next = [&] { return state = state * 1664525U + 1013904223U; };
  const auto count = static_cast<size_t>(checked_elements(shape));
  if (type->dtype == kInt64) {
    std::vector<int64_t> values(count);
    for (int64_t& value : values) value = static_cast<int64_t>(next() >> 20) % 3;
    return TensorData::of<int64_t>(kInt64, shape, values);
  }
  std::vector<float> values(count);
  for (float& value : values)
    value = static_cast<float>(next() >> 8) / static_cast<float>(1 << 23) - 1.0F;
  return TensorData::of<float>(kFloat32, shape, values);
}

using Arguments = std::vector<Value>;

struct Case {
  const char* name;
  std::vector<std::vector<int64_t>> shapes;
  std::function<Value(BlockBuilder&, const Arguments&)> body;
  double tolerance = 0;  // 0: bit for bit
  int index_inputs = 0;  // so many of the last inputs are int64
  // A dimension of this extent is a variable of the kernel, where it is not 0.
  int64_t symbolic = 0;
};

Attrs ints(const std::string& name, const std::vector<int64_t>& values) {
  return {{name, AttrValue(values)}};
}
Value softmax(BlockBuilder& b, const Value& x, int64_t axis) {
  return b.op("nn.softmax", {x}, {{"axis", axis}});
}
Value lstm_states(BlockBuilder& b, const std::vector<Value>& x) {
  return b.op("nn.lstm_recurrence", x,
              {{"direction", "forward"}, {"activations", AttrList{"sigmoid", "tanh", "tanh"}}});
}
constexpr double kClose = 1e-5;

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"relu", {{3, 7, 37}}, [](auto& b, auto& x) { return b.op("nn.relu", {x[0]}); }},
      {"matmul_no_rows", {{2, 0, 7}, {7, 15}}, [](auto& b, auto& x) { return b.op("matmul", x); }},
      {"conv_transpose_no_rows",
       {{1, 4, 2, 17}, {15, 17, 1, 3}},
       [](auto& b, auto& x) {
         return b.op("nn.conv2d_transpose", x,
                     {{"padding", AttrList{2, 0, 2, 0}},
                      {"data_layout", "NHWC"},
                      {"kernel_layout", "OIHW"}});
       },
       kClose},
      {"long_add", {{5, 4099}, {5, 4099}}, [](auto& b, auto& x) { return b.op("add", x); }},
      {"broadcast_add", {{2, 5, 19}, {5, 1}}, [](auto& b, auto& x) { return b.op("add", x); }},
      {"rows_add", {{33, 19}, {19}}, [](auto& b, auto& x) { return b.op("add", x); }},
      {"chain",
       {{4, 45}, {4, 45}},
       [](auto& b, auto& x) {
         return b.op("multiply", {b.op("sigmoid", {b.op("add", x)}), x[0]});
       }},
      {"swap_inner",
       {{3, 21, 35}},
       [](auto& b, auto& x) { return b.op("permute_dims", {x[0]}, ints("axes", {0, 2, 1})); }},
      {"swap_blocks",
       {{1, 64, 48}},
       [](auto& b, auto& x) { return b.op("permute_dims", {x[0]}, ints("axes", {0, 2, 1})); }},
      {"split_heads",
       {{1, 9, 4, 16}},
       [](auto& b, auto& x) { return b.op("permute_dims", {x[0]}, ints("axes", {0, 2, 1, 3})); }},
      {"reverse_axes",
       {{5, 6, 7, 18}},
       [](auto& b, auto& x) { return b.op("permute_dims", {x[0]}, ints("axes", {3, 2, 1, 0})); }},
      {"block_channels",
       {{1, 20, 5, 6}},
       [](auto& b, auto& x) {
         return b.op("layout_transform", {x[0]},
                     {{"src_layout", "NCHW"}, {"dst_layout", "NCHW16c"}});
       }},
      {"join_channels",
       {{1, 2, 5, 6, 16}},
       [](auto& b, auto& x) {
         return b.op("layout_transform", {x[0]},
                     {{"src_layout", "NCHW16c"}, {"dst_layout", "NCHW"}});
       }},
      {"concat",
       {{2, 5, 9}, {2, 3, 9}},
       [](auto& b, auto& x) {
         return b.op("concat", {make<Tuple>(std::vector<Value>{x[0], x[1]})},
                     {{"axis", int64_t{1}}});
       }},
      {"sum_inner",
       {{3, 5, 77}},
       [](auto& b, auto& x) { return b.op("sum", {x[0]}, ints("axis", {2})); },
       kClose},
      {"sum_short",
       {{6, 5}},
       [](auto& b, auto& x) { return b.op("sum", {x[0]}, ints("axis", {1})); },
       kClose},
      {"sum_outer",
       {{9, 3, 45}},
       [](auto& b, auto& x) { return b.op("sum", {x[0]}, ints("axis", {0})); },
       kClose},
      {"sum_middle",
       {{2, 9, 37}},
       [](auto& b, auto& x) { return b.op("mean", {x[0]}, ints("axis", {1})); },
       kClose},
      {"sum_all", {{7, 131}}, [](auto& b, auto& x) { return b.op("sum", {x[0]}); }, kClose},
      {"max_inner",
       {{4, 83}},
       [](auto& b, auto& x) { return b.op("max", {x[0]}, ints("axis", {1})); }},
      {"mean_of_square",
       {{4, 83}},
       [](auto& b, auto& x) {
         return b.op("mean", {b.op("multiply", {x[0], x[0]})}, ints("axis", {1}));
       },
       kClose},
      {"argmax",
       {{4, 83}},
       [](auto& b, auto& x) { return b.op("argmax", {x[0]}, ints("axis", {1})); }},
      {"softmax", {{7, 45}}, [](auto& b, auto& x) { return softmax(b, x[0], -1); }, kClose},
      {"softmax_even", {{2, 3, 64}}, [](auto& b, auto& x) { return softmax(b, x[0], -1); }, kClose},
      {"softmax_channels",
       {{2, 5, 37}},
       [](auto& b, auto& x) { return softmax(b, x[0], 1); },
       kClose},
      {"softmax_vector", {{131}}, [](auto& b, auto& x) { return softmax(b, x[0], 0); }, kClose},
      {"log_softmax",
       {{7, 45}},
       [](auto& b, auto& x) { return b.op("nn.log_softmax", {x[0]}); },
       kClose},
      {"masked_softmax",
       {{2, 3, 9, 33}, {2, 1, 1, 33}},
       [](auto& b, auto& x) { return softmax(b, b.op("add", x), -1); },
       kClose},
      {"layer_norm",
       {{9, 77}, {77}, {77}},
       [](auto& b, auto& x) { return b.op("nn.layer_norm", x, ints("axes", {-1})); },
       kClose},
      {"add_layer_norm",
       {{9, 96}, {9, 96}, {96}, {96}},
       [](auto& b, auto& x) {
         return b.op("nn.layer_norm", {b.op("add", {x[0], x[1]}), x[2], x[3]}, ints("axes", {-1}));
       },
       kClose},
      {"rms_norm",
       {{9, 77}, {77}},
       [](auto& b, auto& x) { return b.op("nn.rms_norm", x, ints("axes", {-1})); },
       kClose},
      {"group_norm",
       {{2, 6, 5, 7}, {6}, {6}},
       [](auto& b, auto& x) { return b.op("nn.group_norm", x, {{"num_groups", int64_t{3}}}); },
       kClose},
      {"instance_norm",
       {{2, 5, 6, 7}, {5}, {5}},
       [](auto& b, auto& x) { return b.op("nn.instance_norm", x); },
       kClose},
      {"batch_norm",
       {{2, 5, 6, 7}, {5}, {5}, {5}, {5}},
       [](auto& b, auto& x) {
         const Value var = b.op("add", {b.op("abs", {x[4]}), b.op("abs", {x[1]})});
         return b.emit(make<TupleGetItem>(
             b.op("nn.batch_norm", {x[0], x[1], x[2], x[3], var}, {{"training", false}}), 0));
       },
       kClose},
      {"max_pool_blocked",
       {{1, 2, 13, 15, 16}},
       [](auto& b, auto& x) {
         return b.op("nn.max_pool2d", {x[0]},
                     {{"pool_size", AttrValue(std::vector<int64_t>{3, 3})},
                      {"strides", AttrValue(std::vector<int64_t>{2, 2})},
                      {"padding", AttrValue(std::vector<int64_t>{1, 1, 1, 1})},
                      {"layout", "NCHW16c"}});
       }},
      {"max_pool",
       {{1, 3, 13, 15}},
       [](auto& b, auto& x) {
         return b.op("nn.max_pool2d", {x[0]},
                     {{"pool_size", AttrValue(std::vector<int64_t>{2, 2})},
                      {"strides", AttrValue(std::vector<int64_t>{2, 2})}});
       }},
      {"grouped_transposed_conv",
       {{1, 8, 5, 5}, {8, 3, 3, 3}},
       [](auto& b, auto& x) {
         return b.op("nn.conv2d_transpose", {x[0], x[1]},
                     {{"strides", AttrValue(std::vector<int64_t>{2, 2})},
                      {"padding", AttrValue(std::vector<int64_t>{1, 1, 1, 1})},
                      {"groups", int64_t{2}}});
       },
       kClose},
      // 24 input channels in two blocks of 16, the second half empty; weights in blocks of 8.
      {"conv_half_block",
       {{1, 2, 9, 10, 16}, {1, 3, 3, 3, 8, 32}},
       [](auto& b, auto& x) {
         return b.op("nn.conv2d", {x[0], x[1]},
                     {{"padding", AttrValue(std::vector<int64_t>{1, 1, 1, 1})},
                      {"data_layout", "NCHW16c"},
                      {"kernel_layout", "OIHW8i32o"},
                      {"out_layout", "NCHW16c"}});
       },
       kClose},
      {"avg_pool_blocked",
       {{1, 2, 9, 10, 16}},
       [](auto& b, auto& x) {
         return b.op("nn.avg_pool2d", {x[0]},
                     {{"pool_size", AttrValue(std::vector<int64_t>{3, 3})},
                      {"padding", AttrValue(std::vector<int64_t>{1, 1, 1, 1})},
                      {"layout", "NCHW16c"}});
       },
       kClose},
      {"avg_pool",
       {{1, 3, 9, 21}},
       [](auto& b, auto& x) {
         return b.op("nn.avg_pool2d", {x[0]},
                     {{"pool_size", AttrValue(std::vector<int64_t>{3, 3})},
                      {"padding", AttrValue(std::vector<int64_t>{1, 1, 1, 1})}});
       },
       kClose},
      {"global_pool_blocked",
       {{1, 3, 7, 7, 16}},
       [](auto& b, auto& x) {
         return b.op(
             "nn.adaptive_avg_pool2d", {x[0]},
             {{"output_size", AttrValue(std::vector<int64_t>{1, 1})}, {"layout", "NCHW16c"}});
       },
       kClose},
      {"global_pool",
       {{2, 9, 7, 7}},
       [](auto& b, auto& x) {
         return b.op("nn.adaptive_avg_pool2d", {x[0]},
                     {{"output_size", AttrValue(std::vector<int64_t>{1, 1})}});
       },
       kClose},
      {"cumsum",
       {{5, 37}},
       [](auto& b, auto& x) { return b.op("cumsum", {x[0]}, {{"axis", int64_t{0}}}); },
       kClose},
      {"centred_rows",
       {{6, 40}},
       [](auto& b, auto& x) {
         // The mean of columns and the sum of rows, in one kernel or not.
         const Value mean = b.op(
             "mean", {x[0]}, {{"axis", AttrValue(std::vector<int64_t>{0})}, {"keepdims", true}});
         return b.op("sum", {b.op("subtract", {x[0], mean})}, ints("axis", {1}));
       },
       kClose},
      {"cumsum_inner",
       {{5, 37}},
       [](auto& b, auto& x) { return b.op("cumsum", {x[0]}, {{"axis", int64_t{1}}}); }},
      {"lstm_steps",
       {{3, 1, 1, 4, 32}, {1, 4, 32, 32}, {1, 1, 32}, {1, 1, 32}},
       [](auto& b, auto& x) { return lstm_states(b, x); },
       kClose},
      {"lstm_odd_units",
       {{3, 4, 1, 4, 21}, {1, 4, 21, 21}, {1, 4, 21}, {1, 4, 21}},
       [](auto& b, auto& x) { return lstm_states(b, x); },
       kClose},
      {"lstm_steps_in_tasks",
       {{2, 2, 1, 4, 192}, {1, 4, 192, 192}, {1, 2, 192}, {1, 2, 192}},
       [](auto& b, auto& x) { return lstm_states(b, x); },
       kClose},
      {"gru_steps_in_tasks",
       {{2, 1, 1, 3, 256}, {1, 3, 256, 256}, {1, 1, 256}},
       [](auto& b, auto& x) {
         return b.op("nn.gru_recurrence", x,
                     {{"direction", "forward"}, {"activations", AttrList{"sigmoid", "tanh"}}});
       },
       kClose},
      {"relu_of_any_batch",
       {{3, 37}},
       [](auto& b, auto& x) { return b.op("nn.relu", {x[0]}); },
       0,
       0,
       3},
      {"relu_of_any_length",
       {{2, 37}},
       [](auto& b, auto& x) { return b.op("nn.relu", {x[0]}); },
       0,
       0,
       37},
      {"softmax_of_any_length",
       {{4, 37}},
       [](auto& b, auto& x) { return softmax(b, x[0], -1); },
       kClose,
       0,
       37},
      {"softmax_of_any_batch",
       {{5, 3, 45}},
       [](auto& b, auto& x) { return softmax(b, x[0], -1); },
       kClose,
       0,
       5},
      {"layer_norm_of_any_rows",
       {{9, 77}, {77}, {77}},
       [](auto& b, auto& x) { return b.op("nn.layer_norm", x, ints("axes", {-1})); },
       kClose,
       0,
       9},
      {"transpose_of_any_length",
       {{2, 19, 24}},
       [](auto& b, auto& x) { return b.op("permute_dims", {x[0]}, ints("axes", {0, 2, 1})); },
       0,
       0,
       19},
      {"sum_of_any_rows",
       {{19, 40}},
       [](auto& b, auto& x) { return b.op("sum", {x[0]}, ints("axis", {0})); },
       kClose,
       0,
       19},
      {"max_pool_of_any_batch",
       {{3, 2, 9, 11, 16}},
       [](auto& b, auto& x) {
         return b.op("nn.max_pool2d", {x[0]},
                     {{"pool_size", AttrValue(std::vector<int64_t>{3, 3})},
                      {"padding", AttrValue(std::vector<int64_t>{1, 1, 1, 1})},
                      {"layout", "NCHW16c"}});
       },
       0,
       0,
       3},
      {"lstm_of_any_length",
       {{3, 1, 1, 4, 32}, {1, 4, 32, 32}, {1, 1, 32}, {1, 1, 32}},
       [](auto& b, auto& x) { return lstm_states(b, x); },
       kClose,
       0,
       3},
      {"take",
       {{3, 37}, {4, 5}},
       [](auto& b, auto& x) { return b.op("take", {x[0], x[1]}, {{"axis", int64_t{0}}}); },
       0,
       1},
      {"strided_slice",
       {{5, 40}},
       [](auto& b, auto& x) {
         const auto list = [](std::vector<int64_t> v) { return make<ShapeExpr>(to_exprs(v)); };
         return b.op("nn.relu",
                     {b.op("strided_slice", {x[0], list({1}), list({3}), list({39}), list({2})})});
       }},
      {"cast",
       {{3, 50}},
       [](auto& b, auto& x) { return b.op("astype", {x[0]}, {{"dtype", kInt64}}); }},
  };
  return all;
}

IRModule fused(const Case& c) {
  std::vector<Ref<Var>> params;
  const Ref<tenon::Var> n = tenon::Var::size("n");
  for (size_t i = 0; i < c.shapes.size(); ++i) {
    std::vector<Expr> shape = to_exprs(c.shapes[i]);
    for (Expr& dim : shape)
      if (c.symbolic && is_int(dim, c.symbolic)) dim = n;
    const bool index = i + static_cast<size_t>(c.index_inputs) >= c.shapes.size();
    params.push_back(
        make<Var>("x" + std::to_string(i), make<TensorType>(shape, index ? kInt64 : kFloat32)));
  }
  IRModule module;
  BlockBuilder builder(module);
  builder.begin_function(params);
  builder.begin_dataflow();
  const Value result = c.body(builder, Arguments(params.begin(), params.end()));
  builder.end_dataflow();
  module.set("main", builder.end_function(result));
  return fuse_tir(fuse_ops(legalize_ops(std::move(module))));
}

class DefaultSchedule : public testing::TestWithParam<std::tuple<size_t, const char*>> {};

// Both compute the same of random inputs.
void expect_same(const Case& c, const IRModule& before, const IRModule& after, double tolerance) {
  std::vector<Ref<TensorData>> inputs;
  for (size_t i = 0; i < c.shapes.size(); ++i) {
    const bool index = i + static_cast<size_t>(c.index_inputs) >= c.shapes.size();
    inputs.push_back(random_tensor(TensorType::of(c.shapes[i], index ? kInt64 : kFloat32),
                                   static_cast<uint32_t>(i + 1)));
  }
  const auto expected = interp::Interpreter(before).run_main(inputs);
  const auto got = interp::Interpreter(after).run_main(inputs);
  ASSERT_EQ(expected.size(), got.size());
  for (size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(expected[k]->shape, got[k]->shape);
    for (int64_t i = 0; i < got[k]->elements(); ++i) {
      const double want = expected[k]->at_float(i);
      ASSERT_NEAR(want, got[k]->at_float(i), tolerance * (1 + std::fabs(want))) << i;
    }
  }
}

IRModule for_target(IRModule module, const char* target) {
  module.attrs.set("target", parse_target(target).str());
  return module;
}

TEST_P(DefaultSchedule, KeepsTheResult) {
  const Case& c = cases()[std::get<0>(GetParam())];
  const IRModule before = fused(c);
  expect_same(c, before, tir::default_schedule(for_target(before, std::get<1>(GetParam()))),
              c.tolerance);
}

using Json = nlohmann::json;

class Changes {
 public:
  explicit Changes(uint32_t seed) : state_(seed * 2654435761U + 12345U) {}

  // One decision of a nest becomes another. What would follow from the old one is left out.
  void change(Json& nest) {
    const char* sides[] = {"rows", "columns", "vectors"};
    const char* roles[] = {"batch", "m", "n", "k"};
    switch (below(7)) {
      case 0:
      case 1: nest["tile"][sides[below(3)]] = 1 + below(6); break;
      case 2: {
        Json& axes = nest[roles[below(4)]];
        std::reverse(axes.begin(), axes.end());
        break;
      }
      case 3:
        nest["tasks"] = {
            {"of", sides[below(2)]}, {"count", 2 + below(3)}, {"outside", below(2) == 1}};
        break;
      case 4: nest["unrolled_fmas"] = 16 * below(3); break;
      case 5: nest = {{"lanes", std::max<int64_t>(1, nest.value("lanes", 1) / 2)}}; break;
      default: nest = {{"joins_rows", false}}; break;
    }
  }
  uint32_t below(uint32_t count) {
    state_ = state_ * 1664525U + 1013904223U;
    return (state_ >> 16) % count;
  }

 private:
  uint32_t state_;
};

// A plan that somebody changed by hand fits and computes the same, or is told of; it never fits and
// computes something else.
TEST_P(DefaultSchedule, KeepsTheResultWithOtherPlans) {
  const Case& c = cases()[std::get<0>(GetParam())];
  const IRModule before = fused(c);
  const IRModule input = for_target(before, std::get<1>(GetParam()));
  Json chosen = {{"version", 1}, {"plans", Json::array()}};
  {
    const RemarkScope remarks;
    tir::default_schedule(input);
    for (const Remark& remark : remarks.remarks())
      if (!remark.choice.empty()) chosen["plans"].push_back(Json::parse(remark.choice));
  }
  const auto planned = [&](const Json& plans) {
    return tir::schedule_by_plans(input, tir::read_plans(std::make_shared<const SourceFile>(
                                             SourceFile{"plans.json", plans.dump(2)})));
  };
  ASSERT_TRUE(structural_equal(planned(chosen), tir::default_schedule(input)));
  for (uint32_t seed = 0; seed < 12; ++seed) {
    Json other = chosen;
    Changes changes(seed);
    for (Json& plan : other["plans"])
      for (Json& nest : plan["nests"]) changes.change(nest);
    if (seed % 4 == 3 && !other["plans"].empty()) other["plans"].back()["serial"] = true;
    SCOPED_TRACE(other.dump(1));
    if (other == chosen) continue;
    try {
      expect_same(c, before, planned(other), std::max(c.tolerance, kClose));
    } catch (const CompileError& error) {
      EXPECT_EQ(error.first().code.name, "bad-plan") << error.what();
    }
  }
}

std::string name_of(const testing::TestParamInfo<std::tuple<size_t, const char*>>& info) {
  return std::string(cases()[std::get<0>(info.param)].name) +
         (std::string_view(std::get<1>(info.param)).ends_with("512") ? "_avx512" : "_avx2");
}

INSTANTIATE_TEST_SUITE_P(Kernels, DefaultSchedule,
                         testing::Combine(testing::Range(size_t{0}, cases().size()),
                                          testing::Values("llvm -mcpu=haswell",
                                                          "llvm -mcpu=skylake-avx512")),
                         name_of);

}  // namespace
}  // namespace tenon::graph
