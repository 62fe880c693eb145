// SPDX-License-Identifier: Apache-2.0
// Calls of a library by name: each composite becomes a call of the C function that it is named
// after.

#include <algorithm>
#include <numeric>
#include <set>

#include "tenon/graph/arithmetic.h"
#include "tenon/graph/backend.h"
#include "tenon/graph/builder.h"
#include "tenon/graph/extern_call.h"
#include "tenon/graph/infer.h"
#include "tenon/graph/operator_attributes.h"
#include "tenon/graph/shape.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/library_call.h"
#include "tenon/graph/transforms/signature_arguments.h"
#include "tenon/graph/transforms/unit_operators.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/call_body.h"
#include "tenon/tir/call_transforms.h"

namespace tenon::graph {

namespace {

using tir::Buffer;
using tir::BufferRegion;
using tir::ExternFunction;
using tir::PrimFunc;

std::vector<Type> results_of(const Function& function, const IRModule& module) {
  const Type result = function.result ? function.result : type_of(function.body->body, module);
  if (const auto* tuple = result.as<TupleType>()) return tuple->types;
  return {result};
}

// Calls of kernels alone, on tensors and single numbers, with one result: what composing takes.
bool is_chain_of_kernels(const Function& function) {
  bool simple = static_cast<bool>(function.body->body.as<Var>());
  bool binds_result = false;
  for (const Ref<BindingBlock>& block : function.body->blocks)
    for (const Ref<Binding>& binding : block->bindings) {
      const auto* call = binding->value.as<Call>();
      const auto* tensor = binding->var->type.as<TensorType>();
      if (!call || binding->match || !call->is("call_tir") || !tensor || !tensor->shape)
        return false;
      binds_result |= binding->var.same_as(function.body->body);
      for (const Value& item : call->args.at(1).as<Tuple>()->values) {
        const auto* constant = item.as<Constant>();
        simple &= item.as<Var>() || (constant && constant->data->elements() == 1);
      }
    }
  return simple && binds_result;
}

/// The composite as one PrimFunc, or null where it cannot be: its operators legalised and composed.
Ref<PrimFunc> reference_of(const IRModule& module, const Function& composite) {
  try {
    const std::string name = "reference";
    const Ref<Function> group = with(composite, [](Function& copy) {
      copy.attrs = {};
      copy.is_private = false;
    });
    IRModule alone;
    // After legalising it calls PrimFuncs of the module.
    walk<FuncRef>(composite.body, [&](const FuncRef& ref) {
      if (const auto kernel = module.find<PrimFunc>(ref.name)) alone.set(ref.name, kernel);
    });
    alone.set(name, group);
    alone = eliminate_common_subexpr(legalize_ops(std::move(alone)));
    const Ref<Function> function = alone.find<Function>(name);
    if (is_chain_of_kernels(*function)) {
      alone.set(name, with(function, [](Function& copy) {
                  copy.attrs = {{"Primitive", true}};
                  copy.is_private = true;
                }));
      return fuse_tir(std::move(alone)).find<PrimFunc>(name);
    }
    alone.set(name, lower_function(alone, *function));
    return tir::inline_calls(std::move(alone), true).find<PrimFunc>(name);
  } catch (const CompileError&) {
    return {};  // run by the library only
  }
}

/// `derived` with `reference` as its body, in terms of its own parameters.
Ref<ExternFunction> with_reference(const Ref<ExternFunction>& derived,
                                   const Ref<PrimFunc>& reference) {
  if (!reference || reference->params.size() != derived->params.size()) return derived;
  std::vector<NodePtr> args;
  for (size_t i = 0; i < reference->params.size(); ++i) {
    const Ref<Buffer>&from = reference->buffers[i], &to = derived->buffers[i];
    if (!from || !to || from->ndim() != to->ndim() || from->dtype != to->dtype) return derived;
    args.push_back(BufferRegion::whole(to));
  }
  return with(derived,
              [&](ExternFunction& made) { made.body = tir::body_in_place(reference, args); });
}

std::string shape_text(const Type& type) {
  const auto* tensor = type.as<TensorType>();
  return tensor && tensor->shape ? tenon::str(*tensor->shape) : str(type);
}

/// The constants that the composite's pattern captured, by name.
const AttrValue::Map& captured_constants(const Function& composite) {
  static const AttrValue::Map kNothing;
  const AttrValue* value = composite.attrs.find("constants");
  const auto* map = value ? value->as<AttrValue::Map>() : nullptr;
  return map ? *map : kNothing;
}

/// Null where `value` is no number that the dtype has.
Value as_constant(const AttrValue& value, DType dtype) {
  if (const auto* integer = value.as<int64_t>())
    return make<PrimValue>(dtype.is_float() ? imm(dtype, static_cast<double>(*integer))
                                            : imm(dtype, *integer));
  if (const auto* real = value.as<double>(); real && dtype.is_float())
    return make<PrimValue>(imm(dtype, *real));
  return {};
}

/// Matches a composite with a declared signature.
class SignatureMatcher {
 public:
  SignatureMatcher(const IRModule& module, const Function& composite, std::string backend,
                   const ExternFunction& declared, std::vector<Type> results)
      : module_(module),
        composite_(composite),
        backend_(std::move(backend)),
        declared_(declared),
        results_(std::move(results)) {
    check_signature(declared);
    find_order();
  }

  std::vector<LibraryCall::Argument> arguments() const {
    const SignatureArguments scalars = this->scalars();
    std::vector<LibraryCall::Argument> arguments;
    size_t next = 0;
    for (const size_t param : arguments_)
      arguments.push_back(declared_.buffers[param] ? LibraryCall::Argument{order_[next++], {}}
                                                   : LibraryCall::Argument{0, scalars.of(param)});
    return arguments;
  }

  /// Seconds that the signature declares.
  std::optional<double> cost() const {
    const AttrValue* cost = declared_.attrs.find("cost");
    if (!cost) return std::nullopt;
    if (const auto* whole = cost->as<int64_t>()) return static_cast<double>(*whole);
    if (const auto* real = cost->as<double>()) return *real;
    double flop = 0, bytes = 0;
    for (const Binding* binding : operator_bindings(composite_))
      flop +=
          2 *
          macs_of(*binding->value.as<Call>(), binding->var->type, SymbolicDims::kAsOne).value_or(0);
    for (const Ref<Var>& param : composite_.params) bytes += bytes_of(param->type);
    for (const Type& result : results_) bytes += bytes_of(result);
    const Expr seconds =
        scalars().evaluate(*cost->as<std::string>(), "`cost`",
                           {{"flop", imm(kFloat64, flop)}, {"bytes", imm(kFloat64, bytes)}});
    return as_float(seconds);  // nothing: it depends on a size that is not known
  }

 private:
  SignatureArguments scalars() const {
    return SignatureArguments(module_, composite_, declared_, dims_);
  }

  /// For each tensor that the function takes, the composite's input that it is.
  void find_order() {
    const std::vector<ExternSlot> slots = extern_slots(declared_);
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].from == ExternSlot::From::kOutput) outputs_.push_back(i);
      if (slots[i].from != ExternSlot::From::kArgument) continue;
      arguments_.push_back(i);
      if (declared_.buffers[i]) inputs_.push_back(i);
    }
    const size_t inputs = composite_.params.size();
    if (inputs_.size() != inputs || outputs_.size() != results_.size())
      throw fault(fmt::format(
          "it takes {} tensors and gives {}; the composite has {} inputs and {} "
          "outputs{}",
          inputs_.size(), outputs_.size(), inputs, results_.size(), hint_of_constants()));
    order_ = order_of_inputs();
    (void)misfit(order_, &dims_);
  }

  /// How constants that stand in the composite become inputs, where so many are missing.
  std::string hint_of_constants() const {
    size_t constants = 0;
    for (const Binding* binding : operator_bindings(composite_))
      for (const Value& argument : binding->value.as<Call>()->args)
        constants += argument.as<Constant>() && !argument.as<Constant>()->data->shape.empty();
    const size_t inputs = composite_.params.size();
    if (inputs_.size() <= inputs || inputs_.size() > inputs + constants) return "";
    return fmt::format(
        ", and {} constant{} inside, which `bind_constants = False` in the pattern's file makes "
        "inputs",
        constants, constants == 1 ? "" : "s");
  }

  std::vector<size_t> order_of_inputs() const {
    const size_t inputs = composite_.params.size();
    std::vector<size_t> order(inputs);
    std::iota(order.begin(), order.end(), size_t{0});
    if (declared_.attrs.contains("inputs")) {
      order = stated_order(inputs);
      if (const std::string why = misfit(order); !why.empty()) throw fault(why);
      return order;
    }
    if (const auto named = named_order()) {
      if (const std::string why = misfit(*named); !why.empty())
        throw fault(
            why + "; the pattern's names, which the function's parameters have too, say the order");
      return *named;
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

  /// By the names that the pattern has for its operands, where the function's inputs are the same.
  std::optional<std::vector<size_t>> named_order() const {
    const auto names = composite_.attrs.strings(kOperandNames);
    if (!names || names->size() != inputs_.size()) return std::nullopt;
    std::vector<size_t> order;
    for (const size_t param : inputs_) {
      const auto found = std::ranges::find(*names, declared_.buffers[param]->name);
      if (found == names->end()) return std::nullopt;
      order.push_back(static_cast<size_t>(found - names->begin()));
    }
    return order;
  }

  CompileError fault(const std::string& why) const {
    std::string shapes;
    for (const Ref<Var>& param : composite_.params)
      shapes += (shapes.empty() ? "" : ", ") + param->name + " " + shape_text(param->type);
    CompileError error(kSignatureMismatch, composite_.origin,
                       "{} does not fit library function `{}`: {}",
                       composite_.attrs.contains("Composite")
                           ? fmt::format("composite `{}.{}`", backend_, composite_name(composite_))
                           : "the function",
                       declared_.symbol, why);
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
  std::string misfit(const std::vector<size_t>& order, Substitution* dims = nullptr) const {
    Substitution bound;
    for (size_t k = 0; k < order.size(); ++k)
      if (std::string why = fit(inputs_[k], composite_.params[order[k]]->type,
                                "input `" + composite_.params[order[k]]->name + "`", bound);
          !why.empty())
        return why;
    for (size_t k = 0; k < outputs_.size(); ++k)
      if (std::string why = fit(outputs_[k], results_[k], "the output", bound); !why.empty())
        return why;
    if (dims) *dims = std::move(bound);
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

  const IRModule& module_;
  const Function& composite_;
  std::string backend_;
  const ExternFunction& declared_;
  std::vector<Type> results_;
  std::vector<size_t> arguments_, inputs_, outputs_;  // parameters of the function
  std::vector<size_t> order_;                         // for each input, the composite's
  Substitution dims_;  // what the function's dimensions are, in terms of the composite's
};

/// Where the operators of a composite came from, in their order, where a network names them (nodes
/// of ONNX, spans of Relay); else the place of the composite.
Origin origin_of_operators(const Function& composite) {
  std::vector<Origin> named;
  walk<Call>(composite.body, [&](const Call& call) {
    if (call.op && call.origin && call.origin->kind != OriginInfo::Kind::kScript)
      named.push_back(call.origin);
  });
  return named.empty() ? composite.origin : Origin::merge(named);
}

/// Bytes of the buffers that a call allocates; a symbolic dimension counts as 1.
double scratch_bytes(const PrimFunc& call) {
  double bytes = 0;
  walk<tir::AllocBuffer>(call.body, [&](const tir::AllocBuffer& alloc) {
    double size = static_cast<double>(alloc.buffer->dtype.bytes());
    for (const Expr& dim : alloc.buffer->shape)
      size *= static_cast<double>(as_int(dim).value_or(1));
    bytes += size;
  });
  return bytes;
}

IRModule lower_by_name(IRModule module, const std::string& name, const std::string& backend) {
  const Ref<Function> composite = module.find<Function>(name);
  const std::vector<Type> results = results_of(*composite, module);
  const LibraryCall target =
      library_call_of(module, *composite, backend, backend + "." + composite_name(*composite));
  const std::vector<Value> arguments =
      target.arguments_of({composite->params.begin(), composite->params.end()});
  const std::string& callee = target.callee;
  // The composite with the call as its body; lowering it allocates scratch and finds dimensions.
  const Type result =
      results.size() == 1 ? results[0] : Type(make<TupleType>(std::vector<Type>(results)));
  const auto output = make<Var>("output", result);
  const Origin origin = origin_of_operators(*composite);
  const auto call = make<Call>(find_op("call_dps_packed"),
                               std::vector<Value>{make<FuncRef>(callee), make<Tuple>(arguments)},
                               Attrs(), std::vector<Type>{result}, origin);
  const auto block = make<BindingBlock>(
      std::vector<Ref<Binding>>{make<Binding>(output, call, Type(), origin)}, false);
  const auto body = make<SeqExpr>(std::vector<Ref<BindingBlock>>{block}, output);
  const auto caller =
      make<Function>(composite->params, body, result, Attrs(), true, composite->origin);
  const Ref<PrimFunc> lowered = lower_function(module, *caller);
  if (const double bytes = scratch_bytes(*lowered); bytes > 0)
    record_scratch(name, backend, static_cast<int64_t>(bytes), composite->origin);
  module.set(name, lowered->with_attr("tenon.inline", true));
  return module;
}

}  // namespace

std::string c_symbol(const std::string& composite) {
  std::string name;
  for (const char c : composite) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += letter ? c : '_';
  }
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name = "_" + name;
  return name;
}

std::optional<Signature> signature_for(const IRModule& module, const std::string& composite) {
  const size_t dot = composite.find('.');
  const std::string name =
      c_symbol(dot == std::string::npos ? composite : composite.substr(dot + 1));
  const auto find = [&](const auto& is_it) -> std::optional<Signature> {
    for (const auto& [other, function] : module.functions()) {
      const auto declared = cast<ExternFunction>(function);
      if (!declared || declared->attrs.flag("derived")) continue;
      if (is_it(other, *declared)) return Signature{other, declared};
    }
    return std::nullopt;
  };
  const auto stated = [](const ExternFunction& declared) {
    return declared.attrs.get<std::string>("composite").value_or("");
  };
  if (auto found = find([&](const std::string&, const ExternFunction& declared) {
        return stated(declared) == composite;
      }))
    return found;
  if (auto found = find([&](const std::string& other, const ExternFunction& declared) {
        const std::string given = stated(declared);
        return given.empty() ? other == name : c_symbol(given) == name;
      }))
    return found;
  return find([&](const std::string&, const ExternFunction& declared) {
    return stated(declared).empty() && declared.symbol == name;
  });
}

std::optional<double> signature_cost(const IRModule& module, const Function& composite,
                                     const ExternFunction& declared) {
  return SignatureMatcher(module, composite, backend_of(composite), declared,
                          results_of(composite, module))
      .cost();
}

LibraryCall library_call_of(IRModule& module, const Function& composite, const std::string& backend,
                            const std::string& name) {
  const std::vector<Type> results = results_of(composite, module);
  if (const auto found = signature_for(module, name))
    return {found->name,
            SignatureMatcher(module, composite, backend, *found->function, results).arguments(),
            composite.params};
  const std::string symbol = c_symbol(name.substr(name.find('.') + 1));
  std::vector<Value> values(composite.params.begin(), composite.params.end());
  std::vector<LibraryCall::Argument> arguments(values.size());
  for (size_t i = 0; i < values.size(); ++i) arguments[i].input = i;
  for (const auto& [constant_name, captured] : captured_constants(composite)) {
    const Value constant = as_constant(captured, captured.as<double>() ? kFloat64 : kInt64);
    values.push_back(constant);
    arguments.push_back({0, constant});
  }
  const auto derived =
      derived_function(symbol, {.arguments = values, .outputs = results}, composite.origin);
  // A reference has the captured constants in it, and the function is called with others too.
  const auto reference =
      captured_constants(composite).empty() ? reference_of(module, composite) : nullptr;
  return {add_extern_function(module, with_reference(derived, reference)), arguments,
          composite.params};
}

std::vector<Value> LibraryCall::arguments_of(const std::vector<Value>& inputs) const {
  // Dimensions of the composite, as they are here.
  Substitution dims;
  for (size_t k = 0; k < params.size() && k < inputs.size(); ++k) {
    const auto* declared = params[k]->type.as<TensorType>();
    const Type given_type = type_of(inputs[k]);
    const auto* given = given_type.as<TensorType>();
    if (!declared || !given || !declared->shape || !given->shape) continue;
    for (size_t d = 0; d < declared->shape->size() && d < given->shape->size(); ++d)
      if (const auto* var = (*declared->shape)[d].as<tenon::Var>())
        dims.emplace(var, (*given->shape)[d]);
  }
  std::vector<Value> out;
  for (const Argument& argument : arguments) {
    const auto* scalar = argument.constant ? argument.constant.as<PrimValue>() : nullptr;
    if (scalar && !dims.empty())
      out.push_back(make<PrimValue>(substitute(scalar->value, dims)));
    else
      out.push_back(argument.constant ? argument.constant : inputs.at(argument.input));
  }
  return out;
}

static std::optional<Signature> signature_of(const PatternCheck& check) {
  return signature_for(check.module,
                       check.composite->attrs.get<std::string>("Composite").value_or(""));
}

Verdict fits_signature(const PatternCheck& check) {
  const Function& composite = *check.composite;
  const auto declared = signature_of(check);
  if (!declared) return {};
  try {
    (void)SignatureMatcher(check.module, composite, backend_of(composite), *declared->function,
                           results_of(composite, check.module))
        .arguments();
    return {};
  } catch (const CompileError& error) {
    if (error.first().code.id != kSignatureMismatch.id) throw;
    const Diagnostic& why = error.first();
    std::string words = why.message;
    for (const Note& note : why.notes) words += "; " + note.message;
    return Verdict::refuse("signature", words);
  }
}

Backend call_by_name(const std::string& name) {
  Backend backend;
  backend.name = name;
  backend.by_name = true;
  backend.unit = Backend::Unit::kComposite;
  backend.cost = [](const PatternCheck& check) -> std::optional<double> {
    const auto declared = signature_of(check);
    if (!declared) return std::nullopt;
    return signature_cost(check.module, *check.composite, *declared->function);
  };
  backend.lower = [name](IRModule module, const std::string& function, const BackendContext&) {
    return lower_by_name(std::move(module), function, name);
  };
  return backend;
}

}  // namespace tenon::graph
