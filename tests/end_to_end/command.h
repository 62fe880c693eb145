// The binary as scripts use it: run in a shell, its exit status and both outputs.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tenon::testing_command {

namespace fs = std::filesystem;

struct Outcome {
  int status;
  std::string out, err;
};

inline std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A folder of its own for each test, and commands that run in `place`.
class CommandTest : public testing::Test {
 protected:
  explicit CommandTest(const std::string& name, const std::string& place = TENON_SOURCE_DIR)
      : folder_(testing::TempDir() + "tenon_" + name + "_" + std::to_string(::getpid())),
        place_(place.empty() ? folder_ : place) {}
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  Outcome tenon(const std::string& arguments) const {
    const std::string command = "cd " + place_ + " && timeout 300 " TENON_BINARY " " + arguments +
                                " >" + folder_ + "/out 2>" + folder_ + "/err";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(folder_ + "/out"),
            read(folder_ + "/err")};
  }
  void write(const std::string& name, const std::string& contents) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << contents;
  }
  // The command fails so, with this text on the error stream and nothing said to be Tenon's fault.
  void expect_error(const std::string& arguments, int status, const std::string& text) const {
    SCOPED_TRACE(arguments);
    const Outcome outcome = tenon(arguments);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
  }

  const std::string folder_, place_;
};

}  // namespace tenon::testing_command
