// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/call_body.h"

#include "tenon/tir/call_facts.h"
#include "tenon/tir/callee.h"
#include "tenon/tir/region_rewriter.h"

namespace tenon::tir {

namespace {

// Accesses of parameters become accesses of what the call gives for them.
class Placer final : public RegionRewriter {
 public:
  void place(const Ref<Buffer>& param, const Ref<BufferRegion>& region) {
    regions_.emplace(param.get(), region);
  }

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    if (const auto* load = node.as<BufferLoad>())
      if (const BufferRegion* region = region_of(load->buffer))
        return make<BufferLoad>(region->buffer, indices(*region, load->indices), load->origin);
    if (const auto* store = node.as<BufferStore>())
      if (const BufferRegion* region = region_of(store->buffer))
        return make<BufferStore>(region->buffer, (*this)(store->value),
                                 indices(*region, store->indices), store->origin);
    if (const auto* region = node.as<BufferRegion>())
      if (const BufferRegion* outer = region_of(region->buffer))
        return composed(*outer, *region, !in_lists());
    return rewrite_others(node);
  }

 private:
  const BufferRegion* region_of(const Ref<Buffer>& buffer) const {
    const auto it = regions_.find(buffer.get());
    return it == regions_.end() ? nullptr : it->second.get();
  }

  std::vector<Expr> indices(const BufferRegion& region, const std::vector<Expr>& inner) {
    std::vector<Expr> out;
    size_t next = 0;
    for (size_t d = 0; d < region.region.size(); ++d) {
      const Expr& min = region.region[d].min;
      out.push_back(region.drops(d) ? min : shifted(min, (*this)(inner.at(next++))));
    }
    return out;
  }

  static Expr shifted(const Expr& min, const Expr& index) {
    if (is_int(min, 0)) return index;
    if (index->dtype.is_scalar()) return min + index;
    const Expr base = tenon::cast(index->dtype.element(), min);
    if (const auto* ramp = index.as<Ramp>())
      return make<Ramp>(base + ramp->base, ramp->stride, ramp->lanes);
    return broadcast_to_lanes(base, index->dtype.lanes) + index;
  }

  NodePtr composed(const BufferRegion& outer, const BufferRegion& inner, bool drops) {
    std::vector<Range> ranges;
    std::vector<bool> drop;
    size_t next = 0;
    for (size_t d = 0; d < outer.region.size(); ++d) {
      const Expr& min = outer.region[d].min;
      if (outer.drops(d)) {
        ranges.push_back({min, imm(min->dtype, int64_t{1})});
        drop.push_back(true);
      } else {
        const Range& range = inner.region.at(next);
        const Expr first = shifted(min, (*this)(range.min));
        ranges.push_back({first, tenon::cast(first->dtype, (*this)(range.extent))});
        drop.push_back(inner.drops(next));
        ++next;
      }
    }
    if (!drops) drop.clear();
    return make<BufferRegion>(outer.buffer, std::move(ranges), std::move(drop), inner.origin);
  }

  std::unordered_map<const Node*, Ref<BufferRegion>> regions_;
};

}  // namespace

bool is_whole_buffer(const NodePtr& arg) {
  const auto* region = arg.as<BufferRegion>();
  return region && !region->buffer->elem_offset && str(*region) == region->buffer->name;
}

Stmt body_in_place(const Ref<PrimFunc>& callee, const std::vector<NodePtr>& args) {
  const Ref<PrimFunc> copy = renew_definitions(callee);
  Placer placer;
  for (size_t i = 0; i < args.size(); ++i) {
    const auto region = cast<BufferRegion>(args[i]);
    if (!region) continue;
    const Ref<Buffer>& param = copy->buffers[i];
    if (is_whole_buffer(region)) {
      placer.replace(NodePtr(param), region->buffer);
      placer.replace(NodePtr(param->data), region->buffer->data);
    } else {
      placer.place(param, region);
    }
  }
  for (const auto& [var, value] : bind_symbols(callee_of("", copy), args))
    placer.replace(NodePtr(var), value);
  return placer(copy->body);
}

}  // namespace tenon::tir
