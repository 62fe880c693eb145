// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/dnnl/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "tenon/backend/match_graph.h"

namespace tenon::backend::dnnl {

void* library_function(const char* name) {
  static std::mutex mutex;
  static void* library = nullptr;
  static std::map<std::string, void*> known;
  const std::lock_guard lock(mutex);
  void*& address = known[name];
  if (address) return address;
  if (!library) library = dlopen(TENON_DNNL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library) address = dlsym(library, name);
  if (!address) {
    const char* why = dlerror();
    throw Refusal{"library", why ? why : TENON_DNNL_LIBRARY " cannot be loaded"};
  }
  return address;
}

}  // namespace tenon::backend::dnnl
