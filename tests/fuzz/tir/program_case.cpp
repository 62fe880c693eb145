// SPDX-License-Identifier: Apache-2.0
#include "program_case.h"

#include <fmt/format.h>

#include <sstream>

#include "programs.h"
#include "tenon/driver/c_program.h"
#include "tenon/driver/compare.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/entry.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/verify.h"
#include "tenon/script/parser.h"
#include "tenon/script/printer.h"

namespace tenon::fuzz {

namespace {

/// Tensors by the names of the kernel's buffers and parameters.
using ByName = std::map<std::string, Ref<TensorData>>;

ByName by_name(const tir::PrimFunc& function, const Tensors& contents) {
  ByName out;
  size_t next = 0;
  for (size_t p = 0; p < function.params.size(); ++p) {
    if (!function.buffers[p]) continue;
    out[function.params[p]->name] = contents[next];
    out[function.buffers[p]->name] = contents[next++];
  }
  return out;
}

Tensors of_ports(const std::vector<Port>& ports, const ByName& values) {
  Tensors out;
  for (const Port& port : ports) {
    const auto found = values.find(port.name);
    check(found != values.end(), "a port is named otherwise than the kernel's parameters");
    out.push_back(found->second);
  }
  return out;
}

struct Program {
  IRModule module;
  ByName inputs, expected;
  double tolerance = 0;
  uint64_t seed = 0;
  bool is_parallel = false;
};

std::optional<Fault> try_target(const Program& program, const ProgramTarget& target) {
  const auto wrong = [&](const char* what, const Tensors& got,
                         const Signature& signature) -> std::optional<Fault> {
    const auto difference = difference_of(got, of_ports(signature.outputs, program.expected),
                                          program.tolerance, ZeroSigns::kAny);
    if (!difference) return std::nullopt;
    return Fault{fmt::format("{}: difference", what), target.name + ": " + *difference};
  };
  CompileRequest request;
  request.name = "kernel";
  request.target = resolve(target.text);
  LoweredModule lowered = lower(program.module, request);
  const Signature signature = signature_of(lowered.pipeline.module);
  const Tensors inputs = of_ports(signature.inputs, program.inputs);
  if (auto fault = wrong("lowered", interpreted(lowered.pipeline.module)->run(inputs), signature)) {
    fault->detail += "\n" + script::print(lowered.pipeline.module);
    return fault;
  }
  std::shared_ptr<runtime::Program> compiled;
  if (request.target.kind == "c") {
    COptions options;
    options.constants_file = true;
    compiled = compile_c(generate_c(lowered, request, options), request, lowered);
  } else {
    compiled = link(generate(lowered, request));
  }
  for (const int threads : {1, 3}) {
    if (threads > 1 && !program.is_parallel) break;
    compiled->set_threads(threads);
    BoundRun run(compiled, inputs);
    run.run();
    const std::string what =
        fmt::format("{} on {} threads", request.target.kind == "c" ? "C" : "code", threads);
    if (auto fault = wrong(what.c_str(), run.outputs(), signature)) return fault;
  }
  return std::nullopt;
}

/// What must not happen. \throws CompileError where the program is refused.
std::optional<Fault> judged(const Program& program, const ProgramTarget& target) {
  std::optional<Fault> fault;
  try {
    if (auto found = internal_fault([&] { fault = try_target(program, target); })) return found;
  } catch (const CompileError& error) {
    const auto& code = error.first().code.id;
    // A module that verifies may ask for what there is not; every other complaint is of what a pass
    // made, a program did, or a tool behind ours said.
    if (code == kUnsupported.id || code == kLimitExceeded.id) throw;
    fault = Fault{fmt::format("then {}", error.first().code.name), error.what()};
  }
  return fault;
}

}  // namespace

std::string refusal_of(const CompileError& error) {
  return fmt::format("{}: {}", error.first().code.name, plain(error.first().message));
}

std::optional<Fault> run_kernel(const IRModule& module, const Tensors& contents,
                                const Tensors& expected, double tolerance,
                                const ProgramTarget& target) {
  const auto kernel = module.find<tir::PrimFunc>("kernel");
  Program program;
  program.inputs = by_name(*kernel, contents);
  program.expected = by_name(*kernel, expected);
  program.tolerance = tolerance;
  walk<tir::For>(kernel->body, [&](const tir::For& loop) {
    program.is_parallel = program.is_parallel || loop.kind == tir::ForKind::kParallel;
  });
  if (auto found = internal_fault([&] { program.module = with_entry(module); })) return found;
  auto fault = judged(program, target);
  if (fault) fault->kind += fmt::format(" [{}]", target.name);
  return fault;
}

const std::vector<ProgramTarget>& program_targets() {
  static const std::vector<ProgramTarget> kTargets = {
      {"native", "native"},
      {"haswell", "llvm -mcpu=haswell"},
      {"x86-64", "llvm -mcpu=x86-64"},
      {"v128", "llvm -mcpu=haswell -vector-bits=128 -vector-registers=16"},
      {"v256r32", "llvm -mcpu=haswell -vector-bits=256 -vector-registers=32"},
      {"v512", "llvm -mcpu=haswell -vector-bits=512 -vector-registers=32"},
      {"v512r16", "llvm -mcpu=haswell -vector-bits=512 -vector-registers=16"},
      {"c", "c", 40},
      {"c-avx2", "c -mcpu=haswell", 80},
  };
  return kTargets;
}

std::string program_text(uint64_t seed) {
  Random random(seed * 0x9e3779b97f4a7c15ULL + 5);
  const int64_t size = random.from(1, 6);
  return fmt::format("# seed {}\n# sizes {}\n", seed, size) + random_program(random);
}

std::optional<Fault> run_program(const std::string& text, ProgramCounts* counts,
                                 const std::string& only) {
  Program program;
  program.is_parallel = text.find("T.parallel") != std::string::npos;
  std::vector<int64_t> sizes;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string hash, key;
    if (!(words >> hash >> key) || hash != "#") continue;
    if (key == "tolerance") words >> program.tolerance;
    if (key == "seed") words >> program.seed;
    if (key == "sizes")
      for (int64_t size = 0; words >> size;) sizes.push_back(size);
  }
  try {
    const auto found = internal_fault([&] {
      program.module = script::parse_module(text);
      verify_module(program.module);
      check_text(program.module);
      const auto kernel = program.module.find<tir::PrimFunc>("kernel");
      const Tensors contents = contents_of(*kernel, sizes, program.seed, false);
      program.inputs = by_name(*kernel, contents);
      program.expected = by_name(*kernel, interpret(program.module, "kernel", contents));
    });
    if (found) return found;
  } catch (const CompileError& error) {
    return Fault{fmt::format("no program: {}", error.first().code.name), error.what()};
  }
  const auto entry = internal_fault([&] { program.module = with_entry(program.module); });
  if (entry) return entry;
  // One of the LLVM targets in turn: more programs find more than more targets for each.
  const std::string chosen = program_targets()[program.seed % kLlvmTargets].name;
  for (const ProgramTarget& target : program_targets()) {
    const bool is_turn = target.every == 1
                             ? chosen == target.name
                             : program.seed % static_cast<uint64_t>(target.every) == 0;
    if (!only.empty() && only != "all" ? only != target.name : only.empty() && !is_turn) continue;
    std::optional<Fault> fault;
    try {
      fault = judged(program, target);
      if (counts) ++counts->compiled;
    } catch (const CompileError& error) {
      if (!counts) continue;
      auto& refusal = counts->refusals[refusal_of(error)];
      if (refusal.times++ == 0) refusal.seed = program.seed;
    }
    if (fault) {
      fault->kind += fmt::format(" [{}]", target.name);
      return fault;
    }
  }
  return std::nullopt;
}

}  // namespace tenon::fuzz
