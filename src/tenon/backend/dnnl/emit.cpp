// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/dnnl/emit.h"

#include <fmt/format.h>

#include "tenon/backend/dnnl/texts.h"

namespace tenon::backend::dnnl {

namespace {

template <typename Item>
std::string list(const Item* items, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += fmt::format("{}{}", i ? ", " : "", items[i]);
  return text + "}";
}

std::string c_float(float number) { return fmt::format("{:a}f", number); }

std::string c_layout(const dnnl_memory_desc_t& m) {
  const dnnl_blocking_desc_t& blocks = m.format_desc.blocking;
  std::string text = fmt::format(
      "{{.ndims = {}, .dims = {}, .data_type = dnnl_f32, .padded_dims = {}, .padded_offsets = {}, "
      ".offset0 = {}, .format_kind = dnnl_blocked, .format_desc.blocking = {{.strides = {}",
      m.ndims, list(m.dims, m.ndims), list(m.padded_dims, m.ndims), list(m.padded_offsets, m.ndims),
      m.offset0, list(blocks.strides, m.ndims));
  if (blocks.inner_nblks > 0)
    text += fmt::format(", .inner_nblks = {}, .inner_blks = {}, .inner_idxs = {}",
                        blocks.inner_nblks, list(blocks.inner_blks, blocks.inner_nblks),
                        list(blocks.inner_idxs, blocks.inner_nblks));
  text += "}";
  if (m.extra.flags != 0)
    text += fmt::format(
        ", .extra = {{.flags = {}, .compensation_mask = {}, .scale_adjust = {}, "
        ".asymm_compensation_mask = {}}}",
        m.extra.flags, m.extra.compensation_mask, c_float(m.extra.scale_adjust),
        m.extra.asymm_compensation_mask);
  return text + "}";
}

std::string c_step(const tenon_dnnl_step& s) {
  static constexpr const char* kKinds[] = {"CONVOLUTION", "DECONVOLUTION", "MATMUL",  "POOLING",
                                           "BATCH_NORM",  "LAYER_NORM",    "SOFTMAX", "ELTWISE",
                                           "BINARY",      "REDUCTION",     "REORDER"};
  static constexpr const char* kPosts[] = {"ELTWISE", "SUM", "BINARY"};
  std::string text = fmt::format("{{.kind = TENON_DNNL_{}, .alg = {}, .axis = {}, .threads = {}",
                                 kKinds[s.kind], s.alg, s.axis, s.threads);
  text += fmt::format(", .alpha = {}, .beta = {}", c_float(s.alpha), c_float(s.beta));
  if (s.kind == TENON_DNNL_CONVOLUTION || s.kind == TENON_DNNL_DECONVOLUTION ||
      s.kind == TENON_DNNL_POOLING)
    text += fmt::format(", .kernel = {}, .strides = {}, .dilation = {}, .before = {}, .after = {}",
                        list(s.kernel, 3), list(s.strides, 3), list(s.dilation, 3),
                        list(s.before, 3), list(s.after, 3));
  text += fmt::format(
      ", .src = {}, .weights = {}, .bias = {}, .dst = {}, .statistics = {}, .scaling = {}", s.src,
      s.weights, s.bias, s.dst, list(s.statistics, 2), list(s.scaling, 2));
  if (s.num_posts > 0) {
    text += fmt::format(", .num_posts = {}, .posts = {{", s.num_posts);
    for (int32_t i = 0; i < s.num_posts; ++i)
      text += fmt::format("{}{{TENON_DNNL_POST_{}, {}, {}, {}, {}}}", i ? ", " : "",
                          kPosts[s.posts[i].kind], s.posts[i].alg, c_float(s.posts[i].alpha),
                          c_float(s.posts[i].beta), s.posts[i].memory);
    text += "}";
  }
  text += fmt::format(", .scratch = {}, .scratch_bytes = {}", s.scratch, s.scratch_bytes);
  if (s.implementation) text += fmt::format(", .implementation = \"{}\"", s.implementation);
  return text + "}";
}

}  // namespace

std::string c_prelude() { return std::string(kStepsText) + "\n" + kRuntimeText; }

std::string c_function(const std::string& symbol, const MatchGraph& graph, const Region& region) {
  std::string out = fmt::format("static const dnnl_memory_desc_t {}_layouts[] = {{\n", symbol);
  for (const dnnl_memory_desc_t& layout : region.layouts) out += "  " + c_layout(layout) + ",\n";
  out += fmt::format("}};\nstatic const tenon_dnnl_memory {}_memories[] = {{\n", symbol);
  for (const tenon_dnnl_memory& memory : region.memories)
    out += fmt::format("  {{{}, {}, {}}},\n", memory.descriptor, memory.pointer, memory.offset);
  out += fmt::format("}};\nstatic const tenon_dnnl_step {}_steps[] = {{\n", symbol);
  for (const tenon_dnnl_step& step : region.steps) out += "  " + c_step(step) + ",\n";
  out += fmt::format(
      "}};\nstatic tenon_dnnl_function {0}_function = {{{0}_layouts, {0}_memories, {0}_steps, {1}, "
      "{2}, 0, 0}};\n",
      symbol, region.memories.size(), region.steps.size());
  std::string params, pointers;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const bool is_packed = region.packings.count(static_cast<int>(i)) > 0;
    params += fmt::format("const {}* i{}, ", is_packed ? "uint8_t" : "float", i);
    pointers += fmt::format("(void*)i{}, ", i);
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    params += fmt::format("float* o{}, ", i);
    pointers += fmt::format("o{}, ", i);
  }
  if (region.scratch_bytes > 0) params += "void* scratch, ";
  pointers += region.scratch_bytes > 0 ? "scratch" : "0";
  return out + fmt::format(
                   "int32_t {0}({1}int32_t threads) {{\n  void* const pointers[] = {{{2}}};\n"
                   "  return tenon_dnnl_run(&{0}_function, pointers, {3}, threads);\n}}\n",
                   symbol, params, pointers, graph.inputs.size() + graph.outputs.size());
}

}  // namespace tenon::backend::dnnl
