// SPDX-License-Identifier: Apache-2.0
// A function of a foreign library with its declared C signature: what `T.call_extern` calls.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/tir/param_group.h"
#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// What a library function does with a parameter. Scratch is memory that it needs and whose content
/// means nothing before and after the call: the caller allocates it like any other buffer.
enum class ParamUse : uint8_t { kIn, kOut, kInOut, kScratch };
std::string_view name_of(ParamUse use);  // "in", "out", "inout", "scratch"
std::optional<ParamUse> parse_param_use(std::string_view text);

/// How C writes the type of a parameter.
struct CType {
  enum class Kind : uint8_t {
    kScalar,   // `int32_t`, `size_t`, `float`: passed by value
    kPointer,  // `float *`, `const float *`, `void *`: the address of the first element
    kTensor,   // `DLTensor *`: address, shape and strides
    kText,     // `const char *`: a constant string
    kStruct,   // `const conv_params *`: of a ParamGroup; never parsed
  };
  Kind kind = Kind::kPointer;
  bool is_const = false;
  std::string element;  // "float", "int64_t", "void"; "DLTensor" of a tensor; "char" of a text

  /// One spelling: `const float*`.
  std::string str() const;
  /// From C's text, spaces where they may be. Nothing where it is no type of those above.
  static std::optional<CType> parse(std::string_view text);
  /// The element as a dtype; void for `void`, `DLTensor` and `char`. `size_t` is uint64.
  DType dtype() const;
};
/// The C type of a scalar or an element: "float", "int64_t"; empty where C99 has none.
std::string c_element(DType dtype);

/// A symbol of a library with its signature: for each parameter its C type, what is done with it
/// and its shape. Symbolic Vars in shapes are bound by calls as those of a PrimFunc are, and a
/// scalar parameter may be such a Var: it then takes the dimension.
///
/// Pointers are to compact, row-major memory unless a buffer declares strides; a buffer's alignment
/// (by default that of an element) is what the function asks of the pointer. A parameter of dtype
/// handle without a buffer takes a constant string.
///
/// A packed function is one whose arguments are packed into values with codes
/// (TenonPackedFunction, runtime/abi.h) and whose name is looked up: `symbol` is that name, each
/// `out` is a tensor of its result, in order, and every other parameter is an argument.
///
/// C's parameters are these, but for `groups`: scalars that make one array or struct of C's.
struct ExternFunction final : NodeOf<ExternFunction, FunctionNode> {
  std::string symbol;
  std::vector<Ref<Var>> params;  // in C's order: a scalar, or the handle of the buffer beside it
  std::vector<Ref<Buffer>> buffers;  // as many; null for a scalar
  std::vector<ParamUse> uses;        // as many; kIn for a scalar
  std::vector<std::string> c_types;  // as many, as CType::str() gives them
  std::vector<ParamGroup> groups;    // in order: scalars that C takes together
  DType result = kVoid;              // kVoid, or kInt32: a code, and other than 0 stops the program
  bool is_pure = true;          // no effect but on what it is given: may be dropped, moved, merged
  bool is_thread_safe = true;   // may run at the same time as itself
  bool works_in_place = false;  // an `out` may be the memory of an `in` of the same shape
  bool is_packed = false;       // a code is returned, and other than 0 stops the program
  Stmt body;                    // in terms of the parameters: what it computes; may be null

  struct Parts {
    std::vector<Ref<Var>> params = {};
    std::vector<Ref<Buffer>> buffers = {};
    std::vector<ParamUse> uses = {};        // empty: from const, else the last buffer is written
    std::vector<std::string> c_types = {};  // empty, or an empty item: from dtype and use
    std::vector<ParamGroup> groups = {};
    DType result = kVoid;
    bool is_pure = true, is_thread_safe = true, works_in_place = false, is_packed = false;
    Stmt body = {};
  };
  ExternFunction(std::string symbol, Parts parts, Attrs attrs = {}, Origin origin = {});
  /// Fills in what the parts leave open and checks the whole.
  void finish();
  CType c_type(size_t i) const { return *CType::parse(c_types[i]); }
  /// The group that parameter `i` is in; null where it is one of C's own.
  const ParamGroup* group_of(size_t i) const;
  /// The parameters as C has them.
  struct CParameter {
    std::string name;
    CType type;
    size_t first = 0, count = 1;        // of the parameters above
    const ParamGroup* group = nullptr;  // null: one parameter
  };
  std::vector<CParameter> c_parameters() const;
  /// The body as a function of its own; null where there is none.
  Ref<PrimFunc> reference() const;
  /// As C declares it: `int32_t f(const float* x, float* y)`.
  std::string prototype() const;

  static constexpr FunctionKind kKind = FunctionKind::kExternFunction;
  static constexpr std::string_view kName = "ExternFunction";
  static std::vector<FieldInfo> fields();

 private:
  void check_groups() const;
};

}  // namespace tenon::tir
