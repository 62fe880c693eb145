// SPDX-License-Identifier: Apache-2.0
// `tenon generate`: text by a decoder with caches, as an example of how one program serves the
// prompt and each token after it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tenon/driver/commands.h"
#include "tenon/driver/console.h"
#include "tenon/driver/entry.h"
#include "tenon/driver/load.h"
#include "tenon/driver/option_table.h"
#include "tenon/driver/signature.h"
#include "tenon/driver/usage.h"
#include "tenon/runtime/arguments.h"
#include "tenon/runtime/cpu_count.h"
#include "tenon/runtime/program.h"

namespace tenon {

namespace {

// Tokens are the bytes of the text; what a network knows beside them is not chosen.
constexpr int64_t kBytes = 256;
constexpr int64_t kMostTokens = 1 << 20;

struct GenerateOptions {
  std::string model, prompt = "Once upon a time";
  int64_t tokens = 64;
  bool json = false;
  TargetOptions target;
};

// The output that an input's cache grows into, by the names that exporters give them.
std::string grown_name(const std::string& input, const std::vector<Port>& outputs) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"past_key_values", "present"},
      {"past_key_values", "present_key_values"},
      {"past", "present"},
  };
  for (const auto& [past, present] : kNames) {
    if (!input.starts_with(past)) continue;
    const std::string name = std::string(present) + input.substr(past.size());
    for (const Port& output : outputs)
      if (output.name == name) return name;
  }
  return {};
}

// ShareBuffers of the caches; nothing where the model was compiled with it.
std::string sharing_pass(const GenerateOptions& options) {
  if (options.target.form(options.model) == "compiled") return {};
  const Signature signature = signature_of(options.target.model.read(options.model));
  std::string pairs;
  for (const Port& input : signature.inputs) {
    const std::string output = grown_name(input.name, signature.outputs);
    if (output.empty() || input.name.find_first_of("\"\\") != std::string::npos) continue;
    pairs += fmt::format("{}\"{}={}\"", pairs.empty() ? "" : ", ", input.name, output);
  }
  if (pairs.empty())
    throw CompileError(kUnsupported, {},
                       "{}: no input is a cache of which an output is the grown one "
                       "(`past_key_values.0.key` and `present.0.key`)",
                       options.model);
  return fmt::format("ShareBuffers(pairs=[{}])", pairs);
}

class Decoder {
 public:
  Decoder(std::shared_ptr<runtime::Program> program, int64_t capacity)
      : program_(std::move(program)), capacity_(capacity) {
    for (const TenonTensorInfo& input : program_->inputs()) roles_.push_back(role_of(input));
    for (size_t i = 0; i < program_->outputs().size(); ++i) {
      const TenonTensorInfo& output = program_->outputs()[i];
      if (const auto shared = runtime::shared_input(output)) roles_[*shared] = Role::kCache;
      if (std::string_view(output.name) == "logits") logits_ = i;
    }
    for (size_t i = 0; i < roles_.size(); ++i) {
      const TenonTensorInfo& input = program_->inputs()[i];
      if (roles_[i] == Role::kTokens) batch_ = input.ndim == 2 ? input.dims[0] : 1;
      if (roles_[i] == Role::kUnknown)
        throw CompileError(kUnsupported, {},
                           "input `{}` is no `input_ids`, `attention_mask`, `position_ids` or "
                           "cache that an output shares",
                           input.name);
    }
    if (std::find(roles_.begin(), roles_.end(), Role::kTokens) == roles_.end() ||
        logits_ == program_->outputs().size())
      throw CompileError(kUnsupported, {},
                         "the program has no input `input_ids` or no output `logits`");
    for (size_t i = 0; i < roles_.size(); ++i) inputs_.push_back(memory_of(i));
  }

  /// The byte that follows `tokens`, which stand behind `past` others.
  uint8_t next(const std::vector<uint8_t>& tokens, int64_t past) {
    const auto count = static_cast<int64_t>(tokens.size());
    for (size_t i = 0; i < roles_.size(); ++i) {
      if (roles_[i] == Role::kTokens)
        inputs_[i] = integers({tokens.begin(), tokens.end()});
      else if (roles_[i] == Role::kMask)
        inputs_[i] = integers(std::vector<int64_t>(static_cast<size_t>(past + count), 1));
      else if (roles_[i] == Role::kPositions)
        inputs_[i] = integers(counted(past, count));
    }
    std::vector<DLTensor> views, results;
    for (const runtime::Tensor& input : inputs_) views.push_back(input.view());
    std::vector<const DLTensor*> pointers;
    pointers.reserve(views.size());
    for (const DLTensor& view : views) pointers.push_back(&view);
    const auto declared = program_->outputs();
    const std::vector<int64_t> dims = program_->shapes(pointers).output_dims;
    size_t at = 0;
    for (size_t i = 0; i < declared.size(); ++i) {
      const auto begin = dims.begin() + static_cast<std::ptrdiff_t>(at);
      const std::vector<int64_t> shape(begin, begin + declared[i].ndim);
      at += shape.size();
      const auto shared = runtime::shared_input(declared[i]);
      if (!shared && (outputs_[i].shape() != shape || outputs_[i].bytes() == 0))
        outputs_[i] = program_->new_output(i, shape);
      results.push_back(shared ? inputs_[*shared].view() : outputs_[i].view());
    }
    std::vector<DLTensor*> targets;
    targets.reserve(results.size());
    for (DLTensor& result : results) targets.push_back(&result);
    program_->run(pointers, targets);
    return best();
  }

 private:
  enum class Role : uint8_t { kUnknown, kTokens, kMask, kPositions, kCache };

  static Role role_of(const TenonTensorInfo& input) {
    const std::string_view name = input.name;
    if (input.code != TENON_DTYPE_INT || input.bits != 64) return Role::kUnknown;
    if (name == "input_ids") return Role::kTokens;
    if (name == "attention_mask") return Role::kMask;
    return name == "position_ids" ? Role::kPositions : Role::kUnknown;
  }

  static std::vector<int64_t> counted(int64_t first, int64_t count) {
    std::vector<int64_t> numbers;
    numbers.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) numbers.push_back(first + i);
    return numbers;
  }
  static runtime::Tensor integers(const std::vector<int64_t>& values) {
    runtime::Tensor tensor({TENON_DTYPE_INT, 64, 1}, {1, static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), tensor.as<int64_t>().begin());
    return tensor;
  }

  // Of a cache, zeros: one entry, and room for all tokens.
  runtime::Tensor memory_of(size_t i) const {
    if (roles_[i] != Role::kCache) return {};
    const TenonTensorInfo& input = program_->inputs()[i];
    std::vector<int64_t> shape;
    for (int32_t d = 0; d < input.ndim; ++d) {
      const int64_t dim = input.dims[d];
      shape.push_back(dim >= 0 ? dim : dim == batch_ ? 1 : capacity_);
    }
    runtime::Tensor tensor(runtime::declared_dtype(input), std::move(shape));
    std::fill_n(static_cast<char*>(tensor.data()), tensor.bytes(), char{0});
    return tensor;
  }

  uint8_t best() const {
    const runtime::Tensor& logits = outputs_[logits_];
    const int64_t width = logits.shape().empty() ? 0 : logits.shape().back();
    if (width < kBytes || logits.dtype().code != TENON_DTYPE_FLOAT || logits.dtype().bits != 32 ||
        logits.elements() == 0)
      throw CompileError(
          kUnsupported, {}, "logits are {} of shape {}; expected float32, {} or more in a row",
          runtime::dtype_name(logits.dtype()), runtime::shape_text(logits.shape()), kBytes);
    const auto last = logits.as<float>().last(static_cast<size_t>(width)).first(kBytes);
    return static_cast<uint8_t>(std::max_element(last.begin(), last.end()) - last.begin());
  }

  std::shared_ptr<runtime::Program> program_;
  int64_t capacity_ = 0, batch_ = 1;  // a symbol of the program as a dimension, or 1
  std::vector<Role> roles_;
  size_t logits_ = program_->outputs().size();
  std::vector<runtime::Tensor> inputs_;
  std::vector<runtime::Tensor> outputs_{program_->outputs().size()};
};

// Bytes that print as they are; the others as \xNN.
std::string printable_text(const std::vector<uint8_t>& bytes) {
  std::string text;
  for (const uint8_t byte : bytes)
    text += byte == '\n' || (byte >= ' ' && byte < 127) ? std::string(1, static_cast<char>(byte))
                                                        : fmt::format("\\x{:02x}", byte);
  return text;
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int generate(GenerateOptions options) {
  if (options.prompt.empty()) throw UsageError("--prompt is empty; expected a byte or more");
  if (options.tokens < 1 || options.tokens > kMostTokens)
    throw UsageError("--tokens {} is not between 1 and {}", options.tokens, kMostTokens);
  options.target.check();
  options.target.model.chosen.passes = sharing_pass(options);
  const ReadyModel ready = make_ready(options.model, options.target, {});
  ready.program->set_threads(options.target.threads);
  const std::vector<uint8_t> prompt(options.prompt.begin(), options.prompt.end());
  const auto given = static_cast<int64_t>(prompt.size());
  std::vector<uint8_t> text;
  double prefill = 0, decode = 0;
  try {
    Decoder decoder(ready.program, given + options.tokens);
    decoder.next(prompt, 0);  // warms caches and threads; it is done anew
    prefill = seconds_of([&] { text.push_back(decoder.next(prompt, 0)); });
    decode = seconds_of([&] {
      while (std::ssize(text) < options.tokens)
        text.push_back(decoder.next({text.back()}, given + std::ssize(text) - 1));
    });
  } catch (const runtime::Error& error) {
    throw CompileError(kRunFailed, {}, "{}", error.what());
  }
  const auto rate = [](int64_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  };
  const int64_t steps = options.tokens - 1;
  if (options.json) {
    std::cout << nlohmann::ordered_json{{"model", options.model},
                                        {"target", ready.target},
                                        {"prompt_tokens", given},
                                        {"tokens", text},
                                        {"text", printable_text(text)},
                                        {"compile_ms", ready.compile_seconds * 1e3},
                                        {"prefill_ms", prefill * 1e3},
                                        {"decode_ms", decode * 1e3},
                                        {"prefill_tokens_per_second", rate(given, prefill)},
                                        {"decode_tokens_per_second", rate(steps, decode)}}
                     .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
              << "\n";
    return 0;
  }
  fmt::print("{}{}\n", printable_text(prompt), printable_text(text));
  fmt::print("prefill    {} tokens in {:.3f} ms, {:.1f} tokens/s\n", given, prefill * 1e3,
             rate(given, prefill));
  fmt::print("decode     {} tokens in {:.3f} ms, {:.1f} tokens/s\n", steps, decode * 1e3,
             rate(steps, decode));
  return 0;
}

}  // namespace

void add_generate_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<GenerateOptions>();
  CLI::App* command =
      app.add_subcommand("generate", "text by a decoder with caches, which takes bytes as tokens");
  command->add_option("MODEL", options->model, ".onnx, .py, .tvmscript, or a compiled .so")
      ->required();
  command->add_option("--tokens", options->tokens, "how many are generated")->capture_default_str();
  command->add_option("--prompt", options->prompt, "text before them")->capture_default_str();
  command->add_option("--threads", options->target.threads,
                      "threads of a run (default: what the process may use)");
  command->add_option("--target", options->target.target, "as `tenon run` has it")
      ->capture_default_str();
  command->add_flag("--json", options->json, "the result as JSON");
  command->callback([options, command, &action] {
    action = [options, command] {
      check_options(*command, options->target.form(options->model));
      return generate(*options);
    };
  });
}

}  // namespace tenon
