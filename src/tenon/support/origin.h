// SPDX-License-Identifier: Apache-2.0
// Where a node came from: a place in a script, a node of an ONNX network, or several of these.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// A text that was read: its name as the user gave it, and its contents, which diagnostics quote.
struct SourceFile {
  std::string name;
  std::string text;
};

struct OriginInfo;

/// The origin of a node. Empty where Tenon made the node without a model. Copying copies one
/// pointer. Never part of structural equality.
class Origin {
 public:
  Origin() = default;

  /// A range of one line of `file`; line and column count from 1, `length` in bytes.
  static Origin script(std::shared_ptr<const SourceFile> file, uint32_t line, uint32_t column,
                       uint32_t length = 1);
  /// A node of an ONNX (or other) network by its name and operator type, `file` being the model's
  /// path.
  static Origin model(std::string file, std::string node_name, std::string op_type);
  /// What came from several places (a fused kernel). Duplicates and empties are dropped.
  static Origin merge(const std::vector<Origin>& parts);
  /// This origin with a number, which tells apart operators of one place or node (operator_id.h)
  /// and is no part of any text. Merged origins have none.
  Origin numbered(uint32_t number) const;

  explicit operator bool() const { return info_ != nullptr; }
  const OriginInfo* operator->() const { return info_.get(); }
  const OriginInfo& operator*() const { return *info_; }

  /// `file:line:column` or ``file: node `name` (Op)``; parts of a merged origin are joined by ` +
  /// `.
  std::string str() const;
  /// A short name for reports: the ONNX node's name, or `file:line`.
  std::string name() const;

 private:
  std::shared_ptr<const OriginInfo> info_;
};

struct OriginInfo {
  enum class Kind : uint8_t { kScript, kModel, kMerged };
  Kind kind = Kind::kScript;
  std::shared_ptr<const SourceFile> file;  // kScript
  uint32_t line = 0, column = 0, length = 0;
  uint32_t number = 0;                   // 0: not numbered
  std::string path, node_name, op_type;  // kModel
  std::vector<Origin> parts;             // kMerged; never merged themselves
};

}  // namespace tenon
