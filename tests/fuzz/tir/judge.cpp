// SPDX-License-Identifier: Apache-2.0
#include "judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "program_case.h"
#include "tenon/driver/compare.h"
#include "tenon/driver/verify.h"
#include "tenon/interp/interpreter.h"
#include "tenon/ir/visit.h"
#include "tenon/script/parser.h"
#include "tenon/script/printer.h"
#include "tenon/script/trace_text.h"
#include "tenon/tir/schedule/winograd_form.h"

namespace tenon::fuzz {

namespace {

constexpr const char* kName = "kernel";
constexpr uint64_t kLoweredEvery = 8;  // of so many functions one is compiled: that takes longer

/// Bytes of one element of `dtype` with value `value`.
void put(std::vector<std::byte>& bytes, DType dtype, int64_t value) {
  const Ref<TensorData> one = [&]() -> Ref<TensorData> {
    if (dtype == kFloat32) return TensorData::of<float>(dtype, {1}, {static_cast<float>(value)});
    if (dtype == kFloat64) return TensorData::of<double>(dtype, {1}, {static_cast<double>(value)});
    return {};
  }();
  if (one) {
    bytes.insert(bytes.end(), one->data().begin(), one->data().end());
    return;
  }
  if (dtype == kFloat16) {
    const auto half = static_cast<_Float16>(value);
    const auto* from = reinterpret_cast<const std::byte*>(&half);
    bytes.insert(bytes.end(), from, from + sizeof(half));
    return;
  }
  if (dtype == kBool) value = value > 0 ? 1 : 0;
  const auto* from = reinterpret_cast<const std::byte*>(&value);  // little-endian
  bytes.insert(bytes.end(), from, from + dtype.bytes());
}

IRModule module_of(const Ref<tir::PrimFunc>& function, const StepContext& context) {
  IRModule module;
  module.set(kName, function);
  walk<tir::CallTir>(function->body, [&](const tir::CallTir& call) {
    for (const tir::TensorIntrin& intrin : context.intrins)
      if (intrin.implementation_name == call.callee->name)
        module.set(intrin.implementation_name, intrin.implementation);
  });
  return module;
}

}  // namespace

std::string plain(const std::string& message) {
  // Of an error in an error the first words of each; none of the source lines.
  std::string out;
  std::istringstream lines(message);
  int taken = 0;
  for (std::string line; std::getline(lines, line) && taken < 2;) {
    const size_t error = line.find("error[");
    if (taken > 0 && error == std::string::npos) continue;
    if (error != std::string::npos) line = line.substr(line.find("]: ", error) + 3);
    ++taken;
    bool quoted = false;
    for (const char c : line) {
      if (c == '`') quoted = !quoted;
      if (!quoted && c != '`' && !(c >= '0' && c <= '9')) out += c;
    }
    out += "; ";
  }
  return out.substr(0, 150);
}

Tensors contents_of(const tir::PrimFunc& function, const std::vector<int64_t>& sizes, uint64_t seed,
                    bool indices) {
  Substitution values;
  size_t next = 0;
  for (const Ref<Var>& var : tir::symbolic_vars(function))
    values[var.get()] = imm(var->dtype, sizes.empty() ? 3 : sizes[next++ % sizes.size()]);
  Random random(seed);
  Tensors out;
  for (const Ref<tir::Buffer>& buffer : function.buffers) {
    if (!buffer) continue;
    std::vector<int64_t> shape;
    int64_t count = 1;
    for (const Expr& dim : buffer->shape) {
      const Expr size = rewrite(substitute(dim, values), [](const NodePtr& node) {
        const auto* op = node.as<Binary>();
        return op ? std::optional<NodePtr>(binary(op->op, op->lhs, op->rhs)) : std::nullopt;
      });
      const auto extent = as_int(size);
      check(extent.has_value(), "a dimension that no size determines");
      shape.push_back(*extent);
      count *= *extent;
    }
    const bool is_index = indices && buffer->dtype.is_int();
    std::vector<std::byte> bytes;
    for (int64_t i = 0; i < count; ++i)
      put(bytes, buffer->dtype, is_index ? random.from(0, 1) : random.from(-2, 3));
    out.push_back(TensorData::owned(buffer->dtype, shape, std::move(bytes)));
  }
  return out;
}

Tensors interpret(const IRModule& module, const std::string& name, const Tensors& contents) {
  return interp::Interpreter(module, {.step_limit = 8'000'000}).run_prim_func(name, contents);
}

std::optional<std::string> difference_of(const Tensors& got, const Tensors& expected,
                                         double tolerance, ZeroSigns zeros) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const bool as_numbers = tolerance > 0 || zeros == ZeroSigns::kAny;
    const auto found = as_numbers
                           ? difference(*got.at(i), *expected[i], Tolerance{.whole = tolerance})
                           : exact_difference(*got.at(i), *expected[i]);
    if (found) return fmt::format("buffer {}: {}", i, *found);
  }
  return std::nullopt;
}

std::optional<Fault> internal_fault(const std::function<void()>& body) {
  try {
    body();
  } catch (const CompileError& error) {
    if (error.diagnostics().empty() || error.first().message.empty())
      return Fault{"empty diagnostic", "a diagnostic without text"};
    throw;
  } catch (const InternalError& error) {
    return Fault{"internal error: " + plain(error.what()), error.what()};
  } catch (const std::exception& error) {
    return Fault{std::string("exception: ") + error.what(), error.what()};
  }
  return std::nullopt;
}

ScheduleCase random_schedule_case(uint64_t seed) {
  Random random(seed * 0x2545f4914f6cdd1dULL + 11);
  ScheduleCase c;
  c.seed = seed;
  while (!c.kernel.function) c.kernel = random_definition(random);
  c.sizes = {random.from(1, 7), random.from(1, 7)};
  for (int64_t n = random.from(4, 16); n > 0; --n) c.steps.push_back(random_step(random));
  return c;
}

/// Of a case, or of the form with fewer operations by which its schedule computes sums.
static double tolerance_of(const ScheduleCase& c, const tir::Schedule& schedule) {
  const auto& steps = schedule.trace().instructions();
  const bool is_other_form = std::any_of(steps.begin(), steps.end(),
                                         [](const auto& step) { return step.name == "winograd"; });
  return is_other_form ? std::max(c.kernel.tolerance, tir::winograd_form(4)->epsilon)
                       : c.kernel.tolerance;
}

std::optional<Fault> run_case(const ScheduleCase& c, std::string* trace, StepCounts* counts) {
  const StepContext& context = standard_context();
  const Tensors contents = contents_of(*c.kernel.function, c.sizes, c.seed, c.kernel.indices);
  Tensors expected;
  try {
    expected = interpret(module_of(c.kernel.function, context), kName, contents);
  } catch (const CompileError&) {
    return std::nullopt;  // symbolic sizes that do not go together
  }
  tir::Schedule schedule(c.kernel.function);
  std::optional<Fault> fault;
  const auto at_fault = [&](const Step& step, Fault found) {
    fault = std::move(found);
    fault->detail = fmt::format("{}\nafter the step `{} {}`\n{}", fault->detail, step.primitive,
                                step.seed, script::print(schedule.func(), kName));
  };
  for (const Step& step : c.steps) {
    StepCounts::Count* count = counts ? &counts->by_primitive[step.primitive] : nullptr;
    const tir::Schedule saved = schedule;
    const Ref<tir::PrimFunc> before = schedule.func();
    bool taken = false;
    try {
      if (auto found = internal_fault([&] { taken = apply(schedule, step, context); })) {
        found->kind = step.primitive + ": " + found->kind;
        at_fault(step, *found);
        break;
      }
    } catch (const CompileError& error) {
      if (count) {
        ++count->tried;
        ++counts->tried;
        ++counts->reasons[step.primitive + ": " + plain(error.first().message)];
      }
      if (!schedule.func().same_as(before)) {
        at_fault(step, {step.primitive + ": changed by a refusal", error.what()});
        break;
      }
      if (error.first().code.id != kScheduleIllegal.id) {
        at_fault(step, {step.primitive + ": a diagnostic of another kind", error.what()});
        break;
      }
      continue;
    }
    if (count) {
      ++count->tried;
      ++counts->tried;
      count->taken += taken;
      counts->taken += taken;
    }
    if (schedule.func().same_as(before)) continue;
    const IRModule module = module_of(schedule.func(), context);
    try {
      const auto found = internal_fault([&] {
        verify_module(module);
        const Tensors got = interpret(module, kName, contents);
        if (const auto wrong = difference_of(got, expected, tolerance_of(c, schedule)))
          at_fault(step, {step.primitive + ": difference", *wrong});
      });
      if (found) at_fault(step, {step.primitive + ": then " + found->kind, found->detail});
    } catch (const CompileError& error) {
      if (error.first().code.id == kLimitExceeded.id) {
        // Iterations that do nothing, by factors far above the extents: taken back, not judged.
        schedule = saved;
        if (count) ++counts->reasons[step.primitive + ": too many iterations to interpret"];
        if (count) --count->taken, --counts->taken;
        continue;
      }
      at_fault(step,
               {fmt::format("{}: then {}", step.primitive, error.first().code.name), error.what()});
    }
    if (fault) break;
  }
  if (trace) *trace = schedule.trace().str();
  if (fault) return fault;
  if (auto found = internal_fault([&] { check_text(module_of(schedule.func(), context)); })) {
    found->kind = "text: " + found->kind;
    found->detail += "\n" + script::print(schedule.func(), kName);
    return found;
  }
  try {
    std::optional<Fault> other_function;
    fault = internal_fault([&] {
      const tir::Trace read =
          script::parse_trace(schedule.trace().str(), c.kernel.function, context.intrins);
      const tir::Schedule again = tir::replay(read, c.kernel.function);
      if (const auto other = structural_difference(NodePtr(again.func()), NodePtr(schedule.func())))
        other_function = Fault{"replay: another function", script::print(again.func(), kName)};
    });
    if (!fault) fault = other_function;
  } catch (const CompileError& error) {
    fault = Fault{"replay: refused", error.what()};
  }
  if (fault || c.seed % kLoweredEvery != 0) return fault;
  const auto& targets = program_targets();
  const ProgramTarget& target = targets[c.seed / kLoweredEvery % kLlvmTargets];
  IRModule module = module_of(schedule.func(), context);
  module.set(kName, schedule.func()->with_attr("tir.is_scheduled", true));
  try {
    fault = run_kernel(module, contents, expected, tolerance_of(c, schedule), target);
  } catch (const CompileError& error) {
    if (counts) ++counts->reasons["compiled: " + refusal_of(error)];
  }
  if (fault) {
    fault->kind = "compiled: " + fault->kind;
    fault->detail += "\n" + script::print(schedule.func(), kName);
  }
  return fault;
}

KnownCase known_case_of(const std::string& text) {
  KnownCase out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# > ")) out.trace += line.substr(4) + "\n";
    if (line.starts_with("# expect: ")) out.expected = line.substr(10);
  }
  out.function = script::parse_module(text).find<tir::PrimFunc>(kName);
  check(static_cast<bool>(out.function), "the text has no function `kernel`");
  return out;
}

std::string outcome_of(const KnownCase& known) {
  const StepContext& context = standard_context();
  const Tensors contents = contents_of(*known.function, {3}, 1, false);
  try {
    const tir::Trace trace = script::parse_trace(known.trace, known.function, context.intrins);
    const tir::Schedule schedule = tir::replay(trace, known.function);
    const IRModule module = module_of(schedule.func(), context);
    verify_module(module);
    const auto wrong =
        difference_of(interpret(module, kName, contents),
                      interpret(module_of(known.function, context), kName, contents), 0);
    return wrong ? *wrong + "\n" + script::print(schedule.func(), kName) : "same";
  } catch (const CompileError& error) {
    const std::string prefix = "refused: ";
    const bool is_expected =
        error.first().code.id == kScheduleIllegal.id && known.expected.starts_with(prefix) &&
        error.first().message.find(known.expected.substr(prefix.size())) != std::string::npos;
    return is_expected ? known.expected : error.what();
  }
}

std::string text_of(const ScheduleCase& c) {
  std::string text;
  text += fmt::format("# tolerance {}\n# indices {}\n# seed {}\n# sizes", c.kernel.tolerance,
                      c.kernel.indices ? 1 : 0, c.seed);
  for (const int64_t size : c.sizes) text += fmt::format(" {}", size);
  text += "\n";
  for (const Step& step : c.steps) text += fmt::format("# step {} {}\n", step.primitive, step.seed);
  return text + script::print(module_of(c.kernel.function, {}));
}

ScheduleCase schedule_case_of(const std::string& text) {
  ScheduleCase c;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string hash, key;
    if (!(words >> hash >> key) || hash != "#") continue;
    if (key == "tolerance") words >> c.kernel.tolerance;
    if (key == "indices") words >> c.kernel.indices;
    if (key == "seed") words >> c.seed;
    if (key == "sizes")
      for (int64_t size = 0; words >> size;) c.sizes.push_back(size);
    if (key == "step") {
      Step step;
      words >> step.primitive >> step.seed;
      c.steps.push_back(step);
    }
  }
  c.kernel.name = "text";
  c.kernel.function = script::parse_module(text).find<tir::PrimFunc>(kName);
  check(static_cast<bool>(c.kernel.function), "the text has no function `kernel`");
  return c;
}

}  // namespace tenon::fuzz
