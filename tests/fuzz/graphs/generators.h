// SPDX-License-Identifier: Apache-2.0
// A generator for each operator of the graph level: proposes calls with random attributes on values
// of the network and new ones.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "draft.h"

namespace tenon::fuzz {

/// Emits one call of the operator (and what it needs), or nothing where it finds no operands.
using Generator = void (*)(Draft& draft, std::string_view op);

struct GeneratorRow {
  std::string_view op;
  Generator generate;
  int weight = 2;  // how often, compared with the others
};

/// Sorted by family; every operator of the table is in it or in `without_generator()`.
std::span<const GeneratorRow> generators();

struct Excluded {
  std::string_view op, reason;
};
std::span<const Excluded> without_generator();

/// The families, a file each.
std::vector<GeneratorRow> elementwise_generators(), reduction_generators(), shape_generators(),
    index_generators(), product_generators(), window_generators(), norm_generators(),
    create_generators(), recurrent_generators(), select_generators(), tree_generators(),
    signal_generators();

/// dequantize - product - quantize, which FakeQuantizationToInteger folds.
void add_quantised(Draft& draft);

/// A network of 1 to 12 operators.
Network random_network(Choices& choices, std::map<std::string, Tally>* tally = nullptr);
/// The same of operators named here, the last one a call of `last` where that is given.
Network network_of(Choices& choices, std::span<const GeneratorRow> rows);

}  // namespace tenon::fuzz
