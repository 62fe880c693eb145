// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/manifest.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

#include "tenon/graph/kernels.h"

namespace tenon {

using Kind = InputMeaning::Kind;

// In the order of the enumeration.
static constexpr std::array<std::string_view, 8> kUses = {"value",    "index", "count", "divisor",
                                                          "positive", "unit",  "shift", "steers"};
static_assert(static_cast<size_t>(Kind::kSteers) + 1 == kUses.size());

static bool is_computed(const Expr& dim) { return !as_int(dim) && !dim.as<Var>(); }

void add_meaning(nlohmann::ordered_json& port, const InputMeaning& meaning) {
  if (meaning.kind != Kind::kValue) port["use"] = kUses.at(static_cast<size_t>(meaning.kind));
  if (meaning.extent) port["extent"] = str(meaning.extent);
  if (meaning.from_end) port["from_end"] = true;
  if (std::none_of(meaning.shape.begin(), meaning.shape.end(), is_computed)) return;
  for (const Expr& dim : meaning.shape) port["shape"].push_back(str(dim));
}

// Its words are dimensions of the program.
static Expr expression_from(const std::string& text) {
  graph::ExpressionNames names;
  std::string word;
  for (const char c : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
      continue;
    }
    if (!word.empty() && (word[0] < '0' || word[0] > '9')) names.values[word] = Var::size(word);
    word.clear();
  }
  return graph::parse_expression(text, names, {}, "expression", kBadArgument);
}

static InputMeaning meaning_from(const nlohmann::json& port) {
  InputMeaning out;
  const auto use = std::find(kUses.begin(), kUses.end(), port.value("use", "value"));
  if (use != kUses.end()) out.kind = static_cast<Kind>(use - kUses.begin());
  out.from_end = port.value("from_end", false);
  try {
    if (port.contains("extent")) out.extent = expression_from(port.at("extent"));
    for (const auto& dim : port.value("shape", nlohmann::json::array()))
      out.shape.push_back(expression_from(dim));
  } catch (const CompileError&) {
    return {};  // in names that expressions cannot have
  }
  return out;
}

Manifest read_manifest(std::string_view text) {
  const auto json = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) return {};
  try {
    Manifest out;
    out.target = json.value("target", "");
    out.operators = json.value("operators", int64_t{0});
    out.kernels = json.value("kernels", int64_t{0});
    out.library_calls = json.value("library_calls", int64_t{0});
    out.gflop = json.value("gflop", 0.0);
    if (const auto offload = json.find("offload"); offload != json.end())
      out.offload = offload_from(*offload);
    if (const auto memory = json.find("memory"); memory != json.end())
      out.memory = memory_use_from(*memory);
    for (const auto& input : json.value("inputs", nlohmann::json::array()))
      out.meanings.emplace(input.value("name", ""), meaning_from(input));
    for (const auto& line : json.value("own_kernels", nlohmann::json::array()))
      out.own_kernels.push_back(line);
    return out;
  } catch (const nlohmann::json::exception&) {
    return {};  // a member of another type
  }
}

}  // namespace tenon
