// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/plugin/wire.h"

namespace tenon::plugin {

namespace {

using Operand = TenonMatch::Operand;
using Tensor = TenonMatch::Tensor;

constexpr int kDeepest = 64;  // of lists in lists, and of parts in parts

enum Kind : uint8_t { kNone, kFlag, kInteger, kReal, kText, kType, kList, kMap };

void put_value(WireWriter& out, const AttrValue& value) {
  if (const auto* flag = value.as<bool>()) {
    out.put(static_cast<uint8_t>(kFlag));
    out.put(static_cast<uint8_t>(*flag));
  } else if (const auto* integer = value.as<int64_t>()) {
    out.put(static_cast<uint8_t>(kInteger));
    out.put(*integer);
  } else if (const auto* real = value.as<double>()) {
    out.put(static_cast<uint8_t>(kReal));
    out.put(*real);
  } else if (const auto* text = value.as<std::string>()) {
    out.put(static_cast<uint8_t>(kText));
    out.put(*text);
  } else if (const auto* dtype = value.as<DType>()) {
    out.put(static_cast<uint8_t>(kType));
    out.put(dtype->str());
  } else if (const auto* list = value.as<AttrList>()) {
    out.put(static_cast<uint8_t>(kList));
    out.put(static_cast<uint64_t>(list->size()));
    for (const AttrValue& item : *list) put_value(out, item);
  } else if (const auto* map = value.as<AttrValue::Map>()) {
    out.put(static_cast<uint8_t>(kMap));
    out.put(static_cast<uint64_t>(map->size()));
    for (const auto& [key, item] : *map) {
      out.put(key);
      put_value(out, item);
    }
  } else {
    out.put(static_cast<uint8_t>(kNone));
  }
}

AttrValue read_value(WireReader& in, int depth) {
  if (depth > kDeepest) throw BadWire();
  switch (in.number<uint8_t>()) {
    case kNone: return {};
    case kFlag: return in.number<uint8_t>() != 0;
    case kInteger: return in.number<int64_t>();
    case kReal: return in.number<double>();
    case kText: return in.string();
    case kType: {
      const auto dtype = DType::parse(in.text());
      if (!dtype) throw BadWire();
      return *dtype;
    }
    case kList: {
      AttrList list;
      for (size_t n = in.count(); n > 0; --n) list.push_back(read_value(in, depth + 1));
      return list;
    }
    case kMap: {
      AttrValue::Map map;
      for (size_t n = in.count(); n > 0; --n) {
        std::string key = in.string();
        map[std::move(key)] = read_value(in, depth + 1);
      }
      return map;
    }
    default: throw BadWire();
  }
}

void put_operand(WireWriter& out, const TenonOperand& view) {
  out.put(view.kind);
  out.put(view.index);
  out.put(view.field);
  out.put(view.number);
  out.put(static_cast<uint64_t>(view.ints ? view.count : 0));
  for (int32_t i = 0; view.ints && i < view.count; ++i) out.put(view.ints[i]);
  out.put(view.text ? view.text : "");
}

std::unique_ptr<Operand> read_operand(WireReader& in) {
  auto out = std::make_unique<Operand>();
  out->view.kind = in.number<int32_t>();
  out->view.index = in.number<int32_t>();
  out->view.field = in.number<int32_t>();
  out->view.number = in.number<double>();
  for (size_t n = in.count(); n > 0; --n) out->ints.push_back(in.number<int64_t>());
  out->text = in.string();
  out->view.count = static_cast<int32_t>(out->ints.size());
  if (!out->ints.empty()) out->view.ints = out->ints.data();
  if (out->view.kind == TENON_OPERAND_TEXT) out->view.text = out->text.c_str();
  return out;
}

void put_tensor(WireWriter& out, const Tensor& tensor) {
  out.put(tensor.name);
  out.put(tensor.type);
  out.put(tensor.dtype);
  out.put(tensor.view.element_bytes);
  out.put(tensor.view.rank);
  out.put(tensor.view.bytes);
  out.put(static_cast<uint64_t>(tensor.shape.size()));
  for (const int64_t dim : tensor.shape) out.put(dim);
  for (const int32_t symbol : tensor.symbols) out.put(symbol);
  out.put(static_cast<uint8_t>(tensor.data ? 1 : 0));
}

std::unique_ptr<Tensor> read_tensor(WireReader& in) {
  auto out = std::make_unique<Tensor>();
  out->name = in.string();
  out->type = in.string();
  out->dtype = in.string();
  TenonTensor& view = out->view;
  view.name = out->name.c_str();
  view.type = out->type.c_str();
  view.dtype = out->dtype.c_str();
  view.element_bytes = in.number<int32_t>();
  view.rank = in.number<int32_t>();
  view.bytes = in.number<int64_t>();
  const size_t rank = in.count();
  if (view.rank >= 0 && static_cast<size_t>(view.rank) != rank) throw BadWire();
  for (size_t i = 0; i < rank; ++i) out->shape.push_back(in.number<int64_t>());
  for (size_t i = 0; i < rank; ++i) out->symbols.push_back(in.number<int32_t>());
  out->has_data = in.number<uint8_t>() != 0;
  if (view.rank >= 0) {
    out->shape.reserve(1);  // a list that is empty has an address too
    out->symbols.reserve(1);
    view.shape = out->shape.data();
    view.symbols = out->symbols.data();
  }
  return out;
}

template <typename Items, typename Put>
void put_all(WireWriter& out, const Items& items, const Put& put_one) {
  out.put(static_cast<uint64_t>(items.size()));
  for (const auto& item : items) put_one(out, *item);
}
template <typename Item, typename Read>
void read_all(WireReader& in, std::vector<std::unique_ptr<Item>>& items, const Read& read_one) {
  for (size_t n = in.count(); n > 0; --n) items.push_back(read_one(in));
}
void put_operands(WireWriter& out, const std::vector<std::unique_ptr<Operand>>& operands) {
  put_all(out, operands, [](WireWriter& o, const Operand& item) { put_operand(o, item.view); });
}

void put_match(WireWriter& out, const TenonMatch& match) {
  for (const std::string* text : {&match.pattern, &match.symbol, &match.where, &match.target})
    out.put(*text);
  put(out, match.attrs);
  out.put(static_cast<uint64_t>(match.options.size()));
  for (const auto& [key, value] : match.options) {
    out.put(key);
    out.put(value);
  }
  out.put(static_cast<uint64_t>(match.annotations.size()));
  for (const auto& [name, operand] : match.annotations) {
    out.put(name);
    put_operand(out, operand->view);
  }
  put_all(out, match.inputs, put_tensor);
  put_all(out, match.outputs, put_tensor);
  put_operands(out, match.output_sources);
  out.put(static_cast<uint64_t>(match.symbol_names.size()));
  for (const std::string& name : match.symbol_names) out.put(name);
  out.put(static_cast<uint64_t>(match.operators.size()));
  for (const TenonMatch::Operator& op : match.operators) {
    out.put(op.name);
    put(out, op.attrs);
    put_operands(out, op.operands);
    put_all(out, op.results, put_tensor);
    out.put(static_cast<uint8_t>(op.part ? 1 : 0));
    if (op.part) put_match(out, *op.part);
  }
}

std::unique_ptr<TenonMatch> read_match_at(WireReader& in, const std::vector<int32_t>& place) {
  if (place.size() > kDeepest) throw BadWire();
  auto match = std::make_unique<TenonMatch>();
  match->place = place;
  for (std::string* text : {&match->pattern, &match->symbol, &match->where, &match->target})
    *text = in.string();
  match->attrs = read_attrs(in);
  for (size_t n = in.count(); n > 0; --n) {
    std::string key = in.string();
    match->options[std::move(key)] = in.string();
  }
  for (size_t n = in.count(); n > 0; --n) {
    std::string name = in.string();
    match->annotations[std::move(name)] = read_operand(in);
  }
  read_all(in, match->inputs, read_tensor);
  read_all(in, match->outputs, read_tensor);
  read_all(in, match->output_sources, read_operand);
  for (size_t n = in.count(); n > 0; --n) match->symbol_names.push_back(in.string());
  const size_t operators = in.count();
  for (size_t i = 0; i < operators; ++i) {
    TenonMatch::Operator op;
    op.name = in.string();
    op.attrs = read_attrs(in);
    read_all(in, op.operands, read_operand);
    read_all(in, op.results, read_tensor);
    if (in.number<uint8_t>() != 0) {
      std::vector<int32_t> inner = place;
      inner.push_back(static_cast<int32_t>(i));
      op.part = read_match_at(in, inner);
    }
    match->operators.push_back(std::move(op));
  }
  return match;
}

}  // namespace

void put(WireWriter& out, const Attrs& attrs) {
  out.put(static_cast<uint64_t>(attrs.size()));
  for (const auto& [name, value] : attrs) {
    out.put(name);
    put_value(out, value);
  }
}

Attrs read_attrs(WireReader& in) {
  Attrs out;
  for (size_t n = in.count(); n > 0; --n) {
    const std::string name = in.string();
    out.set(name, read_value(in, 0));
  }
  return out;
}

void put(WireWriter& out, const TenonMatch& match) { put_match(out, match); }
std::unique_ptr<TenonMatch> read_match_bytes(WireReader& in) { return read_match_at(in, {}); }

void put(WireWriter& out, const TenonAnswer& answer) {
  out.put(static_cast<uint8_t>(answer.is_refused));
  out.put(answer.code);
  out.put(answer.words);
  out.put(answer.fault);
  out.put(static_cast<uint64_t>(answer.emitted.size()));
  for (const TenonAnswer::Emitted& item : answer.emitted) {
    out.put(item.kind);
    out.put(item.bytes);
  }
  out.put(static_cast<uint64_t>(answer.libraries.size()));
  for (const std::string& library : answer.libraries) out.put(library);
  out.put(static_cast<uint8_t>(answer.links_itself));
  out.put(static_cast<uint64_t>(answer.logs.size()));
  for (const std::string& words : answer.logs) out.put(words);
}

void replay(WireReader& in, TenonAnswer& answer) {
  const bool is_refused = in.number<uint8_t>() != 0;
  const std::string code = in.string(), words = in.string(), fault = in.string();
  if (is_refused) host()->refuse(&answer, code.c_str(), words.c_str());
  if (!fault.empty() && answer.fault.empty()) answer.fault = printable(fault.c_str(), 2000);
  for (size_t n = in.count(); n > 0; --n) {
    const auto kind = in.number<int32_t>();
    const std::string_view bytes = in.text();
    host()->emit(&answer, kind, bytes.data(), static_cast<int64_t>(bytes.size()));
  }
  for (size_t n = in.count(); n > 0; --n) host()->link(&answer, in.string().c_str());
  if (in.number<uint8_t>() != 0) host()->link(&answer, nullptr);
  for (size_t n = in.count(); n > 0; --n) host()->log(&answer, in.string().c_str());
}

}  // namespace tenon::plugin
