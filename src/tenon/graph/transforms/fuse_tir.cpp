// SPDX-License-Identifier: Apache-2.0
// Composes the PrimFuncs of each Primitive function into one.

#include <algorithm>
#include <set>

#include "tenon/graph/infer.h"
#include "tenon/graph/op.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/tir/call_body.h"
#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/stmt.h"

namespace tenon::graph {

namespace {

using tir::Block;
using tir::BlockRealize;
using tir::Buffer;
using tir::BufferLoad;
using tir::BufferRegion;
using tir::PrimFunc;
using tir::Stmt;

/// Replaces reads of one-element constant buffers by immediates, and forgets their regions.
class ConstantReads final : public Rewriter {
 public:
  void add(const Ref<Buffer>& buffer, Expr value) {
    values_.emplace(buffer.get(), std::move(value));
    kept_.push_back(buffer);
  }
  bool empty() const { return values_.empty(); }

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    if (const auto* load = node.as<BufferLoad>()) {
      const auto it = values_.find(load->buffer.get());
      if (it != values_.end()) return broadcast_to_lanes(it->second, load->dtype.lanes);
    }
    if (const auto* block = node.as<Block>()) {
      Block::Parts parts = block->parts();
      const size_t before = parts.reads.size();
      std::erase_if(parts.reads,
                    [&](const Ref<BufferRegion>& r) { return values_.count(r->buffer.get()) > 0; });
      if (parts.reads.size() != before)
        return rewrite_members(make<Block>(std::move(parts), block->origin));
    }
    return rewrite_members(node);
  }

 private:
  std::unordered_map<const Node*, Expr> values_;
  std::vector<Ref<Buffer>> kept_;
};

Expr element_of(const TensorData& data) {
  if (data.dtype.is_float()) return imm(data.dtype, data.at_float(0));
  return imm(data.dtype, data.at_int(0));
}

/// Gives blocks the origin of the operator that they are of.
class BlockOrigins final : public Rewriter {
 public:
  explicit BlockOrigins(Origin origin) : origin_(std::move(origin)) {}

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    const auto* block = node.as<Block>();
    if (!block) return node.as<ExprNode>() ? node : rewrite_members(node);
    return make<Block>(block->parts(), origin_);
  }

 private:
  Origin origin_;
};

/// The parts of a kernel's body under its root block.
struct Opened {
  std::vector<Ref<Buffer>> allocs;
  Stmt body;
};
Opened open_root(const Stmt& body) {
  const auto* realize = body.as<BlockRealize>();
  if (realize && realize->block->iter_vars.empty() && !realize->block->init)
    return {realize->block->alloc_buffers, realize->block->body};
  return {{}, body};
}

class Composer {
 public:
  Composer(const IRModule& module, const Function& function)
      : module_(module), function_(function) {}

  Ref<PrimFunc> run() {
    std::vector<Ref<tenon::Var>> params;
    std::vector<Ref<Buffer>> buffers;
    std::vector<Ref<tenon::Var>> scalars;
    for (const Ref<Var>& param : function_.params) {
      if (const auto* shape = param->type.as<ShapeType>()) {
        for (const Expr& value : *shape->values) scalars.push_back(downcast<tenon::Var>(value));
        continue;
      }
      const Ref<Buffer> buffer = buffer_of(*param);
      env_[param.get()] = buffer;
      buffers.push_back(buffer);
    }
    std::vector<Ref<Binding>> bindings;
    for (const Ref<BindingBlock>& block : function_.body->blocks)
      bindings.insert(bindings.end(), block->bindings.begin(), block->bindings.end());
    for (const Ref<Binding>& binding : bindings) {
      const bool result = binding->var.same_as(function_.body->body);
      const Ref<Buffer> out = buffer_of(*binding->var);
      env_[binding->var.get()] = out;
      if (result) {
        buffers.push_back(out);
      } else {
        allocs_.push_back(out);
      }
      inline_call(*binding->value.as<Call>(), out, binding->origin);
    }
    for (const Ref<Buffer>& buffer : buffers)
      params.push_back(make<tenon::Var>(buffer->name + "_handle", kHandle));
    std::vector<Ref<Buffer>> all = buffers;
    for (const Ref<tenon::Var>& scalar : scalars) {
      params.push_back(scalar);
      all.emplace_back();
    }
    Block::Parts root;
    root.name = "root";
    root.alloc_buffers = allocs_;
    root.body = tir::seq(std::move(body_));
    const Stmt realize = make<BlockRealize>(std::vector<Expr>{}, boolean(true),
                                            make<Block>(std::move(root)), function_.origin);
    NameSupply names;
    const Stmt named = tir::with_unique_block_names(realize, names);
    Attrs attrs = {{"op_pattern", static_cast<int64_t>(tallest_)}, {"tir.noalias", true}};
    const Ref<PrimFunc> fused = with(make<PrimFunc>(std::move(params), std::move(all), named,
                                                    std::move(attrs), function_.origin),
                                     [&](PrimFunc& made) { made.is_private = true; });
    return renew_definitions(fused);
  }

 private:
  static Ref<Buffer> buffer_of(const Var& var) {
    const auto* tensor = var.type.as<TensorType>();
    check(tensor && tensor->shape, "a fused value without a shape");
    return make<Buffer>(var.name, tensor->dtype, *tensor->shape, var.origin);
  }

  void inline_call(const Call& call, const Ref<Buffer>& out, const Origin& origin) {
    const auto* ref = call.args.at(0).as<FuncRef>();
    const Ref<PrimFunc> callee = downcast<PrimFunc>(module_.find(ref->name));
    const auto& values = call.args.at(1).as<Tuple>()->values;
    std::vector<NodePtr> args;
    ConstantReads constants;
    size_t next_scalar = 0;
    for (size_t i = 0; i < callee->params.size(); ++i) {
      if (!callee->buffers[i]) {  // scalars follow the buffers, as tir_vars
        args.emplace_back(call.args.at(2).as<ShapeExpr>()->values.at(next_scalar++));
        continue;
      }
      Ref<Buffer> buffer = out;
      if (i < values.size()) {
        const auto* constant = values[i].as<Constant>();
        buffer = constant ? make<Buffer>("constant", constant->data->dtype,
                                         to_exprs(constant->data->shape))
                          : env_.at(values[i].get());
        if (constant) constants.add(buffer, element_of(*constant->data));
      }
      args.emplace_back(BufferRegion::whole(buffer));
    }
    Stmt body = tir::body_in_place(callee, args);
    if (!constants.empty()) body = constants(body);
    Opened opened = open_root(body);
    allocs_.insert(allocs_.end(), opened.allocs.begin(), opened.allocs.end());
    body_.push_back(origin ? BlockOrigins(origin)(opened.body) : opened.body);
    const auto kind = callee->attrs.get<int64_t>("op_pattern")
                          .value_or(static_cast<int64_t>(FusionKind::kOpaque));
    tallest_ = std::max(tallest_, static_cast<FusionKind>(kind));
  }

  const IRModule& module_;
  const Function& function_;
  std::unordered_map<const Node*, Ref<Buffer>> env_;
  std::vector<Ref<Buffer>> allocs_;
  std::vector<Stmt> body_;
  FusionKind tallest_ = FusionKind::kElementwise;
};

}  // namespace

IRModule fuse_tir(IRModule module) {
  const IRModule input = module;
  for (const auto& [name, function] : input.functions()) {
    const auto graph = cast<Function>(function);
    if (graph && graph->attrs.flag("Primitive")) module.set(name, Composer(input, *graph).run());
  }
  const OpDef* call_tir = find_op("call_tir");
  for (const auto& [name, function] : input.functions()) {
    const auto graph = cast<Function>(function);
    if (!graph || graph->attrs.flag("Primitive")) continue;
    const Ref<Function> next = rewrite(graph, [&](const NodePtr& node) -> std::optional<NodePtr> {
      const auto* call = node.as<Call>();
      const auto* ref = call && call->callee ? call->callee.as<FuncRef>() : nullptr;
      const auto callee = ref ? input.find<Function>(ref->name) : nullptr;
      if (!callee || !callee->attrs.flag("Primitive")) return std::nullopt;
      std::vector<Value> tensors, args = {call->callee};
      Value dims;
      for (const Value& arg : call->args) {
        if (arg.as<ShapeExpr>()) {
          dims = arg;
        } else {
          tensors.push_back(arg);
        }
      }
      args.push_back(make<Tuple>(std::move(tensors)));
      if (dims) args.push_back(dims);
      // What others wrote states no types: they follow from the callee's.
      std::vector<Type> types = call->type_args;
      if (types.empty()) types.push_back(type_of(ref_to(call), input));
      return make<Call>(call_tir, std::move(args), Attrs(), std::move(types), call->origin);
    });
    module.set(name, next);
  }
  return module;
}

}  // namespace tenon::graph
