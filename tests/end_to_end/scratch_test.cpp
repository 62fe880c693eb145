// SPDX-License-Identifier: Apache-2.0
// C programs whose memory the caller lays out: pools in sections of its own, aligned as the header
// says, and scratch that a library asks for.
#include "command.h"

namespace {

using tenon::testing_command::CommandTest;
using tenon::testing_command::Outcome;
using tenon::testing_command::Said;

class ScratchTest : public CommandTest {
 protected:
  ScratchTest() : CommandTest("scratch") {}

  // The program in C, with `main` of the caller's, built and run.
  Said built(const std::string& options, const std::string& main) {
    write("main.c", main);
    const Outcome compiled = tenon("compile " + folder_ + "/net.py --target c --name net -o " +
                                   folder_ + "/c " + options);
    EXPECT_EQ(compiled.status, 0) << compiled.err;
    said_ = compiled.out;
    return shell("cd " + folder_ +
                 " && cc -std=c11 -Wall -Wextra -Werror -O1 -I c c/net.c main.c library.c -lm -o "
                 "program && ./program");
  }
  std::string said_;
};

constexpr const char* kLibrary = R"(
#include <stddef.h>
#include <stdint.h>
int32_t transfer(const float* x, float* y, void* scratch, int64_t n) {
  if ((uintptr_t)scratch % 4096 != 0 || (uintptr_t)x % 128 != 0) return 9;
  for (int64_t i = 0; i < n; ++i) ((float*)scratch)[i] = x[i];
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * ((float*)scratch)[i];
  return 0;
}
size_t transfer_bytes(int64_t n) { return (size_t)(n * 4); }
)";

constexpr const char* kNetwork = R"(
from tvm.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @T.extern_func
    def transfer(x: T.Buffer((n,), "float32", align=128), y: T.Buffer((n,), "float32"), scratch: T.Buffer((SCRATCH,), "uint8", align=4096), n: T.int64):
        T.func_attr({"effects": {"y": "out", "scratch": "scratch"}, "returns": "int32", "c_types": {"scratch": "void*"}QUERY})

    @R.function
    def main(x: R.Tensor((100,), "float32")) -> R.Tensor((100,), "float32"):
        with R.dataflow():
            a = R.add(x, x)
            b = R.call_dps_packed(Module.transfer, (a,), out_sinfo=R.Tensor((100,), "float32"))
            c = R.add(b, b)
            d = R.call_dps_packed(Module.transfer, (c,), out_sinfo=R.Tensor((100,), "float32"))
            R.output(d)
        return d
)";

std::string with(std::string text, const std::string& mark, const std::string& value) {
  return text.replace(text.find(mark), mark.size(), value);
}

constexpr const char* kMain = R"(
#include <stdio.h>
#include "net.h"
SECTIONS
int main(void) {
  static float x[100], y[100];
  const net_inputs in = {x};
  const net_outputs out = {y};
  net_error error = {0, 0, 0, 0, 0};
  int32_t code, i;
  for (i = 0; i < 100; ++i) x[i] = (float)i;
  code = net_run(&in, &out, POOLS, &error);
  if (code != 0) printf("code %d of %s: %s, %d\n", code, error.where, error.message, (int)error.bound);
  else printf("y[3] %g\n", y[3]);
  return code;
}
)";

TEST_F(ScratchTest, PoolsAreSectionsOfTheCaller) {
  write("library.c", kLibrary);
  write("net.py", with(with(kNetwork, "SCRATCH", "\"n * 4\""), "QUERY", ""));
  const std::string sections =
      "static uint8_t fast[NET_FAST_SIZE] __attribute__((section(\".fast\"), "
      "aligned(NET_FAST_ALIGN)));\n"
      "static uint8_t slow[NET_SLOW_SIZE] __attribute__((section(\".slow\"), "
      "aligned(NET_SLOW_ALIGN)));\n";
  const std::string main = with(kMain, "SECTIONS", sections);
  const std::string pools = "--pool fast=4KiB --pool slow";
  const Said right = built(pools, with(main, "POOLS", "fast, slow"));
  EXPECT_EQ(right.status, 0) << right.text;
  EXPECT_EQ(right.text, "y[3] 48\n");
  const std::string header = tenon::testing_command::read(folder_ + "/c/net.h");
  EXPECT_NE(header.find("_ALIGN 4096\n"), std::string::npos) << header;
  EXPECT_NE(said_.find("pool       fast "), std::string::npos) << said_;
  // Memory that is aligned as malloc's is found out, with the pool and what it needs.
  const std::string wrong = header.find("NET_FAST_ALIGN 4096") != std::string::npos
                                ? "fast + 16, slow"
                                : "fast, slow + 16";
  const Said misaligned = built(pools, with(main, "POOLS", wrong));
  EXPECT_EQ(misaligned.status, 1) << misaligned.text;
  EXPECT_NE(misaligned.text.find(": its address {value} is no multiple of {bound}, 4096"),
            std::string::npos)
      << misaligned.text;
}

// With no dimension that is unknown, the sizes are: the caller asks for them before the run.
TEST_F(ScratchTest, ALibrarySaysHowMuchItNeeds) {
  write("library.c", kLibrary);
  write("net.py", with(with(kNetwork, "SCRATCH", "bytes"), "QUERY",
                       ", \"scratch_query\": {\"scratch\": \"transfer_bytes(n)\"}"));
  std::string main = with(kMain, "SECTIONS", "#include <stdlib.h>\n");
  main = with(main, "  for (i = 0;",
              "  net_sizes sizes;\n  void* workspace;\n"
              "  if (net_shapes(&sizes) != 0) return 100;\n"
              "  workspace = aligned_alloc(NET_WORKSPACE_ALIGN, (size_t)(sizes.workspace + "
              "NET_WORKSPACE_ALIGN - 1) / NET_WORKSPACE_ALIGN * NET_WORKSPACE_ALIGN);\n"
              "  for (i = 0;");
  const Said right = built("", with(main, "POOLS", "workspace"));
  EXPECT_EQ(right.status, 0) << right.text;
  EXPECT_EQ(right.text, "y[3] 48\n");
  EXPECT_NE(said_.find("memory     peak known only at run time"), std::string::npos) << said_;
  // A library that is there while compiling is asked then, and the size is a macro.
  const Said asked = built("--link " + folder_ + "/library.c",
                           with(with(kMain, "SECTIONS",
                                     "static uint8_t workspace[NET_WORKSPACE_SIZE] "
                                     "__attribute__((aligned(NET_WORKSPACE_ALIGN)));\n"),
                                "POOLS", "workspace"));
  EXPECT_EQ(asked.status, 0) << asked.text;
  EXPECT_EQ(asked.text, "y[3] 48\n");
  // One that asks for more when the program runs is told what there is.
  std::string greedy = kLibrary;
  greedy.replace(greedy.find("n * 4)"), 6, "n * 8)");
  write("library.c", greedy);
  const Said more = shell("cd " + folder_ +
                          " && cc -O1 -I c c/net.c main.c library.c -lm -o "
                          "program && ./program");
  EXPECT_EQ(more.status, 3) << more.text;
  EXPECT_NE(more.text.find("library function `transfer` asks for {bound} bytes of scratch"),
            std::string::npos)
      << more.text;
  write("library.c", kLibrary);
  // The same through the command line, natively and in C.
  for (const std::string target : {"native", "c"}) {
    const Outcome run = tenon("run " + folder_ + "/net.py --link " + folder_ +
                              "/library.c --compare --target " + target);
    EXPECT_EQ(run.status, 0) << run.err;
  }
}

}  // namespace
