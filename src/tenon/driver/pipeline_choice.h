// SPDX-License-Identifier: Apache-2.0
// The options that choose which passes run over a model; every command that runs passes has them.
#pragma once

#include <optional>
#include <string>

#include "tenon/ir/pass.h"

namespace CLI {
class App;
}

namespace tenon {

struct PipelineChoice {
  std::string passes;                  // in front of the pipeline
  std::string file;                    // of a whole pipeline, instead of the standard one
  std::optional<Pipeline> given = {};  // the same, by a program that calls Tenon

  void add_to(CLI::App& app);
  /// What `--passes` lists. \throws UsageError at its faults.
  Pipeline first() const;
  /// `given`, or what `--pipeline` holds; nothing where neither is there. \throws CompileError (kFileError, and
  /// what parse_pass_list finds).
  std::optional<Pipeline> whole() const;
};

}  // namespace tenon
