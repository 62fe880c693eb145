// SPDX-License-Identifier: Apache-2.0
// Constants beside a text: named by content hash, or written in place where they are
// short.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tenon/ir/constant.h"
#include "tenon/support/quoted.h"

namespace tenon::script {

/// Constants by content hash, in the order in which they were added. The printer fills one, the
/// parser reads it.
class ConstantStore {
 public:
  /// Adds `data` unless its content is there already; returns the hash.
  const std::string& add(const Ref<TensorData>& data);
  /// Null where there is none of this hash.
  Ref<TensorData> find(std::string_view hash) const;
  const std::vector<Ref<TensorData>>& items() const { return items_; }

 private:
  std::vector<Ref<TensorData>> items_;
  std::unordered_map<std::string, size_t> index_;
};

/// An element as it is written: an integer (also of bools) or a floating-point number.
/// Appends dtype.bytes() bytes to `out`. False where `dtype` has no such literals, or an integer
/// does not fit it.
bool append_element(DType dtype, int64_t value, std::vector<std::byte>& out);
bool append_element(DType dtype, double value, std::vector<std::byte>& out);

/// Whether every element of `data` (the first `elements` of it) is exactly what its literal gives.
bool has_exact_literals(const TensorData& data);

/// The shortest decimal that reads back as `value` in `dtype`: "0.1", "1e-05", "2.0", "-0.0";
/// "nan", "inf" and "-inf" where it is not finite.
std::string float_text(DType dtype, double value);

}  // namespace tenon::script
