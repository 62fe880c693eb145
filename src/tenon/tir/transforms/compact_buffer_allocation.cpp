// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "tenon/arith/int_set.h"
#include "tenon/tir/transforms.h"

namespace tenon::tir {

namespace {

using arith::Domain;
using arith::Interval;

// The box of one buffer that the statements after its allocation access.
struct Access {
  std::vector<Interval> box;  // empty: not accessed yet
  bool fixed = false;         // its shape is seen from outside
};

/// The buffers, and the pointers, that statements name.
class Mentions {
 public:
  bool has(const NodePtr& stmt, const Buffer& buffer) {
    const std::vector<const Node*>& all = of(stmt);
    return std::any_of(all.begin(), all.end(),
                       [&](const Node* one) { return one == &buffer || one == buffer.data.get(); });
  }

 private:
  const std::vector<const Node*>& of(const NodePtr& stmt) {
    const auto [entry, is_new] = known_.try_emplace(stmt.get());
    std::vector<const Node*>& all = entry->second;
    if (!is_new) return all;
    const auto add = [&](const Node* node) {
      if (std::find(all.begin(), all.end(), node) == all.end()) all.push_back(node);
    };
    walk_if(stmt, [&](const NodePtr& node) {
      if (node.as<StmtNode>() && !node.same_as(stmt)) {
        for (const Node* one : of(node)) add(one);
        return false;
      }
      const auto* var = node.as<Var>();
      if (node.as<Buffer>() || (var && var->dtype.is_handle())) add(node.get());
      return true;
    });
    return all;
  }

  std::unordered_map<const Node*, std::vector<const Node*>> known_;
};

class Collector {
 public:
  Collector(arith::Analyzer& analyzer, Mentions& mentions, const Ref<Buffer>& buffer)
      : analyzer_(analyzer), mentions_(mentions), buffer_(buffer) {}

  Access collect(const std::vector<Stmt>& stmts) {
    for (const Stmt& stmt : stmts) visit(stmt);
    return access_;
  }

 private:
  void visit(const NodePtr& node) {
    if (!node || access_.fixed) return;
    // What a binding defines may be in an index further on.
    if (node.as<StmtNode>() && !node.as<Bind>() && !mentions_.has(node, *buffer_)) return;
    if (const auto* loop = node.as<For>()) {
      visit(loop->min);
      visit(loop->extent);
      domain_[loop->loop_var.get()] = Interval::of(loop->min, loop->extent);
      return visit(loop->body);
    }
    if (const auto* bind = node.as<Bind>()) {
      visit(bind->value);
      define(bind->var, bind->value);
      return;
    }
    if (const auto* let = node.as<Let>()) {
      visit(let->value);
      define(let->var, let->value);
      return visit(let->body);
    }
    if (const auto* load = node.as<BufferLoad>()) {
      for (const Expr& index : load->indices) visit(index);
      if (load->buffer.same_as(buffer_)) add_indices(load->indices);
      return;
    }
    if (const auto* store = node.as<BufferStore>()) {
      for (const Expr& index : store->indices) visit(index);
      visit(store->value);
      if (store->buffer.same_as(buffer_)) add_indices(store->indices);
      return;
    }
    if (const auto* region = node.as<BufferRegion>()) {
      for (const Range& range : region->region) {
        visit(range.min);
        visit(range.extent);
      }
      if (region->buffer.same_as(buffer_)) {
        std::vector<Interval> box;
        for (const Range& range : region->region) {
          Interval whole{arith::evaluate(analyzer_, range.min, domain_).min,
                         arith::evaluate(analyzer_, range.min + range.extent - 1, domain_).max};
          box.push_back(whole);
        }
        add(box);
      }
      return;
    }
    if (const auto* call = node.as<Call>();
        call && (call->is(IntrinsicId::kAddressOf) || call->is(IntrinsicId::kTvmAccessPtr))) {
      walk(call->args[0], [&](const NodePtr& inner) {
        if (inner.same_as(buffer_)) access_.fixed = true;
      });
    }
    if (const auto* var = node.as<Var>(); var && var == buffer_->data.get()) access_.fixed = true;
    if (node.as<Var>() || node.as<Buffer>()) return;
    if (const auto* block = node.as<Block>()) {  // reads and writes follow from the body
      for (const MatchBuffer& match : block->match_buffers) {
        if (match.source->buffer.same_as(buffer_) && !match.buffer->strides.empty())
          access_.fixed = true;
        visit(match.source);
      }
      return visit(block->body);
    }
    each_member(node, [&](const NodePtr& member, FieldRole role) {
      if (role == FieldRole::kUse) visit(member);
    });
  }

  void define(const Ref<Var>& var, const Expr& value) {
    if (!var->dtype.is_integer()) return;
    const Interval interval = arith::evaluate(analyzer_, value, domain_);
    domain_[var.get()] = interval;
  }

  Interval evaluate_index(const Expr& index) {
    if (index->dtype.is_scalar()) return arith::evaluate(analyzer_, index, domain_);
    const auto* ramp = index.as<Ramp>();
    if (!ramp) return Interval::everything();
    const Expr last = ramp->base + ramp->stride * (ramp->lanes - 1);
    return arith::unite(analyzer_, arith::evaluate(analyzer_, ramp->base, domain_),
                        arith::evaluate(analyzer_, last, domain_));
  }

  void add_indices(const std::vector<Expr>& indices) {
    std::vector<Interval> box;
    for (const Expr& index : indices) box.push_back(evaluate_index(index));
    add(box);
  }

  // An end that is read from memory may have changed at the next access.
  static bool reads_memory(const Interval& interval) {
    bool reads = false;
    for (const Expr& end : {interval.min, interval.max})
      walk<BufferLoad>(end, [&](const BufferLoad&) { reads = true; });
    return reads;
  }

  void add(std::vector<Interval> box) {
    for (Interval& interval : box)
      if (reads_memory(interval)) interval = Interval::everything();
    if (access_.box.empty()) {
      access_.box = box;
      return;
    }
    for (size_t i = 0; i < box.size(); ++i)
      access_.box[i] = arith::unite(analyzer_, access_.box[i], box[i]);
  }

  arith::Analyzer& analyzer_;
  Mentions& mentions_;
  const Ref<Buffer>& buffer_;
  Domain domain_;
  Access access_;
};

class Compactor final : public Rewriter {
 public:
  explicit Compactor(const PrimFunc& function) {
    for (const Ref<Var>& symbol : symbolic_vars(function)) analyzer_.bind_lower(symbol, 0);
  }

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    if (const auto* sequence = node.as<Seq>()) {
      std::vector<Stmt> stmts;
      for (size_t i = 0; i < sequence->stmts.size(); ++i) {
        const auto* alloc = sequence->stmts[i].as<AllocBuffer>();
        if (alloc) {
          const std::vector<Stmt> rest(sequence->stmts.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                       sequence->stmts.end());
          compact(alloc->buffer, rest);
        }
        stmts.push_back((*this)(sequence->stmts[i]));
      }
      return make<Seq>(std::move(stmts), sequence->origin);
    }
    if (const auto* loop = node.as<For>()) {
      const Expr min = (*this)(loop->min), extent = (*this)(loop->extent);
      const auto scope = analyzer_.enter();
      analyzer_.bind(loop->loop_var, min, extent);
      return loop->with(min, extent, (*this)(loop->body));
    }
    if (const auto* block = node.as<Block>()) {
      Block::Parts parts = block->parts();
      if (!parts.iter_vars.empty())
        throw CompileError(kWrongForm, block->origin,
                           "block `{}` has axes; ConvertBlocksToOpaque runs first", block->name);
      // What the statements access says more than the declared regions from here on.
      parts.reads.clear();
      parts.writes.clear();
      for (const Ref<Buffer>& buffer : parts.alloc_buffers) compact(buffer, {parts.body});
      for (Ref<Buffer>& buffer : parts.alloc_buffers)
        if (const Ref<Buffer> next = replacement(buffer)) buffer = next;
      return rewrite_members(make<Block>(std::move(parts), block->origin));
    }
    if (const auto* alloc = node.as<AllocBuffer>())
      if (const Ref<Buffer> next = replacement(alloc->buffer))
        return make<AllocBuffer>(next, alloc->annotations, alloc->origin);
    if (const auto* load = node.as<BufferLoad>())
      if (const Ref<Buffer> next = replacement(load->buffer))
        return make<BufferLoad>(next, shifted(*load->buffer.get(), load->indices), load->origin);
    if (const auto* store = node.as<BufferStore>())
      if (const Ref<Buffer> next = replacement(store->buffer))
        return make<BufferStore>(next, (*this)(store->value),
                                 shifted(*store->buffer.get(), store->indices), store->origin);
    if (const auto* region = node.as<BufferRegion>())
      if (const Ref<Buffer> next = replacement(region->buffer)) {
        std::vector<Range> ranges;
        const std::vector<Expr>& offsets = moved_.at(region->buffer.get()).offsets;
        for (size_t i = 0; i < ranges_of(*region).size(); ++i) {
          const Range& range = ranges_of(*region)[i];
          ranges.push_back(
              {analyzer_.simplify((*this)(range.min) - offsets[i]), (*this)(range.extent)});
        }
        return make<BufferRegion>(next, std::move(ranges), region->drop, region->origin);
      }
    return rewrite_members(node);
  }

 private:
  struct Moved {
    Ref<Buffer> from, to;
    std::vector<Expr> offsets;
  };

  static const std::vector<Range>& ranges_of(const BufferRegion& region) { return region.region; }

  Ref<Buffer> replacement(const Ref<Buffer>& buffer) const {
    const auto it = moved_.find(buffer.get());
    return it == moved_.end() ? Ref<Buffer>() : it->second.to;
  }

  std::vector<Expr> shifted(const Buffer& buffer, const std::vector<Expr>& indices) {
    std::vector<Expr> out;
    const std::vector<Expr>& offsets = moved_.at(&buffer).offsets;
    for (size_t i = 0; i < indices.size(); ++i)
      out.push_back(analyzer_.simplify((*this)(indices[i]) - offsets[i]));
    return out;
  }

  // The extent of a dimension that holds [min, max], no greater than it was: a constant where
  // possible.
  Expr extent_of(const Interval& interval, const Expr& dim) {
    const Expr extent = analyzer_.simplify(interval.max - interval.min + 1);
    if (as_int(extent)) return extent;
    const arith::ConstBound bound = analyzer_.const_bound(extent);
    if (bound.has_max()) return imm(dim->dtype, std::max<int64_t>(bound.max, 1));
    return {};
  }

  void compact(const Ref<Buffer>& buffer, const std::vector<Stmt>& rest) {
    if (!buffer->strides.empty() || buffer->elem_offset) return;
    const Access access = Collector(analyzer_, mentions_, buffer).collect(rest);
    if (access.fixed || access.box.empty()) return;
    std::vector<Expr> shape = buffer->shape, offsets;
    bool changed = false;
    for (size_t i = 0; i < shape.size(); ++i) {
      const Expr zero = imm(shape[i]->dtype, int64_t{0});
      offsets.push_back(zero);
      const Interval& interval = access.box[i];
      if (!interval.is_bounded()) continue;
      Expr extent = extent_of(interval, shape[i]);
      if (!extent) continue;
      extent = tenon::cast(shape[i]->dtype, extent);
      // A guarded access may name what lies outside; it never happens there.
      Expr min = tenon::cast(shape[i]->dtype, interval.min);
      if (!analyzer_.proves_nonnegative(min)) min = max(min, zero);
      const auto old_extent = as_int(shape[i]), new_extent = as_int(extent);
      const bool smaller = old_extent && new_extent ? *new_extent < *old_extent
                                                    : new_extent.has_value() && !old_extent;
      if (!smaller) continue;
      shape[i] = extent;
      offsets.back() = analyzer_.simplify(min);
      changed = true;
    }
    if (!changed) return;
    Buffer::Options options{.scope = buffer->scope,
                            .alignment = buffer->alignment,
                            .offset_factor = buffer->offset_factor};
    moved_.insert_or_assign(
        buffer.get(),
        Moved{buffer, make<Buffer>(buffer->name, buffer->dtype, shape, options, buffer->origin),
              offsets});
  }

  arith::Analyzer analyzer_;
  Mentions mentions_;  // of statements as they were: these outlive the rewriting
  std::unordered_map<const Node*, Moved> moved_;
};

}  // namespace

IRModule compact_buffer_allocation(IRModule module) {
  return map_kernels(std::move(module), [](const Ref<PrimFunc>& function) {
    // The program's own buffers are handed to calls as a whole; looking for a smaller box in as
    // many statements as the network has calls, for each of as many buffers, would only take time.
    if (function->attrs.flag("tenon.entry")) return function;
    return function->with_body(Compactor(*function)(function->body));
  });
}

}  // namespace tenon::tir
