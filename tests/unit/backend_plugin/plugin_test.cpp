// SPDX-License-Identifier: Apache-2.0
// What a plugin is told, and what becomes of what it answers.
#include "tenon/backend/plugin/plugin.h"

#include <gtest/gtest.h>

#include "tenon/graph/partition_passes.h"
#include "tenon/graph/patterns/matcher.h"
#include "tenon/script/parser.h"
#include "tenon/script/printer.h"
#include "tenon/support/diagnostics.h"

namespace tenon {
namespace {

constexpr const char* kPattern = R"(
@R.function
def dense_relu(x: R.Tensor, w: R.Tensor, b: R.Tensor):
    return R.nn.relu(R.add(R.matmul(x, w), b))
)";

/// A module with two parts of back end `probe`, equal but for their names.
IRModule module_of_test(const std::string& rows = "2") {
  const std::string part = R"(
    @R.function(private=True)
    def NAME(x: R.Tensor((ROWS, 3), "float32")) -> R.Tensor((ROWS, 2), "float32"):
        R.func_attr({"Composite": "probe.dense_relu", "axis": 7})
        with R.dataflow():
            a: R.Tensor((ROWS, 2), "float32") = R.matmul(x, R.const([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "float32"))
            c: R.Tensor((ROWS, 2), "float32") = R.add(a, R.const([1.0, 2.0], "float32"))
            d: R.Tensor((ROWS, 2), "float32") = R.nn.relu(c)
            R.output(d)
        return d
)";
  std::string text = "@I.ir_module\nclass Module:\n";
  for (const char* name : {"one", "two"}) {
    std::string copy = part;
    copy.replace(copy.find("NAME"), 4, name);
    text += copy;
  }
  for (size_t at; (at = text.find("ROWS")) != std::string::npos;) text.replace(at, 4, rows);
  return script::parse_module(text);
}

/// What the functions below found and are to answer.
struct Probe {
  std::string seen;
  std::string bound;  // by the pattern's names, in `generate`
  const char* patterns = kPattern;
  int32_t kind = TENON_SYMBOL;
  std::string bytes = "f";
  std::vector<std::string> preludes;
  int32_t packs = 0;  // 0: leaves constants, else what it emits
  int64_t scratch = 0;
  uint32_t flags = 0;
  uint32_t abi = TENON_BACKEND_ABI;
  const char* run_symbol = nullptr;
} probe;

std::string str(const TenonOperand& operand) {
  switch (operand.kind) {
    case TENON_OPERAND_INPUT: return fmt::format("input {}", operand.index);
    case TENON_OPERAND_OPERATOR: return fmt::format("operator {}", operand.index);
    default: return "?";
  }
}

int32_t check(const TenonHost* host, const TenonMatch* match, TenonAnswer*) {
  std::string& seen = probe.seen;
  seen = fmt::format("{}\n", host->pattern(match));
  for (int32_t i = 0; i < host->num_inputs(match); ++i) {
    const TenonTensor* input = host->input(match, i);
    seen += fmt::format("{} {} {} bytes{}\n", input->name, input->type, input->bytes,
                        input->data ? ", constant" : "");
  }
  for (int32_t op = 0; op < host->num_operators(match); ++op) {
    seen += host->operator_name(match, op);
    for (int32_t i = 0; i < host->num_operands(match, op); ++i)
      seen += fmt::format(", {}", str(*host->operand(match, op, i)));
    seen += "\n";
  }
  seen += fmt::format("{}, {} symbols, axis {}\n", str(*host->output_source(match, 0)),
                      host->num_symbols(match), host->attribute_int(match, -1, "axis", 0));
  for (int32_t i = 0; i < host->num_symbols(match); ++i)
    seen += fmt::format("symbol {}\n", host->symbol_name(match, i));
  for (int32_t d = 0; d < host->input(match, 0)->rank; ++d)
    if (host->input(match, 0)->shape[d] == TENON_SYMBOLIC)
      seen += fmt::format("dimension {} is symbol {}\n", d, host->input(match, 0)->symbols[d]);
  for (int32_t d = 0; d < host->output(match, 0)->rank; ++d)
    if (host->output(match, 0)->shape[d] == TENON_SYMBOLIC)
      seen += fmt::format("dimension {} of the output is symbol {}\n", d,
                          host->output(match, 0)->symbols[d]);
  const char* chosen = host->choose(match, 0);
  seen +=
      fmt::format("{}\n", chosen && std::string(chosen).find("@T.prim_func") != std::string::npos);
  seen += fmt::format("{} {} {}", host->input(match, 9) == nullptr, host->num_operands(match, 9),
                      host->attribute_text(match, 5, "x") == nullptr);
  return 0;
}

int64_t scratch(const TenonHost*, const TenonMatch*) { return probe.scratch; }

int32_t pack(const TenonHost* host, const TenonMatch*, int32_t, TenonAnswer* answer) {
  if (probe.packs == 0) return 0;
  return host->emit(answer, probe.packs, "packed bytes", 12);
}

int32_t generate(const TenonHost* host, const TenonMatch* match, TenonAnswer* answer) {
  for (const char* name : {"bias", "source", "other"})
    if (const TenonOperand* operand = host->annotated(match, name))
      probe.bound += fmt::format("{}: {}\n", name, str(*operand));
  for (const std::string& prelude : probe.preludes)
    host->emit(answer, TENON_C_PRELUDE, prelude.c_str(), TENON_TEXT);
  std::string bytes = probe.bytes;
  if (const size_t at = bytes.find("NAME"); at != std::string::npos)
    bytes.replace(at, 4, host->symbol(match));
  return host->emit(answer, probe.kind, bytes.data(), static_cast<int64_t>(bytes.size()));
}

int32_t run_pass(const TenonHost* host, const char* module, TenonAnswer* answer) {
  const char* level = host->argument(answer, "level");
  const char* none = host->argument(answer, "none");
  const char* chosen = host->choose_in(answer, "one", "a");
  probe.seen = fmt::format("{} {} {}", level ? level : "null", none ? none : "null",
                           chosen && std::string(chosen).find("T.prim_func") != std::string::npos);
  return module[0] == 0;
}

const TenonBackend* entry(const TenonHost*) {
  static const TenonPass kPass = {sizeof(TenonPass), "Look", "looks", run_pass};
  static const TenonPass* const kPasses[] = {&kPass};
  static TenonBackend backend;
  backend = TenonBackend();
  backend.size = sizeof(TenonBackend);
  backend.abi = probe.abi;
  backend.name = "probe";
  backend.patterns = probe.patterns;
  backend.flags = probe.flags;
  backend.check = check;
  backend.scratch = scratch;
  backend.pack = pack;
  backend.generate = generate;
  backend.run_symbol = probe.run_symbol;
  backend.passes = kPasses;
  backend.num_passes = 1;
  return &backend;
}

graph::Verdict verdict_of(const graph::Backend& backend, const IRModule& module) {
  const std::map<std::string, graph::Value> annotated;
  const graph::Match match;
  const auto part = module.find<graph::Function>("one");
  return backend.patterns.at(0).check({module, *part, match, part, annotated});
}

std::string source_of(const IRModule& module) {
  std::string text;
  for (const graph::ExternalModule& item : graph::external_modules(module))
    if (item.code)
      text.append(reinterpret_cast<const char*>(item.code->data().data()),
                  item.code->data().size());
  return text;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

class PluginAnswers : public testing::Test {
 protected:
  void SetUp() override { probe = Probe(); }
};

TEST_F(PluginAnswers, IsToldWhatAMatchIs) {
  EXPECT_TRUE(verdict_of(plugin::adapt(entry), module_of_test()).accepted);
  EXPECT_EQ(probe.seen,
            "probe.dense_relu\n"
            "x R.Tensor((2, 3), \"float32\") 24 bytes\n"
            "const_0 R.Tensor((3, 2), \"float32\") 24 bytes, constant\n"
            "const_1 R.Tensor((2,), \"float32\") 8 bytes, constant\n"
            "relax.matmul, input 0, input 1\n"
            "relax.add, operator 0, input 2\n"
            "relax.nn.relu, operator 1\n"
            "operator 2, 0 symbols, axis 7\n"
            "true\n"
            "true -1 true");
}

TEST_F(PluginAnswers, TakesSymbolicShapesOnlyWhereItSaysSo) {
  const graph::Verdict refused = verdict_of(plugin::adapt(entry), module_of_test("\"n\""));
  EXPECT_FALSE(refused.accepted);
  EXPECT_EQ(refused.code, "symbolic");
  probe.flags = TENON_TAKES_SYMBOLIC_SHAPES;
  const graph::Backend backend = plugin::adapt(entry);
  EXPECT_TRUE(verdict_of(backend, module_of_test("\"n\"")).accepted);
  const std::string text = script::print(backend.lower(module_of_test("\"n\""), "one", {}));
  EXPECT_NE(text.find("n: T.int64"), std::string::npos) << text;
}

TEST_F(PluginAnswers, AnExpressionIsASymbolOfItsOwnSinceVersion11) {
  const auto module = [] {
    return script::parse_module(R"(
@I.ir_module
class Module:
    @R.function(private=True)
    def one(x: R.Tensor(("2 * n", "n"), "float32"), y: R.Tensor(("n", "n * 2"), "float32")) -> R.Tensor(("2 * n", "n * 2"), "float32"):
        n = T.int64()
        R.func_attr({"Composite": "probe.dense_relu"})
        with R.dataflow():
            a = R.matmul(x, y)
            R.output(a)
        return a
)");
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  };
  probe.flags = TENON_TAKES_SYMBOLIC_SHAPES;
  EXPECT_TRUE(verdict_of(plugin::adapt(entry), module()).accepted);
  has(probe.seen,
      "2 symbols, axis 0\nsymbol n\nsymbol dim_1\n"
      "dimension 0 is symbol 1\ndimension 1 is symbol 0\n"
      "dimension 0 of the output is symbol 1\ndimension 1 of the output is symbol 1\n");
  has(script::print(plugin::adapt(entry).lower(module(), "one", {})),
      R"(def f(x0: T.Buffer(("dim_1", "n"), "float32"), x1: T.Buffer(("n", "dim_1"), "float32"), y0: T.Buffer(("dim_1", "dim_1"), "float32"), n: T.int64, dim_1: T.int64))");
  probe.abi = TENON_BACKEND_ABI_MAJOR << 16;
  EXPECT_TRUE(verdict_of(plugin::adapt(entry), module()).accepted);
  has(probe.seen,
      "1 symbols, axis 0\nsymbol n\ndimension 0 is symbol -1\ndimension 1 is symbol 0\n");
  has(script::print(plugin::adapt(entry).lower(module(), "one", {})),
      R"(y0: T.Buffer(("2 * n", "n * 2"), "float32"), n: T.int64))");
}

TEST_F(PluginAnswers, WhatThePatternsNamesAreBoundToIsKnownWhenCodeIsMade) {
  probe.patterns = R"(
bias = is_const()
product = is_op("relax.matmul")(wildcard(), wildcard())
biased = is_op("relax.add")(product, bias) | is_op("relax.add")(bias, product)
patterns = [("dense_relu", is_op("relax.nn.relu")(biased), {"source": product})]
)";
  const graph::Backend backend = plugin::adapt(entry);
  IRModule module;
  module.set("main", with(module_of_test().find<graph::Function>("one"), [](graph::Function& copy) {
               copy.attrs = {};
               copy.is_private = false;
             }));
  module = graph::fuse_ops_by_pattern(std::move(module), backend.patterns, {});
  std::string composite;
  for (const auto& [name, function] : module.functions())
    if (function->attrs.contains("Composite")) composite = name;
  ASSERT_NE(composite, "") << script::print(module);
  EXPECT_EQ(probe.seen.find("bindings"), std::string::npos);
  (void)backend.lower(std::move(module), composite, {});
  EXPECT_EQ(probe.bound, "bias: input 2\nsource: operator 0\n");
}

TEST_F(PluginAnswers, ASymbolIsCalledWithWhatTheMatchHas) {
  probe.scratch = 96;
  probe.flags = TENON_PASS_THREADS;
  const std::string text = script::print(plugin::adapt(entry).lower(module_of_test(), "one", {}));
  EXPECT_NE(text.find("scratch: T.Buffer((96,), \"uint8\", align=64)"), std::string::npos) << text;
  EXPECT_NE(text.find("threads: T.int32"), std::string::npos) << text;
  EXPECT_NE(text.find("T.num_threads(\"int32\")"), std::string::npos) << text;
  EXPECT_NO_THROW(script::parse_module(text));
}

TEST_F(PluginAnswers, ConstantsArePackedOrLeftOut) {
  probe.packs = TENON_PACKED;
  const std::string packed = script::print(plugin::adapt(entry).lower(module_of_test(), "one", {}));
  EXPECT_NE(packed.find("x1: T.Buffer((12,), \"uint8\", align=64)"), std::string::npos) << packed;
  probe.packs = TENON_OMITTED;
  const std::string omitted =
      script::print(plugin::adapt(entry).lower(module_of_test(), "one", {}));
  EXPECT_NE(omitted.find("def f(x0: T.Buffer((2, 3), \"float32\"), y0:"), std::string::npos)
      << omitted;
}

TEST_F(PluginAnswers, CFunctionsShareTheirPrelude) {
  probe.kind = TENON_C;
  probe.preludes = {"#include <stdint.h>", "static int helper;\n"};
  probe.bytes = "int32_t NAME(const float* x) { return 0; }";
  const graph::Backend backend = plugin::adapt(entry);
  IRModule module = backend.lower(module_of_test(), "one", {});
  module = backend.lower(std::move(module), "two", {});
  EXPECT_EQ(graph::external_modules(module).size(), 1u);
  const std::string source = source_of(module);
  EXPECT_EQ(count(source, "#include <stdint.h>"), 1u) << source;
  EXPECT_EQ(count(source, "static int helper;"), 1u) << source;
  EXPECT_EQ(count(source, "int32_t probe_one("), 1u) << source;
  EXPECT_EQ(count(source, "int32_t probe_two("), 1u) << source;
}

TEST_F(PluginAnswers, ABlobIsRunByThePluginItself) {
  probe.kind = TENON_RUN;
  probe.bytes = "blob";
  probe.run_symbol = "probe_run";
  const IRModule module = plugin::adapt(entry, "/proc/self/exe").lower(module_of_test(), "one", {});
  const std::string source = source_of(module);
  EXPECT_NE(source.find("return probe_run(&run);"), std::string::npos) << source;
  const std::string text = script::print(module);
  EXPECT_NE(text.find("blob: T.Buffer((4,), \"uint8\", align=64)"), std::string::npos) << text;
}

TEST_F(PluginAnswers, APassGetsItsArguments) {
  plugin::adapt(entry).passes.at(0).run(module_of_test(), {{"level", 3}});
  EXPECT_EQ(probe.seen, "3 null true");
}

}  // namespace
}  // namespace tenon
