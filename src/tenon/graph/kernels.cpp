// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/kernels.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/arithmetic.h"
#include "tenon/graph/infer.h"
#include "tenon/graph/kernel_checks.h"
#include "tenon/graph/shape.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/kernel_operators.h"
#include "tenon/support/kernel_codes.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/specialize.h"

namespace tenon::graph {

// ---- calls as kernels see them

namespace {

// A scalar, or the numbers of a shape, as an attribute. None where they are no constants.
AttrValue attr_of(const Value& value) {
  const auto scalar = [](const Expr& expr) -> AttrValue {
    if (!expr) return {};
    if (const auto number = as_int(expr))
      return expr->dtype.is_bool() ? AttrValue(*number != 0) : AttrValue(*number);
    if (const auto number = as_float(expr)) return *number;
    return {};
  };
  if (const auto* prim = value.as<PrimValue>()) return scalar(prim->value);
  if (const auto* text = value.as<StringValue>()) return text->value;
  if (const auto* shape = value.as<ShapeExpr>()) {
    const auto numbers = as_ints(shape->values);
    return numbers ? AttrValue(*numbers) : AttrValue();
  }
  const Type type = type_of(value);
  if (const auto* prim = type.as<PrimType>()) return scalar(prim->value);
  if (const auto* shape = type.as<ShapeType>(); shape && shape->values) {
    const auto numbers = as_ints(*shape->values);
    return numbers ? AttrValue(*numbers) : AttrValue();
  }
  return {};
}

bool add_input(OperatorCall& out, const std::string& name, const Value& value) {
  const Type type = type_of(value);
  if (const auto* tensor = type.as<TensorType>()) {
    if (tensor->ndim < 0 || tensor->dtype.is_void()) return false;
    out.inputs.push_back({name, value, ref_to(tensor)});
    return true;
  }
  if (const auto* tuple = type.as<TupleType>()) {
    const auto* items = value.as<Tuple>();
    for (size_t i = 0; i < tuple->types.size(); ++i) {
      const Value item =
          items ? items->values[i] : Value(make<TupleGetItem>(value, static_cast<int64_t>(i)));
      if (!add_input(out, fmt::format("{}[{}]", name, i), item)) return false;
    }
    return true;
  }
  out.attrs.set(name, attr_of(value));
  return true;
}

bool add_outputs(OperatorCall& out, const Type& type) {
  if (const auto* tensor = type.as<TensorType>()) {
    if (tensor->ndim < 0 || tensor->dtype.is_void()) return false;
    out.outputs.push_back(ref_to(tensor));
    return true;
  }
  const auto* tuple = type.as<TupleType>();
  if (!tuple || out.gives_tuple) return false;
  out.gives_tuple = true;
  for (const Type& item : tuple->types)
    if (!item.as<TensorType>() || !add_outputs(out, item)) return false;
  return true;
}

}  // namespace

// Of several operators the one whose structure decides how all of them may be fused with others: a
// contraction or reduction with nothing but elementwise work around it.
static const OpDef* core_of(const Function& function) {
  const OpDef* core = nullptr;
  for (const Binding* binding : operator_bindings(function)) {
    const OpDef* op = binding->value.as<Call>()->op;
    const bool is_light = op->fusion <= FusionKind::kInjective;
    const bool has_heavy = core && core->fusion > FusionKind::kInjective;
    if (is_light && has_heavy) continue;
    if (!is_light && has_heavy) return nullptr;
    core = !core || op->fusion > core->fusion ? op : core;
  }
  return core;
}

std::optional<OperatorCall> function_call(const IRModule& module, const Function& function,
                                          const std::vector<Value>& args) {
  if (function.params.size() != args.size()) return std::nullopt;
  OperatorCall out;
  if (is_node_function(function) || function.attrs.contains("Composite")) {
    out.op = function.attrs.get<std::string>(is_node_function(function) ? "op" : "Composite")
                 .value_or("");
    out.named = OperatorAttributes::of(module, function);
    out.def = core_of(function);
    const auto values = function.attrs.get<AttrValue::Map>("op_values");
    for (const auto& [name, value] : values.value_or(AttrValue::Map())) out.attrs.set(name, value);
  } else if (declares_operator(function)) {
    out.op = *function.attrs.get<std::string>("op");
    out.optional = optional_inputs(function);
    out.left_out = left_out_inputs(function);
  } else {
    return std::nullopt;
  }
  Substitution bound;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!add_input(out, function.params[i]->name, args[i])) return std::nullopt;
    unify(function.params[i]->type, type_of(args[i]), bound);
  }
  if (!add_outputs(out, substitute(function.result, bound))) return std::nullopt;
  if (declares_operator(function)) out.named.add(out.op, out.attrs);
  return out;
}

std::optional<OperatorCall> operator_call(const IRModule& module, const Call& call) {
  if (!call.op) {
    const auto* ref = call.callee.as<FuncRef>();
    const auto function = ref ? module.find<Function>(ref->name) : nullptr;
    return function ? function_call(module, *function, call.args) : std::nullopt;
  }
  if (call.op->traits.calls || call.is("undefined")) return std::nullopt;
  OperatorCall out;
  out.op = call.op->name;
  out.def = call.op;
  out.attrs = call.attrs;
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (!call.args[i]) continue;
    const auto* none = call.args[i].as<Call>();
    if (none && none->is("null_value")) continue;
    const std::string name = call.op->inputs.empty()
                                 ? std::to_string(i)
                                 : call.op->inputs[std::min(i, call.op->inputs.size() - 1)].name;
    if (!add_input(out, name, call.args[i])) return std::nullopt;
  }
  if (!add_outputs(out, type_of(ref_to(&call), module))) return std::nullopt;
  out.named.add(out.op, out.attrs);
  return out;
}

// ---- matching

bool is_described_by(const Target& target, const std::string& word) {
  constexpr std::string_view kBits = "vector_bits>=";
  if (word.starts_with(kBits)) return target.vector_bits >= std::atoi(word.c_str() + kBits.size());
  if (word == "avx512") return target.kind == "llvm" && target.vector_bits >= 512;
  if (word == "avx2") return target.kind == "llvm" && target.vector_bits >= 256;
  if (word == "fma") return target.has_fma;
  return word == target.kind || word == target.cpu ||
         ("," + target.features + ",").find(",+" + word + ",") != std::string::npos;
}

namespace {

// Whether a pinned attribute is the call's: numbers by value, a number for a list whose items all
// are it, axes counted from either end.
bool same_attr(const std::string& name, const AttrValue& pinned, const AttrValue& given,
               int64_t ndim) {
  if (const auto *a = pinned.as<AttrList>(), *b = given.as<AttrList>(); a || b) {
    if (!b) return a->size() == 1 && same_attr(name, a->front(), given, ndim);
    if (a && a->size() != b->size()) return false;
    for (size_t i = 0; i < b->size(); ++i)
      if (!same_attr(name, a ? (*a)[i] : pinned, (*b)[i], ndim)) return false;
    return true;
  }
  const auto x = number_of(pinned), y = number_of(given);
  if (x && y) {
    if (*x == *y) return true;
    const bool is_axis = name == "axis" || name == "axes";
    const auto from_front = [&](double v) { return v < 0 ? v + static_cast<double>(ndim) : v; };
    return is_axis && from_front(*x) == from_front(*y);
  }
  const auto text = [](const AttrValue& value) {
    if (const auto* dtype = value.as<DType>()) return dtype->str();
    const auto* string = value.as<std::string>();
    return string ? *string : value.str();
  };
  return text(pinned) == text(given);
}

// The kernel's dimensions, as the call has them, and the call's attributes.
ExpressionNames condition_names(const tir::PrimFunc& function, const OperatorAttributes& attributes,
                                const Substitution& dims) {
  ExpressionNames names{.values = {}, .attributes = &attributes};
  for (const Ref<tenon::Var>& var : tir::symbolic_vars(function)) {
    const auto bound = dims.find(var.get());
    names.values[var->name] = bound == dims.end() ? Expr(var) : downcast<ExprNode>(bound->second);
  }
  return names;
}

KernelRefusal refused(std::string code, std::string words) {
  return {std::move(code), std::move(words)};
}

// "with m = 20, strides[0] = 2": what the names in a condition are.
std::string values_in(std::string_view text, const ExpressionNames& names) {
  std::string out;
  std::set<std::string> seen;
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  };
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    while (at < text.size() && is_part(text[at])) ++at;
    if (at == begin) {
      ++at;
      continue;
    }
    if (at < text.size() && text[at] == '[') at = std::min(text.find(']', at), text.size() - 1) + 1;
    const std::string name(text.substr(begin, at - begin));
    if (!seen.insert(name).second) continue;
    const auto known = names.values.find(name);
    const Expr value = known != names.values.end() ? known->second : names.attributes->number(name);
    if (!value || str(value) == name) continue;
    out += fmt::format("{}{} = {}", out.empty() ? "with " : ", ", name, str(value));
  }
  return out;
}

std::optional<KernelRefusal> condition_refusal(const tir::PrimFunc& function,
                                               const OperatorAttributes& attributes,
                                               const Substitution& dims) {
  const auto text = function.attrs.get<std::string>("op_when");
  if (!text) return std::nullopt;
  const ExpressionNames names = condition_names(function, attributes, dims);
  Expr condition;
  try {
    condition = arith::simplify(parse_condition(*text, names, function.origin));
  } catch (const CompileError& error) {
    return refused("condition", error.first().message);
  }
  if (is_int(condition, 1) || arith::Analyzer().proves(condition)) return std::nullopt;
  const std::string values = values_in(*text, names);
  return refused("condition", fmt::format("`{}` {}{}{}", *text,
                                          is_int(condition, 0) ? std::string("does not hold")
                                                               : "is not known to hold",
                                          values.empty() ? "" : " ", values));
}

std::optional<KernelRefusal> target_refusal(const AttrValue& wanted, const Target& target) {
  std::vector<std::string> words;
  if (const auto* text = wanted.as<std::string>()) words = {*text};
  if (const auto* list = wanted.as<AttrList>())
    for (const AttrValue& item : *list)
      if (const auto* text = item.as<std::string>()) words.push_back(*text);
  for (const std::string& word : words)
    if (!is_described_by(target, word))
      return refused("target",
                     fmt::format("the target is {}; the kernel needs {}", target.str(), word));
  return std::nullopt;
}

}  // namespace

// The operator, and what it says in words: layouts.
static AttrValue::Map computed_operator(const OperatorCall& call) {
  AttrValue::Map out;
  // A convolution of ONNX without a bias is ours.
  if (call.def && call.op == "ai.onnx::Conv" && call.inputs.size() == 2) {
    for (const char* name : {"data_layout", "kernel_layout"})
      if (const auto layout = call.named.find(name)) out.emplace(name, *layout);
    out.emplace("op", AttrValue(call.def->name));
    return out;
  }
  for (const auto& [name, value] : call.attrs)
    if (value.as<std::string>()) out.emplace(name, value);
  out.insert_or_assign("op", AttrValue(call.op));
  return out;
}

namespace {

// An input or output of the call beside the kernel's buffer for it.
struct Port {
  std::string name;  // as messages say it
  Ref<TensorType> type;
  const tir::Buffer& buffer;
};

// Attributes that the kernel pins, and inputs that it does without.
std::optional<KernelRefusal> attribute_refusal(const tir::PrimFunc& function,
                                               const OperatorCall& call) {
  const int64_t ndim = call.inputs.empty() ? 0 : call.inputs[0].type->ndim;
  const std::vector<std::string> left_out = left_out_by(
      function, call.optional, call.inputs.size() + call.left_out.size() + call.outputs.size());
  if (left_out != call.left_out) {
    const auto listed = [](const std::vector<std::string>& names) {
      std::string out;
      for (const std::string& name : names) out += (out.empty() ? "`" : ", `") + name + "`";
      return out.empty() ? "nothing" : out;
    };
    return refused("arity",
                   fmt::format("the call leaves out {}; the kernel is for calls that leave "
                               "out {}",
                               listed(call.left_out), listed(left_out)));
  }
  const auto pinned = function.attrs.get<AttrValue::Map>("op_attrs");
  for (const auto& [name, value] : pinned.value_or(AttrValue::Map())) {
    if (std::find(call.optional.begin(), call.optional.end(), name) != call.optional.end())
      continue;
    const auto given = call.named.find(name);
    if (!given) return refused("attribute", call.named.missing(name));
    if (!same_attr(name, value, *given, ndim))
      return refused("attribute",
                     fmt::format("`{}` is {}; the kernel has {}", name, given->str(), value.str()));
  }
  return std::nullopt;
}

// Adds the value of the scalar parameter, an attribute of its name.
std::optional<KernelRefusal> scalar_refusal(const Ref<tenon::Var>& param, const OperatorCall& call,
                                            Substitution& values) {
  const auto value = call.named.scalar(param->name);
  const auto number = value ? number_of(*value) : std::nullopt;
  if (!number)
    return refused("attribute",
                   value ? fmt::format("`{}` is {}; parameter `{}` needs a number known now",
                                       param->name, value->str(), param->name)
                         : call.named.missing(param->name));
  if (!param->dtype.is_float() && *number != static_cast<double>(static_cast<int64_t>(*number)))
    return refused("attribute", fmt::format("`{}` is {}; parameter `{}` is {}", param->name,
                                            value->str(), param->name, param->dtype.str()));
  values.emplace(param.get(), param->dtype.is_float()
                                  ? imm(param->dtype, *number)
                                  : imm(param->dtype, static_cast<int64_t>(*number)));
  return std::nullopt;
}

std::variant<std::vector<Port>, KernelRefusal> ports_of(const tir::PrimFunc& function,
                                                        const OperatorCall& call) {
  std::vector<const tir::Buffer*> buffers;
  for (const auto& buffer : function.buffers)
    if (buffer) buffers.push_back(buffer.get());
  if (call.inputs.size() + call.outputs.size() != buffers.size())
    return refused("arity", fmt::format("the call has {} tensors in and {} out; the kernel has {} "
                                        "buffers",
                                        call.inputs.size(), call.outputs.size(), buffers.size()));
  std::vector<Port> ports;
  ports.reserve(buffers.size());
  for (const OperatorCall::Input& input : call.inputs)
    ports.push_back({"`" + input.name + "`", input.type, *buffers[ports.size()]});
  for (size_t i = 0; i < call.outputs.size(); ++i)
    ports.push_back({call.outputs.size() == 1 ? "the result" : fmt::format("result {}", i),
                     call.outputs[i], *buffers[ports.size()]});
  return ports;
}

std::optional<KernelRefusal> type_refusal(const Port& port) {
  const auto& [name, type, buffer] = port;
  if (type->dtype != buffer.dtype)
    return refused("dtype", fmt::format("{} is {}; buffer `{}` of the kernel is {}", name,
                                        type->dtype.str(), buffer.name, buffer.dtype.str()));
  if (type->ndim != static_cast<int64_t>(buffer.ndim()))
    return refused("rank", fmt::format("{} has rank {}; buffer `{}` of the kernel has {}", name,
                                       type->ndim, buffer.name, buffer.ndim()));
  if (!type->shape) return refused("shape", name + " has a shape that is not known");
  return std::nullopt;
}

// Compares shapes; `dims` has the kernel's scalar parameters, and gets its symbolic dimensions as
// the call has them.
std::optional<KernelRefusal> shape_refusal(const std::vector<Port>& ports, Substitution& dims) {
  Substitution typed = dims;  // in the kernel's dtype, for arithmetic
  for (const auto& [name, type, buffer] : ports)
    for (size_t d = 0; d < buffer.ndim(); ++d)
      if (const auto* var = buffer.shape[d].as<tenon::Var>()) {
        const Expr& given = type->dim(static_cast<int64_t>(d));
        dims.emplace(var, given);
        typed.emplace(var, tenon::cast(var->dtype, given));
      }
  for (const auto& [name, type, buffer] : ports) {
    for (size_t d = 0; d < buffer.ndim(); ++d) {
      const Expr& given = type->dim(static_cast<int64_t>(d));
      const auto bound = dims.find(buffer.shape[d].get());
      const Expr wanted =
          bound != dims.end()
              ? downcast<ExprNode>(bound->second)
              : simplify_dim(tenon::cast(kInt64, substitute(buffer.shape[d], typed)));
      if (dims_agree(given, wanted) == DimsAgree::kYes) continue;
      const std::string declared = str(buffer.shape[d]), here = str(wanted);
      return refused("shape",
                     fmt::format("dimension {} of {} is {}; buffer `{}` of the kernel has {}{}", d,
                                 name, str(given), buffer.name, declared,
                                 declared == here ? "" : ", which is " + here + " here"));
    }
  }
  return std::nullopt;
}

// The kernel for this call: `constants` stand for its parameters and dimensions.
Ref<tir::PrimFunc> specialised(const tir::PrimFunc& function, const OperatorCall& call,
                               const Substitution& constants) {
  const Ref<tir::PrimFunc> copy = tir::specialize(function, constants);
  Attrs attrs = copy->attrs;
  for (const char* name : {"op", "op_attrs", "op_when", "op_target", "op_priority", "op_node",
                           "op_requested", "op_check", "global_symbol"})
    attrs.erase(name);
  attrs.set(kComputes, computed_operator(call));
  const FusionKind kind = fusion_of(function, call.def);
  if (!call.gives_tuple) attrs.set("op_pattern", static_cast<int64_t>(kind));
  if (is_scheduled(function)) attrs.set("tir.is_scheduled", true);
  return with(*copy, [&](tir::PrimFunc& copy) {
    copy.attrs = std::move(attrs);
    copy.is_private = true;
  });
}

}  // namespace

std::variant<KernelUse, KernelRefusal> match_kernel(const OperatorKernel& kernel,
                                                    const OperatorCall& call,
                                                    const std::optional<Target>& target) {
  const tir::PrimFunc& function = *kernel.function;
  if (auto refusal = attribute_refusal(function, call)) return std::move(*refusal);
  Substitution values;
  for (size_t i = 0; i < function.params.size(); ++i)
    if (!function.buffers[i])
      if (auto refusal = scalar_refusal(function.params[i], call, values))
        return std::move(*refusal);
  auto ports = ports_of(function, call);
  if (auto* refusal = std::get_if<KernelRefusal>(&ports)) return std::move(*refusal);
  for (const Port& port : std::get<0>(ports))
    if (auto refusal = type_refusal(port)) return std::move(*refusal);
  Substitution dims = values;
  if (auto refusal = shape_refusal(std::get<0>(ports), dims)) return std::move(*refusal);
  if (auto refusal = condition_refusal(function, call.named, dims)) return std::move(*refusal);
  if (const AttrValue* wanted = function.attrs.find("op_target"); wanted && target)
    if (auto refusal = target_refusal(*wanted, *target)) return std::move(*refusal);
  if (auto refusal = registered_refusal(kernel, call, target)) return std::move(*refusal);
  // Dimensions that are numbers here become these.
  Substitution constants = values;
  for (const auto& [var, value] : dims)
    if (const auto number = as_int(downcast<ExprNode>(value)); number && !values.count(var))
      constants.emplace(var, imm(static_cast<const tenon::Var*>(var)->dtype, *number));
  return KernelUse{specialised(function, call, constants)};
}

// ---- the table

KernelTable::KernelTable(const IRModule& module, UserPlacement::Providers user_placement)
    : user_placement_(std::move(user_placement)) {
  for (const auto& [name, function] : module.functions()) {
    if (!function.as<tir::PrimFunc>() || !function->attrs.contains("op")) continue;
    Diagnostics diagnostics;
    auto kernel = read_kernel(module, name, diagnostics);
    diagnostics.throw_if_any();
    if (!kernel) continue;
    kernel->position = kernels_.size();
    kernels_.push_back(std::move(*kernel));
  }
  // For one node first, then by priority, then as they stand.
  std::sort(kernels_.begin(), kernels_.end(), [](const OperatorKernel& a, const OperatorKernel& b) {
    if (a.node.empty() != b.node.empty()) return b.node.empty();
    if (a.is_requested != b.is_requested) return a.is_requested;
    if (a.priority != b.priority) return a.priority > b.priority;
    return a.position < b.position;
  });
  if (!kernels_.empty() && module.attrs.contains("target")) target_ = target_of(module);
}

const OperatorKernel* KernelTable::find(std::string_view name) const {
  const auto found =
      std::find_if(kernels_.begin(), kernels_.end(),
                   [&](const OperatorKernel& kernel) { return kernel.name == name; });
  return found == kernels_.end() ? nullptr : &*found;
}

std::optional<KernelRefusal> KernelTable::placed_elsewhere(
    const OperatorKernel& kernel, const std::vector<std::string>& nodes) const {
  for (const std::string& node : nodes) {
    const auto place = user_placement_.find(node);
    if (place == user_placement_.end()) continue;
    const std::string& wanted = place->second;
    if (wanted == kKernels || wanted == std::string(kKernels) + "." + kernel.name) continue;
    return KernelRefusal{kUserPlacement,
                         fmt::format("`{}` is placed in {}", node,
                                     wanted == kNoProvider ? "own code" : "`" + wanted + "`")};
  }
  return std::nullopt;
}

// The names by which a user knows what an origin stands for.
static std::vector<std::string> node_names(const Origin& origin) {
  std::vector<std::string> names;
  each_part(origin, [&](const Origin& part) { names.push_back(part.name()); });
  return names;
}

// Arithmetic of each operator that a call stands for.
static std::vector<double> flops_of(const IRModule& module, const Call& call,
                                    const OperatorCall& seen) {
  const auto flop_of = [](const Call& one, const Type& result) {
    return 2 * macs_of(one, result, SymbolicDims::kAsOne).value_or(0);
  };
  if (call.op) return {flop_of(call, seen.outputs.front())};
  std::vector<double> out;
  const auto* ref = call.callee.as<FuncRef>();
  if (const auto function = ref ? module.find<Function>(ref->name) : nullptr)
    for (const Binding* binding : operator_bindings(*function))
      out.push_back(flop_of(*binding->value.as<Call>(), binding->var->type));
  return out;
}

std::vector<std::string> KernelTable::groups(const IRModule& module) const {
  std::vector<std::string> out;
  for (const OperatorKernel& kernel : kernels_)
    for (const std::string& op : kernel.operators)
      if (std::find(out.begin(), out.end(), op) == out.end() && pattern_named(module, op))
        out.push_back(op);
  return out;
}

std::optional<KernelTable::GroupRefusal> KernelTable::refusal_of_group(const IRModule& module,
                                                                       const Function& composite,
                                                                       const Origin& origin) const {
  const auto seen =
      function_call(module, composite, {composite.params.begin(), composite.params.end()});
  if (!seen)
    return GroupRefusal{"", {"rank", "its arguments or results are no tensors of a known rank"}};
  GroupRefusal nearest{"", {"node", "the kernel is for another node"}};
  std::vector<std::string> nodes = node_names(origin);
  for (const Binding* binding : operator_bindings(composite)) nodes.push_back(binding->var->name);
  for (const OperatorKernel* kernel : candidates(*seen, nodes)) {
    if (auto refusal = placed_elsewhere(*kernel, nodes)) {
      nearest = {kernel->name, std::move(*refusal)};
      continue;
    }
    auto match = match_kernel(*kernel, *seen, target_);
    auto* refusal = std::get_if<KernelRefusal>(&match);
    if (!refusal) return std::nullopt;
    nearest = {kernel->name, std::move(*refusal)};
  }
  return nearest;
}

std::vector<const OperatorKernel*> KernelTable::candidates(
    const OperatorCall& call, const std::vector<std::string>& nodes) const {
  std::vector<const OperatorKernel*> out;
  for (const OperatorKernel& kernel : kernels_) {
    const auto& operators = kernel.operators;
    if (std::find(operators.begin(), operators.end(), call.op) == operators.end()) continue;
    const bool is_for_all = kernel.node.empty();
    if (!is_for_all && std::find(nodes.begin(), nodes.end(), kernel.node) == nodes.end()) continue;
    out.push_back(&kernel);
  }
  return out;
}

// Why `a` is asked before `b`.
static std::string before(const OperatorKernel& a, const OperatorKernel& b) {
  if (a.node.empty() != b.node.empty()) return "is for this node";
  if (a.is_requested != b.is_requested) return "is asked for by --kernel";
  if (a.priority != b.priority)
    return fmt::format("has priority {}, and it {}", a.priority, b.priority);
  return "stands before it";
}

// Whether a kernel for a whole node of ONNX is asked about a convolution that is left of one: it
// has too many buffers, and was refused for the node already.
static bool is_rest_of_node(const OperatorKernel& kernel, const OperatorCall& call,
                            const Origin& origin, const KernelRefusal& refusal) {
  return kernel.operators.front().starts_with("ai.onnx::") &&
         call.op.find("::") == std::string::npos && origin &&
         origin->kind == OriginInfo::Kind::kModel && refusal.code == "arity";
}

std::optional<Value> KernelTable::use(BlockBuilder& builder, const Call& call,
                                      const std::string& variable) const {
  if (kernels_.empty()) return std::nullopt;
  const auto seen = operator_call(builder.module(), call);
  if (!seen) return std::nullopt;
  const Origin origin = call.origin ? call.origin : builder.origin();
  const OperatorKernel* chosen = nullptr;
  std::optional<Value> out;
  const std::vector<double> flops = flops_of(builder.module(), call, *seen);
  const double all_flop = std::accumulate(flops.begin(), flops.end(), 0.0);
  std::vector<std::string> nodes = node_names(origin);
  nodes.push_back(variable);
  const auto* ref = call.callee.as<FuncRef>();
  const auto group = ref ? builder.module().find<Function>(ref->name) : nullptr;
  if (group && is_group(builder.module(), *group))
    for (const Binding* binding : operator_bindings(*group)) nodes.push_back(binding->var->name);
  const auto note = [&](const OperatorKernel& kernel, const KernelRefusal* refusal) {
    // A kernel for a node of ONNX is for that, whatever is left of it.
    const std::string& op =
        kernel.operators.front().starts_with("ai.onnx::") ? kernel.operators.front() : seen->op;
    const std::string detail = fmt::format("`{}`{}{} ({})", kernel.name, refusal ? ": " : "",
                                           refusal ? refusal->words : "", op);
    std::vector<Origin> parts = {origin};
    if (origin && origin->kind == OriginInfo::Kind::kMerged) parts = origin->parts;
    // The other operators of a group go with its first.
    for (size_t i = 0; i < parts.size(); ++i) {
      Decision decision{Decision::Step::kKernels,
                        refusal ? Decision::Kind::kRefused : Decision::Kind::kTaken, kKernels,
                        kernel.name, refusal ? refusal->code : ""};
      decision.flop = flops.size() == parts.size() ? flops[i] : i == 0 ? all_flop : 0;
      decision.in_group = i > 0 && !refusal;
      Remark remark{kSelectKernels,
                    parts[i] ? parts[i].name() : seen->op,
                    refusal ? "refused" : "used",
                    decision.in_group ? "in-group" : decision.code,
                    {},
                    detail,
                    parts[i]};
      if (decision.flop > 0) remark.numbers.emplace_back("flop", decision.flop);
      remark.decision = std::move(decision);
      record(std::move(remark));
    }
  };
  for (const OperatorKernel* kernel : candidates(*seen, nodes)) {
    if (const auto refusal = placed_elsewhere(*kernel, nodes)) {
      note(*kernel, &*refusal);
      continue;
    }
    auto match = match_kernel(*kernel, *seen, target_);
    if (const auto* refusal = std::get_if<KernelRefusal>(&match)) {
      if (!is_rest_of_node(*kernel, *seen, origin, *refusal)) note(*kernel, refusal);
      continue;
    }
    if (chosen) {
      const KernelRefusal refusal{"lower-priority", "it would take the call, but `" + chosen->name +
                                                        "` " + before(*chosen, *kernel)};
      note(*kernel, &refusal);
      continue;
    }
    chosen = kernel;
    note(*kernel, nullptr);
    const Origin outer = builder.origin();
    builder.set_origin(origin);
    std::vector<Value> args;
    for (const OperatorCall::Input& input : seen->inputs) args.push_back(builder.emit(input.value));
    const std::vector<Type> types(seen->outputs.begin(), seen->outputs.end());
    Value result =
        builder.call_tir(kernel->name, std::get<KernelUse>(match).function, std::move(args), types);
    if (seen->gives_tuple && types.size() == 1) result = make<Tuple>(std::vector<Value>{result});
    builder.set_origin(outer);
    out = std::move(result);
  }
  return out;
}

std::string KernelTable::nearest_refusal(const IRModule& module, const Call& call) const {
  const auto seen = operator_call(module, call);
  if (!seen) return "its arguments or results are no tensors of a known rank";
  std::string text;
  for (const OperatorKernel* kernel : candidates(*seen, node_names(call.origin))) {
    const auto match = match_kernel(*kernel, *seen, target_);
    if (const auto* refusal = std::get_if<KernelRefusal>(&match))
      text += fmt::format("{}`{}` ({}): {}", text.empty() ? "" : "; ", kernel->name, refusal->code,
                          refusal->words);
  }
  return text.empty() ? "the module has no kernel for it" : text;
}

}  // namespace tenon::graph
