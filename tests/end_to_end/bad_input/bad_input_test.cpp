// SPDX-License-Identifier: Apache-2.0
// Every bad input gets its diagnostic and its exit status; none crashes, hangs or fills the memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "cases.h"

namespace tenon::bad_input {
namespace {

namespace fs = std::filesystem;

#ifdef TENON_SANITIZE
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class BadInput : public testing::TestWithParam<Case> {};

TEST_P(BadInput, IsDiagnosed) {
  const Case& one = GetParam();
  // A fault says something; what is none may warn.
  ASSERT_TRUE(one.status == 0 ? one.says.empty() || one.says.rfind("warning", 0) == 0
                              : !one.says.empty());
  // A diagnostic shows the line that it is about: what the input says itself would always be found.
  for (const auto& [file, bytes] : one.files)
    ASSERT_TRUE(one.says.empty() || bytes.find(one.says) == std::string::npos)
        << file << " holds the expected text itself: " << one.says;
  for (const std::string& argument : one.arguments)
    ASSERT_TRUE(one.says.empty() || argument.find(one.says) == std::string::npos) << argument;
  std::string name = (fs::temp_directory_path() / "tenon-bad-XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const fs::path outer = name, folder = outer / "work";
  fs::create_directory(folder);
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  for (const auto& [file, bytes] : one.files) std::ofstream(file, std::ios::binary) << bytes;
  if (one.prepare) one.prepare();

  const pid_t child = fork();
  if (child == 0) {
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(open("../stdout", O_WRONLY | O_CREAT, 0600), 1);
    dup2(open("../stderr", O_WRONLY | O_CREAT, 0600), 2);
    const rlimit memory{uint64_t{4} << 30, uint64_t{4} << 30}, none{0, 0};
    const rlimit seconds{kSanitized ? 100U : 20U, kSanitized ? 100U : 20U};
    // The sanitizer's own memory is counted as data: it limits what is asked for itself.
    if (kSanitized) {
      setenv("ASAN_OPTIONS", "detect_container_overflow=0:max_allocation_size_mb=4096:exitcode=99",
             1);
    } else {
      setrlimit(RLIMIT_DATA, &memory);
    }
    setrlimit(RLIMIT_CPU, &seconds);
    setrlimit(RLIMIT_CORE, &none);
    std::vector<char*> arguments{const_cast<char*>("tenon")};
    for (const std::string& argument : one.arguments)
      arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    alarm(120);
    execv(TENON_BINARY, arguments.data());
    _exit(127);
  }
  int result = 0;
  ASSERT_EQ(waitpid(child, &result, 0), child);
  fs::current_path(before);
  const std::string errors = contents(outer / "stderr");
  fs::remove_all(outer);

  EXPECT_TRUE(WIFEXITED(result)) << "ended by signal " << WTERMSIG(result);
  EXPECT_EQ(WEXITSTATUS(result), one.status);
  if (one.other.empty() || errors.find(one.other) == std::string::npos)
    EXPECT_NE(errors.find(one.says), std::string::npos) << "expected: " << one.says;
  EXPECT_NE(errors.find(one.names), std::string::npos) << "expected: " << one.names;
  EXPECT_EQ(errors.find('\0'), std::string::npos);
  if (HasFailure() || std::getenv("TENON_SHOW"))
    std::cout << "<<" << one.name << ">> " << WEXITSTATUS(result) << "\n" << errors << std::endl;
}

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Onnx, BadInput, testing::ValuesIn(onnx_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(OnnxOperators, BadInput, testing::ValuesIn(onnx_operator_cases()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(OnnxSequences, BadInput, testing::ValuesIn(onnx_sequence_cases()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(OnnxFunctions, BadInput, testing::ValuesIn(onnx_function_cases()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Tensor, BadInput, testing::ValuesIn(tensor_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Constants, BadInput, testing::ValuesIn(constant_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Script, BadInput, testing::ValuesIn(script_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(GraphOperators, BadInput, testing::ValuesIn(graph_operator_cases()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Programs, BadInput, testing::ValuesIn(program_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Access, BadInput, testing::ValuesIn(access_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(RunTime, BadInput, testing::ValuesIn(run_time_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(BlowUp, BadInput, testing::ValuesIn(blowup_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Usage, BadInput, testing::ValuesIn(usage_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Options, BadInput, testing::ValuesIn(option_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Commands, BadInput, testing::ValuesIn(command_cases()), name_of);

}  // namespace
}  // namespace tenon::bad_input
