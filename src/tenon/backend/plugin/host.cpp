// SPDX-License-Identifier: Apache-2.0
// The host's side of include/tenon/backend.h: the functions of TenonHost. No exception leaves them.

#include <algorithm>
#include <cstring>

#include "tenon/backend/plugin/answer.h"
#include "tenon/backend/plugin/match.h"
#include "tenon/support/remarks.h"

const tenon::Attrs* TenonMatch::attrs_of(int32_t op) const {
  if (op == -1) return &attrs;
  if (op < 0 || op >= static_cast<int32_t>(operators.size())) return nullptr;
  return &operators[static_cast<size_t>(op)].attrs;
}

namespace tenon::plugin {

namespace {

using Callback = TenonAnswer::Callback;
constexpr int64_t kMostBytes = int64_t{1} << 32;
constexpr size_t kMostEmissions = 4096;

template <typename Item>
const Item* at(const std::vector<std::unique_ptr<Item>>& items, int32_t i) {
  return i < 0 || static_cast<size_t>(i) >= items.size() ? nullptr
                                                         : items[static_cast<size_t>(i)].get();
}

const TenonMatch::Operator* operator_at(const TenonMatch* match, int32_t op) {
  return op < 0 || static_cast<size_t>(op) >= match->operators.size()
             ? nullptr
             : &match->operators[static_cast<size_t>(op)];
}

template <typename Item>
auto view_of(const Item* item) {
  return item ? &item->view : nullptr;
}

template <typename Container>
int32_t size_of(const Container& items) {
  return static_cast<int32_t>(items.size());
}

// -- the match ---------------------------------------------------------------------------------

const char* pattern(const TenonMatch* match) { return match->pattern.c_str(); }
const char* symbol(const TenonMatch* match) { return match->symbol.c_str(); }
const char* where(const TenonMatch* match) { return match->where.c_str(); }

const char* text(const TenonMatch* match) {
  try {
    if (match->text.empty()) match->text = match->source->text(*match);
    return match->text.c_str();
  } catch (const std::exception&) {
    return nullptr;
  }
}

int32_t num_inputs(const TenonMatch* match) { return size_of(match->inputs); }
int32_t num_outputs(const TenonMatch* match) { return size_of(match->outputs); }
const TenonTensor* input(const TenonMatch* match, int32_t i) {
  const TenonMatch::Tensor* tensor = at(match->inputs, i);
  if (tensor && tensor->has_data && !tensor->view.data) {
    // What was said of a tensor stays true: its data is there from the first look at it on.
    auto& seen = const_cast<TenonMatch::Tensor&>(*tensor);
    seen.view.data = match->source->data(*match, i);
  }
  return view_of(tensor);
}
const TenonTensor* output(const TenonMatch* match, int32_t i) {
  return view_of(at(match->outputs, i));
}
const TenonOperand* output_source(const TenonMatch* match, int32_t i) {
  return view_of(at(match->output_sources, i));
}
int32_t num_symbols(const TenonMatch* match) { return size_of(match->symbol_names); }
const char* symbol_name(const TenonMatch* match, int32_t i) {
  if (i < 0 || i >= num_symbols(match)) return nullptr;
  return match->symbol_names[static_cast<size_t>(i)].c_str();
}

// -- operators ---------------------------------------------------------------------------------

int32_t num_operators(const TenonMatch* match) { return size_of(match->operators); }
const char* operator_name(const TenonMatch* match, int32_t op) {
  const auto* found = operator_at(match, op);
  return found ? found->name.c_str() : nullptr;
}
const TenonMatch* part(const TenonMatch* match, int32_t op) {
  const auto* found = operator_at(match, op);
  return found ? found->part.get() : nullptr;
}
int32_t num_operands(const TenonMatch* match, int32_t op) {
  const auto* found = operator_at(match, op);
  return found ? size_of(found->operands) : -1;
}
const TenonOperand* operand(const TenonMatch* match, int32_t op, int32_t i) {
  const auto* found = operator_at(match, op);
  return found ? view_of(at(found->operands, i)) : nullptr;
}
const TenonTensor* result(const TenonMatch* match, int32_t op, int32_t field) {
  const auto* found = operator_at(match, op);
  return found ? view_of(at(found->results, field)) : nullptr;
}
const TenonOperand* annotated(const TenonMatch* match, const char* name) {
  if (!name) return nullptr;
  const auto found = match->annotations.find(name);
  return found == match->annotations.end() ? nullptr : &found->second->view;
}

// -- attributes --------------------------------------------------------------------------------

const AttrValue* attribute(const TenonMatch* match, int32_t op, const char* name) {
  const Attrs* attrs = match->attrs_of(op);
  return attrs && name ? attrs->find(name) : nullptr;
}
int32_t num_attributes(const TenonMatch* match, int32_t op) {
  const Attrs* attrs = match->attrs_of(op);
  return attrs ? static_cast<int32_t>(attrs->size()) : -1;
}
const char* attribute_name(const TenonMatch* match, int32_t op, int32_t i) {
  const Attrs* attrs = match->attrs_of(op);
  if (!attrs || i < 0) return nullptr;
  for (const auto& [name, value] : *attrs)
    if (i-- == 0) return name.c_str();
  return nullptr;
}
int64_t attribute_int(const TenonMatch* match, int32_t op, const char* name, int64_t fallback) {
  const AttrValue* value = attribute(match, op, name);
  if (!value) return fallback;
  if (const auto* flag = value->as<bool>()) return *flag ? 1 : 0;
  const auto* number = value->as<int64_t>();
  return number ? *number : fallback;
}
double attribute_number(const TenonMatch* match, int32_t op, const char* name, double fallback) {
  const AttrValue* value = attribute(match, op, name);
  if (!value) return fallback;
  if (const auto* real = value->as<double>()) return *real;
  const auto* number = value->as<int64_t>();
  return number ? static_cast<double>(*number) : fallback;
}
const char* attribute_text(const TenonMatch* match, int32_t op, const char* name) {
  const AttrValue* value = attribute(match, op, name);
  if (!value) return nullptr;
  if (const auto* words = value->as<std::string>()) return words->c_str();
  const auto* dtype = value->as<DType>();
  if (!dtype) return nullptr;
  match->texts.push_back(dtype->str());
  return match->texts.back().c_str();
}
const int64_t* attribute_ints(const TenonMatch* match, int32_t op, const char* name,
                              int32_t* count) {
  const AttrValue* value = attribute(match, op, name);
  if (!value) return nullptr;
  const std::string key = std::to_string(op) + " " + name;
  auto found = match->int_lists.find(key);
  if (found == match->int_lists.end()) {
    std::vector<int64_t> numbers;
    if (const auto* list = value->as<AttrList>()) {
      for (const AttrValue& item : *list) {
        const auto* number = item.as<int64_t>();
        if (!number) return nullptr;
        numbers.push_back(*number);
      }
    } else if (const auto* number = value->as<int64_t>()) {
      numbers.push_back(*number);
    } else {
      return nullptr;
    }
    numbers.reserve(1);  // a list that is empty has an address too
    found = match->int_lists.emplace(key, std::move(numbers)).first;
  }
  if (count) *count = size_of(found->second);
  return found->second.data();
}

const char* option(const TenonMatch* match, const char* key) {
  const auto found = match->options.find(key ? key : "");
  return found == match->options.end() ? nullptr : found->second.c_str();
}
const char* target(const TenonMatch* match) { return match->target.c_str(); }

// -- answers -----------------------------------------------------------------------------------

int32_t fault(TenonAnswer* answer, std::string words) {
  if (answer->fault.empty()) answer->fault = std::move(words);
  return 1;
}

bool is_code(const std::string& code) {
  if (code.empty() || code.size() > 32) return false;
  for (const char c : code)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-')) return false;
  return true;
}

int32_t refuse(TenonAnswer* answer, const char* code, const char* words) {
  answer->is_refused = true;
  answer->code = printable(code ? code : "", 64);
  answer->words = printable(words ? words : "", 400);
  if (!is_code(answer->code))
    fault(answer, fmt::format("refused with the reason code `{}`; expected 1 to 32 of the "
                              "characters a-z, 0-9 and `-`",
                              answer->code));
  return 1;
}

bool fits(int32_t kind, Callback callback) {
  switch (kind) {
    case TENON_PACKED:
    case TENON_OMITTED: return callback == Callback::kPack;
    case TENON_SYMBOL:
    case TENON_TVMSCRIPT:
    case TENON_C:
    case TENON_OBJECT:
    case TENON_RUN:
    case TENON_C_PRELUDE: return callback == Callback::kGenerate;
    case TENON_MODULE: return callback == Callback::kPass;
    default: return false;
  }
}

int32_t emit(TenonAnswer* answer, int32_t kind, const void* data, int64_t size) {
  if (!fits(kind, answer->callback))
    return fault(answer, fmt::format("emitted {}, which it cannot give here", name_of_kind(kind)));
  if (answer->emitted.size() >= kMostEmissions)
    return fault(answer, fmt::format("emitted more than {} answers", kMostEmissions));
  if (kind == TENON_OMITTED) size = 0;
  if (!data && size != 0)
    return fault(answer, fmt::format("emitted {} without data", name_of_kind(kind)));
  if (size == TENON_TEXT) size = static_cast<int64_t>(std::strlen(static_cast<const char*>(data)));
  if (size < 0 || size > kMostBytes)
    return fault(answer, fmt::format("emitted {} of {} bytes; expected 0 to {}", name_of_kind(kind),
                                     size, kMostBytes));
  if (kind == TENON_PACKED && size == 0)
    return fault(answer,
                 "emitted TENON_PACKED of 0 bytes; TENON_OMITTED says that it is not needed");
  try {
    answer->emitted.push_back(
        {kind, std::string(static_cast<const char*>(data), static_cast<size_t>(size))});
  } catch (const std::exception&) {
    return fault(answer, "emitted more than fits in memory");
  }
  return 0;
}

int32_t link(TenonAnswer* answer, const char* library) {
  if (answer->callback != Callback::kGenerate)
    return fault(answer, "named a library outside of `generate`");
  if (!library) {
    answer->links_itself = true;
    return 0;
  }
  const std::string name = printable(library, 4096);
  // Names reach linkers, Makefiles and shells; a folder is refused later, with other words.
  const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_.+-/").find(c) != std::string_view::npos;
  });
  if (name.empty() || name != library || name[0] == '-' || !is_plain)
    return fault(answer, fmt::format("links `{}`, which is no name of a library", name));
  if (answer->libraries.size() >= 64) return fault(answer, "links more than 64 libraries");
  answer->libraries.push_back(name);
  return 0;
}

void log(TenonAnswer* answer, const char* words) {
  try {
    if (answer->keeps_logs) {
      constexpr size_t kMostLogs = 10'000;
      if (answer->logs.size() < kMostLogs)
        answer->logs.push_back(printable(words ? words : "", 2000));
      return;
    }
    record({"Plugin",
            answer->subject,
            "said",
            answer->backend,
            {},
            printable(words ? words : "", 2000),
            {}});
  } catch (const std::exception&) {
  }
}

// -- what Tenon would do -----------------------------------------------------------------------

const char* choose(const TenonMatch* match, int32_t op) {
  try {
    if (op < 0 || op >= num_operators(match)) return nullptr;
    const auto text = match->source->choice(*match, op);
    if (!text) return nullptr;
    match->texts.push_back(*text);
    return match->texts.back().c_str();
  } catch (const std::exception&) {
    return nullptr;
  }
}

const char* argument(const TenonAnswer* answer, const char* key) {
  if (!answer->arguments || !key) return nullptr;
  try {
    const AttrValue* value = answer->arguments->find(key);
    if (!value) return nullptr;
    const auto* words = value->as<std::string>();
    answer->texts.push_back(words ? *words : value->str());
    return answer->texts.back().c_str();
  } catch (const std::exception&) {
    return nullptr;
  }
}

const char* choose_in(TenonAnswer* answer, const char* function, const char* variable) {
  if (!answer->choose_in || !function || !variable) return nullptr;
  try {
    const auto text = answer->choose_in(function, variable);
    if (!text) return nullptr;
    answer->texts.push_back(*text);
    return answer->texts.back().c_str();
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace

std::string name_of_kind(int32_t kind) {
  switch (kind) {
    case TENON_PACKED: return "TENON_PACKED";
    case TENON_OMITTED: return "TENON_OMITTED";
    case TENON_SYMBOL: return "TENON_SYMBOL";
    case TENON_TVMSCRIPT: return "TENON_TVMSCRIPT";
    case TENON_C: return "TENON_C";
    case TENON_OBJECT: return "TENON_OBJECT";
    case TENON_RUN: return "TENON_RUN";
    case TENON_C_PRELUDE: return "TENON_C_PRELUDE";
    case TENON_MODULE: return "TENON_MODULE";
    default: return fmt::format("an answer of kind {}", kind);
  }
}

std::string printable(const char* text, size_t limit) {
  std::string out(text, strnlen(text, limit));
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 32 || c == 127) c = '?';
  return out;
}

const TenonHost* host() {
  static const TenonHost kHost = {
      .size = sizeof(TenonHost),
      .abi = TENON_BACKEND_ABI,
      .version = TENON_VERSION,
      .pattern = pattern,
      .symbol = symbol,
      .where = where,
      .text = text,
      .num_inputs = num_inputs,
      .num_outputs = num_outputs,
      .input = input,
      .output = output,
      .output_source = output_source,
      .num_symbols = num_symbols,
      .symbol_name = symbol_name,
      .num_operators = num_operators,
      .operator_name = operator_name,
      .part = part,
      .num_operands = num_operands,
      .operand = operand,
      .result = result,
      .annotated = annotated,
      .num_attributes = num_attributes,
      .attribute_name = attribute_name,
      .attribute_int = attribute_int,
      .attribute_number = attribute_number,
      .attribute_text = attribute_text,
      .attribute_ints = attribute_ints,
      .option = option,
      .target = target,
      .refuse = refuse,
      .emit = emit,
      .link = link,
      .log = log,
      .choose = choose,
      .argument = argument,
      .choose_in = choose_in,
  };
  return &kHost;
}

}  // namespace tenon::plugin
