// Plugins on the command line: loaded, refused, crashing. What they answer is tested in
// tests/unit/backend_plugin/.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace {

namespace fs = std::filesystem;

struct Outcome {
  int status;
  std::string text;  // of both outputs
};

class PluginCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tenon_plugin_" + std::to_string(::getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Outcome run(const std::string& command) const {
    const std::string whole = "cd " + folder_ + " && (" + command + ") >output 2>&1";
    const int status = std::system(whole.c_str());
    std::ifstream in(folder_ + "/output", std::ios::binary);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, {std::istreambuf_iterator<char>(in), {}}};
  }
  /// A plugin named `tiny` with a pass `Same`; `body` is in front of what its entry returns.
  void build(const std::string& body) const {
    std::ofstream(folder_ + "/tiny.c") << R"(#include <stdlib.h>
#include <tenon/backend.h>
static int32_t same(const TenonHost* host, const char* module, TenonAnswer* answer) {
  return host->emit(answer, TENON_MODULE, module, TENON_TEXT);
}
const TenonBackend* tenon_backend(const TenonHost* host) {
  static const TenonPass pass = {sizeof(TenonPass), "Same", "gives what it gets", same};
  static const TenonPass* const passes[] = {&pass};
  static TenonBackend backend = {.size = sizeof(TenonBackend), .abi = TENON_BACKEND_ABI,
                                 .name = "tiny", .version = "0.5", .passes = passes,
                                 .num_passes = 1};
  )" << body << R"(
  return host ? &backend : NULL;
}
)";
    const Outcome outcome =
        run("cc -shared -fPIC -I" TENON_SOURCE_DIR "/include tiny.c -o tiny.so");
    ASSERT_EQ(outcome.status, 0) << outcome.text;
  }
  void expect(const std::string& arguments, int status, const std::string& text) const {
    const Outcome outcome = run("timeout 300 " TENON_BINARY " " + arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find(text), std::string::npos) << arguments << "\n" << outcome.text;
  }
  std::string folder_;
};

constexpr const char* kDigits = TENON_SOURCE_DIR "/examples/digits/digits.onnx";

TEST_F(PluginCommandTest, PassesAreThoseOfTheOthers) {
  build("");
  expect("check --plugin ./tiny.so", 0, "back end `tiny` 0.5 with 0 patterns and 1 passes");
  expect("opt --list-passes --plugin ./tiny.so", 0, "tiny.Same");
  expect(std::string("opt ") + kDigits + " --plugin ./tiny.so --passes tiny.Same", 0,
         "R.nn.conv2d");
  expect(std::string("opt ") + kDigits + " --passes tiny.Same", 2, "tiny.Same");
}

TEST_F(PluginCommandTest, WhatIsNoPluginIsRefused) {
  expect("check --plugin ./none.so", 1, "--plugin ./none.so: there is no such file");
  std::ofstream(folder_ + "/text.so") << "no library";
  expect("check --plugin ./text.so", 1, "error[TN0811]: plugin ./text.so: ");
  ASSERT_EQ(run("echo 'int x;' > x.c && cc -shared -fPIC x.c -o x.so").status, 0);
  expect("check --plugin ./x.so", 1, "plugin ./x.so: it exports no function `tenon_backend`");
  build("backend.abi += 1;");
  expect("check --plugin ./tiny.so", 1, "it is made for version 1.1");
  expect("check", 2, "FILE is missing");
}

TEST_F(PluginCommandTest, ACrashIsThePluginsOwn) {
  build("*(volatile int*)8 = 1;");
  expect("check --plugin ./tiny.so", 1, "error[TN0812]: plugin ./tiny.so crashed");
  build("abort();");
  expect(std::string("print ") + kDigits + " --plugin ./tiny.so", 1,
         "error[TN0812]: plugin ./tiny.so crashed: it called abort");
}

}  // namespace
