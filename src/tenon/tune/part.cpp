// SPDX-License-Identifier: Apache-2.0
#include "tenon/tune/part.h"

#include <algorithm>

#include "tenon/tune/placement.h"

namespace tenon::tune {

// A constant, or what a match computes of constants alone (the transpose of one).
static bool is_constant(const graph::Value& value) {
  if (value.as<graph::Constant>()) return true;
  const auto* call = value.as<graph::Call>();
  return call && !call->args.empty() &&
         std::all_of(call->args.begin(), call->args.end(), is_constant);
}

Part part_of(const Found& found) {
  graph::Composite composite =
      graph::make_composite(found.name(), found.match, {.bind_constants = false});
  AttrList constants;
  for (size_t i = 0; i < composite.arguments.size(); ++i)
    if (is_constant(composite.arguments[i])) constants.emplace_back(static_cast<int64_t>(i));
  const Ref<graph::Function> function = with(*composite.function, [&](graph::Function& copy) {
    copy.attrs = found.composite.function->attrs;
    if (composite.arguments.size() > found.composite.arguments.size())
      copy.attrs.set(kBoundConstants, true);
    if (!constants.empty()) copy.attrs.set(kConstantParams, std::move(constants));
  });
  return {function, part_hash(*function)};
}

bool is_constant_param(const graph::Function& part, size_t param) {
  const auto constants = part.attrs.ints(kConstantParams);
  return constants && std::find(constants->begin(), constants->end(),
                                static_cast<int64_t>(param)) != constants->end();
}

bool is_called_on_tensors(const graph::Function& part) {
  for (size_t i = 0; i < part.params.size(); ++i) {
    const auto* type = part.params[i]->type.as<graph::TensorType>();
    if (!type || !type->has_shape() || (is_constant_param(part, i) && !type->static_shape()))
      return false;
  }
  return true;
}

std::string part_hash(const graph::Function& function) {
  const Ref<graph::Function> bare = with(function, [](graph::Function& copy) {
    const auto constants = copy.attrs.ints(kConstantParams);
    copy.attrs = {};
    if (constants) copy.attrs.set(kConstantParams, AttrList(constants->begin(), constants->end()));
  });
  return fmt::format("{}{:016x}", kPartHash, structural_hash(bare));
}

bool is_part_hash(const std::string& hash) { return hash.starts_with(kPartHash); }

std::string measured_name(const std::string& hash, const std::string& provider) {
  return hash + " " + provider;
}

void add_verdicts(graph::UserPlacement::Providers& measured, const std::string& hash,
                  const std::vector<Measurement>& first, const std::optional<Choice>& choice) {
  for (const Measurement& each : first) {
    if (each.plan.empty()) continue;
    const bool is_chosen = choice && choice->plan == each.plan;
    measured[measured_name(hash, each.plan)] = is_chosen                    ? graph::kMeasuredFaster
                                               : each.status == Status::kOk ? graph::kMeasuredSlower
                                                                            : name_of(each.status);
  }
}

graph::UserPlacement::Providers measured_parts(const Database& database, const std::string& target,
                                               const std::string& machine) {
  graph::UserPlacement::Providers out;
  const std::map<std::string, Choice> choices = database.choices(target, machine);
  for (const auto& [hash, first] : database.first_measurements(target, machine)) {
    const auto choice = choices.find(hash);
    if (is_part_hash(hash))
      add_verdicts(out, hash, first,
                   choice == choices.end() ? std::nullopt : std::optional(choice->second));
  }
  return out;
}

MeasuredMatches::MeasuredMatches(const std::vector<Found>& found,
                                 const graph::UserPlacement::Providers& measured)
    : found_(found), verdicts_(found.size()) {
  if (measured.empty()) return;
  for (size_t i = 0; i < found.size(); ++i) {
    if (!found[i].verdict.accepted) continue;
    const auto known = measured.find(measured_name(part_of(found[i]).hash, found[i].name()));
    if (known != measured.end()) verdicts_[i] = known->second;
  }
}

bool MeasuredMatches::is_faster(size_t match) const {
  return verdicts_[match] == graph::kMeasuredFaster;
}

// Whether the second match has the first one's operators.
static bool is_within(const Found& less, const Found& more) {
  const auto& all = more.match.bindings;
  return std::all_of(less.match.bindings.begin(), less.match.bindings.end(),
                     [&](const Ref<graph::Binding>& binding) {
                       return std::any_of(all.begin(), all.end(), [&](const auto& other) {
                         return other.same_as(binding);
                       });
                     });
}

std::string MeasuredMatches::refusal(size_t match) const {
  const Found& found = found_[match];
  if (is_faster(match)) return "";
  if (!verdicts_[match].empty()) return verdicts_[match];
  for (size_t i = 0; i < found_.size(); ++i)
    if (!verdicts_[i].empty() && !is_faster(i) && found_[i].backend == found.backend &&
        is_within(found, found_[i]))
      return fmt::format("part of {}: {}", found_[i].name(), verdicts_[i]);
  return "";
}

std::vector<OfferedPart> offered_parts(const IRModule& module,
                                       const std::vector<std::string>& backends) {
  std::vector<OfferedPart> out;
  for (const std::string& name : backends) {
    graph::UserPlacement user = graph::UserPlacement::of(module);
    user.backends = {name};
    user.measured.clear();
    const auto backend = graph::find_backend(name);
    const IRModule annotated = annotate_placement(module, user);
    for (const auto& [function_name, base] : annotated.functions())
      if (const auto function = cast<graph::Function>(base))
        for (const Found& found : placed_matches(annotated, function))
          if (found.backend == backend.get()) out.push_back({part_of(found), found.name()});
  }
  return out;
}

}  // namespace tenon::tune
