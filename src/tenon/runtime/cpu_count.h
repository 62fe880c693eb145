// SPDX-License-Identifier: Apache-2.0
// Counts the CPUs that this process may use.
#pragma once

#include <string>

namespace tenon::runtime {

/// The CPUs of the calling thread's affinity mask, at most as many as the CPU quota of its control
/// group (v1 or v2, rounded up) pays for; at least 1.
int default_thread_count();

/// The quota alone, in CPUs rounded up; 0 where there is none. The smallest on the way from the
/// process's group to the root.
///
/// \param membership  the text of /proc/self/cgroup
/// \param mount       where the control groups are mounted: "/sys/fs/cgroup"
int cpu_quota(const std::string& membership, const std::string& mount);

}  // namespace tenon::runtime
