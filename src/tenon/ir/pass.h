// SPDX-License-Identifier: Apache-2.0
// Passes and the runner that stands around them: it times, prints, verifies and validates; a pass
// does none of that.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tenon/ir/module.h"

namespace tenon {

/// What state of module a pass needs, and gives.
enum class Form : uint8_t {
  kAny,
  kGraph,      // graph functions may call operators
  kLegalised,  // graph functions call only call_tir, call_dps_packed and the like
  kTensorIR,   // no graph functions: PrimFuncs with blocks
  kLowered,    // PrimFuncs without blocks
};

/// How a pass may change the numbers that a program computes.
enum class Precision : uint8_t {
  kExact,          // bit for bit the same
  kReassociating,  // sums in another order, constants folded through floats: compared with a
                   // tolerance
};

struct Pass {
  std::string name;     // "FuseOps"
  std::string summary;  // one line for --list-passes
  Form needs = Form::kAny;
  Precision precision = Precision::kExact;
  /// Options are those of `Name(key=value, ...)`; an unknown one is an error of the pass
  /// (kBadOption).
  std::function<IRModule(IRModule, const Attrs& options)> run;
  Attrs options = {};  // as the pipeline states them
  Origin origin = {};  // where its text does; empty where Tenon put the pass there
};
using Pipeline = std::vector<Pass>;

struct PassTiming {
  std::string name;
  double seconds = 0;
};

/// What the driver hands in to stand around passes.
struct PassRunner {
  std::function<void(const Pass&, const IRModule&)> before;  // may be empty, as all of these
  std::function<void(const Pass&, const IRModule&)> after;   // prints, keeps modules, progress
  std::function<void(const IRModule&)> verify;               // throws CompileError
  /// Compares the results of the module before and after; throws where they differ.
  std::function<void(const Pass&, const IRModule& before, const IRModule& after)> validate;
  std::vector<PassTiming> timings;  // filled by run

  /// Runs the passes in order. An error in the verifier after a pass is an InternalError that names
  /// the pass.
  IRModule run(IRModule module, const Pipeline& pipeline);
};

/// The form that `module` is in: the least lowered of its functions decides. Rooms that know node
/// kinds set this once.
using FormOf = Form (*)(const IRModule&);
void set_form_of(FormOf form_of);

/// \throws CompileError (kBadOption) at an option that is not among `known`.
void check_options(const std::string& pass, const Attrs& options,
                   std::initializer_list<std::string_view> known);

}  // namespace tenon
