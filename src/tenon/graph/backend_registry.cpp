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

// `backend` with the user's patterns that begin with its name in place of those it has; null where
// it has none and gets none: its functions may be another language's, whose copies take its lock.
static Registered with_user_patterns(const Backend& backend,
                                     const std::vector<FusionPattern>& patterns) {
  const auto is_users = [](const FusionPattern& pattern) { return pattern.is_users; };
  const auto is_its = [&](const FusionPattern& pattern) {
    return backend_of(pattern) == backend.name;
  };
  if (std::none_of(backend.patterns.begin(), backend.patterns.end(), is_users) &&
      std::none_of(patterns.begin(), patterns.end(), is_its))
    return nullptr;
  auto changed = std::make_shared<Backend>(backend);
  std::erase_if(changed->patterns, is_users);
  for (const FusionPattern& pattern : patterns) {
    if (!is_its(pattern)) continue;
    FusionPattern& added = changed->patterns.emplace_back(pattern);
    added.is_users = true;
    // What the library's function takes is a question of its signature.
    if (backend.by_name && added.pattern) added.check = fits_signature;
  }
  return changed;
}

void set_user_patterns(const std::vector<FusionPattern>& patterns) {
  Registry& all = registry();
  std::vector<Registered> replaced;
  const std::lock_guard lock(all.mutex);
  for (Registered& known : all.backends)
    if (Registered changed = with_user_patterns(*known, patterns)) {
      std::swap(known, changed);
      replaced.push_back(std::move(changed));
    }
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
