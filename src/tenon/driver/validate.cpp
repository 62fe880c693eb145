#include "tenon/driver/validate.h"

#include "tenon/driver/compiler.h"
#include "tenon/driver/library_call.h"
#include "tenon/driver/signature.h"
#include "tenon/driver/tensors.h"
#include "tenon/graph/kernels.h"
#include "tenon/graph/shape.h"
#include "tenon/interp/interpreter.h"
#include "tenon/support/kernel_codes.h"
#include "tenon/tir/analysis/longest_sum.h"

namespace tenon {

Validator::Outputs Validator::run(const IRModule& module, uint64_t rounding_seed) {
  interp::Options options;
  options.rounding_seed = rounding_seed;
  if (module.attrs.contains("external_mods"))
    options.call_library = library_caller(open_libraries(module, {}));
  return interp::Interpreter(module, std::move(options)).run_main(inputs_);
}

Expectation Validator::expect(const IRModule& module, Outputs outputs) {
  return {std::move(outputs), longest_sum(module),
          [this, module](uint64_t seed) { return run(module, seed); }};
}

// A pass that had nothing to do leaves every function the same node.
static bool same_functions(const IRModule& a, const IRModule& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, function] : a.functions())
    if (!b.find(name).same_as(function)) return false;
  return true;
}

// Another signature is another program: there is nothing to compare.
static bool same_inputs(const IRModule& a, const IRModule& b) {
  const std::vector<Port> x = signature_of(a).inputs, y = signature_of(b).inputs;
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Port& p, const Port& q) {
    return p.name == q.name && p.str() == q.str();
  });
}

// Whether `main` has a signature that inputs can be made for.
static bool has_program(const IRModule& module) {
  if (module.find<graph::Function>("main")) return true;
  const auto main = module.find<tir::PrimFunc>("main");
  return main && main->attrs.contains("tenon.num_inputs");
}

static void warn(const Pass& pass, const std::string& words) {
  fmt::print(stderr, "warning: --validate: what `{}` makes of {}\n", pass.name, words);
}

void Validator::compare(const Pass& pass, const IRModule& before, const IRModule& after) {
  if (same_functions(before, after)) return;
  if (has_program(before) && has_program(after)) return compare_programs(pass, before, after);
  last_.reset();
  for (const auto& [name, function] : before.functions()) {
    const BaseFunc next = after.find(name);
    if (!next || next.same_as(function)) continue;
    if (const auto kernel = cast<tir::PrimFunc>(function)) {
      compare_kernels(pass, before, after, name);
    } else if (function.as<graph::Function>() && next.as<graph::Function>()) {
      IRModule one = before, other = after;
      one.set("main", function);
      other.set("main", next);
      Validator(seed_).compare_programs(pass, one, other);
    }
  }
}

// Tensors for the parameters of a PrimFunc; nothing where one is a scalar.
static std::optional<std::vector<Ref<TensorData>>> arguments_of(const IRModule& module,
                                                                const tir::PrimFunc& function,
                                                                uint64_t seed) {
  std::map<std::string, int64_t> sizes;
  Substitution dims;
  for (const Ref<Var>& dim : tir::symbolic_vars(function)) {
    sizes[dim->name] = kDefaultDim;
    dims.emplace(dim.get(), imm(dim->dtype, kDefaultDim));
  }
  const std::vector<InputMeaning> meanings = input_meanings(module, function);
  std::vector<Ref<TensorData>> out;
  for (const Ref<tir::Buffer>& buffer : function.buffers) {
    if (!buffer || !buffer->strides.empty()) return std::nullopt;
    std::vector<int64_t> shape;
    for (const Expr& dim : buffer->shape) {
      const auto size = as_int(graph::simplify_dim(cast(kInt64, substitute(dim, dims))));
      if (!size || *size < 0) return std::nullopt;
      shape.push_back(*size);
    }
    const RandomRange range = range_of(meanings.at(out.size()), sizes, Values::kScales);
    out.push_back(random_values(buffer->dtype, std::move(shape), seed + out.size() + 1, range));
  }
  return out;
}

void Validator::compare_kernels(const Pass& pass, const IRModule& before, const IRModule& after,
                                const std::string& name) {
  const auto one = before.find<tir::PrimFunc>(name), other = after.find<tir::PrimFunc>(name);
  const std::string words = "`" + name + "` is not compared: ";
  const auto inputs = arguments_of(before, *one, seed_);
  if (!inputs) return warn(pass, words + "a parameter is no tensor of a known shape");
  if (!other || other->params.size() != one->params.size())
    return warn(pass, words + "it has other parameters now");
  const auto run_in = [&](const IRModule& module, uint64_t rounding_seed) {
    interp::Options options;
    options.rounding_seed = rounding_seed;
    return interp::Interpreter(module, std::move(options)).run_prim_func(name, *inputs);
  };
  Outputs wanted;
  try {
    wanted = run_in(before, 0);
  } catch (const CompileError& error) {
    return warn(pass, words + "it does not run on random tensors: " + error.first().message);
  }
  Expectation expected(wanted, tir::longest_sum(*one, 1),
                       [&](uint64_t seed) { return run_in(before, seed); });
  check_outputs(
      pass, expected, [&](uint64_t seed) { return run_in(after, seed); },
      tir::longest_sum(*other, 1), "buffer", " of `" + name + "`");
}

Expectation Validator::check_outputs(const Pass& pass, Expectation& expected, const Rerun& run,
                                     int64_t terms, const char* what, const std::string& where) {
  Outputs outputs;
  try {
    outputs = run(0);
  } catch (const CompileError& error) {
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
  if (!same_inputs(before, after)) {
    last_.reset();
    return warn(pass, "`main` is not compared: it has other inputs now");
  }
  if (!last_) {
    InputOptions options;
    options.seed = seed_;
    options.meanings = named_meanings(before);
    options.values = Values::kScales;
    inputs_ = make_inputs(signature_of(before), options);
    last_ = expect(before, run(before, 0));
  }
  last_ = check_outputs(
      pass, *last_, [this, after](uint64_t seed) { return run(after, seed); }, longest_sum(after),
      "output", "");
}

}  // namespace tenon
