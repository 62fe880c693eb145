// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/row_stage.h"

#include <algorithm>

#include "tenon/arith/analyzer.h"
#include "tenon/tir/compute.h"
#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/roles.h"

namespace tenon::tir {

namespace {

std::optional<std::vector<int64_t>> constant_shape(const Buffer& buffer) {
  std::vector<int64_t> out;
  for (const Expr& dim : buffer.shape) {
    const auto extent = as_int(dim);
    if (!extent || *extent < 1) return std::nullopt;
    out.push_back(*extent);
  }
  return out;
}

// The blocks of a kernel of nests, one store over constant domains each, and nothing else.
std::optional<std::vector<Ref<Block>>> plain_blocks(const PrimFunc& kernel) {
  const Block* root = root_block(kernel);
  if (!root || root->init || !root->match_buffers.empty() || kernel.buffers.empty() ||
      !kernel.result.is_void())
    return std::nullopt;
  for (const Ref<Buffer>& buffer : kernel.buffers)
    if (!buffer || !buffer->is_compact() || buffer->elem_offset || !constant_shape(*buffer))
      return std::nullopt;
  for (const Ref<Buffer>& buffer : root->alloc_buffers)
    if (!buffer->is_compact() || !constant_shape(*buffer)) return std::nullopt;
  std::vector<Ref<Block>> out;
  for (Stmt stmt : stmts_of(root->body)) {
    std::vector<Ref<Var>> loops;
    while (const auto* loop = stmt.as<For>()) {
      if (!is_int(loop->min, 0) || loop->kind != ForKind::kSerial || !loop->annotations.empty())
        return std::nullopt;
      loops.push_back(loop->loop_var);
      stmt = loop->body;
    }
    const auto* realize = stmt.as<BlockRealize>();
    if (!realize || !is_int(realize->predicate, 1)) return std::nullopt;
    const Block& block = *realize->block;
    if (!(is_spatial(block) || is_reduction(block)) || !only_store(block) ||
        !block.alloc_buffers.empty() || !block.match_buffers.empty() || !block.annotations.empty())
      return std::nullopt;
    for (size_t i = 0; i < block.iter_vars.size(); ++i) {
      const IterVar& iter = block.iter_vars[i];
      if (!is_int(iter.domain.min, 0) || !as_int(iter.domain.extent)) return std::nullopt;
      if (is_int(iter.domain.extent, 1) && is_int(realize->iter_values[i], 0)) continue;
      const bool is_loop = std::any_of(loops.begin(), loops.end(), [&](const Ref<Var>& loop) {
        return realize->iter_values[i].same_as(loop);
      });
      if (!is_loop) return std::nullopt;
    }
    out.push_back(realize->block);
  }
  return out.empty() ? std::nullopt : std::optional(out);
}

const IterVar* axis_of(const Block& block, const Expr& index) {
  for (const IterVar& iter : block.iter_vars)
    if (index.same_as(iter.var)) return &iter;
  return nullptr;
}

}  // namespace

// ---- slices -------------------------------------------------------------------------------------

SlicedKernel::SlicedKernel(const PrimFunc& kernel, std::vector<std::pair<Ref<Var>, int64_t>> ranges)
    : kernel_(kernel), ranges_(std::move(ranges)) {
  auto blocks = plain_blocks(kernel);
  is_suited_ = blocks.has_value();
  if (blocks) blocks_ = std::move(*blocks);
}

bool SlicedKernel::add_needs(const Block& block, const Substitution& values,
                             const std::vector<IterVar>& sliced) {
  const Ref<Buffer>& own = only_store(block)->buffer;
  std::vector<Ref<Var>> axes;
  arith::Analyzer analyzer;
  for (const auto& [var, extent] : ranges_) analyzer.bind(var, int64(0), int64(extent));
  for (const IterVar& iter : block.iter_vars) {
    axes.push_back(iter.var);
    analyzer.bind(iter.var, iter.domain);
  }
  bool fits = true;
  walk<BufferLoad>(block.body, [&](const BufferLoad& load) {
    const bool is_param =
        std::any_of(kernel_.buffers.begin(), kernel_.buffers.end(),
                    [&](const Ref<Buffer>& buffer) { return buffer.same_as(load.buffer); });
    if (load.buffer.same_as(own) || (is_param && !load.buffer.same_as(taken_out_))) return;
    Needed needed(load.buffer->ndim());
    for (size_t d = 0; d < needed.size(); ++d) {
      const bool is_sliced = std::any_of(sliced.begin(), sliced.end(), [&](const IterVar& iter) {
        return uses_var(load.indices[d], iter.var.get());
      });
      if (!is_sliced) continue;
      const auto form = analyzer.linear(substitute(load.indices[d], values), axes);
      if (!form) return void(fits = false);
      int64_t extent = 1;
      for (size_t a = 0; a < axes.size(); ++a) {
        const auto step = as_int(form->coefficients[a]);
        if (!step || *step < 0) return void(fits = false);
        extent += *step * (*as_int(block.iter_vars[a].domain.extent) - 1);
      }
      needed[d] = Slice{d, analyzer.simplify(form->rest), extent};
    }
    const auto [known, is_first] = needs_.try_emplace(load.buffer.get(), needed);
    if (is_first) return;
    for (size_t d = 0; d < needed.size(); ++d) {
      const auto &a = known->second[d], &b = needed[d];
      fits = fits && a.has_value() == b.has_value() &&
             (!a || (a->extent == b->extent && analyzer.proves_equal(a->first, b->first)));
    }
  });
  return fits;
}

bool SlicedKernel::compute(const std::vector<Slice>& slices) {
  parts_.clear();
  needs_.clear();
  needed_.clear();
  if (!is_suited_) return false;
  Needed wanted(result()->ndim());
  for (const Slice& slice : slices) wanted[slice.dim] = slice;
  needs_.emplace(result().get(), wanted);
  for (size_t i = blocks_.size(); i-- > 0;) {
    const Block& block = *blocks_[i];
    const BufferStore& store = *only_store(block);
    if (store.buffer.same_as(taken_out_)) continue;
    const auto found = needs_.find(store.buffer.get());
    if (found == needs_.end()) return false;
    Block::Parts parts = block.parts();
    Part part;
    std::vector<IterVar> sliced;
    for (const std::optional<Slice>& slice : found->second) {
      if (!slice) continue;
      const IterVar* axis = axis_of(block, store.indices[slice->dim]);
      if (!axis || axis->kind != IterKind::kSpatial ||
          !structural_equal(axis->domain.extent, store.buffer->shape[slice->dim]))
        return false;
      for (size_t d = 0; d < store.indices.size(); ++d)
        if (d != slice->dim && uses_var(store.indices[d], axis->var.get())) return false;
      for (IterVar& iter : parts.iter_vars)
        if (iter.var.same_as(axis->var))
          iter.domain.extent = imm(axis->domain.extent->dtype, slice->extent);
      part.values.emplace(axis->var.get(), Expr(axis->var) + slice->first);
      sliced.push_back(*axis);
    }
    if (sliced.empty()) return false;
    part.block = make<Block>(std::move(parts), block.origin);
    if (!add_needs(*part.block, part.values, sliced)) return false;
    parts_.push_back(std::move(part));
  }
  std::reverse(parts_.begin(), parts_.end());
  if (taken_out_) {
    const auto found = needs_.find(taken_out_.get());
    if (found == needs_.end()) return false;
    needed_ = found->second;
  }
  return true;
}

Ref<PrimFunc> SlicedKernel::kernel(const std::optional<Place>& taken_out,
                                   const std::optional<Place>& result,
                                   const std::vector<Ref<Var>>& scalars) const {
  std::unordered_map<const Node*, Place> places;
  if (taken_out) places.emplace(taken_out_.get(), *taken_out);
  if (result) places.emplace(this->result().get(), *result);
  Block::Parts root;
  root.name = "root";
  const auto allocated = [&](const Ref<Buffer>& buffer) {
    const Needed& needed = needs_.at(buffer.get());
    Place place;
    std::vector<Expr> shape = buffer->shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      place.shift.push_back(needed[d] ? int64(0) - needed[d]->first : Expr());
      if (needed[d]) shape[d] = imm(shape[d]->dtype, needed[d]->extent);
    }
    place.buffer = make<Buffer>(buffer->name, buffer->dtype, std::move(shape), buffer->origin);
    root.alloc_buffers.push_back(place.buffer);
    return place;
  };
  for (const Part& part : parts_) {
    const Ref<Buffer>& buffer = only_store(*part.block)->buffer;
    if (!buffer.same_as(this->result()) && !places.count(buffer.get()))
      places.emplace(buffer.get(), allocated(buffer));
  }
  std::vector<Stmt> stmts;
  for (const Part& part : parts_) {
    arith::Analyzer analyzer;
    for (const auto& [var, extent] : ranges_) analyzer.bind(var, int64(0), int64(extent));
    for (const IterVar& iter : part.block->iter_vars) analyzer.bind(iter.var, iter.domain);
    const auto moved = [&](const Ref<Buffer>& buffer, const std::vector<Expr>& indices) {
      const auto found = places.find(buffer.get());
      std::vector<Expr> out;
      for (size_t d = 0; d < indices.size(); ++d) {
        const Expr shift = found == places.end() ? Expr() : found->second.shift[d];
        out.push_back(analyzer.simplify(shift ? indices[d] + shift : indices[d]));
      }
      return std::pair(found == places.end() ? buffer : found->second.buffer, out);
    };
    const auto rewritten = [&](const Stmt& stmt) {
      return rewrite(
          substitute(stmt, part.values), [&](const NodePtr& node) -> std::optional<NodePtr> {
            if (const auto* load = node.as<BufferLoad>()) {
              auto [buffer, indices] = moved(load->buffer, load->indices);
              return make<BufferLoad>(buffer, std::move(indices), load->origin);
            }
            if (const auto* store = node.as<BufferStore>()) {
              auto [buffer, indices] = moved(store->buffer, store->indices);
              return make<BufferStore>(buffer, store->value, std::move(indices), store->origin);
            }
            return std::nullopt;
          });
    };
    Block::Parts parts = part.block->parts();
    parts.body = rewritten(parts.body);
    if (parts.init) parts.init = rewritten(parts.init);
    Access access = access_of(parts.init, parts.body);
    parts.reads = std::move(access.reads);
    parts.writes = std::move(access.writes);
    const auto block = make<Block>(std::move(parts), part.block->origin);
    stmts.push_back(make_nest(block, domains_of(*block)).stmt);
  }
  root.body = seq(std::move(stmts));
  std::vector<Ref<Var>> params;
  std::vector<Ref<Buffer>> buffers;
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const Ref<Buffer>& buffer = kernel_.buffers[i];
    const auto found = places.find(buffer.get());
    buffers.push_back(taken_out && i == param_ ? taken_out->buffer
                      : found == places.end()  ? buffer
                                               : found->second.buffer);
    params.push_back(make<Var>(buffers.back()->name + "_handle", kHandle));
  }
  for (const Ref<Var>& scalar : scalars) {
    params.push_back(scalar);
    buffers.push_back(nullptr);
  }
  const Stmt body =
      make<BlockRealize>(std::vector<Expr>{}, boolean(true), make<Block>(std::move(root)));
  Attrs attrs;
  attrs.set("tir.noalias", true);
  attrs.set(kRunsInTask, true);
  return renew_definitions(
      with(make<PrimFunc>(std::move(params), std::move(buffers), body, attrs, kernel_.origin),
           [](PrimFunc& made) { made.is_private = true; }));
}

// ---- windows ------------------------------------------------------------------------------------

namespace {

void conditions_of(const Expr& condition, std::vector<Expr>& out) {
  if (const auto* both = condition.as<Binary>(); both && both->op == BinaryOp::kAnd) {
    conditions_of(both->lhs, out);
    conditions_of(both->rhs, out);
  } else {
    out.push_back(condition);
  }
}

// Whether `condition` holds exactly where each axis, less `before`, is an index of `shape`.
bool is_inside(const Expr& condition, const std::vector<Expr>& axes,
               const std::vector<int64_t>& before, const std::vector<int64_t>& shape,
               const Block& block) {
  arith::Analyzer analyzer;
  for (const IterVar& iter : block.iter_vars) analyzer.bind(iter.var, iter.domain);
  std::vector<Expr> given, expected;
  conditions_of(condition, given);
  for (size_t d = 0; d < axes.size(); ++d) {
    const Expr index = axes[d] - int64(before[d]);
    expected.push_back(int64(0) <= index);
    expected.push_back(index < int64(shape[d]));
  }
  const auto follow = [&](const std::vector<Expr>& from, const std::vector<Expr>& what) {
    auto scope = analyzer.enter();
    for (const Expr& each : from) analyzer.assume(each);
    return std::all_of(what.begin(), what.end(),
                       [&](const Expr& each) { return analyzer.proves(each); });
  };
  return follow(given, expected) && follow(expected, given);
}

// Takes `block` as a padding of `input`, where it is one.
bool take_padding(const Block& block, const Ref<Buffer>& input, RowWindow& window) {
  const BufferStore* store = only_store(block);
  const auto* guard = store->value.as<Call>();
  if (!guard || !guard->is(IntrinsicId::kIfThenElse) || !is_spatial(block) ||
      store->indices.size() != input->ndim())
    return false;
  const auto* load = guard->args.at(1).as<BufferLoad>();
  const auto outside = downcast<ExprNode>(guard->args.at(2));
  if (!load || !load->buffer.same_as(input) || !(as_int(outside) || as_float(outside)))
    return false;
  arith::Analyzer analyzer;
  std::vector<Expr> axes;
  for (size_t d = 0; d < input->ndim(); ++d) {
    if (!axis_of(block, store->indices[d]) && !is_int(store->indices[d], 0)) return false;
    const auto before = as_int(analyzer.simplify(store->indices[d] - load->indices[d]));
    if (!before || *before < 0) return false;
    window.before[d] = *before;
    axes.push_back(store->indices[d]);
  }
  window.outside = outside;
  window.padded = store->buffer;
  return is_inside(downcast<ExprNode>(guard->args.at(0)), axes, window.before,
                   *constant_shape(*input), block);
}

}  // namespace

std::optional<RowWindow> row_window(const PrimFunc& kernel, size_t input) {
  const auto blocks = plain_blocks(kernel);
  if (!blocks || input + 1 >= kernel.buffers.size()) return std::nullopt;
  const Ref<Buffer>& buffer = kernel.buffers[input];
  const Ref<Buffer>& result = kernel.buffers.back();
  RowWindow window;
  window.before.assign(buffer->ndim(), 0);
  window.padded = buffer;
  std::vector<const Block*> readers;
  for (const Ref<Block>& block : *blocks)
    if (reads_buffer(*block, buffer)) readers.push_back(block.get());
  if (readers.size() == 1 && !take_padding(*readers[0], buffer, window)) {
    window.before.assign(buffer->ndim(), 0);
    window.padded = buffer;
    window.outside = {};
  }
  if (readers.empty() || window.padded->ndim() != result->ndim()) return std::nullopt;
  const auto sizes = *constant_shape(*window.padded), outputs = *constant_shape(*result);
  const auto at = var("at", kInt64);
  // What a result at one place of a dimension needs.
  const auto needed = [&](size_t dim) -> std::optional<Needed> {
    SlicedKernel sliced(kernel, {{at, outputs[dim]}});
    sliced.take_out(window.padded, input);
    if (!sliced.compute({{dim, at, 1}})) return std::nullopt;
    for (size_t d = 0; d < sizes.size(); ++d)
      if (sliced.needed()[d].has_value() != (d == dim)) return std::nullopt;
    return sliced.needed();
  };
  bool has_row = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (outputs[d] == 1) continue;
    const auto part = needed(d);
    if (!part) continue;
    const Slice& slice = *(*part)[d];
    arith::Analyzer analyzer;
    const std::vector<Ref<Var>> vars = {at};
    const auto form = analyzer.linear(slice.first, vars);
    const auto stride = form ? as_int(form->coefficients[0]) : std::nullopt;
    const auto first = form ? as_int(analyzer.simplify(form->rest)) : std::nullopt;
    if (!stride || *stride < 1 || !first || *first > 0) continue;
    if (slice.extent > 1 && !has_row) {
      has_row = true;
      // Rows before the first are read under conditions that never hold for them.
      window.before[d] -= *first;
      window.row = d;
      window.stride = *stride;
      window.rows = slice.extent;
    }
    if (slice.extent == 1 && *stride == 1 && *first == 0 && sizes[d] == outputs[d] &&
        window.before[d] == 0)
      (has_row ? window.inner : window.shared).push_back(d);
  }
  for (const Ref<Block>& block : *blocks) {
    if (!reads_buffer(*block, window.padded)) continue;
    for (const IterVar& iter : block->iter_vars)
      if (iter.kind == IterKind::kReduce) window.taps *= extent_of(iter);
  }
  // The ring keeps rows with padding beside them; padding above them is not in it.
  const auto extents = *constant_shape(*buffer);
  for (size_t d = 0; has_row && d < window.row; ++d)
    if (window.before[d] != 0 || sizes[d] != extents[d]) return std::nullopt;
  return has_row ? std::optional(window) : std::nullopt;
}

}  // namespace tenon::tir
