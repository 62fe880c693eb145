// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/dnnl/region.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>

#include "tenon/backend/dnnl/step_of.h"
#include "tenon/memory/plan.h"

namespace tenon::backend::dnnl {

namespace {

struct DestroyDescriptor {
  void operator()(dnnl_primitive_desc_t description) const {
    dnnl_primitive_desc_destroy(description);
  }
};
using Descriptor = std::unique_ptr<std::remove_pointer_t<dnnl_primitive_desc_t>, DestroyDescriptor>;

dnnl_engine_t engine() {
  static dnnl_engine_t made = [] {
    dnnl_engine_t engine = nullptr;
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
      throw Refusal{"library", "oneDNN gives no engine for the CPU"};
    return engine;
  }();
  return made;
}

// Ways of the library, by what they are good for.
enum class Ways : uint8_t { kFast, kAll, kNamed };

// Whether the bits of the result are the same at every number of threads. Of convolutions by small
// products (`brgconv`) and inner products they are not: how a sum is split depends on the threads.
bool is_reproducible(const std::string& name) {
  return !name.starts_with("brgconv") && !name.starts_with("brgemm");
}

// Whether its threads may share a sum, in parts that depend on how many they are: the library's
// general product of matrices. Its bits are the same where it is left to one thread.
bool may_split_sums(const std::string& name) { return name.find("gemm") != std::string::npos; }

// Whether it is none of the library's plain or generic ways.
bool is_fast(const std::string& name) {
  return name.find("ref") == std::string::npos && name.find("gemm:") == std::string::npos &&
         name.find("simple:any") == std::string::npos;
}

int accept_fast(const char* name, const void*) { return is_reproducible(name) && is_fast(name); }
int accept_reproducible(const char* name, const void*) { return is_reproducible(name); }

// Null where the library cannot do it.
Descriptor describe(const StepDraft& draft, int threads, Ways ways) {
  std::vector<tenon_dnnl_memory> memories;
  for (size_t i = 0; i < draft.layouts.size(); ++i)
    memories.push_back({static_cast<int32_t>(i), 0, 0});
  dnnl_primitive_desc_t made = nullptr;
  omp_set_num_threads(threads);
  const tenon_dnnl_accept accept = ways == Ways::kFast  ? accept_fast
                                   : ways == Ways::kAll ? accept_reproducible
                                                        : tenon_dnnl_is_same;
  const dnnl_status_t status =
      tenon_dnnl_describe(engine(), draft.layouts.data(), memories.data(), &draft.step, accept,
                          draft.step.implementation, &made);
  return Descriptor(status == dnnl_success ? made : nullptr);
}

std::string implementation_of(const Descriptor& descriptor) {
  const char* name = nullptr;
  dnnl_primitive_desc_query(descriptor.get(), dnnl_query_impl_info_str, 0,
                            static_cast<void*>(&name));
  return name ? name : "";
}

// Whether elements lie at the same places. The library's ways of computing are choosier than that
// about strides of dimensions of 1.
bool is_equal(const dnnl_memory_desc_t& a, const dnnl_memory_desc_t& b) {
  return dnnl_memory_desc_equal(&a, &b) != 0;
}
bool is_identical(const dnnl_memory_desc_t& a, const dnnl_memory_desc_t& b) {
  return memcmp(&a, &b, sizeof a) == 0;
}

// A tensor of `like`'s dimensions in the blocks of channels that `layout` has; nothing where that
// has none.
std::optional<dnnl_memory_desc_t> blocked_as(const dnnl_memory_desc_t& layout,
                                             const dnnl_memory_desc_t& like) {
  const dnnl_blocking_desc_t& blocking = layout.format_desc.blocking;
  if (layout.format_kind != dnnl_blocked || blocking.inner_nblks != 1 ||
      blocking.inner_idxs[0] != 1 || layout.ndims != like.ndims)
    return std::nullopt;
  static constexpr dnnl_format_tag_t kTags[][2] = {
      {dnnl_nCw8c, dnnl_nCw16c}, {dnnl_nChw8c, dnnl_nChw16c}, {dnnl_nCdhw8c, dnnl_nCdhw16c}};
  const dnnl_dim_t width = blocking.inner_blks[0];
  if (layout.ndims < 3 || layout.ndims > 5 || (width != 8 && width != 16)) return std::nullopt;
  dnnl_memory_desc_t made;
  if (dnnl_memory_desc_init_by_tag(&made, like.ndims, like.dims, like.data_type,
                                   kTags[layout.ndims - 3][width / 16]) != dnnl_success)
    return std::nullopt;
  return made;
}

int64_t bytes_of(const dnnl_memory_desc_t& layout) {
  return static_cast<int64_t>(dnnl_memory_desc_get_size(&layout));
}

class Planner {
 public:
  explicit Planner(const MatchGraph& graph)
      : graph_(graph), groups_(group(graph)), variants_(graph.values.size()) {
    for (const int input : graph_.inputs) {
      Buffer buffer;
      buffer.place = Buffer::Place::kInput;
      buffer.number = graph_[input].input;
      buffers_.push_back(buffer);
      add_variant(input, plain_layout(graph_[input].shape), buffers_.size() - 1);
    }
  }

  Region run() {
    for (current_ = 0; current_ < groups_.size(); ++current_) {
      const Group& group = groups_[current_];
      size_t done = 0;
      if (group.root != Group::Root::kNone) done = add_root(group);
      while (done < group.posts.size()) done = add_elementwise(group, done);
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) add_output(i);
    place_buffers();
    return std::move(region_);
  }

 private:
  // Memory that several values may lie in, one after the other.
  struct Buffer {
    enum class Place : uint8_t { kInput, kOutput, kScratch };
    Place place = Place::kScratch;
    int number = 0;  // of the input or output
    int64_t bytes = 0;
    size_t first = SIZE_MAX, last = 0;  // steps
    bool is_shared = false;             // by two values at once
    bool is_fixed = false;              // the layout of this constant is decided
  };

  int add_memory(dnnl_memory_desc_t layout, size_t buffer) {
    size_t at = 0;
    while (at < region_.layouts.size() && !is_identical(region_.layouts[at], layout)) ++at;
    if (at == region_.layouts.size()) region_.layouts.push_back(layout);
    region_.memories.push_back({static_cast<int32_t>(at), static_cast<int32_t>(buffer), 0});
    buffers_[buffer].bytes = std::max(buffers_[buffer].bytes, bytes_of(layout));
    return static_cast<int>(region_.memories.size()) - 1;
  }
  int add_variant(int value, const dnnl_memory_desc_t& layout, size_t buffer) {
    const int memory = add_memory(layout, buffer);
    variants_[static_cast<size_t>(value)].push_back(memory);
    return memory;
  }
  size_t new_buffer() {
    buffers_.emplace_back();
    return buffers_.size() - 1;
  }
  const dnnl_memory_desc_t& layout_of(int memory) const {
    return region_
        .layouts[static_cast<size_t>(region_.memories[static_cast<size_t>(memory)].descriptor)];
  }
  Buffer& buffer_of(int memory) {
    return buffers_[static_cast<size_t>(region_.memories[static_cast<size_t>(memory)].pointer)];
  }

  // The layout that a value lies in, the one that was made first.
  const dnnl_memory_desc_t& layout_at_hand(int value) const {
    return layout_of(variants_[static_cast<size_t>(value)].front());
  }

  // Memory with the value in this layout, which has the dimensions of the value's own: at hand, or
  // by a reorder.
  int want(int value, const dnnl_memory_desc_t& layout) {
    std::vector<int>& variants = variants_[static_cast<size_t>(value)];
    check_is_there(value);
    const int at_hand = variants.front();
    if (graph_[value].data && !buffer_of(at_hand).is_fixed) pack(value, at_hand, layout);
    for (const int memory : variants)
      if (is_equal(layout_of(memory), layout)) return under(layout, memory);
    const dnnl_memory_desc_t from = layout_of(at_hand);
    if (from.ndims != layout.ndims || !std::equal(from.dims, from.dims + from.ndims, layout.dims))
      throw Refusal{"layout", "a constant is used in two layouts that exclude one another"};
    StepDraft draft(TENON_DNNL_REORDER);
    draft.step.src = draft.add(from);
    draft.step.dst = draft.add(layout);
    const int made = add_variant(value, layout, new_buffer());
    add_step(draft, {{draft.step.src, at_hand}, {draft.step.dst, made}});
    return made;
  }
  // The same memory under an equal layout.
  int under(const dnnl_memory_desc_t& layout, int memory) {
    if (is_identical(layout_of(memory), layout)) return memory;
    return add_memory(layout,
                      static_cast<size_t>(region_.memories[static_cast<size_t>(memory)].pointer));
  }
  void check_is_there(int value) const {
    if (variants_[static_cast<size_t>(value)].empty())
      throw Refusal{"order", "a value is used before it is computed"};
  }

  // A constant comes in this layout.
  void pack(int value, int memory, const dnnl_memory_desc_t& layout) {
    buffer_of(memory).is_fixed = true;
    const dnnl_memory_desc_t plain = layout_of(memory);
    if (is_equal(plain, layout) || plain.ndims != layout.ndims) return;
    region_.packings[graph_[value].input] = {plain, layout};
    const auto buffer = static_cast<size_t>(region_.memories[static_cast<size_t>(memory)].pointer);
    variants_[static_cast<size_t>(value)] = {add_memory(layout, buffer)};
  }

  // The same for weights, whose packed form has the dimensions that the library asks for.
  int want_weights(int value, const dnnl_memory_desc_t& plain, const dnnl_memory_desc_t& layout) {
    check_is_there(value);
    const int at_hand = variants_[static_cast<size_t>(value)].front();
    if (graph_[value].data && !buffer_of(at_hand).is_fixed) {
      buffer_of(at_hand).is_fixed = true;
      const auto buffer =
          static_cast<size_t>(region_.memories[static_cast<size_t>(at_hand)].pointer);
      if (!is_equal(plain, layout)) {
        region_.packings[graph_[value].input] = {plain, layout};
        const int packed = add_memory(layout, buffer);
        variants_[static_cast<size_t>(value)] = {packed};
        return packed;
      }
    }
    for (const int memory : variants_[static_cast<size_t>(value)])
      if (is_equal(layout_of(memory), layout)) return under(layout, memory);
    if (region_.packings.count(graph_[value].input) && graph_[value].data)
      throw Refusal{"layout", "a constant is used in two layouts that exclude one another"};
    const int from = view(value, plain);
    if (is_equal(plain, layout)) return under(layout, from);
    StepDraft draft(TENON_DNNL_REORDER);
    draft.step.src = draft.add(plain);
    draft.step.dst = draft.add(layout);
    const int made = add_memory(layout, new_buffer());
    add_step(draft, {{draft.step.src, from}, {draft.step.dst, made}});
    return made;
  }
  // The plain memory of a value as `layout`, of any dimensions and strides over the same elements.
  int view(int value, const dnnl_memory_desc_t& layout) {
    const dnnl_memory_desc_t own = plain_layout(graph_[value].shape);
    const int plain = want(value, own);
    if (is_equal(own, layout)) return under(layout, plain);
    buffer_of(plain).is_shared = true;
    return add_memory(layout,
                      static_cast<size_t>(region_.memories[static_cast<size_t>(plain)].pointer));
  }

  // ---- steps

  using Operand = std::pair<int32_t, int>;  // position in the draft, memory

  void add_step(StepDraft draft, const std::vector<Operand>& operands) {
    // What it needs at each number of threads, with the layouts as they are now.
    const int64_t dst_bytes = bytes_of(draft.layouts[static_cast<size_t>(draft.step.dst)]);
    int64_t scratch = 0;
    draft.step.threads = 1;
    if (draft.step.kind != TENON_DNNL_REORDER) {
      Descriptor first = describe(draft, 1, Ways::kFast);
      if (!first) first = describe(draft, 1, Ways::kAll);
      if (!first) throw Refusal{"library", "oneDNN does not have it for the layouts it chose"};
      draft.step.implementation =
          region_.implementations.insert(implementation_of(first)).first->c_str();
    }
    const int most_threads = draft.step.implementation && may_split_sums(draft.step.implementation)
                                 ? 1
                                 : kPlannedThreads;
    for (int threads = 1; threads <= most_threads; threads *= 2) {
      const Descriptor described = describe(draft, threads, Ways::kNamed);
      if (!described && threads == 1) throw Refusal{"library", "oneDNN does not have a reorder"};
      if (!described) break;
      const dnnl_memory_desc_t* layout =
          dnnl_primitive_desc_query_md(described.get(), dnnl_query_scratchpad_md, 0);
      const int64_t bytes = layout ? bytes_of(*layout) : 0;
      if (threads > 1 && bytes > scratch && bytes > (1 << 20) + dst_bytes) break;
      scratch = std::max(scratch, bytes);
      draft.step.threads = threads;
    }
    const auto resolve = [&](int32_t& position) {
      for (const auto& [from, memory] : operands) {
        if (from != position) continue;
        position = memory;
        Buffer& buffer = buffer_of(memory);
        buffer.first = std::min(buffer.first, region_.steps.size());
        buffer.last = std::max(buffer.last, region_.steps.size());
        return;
      }
      if (position >= 0) throw Refusal{"library", "an operand has no memory"};
    };
    tenon_dnnl_step& step = draft.step;
    for (int32_t* position : {&step.src, &step.weights, &step.bias, &step.dst, &step.statistics[0],
                              &step.statistics[1], &step.scaling[0], &step.scaling[1]})
      resolve(*position);
    for (int32_t i = 0; i < step.num_posts; ++i)
      if (step.posts[i].kind == TENON_DNNL_POST_BINARY) resolve(step.posts[i].memory);
    step.scratch_bytes = scratch;
    region_.steps.push_back(step);
  }

  // A step, and what the library says to it: null where it cannot do it.
  struct Tried {
    StepDraft draft;
    Descriptor descriptor;
  };

  // The draft of a root with its first `posts` posts; `src` is the layout of its input, whose
  // blocks of channels the result has too where it `keeps_blocks`.
  Tried try_root(const Group& group, size_t posts, const dnnl_memory_desc_t* src, Ways ways,
                 bool keeps_blocks = false) const {
    Tried tried{draft_root(graph_, group, src), nullptr};
    if (keeps_blocks) {
      dnnl_memory_desc_t& dst = tried.draft.layouts[static_cast<size_t>(tried.draft.step.dst)];
      const auto blocked = blocked_as(*src, dst);
      if (!blocked) return tried;
      dst = *blocked;
    }
    try {
      add_posts(group, posts, tried.draft);
    } catch (const Refusal&) {
      return tried;  // with fewer, then
    }
    tried.descriptor = describe(tried.draft, 1, ways);
    return tried;
  }
  void add_posts(const Group& group, size_t posts, StepDraft& draft) const {
    const dnnl_memory_desc_t dst = draft.layouts[static_cast<size_t>(draft.step.dst)];
    bool has_sum = false;
    for (size_t i = 0; i < posts; ++i) {
      const Post& post = group.posts[i];
      if (post.kind == Post::Kind::kEltwise) {
        draft.add_eltwise(post.alg, post.alpha, post.beta);
      } else if (!has_sum && post.alg == dnnl_binary_add &&
                 graph_.elements(post.value) == elements_of(dst) && can_sum(group)) {
        draft.add_sum(post.value);
        has_sum = true;
      } else {
        draft.add_binary(post.alg, operand_layout(post.value, dst), post.value);
      }
    }
  }
  static bool can_sum(const Group& group) {
    return group.root == Group::Root::kConvolution || group.root == Group::Root::kDeconvolution ||
           group.root == Group::Root::kMatmul;
  }
  static int64_t elements_of(const dnnl_memory_desc_t& layout) {
    return std::accumulate(layout.dims, layout.dims + layout.ndims, int64_t{1},
                           std::multiplies<>());
  }
  // A plain operand under the rank of the result that it broadcasts to; of a full one, any layout.
  dnnl_memory_desc_t operand_layout(int value, const dnnl_memory_desc_t& dst) const {
    std::vector<int64_t> shape = graph_[value].shape;
    if (graph_.elements(value) == elements_of(dst))
      return plain_layout({dst.dims, dst.dims + dst.ndims});
    while (static_cast<int>(shape.size()) > dst.ndims && shape.front() == 1)
      shape.erase(shape.begin());
    if (static_cast<int>(shape.size()) > dst.ndims)
      throw Refusal{"shape", "an operand is broadcast over dimensions that are one in the library"};
    shape.insert(shape.begin(), static_cast<size_t>(dst.ndims) - shape.size(), 1);
    return plain_layout(shape);
  }

  // Adds the root with as many posts as the library does well; returns how many.
  size_t add_root(const Group& group) {
    const int input = root_input(group);
    check_is_there(input);
    Tried best{StepDraft(0), nullptr};
    size_t posts = 0;
    for (const Ways ways : {Ways::kFast, Ways::kAll}) {
      for (size_t tried = group.posts.size() + 1; tried-- > 0 && !best.descriptor;) {
        if (group.results[tried] < 0) continue;
        posts = tried;
        const dnnl_memory_desc_t layout = layout_at_hand(input);
        if (!takes_plain(group)) best = try_root(group, tried, &layout, ways);
        // Depthwise convolutions in blocks are found only where both ends are said to be in them.
        if (!best.descriptor && group.root == Group::Root::kConvolution)
          best = try_root(group, tried, &layout, ways, true);
        if (!best.descriptor) best = try_root(group, tried, nullptr, ways);
      }
    }
    if (!best.descriptor)
      throw Refusal{"library", "oneDNN does not have `" + group.op->name + "` of this form"};
    best.draft.choose(best.descriptor.get());
    place_root(group, posts, best.draft);
    return posts;
  }

  void place_root(const Group& group, size_t posts, StepDraft draft) {
    std::vector<Operand> operands;
    const auto layout_at = [&](int32_t position) {
      return draft.layouts[static_cast<size_t>(position)];
    };
    const int input = root_input(group);
    // Weights first: of a constant that decides how it is packed.
    if (draft.step.weights >= 0)
      operands.emplace_back(
          draft.step.weights,
          want_weights(group.operands[1] >= 0 ? group.operands[1] : group.op->value_arg(1),
                       draft.plain_weights, layout_at(draft.step.weights)));
    operands.emplace_back(draft.step.src, draft.src_is_view
                                              ? view(input, layout_at(draft.step.src))
                                              : want(input, layout_at(draft.step.src)));
    if (draft.step.bias >= 0)
      operands.emplace_back(draft.step.bias, view(group.bias, layout_at(draft.step.bias)));
    for (const auto& [position, value] : draft.vectors)
      operands.emplace_back(position, view(value, layout_at(position)));
    for (int32_t i = 0; i < draft.step.num_posts; ++i)
      if (draft.step.posts[i].kind == TENON_DNNL_POST_BINARY)
        operands.emplace_back(
            draft.step.posts[i].memory,
            view(draft.post_values[static_cast<size_t>(i)], layout_at(draft.step.posts[i].memory)));
    const int result = group.results[posts];
    const dnnl_memory_desc_t dst = layout_at(draft.step.dst);
    const int sum = draft.summed();
    const int made = sum >= 0 ? sum_destination(group, sum, dst) : add_memory(dst, new_buffer());
    operands.emplace_back(draft.step.dst, made);
    add_step(draft, operands);
    keep(result, dst, made);
  }

  // A value that lies in `memory` now, perhaps under other dimensions than its own.
  void keep(int value, const dnnl_memory_desc_t& layout, int memory) {
    const dnnl_memory_desc_t own = plain_layout(graph_[value].shape);
    auto& variants = variants_[static_cast<size_t>(value)];
    const bool has_own_dimensions =
        layout.ndims == own.ndims && std::equal(layout.dims, layout.dims + layout.ndims, own.dims);
    if (has_own_dimensions) {
      variants = {memory};
      return;
    }
    // Planned plain, so that the memory is the value's under both.
    variants = {add_memory(
        own, static_cast<size_t>(region_.memories[static_cast<size_t>(memory)].pointer))};
  }

  // Where a sum is accumulated: in the memory of the other summand where nobody needs that any
  // more, or in a copy.
  int sum_destination(const Group& group, int value, const dnnl_memory_desc_t& dst) {
    const dnnl_memory_desc_t own = plain_layout(graph_[value].shape);
    const bool is_view =
        dst.ndims != own.ndims || !std::equal(dst.dims, dst.dims + dst.ndims, own.dims);
    const int from = is_view ? view(value, dst) : want(value, dst);
    const Buffer& buffer = buffer_of(from);
    if (buffer.place == Buffer::Place::kScratch && !buffer.is_shared && is_last_use(group, value))
      return add_memory(dst,
                        static_cast<size_t>(region_.memories[static_cast<size_t>(from)].pointer));
    StepDraft draft(TENON_DNNL_REORDER);
    draft.step.src = draft.add(dst);
    draft.step.dst = draft.add(dst);
    const int made = add_memory(dst, new_buffer());
    add_step(draft, {{draft.step.src, from}, {draft.step.dst, made}});
    return made;
  }
  bool is_last_use(const Group& group, int value) const {
    if (std::find(graph_.outputs.begin(), graph_.outputs.end(), value) != graph_.outputs.end())
      return false;
    int uses = 0;
    for (const Group& other : groups_) {
      const bool is_later = &other >= &groups_[current_];
      if (&other == &group) {
        for (const int used : values_of(other)) uses += used == value;
      } else if (is_later) {
        for (const int used : values_of(other))
          if (used == value) return false;
      }
    }
    return uses == 1;
  }
  // What a group reads, with repetition.
  static std::vector<int> values_of(const Group& group) {
    std::vector<int> values;
    if (group.source >= 0) values.push_back(group.source);
    if (group.operands[0] >= 0) {
      values.push_back(group.operands[0]);
      values.push_back(group.operands[1]);
    } else if (group.op) {
      for (const MatchGraph::Argument& argument : group.op->args)
        if (argument.kind == MatchGraph::Argument::Kind::kValue) values.push_back(argument.value);
    }
    if (group.bias >= 0) values.push_back(group.bias);
    for (const Post& post : group.posts)
      if (post.value >= 0) values.push_back(post.value);
    return values;
  }

  // Layouts of an elementwise operation's input and of its other operand, if it has one.
  struct OperandLayouts {
    dnnl_memory_desc_t input;
    std::optional<dnnl_memory_desc_t> operand;
    bool is_view = false;  // the operand is its plain memory under other dimensions
  };

  // Best first: without moving the input; what is broadcast over it in blocks of channels as it is
  // (of mixed layouts the library has a plain way only); all of it plain.
  std::vector<OperandLayouts> elementwise_layouts(int input, const Post& post) {
    const dnnl_memory_desc_t at_hand = layout_at_hand(input);
    if (post.kind == Post::Kind::kEltwise) return {{at_hand, {}}};
    check_is_there(post.value);
    const std::vector<int64_t>& shape = graph_[input].shape;
    const dnnl_memory_desc_t own = plain_layout(graph_[post.value].shape);
    std::vector<OperandLayouts> choices;
    if (graph_[post.value].shape == shape) {
      choices.push_back({at_hand, at_hand});
    } else {
      if (const auto blocked = blocked_as(at_hand, own)) choices.push_back({at_hand, blocked});
      choices.push_back({at_hand, operand_layout(post.value, at_hand), true});
    }
    const dnnl_memory_desc_t plain = plain_layout(shape);
    if (!is_equal(plain, at_hand))
      choices.push_back({plain, operand_layout(post.value, plain), true});
    return choices;
  }

  // Posts from `first` on as a step of their own; returns the number of the first one left.
  size_t add_elementwise(const Group& group, size_t first) {
    const int input = group.results[first];
    check_is_there(input);
    const Post& post = group.posts[first];
    // The posts behind it that are pure arithmetic go along.
    size_t next = first + 1;
    while (next < group.posts.size() && group.posts[next].kind == Post::Kind::kEltwise &&
           post.kind == Post::Kind::kBinary)
      ++next;
    // Inside of an operator that is several posts lies no value.
    if (post.kind == Post::Kind::kEltwise && group.results[next] < 0) ++next;
    const auto drafted = [&](const OperandLayouts& layouts) {
      StepDraft draft(post.kind == Post::Kind::kEltwise ? TENON_DNNL_ELTWISE : TENON_DNNL_BINARY);
      draft.step.alg = post.alg;
      draft.step.alpha = post.alpha;
      draft.step.beta = post.beta;
      draft.step.src = draft.add(layouts.input);
      draft.step.dst = draft.add(layouts.input);
      if (layouts.operand) draft.step.weights = draft.add(*layouts.operand);
      for (size_t i = first + 1; i < next; ++i)
        draft.add_eltwise(group.posts[i].alg, group.posts[i].alpha, group.posts[i].beta);
      return draft;
    };
    const std::vector<OperandLayouts> choices = elementwise_layouts(input, post);
    auto chosen = std::find_if(choices.begin(), choices.end(), [&](const OperandLayouts& layouts) {
      return describe(drafted(layouts), 1, Ways::kFast) != nullptr;
    });
    if (chosen == choices.end())
      chosen = std::find_if(choices.begin(), choices.end(), [&](const OperandLayouts& layouts) {
        return describe(drafted(layouts), 1, Ways::kAll) != nullptr;
      });
    if (chosen == choices.end())
      throw Refusal{"library", "oneDNN does not have this elementwise operation"};
    const StepDraft draft = drafted(*chosen);
    const dnnl_memory_desc_t layout = chosen->input;
    std::vector<Operand> operands;
    if (chosen->operand)
      operands.emplace_back(draft.step.weights, chosen->is_view
                                                    ? view(post.value, *chosen->operand)
                                                    : want(post.value, *chosen->operand));
    const int result = group.results[next];
    operands.emplace_back(draft.step.src, want(input, layout));
    const int made = add_memory(layout, new_buffer());
    operands.emplace_back(draft.step.dst, made);
    add_step(draft, operands);
    keep(result, layout, made);
    return next;
  }

  void add_output(size_t i) {
    const int value = graph_.outputs[i];
    const dnnl_memory_desc_t plain = plain_layout(graph_[value].shape);
    int memory = want(value, plain);
    if (buffer_of(memory).place != Buffer::Place::kScratch) {
      StepDraft draft(TENON_DNNL_REORDER);
      draft.step.src = draft.add(plain);
      draft.step.dst = draft.add(plain);
      const int made = add_memory(plain, new_buffer());
      add_step(draft, {{draft.step.src, memory}, {draft.step.dst, made}});
      memory = made;
    }
    buffer_of(memory).place = Buffer::Place::kOutput;
    buffer_of(memory).number = static_cast<int>(i);
  }

  // Offsets in the scratch memory for what lies between steps, and for what each step works in.
  void place_buffers() {
    memory::Problem problem;
    std::vector<int64_t*> offsets;
    std::vector<int64_t> offset_of(buffers_.size(), 0);
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const Buffer& buffer = buffers_[i];
      if (buffer.place != Buffer::Place::kScratch || buffer.first == SIZE_MAX) continue;
      problem.buffers.push_back({fmt::format("value{}", i), buffer.bytes, 64,
                                 static_cast<int64_t>(buffer.first),
                                 static_cast<int64_t>(buffer.last) + 1});
      offsets.push_back(&offset_of[i]);
    }
    for (size_t i = 0; i < region_.steps.size(); ++i) {
      tenon_dnnl_step& step = region_.steps[i];
      if (step.scratch_bytes == 0) continue;
      problem.buffers.push_back({fmt::format("step{}", i), step.scratch_bytes, 64,
                                 static_cast<int64_t>(i), static_cast<int64_t>(i) + 1});
      offsets.push_back(&step.scratch);
    }
    if (!problem.buffers.empty()) {
      memory::PlanOptions options;
      options.work_limit = memory::kWorkPerSecond / 50;
      const memory::Plan plan = memory::plan(problem, options);
      for (size_t i = 0; i < offsets.size(); ++i) *offsets[i] = plan.offsets[i];
      region_.scratch_bytes = plan.pools[0].peak;
    }
    const auto inputs = static_cast<int32_t>(graph_.inputs.size());
    const auto outputs = static_cast<int32_t>(graph_.outputs.size());
    for (tenon_dnnl_memory& memory : region_.memories) {
      const auto at = static_cast<size_t>(memory.pointer);
      const Buffer& buffer = buffers_[at];
      memory.offset = offset_of[at];
      memory.pointer = buffer.place == Buffer::Place::kInput    ? buffer.number
                       : buffer.place == Buffer::Place::kOutput ? inputs + buffer.number
                                                                : inputs + outputs;
    }
  }

  const MatchGraph& graph_;
  std::vector<Group> groups_;
  std::vector<std::vector<int>> variants_;  // of each value: memories that hold it
  std::vector<Buffer> buffers_;
  size_t current_ = 0;
  Region region_;
};

}  // namespace

Region plan_region(const MatchGraph& graph) {
  const PlanningThreads threads;
  return Planner(graph).run();
}

std::string pack_constant(const Region::Packing& packing, const void* data) {
  const PlanningThreads threads;
  omp_set_num_threads(1);
  std::string bytes(static_cast<size_t>(bytes_of(packing.packed)), '\0');
  dnnl_memory_t from = nullptr, to = nullptr;
  dnnl_primitive_desc_t description = nullptr;
  dnnl_primitive_t primitive = nullptr;
  dnnl_stream_t stream = nullptr;
  dnnl_memory_create(&from, &packing.plain, engine(), const_cast<void*>(data));
  dnnl_memory_create(&to, &packing.packed, engine(), bytes.data());
  dnnl_stream_create(&stream, engine(), dnnl_stream_default_flags);
  dnnl_reorder_primitive_desc_create(&description, &packing.plain, engine(), &packing.packed,
                                     engine(), nullptr);
  bool is_done = description && from && to && stream &&
                 dnnl_primitive_create(&primitive, description) == dnnl_success;
  if (is_done) {
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    is_done = dnnl_primitive_execute(primitive, stream, 2, args) == dnnl_success &&
              dnnl_stream_wait(stream) == dnnl_success;
  }
  if (primitive) dnnl_primitive_destroy(primitive);
  if (description) dnnl_primitive_desc_destroy(description);
  if (stream) dnnl_stream_destroy(stream);
  if (from) dnnl_memory_destroy(from);
  if (to) dnnl_memory_destroy(to);
  if (!is_done) throw Refusal{"library", "oneDNN cannot pack a constant"};
  return bytes;
}

}  // namespace tenon::backend::dnnl
