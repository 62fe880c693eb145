// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/compiled_constants.h"

#include <algorithm>

#include "tenon/driver/compiler.h"
#include "tenon/graph/extern_call.h"
#include "tenon/ir/visit.h"

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

std::shared_ptr<Executable> CompiledConstants::program_of(const Ref<tir::PrimFunc>& kernel) {
  IRModule alone;
  // The schedule it came with is that of another target, or none.
  alone.set("main", with(*kernel, [](tir::PrimFunc& copy) { copy.attrs = {}; }));
  for (const Known& known : known_)
    if (structural_equal(known.module, alone)) return known.program;
  std::shared_ptr<Executable> program;
  try {
    CompileRequest request;
    request.name = "constants";
    request.target = exact_target();
    request.pipeline.verify = false;  // the module that brings the kernel has been verified
    program = compiled(link(generate(lower(alone, request), request)));
  } catch (const CompileError&) {
    // Another machine than x86-64, or a form that is not compiled: it is interpreted.
  }
  known_.push_back({std::move(alone), program});
  return program;
}

Ref<TensorData> CompiledConstants::evaluate(const IRModule& module, const graph::Call& call) {
  if (!call.is("call_tir") || call.args.size() != 2) return nullptr;
  const auto* name = call.args[0].as<graph::FuncRef>();
  const auto* tuple = call.args[1].as<graph::Tuple>();
  const auto kernel = name ? module.find<tir::PrimFunc>(name->name) : nullptr;
  const std::vector<graph::Type> types = graph::output_types(call);
  if (!kernel || !tuple || types.size() != 1) return nullptr;
  const auto* type = types[0].as<graph::TensorType>();
  const auto shape = type ? type->static_shape() : std::nullopt;
  if (!shape || checked_elements(*shape) < kLeastElements || !is_plain(*kernel)) return nullptr;
  std::vector<Ref<TensorData>> inputs;
  for (const graph::Value& value : tuple->values) {
    const auto* constant = value.as<graph::Constant>();
    if (!constant) return nullptr;
    inputs.push_back(constant->data);
  }
  if (kernel->params.size() != inputs.size() + 1) return nullptr;
  const std::shared_ptr<Executable> program = program_of(kernel);
  if (!program) return nullptr;
  try {
    return program->run(inputs).at(0);
  } catch (const CompileError&) {
    return nullptr;  // what the interpreter makes of it counts
  }
}

}  // namespace tenon
