// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/primitives.h"

#include <algorithm>
#include <functional>

#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/pipeline.h"

namespace tenon::tir {

std::string_view words_of(ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::kBlock: return "a block";
    case ArgumentKind::kLoop: return "a loop";
    case ArgumentKind::kLoopOrBlock: return "a loop or a block";
    case ArgumentKind::kNumber: return "a whole number";
    case ArgumentKind::kNumbers: return "a list of whole numbers";
    case ArgumentKind::kFloats: return "a list of numbers";
    case ArgumentKind::kText: return "a string";
    case ArgumentKind::kExprs: return "a list of sizes";
    case ArgumentKind::kScalar: return "a number";
    case ArgumentKind::kBuffer: return "(\"read\", i) or (\"write\", i)";
    case ArgumentKind::kIndexMap: return "a lambda";
    case ArgumentKind::kAny: return "a value";
  }
  unreachable("a kind of argument that does not exist");
}

static bool is_of(const AttrValue& value, ArgumentKind kind) {
  const auto* list = value.as<AttrList>();
  // An expression is one of random numbers; when the primitive is applied it is known.
  const auto is_number = [](const AttrValue& v) { return v.as<int64_t>() || v.as<NodePtr>(); };
  const auto is_float = [](const AttrValue& v) { return v.as<int64_t>() || v.as<double>(); };
  const auto is_size = [](const AttrValue& v) {
    return v.is_none() || v.as<int64_t>() || v.as<NodePtr>();
  };
  switch (kind) {
    case ArgumentKind::kNumber: return is_number(value);
    case ArgumentKind::kNumbers: return list && std::all_of(list->begin(), list->end(), is_number);
    case ArgumentKind::kFloats: return list && std::all_of(list->begin(), list->end(), is_float);
    case ArgumentKind::kText: return value.as<std::string>();
    case ArgumentKind::kExprs: return list && std::all_of(list->begin(), list->end(), is_size);
    case ArgumentKind::kScalar:
      return value.is_none() || value.as<bool>() || is_number(value) || value.as<double>() ||
             value.as<NodePtr>();
    case ArgumentKind::kBuffer: {
      const auto* role = list && list->size() == 2 ? (*list)[0].as<std::string>() : nullptr;
      return role && (*role == "read" || *role == "write") && is_number((*list)[1]);
    }
    case ArgumentKind::kIndexMap:
      return list && list->size() == 2 && (*list)[0].as<AttrList>() && (*list)[1].as<AttrList>();
    case ArgumentKind::kAny: return true;
    case ArgumentKind::kBlock:
    case ArgumentKind::kLoop:
    case ArgumentKind::kLoopOrBlock: return false;
  }
  unreachable("a kind of argument that does not exist");
}

// Whether a number of a primitive is one by now, and no expression.
static bool is_known(const AttrValue& value, ArgumentKind kind) {
  if (kind != ArgumentKind::kNumber && kind != ArgumentKind::kNumbers) return true;
  if (const auto* list = value.as<AttrList>())
    return std::none_of(list->begin(), list->end(),
                        [](const AttrValue& item) { return item.as<NodePtr>(); });
  return !value.as<NodePtr>();
}

std::optional<std::string> misfit_of_input(const Primitive& primitive, size_t i,
                                           const TraceValue& given) {
  const ArgumentKind kind = primitive.input_kind(i);
  if (std::holds_alternative<NumberRV>(given))
    return fmt::format("`{}` is given a number; expected {}", primitive.name, words_of(kind));
  const bool is_block = std::holds_alternative<BlockRV>(given);
  if (kind == ArgumentKind::kLoopOrBlock || is_block == (kind == ArgumentKind::kBlock))
    return std::nullopt;
  return fmt::format("`{}` is given {}; expected {}", primitive.name,
                     words_of(is_block ? ArgumentKind::kBlock : ArgumentKind::kLoop),
                     words_of(kind));
}

std::optional<std::string> misfit_of_attr(const Primitive& primitive, size_t i,
                                          const AttrValue& given) {
  const Primitive::Parameter& attr = primitive.attrs.at(i);
  const bool may_be_none = attr.default_value && attr.default_value->is_none();
  if (is_of(given, attr.kind) || (may_be_none && given.is_none())) return std::nullopt;
  return fmt::format("`{}` of `{}` is {}; expected {}", attr.name, primitive.name, text_of(given),
                     words_of(attr.kind));
}

std::vector<Expr> exprs_of(const AttrValue& value) {
  std::vector<Expr> out;
  for (const AttrValue& item : *value.as<AttrList>()) {
    if (item.is_none()) {
      out.push_back({});
    } else if (const auto* number = item.as<int64_t>()) {
      out.push_back(int64(*number));
    } else {
      out.push_back(downcast<ExprNode>(*item.as<NodePtr>()));
    }
  }
  return out;
}

IndexMap index_map_of(const AttrValue& value) {
  const AttrList& lists = *value.as<AttrList>();
  IndexMap map;
  for (const Expr& var : exprs_of(lists.at(0))) map.from.push_back(downcast<Var>(var));
  map.to = exprs_of(lists.at(1));
  return map;
}

namespace {

using Values = std::vector<TraceValue>;

/// What a row applies: the arguments of one call.
struct Step {
  Schedule& schedule;
  const Values& inputs;
  const std::vector<AttrValue>& attrs;
  const TensorIntrins& intrins;

  bool is_loop(size_t i) const { return std::holds_alternative<LoopRV>(inputs.at(i)); }
  BlockRV block(size_t i) const { return std::get<BlockRV>(inputs.at(i)); }
  LoopRV loop(size_t i) const { return std::get<LoopRV>(inputs.at(i)); }
  std::vector<LoopRV> loops() const {
    std::vector<LoopRV> out;
    for (const TraceValue& v : inputs) out.push_back(std::get<LoopRV>(v));
    return out;
  }
  const AttrValue& attr(size_t i) const { return attrs.at(i); }
  int64_t number(size_t i) const { return *attr(i).as<int64_t>(); }
  std::string text(size_t i) const { return *attr(i).as<std::string>(); }
  std::vector<int64_t> numbers(size_t i) const {
    std::vector<int64_t> out;
    for (const AttrValue& item : *attr(i).as<AttrList>()) out.push_back(*item.as<int64_t>());
    return out;
  }
  std::vector<double> floats(size_t i) const {
    std::vector<double> out;
    for (const AttrValue& item : *attr(i).as<AttrList>())
      out.push_back(item.as<double>() ? *item.as<double>()
                                      : static_cast<double>(*item.as<int64_t>()));
    return out;
  }
  std::vector<Expr> exprs(size_t i) const { return exprs_of(attr(i)); }
};

template <typename RV>
Values values_of(const std::vector<RV>& results) {
  return {results.begin(), results.end()};
}

/// A number that a text gives has the dtype of the buffer.
Expr pad_value_of(const AttrValue& value, const Block& block, BufferRole role, int64_t index) {
  if (const auto* node = value.as<NodePtr>()) return downcast<ExprNode>(*node);
  const auto& regions = role == BufferRole::kRead ? block.reads : block.writes;
  if (value.is_none() || index < 0 || static_cast<size_t>(index) >= regions.size()) return {};
  const DType dtype = regions[static_cast<size_t>(index)]->buffer->dtype;
  if (const auto* number = value.as<double>()) return imm(dtype, *number);
  const auto* truth = value.as<bool>();
  const int64_t number = truth ? *truth : *value.as<int64_t>();
  return dtype.is_float() ? imm(dtype, static_cast<double>(number)) : imm(dtype, number);
}

void transform_layout(const Step& s) {
  const AttrList& buffer = *s.attr(0).as<AttrList>();
  const BufferRole role =
      *buffer.at(0).as<std::string>() == "read" ? BufferRole::kRead : BufferRole::kWrite;
  const int64_t index = *buffer.at(1).as<int64_t>();
  s.schedule.transform_layout(s.block(0), role, index, index_map_of(s.attr(1)),
                              pad_value_of(s.attr(2), *s.schedule.get(s.block(0)), role, index));
}

void tensorize(const Step& s) {
  const auto intrin = s.intrins.find(s.text(0));
  if (intrin == s.intrins.end())
    throw CompileError(kUndefined, s.schedule.func()->origin,
                       "no tensor intrinsic has the implementation `{}`", s.text(0));
  if (s.is_loop(0))
    s.schedule.tensorize(s.loop(0), intrin->second);
  else
    s.schedule.tensorize(s.block(0), intrin->second);
}

using enum ArgumentKind;
using Result = Primitive::Result;
using Parameter = Primitive::Parameter;

const Parameter kOfBlock = {"block", kBlock};
const Parameter kOfLoop = {"loop", kLoop};
const Parameter kRead = {"read_buffer_index", kNumber, "of the regions that the block reads"};
const Parameter kWrite = {"write_buffer_index", kNumber, "of the regions that the block writes"};
const Parameter kScope = {"storage_scope", kText, "of the new buffer: \"global\", \"local\""};

struct Row {
  Primitive primitive;
  std::function<Values(const Step&)> apply;
};

// What gives nothing.
template <typename Apply>
std::function<Values(const Step&)> effect(const Apply& apply) {
  return [apply](const Step& s) {
    apply(s);
    return Values();
  };
}

/// What finds blocks and loops.
std::vector<Row> finding() {
  return {
      {{.name = "get_block",
        .summary = "The block of this name.",
        .inputs = {},
        .attrs = {{"name", kText}},
        .result = Result::kBlock},
       [](const Step& s) { return Values{s.schedule.get_block(s.text(0))}; }},
      {{.name = "get_loops",
        .summary = "The loops around a block, the outermost first.",
        .inputs = {kOfBlock},
        .result = Result::kLoops},
       [](const Step& s) { return values_of(s.schedule.get_loops(s.block(0))); }},
      {{.name = "get_child_blocks",
        .summary = "The blocks below a block or a loop, without those inside of them, in program "
                   "order.",
        .inputs = {{"block_or_loop", kLoopOrBlock}},
        .result = Result::kBlocks},
       [](const Step& s) {
         return values_of(s.is_loop(0) ? s.schedule.get_child_blocks(s.loop(0))
                                       : s.schedule.get_child_blocks(s.block(0)));
       }},
      {{.name = "get_producers",
        .summary = "The blocks that write what a block reads, in program order.",
        .inputs = {kOfBlock},
        .result = Result::kBlocks},
       [](const Step& s) { return values_of(s.schedule.get_producers(s.block(0))); }},
      {{.name = "get_consumers",
        .summary = "The blocks that read what a block writes, in program order.",
        .inputs = {kOfBlock},
        .result = Result::kBlocks},
       [](const Step& s) { return values_of(s.schedule.get_consumers(s.block(0))); }},
  };
}

std::vector<Row> at_random() {
  return {
      {{.name = "sample_categorical",
        .summary = "A number of several, each as likely as its part of all probabilities. Sizes "
                   "and numbers of other primitives may be expressions of it.",
        .inputs = {},
        .attrs = {{"candidates", kNumbers},
                  {"probs", kFloats, "one for each candidate"},
                  {"decision", kNumber, "which candidate; None: drawn", AttrValue()}},
        .result = Result::kNumber},
       [](const Step& s) {
         return Values{s.schedule.sample_categorical(
             s.numbers(0), s.floats(1),
             s.attr(2).is_none() ? std::nullopt : std::optional(s.number(2)))};
       }},
      {{.name = "sample_perfect_tile",
        .summary = "Factors for split, outermost first, whose product is the extent of the loop, a "
                   "constant. Each tiling is as likely as any other.",
        .inputs = {kOfLoop},
        .attrs = {{"n", kNumber, "how many"},
                  {"max_innermost_factor", kNumber, "", AttrValue(16)},
                  {"decision", kNumbers, "the factors; None: drawn", AttrValue()}},
        .result = Result::kNumbers},
       [](const Step& s) {
         return values_of(s.schedule.sample_perfect_tile(
             s.loop(0), s.number(0), s.number(1),
             s.attr(2).is_none() ? std::nullopt : std::optional(s.numbers(2))));
       }},
  };
}

std::vector<Row> on_loops() {
  return {
      {{.name = "split",
        .summary = "Cuts a loop into nested ones, the outermost first. Where the factors do not "
                   "divide its extent, blocks inside run under a predicate.",
        .inputs = {kOfLoop},
        .attrs = {{"factors", kExprs,
                   "extents of the new loops: integers and expressions of the function's "
                   "dimensions; one may be None: it follows"}},
        .result = Result::kLoops},
       [](const Step& s) { return values_of(s.schedule.split(s.loop(0), s.exprs(0))); }},
      {{.name = "fuse",
        .summary = "One loop over the product of perfectly nested ones.",
        .inputs = {{"loops", kLoop, "from the outermost"}},
        .result = Result::kLoop,
        .is_variadic = true},
       [](const Step& s) { return Values{s.schedule.fuse(s.loops())}; }},
      {{.name = "merge",
        .summary = "One loop whose iterations do what those of the given ones do, which follow "
                   "each other and have the same extent: in each iteration first that of the first "
                   "one, then that of the next.",
        .inputs = {{"loops", kLoop, "in program order"}},
        .result = Result::kLoop,
        .is_variadic = true},
       [](const Step& s) { return Values{s.schedule.merge(s.loops())}; }},
      {{.name = "reorder",
        .summary = "Puts loops of one nest, without branches between them, in the given order.",
        .inputs = {{"loops", kLoop, "from the outermost"}},
        .is_variadic = true},
       effect([](const Step& s) { s.schedule.reorder(s.loops()); })},
      {{.name = "loop_partition",
        .summary = "Loops one after the other over [0, points[0]), [points[0], points[1]), ..., "
                   "each of which starts at 0 again. Blocks inside are copied, and renamed in all "
                   "parts but the first.",
        .inputs = {kOfLoop},
        .attrs = {{"points", kExprs, "where the loop is cut, in growing order"}},
        .result = Result::kLoops},
       [](const Step& s) { return values_of(s.schedule.loop_partition(s.loop(0), s.exprs(0))); }},
      {{.name = "add_unit_loop",
        .summary = "A loop of extent 1 around a block.",
        .inputs = {kOfBlock},
        .result = Result::kLoop},
       [](const Step& s) { return Values{s.schedule.add_unit_loop(s.block(0))}; }},
      {{.name = "parallel",
        .summary = "Lets the iterations of a loop run on several threads.",
        .inputs = {kOfLoop}},
       effect([](const Step& s) { s.schedule.parallel(s.loop(0)); })},
      {{.name = "vectorize",
        .summary = "Makes vectors of the iterations of a loop of constant extent.",
        .inputs = {kOfLoop}},
       effect([](const Step& s) { s.schedule.vectorize(s.loop(0)); })},
      {{.name = "unroll",
        .summary = "Writes out the iterations of a loop of constant extent.",
        .inputs = {kOfLoop}},
       effect([](const Step& s) { s.schedule.unroll(s.loop(0)); })},
      {{.name = "annotate",
        .summary = "Sets an annotation.",
        .inputs = {{"block_or_loop", kLoopOrBlock}},
        .attrs = {{"ann_key", kText}, {"ann_val", kAny}}},
       effect([](const Step& s) {
         if (s.is_loop(0))
           s.schedule.annotate(s.loop(0), s.text(0), s.attr(1));
         else
           s.schedule.annotate(s.block(0), s.text(0), s.attr(1));
       })},
      {{.name = "unannotate",
        .summary = "Removes an annotation.",
        .inputs = {{"block_or_loop", kLoopOrBlock}},
        .attrs = {{"ann_key", kText}}},
       effect([](const Step& s) {
         if (s.is_loop(0))
           s.schedule.unannotate(s.loop(0), s.text(0));
         else
           s.schedule.unannotate(s.block(0), s.text(0));
       })},
      {{.name = "software_pipeline",
        .summary = "Marks a loop as a software pipeline: its stages run at the same time on "
                   "iterations one after the other. The marks are annotations, and stand in the "
                   "trace as these.",
        .inputs = {kOfLoop},
        .attrs = {{"stages", kNumbers, "of each statement of its body"},
                  {"versions", kNumber, "of the buffers between stages, at least", AttrValue(2)}}},
       effect([](const Step& s) {
         software_pipeline(s.schedule, s.loop(0), s.numbers(0), s.number(1));
       })},
  };
}

std::vector<Row> on_blocks() {
  return {
      {{.name = "fuse_block_iters",
        .summary = "Joins consecutive axes of a block into one. Its loops are made afresh, one for "
                   "each axis.",
        .inputs = {kOfBlock},
        .attrs = {{"first", kNumber, "of the axes that are joined"},
                  {"count", kNumber, "of them"}}},
       effect([](const Step& s) {
         s.schedule.fuse_block_iters(s.block(0), s.number(0), s.number(1));
       })},
      {{.name = "split_block_iter",
        .summary = "Cuts an axis of a block in two. Where the factor does not divide its extent, "
                   "the domain grows.",
        .inputs = {kOfBlock},
        .attrs = {{"axis", kNumber}, {"factor", kNumber, "the extent of the inner one"}}},
       effect([](const Step& s) {
         s.schedule.split_block_iter(s.block(0), s.number(0), s.number(1));
       })},
      {{.name = "simplify_block_iters",
        .summary = "Drops axes of extent 1. The block's loops are made afresh, one for each axis "
                   "that is left.",
        .inputs = {kOfBlock}},
       effect([](const Step& s) { s.schedule.simplify_block_iters(s.block(0)); })},
      {{.name = "reorder_block_iters",
        .summary = "Puts the axes of a block in another order. Its loops are made afresh.",
        .inputs = {kOfBlock},
        .attrs = {{"order", kNumbers, "the old position of each axis"}}},
       effect([](const Step& s) { s.schedule.reorder_block_iters(s.block(0), s.numbers(0)); })},
      {{.name = "pad_reduction",
        .summary = "Lets a reduction axis run up to the next multiple of a factor. What is beyond "
                   "its end adds the neutral element.",
        .inputs = {kOfBlock},
        .attrs = {{"axis", kNumber}, {"factor", kNumber}}},
       effect(
           [](const Step& s) { s.schedule.pad_reduction(s.block(0), s.number(0), s.number(1)); })},
      {{.name = "pad_einsum",
        .summary = "Lets the axes of a sum of products run up to the next multiples of `padding`. "
                   "Operands are copied into larger buffers before it, the result out of one after "
                   "it.",
        .inputs = {kOfBlock},
        .attrs = {{"padding", kNumbers, "one for each axis"}}},
       effect([](const Step& s) { s.schedule.pad_einsum(s.block(0), s.numbers(0)); })},
      {{.name = "decompose_padding",
        .summary =
            "Cuts a block that stores a value inside and a constant outside in two below a "
            "loop: the constant everywhere, then the value. Gives the block of the constant.",
        .inputs = {kOfBlock, kOfLoop},
        .result = Result::kBlock},
       [](const Step& s) { return Values{s.schedule.decompose_padding(s.block(0), s.loop(1))}; }},
      {{.name = "blockize",
        .summary = "Makes a block of a loop that holds loops around one block. Primitives that "
                   "move blocks take it as a whole.",
        .inputs = {kOfLoop},
        .result = Result::kBlock},
       [](const Step& s) { return Values{s.schedule.blockize(s.loop(0))}; }},
      {{.name = "tensorize",
        .summary = "Puts a call of a kernel in the place of a block made by blockize, or of what "
                   "blockize makes of a loop, which must be what the kernel's description says.",
        .inputs = {{"block_or_loop", kLoopOrBlock}},
        .attrs = {{"tensor_intrin", kText, "the name of the kernel"}}},
       effect(tensorize)},
      {{.name = "compute_at",
        .summary = "Computes a producer where its consumers below a loop need it, as much as they "
                   "need.",
        .inputs = {kOfBlock, kOfLoop}},
       effect([](const Step& s) { s.schedule.compute_at(s.block(0), s.loop(1)); })},
      {{.name = "reverse_compute_at",
        .summary = "Computes a consumer right after what its producers below a loop have written.",
        .inputs = {kOfBlock, kOfLoop}},
       effect([](const Step& s) { s.schedule.reverse_compute_at(s.block(0), s.loop(1)); })},
      {{.name = "compute_inline",
        .summary = "Puts the value of an element-wise block in the place of every read of it.",
        .inputs = {kOfBlock}},
       effect([](const Step& s) { s.schedule.compute_inline(s.block(0)); })},
      {{.name = "reverse_compute_inline",
        .summary = "Puts an element-wise consumer in the place of its producer's store.",
        .inputs = {kOfBlock}},
       effect([](const Step& s) { s.schedule.reverse_compute_inline(s.block(0)); })},
      {{.name = "decompose_reduction",
        .summary = "Splits a reduction into its start, before a loop, and its update. Gives the "
                   "block of the start.",
        .inputs = {kOfBlock, kOfLoop},
        .result = Result::kBlock},
       [](const Step& s) { return Values{s.schedule.decompose_reduction(s.block(0), s.loop(1))}; }},
      {{.name = "rfactor",
        .summary = "Partial results for each iteration of a loop over the reduction, which the "
                   "block then joins. Gives the block of the partial results.",
        .inputs = {kOfLoop},
        .result = Result::kBlock},
       [](const Step& s) { return Values{s.schedule.rfactor(s.loop(0))}; }},
      {{.name = "winograd",
        .summary = "Computes a convolution of 3 x 3 taps of stride 1 by Winograd's form, which "
                   "rounds otherwise. Gives the blocks around the products: two of the filters, "
                   "three of the patches, two of the result.",
        .inputs = {kOfBlock},
        .attrs = {{"tile", kNumber, "rows and columns of outputs: 2, 4 or 6"},
                  {"block_tiles", kNumber, "tiles of a block, the outermost axis of what follows"}},
        .result = Result::kBlocks},
       [](const Step& s) {
         return values_of(s.schedule.winograd(s.block(0), s.number(0), s.number(1)));
       }},
  };
}

std::vector<Row> on_buffers() {
  return {
      {{.name = "cache_read",
        .summary = "A copy of a region that a block reads, made before it. Gives the block of the "
                   "copy.",
        .inputs = {kOfBlock},
        .attrs = {kRead, kScope},
        .result = Result::kBlock},
       [](const Step& s) {
         return Values{s.schedule.cache_read(s.block(0), s.number(0), s.text(1))};
       }},
      {{.name = "cache_write",
        .summary = "Lets a block write a new buffer, which a copy after it puts in place. Gives "
                   "the block of the copy.",
        .inputs = {kOfBlock},
        .attrs = {kWrite, kScope},
        .result = Result::kBlock},
       [](const Step& s) {
         return Values{s.schedule.cache_write(s.block(0), s.number(0), s.text(1))};
       }},
      {{.name = "reindex_cache_read",
        .summary = "cache_read into a buffer indexed by axes of the block: a packed copy.",
        .inputs = {kOfBlock},
        .attrs = {kRead,
                  kScope,
                  {"axes", kNumbers, "of the block, in the order of the dimensions"}},
        .result = Result::kBlock},
       [](const Step& s) {
         return Values{
             s.schedule.reindex_cache_read(s.block(0), s.number(0), s.text(1), s.numbers(2))};
       }},
      {{.name = "transform_layout",
        .summary = "Stores an intermediate in another layout, everywhere. Where the map does not "
                   "take up whole extents, these are rounded up.",
        .inputs = {kOfBlock},
        .attrs = {{"buffer", kBuffer, "of the block: (\"read\", i) or (\"write\", i)"},
                  {"index_map", kIndexMap,
                   "from the indices of a place to those that it gets: lambda i, j: (j, i)"},
                  {"pad_value", kScalar, "of the places that rounding up adds; None: anything",
                   AttrValue()}}},
       effect(transform_layout)},
      {{.name = "set_scope",
        .summary = "Gives a buffer another scope.",
        .inputs = {kOfBlock},
        .attrs = {{"buffer_index", kNumber, "of the regions that the block writes"},
                  {"storage_scope", kText}}},
       effect([](const Step& s) { s.schedule.set_scope(s.block(0), s.number(0), s.text(1)); })},
      {{.name = "storage_align",
        .summary = "Rounds the stride of a dimension up to factor * k + offset.",
        .inputs = {kOfBlock},
        .attrs = {{"buffer_index", kNumber, "of the regions that the block writes"},
                  {"axis", kNumber, "the dimension"},
                  {"factor", kNumber},
                  {"offset", kNumber}}},
       effect([](const Step& s) {
         s.schedule.storage_align(s.block(0), s.number(0), s.number(1), s.number(2), s.number(3));
       })},
      {{.name = "prefetch",
        .summary = "A hint in each iteration of a loop to bring into cache what a block will read "
                   "later.",
        .inputs = {kOfBlock,
                   {"loop", kLoop, "where the hint stands"},
                   {"ahead", kLoop, "whose iterations are counted"}},
        .attrs = {kRead,
                  {"distance", kNumber, "iterations of `ahead`"},
                  {"locality", kNumber, "3: into the first cache, 2: into the second",
                   int64_t{2}}}},
       effect([](const Step& s) {
         s.schedule.prefetch(s.block(0), s.number(0), s.loop(1), s.loop(2), s.number(1),
                             s.number(2));
       })},
      {{.name = "prefetch_spread",
        .summary = "As prefetch, where the iterations of a loop around read the same lines: each "
                   "asks for some of them.",
        .inputs = {kOfBlock,
                   {"loop", kLoop, "where the hint stands"},
                   {"ahead", kLoop, "whose iterations are counted"},
                   {"over", kLoop, "whose iterations share the work"}},
        .attrs = {kRead,
                  {"distance", kNumber, "iterations of `ahead`"},
                  {"elements", kNumber, "of a run of lines that one iteration asks for"},
                  {"first", kNumber, "run of iteration 0"},
                  {"runs", kNumber, "in all"}}},
       effect([](const Step& s) {
         s.schedule.prefetch_spread(s.block(0), s.number(0), s.loop(1), s.loop(2), s.number(1),
                                    s.loop(3), s.number(2), s.number(3), s.number(4));
       })},
  };
}

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = [] {
    std::vector<Row> all;
    for (const auto subject : {finding, at_random, on_loops, on_blocks, on_buffers}) {
      std::vector<Row> some = subject();
      std::move(some.begin(), some.end(), std::back_inserter(all));
    }
    return all;
  }();
  return kRows;
}

}  // namespace

const std::vector<Primitive>& all_primitives() {
  static const std::vector<Primitive> kAll = [] {
    std::vector<Primitive> out;
    for (const Row& row : rows()) out.push_back(row.primitive);
    return out;
  }();
  return kAll;
}

const Primitive* find_primitive(const std::string& name) {
  for (const Primitive& primitive : all_primitives())
    if (primitive.name == name) return &primitive;
  return nullptr;
}

std::vector<TraceValue> apply(Schedule& schedule, const Primitive& primitive,
                              const std::vector<TraceValue>& inputs,
                              const std::vector<AttrValue>& attrs, const TensorIntrins& intrins) {
  const size_t row = static_cast<size_t>(&primitive - all_primitives().data());
  check(row < rows().size(), "a primitive that is not of the table");
  check(attrs.size() == primitive.attrs.size(), "a primitive with other arguments than its row");
  for (size_t i = 0; i < attrs.size(); ++i)
    check(!misfit_of_attr(primitive, i, attrs[i]), "an argument of another kind than its row says");
  // The primitive is given numbers; the trace states what they are of.
  std::vector<AttrValue> known = attrs;
  std::vector<size_t> of_numbers;
  for (size_t i = 0; i < attrs.size(); ++i) {
    const Primitive::Parameter& attr = primitive.attrs.at(i);
    if (auto value = schedule.with_numbers(attrs[i])) {
      known[i] = std::move(*value);
      of_numbers.push_back(i);
    }
    if (!is_known(known[i], attr.kind))
      throw CompileError(kBadArgument, schedule.func()->origin,
                         "`{}` of `{}` is {}; expected {} that is known now", attr.name,
                         primitive.name, text_of(known[i]), words_of(attr.kind));
  }
  std::vector<TraceValue> results = rows()[row].apply({schedule, inputs, known, intrins});
  for (const size_t i : of_numbers) schedule.trace_.restate(primitive.attrs[i].name, attrs[i]);
  return results;
}

}  // namespace tenon::tir
