// SPDX-License-Identifier: Apache-2.0
// transform_layout: stores an intermediate in another order, possibly with padding.
#include <numeric>

#include "tenon/arith/iter_map.h"
#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

namespace {

/// Places of the old layout that differ by a multiple of this differ in the quotients of `expr`
/// alone: `i // 4 % 8` repeats after 32. 1 where it is no chain of quotients and remainders of
/// `var`, nothing where it overflows.
std::optional<int64_t> period_of(const Expr& expr, const Var* var) {
  if (expr.get() == var) return 1;
  const auto* op = expr.as<Binary>();
  if (!op || (op->op != BinaryOp::kFloorDiv && op->op != BinaryOp::kFloorMod)) return std::nullopt;
  const auto inner = period_of(op->lhs, var);
  const auto by = as_int(op->rhs);
  constexpr int64_t kMost = int64_t{1} << 40;
  if (!inner || !by || *by < 1 || *by > kMost / *inner) return std::nullopt;
  return *inner * *by;
}

/// The extent of index `var` rounded up so that each quotient and remainder of it in the map is a
/// whole one.
Expr rounded_extent(const IndexMap& map, const Ref<Var>& var, const Expr& extent) {
  int64_t multiple = 1;
  for (const Expr& index : map.to)
    walk<Binary>(index, [&](const Binary& op) {
      const auto period = period_of(ref_to(&op), var.get());
      if (period && multiple <= (int64_t{1} << 40) / *period)
        multiple = std::lcm(multiple, *period);
    });
  if (multiple == 1) return extent;
  const Expr m = imm(extent->dtype, multiple);
  return arith::simplify(ceildiv(extent, m) * m);
}

struct NewLayout {
  arith::IterMap map;  // from the padded places of the old layout
  std::vector<Expr> shape;
  std::vector<bool> is_padded;  // dimensions of the old layout
};

std::optional<NewLayout> layout_of(const Buffer& buffer, const IndexMap& map,
                                   const std::vector<Expr>& extents) {
  std::vector<arith::Iterator> domain;
  for (size_t i = 0; i < map.from.size(); ++i)
    domain.push_back({map.from[i], zero_of(map.from[i]), cast(map.from[i]->dtype, extents[i])});
  arith::Analyzer analyzer;
  const auto found = arith::detect_iter_map(analyzer, map.to, domain);
  if (!found) return std::nullopt;
  NewLayout out{*found, {}, {}};
  for (size_t i = 0; i < found->extent.size(); ++i) {
    if (!analyzer.proves_equal(found->min[i], 0)) return std::nullopt;
    out.shape.push_back(analyzer.simplify(found->extent[i]));
  }
  for (size_t i = 0; i < extents.size(); ++i)
    out.is_padded.push_back(!analyzer.proves_equal(extents[i], buffer.shape[i]));
  return out;
}

/// Moves the accesses of one buffer to another in another layout.
class LayoutRewriter final : public Rewriter {
 public:
  LayoutRewriter(Ref<Buffer> from, Ref<Buffer> to, const IndexMap& map, const Stmt& root)
      : from_(std::move(from)), to_(std::move(to)), map_(map) {
    walk(root, [&](const NodePtr& node) {
      if (const auto* loop = node.as<For>())
        analyzer_.bind(loop->loop_var, loop->min, loop->extent);
      if (const auto* block = node.as<Block>())
        for (const IterVar& iter : block->iter_vars) analyzer_.bind(iter.var, iter.domain);
    });
  }

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    NodePtr next = rewrite_members(node);
    if (const auto* load = next.as<BufferLoad>(); load && load->buffer.same_as(from_))
      return make<BufferLoad>(to_, indices(load->indices), load->origin);
    if (const auto* store = next.as<BufferStore>(); store && store->buffer.same_as(from_))
      return make<BufferStore>(to_, store->value, indices(store->indices), store->origin);
    if (const auto* block = next.as<Block>()) {
      if (reads_buffer(*block, from_) || writes_buffer(*block, from_))
        return with_accesses(ref_to(block));
    }
    return next;
  }

 private:
  std::vector<Expr> indices(const std::vector<Expr>& old) {
    Substitution values;
    for (size_t i = 0; i < old.size(); ++i)
      values[map_.from[i].get()] = cast(map_.from[i]->dtype, old[i]);
    std::vector<Expr> out;
    for (const Expr& index : map_.to) out.push_back(analyzer_.simplify(substitute(index, values)));
    return out;
  }

  Ref<Buffer> from_, to_;
  const IndexMap& map_;
  arith::Analyzer analyzer_;
};

void check_plain_accesses(const Stmt& root, const Buffer& buffer, const Origin& origin) {
  const auto uses_memory = [&](const NodePtr& node) {
    bool found = false;
    walk(node, [&](const NodePtr& inner) {
      const auto* load = inner.as<BufferLoad>();
      found = found || inner.get() == buffer.data.get() || (load && load->buffer.get() == &buffer);
    });
    return found;
  };
  walk(root, [&](const NodePtr& node) {
    if (const auto* block = node.as<Block>()) {
      for (const MatchBuffer& match : block->match_buffers)
        if (match.source->buffer.get() == &buffer)
          illegal(origin, "block `{}` has a view of `{}`", block->name, buffer.name);
      const auto aligned = block->annotations.get<AttrList>("buffer_dim_align");
      for (size_t i = 0; aligned && i < block->writes.size(); ++i)
        if (block->writes[i]->buffer.get() == &buffer)
          illegal(origin, "the strides of `{}` are aligned in its present layout", buffer.name);
    }
    const auto* call = node.as<Call>();
    const bool takes_address =
        call && call->op && !call->is(IntrinsicId::kPrefetch) &&
        (call->op->effect == Effect::kOpaque || call->is(IntrinsicId::kAddressOf) ||
         call->is(IntrinsicId::kTvmAccessPtr));
    const bool passes = node.as<CallTir>() || node.as<DeclBuffer>();
    if ((takes_address || passes) && uses_memory(node))
      illegal(origin, "`{}` is used through its address; its layout cannot change", buffer.name);
    if (node.as<CallTir>())
      walk<BufferRegion>(node, [&](const BufferRegion& region) {
        if (region.buffer.get() == &buffer)
          illegal(origin, "`{}` is given to a call; its layout cannot change", buffer.name);
      });
  });
}

/// A nest that puts `value` where no place of the old layout is.
Stmt padding_nest(const Ref<Buffer>& to, const Buffer& from, const NewLayout& layout,
                  const Expr& value, const std::string& name, const Origin& origin) {
  Block::Parts parts;
  parts.name = name;
  std::vector<Expr> place;
  for (size_t i = 0; i < to->ndim(); ++i) {
    const Ref<Var> axis = var(fmt::format("v{}", i), to->shape[i]->dtype);
    parts.iter_vars.push_back({axis, {zero_of(axis), to->shape[i]}, IterKind::kSpatial});
    place.push_back(axis);
  }
  parts.body = make<BufferStore>(to, value, place, origin);
  const Ref<Block> block = with_accesses(make<Block>(std::move(parts), origin));
  const Nest nest = make_nest(block, domains_of(*block));
  const Path path = find_block(nest.stmt, name);
  const auto* realize = path.target().as<BlockRealize>();
  arith::Analyzer analyzer;
  bind_path(path, analyzer);
  const std::vector<Expr> source = layout.map.invert(analyzer, realize->iter_values);
  Expr inside = boolean(true);
  for (size_t i = 0; i < source.size(); ++i)
    if (layout.is_padded[i])
      inside = logical_and(inside, analyzer.simplify(source[i] < from.shape[i]));
  return replace(path,
                 make<BlockRealize>(realize->iter_values, logical_not(inside), block, origin));
}

}  // namespace

std::string IndexMap::str() const {
  std::string text = "lambda ";
  for (size_t i = 0; i < from.size(); ++i) text += (i ? ", " : "") + from[i]->name;
  text += ": (";
  for (size_t i = 0; i < to.size(); ++i) text += (i ? ", " : "") + tenon::str(to[i]);
  return text + (to.size() == 1 ? ",)" : ")");
}

void Schedule::transform_layout(const BlockRV& block, BufferRole role, int64_t index,
                                const IndexMap& map, const Expr& pad_value) {
  const Ref<Block> old = get(block);
  const auto& list = role == BufferRole::kRead ? old->reads : old->writes;
  if (index < 0 || static_cast<size_t>(index) >= list.size())
    illegal(old->origin, "block `{}` has {} {}; {} was asked for", block.name, list.size(),
            role == BufferRole::kRead ? "reads" : "writes", index);
  const Ref<Buffer> buffer = list[static_cast<size_t>(index)]->buffer;
  if (!is_intermediate(buffer))
    illegal(old->origin,
            "`{}` is no intermediate of the function; its layout belongs to whoever gives it",
            buffer->name);
  if (!buffer->is_compact() || buffer->elem_offset)
    illegal(old->origin, "`{}` has strides or an offset of its own", buffer->name);
  if (map.from.size() != buffer->ndim() || map.to.empty())
    illegal(old->origin, "index map `{}` takes {} indices; `{}` has {} dimensions", map.str(),
            map.from.size(), buffer->name, buffer->ndim());
  if (pad_value && pad_value->dtype != buffer->dtype)
    illegal(old->origin, "the padding of `{}` has dtype {}; expected {}", buffer->name,
            pad_value->dtype.str(), buffer->dtype.str());
  check_plain_accesses(root(), *buffer, old->origin);
  std::optional<NewLayout> layout = layout_of(*buffer, map, buffer->shape);
  if (!layout) {
    std::vector<Expr> extents;
    for (size_t i = 0; i < map.from.size(); ++i)
      extents.push_back(rounded_extent(map, map.from[i], buffer->shape[i]));
    layout = layout_of(*buffer, map, extents);
  }
  if (!layout)
    illegal(old->origin, "index map `{}` does not give each place of shape {} one of its own",
            map.str(), tenon::str(buffer->shape));
  const Ref<Buffer> next = make<Buffer>(
      buffer->name, buffer->dtype, layout->shape,
      Buffer::Options{.scope = buffer->scope, .alignment = buffer->alignment}, buffer->origin);
  Stmt body = LayoutRewriter(buffer, next, map, root())(root());
  const auto* realize = body.as<BlockRealize>();
  Block::Parts parts = realize->block->parts();
  for (Ref<Buffer>& allocated : parts.alloc_buffers)
    if (allocated.same_as(buffer)) allocated = next;
  body = make<BlockRealize>(realize->iter_values, realize->predicate,
                            with_parts(realize->block, std::move(parts)), realize->origin);
  bool pads = false;
  for (const bool padded : layout->is_padded) pads = pads || padded;
  if (pads && pad_value) {
    // Before the first that writes the buffer; what is written there is never padding.
    for (const BlockRV& writer : blocks()) {
      if (!writes_buffer(*get(writer), buffer)) continue;
      const Stmt nest = padding_nest(next, *buffer, *layout, pad_value,
                                     unique_name(buffer->name + "_padding"), old->origin);
      const Path first = find_block(body, writer.name);
      body = insert_before(nest_path(first), nest);
      break;
    }
  }
  commit(body);
  AttrList from, to;
  for (const Ref<Var>& var : map.from) from.push_back(AttrValue(NodePtr(var)));
  for (const Expr& expr : map.to) to.push_back(AttrValue(NodePtr(expr)));
  record("transform_layout", {block},
         {{"buffer",
           AttrList{AttrValue(role == BufferRole::kRead ? "read" : "write"), AttrValue(index)}},
          {"index_map", AttrList{AttrValue(from), AttrValue(to)}},
          {"pad_value", pad_value ? AttrValue(NodePtr(pad_value)) : AttrValue()}});
}

}  // namespace tenon::tir
