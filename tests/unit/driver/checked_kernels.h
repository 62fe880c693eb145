// SPDX-License-Identifier: Apache-2.0
// Runs `tenon check --kernels` on a text.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tenon/driver/check_kernels.h"

namespace tenon {

/// What the check says on both streams, after `status`.
inline std::string checked(const std::string& text, int status, CheckKernels options) {
  const std::string folder = testing::TempDir() + "tenon_own_kernels_" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  const std::string file = folder + "/tenon_own_kernel.py";
  std::ofstream(file) << text;
  options.kernels.files = {file};
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  std::string errors;
  try {
    EXPECT_EQ(check_kernels(options), status) << text;
  } catch (const CompileError& error) {
    errors = error.what();
  } catch (...) {
    testing::internal::GetCapturedStdout();
    testing::internal::GetCapturedStderr();
    throw;
  }
  std::fflush(stdout);
  errors += testing::internal::GetCapturedStderr();
  return testing::internal::GetCapturedStdout() + errors;
}
inline std::string checked(const std::string& text, int status = 1) {
  CheckKernels options;
  options.trials = 4;
  return checked(text, status, options);
}

}  // namespace tenon
