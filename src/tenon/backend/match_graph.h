// SPDX-License-Identifier: Apache-2.0
// A match of include/tenon/backend.h as a graph of values and operators, the matches of a region
// joined: the form that the back ends of libraries work on.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tenon/backend.h"

namespace tenon::backend {

/// "No", in a callback: a reason code and words.
struct Refusal {
  std::string code, words;
};

struct MatchGraph {
  struct Value {
    std::string dtype;
    std::vector<int64_t> shape;  // TENON_SYMBOLIC where a dimension is not a number
    std::vector<int> symbols;    // for each dimension: of the match, -1: none; empty: a part's
    int input = -1;              // which of the match's; -1: an operator's result
    const void* data = nullptr;  // of a constant
    bool operator==(const Value&) const = default;
  };
  struct Argument {
    enum class Kind : uint8_t { kNone, kValue, kInts, kNumber, kText };
    Kind kind = Kind::kNone;
    int value = -1;
    std::vector<int64_t> ints;
    double number = 0;
    std::string text;
    bool operator==(const Argument&) const = default;
  };
  struct Attribute {
    bool is_ints = false;
    std::vector<int64_t> ints;
    double number = 0;
    std::string text;
    bool operator==(const Attribute&) const = default;
  };
  struct Operator {
    std::string name;  // "nn.conv2d"
    std::vector<Argument> args;
    std::map<std::string, Attribute> attributes;
    int result = -1;  // the first, where it gives a tuple
    bool operator==(const Operator&) const = default;

    /// \throws Refusal ("operand") where argument `i` is no tensor.
    int value_arg(size_t i) const;
    /// A number given as a scalar.
    /// \throws Refusal ("operand")
    double number_arg(size_t i) const;
    int64_t integer(const std::string& name, int64_t fallback) const;
    double number(const std::string& name, double fallback) const;
    std::string text(const std::string& name, const std::string& fallback) const;
    /// Empty where it is absent.
    std::vector<int64_t> ints(const std::string& name) const;
  };

  /// What the pattern of one match bound to its names, and the match's results.
  struct Part {
    std::map<std::string, int> bound;
    std::vector<int> results;
    bool operator==(const Part&) const = default;

    /// -1 where the name has no part in the match.
    int operator[](const std::string& name) const;
  };

  std::vector<Value> values;
  std::vector<Operator> operators;
  std::vector<Part> parts;           // with what was asked for
  std::vector<int> inputs, outputs;  // values
  int symbols = 0;                   // how many dimensions that are not numbers are arguments
  bool operator==(const MatchGraph&) const = default;

  const Value& operator[](int value) const { return values[static_cast<size_t>(value)]; }
  /// The value of a constant with one element of float32.
  bool is_scalar(int value, float* number) const;
  int64_t elements(int value) const;
};

/// \param names  of patterns, whose bindings `parts` gets.
/// \throws Refusal where it has no such form: an output that is an input, a result in the middle of
/// a tuple.
MatchGraph read_match(const TenonHost* host, const TenonMatch* match,
                      std::span<const char* const> names = {});

}  // namespace tenon::backend
