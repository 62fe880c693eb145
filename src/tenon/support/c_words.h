// Words that no program in C or C++ may use as a name.
#pragma once

#include <string_view>

namespace tenon {

/// A keyword of C99, C++ or both, that is likely to be met as a name.
bool is_c_keyword(std::string_view word);

}  // namespace tenon
