// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/extern_function.h"

#include <algorithm>
#include <array>

#include "tenon/support/identifiers.h"
#include "tenon/tir/scratch_query.h"

namespace tenon::tir {

// ---- uses and C types ---------------------------------------------------------------------------

static constexpr std::string_view kUses[] = {"in", "out", "inout", "scratch"};

std::string_view name_of(ParamUse use) { return kUses[static_cast<size_t>(use)]; }

std::optional<ParamUse> parse_param_use(std::string_view text) {
  for (size_t i = 0; i < std::size(kUses); ++i)
    if (kUses[i] == text) return static_cast<ParamUse>(i);
  return std::nullopt;
}

namespace {

struct CElement {
  std::string_view name;
  DType dtype;
};

// The first of a dtype is how it is written.
const std::array<CElement, 24>& c_elements() {
  static const std::array<CElement, 24> kElements = {{
      {"float", kFloat32},       {"double", kFloat64},   {"int8_t", kInt8},
      {"int16_t", kInt16},       {"int32_t", kInt32},    {"int64_t", kInt64},
      {"uint8_t", kUInt8},       {"uint16_t", kUInt16},  {"uint32_t", kUInt32},
      {"uint64_t", kUInt64},     {"bool", kBool},        {"_Bool", kBool},
      {"size_t", kUInt64},       {"ssize_t", kInt64},    {"ptrdiff_t", kInt64},
      {"intptr_t", kInt64},      {"signed char", kInt8}, {"unsigned char", kUInt8},
      {"short", kInt16},         {"int", kInt32},        {"unsigned", kUInt32},
      {"unsigned int", kUInt32}, {"long", kInt64},       {"long long", kInt64},
  }};
  return kElements;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    const bool letter =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (letter) {
      word += c;
      continue;
    }
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
    if (c != ' ' && c != '\t') words.emplace_back(1, c);
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

}  // namespace

std::string c_element(DType dtype) {
  for (const CElement& element : c_elements())
    if (element.dtype == dtype) return std::string(element.name);
  if (dtype.is_string()) return "int64_t";  // a number that stands for a text
  const bool is_half = dtype.bits == 16 && dtype.is_float() && dtype.lanes == 1;
  return is_half ? "uint16_t" : "";  // its bits: C99 has no such type
}

std::string CType::str() const {
  return (is_const ? "const " : "") + element + (kind == Kind::kScalar ? "" : "*");
}

std::optional<CType> CType::parse(std::string_view text) {
  CType out;
  out.kind = Kind::kScalar;
  for (const std::string& word : words_of(text)) {
    const bool is_pointer = out.kind != Kind::kScalar;
    if (word == "*") {
      if (is_pointer) return std::nullopt;
      out.kind = Kind::kPointer;
    } else if (is_pointer && (word == "restrict" || word == "__restrict" || word == "const")) {
      continue;  // says nothing to a caller
    } else if (is_pointer) {
      return std::nullopt;
    } else if (word == "const") {
      out.is_const = true;
    } else if (word != "struct") {
      out.element += (out.element.empty() ? "" : " ") + word;
    }
  }
  if (out.kind == Kind::kScalar) out.is_const = false;
  if (out.element == "DLTensor") {
    if (out.kind != Kind::kPointer) return std::nullopt;
    out.kind = Kind::kTensor;
    return out;
  }
  if (out.element == "char") {
    if (out.kind != Kind::kPointer || !out.is_const) return std::nullopt;
    out.kind = Kind::kText;
    return out;
  }
  if (out.element == "void") return out.kind == Kind::kPointer ? std::optional(out) : std::nullopt;
  const auto& known = c_elements();
  const bool found = std::any_of(known.begin(), known.end(),
                                 [&](const CElement& e) { return e.name == out.element; });
  return found ? std::optional(out) : std::nullopt;
}

DType CType::dtype() const {
  for (const CElement& known : c_elements())
    if (known.name == element) return known.dtype;
  return kVoid;
}

// ---- the node -----------------------------------------------------------------------------------

ExternFunction::ExternFunction(std::string symbol, Parts parts, Attrs attrs, Origin origin)
    : NodeOf(std::move(origin)),
      symbol(std::move(symbol)),
      params(std::move(parts.params)),
      buffers(std::move(parts.buffers)),
      uses(std::move(parts.uses)),
      c_types(std::move(parts.c_types)),
      groups(std::move(parts.groups)),
      result(parts.result),
      is_pure(parts.is_pure),
      is_thread_safe(parts.is_thread_safe),
      works_in_place(parts.works_in_place),
      is_packed(parts.is_packed),
      body(std::move(parts.body)) {
  this->attrs = std::move(attrs);
  finish_node(*this);
}

void ExternFunction::finish() {
  check(params.size() == buffers.size(),
        "an extern function with another number of buffers than parameters");
  if (is_packed) {
    if (symbol.empty()) throw CompileError(kBadAttribute, origin, "a packed function has no name");
    result = kInt32;
  }
  if (!is_packed && !is_identifier(symbol))
    throw CompileError(kBadAttribute, origin, "`{}` is no name of a C function", symbol);
  if (!result.is_void() && result != kInt32)
    throw CompileError(kBadAttribute, origin,
                       "extern function `{}` returns {}; expected nothing, or int32 (a code that "
                       "is 0 where it succeeded)",
                       symbol, result.str());
  check_groups();
  c_types.resize(params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    if (c_types[i].empty()) continue;
    const auto type = CType::parse(c_types[i]);
    if (!type)
      throw CompileError(kBadAttribute, params[i]->origin ? params[i]->origin : origin,
                         "parameter `{}` of extern function `{}` has C type `{}`; expected an "
                         "element type as `float`, a pointer to one or to void, or `DLTensor*`",
                         buffers[i] ? buffers[i]->name : params[i]->name, symbol, c_types[i]);
    c_types[i] = type->str();
  }
  if (uses.empty()) {
    // const says it; without any const the last buffer is the output.
    uses.assign(params.size(), ParamUse::kIn);
    size_t last = params.size();
    bool says = false;
    for (size_t i = 0; i < params.size(); ++i) {
      if (!buffers[i]) continue;
      last = i;
      says |= !c_types[i].empty() && c_type(i).is_const;
    }
    for (size_t i = 0; i < params.size(); ++i) {
      if (!buffers[i]) continue;
      const bool is_const = !c_types[i].empty() && c_type(i).is_const;
      if (says ? !is_const : i == last) uses[i] = ParamUse::kOut;
    }
  }
  if (uses.size() != params.size())
    throw CompileError(kBadAttribute, origin,
                       "extern function `{}` has {} effects for {} parameters", symbol, uses.size(),
                       params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    const std::string& name = buffers[i] ? buffers[i]->name : params[i]->name;
    const Origin& place = params[i]->origin ? params[i]->origin : origin;
    const DType dtype = buffers[i] ? buffers[i]->dtype : params[i]->dtype;
    if (!buffers[i] && uses[i] != ParamUse::kIn)
      throw CompileError(kBadAttribute, place,
                         "scalar parameter `{}` of extern function `{}` has effect {}; a scalar is "
                         "passed by value",
                         name, symbol, name_of(uses[i]));
    if (c_types[i].empty()) {
      const bool is_text = !buffers[i] && dtype.is_handle();
      CType type;
      type.kind = buffers[i] ? CType::Kind::kPointer
                  : is_text  ? CType::Kind::kText
                             : CType::Kind::kScalar;
      type.is_const = is_text || (buffers[i] && uses[i] == ParamUse::kIn);
      type.element = is_text ? "char" : c_element(dtype);
      if (type.element.empty())
        throw CompileError(kUnsupported, place,
                           "parameter `{}` of extern function `{}` has dtype {}, which C has no "
                           "type for",
                           name, symbol, dtype.str());
      c_types[i] = type.str();
    }
    const CType type = c_type(i);
    const bool is_memory = type.kind == CType::Kind::kPointer || type.kind == CType::Kind::kTensor;
    if (is_memory != static_cast<bool>(buffers[i]))
      throw CompileError(kBadAttribute, place,
                         "parameter `{}` of extern function `{}` is a {}; its C type is `{}`", name,
                         symbol, buffers[i] ? "buffer" : "scalar", c_types[i]);
    if (is_memory && type.is_const && uses[i] != ParamUse::kIn)
      throw CompileError(kBadAttribute, place,
                         "parameter `{}` of extern function `{}` is `{}`, and its effect is {}; a "
                         "const pointer is in",
                         name, symbol, c_types[i], name_of(uses[i]));
    const DType element = type.dtype();
    const bool fits =
        element.is_void() || (element.bits == dtype.bits && dtype.lanes == 1 &&
                              (element.is_float() == dtype.is_float() || dtype.bits == 16) &&
                              (element.is_bool() == dtype.is_bool() || dtype.is_bool()));
    const bool bytes_of_bool = dtype.is_bool() && element.bits == 8;
    if (type.kind == CType::Kind::kText && !dtype.is_handle())
      throw CompileError(kDTypeMismatch, place,
                         "parameter `{}` of extern function `{}` has dtype {}; its C type is `{}`, "
                         "which is a handle",
                         name, symbol, dtype.str(), c_types[i]);
    if (!fits && !bytes_of_bool)
      throw CompileError(kDTypeMismatch, place,
                         "parameter `{}` of extern function `{}` has dtype {}; its C type is `{}`",
                         name, symbol, dtype.str(), c_types[i]);
  }
  (void)scratch_queries(*this);  // its errors
}

std::vector<FieldInfo> ExternFunction::fields() {
  return {field<&ExternFunction::symbol>("symbol"),
          field<&ExternFunction::params>("params", FieldRole::kDefinition),
          field<&ExternFunction::buffers>("buffers", FieldRole::kDefinition),
          field<&ExternFunction::uses>("effects"),
          field<&ExternFunction::c_types>("c_types"),
          field<&ExternFunction::groups>("groups"),
          field<&ExternFunction::result>("returns"),
          field<&ExternFunction::is_pure>("pure"),
          field<&ExternFunction::is_thread_safe>("thread_safe"),
          field<&ExternFunction::works_in_place>("in_place"),
          field<&ExternFunction::is_packed>("packed"),
          field<&ExternFunction::attrs>("attrs"),
          field<&ExternFunction::body>("body")};
}

Ref<PrimFunc> ExternFunction::reference() const {
  if (!body) return {};
  return make<PrimFunc>(params, buffers, body, Attrs(), origin);
}

std::string ExternFunction::prototype() const {
  if (is_packed) return "packed function " + symbol;
  std::string text = (result.is_void() ? "void " : "int32_t ") + symbol + "(";
  bool is_first = true;
  for (const CParameter& parameter : c_parameters()) {
    text += is_first ? "" : ", ";
    text += parameter.type.str() + " " + parameter.name;
    is_first = false;
  }
  return text + (params.empty() ? "void)" : ")");
}

const ParamGroup* ExternFunction::group_of(size_t i) const {
  for (const ParamGroup& group : groups)
    if (i >= group.first && i < group.first + group.size()) return &group;
  return nullptr;
}

std::vector<ExternFunction::CParameter> ExternFunction::c_parameters() const {
  std::vector<CParameter> out;
  for (size_t i = 0; i < params.size();) {
    const ParamGroup* group = group_of(i);
    CParameter parameter{buffers[i] ? buffers[i]->name : params[i]->name, c_type(i), i, 1, group};
    if (group) {
      parameter.name = group->name;
      parameter.count = group->size();
      parameter.type.kind = group->is_struct() ? CType::Kind::kStruct : CType::Kind::kPointer;
      parameter.type.is_const = true;
      if (group->is_struct()) parameter.type.element = group->struct_type;
    }
    i += parameter.count;
    out.push_back(std::move(parameter));
  }
  return out;
}

// ---- groups of scalars

// `T.Array` has items, and a struct one member at least.
void ExternFunction::check_groups() const {
  size_t next = 0;
  for (const ParamGroup& group : groups) {
    const auto bad = [&](const std::string& why) {
      return CompileError(kBadAttribute, origin, "parameter `{}` of extern function `{}` {}",
                          group.name, symbol, why);
    };
    if (is_packed) throw bad("is an array or a struct; a packed function takes numbers one by one");
    if (group.members.empty()) throw bad("is a struct without members");
    if (group.is_struct()) {
      std::string_view name = group.struct_type;
      if (name.starts_with("struct ")) name.remove_prefix(7);
      if (!is_identifier(name))
        throw bad("has struct type `" + group.struct_type + "`, which is no name of C");
    }
    for (const ParamGroup::Member& member : group.members) {
      if (group.is_struct() && !is_identifier(member.name))
        throw bad("has member `" + member.name + "`, which is no name of C");
      if (member.count < 0 || (!group.is_struct() && member.count == 0))
        throw bad("has no items; expected one at least");
    }
    check(group.first >= next && group.first + group.size() <= params.size(),
          "groups of an extern function that are no parameters of it");
    next = group.first + group.size();
    for (size_t i = group.first; i < next; ++i) {
      check(!buffers[i], "a buffer in a group of scalars");
      if (params[i]->dtype.is_handle()) throw bad("has items that are no numbers");
    }
  }
}

std::string ParamGroup::item_name(size_t k) const {
  for (const Member& member : members) {
    const auto size = static_cast<size_t>(member.size());
    if (k >= size) {
      k -= size;
      continue;
    }
    const std::string stem = name + (is_struct() ? "_" + member.name : "");
    return member.count == 0 ? stem : fmt::format("{}_{}", stem, k);
  }
  return name;
}

}  // namespace tenon::tir

namespace tenon {

uint64_t FieldTraits<tir::ParamGroup>::hash(const tir::ParamGroup& m) {
  using Text = FieldTraits<std::string>;
  uint64_t h = hash_combine(Text::hash(m.name), Text::hash(m.struct_type));
  h = hash_combine(h, m.first);
  for (const tir::ParamGroup::Member& member : m.members)
    h = hash_combine(hash_combine(h, Text::hash(member.name)), static_cast<uint64_t>(member.count));
  return h;
}

}  // namespace tenon
