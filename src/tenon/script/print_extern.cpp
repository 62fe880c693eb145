// Extern functions as TVMScript: the signature with its dimensions as strings, the declared facts,
// the reference body.
#include "tenon/script/implicit_root.h"
#include "tenon/script/printer_impl.h"

namespace tenon::script {

using namespace tir;

void Printer::extern_function(const std::string& name, const ExternFunction& function) {
  default_int_ = kInt64;
  std::string options;
  if (function.is_private) options = "private=True";
  if (function_name(name) != name)
    options += (options.empty() ? "" : ", ") + ("name=" + quoted(name));
  line(options.empty() ? "@T.extern_func" : "@T.extern_func(" + options + ")");

  // Scalars first: shapes may name them wherever they stand.
  for (size_t i = 0; i < function.params.size(); ++i)
    if (!function.buffers[i]) define(function.params[i], function.params[i]->name);
  const auto list = [&](const std::vector<Expr>& exprs) {
    std::string text;
    for (const Expr& item : exprs) {
      walk<Var>(item, [&](const Var& var) { define(ref_to(&var), var.name); });
      const std::string shown = expr(item);
      text += (text.empty() ? "" : ", ") + (item.as<IntImm>() ? shown : quoted(shown));
    }
    return text;
  };
  std::string signature;
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Ref<Buffer>& buffer = function.buffers[i];
    signature += i ? ", " : "";
    if (!buffer) {
      signature += name_of(function.params[i]) + ": " + var_type(*function.params[i]);
      continue;
    }
    std::string type = "(" + list(buffer->shape) + (buffer->ndim() == 1 ? ",), " : "), ") +
                       quoted(buffer->dtype.str());
    if (!buffer->strides.empty()) type += ", strides=[" + list(buffer->strides) + "]";
    if (buffer->elem_offset) type += ", elem_offset=" + list({buffer->elem_offset});
    if (buffer->scope != "global") type += ", scope=" + quoted(buffer->scope);
    if (buffer->alignment != std::max<int64_t>(1, buffer->dtype.bytes()))
      type += fmt::format(", align={}", buffer->alignment);
    signature += fmt::format("{}: T.Buffer({})", define(buffer, buffer->name), type);
    define_buffer(buffer);
  }
  line(fmt::format("def {}({}):", function_name(name), signature));
  Scope scope(*this);

  Attrs facts = function.attrs;
  if (function.symbol != function_name(name)) facts.set("symbol", function.symbol);
  std::vector<std::string> effects, c_types;
  for (const ParamUse use : function.uses) effects.emplace_back(tir::name_of(use));
  if (!effects.empty()) facts.set("effects", effects);
  // As they would follow from dtypes and effects.
  ExternFunction::Parts plain;
  plain.params = function.params;
  plain.buffers = function.buffers;
  plain.uses = function.uses;
  plain.is_packed = function.is_packed;
  bool is_stated = ExternFunction(function.symbol, std::move(plain)).c_types != function.c_types;
  // A handle says nothing without its C type.
  for (size_t i = 0; i < function.params.size() && !function.is_packed; ++i)
    is_stated |= function.c_type(i).kind == CType::Kind::kText;
  if (is_stated) facts.set("c_types", function.c_types);
  if (function.is_packed) facts.set("packed", true);
  if (!function.result.is_void() && !function.is_packed)
    facts.set("returns", function.result.str());
  if (!function.is_pure) facts.set("pure", false);
  if (!function.is_thread_safe) facts.set("thread_safe", false);
  if (function.works_in_place) facts.set("in_place", true);
  if (!facts.empty()) line("T.func_attr(" + attrs(facts) + ")");

  if (!function.body) {
    if (facts.empty()) line("pass");
    return;
  }
  const Ref<PrimFunc> reference = function.reference();
  if (!elides_root(*reference)) return body(function.body);
  const Block& root = *root_block(*reference);
  for (const Ref<Buffer>& buffer : root.alloc_buffers) {
    const std::string args = buffer_args(buffer);
    line(fmt::format("{} = T.alloc_buffer({})", name_of(buffer), args));
  }
  body(root.body);
}

}  // namespace tenon::script
