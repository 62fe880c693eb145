// SPDX-License-Identifier: Apache-2.0
// Plans a graph as calls of oneDNN: the layouts that the library prefers, and one memory plan for
// the values between the calls.
#pragma once

#include <dnnl_types.h>
#include <string.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tenon/backend/dnnl/groups.h"
#include "tenon/backend/dnnl/library.h"

namespace tenon::backend::dnnl {

#include "tenon/backend/dnnl/steps.h"

/// What a generated function does. Pointers are numbered: inputs, outputs, then the scratch memory.
struct Region {
  std::vector<dnnl_memory_desc_t> layouts;
  std::vector<tenon_dnnl_memory> memories;
  std::vector<tenon_dnnl_step> steps;
  int64_t scratch_bytes = 0;
  std::set<std::string> implementations;  // their names, which steps refer to

  struct Packing {
    dnnl_memory_desc_t plain, packed;
  };
  std::map<int, Packing> packings;  // of constant inputs, by position
};

/// The most threads that scratch memory is planned for: what is planned is the same on every host.
inline constexpr int kPlannedThreads = 16;

/// \throws Refusal where the library cannot do an operator.
Region plan_region(const MatchGraph& graph);

/// The bytes of a packed constant.
std::string pack_constant(const Region::Packing& packing, const void* data);

/// Guards planning: it sets the number of OpenMP's threads, and puts it back.
class PlanningThreads {
 public:
  PlanningThreads() : before_(omp_get_max_threads()) {}
  ~PlanningThreads() { omp_set_num_threads(before_); }
  PlanningThreads(const PlanningThreads&) = delete;
  PlanningThreads& operator=(const PlanningThreads&) = delete;

 private:
  int before_;
};

}  // namespace tenon::backend::dnnl
