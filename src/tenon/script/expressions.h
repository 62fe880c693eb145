// SPDX-License-Identifier: Apache-2.0
// Expressions made from values rather than read from a text: what `R.add(x, y)` means where x and y
// are there already. The same rules as in texts.
#pragma once

#include "tenon/script/host.h"

namespace tenon::script {

/// What `word(args..., keywords...)` gives, `word` being "R.nn.relu" or "T.float32". Of an operator
/// it is a call, whose arguments may be calls in their turn.
/// \param captured  where not null: gets the functions of other modules that it calls, under the
///                  names that it has for them.
/// \throws CompileError as the text would.
Object call_word(const std::string& word, const std::vector<Object>& args,
                 const HostValue::Keywords& keywords = {}, IRModule* captured = nullptr);
/// `lhs op rhs`, of tensors an operator's call; `op`: "+", "<", "**", ...
Object operate(const std::string& op, const Object& lhs, const Object& rhs);
/// `lhs[index]`
Object item_of(const Object& lhs, const Object& index);
/// The object as a value of a graph: of a number or array a constant.
graph::Value value_of(const Object& object);
/// The object as a type: of "R.Tensor" the type of every tensor.
graph::Type type_of(const Object& object);
/// Dimensions: integers, expressions, and names of variables as strings.
std::vector<Expr> dimensions_of(const Object& object);

}  // namespace tenon::script
