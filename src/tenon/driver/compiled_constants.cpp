// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/compiled_constants.h"

#include <algorithm>

#include "tenon/driver/compiler.h"
#include "tenon/driver/executable.h"
#include "tenon/graph/extern_call.h"
#include "tenon/ir/visit.h"
#include "tenon/support/deferred_work.h"
#include "tenon/support/parallel.h"
#include "tenon/tir/analysis/access_bounds.h"

namespace tenon {

// Elements of the result from which on compiling takes less time than interpreting.
static constexpr int64_t kLeastElements = int64_t{1} << 17;

// Without multiply-adds, which round once: constants are the same whatever host makes them.
static const Target& exact_target() {
  static const Target target = resolve("llvm -mcpu=x86-64-v2");
  return target;
}

static bool is_plain(const ExprNode& expr) {
  switch (kind_of(expr)) {
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kVar:
    case ExprKind::kBinary:
    case ExprKind::kNot:
    case ExprKind::kSelect:
    case ExprKind::kBufferLoad: break;
    default: return false;  // casts and functions, of which machine code may give other bits
  }
  const DType& type = expr.dtype;
  return type == kFloat32 || type == kFloat64 || type == kInt32 || type == kInt64 ||
         type.is_bool() || type.is_handle();
}

// Sums are left out: a schedule may order them anew.
static bool is_plain(const tir::StmtNode& stmt) {
  switch (kind_of(stmt)) {
    case tir::StmtKind::kBufferStore:
    case tir::StmtKind::kSeq:
    case tir::StmtKind::kFor:
    case tir::StmtKind::kIfThenElse:
    case tir::StmtKind::kBlockRealize: return true;
    case tir::StmtKind::kBlock: {
      const auto& block = static_cast<const tir::Block&>(stmt);
      return !block.init && std::all_of(block.iter_vars.begin(), block.iter_vars.end(),
                                        [](const tir::IterVar& axis) {
                                          return axis.kind == tir::IterKind::kSpatial;
                                        });
    }
    default: return false;
  }
}

static bool is_plain(const tir::PrimFunc& kernel) {
  bool plain = true;
  walk(kernel.body, [&](const NodePtr& node) {
    if (const auto* expr = node.as<ExprNode>()) plain &= is_plain(*expr);
    if (const auto* stmt = node.as<tir::StmtNode>()) plain &= is_plain(*stmt);
  });
  return plain;
}

// The kernel, where what it makes of constants is computed by a program.
static Ref<tir::PrimFunc> kernel_of(const IRModule& module, const graph::Call& call) {
  if (!call.is("call_tir") || call.args.size() != 2) return nullptr;
  const auto* name = call.args[0].as<graph::FuncRef>();
  const auto* tuple = call.args[1].as<graph::Tuple>();
  auto kernel = name ? module.find<tir::PrimFunc>(name->name) : nullptr;
  const std::vector<graph::Type> types = graph::output_types(call);
  if (!kernel || !tuple || types.size() != 1) return nullptr;
  if (kernel->params.size() != tuple->values.size() + 1) return nullptr;
  for (const graph::Value& value : tuple->values)
    if (!value.as<graph::Constant>()) return nullptr;
  const auto* type = types[0].as<graph::TensorType>();
  const auto shape = type ? type->static_shape() : std::nullopt;
  if (!shape || checked_elements(*shape) < kLeastElements || !is_plain(*kernel)) return nullptr;
  return kernel;
}

// The schedule it came with is that of another target, or none.
static IRModule alone(const Ref<tir::PrimFunc>& kernel) {
  IRModule module;
  module.set("main", with(*kernel, [](tir::PrimFunc& copy) { copy.attrs = {}; }));
  return module;
}

static std::shared_ptr<Executable> program_of(const IRModule& module) {
  CompileRequest request;
  request.name = "constants";
  request.target = exact_target();
  request.pipeline.verify = false;  // the module that brings the kernel has been verified
  try {
    return compiled(link(generate(lower(module, request), request)));
  } catch (const CompileError&) {
    return nullptr;  // another machine than x86-64, or a form that is not compiled: interpreted
  }
}

// Whatever the elements are: all indices are proved to lie inside.
static bool never_fails(const IRModule& alone) {
  bool proved = true;
  tir::find_unproved(*alone.find<tir::PrimFunc>("main"),
                     [&](const tir::AccessCheck&) { proved = false; });
  return proved;
}

/// A kernel and its program, which is compiled when it is first wanted.
struct CompiledConstants::Kernel {
  explicit Kernel(IRModule one)
      : alone(std::move(one)),
        never_fails(tenon::never_fails(alone)),
        compile([this] { program = program_of(alone); }) {}

  /// Null where it cannot be compiled, or fails.
  Ref<TensorData> result(const std::vector<Ref<TensorData>>& inputs) {
    compile.finish();
    try {
      return program ? program->run(inputs).at(0) : nullptr;
    } catch (const CompileError&) {
      return nullptr;  // what the interpreter makes of it counts
    }
  }

  IRModule alone;  // as `main`
  bool never_fails;
  DeferredWork compile;
  std::shared_ptr<Executable> program;  // null where it cannot be compiled
};

std::shared_ptr<CompiledConstants::Kernel> CompiledConstants::find(const IRModule& alone) const {
  const auto found = std::find_if(
      known_.begin(), known_.end(),
      [&](const std::shared_ptr<Kernel>& known) { return structural_equal(known->alone, alone); });
  return found == known_.end() ? nullptr : *found;
}

void CompiledConstants::compile_kernels(const IRModule& module, IRModule first) {
  const size_t before = known_.size();
  known_.push_back(std::make_shared<Kernel>(std::move(first)));
  for (const auto& [name, function] : module.functions())
    walk<graph::Call>(function, [&](const graph::Call& call) {
      const auto kernel = kernel_of(module, call);
      if (!kernel) return;
      IRModule one = alone(kernel);
      if (!find(one)) known_.push_back(std::make_shared<Kernel>(std::move(one)));
    });
  if (DeferredWorkScope* scope = DeferredWorkScope::current()) {
    for (size_t i = before; i < known_.size(); ++i)
      scope->add(std::shared_ptr<DeferredWork>(known_[i], &known_[i]->compile));
    return;
  }
  for_each_in_parallel(known_.size() - before,
                       [&](size_t i) { known_[before + i]->compile.finish(); });
}

Ref<TensorData> CompiledConstants::evaluate(const IRModule& module, const graph::Call& call) {
  const auto function = kernel_of(module, call);
  if (!function) return nullptr;
  IRModule one = alone(function);
  std::shared_ptr<Kernel> kernel = find(one);
  if (!kernel) {
    const size_t place = known_.size();
    compile_kernels(module, std::move(one));
    kernel = known_[place];
  }
  std::vector<Ref<TensorData>> inputs;
  for (const graph::Value& value : call.args[1].as<graph::Tuple>()->values)
    inputs.push_back(value.as<graph::Constant>()->data);
  if (!DeferredWorkScope::current() || !kernel->never_fails) return kernel->result(inputs);
  const auto result = [kernel, inputs] {
    // No step limit for the interpreter: the evaluator has asked whether the kernel's work fits.
    Ref<TensorData> made = kernel->result(inputs);
    return made ? made : interpreted(kernel->alone)->run(inputs).at(0);
  };
  const auto& type = *graph::output_types(call)[0].as<graph::TensorType>();
  return TensorData::later(type.dtype, *type.static_shape(), result, call.origin);
}

}  // namespace tenon
