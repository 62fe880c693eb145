// `@T.extern_func`: a library function with its C signature. The declared facts stand in its
// T.func_attr; what follows is its reference body.
#include "tenon/script/implicit_root.h"
#include "tenon/script/tir_builder.h"

namespace tenon::script {

using namespace tir;
using ast::ExprKind;

// In the shapes of an extern function a bare name is a dimension, as it is in a string.
void TirBuilder::define_dimensions(const ast::Expr& shape) {
  if (shape.kind == ExprKind::kName && !lookup(shape.text) && !module_.functions.count(shape.text))
    define(shape.text, Expr(Var::size(shape.text, kInt64, origin(shape.place))));
  if (shape.kind == ExprKind::kAttribute || shape.kind == ExprKind::kCall) return;
  for (const auto& item : shape.items)
    if (item) define_dimensions(*item);
}

namespace {

/// Takes facts out of the attributes of an extern function.
class Facts {
 public:
  Facts(Attrs& attrs, std::vector<std::string> params, const ast::Stmt& definition, Origin origin)
      : attrs_(attrs),
        params_(std::move(params)),
        name_(definition.text),
        origin_(std::move(origin)) {}

  std::string text(const std::string& key, std::string otherwise) {
    const AttrValue* found = attrs_.find(key);
    if (!found) return otherwise;
    if (const auto* text = found->as<std::string>())
      otherwise = *text;
    else
      fail(key, *found, "a string");
    attrs_.erase(key);
    return otherwise;
  }
  bool flag(const std::string& key, bool otherwise) {
    const AttrValue* found = attrs_.find(key);
    if (!found) return otherwise;
    if (const auto* value = found->as<bool>())
      otherwise = *value;
    else
      fail(key, *found, "True or False");
    attrs_.erase(key);
    return otherwise;
  }
  /// A string for each parameter, from a list of all or a dict of some; empty where none is given.
  std::vector<std::string> by_parameter(const std::string& key) {
    const AttrValue* found = attrs_.find(key);
    if (!found) return {};
    std::vector<std::string> out(params_.size());
    const auto put = [&](size_t i, const AttrValue& value) {
      const auto* text = value.as<std::string>();
      if (!text) fail(key, *found, "strings");
      out[i] = *text;
    };
    if (const auto* list = found->as<AttrList>()) {
      if (list->size() != params_.size())
        throw CompileError(kBadAttribute, origin_,
                           "`{}` of extern function `{}` has {} items for {} parameters", key,
                           name_, list->size(), params_.size());
      for (size_t i = 0; i < list->size(); ++i) put(i, (*list)[i]);
    } else if (const auto* map = found->as<AttrValue::Map>()) {
      for (const auto& [name, value] : *map) {
        size_t i = 0;
        while (i < params_.size() && params_[i] != name) ++i;
        if (i == params_.size())
          throw CompileError(kBadAttribute, origin_,
                             "`{}` of extern function `{}` names `{}`, which is no parameter of it",
                             key, name_, name);
        put(i, value);
      }
    } else {
      fail(key, *found, "a list with an item for each parameter, or a dict by their names");
    }
    attrs_.erase(key);
    return out;
  }

  [[noreturn]] void fail(const std::string& key, const AttrValue& seen, std::string_view wanted) {
    throw CompileError(kBadAttribute, origin_, "`{}` of extern function `{}` is {}; expected {}",
                       key, name_, seen.str(), wanted);
  }

 private:
  Attrs& attrs_;
  std::vector<std::string> params_;
  std::string name_;
  Origin origin_;
};

}  // namespace

Ref<ExternFunction> TirBuilder::extern_function(const ast::Stmt& definition) {
  default_int_ = kInt64;
  is_extern_ = true;
  parameters(definition);
  is_extern_ = false;
  const Origin at = origin(definition.name_place);
  Statements list;
  statements(definition.body, 0, list);
  ExternFunction::Parts parts;
  // `pass` alone is no body.
  if (!list.list.empty()) {
    parts.body = finish_body(std::move(list));
    if (gets_root_block(parts.body, !root_.parts.alloc_buffers.empty())) {
      root_.parts.name = "root";
      root_.parts.body = parts.body;
      parts.body = make<BlockRealize>(std::vector<Expr>{}, boolean(true),
                                      make<Block>(std::move(root_.parts), at), at);
    }
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < params_.size(); ++i) names.push_back(definition.parameters[i].name);
  Facts facts(attrs_, names, definition, at);
  const std::string symbol = facts.text("symbol", definition.text);
  parts.c_types = facts.by_parameter("c_types");
  for (size_t i = 0; i < params_.size(); ++i) {
    const bool says = i < parts.c_types.size() && !parts.c_types[i].empty();
    if (!buffers_[i] && params_[i]->dtype.is_handle() && !says && !attrs_.flag("packed"))
      fail(kUnsupported, definition.parameters[i].place,
           "parameter `{}` of an extern function is a handle; expected T.Buffer(...), a scalar, or "
           "C type `const char*` for a text",
           definition.parameters[i].name);
  }
  const std::vector<std::string> effects = facts.by_parameter("effects");
  if (!effects.empty()) {
    for (const std::string& text : effects) {
      const auto use = text.empty() ? ParamUse::kIn : parse_param_use(text);
      if (!use)
        fail(kBadAttribute, definition.name_place,
             "an effect of extern function `{}` is \"{}\"; expected in, out, inout or scratch",
             definition.text, text);
      parts.uses.push_back(*use);
    }
  }
  if (const AttrValue* returns = attrs_.find("returns"); returns && !returns->is_none()) {
    const auto* text = returns->as<std::string>();
    const auto* given = returns->as<DType>();
    const auto dtype = given ? std::optional(*given) : DType::parse(text ? *text : "");
    if (!dtype) facts.fail("returns", *returns, "\"int32\" or None");
    parts.result = *dtype;
  }
  attrs_.erase("returns");
  parts.is_pure = facts.flag("pure", true);
  parts.is_thread_safe = facts.flag("thread_safe", true);
  parts.works_in_place = facts.flag("in_place", false);
  parts.is_packed = facts.flag("packed", false);
  parts.params = params_;
  parts.buffers = buffers_;
  if (attrs_.contains("scratch"))
    fail(kBadAttribute, definition.name_place,
         "extern function `{}` declares `scratch`; expected a parameter `T.Buffer((bytes,), "
         "\"uint8\")` whose effect is \"scratch\"",
         definition.text);
  auto function = make<ExternFunction>(symbol, std::move(parts), attrs_, at);
  for (const auto& decorator : definition.decorators)
    for (const ast::Keyword& keyword : decorator->keywords)
      if (keyword.name == "private")
        const_cast<ExternFunction*>(function.get())->is_private =
            keyword.value->kind == ExprKind::kTrue;
  return function;
}

}  // namespace tenon::script
