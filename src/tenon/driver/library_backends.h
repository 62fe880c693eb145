// SPDX-License-Identifier: Apache-2.0
// Registers the back ends in the tree.
#pragma once

#include <string>

namespace tenon {

/// Registers them, and sees to it that the threads of their libraries sleep soon when they have
/// nothing to do. To be called before anything else is done; a second time it does nothing.
void register_library_backends();

/// Which there are, for `--version`: "dnnl (libdnnl.so.2), blas (OpenBLAS)"; "none".
std::string library_backends();

}  // namespace tenon
