// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/trace.h"

#include <functional>
#include <map>

#include "tenon/tir/schedule/edit.h"

namespace tenon::tir {

namespace {

/// Names of handles as they print: b0, b1, ... and l0, l1, ...
class Names {
 public:
  std::string define(const TraceValue& value) {
    if (const auto* block = std::get_if<BlockRV>(&value))
      return blocks_[block->name] = fmt::format("b{}", block_count_++);
    return loops_[std::get<LoopRV>(value).var.get()] = fmt::format("l{}", loop_count_++);
  }
  std::string use(const TraceValue& value) {
    if (const auto* block = std::get_if<BlockRV>(&value)) {
      const auto it = blocks_.find(block->name);
      return it != blocks_.end() ? it->second : fmt::format("sch.get_block(\"{}\")", block->name);
    }
    const auto it = loops_.find(std::get<LoopRV>(value).var.get());
    return it != loops_.end() ? it->second : "?";
  }

 private:
  std::map<std::string, std::string> blocks_;
  std::map<const Node*, std::string> loops_;
  int block_count_ = 0, loop_count_ = 0;
};

std::string text_of(const AttrValue& value) {
  if (const auto* node = value.as<NodePtr>())
    if (const Expr expr = cast<ExprNode>(*node)) return str(expr);
  if (const auto* list = value.as<AttrList>()) {
    std::string text = "[";
    for (const AttrValue& item : *list) text += (text.size() > 1 ? ", " : "") + text_of(item);
    return text + "]";
  }
  return value.str();
}

/// An attribute list as expressions, `None` as null.
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

/// As transform_layout records it: variables, and expressions of them.
IndexMap index_map_of(const AttrValue& value) {
  const AttrList& lists = *value.as<AttrList>();
  IndexMap map;
  for (const Expr& var : exprs_of(lists.at(0))) map.from.push_back(downcast<Var>(var));
  map.to = exprs_of(lists.at(1));
  return map;
}

}  // namespace

std::string Trace::str() const {
  Names names;
  std::string text;
  for (const Instruction& step : instructions_) {
    std::string arguments;
    for (const TraceValue& input : step.inputs)
      arguments += (arguments.empty() ? "" : ", ") + names.use(input);
    for (const auto& [key, value] : step.attrs)
      arguments += (arguments.empty() ? "" : ", ") +
                   fmt::format("{}={}", key,
                               key == "index_map" ? index_map_of(value).str() : text_of(value));
    std::string results;
    for (const TraceValue& output : step.outputs)
      results += (results.empty() ? "" : ", ") + names.define(output);
    if (step.name == "get_loops" && step.outputs.size() == 1) results += ",";
    if (!results.empty()) results += " = ";
    text += fmt::format("{}sch.{}({})\n", results, step.name, arguments);
  }
  return text;
}

namespace {

using Values = std::vector<TraceValue>;

std::vector<int64_t> ints_of(const AttrValue& value) {
  std::vector<int64_t> out;
  for (const AttrValue& item : *value.as<AttrList>()) out.push_back(*item.as<int64_t>());
  return out;
}

Values values_of(const std::vector<LoopRV>& loops) { return {loops.begin(), loops.end()}; }

struct Step {
  const Trace& trace;
  Schedule& schedule;
  const Values& inputs;
  const std::vector<std::pair<std::string, AttrValue>>& attrs;

  BlockRV block(size_t i) const { return std::get<BlockRV>(inputs.at(i)); }
  LoopRV loop(size_t i) const { return std::get<LoopRV>(inputs.at(i)); }
  std::vector<LoopRV> loops() const {
    std::vector<LoopRV> out;
    for (const TraceValue& v : inputs) out.push_back(std::get<LoopRV>(v));
    return out;
  }
  const AttrValue& attr(size_t i) const { return attrs.at(i).second; }
  int64_t number(size_t i) const { return *attr(i).as<int64_t>(); }
  std::string text(size_t i) const { return *attr(i).as<std::string>(); }
};

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

using enum TraceKind;

struct Applier {
  Primitive primitive;
  std::function<Values(const Step&)> apply;
};

/// How each primitive is applied from its record.
const std::vector<Applier>& appliers() {
  static const std::vector<Applier> kAppliers = {
      {{"get_block", {}, {{"name", kText}}, true},
       [](const Step& s) { return Values{s.schedule.get_block(s.text(0))}; }},
      {{"get_loops", {kBlock}, {}, false},
       [](const Step& s) { return values_of(s.schedule.get_loops(s.block(0))); }},
      {{"split", {kLoop}, {{"factors", kExprs}}, false},
       [](const Step& s) { return values_of(s.schedule.split(s.loop(0), exprs_of(s.attr(0)))); }},
      {{"fuse", {kLoops}, {}, false},
       [](const Step& s) { return Values{s.schedule.fuse(s.loops())}; }},
      {{"merge", {kLoops}, {}, false},
       [](const Step& s) { return Values{s.schedule.merge(s.loops())}; }},
      {{"reorder", {kLoops}, {}, false},
       [](const Step& s) { return s.schedule.reorder(s.loops()), Values{}; }},
      {{"loop_partition", {kLoop}, {{"points", kExprs}}, false},
       [](const Step& s) {
         return values_of(s.schedule.loop_partition(s.loop(0), exprs_of(s.attr(0))));
       }},
      {{"add_unit_loop", {kBlock}, {}, false},
       [](const Step& s) { return Values{s.schedule.add_unit_loop(s.block(0))}; }},
      {{"parallel", {kLoop}, {}, false},
       [](const Step& s) { return s.schedule.parallel(s.loop(0)), Values{}; }},
      {{"vectorize", {kLoop}, {}, false},
       [](const Step& s) { return s.schedule.vectorize(s.loop(0)), Values{}; }},
      {{"unroll", {kLoop}, {}, false},
       [](const Step& s) { return s.schedule.unroll(s.loop(0)), Values{}; }},
      {{"annotate", {kLoopOrBlock}, {{"ann_key", kText}, {"ann_val", kAny}}, false},
       [](const Step& s) {
         if (std::holds_alternative<LoopRV>(s.inputs[0]))
           s.schedule.annotate(s.loop(0), s.text(0), s.attr(1));
         else
           s.schedule.annotate(s.block(0), s.text(0), s.attr(1));
         return Values{};
       }},
      {{"unannotate", {kLoopOrBlock}, {{"ann_key", kText}}, false},
       [](const Step& s) {
         if (std::holds_alternative<LoopRV>(s.inputs[0]))
           s.schedule.unannotate(s.loop(0), s.text(0));
         else
           s.schedule.unannotate(s.block(0), s.text(0));
         return Values{};
       }},
      {{"tensorize", {kLoopOrBlock}, {{"tensor_intrin", kText}}, false},
       [](const Step& s) {
         const TensorIntrin& intrin = s.trace.intrins.at(s.text(0));
         if (std::holds_alternative<LoopRV>(s.inputs[0]))
           s.schedule.tensorize(s.loop(0), intrin);
         else
           s.schedule.tensorize(s.block(0), intrin);
         return Values{};
       }},
      {{"winograd", {kBlock}, {{"tile", kNumber}, {"block_tiles", kNumber}}, true},
       [](const Step& s) {
         const std::vector<BlockRV> made =
             s.schedule.winograd(s.block(0), s.number(0), s.number(1));
         return Values(made.begin(), made.end());
       }},
      {{"blockize", {kLoop}, {}, true},
       [](const Step& s) { return Values{s.schedule.blockize(s.loop(0))}; }},
      {{"pad_einsum", {kBlock}, {{"padding", kNumbers}}, false},
       [](const Step& s) {
         return s.schedule.pad_einsum(s.block(0), ints_of(s.attr(0))), Values{};
       }},
      {{"decompose_padding", {kBlock, kLoop}, {}, true},
       [](const Step& s) { return Values{s.schedule.decompose_padding(s.block(0), s.loop(1))}; }},
      {{"transform_layout",
        {kBlock},
        {{"buffer", kBuffer}, {"index_map", kIndexMap}, {"pad_value", kScalar}},
        false},
       [](const Step& s) {
         const AttrList& buffer = *s.attr(0).as<AttrList>();
         const BufferRole role =
             *buffer.at(0).as<std::string>() == "read" ? BufferRole::kRead : BufferRole::kWrite;
         const int64_t index = *buffer.at(1).as<int64_t>();
         s.schedule.transform_layout(
             s.block(0), role, index, index_map_of(s.attr(1)),
             pad_value_of(s.attr(2), *s.schedule.get(s.block(0)), role, index));
         return Values{};
       }},
      {{"fuse_block_iters", {kBlock}, {{"first", kNumber}, {"count", kNumber}}, false},
       [](const Step& s) {
         return s.schedule.fuse_block_iters(s.block(0), s.number(0), s.number(1)), Values{};
       }},
      {{"split_block_iter", {kBlock}, {{"axis", kNumber}, {"factor", kNumber}}, false},
       [](const Step& s) {
         return s.schedule.split_block_iter(s.block(0), s.number(0), s.number(1)), Values{};
       }},
      {{"pad_reduction", {kBlock}, {{"axis", kNumber}, {"factor", kNumber}}, false},
       [](const Step& s) {
         return s.schedule.pad_reduction(s.block(0), s.number(0), s.number(1)), Values{};
       }},
      {{"simplify_block_iters", {kBlock}, {}, false},
       [](const Step& s) { return s.schedule.simplify_block_iters(s.block(0)), Values{}; }},
      {{"reorder_block_iters", {kBlock}, {{"order", kNumbers}}, false},
       [](const Step& s) {
         return s.schedule.reorder_block_iters(s.block(0), ints_of(s.attr(0))), Values{};
       }},
      {{"compute_at", {kBlock, kLoop}, {}, false},
       [](const Step& s) { return s.schedule.compute_at(s.block(0), s.loop(1)), Values{}; }},
      {{"reverse_compute_at", {kBlock, kLoop}, {}, false},
       [](const Step& s) {
         return s.schedule.reverse_compute_at(s.block(0), s.loop(1)), Values{};
       }},
      {{"compute_inline", {kBlock}, {}, false},
       [](const Step& s) { return s.schedule.compute_inline(s.block(0)), Values{}; }},
      {{"reverse_compute_inline", {kBlock}, {}, false},
       [](const Step& s) { return s.schedule.reverse_compute_inline(s.block(0)), Values{}; }},
      {{"cache_read", {kBlock}, {{"read_buffer_index", kNumber}, {"storage_scope", kText}}, true},
       [](const Step& s) {
         return Values{s.schedule.cache_read(s.block(0), s.number(0), s.text(1))};
       }},
      {{"cache_write", {kBlock}, {{"write_buffer_index", kNumber}, {"storage_scope", kText}}, true},
       [](const Step& s) {
         return Values{s.schedule.cache_write(s.block(0), s.number(0), s.text(1))};
       }},
      {{"reindex_cache_read",
        {kBlock},
        {{"read_buffer_index", kNumber}, {"storage_scope", kText}, {"axes", kNumbers}},
        true},
       [](const Step& s) {
         return Values{
             s.schedule.reindex_cache_read(s.block(0), s.number(0), s.text(1), ints_of(s.attr(2)))};
       }},
      {{"set_scope", {kBlock}, {{"buffer_index", kNumber}, {"storage_scope", kText}}, false},
       [](const Step& s) {
         return s.schedule.set_scope(s.block(0), s.number(0), s.text(1)), Values{};
       }},
      {{"storage_align",
        {kBlock},
        {{"buffer_index", kNumber}, {"axis", kNumber}, {"factor", kNumber}, {"offset", kNumber}},
        false},
       [](const Step& s) {
         return s.schedule.storage_align(s.block(0), s.number(0), s.number(1), s.number(2),
                                         s.number(3)),
                Values{};
       }},
      {{"prefetch",
        {kBlock, kLoop, kLoop},
        {{"read_buffer_index", kNumber}, {"distance", kNumber}},
        false},
       [](const Step& s) {
         return s.schedule.prefetch(s.block(0), s.number(0), s.loop(1), s.loop(2), s.number(1)),
                Values{};
       }},
      {{"prefetch_spread",
        {kBlock, kLoop, kLoop, kLoop},
        {{"read_buffer_index", kNumber},
         {"distance", kNumber},
         {"elements", kNumber},
         {"first", kNumber},
         {"runs", kNumber}},
        false},
       [](const Step& s) {
         return s.schedule.prefetch_spread(s.block(0), s.number(0), s.loop(1), s.loop(2),
                                           s.number(1), s.loop(3), s.number(2), s.number(3),
                                           s.number(4)),
                Values{};
       }},
      {{"decompose_reduction", {kBlock, kLoop}, {}, true},
       [](const Step& s) { return Values{s.schedule.decompose_reduction(s.block(0), s.loop(1))}; }},
      {{"rfactor", {kLoop}, {}, true},
       [](const Step& s) { return Values{s.schedule.rfactor(s.loop(0))}; }},
  };
  return kAppliers;
}

const Applier& applier_of(const std::string& name) {
  for (const Applier& applier : appliers())
    if (applier.primitive.name == name) return applier;
  unreachable("a trace has a primitive that is not in the table");
}

}  // namespace

const std::vector<Primitive>& all_primitives() {
  static const std::vector<Primitive> kAll = [] {
    std::vector<Primitive> out;
    for (const Applier& applier : appliers()) out.push_back(applier.primitive);
    return out;
  }();
  return kAll;
}

const Primitive* find_primitive(const std::string& name) {
  for (const Primitive& primitive : all_primitives())
    if (primitive.name == name) return &primitive;
  return nullptr;
}

Schedule replay(const Trace& trace, const Ref<PrimFunc>& function) {
  Schedule schedule(function);
  Substitution symbols;
  for (size_t i = 0; i < trace.symbols.size() && i < schedule.trace().symbols.size(); ++i)
    symbols[trace.symbols[i].get()] = schedule.trace().symbols[i];
  std::map<const Node*, LoopRV> loops;
  std::map<std::string, BlockRV> blocks;
  for (const Instruction& step : trace.instructions()) {
    Values inputs;
    for (const TraceValue& input : step.inputs) {
      const auto* loop = std::get_if<LoopRV>(&input);
      if (!loop) {
        const auto it = blocks.find(std::get<BlockRV>(input).name);
        inputs.push_back(it == blocks.end() ? input : TraceValue(it->second));
        continue;
      }
      const auto it = loops.find(loop->var.get());
      if (it == loops.end())
        illegal(function->origin, "the trace uses loop `{}` before it has it", loop->var->name);
      inputs.push_back(it->second);
    }
    auto attrs = step.attrs;
    for (auto& [key, value] : attrs)
      FieldTraits<AttrValue>::map(value, [&](const NodePtr& n) { return substitute(n, symbols); });
    const Values outputs = applier_of(step.name).apply(Step{trace, schedule, inputs, attrs});
    if (!step.outputs.empty() && outputs.size() != step.outputs.size())  // a text may drop them
      illegal(function->origin, "`{}` gives {} results; the trace has {}", step.name,
              outputs.size(), step.outputs.size());
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (const auto* loop = std::get_if<LoopRV>(&step.outputs[i]))
        loops.insert_or_assign(loop->var.get(), std::get<LoopRV>(outputs[i]));
      else
        blocks.insert_or_assign(std::get<BlockRV>(step.outputs[i]).name,
                                std::get<BlockRV>(outputs[i]));
    }
  }
  return schedule;
}

}  // namespace tenon::tir
