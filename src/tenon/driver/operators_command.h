// SPDX-License-Identifier: Apache-2.0
// `tenon operators`.
#pragma once

#include "tenon/driver/commands.h"

namespace tenon {

void add_operators_command(CLI::App& app, Action& action);

}  // namespace tenon
