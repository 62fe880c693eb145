// SPDX-License-Identifier: Apache-2.0
// Strings of a run: a program works with numbers that stand for texts in a table of the run. The
// caller's texts get numbers when the run begins, copies of results leave it when it ends.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tenon/runtime/abi.h"
#include "tenon/runtime/dltensor.h"
#include "tenon/runtime/tensor.h"

namespace tenon::runtime {

/// Equal texts have equal numbers. From one thread at a time.
class StringTable {
 public:
  virtual ~StringTable() = default;
  virtual int64_t intern(std::string_view text) = 0;
  /// Of a number that intern() gave. \throws Error (TENON_ERROR_INTERNAL) for others.
  virtual std::string_view text(int64_t id) = 0;
};

/// The table of one run: the program's own texts first, in order.
class RunStrings final : public StringTable {
 public:
  explicit RunStrings(std::span<const TenonString> own);
  int64_t intern(std::string_view text) override;
  std::string_view text(int64_t id) override;

 private:
  int64_t add(std::string_view text);
  std::vector<std::string_view> texts_;
  std::deque<std::string> kept_;  // of texts that are not the program's; do not move
  std::unordered_map<std::string_view, int64_t> ids_;
};

inline constexpr DLDataType kStringElement{TENON_DTYPE_STRING, 128, 1};  // a TenonString
inline constexpr DLDataType kStringNumber{TENON_DTYPE_INT, 64, 1};

/// Whether inputs, outputs or constants of a program are strings.
bool uses_strings(const TenonProgram& program);

/// The numbers of a tensor of TenonStrings. \throws Error (TENON_ERROR_ARGUMENT) where a size is
/// negative or a text missing.
Tensor numbers_of(StringTable& table, const DLTensor& texts);
/// The texts of numbers, in one block with their characters.
Tensor texts_of(StringTable& table, const Tensor& numbers);
/// The same into elements of the caller, with the characters in one block from malloc, which begins
/// with the first element's. \throws Error (TENON_ERROR_MEMORY)
void copy_texts(StringTable& table, const Tensor& numbers, DLTensor& texts);

/// Frees what copy_texts() wrote there, and empties the elements.
void release_texts(DLTensor& texts);

/// A function on texts that programs call by `name` ("tenon.string.concat"), or null.
/// Tensors are compact. \throws Error
using StringFunction = void (*)(StringTable& table, std::span<const TenonValue> args,
                                const DLTensor& result);
StringFunction find_string_function(std::string_view name);

}  // namespace tenon::runtime
