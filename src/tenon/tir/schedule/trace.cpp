// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/trace.h"

#include <map>

#include "tenon/tir/schedule/edit.h"
#include "tenon/tir/schedule/primitives.h"

namespace tenon::tir {

namespace {

/// Names of handles as they print: b0, b1, ... and l0, l1, ...
class Names {
 public:
  std::string define(const TraceValue& value) {
    if (const auto* block = std::get_if<BlockRV>(&value))
      return blocks_[block->name] = fmt::format("b{}", block_count_++);
    // Expressions name these, so they keep their names.
    if (const auto* number = std::get_if<NumberRV>(&value)) return number->var->name;
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

}  // namespace

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

void Trace::restate(const std::string& key, const AttrValue& value) {
  for (auto& [name, stated] : instructions_.back().attrs)
    if (name == key) stated = value;
}

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
    const Primitive* primitive = find_primitive(step.name);
    if (primitive->gives_list() && step.outputs.size() == 1) results += ",";  // of one item
    if (!results.empty()) results += " = ";
    text += fmt::format("{}sch.{}({})\n", results, step.name, arguments);
  }
  return text;
}

void replay(const Trace& trace, Schedule& schedule) {
  const Origin& origin = schedule.func()->origin;
  Substitution symbols;
  for (size_t i = 0; i < trace.symbols.size() && i < schedule.trace().symbols.size(); ++i)
    symbols[trace.symbols[i].get()] = schedule.trace().symbols[i];
  std::map<const Node*, LoopRV> loops;
  std::map<std::string, BlockRV> blocks;
  for (const Instruction& step : trace.instructions()) {
    std::vector<TraceValue> inputs;
    for (const TraceValue& input : step.inputs) {
      const auto* loop = std::get_if<LoopRV>(&input);
      if (!loop) {
        const auto it = blocks.find(std::get<BlockRV>(input).name);
        inputs.push_back(it == blocks.end() ? input : TraceValue(it->second));
        continue;
      }
      const auto it = loops.find(loop->var.get());
      if (it == loops.end())
        illegal(origin, "the trace uses loop `{}` before it has it", loop->var->name);
      inputs.push_back(it->second);
    }
    std::vector<AttrValue> attrs;
    for (const auto& [key, value] : step.attrs) {
      attrs.push_back(value);
      FieldTraits<AttrValue>::map(attrs.back(),
                                  [&](const NodePtr& n) { return substitute(n, symbols); });
    }
    const std::vector<TraceValue> outputs =
        apply(schedule, *find_primitive(step.name), inputs, attrs, trace.intrins);
    if (!step.outputs.empty() && outputs.size() != step.outputs.size())  // a text may drop them
      illegal(origin, "`{}` gives {} results; the trace has {}", step.name, outputs.size(),
              step.outputs.size());
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (const auto* number = std::get_if<NumberRV>(&step.outputs[i]))
        symbols[number->var.get()] = std::get<NumberRV>(outputs[i]).var;
      else if (const auto* loop = std::get_if<LoopRV>(&step.outputs[i]))
        loops.insert_or_assign(loop->var.get(), std::get<LoopRV>(outputs[i]));
      else
        blocks.insert_or_assign(std::get<BlockRV>(step.outputs[i]).name,
                                std::get<BlockRV>(outputs[i]));
    }
  }
}

Schedule replay(const Trace& trace, const Ref<PrimFunc>& function) {
  Schedule schedule(function);
  replay(trace, schedule);
  return schedule;
}

}  // namespace tenon::tir
