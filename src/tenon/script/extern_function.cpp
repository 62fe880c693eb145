// SPDX-License-Identifier: Apache-2.0
// Parses `@T.extern_func`: a library function with its C signature, attributes and reference
// body.
#include <algorithm>

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

static constexpr int64_t kMostItems = 4096;

// `int32`, or `int32[4]` for an array inside of a struct.
static std::optional<std::pair<DType, int64_t>> member_type(const std::string& text) {
  const size_t open = text.find('[');
  const auto dtype = DType::parse(text.substr(0, open));
  if (!dtype || dtype->is_handle() || dtype->lanes != 1) return std::nullopt;
  if (open == std::string::npos) return std::pair(*dtype, int64_t{0});
  int64_t count = 0;
  for (size_t i = open + 1; i + 1 < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    count = std::min(count * 10 + (text[i] - '0'), kMostItems + 1);
  }
  if (text.back() != ']' || count < 1 || count > kMostItems) return std::nullopt;
  return std::pair(*dtype, count);
}

std::optional<Evaluator::GroupAnnotation> Evaluator::group_annotation(
    const ast::Parameter& parameter) {
  if (!parameter.annotation || parameter.annotation->kind != ExprKind::kCall) return std::nullopt;
  const ast::Expr& annotation = *parameter.annotation;
  const std::string path = callee_path(annotation);
  if (path != "T.Array" && path != "T.Struct") return std::nullopt;
  GroupAnnotation out;
  out.group.name = parameter.name;
  const auto add = [&](const std::string& name, DType dtype, int64_t count) {
    out.group.members.push_back({name, count});
    out.dtypes.insert(out.dtypes.end(), static_cast<size_t>(out.group.members.back().size()),
                      dtype);
  };
  const auto& items = annotation.items;
  if (path == "T.Array") {
    if (items.size() != 3 || !annotation.keywords.empty())
      fail(kSyntax, annotation.place,
           "array `{}` is not `T.Array(COUNT, \"DTYPE\")`, as `T.Array(4, \"int64\")`",
           parameter.name);
    const int64_t count = to_int(eval(*items[1]), items[1]->place, "the number of items");
    if (count < 1 || count > kMostItems)
      fail(kBadAttribute, items[1]->place, "array `{}` has {} items; expected 1 to {}",
           parameter.name, count, kMostItems);
    add("", to_dtype(eval(*items[2]), items[2]->place), count);
    return out;
  }
  if (items.size() != 2 || annotation.keywords.empty())
    fail(kSyntax, annotation.place,
         "struct `{}` is not `T.Struct(\"TYPE\", MEMBER=\"DTYPE\", ...)`, as "
         "`T.Struct(\"conv_params\", strides=\"int32[2]\", groups=\"int32\")`",
         parameter.name);
  out.group.struct_type = to_string(eval(*items[1]), items[1]->place, "the type of the struct");
  for (const ast::Keyword& member : annotation.keywords) {
    const std::string text =
        to_string(eval(*member.value), member.value->place, "the type of a member");
    const auto type = member_type(text);
    if (!type)
      fail(kBadAttribute, member.value->place,
           "member `{}` of struct `{}` is \"{}\"; expected a dtype, or an array as \"int32[4]\"",
           member.name, parameter.name, text);
    add(member.name, type->first, type->second);
  }
  return out;
}

bool TirBuilder::group_parameter(const ast::Parameter& parameter) {
  auto group = group_annotation(parameter);
  if (!group) return false;
  group->group.first = params_.size();
  for (size_t k = 0; k < group->dtypes.size(); ++k) {
    const std::string name = group->group.item_name(k);
    if (lookup_own(name))
      fail(kRedefined, parameter.place, "item `{}` of parameter `{}` has the name of another one",
           name, parameter.name);
    params_.push_back(make<Var>(name, group->dtypes[k], origin(parameter.place)));
    buffers_.emplace_back();
    define(name, Expr(params_.back()));
  }
  groups_.push_back(std::move(group->group));
  return true;
}

namespace {

/// Takes facts out of the attributes of an extern function.
class Facts {
 public:
  /// \param sizes  of each parameter of the text, how many it is in the module
  Facts(Attrs& attrs, std::vector<std::string> params, std::vector<size_t> sizes,
        const ast::Stmt& definition, Origin origin)
      : attrs_(attrs),
        params_(std::move(params)),
        sizes_(std::move(sizes)),
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
  /// A string for each parameter of the module, from a list of all of the text or a dict of some;
  /// empty where none is given.
  std::vector<std::string> by_parameter(const std::string& key) {
    const AttrValue* found = attrs_.find(key);
    if (!found) return {};
    std::vector<std::string> given(params_.size());
    const auto put = [&](size_t i, const AttrValue& value) {
      const auto* text = value.as<std::string>();
      if (!text) fail(key, *found, "strings");
      given[i] = *text;
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
    std::vector<std::string> out;
    for (size_t i = 0; i < given.size(); ++i) out.insert(out.end(), sizes_[i], given[i]);
    return out;
  }

  [[noreturn]] void fail(const std::string& key, const AttrValue& seen, std::string_view wanted) {
    throw CompileError(kBadAttribute, origin_, "`{}` of extern function `{}` is {}; expected {}",
                       key, name_, seen.str(), wanted);
  }

 private:
  Attrs& attrs_;
  std::vector<std::string> params_;
  std::vector<size_t> sizes_;
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
  std::vector<size_t> sizes;
  std::vector<Place> places;  // of each parameter of the module
  for (const ast::Parameter& parameter : definition.parameters) {
    const auto group = std::find_if(groups_.begin(), groups_.end(), [&](const ParamGroup& one) {
      return one.name == parameter.name;
    });
    names.push_back(parameter.name);
    sizes.push_back(group == groups_.end() ? 1 : group->size());
    places.insert(places.end(), sizes.back(), parameter.place);
  }
  Facts facts(attrs_, names, sizes, definition, at);
  const std::string symbol = facts.text("symbol", definition.text);
  parts.c_types = facts.by_parameter("c_types");
  for (size_t i = 0; i < params_.size(); ++i) {
    const bool says = i < parts.c_types.size() && !parts.c_types[i].empty();
    if (!buffers_[i] && params_[i]->dtype.is_handle() && !says && !attrs_.flag("packed"))
      fail(kUnsupported, places[i],
           "parameter `{}` of an extern function is a handle; expected T.Buffer(...), a scalar, or "
           "C type `const char*` for a text",
           params_[i]->name);
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
  parts.groups = groups_;
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
