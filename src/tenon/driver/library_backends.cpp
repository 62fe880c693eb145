// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/library_backends.h"

#include <cstdlib>

#include "tenon/backend/blas/backend.h"
#include "tenon/backend/dnnl/backend.h"
#include "tenon/backend/plugin/plugin.h"

namespace tenon {

static constexpr TenonBackendFunction kLibraries[] = {backend::dnnl_backend, backend::blas_backend};

static bool register_all() {
  // For about as long as Tenon's own workers: after that they would take the cores from these.
  // OpenMP and OpenBLAS read it when they are loaded.
  setenv("GOMP_SPINCOUNT", "2000", 0);
  setenv("OPENBLAS_THREAD_TIMEOUT", "17", 0);  // 2^17 cycles
  for (const TenonBackendFunction entry : kLibraries)
    if (entry(nullptr)) graph::register_backend(plugin::adapt(entry));
  return true;
}

void register_library_backends() { [[maybe_unused]] static const bool kDone = register_all(); }

std::string library_backends() {
  std::string list;
  for (const TenonBackendFunction entry : kLibraries) {
    const TenonBackend* backend = entry(nullptr);
    if (!backend) continue;
    list += (list.empty() ? "" : ", ") + std::string(backend->name) + " (" + backend->version + ")";
  }
  return list.empty() ? "none" : list;
}

}  // namespace tenon
