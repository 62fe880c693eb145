// SPDX-License-Identifier: Apache-2.0
// The registry of back ends.

#include <algorithm>
#include <memory>
#include <mutex>

#include "tenon/graph/backend.h"
#include "tenon/support/codes.h"

namespace tenon::graph {

namespace {

struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<const Backend>> backends;
  std::vector<std::unique_ptr<const Backend>> replaced;  // which somebody may still look at
};

Registry& registry() {
  static Registry one;
  return one;
}

}  // namespace

static void add(Backend backend, bool replaces) {
  if (backend.name.empty() || backend.name.find('.') != std::string::npos)
    throw CompileError(kBadBackend, {},
                       "a back end's name is `{}`; expected a name without a dot, as composites "
                       "begin with it: `NAME.conv2d`",
                       backend.name);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (auto& known : all.backends) {
    if (known->name != backend.name) continue;
    if (!known->by_name && !replaces)
      throw CompileError(kBadBackend, {}, "there are two back ends `{}`", backend.name);
    all.replaced.push_back(std::move(known));
    known = std::make_unique<const Backend>(std::move(backend));
    return;
  }
  all.backends.push_back(std::make_unique<const Backend>(std::move(backend)));
}

void register_backend(Backend backend) { add(std::move(backend), false); }

void replace_backend(Backend backend) { add(std::move(backend), true); }

void set_user_patterns(const std::string& name, std::vector<FusionPattern> patterns) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (auto& known : all.backends) {
    if (known->name != name) continue;
    Backend backend = *known;
    const auto is_users = [](const FusionPattern& pattern) { return pattern.is_users; };
    const bool had_some = std::any_of(backend.patterns.begin(), backend.patterns.end(), is_users);
    if (!had_some && patterns.empty()) return;
    std::erase_if(backend.patterns, is_users);
    for (FusionPattern& pattern : patterns) {
      pattern.is_users = true;
      backend.patterns.push_back(std::move(pattern));
    }
    all.replaced.push_back(std::move(known));
    known = std::make_unique<const Backend>(std::move(backend));
    return;
  }
  throw CompileError(kBadBackend, {}, "there is no back end `{}` to add patterns to", name);
}

bool unregister_backend(const std::string& name) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto known = std::find_if(all.backends.begin(), all.backends.end(),
                                  [&](const auto& one) { return one->name == name; });
  if (known == all.backends.end()) return false;
  all.replaced.push_back(std::move(*known));
  all.backends.erase(known);
  return true;
}

const Backend* find_backend(const std::string& name) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const auto& known : all.backends)
    if (known->name == name) return known.get();
  return nullptr;
}

std::vector<const Backend*> all_backends() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<const Backend*> list;
  for (const auto& known : all.backends)
    list.insert(std::upper_bound(
                    list.begin(), list.end(), known->priority,
                    [](int priority, const Backend* other) { return priority > other->priority; }),
                known.get());
  return list;
}

}  // namespace tenon::graph
