// Calls of functions of the module from PrimFuncs: `T.call_tir(cls.f, ...)`, as a statement or for
// the scalar that it returns.
#include "tenon/script/tir_builder.h"

namespace tenon::script {

using namespace tir;

bool has_calls(const Stmt& body) {
  bool found = false;
  walk(body, [&](const NodePtr& node) {
    const auto* call = node.as<Call>();
    found |= node.as<CallTir>() || (call && call->callee);
  });
  return found;
}

FunctionName TirBuilder::callee_of_call(const ast::Expr& call) {
  if (call.items.size() < 2)
    fail(kBadArgument, call.place, "`{}` names no function", callee_path(call));
  const Object callee = eval(*call.items[1]);
  const auto* function = callee.as<FunctionName>();
  if (!function)
    fail(kUnknownCallee, call.items[1]->place, "{}; expected a function of the module",
         describe(callee));
  return *function;
}

const Declaration* TirBuilder::declaration_of(const FunctionName& function) const {
  return module_.function_named(function.name);
}

std::vector<NodePtr> TirBuilder::call_arguments(const ast::Expr& call, const FunctionName& function,
                                                size_t first, Attrs* annotations) {
  const Declaration* declaration = declaration_of(function);
  Arguments args = arguments(call);
  std::vector<NodePtr> values;
  for (size_t i = 0; i < args.items.size(); ++i) {
    auto& item = args.items[i];
    if (annotations && item.keyword == "annotations") {
      item.used = true;
      *annotations = to_attrs(item.value, item.place);
      continue;
    }
    item.used = item.keyword.empty();
    if (i < first || !item.used) continue;
    const Object& value = item.value;
    const Origin at = origin(item.place);
    const size_t param = i - first;
    const bool is_declared = declaration && param < declaration->buffer_params.size();
    if (const auto* region = value.as<Region>()) {
      const auto& drop = region->region->drop;
      bool drops = false;
      for (const bool d : drop) drops |= d;
      values.push_back(make<BufferRegion>(region->region->buffer, region->region->region,
                                          drops ? drop : std::vector<bool>{}, at));
      continue;
    }
    if (value.as<Ref<Buffer>>()) {
      const auto whole = to_region(value, item.place);
      values.push_back(make<BufferRegion>(whole->buffer, whole->region, std::vector<bool>{}, at));
      continue;
    }
    if (const auto* text = value.as<std::string>(); text && declaration && declaration->is_extern) {
      values.push_back(make<StringImm>(*text, at));
      continue;
    }
    // A literal takes the dtype of the parameter.
    DType expected = kVoid;
    if (is_declared && value.is_literal()) {
      const auto& annotation = declaration->definition->parameters[param].annotation;
      const std::string path = annotation ? path_of(*annotation) : "";
      if (path.starts_with("T.")) expected = DType::parse(path.substr(2)).value_or(kVoid);
      if (expected.is_handle()) expected = kVoid;
    }
    const Expr scalar = to_expr(value, item.place, expected);
    const auto* load = scalar.as<BufferLoad>();
    if (load && is_declared && declaration->buffer_params[param]) {
      // One element where a buffer is wanted: every dimension is dropped.
      const auto region = to_region(value, item.place);
      const std::vector<bool> drop(region->region.size(), true);
      values.push_back(make<BufferRegion>(region->buffer, region->region,
                                          drop.empty() ? std::vector<bool>{} : drop, at));
      continue;
    }
    values.push_back(scalar);
  }
  finish(args, call);
  return values;
}

Stmt TirBuilder::call_tir(const ast::Expr& call, const FunctionName& function, size_t first) {
  Attrs annotations;
  std::vector<NodePtr> args = call_arguments(call, function, first, &annotations);
  return make<CallTir>(make<GlobalVar>(function.name, origin(call.items[first]->place)),
                       std::move(args), std::move(annotations), origin(call.place));
}

Object TirBuilder::call_value(const ast::Expr& call, const FunctionName& function, size_t first) {
  const Declaration* declaration = declaration_of(function);
  if (declaration && declaration->is_prim_func && declaration->result.is_void())
    fail(kTypeMismatch, call.place,
         "`{}` returns no value; call it as a statement, with a buffer for what it computes",
         function.name);
  std::vector<NodePtr> args = call_arguments(call, function, first, nullptr);
  return Expr(make<Call>(make<GlobalVar>(function.name, origin(call.items[first]->place)),
                         std::move(args), declaration ? declaration->result : kVoid,
                         origin(call.place)));
}

std::string TirBuilder::text_of(const Place& place) const {
  const std::string& text = module_.file->text;
  size_t begin = 0;
  for (uint32_t line = 1; line < place.line; ++line) {
    begin = text.find('\n', begin);
    if (begin == std::string::npos) return "...";
    ++begin;
  }
  begin += place.column - 1;
  const size_t end = std::min(text.find('\n', begin), begin + place.length);
  return begin < text.size() ? text.substr(begin, end - begin) : "...";
}

void TirBuilder::require_result(const std::string& name, const ast::Expr& call) {
  const FunctionName function = callee_of_call(call);
  const Declaration* declaration = declaration_of(function);
  if (!declaration || !declaration->is_prim_func || !declaration->result.is_void()) return;
  // The form with a buffer for the output, in the words of the text at hand.
  std::string type = "(...), \"float32\"";
  const auto& parameters = declaration->definition->parameters;
  if (!parameters.empty() && parameters.back().annotation) {
    const std::string written = text_of(parameters.back().annotation->place);
    constexpr std::string_view kBuffer = "T.Buffer(";
    if (written.starts_with(kBuffer) && written.ends_with(")"))
      type = written.substr(kBuffer.size(), written.size() - kBuffer.size() - 1);
  }
  std::string args;
  for (size_t i = 1; i < call.items.size(); ++i) args += text_of(call.items[i]->place) + ", ";
  fail(kTypeMismatch, call.place,
       "`{}` returns no value: it writes a buffer that its caller gives it; write `{} = "
       "T.alloc_buffer({})` and then `T.call_tir({}{})`",
       function.name, name, type, args, name);
}

}  // namespace tenon::script
