// SPDX-License-Identifier: Apache-2.0
// What was compiled, looked at: stories of nodes, times of kernels, the report, pictures.
#pragma once

#include <optional>
#include <string>

#include "program.h"
#include "tenon/driver/story.h"

namespace tenon::python {

/// The story of a node, from the file to machine code. \throws CompileError (kUndefined)
Story explain(const Program& program, const std::string& node);

/// A list of (kernel, node or None, calls in a run, milliseconds in a run), the slowest first.
nb::list time_per_kernel(const Program& program, const nb::args& args, int repeat,
                         const std::optional<std::map<std::string, int64_t>>& dims,
                         const nb::kwargs& kwargs);

/// The page of `tenon report`.
std::string report(const Program& program, int repeat,
                   const std::optional<std::map<std::string, int64_t>>& dims);

/// An SVG of where its memory lies; empty where it was loaded.
std::string memory_svg(const Program& program, const std::map<std::string, int64_t>& dims);

}  // namespace tenon::python
