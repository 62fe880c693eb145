// Calls of a library by name: each composite becomes a call of the C function that it is named
// after.

#include <algorithm>
#include <numeric>
#include <set>

#include "tenon/graph/backend.h"
#include "tenon/graph/builder.h"
#include "tenon/graph/extern_call.h"
#include "tenon/graph/infer.h"
#include "tenon/graph/shape.h"
#include "tenon/graph/transforms.h"

namespace tenon::graph {

namespace {

using tir::Buffer;
using tir::ExternFunction;
using tir::PrimFunc;

std::string c_name(const std::string& composite) {
  std::string name;
  for (const char c : composite) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += letter ? c : '_';
  }
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name = "_" + name;
  return name;
}

std::vector<Type> results_of(const Function& function, const IRModule& module) {
  const Type result = function.result ? function.result : type_of(function.body->body, module);
  if (const auto* tuple = result.as<TupleType>()) return tuple->types;
  return {result};
}

/// The composite as one PrimFunc, or null where it cannot be: its operators legalised and composed.
Ref<PrimFunc> reference_of(const Function& composite) {
  try {
    auto* group = new Function(composite);
    group->attrs = {{"Primitive", true}};
    group->is_private = true;
    IRModule alone;
    alone.set("reference", Ref<Function>(group));
    alone = legalize_ops(std::move(alone));
    alone = eliminate_common_subexpr(std::move(alone));
    return fuse_tir(std::move(alone)).find<PrimFunc>("reference");
  } catch (const CompileError&) {
    return {};  // run by the library only
  }
}

/// `derived` with `reference` as its body, in terms of its own parameters.
Ref<ExternFunction> with_reference(const Ref<ExternFunction>& derived,
                                   const Ref<PrimFunc>& reference) {
  if (!reference || reference->params.size() != derived->params.size()) return derived;
  const Ref<PrimFunc> copy = renew_definitions(reference);
  Substitution values;
  for (size_t i = 0; i < copy->params.size(); ++i) {
    const Ref<Buffer>&from = copy->buffers[i], &to = derived->buffers[i];
    if (!from || !to || from->ndim() != to->ndim() || from->dtype != to->dtype) return derived;
    for (size_t d = 0; d < from->ndim(); ++d)
      if (from->shape[d].as<tenon::Var>()) values.emplace(from->shape[d].get(), to->shape[d]);
    values.emplace(from.get(), to);
    values.emplace(from->data.get(), to->data);
  }
  auto* out = new ExternFunction(*derived);
  out->body = substitute(copy->body, values);
  finish_node(*out);
  return Ref<ExternFunction>(out);
}

std::string shape_text(const Type& type) {
  const auto* tensor = type.as<TensorType>();
  return tensor && tensor->shape ? tenon::str(*tensor->shape) : str(type);
}

/// Matches a composite with a declared signature.
class Matcher {
 public:
  Matcher(const Function& composite, std::string backend, const ExternFunction& declared,
          std::vector<Type> results)
      : composite_(composite),
        backend_(std::move(backend)),
        declared_(declared),
        results_(std::move(results)) {}

  /// For each argument that the function takes, the composite's input that it is.
  std::vector<size_t> run() {
    const std::vector<ExternSlot> slots = extern_slots(declared_);
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].from == ExternSlot::From::kOutput) outputs_.push_back(i);
      if (slots[i].from != ExternSlot::From::kArgument) continue;
      if (!declared_.buffers[i])
        throw fault(
            fmt::format("scalar parameter `{}` is no dimension of a buffer, so nothing "
                        "gives its value",
                        declared_.params[i]->name));
      inputs_.push_back(i);
    }
    const size_t inputs = composite_.params.size();
    if (inputs_.size() != inputs || outputs_.size() != results_.size())
      throw fault(
          fmt::format("it takes {} tensors and gives {}; the composite has {} inputs and {} "
                      "outputs",
                      inputs_.size(), outputs_.size(), inputs, results_.size()));
    std::vector<size_t> order(inputs);
    std::iota(order.begin(), order.end(), size_t{0});
    if (declared_.attrs.contains("inputs")) {
      order = stated_order(inputs);
      if (const std::string why = misfit(order); !why.empty()) throw fault(why);
      return order;
    }
    const std::string why = misfit(order);
    if (why.empty()) return order;
    // Would another order fit? Then say which.
    constexpr size_t kMostInputs = 7;
    std::vector<size_t> other = order;
    while (inputs <= kMostInputs && std::next_permutation(other.begin(), other.end()))
      if (misfit(other).empty()) {
        std::string text;
        for (const size_t index : other) text += (text.empty() ? "" : ", ") + std::to_string(index);
        throw fault(why +
                    fmt::format("; its inputs fit in the order [{}]: state that in the "
                                "function's attributes, \"inputs\": [{}], or change the order "
                                "of its parameters",
                                text, text));
      }
    throw fault(why);
  }

 private:
  CompileError fault(const std::string& why) const {
    std::string shapes;
    for (const Ref<Var>& param : composite_.params)
      shapes += (shapes.empty() ? "" : ", ") + param->name + " " + shape_text(param->type);
    CompileError error(kSignatureMismatch, composite_.origin,
                       "composite `{}.{}` does not fit library function `{}`: {}", backend_,
                       composite_name(composite_), declared_.symbol, why);
    return error.note(declared_.origin, "the function is `{}`; the composite's inputs are {}",
                      declared_.prototype(), shapes);
  }

  std::vector<size_t> stated_order(size_t inputs) const {
    const auto stated = declared_.attrs.ints("inputs");
    std::vector<size_t> order;
    std::set<int64_t> seen;
    if (stated)
      for (const int64_t index : *stated)
        if (index >= 0 && index < static_cast<int64_t>(inputs) && seen.insert(index).second)
          order.push_back(static_cast<size_t>(index));
    if (order.size() != inputs)
      throw fault(
          fmt::format("its attribute `inputs` is {}; expected each of the numbers 0 to {} "
                      "once",
                      declared_.attrs.find("inputs")->str(), inputs - 1));
    return order;
  }

  // Why the function's parameters are not these inputs and the outputs; empty where they are.
  std::string misfit(const std::vector<size_t>& order) const {
    Substitution bound;
    for (size_t k = 0; k < order.size(); ++k)
      if (std::string why = fit(inputs_[k], composite_.params[order[k]]->type,
                                "input `" + composite_.params[order[k]]->name + "`", bound);
          !why.empty())
        return why;
    for (size_t k = 0; k < outputs_.size(); ++k)
      if (std::string why = fit(outputs_[k], results_[k], "the output", bound); !why.empty())
        return why;
    return "";
  }

  std::string fit(size_t param, const Type& type, const std::string& what,
                  Substitution& bound) const {
    const Buffer& buffer = *declared_.buffers[param];
    const auto* tensor = type.as<TensorType>();
    const auto differs = [&] {
      return fmt::format("parameter `{}` is {} of shape {}, {} is {} of shape {}", buffer.name,
                         buffer.dtype.str(), tenon::str(buffer.shape), what,
                         tensor ? tensor->dtype.str() : "a value", shape_text(type));
    };
    if (!tensor || !tensor->shape || tensor->dtype != buffer.dtype ||
        tensor->shape->size() != buffer.ndim())
      return differs();
    for (size_t d = 0; d < buffer.ndim(); ++d) {
      const Expr& given = (*tensor->shape)[d];
      const auto* var = buffer.shape[d].as<tenon::Var>();
      if (var && bound.emplace(var, tenon::cast(var->dtype, given)).second) continue;
      const auto wanted = as_int(substitute(buffer.shape[d], bound)), is = as_int(given);
      if (wanted && is && *wanted != *is) {
        std::string text = differs();
        if (var) text += fmt::format(" (`{}` is {} already)", var->name, *wanted);
        return text;
      }
    }
    return "";
  }

  const Function& composite_;
  std::string backend_;
  const ExternFunction& declared_;
  std::vector<Type> results_;
  std::vector<size_t> inputs_, outputs_;  // parameters of the function
};

IRModule lower_by_name(IRModule module, const std::string& name, const std::string& backend) {
  const Ref<Function> composite = module.find<Function>(name);
  const std::string symbol = c_name(composite_name(*composite));
  const std::vector<Type> results = results_of(*composite, module);
  std::vector<Value> inputs(composite->params.begin(), composite->params.end());
  std::string callee;
  std::vector<Value> arguments = inputs;
  for (const auto& [other, function] : module.functions()) {
    const auto declared = cast<ExternFunction>(function);
    if (!declared || declared->symbol != symbol || declared->attrs.flag("derived")) continue;
    const std::vector<size_t> order = Matcher(*composite, backend, *declared, results).run();
    for (size_t k = 0; k < order.size(); ++k) arguments[k] = inputs[order[k]];
    callee = other;
    break;
  }
  if (callee.empty()) {
    const auto derived = derived_function(symbol, inputs, results, composite->origin);
    callee = add_extern_function(module, with_reference(derived, reference_of(*composite)));
  }
  // The composite with the call as its body; lowering it allocates scratch and finds dimensions.
  const Type result =
      results.size() == 1 ? results[0] : Type(make<TupleType>(std::vector<Type>(results)));
  const auto output = make<Var>("output", result);
  const auto call = make<Call>(find_op("call_dps_packed"),
                               std::vector<Value>{make<FuncRef>(callee), make<Tuple>(arguments)},
                               Attrs(), std::vector<Type>{result}, composite->origin);
  const auto block = make<BindingBlock>(
      std::vector<Ref<Binding>>{make<Binding>(output, call, Type(), composite->origin)}, false);
  const auto body = make<SeqExpr>(std::vector<Ref<BindingBlock>>{block}, output);
  const auto caller =
      make<Function>(composite->params, body, result, Attrs(), true, composite->origin);
  const Ref<PrimFunc> lowered = lower_function(module, *caller);
  module.set(name, lowered->with_attr("tenon.inline", true));
  return module;
}

}  // namespace

Backend call_by_name(const std::string& name) {
  Backend backend;
  backend.name = name;
  backend.unit = Backend::Unit::kComposite;
  backend.lower = [name](IRModule module, const std::string& function, const BackendContext&) {
    return lower_by_name(std::move(module), function, name);
  };
  return backend;
}

}  // namespace tenon::graph
