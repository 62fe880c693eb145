// SPDX-License-Identifier: Apache-2.0
// Files of plans: what is written reads back as the same schedule, and what does not fit is told at
// its place.
#include "tenon/tir/schedule/plan_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "schedule_kernels.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/schedule/default_schedule.h"

namespace tenon::tir {
namespace {

using Json = nlohmann::json;
using testing::tensor;

constexpr const char* kTargets[] = {"llvm -mcpu=x86-64-v2", "llvm -mcpu=haswell",
                                    "llvm -mcpu=skylake-avx512", "llvm -mtriple=aarch64-linux-gnu",
                                    "c"};
constexpr const char* kAvx2 = kTargets[1];

Ref<PrimFunc> matmul(const Expr& m, int64_t n, int64_t k) {
  const auto a = tensor("a", {m, int64(k)}), b = tensor("b", {int64(k), int64(n)}),
             y = tensor("y", {m, int64(n)});
  return testing::function(
      {a, b, y}, {},
      {testing::compute(
          "matmul", y, {m, int64(n), int64(k)},
          [&](const std::vector<Expr>& v) { return load(a, {v[0], v[2]}) * load(b, {v[2], v[1]}); },
          1)});
}

IRModule module_of(const Ref<PrimFunc>& kernel, const char* target) {
  IRModule module;
  module.attrs.set("target", parse_target(target).str());
  module.set("kernel", kernel);
  return module;
}

struct Scheduled {
  IRModule module;
  std::string file;                     // of its plans
  std::vector<Remark> given_unmatched;  // plans that no block took
};

Scheduled schedule(const IRModule& module, const std::string& plans = {}) {
  const RemarkScope scope;
  Scheduled out;
  const auto file = std::make_shared<const SourceFile>(SourceFile{"p.json", plans});
  out.module = schedule_by_plans(module, plans.empty() ? GivenPlans() : read_plans(file));
  std::vector<std::string> choices;
  for (const Remark& remark : scope.remarks()) {
    if (!remark.choice.empty()) choices.push_back(remark.choice);
    if (remark.verdict == "unmatched") out.given_unmatched.push_back(remark);
  }
  out.file = plan_file(choices, parse_target(*module.attrs.get<std::string>("target")));
  return out;
}

// "LINE: message" of the first error; empty where there is none.
std::string misfit(const IRModule& module, const std::string& plans) {
  try {
    schedule(module, plans);
  } catch (const CompileError& error) {
    return fmt::format("{}: {}", error.first().origin->line, error.first().message);
  }
  return "";
}

Ref<Block> root_of_nothing() {
  Block::Parts parts;
  parts.name = "root";
  parts.body = seq({});
  return make<Block>(std::move(parts));
}

TEST(PlanFile, WhatIsWrittenReadsBack) {
  testing::Conv conv{64, 64, 58, 58, 3};
  conv.v = 8;
  const std::vector<Ref<PrimFunc>> kernels = {
      matmul(int64(128), 512, 256),    matmul(int64(1), 512, 256), matmul(Var::size("n"), 500, 256),
      matmul(var("n"), 500, 256),      matmul(int64(37), 500, 33), matmul(int64(197), 192, 256),
      testing::conv({960, 160, 7, 7}), testing::conv(conv),        testing::depthwise(conv),
      testing::conv({64, 272, 14, 14})};
  for (const char* target : kTargets)
    for (const Ref<PrimFunc>& kernel : kernels) {
      const Scheduled chosen = schedule(module_of(kernel, target));
      const Scheduled given = schedule(module_of(kernel, target), chosen.file);
      EXPECT_TRUE(structural_equal(chosen.module, given.module)) << target << chosen.file;
      EXPECT_EQ(chosen.file, given.file);
      EXPECT_TRUE(given.given_unmatched.empty());
      EXPECT_EQ(Json::parse(chosen.file)["target"], parse_target(target).str());
    }
}

TEST(PlanFile, TheFormOfTheFile) {
  const Scheduled chosen = schedule(module_of(matmul(int64(128), 512, 256), kAvx2));
  const std::string hash = Json::parse(chosen.file)["plans"][0]["hash"];
  EXPECT_EQ(hash.size(), 16U);
  EXPECT_EQ(chosen.file, R"({
  "version": 1,
  "target": "llvm -mcpu=haswell -vector-bits=256 -vector-registers=16 -l1=32768 -l2=262144 -l3=8388608",
  "plans": [
    {
      "kernel": "kernel",
      "hash": ")" + hash + R"(",
      "block": "matmul",
      "algorithm": "tiles",
      "nests": [
        {
          "algorithm": "contraction",
          "batch": [],
          "m": [{"axis":"v0","extent":128}],
          "n": [],
          "k": [{"axis":"v2","extent":256}],
          "lane": {"axis":"v1","extent":512},
          "joins_rows": false,
          "packed": null,
          "lanes": 8,
          "vectors_along": "lane",
          "tile": {"rows":1,"columns":6,"vectors":2},
          "unrolled_fmas": 128,
          "tasks": null,
          "prefetches": false,
          "predicted_us": 515.371,
          "assumes_lengths": false,
          "runner_up": {"tile":{"rows":1,"columns":5,"vectors":2},"predicted_us":521.114}
        }
      ]
    }
  ]
}
)");
}

// A plan of `kernel`'s block `matmul`, of nests in lines of their own from line 3 on.
std::string plans(const std::string& nests, const std::string& more = "") {
  return "{\"version\": 1, \"plans\": [{\"kernel\": \"kernel\", \"block\": \"matmul\",\n" + more +
         "\"algorithm\": \"tiles\", \"nests\": [\n" + nests + "]}]}";
}

// What a plan leaves out is the model's choice, and follows what it states.
TEST(PlanFile, APlanMayStateAPart) {
  const IRModule module = module_of(matmul(int64(128), 512, 256), kTargets[2]);
  const Json chosen = Json::parse(schedule(module).file)["plans"][0]["nests"][0];
  const Json given = Json::parse(
      schedule(module, plans("{\"tile\": {\"rows\": 1, \"columns\": 4, \"vectors\": 8}}"))
          .file)["plans"][0]["nests"][0];
  EXPECT_EQ(given["tile"], Json({{"rows", 1}, {"columns", 4}, {"vectors", 8}}));
  EXPECT_EQ(given["runner_up"]["tile"], chosen["tile"]);  // what the model would have taken
  EXPECT_EQ(given["runner_up"]["predicted_us"], chosen["predicted_us"]);
  EXPECT_GT(given["predicted_us"], chosen["predicted_us"]);
  EXPECT_EQ(given["lane"], chosen["lane"]);
}

TEST(PlanFile, EveryDecisionShows) {
  const IRModule conv = [] {
    testing::Conv conv{64, 64, 58, 58, 3};
    conv.v = 8;
    return module_of(testing::conv(conv), kAvx2);
  }();
  const Scheduled chosen = schedule(conv);
  std::vector<IRModule> seen = {chosen.module};
  const auto differs = [&](const char* field, const Json& value) {
    Json file = Json::parse(chosen.file);
    Json& nest = file["plans"][0]["nests"][0];
    ASSERT_NE(nest.at(field), value);
    nest[field] = value;
    const Scheduled given = schedule(conv, file.dump(2));
    EXPECT_EQ(Json::parse(given.file)["plans"][0]["nests"][0].at(field), value);
    for (const IRModule& other : seen)
      EXPECT_FALSE(structural_equal(other, given.module)) << field << " has no effect";
    seen.push_back(given.module);
  };
  const auto reversed = [&](const char* role) {
    Json axes = Json::parse(chosen.file)["plans"][0]["nests"][0][role];
    std::reverse(axes.begin(), axes.end());
    return axes;
  };
  differs("tile", {{"rows", 1}, {"columns", 6}, {"vectors", 1}});
  differs("k", reversed("k"));
  differs("m", reversed("m"));
  differs("unrolled_fmas", 0);
  differs("tasks", {{"of", "rows"}, {"count", 2}, {"outside", false}});
  differs("tasks", {{"of", "rows"}, {"count", 2}, {"outside", true}});
  differs("tasks", nullptr);
}

// Columns of a window and channels are one loop where they lie so, which is in the weights' order.
TEST(PlanFile, AxesInAnotherOrderAreNotJoined) {
  testing::Conv sizes{64, 64, 58, 58, 3};
  sizes.v = 8;
  const IRModule conv = module_of(testing::conv(sizes), kAvx2);
  const auto joined = [](const IRModule& module) {
    int count = 0;
    walk<For>(module.find<PrimFunc>("kernel")->body, [&](const For& loop) {
      count += loop.loop_var->name.find("_fused_0") != std::string::npos;
    });
    return count;
  };
  const Scheduled chosen = schedule(conv);
  EXPECT_GT(joined(chosen.module), 0);
  Json file = Json::parse(chosen.file);
  EXPECT_TRUE(structural_equal(schedule(conv, file.dump()).module, chosen.module));
  Json& axes = file["plans"][0]["nests"][0]["k"];
  std::reverse(axes.begin(), axes.end());
  EXPECT_EQ(joined(schedule(conv, file.dump()).module), 0);
}

// Of the whole kernel, at any of its blocks; told where the kernel had tasks.
TEST(PlanFile, AKernelOnOneThread) {
  const auto tasks = [](const IRModule& module) {
    int count = 0;
    walk<For>(module.find<PrimFunc>("kernel")->body,
              [&](const For& loop) { count += loop.kind == ForKind::kParallel; });
    return count;
  };
  for (const char* target : kTargets) {
    const IRModule module = module_of(matmul(int64(128), 512, 256), target);
    const Scheduled chosen = schedule(module);
    EXPECT_EQ(tasks(chosen.module), 1);
    Json file = Json::parse(chosen.file);
    EXPECT_FALSE(file["plans"][0].contains("serial"));
    file["plans"][0]["serial"] = true;
    const Scheduled serial = schedule(module, file.dump());
    EXPECT_EQ(tasks(serial.module), 0);
    EXPECT_EQ(Json::parse(serial.file)["plans"][0]["serial"], true);
    EXPECT_TRUE(structural_equal(schedule(module, serial.file).module, serial.module));
    file["plans"][0]["serial"] = false;
    EXPECT_TRUE(structural_equal(schedule(module, file.dump()).module, chosen.module));
  }
  const IRModule small = module_of(matmul(int64(1), 4, 2), kAvx2);
  Json file = Json::parse(schedule(small).file);
  EXPECT_EQ(tasks(schedule(small).module), 0);
  file["plans"][0]["serial"] = true;
  EXPECT_EQ(schedule(small, file.dump()).file, schedule(small).file);
  EXPECT_EQ(misfit(small, plans("", "\"serial\": 1,\n")),
            "2: `serial` is 1; expected true or false");
}

// Into which a long sum is cut; the model's choice is stated, and another one is taken.
TEST(PlanFile, Chunks) {
  const auto product = [](int64_t steps) {
    return matmul(int64(64), 128, steps)->with_attr(kLayoutFreeBuffers, std::vector<int64_t>{1});
  };
  const IRModule module = module_of(product(4096), kAvx2);
  const Scheduled chosen = schedule(module);
  EXPECT_NE(chosen.file.find("\"chunks\": 4"), std::string::npos) << chosen.file;
  const Scheduled given = schedule(module, chosen.file);
  EXPECT_TRUE(structural_equal(chosen.module, given.module));
  EXPECT_EQ(chosen.file, given.file);
  const auto with = [](const char* chunks) {
    return fmt::format(
        R"({{"version": 1, "plans": [{{"kernel": "kernel", "block": "matmul", "algorithm": "tiles"{}}}]}})",
        chunks);
  };
  const auto nests = [](const Scheduled& scheduled) {
    const Json file = Json::parse(scheduled.file);
    size_t count = 0;
    for (const Json& plan : file["plans"]) count += plan["nests"].size();
    return count;
  };
  EXPECT_EQ(nests(schedule(module, with(""))), 1);
  EXPECT_EQ(nests(schedule(module, with(", \"chunks\": 3"))), 3);
  EXPECT_EQ(misfit(module_of(product(100), kAvx2), with(", \"chunks\": 9")),
            "1: `chunks` does not suit block `matmul`: 100 steps in 9 chunks; expected 16 each at "
            "least");
  EXPECT_EQ(misfit(module_of(matmul(int64(64), 128, 4096), kAvx2), with(", \"chunks\": 2")),
            "1: `chunks` is 2; the sums of block `matmul` are taken term by term");
}

TEST(PlanFile, AnotherAlgorithm) {
  const IRModule module = module_of(matmul(int64(128), 512, 256), kAvx2);
  const auto with = [](const char* algorithm) {
    return fmt::format(
        R"({{"version": 1, "plans": [{{"kernel": "kernel", "block": "matmul", "algorithm": "{}"}}]}})",
        algorithm);
  };
  const Scheduled loops = schedule(module, with("loops"));
  EXPECT_EQ(Json::parse(loops.file)["plans"][0]["algorithm"], "loops");
  EXPECT_FALSE(structural_equal(loops.module, schedule(module).module));
  EXPECT_TRUE(structural_equal(schedule(module, with("tiles")).module, schedule(module).module));
  EXPECT_EQ(misfit(module, with("row-reduction")),
            "1: algorithm `row-reduction` does not suit block `matmul`: block `matmul` does not "
            "reduce over consecutive elements");
  EXPECT_EQ(misfit(module, with("transpose")),
            "1: algorithm `transpose` does not suit block `matmul`: it is one for blocks of "
            "another kind");
  EXPECT_EQ(misfit(module, with("rows")).substr(0, 50),
            "1: algorithm `rows` does not suit block `matmul`: ");
}

TEST(PlanFile, WhatDoesNotFit) {
  const IRModule fixed = module_of(matmul(int64(128), 512, 256), kAvx2);
  const std::pair<const char*, const char*> cases[] = {
      {R"({"tile": {"rows": 2, "columns": 6, "vectors": 2}})",
       "`tile` has 2 rows; expected at most 1 of this nest"},
      {R"({"tile": {"rows": 1, "columns": 129, "vectors": 2}})",
       "`tile` has 129 columns; expected at most 128 of this nest"},
      {R"({"tile": {"rows": 1, "columns": 6, "vectors": 3}})",
       "`tile` has 3 vectors; expected a divisor of 64"},
      {R"({"tile": {"rows": 1, "columns": 128, "vectors": 1}})",
       "`tile` has 128 accumulators; expected at most 64 of this nest"},
      {R"({"lanes": 16})", "`lanes` is 16; expected a power of two up to 8"},
      {R"({"lanes": 3})", "`lanes` is 3; expected a power of two up to 8"},
      {R"({"tasks": {"of": "columns", "count": 3, "outside": false}})",
       "`tasks` are 3; expected a divisor of the 128 columns that leaves tiles of 6"},
      {R"({"tasks": {"of": "columns", "count": 64, "outside": false}})",
       "`tasks` are 64; expected a divisor of the 128 columns that leaves tiles of 6"},
      {R"({"tasks": {"of": "rows", "count": 2, "outside": false}})",
       "`tasks` are 2; expected a divisor of the 1 rows that leaves tiles of 1"},
      {R"({"joins_rows": true})",
       "`joins_rows` is true; rows of this nest do not follow each other"},
      {R"({"prefetches": true})",
       "`prefetches` is true; the nest has no next panel of constant weights to fetch"},
      {R"({"k": [{"axis": "k", "extent": 256}]})",
       "`k` has axis `k`; expected, in some order, `v2`"},
      {R"({"k": []})", "`k` is without axis `v2`; expected, in some order, `v2`"},
      {R"({"n": [{"axis": "v0", "extent": 128}]})",
       "`n` has axis `v0`; expected, in some order, none"},
      {R"({"k": [{"axis": "v2", "extent": 255}]})",
       R"(`k` is [{"axis":"v2","extent":255}]; expected [{"axis":"v2","extent":256}] of this nest)"},
      {R"({"algorithm": "row"})", "`algorithm` is \"row\"; expected \"contraction\" of this nest"},
      {R"({"packed": "b"})", "`packed` is \"b\"; expected null of this nest"},
      {"{},\n{}", "block `matmul` has 1 nests; the plan has 2"},
  };
  for (const auto& [nest, message] : cases)
    EXPECT_EQ(misfit(fixed, plans(nest)),
              fmt::format("{}: {}", std::string_view(nest).starts_with("{},") ? 4 : 3, message));
  const IRModule symbolic = module_of(matmul(Var::size("n"), 500, 256), kAvx2);
  EXPECT_EQ(misfit(symbolic, plans("{}")),
            "3: block `matmul` has more nests than the 1 of the plan");
  EXPECT_EQ(misfit(symbolic, plans(R"({"tile": {"rows": 1, "columns": 6, "vectors": 2}}, {})")),
            "3: `tile` has 6 columns of a length that is known only at run time; expected 1 or a "
            "multiple of 4");
  EXPECT_EQ(
      misfit(symbolic, plans(R"({"tasks": {"of": "columns", "count": 2, "outside": true}}, {})")),
      "3: `tasks` are 2 of a number that is known only at run time; expected null");
}

TEST(PlanFile, ColumnsKnownAtRunTimeHaveTheirLanes) {
  const Expr n = Var::size("n");
  const auto a = tensor("a", {int64(8), int64(16)}), b = tensor("b", {int64(16), n}),
             y = tensor("y", {int64(8), n});
  const IRModule module =
      module_of(testing::function({a, b, y}, {},
                                  {testing::compute(
                                      "matmul", y, {int64(8), n, int64(16)},
                                      [&](const std::vector<Expr>& v) {
                                        return load(a, {v[0], v[2]}) * load(b, {v[2], v[1]});
                                      },
                                      1)}),
                kAvx2);
  EXPECT_EQ(misfit(module, plans(R"({"lanes": 8}, {"lanes": 2}, {})")),
            "3: `lanes` is 2; expected 4 of columns whose number is known at run time");
}

TEST(PlanFile, WhatIsNoPlan) {
  const IRModule module = module_of(matmul(int64(128), 512, 256), kAvx2);
  const std::pair<std::string, const char*> cases[] = {
      {"{\"version\": 1,\n \"plans\": [,]}",
       "2: syntax error while parsing value - unexpected ','; expected '[', '{', or a literal"},
      {"{\"version\": 1e999}", "1: number overflow parsing '1e999'"},
      {"[]", "1: the file is []; expected an object"},
      {"{\"plans\": []}", "1: field `version` is missing"},
      {"{\"version\": 1}", "1: field `plans` is missing"},
      {"{\n\"version\": 2, \"plans\": []}", "2: `version` is 2; expected 1"},
      {"{\"version\": 1, \"plans\": 3}", "1: `plans` is 3; expected a list"},
      {"{\"version\": 1, \"version\": 1}", "1: field `version` is given twice"},
      {"{\"version\": 1,\n\"plan\": []}",
       "2: there is no field `plan`; did you mean `plans`?; expected of version, target, plans"},
      {"{\"version\": 1,\n\"target\": [], \"plans\": []}", "2: `target` is []; expected a text"},
      {"{\"version\": 1, \"plans\": [\n{\"block\": \"b\"}]}", "2: field `kernel` is missing"},
      {plans("{}", "\"algorithms\": 1,\n"),
       "2: there is no field `algorithms`; did you mean `algorithm`?; expected of kernel, hash, "
       "block, algorithm, winograd, serial, chunks, nests, refused"},
      {plans("{\"tiles\": 1}").replace(plans("").find("tiles"), 5, "tile"),
       "2: `algorithm` is \"tile\"; expected one of winograd, tiles, rows, row-reduction, "
       "planar-window, "
       "padding, transpose, elementwise, scan, loops"},
      {plans("{}").replace(plans("").find("tiles"), 5, "loops"),
       "2: algorithm `loops` has no nests; expected []"},
      {plans("{\"tile\": {\"rows\": 1,\n\"column\": 2}}"),
       "4: there is no field `column`; did you mean `columns`?; expected of rows, columns, "
       "vectors"},
      {plans("{\"tile\": {\"rows\": 1}}"), "3: field `columns` is missing"},
      {plans("{\"tile\": {\"rows\": 0, \"columns\": 2, \"vectors\": 2}}"),
       "3: `rows` is 0; expected a whole number from 1 to 1048576"},
      {plans("{\"lanes\": -8}"), "3: `lanes` is -8; expected a whole number from 1 to 1048576"},
      {plans("{\"lanes\": 1e99}"),
       "3: `lanes` is 1e+99; expected a whole number from 1 to 1048576"},
      {plans("{\"lanes\": 18446744073709551615}"),
       "3: `lanes` is 18446744073709551615; expected a whole number from 1 to 1048576"},
      {plans("{\"prefetches\": 1}"), "3: `prefetches` is 1; expected true or false"},
      {plans("{\"tasks\": {\"of\": \"row\", \"count\": 2, \"outside\": true}}"),
       "3: `of` is \"row\"; expected \"rows\" or \"columns\""},
      {plans("{\"k\": [{\"axis\": \"v2\"}]}"), "3: field `extent` is missing"},
      {plans("{\"k\": [{\"name\": \"v2\"}]}"),
       "3: there is no field `name`; expected of axis, extent"},
      {plans(std::string(20, '[') + std::string(20, ']')),
       "3: the file nests deeper than 16 lists and objects"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(misfit(module, text), message) << text;
  const std::string one = R"({"kernel": "k", "block": "b", "algorithm": "loops"})";
  EXPECT_EQ(misfit(module, "{\"version\": 1, \"plans\": [\n" + one + ",\n" + one + "]}"),
            "3: block `b` of kernel `k` has two plans");
}

// Whatever is in the file, it is read or refused.
TEST(PlanFile, DamagedFiles) {
  const std::string whole = schedule(module_of(matmul(Var::size("n"), 500, 256), kAvx2)).file;
  const auto read = [](const std::string& text) {
    try {
      read_plans(std::make_shared<const SourceFile>(SourceFile{"p.json", text}));
    } catch (const CompileError& error) {
      EXPECT_TRUE(error.first().origin) << error.what();
    }
  };
  for (size_t i = 0; i < whole.size(); ++i) {
    read(whole.substr(0, i));
    for (const char c : {'"', '{', '[', ',', '0', '\n', '\xff'}) {
      std::string damaged = whole;
      damaged[i] = c;
      read(damaged);
    }
  }
}

TEST(PlanFile, APlanThatNoBlockTakes) {
  const IRModule module = module_of(matmul(int64(128), 512, 256), kAvx2);
  const std::string hash =
      Json::parse(schedule(module).file)["plans"][0]["hash"].get<std::string>();
  const auto unmatched = [&](const std::string& kernel, const std::string& block,
                             const std::string& key) {
    const Scheduled given = schedule(
        module,
        Json({{"version", 1},
              {"plans",
               {{{"kernel", kernel}, {"hash", key}, {"block", block}, {"algorithm", "loops"}}}}})
            .dump());
    const bool is_as_chosen = structural_equal(given.module, schedule(module).module);
    EXPECT_EQ(is_as_chosen, !given.given_unmatched.empty());
    return is_as_chosen ? given.given_unmatched.at(0).detail : "";
  };
  EXPECT_EQ(unmatched("kernel", "matmul", hash), "");
  EXPECT_EQ(unmatched("another", "matmul", hash), "");  // the same structure under another name
  EXPECT_EQ(unmatched("kernels", "matmul", "0123"),
            "there is no kernel `kernels` to schedule; did you mean `kernel`?");
  EXPECT_EQ(unmatched("kernel", "matmul", "0123"),
            "kernel `kernel` has hash " + hash + "; the plan is for 0123");
  const auto x = tensor("x", {int64(8)});
  const Scheduled opaque = schedule(
      module_of(make<PrimFunc>(
                    std::vector<Ref<Var>>{make<Var>("x", kHandle)}, std::vector<Ref<Buffer>>{x},
                    make<BlockRealize>(std::vector<Expr>{}, boolean(true), root_of_nothing())),
                kAvx2),
      R"({"version": 1, "plans": [{"kernel": "kernel", "block": "b", "algorithm": "loops"}]})");
  EXPECT_EQ(opaque.given_unmatched.at(0).detail, "kernel `kernel` has no blocks to plan");
  EXPECT_EQ(unmatched("kernel", "matmuls", hash),
            "kernel `kernel` plans its blocks `matmul`; did you mean `matmul`?");
}

}  // namespace
}  // namespace tenon::tir
