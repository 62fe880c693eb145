// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/story.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tenon/backend/c/names.h"
#include "tenon/driver/console.h"
#include "tenon/graph/expr.h"
#include "tenon/graph/op.h"
#include "tenon/script/printer.h"
#include "tenon/support/nearest.h"
#include "tenon/tir/extern_function.h"
#include "tenon/tir/stmt.h"

namespace tenon {

static void each_part(const Origin& origin, const std::function<void(const Origin&)>& visit) {
  if (!origin) return;
  if (origin->kind != OriginInfo::Kind::kMerged) visit(origin);
  for (const Origin& part : origin->parts) each_part(part, visit);
}

static Origin origin_of(const graph::Binding& binding) {
  return binding.origin ? binding.origin : binding.value->origin;
}

std::vector<std::string> node_names(const IRModule& module) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && seen.insert(name).second) names.push_back(name);
  };
  for (const auto& [name, function] : module.functions())
    walk<graph::Binding>(function, [&](const graph::Binding& binding) {
      each_part(origin_of(binding), [&](const Origin& part) { add(part->node_name); });
    });
  if (const auto main = module.find<graph::Function>("main"))
    walk<graph::Binding>(main, [&](const graph::Binding& binding) { add(binding.var->name); });
  return names;
}

Story::Story(std::string node, const IRModule& imported) : node_(std::move(node)) {
  for (const auto& [name, function] : imported.functions())
    walk<graph::Binding>(function, [&](const graph::Binding& binding) {
      each_part(origin_of(binding), [&](const Origin& part) {
        if (part->kind == OriginInfo::Kind::kModel && part->node_name == node_)
          origin_ = part.str();
      });
    });
  if (origin_.empty())
    if (const auto main = imported.find<graph::Function>("main"))
      walk<graph::Binding>(main, [&](const graph::Binding& binding) {
        if (binding.var->name != node_) return;
        is_variable_ = true;
        // What is made of it has the origin of the one or the other.
        for (const Origin& origin : {binding.value->origin, binding.origin})
          each_part(origin, [&](const Origin& part) {
            places_.insert(part.str());
            origin_ = part.str();
          });
        if (places_.empty()) origin_ = "`main`";
      });
  if (origin_.empty()) {
    throw CompileError(kUndefined, {}, "the model has no node `{}`{}", node_,
                       did_you_mean(node_, node_names(imported)));
  }
  steps_.push_back({"", lines_in(imported)});
}

bool Story::is_about(const Origin& origin) const {
  bool found = false;
  each_part(origin, [&](const Origin& part) {
    found |= is_variable_ ? places_.count(part.str()) != 0
                          : part->kind == OriginInfo::Kind::kModel && part->node_name == node_;
  });
  return found;
}

// A value as one line.
static std::string line_of(const NodePtr& node) {
  constexpr size_t kLongest = 300;
  script::PrintOptions options;
  options.inline_elements = 4;
  std::string text = script::print(node, options);
  for (char& c : text)
    if (c == '\n') c = ' ';
  while (!text.empty() && text.back() == ' ') text.pop_back();
  if (text.size() > kLongest) text = text.substr(0, kLongest) + " ...";
  return text;
}

// The calls of a lowered entry, also of its pieces.
static void each_call(const IRModule& module, const NodePtr& body,
                      const std::function<void(const tir::CallTir&)>& visit) {
  walk_if(body, [&](const NodePtr& node) {
    const auto* call = node.as<tir::CallTir>();
    if (!call) return !node.as<ExprNode>();
    const auto callee = module.find<tir::PrimFunc>(call->callee->name);
    if (callee && callee->attrs.flag("tenon.part"))
      each_call(module, callee->body, visit);
    else
      visit(*call);
    return false;
  });
}

std::vector<std::string> Story::lines_in(const IRModule& module) {
  std::vector<std::string> lines;
  for (const auto& [name, function] : module.functions()) {
    if (!function.as<graph::Function>()) continue;
    walk<graph::Binding>(function, [&, &in = name](const graph::Binding& binding) {
      if (!is_about(origin_of(binding))) return;
      if (is_variable_ && steps_.empty() && binding.var->name != node_) return;
      const std::string place = in == "main" ? "" : "in " + in + ": ";
      lines.push_back(fmt::format("{}{}: {} = {}", place, binding.var->name,
                                  graph::str(binding.var->type), line_of(binding.value)));
    });
  }
  if (const auto main = module.find<tir::PrimFunc>("main"))
    each_call(module, main->body, [&](const tir::CallTir& call) {
      if (!is_about(call.origin)) return;
      std::string args;
      for (const NodePtr& arg : call.args) {
        const auto* region = arg.as<tir::BufferRegion>();
        args += (args.empty() ? "" : ", ") + (region ? region->buffer->name : line_of(arg));
      }
      lines.push_back(fmt::format("{}({})", call.callee->name, args));
    });
  return lines;
}

// What the node was fused into, and with what.
void Story::find_group(const IRModule& module) {
  for (const auto& [name, base] : module.functions()) {
    const auto function = cast<graph::Function>(base);
    if (!function || !function->attrs.flag("Primitive")) continue;
    bool is_in = false;
    std::vector<std::string> nodes;
    walk<graph::Binding>(function->body, [&](const graph::Binding& binding) {
      if (!binding.value.as<graph::Call>()) return;
      is_in |= is_about(origin_of(binding));
      const std::string node = origin_of(binding) ? origin_of(binding).name() : binding.var->name;
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
    });
    if (is_in) groups_.push_back({name, std::move(nodes)});
  }
}

// Where a buffer of the entry lies, once memory is planned.
static std::string place_of(const Expr& data) {
  const auto* call = data.as<Call>();
  const auto* element = call && call->is(IntrinsicId::kAddressOf) && !call->args.empty()
                            ? call->args[0].as<tir::BufferLoad>()
                            : nullptr;
  if (!element || element->indices.size() != 1) return "";
  const auto* offset = element->indices[0].as<IntImm>();
  return fmt::format("{} + {}", element->buffer->name,
                     offset ? std::to_string(offset->value) : line_of(element->indices[0]));
}

static int64_t bytes_of(const tir::Buffer& buffer) {
  int64_t bytes = buffer.dtype.bytes();
  for (const Expr& dim : buffer.shape) {
    const auto* size = dim.as<IntImm>();
    if (!size) return -1;
    bytes *= size->value;
  }
  return bytes;
}

void Story::find_calls(const IRModule& module, const BaseFunc& main) {
  kernels_.clear();
  libraries_.clear();
  buffers_.clear();
  std::unordered_map<const Node*, std::string> places;  // by buffer
  std::unordered_map<std::string, std::string> by_data;
  const auto* entry = main.as<tir::PrimFunc>();
  for (const Ref<tir::Buffer>& buffer : entry->buffers)
    if (buffer) places[buffer.get()] = "the caller's";
  walk(entry->body, [&](const NodePtr& node) {
    if (const auto* view = node.as<tir::DeclBuffer>()) {
      std::string place = place_of(view->data);
      if (place.empty() && by_data.count(line_of(view->data)))
        place = by_data.at(line_of(view->data));
      places[view->buffer.get()] = place;
      by_data[line_of(view->buffer->data)] = place;
    } else if (const auto* constant = node.as<tir::AllocConst>()) {
      places[constant->buffer.get()] = "constants";
    }
  });
  std::set<const Node*> seen;
  each_call(module, entry->body, [&](const tir::CallTir& call) {
    if (!is_about(call.origin)) return;
    const std::string& name = call.callee->name;
    if (const auto foreign = module.find<tir::ExternFunction>(name)) {
      libraries_.push_back(foreign->symbol);
    } else if (std::find(kernels_.begin(), kernels_.end(), name) == kernels_.end()) {
      kernels_.push_back(name);
    }
    for (const NodePtr& arg : call.args) {
      const auto* region = arg.as<tir::BufferRegion>();
      if (!region || !seen.insert(region->buffer.get()).second) continue;
      const auto place = places.find(region->buffer.get());
      buffers_.push_back({region->buffer->name, place == places.end() ? "" : place->second,
                          bytes_of(*region->buffer)});
    }
  });
}

void Story::after(const Pass& pass, const IRModule& module) {
  if (pass.name == "FuseOps") {
    groups_.clear();
    find_group(module);
  }
  // Buffers are cut in pieces, and names change, once memory is planned.
  const BaseFunc main = module.find("main");
  if (main && main.as<tir::PrimFunc>() && (!is_planned_ || pass.name == "PlanMemory"))
    find_calls(module, main);
  is_planned_ |= pass.name == "PlanMemory";
  std::vector<std::string> lines = lines_in(module);
  if (lines != steps_.back().lines) steps_.push_back({pass.name, std::move(lines)});
}

void Story::finish(const std::vector<Remark>& remarks, const Target& target) {
  std::set<std::string> names(kernels_.begin(), kernels_.end());
  for (const Group& group : groups_) names.insert(group.function);
  for (const Place& buffer : buffers_) names.insert(buffer.name);
  // A kernel that works in place may be a copy under a name of its own.
  for (const Remark& remark : remarks)
    if (remark.pass == "DataflowUseInplaceCalls" && is_about(remark.origin))
      names.insert(remark.subject);
  for (const Remark& remark : remarks)
    if (is_about(remark.origin) || remark.subject == node_ ||
        (names.count(remark.subject) && remark.pass == "DefaultSchedule"))
      remarks_.push_back(remark);
  for (Placement& placement : placements_of(remarks))
    if (is_about(placement.origin) || placement.node == node_)
      placements_.push_back(std::move(placement));
  for (const std::string& kernel : kernels_)
    symbols_.push_back(target.kind == "c" ? c_backend::c_identifier(kernel) : "fn." + kernel);
  symbols_.insert(symbols_.end(), libraries_.begin(), libraries_.end());
}

static std::string list_of(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

// What was decided about an operator.
static bool is_placement(const Remark& remark) {
  return remark.pass == kPlacementRemark || remark.pass == "AnnotatePlacement" ||
         (remark.decision && remark.decision->step != Decision::Step::kKernels &&
          remark.decision->kind != Decision::Kind::kDivided &&
          remark.decision->kind != Decision::Kind::kScratch);
}

static std::string remark_line(const Remark& remark) {
  std::string line = remark.verdict;
  if (!remark.reason.empty()) line += " (" + remark.reason + ")";
  if (!remark.detail.empty()) line += ": " + remark.detail;
  return line;
}

std::string Story::text() const {
  std::string out;
  const auto add = [&](const std::string& title, const std::string& line) {
    out += fmt::format("{:<12} {}\n", title, line);
  };
  add("node", node_);
  add("from", origin_);
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    const std::string title = i == 0 ? "imported as" : "after " + step.pass;
    if (i > 0 && step.lines.empty()) {
      out += title + ": nothing is left of it\n";
      continue;
    }
    if (i > 0) out += title + "\n";
    for (size_t l = 0; l < step.lines.size(); ++l)
      add(i == 0 && l == 0 ? title : "", step.lines[l]);
  }
  for (size_t i = 0; i < placements_.size(); ++i)
    add(i == 0 ? "placement" : "", str(placements_[i]));
  if (placements_.empty())
    add("placement",
        "own code: there is no other provider (--libs, --plugin, --call-by-name, "
        "--kernels)");
  for (const Group& group : groups_)
    add("fused into", group.function + ": " + list_of(group.nodes));
  if (!kernels_.empty()) add("kernel", list_of(kernels_));
  for (const Remark& remark : remarks_)
    if (remark.pass == "DefaultSchedule")
      add(remark.choice.empty() ? "schedule" : "plan", remark.subject + " " + remark_line(remark));
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const Place& buffer = buffers_[i];
    add(i == 0 ? "buffers" : "",
        fmt::format("{}: {}{}", buffer.name,
                    buffer.bytes < 0 ? "symbolic size" : bytes_text(buffer.bytes),
                    buffer.where.empty() ? "" : ", " + buffer.where));
  }
  if (!symbols_.empty()) add("symbols", list_of(symbols_));
  bool is_first = true;
  for (const Remark& remark : remarks_) {
    if (is_placement(remark) || remark.pass == "DefaultSchedule") continue;
    add(is_first ? "remarks" : "", remark.pass + ": " + remark.subject + " " + remark_line(remark));
    is_first = false;
  }
  return out;
}

nlohmann::ordered_json Story::json() const {
  using Json = nlohmann::ordered_json;
  Json json = {{"node", node_}, {"origin", origin_}, {"imported", steps_[0].lines}};
  json["steps"] = Json::array();
  for (size_t i = 1; i < steps_.size(); ++i)
    json["steps"].push_back({{"pass", steps_[i].pass}, {"lines", steps_[i].lines}});
  json["groups"] = Json::array();
  for (const Group& group : groups_)
    json["groups"].push_back({{"function", group.function}, {"nodes", group.nodes}});
  json["kernels"] = kernels_;
  json["libraries"] = libraries_;
  json["plans"] = Json::array();
  for (const Remark& remark : remarks_)
    if (remark.pass == "DefaultSchedule" && !remark.choice.empty())
      json["plans"].push_back(Json::parse(remark.choice));
  json["buffers"] = Json::array();
  for (const Place& buffer : buffers_) {
    json["buffers"].push_back({{"name", buffer.name}, {"where", buffer.where}, {"bytes", nullptr}});
    if (buffer.bytes >= 0) json["buffers"].back()["bytes"] = buffer.bytes;
  }
  json["symbols"] = symbols_;
  json["placements"] = Json::array();
  for (const Placement& placement : placements_) json["placements"].push_back(json_of(placement));
  json["remarks"] = Json::array();
  for (const Remark& remark : remarks_) json["remarks"].push_back(json_of(remark));
  return json;
}

nlohmann::ordered_json json_of(const Remark& remark) {
  nlohmann::ordered_json numbers = nlohmann::ordered_json::object();
  for (const auto& [name, number] : remark.numbers) numbers[name] = number;
  nlohmann::ordered_json json = {{"pass", remark.pass},
                                 {"subject", remark.subject},
                                 {"verdict", remark.verdict},
                                 {"reason", remark.reason},
                                 {"numbers", numbers},
                                 {"detail", remark.detail},
                                 {"origin", remark.origin ? remark.origin.str() : ""}};
  if (!remark.choice.empty()) json["choice"] = nlohmann::ordered_json::parse(remark.choice);
  return json;
}

}  // namespace tenon
