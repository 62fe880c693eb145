// SPDX-License-Identifier: Apache-2.0
// `tenon test-onnx`: cases in the layout of the ONNX backend tests.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "tenon/driver/commands.h"
#include "tenon/driver/compare.h"
#include "tenon/driver/console.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/load.h"
#include "tenon/driver/onnx_cases.h"
#include "tenon/driver/onnx_values.h"
#include "tenon/driver/option_table.h"
#include "tenon/driver/tensors.h"
#include "tenon/driver/usage.h"
#include "tenon/import/onnx/maps.h"

namespace tenon {

namespace {

struct TestOptions {
  std::vector<std::string> folders;
  std::string filter, json;
  std::optional<double> tolerance;
  TargetOptions target;
  PassOptions passes;
  bool interpret = false, verbose = false;
};

enum class Verdict : uint8_t { kPassed, kFailed, kSkipped };
struct Outcome {
  Verdict verdict = Verdict::kPassed;
  std::string reason;
  double seconds = 0;
};

const char* name_of(Verdict verdict) {
  return verdict == Verdict::kPassed   ? "passed"
         : verdict == Verdict::kFailed ? "failed"
                                       : "skipped";
}

/// The case asks for something that Tenon does not support.
struct Skip {
  std::string reason;
};

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  constexpr size_t kLongest = 400;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

bool is_unsupported(const CompileError& error) {
  for (const Diagnostic& diagnostic : error.diagnostics())
    if (diagnostic.code.id != kUnsupported.id && diagnostic.code.id != kUnsupportedOperator.id)
      return false;
  return true;
}

OnnxValue read_pb(const std::string& path, onnx::ValueKind kind) {
  try {
    onnx::ValueFile file = onnx::read_value_pb(path, kind);
    if (!file.unsupported.empty())
      throw Skip{fmt::format("{}: holds {}; expected tensors", path, file.unsupported)};
    return std::move(file.tensors);
  } catch (const CompileError& error) {
    if (is_unsupported(error)) throw Skip{error.first().message};
    throw;
  }
}

// Element i of n is i / n, as the ONNX runner makes inputs of the flat layout.
Ref<TensorData> ramp(const Port& port) {
  const std::vector<int64_t> shape = shape_of(port, {}, 1);
  if (port.dtype != kFloat32)
    throw Skip{
        fmt::format("input `{}` is {}; inputs are made for float32 only", port.name, port.str())};
  const int64_t count = checked_elements(shape, 4);
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] =
        static_cast<float>(static_cast<double>(i) / static_cast<double>(count));
  return TensorData::of(kFloat32, shape, values);
}

// The inputs of the network that no initialiser gives.
std::vector<onnx::ValueInfo> inputs_of(const onnx::Graph& graph) {
  std::vector<onnx::ValueInfo> out;
  for (const onnx::ValueInfo& input : graph.inputs)
    if (std::ranges::find(graph.initializers, input.name, &onnx::Tensor::name) ==
        graph.initializers.end())
      out.push_back(input);
  return out;
}

bool has_sequences(const std::vector<onnx::ValueInfo>& values) {
  return std::ranges::any_of(
      values, [](const onnx::ValueInfo& value) { return value.kind != onnx::ValueKind::kTensor; });
}

// What inputs hold that are no tensors, and the ranks of those that have none in the file.
OnnxInputs undeclared_inputs(const std::vector<onnx::ValueInfo>& inputs, const OnnxDataSet& set) {
  OnnxInputs out;
  for (size_t i = 0; i < inputs.size() && i < set.inputs.size(); ++i) {
    const onnx::ValueInfo& input = inputs[i];
    if (input.kind != onnx::ValueKind::kTensor)
      out.add(input, read_pb(set.inputs[i], input.kind));
    else if (!input.shape)
      out.ranks[input.name] = read_pb(set.inputs[i], input.kind)->at(0)->shape.size();
  }
  return out;
}

std::optional<std::string> difference_of(const std::string& name, const OnnxValue& got,
                                         const OnnxValue& expected, Tolerance tolerance) {
  if (!got || !expected)
    return got.has_value() == expected.has_value()
               ? std::nullopt
               : std::optional(fmt::format("output `{}` is {}", name, got ? "there" : "absent"));
  if (got->size() != expected->size())
    return fmt::format("output `{}` has {} tensors; expected {}", name, got->size(),
                       expected->size());
  for (size_t i = 0; i < got->size(); ++i)
    if (const auto wrong = difference(*(*got)[i], *(*expected)[i], tolerance))
      return fmt::format("output `{}`{} {}", name,
                         got->size() > 1 ? fmt::format(" tensor {}", i) : "", *wrong);
  return std::nullopt;
}

/// What is wrong with one data set; nothing where it passes.
std::optional<std::string> run_data_set(Executable& program, const onnx::Graph& graph,
                                        const OnnxDataSet& set, Tolerance tolerance) {
  const Signature& signature = program.signature();
  const std::vector<onnx::ValueInfo> declared = inputs_of(graph);
  const OnnxInputs sequences = undeclared_inputs(declared, set);
  std::vector<Ref<TensorData>> inputs;
  for (const Port& port : signature.inputs) {
    const auto element = sequences.tensors.find(port.name);
    const auto info = std::ranges::find(declared, port.name, &onnx::ValueInfo::name);
    const auto i = static_cast<size_t>(info - declared.begin());
    if (set.generated_inputs)
      inputs.push_back(ramp(port));
    else if (element != sequences.tensors.end())
      inputs.push_back(element->second);
    else if (i < set.inputs.size())
      inputs.push_back(read_pb(set.inputs[i], onnx::ValueKind::kTensor)->at(0));
    else
      return fmt::format("no file for input {} `{}`", i, port.name);
  }
  if (set.inputs.size() > declared.size())
    return fmt::format("{} input files; the model takes {}", set.inputs.size(), declared.size());
  std::vector<OnnxValue> expected;
  expected.reserve(set.outputs.size());
  for (size_t i = 0; i < set.outputs.size(); ++i)
    expected.push_back(read_pb(set.outputs[i], i < graph.outputs.size()
                                                   ? graph.outputs[i].kind
                                                   : onnx::ValueKind::kTensor));
  const std::vector<OnnxValue> outputs = grouped(graph.outputs, signature, program.run(inputs));
  if (outputs.size() != expected.size())
    return fmt::format("{} outputs; expected {}", outputs.size(), expected.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    if (const auto wrong = difference_of(graph.outputs[i].name, outputs[i], expected[i], tolerance))
      return wrong;
  return std::nullopt;
}

std::unique_ptr<Executable> make_program(const OnnxCase& test, const TestOptions& options,
                                         const OnnxInputs& sequences) {
  TargetOptions target = options.target;
  target.model.lengths.insert(target.model.lengths.end(), sequences.lengths.begin(),
                              sequences.lengths.end());
  target.model.shapes.insert(target.model.shapes.end(), sequences.shapes.begin(),
                             sequences.shapes.end());
  target.model.rank_of = [&](const std::string& name) {
    const auto rank = sequences.ranks.find(name);
    return rank == sequences.ranks.end() ? std::nullopt : std::optional(rank->second);
  };
  if (options.interpret)
    return make_interpreted(test.model, target, options.passes.pipeline(target.model)).program;
  return compiled(make_ready(test.model, target, options.passes.pipeline(target.model)).program);
}

Outcome run_case(const OnnxCase& test, const TestOptions& options) {
  const Tolerance tolerance =
      options.tolerance ? Tolerance{.whole = *options.tolerance} : test.tolerance;
  if (test.data_sets.empty()) return {Verdict::kSkipped, "no test data", 0};
  try {
    // One program for all data sets, whatever their symbolic sizes; the lengths of sequences are
    // part of it.
    const onnx::Graph graph = onnx::with_maps_in_pairs(onnx::read_model(test.model)).graph;
    const std::vector<onnx::ValueInfo> inputs = inputs_of(graph);
    std::unique_ptr<Executable> program;
    for (size_t i = 0; i < test.data_sets.size(); ++i) {
      if (!program || has_sequences(inputs))
        program = make_program(test, options, undeclared_inputs(inputs, test.data_sets[i]));
      const auto wrong = run_data_set(*program, graph, test.data_sets[i], tolerance);
      if (!wrong) continue;
      const std::string where = test.data_sets.size() > 1 ? fmt::format("data set {}: ", i) : "";
      return {Verdict::kFailed, where + *wrong, 0};
    }
    return {};
  } catch (const Skip& skip) {
    return {Verdict::kSkipped, one_line(skip.reason), 0};
  } catch (const CompileError& error) {
    const std::string reason = fmt::format("{} [{}]", error.first().message, error.first().code.id);
    return {
        is_unsupported(error) ? Verdict::kSkipped : Verdict::kFailed,
        one_line(error.first().origin ? fmt::format("{}: {}", error.first().origin.name(), reason)
                                      : reason),
        0};
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception& error) {
    return {Verdict::kFailed, one_line(fmt::format("internal error: {}", error.what())), 0};
  }
}

int test_onnx(const TestOptions& options) {
  options.target.check();
  if (options.tolerance && !(*options.tolerance >= 0))
    throw UsageError("--tolerance {} is below 0", *options.tolerance);
  if (!options.interpret) (void)resolve(options.target.target);  // once, not in every case
  std::vector<OnnxCase> cases;
  for (const std::string& folder : options.folders)
    for (OnnxCase& found : find_onnx_cases(folder))
      if (found.name.find(options.filter) != std::string::npos) cases.push_back(std::move(found));
  Progress progress;
  int64_t counts[3] = {0, 0, 0};
  auto json = nlohmann::ordered_json::array();
  for (size_t i = 0; i < cases.size(); ++i) {
    const OnnxCase& test = cases[i];
    progress.show(fmt::format("[{}/{}] {}", i + 1, cases.size(), test.name));
    const auto start = std::chrono::steady_clock::now();
    Outcome outcome = run_case(test, options);
    outcome.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ++counts[static_cast<int>(outcome.verdict)];
    json.push_back({{"case", test.name},
                    {"result", name_of(outcome.verdict)},
                    {"reason", outcome.reason},
                    {"seconds", outcome.seconds}});
    if (outcome.verdict == Verdict::kPassed && !options.verbose) continue;
    progress.clear();
    if (outcome.verdict == Verdict::kPassed)
      fmt::print("passed {} ({})\n", test.name, time_text(outcome.seconds));
    else
      fmt::print("{} {}: {}\n", name_of(outcome.verdict), test.name, outcome.reason);
    std::fflush(stdout);
  }
  progress.clear();
  options.passes.tell();
  if (!options.json.empty())
    write_file(options.json,
               json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  fmt::print("{} passed, {} failed, {} skipped\n", counts[0], counts[1], counts[2]);
  return counts[1] > 0 ? 1 : 0;
}

}  // namespace

void add_test_onnx_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<TestOptions>();
  CLI::App* command =
      app.add_subcommand("test-onnx", "run cases in the layout of the ONNX backend tests");
  command->add_option("DIR", options->folders, "cases, or folders with cases at any depth")
      ->required();
  command->add_option("-k", options->filter, "only cases whose name contains this");
  command->add_option("--tolerance", options->tolerance,
                      "accept |a - b| <= T (1 + max |expected|), as suits whole networks (default: "
                      "rtol 1e-3, atol 1e-7, or what data.json beside the model says)");
  command->add_option("--json", options->json, "file: write each case's result there");
  command->add_flag("--interpret", options->interpret, "run in the interpreter");
  command->add_flag("-v,--verbose", options->verbose, "a line for each case that passes too");
  options->target.add_to(*command);
  options->passes.add_to(*command);
  command->callback([options, command, &action] {
    action = [options, command] {
      check_options(*command, options->interpret ? "interpret" : options->target.form());
      return test_onnx(*options);
    };
  });
}

}  // namespace tenon
