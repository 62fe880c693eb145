// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/transforms.h"

namespace tenon::tir {

namespace {

class Lowerer final : public Rewriter {
 protected:
  NodePtr rewrite(const NodePtr& node) override {
    if (const auto* block = node.as<Block>(); block && !block->match_buffers.empty()) {
      Block::Parts parts = block->parts();
      for (const MatchBuffer& match : parts.match_buffers)
        define(match.buffer, (*this)(match.source));
      parts.match_buffers.clear();
      return (*this)(make<Block>(std::move(parts), block->origin));
    }
    if (const auto* load = node.as<BufferLoad>())
      if (const BufferRegion* source = source_of(load->buffer))
        return make<BufferLoad>(source->buffer, shifted(*source, rewritten(load->indices)),
                                load->origin);
    if (const auto* store = node.as<BufferStore>())
      if (const BufferRegion* source = source_of(store->buffer))
        return make<BufferStore>(source->buffer, (*this)(store->value),
                                 shifted(*source, rewritten(store->indices)), store->origin);
    if (const auto* region = node.as<BufferRegion>())
      if (const BufferRegion* source = source_of(region->buffer)) return composed(*source, *region);
    return rewrite_members(node);
  }

 private:
  const BufferRegion* source_of(const Ref<Buffer>& view) const {
    const auto it = sources_.find(view.get());
    return it == sources_.end() ? nullptr : it->second.get();
  }

  std::vector<Expr> rewritten(const std::vector<Expr>& exprs) {
    std::vector<Expr> out;
    for (const Expr& expr : exprs) out.push_back((*this)(expr));
    return out;
  }

  // The dimension of the source that each dimension of the view stands for: those that are not
  // dropped, and of these the last ones.
  static std::vector<size_t> dims_of(const BufferRegion& source, size_t ndim) {
    std::vector<size_t> kept;
    for (size_t d = 0; d < source.region.size(); ++d)
      if (!source.drops(d)) kept.push_back(d);
    check(kept.size() >= ndim, "a view of more dimensions than its source");
    return {kept.end() - static_cast<std::ptrdiff_t>(ndim), kept.end()};
  }

  static std::vector<Expr> shifted(const BufferRegion& source, const std::vector<Expr>& indices) {
    std::vector<Expr> out;
    for (const Range& range : source.region) out.push_back(range.min);
    const std::vector<size_t> dims = dims_of(source, indices.size());
    for (size_t i = 0; i < indices.size(); ++i) out[dims[i]] = out[dims[i]] + indices[i];
    return out;
  }

  NodePtr composed(const BufferRegion& source, const BufferRegion& region) {
    std::vector<Range> ranges = source.region;
    for (Range& range : ranges) range.extent = imm(range.min->dtype, int64_t{1});
    std::vector<bool> drop(ranges.size(), true);
    const std::vector<size_t> dims = dims_of(source, region.region.size());
    for (size_t i = 0; i < dims.size(); ++i) {
      ranges[dims[i]] = {ranges[dims[i]].min + (*this)(region.region[i].min),
                         (*this)(region.region[i].extent)};
      drop[dims[i]] = region.drops(i);
    }
    return make<BufferRegion>(source.buffer, std::move(ranges), std::move(drop), region.origin);
  }

  void define(const Ref<Buffer>& view, const Ref<BufferRegion>& source) {
    const Buffer& buffer = *source->buffer;
    if (view->dtype != buffer.dtype)
      throw CompileError(kDTypeMismatch, view->origin, "view `{}` of dtype {} of buffer `{}` of {}",
                         view->name, view->dtype.str(), buffer.name, buffer.dtype.str());
    sources_.emplace(view.get(), source);
    views_.push_back(view);
    replace(view->data, buffer.data);
    const std::vector<Expr> strides =
        buffer.is_compact() ? compact_strides(buffer.shape) : buffer.strides;
    const std::vector<size_t> dims = dims_of(*source, view->ndim());
    const auto bind = [&](const Expr& declared, const Expr& actual) {
      if (declared && declared.as<Var>()) replace(declared, tenon::cast(declared->dtype, actual));
    };
    for (size_t i = 0; i < view->ndim(); ++i) bind(view->shape[i], source->region[dims[i]].extent);
    for (size_t i = 0; i < view->strides.size(); ++i) bind(view->strides[i], strides[dims[i]]);
    if (view->elem_offset) {
      Expr offset = buffer.elem_offset ? buffer.elem_offset : int64(0);
      for (size_t d = 0; d < strides.size(); ++d)
        offset = offset + source->region[d].min * strides[d];
      bind(view->elem_offset, offset);
    }
  }

  std::unordered_map<const Node*, Ref<BufferRegion>> sources_;
  std::vector<Ref<Buffer>> views_;  // keeps the keys alive
};

}  // namespace

IRModule lower_match_buffer(IRModule module) {
  return map_kernels(std::move(module),
                     [](const Ref<PrimFunc>& function) { return Lowerer()(function); });
}

}  // namespace tenon::tir
