// SPDX-License-Identifier: Apache-2.0
#include <unordered_set>

#include "tenon/arith/analyzer.h"
#include "tenon/tir/host_memory.h"
#include "tenon/tir/transforms.h"

namespace tenon::tir {

namespace {

class Flattener final : public Rewriter {
 public:
  explicit Flattener(const PrimFunc& function) {
    for (const Ref<Buffer>& buffer : function.buffers)
      if (buffer) seen_from_outside_.insert(buffer.get());
    walk(function.body, [&](const NodePtr& node) {
      if (const auto* region = node.as<BufferRegion>())
        seen_from_outside_.insert(region->buffer.get());
      if (const auto* load = node.as<BufferLoad>()) accessed_.insert(load->buffer.get());
      if (const auto* store = node.as<BufferStore>()) accessed_.insert(store->buffer.get());
      if (const auto* view = node.as<DeclBuffer>()) pointers_in(view->data);
      // Its dimensions are those of an output.
      if (const auto* alloc = node.as<AllocBuffer>(); alloc && host_output(*alloc))
        seen_from_outside_.insert(alloc->buffer.get());
      if (const auto* call = node.as<Call>())
        for (const NodePtr& argument : call->args) pointers_in(argument);
    });
  }

  Stmt flatten(const PrimFunc& function) {
    std::vector<Stmt> stmts;
    for (const Ref<Buffer>& buffer : function.buffers)
      if (buffer && needs_view(*buffer)) stmts.push_back(view(buffer));
    const Stmt body = (*this)(function.body);
    if (stmts.empty()) return body;
    stmts.push_back(body);
    return seq(std::move(stmts));
  }

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    if (const auto* block = node.as<Block>())
      throw CompileError(kWrongForm, block->origin,
                         "block `{}` is left; LowerOpaqueBlock runs first", block->name);
    if (const auto* loop = node.as<For>()) {
      const Expr min = (*this)(loop->min), extent = (*this)(loop->extent);
      const auto scope = analyzer_.enter();
      analyzer_.bind(loop->loop_var, min, extent);
      return loop->with(min, extent, (*this)(loop->body));
    }
    if (const auto* load = node.as<BufferLoad>())
      if (const Ref<Buffer> flat = flat_of(load->buffer))
        return make<BufferLoad>(flat, std::vector<Expr>{offset(*load->buffer, load->indices)},
                                load->origin);
    if (const auto* store = node.as<BufferStore>())
      if (const Ref<Buffer> flat = flat_of(store->buffer))
        return make<BufferStore>(flat, (*this)(store->value),
                                 std::vector<Expr>{offset(*store->buffer, store->indices)},
                                 store->origin);
    if (const auto* alloc = node.as<AllocBuffer>(); alloc && needs_view(*alloc->buffer)) {
      if (is_kept(*alloc->buffer)) return with_view(node, alloc->buffer);
      return make<AllocBuffer>(flat_buffer(alloc->buffer), alloc->annotations, alloc->origin);
    }
    if (const auto* alloc = node.as<AllocConst>(); alloc && needs_view(*alloc->buffer))
      return with_view(node, alloc->buffer);
    if (const auto* decl = node.as<DeclBuffer>(); decl && needs_view(*decl->buffer)) {
      const Expr data = (*this)(decl->data);
      if (is_kept(*decl->buffer))
        return with_view(make<DeclBuffer>(decl->buffer, data, decl->origin), decl->buffer);
      return make<DeclBuffer>(flat_buffer(decl->buffer), data, decl->origin);
    }
    return rewrite_members(node);
  }

 private:
  bool needs_view(const Buffer& buffer) const {
    return accessed_.count(&buffer) != 0 && (buffer.ndim() != 1 || !buffer.is_compact());
  }

  void pointers_in(const NodePtr& value) {
    const auto* var = value.as<Var>();
    if (var && var->dtype.is_handle()) pointers_.insert(var);
  }

  // Calls of kernels name the buffer; views and calls of foreign functions have its pointer.
  bool is_kept(const Buffer& buffer) const {
    return seen_from_outside_.count(&buffer) != 0 || pointers_.count(buffer.data.get()) != 0;
  }

  Ref<Buffer> flat_of(const Ref<Buffer>& buffer) const {
    const auto it = flat_.find(buffer.get());
    return it == flat_.end() ? Ref<Buffer>() : it->second;
  }

  // One dimension over the same memory; `data` null makes a pointer of its own.
  Ref<Buffer> flat_buffer(const Ref<Buffer>& buffer) {
    Expr count = int64(1);
    if (buffer->is_compact()) {
      count = element_count(buffer->shape);
    } else {
      for (size_t i = 0; i < buffer->ndim(); ++i)
        count = count + (buffer->shape[i] - 1) * buffer->strides[i];
    }
    Ref<Buffer>& flat = flat_[buffer.get()];
    flat = make<Buffer>(buffer->name, buffer->dtype, std::vector<Expr>{analyzer_.simplify(count)},
                        Buffer::Options{.elem_offset = buffer->elem_offset,
                                        .scope = buffer->scope,
                                        .alignment = buffer->alignment,
                                        .offset_factor = buffer->offset_factor},
                        buffer->origin);
    return flat;
  }

  Stmt view(const Ref<Buffer>& buffer) {
    return make<DeclBuffer>(flat_buffer(buffer), buffer->data, buffer->origin);
  }

  NodePtr with_view(const NodePtr& definition, const Ref<Buffer>& buffer) {
    return make<Seq>(std::vector<Stmt>{downcast<StmtNode>(definition), view(buffer)});
  }

  Expr offset(const Buffer& buffer, const std::vector<Expr>& indices) {
    std::vector<Expr> strides =
        buffer.is_compact() ? compact_strides(buffer.shape) : buffer.strides;
    Expr sum = int64(0);
    Expr last;  // a vector, scalars first
    for (size_t i = 0; i < indices.size(); ++i) {
      const Expr index = (*this)(indices[i]);
      if (index->dtype.is_scalar()) {
        sum = sum + tenon::cast(kInt64, index) * tenon::cast(kInt64, strides[i]);
      } else if (const auto* ramp = index.as<Ramp>()) {
        const Expr stride = tenon::cast(kInt64, strides[i]);
        sum = sum + tenon::cast(kInt64, ramp->base) * stride;
        last = make<Ramp>(int64(0), tenon::cast(kInt64, ramp->stride) * stride, ramp->lanes);
      } else {
        last = tenon::cast(kInt64.with_lanes(index->dtype.lanes), index) *
               tenon::cast(kInt64, strides[i]);
      }
    }
    sum = analyzer_.simplify(sum);
    if (!last) return sum;
    if (const auto* ramp = last.as<Ramp>()) return make<Ramp>(sum, ramp->stride, ramp->lanes);
    return last + sum;
  }

  arith::Analyzer analyzer_;
  std::unordered_set<const Node*> seen_from_outside_, accessed_, pointers_;
  std::unordered_map<const Node*, Ref<Buffer>> flat_;
};

}  // namespace

IRModule flatten_buffer(IRModule module) {
  return map_prim_funcs(std::move(module), [](const Ref<PrimFunc>& function) {
    return function->with_body(Flattener(*function).flatten(*function));
  });
}

}  // namespace tenon::tir
