// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/external_modules.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "tenon/graph/expr.h"
#include "tenon/support/codes.h"
#include "tenon/tir/extern_function.h"

namespace tenon::graph {

static constexpr const char* kAttr = "external_mods";

std::string_view name_of(ExternalModule::Kind kind) {
  switch (kind) {
    case ExternalModule::Kind::kC: return "c";
    case ExternalModule::Kind::kObject: return "object";
    case ExternalModule::Kind::kArchive: return "archive";
    case ExternalModule::Kind::kShared: return "shared";
    case ExternalModule::Kind::kHost: return "host";
  }
  return "?";
}

static std::optional<ExternalModule::Kind> parse_kind(std::string_view text) {
  using Kind = ExternalModule::Kind;
  for (const Kind kind : {Kind::kC, Kind::kObject, Kind::kArchive, Kind::kShared, Kind::kHost})
    if (name_of(kind) == text) return kind;
  return std::nullopt;
}

ExternalModule ExternalModule::of_bytes(Kind kind, std::string_view bytes,
                                        std::vector<std::string> symbols, std::string origin) {
  ExternalModule out;
  out.kind = kind;
  std::vector<std::byte> copy(bytes.size());
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  out.code = TensorData::owned(kUInt8, {static_cast<int64_t>(bytes.size())}, std::move(copy));
  out.symbols = std::move(symbols);
  out.origin = std::move(origin);
  return out;
}

namespace {

/// Reads one item of the attribute.
class Reader {
 public:
  Reader(size_t index, const AttrValue& value) : index_(index) {
    const auto* map = value.as<AttrValue::Map>();
    if (!map) throw fault("is " + value.str() + "; expected a dictionary");
    map_ = map;
  }

  ExternalModule run() const {
    for (const auto& [key, value] : *map_)
      if (!known().count(key)) throw fault(fmt::format("has a key `{}`; expected {}", key, keys()));
    ExternalModule out;
    const std::string kind = text("kind");
    const auto parsed = parse_kind(kind);
    if (!parsed)
      throw fault(fmt::format(
          "is of kind `{}`; expected `c`, `object`, `archive`, `shared` or `host`", kind));
    out.kind = *parsed;
    out.name = text("name");
    out.origin = text("origin");
    out.symbols = texts("symbols");
    out.link = texts("link");
    if (const AttrValue* code = find("code"); code && !code->is_none()) {
      const auto* node = code->as<NodePtr>();
      const auto constant = node ? cast<Constant>(*node) : Ref<Constant>();
      out.code = constant ? constant->data : Ref<TensorData>();
      if (!out.code || out.code->dtype != kUInt8 || out.code->shape.size() != 1)
        throw fault("has a `code` that is no constant of bytes (uint8, one dimension)");
    }
    check(out);
    return out;
  }

  void check(const ExternalModule& out) const {
    if (out.code && !out.name.empty()) throw fault("has both `code` and `name`; expected one");
    if (!out.code && out.name.empty()) throw fault("has neither `code` nor `name`");
    if (!out.code && out.kind != ExternalModule::Kind::kShared)
      throw fault(fmt::format("is of kind `{}` and by name; only a shared library is found by name",
                              name_of(out.kind)));
    // Names reach linkers, Makefiles and shells, where other characters have a meaning.
    const auto bare = [](const std::string& name) {
      return !name.empty() && name[0] != '-' && name[0] != '.' && name.size() <= 255 &&
             std::all_of(name.begin(), name.end(), [](char c) {
               return std::isalnum(static_cast<unsigned char>(c)) ||
                      std::string_view("_.+-").find(c) != std::string_view::npos;
             });
    };
    // A path would make the module mean something else on another host.
    if (!out.name.empty() && !bare(out.name))
      throw fault(
          fmt::format("is named `{}`; expected the name of a library without a folder, of "
                      "letters, digits and `_.+-`",
                      out.name));
    for (const std::string& name : out.link)
      if (!bare(name))
        throw fault(
            fmt::format("links `{}`; expected the name of a library without a folder, of letters, "
                        "digits and `_.+-`",
                        name));
    std::set<std::string> seen;
    for (const std::string& symbol : out.symbols)
      if (symbol.empty() || !seen.insert(symbol).second)
        throw fault(fmt::format("has symbol `{}` {}", symbol, symbol.empty() ? "" : "twice"));
    if (!out.code) return;
    const auto bytes = out.code->data();
    const auto begins = [&](std::string_view magic) {
      return bytes.size() >= magic.size() &&
             std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
    };
    using Kind = ExternalModule::Kind;
    const bool is_elf = begins("\177ELF"), is_archive = begins("!<arch>\n");
    const bool is_text = out.kind == Kind::kC || out.kind == Kind::kHost;
    const bool fits = is_text                      ? !is_elf && !is_archive && !bytes.empty()
                      : out.kind == Kind::kArchive ? is_archive
                                                   : is_elf;
    if (!fits)
      throw fault(fmt::format("is of kind `{}`, and its {} bytes are not", name_of(out.kind),
                              bytes.size()));
    if (is_elf && !is_elf_of(bytes, out.kind))
      throw fault(fmt::format("is of kind `{}`, and its bytes are an ELF file of another kind",
                              name_of(out.kind)));
  }

  CompileError fault(const std::string& why) const {
    return CompileError(kBadExternalModule, {}, "item {} of `external_mods` {}", index_, why);
  }

 private:
  static const std::set<std::string>& known() {
    static const std::set<std::string> kKnown = {"kind", "symbols", "code",
                                                 "name", "link",    "origin"};
    return kKnown;
  }
  static std::string keys() {
    std::string text;
    for (const std::string& key : known()) text += (text.empty() ? "`" : ", `") + key + "`";
    return text;
  }
  // e_type at offset 16: 1 relocatable, 3 shared; of either byte order.
  static bool is_elf_of(std::span<const std::byte> bytes, ExternalModule::Kind kind) {
    if (bytes.size() < 20) return false;
    const bool little = std::to_integer<int>(bytes[5]) == 1;
    const int type = std::to_integer<int>(bytes[little ? 16 : 17]);
    return type == (kind == ExternalModule::Kind::kObject ? 1 : 3);
  }
  const AttrValue* find(const std::string& key) const {
    const auto found = map_->find(key);
    return found == map_->end() ? nullptr : &found->second;
  }
  std::string text(const std::string& key) const {
    const AttrValue* value = find(key);
    if (!value || value->is_none()) return "";
    const auto* text = value->as<std::string>();
    if (!text) throw fault(fmt::format("has {} as `{}`; expected a string", value->str(), key));
    return *text;
  }
  std::vector<std::string> texts(const std::string& key) const {
    const AttrValue* value = find(key);
    if (!value || value->is_none()) return {};
    const auto* list = value->as<AttrList>();
    std::vector<std::string> out;
    if (list)
      for (const AttrValue& item : *list)
        if (const auto* text = item.as<std::string>()) out.push_back(*text);
    if (!list || out.size() != list->size())
      throw fault(fmt::format("has {} as `{}`; expected a list of strings", value->str(), key));
    return out;
  }

  size_t index_;
  const AttrValue::Map* map_ = nullptr;
};

AttrValue to_attr(const ExternalModule& external) {
  AttrValue::Map map;
  map["kind"] = std::string(name_of(external.kind));
  if (!external.symbols.empty()) map["symbols"] = AttrValue(external.symbols);
  if (external.code) map["code"] = AttrValue(NodePtr(make<Constant>(external.code)));
  if (!external.name.empty()) map["name"] = external.name;
  if (!external.link.empty()) map["link"] = AttrValue(external.link);
  if (!external.origin.empty()) map["origin"] = external.origin;
  return map;
}

bool same(const ExternalModule& a, const ExternalModule& b) {
  const auto hash = [](const ExternalModule& m) {
    return m.code ? m.code->content_hash() : std::string();
  };
  return a.kind == b.kind && a.name == b.name && a.symbols == b.symbols && a.link == b.link &&
         a.origin == b.origin && hash(a) == hash(b);
}

void check_symbols(const std::vector<ExternalModule>& all) {
  std::map<std::string, size_t> owner;
  for (size_t i = 0; i < all.size(); ++i)
    for (const std::string& symbol : all[i].symbols) {
      const auto [known, is_new] = owner.emplace(symbol, i);
      if (!is_new)
        throw CompileError(kBadExternalModule, {},
                           "items {} and {} of `external_mods` both have symbol `{}`",
                           known->second, i, symbol);
    }
}

}  // namespace

std::vector<ExternalModule> external_modules(const IRModule& module) {
  const AttrValue* value = module.attrs.find(kAttr);
  if (!value || value->is_none()) return {};
  const auto* list = value->as<AttrList>();
  if (!list)
    throw CompileError(kBadExternalModule, {},
                       "module attribute `external_mods` is {}; expected a list of dictionaries",
                       value->str());
  std::vector<ExternalModule> out;
  for (size_t i = 0; i < list->size(); ++i) out.push_back(Reader(i, (*list)[i]).run());
  check_symbols(out);
  return out;
}

void add_external_module(IRModule& module, const ExternalModule& added) {
  std::vector<ExternalModule> all = external_modules(module);
  const AttrValue item = to_attr(added);
  Reader(all.size(), item).check(added);
  if (std::any_of(all.begin(), all.end(), [&](const auto& known) { return same(known, added); }))
    return;
  all.push_back(added);
  check_symbols(all);
  AttrList list;
  for (const ExternalModule& external : all) list.push_back(to_attr(external));
  module.attrs.set(kAttr, list);
}

bool has_code_of(const IRModule& module, const std::string& backend) {
  for (const ExternalModule& external : external_modules(module))
    if (external.origin == backend) return true;
  for (const auto& [name, function] : module.functions())
    if (function->attrs.get<std::string>("target").value_or("") == backend) return true;
  return false;
}

IRModule merge_modules(IRModule module, const IRModule& other) {
  for (const auto& [name, function] : other.functions()) {
    const BaseFunc known = module.find(name);
    if (!known) {
      module.set(name, function);
      continue;
    }
    if (!structural_equal(known, function))
      throw CompileError(kRedefined, function->origin,
                         "both modules have a function `{}`, and they differ", name)
          .note(known->origin, "the other one is here");
  }
  for (const ExternalModule& external : external_modules(other))
    add_external_module(module, external);
  for (const auto& [name, value] : other.attrs)
    if (name != kAttr && !module.attrs.contains(name)) module.attrs.set(name, value);
  return module;
}

}  // namespace tenon::graph
