// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/plugin/descriptor.h"

#include <cstddef>
#include <cstring>
#include <set>

#include "tenon/backend/plugin/answer.h"
#include "tenon/backend/plugin/guard.h"
#include "tenon/support/diagnostics.h"
#include "tenon/support/plugin_codes.h"

namespace tenon::plugin {

namespace {

constexpr size_t kLeastBytes = offsetof(TenonBackend, patterns) + sizeof(const char*);
constexpr size_t kMostName = 64, kMostVersion = 256, kMostPatterns = size_t{1} << 20;
constexpr int32_t kMostPasses = 256;
constexpr uint32_t kKnownFlags = TENON_VARIES_WITH_THREADS | TENON_PASS_THREADS |
                                 TENON_NOT_THREAD_SAFE | TENON_HAS_EFFECTS |
                                 TENON_TAKES_SYMBOLIC_SHAPES | TENON_WORKS_IN_PLACE;

template <typename... Args>
CompileError bad(const std::string& file, fmt::format_string<Args...> format, Args&&... args) {
  return CompileError(kBadPlugin, {}, "plugin {}: {}", file.empty() ? "(linked in)" : file,
                      fmt::format(format, std::forward<Args>(args)...));
}

/// A string of the plugin's. \throws CompileError where it is longer than `limit`.
std::string copied(const std::string& file, const char* text, size_t limit, const char* what) {
  if (!text) return "";
  const size_t length = strnlen(text, limit + 1);
  if (length > limit) throw bad(file, "its {} has more than {} bytes", what, limit);
  return std::string(text, length);
}

bool is_name(const std::string& name) {
  if (name.empty() || name[0] < 'a' || name[0] > 'z') return false;
  for (const char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
  return true;
}

void check_versions(const std::string& file, uint64_t size, uint32_t abi) {
  const uint32_t major = abi >> 16, minor = abi & 0xffff;
  if (major != TENON_BACKEND_ABI_MAJOR || minor > TENON_BACKEND_ABI_MINOR)
    throw bad(file,
              "it is made for version {}.{} of the interface of back ends; this Tenon has {}.{}{}",
              major, minor, TENON_BACKEND_ABI_MAJOR, TENON_BACKEND_ABI_MINOR,
              major < TENON_BACKEND_ABI_MAJOR ? ": build it again" : ": a newer Tenon loads it");
  if (size < kLeastBytes || size > sizeof(TenonBackend))
    throw bad(file, "its TenonBackend.size is {}; expected {} to {} in version {}.{}", size,
              kLeastBytes, sizeof(TenonBackend), major, minor);
}

void check_numbers(const Descriptor& d) {
  if (d.unit > TENON_UNIT_REGION)
    throw bad(d.file, "its unit is {}; expected TENON_UNIT_MATCH or TENON_UNIT_REGION", d.unit);
  if (d.threads > TENON_THREADS_OWN_POOL)
    throw bad(d.file, "its threads are {}; expected TENON_THREADS_CALLER or TENON_THREADS_OWN_POOL",
              d.threads);
  if ((d.flags & ~kKnownFlags) != 0)
    throw bad(d.file, "its flags are {:#x}, of which this Tenon does not know {:#x}", d.flags,
              d.flags & ~kKnownFlags);
  if (d.priority < -1000000 || d.priority > 1000000)
    throw bad(d.file, "its priority is {}; expected -1000000 to 1000000", d.priority);
}

void check_passes(const Descriptor& d) {
  std::set<std::string> names;
  for (size_t i = 0; i < d.passes.size(); ++i) {
    const std::string& name = d.passes[i].name;
    if (name.size() > kMostName || !is_identifier(name))
      throw bad(d.file, "its pass {} is named `{}`; expected a C identifier", i,
                printable(name.c_str(), kMostName));
    if (!names.insert(name).second) throw bad(d.file, "it has two passes `{}`", name);
  }
}

void read_passes(const TenonBackend& raw, Descriptor& d) {
  if (raw.num_passes < 0 || raw.num_passes > kMostPasses)
    throw bad(d.file, "it has {} passes; expected 0 to {}", raw.num_passes, kMostPasses);
  if (raw.num_passes > 0 && !raw.passes)
    throw bad(d.file, "it has {} passes, and its list of them is null", raw.num_passes);
  for (int32_t i = 0; i < raw.num_passes; ++i) {
    const TenonPass* pass = raw.passes[i];
    if (!pass || pass->size < sizeof(TenonPass))
      throw bad(d.file, "its pass {} has a size of {}; expected at least {}", i,
                pass ? pass->size : 0, sizeof(TenonPass));
    PassDescriptor out;
    out.name = copied(d.file, pass->name, kMostName, "pass's name");
    out.summary = printable(pass->summary ? pass->summary : "", 200);
    if (!pass->run) throw bad(d.file, "its pass `{}` has no function", out.name);
    d.passes.push_back(std::move(out));
  }
}

/// Back ends in this process.
class OwnHooks final : public Hooks {
 public:
  explicit OwnHooks(const TenonBackend& raw) : raw_(raw) {}

  int32_t check(const std::string& what, const TenonMatch& match, TenonAnswer& answer) override {
    return asked<int32_t>(what, [&] { return raw_.check(host(), &match, &answer); });
  }
  double cost(const std::string& what, const TenonMatch& match) override {
    return asked<double>(what, [&] { return raw_.cost(host(), &match); });
  }
  int64_t scratch(const std::string& what, const TenonMatch& match) override {
    return asked<int64_t>(what, [&] { return raw_.scratch(host(), &match); });
  }
  int32_t pack(const std::string& what, const TenonMatch& match, int32_t input,
               TenonAnswer& answer) override {
    return asked<int32_t>(what, [&] { return raw_.pack(host(), &match, input, &answer); });
  }
  int32_t generate(const std::string& what, const TenonMatch& match, TenonAnswer& answer) override {
    return asked<int32_t>(what, [&] { return raw_.generate(host(), &match, &answer); });
  }
  int32_t run_pass(const std::string& what, size_t pass, const std::string& text,
                   TenonAnswer& answer) override {
    return asked<int32_t>(what,
                          [&] { return raw_.passes[pass]->run(host(), text.c_str(), &answer); });
  }

 private:
  template <typename T, typename Ask>
  static T asked(const std::string& what, const Ask& ask) {
    T answer = 0;
    guarded(what, [&] { answer = ask(); });
    return answer;
  }
  TenonBackend raw_;
};

}  // namespace

std::string Descriptor::words() const {
  return "back end `" + name + "`" + (file.empty() ? "" : " (" + file + ")");
}

void check_descriptor(const Descriptor& d, HasPatterns patterns) {
  const bool has_patterns = patterns == HasPatterns::kYes || !d.patterns.empty();
  check_versions(d.file, d.size, d.abi);
  if (!is_name(d.name) || d.name.size() > kMostName || d.name == "none" || d.name == "tenon")
    throw bad(d.file,
              "its name is `{}`; expected a letter, then letters, digits and `_`, all in lower "
              "case, and not `none` or `tenon`",
              printable(d.name.c_str(), kMostName));
  check_numbers(d);
  check_passes(d);
  if (has_patterns && !d.has(kHasGenerate)) throw bad(d.file, "it has patterns and no `generate`");
  if (!has_patterns && patterns != HasPatterns::kNotNeeded && d.passes.empty())
    throw bad(d.file, "it has neither patterns nor passes");
  if (!d.run_symbol.empty() && (d.run_symbol.size() > kMostSymbol || !is_identifier(d.run_symbol)))
    throw bad(d.file, "its run_symbol is `{}`; expected a C identifier",
              printable(d.run_symbol.c_str(), 255));
}

Described describe(TenonBackendFunction entry, const std::string& file) {
  Described out;
  Descriptor& d = out.descriptor;
  TenonBackend& raw = out.raw;
  d.file = file;
  const TenonBackend* given = entry(host());
  if (!given) throw bad(file, "it gives no back end: it cannot work here");
  check_versions(file, given->size, given->abi);
  std::memcpy(static_cast<void*>(&raw), given, given->size);
  d.size = raw.size;
  d.abi = raw.abi;
  d.unit = raw.unit;
  d.threads = raw.threads;
  d.flags = raw.flags;
  d.priority = raw.priority;
  d.name = copied(file, raw.name, kMostName, "name");
  d.version = printable(copied(file, raw.version, kMostVersion, "version").c_str(), kMostVersion);
  d.patterns = copied(file, raw.patterns, kMostPatterns, "text of patterns");
  d.run_symbol = copied(file, raw.run_symbol, 255, "run_symbol");
  d.callbacks = (raw.check ? kHasCheck : 0) | (raw.cost ? kHasCost : 0) |
                (raw.scratch ? kHasScratch : 0) | (raw.pack ? kHasPack : 0) |
                (raw.generate ? kHasGenerate : 0);
  read_passes(raw, d);
  check_descriptor(d);
  return out;
}

Descriptor read_descriptor(TenonBackendFunction entry, const std::string& file) {
  Described described;
  guarded("plugin " + file, [&] { described = describe(entry, file); });
  described.descriptor.hooks = std::make_shared<OwnHooks>(described.raw);
  return std::move(described.descriptor);
}

}  // namespace tenon::plugin
