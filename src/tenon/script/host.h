// SPDX-License-Identifier: Apache-2.0
// The program that a text stands in, where one runs (Python): names that the text uses and does not
// define, as TVM takes them from closures and global variables.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tenon/script/object.h"

namespace tenon::script {

/// The values of names.
class HostNames {
 public:
  virtual ~HostNames() = default;
  /// Null where there is none of this name. Stays valid as long as this lives.
  virtual const Object* find(const std::string& name) const = 0;
};

/// A value of the program that is none of scripts; its attributes, its items and what its calls
/// give may be.
class HostValue {
 public:
  using Keywords = std::vector<std::pair<std::string, Object>>;

  virtual ~HostValue() = default;
  /// For messages: "a Python object of type `Config`".
  virtual std::string describe() const = 0;
  /// Nothing where it has none of this name.
  virtual std::optional<Object> attribute(const std::string& name) const = 0;
  /// Nothing where it has no such item.
  virtual std::optional<Object> item(const Object& index) const = 0;
  /// Nothing where it cannot be called, or an argument is no value of the program: an expression.
  virtual std::optional<Object> call(const std::vector<Object>& args,
                                     const Keywords& keywords) const = 0;
  /// The text of a function, to be evaluated by reading; nothing where there is none.
  virtual std::optional<Helper> helper() const = 0;

  /// Of an operator (graph/operator_rules.h): the function of a call on values of these types, null
  /// where one is left out, and what it is given behind them. Nothing where it is none.
  struct Form {
    CapturedFunction function;
    std::vector<graph::Value> attributes;
  };
  virtual bool is_operator() const { return false; }
  virtual std::optional<Form> form(const std::vector<graph::Type>&, const Keywords&,
                                   const Origin&) const {
    return std::nullopt;
  }
};

/// A function or macro of another text than the one that is read.
struct HelperText {
  std::shared_ptr<const SourceFile> file;
  ast::Body body;
  ast::ExprPtr expression;  // of a lambda
  std::shared_ptr<const HostNames> names;
};

/// The definition in these lines of `file`; it sees `names` alone.
/// \throws CompileError where the lines are something else, or with all that is wrong in them.
Helper read_helper(const std::shared_ptr<const SourceFile>& file, LineRange lines,
                   std::shared_ptr<const HostNames> names);

/// The lambda in the lines of `file` whose text is `text`; its places are `place`.
Helper read_lambda(const std::shared_ptr<const SourceFile>& file, const std::string& text,
                   const Place& place, std::shared_ptr<const HostNames> names);

}  // namespace tenon::script
