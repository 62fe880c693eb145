// SPDX-License-Identifier: Apache-2.0
// winograd: a convolution by products of transformed patches and filters.
#include <algorithm>
#include <functional>

#include "tenon/tir/schedule/coverage.h"
#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/winograd_form.h"

namespace tenon::tir {

namespace {

/// An axis of outputs, and the axis of the taps that it is moved by: data[.., axis + tap + first, ..].
struct WindowAxis {
  IterVar output, tap;
  size_t data_dim, weight_dim, result_dim;
  int64_t first;  // index of the data at output 0 and tap 0
  int64_t outputs;

  int64_t tiles(int64_t tile) const { return (outputs + tile - 1) / tile; }
  int64_t end() const { return first + outputs + 2; }  // behind the last element that is read
};

/// A block that is a convolution over two axes with three taps each.
struct Convolution {
  const BufferStore* store;
  const BufferLoad *data, *weight;
  bool data_first;  // of the product
  Combiner sum;
  WindowAxis rows, columns;
};

[[noreturn]] void no_convolution(const Block& block, const std::string& why) {
  illegal(block.origin, "block `{}` is no convolution of 3 x 3 taps of stride 1: {}", block.name,
          why);
}

/// The place of `axis` in `indices`, where it is an index by itself and moves no other.
std::optional<size_t> own_index(const std::vector<Expr>& indices, const Ref<Var>& axis) {
  std::optional<size_t> found;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!uses_var(indices[d], axis.get())) continue;
    if (found || !indices[d].same_as(axis)) return std::nullopt;
    found = d;
  }
  return found;
}

bool moves(const std::vector<Expr>& indices, const Ref<Var>& axis) {
  return std::any_of(indices.begin(), indices.end(),
                     [&](const Expr& index) { return uses_var(index, axis.get()); });
}

/// The axes of a window that `tap` walks through, as far as one dimension of the data says it.
std::optional<WindowAxis> window_along(const Block& block, const IterVar& tap,
                                       const BufferStore& store, const BufferLoad& data,
                                       const BufferLoad& weight) {
  if (tap.kind != IterKind::kReduce || !is_int(tap.domain.extent, 3) ||
      moves(store.indices, tap.var))
    return std::nullopt;
  const auto weight_dim = own_index(weight.indices, tap.var);
  std::vector<Ref<Var>> axes;
  for (const IterVar& iter : block.iter_vars) axes.push_back(iter.var);
  std::optional<size_t> data_dim;
  for (size_t d = 0; d < data.indices.size(); ++d)
    if (uses_var(data.indices[d], tap.var.get())) {
      if (data_dim) return std::nullopt;
      data_dim = d;
    }
  if (!weight_dim || !data_dim) return std::nullopt;
  arith::Analyzer analyzer;
  const auto form = analyzer.linear(data.indices[*data_dim], axes);
  const auto first = form ? as_int(form->rest) : std::nullopt;
  if (!first) return std::nullopt;
  std::optional<size_t> output;
  for (size_t a = 0; a < axes.size(); ++a) {
    if (is_zero(form->coefficients[a])) continue;
    if (!form->is_constant(a, 1)) return std::nullopt;
    if (axes[a].same_as(tap.var)) continue;
    if (output) return std::nullopt;
    output = a;
  }
  if (!output) return std::nullopt;
  const IterVar& iter = block.iter_vars[*output];
  const auto result_dim = own_index(store.indices, iter.var);
  const auto outputs = as_int(iter.domain.extent);
  for (size_t d = 0; d < data.indices.size(); ++d)
    if (d != *data_dim && uses_var(data.indices[d], iter.var.get())) return std::nullopt;
  if (iter.kind != IterKind::kSpatial || !result_dim || !outputs || moves(weight.indices, iter.var))
    return std::nullopt;
  return WindowAxis{iter, tap, *data_dim, *weight_dim, *result_dim, *first, *outputs};
}

Convolution convolution_of(const Block& block) {
  if (!is_reduction(block)) no_convolution(block, "it is no reduction");
  const BufferStore* store = only_store(block);
  const auto sum = store ? combiner_of(*store) : std::nullopt;
  const auto* product = sum ? sum->value.as<Binary>() : nullptr;
  if (!product || sum->op != BinaryOp::kAdd || product->op != BinaryOp::kMul)
    no_convolution(block, "it is no sum of products");
  const auto* init = block.init.as<BufferStore>();
  if (!init || as_float(init->value) != 0.0) no_convolution(block, "its sums do not start at 0");
  const auto *left = product->lhs.as<BufferLoad>(), *right = product->rhs.as<BufferLoad>();
  if (!left || !right) no_convolution(block, "an operand is no element of a buffer");
  if (product->dtype != kFloat32 && product->dtype != kFloat64)
    no_convolution(block, fmt::format("its products are of {}", product->dtype.str()));
  for (const IterVar& iter : block.iter_vars)
    if (!is_zero(iter.domain.min))
      no_convolution(block, fmt::format("axis `{}` does not start at 0", iter.var->name));
  const DType index = block.iter_vars.at(0).var->dtype;
  for (const IterVar& iter : block.iter_vars)
    if (iter.var->dtype != index)
      no_convolution(block,
                     fmt::format("axes are of {} and {}", index.str(), iter.var->dtype.str()));
  for (const bool data_first : {true, false}) {
    const BufferLoad &data = data_first ? *left : *right, &weight = data_first ? *right : *left;
    std::vector<WindowAxis> windows;
    for (const IterVar& iter : block.iter_vars)
      if (const auto window = window_along(block, iter, *store, data, weight))
        windows.push_back(*window);
    if (windows.size() != 2) continue;
    return {store, &data, &weight, data_first, *sum, windows[0], windows[1]};
  }
  no_convolution(block, "its taps do not move with two axes of outputs");
}

/// Makes the blocks of one convolution in tiles.
class Tiling {
 public:
  Tiling(const Block& block, const WinogradForm& form, int64_t block_tiles)
      : block_(block),
        conv_(convolution_of(block)),
        dtype_(conv_.rows.output.var->dtype),
        form_(form),
        tiles_(conv_.rows.tiles(form.tile) * conv_.columns.tiles(form.tile)),
        per_block_(std::min(block_tiles, tiles_)),
        blocks_((tiles_ + per_block_ - 1) / per_block_) {
    if (std::count_if(block.iter_vars.begin(), block.iter_vars.end(),
                      [](const IterVar& iter) { return iter.kind == IterKind::kReduce; }) < 3)
      no_convolution(block, "it sums over taps alone");
    for (const BufferLoad* load : {conv_.data, conv_.weight})
      if (!as_ints(load->buffer->shape) || !load->buffer->strides.empty())
        no_convolution(block, fmt::format("`{}` has symbolic extents or strides of its own",
                                          load->buffer->name));
    if (!as_ints(conv_.store->buffer->shape))
      no_convolution(block, fmt::format("`{}` has symbolic extents", conv_.store->buffer->name));
  }

  std::vector<Ref<Buffer>> buffers;  // that are new
  std::vector<Ref<Block>> blocks;    // in program order; `product` is one of them

  void make_all(const std::function<std::string(const std::string&)>& buffer_name,
                const std::function<std::string(const std::string&)>& block_name) {
    buffer_name_ = buffer_name;
    block_name_ = block_name;
    const Ref<Buffer> filters = make_filters();
    const Ref<Buffer> inputs = make_inputs();
    make_outputs(make_product(inputs, filters));
  }

 private:
  /// Fresh axes over the dimensions of a buffer, but for those of a window: the first of these is the
  /// tile in its block (or a gap, where there are no tiles), the other one is left out.
  struct Tiled {
    std::vector<IterVar> axes;
    std::vector<Expr> extents, indices;
  };

  /// Of the type that the block's axes have.
  Expr number(int64_t value) const { return imm(dtype_, value); }
  IterVar axis(const std::string& name, int64_t extent) const {
    return {var(name, dtype_), {number(0), number(extent)}, IterKind::kSpatial};
  }

  /// `list`, one for each dimension of a buffer, with `tile` in the place of the rows and without the
  /// columns. \param tile  null: neither.
  static std::vector<Expr> in_tiles(const std::vector<Expr>& list, size_t rows, size_t columns,
                                    const Expr& tile) {
    std::vector<Expr> out;
    for (size_t d = 0; d < list.size(); ++d) {
      if (d == rows && tile) out.push_back(tile);
      if (d != rows && d != columns) out.push_back(list[d]);
    }
    return out;
  }

  Tiled tiled(const Buffer& buffer, size_t rows, size_t columns, bool has_tiles) const {
    Tiled out;
    for (size_t d = 0; d < buffer.ndim(); ++d) {
      if (d == columns || (d == rows && !has_tiles)) continue;
      const int64_t extent = d == rows ? per_block_ : *as_int(buffer.shape[d]);
      out.axes.push_back(axis(d == rows ? "t" : fmt::format("i{}", d), extent));
      out.extents.push_back(number(extent));
      out.indices.push_back(out.axes.back().var);
    }
    return out;
  }

  static std::vector<Expr> joined(std::vector<Expr> first, const std::vector<Expr>& rest) {
    first.insert(first.end(), rest.begin(), rest.end());
    return first;
  }

  Ref<Buffer> buffer(const std::string& suffix, const std::vector<Expr>& shape) {
    buffers.push_back(make<Buffer>(buffer_name_(conv_.store->buffer->name + suffix),
                                   conv_.store->buffer->dtype, shape, Buffer::Options{},
                                   block_.origin));
    return buffers.back();
  }

  /// A block over copies of `axes`: each block has variables of its own.
  void define(const std::string& suffix, const std::vector<IterVar>& axes, const Ref<Buffer>& to,
              const std::vector<Expr>& indices, const Expr& value) {
    Block::Parts parts;
    parts.name = block_name_(block_.name + suffix);
    Substitution copies;
    for (const IterVar& axis : axes) {
      parts.iter_vars.push_back({var(axis.var->name, axis.var->dtype), axis.domain, axis.kind});
      copies[axis.var.get()] = parts.iter_vars.back().var;
    }
    const Stmt store = make<BufferStore>(to, value, indices, conv_.store->origin);
    parts.body = substitute(store, copies);
    blocks.push_back(with_accesses(make<Block>(std::move(parts), block_.origin)));
  }

  /// What `of` gives for the value of `axis`, one of `count`.
  static Expr choice(const Expr& axis, int64_t count, const std::function<Expr(size_t)>& of) {
    Expr value = of(static_cast<size_t>(count - 1));
    for (int64_t i = count - 1; i-- > 0;)
      value = select(eq(axis, imm(axis->dtype, i)), of(static_cast<size_t>(i)), value);
    return value;
  }

  /// Axes of the outermost loops, of the dimensions but the last, of `inner`, then of the last: lanes
  /// are consecutive in it.
  static std::vector<IterVar> around(std::vector<IterVar> axes, const std::vector<IterVar>& inner,
                                     const std::vector<IterVar>& outer = {}) {
    axes.insert(axes.begin(), outer.begin(), outer.end());
    axes.insert(axes.end() - 1, inner.begin(), inner.end());
    return axes;
  }

  Expr load(const Ref<Buffer>& from, std::vector<Expr> indices) const {
    return make<BufferLoad>(from, std::move(indices), block_.origin);
  }

  int64_t points() const { return form_.points(); }

  /// G g G^T: positions and the first dimension of the filters are one dimension.
  Ref<Buffer> make_filters() {
    const BufferLoad& weight = *conv_.weight;
    const size_t rows = conv_.rows.weight_dim, columns = conv_.columns.weight_dim;
    const Tiled of = tiled(*weight.buffer, rows, columns, false);
    if (of.axes.empty()) no_convolution(block_, "its filters have no axis besides their taps");
    const auto half = buffer("_filter_rows", joined({number(points()), number(3)}, of.extents));
    const IterVar i = axis("i", points()), j = axis("j", points()), tap = axis("tap", 3);
    define("_filter_rows", around(of.axes, {i, tap}), half, joined({i.var, tap.var}, of.indices),
           choice(i.var, points(), [&](size_t row) {
             return filter_row(row, [&](size_t k) {
               std::vector<Expr> at;
               for (size_t d = 0, next = 0; d < weight.buffer->ndim(); ++d)
                 at.push_back(d == rows      ? number(static_cast<int64_t>(k))
                              : d == columns ? Expr(tap.var)
                                             : of.indices[next++]);
               return load(weight.buffer, at);
             });
           }));
    std::vector<Expr> shape = of.extents;
    filters_first_ = *as_int(shape[0]);
    shape[0] = number(points() * points() * filters_first_);
    const auto whole = buffer("_filters", shape);
    define("_filters", around(of.axes, {i, j}), whole, at_position(of.indices, position(i, j)),
           choice(j.var, points(), [&](size_t row) {
             return filter_row(row, [&](size_t k) {
               return load(half, joined({i.var, number(static_cast<int64_t>(k))}, of.indices));
             });
           }));
    return whole;
  }

  Expr filter_row(size_t row, const std::function<Expr(size_t)>& value) const {
    const Expr sum = point_of(form_.filter, row, value);
    return sum / imm(sum->dtype, form_.divisor);
  }

  std::vector<Expr> at_position(std::vector<Expr> indices, const Expr& position) const {
    indices[0] = position * filters_first_ + indices[0];
    return indices;
  }
  Expr position(const IterVar& i, const IterVar& j) const {
    return Expr(i.var) * points() + Expr(j.var);
  }

  /// B^T d B of the patches d that overlapping tiles read.
  Ref<Buffer> make_inputs() {
    const BufferLoad& data = *conv_.data;
    const WindowAxis &rows = conv_.rows, &columns = conv_.columns;
    const Tiled of = tiled(*data.buffer, rows.data_dim, columns.data_dim, true);
    const IterVar b = axis("b", blocks_), i = axis("i", points()), j = axis("j", points());
    const auto shape = [&](std::vector<Expr> first) {
      first.insert(first.begin(), number(blocks_));
      return joined(std::move(first), of.extents);
    };
    const auto at = [&](std::vector<Expr> first) {
      first.insert(first.begin(), Expr(b.var));
      return joined(std::move(first), of.indices);
    };
    const std::vector<Expr> square = {number(points()), number(points())};
    const auto patch = buffer("_patch", shape(square));
    // Beyond what the convolution reads a patch holds zeros.
    const Expr tile = Expr(b.var) * per_block_ + tile_of(of, rows.data_dim, columns.data_dim);
    const int64_t across = columns.tiles(form_.tile);
    const Expr row = floordiv(tile, across) * form_.tile + Expr(i.var);
    const Expr column = floormod(tile, across) * form_.tile + Expr(j.var);
    std::vector<Expr> place;
    for (size_t d = 0, next = 0; d < data.buffer->ndim(); ++d) {
      if (d == columns.data_dim) {
        place.push_back(column + columns.first);
        continue;
      }
      place.push_back(d == rows.data_dim ? row + rows.first : of.indices[next]);
      ++next;
    }
    Expr inside = boolean(true);
    const int64_t last_row = (blocks_ * per_block_ - 1) / across;
    if (last_row * form_.tile + points() > rows.outputs + 2)
      inside = logical_and(inside, row < number(rows.outputs + 2));
    if (across * form_.tile > columns.outputs)
      inside = logical_and(inside, column < number(columns.outputs + 2));
    Expr element = load(data.buffer, place);
    if (!is_int(inside, 1)) element = if_then_else(inside, element, imm(element->dtype, 0.0));
    define("_patch", around(of.axes, {i, j}, {b}), patch, at({i.var, j.var}), element);
    const auto half = buffer("_patch_rows", shape(square));
    define("_patch_rows", around(of.axes, {i, j}, {b}), half, at({i.var, j.var}),
           choice(i.var, points(), [&](size_t row) {
             return point_of(form_.input, row, [&](size_t k) {
               return load(patch, at({number(static_cast<int64_t>(k)), j.var}));
             });
           }));
    const auto whole = buffer("_input", shape({number(points() * points())}));
    define("_input", around(of.axes, {i, j}, {b}), whole, at({position(i, j)}),
           choice(j.var, points(), [&](size_t column) {
             return point_of(form_.input, column, [&](size_t k) {
               return load(half, at({i.var, number(static_cast<int64_t>(k))}));
             });
           }));
    return whole;
  }

  static Expr tile_of(const Tiled& of, size_t rows, size_t columns) {
    return of.indices[rows - (columns < rows ? 1 : 0)];
  }

  /// For each position the products of inputs and filters, summed over channels.
  Ref<Buffer> make_product(const Ref<Buffer>& inputs, const Ref<Buffer>& filters) {
    const WindowAxis &rows = conv_.rows, &columns = conv_.columns;
    const IterVar b = axis("b", blocks_), p = axis("p", points() * points()),
                  t = axis("t", per_block_);
    std::vector<IterVar> axes = {b, p};
    for (const IterVar& iter : block_.iter_vars) {
      if (iter.var.same_as(rows.output.var)) axes.push_back(t);
      const bool gone = iter.var.same_as(rows.output.var) || iter.var.same_as(rows.tap.var) ||
                        iter.var.same_as(columns.output.var) || iter.var.same_as(columns.tap.var);
      if (!gone) axes.push_back(iter);
    }
    const Buffer& result = *conv_.store->buffer;
    std::vector<Expr> shape =
        in_tiles(result.shape, rows.result_dim, columns.result_dim, number(per_block_));
    const auto sums =
        buffer("_sums", joined({number(blocks_), number(points() * points())}, shape));
    const auto place = [&](const std::vector<Expr>& indices, size_t row, size_t column) {
      return joined({b.var, p.var}, in_tiles(indices, row, column, t.var));
    };
    const Expr input = load(inputs, place(conv_.data->indices, rows.data_dim, columns.data_dim));
    const Expr filter =
        load(filters,
             at_position(in_tiles(conv_.weight->indices, rows.weight_dim, columns.weight_dim, {}),
                         p.var));
    const std::vector<Expr> at = place(conv_.store->indices, rows.result_dim, columns.result_dim);
    Block::Parts parts;
    parts.name = block_.name;
    parts.iter_vars = std::move(axes);
    parts.annotations = block_.annotations;
    const Expr product = conv_.data_first ? input * filter : filter * input;
    parts.body = make<BufferStore>(sums, tir::joined(conv_.sum, load(sums, at), product), at,
                                   conv_.store->origin);
    parts.init = make<BufferStore>(sums, imm(result.dtype, 0.0), at, conv_.store->origin);
    blocks.push_back(with_accesses(make<Block>(std::move(parts), block_.origin)));
    return sums;
  }

  /// A^T m A, where the result wants it.
  void make_outputs(const Ref<Buffer>& sums) {
    const WindowAxis &rows = conv_.rows, &columns = conv_.columns;
    const Buffer& result = *conv_.store->buffer;
    const Tiled of = tiled(result, rows.result_dim, columns.result_dim, true);
    const IterVar b = axis("b", blocks_), i = axis("i", points()), x = axis("x", form_.tile);
    const auto half =
        buffer("_sum_columns",
               joined({number(blocks_), number(points()), number(form_.tile)}, of.extents));
    define("_sum_columns", around(of.axes, {i, x}, {b}), half,
           joined({b.var, i.var, x.var}, of.indices), choice(x.var, form_.tile, [&](size_t column) {
             return output_of(form_.output, column, [&](size_t j) {
               return load(sums, joined({b.var, Expr(i.var) * points() + static_cast<int64_t>(j)},
                                        of.indices));
             });
           }));
    std::vector<IterVar> axes;
    std::unordered_map<const Node*, NodePtr> fresh;
    for (const IterVar& iter : block_.iter_vars) {
      if (iter.kind != IterKind::kSpatial) continue;
      axes.push_back({var(iter.var->name, iter.var->dtype), iter.domain, iter.kind});
      fresh[iter.var.get()] = axes.back().var;
    }
    std::vector<Expr> place;
    for (const Expr& index : conv_.store->indices) place.push_back(substitute(index, fresh));
    const Expr &y = place[rows.result_dim], &z = place[columns.result_dim];
    const Expr tile = floordiv(y, form_.tile) * columns.tiles(form_.tile) + floordiv(z, form_.tile);
    const std::vector<Expr> in_tile =
        in_tiles(place, rows.result_dim, columns.result_dim, floormod(tile, per_block_));
    define("_output", axes, conv_.store->buffer, place,
           choice(floormod(y, form_.tile), form_.tile, [&](size_t row) {
             return output_of(form_.output, row, [&](size_t k) {
               return load(half, joined({floordiv(tile, per_block_),
                                         number(static_cast<int64_t>(k)), floormod(z, form_.tile)},
                                        in_tile));
             });
           }));
  }

  const Block& block_;
  const Convolution conv_;
  const DType dtype_;  // of axes
  const WinogradForm& form_;
  const int64_t tiles_, per_block_, blocks_;
  int64_t filters_first_ = 1;
  std::function<std::string(const std::string&)> buffer_name_, block_name_;
};

}  // namespace

std::optional<ConvolutionSizes> convolution_sizes(const Block& block) {
  std::optional<Convolution> found;
  try {
    found = convolution_of(block);
  } catch (const CompileError& error) {
    if (error.first().code.id != kScheduleIllegal.id) throw;
    return std::nullopt;
  }
  const Convolution& conv = *found;
  ConvolutionSizes sizes{conv.rows.outputs, conv.columns.outputs};
  for (const IterVar& iter : block.iter_vars) {
    if (iter.var.same_as(conv.rows.output.var) || iter.var.same_as(conv.columns.output.var) ||
        iter.var.same_as(conv.rows.tap.var) || iter.var.same_as(conv.columns.tap.var))
      continue;
    const auto extent = as_int(iter.domain.extent);
    if (!extent) return std::nullopt;
    if (iter.kind == IterKind::kReduce)
      sizes.inputs *= *extent;
    else if (moves(conv.data->indices, iter.var))
      sizes.images *= *extent;
    else
      sizes.outputs *= *extent;
  }
  const auto lanes_of = [](const BufferLoad& load, size_t rows, size_t columns) {
    const size_t last = load.indices.size() - 1;
    return last == rows || last == columns ? 1 : as_int(load.buffer->shape[last]).value_or(1);
  };
  const int64_t inputs = lanes_of(*conv.data, conv.rows.data_dim, conv.columns.data_dim);
  const size_t last = conv.store->indices.size() - 1;
  const bool is_channel = last != conv.rows.result_dim && last != conv.columns.result_dim;
  const int64_t outputs = is_channel ? as_int(conv.store->buffer->shape[last]).value_or(1) : 1;
  sizes.lanes = inputs == outputs ? inputs : 1;
  return sizes;
}

std::vector<BlockRV> Schedule::winograd(const BlockRV& block, int64_t tile, int64_t block_tiles) {
  const Path path = path_of(block);
  check_outermost(path);
  const Ref<BlockRealize> realize = downcast<BlockRealize>(path.target());
  const WinogradForm* form = winograd_form(tile);
  if (!form) illegal(realize->origin, "tiles of {} x {} outputs; expected 2, 4 or 6", tile, tile);
  if (block_tiles < 1)
    illegal(realize->origin, "blocks of {} tiles; expected at least 1", block_tiles);
  if (!is_int(realize->predicate, 1) || !is_alone(path))
    illegal(realize->origin, "block `{}` shares its loops or runs under a predicate", block.name);
  check_runs_whole_domain(path);
  if (!owns_its_writes(*this, *realize->block))
    illegal(realize->origin, "another block writes what block `{}` writes", block.name);
  Tiling tiling(*realize->block, *form, block_tiles);
  NameSupply block_names, buffer_names;
  reserve_block_names(root(), block_names);
  for (const Ref<Buffer>& buffer : func_->buffers)
    if (buffer) buffer_names.reserve(buffer->name);
  for (const Ref<Buffer>& buffer : root_block(*func_)->alloc_buffers)
    buffer_names.reserve(buffer->name);
  tiling.make_all([&](const std::string& name) { return buffer_names.take(name); },
                  [&](const std::string& name) { return block_names.take(name); });
  std::vector<Stmt> nests;
  std::vector<BlockRV> made;
  std::vector<TraceValue> outputs;
  for (const Ref<Block>& each : tiling.blocks) {
    nests.push_back(make_nest(each, domains_of(*each)).stmt);
    if (each->name == block.name) continue;
    made.push_back({each->name});
    outputs.push_back(made.back());
  }
  Stmt body = replace(nest_path(path), seq(std::move(nests)));
  for (const Ref<Buffer>& buffer : tiling.buffers) body = add_alloc(body, buffer);
  commit(body);
  record("winograd", {block}, {{"tile", tile}, {"block_tiles", block_tiles}}, std::move(outputs));
  return made;
}

}  // namespace tenon::tir
