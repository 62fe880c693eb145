// SPDX-License-Identifier: Apache-2.0
// The value of a script's expression while it is read: a Python value, a node, or a named
// thing.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tenon/graph/expr.h"
#include "tenon/ir/module.h"
#include "tenon/script/ast.h"
#include "tenon/tir/stmt.h"

namespace tenon::script {

struct Object;

/// `T.axis.remap`, `R.nn.conv2d`, `py.range`: something that the language provides.
struct Path {
  std::string text;
};
/// The module itself (`cls`, or the name of its class).
struct ModuleName {};
/// `cls.f`, by the function's name in the module.
struct FunctionName {
  std::string name;
};
struct List {
  std::shared_ptr<const std::vector<Object>> items;
  bool is_tuple = false;
};
struct Dict {
  std::shared_ptr<const std::vector<std::pair<Object, Object>>> items;
};
/// `A[0:4, i]` with a slice in it: a region, or where a value is wanted the vector that it holds.
struct Region {
  Ref<tir::BufferRegion> region;
};
/// The pointer of T.allocate, which may be indexed as the buffer that it is.
struct Pointer {
  Ref<tir::Buffer> buffer;
};
/// `x.astype`, of a scalar expression or a buffer.
struct Method {
  std::shared_ptr<const Object> self;
  std::string name;
};
/// R.const_splat of a dtype and shape that are not known yet.
struct Splat {
  std::shared_ptr<const Object> element;
};

/// A function of a module that was read before. A module that names it gets it, with all that it
/// calls.
struct CapturedFunction {
  std::shared_ptr<const IRModule> module;
  std::string name;
};
/// A module that was read before; its functions are its attributes.
struct CapturedModule {
  std::shared_ptr<const IRModule> module;
};
/// Another value of the program around the text (host.h).
class HostValue;
struct Host {
  std::shared_ptr<const HostValue> value;
};

struct Object;
struct HelperText;
/// A Python function, a lambda or a macro, evaluated or expanded where it is called.
struct Helper {
  const ast::Stmt* definition = nullptr;  // null: a lambda
  const ast::Expr* lambda = nullptr;
  bool is_macro = false;
  size_t visible = 0;                           // the scopes whose names its body sees
  std::shared_ptr<const HelperText> text = {};  // null: of the text that is read
  /// Defaults of parameters that are known as values; others are evaluated from the text at a call.
  std::shared_ptr<const std::map<std::string, Object>> defaults = {};
};
/// A variable of a kernel that is assigned again inside of a loop or branch: a buffer of one
/// element.
struct Scalar {
  Ref<tir::Buffer> buffer;
};
/// A name whose value is not known: `reason` says why, after the name; empty where an error about
/// its definition has been reported.
struct Unknown {
  std::string reason;
  Place place;
};

struct Object {
  std::variant<std::monostate, bool, ast::Integer, double, std::string, DType, Expr,
               Ref<tir::Buffer>, Ref<tir::BufferRegion>, Region, Pointer, Path, ModuleName,
               FunctionName, List, Dict, Method, Splat, Ref<TensorData>, graph::Value, graph::Type,
               Helper, Scalar, Unknown, CapturedFunction, CapturedModule, Host>
      value;

  Object() = default;
  template <typename T>
    requires(!std::is_same_v<std::decay_t<T>, Object>)
  Object(T v) : value(std::move(v)) {}

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
  bool is_none() const { return std::holds_alternative<std::monostate>(value); }
  /// A number or bool of Python, which takes the dtype of what it meets.
  bool is_literal() const { return as<bool>() || as<ast::Integer>() || as<double>(); }
};

inline Object make_list(std::vector<Object> items, bool is_tuple) {
  return List{std::make_shared<const std::vector<Object>>(std::move(items)), is_tuple};
}

/// For messages: "a buffer", "the integer 4", "`T.grid`".
std::string describe(const Object& object);

}  // namespace tenon::script
