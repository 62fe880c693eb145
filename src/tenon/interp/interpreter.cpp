// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/interpreter.h"

#include <functional>
#include <unordered_map>

#include "tenon/graph/assertion.h"
#include "tenon/graph/builder.h"
#include "tenon/graph/extern_call.h"
#include "tenon/graph/kernels.h"
#include "tenon/graph/loop.h"
#include "tenon/graph/transforms.h"
#include "tenon/interp/dims.h"
#include "tenon/interp/function_runner.h"
#include "tenon/support/kernel_codes.h"
#include "tenon/tir/scalar_sources.h"
#include "tenon/tir/scratch_query.h"
#include "tenon/tir/shared_buffers.h"

namespace tenon::interp {

namespace {

using graph::Value;

/// What a graph value is while the interpreter runs: a tensor, a tuple, a shape, or a scalar.
struct Datum {
  Ref<TensorData> tensor;
  std::vector<Datum> items;
  std::vector<int64_t> shape;
  enum class Kind : uint8_t { kNothing, kTensor, kTuple, kShape, kScalar } kind = Kind::kNothing;
  Slot scalar = {0};
  DType dtype;
};

Datum tensor_datum(Ref<TensorData> data) {
  Datum d;
  d.kind = Datum::Kind::kTensor;
  d.tensor = std::move(data);
  return d;
}
Datum tuple_datum(std::vector<Datum> items) {
  Datum d;
  d.kind = Datum::Kind::kTuple;
  d.items = std::move(items);
  return d;
}

}  // namespace

class Interpreter::Impl {
 public:
  Impl(const IRModule& module, Options options)
      : module_(module), functions_(module_, std::move(options)) {}

  std::vector<Ref<TensorData>> run_main(const std::vector<Ref<TensorData>>& inputs) {
    lift_local_functions();
    const BaseFunc main = module_.find("main");
    if (!main) throw CompileError(kUndefined, {}, "the module has no function `main`");
    if (const auto function = tenon::cast<graph::Function>(main)) {
      std::vector<Datum> args;
      for (const Ref<TensorData>& input : inputs) args.push_back(tensor_datum(input));
      std::vector<Ref<TensorData>> out;
      flatten(call_function(module_, *function, args), out);
      return out;
    }
    const auto lowered = tenon::cast<tir::PrimFunc>(main);
    if (!lowered) throw CompileError(kUnsupported, main->origin, "`main` is a foreign function");
    std::vector<Ref<TensorData>> buffers = inputs;
    size_t count = 0;
    for (const Ref<tir::Buffer>& buffer : lowered->buffers) count += static_cast<bool>(buffer);
    if (inputs.size() > count)
      throw CompileError(kBadInput, {}, "{} inputs are given; `main` has {} parameters",
                         inputs.size(), count);
    buffers.resize(count);
    for (const tir::SharedBuffer& pair :
         tir::shared_buffers(lowered->attrs, inputs.size(), count - inputs.size(), lowered->origin))
      buffers[inputs.size() + pair.output] = inputs[pair.input];
    std::vector<Slot> scalars;
    for (const tir::ScalarSource& source : tir::scalar_sources(*lowered))
      scalars.push_back({.i = inputs.at(source.input)->at_int(source.element)});
    std::vector<Ref<TensorData>> all = functions_.run(module_, lowered, buffers, scalars);
    const auto first = static_cast<std::ptrdiff_t>(inputs.size());
    std::vector<Ref<TensorData>> out(all.begin() + first, all.end());
    if (lowered->attrs.contains("tenon.workspace_bytes") && !out.empty()) out.pop_back();
    for (auto& [index, data] : functions_.take_host_outputs())
      out.insert(out.begin() + std::min<std::ptrdiff_t>(index, std::ssize(out)), std::move(data));
    return out;
  }

  // A function inside of another that uses nothing of it is one of the module.
  void lift_local_functions() {
    bool has_local = false;
    for (const auto& [name, function] : module_.functions())
      if (function.as<graph::Function>())
        walk<graph::FunctionValue>(function,
                                   [&](const graph::FunctionValue&) { has_local = true; });
    if (has_local) module_ = graph::lift_functions(std::move(module_));
  }

  std::vector<Ref<TensorData>> run_prim_func(const std::string& name,
                                             const std::vector<Ref<TensorData>>& buffers,
                                             const std::vector<double>& scalars) {
    const auto function = module_.find<tir::PrimFunc>(name);
    if (!function) throw CompileError(kUndefined, {}, "the module has no PrimFunc `{}`", name);
    std::vector<Slot> slots;
    for (size_t p = 0, s = 0; p < function->params.size() && s < scalars.size(); ++p) {
      if (function->buffers[p]) continue;
      Slot slot;
      if (function->params[p]->dtype.is_float()) {
        slot.f = scalars[s++];
      } else {
        slot.i = static_cast<int64_t>(scalars[s++]);
      }
      slots.push_back(slot);
    }
    return functions_.run(module_, function, buffers, slots);
  }

  const FunctionRunner& functions() const { return functions_; }

  std::optional<Value> evaluate_call(const Ref<graph::Call>& call) {
    try {
      const Datum result = evaluate_value(module_, call, {}, {});
      return value_of(result);
    } catch (const CompileError& error) {
      // An argument without a value (a variable): not ours to compute.
      if (error.first().code.id == kUndefined.id) return std::nullopt;
      throw;
    }
  }

 private:
  using Env = std::unordered_map<const Node*, Datum>;

  static std::optional<Value> value_of(const Datum& datum) {
    switch (datum.kind) {
      case Datum::Kind::kTensor: return make<graph::Constant>(datum.tensor);
      case Datum::Kind::kShape: return make<graph::ShapeExpr>(to_exprs(datum.shape));
      case Datum::Kind::kTuple: {
        std::vector<Value> values;
        for (const Datum& item : datum.items) {
          auto value = value_of(item);
          if (!value) return std::nullopt;
          values.push_back(*value);
        }
        return make<graph::Tuple>(std::move(values));
      }
      default: return std::nullopt;
    }
  }

  static void flatten(const Datum& datum, std::vector<Ref<TensorData>>& out) {
    if (datum.kind == Datum::Kind::kTensor) {
      out.push_back(datum.tensor);
    } else if (datum.kind == Datum::Kind::kTuple) {
      for (const Datum& item : datum.items) flatten(item, out);
    } else {
      throw CompileError(kUnsupported, {}, "a result of `main` is no tensor");
    }
  }

  /// The variables that are dimensions of a tensor by themselves.
  static void define_dims(const graph::Type& type, const Datum& datum, Dims& dims) {
    const auto* tensor = type.as<graph::TensorType>();
    if (!tensor || !tensor->shape || datum.kind != Datum::Kind::kTensor) return;
    const std::vector<int64_t>& seen = datum.tensor->shape;
    for (size_t i = 0; i < std::min(tensor->shape->size(), seen.size()); ++i)
      if (const Expr& dim = (*tensor->shape)[i]; dim.as<Var>()) dims.emplace(dim.get(), seen[i]);
  }

  static void bind_dims(const graph::Type& type, const Datum& datum, Dims& dims,
                        const Origin& origin, const std::string& name) {
    const auto bind = [&](const std::vector<Expr>& declared, const std::vector<int64_t>& seen) {
      if (declared.size() != seen.size())
        throw CompileError(kBadInput, origin, "`{}` has rank {}; declared is {}", name, seen.size(),
                           tenon::str(declared));
      for (size_t i = 0; i < declared.size(); ++i) {
        if (declared[i].as<Var>() && dims.emplace(declared[i].get(), seen[i]).second) continue;
        const int64_t expected = evaluate(declared[i], dims);
        if (expected != seen[i])
          throw CompileError(kBadInput, origin, "`{}` has shape {}; declared is {}", name,
                             tenon::str(seen), tenon::str(declared));
      }
    };
    if (const auto* tensor = type.as<graph::TensorType>()) {
      if (datum.kind != Datum::Kind::kTensor)
        throw CompileError(kBadInput, origin, "`{}` is no tensor", name);
      if (!tensor->dtype.is_void() && tensor->dtype != datum.tensor->dtype)
        throw CompileError(kBadInput, origin, "`{}` has element type {}; declared is {}", name,
                           datum.tensor->dtype.str(), tensor->dtype.str());
      if (tensor->shape) bind(*tensor->shape, datum.tensor->shape);
    } else if (const auto* shape = type.as<graph::ShapeType>(); shape && shape->values) {
      bind(*shape->values, datum.shape);
    } else if (const auto* prim = type.as<graph::PrimType>();
               prim && prim->value && prim->value.as<Var>()) {
      dims.emplace(prim->value.get(), datum.scalar.i);
    } else if (const auto* tuple = type.as<graph::TupleType>()) {
      for (size_t i = 0; i < tuple->types.size() && i < datum.items.size(); ++i)
        bind_dims(tuple->types[i], datum.items[i], dims, origin, name);
    }
  }

  Datum call_function(const IRModule& module, const graph::Function& function,
                      const std::vector<Datum>& args) {
    if (args.size() != function.params.size())
      throw CompileError(kBadInput, function.origin,
                         "{} inputs are given; the function has {} parameters", args.size(),
                         function.params.size());
    Env env;
    Dims dims;
    // A dimension may be an expression of a later parameter's.
    for (size_t i = 0; i < args.size(); ++i) define_dims(function.params[i]->type, args[i], dims);
    for (size_t i = 0; i < args.size(); ++i) {
      const Ref<graph::Var>& param = function.params[i];
      bind_dims(param->type, args[i], dims, param->origin, param->name);
      env[param.get()] = args[i];
    }
    return sequence(module, *function.body, env, dims);
  }

  Datum sequence(const IRModule& module, const graph::SeqExpr& seq, Env& env, Dims& dims) {
    for (const Ref<graph::BindingBlock>& block : seq.blocks)
      for (const Ref<graph::Binding>& binding : block->bindings) bind(module, *binding, env, dims);
    return evaluate_value(module, seq.body, env, dims);
  }

  void bind(const IRModule& module, const graph::Binding& binding, Env& env, Dims& dims) {
    try {
      if (const auto* branch = binding.value.as<graph::If>()) {
        const Datum condition = evaluate_value(module, branch->condition, env, dims);
        env[binding.var.get()] = sequence(
            module, holds(condition) ? *branch->then_branch : *branch->else_branch, env, dims);
        return;
      }
      Datum value = evaluate_value(module, binding.value, env, dims);
      if (binding.match) bind_dims(binding.match, value, dims, binding.origin, binding.var->name);
      env[binding.var.get()] = std::move(value);
    } catch (const CompileError& error) {
      // Sizes that are refused know nothing of the operator that they are of.
      std::vector<Diagnostic> diagnostics = error.diagnostics();
      if (diagnostics.front().origin) throw;
      diagnostics.front().origin = binding.origin ? binding.origin : binding.value->origin;
      throw CompileError(std::move(diagnostics));
    }
  }

  Datum evaluate_value(const IRModule& module, const Value& value, const Env& env,
                       const Dims& dims) {
    switch (kind_of(value)) {
      case graph::ValueKind::kConstant: return tensor_datum(value.to<graph::Constant>().data);
      case graph::ValueKind::kVar: {
        const auto it = env.find(value.get());
        if (it == env.end())
          throw CompileError(kUndefined, value->origin, "`{}` has no value here",
                             value.to<graph::Var>().name);
        return it->second;
      }
      case graph::ValueKind::kTuple: {
        std::vector<Datum> items;
        for (const Value& item : value.to<graph::Tuple>().values)
          items.push_back(evaluate_value(module, item, env, dims));
        return tuple_datum(std::move(items));
      }
      case graph::ValueKind::kTupleGetItem: {
        const auto& get = value.to<graph::TupleGetItem>();
        return evaluate_value(module, get.tuple, env, dims)
            .items.at(static_cast<size_t>(get.index));
      }
      case graph::ValueKind::kShapeExpr: {
        const auto& shape = value.to<graph::ShapeExpr>();
        Datum d;
        d.kind = Datum::Kind::kShape;
        d.shape = evaluate(shape.values, dims);
        return d;
      }
      case graph::ValueKind::kPrimValue: {
        const auto& prim = value.to<graph::PrimValue>();
        Datum d;
        d.kind = Datum::Kind::kScalar;
        d.dtype = prim.value->dtype;
        d.scalar = number_of(prim.value, dims);
        return d;
      }
      case graph::ValueKind::kStringValue: return Datum();
      case graph::ValueKind::kCall: return evaluate_op(module, value.to<graph::Call>(), env, dims);
      case graph::ValueKind::kFuncRef:
      case graph::ValueKind::kExternRef:
      case graph::ValueKind::kSeqExpr:
      case graph::ValueKind::kIf:
      case graph::ValueKind::kFunctionValue:
      case graph::ValueKind::kOpValue: break;
    }
    throw CompileError(kUnsupported, value->origin, "`{}` cannot be interpreted",
                       value->type().name);
  }

  Datum evaluate_op(const IRModule& module, const graph::Call& call, const Env& env,
                    const Dims& dims) {
    if (call.is("call_tir") || call.is("call_tir_inplace"))
      return call_tir(module, call, env, dims);
    if (const auto foreign = graph::foreign_call(call))
      return call_foreign(module, call, *foreign, env, dims);
    if (!call.op) {
      const auto* ref = call.callee.as<graph::FuncRef>();
      const auto function = ref ? module.find<graph::Function>(ref->name) : nullptr;
      if (!function)
        throw CompileError(kUnsupported, call.origin,
                           "a call of a foreign function cannot be interpreted");
      if (graph::has_no_body(*function)) return run_declared(module, call, env, dims);
      std::vector<Datum> args;
      for (const Value& arg : call.args) args.push_back(evaluate_value(module, arg, env, dims));
      return call_function(module, *function, args);
    }
    if (call.is("reshape")) {
      const Datum x = evaluate_value(module, call.args.at(0), env, dims);
      const auto shape = result_shape(call, dims);
      if (shape && checked_elements(*shape) == x.tensor->elements()) {
        if (x.tensor->is_splat()) {
          const auto element = x.tensor->splat_element();
          return tensor_datum(
              TensorData::splat(x.tensor->dtype, *shape, {element.begin(), element.end()}));
        }
        return tensor_datum(TensorData::view(x.tensor->dtype, *shape, x.tensor->data(),
                                             std::make_shared<Ref<TensorData>>(x.tensor)));
      }
    }
    if (call.is("tensor_to_shape")) {
      const Datum x = evaluate_value(module, call.args.at(0), env, dims);
      Datum shape;
      shape.kind = Datum::Kind::kShape;
      for (int64_t i = 0; i < x.tensor->elements(); ++i) shape.shape.push_back(x.tensor->at_int(i));
      return shape;
    }
    if (call.is("assert_op")) return assert_op(module, call, env, dims);
    if (call.is("loop")) return loop(module, call, env, dims);
    if (!call.op->lower)
      throw CompileError(kUnsupported, call.origin, "operator `{}` cannot be interpreted",
                         call.op->name);
    return run_operator(module, call, env, dims);
  }

  Datum assert_op(const IRModule& module, const graph::Call& call, const Env& env,
                  const Dims& dims) {
    if (!holds(evaluate_value(module, call.args.at(0), env, dims)))
      throw CompileError(kRunFailed, call.origin, "{}", graph::assert_message(call));
    return tuple_datum({});
  }

  Datum loop(const IRModule& module, const graph::Call& call, const Env& env, const Dims& dims) {
    const graph::LoopCall parts = graph::loop_call(call);
    const auto body = module.find<graph::Function>(parts.body);
    if (!body)
      throw CompileError(kUnknownCallee, call.origin, "`loop` calls `{}`, which is no function",
                         parts.body);
    const int64_t count = evaluate(parts.count, dims);
    const auto most_steps = module.attrs.get<int64_t>("max_steps");
    std::vector<Datum> states, slices, captured;
    for (const auto& [values, out] :
         {std::pair{&parts.states, &states}, std::pair{&parts.slices, &slices},
          std::pair{&parts.captured, &captured}})
      for (const Value& value : *values) out->push_back(evaluate_value(module, value, env, dims));
    for (const Datum& slice : slices)
      if (slice.tensor->shape[0] != std::max<int64_t>(count, 0))
        throw CompileError(kRunFailed, call.origin, "a loop of {} iterations has slices of {}",
                           count, tenon::str(slice.tensor->shape));
    std::vector<std::vector<Ref<TensorData>>> stacked(graph::loop_result_types(*body).size() -
                                                      states.size());
    const auto arguments = [&](int64_t step) {
      Datum numbers;
      numbers.kind = Datum::Kind::kShape;
      numbers.shape = evaluate(parts.dims, dims);
      numbers.shape.insert(numbers.shape.begin(), step);
      std::vector<Datum> args = {std::move(numbers)};
      args.insert(args.end(), states.begin(), states.end());
      for (size_t i = 0; i < slices.size(); ++i)
        args.push_back(tensor_datum(part_of(
            slices[i].tensor,
            parts.reversed_inputs.count(i) ? std::max<int64_t>(count, 1) - 1 - step : step)));
      args.insert(args.end(), captured.begin(), captured.end());
      return args;
    };
    for (int64_t step = 0; step < count; ++step) {
      if (parts.while_first && !holds(states[0])) break;
      if (most_steps && step >= *most_steps)
        throw CompileError(kRunFailed, call.origin, "{}", graph::steps_message(*most_steps));
      Datum results = call_function(module, *body, arguments(step));
      for (size_t k = 0; k < results.items.size(); ++k)
        if (k < states.size())
          states[k] = std::move(results.items[k]);
        else
          stacked[k - states.size()].push_back(results.items[k].tensor);
    }
    // Slices of no iterations are not there.
    for (Datum& slice : slices)
      if (slice.tensor->shape[0] == 0) {
        std::vector<int64_t> shape = slice.tensor->shape;
        shape[0] = 1;
        slice.tensor = TensorData::splat(
            slice.tensor->dtype, shape,
            std::vector<std::byte>(static_cast<size_t>(slice.tensor->dtype.bytes())));
      }
    const std::vector<Datum> first = arguments(0);
    for (size_t k = 0; k < stacked.size(); ++k) {
      if (parts.reversed_outputs.count(k)) std::reverse(stacked[k].begin(), stacked[k].end());
      states.push_back(tensor_datum(stacked[k].empty() ? nothing_stacked(*body, parts, first, k)
                                                       : joined(stacked[k], call.origin)));
    }
    return tuple_datum(std::move(states));
  }

  // Element `at` of the first axis of `whole`, which the caller knows to have one.
  static Ref<TensorData> part_of(const Ref<TensorData>& whole, int64_t at) {
    const std::vector<int64_t> shape(whole->shape.begin() + 1, whole->shape.end());
    const auto bytes = static_cast<size_t>(checked_elements(shape) * whole->dtype.bytes());
    return TensorData::view(whole->dtype, shape,
                            whole->data().subspan(static_cast<size_t>(at) * bytes, bytes),
                            std::make_shared<Ref<TensorData>>(whole));
  }
  static Ref<TensorData> joined(const std::vector<Ref<TensorData>>& parts, const Origin& origin) {
    std::vector<int64_t> shape = parts[0]->shape;
    std::vector<std::byte> bytes;
    for (const Ref<TensorData>& part : parts) {
      if (part->shape != parts[0]->shape)
        throw CompileError(kRunFailed, origin, "a loop stacks tensors of shapes {} and {}",
                           tenon::str(parts[0]->shape), tenon::str(part->shape));
      bytes.insert(bytes.end(), part->data().begin(), part->data().end());
    }
    shape.insert(shape.begin(), static_cast<int64_t>(parts.size()));
    return TensorData::owned(parts[0]->dtype, std::move(shape), std::move(bytes));
  }
  // What a loop of no iterations stacks: its dimensions are those that the body declares.
  Ref<TensorData> nothing_stacked(const graph::Function& body, const graph::LoopCall& parts,
                                  const std::vector<Datum>& args, size_t k) {
    Dims own;
    for (size_t i = 0; i < args.size(); ++i) {
      const graph::Type& type = body.params.at(i)->type;
      const auto* tensor = type.as<graph::TensorType>();
      const auto* numbers = type.as<graph::ShapeType>();
      const auto& declared = tensor ? tensor->shape : numbers->values;
      const std::vector<int64_t>& seen = tensor ? args[i].tensor->shape : args[i].shape;
      for (size_t d = 0; d < seen.size(); ++d) own.emplace(declared->at(d).get(), seen[d]);
    }
    const graph::Type one = graph::loop_result_types(body).at(parts.states.size() + k);
    const auto& type = one.to<graph::TensorType>();
    std::vector<int64_t> shape = evaluate(*type.shape, own);
    shape.insert(shape.begin(), 0);
    return TensorData::owned(type.dtype, std::move(shape), {});
  }

  static bool holds(const Datum& condition) {
    return condition.tensor ? condition.tensor->at_int(0) != 0 : condition.scalar.i != 0;
  }

  static std::optional<std::vector<int64_t>> result_shape(const graph::Call& call,
                                                          const Dims& dims) {
    const graph::Type type = graph::type_of(ref_to(&call));
    const auto* tensor = type.as<graph::TensorType>();
    if (!tensor || !tensor->shape) return std::nullopt;
    return evaluate(*tensor->shape, dims);
  }

  // Whether the result's shape follows from what integers among the arguments are (the bounds of a
  // slice), so that these have to be constants of the lowering.
  static bool depends_on_values(const graph::Call& call) {
    const graph::Type type = call.op->infer_type(call);
    const auto* tensor = type.as<graph::TensorType>();
    return tensor && !tensor->shape;
  }

  /// An operator is what its lowering says: a function of its own is built for the concrete shapes,
  /// lowered once and kept.
  Datum run_operator(const IRModule& module, const graph::Call& call, const Env& env,
                     const Dims& dims) {
    std::vector<Ref<graph::Var>> params;
    std::vector<Datum> inputs;
    const std::function<Value(const Value&)> parameter = [&](const Value& arg) -> Value {
      if (const auto* tuple = arg.as<graph::Tuple>()) {
        std::vector<Value> items;
        for (const Value& item : tuple->values) items.push_back(parameter(item));
        return make<graph::Tuple>(std::move(items));
      }
      if (!arg || arg.as<graph::StringValue>() || arg.as<graph::FuncRef>()) return arg;
      Datum datum = evaluate_value(module, arg, env, dims);
      return value_with_params(datum, params, inputs);
    };
    std::vector<Value> args;
    for (const Value& arg : call.args) args.push_back(parameter(arg));
    auto concrete = downcast<graph::Call>(
        substitute(make<graph::Call>(call.op, args, call.attrs, call.type_args, call.origin),
                   substitution_of(dims)));
    if (depends_on_values(*concrete)) {
      for (Value& arg : args)
        for (size_t i = 0; i < params.size(); ++i)
          if (arg.same_as(params[i]) && inputs[i].kind == Datum::Kind::kTensor &&
              inputs[i].tensor->dtype.is_integer())
            arg = make<graph::Constant>(inputs[i].tensor);
      concrete = downcast<graph::Call>(
          substitute(make<graph::Call>(call.op, args, call.attrs, call.type_args, call.origin),
                     substitution_of(dims)));
    }
    const auto wrapper = make<graph::Function>(
        params, make<graph::SeqExpr>(std::vector<Ref<graph::BindingBlock>>{}, concrete));
    auto& known = operators_[wrapper];
    if (!known) {
      known = std::make_unique<Lowered>();
      graph::BlockBuilder builder(known->module);
      builder.begin_function(params);
      builder.set_origin(call.origin);
      const Value result = builder.emit(call.op->lower(builder, *concrete));
      known->function = builder.end_function(result);
    }
    return call_function(known->module, *known->function, inputs);
  }

  /// A declared operator without a body is what the module's kernel for it computes.
  Datum run_declared(const IRModule& module, const graph::Call& call, const Env& env,
                     const Dims& dims) {
    std::vector<Ref<graph::Var>> params;
    std::vector<Datum> inputs;
    std::vector<Value> args;
    for (const Value& arg : call.args)
      args.push_back(
          arg.as<graph::StringValue>()
              ? arg
              : value_with_params(evaluate_value(module, arg, env, dims), params, inputs));
    const auto concrete =
        make<graph::Call>(call.callee, args, call.attrs, call.type_args, call.origin);
    const auto wrapper = make<graph::Function>(
        params, make<graph::SeqExpr>(std::vector<Ref<graph::BindingBlock>>{}, concrete));
    auto& known = operators_[wrapper];
    if (!known) {
      known = std::make_unique<Lowered>();
      known->module = module;
      const graph::KernelTable table(module, graph::UserPlacement::of(module).nodes);
      graph::BlockBuilder builder(known->module);
      builder.begin_function(params);
      builder.set_origin(call.origin);
      const auto result = table.use(builder, *concrete);
      if (!result)
        throw CompileError(kNoKernel, call.origin, "no kernel takes this call: {}",
                           table.nearest_refusal(module, *concrete));
      known->function = builder.end_function(*result);
    }
    return call_function(known->module, *known->function, inputs);
  }

  static Value value_with_params(const Datum& datum, std::vector<Ref<graph::Var>>& params,
                                 std::vector<Datum>& inputs) {
    switch (datum.kind) {
      case Datum::Kind::kTensor: {
        const auto param =
            make<graph::Var>(fmt::format("x{}", params.size()),
                             graph::TensorType::of(datum.tensor->shape, datum.tensor->dtype));
        params.push_back(param);
        inputs.push_back(datum);
        return param;
      }
      case Datum::Kind::kTuple: {
        std::vector<Value> items;
        for (const Datum& item : datum.items)
          items.push_back(value_with_params(item, params, inputs));
        return make<graph::Tuple>(std::move(items));
      }
      case Datum::Kind::kShape: return make<graph::ShapeExpr>(to_exprs(datum.shape));
      case Datum::Kind::kScalar:
        return make<graph::PrimValue>(datum.dtype.is_float() ? imm(datum.dtype, datum.scalar.f)
                                                             : imm(datum.dtype, datum.scalar.i));
      case Datum::Kind::kNothing: break;
    }
    unreachable("a value of no kind");
  }

  Datum call_tir(const IRModule& module, const graph::Call& call, const Env& env,
                 const Dims& dims) {
    const auto* ref = call.args.at(0).as<graph::FuncRef>();
    const auto function = ref ? module.find<tir::PrimFunc>(ref->name) : nullptr;
    if (!function)
      throw CompileError(kUnknownCallee, call.origin,
                         "R.call_tir of `{}`, which is no PrimFunc of the module",
                         ref ? ref->name : "a value");
    const Datum args = evaluate_value(module, call.args.at(1), env, dims);
    std::vector<View> views;
    for (const Datum& arg : args.items) {
      if (arg.kind != Datum::Kind::kTensor)
        throw CompileError(kUnsupported, call.origin, "an argument of R.call_tir is no tensor");
      views.push_back(view_of(*arg.tensor));
    }
    const std::vector<graph::Type> types = graph::output_types(call);
    const std::vector<size_t> places = graph::in_place_indices(call, types.size(), views.size());
    std::vector<size_t> outputs_at;
    for (size_t i = 0; i < types.size(); ++i) {
      const auto* tensor = types[i].as<graph::TensorType>();
      if (!tensor || !tensor->shape)
        throw CompileError(kUnsupported, call.origin,
                           "R.call_tir gives {}; the interpreter needs its shape",
                           graph::str(types[i]));
      // A view has bytes of its own, so that the argument stays what it is.
      outputs_at.push_back(places[i]);
      if (places[i] != graph::ForeignCall::kFresh) continue;
      outputs_at.back() = views.size();
      views.push_back(fresh_view(tensor->dtype, evaluate(*tensor->shape, dims), call.origin));
    }
    std::vector<Slot> scalars;
    if (call.args.size() > 2)
      for (const int64_t value : evaluate_value(module, call.args[2], env, dims).shape)
        scalars.push_back({.i = value});
    functions_.call(module, function, views, scalars, call.origin);
    std::vector<Datum> outputs;
    for (const size_t at : outputs_at)
      outputs.push_back(tensor_datum(data_of(std::move(views[at]))));
    const bool single = call.type_args.size() == 1 && !call.type_args[0].as<graph::TupleType>();
    return single ? outputs[0] : tuple_datum(std::move(outputs));
  }

  Datum call_foreign(const IRModule& module, const graph::Call& call,
                     const graph::ForeignCall& foreign, const Env& env, const Dims& dims) {
    const std::vector<Value>& values = foreign.arguments;
    const std::vector<graph::Type>& types = foreign.outputs;
    const auto declared = graph::declared_callee(module, call);
    const Ref<tir::ExternFunction> function =
        declared ? ref_to(declared->external())
                 : graph::derived_function(graph::symbol_of(module, call), foreign, call.origin);
    using From = graph::ExternSlot::From;
    const std::vector<graph::ExternSlot> slots = graph::extern_slots(*function, foreign.form);
    const std::vector<size_t> fresh = foreign.fresh_outputs();
    std::vector<View> views(slots.size());
    std::vector<Slot> numbers(slots.size());
    std::vector<Datum> outputs(types.size());
    Dims bound;  // dimensions of the library function
    const auto bind = [&](size_t i) {
      const Ref<tir::Buffer>& buffer = function->buffers[i];
      if (!buffer) return;
      for (size_t d = 0; d < buffer->ndim() && d < views[i].shape.size(); ++d)
        if (buffer->shape[d].as<Var>()) bound.emplace(buffer->shape[d].get(), views[i].shape[d]);
    };
    for (size_t i = 0; i < slots.size(); ++i) {
      const graph::ExternSlot& slot = slots[i];
      const bool missing = (slot.from == From::kOutput && slot.index >= fresh.size()) ||
                           ((slot.from == From::kArgument || slot.from == From::kInPlace) &&
                            slot.index >= values.size());
      if (missing)
        throw CompileError(kBadArgument, call.origin,
                           "library function `{}` is called with too few arguments or outputs",
                           function->symbol);
      if (const auto* text = slot.from == From::kArgument
                                 ? values[slot.index].as<graph::StringValue>()
                                 : nullptr) {
        numbers[i].i = reinterpret_cast<int64_t>(text->value.c_str());
      } else if (slot.from == From::kArgument || slot.from == From::kInPlace) {
        const Datum datum = evaluate_value(module, values[slot.index], env, dims);
        if (function->buffers[i])
          views[i] = view_of(*datum.tensor);
        else
          numbers[i] = datum.scalar;
        // Sizes of scratch may name scalars.
        if (!function->buffers[i] && !function->params[i]->dtype.is_float())
          bound.emplace(function->params[i].get(), numbers[i].i);
      } else if (slot.from == From::kOutput) {
        const graph::Type& type = types[fresh[slot.index]];
        const auto* tensor = type.as<graph::TensorType>();
        if (!tensor || !tensor->shape)
          throw CompileError(kUnsupported, call.origin,
                             "a call of `{}` gives {}; the interpreter needs its shape",
                             function->symbol, graph::str(type));
        views[i] = fresh_view(tensor->dtype, evaluate(*tensor->shape, dims), call.origin);
      }
      bind(i);
    }
    // A reference body computes in its own memory: only the library knows what it would ask for.
    Dims known = bound;
    for (size_t i = 0; i < slots.size(); ++i)
      if (!function->buffers[i]) known.emplace(function->params[i].get(), numbers[i].i);
    for (const tir::ScratchQuery& query : tir::scratch_queries(*function))
      if (const Var* extent = query.extent(*function))
        bound.emplace(extent,
                      function->body ? 0 : evaluate(query.bytes({}), known, functions_.ask()));
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].from == From::kDimension) numbers[i].i = bound.at(function->params[i].get());
      if (slots[i].from == From::kScratch)
        views[i] = fresh_view(function->buffers[i]->dtype,
                              evaluate(function->buffers[i]->shape, bound), call.origin);
    }
    std::vector<View> buffers;
    std::vector<Slot> scalars;
    for (size_t i = 0; i < slots.size(); ++i) {
      if (function->buffers[i])
        buffers.push_back(views[i]);
      else
        scalars.push_back(numbers[i]);
    }
    functions_.call(module, function, buffers, scalars, call.origin);
    for (size_t i = 0; i < slots.size(); ++i)
      if (slots[i].from == From::kOutput)
        outputs[fresh[slots[i].index]] = tensor_datum(data_of(std::move(views[i])));
      else if (slots[i].from == From::kInPlace)
        for (size_t output = 0; output < foreign.in_place.size(); ++output)
          if (foreign.in_place[output] == slots[i].index)
            outputs[output] = tensor_datum(data_of(std::move(views[i])));
    const bool single = call.type_args.size() == 1 && !call.type_args[0].as<graph::TupleType>();
    return single && outputs.size() == 1 ? outputs[0] : tuple_datum(std::move(outputs));
  }

  struct Lowered {
    IRModule module;
    Ref<graph::Function> function;
  };

  IRModule module_;
  FunctionRunner functions_;
  std::unordered_map<NodePtr, std::unique_ptr<Lowered>, StructuralHash, StructuralEqual> operators_;
};

Interpreter::Interpreter(const IRModule& module, Options options)
    : impl_(std::make_unique<Impl>(module, options)) {}
Interpreter::~Interpreter() = default;

std::vector<Ref<TensorData>> Interpreter::run_main(const std::vector<Ref<TensorData>>& inputs) {
  return impl_->run_main(inputs);
}
std::vector<Ref<TensorData>> Interpreter::run_prim_func(const std::string& name,
                                                        const std::vector<Ref<TensorData>>& buffers,
                                                        const std::vector<double>& scalars) {
  return impl_->run_prim_func(name, buffers, scalars);
}
int64_t Interpreter::steps_used() const { return impl_->functions().steps_used(); }
Origin Interpreter::last_writer(size_t buffer, int64_t element) const {
  return impl_->functions().last_writer(buffer, element);
}
std::optional<graph::Value> Interpreter::evaluate_call(const Ref<graph::Call>& call) {
  return impl_->evaluate_call(call);
}

}  // namespace tenon::interp
