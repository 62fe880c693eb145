// SPDX-License-Identifier: Apache-2.0
// The table of primitives: what each takes, gives and means. Traces print, parse and replay by it,
// and the methods of Python's Schedule are made of it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/tir/schedule/schedule.h"

namespace tenon::tir {

/// What an argument of a primitive is.
enum class ArgumentKind : uint8_t {
  kBlock,
  kLoop,
  kLoopOrBlock,
  kNumber,
  kNumbers,
  kText,
  kFloats,
  kExprs,     // numbers, expressions of the function's dimensions, `None`
  kScalar,    // of any dtype, or `None`
  kBuffer,    // ("read", number) or ("write", number)
  kIndexMap,  // a lambda
  kAny,
};
/// "a whole number": for messages. A number may be an expression of random ones, and what has the
/// default `None` may be `None`.
std::string_view words_of(ArgumentKind kind);

struct Primitive {
  struct Parameter {
    std::string name;
    ArgumentKind kind;
    std::string meaning = {};                     // a part of a sentence; empty: its name says it
    std::optional<AttrValue> default_value = {};  // of an attribute; none: it must be given
  };
  /// What it gives. A list may have any number of items, one too.
  enum class Result : uint8_t { kNone, kLoop, kLoops, kBlock, kBlocks, kNumber, kNumbers };

  std::string name;
  std::string summary;                // sentences, for the user
  std::vector<Parameter> inputs;      // loops and blocks; they come first
  std::vector<Parameter> attrs = {};  // the other arguments, in their order
  Result result = Result::kNone;
  bool is_variadic = false;  // takes its one input any number of times

  bool gives_blocks() const { return result == Result::kBlock || result == Result::kBlocks; }
  bool gives_numbers() const { return result == Result::kNumber || result == Result::kNumbers; }
  bool gives_list() const {
    return result == Result::kLoops || result == Result::kBlocks || result == Result::kNumbers;
  }
  /// The kind of input `i`.
  ArgumentKind input_kind(size_t i) const { return inputs.at(is_variadic ? 0 : i).kind; }
};

/// All of them, in the order of their subjects.
const std::vector<Primitive>& all_primitives();
/// Null where there is none of this name.
const Primitive* find_primitive(const std::string& name);

/// What is wrong with an argument; nothing where it is of its kind.
std::optional<std::string> misfit_of_input(const Primitive& primitive, size_t i,
                                           const TraceValue& given);
std::optional<std::string> misfit_of_attr(const Primitive& primitive, size_t i,
                                          const AttrValue& given);

/// As a trace prints it.
std::string text_of(const AttrValue& value);
/// A list of sizes as expressions, `None` as null.
std::vector<Expr> exprs_of(const AttrValue& value);
/// A layout: a list of variables, and one of expressions of them.
IndexMap index_map_of(const AttrValue& value);

using TensorIntrins = std::map<std::string, TensorIntrin>;  // by name of the implementation

/// `schedule.NAME(inputs..., attrs...)`, each argument of its kind.
/// \returns what it gives. \throws CompileError what the primitive throws.
std::vector<TraceValue> apply(Schedule& schedule, const Primitive& primitive,
                              const std::vector<TraceValue>& inputs,
                              const std::vector<AttrValue>& attrs,
                              const TensorIntrins& intrins = {});

}  // namespace tenon::tir
