// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/model_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <filesystem>

#include "tenon/driver/console.h"
#include "tenon/driver/load.h"
#include "tenon/driver/onnx_values.h"
#include "tenon/driver/passes.h"
#include "tenon/driver/pipelines.h"
#include "tenon/driver/signature_warnings.h"
#include "tenon/driver/usage.h"
#include "tenon/driver/warnings.h"
#include "tenon/graph/backend.h"
#include "tenon/graph/kernels.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/partition.h"
#include "tenon/graph/transforms/signature_arguments.h"
#include "tenon/support/nearest.h"
#include "tenon/support/usage_codes.h"
#include "tenon/tir/extern_function.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tir/schedule/plan_file.h"
#include "tenon/tune/job.h"
#include "tenon/tune/part.h"

namespace tenon {

void ModelOptions::add_to(CLI::App& app) {
  app.add_option("--params", params,
                 "of a .relay model: values of its parameters, as relay.save_param_dict writes "
                 "them; may be repeated");
  app.add_option("--shape", shapes,
                 "of an .onnx model: NAME=1,?,224, the shape of an input; ? leaves a dimension to "
                 "the model; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--bound", bounds,
                 "NAME=N: the most that a number is which the program reads while it runs: memory "
                 "of sizes by it is planned before; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--length", lengths,
                 "NAME=N of an .onnx model: how many tensors the input holds, a sequence; `none`: "
                 "the input, an optional, is absent; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--link", link,
                 "a library that the program calls: lib.so, lib.a, file.o or file.c; may be "
                 "repeated");
  app.add_flag("--allow-code", allow_code,
               "link what the model brings as code, and call what it names of the system: it is as "
               "if you ran a program of its author's (docs/trust.md)");
  app.add_option("--call-by-name", call_by_name,
                 "BACKEND: composite functions `BACKEND.f` become calls of the C function `f`");
  app.add_option("--signatures", signatures,
                 "TVMScript file of extern functions, which replace derived signatures");
  app.add_option("--composite", composite,
                 "TVMScript file of patterns; what matches one becomes a composite of its name");
  app.add_option("--composite-before", composite_before,
                 "PASS: look for the patterns of --composite before this pass of the pipeline, and "
                 "not as placement does, after batch norms are folded");
  app.add_option(
      "--fp", fp,
      "MODE: how sums of floats are computed. `strict`: term by term; `fast`: convolutions "
      "also by forms with fewer operations, with an error of some 1e-5 of a layer's "
      "largest output (docs/design/0016-winograd.md), sums of products in parts "
      "(docs/plans.md, `chunks`), and products with weights of few bits "
      "by digits of 8 bits (docs/language-models.md); `auto` (the default): as `fast` "
      "where the program's peak of memory stays as it is, and `strict` for target c");
  app.add_option("--max-steps", max_steps,
                 "N: a loop of the network that comes to more than N iterations ends the program "
                 "with an error");
  plugins.add_to(app);
  app.add_option(
         "--kernels", kernels.files,
         "TVMScript file of kernels of your own: PrimFuncs with attribute `op`, the operator "
         "that each computes (docs/own-kernels.md); may be repeated")
      ->allow_extra_args(false);
  app.add_option("--kernel", kernels.choices,
                 "OPERATOR=FILE:FUNCTION, or NODE=FILE:FUNCTION for one node of the network: the "
                 "PrimFunc that computes it; may be repeated")
      ->allow_extra_args(false);
  chosen.add_to(app);
  placement.add_to(app);
}

// The name and the dimensions of NAME=1,?,224; `?` is -1.
static std::pair<std::string, std::vector<int64_t>> parse_shape(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError("--shape {}: expected NAME=1,?,224", text);
  std::vector<int64_t> dims;
  std::string_view rest = std::string_view(text).substr(equals + 1);
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view dim = rest.substr(0, comma);
    int64_t number = -1;
    const auto [end, error] = std::from_chars(dim.data(), dim.data() + dim.size(), number);
    if (dim != "?" && (error != std::errc() || end != dim.data() + dim.size() || number < 0))
      throw UsageError(
          "--shape {}: `{}` is no dimension; expected a number, or ? for what the "
          "model says",
          text, dim);
    dims.push_back(number);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return {text.substr(0, equals), dims};
}

static AttrValue::Map parse_bounds(const std::vector<std::string>& bounds) {
  AttrValue::Map out;
  for (const std::string& text : bounds) {
    const size_t equals = text.rfind('=');
    int64_t most = -1;
    const char* end = text.data() + text.size();
    if (equals == std::string::npos || equals == 0 ||
        std::from_chars(text.data() + equals + 1, end, most).ptr != end || most < 0)
      throw UsageError("--bound {}: expected NAME=N, a number from 0", text);
    if (!out.emplace(text.substr(0, equals), most).second)
      throw UsageError("--bound {}: the number has a bound already", text);
  }
  return out;
}

LoadOptions ModelOptions::load_options() const {
  LoadOptions options{.params = params,
                      .operators = kernels.declared(),
                      .whole = kernels.whole(),
                      .lengths = parse_lengths(lengths)};
  options.rank_of = rank_of;
  for (const std::string& text : shapes) {
    const auto [name, dims] = parse_shape(text);
    if (!options.shapes.emplace(name, dims).second)
      throw UsageError("--shape {}: the input is given twice", text);
  }
  return options;
}

void ModelOptions::add_plan_to(CLI::App& app) {
  app.add_option("--plan", plan,
                 "plans.json: schedules of blocks, taken instead of what the model of the machine "
                 "would choose (docs/plans.md)");
  app.add_option("--tuned", tuned,
                 "the database of `tenon tune`: plans that it measured to be faster are taken "
                 "(docs/tuning.md)");
  app.add_option("--machine", machine,
                 "of --tuned: the kind of machine whose plans are taken, by its fingerprint, where "
                 "the database has several");
}

void ModelOptions::add_write_plan_to(CLI::App& app) {
  app.add_option("--write-plan", write_plan, "plans.json: write the plans of all blocks there");
}

// A graph function that nobody calls and that is neither a composite nor a pattern.
static std::string only_entry(const IRModule& module) {
  std::set<std::string> called;
  for (const auto& [name, function] : module.functions())
    walk<graph::FuncRef>(function, [&](const graph::FuncRef& ref) { called.insert(ref.name); });
  std::string found;
  for (const auto& [name, function] : module.functions()) {
    if (!function.as<graph::Function>() || called.count(name)) continue;
    if (function->attrs.contains("Composite") || function->attrs.contains("Pattern")) continue;
    if (graph::declares_operator(*function)) continue;
    if (!found.empty()) return "";
    found = name;
  }
  return found;
}

// The entry is `main`; it is compiled as a whole, whatever a partition said of it.
static IRModule with_main(IRModule module) {
  std::string entry = "main";
  if (!module.contains(entry)) {
    entry = only_entry(module);
    if (entry.empty()) return module;  // reported where `main` is needed
  }
  const auto function = module.find<graph::Function>(entry);
  if (!function) return module;
  Attrs attrs = function->attrs;
  for (const char* name : {"Primitive", "Inline", "Compiler", "global_symbol"}) attrs.erase(name);
  if (entry == "main" && attrs == function->attrs) return module;
  const Ref<graph::Function> copy = with(*function, [&](graph::Function& copy) {
    copy.attrs = std::move(attrs);
    copy.is_private = false;
  });
  if (entry != "main") module.erase(entry);
  module.set("main", copy);
  return module;
}

std::string ModelOptions::only_library() const {
  return call_by_name.size() == 1 ? call_by_name[0] : "";
}

// Graph functions, PrimFuncs, or combinators.
static std::vector<graph::FusionPattern> read_patterns(const std::string& file,
                                                       const std::string& backend) {
  const auto source = std::make_shared<const SourceFile>(SourceFile{file, read_file(file)});
  try {
    const script::PatternFile read = script::read_pattern_file(source, {.backend = backend});
    if (!read.named.empty()) return read.patterns;
  } catch (const CompileError&) {
    // Whoever wrote a module is told what is wrong with the module.
    if (source->text.find("is_op(") != std::string::npos) throw;
  }
  const IRModule module = load_module(file);
  for (const auto& [name, function] : module.functions())
    if (!function.as<graph::Function>() && !function.as<tir::PrimFunc>())
      throw CompileError(kBadPattern, function->origin,
                         "--composite {}: `{}` is an extern function; expected patterns under "
                         "@R.function or @T.prim_func",
                         file, name);
  return graph::read_patterns(module, backend);
}

std::vector<graph::FusionPattern> ModelOptions::patterns() const {
  std::vector<graph::FusionPattern> out;
  for (const std::string& file : composite)
    for (graph::FusionPattern& pattern : read_patterns(file, only_library())) {
      // A Python name has no dot: it is a function of the back end that is called by name.
      if (pattern.name.find('.') == std::string::npos)
        throw CompileError(kBadPattern, pattern.origin,
                           "--composite {}: pattern `{}` belongs to no back end; give it the "
                           "attribute {{\"Composite\": \"BACKEND.{}\"}}, or one --call-by-name",
                           file, pattern.name, pattern.name);
      out.push_back(std::move(pattern));
    }
  return out;
}

void ModelOptions::load() const {
  plugins.load();
  for (const std::string& name : call_by_name) {
    const auto known = graph::find_backend(name);
    if (known && !known->by_name)
      throw UsageError("--call-by-name {}: back end `{}` makes code of its own; expected --libs {}",
                       name, name, name);
    if (!known) graph::register_backend(graph::call_by_name(name));
  }
  graph::set_user_patterns(patterns());
}

IRModule ModelOptions::with_fp(IRModule module) const {
  if (!fp.empty() && fp != "strict" && fp != "fast" && fp != "auto")
    throw UsageError("--fp {}: expected auto, strict or fast", fp);
  if (!fp.empty() && fp != "auto") module.attrs.set(tir::kFloatingPoint, fp);
  return module;
}

IRModule ModelOptions::prepare(IRModule module) const {
  load();
  module = plugins.annotate(with_main(std::move(module)));
  if (!bound_params.empty()) module = graph::bind_params(std::move(module), bound_params, "main");
  if (!bounds.empty()) module.attrs.set("bounds", parse_bounds(bounds));
  if (max_steps && *max_steps < 0)
    throw UsageError("--max-steps {}: expected a number from 0", *max_steps);
  if (max_steps) module.attrs.set("max_steps", *max_steps);
  module = with_fp(std::move(module));
  graph::UserPlacement user = placement.add_to(graph::UserPlacement::of(module));
  for (const std::string& file : signatures) {
    const IRModule declared = load_module(file);
    for (const auto& [name, function] : declared.functions()) {
      const auto external = cast<tir::ExternFunction>(function);
      if (!external)
        throw CompileError(kBadArgument, function->origin,
                           "--signatures {}: `{}` is no extern function; expected definitions "
                           "under @T.extern_func",
                           file, name);
      graph::check_signature(*external);
      if (!module.contains(name) || external->attrs.contains("composite")) {
        module.add_unique(name, external);
        continue;
      }
      // Another function of the module has its name, by which composites find it.
      module.add_unique(name, with(*external, [&](tir::ExternFunction& copy) {
                          copy.attrs.set("composite", name);
                        }));
    }
  }
  for (const graph::FusionPattern& pattern : patterns()) {
    const auto backend = graph::find_backend(graph::backend_of(pattern));
    if (backend && backend->by_name) {
      user.libraries = call_by_name;
    } else if (!backend && pattern.tir) {
      // Nobody's, until a pass hands it to somebody.
      module.add_unique(graph::identifier(pattern.name),
                        with(*pattern.tir, [&](tir::PrimFunc& copy) {
                          copy.is_private = true;
                          copy.attrs.erase("Composite");
                          copy.attrs.set("Pattern", pattern.name);
                        }));
    }
  }
  return kernels.add_to(user.in(std::move(module)));
}

static Pass pass_of(const char* name, Attrs options = {}) {
  auto found = find_pass(name);
  check(found.has_value(), "a pass that is not in the table");
  Pass pass = std::move(*found);
  pass.options = std::move(options);
  return pass;
}

static bool has_pass(const Pipeline& pipeline, std::string_view name) {
  return std::any_of(pipeline.begin(), pipeline.end(),
                     [&](const Pass& pass) { return pass.name == name; });
}

// Patterns for nobody who is known here are looked for by file.
Pipeline ModelOptions::fusing_passes(bool is_placing) const {
  Pipeline out;
  std::set<std::string> names;
  for (const std::string& file : composite) {
    bool is_known = true;
    for (const graph::FusionPattern& pattern : read_patterns(file, only_library())) {
      const std::string name = graph::backend_of(pattern);
      const bool is_there = graph::find_backend(name) != nullptr;
      is_known &= is_there;
      if (is_there && !is_placing && pattern.pattern && names.insert(name).second)
        out.push_back(pass_of("FuseOpsByPattern", {{"backend", name}}));
    }
    if (!is_known)
      out.push_back(pass_of("FuseOpsByPattern", {{"file", file}, {"backend", only_library()}}));
  }
  return out;
}

Pipeline ModelOptions::passes(Then then) const {
  load();
  const Pipeline first = chosen.first();
  if (then == Then::kNothing && !composite_before.empty())
    throw UsageError("--composite-before {}: no pipeline runs here; expected --pipeline with it",
                     composite_before);
  Pipeline pipeline;
  if (composite_before.empty()) {
    // Placement looks for them where it runs: after batch norms are folded.
    const bool is_placing =
        then == Then::kNothing
            ? has_pass(first, "AnnotatePlacement")
            : has_pass(chosen.whole().value_or(standard_pipeline()), "AnnotatePlacement");
    pipeline = fusing_passes(is_placing);
  }
  for (const std::string& backend : call_by_name)
    pipeline.push_back(pass_of("CallByName", {{"backend", backend}}));
  pipeline.insert(pipeline.end(), first.begin(), first.end());
  return pipeline;
}

// Plans are for one target, where they name one.
static void check_target(const tir::GivenPlans& plans, const Target& target) {
  const std::string wanted = target.str();
  if (plans.target.empty() || plans.target == wanted) return;
  try {
    if (resolve(plans.target).str() == wanted) return;
  } catch (const CompileError& error) {
    throw CompileError(kBadPlan, plans.target_origin, "{}", error.first().message);
  }
  throw CompileError(kBadPlan, plans.target_origin, "the plans are for target {}; expected {}",
                     plans.target, wanted);
}

CompileRequest ModelOptions::request(const std::string& path, const std::string& target) const {
  CompileRequest request;
  request.name = std::filesystem::path(path).stem().string();
  request.target = resolve(target);
  request.first = passes();
  request.whole = whole();
  const bool schedules = has_pass(request.first, kTakesPlans) ||
                         has_pass(request.whole.value_or(standard_pipeline()), kTakesPlans);
  if (!plan.empty() && !schedules)
    throw UsageError("--plan {}: the pipeline does not contain {}, which takes plans", plan,
                     kTakesPlans);
  if (!write_plan.empty() && !schedules)
    throw UsageError("--write-plan {}: the pipeline does not contain {}, which chooses plans",
                     write_plan, kTakesPlans);
  if (!tuned.empty() && !schedules)
    throw UsageError("--tuned {}: the pipeline does not contain {}, which takes plans", tuned,
                     kTakesPlans);
  if (!machine.empty() && tuned.empty())
    throw UsageError("--machine {}: no database is given; expected --tuned with it", machine);
  if (plan.empty() && tuned.empty()) return request;
  tir::GivenPlans given;
  if (!plan.empty()) {
    given = tir::read_plans(std::make_shared<const SourceFile>(SourceFile{plan, read_file(plan)}));
    check_target(given, request.target);
  }
  // Behind those of a file, which come first where both are for a block.
  Tuned choices = tuned_choices(request.target);
  request.measured = std::move(choices.measured);
  for (const auto& [kernel, text] : choices.plans)
    for (tir::GivenPlan& each : tune::plans_of(text, kernel, tuned))
      given.plans.push_back(std::move(each));
  request.plans = std::make_shared<const tir::GivenPlans>(std::move(given));
  return request;
}

ModelOptions::Tuned ModelOptions::tuned_choices(const Target& target) const {
  if (tuned.empty()) return {};
  const tune::Database database(tuned, tune::Database::Open::kRead);
  const std::map<std::string, std::string> machines = database.machines(target.str());
  std::string list;
  for (const auto& [fingerprint, text] : machines)
    list += fmt::format("\n  {}  {}", fingerprint, text);
  if (!machine.empty() && !machines.contains(machine))
    throw CompileError(kBadDatabase, {},
                       "{}: there are no plans of machine {} for target {}; expected one of{}",
                       tuned, machine, target.str(), list.empty() ? " none" : list);
  if (machine.empty() && machines.size() > 1)
    throw CompileError(kBadDatabase, {},
                       "{}: there are plans of {} kinds of machines for the target; expected "
                       "--machine with one of{}",
                       tuned, machines.size(), list);
  if (machines.empty()) {
    warn(kMatchesNothing, {}, "--tuned {}: there are no plans for target {}", tuned, target.str());
    return {};
  }
  const std::string kind = machine.empty() ? machines.begin()->first : machine;
  Tuned out;
  out.measured = tune::measured_parts(database, target.str(), kind);
  for (const auto& [kernel, choice] : database.choices(target.str(), kind))
    if (!tune::is_part_hash(kernel)) out.plans.emplace(kernel, choice.plan);
  return out;
}

void ModelOptions::write_plans(const std::vector<Remark>& remarks, const Target& target) const {
  if (write_plan.empty()) return;
  std::vector<std::string> choices;
  for (const Remark& remark : remarks)
    if (remark.pass == kTakesPlans && !remark.choice.empty()) choices.push_back(remark.choice);
  write_file(write_plan, tir::plan_file(choices, target));
}

std::optional<Pipeline> ModelOptions::whole() const {
  std::optional<Pipeline> given = chosen.whole();
  if (composite_before.empty()) return given;
  load();
  Pipeline pipeline = given ? *given : standard_pipeline();
  auto place = std::find_if(pipeline.begin(), pipeline.end(),
                            [&](const Pass& pass) { return pass.name == composite_before; });
  if (place == pipeline.end()) {
    std::vector<std::string> names;
    for (const Pass& pass : pipeline) names.push_back(pass.name);
    throw UsageError(
        "--composite-before {}: the pipeline does not contain this pass{}; `tenon "
        "passes` lists the pipeline",
        composite_before, did_you_mean(composite_before, names));
  }
  Pipeline added = fusing_passes(false);
  for (const std::string& backend : call_by_name)
    added.push_back(pass_of("CallByName", {{"backend", backend}}));
  pipeline.insert(place, added.begin(), added.end());
  return pipeline;
}

Pipeline ModelOptions::pipeline() const {
  Pipeline pipeline = passes();
  for (const Pass& pass : whole().value_or(standard_pipeline())) pipeline.push_back(pass);
  return pipeline;
}

// Those of the model's functions and of patterns.
std::vector<std::string> ModelOptions::composite_names(const IRModule& prepared) const {
  std::vector<std::string> out;
  const auto add = [&](const FunctionNode& function) {
    for (const char* attribute : {"Composite", "Pattern"})
      if (const auto given = function.attrs.get<std::string>(attribute)) out.push_back(*given);
  };
  for (const auto& [name, function] : prepared.functions()) {
    if (!function.as<graph::Function>()) add(*function);
    walk<graph::Function>(function, [&](const graph::Function& inner) { add(inner); });
  }
  for (const graph::FusionPattern& pattern : patterns()) out.push_back(pattern.name);
  return out;
}

void ModelOptions::warn_of_unused(const IRModule& prepared, const PipelineResult& lowered,
                                  const backend::Libraries* opened) const {
  kernels.warn_of_unused(prepared, lowered.remarks);
  if (signatures.empty() && link.empty()) return;
  const backend::ProgramFunctions functions(lowered.module, "main");
  std::set<std::string> called;
  for (const backend::LibraryFunction& library : functions.libraries())
    called.insert(library.symbol);
  warn_of_signatures(signatures, call_by_name, composite_names(prepared), functions);
  for (const backend::PackedFunction& packed : functions.packed())
    called.insert(backend::packed_symbol(packed.name));
  if (!opened) return;
  for (const std::string& file : opened->without(called))
    if (std::find(link.begin(), link.end(), file) != link.end())
      warn(kNotUsed, {}, "--link {}: the program calls no function of it", file);
}

std::shared_ptr<const backend::Libraries> ModelOptions::libraries() const {
  return std::make_shared<const backend::Libraries>(
      link, nullptr, allow_code ? backend::Trust::kAnything : backend::Trust::kNamed);
}

std::function<std::shared_ptr<const backend::Libraries>(const IRModule&)>
ModelOptions::libraries_of() const {
  const auto opened = std::make_shared<std::shared_ptr<const backend::Libraries>>();
  return [opened, options = *this](const IRModule& module) {
    if (!*opened) *opened = options.libraries();
    return with_external_modules(module, *opened, options.link);
  };
}

}  // namespace tenon
