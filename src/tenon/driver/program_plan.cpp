// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/program_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "tenon/arith/analyzer.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/tensors.h"
#include "tenon/ir/visit.h"
#include "tenon/memory/bounds.h"
#include "tenon/memory/plan_module.h"
#include "tenon/tir/call_effects.h"
#include "tenon/tir/extern_function.h"
#include "tenon/tir/host_memory.h"
#include "tenon/tir/stmt.h"

namespace tenon {

static constexpr const char* kPlans = "PlanMemory";

static Ref<tir::PrimFunc> entry_of(const IRModule& module) {
  for (const auto& [name, function] : module.functions())
    if (function->attrs.flag("tenon.entry"))
      if (auto found = tenon::cast<tir::PrimFunc>(function)) return found;
  return {};
}

static std::string type_text(const tir::Buffer& buffer) {
  return buffer.dtype.str() + " " + str(buffer.shape);
}

namespace {

/// The memory that pointers of the entry function stand for.
class Memories {
 public:
  Memories(const tir::PrimFunc& entry, ProgramPlan& plan) : plan_(plan) {
    const auto inputs = entry.attrs.get<int64_t>("tenon.num_inputs").value_or(0);
    for (size_t i = 0; i < entry.buffers.size(); ++i) {
      if (!entry.buffers[i]) continue;
      const bool is_input = static_cast<int64_t>(i) < inputs;
      add(*entry.buffers[i],
          is_input ? ProgramPlan::Memory::Kind::kInput : ProgramPlan::Memory::Kind::kOutput);
    }
    walk(entry.body, [&](const NodePtr& node) {
      if (const auto* alloc = node.as<tir::AllocBuffer>()) {
        add(*alloc->buffer, tir::host_output(*alloc) ? ProgramPlan::Memory::Kind::kOutput
                                                     : ProgramPlan::Memory::Kind::kTemporary);
      } else if (const auto* constant = node.as<tir::AllocConst>()) {
        add(*constant->buffer, ProgramPlan::Memory::Kind::kConstant);
      } else if (const auto* view = node.as<tir::DeclBuffer>()) {
        walk(view->data, [&](const NodePtr& inner) {
          const auto* buffer = inner.as<tir::Buffer>();
          const auto it = roots_.find(buffer ? buffer->data.get() : inner.get());
          if (it != roots_.end()) roots_[view->buffer->data.get()] = it->second;
        });
      }
    });
  }

  /// Of a buffer that nobody defines here: one of its own.
  size_t of(const tir::Buffer& buffer) {
    const auto it = roots_.find(buffer.data.get());
    return it != roots_.end() ? it->second : add(buffer, ProgramPlan::Memory::Kind::kTemporary);
  }

 private:
  size_t add(const tir::Buffer& buffer, ProgramPlan::Memory::Kind kind) {
    plan_.memories.push_back({kind, buffer.name, type_text(buffer)});
    return roots_[buffer.data.get()] = plan_.memories.size() - 1;
  }

  ProgramPlan& plan_;
  std::unordered_map<const Node*, size_t> roots_;  // pointer -> index into plan_.memories
};

}  // namespace

PipelineOptions PlanWatch::around(const PipelineOptions& options) {
  PipelineOptions out = options;
  out.before = [this, next = options.before](const Pass& pass, const IRModule& module) {
    before(pass, module);
    if (next) next(pass, module);
  };
  out.after = [this, next = options.after](const Pass& pass, const IRModule& module) {
    after(pass, module);
    if (next) next(pass, module);
  };
  return out;
}

void PlanWatch::before(const Pass& pass, const IRModule& module) {
  if (pass.name != kPlans) return;
  const Ref<tir::PrimFunc> entry = entry_of(module);
  if (!entry || entry->attrs.contains("tenon.workspace_bytes")) return;
  plan_ = {};
  buffers_.clear();
  plan_.symbols = tir::symbolic_vars(*entry);
  const memory::ModuleProblem problem = memory::extract_problem(*entry);
  plan_.steps = problem.steps;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const memory::SymbolicAllocation& from = problem.allocations[i];
    plan_.allocations.push_back({from.name,
                                 type_text(*problem.buffers[i]),
                                 "",
                                 {},
                                 arith::simplify(from.bytes),
                                 from.alignment,
                                 from.lower,
                                 from.upper,
                                 from.origin});
    buffers_.emplace_back(problem.buffers[i]);
  }
  Memories memories(*entry, plan_);
  tir::CallEffects effects(module);
  for (const auto& [step, call] : problem.calls) {
    ProgramPlan::Call& to = plan_.calls.emplace_back();
    to.step = step;
    to.callee = call->callee->name;
    to.origin = call->origin;
    if (const auto foreign = module.find<tir::ExternFunction>(to.callee))
      to.symbol = foreign->symbol;
    for (size_t i = 0; i < call->args.size(); ++i) {
      const auto* region = call->args[i].as<tir::BufferRegion>();
      if (!region) continue;
      const tir::ParamEffect effect = effects.of(to.callee, i);
      to.args.push_back({memories.of(*region->buffer), effect.reads, effect.writes});
    }
  }
}

void PlanWatch::after(const Pass& pass, const IRModule& module) {
  if (pass.name != kPlans) return;
  const Ref<tir::PrimFunc> entry = entry_of(module);
  if (!entry) return;
  std::unordered_map<const Node*, size_t> index;
  for (size_t i = 0; i < buffers_.size(); ++i) index[buffers_[i].get()] = i;
  walk<tir::DeclBuffer>(entry->body, [&](const tir::DeclBuffer& view) {
    const auto it = index.find(view.buffer.get());
    const auto* address = view.data.as<Call>();
    if (it == index.end() || !address || !address->is(IntrinsicId::kAddressOf) ||
        address->args.empty())
      return;
    const auto* element = address->args[0].as<tir::BufferLoad>();
    if (!element || element->indices.size() != 1) return;
    ProgramPlan::Allocation& allocation = plan_.allocations[it->second];
    allocation.memory = element->buffer->name;
    allocation.offset = arith::simplify(element->indices[0]);
  });
  if (const auto total = entry->attrs.get<int64_t>("tenon.workspace_bytes"))
    plan_.bytes = int64(*total);
  else if (const AttrValue* value = entry->attrs.find("tenon.workspace_bytes"))
    if (const auto* node = value->as<NodePtr>())
      plan_.bytes = arith::simplify(Expr(node->as<ExprNode>()));
}

std::map<std::string, int64_t> dims_for(const ProgramPlan& plan,
                                        const std::map<std::string, int64_t>& dims) {
  std::map<std::string, int64_t> out;
  for (const Ref<Var>& symbol : plan.symbols) {
    const auto it = dims.find(symbol->name);
    out[symbol->name] = it == dims.end() ? kDefaultDim : it->second;
  }
  return out;
}

namespace {

/// Expressions of the program's symbols as numbers.
class Dimensions {
 public:
  Dimensions(const ProgramPlan& plan, const std::map<std::string, int64_t>& dims) {
    for (const Ref<Var>& symbol : plan.symbols)
      if (const auto it = dims.find(symbol->name); it != dims.end())
        values_[symbol.get()] = NodePtr(imm(symbol->dtype, it->second));
  }
  std::optional<int64_t> operator()(const Expr& expr) const {
    if (!expr) return std::nullopt;
    if (const auto value = as_int(expr)) return *value;
    return as_int(arith::simplify(substitute(expr, values_)));
  }

 private:
  Substitution values_;
};

/// The allocations of the workspace whose place is a number for these dimensions.
struct PlacedAllocation {
  const ProgramPlan::Allocation* allocation;
  int64_t offset, bytes;
};
std::vector<PlacedAllocation> placed(const ProgramPlan& plan, const Dimensions& values) {
  std::vector<PlacedAllocation> out;
  for (const ProgramPlan::Allocation& allocation : plan.allocations) {
    if (allocation.memory != "workspace") continue;
    const auto offset = values(allocation.offset), bytes = values(allocation.bytes);
    if (offset && bytes) out.push_back({&allocation, *offset, *bytes});
  }
  return out;
}

}  // namespace

static std::string size_text(const Expr& expr, int64_t value) {
  return as_int(expr) ? std::to_string(value) : fmt::format("{} = {}", str(expr), value);
}

memory::Picture picture_of(const ProgramPlan& plan, const std::map<std::string, int64_t>& dims) {
  const Dimensions values(plan, dims_for(plan, dims));
  memory::Picture picture;
  picture.steps = plan.steps;
  memory::Problem problem;
  for (const auto& [allocation, offset, bytes] : placed(plan, values)) {
    picture.blocks.push_back(
        {allocation->name,
         fmt::format("{}, {} bytes at {}{}", allocation->type, size_text(allocation->bytes, bytes),
                     size_text(allocation->offset, offset),
                     allocation->origin ? ", of " + allocation->origin.name() : ""),
         allocation->lower, allocation->upper, offset, bytes});
    problem.buffers.push_back({allocation->name, bytes, allocation->alignment, allocation->lower,
                               allocation->upper, 0, allocation->origin});
    picture.peak = std::max(picture.peak, offset + bytes);
  }
  if (const auto bytes = values(plan.bytes)) picture.peak = std::max(picture.peak, *bytes);
  picture.loads = memory::load_profile(problem, 0);
  const memory::Load bound = memory::lower_bound(problem, 0);
  picture.bound = bound.bytes;
  return picture;
}

std::vector<int64_t> live_bytes(const ProgramPlan& plan,
                                const std::map<std::string, int64_t>& dims) {
  std::vector<int64_t> change(static_cast<size_t>(plan.steps) + 1, 0);
  for (const auto& [allocation, offset, bytes] :
       placed(plan, Dimensions(plan, dims_for(plan, dims)))) {
    change[static_cast<size_t>(std::min(allocation->lower, plan.steps))] += bytes;
    change[static_cast<size_t>(std::min(allocation->upper, plan.steps))] -= bytes;
  }
  std::vector<int64_t> out;
  int64_t live = 0;
  size_t step = 0;
  for (const ProgramPlan::Call& call : plan.calls) {
    for (; step <= static_cast<size_t>(call.step); ++step) live += change[step];
    out.push_back(live);
  }
  return out;
}

}  // namespace tenon
