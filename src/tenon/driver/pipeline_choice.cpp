// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/pipeline_choice.h"

#include <CLI/CLI.hpp>

#include "tenon/driver/console.h"
#include "tenon/driver/pass_list.h"
#include "tenon/driver/usage.h"

namespace tenon {

void PipelineChoice::add_to(CLI::App& app) {
  app.add_option("--passes", passes,
                 "\"FuseOps,PlanMemory(work_limit=1000)\": passes to run, in front of the pipeline "
                 "where there is one; options as Python literals");
  app.add_option("--pipeline", file,
                 "a file with a pipeline, one pass a line, instead of the standard one (`tenon opt "
                 "--print-pipeline` prints that)");
}

Pipeline PipelineChoice::first() const {
  try {
    return parse_pass_list(passes);
  } catch (const CompileError& error) {
    throw UsageDiagnostic(error);
  }
}

std::optional<Pipeline> PipelineChoice::whole() const {
  if (given || file.empty()) return given;
  return parse_pass_list(std::make_shared<const SourceFile>(SourceFile{file, read_file(file)}));
}

}  // namespace tenon
