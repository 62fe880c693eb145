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

void each_part(const Origin& origin, const std::function<void(const Origin&)>& visit) {
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

bool Storyteller::add_node(const std::string& node, const IRModule& imported) {
  std::string found;
  for (const auto& [name, function] : imported.functions())
    walk<graph::Binding>(function, [&](const graph::Binding& binding) {
      each_part(origin_of(binding), [&](const Origin& part) {
        if (part->kind == OriginInfo::Kind::kModel && part->node_name == node) found = part.str();
      });
    });
  if (found.empty()) return false;
  by_node_[node] = stories_.size();
  stories_.emplace_back().node = node;
  stories_.back().origin = found;
  return true;
}

bool Storyteller::add_variable(const std::string& name, const IRModule& imported) {
  const auto main = imported.find<graph::Function>("main");
  if (!main) return false;
  const size_t index = stories_.size();
  bool is_found = false;
  std::string origin;
  walk<graph::Binding>(main, [&](const graph::Binding& binding) {
    if (binding.var->name != name) return;
    is_found = true;
    // What is made of it has the origin of the one or the other.
    for (const Origin& each : {binding.value->origin, binding.origin})
      each_part(each, [&](const Origin& part) {
        std::vector<size_t>& of = by_place_[part.str()];
        if (std::find(of.begin(), of.end(), index) == of.end()) of.push_back(index);
        origin = part.str();
      });
  });
  if (!is_found) return false;
  stories_.emplace_back().node = name;
  stories_.back().origin = origin.empty() ? "`main`" : origin;
  return true;
}

void Storyteller::begin(const IRModule& imported) {
  std::vector<std::vector<std::string>> lines = lines_in(imported);
  for (size_t i = 0; i < stories_.size(); ++i)
    stories_[i].steps.push_back({"", std::move(lines[i])});
}

Storyteller::Storyteller(const std::string& node, const IRModule& imported) {
  if (!add_node(node, imported) && !add_variable(node, imported)) {
    throw CompileError(kUndefined, {}, "the model has no node `{}`{}", node,
                       did_you_mean(node, node_names(imported)));
  }
  begin(imported);
}

Storyteller::Storyteller(const IRModule& imported) {
  const auto add = [&](const Origin& part) {
    if (part->kind != OriginInfo::Kind::kModel || part->node_name.empty()) return;
    if (!by_node_.emplace(part->node_name, stories_.size()).second) return;
    stories_.emplace_back().node = part->node_name;
    stories_.back().origin = part.str();
  };
  for (const auto& [name, function] : imported.functions())
    walk<graph::Binding>(
        function, [&](const graph::Binding& binding) { each_part(origin_of(binding), add); });
  const auto main = imported.find<graph::Function>("main");
  if (stories_.empty() && main) {
    std::set<std::string> names;
    walk<graph::Binding>(main, [&](const graph::Binding& binding) {
      if (names.insert(binding.var->name).second) add_variable(binding.var->name, imported);
    });
  }
  begin(imported);
}

std::set<size_t> Storyteller::about(const Origin& origin) const {
  std::set<size_t> found;
  each_part(origin, [&](const Origin& part) {
    if (part->kind == OriginInfo::Kind::kModel)
      if (const auto it = by_node_.find(part->node_name); it != by_node_.end())
        found.insert(it->second);
    if (by_place_.empty()) return;
    if (const auto it = by_place_.find(part.str()); it != by_place_.end())
      found.insert(it->second.begin(), it->second.end());
  });
  return found;
}

// A value as one line.
static std::string print_line(const NodePtr& node) {
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

const std::string& Storyteller::line_of(const NodePtr& node) {
  const auto [it, is_new] = printed_.try_emplace(node.get(), node, "");
  if (is_new) it->second.second = print_line(node);
  return it->second.second;
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

// For each story.
std::vector<std::vector<std::string>> Storyteller::lines_in(const IRModule& module) {
  std::vector<std::vector<std::string>> lines(stories_.size());
  for (const auto& [name, function] : module.functions()) {
    if (!function.as<graph::Function>()) continue;
    walk<graph::Binding>(function, [&, &in = name](const graph::Binding& binding) {
      for (const size_t story : about(origin_of(binding))) {
        // As imported, a variable is the binding of its name.
        if (!by_place_.empty() && stories_[story].steps.empty() &&
            binding.var->name != stories_[story].node)
          continue;
        const std::string place = in == "main" ? "" : "in " + in + ": ";
        lines[story].push_back(fmt::format("{}{}: {} = {}", place, binding.var->name,
                                           graph::str(binding.var->type), line_of(binding.value)));
      }
    });
  }
  if (const auto main = module.find<tir::PrimFunc>("main"))
    each_call(module, main->body, [&](const tir::CallTir& call) {
      const std::set<size_t> stories = about(call.origin);
      if (stories.empty()) return;
      std::string args;
      for (const NodePtr& arg : call.args) {
        const auto* region = arg.as<tir::BufferRegion>();
        args += (args.empty() ? "" : ", ") + (region ? region->buffer->name : print_line(arg));
      }
      for (const size_t story : stories)
        lines[story].push_back(fmt::format("{}({})", call.callee->name, args));
    });
  return lines;
}

// What the nodes were fused into, and with what.
void Storyteller::find_groups(const IRModule& module) {
  for (const auto& [name, base] : module.functions()) {
    const auto function = cast<graph::Function>(base);
    if (!function || !function->attrs.flag("Primitive")) continue;
    std::set<size_t> stories;
    std::vector<std::string> nodes;
    walk<graph::Binding>(function->body, [&](const graph::Binding& binding) {
      if (!binding.value.as<graph::Call>()) return;
      stories.merge(about(origin_of(binding)));
      const std::string node = origin_of(binding) ? origin_of(binding).name() : binding.var->name;
      if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
    });
    for (const size_t story : stories) stories_[story].groups.push_back({name, nodes});
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
                     offset ? std::to_string(offset->value) : print_line(element->indices[0]));
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

void Storyteller::find_calls(const IRModule& module, const BaseFunc& main) {
  for (Story& story : stories_) {
    story.kernels.clear();
    story.libraries.clear();
    story.buffers.clear();
  }
  std::unordered_map<const Node*, std::string> places;  // by buffer
  std::unordered_map<std::string, std::string> by_data;
  const auto* entry = main.as<tir::PrimFunc>();
  for (const Ref<tir::Buffer>& buffer : entry->buffers)
    if (buffer) places[buffer.get()] = "the caller's";
  walk(entry->body, [&](const NodePtr& node) {
    if (const auto* view = node.as<tir::DeclBuffer>()) {
      std::string place = place_of(view->data);
      if (place.empty()) {
        const auto known = by_data.find(print_line(view->data));
        if (known != by_data.end()) place = known->second;
      }
      places[view->buffer.get()] = place;
      by_data[print_line(view->buffer->data)] = place;
    } else if (const auto* constant = node.as<tir::AllocConst>()) {
      places[constant->buffer.get()] = "constants";
    }
  });
  std::set<std::pair<size_t, const Node*>> seen;
  each_call(module, entry->body, [&](const tir::CallTir& call) {
    for (const size_t index : about(call.origin)) {
      Story& story = stories_[index];
      const std::string& name = call.callee->name;
      if (const auto foreign = module.find<tir::ExternFunction>(name)) {
        story.libraries.push_back(foreign->symbol);
      } else if (std::find(story.kernels.begin(), story.kernels.end(), name) ==
                 story.kernels.end()) {
        story.kernels.push_back(name);
      }
      for (const NodePtr& arg : call.args) {
        const auto* region = arg.as<tir::BufferRegion>();
        if (!region || !seen.emplace(index, region->buffer.get()).second) continue;
        const auto place = places.find(region->buffer.get());
        story.buffers.push_back({region->buffer->name, place == places.end() ? "" : place->second,
                                 bytes_of(*region->buffer)});
      }
    }
  });
}

void Storyteller::after(const Pass& pass, const IRModule& module) {
  if (pass.name == "FuseOps") {
    for (Story& story : stories_) story.groups.clear();
    find_groups(module);
  }
  // Buffers are cut in pieces, and names change, once memory is planned.
  const BaseFunc main = module.find("main");
  if (main && main.as<tir::PrimFunc>() && (!is_planned_ || pass.name == "PlanMemory"))
    find_calls(module, main);
  is_planned_ |= pass.name == "PlanMemory";
  std::vector<std::vector<std::string>> lines = lines_in(module);
  for (size_t i = 0; i < stories_.size(); ++i)
    if (lines[i] != stories_[i].steps.back().lines)
      stories_[i].steps.push_back({pass.name, std::move(lines[i])});
}

std::vector<Story> Storyteller::finish(const std::vector<Remark>& remarks, const Target& target) {
  // The stories in which functions and buffers appear under their names.
  std::unordered_map<std::string, std::set<size_t>> by_name;
  std::unordered_map<std::string, std::set<size_t>> by_own_name;
  for (size_t i = 0; i < stories_.size(); ++i) {
    const Story& story = stories_[i];
    by_own_name[story.node].insert(i);
    for (const std::string& kernel : story.kernels) by_name[kernel].insert(i);
    for (const Story::Group& group : story.groups) by_name[group.function].insert(i);
    for (const Story::Place& buffer : story.buffers) by_name[buffer.name].insert(i);
  }
  // A kernel that works in place may be a copy under a name of its own.
  for (const Remark& remark : remarks)
    if (remark.pass == "DataflowUseInplaceCalls")
      for (const size_t i : about(remark.origin)) by_name[remark.subject].insert(i);
  for (const Remark& remark : remarks) {
    std::set<size_t> stories = about(remark.origin);
    if (const auto it = by_own_name.find(remark.subject); it != by_own_name.end())
      stories.insert(it->second.begin(), it->second.end());
    if (remark.pass == "DefaultSchedule")
      if (const auto it = by_name.find(remark.subject); it != by_name.end())
        stories.insert(it->second.begin(), it->second.end());
    for (const size_t i : stories) stories_[i].remarks.push_back(remark);
  }
  for (const Placement& placement : placements_of(remarks)) {
    std::set<size_t> stories = about(placement.origin);
    if (const auto it = by_own_name.find(placement.node); it != by_own_name.end())
      stories.insert(it->second.begin(), it->second.end());
    for (const size_t i : stories) stories_[i].placements.push_back(placement);
  }
  for (Story& story : stories_) {
    for (const std::string& kernel : story.kernels)
      story.symbols.push_back(target.kind == "c" ? c_backend::c_identifier(kernel)
                                                 : "fn." + kernel);
    story.symbols.insert(story.symbols.end(), story.libraries.begin(), story.libraries.end());
  }
  return std::move(stories_);
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

std::string text_of(const Story& story) {
  std::string out;
  const auto add = [&](const std::string& title, const std::string& line) {
    out += fmt::format("{:<12} {}\n", title, line);
  };
  add("node", story.node);
  add("from", story.origin);
  for (size_t i = 0; i < story.steps.size(); ++i) {
    const Story::Step& step = story.steps[i];
    const std::string title = i == 0 ? "imported as" : "after " + step.pass;
    if (i > 0 && step.lines.empty()) {
      out += title + ": nothing is left of it\n";
      continue;
    }
    if (i > 0) out += title + "\n";
    for (size_t l = 0; l < step.lines.size(); ++l)
      add(i == 0 && l == 0 ? title : "", step.lines[l]);
  }
  for (size_t i = 0; i < story.placements.size(); ++i)
    add(i == 0 ? "placement" : "", str(story.placements[i]));
  if (story.placements.empty())
    add("placement",
        "own code: there is no other provider (--libs, --plugin, --call-by-name, "
        "--kernels)");
  for (const Story::Group& group : story.groups)
    add("fused into", group.function + ": " + list_of(group.nodes));
  if (!story.kernels.empty()) add("kernel", list_of(story.kernels));
  for (const Remark& remark : story.remarks)
    if (remark.pass == "DefaultSchedule")
      add(remark.choice.empty() ? "schedule" : "plan", remark.subject + " " + remark_line(remark));
  for (size_t i = 0; i < story.buffers.size(); ++i) {
    const Story::Place& buffer = story.buffers[i];
    add(i == 0 ? "buffers" : "",
        fmt::format("{}: {}{}", buffer.name,
                    buffer.bytes < 0 ? "symbolic size" : bytes_text(buffer.bytes),
                    buffer.where.empty() ? "" : ", " + buffer.where));
  }
  if (!story.symbols.empty()) add("symbols", list_of(story.symbols));
  bool is_first = true;
  for (const Remark& remark : story.remarks) {
    if (is_placement(remark) || remark.pass == "DefaultSchedule") continue;
    add(is_first ? "remarks" : "", remark.pass + ": " + remark.subject + " " + remark_line(remark));
    is_first = false;
  }
  return out;
}

nlohmann::ordered_json json_of(const Story& story) {
  using Json = nlohmann::ordered_json;
  Json json = {{"node", story.node}, {"origin", story.origin}, {"imported", story.steps[0].lines}};
  json["steps"] = Json::array();
  for (size_t i = 1; i < story.steps.size(); ++i)
    json["steps"].push_back({{"pass", story.steps[i].pass}, {"lines", story.steps[i].lines}});
  json["groups"] = Json::array();
  for (const Story::Group& group : story.groups)
    json["groups"].push_back({{"function", group.function}, {"nodes", group.nodes}});
  json["kernels"] = story.kernels;
  json["libraries"] = story.libraries;
  json["plans"] = Json::array();
  for (const Remark& remark : story.remarks)
    if (remark.pass == "DefaultSchedule" && !remark.choice.empty())
      json["plans"].push_back(Json::parse(remark.choice));
  json["buffers"] = Json::array();
  for (const Story::Place& buffer : story.buffers) {
    json["buffers"].push_back({{"name", buffer.name}, {"where", buffer.where}, {"bytes", nullptr}});
    if (buffer.bytes >= 0) json["buffers"].back()["bytes"] = buffer.bytes;
  }
  json["symbols"] = story.symbols;
  json["placements"] = Json::array();
  for (const Placement& placement : story.placements)
    json["placements"].push_back(json_of(placement));
  json["remarks"] = Json::array();
  for (const Remark& remark : story.remarks) json["remarks"].push_back(json_of(remark));
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
