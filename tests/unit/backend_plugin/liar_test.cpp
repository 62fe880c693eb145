// SPDX-License-Identifier: Apache-2.0
// Plugins that answer what they may not: each is refused by an error that names it and what was
// wrong. liar.c is one back end for all; what it does wrong is chosen by a number.
#include "c/liar.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tenon/backend/plugin/plugin.h"
#include "tenon/graph/patterns/matcher.h"
#include "tenon/script/parser.h"
#include "tenon/script/printer.h"
#include "tenon/support/diagnostics.h"

const char* liar_object = "";
int64_t liar_object_size = 0;

namespace tenon {
namespace {

/// Which callbacks a lie is told in.
enum class At : uint8_t { kLoad, kCheck, kCost, kLower, kPass };

struct Lie {
  int number;
  const char* name;
  At at;
  const char* code;
  const char* words;  // that the error has
};
#define LIE(NUMBER, AT, CODE, WORDS) \
  Lie { NUMBER, #NUMBER, AT, CODE, WORDS }

std::ostream& operator<<(std::ostream& out, const Lie& lie) { return out << lie.name; }

constexpr const char* kModule = R"(
@I.ir_module
class Module:
    @R.function(private=True)
    def part(x: R.Tensor((4, 8), "float32")) -> R.Tensor((4, 8), "float32"):
        R.func_attr({"Composite": "liar.relu"})
        with R.dataflow():
            y: R.Tensor((4, 8), "float32") = R.add(x, R.const(CONSTANT, "float32"))
            z: R.Tensor((4, 8), "float32") = R.nn.relu(y)
            R.output(z)
        return z

    @R.function
    def main(x: R.Tensor((4, 8), "float32")) -> R.Tensor((4, 8), "float32"):
        cls = Module
        y: R.Tensor((4, 8), "float32") = cls.part(x)
        return y
)";

IRModule module_of_test() {
  std::string text = kModule, rows;
  for (int i = 0; i < 4; ++i)
    rows += fmt::format("{}[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]", i ? ", " : "");
  text.replace(text.find("CONSTANT"), 8, "[" + rows + "]");
  return script::parse_module(text);
}

/// What `at` does with a plugin that lies, in this order: load, check and cost, lower, pass.
void tell(const Lie& lie) {
  liar_lie = lie.number;
  const graph::Backend backend = plugin::adapt(liar_backend);
  if (lie.at == At::kLoad) return;
  IRModule module = module_of_test();
  if (lie.at == At::kPass) {
    backend.passes.at(0).run(std::move(module), {});
    return;
  }
  if (lie.at == At::kLower) {
    backend.lower(std::move(module), "part", {});
    return;
  }
  const auto composite = module.find<graph::Function>("part");
  const std::map<std::string, graph::Value> annotated;
  const graph::Match match;
  const graph::PatternCheck check{module, *module.find<graph::Function>("main"), match, composite,
                                  annotated};
  if (lie.at == At::kCheck) backend.patterns.at(0).check(check);
  if (lie.at == At::kCost) backend.cost(check);
}

class Liar : public testing::TestWithParam<Lie> {
 protected:
  void TearDown() override { liar_lie = NO_LIE; }
};

// What the sanitizers stop, before Tenon can say who did it.
bool is_for_sanitizers(const Lie& lie) {
#ifdef TENON_SANITIZE
  return lie.number == CHECK_DIVIDES_BY_ZERO || lie.number == PACK_READS_PAST_THE_END ||
         lie.number == GENERATE_EMITS_FROM_NOWHERE;
#else
  (void)lie;
  return false;
#endif
}

TEST_P(Liar, IsRefused) {
  if (is_for_sanitizers(GetParam())) GTEST_SKIP() << "the sanitizers report it themselves";
  static std::string object;
  if (object.empty()) {
    std::ifstream file(LIAR_OBJECT_FILE, std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    object = bytes.str();
    ASSERT_FALSE(object.empty());
    liar_object = object.data();
    liar_object_size = static_cast<int64_t>(object.size());
  }
  const Lie& lie = GetParam();
  try {
    tell(lie);
    FAIL() << "it was believed";
  } catch (const CompileError& error) {
    EXPECT_EQ(std::string(error.first().code.name), lie.code) << error.what();
    EXPECT_NE(std::string(error.what()).find(lie.words), std::string::npos) << error.what();
    if (lie.at != At::kLoad)
      EXPECT_NE(std::string(error.what()).find("back end `liar`"), std::string::npos)
          << error.what();
  }
}

// clang-format off
INSTANTIATE_TEST_SUITE_P(Load, Liar, testing::Values(
    LIE(SIZE_IS_TOO_SMALL, At::kLoad, "bad-plugin", "its TenonBackend.size is 8; expected"),
    LIE(SIZE_IS_TOO_LARGE, At::kLoad, "bad-plugin", "its TenonBackend.size is"),
    LIE(ABI_MAJOR_IS_NEWER, At::kLoad, "bad-plugin", "made for version 2.2 of the interface of back ends; this Tenon has 1.2"),
    LIE(ABI_MINOR_IS_NEWER, At::kLoad, "bad-plugin", "made for version 1.3 of the interface of back ends; this Tenon has 1.2"),
    LIE(ABI_IS_GARBAGE, At::kLoad, "bad-plugin", "made for version 57005.48879"),
    LIE(THERE_IS_NO_BACKEND, At::kLoad, "bad-plugin", "it gives no back end"),
    LIE(NAME_IS_NULL, At::kLoad, "bad-plugin", "its name is ``; expected a letter"),
    LIE(NAME_HAS_A_DOT, At::kLoad, "bad-plugin", "its name is `liar.conv`"),
    LIE(NAME_IS_LONG, At::kLoad, "bad-plugin", "its name has more than 64 bytes"),
    LIE(NAME_IS_NOWHERE, At::kLoad, "plugin-crash", "accessed memory that is not there"),
    LIE(NAME_IS_NONE, At::kLoad, "bad-plugin", "its name is `none`"),
    LIE(UNIT_IS_7, At::kLoad, "bad-plugin", "its unit is 7"),
    LIE(THREADS_ARE_9, At::kLoad, "bad-plugin", "its threads are 9"),
    LIE(FLAGS_ARE_UNKNOWN, At::kLoad, "bad-plugin", "does not know 0x100000"),
    LIE(PRIORITY_IS_HUGE, At::kLoad, "bad-plugin", "its priority is 2147483647"),
    LIE(PATTERNS_ARE_GARBAGE, At::kLoad, "bad-plugin", "has patterns that cannot be read"),
    LIE(PATTERNS_NAME_NO_OPERATOR, At::kLoad, "bad-plugin", "no_such_thing"),
    LIE(PATTERNS_WITHOUT_GENERATE, At::kLoad, "bad-plugin", "it has patterns and no `generate`"),
    LIE(NOTHING_AT_ALL, At::kLoad, "bad-plugin", "it has neither patterns nor passes"),
    LIE(PASSES_ARE_NEGATIVE, At::kLoad, "bad-plugin", "it has -1 passes"),
    LIE(PASSES_ARE_NULL, At::kLoad, "bad-plugin", "its list of them is null"),
    LIE(PASS_NAME_IS_A_SENTENCE, At::kLoad, "bad-plugin", "its pass 0 is named `Fold all`"),
    LIE(PASSES_HAVE_ONE_NAME, At::kLoad, "bad-plugin", "it has two passes `Same`"),
    LIE(PASS_HAS_NO_FUNCTION, At::kLoad, "bad-plugin", "its pass `Same` has no function"),
    LIE(PASS_SIZE_IS_0, At::kLoad, "bad-plugin", "its pass 0 has a size of 0"),
    LIE(RUN_SYMBOL_IS_NO_NAME, At::kLoad, "bad-plugin", "its run_symbol is `run me`"),
    LIE(ENTRY_CRASHES, At::kLoad, "plugin-crash", "accessed memory that is not there")));

INSTANTIATE_TEST_SUITE_P(Check, Liar, testing::Values(
    LIE(CHECK_RETURNS_5, At::kCheck, "bad-backend", "returned 5 without a reason"),
    LIE(CHECK_REFUSES_AND_RETURNS_0, At::kCheck, "bad-backend", "refused a match and returned 0"),
    LIE(CHECK_CODE_IS_A_SENTENCE, At::kCheck, "bad-backend", "refused with the reason code `I do not like it!`"),
    LIE(CHECK_EMITS, At::kCheck, "bad-backend", "emitted TENON_SYMBOL, which it cannot give here"),
    LIE(CHECK_READS_NULL, At::kCheck, "plugin-crash", "callback `check` of back end `liar` crashed: it accessed memory"),
    LIE(CHECK_ABORTS, At::kCheck, "plugin-crash", "it called abort"),
    LIE(CHECK_DIVIDES_BY_ZERO, At::kCheck, "plugin-crash", "it did arithmetic that has no result"),
    LIE(CHECK_OVERFLOWS_THE_STACK, At::kCheck, "plugin-crash", "accessed memory that is not there"),
    LIE(COST_IS_NAN, At::kCost, "bad-backend", "gave nan; expected seconds"),
    LIE(COST_IS_INFINITE, At::kCost, "bad-backend", "gave inf; expected seconds")));

INSTANTIATE_TEST_SUITE_P(Generate, Liar, testing::Values(
    LIE(SCRATCH_IS_NEGATIVE, At::kLower, "bad-backend", "asked for -8 bytes"),
    LIE(SCRATCH_IS_HUGE, At::kLower, "bad-backend", "asked for 9223372036854775807 bytes"),
    LIE(SCRATCH_IS_TOO_LITTLE, At::kLower, "bad-backend", "takes uint8 of shape (1024,) as parameter 3; expected"),
    LIE(PACK_GIVES_TWO, At::kLower, "bad-backend", "gave 2 answers for input 1"),
    LIE(PACK_GIVES_A_SYMBOL, At::kLower, "bad-backend", "emitted TENON_SYMBOL, which it cannot give here"),
    LIE(PACK_SIZE_IS_NEGATIVE, At::kLower, "bad-backend", "emitted TENON_PACKED of -7 bytes"),
    LIE(PACK_SIZE_IS_0, At::kLower, "bad-backend", "emitted TENON_PACKED of 0 bytes"),
    LIE(PACK_HAS_NO_DATA, At::kLower, "bad-backend", "emitted TENON_PACKED without data"),
    LIE(PACK_READS_PAST_THE_END, At::kLower, "plugin-crash", "callback `pack`"),
    LIE(GENERATE_GIVES_NOTHING, At::kLower, "bad-backend", "emitted nothing that could run"),
    LIE(GENERATE_RETURNS_3, At::kLower, "bad-backend", "returned 3 without a reason"),
    LIE(GENERATE_REFUSES, At::kLower, "backend-refused", "(memory): it does not fit after all"),
    LIE(GENERATE_GIVES_TWO, At::kLower, "bad-backend", "emitted both TENON_SYMBOL and TENON_C"),
    LIE(GENERATE_KIND_IS_UNKNOWN, At::kLower, "bad-backend", "emitted an answer of kind 77"),
    LIE(GENERATE_PACKS, At::kLower, "bad-backend", "emitted TENON_PACKED, which it cannot give here"),
    LIE(GENERATE_CRASHES, At::kLower, "plugin-crash", "callback `generate` of back end `liar` crashed"),
    LIE(GENERATE_IS_NOWHERE, At::kLower, "plugin-crash", "callback `generate` of back end `liar` crashed"),
    LIE(GENERATE_EMITS_FROM_NOWHERE, At::kLower, "plugin-crash", "accessed memory that is not there"),
    LIE(SYMBOL_IS_NO_NAME, At::kLower, "bad-backend", "expected a C identifier"),
    LIE(SYMBOL_IS_EMPTY, At::kLower, "bad-backend", "expected a C identifier"),
    LIE(C_DEFINES_NOTHING, At::kLower, "bad-backend", "defines no function `liar_part`"),
    LIE(C_HAS_ZERO_BYTES, At::kLower, "bad-backend", "with bytes that no source has"),
    LIE(PRELUDE_WITHOUT_C, At::kLower, "bad-backend", "emitted TENON_C_PRELUDE beside TENON_SYMBOL"),
    LIE(OBJECT_IS_TEXT, At::kLower, "bad-backend", "they are no ELF file"),
    LIE(OBJECT_IS_CUT_OFF, At::kLower, "bad-backend", "lies outside of them"),
    LIE(OBJECT_IS_A_PROGRAM, At::kLower, "bad-backend", "an ELF file of type 2"),
    LIE(OBJECT_DEFINES_NOTHING, At::kLower, "bad-backend", "they define no function `liar_part`"),
    LIE(RUN_WITHOUT_AN_ENTRY, At::kLower, "bad-backend", "names no run_symbol"),
    LIE(LINKS_A_PATH, At::kLower, "bad-backend", "links `/tmp/evil.so`"),
    LIE(LINKS_AN_OPTION, At::kLower, "bad-backend", "links `-Wl,--wrap`"),
    LIE(LINKS_ITSELF, At::kLower, "bad-backend", "it is linked into Tenon and has none")));

INSTANTIATE_TEST_SUITE_P(Script, Liar, testing::Values(
    LIE(SCRIPT_IS_GARBAGE, At::kLower, "bad-backend", "emitted TENON_TVMSCRIPT that is not well formed"),
    LIE(SCRIPT_IS_EMPTY, At::kLower, "bad-backend", "emitted TENON_TVMSCRIPT"),
    LIE(SCRIPT_HAS_ANOTHER_NAME, At::kLower, "bad-backend", "without a PrimFunc `liar_part`"),
    LIE(SCRIPT_SHAPE_IS_WRONG, At::kLower, "bad-backend", "takes float32 of shape (4, 9) as parameter 0"),
    LIE(SCRIPT_RANK_IS_WRONG, At::kLower, "bad-backend", "takes float32 of shape (32,) as parameter 1"),
    LIE(SCRIPT_DTYPE_IS_WRONG, At::kLower, "bad-backend", "takes int32 of shape (4, 8) as parameter 2"),
    LIE(SCRIPT_TAKES_TOO_MUCH, At::kLower, "bad-backend", "has 4 parameters; expected 3"),
    LIE(SCRIPT_WRITES_OUTSIDE, At::kLower, "bad-backend", "that is not well formed"),
    LIE(SCRIPT_USES_WHAT_IS_NOT_THERE, At::kLower, "bad-backend", "that is not well formed"),
    LIE(SCRIPT_CALLS_ITSELF, At::kLower, "bad-backend", "that is not well formed")));

INSTANTIATE_TEST_SUITE_P(Pass, Liar, testing::Values(
    LIE(PASS_GIVES_GARBAGE, At::kPass, "bad-backend", "gave a module that is not well formed"),
    LIE(PASS_GIVES_TWO, At::kPass, "bad-backend", "gave 2 modules"),
    LIE(PASS_BREAKS_TYPES, At::kPass, "bad-backend", "gave a module that is not well formed"),
    LIE(PASS_REFUSES, At::kPass, "backend-refused", "(empty): there is nothing to do"),
    LIE(PASS_RETURNS_9, At::kPass, "bad-backend", "returned 9 without a reason"),
    LIE(PASS_CRASHES, At::kPass, "plugin-crash", "it called abort"),
    LIE(PASS_EMITS_C, At::kPass, "bad-backend", "emitted TENON_C, which it cannot give here")));
// clang-format on

TEST(Plugin, ThatIsHonestIsTaken) {
  const Lie none = LIE(NO_LIE, At::kLower, "", "");
  EXPECT_NO_THROW(tell(none));
  liar_lie = NO_LIE;
  const graph::Backend backend = plugin::adapt(liar_backend);
  EXPECT_EQ(backend.patterns.at(0).name, "liar.relu");
  EXPECT_EQ(backend.passes.at(0).name, "liar.Same");
  const IRModule lowered = backend.lower(module_of_test(), "part", {});
  EXPECT_TRUE(lowered.contains("liar_part")) << script::print(lowered);
  const IRModule module = module_of_test();
  EXPECT_TRUE(structural_equal(backend.passes.at(0).run(module, {}), module));
}

TEST(Plugin, WithASmallerStructLoads) {
  liar_lie = SIZE_IS_AN_OLDER_ONE;
  const graph::Backend backend = plugin::adapt(liar_backend);
  liar_lie = NO_LIE;
  EXPECT_EQ(backend.name, "liar");
  EXPECT_TRUE(backend.passes.empty());  // members that it does not have
}

TEST(Plugin, ThatRefusesAMatchGivesItsReason) {
  liar_lie = CHECK_REFUSES;
  const graph::Backend backend = plugin::adapt(liar_backend);
  const IRModule module = module_of_test();
  const std::map<std::string, graph::Value> annotated;
  const graph::Match match;
  const graph::Verdict verdict =
      backend.patterns.at(0).check({module, *module.find<graph::Function>("main"), match,
                                    module.find<graph::Function>("part"), annotated});
  liar_lie = NO_LIE;
  EXPECT_FALSE(verdict.accepted);
  EXPECT_EQ(verdict.code, "dtype");
  EXPECT_EQ(verdict.words, "not today");
}

}  // namespace
}  // namespace tenon
