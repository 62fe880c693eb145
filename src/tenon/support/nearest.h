// SPDX-License-Identifier: Apache-2.0
// Suggests the name that a misspelt one was meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tenon {

/// The least number of letters to insert, drop or replace that makes `b` of `a`.
size_t edit_distance(std::string_view a, std::string_view b);

/// The first of `names` that `name` is most likely meant to be; empty where none is near.
std::string nearest(std::string_view name, std::span<const std::string> names);

/// "; did you mean `FuseOps`?", or nothing: the end of a message.
std::string did_you_mean(std::string_view name, std::span<const std::string> names);

}  // namespace tenon
