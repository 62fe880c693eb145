// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/image_library.h"

#include <dlfcn.h>

#include <algorithm>

#ifndef TENON_LIBRARIES
#define TENON_LIBRARIES "../lib/"  // from the folder of programs
#endif

namespace tenon::runtime {

// Beside what this function is part of, among the libraries of an installation, or where the system
// looks.
static void* open_library() {
  const std::string name = "libtenon_image.so";
  Dl_info own{};
  std::string folder;
  if (dladdr(reinterpret_cast<void*>(&open_library), &own) != 0 && own.dli_fname != nullptr)
    folder = own.dli_fname;
  const size_t end = folder.rfind('/');
  folder.resize(end == std::string::npos ? 0 : end + 1);
  for (const std::string& path : {folder + name, folder + TENON_LIBRARIES + name, name}) {
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

TenonPackedFunction find_image_function(const std::string& name) {
  if (name.rfind("tenon.image.", 0) != 0) return nullptr;
  static void* const library = open_library();  // never closed: programs keep its functions
  if (library == nullptr) return nullptr;
  std::string symbol = name;
  std::replace(symbol.begin(), symbol.end(), '.', '_');
  return reinterpret_cast<TenonPackedFunction>(dlsym(library, symbol.c_str()));
}

}  // namespace tenon::runtime
