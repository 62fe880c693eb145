// SPDX-License-Identifier: Apache-2.0
// Tensors as TVM stores them: in the metadata of a text, and in files of parameters.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tenon/ir/constant.h"

namespace tenon::relay {

/// Bytes that are read in order; every length is checked against what is left.
class Bytes {
 public:
  /// `what` names them in diagnostics, at `origin`; `keeper` keeps them alive.
  Bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper, std::string what,
        Origin origin)
      : bytes_(bytes), keeper_(std::move(keeper)), what_(std::move(what)), origin_(origin) {}

  /// Integers are little endian.
  template <typename T>
  T number() {
    T value{};
    const auto from = take(sizeof(T), "a number");
    std::memcpy(&value, from.data(), sizeof(T));
    return value;
  }
  std::span<const std::byte> take(uint64_t length, std::string_view part);
  bool empty() const { return at_ == bytes_.size(); }
  const std::shared_ptr<const void>& keeper() const { return keeper_; }
  const Origin& origin() const { return origin_; }
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw CompileError(kBadTensor, origin_, "{}: {}", what_,
                       fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> keeper_;
  std::string what_;
  Origin origin_;
  size_t at_ = 0;
};

/// One tensor. \throws CompileError kBadTensor, kOverflow where it is malformed.
Ref<TensorData> read_tensor(Bytes& bytes);

/// The bytes that a text in base64 stands for; nothing where it is none.
std::optional<std::vector<std::byte>> decode_base64(std::string_view text);

}  // namespace tenon::relay
