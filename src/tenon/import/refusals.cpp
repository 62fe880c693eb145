// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/refusals.h"

#include <map>

#include "tenon/support/codes.h"

namespace tenon::importers {

bool Refusals::attempt(const Origin& origin, const std::string& name,
                       const std::function<void()>& convert) {
  try {
    convert();
    return true;
  } catch (const Unsupported& what) {
    add(origin, name, what.form);
  } catch (const CompileError& error) {
    const Diagnostic& first = error.first();
    if (first.code.id != kUnsupported.id && first.code.id != kUnknownOperator.id) {
      const auto is_script = [](const Origin& place) {
        return place && place->kind == OriginInfo::Kind::kScript;
      };
      if (first.origin && (!is_script(origin) || is_script(first.origin))) throw;
      std::vector<Diagnostic> placed = error.diagnostics();
      placed.front().origin = origin;
      throw CompileError(std::move(placed));
    }
    add(origin, name, first.message);
  }
  return false;
}

std::string Refusals::str(const std::string& noun, const std::string& verb) const {
  std::map<std::pair<std::string, std::string>, int> kinds;
  for (const Refusal& refusal : all_) kinds[{refusal.name, refusal.form}]++;
  std::string list;
  for (const auto& [kind, count] : kinds)
    list += fmt::format("{}`{}` ({}{})", list.empty() ? "" : "; ", kind.first, kind.second,
                        count > 1 ? fmt::format(", {} {}s", count, noun) : "");
  const std::string count = all_.size() == 1 ? fmt::format("one {} is", noun)
                                             : fmt::format("{} {}s are", all_.size(), noun);
  return fmt::format("{} not {}: {}", count, verb, list);
}

std::string expected_count(size_t given, int least, int most) {
  const auto count = static_cast<int64_t>(given);
  if (count >= least && (most < 0 || count <= most)) return "";
  if (most < 0) return fmt::format("at least {}", least);
  return least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
}

}  // namespace tenon::importers
