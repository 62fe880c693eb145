#include "tenon/driver/offload.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "tenon/driver/usage.h"
#include "tenon/graph/backend.h"
#include "tenon/graph/transforms/kernel_operators.h"

namespace tenon {

int64_t Offload::own_operators() const {
  int64_t own = operators;
  for (const Taken& one : taken) own -= one.operators;
  return own;
}

double Offload::share(const std::string& backend) const {
  double part = 0;
  for (const Taken& one : taken)
    if (backend.empty() || one.backend == backend)
      part += flop > 0 ? one.flop : static_cast<double>(one.operators);
  const double whole = flop > 0 ? flop : static_cast<double>(operators);
  return whole > 0 ? part / whole : 0;
}

// One remark an operator; a pass that runs twice decides anew about what is left.
static bool is_decision(const Remark& remark) {
  return remark.pass == "AnnotatePlacement" && remark.verdict != "matched" &&
         remark.verdict != "unmatched";
}

// An operator that a back end was given and made no code for: a decision taken back.
static bool is_taken_back(const Remark& remark) {
  return remark.pass == "RunCodegen" && remark.verdict == "refused";
}

static std::string backend_of(const std::string& pattern) {
  return pattern.substr(0, pattern.find('.'));
}

static double number_of(const Remark& remark, std::string_view wanted) {
  for (const auto& [name, number] : remark.numbers)
    if (name == wanted) return number;
  return 0;
}

static double flop_of(const Remark& remark) { return number_of(remark, "flop"); }

static void sort_by_count(std::vector<Offload::Refused>& refused) {
  std::sort(refused.begin(), refused.end(), [](const auto& a, const auto& b) {
    return std::pair(-a.operators, a.code) < std::pair(-b.operators, b.code);
  });
}

namespace {

/// What became of an operator in the end.
struct Decision {
  const Remark* remark;  // of AnnotatePlacement
  std::string backend = {};
  std::string refusal = {};  // a reason code
  const Remark* last;        // what decided
  bool is_kernel = false;    // it was taken by a pattern over TensorIR
};

/// Of each operator, in the order of the program. Patterns over TensorIR decide about what patterns
/// over graphs left; operators are known by their origins, which are their own.
std::vector<Decision> decisions_of(const std::vector<Remark>& remarks) {
  std::vector<Decision> decisions;
  std::unordered_map<const OriginInfo*, size_t> index;
  const auto each = [&](const Origin& origin, const auto& visit) {
    graph::each_part(origin, [&](const Origin& part) {
      const auto found = index.find(&*part);
      if (found != index.end()) visit(decisions[found->second]);
    });
  };
  for (const Remark& remark : remarks) {
    if (is_decision(remark)) {
      Decision decision{&remark, {}, {}, &remark};
      if (remark.verdict == "placed") decision.backend = backend_of(remark.reason);
      if (remark.verdict == "refused") decision.refusal = remark.reason;
      if (remark.origin) index[&*remark.origin] = decisions.size();
      decisions.push_back(std::move(decision));
    } else if (remark.pass == "SplitCallTIRByPattern" && remark.verdict == "taken") {
      each(remark.origin, [&](Decision& decision) {
        if (decision.backend.empty())
          decision = {decision.remark, backend_of(remark.reason), {}, &remark, true};
      });
    } else if (remark.pass == "SplitCallTIRByPattern" && remark.verdict == "left") {
      each(remark.origin, [&](Decision& decision) {
        if (decision.backend.empty() && decision.refusal.empty() &&
            decision.remark->reason != "by-hand")
          decision = {decision.remark, {}, remark.reason, &remark};
      });
    } else if (is_taken_back(remark) && number_of(remark, "kernels") > 0) {
      each(remark.origin, [&](Decision& decision) {
        if (decision.is_kernel && decision.backend == graph::backend_of_refusal(remark.detail))
          decision = {decision.remark, {}, remark.reason, &remark};
      });
    }
  }
  return decisions;
}

}  // namespace

Offload offload_of(const std::vector<Remark>& remarks, const std::vector<std::string>& libs) {
  Offload offload;
  for (const std::string& name : libs) offload.taken.push_back({name});
  const auto entry_of = [&](const std::string& backend) -> Offload::Taken& {
    const auto taken = std::find_if(offload.taken.begin(), offload.taken.end(),
                                    [&](const auto& one) { return one.backend == backend; });
    if (taken != offload.taken.end()) return *taken;
    offload.taken.push_back({backend});
    return offload.taken.back();
  };
  const auto refuse = [&](const std::string& code, int64_t operators) {
    auto refused = std::find_if(offload.refused.begin(), offload.refused.end(),
                                [&](const auto& one) { return one.code == code; });
    if (refused == offload.refused.end())
      refused = offload.refused.insert(offload.refused.end(), {code});
    refused->operators += operators;
  };
  for (const Decision& decision : decisions_of(remarks)) {
    ++offload.operators;
    offload.flop += flop_of(*decision.remark);
    if (!decision.backend.empty()) {
      Offload::Taken& taken = entry_of(decision.backend);
      ++taken.operators;
      taken.flop += flop_of(*decision.remark);
    } else if (!decision.refusal.empty()) {
      refuse(decision.refusal, 1);
    }
  }
  const auto take_back = [&](const Remark& remark) {
    const std::string backend = graph::backend_of_refusal(remark.detail);
    for (Offload::Taken& one : offload.taken) {
      if (one.backend != backend) continue;
      if (number_of(remark, "kernels") > 0) {
        one.kernels = std::max(int64_t{0}, one.kernels - 1);
        one.parts = std::min(one.parts, one.kernels);
        continue;
      }
      const int64_t operators =
          std::min(one.operators, static_cast<int64_t>(number_of(remark, "times")));
      one.operators -= operators;
      one.flop = std::max(0.0, one.flop - flop_of(remark) * static_cast<double>(operators));
      if (operators > 0) refuse(remark.reason, operators);
    }
  };
  for (const Remark& remark : remarks) {
    // Patterns of the module itself are no back end's.
    if (remark.pass == "SplitCallTIRByPattern" && remark.verdict == "placed" &&
        offload.operators > 0) {
      Offload::Taken& taken = entry_of(backend_of(remark.reason));
      ++taken.kernels;
      taken.parts += number_of(remark, "operators") == 0;
    }
    if (is_taken_back(remark)) take_back(remark);
    if (remark.pass == "RunBackend" && remark.verdict == "scratch")
      for (Offload::Taken& one : offload.taken)
        if (one.backend == remark.reason)
          one.scratch_bytes =
              std::max(one.scratch_bytes, static_cast<int64_t>(number_of(remark, "bytes")));
  }
  sort_by_count(offload.refused);
  return offload;
}

// Rounded down: 100 % is all of it.
static std::string percent(double share) {
  return fmt::format("{} %", static_cast<int>(share * 100 + 1e-9));
}

std::string str(const Offload& offload) {
  std::string text;
  for (const Offload::Taken& one : offload.taken) {
    const bool is_first = text.empty();
    text += fmt::format("{}{} {}", is_first ? "" : "; ", one.backend, one.operators);
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

nlohmann::ordered_json json_of(const Offload& offload) {
  nlohmann::ordered_json json = {{"operators", offload.operators},
                                 {"own_operators", offload.own_operators()},
                                 {"gflop", offload.flop / 1e9},
                                 {"share", offload.share()},
                                 {"backends", nlohmann::ordered_json::array()},
                                 {"refused", nlohmann::ordered_json::object()}};
  for (const Offload::Taken& one : offload.taken)
    json["backends"].push_back({{"name", one.backend},
                                {"operators", one.operators},
                                {"gflop", one.flop / 1e9},
                                {"share", offload.share(one.backend)},
                                {"scratch_bytes", one.scratch_bytes},
                                {"kernels", one.kernels},
                                {"parts", one.parts}});
  for (const Offload::Refused& one : offload.refused) json["refused"][one.code] = one.operators;
  return json;
}

Offload offload_from(const nlohmann::json& json) {
  Offload offload;
  try {
    offload.operators = json.value("operators", int64_t{0});
    offload.flop = json.value("gflop", 0.0) * 1e9;
    for (const auto& one : json.value("backends", nlohmann::json::array()))
      offload.taken.push_back({one.value("name", ""), one.value("operators", int64_t{0}),
                               one.value("gflop", 0.0) * 1e9,
                               one.value("scratch_bytes", int64_t{0}),
                               one.value("kernels", int64_t{0}), one.value("parts", int64_t{0})});
    const nlohmann::json refused = json.value("refused", nlohmann::json::object());
    for (const auto& [code, count] : refused.items())
      offload.refused.push_back({code, count.get<int64_t>()});
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
    out.backend = text.substr(0, equals);
    number.remove_prefix(equals + 1);
  }
  const auto wrong = [&] {
    return UsageError("--require-offload {}: expected 0% to 100%, or BACKEND=90%", text);
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

void check_requirements(const std::vector<Requirement>& requirements, const Offload& offload,
                        const std::vector<Remark>& remarks) {
  constexpr size_t kMostNotes = 40;
  struct Left {
    double flop;
    size_t number;  // in the order of the program
    const Remark* remark;
  };
  for (const Requirement& wanted : requirements) {
    const double share = offload.share(wanted.backend);
    if (share + 1e-9 >= wanted.share) continue;
    const std::string who = wanted.backend.empty() ? "back ends take" : wanted.backend + " takes";
    CompileError error(kNotOffloaded, {}, "{} {:.1f} % of the {}; {:.6g} % is required", who,
                       share * 100, offload.flop > 0 ? "arithmetic" : "operators",
                       wanted.share * 100);
    if (offload.empty()) error.note({}, "no back end was asked for; expected --libs");
    std::vector<Left> left;
    for (const Decision& decision : decisions_of(remarks)) {
      const bool taken = !decision.backend.empty() &&
                         (wanted.backend.empty() || decision.backend == wanted.backend);
      if (!taken) left.push_back({flop_of(*decision.remark), left.size(), decision.last});
    }
    for (const Remark& remark : remarks)
      if (is_taken_back(remark) && number_of(remark, "kernels") == 0)
        left.push_back({flop_of(remark), left.size(), &remark});
    std::sort(left.begin(), left.end(), [&](const Left& a, const Left& b) {
      return std::pair(-a.flop, a.number) < std::pair(-b.flop, b.number);
    });
    for (size_t i = 0; i < left.size(); ++i) {
      if (i == kMostNotes) {
        error.note({}, "and {} more operators", left.size() - i);
        break;
      }
      const Remark& remark = *left[i].remark;
      const double part = offload.flop > 0 ? left[i].flop / offload.flop * 100 : 0;
      error.note(remark.origin, "`{}`{}: {} ({}){}{}", remark.subject,
                 part > 0 ? fmt::format(", {:.1f} % of the arithmetic", part) : "", remark.verdict,
                 remark.reason, remark.detail.empty() ? "" : ": ", remark.detail);
    }
    throw error;
  }
}

}  // namespace tenon
