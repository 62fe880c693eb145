// SPDX-License-Identifier: Apache-2.0
// The helpers of generated C, each written once and only where it is used: vector types with their
// operations, and scalar functions that C has no operator for. Vectors are GNU vectors where the
// macro NAME_VECTORS is 1, else structs of lanes with plain loops; the code that uses them is the
// same.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tenon/support/dtype.h"

namespace tenon::c_backend {

/// The type of values: `float`, `int64_t`, `f32x8`. A vector of bools is one of int32 that are 0 or
/// -1, as comparisons of vectors give.
DType value_dtype(DType dtype);

class Prelude {
 public:
  explicit Prelude(std::string macro) : macro_(std::move(macro)) {}  // NAME_VECTORS

  /// Name of the type of a value. Notes that it is used.
  std::string type(DType dtype);

  /// A scalar function by its name, such as `max_f32`; it must be one of the table in
  /// scalar_functions.cpp.
  std::string function(const std::string& name);

  /// One way to write an operation on GNU vectors: an expression of $0, $1, ..., where the
  /// preprocessor's `condition` holds (empty: always).
  struct Form {
    std::string condition, text;
  };
  /// An operation on vectors: applied to the lanes by `scalar`, an expression of $0, $1, ...;
  /// `forms` are tried first. Returns its name, made of `stem` and the types.
  std::string lanewise(const std::string& stem, DType result, const std::vector<DType>& args,
                       const std::string& scalar, const std::vector<Form>& forms = {});
  /// A function on vectors with a body of its own, for both kinds of vectors, and `forms`.
  /// Parameters as C text; lanes in the body are written by lane().
  std::string custom(const std::string& name, const std::string& result,
                     const std::string& parameters, const std::string& body,
                     const std::vector<Form>& forms = {});

  /// Lane `i` of `vector`, which is a variable of type `dtype`.
  static std::string lane(DType dtype, const std::string& vector, const std::string& i);
  /// The compiler has a vector type of so many lanes; else it is a struct even there.
  static bool is_gnu(DType dtype);

  bool uses_math() const { return uses_math_; }
  void use_math() { uses_math_ = true; }
  bool uses_memcpy() const { return uses_memcpy_; }
  bool uses_prefetch() const { return uses_prefetch_; }
  void use_prefetch() { uses_prefetch_ = true; }
  bool has_vectors() const { return !types_.empty(); }

  /// All that was asked for, in the order in which it must stand.
  std::string text() const;

 private:
  struct Operation {
    std::string name, result, parameters, body;  // of a function over lanes
    std::vector<Form> forms;
  };

  std::string types_text() const;

  std::string macro_;
  std::map<std::string, DType> types_;  // vectors, by name
  std::vector<std::string> functions_;  // names
  std::vector<Operation> operations_;
  std::map<std::string, size_t> known_;
  bool uses_math_ = false, uses_memcpy_ = false, uses_prefetch_ = false;
};

/// Replaces $0, $1, ... by `args`.
std::string fill(const std::string& pattern, const std::vector<std::string>& args);

}  // namespace tenon::c_backend
