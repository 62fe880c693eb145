// SPDX-License-Identifier: Apache-2.0
// Prints extern functions as TVMScript: the signature with its dimensions as strings, attributes,
// the reference body.
#include "tenon/script/implicit_root.h"
#include "tenon/script/printer_impl.h"

namespace tenon::script {

using namespace tir;

static std::string group_type(const ExternFunction& function, const ParamGroup& group) {
  const auto dtype = [&](size_t i) { return function.params[i]->dtype.str(); };
  if (!group.is_struct())
    return fmt::format("T.Array({}, {})", group.members[0].count, quoted(dtype(group.first)));
  std::string text = "T.Struct(" + quoted(group.struct_type);
  size_t next = group.first;
  for (const ParamGroup::Member& member : group.members) {
    std::string type = dtype(next);
    if (member.count > 0) type += fmt::format("[{}]", member.count);
    text += ", " + member.name + "=" + quoted(type);
    next += static_cast<size_t>(member.size());
  }
  return text + ")";
}

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
    if (const ParamGroup* group = function.group_of(i)) {
      signature += group->name + ": " + group_type(function, *group);
      i += group->size() - 1;
      continue;
    }
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
  for (const ExternFunction::CParameter& parameter : function.c_parameters())
    effects.emplace_back(tir::name_of(function.uses[parameter.first]));
  if (!effects.empty()) facts.set("effects", effects);
  // As they would follow from dtypes and effects.
  ExternFunction::Parts plain;
  plain.params = function.params;
  plain.buffers = function.buffers;
  plain.uses = function.uses;
  plain.groups = function.groups;
  plain.is_packed = function.is_packed;
  bool is_stated = ExternFunction(function.symbol, std::move(plain)).c_types != function.c_types;
  // A handle says nothing without its C type.
  for (size_t i = 0; i < function.params.size() && !function.is_packed; ++i)
    is_stated |= function.c_type(i).kind == CType::Kind::kText;
  for (const ExternFunction::CParameter& parameter : function.c_parameters())
    // Members of a struct are what their dtypes say.
    c_types.push_back(
        parameter.group && parameter.group->is_struct() ? "" : function.c_types[parameter.first]);
  if (is_stated) facts.set("c_types", c_types);
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
