// SPDX-License-Identifier: Apache-2.0
// Which matches are chosen, and what is said of those that are not.
#include "tenon/tune/placement.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tenon/graph/backend.h"
#include "tenon/graph/patterns/dataflow_pattern.h"
#include "tenon/graph/patterns/matcher.h"
#include "tenon/script/parser.h"
#include "tenon/script/printer.h"
#include "tenon/support/operator_id.h"
#include "tenon/support/remarks.h"
#include "tenon/tune/part.h"

namespace tenon::tune {
namespace {

using graph::Backend;
using graph::DFPattern;
using graph::FusionPattern;
using graph::is_op;
using graph::PatternCheck;
using graph::Verdict;
using graph::wildcard;

DFPattern product() { return is_op("relax.matmul")(wildcard(), wildcard()); }
DFPattern product_relu() { return is_op("relax.nn.relu")(product()); }

FusionPattern named(const std::string& name, DFPattern pattern) {
  FusionPattern out;
  out.name = name;
  out.pattern = std::move(pattern);
  return out;
}

/// Back ends that are there for one test.
class PlacementTest : public testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& name : names_) graph::unregister_backend(name);
  }
  void add(const std::string& name, std::vector<FusionPattern> patterns, int priority = 0,
           std::optional<double> cost = {}) {
    Backend backend;
    backend.name = name;
    backend.patterns = std::move(patterns);
    backend.priority = priority;
    if (cost) backend.cost = [cost](const PatternCheck&) { return cost; };
    graph::register_backend(std::move(backend));
    names_.push_back(name);
  }
  std::vector<std::string> names_;
};

// Two products with relu, of which the second is of float64; the first one's result is used twice.
IRModule two_layers(const std::string& attrs = "") {
  return script::parse_module(std::string(R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((8, 16), "float32"), w: R.Tensor((16, 16), "float32"), d: R.Tensor((16, 4), "float64")) -> R.Tuple(R.Tensor((8, 16), "float32"), R.Tensor((8, 4), "float64")):
)") + attrs + R"(
        with R.dataflow():
            p = R.matmul(x, w)
            y = R.nn.relu(p)
            wide = R.astype(y, "float64")
            q = R.matmul(wide, d)
            z = R.nn.relu(q)
            both = (y, z)
            R.output(both)
        return both
)");
}

IRModule with_target(IRModule module) {
  module.attrs.set("target", "llvm -vector-bits=256");
  return module;
}

struct Decided {
  IRModule module;
  std::vector<Remark> remarks;

  std::string of(const std::string& variable) const {
    const auto main = module.find<graph::Function>("main");
    const AttrValue* placement = main->attrs.find("placement");
    if (!placement) return "";
    const auto* map = placement->as<AttrValue::Map>();
    const auto it = map->find(variable);
    return it == map->end() ? "" : *it->second.as<std::string>();
  }
  const Remark& remark(const std::string& subject) const {
    for (const Remark& remark : remarks)
      if (remark.subject == subject) return remark;
    throw std::runtime_error("no remark on " + subject);
  }
};

Decided annotate(IRModule module, const std::vector<std::string>& libs) {
  const RemarkScope scope;
  Decided out;
  graph::UserPlacement user = graph::UserPlacement::of(module);
  user.backends = libs;
  out.module = annotate_placement(with_target(std::move(module)), user);
  out.remarks = scope.remarks();
  return out;
}

std::string error_of(const std::function<void()>& f, std::string_view code) {
  try {
    f();
  } catch (const CompileError& error) {
    EXPECT_EQ(error.first().code.id, code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST_F(PlacementTest, TheLargerMatchWins) {
  add("toy", {named("toy.product", product()), named("toy.product_relu", product_relu())});
  const Decided decided = annotate(two_layers(), {"toy"});
  EXPECT_EQ(decided.of("y"), "toy.product_relu");
  EXPECT_EQ(decided.of("z"), "toy.product_relu");
  EXPECT_EQ(decided.of("p"), "");
  EXPECT_EQ(decided.remark("p").verdict, "placed");
  EXPECT_EQ(decided.remark("p").reason, "toy.product_relu");
  EXPECT_EQ(decided.remark("wide").verdict, "kept");
  EXPECT_EQ(decided.remark("wide").reason, "no-pattern");
  // 2 * 8 * 16 * 16 operations.
  EXPECT_EQ(decided.remark("p").numbers.at(0), (std::pair<std::string, double>("flop", 4096)));
}

TEST_F(PlacementTest, ThePatternsPriorityGoesBeforeItsSize) {
  FusionPattern first = named("toy.product", product());
  first.priority = 5;
  add("toy", {named("toy.product_relu", product_relu()), first});
  EXPECT_EQ(annotate(two_layers(), {"toy"}).of("p"), "toy.product");
}

TEST_F(PlacementTest, RefusedMatchesLeaveTheirReason) {
  FusionPattern pattern = named("toy.product_relu", product_relu());
  pattern.check = [](const PatternCheck& check) {
    const auto result = graph::type_of(check.composite->body->body);
    if (result.as<graph::TensorType>()->dtype != kFloat32)
      return Verdict::refuse("dtype", "only float32");
    return Verdict{};
  };
  add("toy", {pattern});
  const Decided decided = annotate(two_layers(), {"toy"});
  EXPECT_EQ(decided.of("y"), "toy.product_relu");
  EXPECT_EQ(decided.of("z"), "");
  EXPECT_EQ(decided.remark("q").verdict, "refused");
  EXPECT_EQ(decided.remark("q").reason, "dtype");
  EXPECT_NE(decided.remark("q").detail.find("toy.product_relu: dtype: only float32"),
            std::string::npos);
}

TEST_F(PlacementTest, ValuesUsedOutsideAreNotSwallowed) {
  add("toy", {named("toy.chain", is_op("relax.astype")(product_relu()))});
  const Decided decided = annotate(two_layers(), {"toy"});
  EXPECT_EQ(decided.of("wide"), "");
  EXPECT_EQ(decided.remark("wide").verdict, "refused");
  EXPECT_EQ(decided.remark("wide").reason, "used-outside");
}

TEST_F(PlacementTest, PriorityOfTheBackEndThenDeclaredCost) {
  add("slow", {named("slow.product", product())}, 0, 1e-8);
  add("fast", {named("fast.product", product())}, 0, 1e-9);
  EXPECT_EQ(annotate(two_layers(), {"slow", "fast"}).of("p"), "fast.product");
  EXPECT_EQ(annotate(two_layers(), {"slow"}).of("p"), "slow.product");
  add("first", {named("first.product", product())}, 1);
  EXPECT_EQ(annotate(two_layers(), {"slow", "fast", "first"}).of("p"), "first.product");
}

TEST_F(PlacementTest, WhatOwnCodeDoesFasterStaysThere) {
  add("toy", {named("toy.product", product())}, 0, 10.0);
  const Decided decided = annotate(two_layers(), {"toy"});
  EXPECT_EQ(decided.of("p"), "");
  EXPECT_EQ(decided.remark("p").reason, "cost");
  // By hand it goes there all the same.
  const std::string by_hand = R"(        R.func_attr({"placement": {"p": "toy"}}))";
  EXPECT_EQ(annotate(two_layers(by_hand), {"toy"}).of("p"), "toy.product");
}

// The hash of what a back end alone would take, by its pattern.
std::map<std::string, std::string> hashes_of(const IRModule& module, const std::string& backend) {
  std::map<std::string, std::string> out;
  for (const OfferedPart& offered : offered_parts(with_target(module), {backend}))
    out.emplace(offered.provider, offered.part.hash);
  return out;
}

TEST_F(PlacementTest, WhatWasMeasuredGoesBeforeWhatIsDeclared) {
  // What is dear as declared is not offered, so that its hash is that of a back end with another name.
  add("cheap", {named("cheap.product", product())});
  add("dear", {named("dear.product", product())}, 0, 10.0);
  const std::string hash = hashes_of(two_layers(), "cheap").at("cheap.product");
  const auto measured = [&](const std::string& provider, const std::string& verdict) {
    graph::UserPlacement user;
    user.measured = {{measured_name(hash, provider), verdict}};
    return user.in(two_layers());
  };
  // Products of float32 and of float64 are two parts; what is known of one says nothing of the other.
  EXPECT_EQ(hashes_of(two_layers(), "cheap").size(), 1U);
  EXPECT_EQ(offered_parts(with_target(two_layers()), {"cheap"}).size(), 2U);
  const Decided faster = annotate(measured("dear.product", graph::kMeasuredFaster), {"dear"});
  EXPECT_EQ(faster.of("p"), "dear.product");
  EXPECT_EQ(faster.of("q"), "");
  EXPECT_TRUE(graph::UserPlacement::of(faster.module).measured.empty());
  const Decided slower = annotate(measured("cheap.product", "slower"), {"cheap"});
  EXPECT_EQ(slower.of("p"), "");
  EXPECT_EQ(slower.of("q"), "cheap.product");
  EXPECT_EQ(slower.remark("p").reason, "measured");
  EXPECT_NE(slower.remark("p").detail.find("cheap.product: measured: slower"), std::string::npos);
}

TEST_F(PlacementTest, LessOfWhatIsSlowerIsNotTakenInItsPlace) {
  add("toy", {named("toy.product", product()), named("toy.product_relu", product_relu())});
  add("other", {named("other.product", product())});
  graph::UserPlacement user;
  user.measured = {
      {measured_name(hashes_of(two_layers(), "toy").at("toy.product_relu"), "toy.product_relu"),
       "crash"}};
  const IRModule module = user.in(two_layers());
  const Decided decided = annotate(module, {"toy"});
  EXPECT_EQ(decided.of("y"), "");
  EXPECT_EQ(decided.of("p"), "");
  EXPECT_NE(
      decided.remark("p").detail.find("toy.product: measured: part of toy.product_relu: crash"),
      std::string::npos)
      << decided.remark("p").detail;
  // Of another back end nothing is known.
  EXPECT_EQ(annotate(module, {"toy", "other"}).of("p"), "other.product");
}

TEST_F(PlacementTest, MeasurementsDoNotMoveWhatIsWrittenByHand) {
  add("toy", {named("toy.product", product())});
  graph::UserPlacement user;
  user.measured = {
      {measured_name(hashes_of(two_layers(), "toy").at("toy.product"), "toy.product"), "slower"}};
  const std::string by_hand = R"(        R.func_attr({"placement": {"p": "toy"}}))";
  EXPECT_EQ(annotate(user.in(two_layers(by_hand)), {"toy"}).of("p"), "toy.product");
}

// Whatever constants hold, a part is the same; where an input stands in a constant's place it is another.
TEST_F(PlacementTest, PartsAreKnownByTheirStructure) {
  add("toy", {named("toy.product", product())});
  const auto hash = [](const std::string& right) {
    return offered_parts(with_target(script::parse_module(R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 2), "float32"), w: R.Tensor((2, 2), "float32")):
        with R.dataflow():
            y = R.matmul(x, )" + right + R"()
            R.output(y)
        return y
)")),
                         {"toy"})
        .at(0)
        .part.hash;
  };
  EXPECT_EQ(hash(R"(R.const([[1, 2], [3, 4]], "float32"))"),
            hash(R"(R.const([[5, 6], [7, 8]], "float32"))"));
  EXPECT_NE(hash(R"(R.const([[1, 2], [3, 4]], "float32"))"), hash("w"));
  EXPECT_TRUE(is_part_hash(hash("w")));
}

TEST_F(PlacementTest, AmongEqualsTheOrderOfLibsCounts) {
  add("a", {named("a.product", product())});
  add("b", {named("b.product", product())});
  EXPECT_EQ(annotate(two_layers(), {"a", "b"}).of("p"), "a.product");
  EXPECT_EQ(annotate(two_layers(), {"b", "a"}).of("p"), "b.product");
}

TEST_F(PlacementTest, WhatIsWrittenByHandWins) {
  add("a", {named("a.product", product()), named("a.product_relu", product_relu())}, 9);
  add("b", {named("b.product", product())});
  const auto text = [](const std::string& what) {
    return "        R.func_attr({\"placement\": {" + what + "}})";
  };
  EXPECT_EQ(annotate(two_layers(text(R"("p": "b")")), {"a", "b"}).of("p"), "b.product");
  EXPECT_EQ(annotate(two_layers(text(R"("p": "a.product")")), {"a"}).of("p"), "a.product");
  const Decided none = annotate(two_layers(text(R"("p": "none")")), {"a"});
  EXPECT_EQ(none.of("p"), "none");
  EXPECT_EQ(none.of("y"), "");  // its match would take p too
  EXPECT_EQ(none.remark("p").reason, "by-hand");
  // A back end that was not asked for is used where the hand says so, and only there.
  const Decided other = annotate(two_layers(text(R"("p": "b")")), {});
  EXPECT_EQ(other.of("p"), "b.product");
  EXPECT_EQ(other.of("q"), "");
}

TEST_F(PlacementTest, WhatTheHandAsksForMustBePossible) {
  add("toy", {named("toy.product", product())});
  const auto fails = [&](const std::string& what) {
    return error_of(
        [&] {
          annotate(two_layers("        R.func_attr({\"placement\": {" + what + "}})"), {"toy"});
        },
        "TN0806");
  };
  EXPECT_NE(fails(R"("p": "tyo")").find("no back end `tyo`; there are: toy"), std::string::npos);
  EXPECT_NE(fails(R"("wide": "toy")").find("no pattern of `toy` matches"), std::string::npos);
  EXPECT_NE(fails(R"("wied": "toy")").find("did you mean `wide`?"), std::string::npos);
  EXPECT_NE(fails(R"("p": 3)").find("expected a back end"), std::string::npos);
}

TEST_F(PlacementTest, NodesOfAModelArePlacedByTheirNames) {
  add("a", {named("a.product", product())}, 1);
  add("b", {named("b.product", product())});
  IRModule module = two_layers();
  module.attrs.set("place", AttrValue::Map{{"p", "b"}, {"q", "none"}});
  const Decided decided = annotate(module, {"a", "b"});
  EXPECT_EQ(decided.of("p"), "b.product");
  EXPECT_EQ(decided.of("q"), "none");
  EXPECT_FALSE(decided.module.attrs.contains("place"));
  module.attrs.set("place", AttrValue::Map{{"conv9", "b"}});
  EXPECT_NE(error_of([&] { annotate(module, {"a", "b"}); }, "TN0806").find("`conv9`"),
            std::string::npos);
}

// A node that became several operators gives them one origin.
TEST_F(PlacementTest, OperatorsOfOneNodeAreDecidedAboutOneByOne) {
  add("toy", {named("toy.relu", is_op("relax.nn.relu")(wildcard()))});
  IRModule module = two_layers();
  const Origin node = Origin::model("m.onnx", "layers", "Layers").numbered(7);
  module.set("main", rewrite(module.find<graph::Function>("main"),
                             [&](const NodePtr& at) -> std::optional<NodePtr> {
                               const auto* binding = at.as<graph::Binding>();
                               if (!binding) return std::nullopt;
                               return make<graph::Binding>(binding->var, binding->value,
                                                           binding->match, node);
                             }));
  std::set<OperatorId> operators;
  const Decided decided = annotate(std::move(module), {"toy"});
  for (const Remark& remark : decided.remarks)
    if (remark.decision) {
      EXPECT_EQ(remark.origin.name(), "layers");
      EXPECT_GT(remark.origin->number, 7U) << "the importer has used the lower ones";
      EXPECT_TRUE(operators.insert(operator_id(remark.origin)).second) << remark.subject;
    }
  EXPECT_EQ(operators.size(), 5);
}

TEST_F(PlacementTest, DecisionsAreTheSameInEveryRunAndStay) {
  add("a", {named("a.product", product()), named("a.product_relu", product_relu())});
  add("b", {named("b.relu", is_op("relax.nn.relu")(wildcard()))});
  const Decided one = annotate(two_layers(), {"a", "b"}), two = annotate(two_layers(), {"a", "b"});
  EXPECT_EQ(script::print(one.module), script::print(two.module));
  ASSERT_EQ(one.remarks.size(), two.remarks.size());
  for (size_t i = 0; i < one.remarks.size(); ++i)
    EXPECT_EQ(one.remarks[i].detail, two.remarks[i].detail);
  EXPECT_EQ(script::print(annotate(one.module, {"a", "b"}).module), script::print(one.module));
}

TEST_F(PlacementTest, DispatchMakesCompositesOfWhatIsAnnotated) {
  add("toy", {named("toy.product", product()), named("toy.product_relu", product_relu())});
  const std::string by_hand = R"(        R.func_attr({"placement": {"y": "toy", "q": "none"}}))";
  const IRModule module = dispatch_placement(with_target(two_layers(by_hand)));
  const auto main = module.find<graph::Function>("main");
  EXPECT_FALSE(main->attrs.contains("placement"));
  const auto composite = module.find<graph::Function>("toy_product_relu");
  ASSERT_TRUE(composite);
  EXPECT_EQ(composite->attrs.get<std::string>("Composite"), "toy.product_relu");
  EXPECT_EQ(module.size(), 2U);
}

TEST_F(PlacementTest, DispatchRefusesWhatIsNotThere) {
  add("toy", {named("toy.product", product()), named("toy.product_relu", product_relu())});
  const auto fails = [&](const std::string& what) {
    return error_of(
        [&] {
          dispatch_placement(
              with_target(two_layers("        R.func_attr({\"placement\": {" + what + "}})")));
        },
        "TN0806");
  };
  EXPECT_NE(fails(R"("y": "toy", "p": "toy")").find("overlap"), std::string::npos);
  EXPECT_NE(fails(R"("y": "toy.product")").find("does not match here"), std::string::npos);
  EXPECT_NE(fails(R"("u": "toy")").find("which nothing is bound to"), std::string::npos);
  EXPECT_NE(fails(R"("y": "none such")").find("no back end"), std::string::npos);
}

TEST_F(PlacementTest, NothingHappensWithoutBackEnds) {
  const Decided decided = annotate(two_layers(), {});
  EXPECT_TRUE(decided.remarks.empty());
  EXPECT_FALSE(decided.module.find<graph::Function>("main")->attrs.contains("placement"));
}

}  // namespace
}  // namespace tenon::tune
