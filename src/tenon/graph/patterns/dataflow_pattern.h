// SPDX-License-Identifier: Apache-2.0
// Patterns of graph values, in TVM's combinators: `is_op("relax.nn.relu")(wildcard())`. What
// matches them: graph/patterns/matcher.h; what replaces matches: graph/patterns/rewriter.h.
// docs/patterns.md is the guide.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tenon/graph/patterns/pattern_nodes.h"

namespace tenon::graph {

struct PatternSeq;

/// A pattern. A handle: a copy is the same pattern, which binds the same value; `dup()` gives
/// another that looks alike.
class DFPattern : public PatternPtr {
 public:
  using PatternPtr::PatternPtr;
  DFPattern() = default;
  DFPattern(const PatternPtr& pattern) : PatternPtr(pattern) {}

  /// A call of this (an operator, a function) on these arguments, all of them.
  template <typename... Args>
  DFPattern operator()(const Args&... args) const {
    return call({DFPattern(args)...});
  }
  DFPattern call(std::vector<DFPattern> args) const;
  /// A call whose first arguments are these.
  DFPattern call_with_more(std::vector<DFPattern> args) const;
  /// A call on whatever arguments.
  DFPattern call_with_any() const;
  /// Item `index` of this tuple.
  DFPattern operator[](int64_t index) const;

  DFPattern has_dtype(DType dtype) const;
  DFPattern has_shape(std::vector<Expr> dims) const;
  DFPattern has_shape(const std::vector<int64_t>& dims) const;
  DFPattern has_attr(Attrs attrs) const;
  DFPattern has_type(graph::Type type) const;

  /// The same pattern, all of its nodes with identities of their own.
  DFPattern dup() const;

  /// Constraints, which a PatternContext holds: what this matches is an argument (number `index`,
  /// or any where it is -1) of what the first of `users` matches; `only`: and of nothing else.
  PatternSeq used_by(const PatternSeq& users, int64_t index = -1) const;
  PatternSeq only_used_by(const PatternSeq& users, int64_t index = -1) const;
  /// `used_by` each of them.
  PatternSeq fork_to(const std::vector<DFPattern>& users) const;
};

// ---- combinators ------------------------------------------------------------------------------

DFPattern wildcard();
DFPattern is_var(std::string name = "");
DFPattern is_dfv(std::string name = "");  // a variable of a dataflow block
DFPattern is_gv(std::string name = "");   // a function of the module
DFPattern is_const();
DFPattern is_expr(Value value);
/// \throws CompileError (kUnknownOperator): "relax.add", "nn.conv2d".
DFPattern is_op(const std::string& name, Origin origin = {});
DFPattern extern_func(std::string symbol = "");
DFPattern prim_func(Ref<tir::PrimFunc> function);
DFPattern function_pattern(std::vector<DFPattern> params, DFPattern body);
enum class TupleOrder : uint8_t { kOrdered, kUnordered };
DFPattern is_tuple(std::vector<DFPattern> items, TupleOrder order = TupleOrder::kOrdered);
DFPattern is_tuple_get_item(DFPattern tuple, int64_t index = -1);
DFPattern is_shape(std::vector<Expr> dims);
DFPattern operator|(const DFPattern& a, const DFPattern& b);
DFPattern operator&(const DFPattern& a, const DFPattern& b);
DFPattern operator~(const DFPattern& a);
inline DFPattern reject(const DFPattern& a) { return ~a; }
DFPattern any_of(const std::vector<DFPattern>& patterns);  // at least one

/// R.call_tir of a function of the module (any where the name is empty), on a tuple of arguments,
/// with scalars `tir_vars`; what is not given may be anything.
struct CallTIRPattern {
  DFPattern function = {};
  std::optional<std::vector<DFPattern>> args = {};
  DFPattern tir_vars = {};
};
DFPattern is_call_tir(const CallTIRPattern& parts);
DFPattern is_call_tir(std::string name, std::optional<std::vector<DFPattern>> args = {},
                      DFPattern tir_vars = {});
/// The same of a PrimFunc that `function` matches, whatever its name.
DFPattern is_call_tir(Ref<tir::PrimFunc> function, std::optional<std::vector<DFPattern>> args = {},
                      DFPattern tir_vars = {});
DFPattern is_call_dps_packed(std::string symbol, std::optional<std::vector<DFPattern>> args = {});
DFPattern is_call_packed(std::string symbol, std::optional<std::vector<DFPattern>> args = {});

/// `op(x, weight)`, then `add` of a bias if `with_bias`, then operator `activation` if it is not
/// empty; all wildcards.
struct FusedBiasActivation {
  std::string op;
  bool with_bias = false;
  std::string activation = {};
};
DFPattern make_fused_bias_activation_pattern(const FusedBiasActivation& parts);

// ---- constraints ------------------------------------------------------------------------------

/// `consumer` uses what `producer` matched, as argument `index` (-1: any); nothing else does where
/// it is `only`.
struct UseConstraint {
  DFPattern producer, consumer;
  int64_t index = -1;
  bool only = false;
};

/// A chain of patterns and the constraints between them.
struct PatternSeq {
  std::vector<DFPattern> patterns;
  std::vector<UseConstraint> uses = {};

  PatternSeq(DFPattern pattern) : patterns{std::move(pattern)} {}
  PatternSeq(std::vector<DFPattern> patterns, std::vector<UseConstraint> uses)
      : patterns(std::move(patterns)), uses(std::move(uses)) {}
  PatternSeq used_by(const PatternSeq& users, int64_t index = -1) const;
  PatternSeq only_used_by(const PatternSeq& users, int64_t index = -1) const;
  PatternSeq dup() const;
};
PatternSeq operator^(const PatternSeq& producer, const PatternSeq& consumer);   // used_by
PatternSeq operator>>(const PatternSeq& producer, const PatternSeq& consumer);  // only_used_by

/// Patterns and constraints that are matched together over one dataflow block, each pattern at a
/// binding of its own. A context within another begins as a copy of it.
struct PatternContext {
  std::vector<DFPattern> patterns;  // in the order in which they were first named
  std::vector<UseConstraint> uses;
  std::vector<std::vector<DFPattern>> same_shapes;

  PatternContext& add(const PatternSeq& seq);
  /// What these match has one shape.
  PatternContext& same_shape_as(std::vector<DFPattern> patterns);
};

// ---- graph functions as patterns --------------------------------------------------------------

/// How a graph function is read as a pattern.
struct GraphPatternOptions {
  bool exclusive = true;  // what it computes inside has no other use, but for its results
  const IRModule* module = nullptr;
  /// Where not null: gets what each variable of the body is bound to, by its name.
  std::map<std::string, DFPattern>* labels = nullptr;
};

/// What `function` computes, as a pattern. A parameter matches any value that its type allows (a
/// type without shape or dtype allows all), and the same value wherever it repeats; a constant
/// matches its equal. An operator's attributes must be those of the function; function attr `any`
/// names attributes that may have any value (or is True: all of them). Two things spelled
/// differently are one:
///  - `permute_dims(w)` of a parameter matches a constant: w is its transpose;
///  - a parameter of rank 1 matches what has one dimension other than 1: it is that vector.
/// With `module` given, a function that R.call_tir names is matched by its body rather than its
/// name (prim_func).
/// \throws CompileError (kBadPattern) where it is no pattern: no operator, control flow, a
/// parameter without use.
DFPattern pattern_from_function(const std::string& name, const Function& function,
                                const GraphPatternOptions& options = {});

/// The number of calls in a pattern (a shared one counts wherever it stands): of alternatives the
/// greater one's.
size_t pattern_size(const DFPattern& pattern);

/// The operators that a value of the pattern's root may be computed by; nothing where it may be
/// anything else too.
std::optional<std::vector<const OpDef*>> root_operators(const DFPattern& pattern);

}  // namespace tenon::graph
