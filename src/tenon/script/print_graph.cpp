// SPDX-License-Identifier: Apache-2.0
// Prints graph functions, values and types as TVMScript.
#include "tenon/graph/kernels.h"
#include "tenon/script/printer_impl.h"

namespace tenon::script {

using graph::Type;
using graph::Value;

// ---- types --------------------------------------------------------------------------------------

// Dimensions between brackets; in a signature what is not a number is a string.
std::string Printer::dims(const std::vector<Expr>& dims) {
  std::string text;
  for (const Expr& dim : dims) {
    std::string item = expr(dim);
    if (in_signature_ && !dim.as<IntImm>()) item = quoted(item);
    text += (text.empty() ? "" : ", ") + item;
  }
  return text;
}

std::string Printer::type(const Type& t) {
  if (!t) return "R.Object";
  switch (kind_of(t)) {
    case graph::TypeKind::kTensor: {
      const auto& tensor = t.to<graph::TensorType>();
      std::string text;
      const auto add = [&](const std::string& item) { text += (text.empty() ? "" : ", ") + item; };
      if (tensor.shape) add("(" + dims(*tensor.shape) + (tensor.ndim == 1 ? ",)" : ")"));
      if (!tensor.dtype.is_void()) add("dtype=" + quoted(tensor.dtype.str()));
      if (!tensor.shape && tensor.ndim >= 0) add(fmt::format("ndim={}", tensor.ndim));
      return text.empty() ? "R.Tensor" : "R.Tensor(" + text + ")";
    }
    case graph::TypeKind::kShape: {
      const auto& shape = t.to<graph::ShapeType>();
      if (shape.values) return "R.Shape([" + dims(*shape.values) + "])";
      return shape.ndim >= 0 ? fmt::format("R.Shape(ndim={})", shape.ndim) : "R.Shape";
    }
    case graph::TypeKind::kPrim: {
      const auto& prim = t.to<graph::PrimType>();
      if (!prim.value) return "R.Prim(" + quoted(prim.dtype.str()) + ")";
      return "R.Prim(value=" + dims({prim.value}) + ")";
    }
    case graph::TypeKind::kTuple: {
      std::string text;
      for (const Type& item : t.to<graph::TupleType>().types)
        text += (text.empty() ? "" : ", ") + type(item);
      return text.empty() ? "R.Tuple" : "R.Tuple(" + text + ")";
    }
    case graph::TypeKind::kFunc: {
      const auto& function = t.to<graph::FuncType>();
      const std::string result = function.result ? type(function.result) : "R.Object";
      if (!function.params)
        return fmt::format("R.Callable(ret={}, purity={})", result,
                           function.pure ? "True" : "False");
      std::string params;
      for (const Type& item : *function.params) params += (params.empty() ? "" : ", ") + type(item);
      if (function.params->size() == 1) params += ",";
      return fmt::format("R.Callable(({}), {}, {})", params, result,
                         function.pure ? "True" : "False");
    }
    case graph::TypeKind::kObject: break;
  }
  return "R.Object";
}

// ---- values -------------------------------------------------------------------------------------

std::string Printer::value(const Value& v) {
  if (!v) return "None";
  switch (kind_of(v)) {
    case graph::ValueKind::kVar: return name_of(v);
    case graph::ValueKind::kConstant: return tensor(v.to<graph::Constant>().data, 'R');
    case graph::ValueKind::kShapeExpr: {
      const auto& shape = v.to<graph::ShapeExpr>();
      return "R.shape([" + exprs(shape.values) + "])";
    }
    case graph::ValueKind::kPrimValue:
      return "R.prim_value(" + expr(v.to<graph::PrimValue>().value) + ")";
    case graph::ValueKind::kStringValue:
      return "R.str(" + quoted(v.to<graph::StringValue>().value) + ")";
    case graph::ValueKind::kTuple: {
      const auto& tuple = v.to<graph::Tuple>();
      std::string text;
      for (const Value& item : tuple.values) text += (text.empty() ? "" : ", ") + value(item);
      if (tuple.values.empty()) return "R.tuple()";
      return "(" + text + (tuple.values.size() == 1 ? ",)" : ")");
    }
    case graph::ValueKind::kTupleGetItem: {
      const auto& item = v.to<graph::TupleGetItem>();
      std::string tuple = value(item.tuple);
      return fmt::format("{}[{}]", tuple, item.index);
    }
    case graph::ValueKind::kFuncRef: return function_ref(v.to<graph::FuncRef>().name);
    case graph::ValueKind::kExternRef:
      return "R.ExternFunc(" + quoted(v.to<graph::ExternRef>().symbol) + ")";
    case graph::ValueKind::kCall: return graph_call(v.to<graph::Call>());
    case graph::ValueKind::kFunctionValue: return "<function>";  // printed by binding()
    case graph::ValueKind::kSeqExpr:
    case graph::ValueKind::kIf:
    case graph::ValueKind::kOpValue: break;
  }
  return "<" + std::string(v->type().name) + ">";
}

std::string Printer::type_args(const graph::Call& call) {
  std::string text;
  for (const Type& t : call.type_args) text += (text.empty() ? "" : ", ") + type(t);
  return call.type_args.size() == 1 ? text + "," : text;
}

// Whether its result type is written as out_sinfo: the callee fills outputs that the graph owns.
static bool is_destination_passing(const graph::OpDef& op) {
  return op.name.starts_with("call_tir") || op.name.starts_with("call_dps");
}

std::string Printer::graph_call(const graph::Call& call) {
  std::vector<std::string> args;
  std::string callee;
  std::vector<Value> values = call.args;
  std::vector<std::string> keywords;
  if (call.op) {
    callee = "R." + call.op->name;
    if (is_destination_passing(*call.op)) {
      if (!values.empty()) {
        const auto* external = values[0].as<graph::ExternRef>();
        args.push_back(external ? quoted(external->symbol) : value(values[0]));
        values.erase(values.begin());
      }
      if (call.op->name.starts_with("call_tir") && values.size() == 2) {
        keywords.push_back("tir_vars=" + value(values[1]));
        values.pop_back();
      }
      if (call.type_args.size() == 1) {
        std::string out;
        if (const auto* tuple = call.type_args[0].as<graph::TupleType>()) {
          for (const Type& t : tuple->types) out += (out.empty() ? "" : ", ") + type(t);
          out = "[" + out + "]";
        } else {
          out = type(call.type_args[0]);
        }
        keywords.insert(keywords.begin(), "out_sinfo=" + out);
      } else if (!call.type_args.empty()) {
        keywords.push_back("sinfo_args=(" + type_args(call) + ")");
      }
    } else if (!call.type_args.empty()) {
      keywords.push_back("sinfo_args=(" + type_args(call) + ")");
    }
  } else if (const auto* external = call.callee.as<graph::ExternRef>()) {
    callee = "R.call_packed";
    args.push_back(quoted(external->symbol));
    if (!call.type_args.empty()) keywords.push_back("sinfo_args=(" + type_args(call) + ")");
  } else {
    callee = value(call.callee);
    if (!call.type_args.empty()) keywords.push_back("sinfo_args=(" + type_args(call) + ")");
  }
  for (const Value& v : values) args.push_back(value(v));
  // Attributes in the order of the operator's definition, then any others by name.
  const auto keyword = [&](const std::string& name, const AttrValue& attribute) {
    const auto* dtype = attribute.as<DType>();
    args.push_back(name + "=" + (dtype ? quoted(dtype->str()) : attr(attribute)));
  };
  if (call.op) {
    for (const graph::OpAttr& declared : call.op->attrs)
      if (const AttrValue* found = call.attrs.find(declared.name)) keyword(declared.name, *found);
  }
  for (const auto& [name, attribute] : call.attrs) {
    bool declared = false;
    if (call.op)
      for (const graph::OpAttr& known : call.op->attrs) declared |= known.name == name;
    if (!declared) keyword(name, attribute);
  }
  args.insert(args.end(), keywords.begin(), keywords.end());
  std::string text = callee + "(";
  for (size_t i = 0; i < args.size(); ++i) text += (i ? ", " : "") + args[i];
  return text + ")";
}

// ---- functions ----------------------------------------------------------------------------------

void Printer::binding(const graph::Binding& binding) {
  if (const auto* branch = binding.value.as<graph::If>()) {
    line("if " + value(branch->condition) + ":");
    // Both arms end by naming the result; the name is the same, and taken after them.
    define(binding.var, binding.var->name);
    {
      Scope scope(*this);
      seq_expr(*branch->then_branch, binding.var.get());
    }
    line("else:");
    Scope scope(*this);
    seq_expr(*branch->else_branch, binding.var.get());
    return;
  }
  if (const auto* function = binding.value.as<graph::FunctionValue>()) {
    const std::string name = define(binding.var, binding.var->name);
    Scope scope(*this, false);
    graph_function(name, *function->function, true);
    return;
  }
  std::string text = value(binding.value);
  if (binding.match) text = fmt::format("R.match_cast({}, {})", text, type(binding.match));
  const std::string annotation = type(binding.var->type);
  line(fmt::format("{}: {} = {}", define(binding.var, binding.var->name), annotation, text));
}

// `result`: the variable that the branch of an If ends by naming; null in a function, which
// returns.
void Printer::seq_expr(const graph::SeqExpr& seq, const graph::Var* result) {
  for (const auto& block : seq.blocks) {
    if (!block->is_dataflow) {
      for (const auto& item : block->bindings) binding(*item);
      continue;
    }
    line("with R.dataflow():");
    ++indent_;  // its output variables stay named after it
    std::string outputs;
    for (const auto& item : block->bindings) {
      binding(*item);
      if (!item->var->is_dataflow) outputs += (outputs.empty() ? "" : ", ") + name_of(item->var);
    }
    line("R.output(" + outputs + ")");
    --indent_;
  }
  const std::string text = value(seq.body);
  if (result) {
    line(fmt::format("{}: {} = {}", name_of(ref_to(result)), type(result->type), text));
  } else {
    line("return " + text);
  }
}

void Printer::graph_function(const std::string& name, const graph::Function& function,
                             bool nested) {
  default_int_ = kInt64;
  std::string options;
  const auto option = [&](const std::string& text) {
    options += (options.empty() ? "" : ", ") + text;
  };
  if (function.is_private && !nested) option("private=True");
  if (!function.pure) option("pure=False");
  const std::string shown = nested ? name : function_name(name);
  if (shown != name) option("name=" + quoted(name));
  line(options.empty() ? "@R.function" : "@R.function(" + options + ")");

  // Symbolic variables of the signature, and those of the body, in order of appearance.
  std::vector<Ref<Var>> symbolic, local;
  std::unordered_set<const Node*> seen;
  const auto collect = [&](const NodePtr& root, std::vector<Ref<Var>>& into) {
    walk_if(root, [&](const NodePtr& node) {
      if (const auto* var = node.as<Var>(); var && !is_named(node) && seen.insert(var).second)
        into.push_back(ref_to(var));
      // An inner function declares its own; they are in the type of its variable too.
      const auto* binding = node.as<graph::Binding>();
      return !node.as<graph::FunctionValue>() &&
             !(binding && binding->value.as<graph::FunctionValue>());
    });
  };
  for (const auto& param : function.params) collect(param->type, symbolic);
  if (function.result) collect(function.result, symbolic);
  for (const auto& var : symbolic) define(var, var->name);

  in_signature_ = true;
  std::string signature;
  for (const auto& param : function.params) {
    const std::string text = type(param->type);
    signature += (signature.empty() ? "" : ", ") + define(param, param->name) + ": " + text;
  }
  std::string head = fmt::format("def {}({})", shown, signature);
  if (function.result) head += " -> " + type(function.result);
  in_signature_ = false;
  line(head + ":");
  ++indent_;
  // A walk enters a variable's type where it is bound, so this sees annotations and casts too.
  collect(function.body, local);
  const auto declare = [&](const Ref<Var>& var) {
    line(fmt::format("{} = T.{}({})", name_of(var), var->dtype.str(),
                     var->is_size ? "is_size_var=True" : ""));
  };
  // The signature has defined these, as sizes.
  for (const auto& var : symbolic) line(fmt::format("{} = T.{}()", name_of(var), var->dtype.str()));
  for (const auto& var : local) {
    define(var, var->name);
    declare(var);
  }
  if (!function.attrs.empty()) line("R.func_attr(" + attrs(function.attrs) + ")");
  if (!nested) {
    bool refers = false;
    walk(function.body,
         [&](const NodePtr& node) { refers |= node.as<graph::FuncRef>() != nullptr; });
    if (refers) line("cls = " + options_.module_name);
  }
  if (graph::has_no_body(function))
    line("...");
  else
    seq_expr(*function.body, nullptr);
  --indent_;
}

}  // namespace tenon::script
