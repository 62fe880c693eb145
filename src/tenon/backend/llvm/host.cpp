// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/llvm/host.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/TargetParser/Host.h>

#include <bit>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>

#include "tenon/backend/llvm/machine.h"
#include "tenon/support/diagnostics.h"
#include "tenon/support/target_codes.h"

namespace tenon::llvm_backend {

// What code generation may profit from, and what decides vector widths. The rest (crypto, cache
// control, ...) is not spelled out: equal targets should have equal texts.
static constexpr std::string_view kUsefulFeatures[] = {
    "avx",     "avx2",       "avx512bf16", "avx512bw",   "avx512cd", "avx512dq",
    "avx512f", "avx512fp16", "avx512vl",   "avx512vnni", "avxvnni",  "bmi",
    "bmi2",    "f16c",       "fma",        "popcnt",     "sse4.1",   "sse4.2"};

static int64_t read_cache_size(int index, std::string& level, std::string& type) {
  const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
  std::string size;
  std::ifstream(folder + "level") >> level;
  std::ifstream(folder + "type") >> type;
  std::ifstream(folder + "size") >> size;
  if (level.empty() || size.empty()) return 0;
  int64_t bytes = std::strtoll(size.c_str(), nullptr, 10);
  if (size.back() == 'K') bytes <<= 10;
  if (size.back() == 'M') bytes <<= 20;
  return bytes;
}

// Virtual machines report odd sizes (and shared caches in full): rounded down to a power of two or
// 1.5 times one, and to what common processors have.
static int64_t rounded(int64_t bytes, int64_t least, int64_t most) {
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes)));
  const int64_t sane = bytes >= power + power / 2 ? power + power / 2 : power;
  return std::min(std::max(sane, least), most);
}

static bool enabled(const std::string& features, std::string_view name) {
  const std::string padded = "," + features + ",";
  return padded.find(",+" + std::string(name) + ",") != std::string::npos;
}

// Vector registers that the features give, for cpus that no table knows.
static void set_vectors(Target& target, const std::set<std::string>& features) {
  const auto has = [&](const char* name) { return features.count(name) != 0; };
  const bool wide = has("avx512f") && has("avx512vl") && has("avx512bw") && has("avx512dq");
  target.vector_bits = wide ? 512 : has("avx") ? 256 : 128;
  target.vector_registers = wide ? 32 : 16;
  target.has_fma = has("fma") || wide;
}

bool host_is_assumed() {
  const char* assumed = std::getenv("TENON_HOST");
  return assumed && *assumed;
}

static Target assumed_host() {
  const Target target = parse_target(std::getenv("TENON_HOST"));
  if (target.kind != "llvm" || !target.is_x86() || !find_cpu(target))
    throw CompileError(kBadOption, {},
                       "environment variable `TENON_HOST` is `{}`; expected `llvm -mcpu=NAME`, a "
                       "processor of the table",
                       std::getenv("TENON_HOST"));
  return target;
}

Target host_target() {
  if (host_is_assumed()) return assumed_host();
  Target target;
  target.kind = "llvm";
  target.cpu = llvm::sys::getHostCPUName().str();
  if (target.cpu.empty() || target.cpu == "generic") target.cpu = "x86-64";
  std::set<std::string> present;
  for (const auto& feature : llvm::sys::getHostCPUFeatures())
    if (feature.second) present.insert(feature.first().str());
  // A hypervisor may hide what the processor's name implies, so each is said either way.
  for (const std::string_view name : kUsefulFeatures) {
    if (!target.features.empty()) target.features += ",";
    target.features += (present.count(std::string(name)) ? "+" : "-") + std::string(name);
  }
  set_vectors(target, present);
  for (int i = 0; i < 8; ++i) {
    std::string level, type;
    const int64_t bytes = read_cache_size(i, level, type);
    if (bytes <= 0 || type == "Instruction") continue;
    if (level == "1") target.l1_bytes = rounded(bytes, 16 << 10, 128 << 10);
    if (level == "2") target.l2_bytes = rounded(bytes, 256 << 10, 4 << 20);
    if (level == "3") target.l3_bytes = rounded(bytes, 2 << 20, 64 << 20);
  }
  return target;
}

// What instructions depend on that generated code may hold. Other features (of the operating
// system's part, of cryptography) are hidden by many a hypervisor without harm.
static constexpr std::string_view kInstructionFeatures[] = {
    "avx",        "avx2",        "avx512bf16", "avx512bitalg", "avx512bw",
    "avx512cd",   "avx512dq",    "avx512f",    "avx512fp16",   "avx512ifma",
    "avx512vbmi", "avx512vbmi2", "avx512vl",   "avx512vnni",   "avx512vpopcntdq",
    "avxvnni",    "bmi",         "bmi2",       "f16c",         "fma",
    "gfni",       "lzcnt",       "movbe",      "popcnt",       "sse3",
    "sse4.1",     "sse4.2",      "ssse3"};

static std::unique_ptr<llvm::MCSubtargetInfo> subtarget(const Target& target,
                                                        const std::string& features) {
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      llvm_target(target).createMCSubtargetInfo(triple_of(target), target.cpu, features));
}

static std::set<std::string> host_features() {
  std::set<std::string> present;
  if (host_is_assumed()) {
    const Target host = assumed_host();
    const auto known = subtarget(host, host.features);
    for (const std::string_view name : kInstructionFeatures)
      if (known->checkFeatures("+" + std::string(name))) present.emplace(name);
    return present;
  }
  for (const auto& feature : llvm::sys::getHostCPUFeatures())
    if (feature.second) present.insert(feature.first().str());
  return present;
}

std::string missing_here(const Target& target) {
#if defined(__x86_64__)
  if (!target.is_x86()) return "instructions of aarch64";
  if (target.cpu.empty()) return "";
  const auto needed = subtarget(target, target.features);
  if (!needed->isCPUStringValid(target.cpu)) return "";  // code generation says so
  const std::set<std::string> present = host_features();
  std::string missing;
  for (const std::string_view name : kInstructionFeatures)
    if (needed->checkFeatures("+" + std::string(name)) && !present.count(std::string(name)))
      missing += (missing.empty() ? "" : ", ") + std::string(name);
  return missing;
#else
  return target.is_x86() ? "instructions of x86-64" : "";
#endif
}

void check_runs_here(const Target& target) {
  const std::string missing = missing_here(target);
  if (!missing.empty())
    throw CompileError(
        kOtherMachine, {},
        "code for `{}` cannot run here: this host has no {}; `tenon compile` makes a "
        "file of it for a host that has",
        target.str(), missing);
}

Target resolve_target(std::string_view text) {
  static constexpr std::string_view kNative = "native";
  const bool native =
      text.starts_with(kNative) && (text.size() == kNative.size() || text[kNative.size()] == ' ');
  if (native) {
    const Target host = host_target();
    const std::string_view options = text.substr(kNative.size());
    return options.empty() ? host : parse_target(host.str() + std::string(options));
  }
  Target target = parse_target(text);
  if (target.kind == "c" && target.cpu == "native") {
    const std::string word = "-mcpu=native";
    std::string spelled(text);
    const Target host = host_target();
    spelled.replace(spelled.find(word), word.size(), host.str().substr(host.kind.size() + 1));
    return parse_target(spelled);
  }
  if (target.kind == "c" && target.cpu.empty()) return target;
  if (!target.is_x86()) return target;
  const bool known = find_cpu(target) != nullptr;
  const bool stated = text.find("-vector-bits") != std::string_view::npos;
  if ((!known || !target.features.empty()) && !stated) {
    std::set<std::string> features;
    for (const std::string_view name : kUsefulFeatures)
      if (enabled(target.features, name)) features.insert(std::string(name));
    if (!features.empty()) {
      const Target before = target;
      set_vectors(target, features);
      if (known) {  // features only add to what the cpu's row says
        target.vector_bits = std::max(before.vector_bits, target.vector_bits);
        target.vector_registers = std::max(before.vector_registers, target.vector_registers);
        target.has_fma |= before.has_fma;
      }
    } else if (!known) {
      target.vector_bits = 128;
      target.vector_registers = 16;
      target.has_fma = false;
    }
  }
  return target;
}

}  // namespace tenon::llvm_backend
