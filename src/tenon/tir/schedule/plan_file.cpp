// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/schedule/plan_file.h"

#include <algorithm>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tenon/support/nearest.h"

namespace tenon::tir {

namespace {

using Json = nlohmann::json;  // members by name, so that texts of equal values are equal
using Ordered = nlohmann::ordered_json;

constexpr int64_t kVersion = 1;
constexpr size_t kMostDepth = 16;  // of nested lists and objects

// What the model says of a plan, and no plan states.
const std::set<std::string> kSaid = {"predicted_us", "assumes_lengths", "runner_up", "refused"};

/// Where the parser stands in a text.
struct Position {
  uint32_t line = 1, column = 1;
};

/// Characters of a text for the parser, which count lines.
class Characters {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Characters(const char* at, Position* position) : at_(at), position_(position) {}
  reference operator*() const { return *at_; }
  Characters& operator++() {
    if (*at_++ == '\n')
      *position_ = {position_->line + 1, 1};
    else
      ++position_->column;
    return *this;
  }
  bool operator==(const Characters& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  Position* position_;
};

/// A JSON text with the places of members and of objects in lists, by their paths ("/plans/0/block").
class Document {
 public:
  explicit Document(std::shared_ptr<const SourceFile> file) : file_(std::move(file)) {
    const char* text = file_->text.data();
    try {
      root_ = Json::parse(Characters(text, &at_), Characters(text + file_->text.size(), &at_),
                          [this](int, Json::parse_event_t event, const Json& parsed) {
                            see(event, parsed);
                            return true;
                          });
    } catch (const Json::exception& error) {
      // Behind "[json.exception.parse_error.101] parse error at line 1, column 2: ".
      const std::string_view what = error.what();
      size_t words = what.find("] ") + 2;
      if (const size_t column = what.find("column "); column != std::string_view::npos)
        words = what.find(": ", column) + 2;
      throw CompileError(kSyntax, here(1), "{}", what.substr(words));
    }
  }

  const Json& root() const { return root_; }
  Origin place(std::string path) const {
    while (!path.empty() && !places_.contains(path)) path.resize(path.rfind('/'));
    return path.empty() ? Origin::script(file_, 1, 1) : places_.at(path);
  }

 private:
  struct Open {
    std::string path;
    bool is_list;
    size_t items = 0;
    std::string key = {};
  };

  Origin here(size_t length) const {
    const auto columns = static_cast<uint32_t>(std::min<size_t>(length, at_.column - 1));
    return Origin::script(file_, at_.line, std::max(1U, at_.column - columns),
                          std::max(1U, columns));
  }

  void see(Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::object_end || event == Event::array_end) return open_.pop_back();
    if (event == Event::key) {
      open_.back().key = parsed.get<std::string>();
      const Origin place = here(open_.back().key.size() + 2);
      if (!places_.emplace(open_.back().path + "/" + open_.back().key, place).second)
        throw CompileError(kBadPlan, place, "field `{}` is given twice", open_.back().key);
      return;
    }
    std::string path;
    if (!open_.empty()) {
      Open& in = open_.back();
      path = in.path + "/" + (in.is_list ? std::to_string(in.items++) : in.key);
    }
    if (event == Event::value) return;
    if (open_.size() == kMostDepth)
      throw CompileError(kTooDeep, here(1), "the file nests deeper than {} lists and objects",
                         kMostDepth);
    if (event == Event::object_start) places_.emplace(path, here(1));
    open_.push_back({std::move(path), event == Event::array_start});
  }

  std::shared_ptr<const SourceFile> file_;
  Position at_;
  std::vector<Open> open_;
  std::map<std::string, Origin> places_;
  Json root_;
};

/// A value of a document, read as what it must be.
struct Item {
  const Document& document;
  const Json& json;
  std::string path;

  Origin place() const { return document.place(path); }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw CompileError(kBadPlan, place(), "{}", fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void expected(std::string_view what) const {
    std::string seen = json.dump();
    if (seen.size() > 40) seen = seen.substr(0, 40) + "...";
    const std::string name = path.substr(path.rfind('/') + 1);
    fail("{} is {}; expected {}", path.empty() ? "the file" : "`" + name + "`", seen, what);
  }

  /// An object that has no other members than these.
  const Item& with_members(const std::vector<std::string>& known) const {
    if (!json.is_object()) expected("an object");
    for (const auto& [name, value] : json.items())
      if (std::find(known.begin(), known.end(), name) == known.end())
        at(name).fail("there is no field `{}`{}; expected of {}", name, did_you_mean(name, known),
                      fmt::join(known, ", "));
    return *this;
  }
  Item at(const std::string& name) const { return {document, json.at(name), path + "/" + name}; }
  std::optional<Item> find(const std::string& name) const {
    if (!json.contains(name)) return std::nullopt;
    return at(name);
  }
  Item need(const std::string& name) const {
    if (!json.contains(name)) fail("field `{}` is missing", name);
    return at(name);
  }
  std::vector<Item> items() const {
    if (!json.is_array()) expected("a list");
    std::vector<Item> out;
    out.reserve(json.size());
    for (size_t i = 0; i < json.size(); ++i)
      out.push_back({document, json[i], path + "/" + std::to_string(i)});
    return out;
  }
  std::string text() const {
    if (!json.is_string()) expected("a text");
    return json.get<std::string>();
  }
  bool flag() const {
    if (!json.is_boolean()) expected("true or false");
    return json.get<bool>();
  }
  int64_t count(int64_t least) const {
    constexpr int64_t kMost = 1 << 20;
    const bool is_number = json.is_number_unsigned() && json.get<uint64_t>() <= uint64_t{kMost};
    if (!is_number || json.get<int64_t>() < least)
      expected(fmt::format("a whole number from {} to {}", least, kMost));
    return json.get<int64_t>();
  }
};

std::vector<std::string> names_of(const Ordered& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

Tile tile_of(const Item& item) {
  item.with_members({"rows", "columns", "vectors"});
  return {item.need("rows").count(1), item.need("columns").count(1), item.need("vectors").count(1)};
}

GivenNest::Tasks tasks_of(const Item& item) {
  if (item.json.is_null()) return {};
  item.with_members({"of", "count", "outside"});
  const std::string of = item.need("of").text();
  if (of != "rows" && of != "columns") item.at("of").expected("\"rows\" or \"columns\"");
  return {of == "rows" ? TilePlan::Tasks::kRows : TilePlan::Tasks::kColumns,
          item.need("count").count(2), item.need("outside").flag()};
}

GivenNest nest_of(const Item& item) {
  item.with_members(names_of(json_of(TilePlan())));
  GivenNest nest;
  nest.origin = item.place();
  for (const auto& [name, value] : item.json.items())
    if (!kSaid.contains(name)) nest.fields.push_back({name, value.dump(), item.at(name).place()});
  const auto axes = [&](const char* role, std::optional<std::vector<std::string>>& names) {
    const auto found = item.find(role);
    if (!found) return;
    names.emplace();
    for (const Item& axis : found->items()) {
      names->push_back(axis.with_members({"axis", "extent"}).need("axis").text());
      axis.need("extent");  // compared with the rest of the field
    }
  };
  axes("batch", nest.batch);
  axes("n", nest.n);
  axes("m", nest.m);
  axes("k", nest.k);
  if (const auto algorithm = item.find("algorithm")) nest.algorithm = algorithm->text();
  if (const auto lanes = item.find("lanes")) nest.lanes = lanes->count(1);
  if (const auto fmas = item.find("unrolled_fmas")) nest.unrolled_fmas = fmas->count(0);
  if (const auto joins = item.find("joins_rows")) nest.joins_rows = joins->flag();
  if (const auto prefetches = item.find("prefetches")) nest.prefetches = prefetches->flag();
  if (const auto tile = item.find("tile")) nest.tile = tile_of(*tile);
  if (const auto tasks = item.find("tasks")) nest.tasks = tasks_of(*tasks);
  return nest;
}

BlockPlan::Algorithm algorithm_of(const Item& item) {
  using Algorithm = BlockPlan::Algorithm;
  const std::string name = item.text();
  std::vector<std::string> known;
  for (uint8_t i = 0; i <= static_cast<uint8_t>(Algorithm::kLoops); ++i) {
    known.emplace_back(name_of(static_cast<Algorithm>(i)));
    if (known.back() == name) return static_cast<Algorithm>(i);
  }
  item.expected(fmt::format("one of {}", fmt::join(known, ", ")));
}

GivenPlan plan_of(const Item& item) {
  BlockPlan all;
  all.winograd.emplace();
  all.is_serial = true;
  all.chunks = 2;
  item.with_members(names_of(json_of(all, "", "")));
  GivenPlan plan;
  plan.origin = item.place();
  plan.kernel = item.need("kernel").text();
  if (const auto hash = item.find("hash")) plan.hash = hash->text();
  plan.block = item.need("block").text();
  plan.algorithm = algorithm_of(item.need("algorithm"));
  if (const auto serial = item.find("serial")) plan.is_serial = serial->flag();
  if (const auto chunks = item.find("chunks")) plan.chunks = chunks->count(1);
  if (const auto nests = item.find("nests"))
    for (const Item& nest : nests->items()) plan.nests.push_back(nest_of(nest));
  const bool is_winograd = plan.algorithm == BlockPlan::Algorithm::kWinograd;
  if (const auto form = item.find("winograd")) {
    if (!is_winograd) form->fail("algorithm `{}` has no form", name_of(plan.algorithm));
    form->with_members({"tile", "block_tiles", "tasks"});
    plan.winograd.emplace();
    plan.winograd->tile = form->need("tile").count(1);
    plan.winograd->block_tiles = form->need("block_tiles").count(1);
    if (const auto tasks = form->find("tasks")) plan.winograd->tasks = tasks->count(1);
  }
  if (!plan.nests.empty() && !is_winograd && plan.algorithm != BlockPlan::Algorithm::kTiles)
    item.at("nests").fail("algorithm `{}` has no nests; expected []", name_of(plan.algorithm));
  return plan;
}

/// Broken into lines where it is long.
std::string lines_of(const Ordered& json, const std::string& indent) {
  constexpr size_t kLongest = 100;
  std::string line = json.dump();
  if (line.size() <= kLongest || !json.is_structured()) return line;
  const std::string inner = indent + "  ";
  std::string text;
  for (const auto& [name, value] : json.items())
    text += (text.empty() ? "\n" : ",\n") + inner +
            (json.is_object() ? Json(name).dump() + ": " : "") + lines_of(value, inner);
  return (json.is_object() ? "{" : "[") + text + "\n" + indent + (json.is_object() ? "}" : "]");
}

}  // namespace

const Origin& GivenNest::place(std::string_view field) const {
  for (const Field& each : fields)
    if (each.name == field) return each.origin;
  return origin;
}

void GivenNest::check_taken(const TilePlan& plan) const {
  const Json taken = json_of(plan);
  for (const Field& field : fields)
    if (const std::string own = taken.at(field.name).dump(); own != field.text)
      misfit(field.name, "is {}; expected {} of this nest", field.text, own);
}

int64_t GivenNest::lanes_up_to(int64_t most, bool is_fixed) const {
  if (!lanes) return most;
  if (is_fixed && *lanes != most)
    misfit("lanes", "is {}; expected {} of columns whose number is known at run time", *lanes,
           most);
  if (*lanes > most || !std::has_single_bit(static_cast<uint64_t>(*lanes)))
    misfit("lanes", "is {}; expected a power of two up to {}", *lanes, most);
  return *lanes;
}

void GivenNest::order_axes(const char* role, const std::optional<std::vector<std::string>>& order,
                           std::vector<Ref<Var>>& axes) const {
  if (!order) return;
  std::vector<Ref<Var>> ordered, rest = axes;
  std::string names;
  for (const Ref<Var>& axis : axes) names += (names.empty() ? "`" : ", `") + axis->name + "`";
  for (const std::string& name : *order) {
    const auto found = std::find_if(rest.begin(), rest.end(),
                                    [&](const Ref<Var>& axis) { return axis->name == name; });
    if (found == rest.end())
      misfit(role, "has axis `{}`; expected, in some order, {}", name,
             names.empty() ? "none" : names);
    ordered.push_back(*found);
    rest.erase(found);
  }
  if (!rest.empty())
    misfit(role, "is without axis `{}`; expected, in some order, {}", rest[0]->name, names);
  axes = std::move(ordered);
}

std::vector<const GivenPlan*> GivenPlans::of(const std::string& kernel,
                                             const std::string& hash) const {
  std::vector<const GivenPlan*> out;
  for (const bool is_named : {true, false})
    for (const GivenPlan& plan : plans)
      if ((plan.kernel == kernel) == is_named &&
          (plan.hash == hash || (is_named && plan.hash.empty())))
        out.push_back(&plan);
  return out;
}

const GivenPlan* find_plan(const std::vector<const GivenPlan*>& plans, const std::string& block) {
  const auto found = std::find_if(plans.begin(), plans.end(),
                                  [&](const GivenPlan* plan) { return plan->block == block; });
  return found == plans.end() ? nullptr : *found;
}

GivenPlans read_plans(const std::shared_ptr<const SourceFile>& file) {
  const Document document(file);
  const Item root{document, document.root(), ""};
  root.with_members({"version", "target", "plans"});
  if (const Item version = root.need("version"); version.json != kVersion)
    version.expected(std::to_string(kVersion));
  GivenPlans given;
  if (const auto target = root.find("target")) {
    given.target = target->text();
    given.target_origin = target->place();
  }
  std::map<std::vector<std::string>, Origin> first;
  for (const Item& item : root.need("plans").items()) {
    GivenPlan plan = plan_of(item);
    const auto [known, is_new] =
        first.emplace(std::vector<std::string>{plan.kernel, plan.hash, plan.block}, plan.origin);
    if (!is_new)
      throw CompileError(kBadPlan, plan.origin, "block `{}` of kernel `{}` has two plans",
                         plan.block, plan.kernel)
          .note(known->second, "the first is here");
    given.plans.push_back(std::move(plan));
  }
  return given;
}

std::string plan_file(const std::vector<std::string>& choices, const Target& target) {
  Ordered file = {{"version", kVersion}, {"target", target.str()}, {"plans", Ordered::array()}};
  std::set<std::string> seen;
  for (const std::string& choice : choices) {
    Ordered plan = Ordered::parse(choice);
    plan.erase("refused");  // before this plan was made: no part of it
    Ordered unnamed = plan;
    unnamed.erase("kernel");
    if (seen.insert(unnamed.dump()).second) file["plans"].push_back(std::move(plan));
  }
  return lines_of(file, "") + "\n";
}

}  // namespace tenon::tir
