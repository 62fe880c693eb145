// SPDX-License-Identifier: Apache-2.0
// Kernels of one's own: PrimFuncs of the module that say which operator they compute. LegalizeOps
// asks for them before it lowers an operator by itself. The annotations: docs/own-kernels.md.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tenon/graph/builder.h"
#include "tenon/graph/operator_attributes.h"
#include "tenon/graph/patterns/fusion_pattern.h"
#include "tenon/graph/user_placement.h"
#include "tenon/support/diagnostics.h"
#include "tenon/support/target.h"

namespace tenon::graph {

/// A graph function with attribute `op` that holds "::" (ONNX's domain and name) declares an
/// operator: its parameters are the inputs (tensors), then the attributes (scalars, shapes), its
/// result type is the type rule, and its body, where it has one, the meaning.
bool declares_operator(const FunctionNode& function);
/// A function that stands for one node of an ONNX network (onnx/node_function.h): attribute `op` is
/// the operator, `op_values` holds its attributes, the body what it means. It declares nothing.
bool is_node_function(const FunctionNode& function);
/// Whether it is a group: what a pattern of the module matched, as a function (attribute
/// `Composite`, the pattern's name), which a kernel with this name as `op` may compute.
bool is_group(const IRModule& module, const FunctionNode& function);
/// The module's pattern of this name: a graph function with attribute `Pattern`; null where it has
/// none.
Ref<Function> pattern_named(const IRModule& module, const std::string& name);
/// Its body is `...`: only kernels compute it.
bool has_no_body(const Function& function);
/// The body of a function whose text is `...`.
Ref<SeqExpr> no_body(const Type& result, const Origin& origin = {});

/// The function that declares operator `op` ("com.example::Rope"), with all inputs: the module's,
/// else the schema of a rule (graph/operator_rules.h); null where there is neither.
Ref<Function> declaration_of(const IRModule& module, const std::string& op);
/// Inputs of a declared operator that a node may leave out, in the declaration's order: tensors
/// whose default in `op_attrs` is None.
std::vector<std::string> optional_inputs(const Function& declared);
/// Those that this form of the operator is without; none of the declaration itself.
std::vector<std::string> left_out_inputs(const Function& declared);
/// The form of a declared operator for calls that leave out `names`: without these parameters and
/// without a body, since that may use them. \throws CompileError (kUnsupported) where the result
/// has a dimension that only they have.
Ref<Function> without_inputs(const Function& declared, const std::vector<std::string>& names);
/// The optional inputs that a kernel has no buffers for: those that its `op_attrs` pin to None, or
/// as many of the last as buffers are missing. `tensors`: of the whole operator, results included.
std::vector<std::string> left_out_by(const tir::PrimFunc& kernel,
                                     const std::vector<std::string>& optional, size_t tensors);
/// The same by the module's declaration of `op`; nothing where that is no declared operator.
std::vector<std::string> left_out_by(const IRModule& module, const tir::PrimFunc& kernel,
                                     const std::string& op);

/// What a name for an operator means: itself where it is one ("nn.softmax"), the one that ends in
/// it
/// ("softmax"), or those that ONNX's operator of this name becomes alone ("Softmax", "Conv").
/// Empty where it is none of these.
std::vector<const OpDef*> operators_named(std::string_view name);
/// Attributes of a call of `op` under the names that ONNX's operator has them by, where these
/// differ: `pads`, as begins and ends, for `padding`.
Attrs onnx_attributes(std::string_view op, const Attrs& attrs);
/// The attribute of `op` that ONNX calls `name`; `name` itself where it calls none so.
std::string own_attribute(std::string_view op, const std::string& name);
/// The name of an operator nearest to one that does not exist; empty where none is near.
std::string nearest_operator(std::string_view name);

/// A call of an operator, or of a declared one, as kernels see it.
struct OperatorCall {
  std::string op;  // "nn.softmax", "com.example::Rope"
  struct Input {
    std::string name;
    Value value;
    Ref<TensorType> type;
  };
  std::vector<Input> inputs;  // tensors, items of tuples one by one; without those left out
  std::vector<std::string> optional, left_out;  // inputs of a declared operator
  Attrs attrs;               // and arguments that are scalars or shapes, by the input's name
  OperatorAttributes named;  // what annotations and scalar parameters of kernels may name
  std::vector<Ref<TensorType>> outputs;
  bool gives_tuple = false;
  /// The operator; of several the one that the others surround. Null for a declared one.
  const OpDef* def = nullptr;
};
/// Nothing where `call` is of neither kind (a call primitive, a plain function), or gives or takes
/// what is no tensor of a known rank.
std::optional<OperatorCall> operator_call(const IRModule& module, const Call& call);
/// The same of a call of `function`, the module's or one that is not there yet: a group, a node, a
/// declared operator.
std::optional<OperatorCall> function_call(const IRModule& module, const Function& function,
                                          const std::vector<Value>& args);

/// An annotated PrimFunc.
struct OperatorKernel {
  std::string name;  // in the module
  Ref<tir::PrimFunc> function;
  std::vector<std::string> operators;  // that it computes
  std::string node;                    // of the network, where it is for one only
  int64_t priority = 0;
  bool is_requested = false;  // by --kernel
  size_t position = 0;        // among the module's kernels
};

/// Why a kernel does not take a call.
struct KernelRefusal {
  std::string code;   // "dtype", "rank", "shape", "attribute", "condition", "target", "arity", ...
  std::string words;  // both sides
};
/// A condition of a kernel that the program which calls Tenon decides: attribute `op_check` is the
/// name that it is registered under. It is asked last, about calls that the kernel would take
/// otherwise. \returns why it does not take the call; nothing where it does.
using KernelCondition = std::function<std::optional<std::string>(
    const OperatorKernel& kernel, const OperatorCall& call, const std::optional<Target>& target)>;
/// \returns the name: `like`, with a number behind it. Conditions stay until the program ends.
std::string register_condition(const std::string& like, KernelCondition condition);

/// Whether a word of `op_target` holds: a kind of target, a processor's name, a feature ("avx512",
/// "fma", "vector_bits>=512", one of LLVM's).
bool is_described_by(const Target& target, const std::string& word);

/// Attribute of the PrimFunc that a kernel becomes for a call: a map of the operator that it
/// computes
/// ("op") and of the call's attributes that are words (layouts), for passes that know its laws.
inline constexpr const char* kComputes = "computes";
/// How a kernel takes a call: as a PrimFunc for its attributes and constant dimensions.
struct KernelUse {
  Ref<tir::PrimFunc> function;
};
std::variant<KernelUse, KernelRefusal> match_kernel(const OperatorKernel& kernel,
                                                    const OperatorCall& call,
                                                    const std::optional<Target>& target);

/// Reads the annotations of one PrimFunc; adds what is wrong with them, or with the function for
/// its operator's type, to `diagnostics`. Nothing where it has none or they are wrong.
std::optional<OperatorKernel> read_kernel(const IRModule& module, const std::string& name,
                                          Diagnostics& diagnostics);

/// What is wrong with the module's kernels and declared operators:
///  - kUnknownOperator: the annotation names none;
///  - kBadKernel: an annotation of another kind, a parameter that is neither buffer nor attribute, a
///    condition that does not parse, another number of buffers than the operator has tensors;
///  - kDTypeMismatch, kRankMismatch, kShapeMismatch: the result that the operator's type rule gives
///    for the kernel's inputs against the kernel's outputs.
void verify_kernels(const IRModule& module, Diagnostics& diagnostics);

/// All kernels of a module, by operator.
class KernelTable {
 public:
  explicit KernelTable(const IRModule& module, UserPlacement::Providers user_placement = {});
  bool empty() const { return kernels_.empty(); }
  const std::vector<OperatorKernel>& kernels() const { return kernels_; }
  /// By name in the module; null where none is.
  const OperatorKernel* find(std::string_view name) const;

  /// `call` as R.call_tir of the first kernel that takes it; nothing where none does. Those for the
  /// call's node come first, then by priority, then in the module's order. User
  /// placement may leave the node to one kernel (`kernels.NAME`), to any (`kernels`), or to others.
  /// Records a remark for each kernel of its operator: used, or refused with the reason.
  /// \param variable  that the result is bound to: another name of the node.
  std::optional<Value> use(BlockBuilder& builder, const Call& call,
                           const std::string& variable = "") const;

  /// The names of patterns whose matches some kernel computes, the kernel of highest priority
  /// first.
  std::vector<std::string> groups(const IRModule& module) const;
  /// Why no kernel takes a match that became `composite`, of the one asked last; nothing where one
  /// does. Records nothing.
  struct GroupRefusal {
    std::string kernel;  // empty where none was asked
    KernelRefusal why;
  };
  std::optional<GroupRefusal> refusal_of_group(const IRModule& module, const Function& composite,
                                               const Origin& origin) const;

  /// "no kernel ..." for a call that none takes: the nearest reason, or that there are none.
  std::string nearest_refusal(const IRModule& module, const Call& call) const;

 private:
  std::vector<const OperatorKernel*> candidates(const OperatorCall& call,
                                                const std::vector<std::string>& nodes) const;
  /// Why the user's placement of one of these nodes forbids a kernel; nothing where none does.
  std::optional<KernelRefusal> placed_elsewhere(const OperatorKernel& kernel,
                                                const std::vector<std::string>& nodes) const;
  std::vector<OperatorKernel> kernels_;
  UserPlacement::Providers user_placement_;
  std::optional<Target> target_;
};

/// Replaces calls of operators by R.call_tir of the module's own kernels for them: PrimFuncs with
/// attribute `op` (graph/kernels.h), for the attributes and the constant dimensions of the call.
/// What stands so is no operator any more, so no later pass takes it apart. Records a remark for
/// each call and kernel: used, or refused with the reason.
IRModule select_kernels(IRModule module);

/// The pass in remarks.
inline constexpr const char* kSelectKernels = "SelectKernels";

/// How FuseOps may combine a kernel for `op` (null: a declared operator) with its neighbours:
/// kOpaque where it is scheduled, or not made of blocks.
FusionKind fusion_of(const tir::PrimFunc& function, const OpDef* op);
/// Whether its author gave it a schedule: loops that are not serial, split axes, annotations.
bool is_scheduled(const tir::PrimFunc& function);

// ---- op_when, and expressions over dimensions and attributes elsewhere

/// Names that an expression may use, and their values.
struct ExpressionNames {
  std::map<std::string, Expr> values = {};         // dimensions, mostly; they come first
  const OperatorAttributes* attributes = nullptr;  // `strides[0]`, `conv2d.strides[0]`
};
/// Arithmetic in Python's syntax: `m // 16 + strides[0]`, `axis == -1 and n > 0`. `what` it is
/// ("condition") begins the messages. \throws CompileError (`code`) where it does not parse or
/// names something unknown.
Expr parse_expression(std::string_view text, const ExpressionNames& names, const Origin& origin,
                      std::string_view what, const Code& code);
/// A condition: `n % 16 == 0 and axis == -1`. \throws CompileError (kBadKernel), also where it is a
/// number.
Expr parse_condition(std::string_view text, const ExpressionNames& names, const Origin& origin);

}  // namespace tenon::graph
