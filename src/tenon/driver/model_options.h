// SPDX-License-Identifier: Apache-2.0
// Options that complete a model beside its file: values of its parameters, and functions of foreign
// libraries (their patterns, signatures and files).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/backend/libraries.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/kernel_files.h"
#include "tenon/driver/load.h"
#include "tenon/driver/pipeline_choice.h"
#include "tenon/driver/placement_options.h"
#include "tenon/driver/plugin_options.h"
#include "tenon/ir/pass.h"
#include "tenon/script/pattern_file.h"

namespace CLI {
class App;
}

namespace tenon {

struct ModelOptions {
  std::vector<std::string> link;          // libraries: lib.so, lib.a, file.o, file.c
  bool allow_code = false;                // that a model brings or calls without --link
  std::vector<std::string> call_by_name;  // back ends whose composites become calls by name
  std::vector<std::string> signatures;    // files of extern functions that replace derived ones
  std::vector<std::string> composite;     // files of patterns
  std::string composite_before;           // the pass before which they are looked for

  PipelineChoice chosen;  // passes
  PluginOptions plugins;
  PlacementOptions placement;
  KernelFiles kernels;              // of one's own, for operators
  std::vector<std::string> params;  // files with parameters of a .relay model
  /// Values of parameters of `main`, which become constants; given by a program that calls Tenon.
  std::map<std::string, Ref<TensorData>> bound_params;
  std::vector<std::string> shapes;  // NAME=1,?,224: of inputs of an .onnx model
  std::function<std::optional<size_t>(const std::string& input)> rank_of;  // from files of values
  std::vector<std::string> lengths;  // NAME=N or NAME=none: of sequences and optionals
  std::vector<std::string> bounds;   // NAME=N: of numbers that only the run knows
  std::string plan, write_plan;      // files of plans: that are taken, and to be written
  std::string tuned, machine;        // database of plans, and the kind of machine that they are of
  std::string fp;                    // "auto", "strict" or "fast": module attribute `fp`
  std::optional<int64_t> max_steps;  // of a loop; module attribute `max_steps`

  void add_to(CLI::App& app);
  /// Those of commands that compile.
  void add_plan_to(CLI::App& app);
  void add_write_plan_to(CLI::App& app);
  /// \throws UsageError where a shape is malformed.
  LoadOptions load_options() const;
  /// Loads what back ends there are: plugins, and libraries that are called by name, with the
  /// patterns of the files. \throws CompileError what reading the files finds.
  void load() const;
  bool places() const {
    return !call_by_name.empty() || !composite.empty() || !plugins.empty() || !kernels.empty() ||
           !placement.empty() || !signatures.empty();
  }
  /// A loaded model with the functions of the signature, pattern and kernel files beside its own,
  /// its entry named `main`, and its placement as attributes. \throws CompileError what reading the
  /// files finds; kUndefined where no function can be the entry.
  IRModule prepare(IRModule module) const;
  /// The same of the file at `path`.
  IRModule read(const std::string& path) const {
    return prepare(load_module(path, load_options()));
  }
  /// The module with what --fp says, where it is given (prepare() has it in). \throws UsageError at
  /// anything but strict and fast.
  IRModule with_fp(IRModule module) const;
  /// What to compile it for, by which passes and plans; named after the file. \throws CompileError
  /// what reading the plans finds; UsageError where no pass takes them.
  CompileRequest request(const std::string& path, const std::string& target) const;
  /// The passes that go in front of the pipeline. \throws UsageError at faults of --passes.
  enum class Then : uint8_t { kPipeline, kNothing };
  Pipeline passes(Then then = Then::kPipeline) const;
  /// The pipeline behind them; nothing: the standard one. \throws CompileError at faults of the
  /// file of --pipeline; UsageError where it has not the pass of --composite-before.
  std::optional<Pipeline> whole() const;
  /// Both. \throws CompileError at faults of the file of --pipeline.
  Pipeline pipeline() const;
  /// The libraries of --link, opened. \throws CompileError (kFileError, kLinkFailed).
  std::shared_ptr<const backend::Libraries> libraries() const;
  /// The libraries of a module's foreign functions, for the interpreter: these, and what back ends
  /// generated. Opened when a module is first asked for.
  std::function<std::shared_ptr<const backend::Libraries>(const IRModule&)> libraries_of() const;
  /// Warns (kNotUsed) of kernels, signatures and libraries that are given, and that the program,
  /// lowered from `prepared`, does not use. `opened`: the libraries, where they are linked.
  void warn_of_unused(const IRModule& prepared, const PipelineResult& lowered,
                      const backend::Libraries* opened) const;
  /// What a database says of kernels and of parts of a graph.
  struct Tuned {
    std::map<std::string, std::string> plans;  // by the hashes of kernels
    graph::UserPlacement::Providers measured;
  };
  /// That of --tuned. The same for the same database, on every host.
  /// \throws CompileError (kBadDatabase) where it is of several kinds of machines, and none or
  /// another is named.
  Tuned tuned_choices(const Target& target) const;
  /// Writes the plans that were taken, where a file for them is given.
  void write_plans(const std::vector<Remark>& remarks, const Target& target) const;

 private:
  /// The library of --call-by-name where there is one only.
  std::string only_library() const;
  /// The patterns of --composite, with full names. \throws CompileError (kBadPattern) where one is
  /// no back end's.
  std::vector<graph::FusionPattern> patterns() const;
  /// The passes that look for them by themselves, and not as placement does.
  Pipeline fusing_passes(bool is_placing) const;
  std::vector<std::string> composite_names(const IRModule& prepared) const;
};

}  // namespace tenon
