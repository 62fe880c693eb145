// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/external_modules.h"

#include <gtest/gtest.h>

#include "tenon/graph/expr.h"
#include "tenon/support/diagnostics.h"

namespace tenon::graph {
namespace {

using Kind = ExternalModule::Kind;

ExternalModule c_source(const std::string& text, std::vector<std::string> symbols) {
  return ExternalModule::of_bytes(Kind::kC, text, std::move(symbols), "mine");
}

std::string error_of(const AttrValue& attr) {
  IRModule module;
  module.attrs.set("external_mods", attr);
  try {
    (void)external_modules(module);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "no error";
}

AttrValue bytes(const std::string& text) {
  return AttrValue(NodePtr(make<Constant>(c_source(text, {}).code)));
}

TEST(ExternalModules, AreReadAsTheyWereAdded) {
  IRModule module;
  EXPECT_TRUE(external_modules(module).empty());
  ExternalModule added = c_source("void f(void) {}\n", {"f"});
  added.link = {"libm.so.6"};
  add_external_module(module, added);
  add_external_module(module, added);  // the same one again
  ExternalModule by_name;
  by_name.kind = Kind::kShared;
  by_name.name = "libfoo.so.1";
  add_external_module(module, by_name);
  const std::vector<ExternalModule> read = external_modules(module);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].kind, Kind::kC);
  EXPECT_EQ(read[0].symbols, std::vector<std::string>{"f"});
  EXPECT_EQ(read[0].link, std::vector<std::string>{"libm.so.6"});
  EXPECT_EQ(read[0].origin, "mine");
  EXPECT_EQ(read[0].code->content_hash(), added.code->content_hash());
  EXPECT_EQ(read[1].name, "libfoo.so.1");
  EXPECT_FALSE(read[1].code);
}

TEST(ExternalModules, WhatIsMalformedIsRefused) {
  using Map = AttrValue::Map;
  const AttrValue kC("c");
  const std::vector<std::pair<AttrValue, std::string>> cases = {
      {AttrValue(3), "expected a list of dictionaries"},
      {AttrList{AttrValue("f.c")}, "expected a dictionary"},
      {AttrList{Map{{"kind", "rust"}, {"code", bytes("x")}}}, "is of kind `rust`"},
      {AttrList{Map{{"kind", kC}, {"code", bytes("x")}, {"color", 1}}}, "has a key `color`"},
      {AttrList{Map{{"kind", kC}}}, "has neither `code` nor `name`"},
      {AttrList{Map{{"kind", kC}, {"name", "f.c"}}}, "only a shared library is found by name"},
      {AttrList{Map{{"kind", kC}, {"code", "void f(void);"}}}, "no constant of bytes"},
      {AttrList{Map{{"kind", kC}, {"code", bytes("\177ELF")}}}, "is of kind `c`, and its 4 bytes"},
      {AttrList{Map{{"kind", "object"}, {"code", bytes("void f(void) {}")}}},
       "is of kind `object`, and its 15 bytes are not"},
      {AttrList{Map{{"kind", "archive"}, {"code", bytes("x")}}}, "is of kind `archive`"},
      {AttrList{Map{{"kind", "shared"},
                    {"code", bytes(std::string("\177ELF\2\1\1") + std::string(9, '\0') + "\1" +
                                   std::string(7, '\0'))}}},
       "an ELF file of another kind"},
      {AttrList{Map{{"kind", "shared"}, {"name", "/tmp/libfoo.so"}}}, "without a folder"},
      {AttrList{Map{{"kind", kC}, {"code", bytes("x")}, {"link", AttrList{AttrValue("-Wl,-x")}}}},
       "links `-Wl,-x`"},
      {AttrList{Map{{"kind", kC}, {"code", bytes("x")}, {"symbols", AttrList{AttrValue(1)}}}},
       "expected a list of strings"},
      {AttrList{Map{{"kind", kC}, {"code", bytes("x")}, {"symbols", AttrList{"f", "f"}}}},
       "has symbol `f` twice"},
      {AttrList{Map{{"kind", kC}, {"code", bytes("x")}, {"symbols", AttrList{"f"}}},
                Map{{"kind", kC}, {"code", bytes("y")}, {"symbols", AttrList{"f"}}}},
       "items 0 and 1 of `external_mods` both have symbol `f`"},
  };
  for (const auto& [attr, words] : cases) {
    const std::string error = error_of(attr);
    EXPECT_NE(error.find("TN0804"), std::string::npos) << error;
    EXPECT_NE(error.find(words), std::string::npos) << error << "\nexpected: " << words;
  }
}

TEST(ExternalModules, ModulesAreMerged) {
  const auto function = [](const std::string& name) {
    const auto x = make<Var>("x", TensorType::of({2}, kFloat32));
    return make<Function>(std::vector<Ref<Var>>{x},
                          make<SeqExpr>(std::vector<Ref<BindingBlock>>{}, Value(x)), Type(),
                          Attrs{{"name", name}});
  };
  IRModule a, b;
  a.set("main", function("a"));
  a.set("shared", function("s"));
  add_external_module(a, c_source("int f;", {"f"}));
  b.set("shared", function("s"));
  b.set("other", function("b"));
  add_external_module(b, c_source("int g;", {"g"}));
  const IRModule both = merge_modules(a, b);
  EXPECT_EQ(both.size(), 3U);
  EXPECT_EQ(external_modules(both).size(), 2U);

  IRModule clashing = b;
  clashing.set("main", function("another"));
  EXPECT_THROW(merge_modules(a, clashing), CompileError);
  IRModule same_symbol;
  add_external_module(same_symbol, c_source("int f = 1;", {"f"}));
  EXPECT_THROW(merge_modules(a, same_symbol), CompileError);
}

}  // namespace
}  // namespace tenon::graph
