// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/dnnl/step_of.h"

#include <algorithm>
#include <numeric>

namespace tenon::backend::dnnl {

namespace {

using Operator = MatchGraph::Operator;
using Shape = std::vector<int64_t>;
using Root = Group::Root;

dnnl_memory_desc_t open_layout(const Shape& shape) {
  dnnl_memory_desc_t layout = {};
  if (dnnl_memory_desc_init_by_tag(&layout, static_cast<int>(shape.size()), shape.data(), dnnl_f32,
                                   dnnl_format_tag_any) != dnnl_success)
    throw Refusal{"shape", "oneDNN has no tensor of this shape"};
  return layout;
}

dnnl_memory_desc_t strided_layout(const Shape& shape, const Shape& strides) {
  dnnl_memory_desc_t layout = {};
  if (dnnl_memory_desc_init_by_strides(&layout, static_cast<int>(shape.size()), shape.data(),
                                       dnnl_f32, strides.data()) != dnnl_success)
    throw Refusal{"shape", "oneDNN has no tensor of this shape"};
  return layout;
}

Shape row_major(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

void require_layout(const Operator& op, const std::string& attribute, const std::string& expected) {
  const std::string given = op.text(attribute, expected);
  if (given != expected)
    throw Refusal{"layout",
                  attribute + " of `" + op.name + "` is " + given + "; expected " + expected};
}

void require_float(const Operator& op) {
  const std::string dtype = op.text("out_dtype", "void");
  if (dtype != "void" && dtype != "float32")
    throw Refusal{"dtype", "out_dtype of `" + op.name + "` is " + dtype};
}

// One number for each spatial axis.
void spatial(const Operator& op, const std::string& name, size_t rank, int64_t fallback,
             dnnl_dims_t out) {
  const Shape given = op.ints(name);
  if (given.size() > 1 && given.size() != rank)
    throw Refusal{"attribute", name + " of `" + op.name + "` has a wrong number of items"};
  for (size_t d = 0; d < rank; ++d)
    out[d] = given.empty() ? fallback : given[given.size() == 1 ? 0 : d];
}

void padding(const Operator& op, size_t rank, tenon_dnnl_step& step) {
  const Shape given = op.ints("padding");
  if (!given.empty() && given.size() != 1 && given.size() != rank && given.size() != 2 * rank)
    throw Refusal{"attribute", "padding of `" + op.name + "` has a wrong number of items"};
  for (size_t d = 0; d < rank; ++d) {
    const size_t n = given.size();
    step.before[d] = n == 0 ? 0 : given[n == 1 ? 0 : d];
    step.after[d] = n == 0 ? 0 : given[n == 1 ? 0 : n == rank ? d : rank + d];
  }
}

std::string channels_first(const std::string& first, size_t rank) {
  static const char* kSpatial[] = {"", "W", "HW", "DHW"};
  return first + kSpatial[rank];
}

size_t spatial_rank(const MatchGraph& graph, const Operator& op) {
  const size_t rank = graph[op.value_arg(0)].shape.size();
  if (rank < 3 || rank > 5)
    throw Refusal{"rank", "`" + op.name + "` of " + std::to_string(rank) + " dimensions"};
  return rank - 2;
}

StepDraft convolution(const MatchGraph& graph, const Group& group, const dnnl_memory_desc_t* src) {
  const Operator& op = *group.op;
  const bool is_transposed = group.root == Root::kDeconvolution;
  const Shape &x = graph[op.value_arg(0)].shape, &w = graph[op.value_arg(1)].shape,
              &y = graph[op.result].shape;
  const size_t rank = spatial_rank(graph, op);
  require_layout(op, "data_layout", channels_first("NC", rank));
  require_layout(op, "kernel_layout", channels_first(is_transposed ? "IO" : "OI", rank));
  require_layout(op, "out_layout", channels_first("NC", rank));
  require_float(op);
  const int64_t groups = op.integer("groups", 1);
  StepDraft draft(is_transposed ? TENON_DNNL_DECONVOLUTION : TENON_DNNL_CONVOLUTION);
  tenon_dnnl_step& step = draft.step;
  step.alg = is_transposed ? dnnl_deconvolution_direct : dnnl_convolution_direct;
  spatial(op, "strides", rank, 1, step.strides);
  spatial(op, "dilation", rank, 1, step.dilation);
  padding(op, rank, step);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t reach = (w[d + 2] - 1) * step.dilation[d] + 1;
    // Of the end only what windows reach: the library asks for the extents to agree.
    step.after[d] = is_transposed
                        ? (x[d + 2] - 1) * step.strides[d] + reach - y[d + 2] - step.before[d]
                        : (y[d + 2] - 1) * step.strides[d] + reach - x[d + 2] - step.before[d];
    --step.dilation[d];
  }
  // Weights as (groups, filters, channels, taps), in the order of the kernel's layout.
  const int64_t filters = (is_transposed ? w[1] * groups : w[0]) / groups;
  const int64_t channels = (is_transposed ? w[0] : w[1] * groups) / groups;
  const int64_t taps = std::accumulate(w.begin() + 2, w.end(), int64_t{1}, std::multiplies<>());
  Shape shape = {groups, filters, channels};
  Shape strides = {filters * channels * taps, is_transposed ? taps : channels * taps,
                   is_transposed ? filters * taps : taps};
  shape.insert(shape.end(), w.begin() + 2, w.end());
  const Shape inner = row_major(Shape(w.begin() + 2, w.end()));
  strides.insert(strides.end(), inner.begin(), inner.end());
  if (groups == 1) {
    shape.erase(shape.begin());
    strides.erase(strides.begin());
  }
  draft.plain_weights = strided_layout(shape, strides);
  step.src = draft.add(src ? *src : open_layout(x));
  step.weights = draft.add(open_layout(shape));
  step.dst = draft.add(open_layout(y));
  if (group.bias >= 0) step.bias = draft.add(plain_layout({y[1]}));
  return draft;
}

// An operand of a product: under at least `ndim` dimensions, seen through a permutation.
dnnl_memory_desc_t matrix_layout(const Shape& stored, const Shape& permutation, size_t ndim,
                                 bool is_column) {
  Shape shape = stored, strides = row_major(stored);
  if (!permutation.empty()) {
    for (size_t d = 0; d < stored.size(); ++d) {
      shape[d] = stored[static_cast<size_t>(permutation[d])];
      strides[d] = row_major(stored)[static_cast<size_t>(permutation[d])];
    }
  }
  if (shape.size() == 1) {  // a row on the left, a column on the right
    shape.insert(is_column ? shape.end() : shape.begin(), 1);
    strides.insert(is_column ? strides.end() : strides.begin(), is_column ? 1 : shape[1]);
  }
  const int64_t outer = shape[0] * strides[0];
  shape.insert(shape.begin(), ndim - shape.size(), 1);
  strides.insert(strides.begin(), ndim - strides.size(), outer);
  return strided_layout(shape, strides);
}

// A permutation that leaves the elements where they are.
bool moves_only_ones(const Shape& shape, const Shape& permutation) {
  int64_t last = -1;
  for (const int64_t axis : permutation) {
    if (shape[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

StepDraft product(const MatchGraph& graph, const Group& group) {
  const Operator& op = *group.op;
  require_float(op);
  Shape a = graph[group.operands[0]].shape, permutation = group.permutation[0];
  const Shape& b = graph[group.operands[1]].shape;
  if (!permutation.empty() && moves_only_ones(a, permutation)) {
    Shape moved;
    for (const int64_t axis : permutation) moved.push_back(a[static_cast<size_t>(axis)]);
    a = moved;
    permutation.clear();
  }
  const bool has_constant = graph[group.operands[1]].data != nullptr;
  StepDraft draft(TENON_DNNL_MATMUL);
  tenon_dnnl_step& step = draft.step;
  draft.src_is_view = true;
  const Shape& y = graph[op.result].shape;
  if (b.size() == 2 && a.size() > 2 && permutation.empty()) {
    // One matrix for all of the batch: more rows.
    const int64_t rows = std::accumulate(a.begin(), a.end() - 1, int64_t{1}, std::multiplies<>());
    step.src = draft.add(plain_layout({rows, a.back()}));
    draft.plain_weights = matrix_layout(b, group.permutation[1], 2, true);
    step.dst = draft.add(plain_layout({rows, y.back()}));
  } else {
    const size_t ndim = std::max({a.size(), b.size(), size_t{2}});
    const dnnl_memory_desc_t src = matrix_layout(a, permutation, ndim, false);
    draft.plain_weights = matrix_layout(b, group.permutation[1], ndim, true);
    step.src = draft.add(src);
    Shape shape(ndim);
    for (size_t d = 0; d < ndim; ++d) shape[d] = std::max(src.dims[d], draft.plain_weights.dims[d]);
    shape[ndim - 2] = src.dims[ndim - 2];
    shape[ndim - 1] = draft.plain_weights.dims[ndim - 1];
    step.dst = draft.add(plain_layout(shape));
  }
  const dnnl_memory_desc_t& w = draft.plain_weights;
  step.weights = draft.add(has_constant ? open_layout({w.dims, w.dims + w.ndims}) : w);
  if (group.bias >= 0) {
    Shape shape(static_cast<size_t>(w.ndims), 1);
    shape.back() = w.dims[w.ndims - 1];
    step.bias = draft.add(plain_layout(shape));
  }
  return draft;
}

StepDraft pooling(const MatchGraph& graph, const Group& group, const dnnl_memory_desc_t* src) {
  const Operator& op = *group.op;
  const Shape &x = graph[op.value_arg(0)].shape, &y = graph[op.result].shape;
  const size_t rank = spatial_rank(graph, op);
  require_layout(op, "layout", channels_first("NC", rank));
  require_layout(op, "out_layout", channels_first("NC", rank));
  StepDraft draft(TENON_DNNL_POOLING);
  tenon_dnnl_step& step = draft.step;
  const bool is_max = op.name.starts_with("nn.max");
  const bool counts_padding = op.integer("count_include_pad", 0) != 0;
  step.alg = is_max           ? dnnl_pooling_max
             : counts_padding ? dnnl_pooling_avg_include_padding
                              : dnnl_pooling_avg_exclude_padding;
  spatial(op, "pool_size", rank, 1, step.kernel);
  spatial(op, "strides", rank, 1, step.strides);
  spatial(op, "dilation", rank, 1, step.dilation);
  padding(op, rank, step);
  for (size_t d = 0; d < rank; ++d) {
    const int64_t reach = (step.kernel[d] - 1) * step.dilation[d] + 1;
    const int64_t after = (y[d + 2] - 1) * step.strides[d] + reach - x[d + 2] - step.before[d];
    if (after > step.after[d] && !is_max && counts_padding)
      throw Refusal{"attribute", "windows of `" + op.name + "` reach beyond what counts"};
    step.after[d] = after;
    --step.dilation[d];
  }
  step.src = draft.add(src ? *src : plain_layout(x));
  step.dst = draft.add(open_layout(y));
  return draft;
}

StepDraft global_pooling(const MatchGraph& graph, const Group& group,
                         const dnnl_memory_desc_t* src) {
  const Operator& op = *group.op;
  const Shape &x = graph[op.value_arg(0)].shape, &y = graph[op.result].shape;
  const size_t rank = spatial_rank(graph, op);
  if (op.name == "mean") {
    Shape axes = op.ints("axis"), expected(rank);
    for (int64_t& axis : axes) axis += axis < 0 ? static_cast<int64_t>(x.size()) : 0;
    std::sort(axes.begin(), axes.end());
    std::iota(expected.begin(), expected.end(), 2);
    if (axes != expected)
      throw Refusal{"attribute", "`mean` over other axes than all that are spatial"};
  } else {
    require_layout(op, "layout", channels_first("NC", rank));
    if (std::any_of(y.begin() + 2, y.end(), [](int64_t extent) { return extent != 1; }))
      throw Refusal{"attribute", "`" + op.name + "` to more than one element"};
  }
  StepDraft draft(TENON_DNNL_POOLING);
  tenon_dnnl_step& step = draft.step;
  step.alg = dnnl_pooling_avg_exclude_padding;
  Shape shape = {x[0], x[1]};
  for (size_t d = 0; d < rank; ++d) {
    step.kernel[d] = x[d + 2];
    step.strides[d] = 1;
    shape.push_back(1);
  }
  step.src = draft.add(src ? *src : plain_layout(x));
  step.dst = draft.add(y == shape ? open_layout(shape) : plain_layout(shape));
  return draft;
}

void add_vector(const Operator& op, size_t argument, int64_t extent, StepDraft& draft,
                int32_t& position) {
  position = draft.add(plain_layout({extent}));
  draft.vectors.emplace_back(position, op.value_arg(argument));
}

StepDraft batch_norm(const MatchGraph& graph, const Group& group, const dnnl_memory_desc_t* src) {
  const Operator& op = *group.op;
  const Shape& x = graph[op.value_arg(0)].shape;
  if (op.integer("axis", 1) != 1 || x.size() < 2 || x.size() > 5)
    throw Refusal{"attribute", "`" + op.name + "` along another axis than 1"};
  if (op.name == "nn.batch_norm" && op.integer("training", 1))
    throw Refusal{"attribute", "`" + op.name + "` by the statistics of its data"};
  StepDraft draft(TENON_DNNL_BATCH_NORM);
  tenon_dnnl_step& step = draft.step;
  step.alpha = static_cast<float>(op.number("epsilon", 1e-5));
  step.src = draft.add(src ? *src : plain_layout(x));
  step.dst = draft.add(src ? *src : plain_layout(x));
  if (op.integer("scale", 1)) add_vector(op, 1, x[1], draft, step.scaling[0]);
  if (op.integer("center", 1)) add_vector(op, 2, x[1], draft, step.scaling[1]);
  add_vector(op, 3, x[1], draft, step.statistics[0]);
  add_vector(op, 4, x[1], draft, step.statistics[1]);
  return draft;
}

StepDraft layer_norm(const MatchGraph& graph, const Group& group) {
  const Operator& op = *group.op;
  const Shape& x = graph[op.value_arg(0)].shape;
  Shape axes = op.ints("axes");
  if (axes.empty()) axes = {-1};
  for (int64_t& axis : axes) axis += axis < 0 ? static_cast<int64_t>(x.size()) : 0;
  std::sort(axes.begin(), axes.end());
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<int64_t>(x.size() - axes.size() + i))
      throw Refusal{"attribute", "`" + op.name + "` over other axes than the last"};
  const auto split = x.end() - static_cast<std::ptrdiff_t>(axes.size());
  const int64_t rows = std::accumulate(x.begin(), split, int64_t{1}, std::multiplies<>());
  const int64_t columns = std::accumulate(split, x.end(), int64_t{1}, std::multiplies<>());
  StepDraft draft(TENON_DNNL_LAYER_NORM);
  tenon_dnnl_step& step = draft.step;
  step.alpha = static_cast<float>(op.number("epsilon", 1e-5));
  draft.src_is_view = true;
  step.src = draft.add(plain_layout({rows, columns}));
  step.dst = draft.add(plain_layout({rows, columns}));
  if (op.integer("scale", 1)) add_vector(op, 1, columns, draft, step.scaling[0]);
  if (op.integer("center", 1)) add_vector(op, 2, columns, draft, step.scaling[1]);
  return draft;
}

StepDraft softmax(const MatchGraph& graph, const Group& group) {
  const Operator& op = *group.op;
  const Shape& x = graph[op.value_arg(0)].shape;
  StepDraft draft(TENON_DNNL_SOFTMAX);
  tenon_dnnl_step& step = draft.step;
  step.alg = op.name == "nn.softmax" ? dnnl_softmax_accurate : dnnl_softmax_log;
  const int64_t axis = op.integer("axis", -1);
  step.axis = static_cast<int32_t>(axis < 0 ? axis + static_cast<int64_t>(x.size()) : axis);
  draft.src_is_view = true;
  step.src = draft.add(plain_layout(x));
  step.dst = draft.add(plain_layout(x));
  return draft;
}

}  // namespace

StepDraft::StepDraft(int kind) {
  step.kind = kind;
  step.threads = 1;
  for (int32_t* operand : {&step.src, &step.weights, &step.bias, &step.dst, &step.statistics[0],
                           &step.statistics[1], &step.scaling[0], &step.scaling[1]})
    *operand = -1;
}

int32_t StepDraft::add(const dnnl_memory_desc_t& layout) {
  layouts.push_back(layout);
  return static_cast<int32_t>(layouts.size()) - 1;
}

void StepDraft::add_eltwise(int alg, float alpha, float beta) {
  step.posts[step.num_posts++] = {TENON_DNNL_POST_ELTWISE, alg, alpha, beta, -1};
  post_values.push_back(-1);
}

void StepDraft::add_sum(int value) {
  step.posts[step.num_posts++] = {TENON_DNNL_POST_SUM, 0, 0, 0, -1};
  post_values.push_back(value);
}

void StepDraft::add_binary(int alg, const dnnl_memory_desc_t& layout, int value) {
  step.posts[step.num_posts++] = {TENON_DNNL_POST_BINARY, alg, 0, 0, add(layout)};
  post_values.push_back(value);
}

int StepDraft::summed() const {
  for (int32_t i = 0; i < step.num_posts; ++i)
    if (step.posts[i].kind == TENON_DNNL_POST_SUM) return post_values[static_cast<size_t>(i)];
  return -1;
}

void StepDraft::choose(const_dnnl_primitive_desc_t descriptor) {
  const std::pair<int32_t, dnnl_query_t> operands[] = {{step.src, dnnl_query_src_md},
                                                       {step.weights, dnnl_query_weights_md},
                                                       {step.dst, dnnl_query_dst_md}};
  for (const auto& [position, query] : operands) {
    if (position < 0) continue;
    dnnl_memory_desc_t& layout = layouts[static_cast<size_t>(position)];
    if (layout.format_kind != dnnl_format_kind_any) continue;
    const dnnl_memory_desc_t* chosen = dnnl_primitive_desc_query_md(descriptor, query, 0);
    if (!chosen || chosen->format_kind != dnnl_blocked)
      throw Refusal{"layout", "oneDNN asks for a layout that has no public form"};
    layout = *chosen;
  }
}

dnnl_memory_desc_t plain_layout(const Shape& shape) {
  return shape.empty() ? strided_layout({1}, {1}) : strided_layout(shape, row_major(shape));
}

int root_input(const Group& group) {
  return group.operands[0] >= 0 ? group.operands[0] : group.op->value_arg(0);
}

bool takes_plain(const Group& group) {
  return group.root == Root::kMatmul || group.root == Root::kLayerNorm ||
         group.root == Root::kSoftmax;
}

StepDraft draft_root(const MatchGraph& graph, const Group& group, const dnnl_memory_desc_t* src) {
  switch (group.root) {
    case Root::kConvolution:
    case Root::kDeconvolution: return convolution(graph, group, src);
    case Root::kMatmul: return product(graph, group);
    case Root::kPooling: return pooling(graph, group, src);
    case Root::kGlobalPooling: return global_pooling(graph, group, src);
    case Root::kBatchNorm: return batch_norm(graph, group, src);
    case Root::kLayerNorm: return layer_norm(graph, group);
    case Root::kSoftmax: return softmax(graph, group);
    case Root::kNone: break;
  }
  throw Refusal{"operator", "a group without root"};
}

}  // namespace tenon::backend::dnnl
