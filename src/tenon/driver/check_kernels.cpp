#include "tenon/driver/check_kernels.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "tenon/driver/compiler.h"
#include "tenon/driver/console.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/kernel_sample.h"
#include "tenon/driver/tensors.h"
#include "tenon/driver/usage.h"
#include "tenon/driver/verify.h"
#include "tenon/graph/builder.h"
#include "tenon/graph/kernels.h"
#include "tenon/interp/interpreter.h"
#include "tenon/support/kernel_codes.h"

namespace tenon {

namespace {

using Tensors = std::vector<Ref<TensorData>>;

// What one comparison found.
struct Difference {
  int64_t first = -1, count = 0;
  double largest = 0;
};

// Sums in another order and elementary functions by other polynomials: the error of float32 lies
// far below this for the small sizes that are tried; what a wrong kernel does lies far above it.
double allowed(DType dtype, double expected) {
  if (!dtype.is_float()) return 0;
  const double unit = dtype.bits >= 32 ? 1e-4 : 2e-2;
  return unit * (0.1 + std::fabs(expected));
}

Difference compare(const TensorData& got, const TensorData& expected) {
  Difference out;
  for (int64_t i = 0; i < expected.elements(); ++i) {
    double error = 0;
    bool wrong = false;
    if (!expected.dtype.is_float()) {
      const int64_t a = got.at_int(i), b = expected.at_int(i);
      wrong = a != b;
      error = std::fabs(static_cast<double>(a) - static_cast<double>(b));
    } else {
      const double a = got.at_float(i), b = expected.at_float(i);
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      error = std::fabs(a - b);
      wrong = !(error <= allowed(expected.dtype, b));
      if (std::isnan(error)) error = HUGE_VAL;
    }
    out.largest = std::max(out.largest, error);
    if (!wrong) continue;
    if (out.first < 0) out.first = i;
    ++out.count;
  }
  return out;
}

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
    auto* copy = new tir::PrimFunc(*prim);
    copy->attrs.erase("op");
    out.set(name, Ref<tir::PrimFunc>(copy));
  }
  return out;
}

// `main`: the one call, over its inputs.
IRModule with_call(IRModule module, const KernelSample& sample) {
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
              const CheckKernels& options, const Target& target)
      : module_(module), kernel_(kernel), options_(options), target_(target) {}

  /// The line that says what was tried. \throws CompileError what is wrong.
  std::string run() {
    KernelSampler sampler(module_, kernel_, options_.seed);
    const int trials = sampler.has_dimensions() ? options_.trials : std::min(2, options_.trials);
    std::vector<std::string> shapes;
    for (int trial = 0; trial < trials; ++trial) {
      const auto sample = sampler.next(trial);
      if (!sample) continue;
      if (std::find(shapes.begin(), shapes.end(), sample->text) != shapes.end() &&
          sampler.has_dimensions())
        continue;
      shapes.push_back(sample->text);
      try {
        check(*sample);
      } catch (CompileError& error) {
        throw error.note(kernel_.function->origin, "kernel `{}` as `{}` of {}", kernel_.name,
                         sample->op, sample->text);
      }
    }
    if (shapes.empty())
      throw CompileError(kNeverMatches, kernel_.function->origin,
                         "kernel `{}` took none of {} calls of `{}`; nearest: {}", kernel_.name,
                         sampler.attempts(),
                         kernel_.function->attrs.get<std::string>("op").value_or("?"),
                         sampler.nearest_refusal());
    std::string line = fmt::format("{}: ok, {} of {} {}", kernel_.name, sampler.op(), shapes.size(),
                                   shapes.size() == 1 ? "shape" : "shapes");
    line += has_reference_ ? fmt::format(", largest error {:.2g}", largest_)
                           : "; nothing to compare with: the operator has no body";
    return line + (compiled_ ? "" : "; not compiled: " + not_compiled_);
  }

 private:
  void check(const KernelSample& sample) {
    const Tensors expected = reference(sample);
    const std::string name = "kernel_under_test";
    IRModule under_test = module_;
    under_test.set(name, sample.kernel);
    Tensors buffers = sample.inputs;
    buffers.resize(sample.inputs.size() + sample.outputs);
    // A loop that never ends is an error too.
    constexpr int64_t kMostSteps = int64_t{1} << 29;
    interp::Interpreter interpreter(under_test, {.step_limit = kMostSteps, .find_races = true});
    Tensors all = interpreter.run_prim_func(name, buffers);
    const Tensors interpreted(all.begin() + static_cast<std::ptrdiff_t>(sample.inputs.size()),
                              all.end());
    for (size_t i = 0; i < sample.inputs.size(); ++i)
      if (compare(*all[i], *sample.inputs[i]).first >= 0)
        throw CompileError(kWrongResult, input_origin(i), "kernel `{}` writes to its input `{}`",
                           kernel_.name, sample.kernel->buffers[i]->name);
    const Tensors& wanted = expected.empty() ? interpreted : expected;
    report(sample, interpreted, wanted, "", [&](size_t output, int64_t element) {
      return interpreter.last_writer(sample.inputs.size() + output, element);
    });
    compiled(sample, wanted);
  }

  Origin input_origin(size_t i) const {
    size_t next = 0;
    for (const Ref<tir::Buffer>& buffer : kernel_.function->buffers)
      if (buffer && next++ == i) return buffer->origin;
    return kernel_.function->origin;
  }

  // By the interpreter's meaning of the operator; empty where it has none.
  Tensors reference(const KernelSample& sample) {
    if (const auto* ref = sample.call->callee ? sample.call->callee.as<graph::FuncRef>() : nullptr)
      if (graph::has_no_body(*module_.find<graph::Function>(ref->name))) return {};
    has_reference_ = true;
    return interp::Interpreter(with_call(with_only(module_, nullptr), sample))
        .run_main(sample.inputs);
  }

  void compiled(const KernelSample& sample, const Tensors& wanted) {
    if (const auto refusal = target_refusal(sample)) {
      compiled_ = false;
      not_compiled_ = *refusal;
      return;
    }
    CompileRequest request;
    request.name = "check";
    request.target = target_;
    const LoweredModule lowered =
        lower(with_call(with_only(module_, &kernel_.name), sample), request);
    const std::shared_ptr<runtime::Program> program = link(generate(lowered, request));
    Tensors first;
    for (const int threads : {1, 2}) {
      program->set_threads(threads);
      BoundRun bound(program, sample.inputs);
      bound.run();
      const Tensors outputs = bound.outputs();
      const std::string where =
          fmt::format(" compiled, on {} {}", threads, threads == 1 ? "thread" : "threads");
      report(sample, outputs, wanted, where,
             [&](size_t, int64_t) { return kernel_.function->origin; });
      if (threads == 1) first = outputs;
    }
  }

  std::optional<std::string> target_refusal(const KernelSample& sample) const {
    const auto seen = graph::operator_call(module_, *sample.call);
    const auto match = graph::match_kernel(kernel_, *seen, target_);
    const auto* refusal = std::get_if<graph::KernelRefusal>(&match);
    return refusal ? std::optional(refusal->words) : std::nullopt;
  }

  template <typename Writer>
  void report(const KernelSample& sample, const Tensors& got, const Tensors& wanted,
              const std::string& where, const Writer& writer) {
    for (size_t i = 0; i < wanted.size() && i < got.size(); ++i) {
      const Difference found = compare(*got[i], *wanted[i]);
      if (found.first < 0) {
        largest_ = std::max(largest_, found.largest);
        continue;
      }
      const Origin place = writer(i, found.first);
      throw CompileError(kWrongResult, place ? place : kernel_.function->origin,
                         "kernel `{}`{} gives {} for element {} of `{}`; `{}` gives {} ({} of {} "
                         "wrong, largest error {:.3g})",
                         kernel_.name, where, element_text(*got[i], found.first),
                         place_text(wanted[i]->shape, found.first),
                         sample.kernel->buffers[sample.inputs.size() + i]->name, sample.op,
                         element_text(*wanted[i], found.first), found.count, wanted[i]->elements(),
                         found.largest);
    }
  }

  const IRModule& module_;
  const graph::OperatorKernel& kernel_;
  const CheckKernels& options_;
  const Target& target_;
  bool has_reference_ = false, compiled_ = true;
  std::string not_compiled_;
  double largest_ = 0;
};

}  // namespace

int check_kernels(const CheckKernels& options) {
  if (options.trials < 1) throw UsageError("--trials {} is below 1", options.trials);
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
                       options.kernels.files.empty() ? "the files" : options.kernels.files[0]);
  // Calls that leave out optional inputs are calls of the operator's forms without them.
  int forms = 0;
  for (const graph::OperatorKernel* kernel : kernels)
    for (const std::string& op : kernel->operators)
      if (const auto left_out = graph::left_out_by(module, *kernel->function, op);
          !left_out.empty())
        module.set(fmt::format("operator_without_{}", forms++),
                   graph::without_inputs(*graph::declaration_of(module, op), left_out));
  int status = 0;
  for (const graph::OperatorKernel* kernel : kernels) {
    try {
      Progress progress;
      progress.show(kernel->name);
      const std::string line = KernelCheck(module, *kernel, options, target).run();
      progress.clear();
      fmt::print("{}\n", line);
    } catch (const CompileError& error) {
      std::fflush(stdout);
      std::cerr << error.what() << "\n";
      status = 1;
    }
  }
  return status;
}

}  // namespace tenon
