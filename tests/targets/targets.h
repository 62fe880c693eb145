// SPDX-License-Identifier: Apache-2.0
// The machines that tests generate code for: one list for all of them.
#pragma once

#include <ostream>
#include <string>
#include <string_view>

namespace tenon::testing_targets {

struct TestTarget {
  std::string_view name;         // of a test's instance
  std::string_view description;  // as --target takes it
};

/// Vectors wider than the host's are cut in pieces by LLVM, so that every width and number of
/// registers runs everywhere. What does not run here (another architecture, instructions that the
/// host has not) is emulated where there is an emulator; else what it was lowered to is interpreted
/// (run.h).
inline constexpr TestTarget kTargets[] = {
    {"native", "native"},
    {"x86_64", "llvm -mcpu=x86-64"},
    {"haswell", "llvm -mcpu=haswell"},
    {"skylake_avx512", "llvm -mcpu=skylake-avx512"},
    {"cascadelake", "llvm -mcpu=cascadelake"},
    {"v128r16", "native -vector-bits=128 -vector-registers=16"},
    {"v128r32", "native -vector-bits=128 -vector-registers=32"},
    {"v256r16", "native -vector-bits=256 -vector-registers=16"},
    {"v256r32", "native -vector-bits=256 -vector-registers=32"},
    {"v512r16", "native -vector-bits=512 -vector-registers=16"},
    {"v512r32", "native -vector-bits=512 -vector-registers=32"},
    {"aarch64", "llvm -mtriple=aarch64-linux-gnu"},
    {"neoverse_n1", "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1"},
    {"neoverse_v1", "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1"},
    {"c", "c"},
    {"c_haswell", "c -mcpu=haswell"},
};

/// As the name of a parameterised test.
template <typename Info>
std::string name_of(const Info& info) {
  return std::string(info.param.name);
}
inline void PrintTo(const TestTarget& target, std::ostream* out) { *out << target.description; }

}  // namespace tenon::testing_targets
