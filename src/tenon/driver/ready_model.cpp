// SPDX-License-Identifier: Apache-2.0
// Options and steps that several commands share.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "tenon/backend/llvm/host.h"
#include "tenon/backend/llvm/shared_library.h"
#include "tenon/driver/artefact_cache.h"
#include "tenon/driver/commands.h"
#include "tenon/driver/console.h"
#include "tenon/driver/entry.h"
#include "tenon/driver/linked_program.h"
#include "tenon/driver/load.h"
#include "tenon/driver/manifest.h"
#include "tenon/driver/passes.h"
#include "tenon/driver/pipelines.h"
#include "tenon/driver/tensors.h"
#include "tenon/driver/usage.h"
#include "tenon/driver/warnings.h"
#include "tenon/graph/kernels.h"
#include "tenon/ir/visit.h"
#include "tenon/script/printer.h"
#include "tenon/support/mapped_file.h"
#include "tenon/tir/transforms.h"

namespace tenon {

static constexpr int kMostThreads = 4096;

void TargetOptions::add_to(CLI::App& app) {
  app.add_option("--target", target,
                 "native (this host), or llvm or c, with any of -mtriple (aarch64-linux-gnu), "
                 "-mcpu, -mattr, -vector-bits, "
                 "-vector-registers, -l1, -l2, -l3 (\"c -mcpu=haswell\")")
      ->capture_default_str();
  app.add_option("--require-offload", required,
                 "90%, or BACKEND=90%: fail where back ends take less of the arithmetic; may be "
                 "repeated");
  app.add_option("--threads", threads, "threads of a run (default: what the process may use)");
  app.add_option("--pool", c.pools,
                 "target c: NAME=SIZE, memory for buffers, in order of preference; NAME=ro, memory "
                 "for constants");
  app.add_option("--include", c.includes,
                 "target c: header that declares the library's functions, instead of derived "
                 "prototypes");
  app.add_flag("--unchecked", unchecked,
               "no checks at run time of accesses that are not proved to lie inside their buffers");
  model.add_to(app);
}

void TargetOptions::check() const {
  if (threads < 0 || threads > kMostThreads)
    throw UsageError("--threads {} is not between 1 and {}", threads, kMostThreads);
  model.load();
  model.placement.check();
  requirements();
}

std::string_view TargetOptions::form(const std::string& model) const {
  if (model.ends_with(".so")) return "compiled";
  return target == "c" || target.starts_with("c ") ? "c" : "native";
}

std::vector<Requirement> TargetOptions::requirements() const {
  std::vector<Requirement> out;
  out.reserve(required.size());
  for (const std::string& text : required) out.push_back(parse_requirement(text));
  return out;
}

void PassOptions::add_to(CLI::App& app) {
  app.add_option("--print-after", print_after,
                 "print the module after these passes, separated by commas (all: after every one)")
      ->delimiter(',');
  app.add_flag("--validate", validate,
               "run the interpreter before and after every pass and compare");
  app.add_flag("--check-text", check_text,
               "print, parse back and compare the module after every pass");
  app.add_flag("--no-verify", no_verify, "do not verify the module after every pass");
}

PipelineOptions PassOptions::pipeline(const ModelOptions& model) const {
  PipelineOptions options;
  options.verify = !no_verify;
  options.validate = validate;
  options.libraries = model.libraries_of();
  options.check_text = check_text;
  options.print_after = print_after;
  options.counts = counts_;
  options.print = [](const Pass& pass, const IRModule& module) {
    fmt::print("# after {}\n{}\n", pass.name, script::print(module));
  };
  return options;
}

void PassOptions::tell() const {
  if (!validate && !check_text && !no_verify) return;
  fmt::print(stderr, "checks: of {} passes {} verified, {} validated, {} printed and parsed back\n",
             counts_->passes, counts_->verified, counts_->validated, counts_->texts);
}

static double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// What the manifest of a library says; zeros where it says nothing that can be read.
static void read_manifest(ReadyModel& ready) {
  const char* text = ready.program->declaration().manifest;
  if (!text) return;
  Manifest manifest = read_manifest(text);
  ready.target = std::move(manifest.target);
  ready.operators = manifest.operators;
  ready.kernels = manifest.kernels;
  ready.library_calls = manifest.library_calls;
  ready.gflop = manifest.gflop;
  ready.offload = std::move(manifest.offload);
  ready.memory = std::move(manifest.memory);
  ready.meanings = std::move(manifest.meanings);
  ready.own_kernels = std::move(manifest.own_kernels);
}

// A library for another processor is told by what its manifest says.
static void check_runs_here(const ReadyModel& ready) {
  std::optional<Target> target;
  try {
    target = parse_target(ready.target);
  } catch (const CompileError&) {
    return;  // not written by Tenon
  }
  llvm_backend::check_runs_here(*target);
}

BuiltModel build(IRModule loaded, const std::string& name, const TargetOptions& options,
                 const PipelineOptions& pipeline,
                 const std::function<void(LoweredModule&)>& adjust) {
  BuiltModel built;
  built.request = options.model.request(name, options.target);
  CompileRequest& request = built.request;
  request.pipeline = pipeline;
  request.libraries = options.model.libraries();
  request.required = options.requirements();
  request.unchecked = options.unchecked;
  built.prepared = options.model.prepare(std::move(loaded));
  auto start = std::chrono::steady_clock::now();
  built.lowered = lower(with_pools(built.prepared, options.c), request);
  built.pass_seconds = seconds_since(start);
  built.libraries =
      with_external_modules(built.lowered.pipeline.module, request.libraries, options.model.link);
  if (adjust) adjust(built.lowered);
  start = std::chrono::steady_clock::now();
  if (request.target.kind == "c") {
    COptions c = options.c;
    c.constants_file = true;  // no compiler has to read them
    built.c = generate_c(built.lowered, request, c);
  } else {
    built.code = generate(built.lowered, request, built.libraries.get());
  }
  built.codegen_seconds = seconds_since(start);
  return built;
}

std::shared_ptr<runtime::Program> link(const BuiltModel& built) {
  llvm_backend::check_runs_here(built.request.target);
  if (built.c) return compile_c(*built.c, built.request, built.lowered, built.libraries);
  return link(*built.code, built.libraries);
}

// The module with constants of `places` in the place of those that stood there before.
static IRModule with_constants(IRModule module,
                               const std::unordered_map<const Node*, Ref<TensorData>>& places) {
  return tir::map_prim_funcs(std::move(module), [&](const Ref<tir::PrimFunc>& function) {
    return rewrite(function, [&](const NodePtr& node) -> std::optional<NodePtr> {
      const auto* constant = node.as<tir::AllocConst>();
      const auto place = constant ? places.find(constant->data.get()) : places.end();
      if (place == places.end()) return std::nullopt;
      return make<tir::AllocConst>(constant->buffer, place->second, constant->origin);
    });
  });
}

std::shared_ptr<runtime::Program> link_in_place(BuiltModel& built) {
  if (!built.code) return link(built);
  llvm_backend::check_runs_here(built.request.target);
  // The module holds placeholders for large constants until it has them from the program: the pages of
  // a constant move only where nothing else holds it.
  std::vector<const Node*> before;
  std::unordered_map<const Node*, Ref<TensorData>> placeholders;
  for (const backend::ConstantsLayout::Item& item : built.code->constants.items) {
    const TensorData& data = *item.data;
    before.push_back(&data);
    if (data.is_splat() || data.bytes() < TensorData::kPagedBytes) continue;
    const std::vector<std::byte> zero(static_cast<size_t>(data.dtype.bytes()));
    placeholders[&data] = TensorData::splat(data.dtype, data.shape, zero, data.origin);
    before.back() = placeholders[&data].get();
  }
  built.lowered.pipeline.module =
      with_constants(std::move(built.lowered.pipeline.module), placeholders);
  llvm_backend::CompiledProgram code = *built.code;
  built.code->constants.items.clear();
  LinkedProgram linked = link_with_constants(std::move(code), built.libraries);
  built.code->constants = std::move(linked.constants);
  std::unordered_map<const Node*, Ref<TensorData>> places;
  for (size_t i = 0; i < before.size(); ++i)
    places.emplace(before[i], built.code->constants.items[i].data);
  built.lowered.pipeline.module = with_constants(std::move(built.lowered.pipeline.module), places);
  return std::move(linked.program);
}

namespace {

/// A program that was compiled before, or is kept for later.
class CachedProgram {
 public:
  /// \param is_plain  whether nothing is to be seen of the compilation but its program
  CachedProgram(const std::string& path, const TargetOptions& options, bool is_plain)
      : path_(path), folder_(std::filesystem::path(path).parent_path()) {
    if (folder_.empty()) folder_ = ".";
    const ModelOptions& model = options.model;
    const Target target = resolve(options.target);
    if (!options.uses_cache || !is_plain || target.kind != "llvm" || !options.required.empty() ||
        model.places() || !model.link.empty() || model.allow_code || model.chosen.given ||
        !model.write_plan.empty() || !model.bound_params.empty())
      return;
    cache_ = ArtefactCache::of_user();
    if (!cache_) return;
    ArtefactKey key(path, cache_->hashes());
    key.add("target", target.str());
    key.add("unchecked", options.unchecked ? "1" : "0");
    if (!model.chosen.passes.empty() || !model.chosen.file.empty()) {
      key.add("passes", model.chosen.passes);
      if (!model.chosen.file.empty()) key.add("pipeline", read_file(model.chosen.file));
      key.add("folder", std::filesystem::current_path().string());  // of files that passes name
    }
    if (!model.plan.empty()) key.add("plan", read_file(model.plan));
    for (const auto& [kernel, plan] : model.tuned_choices(target).plans) key.add(kernel, plan);
    key.add("fp", model.fp);
    key.add("max_steps", model.max_steps ? std::to_string(*model.max_steps) : "");
    for (const std::string& file : model.params) key.add("params", cache_->hashes().of(file));
    for (const auto& [name, texts] :
         {std::pair("shape", &model.shapes), {"length", &model.lengths}, {"bound", &model.bounds}})
      for (const std::string& text : *texts) key.add(name, text);
    key_ = key.str();
  }

  std::shared_ptr<runtime::Program> find() const {
    return cache_ ? cache_->find(key_, folder_) : nullptr;
  }

  /// Runs what loads and compiles the model; its warnings are told when it is done.
  void watch(const std::function<void()>& work) {
    if (!cache_) return work();
    const MappedFileScope files;
    struct Warning {
      Code code;
      Origin origin;
      std::string message;
    };
    std::vector<Warning> warnings;
    const auto tell = [&] {
      for (const Warning& warning : warnings)
        print_warning(warning.code, warning.origin, warning.message);
    };
    try {
      const WarningScope scope(
          [&](const Code& code, const Origin& origin, const std::string& message) {
            warnings.push_back({code, origin, message});
          });
      work();
    } catch (...) {
      tell();
      throw;
    }
    tell();
    has_warned_ = !warnings.empty();
    for (const std::string& file : files.paths())
      if (file != path_) files_.push_back(file);  // the key has the model itself
  }

  /// Ranks of inputs that files of values say are no part of the key.
  LoadOptions watched(LoadOptions options) {
    if (options.rank_of)
      options.rank_of = [this, ask = options.rank_of](const std::string& name) {
        has_asked_ = true;
        return ask(name);
      };
    return options;
  }

  /// Keeps what the run of another day would see the same of; null where it cannot be kept.
  std::shared_ptr<runtime::Program> store(const BuiltModel& built, const ReadyModel& ready) const {
    if (!cache_ || has_warned_ || has_asked_ || !built.code || built.lowered.library_calls > 0 ||
        (built.libraries && !built.libraries->empty()))
      return nullptr;
    const Manifest manifest = read_manifest(built.lowered.manifest);
    for (const auto& [name, meaning] : ready.meanings) {
      nlohmann::ordered_json expected, read;
      add_meaning(expected, meaning);
      if (const auto found = manifest.meanings.find(name); found != manifest.meanings.end())
        add_meaning(read, found->second);
      if (read != expected) return nullptr;
    }
    return cache_->store(key_, folder_, files_, [&](const std::string& path) {
      llvm_backend::write_shared_library(*built.code, path);
    });
  }

 private:
  std::string path_, folder_;  // of the model
  std::optional<ArtefactCache> cache_;
  std::string key_;
  std::vector<std::string> files_;
  bool has_warned_ = false, has_asked_ = false;
};

ReadyModel load_ready(std::shared_ptr<runtime::Program> program,
                      std::chrono::steady_clock::time_point start) {
  ReadyModel ready;
  ready.program = std::move(program);
  ready.load_seconds = seconds_since(start);
  read_manifest(ready);
  return ready;
}

ReadyModel compile_ready(const std::string& path, const TargetOptions& options,
                         const PipelineOptions& pipeline,
                         const std::function<void(LoweredModule&)>& adjust, CachedProgram& cached) {
  ReadyModel ready;
  BuiltModel built;
  cached.watch([&] {
    const auto start = std::chrono::steady_clock::now();
    if (pipeline.progress) pipeline.progress("import");
    IRModule module = load_module(path, cached.watched(options.model.load_options()));
    ready.import_seconds = seconds_since(start);
    built = build(std::move(module), path, options, pipeline, adjust);
    ready.meanings = named_meanings(built.prepared);
    warn_of_unmatched(built.lowered.pipeline.remarks, path);
    options.model.warn_of_unused(built.prepared, built.lowered.pipeline, built.libraries.get());
  });
  ready.target = built.request.target.str();
  ready.pass_seconds = built.pass_seconds;
  ready.codegen_seconds = built.codegen_seconds;
  const auto start = std::chrono::steady_clock::now();
  if (pipeline.progress) pipeline.progress(built.c ? "compile C" : "link");
  ready.program = cached.store(built, ready);
  if (!ready.program) {
    if (built.code) {  // weights are let go of with the modules, at which nobody looks any more
      built.prepared = {};
      built.lowered.pipeline.module = {};
    }
    ready.program = link_in_place(built);
  }
  ready.load_seconds = seconds_since(start);
  ready.compile_seconds = ready.import_seconds + ready.pass_seconds + ready.codegen_seconds;
  LoweredModule& lowered = built.lowered;
  ready.operators = lowered.operators;
  ready.kernels = lowered.kernels;
  ready.library_calls = lowered.library_calls;
  ready.own_kernels = kernel_lines(lowered.pipeline.remarks);
  ready.gflop = lowered.gflop;
  ready.offload = lowered.offload;
  ready.memory = lowered.memory;
  return ready;
}

}  // namespace

ReadyModel make_ready(const std::string& path, const TargetOptions& options,
                      const PipelineOptions& pipeline,
                      const std::function<void(LoweredModule&)>& adjust) {
  options.check();
  ReadyModel ready;
  const auto start = std::chrono::steady_clock::now();
  if (kind_of(path) == ModelKind::kCompiled) {
    ready = load_ready(load_program(path), start);
    check_runs_here(ready);
    check_requirements(options.requirements(), ready.offload);
  } else {
    llvm_backend::check_runs_here(resolve(options.target));
    const bool is_plain = !adjust && !pipeline.validate && !pipeline.check_text &&
                          pipeline.verify && pipeline.print_after.empty();
    CachedProgram cached(path, options, is_plain);
    if (auto program = cached.find()) {
      ready = load_ready(std::move(program), start);
      ready.is_cached = true;
    } else {
      ready = compile_ready(path, options, pipeline, adjust, cached);
    }
  }
  if (ready.memory.pools.empty() && ready.program->declaration().workspace_bytes >= 0) {
    // A library whose manifest says nothing of it.
    ready.memory.bytes = ready.program->declaration().workspace_bytes;
    ready.memory.bound_bytes = ready.program->declaration().bound_bytes;
  }
  ready.program->set_threads(options.threads);
  return ready;
}

// As far as libraries that are called by name have their operators: what they compute is no matter
// of the interpreter's.
static Pipeline until_called(Pipeline pipeline) {
  size_t end = 0;
  for (size_t i = 0; i < pipeline.size(); ++i)
    if (pipeline[i].name == "CallByName" || (end == 0 && pipeline[i].name == "RunCodegen"))
      end = i + 1;
  pipeline.resize(end);
  return pipeline;
}

InterpretedModel make_interpreted(const std::string& path, const TargetOptions& options,
                                  const PipelineOptions& pipeline) {
  const ModelOptions& model = options.model;
  const auto opened = model.libraries();
  IRModule module = with_entry(model.read(path));
  Pipeline passes = model.passes();
  if (!model.chosen.file.empty()) {
    const Pipeline whole = *model.whole();
    passes.insert(passes.end(), whole.begin(), whole.end());
  } else if (!model.composite.empty() && form_of(module) == Form::kGraph) {
    const Pipeline whole = until_called(model.whole().value_or(standard_pipeline()));
    passes.insert(passes.end(), whole.begin(), whole.end());
  } else if (!model.kernels.empty() && form_of(module) == Form::kGraph) {
    passes.push_back(*find_pass(graph::kSelectKernels));
  }
  if (!passes.empty()) {
    const IRModule prepared = module;
    PipelineResult result =
        run_pipeline(with_target(std::move(module), resolve(options.target)), passes, pipeline);
    module = std::move(result.module);
    warn_of_unmatched(result.remarks, path);
    options.model.kernels.warn_of_unused(prepared, result.remarks);
  }
  const auto libraries = with_external_modules(module, opened, model.link);
  return {interpreted(module, libraries), named_meanings(module)};
}

std::string account_lines(const AccountOptions& account) {
  std::string text;
  if (!account.offload.empty())
    text = str(account.offload);
  else if (account.library_calls == 0)
    text = fmt::format("own code {} of {}, in {} kernels", account.operators, account.operators,
                       account.kernels);
  else
    text = fmt::format("{}, in {} {} of own code and {} {} of libraries", account.operators,
                       account.kernels, account.kernels == 1 ? "kernel" : "kernels",
                       account.library_calls, account.library_calls == 1 ? "call" : "calls");
  std::string lines = fmt::format("operators  {}{}\n", text, account.more);
  for (const std::string& kernel : account.own_kernels)
    lines += fmt::format("kernel     {}\n", kernel);
  return lines;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace tenon
