// SPDX-License-Identifier: Apache-2.0
// Writes one random module. Internal to programs*.cpp.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "random.h"

namespace tenon::fuzz {

/// A dimension: a number, or a symbol whose value is not known but above 0.
struct Dim {
  std::string text;
  int64_t value = 0;  // 0: of a symbol
  bool is_symbol() const { return value == 0; }
};

/// A buffer of the function under way.
struct Array {
  std::string name, dtype;
  std::vector<Dim> shape;
  double bound = 0;      // of its values' magnitude
  bool is_exact = true;  // whole numbers
};

/// A variable of a loop or a block: at least 0, below `extent`.
struct Index {
  std::string name;
  Dim extent;
};

/// A scalar expression and what is known of its value.
struct Value {
  std::string text;
  double bound = 0;
  bool is_exact = true;
};

inline bool is_float(const std::string& dtype) { return dtype.starts_with("float"); }

/// The largest magnitude for which sums and products stay exact.
inline double room_of(const std::string& dtype) {
  if (dtype == "int8") return 127;
  if (dtype == "float16") return 1024;
  if (dtype == "float32") return 1 << 22;
  if (dtype == "bool") return 1;
  return 1 << 30;
}

/// Lines with their indentation.
class Lines {
 public:
  void add(const std::string& line) {
    text_ += std::string(static_cast<size_t>(depth_) * 4, ' ') + line + "\n";
  }
  void in() { ++depth_; }
  void out(int levels = 1) { depth_ -= levels; }
  int depth() const { return depth_; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int depth_ = 0;
};

class Writer {
 public:
  explicit Writer(Random& random) : random_(random) {}

  std::string module();

 private:
  // ---- sizes and names
  /// A size that is often 1 to 6, rarely one around a number of vector lanes.
  Dim dim(int64_t most) {
    if (symbol_ && random_.one_in(3)) return {"n", 0};
    const int64_t n = random_.one_in(10) && most > 8
                          ? random_.pick(std::vector<int64_t>{8, 15, 16, 17, 33})
                          : random_.from(1, std::min<int64_t>(most, 6));
    return {std::to_string(n), n};
  }
  std::vector<Dim> shape() {
    std::vector<Dim> out;
    int64_t room = 40;  // elements: thousands of programs a minute
    for (size_t n = 1 + random_.below(3); n > 0; --n) {
      out.push_back(dim(room));
      room /= out.back().is_symbol() ? 4 : out.back().value;
      room = std::max<int64_t>(room, 1);
    }
    random_.shuffle(out);
    return out;
  }
  std::string dtype() {
    static const std::vector<std::string> kTypes = {
        "float32", "float32", "float32", "float16", "float64", "int32", "int64", "int8", "bool"};
    return random_.pick(kTypes);
  }
  std::string fresh(const std::string& base) { return fmt::format("{}{}", base, ++names_); }
  static std::string text_of(const std::vector<Dim>& shape) {
    std::string out = "(";
    for (const Dim& d : shape) out += d.text + ", ";
    return out + ")";
  }
  static std::string joined(const std::vector<std::string>& items) {
    std::string out;
    for (const std::string& item : items) out += (out.empty() ? "" : ", ") + item;
    return out;
  }

  // ---- expressions
  std::string index_into(const Dim& extent, const std::vector<Index>& indices);
  std::string element(const Array& array, const std::vector<Index>& indices);
  Value leaf(const std::string& dtype, const std::vector<Index>& indices);
  Value expression(const std::string& dtype, const std::vector<Index>& indices, int depth);
  std::string condition(const std::vector<Index>& indices, int depth);
  static Value number(const std::string& dtype, int64_t value) {
    return {fmt::format("T.{}({})", dtype,
                        dtype == "bool" ? (value ? "True" : "False") : std::to_string(value)),
            static_cast<double>(std::abs(value))};
  }
  Value converted(Value value, const std::string& from, const std::string& to);
  const Array* readable(const std::function<bool(const Array&)>& suits);

  // ---- statements: each writes all of `to`
  using Body = std::function<void(const std::vector<Index>&)>;
  std::vector<std::string> loop_header(const std::string& name, const Dim& extent, bool last,
                                       bool may_run_at_once);
  void over(const std::vector<Dim>& extents, bool may_run_at_once, const Body& body);
  void block_over(const std::vector<Dim>& extents, const std::string& kinds, bool may_run_at_once,
                  const Body& body);
  void store(const Array& to, const std::vector<std::string>& at, const std::vector<Index>& indices,
             Value& known);
  Value elementwise(const Array& to);
  Value guarded(const Array& to);
  Value triangular(const Array& to);
  Value reduction(const Array& to);
  Value by_hand(const Array& to);
  Value scan(const Array& to);
  Value local_row(const Array& to);
  Value view(const Array& to);
  Value nested(const Array& to);
  Value counted(const Array& to);
  Value carried(const Array& to);
  Value behind(const Array& to);
  Value named(const Array& to);
  Value column_view(const Array& to);
  Value called(const Array& to);
  void stage(Array to);
  void helper(const std::string& name, const std::string& dtype, bool symbolic, int64_t length,
              bool scalar);

  Random& random_;
  Lines lines_;
  std::string helpers_;
  std::vector<Array> arrays_;  // that may be read
  bool symbol_ = false, exact_ = true;
  bool given_ = false;  // the extent of a callee's buffers is a parameter
  int names_ = 0;
};

inline std::vector<std::string> names_of(const std::vector<Index>& indices) {
  std::vector<std::string> out;
  for (const Index& index : indices) out.push_back(index.name);
  return out;
}

}  // namespace tenon::fuzz
