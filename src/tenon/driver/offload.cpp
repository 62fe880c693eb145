// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/offload.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tenon/driver/usage.h"
#include "tenon/graph/backend.h"
#include "tenon/graph/kernels.h"
#include "tenon/graph/transforms/kernel_operators.h"
#include "tenon/support/operator_id.h"
#include "tenon/tune/placement.h"

namespace tenon {

int64_t Offload::own_operators() const {
  int64_t own = operators;
  for (const Taken& one : taken) own -= one.operators;
  return own;
}

double Offload::share(const std::string& provider) const {
  double part = 0;
  for (const Taken& one : taken)
    if (provider.empty() || one.provider == provider)
      part += flop > 0 ? one.flop : static_cast<double>(one.operators);
  const double whole = flop > 0 ? flop : static_cast<double>(operators);
  return whole > 0 ? part / whole : 0;
}

static constexpr const char* kOwnCode = "own code";

static bool is_of_kernels(const Decision& decision) {
  return decision.step == Decision::Step::kKernels;
}

// A kernel that a back end was given and made no code for: a decision taken back.
static bool is_kernel_taken_back(const Decision& decision) {
  return decision.step == Decision::Step::kCodegen && decision.kind == Decision::Kind::kRefused &&
         decision.is_kernel;
}

static void sort_by_count(std::vector<Offload::Refused>& refused) {
  std::sort(refused.begin(), refused.end(), [](const auto& a, const auto& b) {
    return std::pair(-a.operators, a.code) < std::pair(-b.operators, b.code);
  });
}

namespace {

/// Of each operator, in the order of the program, what became of it in the end: a pass that runs
/// later decides about what the passes before it left. Operators are known by the ids of their origins.
class Account {
 public:
  explicit Account(const std::vector<Remark>& remarks) {
    for (const Remark& remark : remarks) {
      if (!remark.decision) continue;
      const Decision& decision = *remark.decision;
      switch (decision.step) {
        case Decision::Step::kKernels: add_kernel(remark, decision); break;
        case Decision::Step::kPlacement: add_decision(remark, decision); break;
        case Decision::Step::kKernelPatterns: add_split(remark, decision); break;
        case Decision::Step::kCodegen: add_codegen(remark, decision); break;
      }
    }
  }
  std::vector<Placement> take() { return std::move(placements_); }

 private:
  Placement& add(const Remark& remark) {
    Placement placement;
    placement.node = remark.subject;
    placement.flop = remark.decision->flop;
    placement.detail = remark.detail;
    placement.origin = remark.origin;
    placements_.push_back(std::move(placement));
    return placements_.back();
  }
  void remember(const Origin& origin) {
    graph::each_part(
        origin, [&](const Origin& part) { index_[operator_id(part)] = placements_.size() - 1; });
  }
  // The operators that an origin stands for, of those that are known.
  template <typename Visit>
  bool each(const Origin& origin, const Visit& visit) {
    bool found = false;
    graph::each_part(origin, [&](const Origin& part) {
      const auto known = index_.find(operator_id(part));
      if (known == index_.end()) return;
      visit(placements_[known->second]);
      found = true;
    });
    return found;
  }
  static void put(Placement& to, const Decision& decision) {
    to.provider = decision.provider;
    to.by = decision.candidate;
    to.reason.clear();
  }
  static void keep(Placement& to, const Remark& remark) {
    to.provider.clear();
    to.by.clear();
    to.reason = remark.decision->code;
    to.detail = remark.detail;
  }

  void add_kernel(const Remark& remark, const Decision& decision) {
    if (decision.kind == Decision::Kind::kRefused) {
      // Of an operator that nobody else takes it is the reason.
      refused_kernels_.emplace(remark.subject, &remark);
      return;
    }
    const auto use = [&](Placement& placement) { put(placement, decision); };
    if (each(remark.origin, use)) return;
    Placement& placement = add(remark);
    placement.detail.clear();
    use(placement);
  }

  void add_decision(const Remark& remark, const Decision& decision) {
    const bool is_taken = decision.kind == Decision::Kind::kTaken;
    // A call that a pass before made of composites, which are counted.
    if (is_taken && decision.provider == tune::kExtern && each(remark.origin, [](auto&) {})) return;
    Placement& placement = add(remark);
    if (is_taken) {
      put(placement, decision);
    } else {
      placement.reason = decision.code;
      const auto refused = refused_kernels_.find(remark.subject);
      const bool by_kernel = decision.code == tune::kNoPattern && refused != refused_kernels_.end();
      if (by_kernel) keep(placement, *refused->second);
      placement.is_refused = by_kernel || decision.kind == Decision::Kind::kRefused;
    }
    remember(remark.origin);
    graph::each_part(remark.origin,
                     [&](const Origin& part) { decided_.insert(operator_id(part)); });
  }

  void add_split(const Remark& remark, const Decision& decision) {
    if (decision.kind == Decision::Kind::kTaken) {
      each(remark.origin, [&](Placement& placement) {
        if (!placement.provider.empty()) return;
        put(placement, decision);
        placement.detail = remark.detail;
        placement.is_refused = false;
        placement.is_kernel = true;
      });
    } else if (decision.kind == Decision::Kind::kRefused) {
      each(remark.origin, [&](Placement& placement) {
        if (!placement.provider.empty() || placement.is_refused ||
            placement.reason == graph::kUserPlacement)
          return;
        keep(placement, remark);
        placement.is_refused = true;
      });
    }
  }

  void add_codegen(const Remark& remark, const Decision& decision) {
    if (decision.kind == Decision::Kind::kTaken) {
      // Composites that came with the module, or from passes in front, and no decision of
      // placement.
      bool is_decided = false;
      graph::each_part(remark.origin, [&](const Origin& part) {
        is_decided |= decided_.count(operator_id(part)) > 0;
      });
      if (is_decided) return;
      put(add(remark), decision);
      remember(remark.origin);
    } else if (decision.kind == Decision::Kind::kRefused) {
      const auto refuse = [&](Placement& placement) {
        if (decision.is_kernel && !(placement.is_kernel && placement.provider == decision.provider))
          return;
        keep(placement, remark);
        placement.is_refused = true;
        placement.is_kernel = false;
      };
      if (!each(remark.origin, refuse) && !decision.is_kernel) refuse(add(remark));
    }
  }

  std::vector<Placement> placements_;
  std::map<OperatorId, size_t> index_;
  std::map<std::string, const Remark*> refused_kernels_;  // the first, by the model's node
  std::set<OperatorId> decided_;                          // by AnnotatePlacement
};

}  // namespace

std::vector<Placement> placements_of(const std::vector<Remark>& remarks) {
  return Account(remarks).take();
}

static Offload::Taken& entry_of(Offload& offload, const std::string& provider) {
  const auto taken = std::find_if(offload.taken.begin(), offload.taken.end(),
                                  [&](const auto& one) { return one.provider == provider; });
  if (taken != offload.taken.end()) return *taken;
  offload.taken.push_back({provider});
  return offload.taken.back();
}

// Kernels that a provider was given, and scratch of its calls.
static void count_kernels(Offload& offload, const Decision& decision) {
  // Patterns of the module itself are no back end's.
  if (decision.kind == Decision::Kind::kDivided && offload.operators > 0) {
    Offload::Taken& taken = entry_of(offload, decision.provider);
    ++taken.kernels;
    taken.parts += decision.holds_operator ? 0 : 1;
  }
  if (is_kernel_taken_back(decision)) {
    Offload::Taken& one = entry_of(offload, decision.provider);
    one.kernels = std::max(int64_t{0}, one.kernels - 1);
    one.parts = std::min(one.parts, one.kernels);
  }
  if (decision.kind == Decision::Kind::kScratch)
    for (Offload::Taken& one : offload.taken)
      if (one.provider == decision.provider)
        one.scratch_bytes = std::max(one.scratch_bytes, decision.bytes);
}

Offload offload_of(const std::vector<Remark>& remarks, const std::vector<std::string>& libs) {
  Offload offload;
  for (const std::string& name : libs) offload.taken.push_back({name});
  offload.placements = placements_of(remarks);
  for (const Remark& remark : remarks)
    if (remark.decision && is_of_kernels(*remark.decision) && !offload.placements.empty())
      entry_of(offload, graph::kKernels);
  for (const Placement& placement : offload.placements) {
    ++offload.operators;
    offload.flop += placement.flop;
    if (!placement.provider.empty()) {
      Offload::Taken& taken = entry_of(offload, placement.provider);
      ++taken.operators;
      taken.flop += placement.flop;
    } else if (placement.is_refused) {
      auto refused = std::find_if(offload.refused.begin(), offload.refused.end(),
                                  [&](const auto& one) { return one.code == placement.reason; });
      if (refused == offload.refused.end())
        refused = offload.refused.insert(offload.refused.end(), {placement.reason});
      ++refused->operators;
    }
  }
  for (const Remark& remark : remarks)
    if (remark.decision) count_kernels(offload, *remark.decision);
  sort_by_count(offload.refused);
  // Where nobody else was asked, there is nothing to tell.
  if (offload.taken.empty()) offload.placements.clear();
  return offload;
}

// As it is written: what is read again from a manifest gives the same.
static double rounded(double share) { return std::round(share * 1e6) / 1e6; }

// Rounded down: 100 % is all of it.
static std::string percent(double share) {
  return fmt::format("{} %", static_cast<int>(share * 100 + 1e-9));
}

Remark remark_of(const Placement& placement) {
  return {kPlacementRemark,
          placement.node,
          placement.provider.empty() ? kOwnCode : placement.provider,
          placement.provider.empty() ? placement.reason : placement.by,
          {{"flop", placement.flop}},
          placement.detail,
          placement.origin};
}

std::string str(const Placement& placement) {
  std::string text = placement.provider.empty() ? kOwnCode : placement.provider;
  const std::string& why = placement.provider.empty() ? placement.reason : placement.by;
  if (!why.empty()) text += " (" + why + ")";
  if (!placement.detail.empty()) text += ": " + placement.detail;
  return text;
}

std::string str(const Offload& offload) {
  std::string text;
  for (const Offload::Taken& one : offload.taken) {
    const bool is_first = text.empty();
    text += fmt::format("{}{} {}", is_first ? "" : "; ", one.provider, one.operators);
    if (is_first) text += fmt::format(" of {} operators", offload.operators);
    if (offload.flop > 0) {
      text += ", " + percent(one.flop / offload.flop);
      if (is_first) text += " of the arithmetic";
    }
    if (one.parts > 0)
      text += fmt::format(", and {} part{} of others", one.parts, one.parts == 1 ? "" : "s");
  }
  text += fmt::format("{}own code {}", text.empty() ? "" : "; ", offload.own_operators());
  for (size_t i = 0; i < offload.refused.size(); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "; refused: " : ", ", offload.refused[i].operators,
                        offload.refused[i].code);
  return text;
}

nlohmann::ordered_json json_of(const Placement& placement) {
  return {{"node", placement.node},
          {"provider", placement.provider.empty() ? kOwnCode : placement.provider},
          {"by", placement.by},
          {"reason", placement.reason}};
}

nlohmann::ordered_json json_of(const Offload& offload) {
  nlohmann::ordered_json json = {{"operators", offload.operators},
                                 {"own_operators", offload.own_operators()},
                                 {"gflop", offload.flop / 1e9},
                                 {"share", rounded(offload.share())},
                                 {"providers", nlohmann::ordered_json::array()},
                                 {"refused", nlohmann::ordered_json::object()}};
  for (const Offload::Taken& one : offload.taken)
    json["providers"].push_back({{"name", one.provider},
                                 {"operators", one.operators},
                                 {"gflop", one.flop / 1e9},
                                 {"share", rounded(offload.share(one.provider))},
                                 {"scratch_bytes", one.scratch_bytes},
                                 {"kernels", one.kernels},
                                 {"parts", one.parts}});
  for (const Offload::Refused& one : offload.refused) json["refused"][one.code] = one.operators;
  json["placements"] = nlohmann::ordered_json::array();
  for (const Placement& one : offload.placements) json["placements"].push_back(json_of(one));
  return json;
}

Offload offload_from(const nlohmann::json& json) {
  Offload offload;
  try {
    offload.operators = json.value("operators", int64_t{0});
    offload.flop = json.value("gflop", 0.0) * 1e9;
    for (const auto& one : json.value("providers", nlohmann::json::array()))
      offload.taken.push_back({one.value("name", ""), one.value("operators", int64_t{0}),
                               one.value("gflop", 0.0) * 1e9,
                               one.value("scratch_bytes", int64_t{0}),
                               one.value("kernels", int64_t{0}), one.value("parts", int64_t{0})});
    const nlohmann::json refused = json.value("refused", nlohmann::json::object());
    for (const auto& [code, count] : refused.items())
      offload.refused.push_back({code, count.get<int64_t>()});
    for (const auto& one : json.value("placements", nlohmann::json::array())) {
      Placement placement;
      placement.node = one.value("node", "");
      placement.provider = one.value("provider", "");
      if (placement.provider == kOwnCode) placement.provider.clear();
      placement.by = one.value("by", "");
      placement.reason = one.value("reason", "");
      offload.placements.push_back(std::move(placement));
    }
    sort_by_count(offload.refused);
  } catch (const nlohmann::json::exception&) {
    return {};
  }
  return offload;
}

Requirement parse_requirement(const std::string& text) {
  const size_t equals = text.rfind('=');
  Requirement out;
  std::string_view number = text;
  if (equals != std::string::npos) {
    out.provider = text.substr(0, equals);
    number.remove_prefix(equals + 1);
  }
  const auto wrong = [&] {
    return UsageError("--require-offload {}: expected 0% to 100%, or PROVIDER=90%", text);
  };
  if (!number.ends_with('%') || equals == 0) throw wrong();
  number.remove_suffix(1);
  double percent = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), percent);
  if (read.ec != std::errc() || read.ptr != number.data() + number.size() || !(percent >= 0) ||
      percent > 100)
    throw wrong();
  out.share = percent / 100;
  return out;
}

void check_requirements(const std::vector<Requirement>& requirements, const Offload& offload) {
  constexpr size_t kMostNotes = 40;
  for (const Requirement& wanted : requirements) {
    const double share = offload.share(wanted.provider);
    if (share + 1e-9 >= wanted.share) continue;
    const std::string who = wanted.provider.empty() ? "providers take" : wanted.provider + " takes";
    CompileError error(kNotOffloaded, {}, "{} {:.1f} % of the {}; {:.6g} % is required", who,
                       share * 100, offload.flop > 0 ? "arithmetic" : "operators",
                       wanted.share * 100);
    if (offload.empty())
      error.note({},
                 "there is no provider but own code; expected --libs, --plugin, --call-by-name "
                 "or --kernels");
    std::vector<const Placement*> left;
    for (const Placement& placement : offload.placements) {
      const bool is_taken = !placement.provider.empty() &&
                            (wanted.provider.empty() || placement.provider == wanted.provider);
      if (!is_taken) left.push_back(&placement);
    }
    // Those of equal arithmetic stay in order: placements lie in one vector.
    std::sort(left.begin(), left.end(), [](const Placement* a, const Placement* b) {
      return std::pair(-a->flop, a) < std::pair(-b->flop, b);
    });
    for (size_t i = 0; i < left.size(); ++i) {
      if (i == kMostNotes) {
        error.note({}, "and {} more operators", left.size() - i);
        break;
      }
      const Placement& one = *left[i];
      const double part = offload.flop > 0 ? one.flop / offload.flop * 100 : 0;
      error.note(one.origin, "`{}`{}: {}", one.node,
                 part > 0 ? fmt::format(", {:.1f} % of the arithmetic", part) : "", str(one));
    }
    throw error;
  }
}

}  // namespace tenon
