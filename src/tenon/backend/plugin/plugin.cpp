// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/plugin/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <set>

#include "tenon/backend/plugin/answer.h"
#include "tenon/backend/plugin/descriptor.h"
#include "tenon/backend/plugin/generate.h"
#include "tenon/backend/plugin/guard.h"
#include "tenon/backend/plugin/match.h"
#include "tenon/backend/plugin/pattern_text.h"
#include "tenon/backend/plugin/remote.h"
#include "tenon/backend/plugin/run_pass.h"
#include "tenon/support/diagnostics.h"
#include "tenon/support/plugin_codes.h"

namespace tenon::plugin {

namespace fs = std::filesystem;
using graph::PatternCheck;
using graph::Verdict;

using Shared = std::shared_ptr<const Descriptor>;

AttrValue to_attr(const BackendOptions& options) {
  AttrValue::Map out;
  for (const auto& [name, values] : options) {
    AttrValue::Map map;
    for (const auto& [key, value] : values) map[key] = value;
    out[name] = map;
  }
  return out;
}

// What the user set for this back end in the module.
static std::map<std::string, std::string> options_of(const IRModule& module,
                                                     const std::string& name) {
  std::map<std::string, std::string> out;
  const AttrValue* all = module.attrs.find("backend_options");
  const auto* map = all ? all->as<AttrValue::Map>() : nullptr;
  if (!map || !map->count(name)) return out;
  if (const auto* own = map->at(name).as<AttrValue::Map>())
    for (const auto& [key, value] : *own) {
      const auto* text = value.as<std::string>();
      out[key] = text ? *text : value.str();
    }
  return out;
}

// What the pattern's names are bound to. A value outside of the composite is one of its inputs where
// the composite takes it; the input has the first of its names.
static AttrValue::Map bindings_of(const TenonMatch& match, const PatternCheck& check) {
  AttrValue::Map out;
  const auto bind = [&](const std::string& name, int32_t kind, size_t index) {
    out[name] = AttrList{int64_t{kind}, static_cast<int64_t>(index)};
  };
  for (const auto& [name, value] : check.annotated) {
    const auto* var = value.as<graph::Var>();
    const auto* constant = value.as<graph::Constant>();
    const std::string& first = std::ranges::find_if(check.annotated, [&](const auto& other) {
                                 return other.second.same_as(value);
                               })->first;
    for (size_t i = 0; i < match.inputs.size(); ++i) {
      const TenonMatch::Tensor& input = *match.inputs[i];
      if (input.data ? constant && input.data.same_as(constant->data) : input.name == first)
        bind(name, TENON_OPERAND_INPUT, i);
    }
    for (size_t i = 0; var && i < match.operators.size(); ++i) {
      const auto& results = match.operators[i].results;
      if (!results.empty() && results[0]->name == var->name) bind(name, TENON_OPERAND_OPERATOR, i);
    }
  }
  return out;
}

static std::unique_ptr<TenonMatch> match_of(const Descriptor& d, const PatternCheck& check,
                                            const std::string& pattern) {
  MatchContext context;
  context.options = options_of(check.module, d.name);
  context.abi = d.abi;
  auto match = read_match(check.module, check.composite, context);
  match->pattern = pattern;
  annotate(*match, bindings_of(*match, check));
  return match;
}

static Verdict check_match(const Descriptor& d, const PatternCheck& check,
                           const std::string& pattern) {
  std::unique_ptr<TenonMatch> match;
  try {
    match = match_of(d, check, pattern);
  } catch (const CompileError& error) {
    return {false, "unsupported", error.first().message};
  }
  if (match->has_symbolic_shapes && !d.has_flag(TENON_TAKES_SYMBOLIC_SHAPES))
    return {false, "symbolic", "the back end takes no dimensions that are not numbers"};
  if (!d.has(kHasCheck)) return {};
  TenonAnswer answer;
  answer.backend = d.name;
  answer.callback = TenonAnswer::Callback::kCheck;
  answer.subject = pattern;
  const std::string what = fmt::format("callback `check` of {}", d.words());
  const int32_t status = d.hooks->check(what, *match, answer);
  const auto fail = [&](const std::string& words) {
    return CompileError(kBadBackend, check.composite->origin, "{} {}", what, words);
  };
  if (!answer.fault.empty()) throw fail(answer.fault);
  if (answer.is_refused && status == 0) throw fail("refused a match and returned 0");
  if (!answer.is_refused && status != 0)
    throw fail(fmt::format("returned {} without a reason; refuse() gives one", status));
  if (answer.is_refused) return {false, answer.code, answer.words};
  return {};
}

static std::optional<double> cost_of(const Descriptor& d, const PatternCheck& check) {
  const auto pattern = check.composite->attrs.get<std::string>("Composite");
  const auto match = match_of(d, check, pattern.value_or(d.name));
  const std::string what = fmt::format("callback `cost` of {}", d.words());
  const double seconds = d.hooks->cost(what, *match);
  if (!std::isfinite(seconds))
    throw CompileError(kBadBackend, check.composite->origin,
                       "{} gave {}; expected seconds, or a negative number", what, seconds);
  if (seconds < 0) return std::nullopt;
  return seconds;
}

static graph::Backend adapt(const Shared& d, std::vector<graph::FusionPattern> patterns = {}) {
  graph::Backend backend;
  backend.name = d->name;
  backend.version = d->version;
  backend.unit = d->unit == TENON_UNIT_REGION ? graph::Backend::Unit::kRegion
                                              : graph::Backend::Unit::kComposite;
  backend.threads = d->threads == TENON_THREADS_OWN_POOL ? graph::Backend::Threads::kOwnPool
                                                         : graph::Backend::Threads::kCaller;
  backend.same_at_every_thread_count = !d->has_flag(TENON_VARIES_WITH_THREADS);
  backend.priority = d->priority;
  backend.patterns = std::move(patterns);
  for (graph::FusionPattern& pattern : read_pattern_text(d->patterns, d->name, d->words()))
    backend.patterns.push_back(std::move(pattern));
  for (graph::FusionPattern& pattern : backend.patterns) {
    pattern.check = [d, name = pattern.name, own = pattern.check](const PatternCheck& check) {
      if (own)
        if (Verdict verdict = own(check); !verdict.accepted) return verdict;
      return check_match(*d, check, name);
    };
    if (pattern.annotations.empty()) continue;
    pattern.attrs = [d, own = pattern.attrs](const PatternCheck& check) {
      const auto match = read_match(check.module, check.composite, {.abi = d->abi});
      Attrs attrs = own ? own(check) : Attrs();
      attrs.set(kBindings, bindings_of(*match, check));
      return attrs;
    };
  }
  if (d->has(kHasCost))
    backend.cost = [d](const PatternCheck& check) { return cost_of(*d, check); };
  if (d->has(kHasGenerate))
    backend.lower = [d](IRModule module, const std::string& function,
                        const graph::BackendContext& context) {
      std::map<std::string, std::string> options = options_of(module, d->name);
      for (const auto& [key, value] : context.options) {
        const auto* text = value.as<std::string>();
        options[key] = text ? *text : value.str();
      }
      return generate_unit(*d, std::move(module), function, {context.symbol, options, d->abi});
    };
  for (size_t i = 0; i < d->passes.size(); ++i) {
    const PassDescriptor& pass = d->passes[i];
    Pass out;
    out.name = d->name + "." + pass.name;
    out.summary = pass.summary.empty() ? "of plugin " + d->name : pass.summary;
    out.precision = Precision::kReassociating;
    out.run = [d, i](IRModule module, const Attrs& options) {
      return run_pass(*d, i, std::move(module), options);
    };
    backend.passes.push_back(std::move(out));
  }
  return backend;
}

graph::Backend adapt(TenonBackendFunction entry, const std::string& file) {
  return adapt(std::make_shared<const Descriptor>(read_descriptor(entry, file)));
}

namespace {

struct Loaded {
  std::mutex mutex;
  std::map<std::string, std::string> names;  // of back ends, by absolute path
  std::set<std::string> own;                 // of this process
};
Loaded& loaded() {
  static Loaded one;
  return one;
}

}  // namespace

graph::Backend adapt(Descriptor d, std::vector<graph::FusionPattern> patterns) {
  check_descriptor(
      d, patterns.empty() && d.patterns.empty() ? HasPatterns::kNotNeeded : HasPatterns::kYes);
  graph::Backend backend =
      adapt(std::make_shared<const Descriptor>(std::move(d)), std::move(patterns));
  Loaded& all = loaded();
  const std::lock_guard lock(all.mutex);
  all.own.insert(backend.name);
  return backend;
}

bool takes_options(const std::string& name) {
  Loaded& all = loaded();
  const std::lock_guard lock(all.mutex);
  return all.own.count(name) > 0 ||
         std::any_of(all.names.begin(), all.names.end(),
                     [&](const auto& loaded) { return loaded.second == name; });
}

// In this process: its code is loaded, with all that it may do to us.
static Descriptor load_here(const std::string& file, const std::string& path) {
  void* handle = nullptr;
  guarded("plugin " + file + ", when it was loaded,",
          [&] { handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL); });
  if (!handle) {
    const char* reason = dlerror();
    throw CompileError(kBadPlugin, {}, "plugin {}: {}", file, reason ? reason : "it does not load");
  }
  const auto entry = reinterpret_cast<TenonBackendFunction>(dlsym(handle, TENON_BACKEND_ENTRY));
  if (!entry)
    throw CompileError(kBadPlugin, {}, "plugin {}: it exports no function `{}`", file,
                       TENON_BACKEND_ENTRY);
  Descriptor described = read_descriptor(entry, file);
  if (!described.run_symbol.empty() && !dlsym(handle, described.run_symbol.c_str()))
    throw CompileError(kBadPlugin, {}, "plugin {}: it exports no function `{}`, its run_symbol",
                       file, described.run_symbol);
  return described;
}

std::string load_plugin(const std::string& file, const LoadPlugin& how) {
  if (!fs::is_regular_file(file))
    throw CompileError(kFileError, {}, "--plugin {}: there is no such file", file);
  const std::string path = fs::canonical(file).string();
  Loaded& all = loaded();
  const std::lock_guard lock(all.mutex);
  if (const auto known = all.names.find(path); known != all.names.end()) return known->second;
  for (const auto& [other, name] : all.names)
    if (fs::path(other).filename() == fs::path(path).filename())
      throw CompileError(kBadPlugin, {}, "plugins {} and {} have the same file name", other, path);
  graph::Backend backend = adapt(std::make_shared<const Descriptor>(
      how.in_process ? load_here(file, path) : load_apart(file, path, how.seconds)));
  const std::string name = backend.name;
  graph::register_backend(std::move(backend));
  all.names[path] = name;
  return name;
}

std::string plugin_path(const std::string& file_name) {
  Loaded& all = loaded();
  const std::lock_guard lock(all.mutex);
  for (const auto& [path, name] : all.names)
    if (fs::path(path).filename() == file_name) return path;
  return "";
}

}  // namespace tenon::plugin
