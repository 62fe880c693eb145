// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/evaluate.h"

#include <algorithm>
#include <memory>

#include "tenon/graph/arithmetic.h"
#include "tenon/interp/interpreter.h"
#include "tenon/interp/reference/kernel_value.h"
#include "tenon/interp/reference/reference.h"
#include "tenon/support/mapped_pages.h"
#include "tenon/tir/analysis/block_work.h"

namespace tenon {

namespace {

/// What computing constants may cost, all calls together: some seconds of scalar code, and more
/// for a module that brings its weights. What is beyond it is left to the program.
class ConstantWork {
 public:
  std::optional<graph::Value> evaluate(const IRModule& module, const Ref<graph::Call>& call) {
    if (!fits(module, least_steps(module, *call))) return std::nullopt;
    std::optional<graph::Value> value = computed(module, call);
    const auto* constant = value ? value->as<graph::Constant>() : nullptr;
    if (!constant || !constant->data->is_late()) {
      drop_pages(*call);
      return value;
    }
    const auto read = [data = constant->data, call] {
      (void)data->data();
      drop_pages(*call);
      return data;
    };
    const TensorData& data = *constant->data;
    return graph::Value(make<graph::Constant>(
        TensorData::later(data.dtype, data.shape, read, data.origin), call->origin));
  }

 private:
  static constexpr int64_t kFree = int64_t{1} << 28, kForEachByte = 64;

  // Known before anything is computed: products of an operator, points of a kernel's blocks.
  static double least_steps(const IRModule& module, const graph::Call& call) {
    const auto* callee =
        call.is("call_tir") && !call.args.empty() ? call.args[0].as<graph::FuncRef>() : nullptr;
    const auto kernel = callee ? module.find<tir::PrimFunc>(callee->name) : nullptr;
    if (!kernel) return graph::macs_of(call, graph::type_of(ref_to(&call))).value_or(0);
    double steps = 0;
    for (const Ref<tir::Block>& block : tir::blocks_of(*kernel))
      steps += tir::work_of(*block).points;
    return steps;
  }

  // What was packed is not read again as it was.
  static void drop_pages(const graph::Call& call) {
    for (const graph::Value& arg : call.args) drop_pages(arg);
  }
  static void drop_pages(const graph::Value& arg) {
    if (const auto* tuple = arg.as<graph::Tuple>())
      for (const graph::Value& value : tuple->values) drop_pages(value);
    const auto* constant = arg.as<graph::Constant>();
    if (constant && !constant->data->is_splat() && !constant->data->is_late())
      drop_mapped_pages(constant->data->data());
  }

  std::optional<graph::Value> computed(const IRModule& module, const Ref<graph::Call>& call) {
    if (Ref<TensorData> value = interp::reference_value(*call)) {
      used_ += value->is_splat() ? 1 : value->elements();
      return graph::Value(make<graph::Constant>(std::move(value), call->origin));
    }
    if (Ref<TensorData> value = interp::kernel_value(module, *call)) {
      used_ += value->elements();
      return graph::Value(make<graph::Constant>(std::move(value), call->origin));
    }
    interp::Interpreter interpreter(module, {.step_limit = limit(module) - used_});
    try {
      auto value = interpreter.evaluate_call(call);
      used_ += interpreter.steps_used();
      return value;
    } catch (const CompileError& error) {
      used_ += interpreter.steps_used();
      // What fails when it runs (a division by zero, an index out of range) may never run.
      const std::string_view id = error.first().code.id;
      if (id == kLimitExceeded.id || id == kRunFailed.id || id == kUnsupported.id ||
          id == kOutOfBounds.id)
        return std::nullopt;
      throw;
    }
  }

  bool fits(const IRModule& module, double steps) {
    return used_ < kFree && steps < static_cast<double>(kFree - used_)
               ? true
               : used_ < limit(module) && steps < static_cast<double>(limit(module) - used_);
  }

  // Weights are seen once, when they matter.
  int64_t limit(const IRModule& module) {
    if (limit_ == 0) {
      int64_t bytes = 0;
      for (const auto& [name, function] : module.functions())
        walk<graph::Constant>(function, [&](const graph::Constant& constant) {
          if (!constant.data->is_splat()) bytes += constant.data->bytes();
        });
      limit_ = kFree + kForEachByte * bytes;
    }
    return limit_;
  }

  int64_t used_ = 0, limit_ = 0;
};

}  // namespace

graph::ConstantEvaluator constant_evaluator() {
  return [work = std::make_shared<ConstantWork>()](const IRModule& module,
                                                   const Ref<graph::Call>& call) {
    return work->evaluate(module, call);
  };
}

}  // namespace tenon
