// SPDX-License-Identifier: Apache-2.0
// What a model brings along as code runs where the user said so, and nowhere else.
#include "command.h"

namespace {

class TrustTest : public tenon::testing_command::CommandTest {
 protected:
  TrustTest() : CommandTest("trust", "") {}
  bool happened() const { return tenon::testing_command::fs::exists(folder_ + "/happened"); }
  void refused(const std::string& arguments, const std::string& text) const {
    expect_error(arguments, 1, text);
    EXPECT_FALSE(happened()) << arguments;
  }
};

// A network of one kernel, which does this beside its work.
std::string kernel(const std::string& statement) {
  return "from tenon.script import ir as I, relax as R, tir as T\n\n@I.ir_module\nclass Module:\n"
         "    @T.prim_func(private=True)\n"
         "    def kernel(x: T.Buffer((1,), \"float32\"), y: T.Buffer((1,), \"float32\")):\n"
         "        y[0] = x[0]\n        " +
         statement +
         "\n    @R.function\n    def main(x: R.Tensor((1,), \"float32\")):\n"
         "        y = R.call_tir(Module.kernel, (x,), out_sinfo=R.Tensor((1,), \"float32\"))\n"
         "        return y\n";
}

TEST_F(TrustTest, AFunctionOfTheSystemIsNotCalledByItsName) {
  write("m.py", kernel("T.evaluate(T.call_extern(\"int32\", \"system\", \"touch happened\"))"));
  const std::string says = "` calls `system` of the system, with the rights of this process";
  refused("run m.py", says);
  refused("run m.py --interpret", says);
  refused("run m.py --target c", says);
  refused("compile m.py -o m.so", says);
  refused("compile m.py -o c --target c", says);
  // Every library depends on the C library; its functions are not that library's.
  write("mine.c", "int mine(void) { return 0; }\n");
  refused("run m.py --link mine.c", says);
  EXPECT_EQ(tenon("check m.py").status, 0);
  EXPECT_EQ(tenon("print m.py").status, 0);
  const auto allowed = tenon("run m.py --allow-code");
  EXPECT_EQ(allowed.status, 0) << allowed.err;
  EXPECT_TRUE(happened());
}

TEST_F(TrustTest, ALibraryThatIsNamedProvidesItsFunctions) {
  write("m.py", kernel("T.evaluate(T.call_extern(\"int32\", \"mine\", T.float32(2)))"));
  write("mine.c",
        "#include <stdio.h>\nint mine(float x) { fclose(fopen(\"happened\", \"w\")); return x > 3; "
        "}\n");
  refused("run m.py", "error[TN0603]: `kernel` calls library function `mine`");
  EXPECT_EQ(tenon("run m.py --link mine.c").status, 0);
  EXPECT_TRUE(happened());
}

// Functions of numbers do nothing but give one.
TEST_F(TrustTest, FunctionsOfNumbersAreFree) {
  write("m.py", kernel("y[0] = T.call_extern(\"float32\", \"sqrtf\", x[0])"));
  const auto run = tenon("run m.py");
  EXPECT_EQ(run.status, 0) << run.err;
  write("m.py", kernel("T.evaluate(T.call_extern(\"float64\", \"modf\", T.float64(1), y.data))"));
  refused("run m.py", "error[TN0021]: `kernel` calls `modf` of the system");
}

// A declared function is its library's, whatever it is called.
TEST_F(TrustTest, ADeclarationIsNoLibrary) {
  write("m.py", R"(
from tenon.script import ir as I, tir as T

@I.ir_module
class Module:
    @T.extern_func
    def system(command: T.Buffer((16,), "uint8")) -> T.int32:
        T.func_attr({"symbol": "system"})

    @T.prim_func
    def main(a: T.Buffer((16,), "uint8"), b: T.Buffer((16,), "uint8")):
        T.call_extern(Module.system, a[0:16])
        b[0] = a[0]
)");
  write("mine.c", "int mine(void) { return 0; }\n");
  const auto outcome = tenon("run m.py --link mine.c");
  EXPECT_EQ(outcome.status, 1) << outcome.out;
}

TEST_F(TrustTest, LibrariesAndNamesInTheModule) {
  const auto with = [&](const std::string& mods) {
    write("m.py",
          "from tenon.script import ir as I, tir as T\n\n@I.ir_module\nclass Module:\n"
          "    I.module_attrs({\"external_mods\": [" +
              mods +
              "]})\n"
              "    @T.prim_func\n    def main(a: T.Buffer((1,), \"float32\")):\n"
              "        a[0] = a[0] + T.float32(1)\n");
  };
  with("{\"kind\": \"shared\", \"name\": \"libmine.so\"}");
  const std::string says = "error[TN0021]: item 0 of `external_mods` asks for library `libmine.so`";
  refused("run m.py", says);
  refused("compile m.py -o m.so", says);
  refused("compile m.py -o c --target c", says);
  write("mine.c", "void __attribute__((constructor)) f(void) {}\n");
  ASSERT_EQ(shell("cc -shared -fPIC mine.c -o libmine.so").status, 0);
  // Named by the user it is taken, from where the user says.
  const auto named = tenon("run m.py --link ./libmine.so");
  EXPECT_EQ(named.status, 0) << named.err;
  for (const char* name : {"$(shell touch happened).so", "a b.so", "`touch happened`.so", "a;b.so",
                           "../lib.so", "-lx.so", "a\\nb.so", ".so"}) {
    SCOPED_TRACE(name);
    with("{\"kind\": \"shared\", \"name\": \"" + std::string(name) + "\"}");
    refused("compile m.py -o c --target c --allow-code",
            "error[TN0804]: item 0 of `external_mods`");
    with("{\"kind\": \"shared\", \"name\": \"libx.so\", \"link\": [\"" + std::string(name) +
         "\"]}");
    refused("compile m.py -o c --target c --allow-code",
            "error[TN0804]: item 0 of `external_mods`");
  }
}

}  // namespace
