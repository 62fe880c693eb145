// SPDX-License-Identifier: Apache-2.0
#include "oracle.h"

#include <cstdlib>
#include <map>
#include <sstream>
#include <stdexcept>

#include "run.h"
#include "tenon/driver/c_program.h"
#include "tenon/driver/compare.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/pipelines.h"
#include "tenon/driver/placement_options.h"
#include "tenon/driver/tensors.h"
#include "tenon/driver/verify.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tolerance.h"

namespace tenon::fuzz {

// Every description of the list of machines that tests generate code for. Which differ in one
// number alone take turns; what starts a compiler or an emulator is for a few.
static const std::vector<Configuration>& all_configurations() {
  static const std::vector<Configuration> kAll = [] {
    const std::map<std::string_view, uint64_t> every = {
        {"x86_64", 2},     {"skylake_avx512", 4}, {"v128r32", 4},      {"v256r16", 4},
        {"v256r32", 2},    {"v512r16", 2},        {"aarch64", 40},     {"c", 10},
        {"c_haswell", 20}, {"cascadelake", 8},    {"neoverse_n1", 80}, {"neoverse_v1", 80}};
    std::vector<Configuration> all;
    for (const auto& target : testing_targets::kTargets) {
      const auto found = every.find(target.name);
      all.push_back({std::string(target.name), std::string(target.description), "",
                     found == every.end() ? 1 : found->second});
    }
    for (const char* library : {"dnnl", "blas"}) all.push_back({library, "native", library, 4});
    return all;
  }();
  return kAll;
}

std::string configuration_names() {
  std::string text;
  for (const Configuration& one : all_configurations())
    text += (text.empty() ? "" : ",") + one.name;
  return text;
}

std::vector<Configuration> configurations(const std::string& names) {
  if (names == "all") return all_configurations();
  std::vector<Configuration> out;
  std::stringstream stream(names);
  for (std::string name; std::getline(stream, name, ',');) {
    uint64_t every = 1;  // "c:10": for a tenth of the networks
    if (const size_t colon = name.find(':'); colon != std::string::npos) {
      every = std::strtoull(name.c_str() + colon + 1, nullptr, 10);
      name.resize(colon);
    }
    const auto& all = all_configurations();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Configuration& one) { return one.name == name; });
    if (found == all.end())
      throw std::invalid_argument("no target `" + name + "`; there are " + configuration_names());
    out.push_back(*found);
    out.back().every = every;
  }
  return out;
}

namespace {

// A number of its own for each network and configuration.
uint64_t lot(const Configuration& with, uint64_t seed) {
  uint64_t hash = seed + 1;
  for (const char c : with.name) hash = hash * 31 + static_cast<unsigned char>(c);
  return (hash * 0x9e3779b97f4a7c15ULL) >> 32;
}

std::shared_ptr<runtime::Program> compile(const Network& network, const Configuration& with,
                                          uint64_t lot) {
  CompileRequest request;
  request.name = "network";
  request.target = resolve(with.target);
  request.pipeline.verify = lot % 3 == 0;
  request.pipeline.check_text = lot % 33 == 0;
  if (lot % 2 == 0) {  // rows of kernels wherever they can be: what is drawn fits the caches
    request.whole = standard_pipeline();
    for (Pass& pass : *request.whole)
      if (pass.name == "FuseRows") pass.options.set("all", true);
  }
  IRModule module = network.module;
  if (!with.libs.empty())
    module = PlacementOptions{with.libs, {}}
                 .add_to(graph::UserPlacement::of(module))
                 .in(std::move(module));
  LoweredModule lowered = lower(std::move(module), request);
  const auto libraries = open_libraries(lowered, {});
  if (request.target.kind == "c") {
    COptions options;
    options.constants_file = true;
    return compile_c(generate_c(lowered, request, options), request, lowered, libraries);
  }
  return link(generate(lowered, request, libraries.get()), libraries);
}

std::vector<Ref<TensorData>> run(const std::shared_ptr<runtime::Program>& program,
                                 const Network& network, int threads) {
  program->set_threads(threads);
  BoundRun bound(program, network.inputs);
  bound.run();
  return bound.outputs();
}

}  // namespace

bool runs_with(const Configuration& configuration, uint64_t seed) {
  return configuration.every <= 1 || lot(configuration, seed) / 33 % configuration.every == 0;
}

std::optional<Failure> try_interpreter(const Network& network) {
  try {
    verify_module(network.module);
    check_text(network.module);
    const auto outputs = interpreted(network.module)->run(network.inputs);
    for (size_t i = 0; i < outputs.size(); ++i)
      if (const auto wrong = exact_difference(*outputs[i], *network.outputs.at(i)))
        return Failure{"interpreter", "wrong", fmt::format("output {}: {}", i, *wrong)};
  } catch (const InternalError& error) {
    return Failure{"interpreter", "internal error", error.what()};
  } catch (const CompileError& error) {
    return Failure{"interpreter", "refused", error.what()};
  }
  return std::nullopt;
}

// oneDNN's relu and maximum pooling lose NaNs (docs/libraries.md).
static bool says_nothing(const Network& network, const Configuration& with) {
  return with.libs == "dnnl" &&
         std::any_of(network.outputs.begin(), network.outputs.end(),
                     [](const Ref<TensorData>& output) { return summarise(*output).nan > 0; });
}

std::optional<Failure> try_configuration(const Network& network, const Configuration& with,
                                         uint64_t seed) {
  if (says_nothing(network, with)) return std::nullopt;
  try {
    const Target target = resolve(with.target);
    const bool takes_forms = tir::takes_fast_forms(network.module, target);
    if (testing_targets::way_of(target) != testing_targets::Way::kHere) {
      const auto outputs = testing_targets::run_for(network.module, target, network.inputs);
      if (const auto wrong = Outputs(network, takes_forms).wrong(outputs))
        return Failure{with.name, "wrong", *wrong};
      return std::nullopt;
    }
    const auto program = compile(network, with, lot(with, seed));
    const auto outputs = run(program, network, 1);
    if (const auto wrong = Outputs(network, takes_forms).wrong(outputs))
      return Failure{with.name, "wrong", *wrong};
    const int threads = 2 + static_cast<int>(seed % 7);
    const auto again = run(program, network, threads);
    for (size_t i = 0; i < outputs.size(); ++i)
      if (const auto wrong = exact_difference(*again[i], *outputs[i]))
        return Failure{with.name, "threads",
                       fmt::format("output {} on {} threads: {}", i, threads, *wrong)};
  } catch (const InternalError& error) {
    return Failure{with.name, "internal error", error.what()};
  } catch (const CompileError& error) {
    return Failure{with.name, "refused", error.what()};
  } catch (const std::bad_alloc&) {
    return Failure{with.name, "memory", "an allocation was refused"};
  } catch (const std::exception& error) {
    return Failure{with.name, "internal error", error.what()};
  }
  return std::nullopt;
}

}  // namespace tenon::fuzz
