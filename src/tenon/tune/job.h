// SPDX-License-Identifier: Apache-2.0
// One measurement as a file, and its result as another: all that `tenon measure` reads and writes.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tenon/support/origin.h"
#include "tenon/tir/schedule/plan_file.h"
#include "tenon/tune/database.h"

namespace tenon::tune {

/// Of a kernel by a plan, or of a part of a graph (part.h) by a library.
struct Job {
  std::string kernel;   // its name in `module`: a PrimFunc, or a graph function
  std::string hash;     // tir::plan_hash, or tune::part_hash
  std::string module;   // TVMScript: the kernel before it is scheduled
  std::string target;   // resolved
  std::string plan;     // canonical, or the library's pattern; empty: the
                        // default plan, or own code, is measured alone
  int64_t stage = 0;    // Measurement::stage
  uint64_t seed = 0;    // of the inputs
  int64_t threads = 0;  // 0: as many as the process may use
  std::map<std::string, int64_t> dims = {};  // of symbols in the kernel's shapes
  std::vector<std::string> link = {};        // libraries that the kernel calls
  std::vector<std::string> plugins = {};     // files of back ends
  double seconds = 60;                       // limit, of the whole process
  int64_t memory_bytes = int64_t{8} << 30;   // limit, of its address space
  double timed_seconds = 0.3;                // of runs that are timed
  bool is_cold = false;  // constants come from beyond the second cache, as those of a large network
};

struct JobResult {
  std::string hash, plan;  // of the job
  std::string machine;     // fingerprint of where it ran
  std::string machine_text;
  std::string compiler;
  std::string taken;  // the plan that the default one is, or that was made of `plan`: canonical
  Measurement measurement;
};

std::string text_of(const Job& job);
std::string text_of(const JobResult& result);
/// \throws CompileError (kBadJob) at the file's name: what is malformed, missing or unknown.
Job read_job(const std::string& path, const std::string& text);
JobResult read_result(const std::string& path, const std::string& text);

/// The canonical text of the plans of a kernel's blocks: what tir::json_of says of each, without the
/// kernel, and without what the model says of a plan. `choices`: texts of json_of(BlockPlan).
std::string canonical_plan(const std::vector<std::string>& choices);
/// As a plan file's plans, for every kernel of this structure. `origin`: what diagnostics name.
/// \throws CompileError (kBadPlan)
std::vector<tir::GivenPlan> plans_of(const std::string& plan, const std::string& hash,
                                     const std::string& origin);

}  // namespace tenon::tune
