// SPDX-License-Identifier: Apache-2.0
// `--target c`: the files that are written, strict compilers, sanitizers with guarded memory, and
// results against the interpreter.
#include <cmath>
#include <cstring>
#include <vector>

#include "command.h"

namespace {

namespace fs = std::filesystem;
using tenon::testing_command::read;

constexpr const char* kDigits = "examples/digits/digits.onnx";      // a symbolic batch
constexpr const char* kDigits1 = "examples/digits/digits_b1.onnx";  // fixed sizes
constexpr const char* kStrict = "-std=c99 -pedantic -Wall -Wextra -Werror";

// Every kind of scalar and vector arithmetic, a gather with its check, shapes that are no multiple
// of a vector, and dtypes that C has no type for.
constexpr const char* kMixed = R"py(
from tenon.script import ir as I, relax as R, tir as T

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 19), "float32"), at: R.Tensor((5,), "int64"), k: R.Tensor((7,), "int32")) -> R.Tuple(R.Tensor(("n", 19), "float32"), R.Tensor((5,), "int32"), R.Tensor(("n", 19), "float32"), R.Tensor(("n", 19), "bool"), R.Tensor((7,), "int32"), R.Tensor(("n", 19), "float16")):
        n = T.int64()
        with R.dataflow():
            a: R.Tensor((n, 19), "float32") = R.sigmoid(x)
            b: R.Tensor((n, 19), "float32") = R.nn.softmax(a, axis=-1)
            c: R.Tensor((5,), "int32") = R.take(k, at, axis=0)
            d: R.Tensor((n, 19), "float32") = R.floor(R.multiply(R.tanh(x), R.const(3.5, "float32")))
            e: R.Tensor((n, 19), "bool") = R.greater(x, a)
            f: R.Tensor((7,), "int32") = R.floor_divide(k, R.const(-3, "int32"))
            g: R.Tensor((n, 19), "float16") = R.astype(R.exp(x), dtype="float16")
            R.output(b, c, d, e, f, g)
        return (b, c, d, e, f, g)
)py";

bool have(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

class CTargetTest : public tenon::testing_command::CommandTest {
 protected:
  CTargetTest() : CommandTest("c_target") {}
  void SetUp() override {
    CommandTest::SetUp();
    write("mixed.py", kMixed);
  }

  // Runs a shell command; its output is in `said_`.
  int run(const std::string& command) {
    auto said = shell(command);
    said_ = std::move(said.text);
    return said.status;
  }
  void tenon(const std::string& arguments) {
    ASSERT_EQ(run(std::string("timeout 300 " TENON_BINARY " ") + arguments), 0) << arguments << "\n"
                                                                                << said_;
  }
  // Both .npy files hold the same array, or nearly.
  void expect_near(const fs::path& a, const fs::path& b) {
    const std::string left = read(a), right = read(b);
    ASSERT_GT(left.size(), 64u) << a;
    ASSERT_EQ(left.size(), right.size()) << a;
    const auto start = [](const std::string& file) {
      return 10 + static_cast<unsigned char>(file[8]) + 256 * static_cast<unsigned char>(file[9]);
    };
    const std::string bytes_a = left.substr(start(left)), bytes_b = right.substr(start(right));
    if (left.find("<f2") != std::string::npos) {
      // The float32 values in front of the conversion differ by as little as below: at most one
      // float16 apart. Finite numbers of one sign are ordered as their bits are.
      for (size_t at = 0; at + 2 <= bytes_a.size(); at += 2) {
        uint16_t x = 0, y = 0;
        std::memcpy(&x, bytes_a.data() + at, 2);
        std::memcpy(&y, bytes_b.data() + at, 2);
        ASSERT_LE(std::abs(int{x} - int{y}), 1) << a << " at element " << at / 2;
      }
      return;
    }
    if (left.find("<f4") == std::string::npos) {
      EXPECT_EQ(bytes_a, bytes_b) << a;
      return;
    }
    for (size_t at = 0; at + 4 <= bytes_a.size(); at += 4) {
      float x = 0, y = 0;
      std::memcpy(&x, bytes_a.data() + at, 4);
      std::memcpy(&y, bytes_b.data() + at, 4);
      ASSERT_LE(std::fabs(x - y), 1e-5f * (1 + std::fabs(y))) << a << " at element " << at / 4;
    }
  }

  std::string said_;
};

// GCC's notes on how vectors are passed, which no pragma silences and -Werror does not see: there
// is nothing to say, also where the compiler is not told of the processor.
TEST_F(CTargetTest, NothingIsSaidOfVectorsThatArePassed) {
  if (!have("gcc")) GTEST_SKIP() << "gcc is not installed";
  for (const char* target : {"c -mcpu=haswell", "c -mcpu=skylake-avx512"}) {
    tenon("compile " + folder_ + "/mixed.py --target '" + target + "' -o " + folder_ +
          "/v --name v");
    for (const char* flags : {"-O1", "-O1 -march=haswell"}) {
      EXPECT_EQ(run(std::string("gcc -std=c99 -pedantic -Wall -Wextra -Wpsabi -c -o ") + folder_ +
                    "/v.o " + flags + " " + folder_ + "/v/v.c"),
                0);
      EXPECT_EQ(said_, "") << target << " " << flags;
    }
  }
}

// The program that runs a model on files makes its folder, says what it wrote, and what it takes.
TEST_F(CTargetTest, MainProgramSaysWhatItDoes) {
  tenon(std::string("compile ") + kDigits + " --target c -o " + folder_ + "/p --name digits");
  ASSERT_EQ(run("make -s -C " + folder_ + "/p CFLAGS=-O1"), 0) << said_;
  const std::string program = folder_ + "/p/main_digits";
  const std::string image = TENON_SOURCE_DIR "/examples/digits/test_images.npy";
  const std::string out = folder_ + "/not/there/yet";
  ASSERT_EQ(run(program + " -o " + out + " " + image), 0) << said_;
  EXPECT_EQ(said_, "wrote " + out + "/probabilities.npy: float32 (450, 10)\n");
  EXPECT_TRUE(fs::exists(out + "/probabilities.npy"));
  ASSERT_EQ(run(program + " -o " + out + "/ " + image), 0) << "the folder is there: " << said_;
  write("file", "");
  EXPECT_EQ(run(program + " -o " + folder_ + "/file/x " + image), 1);
  EXPECT_NE(said_.find(folder_ + "/file"), std::string::npos) << said_;
  const char* usage = "usage: main_digits [-o FOLDER] [-n REPEAT] image\n  image  float32 (";
  EXPECT_EQ(run(program + " --help"), 0);
  EXPECT_NE(said_.find(usage), std::string::npos) << said_;
  for (const char* wrong : {"", " - -", " -x -"}) {
    EXPECT_EQ(run(program + wrong), 2) << wrong;
    EXPECT_NE(said_.find(usage), std::string::npos) << said_;
  }
}

// What docs/c_target.md shows of pools is C that compiles against the header.
TEST_F(CTargetTest, PoolsAreCalledAsDocumented) {
  tenon(std::string("compile ") + kDigits1 + " --target c -o " + folder_ +
        "/p --name net --pool sram=4KiB --pool dram --pool flash=ro");
  const std::string page = read(TENON_SOURCE_DIR "/docs/c_target.md");
  const size_t begin = page.find("```c\nstatic uint8_t sram[NET_SRAM_SIZE]"),
               call = page.find("\n\ncode = net_run(", begin), end = page.find("```", call);
  ASSERT_NE(end, std::string::npos);
  write("p/use.c", "#include \"net.h\"\n" + page.substr(begin + 5, call - begin - 4) +
                       "int32_t use(net_inputs in, net_outputs out);\n"
                       "int32_t use(net_inputs in, net_outputs out) {\n  int32_t code;\n" +
                       page.substr(call + 2, end - call - 2) + "  return code;\n}\n");
  EXPECT_EQ(
      run(std::string("cc ") + kStrict + " -c -o " + folder_ + "/use.o " + folder_ + "/p/use.c"), 0)
      << said_;
}

// Sources of the functions that a program calls by name are words of LDLIBS.
TEST_F(CTargetTest, MakefileLinksWhatLDLIBSNames) {
  tenon("compile examples/library_calls/network.relay --call-by-name toy --target c -o " + folder_ +
        "/p --name net");
  const std::string make = "make -B -C " + folder_ + "/p CFLAGS=-O1";
  EXPECT_NE(run(make), 0) << "the library is not named";
  EXPECT_NE(said_.find("undefined reference"), std::string::npos) << said_;
  EXPECT_EQ(run(make + " LDLIBS=" TENON_SOURCE_DIR "/examples/library_calls/toy.c"), 0) << said_;
}

// A processor whose name the C compiler does not know is built for by its instructions.
TEST_F(CTargetTest, MakefileSuitsOlderCompilers) {
  tenon(std::string("compile ") + kDigits1 + " --target 'c -mcpu=haswell' -o " + folder_ +
        "/p --name digits");
  // A compiler that knows no processor's name.
  write("old",
        "#!/bin/sh\nfor word in \"$@\"; do case $word in -march=*) echo \"bad value\" >&2; "
        "exit 1;; esac; done\nexec cc \"$@\"\n");
  ASSERT_EQ(run("chmod +x " + folder_ + "/old"), 0);
  ASSERT_EQ(run("make -C " + folder_ + "/p CC=" + folder_ + "/old"), 0) << said_;
  EXPECT_NE(said_.find("-O3 -mavx2 -mfma "), std::string::npos) << said_;
  ASSERT_EQ(run("make -B -C " + folder_ + "/p CC=cc"), 0) << said_;
  EXPECT_NE(said_.find("-O3 -march=haswell "), std::string::npos) << said_;
}

TEST_F(CTargetTest, CompilesWithoutAWarningEverywhere) {
  tenon(std::string("compile ") + kDigits + " --target c -o " + folder_ + "/a --name digits");
  tenon(std::string("compile ") + kDigits1 + " --target 'c -mcpu=haswell' --constants -o " +
        folder_ + "/b --name digits");
  tenon("compile " + folder_ + "/mixed.py --target c -o " + folder_ + "/c --name digits");
  int compilers = 0;
  for (const char* compiler :
       {"gcc -O2", "clang-19 -O1", "tcc", "gcc -O1 -DDIGITS_VECTORS=0", "gcc -O3 -march=haswell"}) {
    if (!have(std::string(compiler).substr(0, std::string(compiler).find(' ')))) continue;
    ++compilers;
    for (const char* which : {"a", "b", "c"}) {
      const std::string files = folder_ + "/" + which + "/";
      EXPECT_EQ(run(std::string(compiler) + " " + kStrict + " -c -o " + folder_ + "/x.o " + files +
                    "digits.c"),
                0)
          << compiler << " " << which << "\n"
          << said_;
      EXPECT_EQ(run(std::string(compiler) + " " + kStrict + " -c -o " + folder_ + "/x.o " + files +
                    "main_digits.c"),
                0)
          << compiler << " " << which << "\n"
          << said_;
    }
  }
  EXPECT_GE(compilers, 4);
  // The header is C++ too.
  std::ofstream(folder_ + "/x.cpp") << "#include \"a/digits.h\"\n#include \"b/digits.h\"\n";
  EXPECT_EQ(run("g++ -std=c++17 -Wall -Wextra -pedantic -Werror -c -o " + folder_ + "/x.o " +
                folder_ + "/x.cpp"),
            0)
      << said_;
}

// An element that becomes a variable, and that nothing reads.
TEST_F(CTargetTest, WhatIsOnlyWrittenIsDeclared) {
  std::ofstream(folder_ + "/written.py") << R"(
@T.prim_func
def kernel(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    rows = T.alloc_buffer((16, 2), "float32")
    for i in range(16):
        with T.block("b"):
            v = T.axis.opaque(16, i)
            for j in range(2):
                rows[v, j] = A[v]
            B[v] = A[v] + T.float32(1)
)";
  tenon("compile " + folder_ + "/written.py --target c -o " + folder_ + "/w");
  EXPECT_EQ(
      run(std::string("gcc ") + kStrict + " -c -o " + folder_ + "/x.o " + folder_ + "/w/written.c"),
      0)
      << said_;
}

// `(float)i / 3` is no quotient of integers.
TEST_F(CTargetTest, CastsTakeAllOfTheirOperand) {
  std::ofstream(folder_ + "/halves.py") << R"(
@T.prim_func
def kernel(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "float16"), C: T.Buffer((8,), "float16")):
    for i in range(8):
        B[i] = T.Cast("float16", i // 3)
        C[i] = T.Cast("float16", i % 3)
)";
  tenon("run " + folder_ + "/halves.py --target c -o " + folder_ + "/got");
  tenon("run " + folder_ + "/halves.py --interpret -o " + folder_ + "/expected");
  for (const char* name : {"/B.npy", "/C.npy"})
    EXPECT_EQ(read(folder_ + "/got" + name), read(folder_ + "/expected" + name));
}

// GCC 12's vectoriser of loops gets a guarded load of what an earlier iteration stored wrong at
// -O3.
TEST_F(CTargetTest, RowsThatAreReadLaterAreRight) {
  std::ofstream(folder_ + "/rows.py") << R"(
@T.prim_func
def kernel(A: T.Buffer((2,), "float32"), B: T.Buffer((9, 2), "int64")):
    rows = T.alloc_buffer((9, 2), "int64")
    for i in range(9):
        for j in range(2):
            with T.block("write"):
                v, w = T.axis.remap("SS", [i, j])
                rows[v, w] = T.min(T.Cast("int64", w), T.Cast("int64", A[1] + T.float32(3)))
        for j in range(2):
            with T.block("read"):
                v = T.axis.opaque(9, i)
                w = T.axis.spatial(2, j)
                B[v, w] = T.if_then_else(v >= 1, rows[v - 1, w], T.int64(1))
)";
  for (const char* target : {"native", "c", "'c -mcpu=haswell'"}) {
    tenon("run " + folder_ + "/rows.py --target " + target + " -o " + folder_ + "/got");
    tenon("run " + folder_ + "/rows.py --interpret -o " + folder_ + "/expected");
    expect_near(folder_ + "/got/B.npy", folder_ + "/expected/B.npy");
  }
}

TEST_F(CTargetTest, StandsAlone) {
  tenon("compile " + folder_ + "/mixed.py --target c -o " + folder_ + "/c --name mixed");
  const std::string source = read(folder_ + "/c/mixed.c"), header = read(folder_ + "/c/mixed.h");
  for (size_t at = 0; (at = source.find("#include", at)) != std::string::npos; ++at) {
    const std::string line = source.substr(at, source.find('\n', at) - at);
    EXPECT_TRUE(line == "#include \"mixed.h\"" || line == "#include <math.h>" ||
                line == "#include <string.h>")
        << line;
  }
  for (const char* word : {"malloc", "free(", "stdio", "stdlib", "extern "})
    EXPECT_EQ(source.find(word), std::string::npos) << word;
  EXPECT_NE(header.find("int32_t mixed_shapes("), std::string::npos) << header;
  ASSERT_EQ(run("gcc -std=c99 -O2 -c -o " + folder_ + "/x.o " + folder_ + "/c/mixed.c && size -A " +
                folder_ + "/x.o"),
            0)
      << said_;
  // No memory of its own that changes.
  for (const char* section : {".data ", ".bss "}) {
    const size_t at = said_.find(section);
    if (at != std::string::npos) EXPECT_EQ(std::stol(said_.substr(at + 6)), 0) << said_;
  }
}

TEST_F(CTargetTest, RunsWithSanitizersAndGuardsAndGivesTheInterpretersNumbers) {
  const std::string out = folder_ + "/run", expected = folder_ + "/expected";
  fs::create_directories(out);
  std::ofstream(folder_ + "/make.py") << R"py(
import struct, sys, math
def npy(name, kind, shape, data):
    head = ("{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    start = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head))
    open(sys.argv[1] + "/" + name, "wb").write(start + head + data)
npy("x.npy", "<f4", (3, 19), struct.pack("<57f", *[math.sin(i) * 4 for i in range(57)]))
npy("at.npy", "<i8", (5,), struct.pack("<5q", 6, 0, 3, 3, 1))
npy("bad.npy", "<i8", (5,), struct.pack("<5q", 6, 0, 9, 3, 1))
npy("k.npy", "<i4", (7,), struct.pack("<7i", -7, 7, 0, 2147483647, -2147483648, 3, -3))
)py";
  ASSERT_EQ(run("python3 " + folder_ + "/make.py " + folder_), 0) << said_;
  const std::string files = folder_ + "/x.npy " + folder_ + "/at.npy " + folder_ + "/k.npy";
  tenon("run " + folder_ + "/mixed.py --interpret -o " + expected + " -i x=" + folder_ +
        "/x.npy -i at=" + folder_ + "/at.npy -i k=" + folder_ + "/k.npy");
  for (const char* target : {"c", "c -mcpu=haswell"}) {
    tenon("compile " + folder_ + "/mixed.py --target '" + target + "' -o " + folder_ +
          "/c --name mixed");
    for (const char* flags : {"", "-DMIXED_VECTORS=0"}) {
      ASSERT_EQ(run("cd " + folder_ +
                    "/c && gcc -std=c99 -g -O0 -fsanitize=address,undefined "
                    "-fno-sanitize-recover " +
                    flags + " -o m main_mixed.c mixed.c -lm && ./m -o " + out + " " + files),
                0)
          << target << flags << said_;
      for (const auto& entry : fs::directory_iterator(expected))
        expect_near(out / entry.path().filename(), entry.path());
    }
  }
  // A run-time index out of range is an error that names its operator, not a wild read.
  EXPECT_EQ(run("cd " + folder_ + "/c && ASAN_OPTIONS=detect_leaks=0 ./m " + folder_ + "/x.npy " +
                folder_ + "/bad.npy " + folder_ + "/k.npy"),
            1);
  EXPECT_NE(said_.find("an index is outside its axis"), std::string::npos) << said_;
  // The same through the command line.
  tenon("run " + folder_ + "/mixed.py --target c -o " + out + " -i x=" + folder_ +
        "/x.npy -i at=" + folder_ + "/at.npy -i k=" + folder_ + "/k.npy");
  for (const auto& entry : fs::directory_iterator(expected))
    expect_near(out / entry.path().filename(), entry.path());
}

TEST_F(CTargetTest, PoolsSpillAndSayWhatIsMissing) {
  const auto pools = [&](const std::string& options) {
    return std::string("compile ") + kDigits1 + " --target c --name digits -o " + folder_ + "/p " +
           options;
  };
  const auto size_of = [&](const std::string& macro) {
    const std::string header = read(folder_ + "/p/digits.h");
    const size_t at = header.find("#define " + macro + " ");
    return at == std::string::npos ? -1L : std::stol(header.substr(at + 9 + macro.size()));
  };
  tenon(pools(""));
  const long whole = size_of("DIGITS_WORKSPACE_SIZE");
  ASSERT_GT(whole, 1024);
  const long small = whole / 2 / 64 * 64;
  tenon(pools("--pool sram=" + std::to_string(small) + " --pool dram --pool flash=ro"));
  // The summary says of each pool what the header says.
  const auto says = [&](const std::string& line) {
    EXPECT_NE(said_.find(line), std::string::npos) << line << "\n" << said_;
  };
  says("pool       sram " + std::to_string(size_of("DIGITS_SRAM_SIZE")) + " of " +
       std::to_string(small) + " bytes, ");
  says("pool       dram " + std::to_string(size_of("DIGITS_DRAM_SIZE")) + " bytes, ");
  EXPECT_NE(said_.find("pool       flash "), std::string::npos) << said_;
  EXPECT_LE(size_of("DIGITS_SRAM_SIZE"), small);
  EXPECT_GT(size_of("DIGITS_SRAM_SIZE"), 0);
  EXPECT_GT(size_of("DIGITS_DRAM_SIZE"), 0);
  EXPECT_NE(read(folder_ + "/p/digits.h").find("void* sram, void* dram, const void* flash"),
            std::string::npos)
      << read(folder_ + "/p/digits.h");
  // It computes the same, with each pool guarded.
  fs::create_directories(folder_ + "/one");
  ASSERT_EQ(run("head -c 256 /dev/zero > " + folder_ + "/in.raw; cd " + folder_ +
                "/p && make -s main_digits CFLAGS='-O1 -fsanitize=address,undefined' && "
                "./main_digits -o " +
                folder_ + "/one " + folder_ + "/in.raw"),
            0)
      << said_;
  tenon(pools("--separate-arrays"));
  EXPECT_EQ(read(folder_ + "/p/digits.c").find("(workspace"), std::string::npos);
  fs::create_directories(folder_ + "/two");
  ASSERT_EQ(run("cd " + folder_ + "/p && make -s -B main_digits CFLAGS=-O1 && ./main_digits -o " +
                folder_ + "/two " + folder_ + "/in.raw"),
            0)
      << said_;
  for (const auto& entry : fs::directory_iterator(folder_ + "/two"))
    EXPECT_EQ(read(entry.path()), read(fs::path(folder_ + "/one") / entry.path().filename()));

  const auto fails = [&](const std::string& options, int status, const std::string& text) {
    EXPECT_EQ(run(std::string(TENON_BINARY) + " " + pools(options)), status) << said_;
    EXPECT_NE(said_.find(text), std::string::npos) << said_;
  };
  fails("--pool sram=1KiB", 1, "pool `sram` has 1024 bytes");
  fails("--pool flash=100,ro", 1, "bytes are missing");
  fails("--pool sram=lots", 1, "`lots` is no size");
  fails("--pool a --pool a", 1, "given twice");
}

// Sizes that are known in the middle of a run: by callbacks in main_NAME.c, by a pool in the example
// and here, where it is too small first.
TEST_F(CTargetTest, MemoryIsAskedForWhileTheProgramRuns) {
  const std::string model = "tests/modules/late/late_numbers.py", out = folder_ + "/late";
  tenon("compile " + model + " --target c -o " + out + " --name late --emit c,c-example");
  tenon("run " + model + " --interpret -o " + folder_ + "/expected");
  tenon("run " + model + " --target c -o " + folder_ + "/got");
  for (const char* name : {"/output_0.npy", "/output_1.npy"})
    expect_near(folder_ + "/expected" + name, folder_ + "/got" + name);
  write("pool.c", R"c(
#include <stdio.h>
#include "late.h"
static float x[30], summed[5];
static unsigned char workspace[1 << 16] __attribute__((aligned(64)));
static unsigned char memory[1 << 16] __attribute__((aligned(64)));
int main(void) {
  late_inputs in = {x};
  late_outputs out = {summed};
  late_pool pool;
  late_late late;
  late_error error;
  int32_t code;
  int i;
  for (i = 0; i < 30; ++i) x[i] = i < 9 ? 1.0f : -1.0f;
  pool.data = memory;
  pool.bytes = 100;
  late = late_late_of(&pool);
  code = late_run(&in, &out, workspace, &late, &error);
  printf("%d %d %d\n", (int)code, code == LATE_TOO_SMALL, pool.used > 100);
  pool.bytes = sizeof(memory);
  late = late_late_of(&pool);
  code = late_run(&in, &out, workspace, &late, &error);
  printf("%d %d %d\n", (int)code, (int)pool.output_0_dims[0], (int)pool.output_0_dims[1]);
  return code;
}
)c");
  ASSERT_EQ(run(std::string("cc ") + kStrict + " -I" + out + " -o " + folder_ + "/pool " + folder_ +
                "/pool.c " + out + "/late.c -lm && " + folder_ + "/pool"),
            0)
      << said_;
  EXPECT_EQ(said_, "5 1 1\n0 9 5\n");
  ASSERT_EQ(run("make -C " + out + " && " + out + "/main_late -n 3 -o " + folder_ + "/made -"), 0)
      << said_;
  ASSERT_EQ(run(std::string("cd ") + out + " && cc " + kStrict +
                " late_example.c late.c -lm -o late_example && ./late_example"),
            0)
      << said_;
  EXPECT_NE(said_.find("float32 ("), std::string::npos) << said_;
}

}  // namespace
