// SPDX-License-Identifier: Apache-2.0
// What nearly every file includes, compiled once (option TENON_PRECOMPILE).
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "tenon/graph/expr.h"
#include "tenon/ir/pass.h"
#include "tenon/support/diagnostics.h"
#include "tenon/tir/stmt.h"
