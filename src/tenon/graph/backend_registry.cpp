// SPDX-License-Identifier: Apache-2.0
// The registry of back ends.

#include <algorithm>
#include <memory>
#include <mutex>

#include "tenon/graph/backend.h"
#include "tenon/support/codes.h"

namespace tenon::graph {

namespace {

using Registered = std::shared_ptr<const Backend>;

// One that is replaced ends outside of the lock, where nobody has it: it may be code of another
// language.
struct Registry {
  std::mutex mutex;
  std::vector<Registered> backends;
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
  auto added = std::make_shared<const Backend>(std::move(backend));
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (Registered& known : all.backends) {
    if (known->name != added->name) continue;
    if (!known->by_name && !replaces)
      throw CompileError(kBadBackend, {}, "there are two back ends `{}`", added->name);
    std::swap(known, added);
    return;
  }
  all.backends.push_back(std::move(added));
}

void register_backend(Backend backend) { add(std::move(backend), false); }

void replace_backend(Backend backend) { add(std::move(backend), true); }

void set_user_patterns(const std::string& name, std::vector<FusionPattern> patterns) {
  Registry& all = registry();
  Registered changed;
  const std::lock_guard lock(all.mutex);
  for (Registered& known : all.backends) {
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
    changed = std::make_shared<const Backend>(std::move(backend));
    std::swap(known, changed);
    return;
  }
  throw CompileError(kBadBackend, {}, "there is no back end `{}` to add patterns to", name);
}

bool unregister_backend(const std::string& name) {
  Registry& all = registry();
  Registered taken;
  const std::lock_guard lock(all.mutex);
  const auto known = std::find_if(all.backends.begin(), all.backends.end(),
                                  [&](const auto& one) { return one->name == name; });
  if (known == all.backends.end()) return false;
  taken = std::move(*known);
  all.backends.erase(known);
  return true;
}

std::shared_ptr<const Backend> find_backend(const std::string& name) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const Registered& known : all.backends)
    if (known->name == name) return known;
  return nullptr;
}

std::vector<std::shared_ptr<const Backend>> all_backends() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<Registered> list;
  for (const Registered& known : all.backends)
    list.insert(std::upper_bound(list.begin(), list.end(), known->priority,
                                 [](int priority, const Registered& other) {
                                   return priority > other->priority;
                                 }),
                known);
  return list;
}

}  // namespace tenon::graph
