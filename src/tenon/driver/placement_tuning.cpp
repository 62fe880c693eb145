// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/placement_tuning.h"

#include <algorithm>
#include <set>

#include "tenon/driver/warnings.h"
#include "tenon/support/codes.h"
#include "tenon/support/usage_codes.h"
#include "tenon/tune/part.h"

namespace tenon {

using tune::Search;
using Measured = graph::UserPlacement::Providers;

namespace {

/// A part that a library computes faster, measured alone.
struct Gain {
  double us;  // in one run of the network
  std::string hash, provider, name;
  bool operator<(const Gain& other) const {
    return std::tie(us, hash) < std::tie(other.us, other.hash);
  }
  std::string measured() const { return tune::measured_name(hash, provider); }
};

std::vector<Gain> gains_of(const Search& search) {
  std::vector<Gain> out;
  for (const Search::State& state : search.states())
    if (state.choice)
      out.push_back(
          {state.default_us * (1 - state.choice->ratio) * static_cast<double>(state.kernel->calls),
           state.kernel->job.hash, state.choice->plan, state.kernel->job.kernel});
  std::sort(out.begin(), out.end());
  return out;
}

// Own code in the place of what libraries compute faster, or of these.
Measured without(Measured measured, const std::vector<Gain>& gains) {
  for (const Gain& gain : gains) measured[gain.measured()] = graph::kMeasuredSlower;
  return measured;
}

class Confirmation {
 public:
  Confirmation(Search& search, const PlacementTuning& tuning) : search_(search), tuning_(tuning) {}

  ConfirmedPlacement run() {
    ConfirmedPlacement out;
    if (tuning_.max_peak) keep_within(*tuning_.max_peak);
    while (tuning_.runs_here && !gains_of(search_).empty()) {
      if (!each_is_faster()) break;
      const std::vector<Gain> gains = gains_of(search_);
      if (gains.empty()) break;
      const Measured measured = measured_by(search_);
      tuning_.progress("the network with what libraries compute");
      const auto times = compared(without(measured, gains), measured);
      if (!times) break;
      out.network = *times;
      if (!times->is_slower()) break;
      // Each is faster and the whole is not: the half that gains least.
      for (size_t i = 0; i < (gains.size() + 1) / 2; ++i)
        give_up(gains[i], *times, "the network as a whole");
      out.network = {};
    }
    if (tuning_.max_peak) out.peak = peak_of(measured_by(search_));
    return out;
  }

 private:
  NetworkVariant variant(Measured measured) const {
    NetworkVariant out{tuning_.request};
    out.request.measured = std::move(measured);
    return out;
  }

  int64_t peak_of(const Measured& measured) const {
    const LoweredModule lowered = lower(tuning_.prepared, variant(measured).request);
    return picture_of(lowered.plan, tuning_.dims).peak;
  }

  // Those that gain most first, each where the peak stays within the limit; until what takes the place of
  // those given up fits, too.
  void keep_within(int64_t limit) {
    while (true) {
      const Measured measured = measured_by(search_);
      const std::vector<Gain> gains = gains_of(search_);
      if (peak_of(measured) <= limit) return;
      Measured taken = without(measured, gains);
      if (const int64_t own = peak_of(taken); own > limit)
        throw CompileError(kDoesNotFit, {},
                           "--max-peak {}: the network needs {} bytes without the parts that were "
                           "measured to be faster in a library",
                           limit, own);
      for (auto gain = gains.rbegin(); gain != gains.rend(); ++gain) {
        tuning_.progress("memory with " + gain->name);
        Measured more = taken;
        more[gain->measured()] = graph::kMeasuredFaster;
        const int64_t peak = peak_of(more);
        if (peak <= limit)
          taken = std::move(more);
        else
          give_up(*gain, {}, fmt::format("the peak would be {} bytes", peak));
      }
    }
  }

  // Compares the network with itself without each part in turn, that which gains least first. False where
  // the network cannot be measured.
  bool each_is_faster() {
    std::set<std::string> seen;
    while (true) {
      const std::vector<Gain> gains = gains_of(search_);
      const auto next = std::find_if(gains.begin(), gains.end(), [&](const Gain& gain) {
        return !seen.contains(gain.measured());
      });
      if (next == gains.end()) return true;
      seen.insert(next->measured());
      tuning_.progress("the network without " + next->name);
      const Measured measured = measured_by(search_);
      const auto times = compared(without(measured, {*next}), measured);
      if (!times) return false;
      if (times->is_slower()) give_up(*next, *times, "in the network");
    }
  }

  // Nothing, and a warning, where the network ends with an error.
  std::optional<TimesInTurn> compared(const Measured& usual, const Measured& tuned) const {
    const NetworkTimes times = times_in_turn(tuning_.prepared, variant(usual), variant(tuned),
                                             tuning_.options, tuning_.dims, tuning_.seconds);
    if (times.failure.empty()) return times.network;
    warn(kRunFailed, {},
         "the network is not measured as a whole with what libraries compute: it ended with {}",
         times.failure);
    return std::nullopt;
  }

  void give_up(const Gain& gain, const TimesInTurn& times, const std::string& where) {
    search_.give_up(gain.hash, times.usual_us, times.tuned_us, where);
  }

  Search& search_;
  const PlacementTuning& tuning_;
};

}  // namespace

Measured measured_by(const Search& search) {
  Measured out;
  for (const Search::State& state : search.states())
    tune::add_verdicts(out, state.kernel->job.hash, state.first, state.choice);
  return out;
}

ConfirmedPlacement confirm_placement(Search& search, const PlacementTuning& tuning) {
  return Confirmation(search, tuning).run();
}

}  // namespace tenon
