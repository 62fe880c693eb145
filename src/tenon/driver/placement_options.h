// SPDX-License-Identifier: Apache-2.0
// The options that choose back ends and place operators; every command that compiles has them.
#pragma once

#include <string>
#include <vector>

#include "tenon/ir/module.h"

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
  /// The module with attributes `libs` (those that it has, of plugins, stay)  and `place`
  /// (tune/placement.h). \throws UsageError as check.
  IRModule annotate(IRModule module) const;
};

}  // namespace tenon
