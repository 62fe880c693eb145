// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <fstream>
#include <sstream>

namespace tenon::runtime {

static int affinity_count() {
  for (int capacity = 1024; capacity <= 1 << 20;
       capacity *= 2) {  // the kernel's mask may be wider than cpu_set_t
    cpu_set_t* mask = CPU_ALLOC(capacity);
    if (mask == nullptr) return 1;
    size_t bytes = CPU_ALLOC_SIZE(capacity);
    bool known = sched_getaffinity(0, bytes, mask) == 0;
    bool too_small = !known && errno == EINVAL;
    int count = known ? CPU_COUNT_S(bytes, mask) : 1;
    CPU_FREE(mask);
    if (!too_small) return std::max(count, 1);
  }
  return 1;
}

static int cpus_for(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return 0;  // "max" and -1 mean unlimited
  double cpus = quota / period;
  if (cpus >= INT_MAX) return 0;
  int whole = static_cast<int>(cpus);
  return std::max(whole + (whole < cpus ? 1 : 0), 1);
}

/// The quota set on one group itself.
static int quota_of(const std::string& folder, bool unified) {
  double quota = 0, period = 0;
  if (unified) {
    std::ifstream file(folder + "/cpu.max");  // "max 100000" or "150000 100000"
    if (!(file >> quota >> period)) return 0;
  } else {
    std::ifstream quota_file(folder + "/cpu.cfs_quota_us"),
        period_file(folder + "/cpu.cfs_period_us");
    if (!(quota_file >> quota) || !(period_file >> period)) return 0;
  }
  return cpus_for(quota, period);
}

int cpu_quota(const std::string& membership, const std::string& mount) {
  int least = 0;
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // ID:CONTROLLERS:PATH
    size_t first = line.find(':');
    size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    bool unified = controllers.empty();
    if (!unified && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;

    std::string base = unified ? mount : mount + "/" + controllers;
    while (true) {
      int quota = quota_of(base + (path == "/" ? "" : path), unified);
      if (quota > 0 && (least == 0 || quota < least)) least = quota;
      size_t slash = path.rfind('/');
      if (path.size() <= 1 || slash == std::string::npos) break;
      path.resize(std::max<size_t>(slash, 1));
    }
  }
  return least;
}

int default_thread_count() {
  std::ifstream file("/proc/self/cgroup");
  std::ostringstream membership;
  membership << file.rdbuf();
  int count = affinity_count();
  int quota = cpu_quota(membership.str(), "/sys/fs/cgroup");
  return quota > 0 ? std::min(count, quota) : count;
}

}  // namespace tenon::runtime
