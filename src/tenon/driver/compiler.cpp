// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/compiler.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_set>

#include "tenon/backend/llvm/host.h"
#include "tenon/backend/llvm/jit.h"
#include "tenon/backend/plugin/plugin.h"
#include "tenon/driver/ask_scratch.h"
#include "tenon/driver/backend_context.h"
#include "tenon/driver/console.h"
#include "tenon/driver/entry.h"
#include "tenon/driver/external_files.h"
#include "tenon/driver/kernel_files.h"
#include "tenon/driver/linked_program.h"
#include "tenon/driver/manifest.h"
#include "tenon/driver/operations.h"
#include "tenon/driver/pass_list.h"
#include "tenon/driver/passes.h"
#include "tenon/driver/pipelines.h"
#include "tenon/driver/signature.h"
#include "tenon/driver/tensors.h"
#include "tenon/driver/trust.h"
#include "tenon/driver/usage.h"
#include "tenon/driver/validate.h"
#include "tenon/driver/verify.h"
#include "tenon/driver/watch.h"
#include "tenon/graph/transforms.h"
#include "tenon/runtime/strings.h"
#include "tenon/script/printer.h"
#include "tenon/support/content_hash.h"
#include "tenon/support/deferred_work.h"
#include "tenon/support/interrupt.h"
#include "tenon/support/nearest.h"
#include "tenon/support/parallel.h"
#include "tenon/support/target_codes.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tir/scratch_query.h"
#include "tenon/tir/stmt.h"
#include "tenon/tune/job.h"
#include "tenon/tune/placement.h"

namespace tenon {

PipelineResult run_pipeline(IRModule module, const Pipeline& pipeline,
                            const PipelineOptions& options) {
  static std::once_flag once;
  std::call_once(once, [] { set_form_of(form_of); });
  for (const std::string& name : options.print_after) {
    const bool there = name == "all" || std::any_of(pipeline.begin(), pipeline.end(),
                                                    [&](const Pass& p) { return p.name == name; });
    if (there) continue;
    std::vector<std::string> names = {"all"};
    for (const Pass& pass : pipeline) names.push_back(pass.name);
    throw UsageError("--print-after {}: no such pass is run{}", name, did_you_mean(name, names));
  }
  PassRunner runner;
  // Around each pass and what is asked of its result; not around --validate, which runs programs.
  const StepLimits limits = limits_for(module);
  std::optional<WatchedStep> step;
  runner.before = [&](const Pass& pass, const IRModule& given) {
    if (options.before) options.before(pass, given);
    check_interrupt();
    if (options.progress) options.progress(pass.name);
    step.reset();
    step.emplace(pass.name, limits);
  };
  tir::VerifierMemory verified;
  if (options.verify)
    runner.verify = [&](const IRModule& changed) {
      verify_module(changed, &verified);
      if (options.counts) ++options.counts->verified;
    };
  std::unique_ptr<Validator> validator;
  if (options.validate) {
    validator = std::make_unique<Validator>(options.libraries);
    runner.validate = [&](const Pass& pass, const IRModule& before, const IRModule& after) {
      step.reset();
      validator->compare(pass, before, after);
      if (options.counts) ++options.counts->validated;
    };
  }
  runner.after = [&](const Pass& pass, const IRModule& after) {
    if (options.counts) ++options.counts->passes;
    if (options.check_text) {
      try {
        check_text(after);
        if (options.counts) ++options.counts->texts;
      } catch (const InternalError& error) {
        throw InternalError(fmt::format("after `{}`: {}", pass.name, error.what()));
      }
    }
    const auto& names = options.print_after;
    const bool wanted = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return name == "all" || name == pass.name;
    });
    if (wanted && options.print) options.print(pass, after);
    if (options.after) options.after(pass, after);
  };
  PipelineResult result;
  const RemarkScope remarks;
  result.module = runner.run(std::move(module), pipeline);
  step.reset();
  result.timings = std::move(runner.timings);
  result.remarks = remarks.remarks();
  return result;
}

Target resolve(const std::string& text) { return llvm_backend::resolve_target(text); }

IRModule with_target(IRModule module, const Target& target) {
  module.attrs.set("target", target.str());
  return module;
}

static int64_t count_kernels(const IRModule& module, const std::string& function) {
  int64_t count = 0;
  const auto program = module.find<tir::PrimFunc>(function);
  if (!program) return 0;
  walk_if(program->body, [&](const NodePtr& node) {
    if (const auto* call = node.as<tir::CallTir>()) {
      // Long programs are cut in pieces, which are no kernels.
      const std::string& name = call->callee->name;
      const auto callee = module.find<tir::PrimFunc>(name);
      const bool is_part = callee && callee->attrs.flag("tenon.part");
      const bool is_library = static_cast<bool>(module.find<tir::ExternFunction>(name));
      count += is_part ? count_kernels(module, name) : is_library ? 0 : 1;
      return false;
    }
    return !node.as<ExprNode>();
  });
  return count;
}

static int64_t count_library_calls(const IRModule& module) {
  int64_t count = 0;
  for (const auto& [name, function] : module.functions())
    if (function.as<tir::PrimFunc>())
      walk<tir::CallTir>(function, [&](const tir::CallTir& call) {
        count += static_cast<bool>(module.find<tir::ExternFunction>(call.callee->name));
      });
  return count;
}

std::vector<Remark> unchecked_calls(const IRModule& module) {
  std::vector<Remark> remarks;
  const std::vector<std::string> queries = tir::scratch_query_symbols(module);
  for (const auto& [name, function] : module.functions()) {
    const auto prim = cast<tir::PrimFunc>(function);
    if (!prim) continue;
    walk<Call>(prim->body, [&, in = name](const Call& call) {
      for (const IntrinsicId form : {IntrinsicId::kCallExtern, IntrinsicId::kCallPureExtern,
                                     IntrinsicId::kCallPacked, IntrinsicId::kCallCpacked})
        if (call.is(form)) {
          const auto* symbol = call.args.empty() ? nullptr : call.args[0].as<StringImm>();
          // How much scratch a declared function needs is declared with it.
          if (symbol && std::find(queries.begin(), queries.end(), symbol->value) != queries.end())
            continue;
          remarks.push_back({"Verify",
                             symbol ? symbol->value : "?",
                             "unchecked",
                             std::string(call.op->name),
                             {},
                             "`" + in + "` calls it without a signature",
                             call.origin});
        }
    });
  }
  return remarks;
}

// What the artefact says about itself. Nothing in it depends on the host or on the time.
// The plans of a database that blocks took, with all that their kernels are scheduled by.
static nlohmann::ordered_json tuned_json(const std::vector<Remark>& remarks) {
  std::set<std::string> tuned;
  for (const Remark& remark : remarks)
    if (remark.pass == kTakesPlans && remark.verdict == "matched" && remark.reason == "tuned")
      tuned.insert(remark.subject.substr(0, remark.subject.find('/')));
  std::map<std::string, std::vector<std::string>> choices;
  for (const Remark& remark : remarks) {
    if (remark.pass != kTakesPlans || remark.choice.empty()) continue;
    const std::string hash = nlohmann::json::parse(remark.choice).value("hash", "");
    if (tuned.contains(hash)) choices[hash].push_back(remark.choice);
  }
  auto list = nlohmann::ordered_json::array();
  for (const auto& [hash, of_blocks] : choices)
    list.push_back({{"kernel", hash},
                    {"plan", nlohmann::ordered_json::parse(tune::canonical_plan(of_blocks))}});
  return list;
}

static std::string manifest_of(const LoweredModule& lowered, const CompileRequest& request,
                               const Pipeline& passes,
                               const std::map<std::string, InputMeaning>& meanings) {
  nlohmann::ordered_json json;
  json["name"] = request.name;
  json["module_hash"] = lowered.module_hash;
  json["target"] = request.target.str();
  json["operators"] = lowered.operators;
  json["kernels"] = lowered.kernels;
  if (lowered.library_calls > 0) json["library_calls"] = lowered.library_calls;
  json["gflop"] = lowered.gflop;
  if (!lowered.offload.empty()) json["offload"] = json_of(lowered.offload);
  json["memory"] = json_of(lowered.memory);
  for (const Pass& pass : passes) json["passes"].push_back(pass_text(pass));
  const std::vector<std::string> own_kernels = kernel_lines(lowered.pipeline.remarks);
  if (!own_kernels.empty()) json["own_kernels"] = own_kernels;
  if (auto tuned = tuned_json(lowered.pipeline.remarks); !tuned.empty())
    json["tuned"] = std::move(tuned);
  const auto ports = [](const std::vector<Port>& ports) {
    auto list = nlohmann::ordered_json::array();
    for (const Port& port : ports) list.push_back({{"name", port.name}, {"type", port.str()}});
    return list;
  };
  const Signature signature = signature_of(lowered.pipeline.module);
  json["inputs"] = ports(signature.inputs);
  for (auto& port : json["inputs"])
    if (const auto meaning = meanings.find(port["name"]); meaning != meanings.end())
      add_meaning(port, meaning->second);
  json["outputs"] = ports(signature.outputs);
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The back ends' parts of the graph, before anything else happens to it.
static IRModule run_backends(IRModule module, const CompileRequest& request) {
  module = with_target(std::move(module), request.target);
  const graph::BackendContext context = backend_context();
  for (const graph::Backend& backend : request.backends) {
    module = graph::run_backend(std::move(module), backend, context);
    module = graph::generate_backend_code(std::move(module), backend);
  }
  return module;
}

// Functions of this process are no more when nobody holds the module that they were made for.
static void check_host_functions(const std::vector<graph::ExternalModule>& artefacts) {
  for (const graph::ExternalModule& artefact : artefacts) {
    if (artefact.kind != graph::ExternalModule::Kind::kHost) continue;
    for (const std::string& symbol : artefact.symbols)
      if (!runtime::find_packed(symbol))
        throw CompileError(
            kLinkFailed, {},
            "function `{}`, which back end `{}` made, is not in this process: it lives "
            "as long as the module that it was made for and programs of that",
            symbol, artefact.origin);
  }
}

std::shared_ptr<const backend::Libraries> open_libraries(const IRModule& module,
                                                         std::vector<std::string> files,
                                                         backend::Trust trust) {
  const std::vector<graph::ExternalModule> artefacts = graph::external_modules(module);
  if (artefacts.empty())
    return std::make_shared<const backend::Libraries>(std::move(files), nullptr, trust);
  if (trust != backend::Trust::kAnything) check_loaded_code(module, files);
  check_host_functions(artefacts);
  const auto folder = std::make_shared<const backend::TemporaryFolder>();
  const std::vector<std::string> named = files;
  for (std::string& file : write_external_modules(artefacts, folder->path())) {
    // A library that the user named is that one, and a plugin's own is where it was loaded from.
    if (std::any_of(named.begin(), named.end(), [&](const std::string& given) {
          return std::filesystem::path(given).filename() == file;
        }))
      continue;
    const std::string loaded = plugin::plugin_path(file);
    files.push_back(loaded.empty() ? std::move(file) : loaded);
  }
  return std::make_shared<const backend::Libraries>(std::move(files), folder, trust);
}

std::shared_ptr<const backend::Libraries> with_external_modules(
    const IRModule& module, std::shared_ptr<const backend::Libraries> opened,
    const std::vector<std::string>& files) {
  if (!module.attrs.contains("external_mods")) return opened;
  return open_libraries(module, files, opened ? opened->trust() : backend::Trust::kNamed);
}

Pipeline for_form(Pipeline pipeline, const IRModule& module) {
  const Form form = form_of(module);
  if (form == Form::kGraph || form == Form::kLegalised) return pipeline;
  pipeline.erase(std::remove_if(pipeline.begin(), pipeline.end(),
                                [](const Pass& pass) {
                                  return pass.needs == Form::kGraph ||
                                         pass.needs == Form::kLegalised;
                                }),
                 pipeline.end());
  return pipeline;
}

static constexpr const char* kChecks = "InstrumentBoundCheckers";

// Nothing goes unchecked because a pipeline of one's own does not name the pass: it stands where
// the standard pipeline has it, before kernels are scheduled or lowered.
static void check_accesses(Pipeline& pipeline, bool unchecked) {
  bool any = false;
  for (Pass& pass : pipeline) {
    if (pass.name != kChecks) continue;
    if (unchecked) pass.options.set("unchecked", true);
    any = true;
  }
  if (any || unchecked) return;
  const auto place = std::find_if(pipeline.begin(), pipeline.end(), [](const Pass& pass) {
    return pass.name == "DefaultSchedule" || pass.needs == Form::kTensorIR ||
           pass.needs == Form::kLowered;
  });
  Pass checks = *tenon::find_pass(kChecks);
  if (!pipeline.empty()) checks.origin = (place == pipeline.end() ? place - 1 : place)->origin;
  pipeline.insert(place, std::move(checks));
}

// What is asked for in front, then the whole pipeline.
static Pipeline pipeline_for(const IRModule& module, const CompileRequest& request) {
  Pipeline pipeline = request.first;
  for (Pass& pass : for_form(request.whole ? *request.whole : standard_pipeline(), module))
    pipeline.push_back(std::move(pass));
  check_accesses(pipeline, request.unchecked);
  return pipeline;
}

static void check_lowered(const IRModule& module, const Pipeline& pipeline) {
  const Form form = form_of(module);
  if (form == Form::kLowered) return;
  throw CompileError(kWrongForm, pipeline.empty() ? Origin() : pipeline.back().origin,
                     "the pipeline ends with a module in {} form; expected lowered", name_of(form));
}

// What passes read of the request in the module.
static IRModule with_request(IRModule module, const CompileRequest& request) {
  if (!request.measured.empty()) {
    graph::UserPlacement user = graph::UserPlacement::of(module);
    user.measured = request.measured;
    module = user.in(std::move(module));
  }
  return with_target(std::move(module), request.target);
}

PipelineInput pipeline_input(IRModule module, const CompileRequest& request) {
  module = with_entry(std::move(module));
  if (!request.backends.empty()) module = run_backends(std::move(module), request);
  Pipeline passes = pipeline_for(module, request);
  return {with_request(std::move(module), request), std::move(passes)};
}

// The pass as it stands in the pipeline, with the plans. What comes of them shows in the program; its
// manifest names those of a database, which may have others another day.
static void take_plans(Pipeline& pipeline, const std::shared_ptr<const tir::GivenPlans>& plans) {
  for (Pass& pass : pipeline)
    if (pass.name == kTakesPlans)
      pass.run = [plans](IRModule module, const Attrs& options) {
        check_options(std::string(kTakesPlans), options, {});
        return tir::schedule_by_plans(std::move(module), *plans);
      };
}

static std::vector<Ref<TensorData>> constants_of(const IRModule& module) {
  std::vector<Ref<TensorData>> constants;
  std::unordered_set<const Node*> seen;
  const auto add = [&](const Ref<TensorData>& data) {
    if (seen.insert(data.get()).second) constants.push_back(data);
  };
  for (const auto& [name, function] : module.functions())
    walk(function, [&](const NodePtr& node) {
      if (const auto* constant = node.as<graph::Constant>()) add(constant->data);
      if (const auto* constant = node.as<tir::AllocConst>()) add(constant->data);
    });
  return constants;
}

// On several threads: who compares or prints the constants asks for each hash in turn.
static void hash_all(const std::vector<Ref<TensorData>>& constants) {
  for_each_in_parallel(constants.size(), [&](size_t i) { (void)constants[i]->content_hash(); });
}

// Those that may be equal to another one.
static std::vector<Ref<TensorData>> alike(const std::vector<Ref<TensorData>>& constants) {
  std::map<std::string, std::vector<Ref<TensorData>>> by_outline;
  for (const Ref<TensorData>& data : constants)
    by_outline[backend::outline_of(*data)].push_back(data);
  std::vector<Ref<TensorData>> out;
  for (const auto& [outline, some] : by_outline)
    if (some.size() > 1) out.insert(out.end(), some.begin(), some.end());
  return out;
}

LoweredModule lower(IRModule module, const CompileRequest& request) {
  module = with_entry(std::move(module));
  const std::map<std::string, InputMeaning> meanings = named_meanings(module);
  LoweredModule lowered;
  if (!request.backends.empty()) module = run_backends(std::move(module), request);
  const Operations operations = count_operations(module);
  lowered.operators = operations.operators;
  lowered.gflop = operations.flop / 1e9;
  hash_all(constants_of(module));
  // Before the passes: printing refuses what would be too much work for them, too.
  lowered.module_hash = content_hash(script::print(module));
  DeferredWorkScope deferred;  // folding, while other passes work
  const std::vector<std::string> libs = tune::libs_of(module);
  const Pipeline pipeline = pipeline_for(module, request);
  Pipeline run = pipeline;
  if (request.plans) take_plans(run, request.plans);
  if (request.libraries) {
    // What is answered is planned.
    const auto plan = std::find_if(run.begin(), run.end(),
                                   [](const Pass& pass) { return pass.name == "PlanMemory"; });
    run.insert(plan, ask_scratch(request.libraries));
  }
  PlanWatch watch;
  lowered.pipeline =
      run_pipeline(with_request(std::move(module), request), run, watch.around(request.pipeline));
  lowered.plan = watch.take();
  check_lowered(lowered.pipeline.module, pipeline);
  lowered.offload = offload_of(lowered.pipeline.remarks, libs);
  check_requirements(request.required, lowered.offload);
  for (const Placement& placement : lowered.offload.placements)
    lowered.pipeline.remarks.push_back(remark_of(placement));
  lowered.kernels = count_kernels(lowered.pipeline.module, "main");
  lowered.library_calls = count_library_calls(lowered.pipeline.module);
  lowered.memory = memory_use_of(lowered.pipeline.module, lowered.pipeline.remarks);
  deferred.finish();
  for (Remark& remark : unchecked_calls(lowered.pipeline.module))
    lowered.pipeline.remarks.push_back(std::move(remark));
  lowered.manifest = manifest_of(lowered, request, pipeline, meanings);
  return lowered;
}

llvm_backend::CompiledProgram generate(const LoweredModule& lowered, const CompileRequest& request,
                                       const backend::Libraries* libraries) {
  if (request.pipeline.progress) request.pipeline.progress("code generation");
  const WatchedStep step("code generation", limits_for(lowered.pipeline.module));
  hash_all(alike(constants_of(lowered.pipeline.module)));
  return llvm_backend::compile(
      lowered.pipeline.module, request.target,
      {.name = request.name, .manifest = lowered.manifest, .libraries = libraries});
}

void check_registered(const std::vector<backend::PackedFunction>& functions) {
  Diagnostics diagnostics;
  for (const backend::PackedFunction& function : functions)
    if (!runtime::find_packed(function.name) && !runtime::find_string_function(function.name))
      diagnostics.error(kLinkFailed, function.origin,
                        "`{}` calls packed function `{}`, which is neither registered "
                        "(tenon_register_function) nor in a library of --link, as C function `{}`",
                        function.caller, function.name, backend::packed_symbol(function.name));
  diagnostics.throw_if_any();
}

LinkedProgram link_with_constants(llvm_backend::CompiledProgram code,
                                  std::shared_ptr<const backend::Libraries> libraries) {
  check_registered(code.registered);
  std::shared_ptr<llvm_backend::LoadedProgram> loaded =
      llvm_backend::link_in_process(std::move(code), std::move(libraries));
  try {
    return {runtime::Program::wrap(loaded->program(), nullptr, loaded), loaded->constants()};
  } catch (const runtime::Error& error) {
    throw CompileError(kLinkFailed, {}, "{}", error.what());
  }
}

std::shared_ptr<runtime::Program> link(const llvm_backend::CompiledProgram& program,
                                       std::shared_ptr<const backend::Libraries> libraries) {
  return link_with_constants(program, std::move(libraries)).program;
}

// The processor that an ELF file is for, where that is not this one's.
static std::string other_machine(const std::string& path) {
  static constexpr std::pair<int, const char*> kMachines[] = {
      {3, "x86"}, {40, "ARM"}, {62, "x86-64"}, {183, "AArch64"}, {243, "RISC-V"}};
#if defined(__x86_64__)
  constexpr int kHost = 62;
#elif defined(__aarch64__)
  constexpr int kHost = 183;
#else
  constexpr int kHost = 0;
#endif
  unsigned char head[20] = {};
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(head), sizeof head);
  if (!file ||
      std::memcmp(head,
                  "\x7f"
                  "ELF",
                  4) != 0 ||
      kHost == 0)
    return "";
  const bool is_big = head[5] == 2;
  const int machine = is_big ? head[18] << 8 | head[19] : head[19] << 8 | head[18];
  if (machine == kHost) return "";
  for (const auto& [number, name] : kMachines)
    if (number == machine) return name;
  return fmt::format("processor number {} of the ELF standard", machine);
}

std::shared_ptr<runtime::Program> load_program(const std::string& path) {
  if (const std::string machine = other_machine(path); !machine.empty())
    throw CompileError(kOtherMachine, {},
                       "`{}` is a program for {}; it runs on such a machine, not on this one", path,
                       machine);
  try {
    return runtime::Program::load(path);
  } catch (const runtime::Error& error) {
    throw CompileError(kLinkFailed, {}, "{}", error.what());
  }
}

}  // namespace tenon
