// SPDX-License-Identifier: Apache-2.0
// Matches that no matcher finds: the splicer refuses what it cannot put into an order.
#include "tenon/graph/transforms/composites.h"

#include <gtest/gtest.h>

#include "tenon/graph/builder.h"

namespace tenon::graph {
namespace {

// y = exp(x), z = sin(y), w = abs(z): exp and abs in one call would need sin between them.
TEST(Composites, RefuseWhatWouldDependOnItself) {
  IRModule module;
  const auto type = TensorType::of(std::vector<int64_t>{4}, kFloat32);
  const auto x = make<Var>("x", type);
  const Origin origin = Origin::merge({});
  const auto bind = [&](const char* op, const Ref<Var>& from, const char* name) {
    return make<Binding>(make<Var>(name, type), call_op(op, {from}, {}, origin), Type(), origin);
  };
  const auto y = bind("exp", x, "y"), z = bind("sin", y->var, "z"), w = bind("abs", z->var, "w");
  const auto block = make<BindingBlock>(std::vector<Ref<Binding>>{y, z, w}, false, origin);
  const auto body = make<SeqExpr>(std::vector<Ref<BindingBlock>>{block}, w->var, origin);
  const auto main = make<Function>(std::vector<Ref<Var>>{x}, body, type, Attrs(), true, origin);
  Match match;
  match.bindings = {y, w};
  match.outputs = {w->var};
  const Composite composite = make_composite("toy.pair", match);
  try {
    with_composites(module, main, {{match, composite}});
    ADD_FAILURE() << "no error";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.first().code.id, kCyclicPartition.id);
    EXPECT_EQ(error.first().message, "composite `toy.pair` would depend on its own result");
  }
}

}  // namespace
}  // namespace tenon::graph
