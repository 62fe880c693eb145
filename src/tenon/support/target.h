// SPDX-License-Identifier: Apache-2.0
// What code is generated for: the processor's vector registers, caches and features, as data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Sums of four products of 8 bits: how fast ones are for weights with signs, by the sign of the
/// other factors. Both are exact on every target.
enum class DotProducts : uint8_t { kNone, kUnsigned, kSigned };

/// A resolved target. Everything that schedules and code generation ask of a machine is here, so
/// that the same target gives the same artefact on every host.
struct Target {
  std::string kind = "llvm";  // "llvm" or "c"
  std::string triple;         // LLVM's; empty: kX86Triple
  std::string cpu;            // LLVM's name: "haswell", "skylake-avx512", ...
  std::string features;       // LLVM's "+avx2,+fma,..." beyond what the cpu implies; may be empty
  int vector_bits = 256;      // of the widest profitable float vector
  int vector_registers = 16;
  bool has_fma = true;
  int64_t l1_bytes = 32 << 10, l2_bytes = 1 << 20, l3_bytes = 32 << 20;

  bool operator==(const Target&) const = default;

  int vector_lanes(int element_bits = 32) const { return vector_bits / element_bits; }
  bool is_x86() const { return triple.empty(); }
  /// Whether the cpu, by the table, or `features` turn one on that the table or a target's text states.
  bool has(std::string_view feature) const;
  /// What there are instructions for. Of x86 these are for unsigned factors, or for pairs of 16 bits;
  /// C has none.
  DotProducts dot_products() const;

  /// The text that parse_target() reads back: every property spelled out, so it never depends on
  /// the host.
  std::string str() const;
};

inline constexpr std::string_view kX86Triple = "x86_64-unknown-linux-gnu";
inline constexpr std::string_view kArmTriple = "aarch64-unknown-linux-gnu";

/// Reads "llvm" or "c", then any of "-mtriple=TRIPLE -mcpu=NAME -mattr=FEATURES -vector-bits=N
/// -vector-registers=N -l1=B -l2=B -l3=B". The triple, of `llvm`, is one of Linux on x86_64 (where
/// none is given) or aarch64. What is not given follows from the cpu by a table of known ones;
/// where none is named, that of `llvm` is generic x86-64 or generic AArch64, and `c` has vectors of
/// 128 bits and no fused multiply-add, whatever the host. "native" is resolved by the LLVM back end
/// first (backend/llvm/host.h), which knows the host.
/// \throws CompileError (kBadOption) at anything else.
Target parse_target(std::string_view text);

/// A row of the table of processors that parse_target knows by name.
struct CpuRow {
  std::string_view triple;
  std::string_view name;
  int vector_bits, vector_registers;
  bool has_fma;
  int64_t l1_bytes, l2_bytes, l3_bytes;
  std::string_view features = {};  // that decide more than vectors do
};
const std::vector<CpuRow>& known_cpus();
/// The row of a target's processor; null where the table has none.
const CpuRow* find_cpu(const Target& target);

}  // namespace tenon
