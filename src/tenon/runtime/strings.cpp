// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/strings.h"

#include <cstdlib>
#include <cstring>

namespace tenon::runtime {

RunStrings::RunStrings(std::span<const TenonString> own) {
  for (const TenonString& text : own) add({text.data, static_cast<size_t>(text.size)});
}

int64_t RunStrings::add(std::string_view text) {
  const auto id = static_cast<int64_t>(texts_.size());
  texts_.push_back(text);
  ids_.emplace(text, id);
  return id;
}

int64_t RunStrings::intern(std::string_view text) {
  if (const auto known = ids_.find(text); known != ids_.end()) return known->second;
  return add(kept_.emplace_back(text));
}

std::string_view RunStrings::text(int64_t id) {
  if (id < 0 || static_cast<size_t>(id) >= texts_.size())
    throw Error(TENON_ERROR_INTERNAL, "string " + std::to_string(id) + " is not in the table");
  return texts_[static_cast<size_t>(id)];
}

bool uses_strings(const TenonProgram& program) {
  const auto any = [](const TenonTensorInfo* tensors, int32_t count) {
    for (int32_t i = 0; i < count; ++i)
      if (tensors[i].code == TENON_DTYPE_STRING) return true;
    return false;
  };
  return program.string_count > 0 || any(program.inputs, program.input_count) ||
         any(program.outputs, program.output_count);
}

static std::vector<int64_t> shape_of(const DLTensor& tensor) {
  return {tensor.shape, tensor.shape + tensor.ndim};
}

Tensor numbers_of(StringTable& table, const DLTensor& texts) {
  Tensor out(kStringNumber, shape_of(texts));
  const auto* elements = static_cast<const TenonString*>(data_of(texts));
  for (int64_t& id : out.as<int64_t>()) {
    const TenonString& text = *elements++;
    if (text.size < 0 || (text.size > 0 && text.data == nullptr))
      throw Error(TENON_ERROR_ARGUMENT,
                  "a string of " + std::to_string(text.size) + " bytes, or without data");
    id = text.size == 0 ? table.intern({})
                        : table.intern({text.data, static_cast<size_t>(text.size)});
  }
  return out;
}

static int64_t characters(StringTable& table, std::span<const int64_t> numbers) {
  int64_t bytes = 0;
  for (const int64_t id : numbers) bytes += static_cast<int64_t>(table.text(id).size()) + 1;
  return bytes;
}

// Each text ends with a zero that does not count.
static void write(StringTable& table, std::span<const int64_t> numbers, TenonString* elements,
                  char* block) {
  for (const int64_t id : numbers) {
    const std::string_view text = table.text(id);
    if (!text.empty()) std::memcpy(block, text.data(), text.size());
    block[text.size()] = '\0';
    *elements++ = {block, static_cast<int64_t>(text.size())};
    block += text.size() + 1;
  }
}

Tensor texts_of(StringTable& table, const Tensor& numbers) {
  std::vector<std::string_view> texts;
  for (const int64_t id : numbers.as<int64_t>()) texts.push_back(table.text(id));
  return Tensor::of_texts(numbers.shape(), texts);
}

void copy_texts(StringTable& table, const Tensor& numbers, DLTensor& texts) {
  const std::span<const int64_t> ids = numbers.as<int64_t>();
  if (ids.empty()) return;
  auto* block = static_cast<char*>(std::malloc(static_cast<size_t>(characters(table, ids))));
  if (block == nullptr) throw Error(TENON_ERROR_MEMORY, "cannot allocate the texts of an output");
  write(table, ids, static_cast<TenonString*>(data_of(texts)), block);
}

void release_texts(DLTensor& texts) {
  auto* elements = static_cast<TenonString*>(data_of(texts));
  const int64_t count = element_count({texts.shape, static_cast<size_t>(texts.ndim)});
  if (texts.dtype.code != TENON_DTYPE_STRING || count == 0 || elements == nullptr) return;
  std::free(const_cast<char*>(elements[0].data));
  for (int64_t i = 0; i < count; ++i) elements[i] = {nullptr, 0};
}

}  // namespace tenon::runtime
