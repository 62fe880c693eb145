// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/memory_use.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tenon/memory/plan_module.h"
#include "tenon/tir/stmt.h"

namespace tenon {
namespace {

// Two buffers that live at once, and one of a size that may be known only at run time.
IRModule program(const std::string& pools, bool is_symbolic) {
  using namespace tir;
  const auto bytes = [](const char* name, const Expr& count) {
    return make<Buffer>(name, kUInt8, std::vector<Expr>{count});
  };
  const Expr n = is_symbolic ? Var::size("n") : int64(128);
  const auto x = bytes("x", n), y = bytes("y", int64(16)), a = bytes("a", int64(100)),
             b = bytes("b", int64(50)), c = bytes("c", n);
  const auto call = [](const Ref<Buffer>& from, const Ref<Buffer>& to) {
    return make<CallTir>(make<GlobalVar>("f"),
                         std::vector<NodePtr>{BufferRegion::whole(from), BufferRegion::whole(to)});
  };
  IRModule module;
  module.set("main", PrimFunc::of_buffers(
                         {x, y},
                         make<Seq>(std::vector<Stmt>{make<AllocBuffer>(a), make<AllocBuffer>(b),
                                                     make<AllocBuffer>(c), call(x, a), call(a, b),
                                                     call(b, c), call(c, y), call(a, y)}),
                         {{"tenon.entry", true}, {"tenon.num_inputs", int64_t{1}}}));
  if (!pools.empty()) module.attrs.set("pools", pools);
  return module;
}

MemoryUse use_of(const std::string& pools, bool is_symbolic = false) {
  const RemarkScope scope;
  const IRModule planned = memory::plan_memory(program(pools, is_symbolic));
  return memory_use_of(planned, scope.remarks());
}

TEST(MemoryUse, OnePoolIsTheWorkspace) {
  const MemoryUse use = use_of("");
  ASSERT_EQ(use.pools.size(), 1u);
  EXPECT_EQ(use.pools[0].name, "workspace");
  EXPECT_EQ(use.pools[0].buffers, 3);
  EXPECT_EQ(use.pools[0].largest[0].name, "c");
  EXPECT_EQ(memory_lines(use, 7), "memory     peak " + std::to_string(*use.bytes) +
                                      " bytes, lower bound " + std::to_string(*use.bound_bytes) +
                                      " bytes; constants 7 bytes\n");
}

TEST(MemoryUse, EachPoolHasALine) {
  const MemoryUse use = use_of("fast=100 slow flash=1KiB,ro");
  const std::string lines = memory_lines(use, 7);
  EXPECT_NE(
      lines.find("pool       fast 50 of 100 bytes, 1 buffer, the largest `b` (50 bytes at 0)\n"),
      std::string::npos)
      << lines;
  EXPECT_NE(lines.find("pool       slow "), std::string::npos) << lines;
  EXPECT_NE(lines.find("pool       flash 7 of 1024 bytes of constants\n"), std::string::npos)
      << lines;
}

TEST(MemoryUse, ASizeMayDependOnTheDimensions) {
  const MemoryUse use = use_of("fast=100 slow", true);
  EXPECT_FALSE(use.bytes);
  EXPECT_NE(memory_lines(use, {}).find("peak known only at run time\n"), std::string::npos);
  EXPECT_NE(memory_lines(use, {}).find("pool       slow known only at run time, 2 buffers"),
            std::string::npos)
      << memory_lines(use, {});
  const std::string run = memory_lines(use, {}, 1000);
  EXPECT_NE(run.find("peak 1000 bytes in this run"), std::string::npos) << run;
  EXPECT_NE(run.find("pool       slow 936 bytes, 2 buffers"), std::string::npos) << run;
}

TEST(MemoryUse, JsonIsReadBack) {
  for (const bool is_symbolic : {false, true})
    for (const char* pools : {"", "fast=100 slow flash=ro"}) {
      const nlohmann::ordered_json json = json_of(use_of(pools, is_symbolic));
      const MemoryUse read = memory_use_from(nlohmann::json::parse(json.dump()));
      EXPECT_EQ(json_of(read).dump(), json.dump());
    }
  const nlohmann::ordered_json json = json_of(use_of("fast=100 slow"));
  EXPECT_EQ(json["pools"][0]["capacity"], 100);
  EXPECT_EQ(json["pools"][0]["largest"][0]["name"], "b");
  EXPECT_EQ(json["pools"][0]["largest"][0]["offset"], 0);
  EXPECT_TRUE(json["pools"][1]["capacity"].is_null());
}

TEST(MemoryUse, OfAnythingElseIsNothing) {
  EXPECT_TRUE(memory_use_from(nlohmann::json::parse(R"({"pools": [{"name": 3}]})")).pools.empty());
  EXPECT_TRUE(memory_use_from(nlohmann::json::parse(R"({"pools": 3})")).pools.empty());
}

}  // namespace
}  // namespace tenon
