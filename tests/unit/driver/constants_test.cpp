// SPDX-License-Identifier: Apache-2.0
// What computing constants may cost, and how often they are in memory.
#include <gtest/gtest.h>

#include <set>

#include "tenon/driver/commands.h"
#include "tenon/driver/evaluate.h"
#include "tenon/driver/linked_program.h"
#include "tenon/ir/visit.h"
#include "tenon/script/parser.h"

namespace tenon {
namespace {

Ref<TensorData> numbers(std::vector<int64_t> shape) {
  std::vector<float> values(static_cast<size_t>(checked_elements(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<int64_t>(i * 7919 % 20011) - 10000) / 3001.F;
  return TensorData::of(kFloat32, std::move(shape), values);
}

TEST(ConstantEvaluator, AKernelThatIsTooMuchLeavesTheWorkToOthers) {
  const IRModule module = script::parse_module(R"(
@I.ir_module
class Module:
    @T.prim_func
    def endless(w: T.Buffer((4,), "float32"), s: T.Buffer((4,), "float32")):
        for i, k in T.grid(4, 100000000):
            with T.block("sum"):
                i_1, k_1 = T.axis.remap("SR", [i, k])
                with T.init():
                    s[i_1] = T.float32(0)
                s[i_1] = s[i_1] + w[i_1] * w[k_1 % 4]

    @T.prim_func
    def short(w: T.Buffer((4,), "float32"), s: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("double"):
                i_1 = T.axis.spatial(4, i)
                s[i_1] = w[i_1] + w[i_1]

    @R.function
    def main(w: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.endless, (w,), out_sinfo=R.Tensor((4,), "float32"))
            b = R.call_tir(cls.short, (a,), out_sinfo=R.Tensor((4,), "float32"))
            R.output(b)
        return b
)");
  const graph::Value weights =
      make<graph::Constant>(TensorData::of(kFloat32, {4}, std::vector<float>{1, 2, 3, 4}));
  const graph::ConstantEvaluator evaluate = constant_evaluator();
  std::vector<std::optional<graph::Value>> made;
  walk<graph::Call>(module.find("main"), [&](const graph::Call& call) {
    if (!call.is("call_tir")) return;
    made.push_back(evaluate(
        module, make<graph::Call>(call.op,
                                  std::vector<graph::Value>{
                                      call.args[0], make<graph::Tuple>(std::vector{weights})},
                                  call.attrs, call.type_args)));
  });
  ASSERT_EQ(made.size(), 2U);
  EXPECT_FALSE(made[0]);
  ASSERT_TRUE(made[1]);
  EXPECT_EQ(made[1]->as<graph::Constant>()->data->at_float(3), 8);
}

TEST(Constants, AreInMemoryOnceWhenLinked) {
  const IRModule module = script::parse_module(R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((64, 64), "float32"), w: R.Tensor((64, 64), "float32")) -> R.Tensor((64, 64), "float32"):
        with R.dataflow():
            y = R.subtract(x, w)
            R.output(y)
        return y
)");
  const Ref<TensorData> weights = numbers({64, 64});
  std::weak_ptr<const void> original;
  BuiltModel built;
  {
    const auto bytes = weights->data();
    const auto copy = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
    original = copy;
    TargetOptions options;
    options.model.bound_params["w"] = TensorData::view(kFloat32, {64, 64}, *copy, copy);
    built = build(module, "m", options, {});
  }
  built.prepared = {};
  ASSERT_FALSE(original.expired());
  const auto program = link_in_place(built);
  // Neither the module nor the code holds what it was made of: both look at the program's memory.
  EXPECT_TRUE(original.expired());
  ASSERT_EQ(built.code->constants.items.size(), 1U);
  const auto* place = built.code->constants.items[0].data->data().data();
  int found = 0;
  for (const auto& [name, function] : built.lowered.pipeline.module.functions())
    walk<tir::AllocConst>(function, [&](const tir::AllocConst& constant) {
      EXPECT_EQ(constant.data->data().data(), place);
      ++found;
    });
  EXPECT_EQ(found, 1);
  const auto outputs = compiled(program)->run({weights});
  for (const float y : outputs.at(0)->as_span<float>()) ASSERT_EQ(y, 0);
  // It can be linked again, from there.
  EXPECT_EQ(compiled(link_in_place(built))->run({weights}).at(0)->as_span<float>()[7], 0);
}

// Packed weights have pages of their own, which become the program's; what stands behind them in
// the last page is copied there.
TEST(Constants, LargeOnesMoveIntoTheProgram) {
  const IRModule module = script::parse_module(R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 520), "float32"), w: R.Tensor((300, 520), "float32"), b: R.Tensor((300,), "float32")) -> R.Tensor((4, 300), "float32"):
        with R.dataflow():
            t = R.permute_dims(w, axes=[1, 0])
            m = R.matmul(x, t)
            y = R.add(m, b)
            R.output(y)
        return y
)");
  TargetOptions options;
  options.model.bound_params["w"] = numbers({300, 520});
  options.model.bound_params["b"] = numbers({300});
  BuiltModel built = build(module, "m", options, {});
  const Ref<TensorData> x = numbers({4, 520});
  const Ref<TensorData> expected = compiled(link(built))->run({x}).at(0);  // of a copy
  int large = 0;
  for (const backend::ConstantsLayout::Item& item : built.code->constants.items) {
    if (item.data->bytes() < TensorData::kPagedBytes) continue;
    EXPECT_EQ(item.offset % 4096, 0);
    ++large;
  }
  EXPECT_EQ(large, 1);
  built.prepared = {};
  const auto program = compiled(link_in_place(built));
  const Ref<TensorData> y = program->run({x}).at(0);
  EXPECT_EQ(y->content_hash(), expected->content_hash());
  // The module has them from there.
  std::set<const std::byte*> places;
  for (const backend::ConstantsLayout::Item& item : built.code->constants.items)
    places.insert(item.data->data().data());
  int found = 0;
  for (const auto& [name, function] : built.lowered.pipeline.module.functions())
    walk<tir::AllocConst>(function, [&](const tir::AllocConst& constant) {
      EXPECT_TRUE(places.count(constant.data->data().data()));
      ++found;
    });
  EXPECT_EQ(found, static_cast<int>(places.size()));
}

}  // namespace
}  // namespace tenon
