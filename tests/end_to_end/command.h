// SPDX-License-Identifier: Apache-2.0
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

/// Of both outputs, in the order in which they were written.
struct Said {
  int status;
  std::string text;
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
    const int status = run("timeout 300 " TENON_BINARY " " + arguments + " >" + folder_ +
                           "/out 2>" + folder_ + "/err");
    return {status, read(folder_ + "/out"), read(folder_ + "/err")};
  }
  Said shell(const std::string& command) const {
    const int status = run("(" + command + ") >" + folder_ + "/said 2>&1");
    return {status, read(folder_ + "/said")};
  }
  void write(const std::string& name, const std::string& contents) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << contents;
    given_ += contents;
  }
  // A diagnostic shows the line that it is about: what the input says itself is found there anyway.
  void expect_not_given(const std::string& arguments, const std::string& text) const {
    EXPECT_EQ(arguments.find(text), std::string::npos) << text;
    EXPECT_EQ(given_.find(text), std::string::npos) << "a file holds the text itself: " << text;
  }
  // The command fails so, with this text on the error stream and nothing said to be Tenon's fault.
  void expect_error(const std::string& arguments, int status, const std::string& text) const {
    SCOPED_TRACE(arguments);
    expect_not_given(arguments, text);
    const Outcome outcome = tenon(arguments);
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
  }

  const std::string folder_, place_;

 private:
  mutable std::string given_;  // all files that the test wrote

  int run(const std::string& command) const {
    // What was compiled before is no part of a test.
    const std::string whole = "export TENON_CACHE=off; cd " + place_ + " && " + command;
    const int status = std::system(whole.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};

}  // namespace tenon::testing_command
