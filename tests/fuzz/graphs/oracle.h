// SPDX-License-Identifier: Apache-2.0
// Whether every target computes what the interpreter does.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "draft.h"

namespace tenon::fuzz {

/// One way to make a program of a network and to run it.
struct Configuration {
  std::string name;    // "llvm -mcpu=haswell", "c", "dnnl"
  std::string target;  // as --target takes it
  std::string libs = {};
  uint64_t every = 1;  // of so many networks, one
};

/// Those that names list, separated by commas: "native", "haswell", "v128", ... or "all".
/// \throws std::invalid_argument at one that is not there.
std::vector<Configuration> configurations(const std::string& names);
/// The names, for --help.
std::string configuration_names();

struct Failure {
  std::string configuration;
  std::string kind;  // "wrong", "refused", "internal error", "threads", "text", "crash", "hang"
  std::string text;
};

/// Whether a network of this seed runs with it.
bool runs_with(const Configuration& configuration, uint64_t seed);

/// Compiles and runs the network with one configuration. `seed` chooses what is checked beside its
/// numbers: the number of threads; in one configuration of some the verifier after every pass, and
/// in another the texts, which take as long as everything else together.
std::optional<Failure> try_configuration(const Network& network, const Configuration& configuration,
                                         uint64_t seed);
/// The whole module in the interpreter, against the operators one by one.
std::optional<Failure> try_interpreter(const Network& network);

}  // namespace tenon::fuzz
