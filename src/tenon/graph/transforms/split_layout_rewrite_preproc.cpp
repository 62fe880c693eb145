// SPDX-License-Identifier: Apache-2.0
// SplitLayoutRewritePreproc: what kernels make of constants alone becomes kernels of its own.
#include <algorithm>
#include <map>

#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/analysis/tree.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tir/schedule/default_winograd.h"

namespace tenon::graph {

namespace {

using tir::Block;
using tir::BlockRealize;
using tir::Buffer;
using tir::PrimFunc;
using tir::Stmt;

/// A kernel in two.
struct Halves {
  Ref<PrimFunc> before, after;
  std::vector<size_t> taken;  // arguments that `before` takes
  std::vector<Type> made;     // what it makes: arguments of `after` where the first taken one stood
  std::vector<bool> kept;     // arguments that `after` takes besides
};

bool is_preprocessing(const Stmt& stmt) {
  const auto realizes = tir::realizes_in(stmt);
  return !realizes.empty() &&
         std::all_of(realizes.begin(), realizes.end(), [](const Ref<BlockRealize>& realize) {
           return realize->block->annotations.flag(tir::kLayoutRewritePreproc);
         });
}

bool uses(const std::vector<Stmt>& stmts, const Ref<Buffer>& buffer) {
  bool found = false;
  for (const Stmt& stmt : stmts)
    walk(stmt, [&](const NodePtr& node) { found = found || node.same_as(buffer); });
  return found;
}

Stmt root_of(const Block& root, std::vector<Stmt> stmts) {
  tir::BlockParts parts = root.parts();
  parts.body = tir::seq(std::move(stmts));
  std::vector<Ref<Buffer>> allocated;
  for (const Ref<Buffer>& buffer : root.alloc_buffers)
    if (uses({parts.body}, buffer)) allocated.push_back(buffer);
  parts.alloc_buffers = std::move(allocated);
  return make<BlockRealize>(std::vector<Expr>{}, boolean(true),
                            make<Block>(std::move(parts), root.origin));
}

/// \param arguments  of a call, before the results
std::optional<Halves> split(const Ref<PrimFunc>& kernel, size_t arguments) {
  const Block* root = tir::root_block(*kernel);
  if (!root) return std::nullopt;
  std::vector<Stmt> before, after;
  for (const Stmt& stmt : tir::stmts_of(root->body))
    (is_preprocessing(stmt) ? before : after).push_back(stmt);
  if (before.empty()) return std::nullopt;
  Halves out;
  std::vector<Ref<Buffer>> taken, made, params;
  for (const Ref<Buffer>& buffer : root->alloc_buffers)
    if (uses(before, buffer) && uses(after, buffer)) made.push_back(buffer);
  if (made.empty()) return std::nullopt;
  std::vector<Ref<Buffer>> buffers;
  for (const Ref<Buffer>& buffer : kernel->buffers)
    if (buffer) buffers.push_back(buffer);
  if (buffers.size() != kernel->buffers.size() || buffers.size() < arguments) return std::nullopt;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const bool is_taken = uses(before, buffers[i]);
    if (is_taken && i >= arguments) return std::nullopt;
    if (is_taken) {
      if (taken.empty()) params.insert(params.end(), made.begin(), made.end());
      taken.push_back(buffers[i]);
      out.taken.push_back(i);
    }
    const bool is_kept = !is_taken || uses(after, buffers[i]);
    if (is_kept) params.push_back(buffers[i]);
    if (i < arguments) out.kept.push_back(is_kept);
  }
  if (taken.empty()) return std::nullopt;
  for (const Ref<Buffer>& buffer : made)
    out.made.push_back(make<TensorType>(buffer->shape, buffer->dtype));
  Block::Parts inner = root->parts();
  std::erase_if(inner.alloc_buffers, [&](const Ref<Buffer>& buffer) {
    return std::any_of(made.begin(), made.end(), [&](const auto& m) { return m.same_as(buffer); });
  });
  const auto rest = make<Block>(std::move(inner), root->origin);
  taken.insert(taken.end(), made.begin(), made.end());
  Attrs attrs = kernel->attrs.without(tir::kLayoutFreeBuffers);
  out.before = PrimFunc::of_buffers(taken, root_of(*rest, before), attrs, kernel->origin);
  out.after = PrimFunc::of_buffers(params, root_of(*rest, after), attrs, kernel->origin);
  for (const Ref<PrimFunc>& function : {out.before, out.after})
    const_cast<PrimFunc*>(function.get())->is_private = kernel->is_private;
  return out;
}

}  // namespace

IRModule split_layout_rewrite_preproc(IRModule module) {
  std::map<std::string, Halves> kernels;
  for (const auto& [name, function] : module.functions())
    walk<Call>(function, [&](const Call& call) {
      const auto* ref = call.is("call_tir") ? call.args.at(0).as<FuncRef>() : nullptr;
      const auto* args = ref && call.args.size() == 2 ? call.args[1].as<Tuple>() : nullptr;
      const auto kernel = args ? module.find<PrimFunc>(ref->name) : Ref<PrimFunc>();
      if (!kernel || !kernel->attrs.contains(tir::kLayoutFreeBuffers)) return;
      if (auto halves = split(kernel, args->values.size())) kernels.emplace(ref->name, *halves);
    });
  for (const auto& [name, halves] : kernels) {
    record({"SplitLayoutRewritePreproc", name, "split", "constants", {}, "", halves.after->origin});
    module.erase(name);
  }
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, function] : entries)
    if (const auto kernel = cast<PrimFunc>(function);
        kernel && kernel->attrs.contains(tir::kLayoutFreeBuffers))
      module.set(name, tir::without_attr(kernel, tir::kLayoutFreeBuffers));
  return rebuild_all(
      std::move(module),
      [&](BlockBuilder& builder, const Binding& binding,
          const Value& value) -> std::optional<Value> {
        const auto* call = value.as<Call>();
        const auto* ref = call && call->is("call_tir") ? call->args[0].as<FuncRef>() : nullptr;
        const auto found = ref ? kernels.find(ref->name) : kernels.end();
        if (found == kernels.end()) return std::nullopt;
        const Halves& halves = found->second;
        const std::vector<Value>& args = call->args[1].as<Tuple>()->values;
        std::vector<Value> taken, passed;
        for (const size_t i : halves.taken) taken.push_back(args[i]);
        const Value made =
            builder.call_tir(ref->name + "_preproc", halves.before, taken, halves.made);
        for (size_t i = 0; i < args.size(); ++i) {
          if (i == halves.taken.front()) {
            if (halves.made.size() == 1) passed.push_back(made);
            for (size_t m = 0; halves.made.size() > 1 && m < halves.made.size(); ++m)
              passed.push_back(builder.emit(make<TupleGetItem>(made, static_cast<int64_t>(m))));
          }
          if (halves.kept[i]) passed.push_back(args[i]);
        }
        const Type result = call->type_args.size() == 1 ? call->type_args[0] : binding.var->type;
        const auto* several = result.as<TupleType>();
        return builder.call_tir(ref->name, halves.after, passed,
                                several ? several->types : std::vector<Type>{result});
      });
}

}  // namespace tenon::graph
