// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/onnx_values.h"

#include <algorithm>
#include <charconv>

#include "tenon/driver/tensors.h"
#include "tenon/driver/usage.h"
#include "tenon/import/onnx/import.h"
#include "tenon/import/onnx/maps.h"
#include "tenon/support/diagnostics.h"

namespace tenon {

std::map<std::string, int64_t> parse_lengths(const std::vector<std::string>& texts) {
  std::map<std::string, int64_t> lengths;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
      throw UsageError("--length {}: expected NAME=N or NAME=none", text);
    const std::string_view value = std::string_view(text).substr(equals + 1);
    int64_t number = -1;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool is_number =
        read.ec == std::errc() && read.ptr == value.data() + value.size() && number >= 0;
    if (!is_number && value != "none")
      throw UsageError("--length {}: expected a number of at least 0, or none", text);
    lengths[text.substr(0, equals)] = is_number ? number : onnx::ImportOptions::kAbsent;
  }
  return lengths;
}

void OnnxInputs::add(const onnx::ValueInfo& info, const OnnxValue& value) {
  lengths.push_back(info.name + "=" + (value ? std::to_string(value->size()) : "none"));
  for (size_t i = 0; value && i < value->size(); ++i) {
    const std::string name = info.is_sequence() ? fmt::format("{}[{}]", info.name, i) : info.name;
    shapes.push_back(fmt::format("{}={}", name, fmt::join((*value)[i]->shape, ",")));
    tensors[name] = (*value)[i];
  }
}

OnnxInputs take_sequences(const std::string& path, std::map<std::string, std::string>& files) {
  OnnxInputs out;
  const auto may_be = [](const auto& entry) {
    return entry.first.ends_with("]") || entry.second.ends_with(".pb");
  };
  if (!path.ends_with(".onnx") || std::ranges::none_of(files, may_be)) return out;
  for (const onnx::ValueInfo& info :
       onnx::with_maps_in_pairs(onnx::read_model(path)).graph.inputs) {
    if (info.kind == onnx::ValueKind::kTensor) continue;
    const auto whole = files.find(info.name);
    if (whole != files.end() && whole->second.ends_with(".pb")) {
      onnx::ValueFile file = onnx::read_value_pb(whole->second, info.kind);
      if (!file.unsupported.empty())
        throw CompileError(kUnsupported, {}, "{}: holds {}; expected tensors", whole->second,
                           file.unsupported);
      out.add(info, file.tensors);
      files.erase(whole);
      continue;
    }
    std::vector<Ref<TensorData>> tensors;
    for (auto file = files.find(info.name + "[0]"); file != files.end();
         file = files.find(fmt::format("{}[{}]", info.name, tensors.size()))) {
      tensors.push_back(read_tensor(file->second));
      files.erase(file);
    }
    if (!tensors.empty()) out.add(info, tensors);
  }
  return out;
}

namespace {

class Grouping {
 public:
  Grouping(const Signature& signature, const std::vector<Ref<TensorData>>& tensors)
      : signature_(signature), tensors_(tensors) {}

  OnnxValue value(const onnx::ValueInfo& info) {
    const std::string& name = info.name;
    if (Ref<TensorData> tensor = take(name)) return std::vector{std::move(tensor)};
    const Ref<TensorData> has = take(name + ".has");
    const bool is_there = !has || has->at_int(0) != 0;
    if (const Ref<TensorData> data = take(name + ".data")) {
      const Ref<TensorData> shapes = take(name + ".shapes");
      if (!shapes) fail(name);
      auto tensors = unpacked(*data, *shapes);
      return is_there ? OnnxValue(std::move(tensors)) : std::nullopt;
    }
    if (has) return std::nullopt;
    std::vector<Ref<TensorData>> items;
    while (Ref<TensorData> tensor = take(fmt::format("{}[{}]", name, items.size())))
      items.push_back(std::move(tensor));
    if (items.empty()) fail(name);
    return items;
  }

  void end() const {
    if (next_ < tensors_.size()) fail(signature_.outputs[next_].name);
  }

 private:
  [[noreturn]] static void fail(const std::string& name) {
    throw CompileError(kWrongForm, {}, "the program's outputs are not the network's, at `{}`",
                       name);
  }

  Ref<TensorData> take(const std::string& name) {
    if (next_ >= tensors_.size() || signature_.outputs[next_].name != name) return nullptr;
    return tensors_[next_++];
  }

  static std::vector<Ref<TensorData>> unpacked(const TensorData& data, const TensorData& shapes) {
    const auto bytes = data.data();
    const int64_t width = shapes.shape[1];
    std::vector<Ref<TensorData>> out;
    size_t at = 0;
    for (int64_t i = 0; i < shapes.shape[0]; ++i) {
      std::vector<int64_t> shape;
      shape.reserve(static_cast<size_t>(width));
      for (int64_t d = 0; d < shapes.at_int(i * width); ++d)
        shape.push_back(shapes.at_int(i * width + 1 + d));
      const auto size =
          static_cast<size_t>(checked_elements(shape, data.dtype.bytes()) * data.dtype.bytes());
      check(at + size <= bytes.size(), "a packed sequence with less data than its shapes have");
      out.push_back(TensorData::owned(data.dtype, std::move(shape),
                                      {bytes.begin() + static_cast<std::ptrdiff_t>(at),
                                       bytes.begin() + static_cast<std::ptrdiff_t>(at + size)}));
      at += size;
    }
    return out;
  }

  const Signature& signature_;
  const std::vector<Ref<TensorData>>& tensors_;
  size_t next_ = 0;
};

}  // namespace

std::vector<OnnxValue> grouped(const std::vector<onnx::ValueInfo>& outputs,
                               const Signature& signature,
                               const std::vector<Ref<TensorData>>& tensors) {
  Grouping grouping(signature, tensors);
  std::vector<OnnxValue> out;
  out.reserve(outputs.size());
  for (const onnx::ValueInfo& info : outputs) out.push_back(grouping.value(info));
  grouping.end();
  return out;
}

}  // namespace tenon
