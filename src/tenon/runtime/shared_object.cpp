// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/shared_object.h"

#include <dlfcn.h>
#include <link.h>

#include <set>

namespace tenon::runtime {

static std::set<std::string> loaded_objects() {
  std::set<std::string> names;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        if (info->dlpi_name != nullptr && info->dlpi_name[0] != 0)
          static_cast<std::set<std::string>*>(out)->insert(info->dlpi_name);
        return 0;
      },
      &names);
  return names;
}

void* open_shared_object(const std::string& path) {
  const std::set<std::string> before = loaded_objects();
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  const link_map* own = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &own) != 0) return handle;
  for (const std::string& name : loaded_objects()) {
    if (before.count(name) > 0 || name == own->l_name) continue;
    if (void* kept = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE); kept != nullptr)
      dlclose(kept);
  }
  return handle;
}

}  // namespace tenon::runtime
