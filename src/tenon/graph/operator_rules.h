// SPDX-License-Identifier: Apache-2.0
// Operators of one's own whose type rule is code of the program that Tenon is a part of. A function
// that declares an operator (graph/kernels.h) states one type; here each call gets a declaration of
// its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/graph/expr.h"
#include "tenon/ir/module.h"

namespace tenon::graph {

struct OperatorRule {
  std::string name;  // "com.example::Rope"
  /// A declaration whose tensors may have any type: inputs, attributes and their defaults.
  Ref<Function> schema = {};

  /// The function of a call, in a module with what it calls: attribute `op`, parameters as those of
  /// the schema, without inputs that are left out.
  struct Form {
    std::shared_ptr<const IRModule> module;
    std::string name;
  };
  /// \param inputs      types of the tensors; null where one is left out.
  /// \param attributes  with defaults where the call has none. \throws what the rule does.
  std::function<Form(const std::vector<Type>& inputs, const Attrs& attributes)> form = {};
};

/// The registry, of this process. Safe to use from several threads.
/// \throws CompileError (kRedefined) where there is one of this name, and `replaces` is false.
void register_operator_rule(OperatorRule rule, bool replaces);
bool unregister_operator_rule(const std::string& name);
/// Null where there is none.
std::shared_ptr<const OperatorRule> find_operator_rule(const std::string& name);

/// Attributes of a call: those of `given`, then the defaults of the schema's `op_attrs`.
/// \throws CompileError (kBadAttribute) where the schema has no such attribute, or one is missing.
Attrs attributes_of_call(const OperatorRule& rule, const Attrs& given, const Origin& origin);
/// The types of all inputs, null where one is left out.
/// \throws CompileError (kBadArgument) where they are too many, or one is missing that has to be there.
std::vector<Type> inputs_of_call(const OperatorRule& rule, std::vector<Type> given,
                                 const Origin& origin);
/// An attribute as the argument for a parameter of this type.
/// \throws CompileError (kBadAttribute) where it is of another kind.
Value attribute_value(const Var& param, const AttrValue& value, const Origin& origin);
/// The attribute that such an argument is.
AttrValue attribute_of(const Value& argument);

/// The form in `module`, under a name that is free, with what it calls. \returns the name
std::string add_form(IRModule& module, const OperatorRule::Form& form);

}  // namespace tenon::graph
