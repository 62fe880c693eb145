// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/origin.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/support/operator_id.h"

namespace tenon {

// Operators of one node differ by their numbers only: what reads alike is said once.
static std::string joined(const std::vector<Origin>& parts,
                          std::string (Origin::*text_of)() const) {
  std::vector<std::string> texts;
  std::string out;
  for (const Origin& part : parts) {
    const std::string text = (part.*text_of)();
    if (std::find(texts.begin(), texts.end(), text) != texts.end()) continue;
    out += (texts.empty() ? "" : " + ") + text;
    texts.push_back(text);
  }
  return out;
}

Origin Origin::script(std::shared_ptr<const SourceFile> file, uint32_t line, uint32_t column,
                      uint32_t length) {
  auto info = std::make_shared<OriginInfo>();
  info->kind = OriginInfo::Kind::kScript;
  info->file = std::move(file);
  info->line = line;
  info->column = column;
  info->length = length;
  Origin origin;
  origin.info_ = std::move(info);
  return origin;
}

Origin Origin::model(std::string file, std::string node_name, std::string op_type) {
  auto info = std::make_shared<OriginInfo>();
  info->kind = OriginInfo::Kind::kModel;
  info->path = std::move(file);
  info->node_name = std::move(node_name);
  info->op_type = std::move(op_type);
  Origin origin;
  origin.info_ = std::move(info);
  return origin;
}

Origin Origin::merge(const std::vector<Origin>& parts) {
  std::vector<Origin> flat;
  const auto add = [&](const Origin& part) {
    const bool known = std::any_of(flat.begin(), flat.end(), [&](const Origin& other) {
      return is_same_operator(other, part);
    });
    if (part && !known) flat.push_back(part);
  };
  for (const Origin& part : parts) {
    if (part && part->kind == OriginInfo::Kind::kMerged) {
      for (const Origin& inner : part->parts) add(inner);
    } else {
      add(part);
    }
  }
  if (flat.empty()) return {};
  if (flat.size() == 1) return flat[0];
  auto info = std::make_shared<OriginInfo>();
  info->kind = OriginInfo::Kind::kMerged;
  info->parts = std::move(flat);
  Origin origin;
  origin.info_ = std::move(info);
  return origin;
}

Origin Origin::numbered(uint32_t number) const {
  if (!info_ || info_->kind == OriginInfo::Kind::kMerged) return *this;
  auto info = std::make_shared<OriginInfo>(*info_);
  info->number = number;
  Origin origin;
  origin.info_ = std::move(info);
  return origin;
}

OperatorId operator_id(const Origin& origin) { return {origin.str(), origin ? origin->number : 0}; }

bool is_same_operator(const Origin& a, const Origin& b) {
  if (!a || !b) return !a && !b;
  if (&*a == &*b) return true;
  return a->number == b->number && a->kind == b->kind && a->line == b->line &&
         a->column == b->column && operator_id(a) == operator_id(b);
}

std::string Origin::str() const {
  if (!info_) return "<generated>";
  switch (info_->kind) {
    case OriginInfo::Kind::kScript:
      return fmt::format("{}:{}:{}", info_->file ? info_->file->name : "<script>", info_->line,
                         info_->column);
    case OriginInfo::Kind::kModel:
      return fmt::format("{}: node `{}` ({})", info_->path, info_->node_name, info_->op_type);
    case OriginInfo::Kind::kMerged: return joined(info_->parts, &Origin::str);
  }
  return {};
}

std::string Origin::name() const {
  if (!info_) return "<generated>";
  switch (info_->kind) {
    case OriginInfo::Kind::kScript:
      return fmt::format("{}:{}", info_->file ? info_->file->name : "<script>", info_->line);
    case OriginInfo::Kind::kModel: return info_->node_name;
    case OriginInfo::Kind::kMerged: return joined(info_->parts, &Origin::name);
  }
  return {};
}

}  // namespace tenon
