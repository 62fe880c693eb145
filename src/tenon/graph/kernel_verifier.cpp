// SPDX-License-Identifier: Apache-2.0
// Annotations of kernels, and kernels against the types of their operators.
#include <algorithm>

#include "tenon/graph/infer.h"
#include "tenon/graph/kernels.h"
#include "tenon/graph/operator_rules.h"
#include "tenon/graph/shape.h"
#include "tenon/support/kernel_codes.h"

namespace tenon::graph {

namespace {

constexpr std::string_view kOnnx = "ai.onnx::";

constexpr const char* kAnnotations[] = {"op",           "op_attrs",    "op_when",
                                        "op_target",    "op_priority", "op_node",
                                        "op_requested", "op_pattern",  "op_check"};

struct Reader {
  const IRModule& module;
  const std::string& name;
  Ref<tir::PrimFunc> function;
  Diagnostics& diagnostics;

  template <typename T>
  const T* typed(const char* key, const char* wanted) {
    const AttrValue* value = function->attrs.find(key);
    if (!value || value->is_none()) return nullptr;
    const T* found = value->as<T>();
    if (!found)
      diagnostics.error(kBadKernel, function->origin, "`{}` of kernel `{}` is {}; expected {}", key,
                        name, value->str(), wanted);
    return found;
  }

  // The operators that the kernel names; empty where that is an error.
  std::vector<std::string> operators(const std::string& op) {
    if (op.find("::") != std::string::npos) {
      if (declaration_of(module, op)) return {op};
      if (op.starts_with(kOnnx)) {
        // Nodes that the importer keeps whole, and what these are where it does not.
        std::vector<std::string> out = {op};
        for (const OpDef* def : operators_named(op.substr(kOnnx.size()))) out.push_back(def->name);
        return out;
      }
      diagnostics.error(
          kUnknownOperator, function->origin,
          "kernel `{}` is for `{}`, which nothing declares; expected a function under "
          "@R.function with attribute {{\"op\": \"{}\"}}",
          name, op, op);
      return {};
    }
    // A graph function of the file, which becomes a pattern where the file is one of kernels.
    if (pattern_named(module, op) || (op != "main" && module.find<Function>(op))) return {op};
    std::vector<std::string> out;
    for (const OpDef* def : operators_named(op)) out.push_back(def->name);
    if (!out.empty() && op[0] >= 'A' && op[0] <= 'Z')
      out.insert(out.begin(), std::string(kOnnx) + op);
    if (out.empty()) {
      const std::string nearest = nearest_operator(op);
      diagnostics.error(
          kUnknownOperator, function->origin, "kernel `{}` is for `{}`, which is no operator{}",
          name, op,
          nearest.empty() ? "; `tenon operators` lists them" : "; did you mean `" + nearest + "`?");
    }
    return out;
  }
};

// The tensors that an operator takes and its attributes' names.
struct Shape {
  size_t least = 0, most = 0;
  std::vector<std::string> attrs;
  bool any_number = false;
};

// Inputs that are shapes, scalars, or tuples of any length: not told apart by their definitions.
bool is_tensor_input(const std::string& name) {
  static constexpr std::string_view kOthers[] = {
      "shape",    "axes",      "begin", "end",     "strides",    "start",
      "stop",     "step",      "size",  "min",     "max",        "depth",
      "on_value", "off_value", "sizes", "tensors", "data_shape", "fill_value",
  };
  return std::find(std::begin(kOthers), std::end(kOthers), name) == std::end(kOthers);
}

Shape shape_of(const OpDef& op) {
  Shape out;
  for (const OpInput& input : op.inputs) {
    if (!is_tensor_input(input.name)) {
      out.any_number = true;
      out.attrs.push_back(input.name);
      continue;
    }
    out.any_number |= input.variadic;
    if (!input.optional && !input.variadic) out.least = out.most + 1;
    ++out.most;
  }
  for (const OpAttr& attr : op.attrs) out.attrs.push_back(attr.name);
  return out;
}

Shape shape_of(const Function& declared) {
  Shape out;
  for (const Ref<Var>& param : declared.params) {
    if (param->type.as<TensorType>()) {
      ++out.most;
    } else {
      out.attrs.push_back(param->name);
    }
  }
  out.least = out.most - optional_inputs(declared).size();
  return out;
}

// Attributes of these names, with a value that may be asked for as a number and by item.
OperatorAttributes any_attributes(const std::string& op, const std::vector<std::string>& names) {
  Attrs attrs;
  for (const std::string& name : names) attrs.set(name, AttrList{AttrValue(1)});
  OperatorAttributes out;
  out.add(op, std::move(attrs));
  return out;
}

bool is_optional(const Function& declared, const std::string& input) {
  const auto names = optional_inputs(declared);
  return std::find(names.begin(), names.end(), input) != names.end();
}

std::string list_of(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "`" : ", `") + name + "`";
  return out.empty() ? "none" : out;
}

Type type_of_buffer(const tir::Buffer& buffer) {
  std::vector<Expr> shape;
  for (const Expr& dim : buffer.shape) shape.push_back(simplify_dim(tenon::cast(kInt64, dim)));
  return make<TensorType>(std::move(shape), buffer.dtype, buffer.origin);
}

class KernelChecker {
 public:
  KernelChecker(const IRModule& module, const OperatorKernel& kernel, Diagnostics& diagnostics)
      : module_(module), kernel_(kernel), diagnostics_(diagnostics) {}

  void check_against(const std::string& op) {
    const tir::PrimFunc& function = *kernel_.function;
    const OpDef* def = find_op(op);
    const Ref<Function> declared = def ? nullptr : declaration_of(module_, op);
    if (!def && !declared) return check_group(op);
    const Shape shape = def ? shape_of(*def) : shape_of(*declared);
    const OperatorAttributes attributes = any_attributes(op, shape.attrs);
    std::vector<Ref<tir::Buffer>> buffers;
    for (size_t i = 0; i < function.params.size(); ++i) {
      if (function.buffers[i]) {
        buffers.push_back(function.buffers[i]);
        continue;
      }
      if (attributes.scalar(function.params[i]->name)) continue;
      diagnostics_.error(
          kBadKernel, function.params[i]->origin ? function.params[i]->origin : function.origin,
          "parameter `{}` of kernel `{}` is neither a buffer nor an attribute of `{}`; its "
          "attributes are {}",
          function.params[i]->name, kernel_.name, op, list_of(shape.attrs));
      return;
    }
    if (const auto pinned = function.attrs.get<AttrValue::Map>("op_attrs"))
      for (const auto& [name, value] : *pinned)
        if (!attributes.find(name) &&
            !(declared && value.is_none() && is_optional(*declared, name)))
          diagnostics_.error(kBadAttribute, function.origin,
                             "kernel `{}` pins attribute `{}`, which `{}` does not have; it has {}",
                             kernel_.name, name, op, list_of(shape.attrs));
    check_condition(attributes);
    if (buffers.size() < shape.least + 1) {
      diagnostics_.error(
          kBadKernel, function.origin,
          "kernel `{}` has {} buffers; `{}` has {} tensors in, and a buffer for each "
          "result follows",
          kernel_.name, buffers.size(), op, shape.least);
      return;
    }
    if (declared) {
      const auto left_out = left_out_by(module_, function, op);
      const Ref<Function> form = left_out.empty() ? declared : without_inputs(*declared, left_out);
      const auto rule = find_operator_rule(op);
      const bool has_rule = rule && rule->schema.same_as(declared);
      types(op, buffers, shape.most - left_out.size(), [&](const std::vector<Value>& inputs) {
        return has_rule ? result_by_rule(*rule, inputs, left_out) : declared_result(*form, inputs);
      });
      return;
    }
    infer_operator(*def, buffers, shape);
  }

 private:
  // The names that a kernel for a group uses are attributes of its operators, and it has a buffer
  // for each parameter of the pattern and for each result.
  void check_group(const std::string& op) {
    const Ref<Function> pattern = pattern_named(module_, op);
    if (!pattern) return;
    OperatorAttributes attributes;
    for (const Binding* binding : operator_bindings(*pattern)) {
      const OpDef& def = *binding->value.as<Call>()->op;
      Attrs any;
      for (const std::string& name : shape_of(def).attrs) any.set(name, AttrList{AttrValue(1)});
      attributes.add(def.name, std::move(any));
    }
    check_condition(attributes);
    const tir::PrimFunc& function = *kernel_.function;
    size_t buffers = 0;
    for (size_t i = 0; i < function.params.size(); ++i) {
      const Ref<tenon::Var>& param = function.params[i];
      if (function.buffers[i])
        ++buffers;
      else if (!attributes.has(param->name))
        diagnostics_.error(kBadKernel, param->origin ? param->origin : function.origin,
                           "parameter `{}` of kernel `{}` is neither a buffer nor an attribute of "
                           "`{}`; {}",
                           param->name, kernel_.name, op, attributes.missing(param->name));
    }
    const auto* results = pattern->result.as<TupleType>();
    const size_t wanted = pattern->params.size() + (results ? results->types.size() : 1);
    if (buffers != wanted)
      diagnostics_.error(
          kBadKernel, function.origin,
          "kernel `{}` has {} buffers; pattern `{}` has {} parameters and {} results", kernel_.name,
          buffers, op, pattern->params.size(), wanted - pattern->params.size());
  }

  // Names that `op_when` may use: dimensions, attributes and items of those.
  void check_condition(const OperatorAttributes& attributes) {
    const auto text = kernel_.function->attrs.get<std::string>("op_when");
    if (!text) return;
    ExpressionNames names{.values = {}, .attributes = &attributes};
    for (const Ref<tenon::Var>& dim : tir::symbolic_vars(*kernel_.function))
      names.values[dim->name] = dim;
    try {
      (void)parse_condition(*text, names, kernel_.function->origin);
    } catch (const CompileError& error) {
      diagnostics_.add(error);
    }
  }

  // Attributes that are neither pinned nor by default stop the inference: calls check them.
  void infer_operator(const OpDef& def, const std::vector<Ref<tir::Buffer>>& buffers,
                      const Shape& shape) {
    Attrs attrs;
    if (const auto pinned = kernel_.function->attrs.get<AttrValue::Map>("op_attrs"))
      for (const auto& [name, value] : *pinned)
        for (const OpAttr& attr : def.attrs)
          if (attr.name == own_attribute(def.name, name)) attrs.set(attr.name, value);
    bool open = shape.any_number;
    for (const OpAttr& attr : def.attrs)
      open |= !attrs.contains(attr.name) && (!attr.default_value || attr.default_value->is_none() ||
                                             is_parameter(def, attr.name));
    if (open || def.traits.calls) return;
    // How many of the buffers are inputs follows from the number of results.
    std::optional<Type> result;
    std::optional<CompileError> fault;
    for (size_t count = std::min(shape.most, buffers.size() - 1); count + 1 > shape.least;
         --count) {
      std::vector<Value> inputs;
      for (size_t i = 0; i < count; ++i)
        inputs.push_back(
            make<Var>(buffers[i]->name, type_of_buffer(*buffers[i]), false, buffers[i]->origin));
      try {
        const Type found = type_of(call_op(def.name, inputs, attrs, kernel_.function->origin));
        const auto* tuple = found.as<TupleType>();
        const size_t results = tuple ? tuple->types.size() : 1;
        if (count + results != buffers.size()) {
          if (!fault && count == shape.least) return arity(def.name, buffers, count, results);
          if (count == 0) return;
          continue;
        }
        return outputs(def.name, found, buffers, count);
      } catch (const CompileError& error) {
        if (!fault) fault = error;
      }
      if (count == 0) break;
    }
    if (!fault || fault->first().code.id == kUnsupported.id) return;
    Diagnostic first = fault->first();
    first.message = fmt::format("kernel `{}`: `{}` does not take its inputs: {}", kernel_.name,
                                def.name, first.message);
    first.origin = kernel_.function->origin;
    diagnostics_.add(CompileError(std::move(first)));
  }

  // Whether a scalar parameter stands for the attribute or an item of it, by whichever name.
  bool is_parameter(const OpDef& def, const std::string& attr) const {
    const OperatorAttributes one = any_attributes(def.name, {attr});
    const tir::PrimFunc& function = *kernel_.function;
    for (size_t i = 0; i < function.params.size(); ++i)
      if (!function.buffers[i] && one.find(function.params[i]->name)) return true;
    return false;
  }

  void arity(const std::string& op, const std::vector<Ref<tir::Buffer>>& buffers, size_t inputs,
             size_t results) {
    diagnostics_.error(kBadKernel, kernel_.function->origin,
                       "kernel `{}` has {} buffers; `{}` has {} tensors in and {} out",
                       kernel_.name, buffers.size(), op, inputs, results);
  }

  template <typename Infer>
  void types(const std::string& op, const std::vector<Ref<tir::Buffer>>& buffers, size_t count,
             const Infer& infer) {
    std::vector<Value> inputs;
    for (size_t i = 0; i < count && i < buffers.size(); ++i)
      inputs.push_back(
          make<Var>(buffers[i]->name, type_of_buffer(*buffers[i]), false, buffers[i]->origin));
    const Type result = infer(inputs);
    if (!result) return;
    const auto* tuple = result.as<TupleType>();
    const size_t results = tuple ? tuple->types.size() : 1;
    if (count + results != buffers.size()) return arity(op, buffers, count, results);
    outputs(op, result, buffers, count);
  }

  // Nothing where the result may depend on an attribute that the kernel leaves open.
  Type result_by_rule(const OperatorRule& rule, const std::vector<Value>& inputs,
                      const std::vector<std::string>& left_out) {
    const auto pinned = kernel_.function->attrs.get<AttrValue::Map>("op_attrs");
    std::vector<Type> types;
    Attrs attributes;
    size_t next = 0;
    for (const Ref<Var>& param : rule.schema->params) {
      const bool is_tensor = param->type.as<TensorType>() != nullptr;
      if (is_tensor) {
        const bool is_out =
            std::find(left_out.begin(), left_out.end(), param->name) != left_out.end();
        types.push_back(is_out || next >= inputs.size() ? Type() : type_of(inputs[next++]));
        continue;
      }
      const auto found = pinned ? pinned->find(param->name) : AttrValue::Map::const_iterator();
      if (!pinned || found == pinned->end()) return {};
      attributes.set(param->name, found->second);
    }
    const OperatorRule::Form form = rule.form(types, attributes);
    const auto function = form.module->find<Function>(form.name);
    Substitution bound;
    for (size_t i = 0; i < inputs.size() && i < function->params.size(); ++i)
      unify(function->params[i]->type, type_of(inputs[i]), bound);
    return substitute(function->result, bound);
  }

  Type declared_result(const Function& declared, const std::vector<Value>& inputs) {
    Substitution bound;
    size_t next = 0;
    for (const Ref<Var>& param : declared.params) {
      if (!param->type.as<TensorType>() || next >= inputs.size()) continue;
      const Type given = type_of(inputs[next]);
      unify(param->type, given, bound);
      ++next;
    }
    next = 0;
    for (const Ref<Var>& param : declared.params) {
      if (!param->type.as<TensorType>() || next >= inputs.size()) continue;
      const auto* given = type_of(inputs[next]).as<TensorType>();
      const Type wanted = substitute(param->type, bound);
      if (!compare(*wanted.as<TensorType>(), *given, inputs[next]->origin,
                   fmt::format("input `{}`", param->name), "the declaration"))
        return {};
      ++next;
    }
    return substitute(declared.result, bound);
  }

  void outputs(const std::string& op, const Type& result,
               const std::vector<Ref<tir::Buffer>>& buffers, size_t first) {
    const auto* tuple = result.as<TupleType>();
    for (size_t i = first; i < buffers.size(); ++i) {
      const Type wanted = tuple ? tuple->types.at(i - first) : result;
      const auto* tensor = wanted.as<TensorType>();
      const Type given = type_of_buffer(*buffers[i]);
      if (tensor)
        compare(*tensor, *given.as<TensorType>(), buffers[i]->origin,
                fmt::format("output `{}`", buffers[i]->name), "`" + op + "`");
    }
  }

  bool compare(const TensorType& wanted, const TensorType& given, const Origin& place,
               const std::string& what, const std::string& who) {
    const Code* code = nullptr;
    if (!wanted.dtype.is_void() && wanted.dtype != given.dtype) code = &kDTypeMismatch;
    if (!code && wanted.ndim >= 0 && wanted.ndim != given.ndim) code = &kRankMismatch;
    if (!code && wanted.shape && shapes_agree(*wanted.shape, *given.shape) == DimsAgree::kNo)
      code = &kShapeMismatch;
    if (!code) return true;
    Diagnostic& diagnostic = diagnostics_.error(
        *code, place ? place : kernel_.function->origin, "{} of kernel `{}` is {}; {} gives {}",
        what, kernel_.name, str(Type(ref_to(&given))), who, str(Type(ref_to(&wanted))));
    diagnostic.notes.push_back({kernel_.function->origin, "the kernel is here"});
    return false;
  }

  const IRModule& module_;
  const OperatorKernel& kernel_;
  Diagnostics& diagnostics_;
};

}  // namespace

std::optional<OperatorKernel> read_kernel(const IRModule& module, const std::string& name,
                                          Diagnostics& diagnostics) {
  const auto function = module.find<tir::PrimFunc>(name);
  if (!function || !function->attrs.contains("op")) return std::nullopt;
  const size_t before = diagnostics.size();
  Reader reader{module, name, function, diagnostics};
  OperatorKernel out;
  out.name = name;
  out.function = function;
  if (const auto* op = reader.typed<std::string>("op", "the name of an operator"))
    out.operators = reader.operators(*op);
  (void)reader.typed<AttrValue::Map>("op_attrs", "a dict of attributes");
  (void)reader.typed<std::string>("op_when", "a condition as a string");
  (void)reader.typed<std::string>("op_check", "the name of a registered condition");
  if (!function->attrs.strings("op_target"))  // a list
    (void)reader.typed<std::string>("op_target", "a string or a list of strings");
  if (const auto* node = reader.typed<std::string>("op_node", "the name of a node"))
    out.node = *node;
  if (const auto* number = reader.typed<int64_t>("op_priority", "an integer"))
    out.priority = *number;
  out.is_requested = function->attrs.flag("op_requested");
  for (const auto& [key, value] : function->attrs)
    if (key.starts_with("op_") &&
        std::find(std::begin(kAnnotations), std::end(kAnnotations), key) == std::end(kAnnotations))
      diagnostics.error(kBadKernel, function->origin,
                        "kernel `{}` has attribute `{}`; annotations are op, op_attrs, op_when, "
                        "op_target, op_priority and op_node",
                        name, key);
  if (diagnostics.size() != before) return std::nullopt;
  return out;
}

// Kernels for nodes of ONNX have other inputs and attributes than the operators that these become:
// a bias, integers for flags. Calls and `check` compare them with what the importer makes of a
// node.
static bool is_of_onnx(const OperatorKernel& kernel) {
  return kernel.operators.front().starts_with(kOnnx) && kernel.operators.size() > 1;
}
static bool has_enough_buffers(const OperatorKernel& kernel) {
  const auto& buffers = kernel.function->buffers;
  const auto count = static_cast<size_t>(
      std::count_if(buffers.begin(), buffers.end(),
                    [](const Ref<tir::Buffer>& buffer) { return static_cast<bool>(buffer); }));
  return std::any_of(kernel.operators.begin(), kernel.operators.end(), [&](const std::string& op) {
    const OpDef* def = find_op(op);
    return def && shape_of(*def).least < count;
  });
}

void verify_kernels(const IRModule& module, Diagnostics& diagnostics) {
  for (const auto& [name, function] : module.functions()) {
    if (!function.as<tir::PrimFunc>() || !function->attrs.contains("op")) continue;
    const auto kernel = read_kernel(module, name, diagnostics);
    if (!kernel) continue;
    // Of several operators (Conv) its rank suits one; what is wrong with that one is reported.
    std::optional<Diagnostics> nearest;
    if (is_of_onnx(*kernel) && has_enough_buffers(*kernel)) continue;
    for (const std::string& op : kernel->operators) {
      if (op.starts_with(kOnnx) && is_of_onnx(*kernel)) continue;
      Diagnostics found;
      KernelChecker(module, *kernel, found).check_against(op);
      const bool other_rank = !found.empty() && found.items()[0].code.id == kRankMismatch.id;
      if (found.empty() || !nearest || !other_rank) nearest = std::move(found);
      if (nearest->empty()) break;
    }
    if (nearest && !nearest->empty()) diagnostics.add(CompileError(nearest->items()));
  }
}

}  // namespace tenon::graph
