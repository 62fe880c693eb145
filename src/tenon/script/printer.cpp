// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/printer.h"

#include <algorithm>

#include "tenon/ir/text_constant.h"
#include "tenon/script/printer_impl.h"

namespace tenon::script {

// ---- names --------------------------------------------------------------------------------------

// What a name must not be: Python's keywords, and what our own text uses.
static bool is_reserved(std::string_view text) {
  static const std::unordered_set<std::string_view> kReserved = {
      "I",   "R", "T",     "cls",  "range", "float", "int", "bool",
      "str", "_", "print", "self", "slice", "min",   "max", "len"};
  return is_python_keyword(text) || kReserved.count(text) != 0;
}

static std::string to_identifier(const std::string& hint) {
  std::string name;
  for (const char c : hint) name += is_identifier(std::string("x") + c) ? c : '_';
  if (name.empty() || !is_identifier(name)) name = "v_" + name;
  if (is_reserved(name)) name += "_";
  return name;
}

Printer::Printer(const PrintOptions& options, const IRModule* module)
    : options_(options), module_(module) {
  scopes_.emplace_back();
}

Printer::Scope::Scope(Printer& printer, bool indent) : printer(printer), indent(indent) {
  printer.scopes_.emplace_back();
  if (indent) ++printer.indent_;
}

Printer::Scope::~Scope() {
  for (const Node* node : printer.scopes_.back()) {
    const auto it = printer.names_.find(node);
    if (it == printer.names_.end()) continue;
    printer.supply_.release(it->second);
    printer.names_.erase(it);
  }
  printer.scopes_.pop_back();
  if (indent) --printer.indent_;
}

std::string Printer::define(const NodePtr& node, const std::string& hint) {
  const auto known = names_.find(node.get());
  if (known != names_.end()) return known->second;
  std::string name = supply_.take(to_identifier(hint));
  names_.emplace(node.get(), name);
  kept_.push_back(node);
  scopes_.back().push_back(node.get());
  return name;
}

static std::string hint_of(const NodePtr& node) {
  if (const auto* var = node.as<Var>()) return var->name;
  if (const auto* var = node.as<graph::Var>()) return var->name;
  if (const auto* buffer = node.as<tir::Buffer>()) return buffer->name;
  return "v";
}

std::string Printer::name_of(const NodePtr& node) { return define(node, hint_of(node)); }

const std::string& Printer::function_name(const std::string& name) {
  const auto it = function_names_.find(name);
  if (it != function_names_.end()) return it->second;
  std::string text = to_identifier(name);
  const auto is_taken = [&](const std::string& candidate) {
    return std::any_of(function_names_.begin(), function_names_.end(),
                       [&](const auto& entry) { return entry.second == candidate; }) ||
           (candidate != name && module_ && module_->contains(candidate));
  };
  return function_names_.emplace(name, fresh_name(text, is_taken)).first->second;
}

void Printer::line(const std::string& text) {
  out_.append(static_cast<size_t>(indent_) * 4, ' ');
  out_ += text;
  out_ += '\n';
}

void Printer::point_at(const NodePtr& node, const std::string& text, const std::string& words) {
  const auto& marked = options_.marked;
  if (std::none_of(marked.begin(), marked.end(),
                   [&](const NodePtr& mark) { return mark.same_as(node); }))
    return;
  // As a word of its own: behind a space, before a comma, a space or a parenthesis.
  size_t at = text.find(" " + words);
  while (text.find_first_of(", ()", at + 1 + words.size()) != at + 1 + words.size())
    at = text.find(" " + words, at + 1);
  line("#" + std::string(at, ' ') + std::string(words.size(), '^'));
}

void Printer::declare_symbolic(const Ref<Var>& var) {
  if (is_named(var)) return;
  const std::string name = define(var, var->name);
  line(
      fmt::format("{} = T.{}({})", name, var->dtype.str(), var->is_size ? "is_size_var=True" : ""));
}

void Printer::declare_variables(const Expr& expr) {
  // Also inside an expression: what defines it may stand in a later parameter.
  walk<Var>(expr, [&](const Var& var) {
    if (!var.dtype.is_handle()) declare_symbolic(ref_to(&var));
  });
}

// ---- attributes and constants -------------------------------------------------------------------

std::string Printer::attr(const AttrValue& value) {
  if (const auto* number = value.as<double>()) {
    const std::string text = float_text(kFloat64, *number);
    return text.find('n') == std::string::npos ? text : "float(\"" + text + "\")";
  }
  if (const auto* text = value.as<std::string>()) return quoted(*text);
  if (const auto* dtype = value.as<DType>()) return "T.dtype(" + quoted(dtype->str()) + ")";
  if (const auto* list = value.as<AttrList>()) {
    std::string text = "[";
    for (const AttrValue& item : *list) text += (text.size() > 1 ? ", " : "") + attr(item);
    return text + "]";
  }
  if (const auto* map = value.as<AttrValue::Map>()) {
    std::string text = "{";
    for (const auto& [key, item] : *map)
      text += (text.size() > 1 ? ", " : "") + quoted(key) + ": " + attr(item);
    return text + "}";
  }
  if (const auto* node = value.as<NodePtr>()) {
    if (const auto scalar = cast<ExprNode>(*node)) {
      if (const auto* string = scalar.as<StringImm>())
        return "T.StringImm(" + quoted(string->value) + ")";
      if (scalar.as<IntImm>()) return expr_as(scalar, kVoid);  // a bare number is no node here
      return expr(scalar);
    }
    if (const auto t = cast<graph::TypeNode>(*node)) return type(t);
    if (const auto v = cast<graph::ValueNode>(*node)) return this->value(v);
    if (const auto region = cast<tir::BufferRegion>(*node))
      return "T.region(" + this->region(*region, false) + ")";
    if (*node) return name_of(*node);
  }
  return value.str();  // None, booleans, integers
}

std::string Printer::attrs(const Attrs& attrs) {
  std::string text = "{";
  for (const auto& [key, value] : attrs)
    text += (text.size() > 1 ? ", " : "") + quoted(key) + ": " + attr(value);
  return text + "}";
}

static std::string element_text(const TensorData& data, int64_t i) {
  if (data.dtype.is_float()) {
    const std::string text = float_text(data.dtype, data.at_float(i));
    return text.find('n') == std::string::npos ? text : "float(\"" + text + "\")";
  }
  if (data.dtype.is_string()) return quoted(text_at(data, i));
  const int64_t value = data.at_int(i);
  if (data.dtype.is_bool()) return value ? "True" : "False";
  return data.dtype.is_uint() ? std::to_string(static_cast<uint64_t>(value))
                              : std::to_string(value);
}

// The elements as nested lists; a scalar as itself.
static std::string nested(const TensorData& data, size_t axis, int64_t& next) {
  if (axis == data.shape.size()) return element_text(data, next++);
  std::string text = "[";
  for (int64_t i = 0; i < data.shape[axis]; ++i)
    text += (i ? ", " : "") + nested(data, axis + 1, next);
  return text + "]";
}

std::string Printer::elements(const TensorData& data) {
  int64_t next = 0;
  return nested(data, 0, next);
}

// `dialect` is R (the text says dtype and shape) or T (T.allocate_const says them).
std::string Printer::tensor(const Ref<TensorData>& data, char dialect) {
  const bool empty = data->elements() == 0;
  const bool is_short = !empty && data->elements() <= options_.inline_elements;
  // Looks at every element: only of what may stand in the text.
  const bool exact = (is_short || empty || data->is_splat()) && has_exact_literals(*data);
  const std::string dtype = quoted(data->dtype.str());
  const std::string suffix =
      dialect == 'R' ? fmt::format(", R.Tensor({}, dtype={})", str(data->shape), dtype) : "";
  if (exact && is_short) {
    if (dialect == 'T') return elements(*data);
    return fmt::format("R.const({}, {})", elements(*data), dtype);
  }
  if (exact && (data->is_splat() || empty))
    return fmt::format("{}.const_splat({}{})", dialect, empty ? "0" : element_text(*data, 0),
                       suffix);
  if (options_.constants) options_.constants->add(data);
  return fmt::format("{}.const_ref({}{})", dialect, quoted(data->content_hash()), suffix);
}

// ---- modules ------------------------------------------------------------------------------------

void Printer::function(const std::string& name, const BaseFunc& function) {
  Scope scope(*this, false);
  default_int_ = kInt32;
  switch (kind_of(function)) {
    case FunctionKind::kPrimFunc: prim_func(name, function.to<tir::PrimFunc>()); break;
    case FunctionKind::kFunction:
      graph_function(name, function.to<graph::Function>(), false);
      break;
    case FunctionKind::kExternFunction:
      extern_function(name, function.to<tir::ExternFunction>());
      break;
    case FunctionKind::kExternFunc: {
      const auto& external = function.to<ExternFunc>();
      std::string text = quoted(external.symbol);
      if (!external.attrs.empty()) text += ", attrs=" + attrs(external.attrs);
      if (external.is_private) text += ", private=True";
      if (function_name(name) != name) text += ", name=" + quoted(name);
      line(fmt::format("{} = R.ExternFunc({})", function_name(name), text));
      break;
    }
  }
}

std::string Printer::module(const IRModule& module) {
  if (options_.header) out_ += "from tenon.script import ir as I, relax as R, tir as T\n\n";
  line("@I.ir_module");
  line("class " + options_.module_name + ":");
  Scope scope(*this);
  for (const auto& [name, function] : module.functions()) function_name(name);
  if (!module.attrs.empty()) line("I.module_attrs(" + attrs(module.attrs) + ")");
  if (module.attrs.empty() && module.functions().empty()) line("pass");
  bool first = module.attrs.empty();
  for (const auto& [name, function] : module.functions()) {
    if (!first) out_ += '\n';
    first = false;
    this->function(name, function);
  }
  return take();
}

std::string Printer::fragment(const NodePtr& node) {
  if (!node) return "None";
  if (const auto t = cast<graph::TypeNode>(node)) {
    default_int_ = kInt64;
    return type(t);
  }
  if (const auto v = cast<graph::ValueNode>(node)) {
    default_int_ = kInt64;
    return value(v);
  }
  if (const auto scalar = cast<ExprNode>(node)) return expr(scalar);
  if (const auto region = cast<tir::BufferRegion>(node)) return this->region(*region, false);
  if (const auto statement = cast<tir::StmtNode>(node)) {
    body(statement);
    return take();
  }
  if (const auto b = cast<graph::Binding>(node)) {
    default_int_ = kInt64;
    binding(*b);
    return take();
  }
  if (const auto f = cast<FunctionNode>(node)) {
    function("function", f);
    return take();
  }
  if (const auto buffer = cast<tir::Buffer>(node)) {
    const std::string name = name_of(buffer);
    const std::string args = buffer_args(buffer);
    return fmt::format("{}{}: T.Buffer({})", take(), name, args);
  }
  if (const auto data = cast<TensorData>(node)) return tensor(data, 'R');
  return std::string(node.get()->type().name);
}

std::string print(const IRModule& module, const PrintOptions& options) {
  return Printer(options, &module).module(module);
}

std::string print(const BaseFunc& function, const std::string& name, const PrintOptions& options) {
  Printer printer(options, nullptr);
  printer.function(name, function);
  return printer.take();
}

std::string print_nests(const Ref<tir::PrimFunc>& function, const std::string& name,
                        const std::vector<NodePtr>& marked) {
  const std::string text = print(function, name, {.marked = marked});
  std::string out;
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = text.substr(at, end + 1 - at);
    const std::string_view words =
        std::string_view(line).substr(std::min(line.find_first_not_of(' '), line.size()));
    for (const std::string_view word : {"def ", "for ", "while ", "if ", "with T.block(", "#"})
      if (words.starts_with(word)) {
        out += line;
        break;
      }
  }
  return out;
}

std::string print(const NodePtr& node, const PrintOptions& options) {
  return Printer(options, nullptr).fragment(node);
}

}  // namespace tenon::script
