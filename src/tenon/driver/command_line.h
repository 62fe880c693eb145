// SPDX-License-Identifier: Apache-2.0
// The command line: the program `tenon`, and the script of the same name that the Python package installs.
#pragma once

namespace tenon {

/// Does what the arguments after the program's name say. Returns the exit status; what goes wrong is
/// printed (guarded.h).
int command_line(int argc, char** argv);

}  // namespace tenon
