#include "oracle.h"

#include <cmath>
#include <sstream>
#include <stdexcept>

#include "tenon/driver/c_program.h"
#include "tenon/driver/compare.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/placement_options.h"
#include "tenon/driver/verify.h"
#include "tolerance.h"

namespace tenon::fuzz {

static const std::vector<Configuration>& all_configurations() {
  static const std::vector<Configuration> kAll = {
      {"native", "native"},
      {"haswell", "llvm -mcpu=haswell"},
      {"x86-64", "llvm -mcpu=x86-64"},
      {"v128", "llvm -mcpu=haswell -vector-bits=128 -vector-registers=16"},
      {"v256r32", "llvm -mcpu=haswell -vector-bits=256 -vector-registers=32", "", 2},
      {"v512", "llvm -mcpu=haswell -vector-bits=512 -vector-registers=32"},
      {"v512r16", "llvm -mcpu=haswell -vector-bits=512 -vector-registers=16", "", 2},
      {"c", "c", "", 10},
      {"c-avx2", "c -mcpu=haswell", "", 20},
      {"dnnl", "native", "dnnl", 4},
      {"blas", "native", "blas", 4},
  };
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
    const auto& all = all_configurations();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const Configuration& one) { return one.name == name; });
    if (found == all.end())
      throw std::invalid_argument("no target `" + name + "`; there are " + configuration_names());
    out.push_back(*found);
    out.back().every = 1;
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
  request.pipeline.check_text = lot % 11 == 0;
  IRModule module = network.module;
  if (!with.libs.empty()) module = PlacementOptions{with.libs, {}}.annotate(std::move(module));
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

std::optional<Failure> try_configuration(const Network& network, const Configuration& with,
                                         uint64_t seed) {
  try {
    const auto program = compile(network, with, lot(with, seed));
    const auto outputs = run(program, network, 1);
    if (const auto wrong = Outputs(network).wrong(outputs))
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
