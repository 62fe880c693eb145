// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/validate.h"

#include <set>

#include "tenon/driver/compiler.h"
#include "tenon/driver/library_call.h"
#include "tenon/driver/renamed_inputs.h"
#include "tenon/driver/signature.h"
#include "tenon/driver/tensors.h"
#include "tenon/driver/warnings.h"
#include "tenon/graph/kernels.h"
#include "tenon/graph/shape.h"
#include "tenon/interp/call_memo.h"
#include "tenon/support/kernel_codes.h"
#include "tenon/support/limit_codes.h"
#include "tenon/support/validation_codes.h"
#include "tenon/tir/analysis/longest_sum.h"

namespace tenon {

Validator::Validator(LibrariesOf libraries, uint64_t seed)
    : libraries_(std::move(libraries)), seed_(seed), memo_(std::make_shared<interp::CallMemo>()) {}

interp::Options Validator::options_for(const IRModule& module, uint64_t rounding_seed) {
  const auto opened = libraries_ ? libraries_(module) : open_libraries(module, {});
  if (opened != opened_ || !call_library_) {
    call_library_ = library_caller(opened);
    call_opaque_ = opaque_caller(opened);
    opened_ = opened;
  }
  interp::Options options;
  options.rounding_seed = rounding_seed;
  options.memo = memo_;
  options.call_library = call_library_;
  options.call_opaque = call_opaque_;
  return options;
}

Validator::Outputs Validator::run(const IRModule& module, const Outputs& inputs,
                                  uint64_t rounding_seed) {
  return interp::Interpreter(module, options_for(module, rounding_seed)).run_main(inputs);
}

Expectation Validator::expect(const IRModule& module) {
  interp::Options options = options_for(module, 0);
  // The program as it came; schedules prove what they make parallel.
  options.watch_open_loops = !std::exchange(has_watched_, true);
  Outputs outputs = interp::Interpreter(module, std::move(options)).run_main(inputs_);
  return {std::move(outputs), longest_sum(module),
          [this, module, inputs = inputs_](uint64_t seed) { return run(module, inputs, seed); }};
}

// A pass that had nothing to do leaves every function the same node.
static bool same_functions(const IRModule& a, const IRModule& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, function] : a.functions())
    if (!b.find(name).same_as(function)) return false;
  return true;
}

// Whether `main` has a signature that inputs can be made for.
static bool has_program(const IRModule& module) {
  if (module.find<graph::Function>("main")) return true;
  const auto main = module.find<tir::PrimFunc>("main");
  return main && main->attrs.contains("tenon.num_inputs");
}

[[noreturn]] static void refuse(const Pass& pass, const Origin& origin, const std::string& why) {
  throw CompileError(kNotCompared, origin,
                     "--validate cannot compare what `{}` makes of `main`: {}", pass.name, why);
}
[[noreturn]] static void refuse(const Pass& pass, const CompileError& error,
                                const std::string& when) {
  if (error.first().code.id == kRace.id) throw error;  // the program's own
  refuse(pass, error.first().origin, when + error.first().message);
}

static void warn_of(const Pass& pass, const std::string& name, const std::string& why) {
  warn(kFunctionNotCompared, {}, "--validate does not compare what `{}` makes of `{}`: {}",
       pass.name, name, why);
}

void Validator::compare(const Pass& pass, const IRModule& before, const IRModule& after) {
  if (same_functions(before, after)) return;
  const bool has_main = has_program(before);
  if (has_main) {
    if (!has_program(after))
      refuse(pass, {}, "there is no `main` with inputs and outputs after it");
    compare_main(pass, before, after);
  } else {
    last_.reset();
  }
  compare_functions(pass, before, after, has_main);
}

static bool takes_tuples(const IRModule& module) {
  const auto main = module.find<graph::Function>("main");
  if (!main) return false;
  return std::any_of(main->params.begin(), main->params.end(), [](const Ref<graph::Var>& param) {
    return param->type.as<graph::TupleType>() != nullptr;
  });
}

void Validator::compare_main(const Pass& pass, const IRModule& before, const IRModule& after) {
  try {
    if (takes_tuples(before) && takes_tuples(after)) {
      last_.reset();
      compare_programs(pass, with_flat_main(before, "main"), with_flat_main(after, "main"));
      last_.reset();
    } else {
      compare_programs(pass, before, after);
    }
  } catch (const CompileError& error) {
    if (error.first().code.id == kNotCompared.id || error.first().code.id == kWrongResult.id) throw;
    refuse(pass, error, "");
  }
}

// Functions that no other function names.
static std::set<std::string> uncalled(const IRModule& module) {
  std::set<std::string> names;
  for (const auto& [name, function] : module.functions()) names.insert(name);
  for (const auto& [name, function] : module.functions())
    walk<GlobalVar>(function, [&, &self = name](const GlobalVar& callee) {
      if (callee.name != self) names.erase(callee.name);
    });
  return names;
}

void Validator::compare_functions(const Pass& pass, const IRModule& before, const IRModule& after,
                                  bool has_main) {
  const std::set<std::string> entries = has_main ? uncalled(before) : std::set<std::string>();
  for (const auto& [name, function] : before.functions()) {
    const bool is_graph = function.as<graph::Function>() != nullptr;
    // What is called by others counts by what they compute; patterns and kernels wait for use.
    const bool is_entry = is_graph && name != "main" && !function->is_private &&
                          !function->attrs.contains("Pattern") && entries.count(name);
    if (has_main && !is_entry) continue;
    const BaseFunc next = after.find(name);
    if (next.same_as(function)) continue;
    if (!next && function->is_private) continue;
    if (!next) {
      warn_of(pass, name, "it is gone");
    } else if (const auto kernel = cast<tir::PrimFunc>(function)) {
      compare_kernels(pass, before, after, name);
    } else if (is_graph && next.as<graph::Function>()) {
      Validator own(libraries_, seed_);
      own.memo_ = memo_;
      try {
        own.compare_programs(pass, with_flat_main(before, name), with_flat_main(after, name));
      } catch (const CompileError& error) {
        if (error.first().code.id == kWrongResult.id) throw;
        warn_of(pass, name, error.first().message);
      }
    } else if (is_graph) {
      warn_of(pass, name, "it is a function of another kind now");
    }
  }
}

namespace {

struct KernelArguments {
  std::vector<Ref<TensorData>> buffers;
  std::vector<double> scalars;
};

// Nothing where a parameter is a pointer, or a buffer with strides.
std::optional<KernelArguments> arguments_of(const IRModule& module, const tir::PrimFunc& function,
                                            uint64_t seed) {
  std::map<std::string, int64_t> sizes;
  Substitution dims;
  const auto size = [&](const Var& dim) {
    sizes[dim.name] = kDefaultDim;
    dims.emplace(&dim, imm(dim.dtype, kDefaultDim));
  };
  for (const Ref<Var>& dim : tir::symbolic_vars(function)) size(*dim);
  KernelArguments out;
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Var& param = *function.params[i];
    if (function.buffers[i]) continue;
    if (!param.dtype.is_scalar() || param.dtype.is_handle()) return std::nullopt;
    if (param.dtype.is_float()) {
      out.scalars.push_back(0.75);
    } else if (param.dtype.is_bool()) {
      out.scalars.push_back(1);
    } else {
      size(param);
      out.scalars.push_back(kDefaultDim);
    }
  }
  const std::vector<InputMeaning> meanings = input_meanings(module, function);
  for (const Ref<tir::Buffer>& buffer : function.buffers) {
    if (!buffer) continue;
    if (!buffer->strides.empty()) return std::nullopt;
    std::vector<int64_t> shape;
    for (const Expr& dim : buffer->shape) {
      const auto extent = as_int(graph::simplify_dim(cast(kInt64, substitute(dim, dims))));
      if (!extent || *extent < 0) return std::nullopt;
      shape.push_back(*extent);
    }
    const RandomRange range = range_of(meanings.at(out.buffers.size()), sizes, Values::kScales);
    out.buffers.push_back(
        random_values(buffer->dtype, std::move(shape), seed + out.buffers.size() + 1, range));
  }
  return out;
}

}  // namespace

void Validator::compare_kernels(const Pass& pass, const IRModule& before, const IRModule& after,
                                const std::string& name) {
  const auto one = before.find<tir::PrimFunc>(name), other = after.find<tir::PrimFunc>(name);
  const auto inputs = arguments_of(before, *one, seed_);
  if (!inputs)
    return warn_of(pass, name,
                   "a parameter is neither a number nor a tensor whose shape numbers decide");
  const auto is_buffer = [](const Ref<tir::Buffer>& a, const Ref<tir::Buffer>& b) {
    return static_cast<bool>(a) == static_cast<bool>(b);
  };
  if (!other || !std::equal(one->buffers.begin(), one->buffers.end(), other->buffers.begin(),
                            other->buffers.end(), is_buffer))
    return warn_of(pass, name, "it has other parameters now");
  const auto run_in = [&](const IRModule& module, uint64_t rounding_seed) {
    return interp::Interpreter(module, options_for(module, rounding_seed))
        .run_prim_func(name, inputs->buffers, inputs->scalars);
  };
  Outputs wanted;
  try {
    wanted = run_in(before, 0);
  } catch (const CompileError& error) {
    return warn_of(pass, name, "it does not run on random tensors: " + error.first().message);
  }
  Expectation expected(wanted, tir::longest_sum(*one, 1),
                       [&](uint64_t seed) { return run_in(before, seed); });
  try {
    check_outputs(
        pass, expected, [&](uint64_t seed) { return run_in(after, seed); },
        tir::longest_sum(*other, 1), "buffer", " of `" + name + "`");
  } catch (const CompileError& error) {
    if (error.first().code.id != kNotCompared.id) throw;
    warn_of(pass, name, error.first().message);
  }
}

// Whether the interpreter lacks what it needs: that is no fault of the program.
static bool is_out_of_reach(const CompileError& error) {
  for (const Code* code : {&kUnsupported, &kLinkFailed, &kUntrustedCode, &kLimitExceeded})
    if (error.first().code.id == code->id) return true;
  return false;
}

Expectation Validator::check_outputs(const Pass& pass, Expectation& expected, const Rerun& run,
                                     int64_t terms, const char* what, const std::string& where) {
  Outputs outputs;
  try {
    outputs = run(0);
  } catch (const CompileError& error) {
    if (is_out_of_reach(error)) refuse(pass, error, "it cannot be interpreted after it: ");
    throw InternalError(
        fmt::format("`{}` changed the program: it ran before the pass and fails "
                    "after it:\n{}",
                    pass.name, error.what()));
  }
  if (outputs.size() != expected.outputs().size())
    throw InternalError(fmt::format("`{}` changed the number of {}s{} from {} to {}", pass.name,
                                    what, where, expected.outputs().size(), outputs.size()));
  Expectation next(outputs, terms, run);
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::optional<std::string> wrong;
    if (pass.precision == Precision::kExact)
      wrong = exact_difference(*outputs[i], *expected.outputs()[i]);
    else if (const auto found = expected.mismatch(i, *outputs[i], &next))
      wrong = found->text;
    if (wrong && pass.name == graph::kSelectKernels)
      throw CompileError(kWrongResult, {},
                         "kernels of your own compute something else than their operators: {} "
                         "{}{} {}; `tenon check --kernels` says where",
                         what, i, where, *wrong);
    if (wrong)
      throw InternalError(fmt::format("`{}` changed what the program computes: {} {}{} {}",
                                      pass.name, what, i, where, *wrong));
  }
  return next;
}

void Validator::compare_programs(const Pass& pass, const IRModule& before, const IRModule& after) {
  Outputs inputs;         // of `after`
  bool has_room = false;  // its outputs have rows behind those that are compared
  try {
    if (same_inputs(before, after)) {
      if (!last_) {
        InputOptions options;
        options.seed = seed_;
        options.meanings = named_meanings(before);
        options.values = Values::kScales;
        inputs_ = make_inputs(signature_of(before), options);
        last_ = expect(before);
      }
      inputs = inputs_;
    } else {
      const RunMain run_on = [this](const IRModule& module, const Outputs& given) {
        return run(module, given);
      };
      InputPair pair = renamed_inputs(pass, before, after, seed_, run_on);
      inputs_ = std::move(pair.before);
      last_ = expect(before);
      inputs = std::move(pair.after);
      has_room = pair.has_room;
    }
  } catch (const CompileError& error) {
    refuse(pass, error, "");
  }
  const Rerun rerun = [this, after, inputs, has_room, expected = last_->outputs()](uint64_t seed) {
    Outputs outputs = run(after, inputs, seed);
    for (size_t i = 0; has_room && i < std::min(outputs.size(), expected.size()); ++i)
      outputs[i] = copied_into(*outputs[i], *expected[i]);
    return outputs;
  };
  last_ = check_outputs(pass, *last_, rerun, longest_sum(after), "output", "");
  inputs_ = std::move(inputs);
  if (has_room) last_ = expect(after);  // all rows from here on
}

}  // namespace tenon
