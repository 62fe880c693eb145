// SPDX-License-Identifier: Apache-2.0
#include "steps.h"

#include <algorithm>

#include "tenon/script/parser.h"
#include "tenon/tir/schedule/pipeline.h"
#include "tenon/tir/schedule/primitives.h"
#include "tenon/tir/schedule/winograd_form.h"

namespace tenon::fuzz {

namespace {

using tir::Block;
using tir::BlockRV;
using tir::Buffer;
using tir::BufferRole;
using tir::IndexMap;
using tir::IterKind;
using tir::LoopRV;
using tir::Schedule;

using Loops = std::vector<LoopRV>;

/// What may stand for the arguments of a primitive in one function.
class Draw {
 public:
  Draw(Schedule& schedule, Random& random) : schedule_(schedule), random_(random) {}

  bool has_block() const { return !schedule_.blocks().empty(); }
  BlockRV block() {
    const auto blocks = schedule_.blocks();
    return random_.pick_named(blocks, [](const BlockRV& b) { return b.name; });
  }
  /// One for which `suits` holds, where there is one; else any.
  BlockRV block(const std::function<bool(const Block&)>& suits) {
    std::vector<BlockRV> some;
    for (const BlockRV& b : schedule_.blocks())
      if (suits(*schedule_.get(b))) some.push_back(b);
    if (some.empty()) return block();
    return random_.pick_named(some, [](const BlockRV& b) { return b.name; });
  }
  /// Rarely any, mostly one that has a reduction.
  BlockRV reduction() {
    if (random_.one_in(8)) return block();
    return block([](const Block& b) {
      return b.init && std::any_of(b.iter_vars.begin(), b.iter_vars.end(),
                                   [](const auto& iter) { return iter.kind == IterKind::kReduce; });
    });
  }
  Loops loops(const BlockRV& block) { return schedule_.get_loops(block); }
  bool loop(const BlockRV& block, LoopRV& out) {
    const Loops all = loops(block);
    if (all.empty()) return false;
    out = pick(all);
    return true;
  }
  bool loop(LoopRV& out) { return loop(block(), out); }
  const LoopRV& pick(const Loops& loops) {
    return random_.pick_named(loops, [](const LoopRV& loop) { return loop.var->name; });
  }
  size_t axis(const BlockRV& block) {
    return random_.below(std::max<size_t>(1, schedule_.get(block)->iter_vars.size()));
  }
  int64_t factor() { return random_.one_in(12) ? random_.from(1, 20) : random_.from(1, 5); }
  std::string scope() { return random_.coin() ? "local" : "global"; }
  size_t region(size_t count) {
    return random_.one_in(20) ? random_.below(4) : random_.below(std::max<size_t>(1, count));
  }

 private:
  Schedule& schedule_;
  Random& random_;
};

/// A permutation of `buffer`'s dimensions, some of them cut or joined.
IndexMap random_map(const Buffer& buffer, Random& random) {
  IndexMap map;
  for (size_t i = 0; i < buffer.ndim(); ++i)
    map.from.push_back(var(std::string(1, static_cast<char>('i' + i))));
  std::vector<Expr> parts;
  for (const Ref<Var>& index : map.from) {
    const int64_t factor = random.from(2, 4);
    switch (random.below(4)) {
      case 0:
        parts.push_back(floordiv(index, factor));
        parts.push_back(floormod(index, factor));
        break;
      default: parts.push_back(index);
    }
  }
  random.shuffle(parts);
  if (random.one_in(4) && buffer.ndim() >= 2) {
    // Two dimensions as one.
    parts.clear();
    const Expr joined = Expr(map.from[0]) * buffer.shape[1] + Expr(map.from[1]);
    if (random.coin()) {
      parts.push_back(joined);
    } else {
      const int64_t factor = random.from(2, 4);
      parts.push_back(floormod(joined, factor));
      parts.push_back(floordiv(joined, factor));
    }
    for (size_t i = 2; i < map.from.size(); ++i) parts.push_back(map.from[i]);
  }
  if (random.one_in(16) && parts.size() > 1) parts.pop_back();  // not one place for each
  map.to = std::move(parts);
  return map;
}

bool split(Schedule& sch, Random& random, const StepContext&) {
  Draw draw(sch, random);
  LoopRV loop;
  if (!draw.loop(loop)) return false;
  std::vector<Expr> factors;
  const size_t count = random.one_in(4) ? 3 : 2;
  for (size_t i = 0; i < count; ++i) factors.push_back(int64(draw.factor()));
  const bool follows = !random.one_in(5);
  if (follows) factors[random.below(count)] = Expr();
  const auto extent = as_int(sch.get(loop)->extent);
  if (!follows && extent && random.coin())
    factors[0] = int64((*extent + *as_int(factors[1]) - 1) / *as_int(factors[1]));
  sch.split(loop, factors);
  return true;
}

bool fuse(Schedule& sch, Random& random, const StepContext&) {
  Draw draw(sch, random);
  const Loops loops = draw.loops(draw.block());
  if (loops.size() < 2) return false;
  const size_t first = random.below(loops.size() - 1);
  const size_t count = std::min(loops.size() - first, 2 + random.below(2));
  Loops chosen(loops.begin() + static_cast<std::ptrdiff_t>(first),
               loops.begin() + static_cast<std::ptrdiff_t>(first + count));
  if (random.one_in(12)) std::reverse(chosen.begin(), chosen.end());
  sch.fuse(chosen);
  return true;
}

bool reorder(Schedule& sch, Random& random, const StepContext&) {
  Draw draw(sch, random);
  Loops loops = draw.loops(draw.block());
  if (loops.size() < 2) return false;
  random.shuffle(loops);
  loops.resize(2 + random.below(loops.size() - 1));
  sch.reorder(loops);
  return true;
}

/// Outermost loops that follow each other, mostly in their order.
bool merge(Schedule& sch, Random& random, const StepContext&) {
  Loops outermost;
  for (const BlockRV& block : sch.blocks()) {
    const Loops loops = sch.get_loops(block);
    if (!loops.empty() && (outermost.empty() || !outermost.back().var.same_as(loops[0].var)))
      outermost.push_back(loops[0]);
  }
  if (outermost.size() < 2) return false;
  const size_t first = random.below(outermost.size() - 1);
  const size_t count = std::min(outermost.size() - first, 2 + random.below(2));
  Loops chosen(outermost.begin() + static_cast<std::ptrdiff_t>(first),
               outermost.begin() + static_cast<std::ptrdiff_t>(first + count));
  if (random.one_in(12)) std::reverse(chosen.begin(), chosen.end());
  sch.merge(chosen);
  return true;
}

bool loop_partition(Schedule& sch, Random& random, const StepContext&) {
  Draw draw(sch, random);
  LoopRV loop;
  if (!draw.loop(loop)) return false;
  std::vector<Expr> points;
  int64_t at = random.from(0, 3);
  for (size_t n = 1 + random.below(2); n > 0; --n) {
    points.push_back(int64(at));
    at += random.from(random.one_in(8) ? -1 : 1, 3);
  }
  sch.loop_partition(loop, points);
  return true;
}

bool sampled_split(Schedule& sch, Random& random, const StepContext&) {
  Draw draw(sch, random);
  LoopRV loop;
  if (!draw.loop(loop)) return false;
  const int64_t odd = random.from(0, 3);
  const auto factor = sch.sample_categorical({2, draw.factor(), 4}, {1.0, 0.5 * odd, 2.0});
  const tir::Primitive& split = *tir::find_primitive("split");
  // Through the table, so that the trace names the number.
  const AttrValue factors(AttrList{AttrValue(), AttrValue(NodePtr(factor.var))});
  tir::apply(sch, split, {loop}, std::vector<AttrValue>(1, factors));
  return true;
}

bool sampled_tiles(Schedule& sch, Random& random, const StepContext&) {
  Draw draw(sch, random);
  LoopRV loop;
  if (!draw.loop(loop)) return false;
  AttrList factors;
  for (const auto& factor : sch.sample_perfect_tile(loop, random.from(1, 3), random.from(1, 9)))
    factors.emplace_back(NodePtr(factor.var));
  tir::apply(sch, *tir::find_primitive("split"), {loop},
             std::vector<AttrValue>(1, AttrValue(factors)));
  return true;
}

bool pipeline(Schedule& sch, Random& random, const StepContext&) {
  Draw draw(sch, random);
  LoopRV loop;
  if (!draw.loop(loop)) return false;
  // A stage for each statement of the body, mostly; in most nests there is one.
  const auto* body = sch.get(loop)->body.as<tir::Seq>();
  std::vector<int64_t> stages(body ? body->stmts.size() : 1);
  if (random.one_in(8)) stages.push_back(0);
  for (int64_t& stage : stages) stage = random.from(0, 1);
  tir::software_pipeline(sch, loop, stages, random.from(1, 3));
  return true;
}

template <typename Apply>
StepGenerator on_block(const Apply& apply) {
  return [apply](Schedule& sch, Random& random, const StepContext&) {
    Draw draw(sch, random);
    if (!draw.has_block()) return false;
    apply(sch, random, draw);
    return true;
  };
}

template <typename Apply>
StepGenerator on_loop(const Apply& apply) {
  return [apply](Schedule& sch, Random& random, const StepContext&) {
    Draw draw(sch, random);
    LoopRV loop;
    if (!draw.has_block() || !draw.loop(loop)) return false;
    apply(sch, random, loop);
    return true;
  };
}

bool annotate(Schedule& sch, Random& random, const StepContext&) {
  Draw draw(sch, random);
  const BlockRV block = draw.block();
  LoopRV loop;
  if (random.coin() && draw.loop(block, loop))
    sch.annotate(loop, "note", random.from(0, 9));
  else
    sch.annotate(block, "note", "text");
  return true;
}

bool unannotate(Schedule& sch, Random& random, const StepContext&) {
  Draw draw(sch, random);
  const BlockRV block = draw.block([](const Block& b) { return b.annotations.contains("note"); });
  LoopRV loop;
  if (random.coin() && draw.loop(block, loop))
    sch.unannotate(loop, "note");
  else
    sch.unannotate(block, "note");
  return true;
}

void reorder_block_iters(Schedule& sch, Random& random, Draw& draw) {
  const BlockRV block = draw.block();
  std::vector<int64_t> order;
  for (size_t i = 0; i < sch.get(block)->iter_vars.size(); ++i)
    order.push_back(static_cast<int64_t>(i));
  random.shuffle(order);
  if (random.one_in(20)) order.push_back(0);
  sch.reorder_block_iters(block, order);
}

void pad_reduction(Schedule& sch, Random& random, Draw& draw) {
  const BlockRV block = draw.reduction();
  const auto& iters = sch.get(block)->iter_vars;
  size_t axis = draw.axis(block);
  for (size_t i = 0; i < iters.size() && !random.one_in(10); ++i)
    if (iters[(axis + i) % iters.size()].kind == IterKind::kReduce) {
      axis = (axis + i) % iters.size();
      break;
    }
  sch.pad_reduction(block, static_cast<int64_t>(axis), draw.factor());
}

void pad_einsum(Schedule& sch, Random& random, Draw& draw) {
  const BlockRV block = draw.reduction();
  std::vector<int64_t> padding;
  for (size_t i = 0; i < sch.get(block)->iter_vars.size(); ++i)
    padding.push_back(random.coin() ? 1 : random.from(1, 4));
  sch.pad_einsum(block, padding);
}

/// The extents of the loops of a description.
std::vector<int64_t> loop_extents(const tir::PrimFunc& description) {
  std::vector<int64_t> out;
  walk<tir::For>(description.body,
                 [&](const tir::For& loop) { out.push_back(as_int(loop.extent).value_or(1)); });
  return out;
}

bool tensorize(Schedule& sch, Random& random, const StepContext& context) {
  if (context.intrins.empty()) return false;
  Draw draw(sch, random);
  const tir::TensorIntrin& intrin = random.pick(context.intrins);
  const BlockRV block = draw.block();
  Loops loops = draw.loops(block);
  const std::vector<int64_t> sizes = loop_extents(*intrin.description);
  if (random.one_in(4) || loops.size() < sizes.size()) {
    LoopRV loop;
    if (!random.one_in(4) && draw.loop(block, loop))
      sch.tensorize(loop, intrin);
    else
      sch.tensorize(block, intrin);
    return true;
  }
  // Tiles of the sizes that the kernel has, of the innermost loops.
  Schedule tiled = sch;  // a refusal takes all of it back
  Loops outer, inner;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto parts = tiled.split(loops[loops.size() - sizes.size() + i], sizes[i]);
    outer.push_back(parts[0]);
    inner.push_back(parts[1]);
  }
  Loops order = outer;
  order.insert(order.end(), inner.begin(), inner.end());
  tiled.reorder(order);
  tiled.tensorize(inner[0], intrin);
  sch = std::move(tiled);
  return true;
}

template <typename Apply>
bool at_loop(Schedule& sch, Random& random, const Apply& apply) {
  Draw draw(sch, random);
  const BlockRV block = draw.block();
  // Mostly a loop of a block that has to do with it.
  auto others = random.coin() ? sch.consumers(block) : sch.producers(block);
  if (others.empty() || random.one_in(6)) others = sch.blocks();
  const BlockRV other =
      random.pick_named(others, [](const BlockRV& candidate) { return candidate.name; });
  LoopRV loop;
  if (!draw.loop(other, loop)) return false;
  apply(block, loop);
  return true;
}

void transform_layout(Schedule& sch, Random& random, Draw& draw) {
  const BlockRV block = draw.block([&](const Block& b) {
    return std::any_of(b.writes.begin(), b.writes.end(),
                       [&](const auto& region) { return sch.is_intermediate(region->buffer); });
  });
  const bool read = random.one_in(3);
  const auto& list = read ? sch.get(block)->reads : sch.get(block)->writes;
  const size_t index = draw.region(list.size());
  const Ref<Buffer> buffer = index < list.size() ? list[index]->buffer : Ref<Buffer>();
  if (!buffer) return;
  Expr pad;
  if (random.coin())
    pad =
        buffer->dtype.is_float() ? imm(buffer->dtype, 1.0) : imm(buffer->dtype, random.from(0, 1));
  sch.transform_layout(block, read ? BufferRole::kRead : BufferRole::kWrite,
                       static_cast<int64_t>(index), random_map(*buffer, random), pad);
}

void reindex_cache_read(Schedule& sch, Random& random, Draw& draw) {
  const BlockRV block = draw.block();
  const Ref<Block> node = sch.get(block);
  std::vector<int64_t> axes;
  for (size_t i = 0; i < node->iter_vars.size(); ++i)
    if (random.below(4) != 0) axes.push_back(static_cast<int64_t>(i));
  random.shuffle(axes);
  sch.reindex_cache_read(block, static_cast<int64_t>(draw.region(node->reads.size())), draw.scope(),
                         axes);
}

bool prefetch(Schedule& sch, Random& random, const StepContext&) {
  Draw draw(sch, random);
  const BlockRV block = draw.block();
  LoopRV loop, ahead;
  if (!draw.loop(block, loop) || !draw.loop(block, ahead)) return false;
  const size_t read = draw.region(sch.get(block)->reads.size());
  sch.prefetch(block, static_cast<int64_t>(read), loop, ahead, random.from(1, 3),
               random.from(0, 3));
  return true;
}

bool prefetch_spread(Schedule& sch, Random& random, const StepContext&) {
  Draw draw(sch, random);
  const BlockRV block = draw.block();
  LoopRV loop, ahead, over;
  if (!draw.loop(block, loop) || !draw.loop(block, ahead) || !draw.loop(block, over)) return false;
  const size_t read = draw.region(sch.get(block)->reads.size());
  sch.prefetch_spread(block, static_cast<int64_t>(read), loop, ahead, random.from(1, 3), over,
                      random.from(1, 4), random.from(0, 2), random.from(1, 4));
  return true;
}

const char* const kIntrins = R"(from tenon.script import ir as I, tir as T

@I.ir_module
class Module:
    @T.prim_func
    def copy_impl(A: T.Buffer((2, 2), "float32"), B: T.Buffer((2, 2), "float32")):
        for i, j in T.grid(T.int64(2), T.int64(2)):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

    @T.prim_func
    def row_impl(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
        for i in range(T.int64(4)):
            with T.block("row"):
                vi = T.axis.spatial(T.int64(4), i)
                C[vi] = A[vi] + B[vi]

    @T.prim_func
    def dot_impl(A: T.Buffer((2, 3), "float32"), B: T.Buffer((3, 2), "float32"), C: T.Buffer((2, 2), "float32")):
        for i, j, k in T.grid(T.int64(2), T.int64(2), T.int64(3)):
            with T.block("dot"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    @T.prim_func
    def add_to_impl(A: T.Buffer((2,), "float32"), C: T.Buffer((1,), "float32")):
        for k in range(T.int64(2)):
            with T.block("add_to"):
                vk = T.axis.reduce(T.int64(2), k)
                C[T.int64(0)] = C[T.int64(0)] + A[vk]

    @T.prim_func
    def relu_impl(A: T.Buffer((2,), "float32"), C: T.Buffer((2,), "float32")):
        for k in range(T.int64(2)):
            with T.block("relu"):
                vk = T.axis.spatial(T.int64(2), k)
                C[vk] = T.max(A[vk], T.float32(0))

    @T.prim_func
    def axpy_impl(A: T.Buffer((2,), "float32"), x: T.Buffer((1,), "float32"), C: T.Buffer((2,), "float32")):
        for k in range(T.int64(2)):
            with T.block("axpy"):
                vk = T.axis.spatial(T.int64(2), k)
                C[vk] = C[vk] + A[vk] * x[T.int64(0)]
)";

}  // namespace

const StepContext& standard_context() {
  static const StepContext kContext = [] {
    StepContext out;
    const IRModule module = script::parse_module(std::string(kIntrins));
    for (const auto& [name, function] : module.functions()) {
      const auto kernel = downcast<tir::PrimFunc>(function);
      // What an implementation does is what it is described by.
      out.intrins.push_back({name.substr(0, name.find("_impl")) + "_desc", name, kernel, kernel});
    }
    return out;
  }();
  return kContext;
}

const std::map<std::string, StepGenerator>& step_generators() {
  static const std::map<std::string, StepGenerator> kGenerators = {
      {"get_block",
       on_block([](Schedule& sch, Random&, Draw& draw) { sch.get_block(draw.block().name); })},
      {"get_loops",
       on_block([](Schedule& sch, Random&, Draw& draw) { sch.get_loops(draw.block()); })},
      {"get_child_blocks",
       on_loop([](Schedule& sch, Random&, const LoopRV& loop) { sch.get_child_blocks(loop); })},
      {"get_producers",
       on_block([](Schedule& sch, Random&, Draw& draw) { sch.get_producers(draw.block()); })},
      {"get_consumers",
       on_block([](Schedule& sch, Random&, Draw& draw) { sch.get_consumers(draw.block()); })},
      {"software_pipeline", pipeline},
      {"sample_categorical", sampled_split},
      {"sample_perfect_tile", sampled_tiles},
      {"split", split},
      {"fuse", fuse},
      {"reorder", reorder},
      {"merge", merge},
      {"loop_partition", loop_partition},
      {"add_unit_loop",
       on_block([](Schedule& sch, Random&, Draw& draw) { sch.add_unit_loop(draw.block()); })},
      {"parallel", on_loop([](Schedule& sch, Random&, const LoopRV& loop) { sch.parallel(loop); })},
      {"vectorize",
       on_loop([](Schedule& sch, Random&, const LoopRV& loop) { sch.vectorize(loop); })},
      {"unroll", on_loop([](Schedule& sch, Random&, const LoopRV& loop) { sch.unroll(loop); })},
      {"annotate", annotate},
      {"unannotate", unannotate},
      {"tensorize", tensorize},
      {"blockize", on_loop([](Schedule& sch, Random&, const LoopRV& loop) { sch.blockize(loop); })},
      {"pad_einsum", on_block(pad_einsum)},
      {"decompose_padding",
       [](Schedule& sch, Random& random, const StepContext&) {
         Draw draw(sch, random);
         const BlockRV block = draw.block([](const Block& b) {
           const auto* store = b.body.as<tir::BufferStore>();
           const auto* call = store ? store->value.as<Call>() : nullptr;
           return call && call->is(IntrinsicId::kIfThenElse);
         });
         LoopRV loop;
         if (!draw.loop(block, loop)) return false;
         sch.decompose_padding(block, loop);
         return true;
       }},
      {"transform_layout", on_block(transform_layout)},
      {"fuse_block_iters", on_block([](Schedule& sch, Random& random, Draw& draw) {
         const BlockRV block = draw.block();
         const auto first = static_cast<int64_t>(draw.axis(block));
         sch.fuse_block_iters(block, first, random.from(1, 3));
       })},
      {"split_block_iter", on_block([](Schedule& sch, Random&, Draw& draw) {
         const BlockRV block = draw.block();
         const auto axis = static_cast<int64_t>(draw.axis(block));
         sch.split_block_iter(block, axis, draw.factor());
       })},
      {"pad_reduction", on_block(pad_reduction)},
      {"simplify_block_iters", on_block([](Schedule& sch, Random&, Draw& draw) {
         sch.simplify_block_iters(draw.block());
       })},
      {"reorder_block_iters", on_block(reorder_block_iters)},
      {"compute_at",
       [](Schedule& sch, Random& random, const StepContext&) {
         return at_loop(sch, random,
                        [&](const BlockRV& b, const LoopRV& l) { sch.compute_at(b, l); });
       }},
      {"reverse_compute_at",
       [](Schedule& sch, Random& random, const StepContext&) {
         return at_loop(sch, random,
                        [&](const BlockRV& b, const LoopRV& l) { sch.reverse_compute_at(b, l); });
       }},
      {"compute_inline",
       on_block([](Schedule& sch, Random&, Draw& draw) { sch.compute_inline(draw.block()); })},
      {"reverse_compute_inline", on_block([](Schedule& sch, Random&, Draw& draw) {
         sch.reverse_compute_inline(draw.block());
       })},
      {"cache_read", on_block([](Schedule& sch, Random&, Draw& draw) {
         const BlockRV block = draw.block();
         const size_t read = draw.region(sch.get(block)->reads.size());
         sch.cache_read(block, static_cast<int64_t>(read), draw.scope());
       })},
      {"cache_write", on_block([](Schedule& sch, Random&, Draw& draw) {
         const BlockRV block = draw.block();
         const size_t write = draw.region(sch.get(block)->writes.size());
         sch.cache_write(block, static_cast<int64_t>(write), draw.scope());
       })},
      {"reindex_cache_read", on_block(reindex_cache_read)},
      {"set_scope", on_block([](Schedule& sch, Random&, Draw& draw) {
         const BlockRV block = draw.block();
         const size_t write = draw.region(sch.get(block)->writes.size());
         sch.set_scope(block, static_cast<int64_t>(write), draw.scope());
       })},
      {"storage_align", on_block([](Schedule& sch, Random& random, Draw& draw) {
         const BlockRV block = draw.block();
         const size_t write = draw.region(sch.get(block)->writes.size());
         sch.storage_align(block, static_cast<int64_t>(write), random.from(-2, 2), draw.factor(),
                           random.from(0, 3));
       })},
      {"prefetch", prefetch},
      {"prefetch_spread", prefetch_spread},
      {"decompose_reduction", on_block([](Schedule& sch, Random&, Draw& draw) {
         const BlockRV block = draw.reduction();
         LoopRV loop;
         if (draw.loop(block, loop)) sch.decompose_reduction(block, loop);
       })},
      {"rfactor", on_block([](Schedule& sch, Random&, Draw& draw) {
         LoopRV loop;
         if (draw.loop(draw.reduction(), loop)) sch.rfactor(loop);
       })},
      {"winograd", on_block([](Schedule& sch, Random& random, Draw& draw) {
         const BlockRV block =
             draw.block([](const Block& b) { return tir::convolution_sizes(b).has_value(); });
         const int64_t tile = random.one_in(12) ? random.from(1, 5) : random.coin() ? 2 : 4;
         sch.winograd(block, tile, draw.factor());
       })},
  };
  return kGenerators;
}

Step random_step(Random& random) {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const auto& [name, generator] : step_generators()) names.push_back(name);
    for (const char* often : {"split", "split", "fuse", "reorder", "reorder", "compute_at",
                              "reverse_compute_at", "blockize", "cache_write", "cache_read",
                              "decompose_reduction", "rfactor", "transform_layout"})
      names.emplace_back(often);
    return names;
  }();
  const std::string& name = random.pick(kNames);
  return {name, random.next()};
}

bool apply(Schedule& schedule, const Step& step, const StepContext& context) {
  Random random(step.seed);
  if (schedule.blocks().empty()) return false;
  return step_generators().at(step.primitive)(schedule, random, context);
}

}  // namespace tenon::fuzz
