// SPDX-License-Identifier: Apache-2.0
// The options that choose back ends and place operators; every command that compiles has them.
#pragma once

#include <string>
#include <vector>

#include "tenon/graph/user_placement.h"

namespace CLI {
class App;
}

namespace tenon {

struct PlacementOptions {
  std::string libs;                 // "dnnl,blas"; "none"; empty: what the module says
  std::vector<std::string> places;  // NODE=PROVIDER

  bool empty() const { return libs.empty() && places.empty(); }
  void add_to(CLI::App& app);
  /// \throws UsageError where --libs names what is not there, or --place is malformed.
  void check() const;
  /// `user` with these back ends (those of plugins stay) and placements. \throws UsageError as
  /// check.
  graph::UserPlacement add_to(graph::UserPlacement user) const;
};

}  // namespace tenon
