// SPDX-License-Identifier: Apache-2.0
// Measurements on the nodes of a Slurm cluster, as arrays of jobs.
#pragma once

#include "tenon/driver/launcher.h"

namespace tenon {

std::unique_ptr<Launcher> slurm_launcher(const LauncherOptions& options);

}  // namespace tenon
