// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/check_kernels.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>

#include "tenon/driver/compiler.h"
#include "tenon/driver/console.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/expectation.h"
#include "tenon/driver/kernel_sample.h"
#include "tenon/driver/tensors.h"
#include "tenon/driver/usage.h"
#include "tenon/driver/verify.h"
#include "tenon/graph/builder.h"
#include "tenon/graph/kernels.h"
#include "tenon/interp/interpreter.h"
#include "tenon/support/kernel_codes.h"
#include "tenon/support/nearest.h"
#include "tenon/tir/analysis/longest_sum.h"

namespace tenon {

namespace {

using Tensors = std::vector<Ref<TensorData>>;

std::string place_text(const std::vector<int64_t>& shape, int64_t index) {
  std::string text;
  for (size_t d = shape.size(); d-- > 0;) {
    text = std::to_string(index % shape[d]) + (text.empty() ? "" : ", ") + text;
    index /= shape[d];
  }
  return "(" + text + ")";
}

std::string element_text(const TensorData& tensor, int64_t index) {
  return tensor.dtype.is_float() ? fmt::format("{:.6g}", tensor.at_float(index))
                                 : std::to_string(tensor.at_int(index));
}

// The module in which only `kernel` (or, null, none) is a kernel for an operator.
IRModule with_only(const IRModule& module, const std::string* kernel) {
  IRModule out;
  out.attrs = module.attrs;
  for (const auto& [name, function] : module.functions()) {
    const auto* prim = function.as<tir::PrimFunc>();
    if (!prim || !prim->attrs.contains("op") || (kernel && name == *kernel)) {
      out.set(name, function);
      continue;
    }
    const Ref<tir::PrimFunc> copy =
        with(*prim, [&](tir::PrimFunc& copy) { copy.attrs.erase("op"); });
    out.set(name, copy);
  }
  return out;
}

// `main`: the one call, over its inputs.
IRModule with_call(IRModule module, const KernelSample& sample) {
  if (sample.function) module.set(kSampledFunction, sample.function);
  graph::BlockBuilder builder(module);
  builder.begin_function(sample.params);
  const graph::Value result = builder.emit(sample.call);
  const auto main = builder.end_function(result);
  module.set("main", main);
  return module;
}

class KernelCheck {
 public:
  KernelCheck(const IRModule& module, const graph::OperatorKernel& kernel,
              const CheckKernels& options, const std::map<std::string, int64_t>& sizes,
              const Target& target)
      : module_(module), kernel_(kernel), options_(options), sizes_(sizes), target_(target) {}

  /// Fills in what was tried. \throws CompileError what is wrong.
  void run(KernelVerdict& verdict) {
    KernelSampler sampler(module_, kernel_, options_.seed, sizes_, target_);
    const int trials = sampler.has_dimensions() ? options_.trials : std::min(2, options_.trials);
    std::vector<std::string>& shapes = verdict.calls;
    std::optional<KernelSample> last;
    for (int trial = 0; trial < trials; ++trial) {
      const auto sample = sampler.next(trial);
      if (!sample) continue;
      if (std::find(shapes.begin(), shapes.end(), sample->text) != shapes.end() &&
          sampler.has_dimensions())
        continue;
      shapes.push_back(sample->text);
      verdict.op = sampler.op();
      last = sample;
      // Drawn more than once where there is little to draw.
      const int64_t draws = draws_of(*sample);
      for (int64_t draw = 0; draw < draws; ++draw) check_with(*sample, Values::kScales, "");
    }
    if (shapes.empty())
      throw CompileError(kNeverMatches, kernel_.function->origin,
                         "kernel `{}` took none of {} calls of `{}`; nearest: {}", kernel_.name,
                         sampler.attempts(),
                         kernel_.function->attrs.get<std::string>("op").value_or("?"),
                         sampler.nearest_refusal());
    check_with(*last, Values::kExtreme, " with extreme values");
    check_with(*last, Values::kInfinite, " with infinities");
    check_with(*last, Values::kNaN, " with NaNs");
    verdict.beside = below_zero(*last);
    if (has_reference_) verdict.largest_error = largest_;
    verdict.not_compiled = not_compiled_;
  }

 private:
  // Small tensors hold few of the values that there are.
  static int64_t draws_of(const KernelSample& sample) {
    int64_t elements = 1;
    for (const Ref<graph::TensorType>& type : sample.inputs)
      elements = std::max(elements, checked_elements(*type->static_shape()));
    constexpr int64_t kEnough = 64, kMost = 4;
    return std::clamp<int64_t>(kEnough / elements, 1, kMost);
  }

  void check_with(const KernelSample& sample, Values values, const char* what) {
    const IRModule called = with_call(with_only(module_, nullptr), sample);
    std::vector<InputMeaning> meanings = meanings_of(called, sample);
    for (InputMeaning& meaning : meanings) meaning.from_end = false;
    const bool has_float =
        std::any_of(sample.inputs.begin(), sample.inputs.end(),
                    [](const Ref<graph::TensorType>& type) { return type->dtype.is_float(); });
    if (!has_float && (values == Values::kInfinite || values == Values::kNaN)) return;
    try {
      check(sample, called, draw(sample, meanings, values), values);
    } catch (CompileError& error) {
      throw error.note(kernel_.function->origin, "kernel `{}` as `{}` of {}{}", kernel_.name,
                       sample.op, sample.text, what);
    }
  }

  // Kernels need not know indices that count from the end, but that is said.
  std::string below_zero(const KernelSample& sample) {
    const IRModule called = with_call(with_only(module_, nullptr), sample);
    const std::vector<InputMeaning> meanings = meanings_of(called, sample);
    if (std::none_of(meanings.begin(), meanings.end(),
                     [](const InputMeaning& meaning) { return meaning.from_end; }))
      return "";
    try {
      check(sample, called, draw(sample, meanings, Values::kScales), Values::kScales);
    } catch (const CompileError& error) {
      const std::string_view code = error.first().code.id;
      if (code != kWrongResult.id && code != kOutOfBounds.id) throw;
      return fmt::format("; indices below 0, which `{}` counts from the end, it does not take",
                         sample.op);
    }
    return "";
  }

  // What the operator's definition asks of its inputs; the kernel's own where it has none.
  std::vector<InputMeaning> meanings_of(const IRModule& called, const KernelSample& sample) const {
    if (!has_body(sample)) return input_meanings(module_, *sample.kernel);
    return input_meanings(called, *called.find<graph::Function>("main"));
  }

  Tensors draw(const KernelSample& sample, const std::vector<InputMeaning>& meanings,
               Values values) {
    // Sums of values near the largest give what the order makes of them.
    const bool sums = tir::longest_sum(*sample.kernel, 2) > 1;
    Tensors inputs;
    for (size_t i = 0; i < sample.inputs.size(); ++i) {
      RandomRange range;
      range.values = values;
      if (i < meanings.size()) range = range_of(meanings[i], {}, values);
      range.largest = sums ? 1e4 : HUGE_VAL;
      inputs.push_back(random_values(sample.inputs[i]->dtype, *sample.inputs[i]->static_shape(),
                                     options_.seed * 7919 + ++drawn_, range));
    }
    return inputs;
  }

  void check(const KernelSample& sample, const IRModule& called, const Tensors& inputs,
             Values values) {
    Expectation expected = reference(sample, called, inputs);
    const std::string name = "kernel_under_test";
    IRModule under_test = module_;
    under_test.set(name, sample.kernel);
    Tensors buffers = inputs;
    buffers.resize(inputs.size() + sample.outputs);
    const auto outputs_of = [&](const Tensors& all) {
      return Tensors(all.begin() + static_cast<std::ptrdiff_t>(inputs.size()), all.end());
    };
    // A loop that never ends is an error too.
    constexpr int64_t kMostSteps = int64_t{1} << 29;
    interp::Interpreter interpreter(under_test, {.step_limit = kMostSteps, .find_races = true});
    const Tensors all = interpreter.run_prim_func(name, buffers);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (exact_difference(*all[i], *inputs[i]))
        throw CompileError(kWrongResult, input_origin(i), "kernel `{}` writes to its input `{}`",
                           kernel_.name, sample.kernel->buffers[i]->name);
    const int64_t terms = tir::longest_sum(*sample.kernel, 1);
    Expectation own(outputs_of(all), terms, [&](uint64_t seed) {
      return outputs_of(
          interp::Interpreter(under_test, {.rounding_seed = seed}).run_prim_func(name, buffers));
    });
    Expectation& wanted = expected.outputs().empty() ? own : expected;
    report(sample, own.outputs(), wanted, own, values, "", [&](size_t output, int64_t element) {
      return interpreter.last_writer(inputs.size() + output, element);
    });
    compiled(sample, inputs, wanted, own, values);
  }

  Origin input_origin(size_t i) const {
    size_t next = 0;
    for (const Ref<tir::Buffer>& buffer : kernel_.function->buffers)
      if (buffer && next++ == i) return buffer->origin;
    return kernel_.function->origin;
  }

  bool has_body(const KernelSample& sample) const {
    const auto* ref = sample.call->callee ? sample.call->callee.as<graph::FuncRef>() : nullptr;
    return !ref || sample.function ||
           !graph::has_no_body(*module_.find<graph::Function>(ref->name));
  }

  // By the interpreter's meaning of the operator; empty where it has none.
  Expectation reference(const KernelSample& sample, const IRModule& called, const Tensors& inputs) {
    if (!has_body(sample)) return {{}, 1, {}};
    has_reference_ = true;
    return {interp::Interpreter(called).run_main(inputs), longest_sum(called), [&](uint64_t seed) {
              return interp::Interpreter(called, {.rounding_seed = seed}).run_main(inputs);
            }};
  }

  // Compiled for this shape, once.
  std::shared_ptr<runtime::Program> program_of(const KernelSample& sample) {
    if (program_ && program_text_ == sample.text) return program_;
    CompileRequest request;
    request.name = "check";
    request.target = target_;
    const LoweredModule lowered =
        lower(with_call(with_only(module_, &kernel_.name), sample), request);
    program_ = link(generate(lowered, request));
    program_text_ = sample.text;
    return program_;
  }

  void compiled(const KernelSample& sample, const Tensors& inputs, Expectation& wanted,
                Expectation& own, Values values) {
    if (const auto refusal = target_refusal(sample)) {
      not_compiled_ = *refusal;
      return;
    }
    const std::shared_ptr<runtime::Program> program = program_of(sample);
    for (const int threads : {1, 2}) {
      program->set_threads(threads);
      BoundRun bound(program, inputs);
      bound.run();
      const std::string where =
          fmt::format(" compiled, on {} {}", threads, threads == 1 ? "thread" : "threads");
      report(sample, bound.outputs(), wanted, own, values, where,
             [&](size_t, int64_t) { return kernel_.function->origin; });
    }
  }

  std::optional<std::string> target_refusal(const KernelSample& sample) const {
    const auto seen = seen_call(module_, sample);
    const auto match = graph::match_kernel(kernel_, *seen, target_);
    const auto* refusal = std::get_if<graph::KernelRefusal>(&match);
    return refusal ? std::optional(refusal->words) : std::nullopt;
  }

  template <typename Writer>
  void report(const KernelSample& sample, const Tensors& got, Expectation& wanted, Expectation& own,
              Values values, const std::string& where, const Writer& writer) {
    for (size_t i = 0; i < wanted.outputs().size() && i < got.size(); ++i) {
      const TensorData& expected = *wanted.outputs()[i];
      const auto found = mismatch_of(i, *got[i], wanted, own, values);
      if (!found) {
        if (values == Values::kScales)
          largest_ = std::max(largest_, largest_error(*got[i], expected));
        continue;
      }
      const Origin place = found->first < 0 ? Origin() : writer(i, found->first);
      if (found->first < 0)
        throw CompileError(kWrongResult, kernel_.function->origin, "output {} of kernel `{}`{} {}",
                           i, kernel_.name, where, found->text);
      throw CompileError(kWrongResult, place ? place : kernel_.function->origin,
                         "kernel `{}`{} gives {} for element {} of `{}`; `{}` gives {} ({} of {} "
                         "wrong, largest error {:.3g})",
                         kernel_.name, where, element_text(*got[i], found->first),
                         place_text(expected.shape, found->first),
                         sample.kernel->buffers[sample.inputs.size() + i]->name, sample.op,
                         element_text(expected, found->first), found->count, expected.elements(),
                         found->largest);
    }
  }

  std::optional<Mismatch> mismatch_of(size_t i, const TensorData& got, Expectation& wanted,
                                      Expectation& own, Values values) const {
    const TensorData& expected = *wanted.outputs()[i];
    if (options_.tolerance) return mismatch(got, expected, {0, 0, *options_.tolerance});
    // What is no number for inputs that are (infinity times 0) has no meaning to compare with.
    const bool may_be_undefined = values == Values::kExtreme || values == Values::kInfinite;
    if (!may_be_undefined || !expected.dtype.is_float()) return wanted.mismatch(i, got, &own);
    std::vector<double> slack(static_cast<size_t>(expected.elements()));
    bool has_undefined = false;
    for (size_t e = 0; e < slack.size(); ++e)
      if (std::isnan(expected.at_float(static_cast<int64_t>(e)))) {
        slack[e] = HUGE_VAL;
        has_undefined = true;
      }
    return wanted.mismatch(
        i, got, &own, has_undefined ? std::span<const double>(slack) : std::span<const double>());
  }

  const IRModule& module_;
  const graph::OperatorKernel& kernel_;
  const CheckKernels& options_;
  const std::map<std::string, int64_t>& sizes_;
  const Target& target_;
  std::shared_ptr<runtime::Program> program_;
  std::string program_text_;
  uint64_t drawn_ = 0;  // tensors so far
  bool has_reference_ = false;
  std::string not_compiled_;
  double largest_ = 0;
};

// "n=512" of --size; some kernel has a dimension of each name.
std::map<std::string, int64_t> sizes_of(const CheckKernels& options,
                                        const std::vector<const graph::OperatorKernel*>& kernels) {
  constexpr int64_t kMost = int64_t{1} << 24;
  std::map<std::string, int64_t> sizes;
  for (const std::string& text : options.sizes) {
    const size_t equals = text.find('=');
    int64_t value = -1;
    const char* end = text.data() + text.size();
    if (equals != std::string::npos) {
      const auto read = std::from_chars(text.data() + equals + 1, end, value);
      if (read.ec != std::errc() || read.ptr != end) value = -1;
    }
    if (equals == 0 || value < 1 || value > kMost)
      throw UsageError("--size {}: expected NAME=N, N from 1 to {}", text, kMost);
    const std::string name = text.substr(0, equals);
    std::vector<std::string> known;
    for (const graph::OperatorKernel* kernel : kernels)
      for (const Ref<Var>& dim : tir::symbolic_vars(*kernel->function)) known.push_back(dim->name);
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw UsageError("--size {}: no kernel has a dimension `{}`{}", text, name,
                       did_you_mean(name, known));
    sizes[name] = value;
  }
  return sizes;
}

}  // namespace

std::string KernelVerdict::str() const {
  std::string line = fmt::format("{}: ok, {} of {} {}", kernel, op, calls.size(),
                                 calls.size() == 1 ? "shape" : "shapes");
  line += largest_error ? fmt::format(", largest error {:.2g}", *largest_error)
                        : "; nothing to compare with: the operator has no body";
  return line + beside + (not_compiled.empty() ? "" : "; not compiled: " + not_compiled);
}

void check_kernels(const CheckKernels& options,
                   const std::function<void(const std::string& kernel)>& begin,
                   const std::function<void(const KernelVerdict&)>& end) {
  if (options.trials < 1) throw UsageError("--trials {} is below 1", options.trials);
  if (options.tolerance && !(*options.tolerance >= 0))
    throw UsageError("--tolerance {} is below 0", *options.tolerance);
  IRModule module = options.kernels.add_to({});
  verify_module(module);
  const Target target = resolve(options.target);
  const graph::KernelTable table(module);
  std::vector<const graph::OperatorKernel*> kernels;
  for (const graph::OperatorKernel& kernel : table.kernels()) kernels.push_back(&kernel);
  std::sort(kernels.begin(), kernels.end(),
            [](const auto* a, const auto* b) { return a->position < b->position; });
  if (kernels.empty())
    throw CompileError(kBadKernel, {},
                       "no function of {} has attribute `op`; expected the name of "
                       "the operator that it computes",
                       options.kernels.files.empty() ? "what was given" : options.kernels.files[0]);
  const std::map<std::string, int64_t> sizes = sizes_of(options, kernels);
  // Calls that leave out optional inputs are calls of the operator's forms without them.
  int forms = 0;
  for (const graph::OperatorKernel* kernel : kernels)
    for (const std::string& op : kernel->operators)
      if (const auto left_out = graph::left_out_by(module, *kernel->function, op);
          !left_out.empty())
        module.set(fmt::format("operator_without_{}", forms++),
                   graph::without_inputs(*graph::declaration_of(module, op), left_out));
  for (const graph::OperatorKernel* kernel : kernels) {
    if (begin) begin(kernel->name);
    KernelVerdict verdict;
    verdict.kernel = kernel->name;
    verdict.op = kernel->function->attrs.get<std::string>("op").value_or("?");
    try {
      KernelCheck(module, *kernel, options, sizes, target).run(verdict);
    } catch (const CompileError& error) {
      verdict.fault = error;
    }
    end(verdict);
  }
}

int check_kernels(const CheckKernels& options) {
  int status = 0;
  std::optional<Progress> progress;
  check_kernels(
      options,
      [&](const std::string& kernel) {
        progress.emplace();
        progress->show(kernel);
      },
      [&](const KernelVerdict& verdict) {
        if (!verdict.fault) {
          progress->clear();
          fmt::print("{}\n", verdict.str());
          return;
        }
        progress.reset();
        std::fflush(stdout);
        std::cerr << verdict.fault->what() << "\n";
        status = 1;
      });
  return status;
}

}  // namespace tenon
