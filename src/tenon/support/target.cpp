// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/target.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "tenon/support/diagnostics.h"
#include "tenon/support/nearest.h"

namespace tenon {

static constexpr int64_t operator""_KiB(unsigned long long n) {
  return static_cast<int64_t>(n) << 10;
}
static constexpr int64_t operator""_MiB(unsigned long long n) {
  return static_cast<int64_t>(n) << 20;
}

const std::vector<CpuRow>& known_cpus() {
  // Caches are those of one core's share on the common server parts of the family.
  static const std::vector<CpuRow> kCpus = {
      {kX86Triple, "x86-64", 128, 16, false, 32_KiB, 256_KiB, 8_MiB},
      {kX86Triple, "x86-64-v2", 128, 16, false, 32_KiB, 256_KiB, 8_MiB},
      {kX86Triple, "x86-64-v3", 256, 16, true, 32_KiB, 256_KiB, 8_MiB},
      {kX86Triple, "x86-64-v4", 512, 32, true, 32_KiB, 1_MiB, 16_MiB},
      {kX86Triple, "haswell", 256, 16, true, 32_KiB, 256_KiB, 8_MiB},
      {kX86Triple, "broadwell", 256, 16, true, 32_KiB, 256_KiB, 8_MiB},
      {kX86Triple, "skylake", 256, 16, true, 32_KiB, 256_KiB, 8_MiB},
      {kX86Triple, "skylake-avx512", 512, 32, true, 32_KiB, 1_MiB, 16_MiB},
      {kX86Triple, "cascadelake", 512, 32, true, 32_KiB, 1_MiB, 16_MiB, "+avx512vnni"},
      {kX86Triple, "icelake-server", 512, 32, true, 48_KiB, 1280_KiB, 16_MiB, "+avx512vnni"},
      {kX86Triple, "sapphirerapids", 512, 32, true, 48_KiB, 2_MiB, 32_MiB, "+avx512vnni"},
      {kX86Triple, "znver1", 256, 16, true, 32_KiB, 512_KiB, 8_MiB},
      {kX86Triple, "znver2", 256, 16, true, 32_KiB, 512_KiB, 16_MiB},
      {kX86Triple, "znver3", 256, 16, true, 32_KiB, 512_KiB, 32_MiB},
      {kX86Triple, "znver4", 512, 32, true, 32_KiB, 1_MiB, 32_MiB, "+avx512vnni"},
      {kX86Triple, "znver5", 512, 32, true, 48_KiB, 1_MiB, 32_MiB, "+avx512vnni"},
      {kArmTriple, "generic", 128, 32, true, 32_KiB, 512_KiB, 8_MiB},
      {kArmTriple, "cortex-a53", 128, 32, true, 32_KiB, 512_KiB, 2_MiB},
      {kArmTriple, "cortex-a72", 128, 32, true, 32_KiB, 1_MiB, 2_MiB},
      {kArmTriple, "cortex-a76", 128, 32, true, 64_KiB, 512_KiB, 2_MiB, "+dotprod"},
      {kArmTriple, "neoverse-n1", 128, 32, true, 64_KiB, 1_MiB, 32_MiB, "+dotprod"},
      {kArmTriple, "neoverse-v1", 128, 32, true, 64_KiB, 1_MiB, 32_MiB, "+dotprod,+i8mm"},
      {kArmTriple, "neoverse-v2", 128, 32, true, 64_KiB, 2_MiB, 32_MiB, "+dotprod,+i8mm"},
  };
  return kCpus;
}

const CpuRow* find_cpu(const Target& target) {
  const std::string_view triple = target.is_x86() ? kX86Triple : std::string_view(target.triple);
  for (const CpuRow& row : known_cpus())
    if (row.triple == triple && row.name == target.cpu) return &row;
  return nullptr;
}

// A triple as it is usually written, or as it is kept: empty for x86-64.
static std::string read_triple(const std::string& text) {
  for (const std::string_view known : {kX86Triple, kArmTriple}) {
    const std::string_view machine = known.substr(0, known.find('-'));
    for (const std::string_view rest : {"-linux-gnu", "-unknown-linux-gnu", "-pc-linux-gnu"})
      if (text == std::string(machine) + std::string(rest))
        return known == kX86Triple ? "" : std::string(known);
  }
  throw CompileError(kBadOption, {},
                     "target option `-mtriple` is `{}`; expected `x86_64-linux-gnu` or "
                     "`aarch64-linux-gnu`",
                     text);
}

std::string Target::str() const {
  std::string text = kind;
  if (!triple.empty()) text += " -mtriple=" + triple;
  if (!cpu.empty()) text += " -mcpu=" + cpu;
  if (!features.empty()) text += " -mattr=" + features;
  text += fmt::format(" -vector-bits={} -vector-registers={} -l1={} -l2={} -l3={}", vector_bits,
                      vector_registers, l1_bytes, l2_bytes, l3_bytes);
  return text;
}

// Whether "+avx2,-fma,..." turns a feature on, by its last mention.
static bool has_feature(std::string_view features, std::string_view name) {
  bool on = false;
  while (!features.empty()) {
    const std::string_view one = features.substr(0, features.find(','));
    features.remove_prefix(std::min(features.size(), one.size() + 1));
    if (one.size() > 1 && one.substr(1) == name) on = one[0] == '+';
  }
  return on;
}

bool Target::has(std::string_view feature) const {
  const CpuRow* row = find_cpu(*this);
  return has_feature(std::string(row ? row->features : "") + "," + features, feature);
}

DotProducts Target::dot_products() const {
  if (kind != "llvm") return DotProducts::kNone;
  if (is_x86()) return DotProducts::kUnsigned;
  return has("i8mm")      ? DotProducts::kUnsigned
         : has("dotprod") ? DotProducts::kSigned
                          : DotProducts::kNone;
}

Target parse_target(std::string_view text) {
  std::istringstream in{std::string(text)};
  static const std::vector<std::string> kKinds = {"native", "llvm", "c"};
  Target target;
  if (!(in >> target.kind) || (target.kind != "llvm" && target.kind != "c"))
    throw CompileError(kBadOption, {},
                       "target `{}` is not known; expected `native`, `llvm -mcpu=...` or `c`{}",
                       text, did_you_mean(target.kind, kKinds));
  if (target.kind == "c") {  // four lanes: what nearly every processor with vectors has
    target.vector_bits = 128;
    target.has_fma = false;
  }
  std::vector<std::pair<std::string, int64_t>> numbers;
  for (std::string word; in >> word;) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "-mtriple" && target.kind == "llvm") {
      target.triple = read_triple(value);
    } else if (key == "-mcpu" && !value.empty()) {
      target.cpu = value;
    } else if (key == "-mattr" && !value.empty()) {
      target.features = value;
    } else if (key == "-vector-bits" || key == "-vector-registers" || key == "-l1" ||
               key == "-l2" || key == "-l3") {
      int64_t number = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (error != std::errc() || end != value.data() + value.size() || number < 1 ||
          number > (int64_t{1} << 40))
        throw CompileError(kBadOption, {},
                           "target option `{}` has value `{}`; expected a positive number", key,
                           value);
      numbers.emplace_back(key, number);
    } else {
      throw CompileError(kBadOption, {}, "target option `{}` is not known", word);
    }
  }
  if (target.kind == "c" && has_feature(target.features, "fma")) target.has_fma = true;
  if (target.cpu.empty() && target.kind == "llvm")
    target.cpu = target.is_x86() ? "x86-64" : "generic";
  // Every AArch64 has vectors like the generic one's.
  Target known = target;
  if (!target.is_x86() && !find_cpu(target)) known.cpu = "generic";
  if (const CpuRow* row = find_cpu(known)) {
    target.vector_bits = row->vector_bits;
    target.vector_registers = row->vector_registers;
    target.has_fma = row->has_fma;
    target.l1_bytes = row->l1_bytes;
    target.l2_bytes = row->l2_bytes;
    target.l3_bytes = row->l3_bytes;
  }
  for (const auto& [key, number] : numbers) {
    if (key == "-vector-bits") target.vector_bits = static_cast<int>(number);
    if (key == "-vector-registers") target.vector_registers = static_cast<int>(number);
    if (key == "-l1") target.l1_bytes = number;
    if (key == "-l2") target.l2_bytes = number;
    if (key == "-l3") target.l3_bytes = number;
  }
  return target;
}

}  // namespace tenon
