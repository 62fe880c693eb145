// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/transforms/signature_arguments.h"

#include <limits>
#include <set>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/backend.h"

namespace tenon::graph {

using tir::ExternFunction;
using tir::ParamGroup;

namespace {

const AttrValue::Map& map_of(const Attrs& attrs, const std::string& name) {
  static const AttrValue::Map kNothing;
  const AttrValue* value = attrs.find(name);
  const auto* map = value ? value->as<AttrValue::Map>() : nullptr;
  return map ? *map : kNothing;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "`" : ", `") + name + "`";
  return out;
}

// `p` and `p.groups`: names under which parameters stand in `args` and `tables`.
std::vector<std::string> parameter_names(const ExternFunction& declared) {
  std::vector<std::string> out;
  for (const ExternFunction::CParameter& parameter : declared.c_parameters()) {
    if (declared.buffers[parameter.first]) continue;
    if (!parameter.group || !parameter.group->is_struct()) {
      out.push_back(parameter.name);
      continue;
    }
    for (const ParamGroup::Member& member : parameter.group->members)
      out.push_back(parameter.name + "." + member.name);
  }
  return out;
}

// What is declared for `name`; of a member also inside of the struct's own dict.
const AttrValue* find_entry(const AttrValue::Map& entries, const std::string& name) {
  const auto found = entries.find(name);
  if (found != entries.end()) return &found->second;
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return nullptr;
  const auto outer = entries.find(name.substr(0, dot));
  const auto* inner = outer == entries.end() ? nullptr : outer->second.as<AttrValue::Map>();
  const auto member = inner ? inner->find(name.substr(dot + 1)) : AttrValue::Map::const_iterator();
  return inner && member != inner->end() ? &member->second : nullptr;
}

// Arithmetic on floats that are known, as the host computes it.
Expr folded(const Expr& expr) {
  return rewrite(expr, [](const NodePtr& node) -> std::optional<NodePtr> {
    const auto* op = node.as<Binary>();
    if (!op || !op->dtype.is_float()) return std::nullopt;
    const auto a = as_float(op->lhs), b = as_float(op->rhs);
    if (!a || !b) return std::nullopt;
    switch (op->op) {
      case BinaryOp::kAdd: return NodePtr(imm(op->dtype, *a + *b));
      case BinaryOp::kSub: return NodePtr(imm(op->dtype, *a - *b));
      case BinaryOp::kMul: return NodePtr(imm(op->dtype, *a * *b));
      case BinaryOp::kDiv: return NodePtr(imm(op->dtype, *a / *b));
      default: return std::nullopt;
    }
  });
}

bool is_number(const AttrValue& value) {
  return value.as<int64_t>() || value.as<double>() || value.as<bool>();
}

}  // namespace

void check_signature(const ExternFunction& declared) {
  const auto wrong = [&](const std::string& key, const std::string& why) {
    return CompileError(kBadAttribute, declared.origin, "`{}` of extern function `{}` {}", key,
                        declared.symbol, why);
  };
  const std::vector<std::string> names = parameter_names(declared);
  const std::set<std::string> known(names.begin(), names.end());
  std::set<std::string> structs, dimensions;
  for (const ParamGroup& group : declared.groups)
    if (group.is_struct()) structs.insert(group.name);
  for (const auto& buffer : declared.buffers)
    for (const Expr& dim : buffer ? buffer->shape : std::vector<Expr>{})
      if (const auto* var = dim.as<tenon::Var>()) dimensions.insert(var->name);
  for (const char* key : {"args", "tables", "enums"}) {
    const AttrValue* value = declared.attrs.find(key);
    if (!value) continue;
    if (!value->as<AttrValue::Map>()) throw wrong(key, "is " + value->str() + "; expected a dict");
    if (std::string_view(key) == "enums") {
      for (const auto& [name, number] : *value->as<AttrValue::Map>())
        if (!number.as<int64_t>())
          throw wrong(key, "gives `" + name + "` " + number.str() + "; expected an integer");
      continue;
    }
    const auto check_name = [&](const std::string& name) {
      if (dimensions.count(name) && known.count(name))
        throw wrong(key, "names `" + name + "`, which is a dimension of a buffer already");
      if (!known.count(name))
        throw wrong(key, "names `" + name +
                             "`, which is no scalar, array or member of it; it has " +
                             (names.empty() ? "none" : list_of(names)));
    };
    for (const auto& [name, entry] : *value->as<AttrValue::Map>()) {
      const auto* members = structs.count(name) ? entry.as<AttrValue::Map>() : nullptr;
      if (!members) check_name(name);
      if (members)
        for (const auto& [member, inner] : *members) check_name(name + "." + member);
      const bool is_table = std::string_view(key) == "tables";
      if (!members && is_table && !entry.as<AttrValue::Map>())
        throw wrong(key, "has " + entry.str() + " for `" + name +
                             "`; expected a dict from an attribute's text to a value");
      if (!members && !is_table && !is_number(entry) && !entry.as<std::string>() &&
          !entry.as<AttrList>())
        throw wrong(key, "has " + entry.str() + " for `" + name +
                             "`; expected an expression, a number or a list of these");
    }
  }
  if (const AttrValue* priority = declared.attrs.find("priority"))
    if (!priority->as<int64_t>())
      throw wrong("priority", "is " + priority->str() + "; expected an integer");
  if (const AttrValue* cost = declared.attrs.find("cost"))
    if (!cost->as<std::string>() && !is_number(*cost))
      throw wrong("cost", "is " + cost->str() + "; expected seconds, a number or an expression");
  if (const AttrValue* composite = declared.attrs.find("composite"))
    if (!composite->as<std::string>())
      throw wrong("composite", "is " + composite->str() + "; expected the name of a composite");
}

/// Where a scalar parameter takes its value from.
struct SignatureArguments::Slot {
  size_t param;
  std::string name;        // in `args`: `stride`, `pads`, `p.groups`
  std::string own;         // what it is named after: `stride`, `pads`, `groups`
  int64_t item = 0;        // of an array
  int64_t count = 0;       // of an array; 0: one value
  const AttrValue* entry;  // of `args`; may be null
};

SignatureArguments::SignatureArguments(const IRModule& module, const Function& composite,
                                       const ExternFunction& declared, const Substitution& dims)
    : composite_(composite),
      declared_(declared),
      attributes_(OperatorAttributes::of(module, composite)) {
  for (const auto& [var, value] : dims)
    dims_.emplace(static_cast<const tenon::Var*>(var)->name, downcast<ExprNode>(value));
  for (const auto& [name, number] : map_of(declared.attrs, "enums"))
    dims_.insert_or_assign(name, int64(*number.as<int64_t>()));
}

SignatureArguments::Slot SignatureArguments::slot_of(size_t i) const {
  Slot slot{i, declared_.params[i]->name, declared_.params[i]->name, 0, 0, nullptr};
  if (const ParamGroup* group = declared_.group_of(i)) {
    auto item = static_cast<int64_t>(i - group->first);
    size_t m = 0;
    while (item >= group->members[m].size()) item -= group->members[m++].size();
    const ParamGroup::Member& member = group->members[m];
    slot.name = group->name + (group->is_struct() ? "." + member.name : "");
    slot.own = group->is_struct() ? member.name : group->name;
    slot.item = item;
    slot.count = member.count;
  }
  slot.entry = find_entry(map_of(declared_.attrs, "args"), slot.name);
  return slot;
}

CompileError SignatureArguments::wrong(const Slot& slot, const std::string& why) const {
  return CompileError(kBadAttribute,
                      declared_.params[slot.param]->origin ? declared_.params[slot.param]->origin
                                                           : declared_.origin,
                      "parameter `{}` of library function `{}`: {}", slot.name, declared_.symbol,
                      why)
      .note(composite_.origin, "it is called for composite `{}`",
            composite_.attrs.get<std::string>("Composite").value_or("of a function"));
}

Expr SignatureArguments::evaluate(const std::string& text, const std::string& what,
                                  const std::map<std::string, Expr>& more) const {
  ExpressionNames names{dims_, &attributes_};
  for (const auto& [name, value] : more) names.values.insert_or_assign(name, value);
  return folded(
      arith::simplify(parse_expression(text, names, declared_.origin, what, kBadAttribute)));
}

std::string SignatureArguments::place_of(const Slot& slot) const {
  return fmt::format("parameter `{}` of library function `{}`:", slot.name, declared_.symbol);
}

// An attribute, a constant that the pattern captured or a dimension by its name, else an
// expression.
AttrValue SignatureArguments::named(const Slot& slot, const std::string& text) const {
  const AttrValue::Map& captured = map_of(composite_.attrs, "constants");
  if (const auto found = captured.find(text); found != captured.end()) return found->second;
  if (const auto dim = dims_.find(text); dim != dims_.end()) return NodePtr(dim->second);
  if (const auto value = attributes_.find(text)) return *value;
  if (attributes_.has(text)) throw wrong(slot, attributes_.missing(text));
  if (!slot.entry) {
    const std::vector<std::string> known = attributes_.names();
    throw wrong(slot, fmt::format("nothing gives its value: it is no dimension of a buffer, no "
                                  "captured constant and no attribute of the matched operators{}",
                                  known.empty() ? "" : ", which are " + list_of(known)));
  }
  return NodePtr(evaluate(text, place_of(slot)));
}

AttrValue SignatureArguments::item_of(const Slot& slot, const std::string& source,
                                      const AttrValue& value) const {
  const auto* list = value.as<AttrList>();
  if (slot.count == 0) {
    if (!list) return value;
    if (list->size() == 1) return list->front();
    throw wrong(slot, fmt::format("`{}` is {}, a list of {}; the parameter takes one number: name "
                                  "an item, `{}[0]`",
                                  source, value.str(), list->size(), source));
  }
  if (!list)
    throw wrong(slot, fmt::format("`{}` is {}; the parameter takes a list of {}", source,
                                  value.str(), slot.count));
  if (list->size() == 1) return list->front();  // one number for all items
  if (static_cast<int64_t>(list->size()) != slot.count)
    throw wrong(slot, fmt::format("`{}` is {}, a list of {}; the parameter takes {}", source,
                                  value.str(), list->size(), slot.count));
  return (*list)[static_cast<size_t>(slot.item)];
}

AttrValue SignatureArguments::value_of(const Slot& slot) const {
  if (!slot.entry) return item_of(slot, slot.own, named(slot, slot.own));
  if (const auto* text = slot.entry->as<std::string>())
    return item_of(slot, *text, named(slot, *text));
  const auto* list = slot.entry->as<AttrList>();
  if (!list) {
    if (slot.count > 0)
      throw wrong(slot, fmt::format("`args` has {}; the parameter takes a list of {}",
                                    slot.entry->str(), slot.count));
    return *slot.entry;
  }
  if (slot.count == 0 || static_cast<int64_t>(list->size()) != slot.count)
    throw wrong(slot, fmt::format("`args` has {} items; the parameter takes {}", list->size(),
                                  slot.count == 0 ? "one number" : fmt::format("{}", slot.count)));
  const AttrValue& item = (*list)[static_cast<size_t>(slot.item)];
  const auto* text = item.as<std::string>();
  if (!text) return item;
  Slot one = slot;
  one.count = 0;
  return item_of(one, *text, named(one, *text));
}

// What the signature's table has for an attribute that is a text.
AttrValue SignatureArguments::looked_up(const Slot& slot, const std::string& source,
                                        const std::string& text) const {
  const AttrValue* table = find_entry(map_of(declared_.attrs, "tables"), slot.name);
  const auto* entries = table ? table->as<AttrValue::Map>() : nullptr;
  const bool takes_text = declared_.params[slot.param]->dtype.is_handle();
  if (!entries) {
    if (takes_text) return text;
    throw wrong(slot, fmt::format("{} is \"{}\", a text, and the parameter is {}; give its values "
                                  "in `tables`: {{\"{}\": {{\"{}\": 0}}}}",
                                  source, text, declared_.params[slot.param]->dtype.str(),
                                  slot.name, text));
  }
  const auto found = entries->find(text);
  if (found == entries->end()) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : *entries) keys.push_back(key);
    throw CompileError(kSignatureMismatch, composite_.origin,
                       "parameter `{}` of library function `{}`: {} is \"{}\", which its table "
                       "does not have; it has {}",
                       slot.name, declared_.symbol, source, text, list_of(keys))
        .note(declared_.origin, "`{}` is declared here", declared_.symbol);
  }
  const auto* name = found->second.as<std::string>();
  if (!name || takes_text) return found->second;
  return NodePtr(evaluate(*name, place_of(slot)));
}

Value SignatureArguments::of(size_t i) const {
  const Slot slot = slot_of(i);
  const DType dtype = declared_.params[i]->dtype;
  const auto* entry = slot.entry ? slot.entry->as<std::string>() : nullptr;
  const std::string source = slot.entry ? "`" + (entry ? *entry : slot.entry->str()) + "`"
                                        : "attribute `" + slot.own + "`";
  AttrValue value = value_of(slot);
  if (const auto* dt = value.as<DType>()) value = dt->str();
  if (const auto* text = value.as<std::string>()) {
    const std::string given = *text;
    value = looked_up(slot, source, given);
  }
  if (dtype.is_handle()) {
    if (const auto* text = value.as<std::string>()) return make<StringValue>(*text);
    throw wrong(slot, fmt::format("{} is {}; the parameter takes a text", source, value.str()));
  }
  Expr number;
  if (const auto* flag = value.as<bool>()) number = int64(*flag ? 1 : 0);
  if (const auto* whole = value.as<int64_t>()) number = int64(*whole);
  if (const auto* real = value.as<double>()) number = imm(kFloat64, *real);
  if (const auto* node = value.as<NodePtr>()) number = tenon::cast<ExprNode>(*node);
  if (!number)
    throw wrong(slot,
                fmt::format("{} is {}; the parameter is {}", source, value.str(), dtype.str()));
  if (number->dtype.is_bool()) number = tenon::cast(kInt64, number);
  if (number->dtype.is_float() && !dtype.is_float())
    throw wrong(slot, fmt::format("{} is {}, a float; the parameter is {}", source,
                                  tenon::str(number), dtype.str()));
  number = arith::simplify(number);
  if (const auto whole = as_int(number); whole && dtype.is_integer() && dtype.bits < 64) {
    const bool is_signed = dtype.is_int();
    const int64_t most = (int64_t{1} << (dtype.bits - (is_signed ? 1 : 0))) - 1;
    const int64_t least = is_signed ? -most - 1 : 0;
    if (*whole < least || *whole > most)
      throw wrong(slot,
                  fmt::format("{} is {}, which {} does not hold", source, *whole, dtype.str()));
  }
  if (const auto whole = as_int(number); whole && dtype.is_uint() && *whole < 0)
    throw wrong(slot, fmt::format("{} is {}; the parameter is {}", source, *whole, dtype.str()));
  return make<PrimValue>(arith::simplify(tenon::cast(dtype, number)));
}

}  // namespace tenon::graph
