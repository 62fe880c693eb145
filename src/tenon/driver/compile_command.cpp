// SPDX-License-Identifier: Apache-2.0
// `tenon compile`: compiles ahead of time, to files.
#include <CLI/CLI.hpp>
#include <filesystem>

#include "tenon/backend/c/example_program.h"
#include "tenon/backend/c/names.h"
#include "tenon/backend/llvm/jit.h"
#include "tenon/backend/llvm/shared_library.h"
#include "tenon/driver/c_example.h"
#include "tenon/driver/c_header.h"
#include "tenon/driver/commands.h"
#include "tenon/driver/console.h"
#include "tenon/driver/external_files.h"
#include "tenon/driver/load.h"
#include "tenon/driver/option_table.h"
#include "tenon/driver/trust.h"
#include "tenon/driver/usage.h"
#include "tenon/driver/warnings.h"
#include "tenon/support/nearest.h"

namespace tenon {

namespace {

namespace fs = std::filesystem;

struct CompileCommandOptions {
  std::string model, out, name;
  std::vector<std::string> emit = {"so"};
  TargetOptions target;
  PassOptions passes;
};

// The file of one kind of output: in a folder, or beside the library.
struct Place {
  fs::path stem;  // folder/name
  std::string operator()(const char* ending) const { return stem.string() + ending; }
};

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw CompileError(kFileError, {}, "cannot create folder `{}`: {}", path, error.message());
}

Place place_of(const CompileCommandOptions& options, const std::string& name) {
  const fs::path out(options.out);
  const std::string ending = out.extension().string();
  if (ending == ".so") return {fs::path(out).replace_extension()};
  if (ending == ".tar" || ending == ".c" || ending == ".o")
    throw CompileError(kUnsupported, {},
                       "{}: `{}` files are not written yet; expected .so or a folder", options.out,
                       ending);
  make_folder(options.out);
  return {out / name};
}

void print_files(const std::vector<std::string>& files, const LoweredModule& lowered,
                 const Target& target, std::optional<int64_t> constant_bytes) {
  for (const std::string& file : files)
    fmt::print("{:<40} {}\n", file, bytes_text(static_cast<int64_t>(fs::file_size(file))));
  const std::string more = "; target " + target.str();
  fmt::print("{}", account_lines({lowered.operators, lowered.kernels, lowered.library_calls,
                                  lowered.offload, kernel_lines(lowered.pipeline.remarks), more}));
  fmt::print("{}", memory_lines(lowered.memory, constant_bytes));
}

int write_as_c(LoweredModule& lowered, const CompileRequest& request,
               const backend::Libraries& libraries, const CompileCommandOptions& options,
               Progress& progress) {
  fs::path folder(options.out);
  if (folder.extension() == ".so" || folder.extension() == ".tar")
    throw UsageError("-o {}: C is written to a folder", options.out);
  if (!options.target.model.allow_code)
    check_loaded_code(lowered.pipeline.module, options.target.model.link);
  const c_backend::Program program = generate_c(lowered, request, options.target.c);
  libraries.check_trust(
      backend::ProgramFunctions(lowered.pipeline.module, program.entry.name).libraries());
  make_folder(options.out);
  std::vector<std::string> files =
      write_c_program(program, lowered.pipeline.module, request.target, options.out);
  if (std::find(options.emit.begin(), options.emit.end(), "c-example") != options.emit.end()) {
    files.push_back((folder / (program.name + "_example.c")).string());
    write_file(files.back(), c_backend::example_program(program));
  }
  if (std::find(options.emit.begin(), options.emit.end(), "tvmscript") != options.emit.end()) {
    files.push_back((folder / (c_backend::c_identifier(request.name) + ".tvmscript")).string());
    write_module(lowered.pipeline.module, files.back());
  }
  progress.clear();
  print_files(files, lowered, request.target, program.constants.bytes);
  for (const Remark& remark : lowered.pipeline.remarks)
    if (remark.pass == "CheckPrototypes")
      std::fprintf(stderr, "remark: `%s`: %s\n", remark.subject.c_str(), remark.detail.c_str());
  return 0;
}

int compile(const CompileCommandOptions& options) {
  options.target.check();
  for (const std::string& kind : options.emit) {
    static const std::vector<std::string> kKinds = {"so",  "c",         "llvm",
                                                    "asm", "tvmscript", "c-example"};
    if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end())
      throw UsageError("--emit {}: expected so, c, llvm, asm, tvmscript or c-example{}", kind,
                       did_you_mean(kind, kKinds));
  }
  const auto wanted = [&](const char* kind) {
    return std::find(options.emit.begin(), options.emit.end(), kind) != options.emit.end();
  };
  const ModelOptions& model = options.target.model;
  CompileRequest request = model.request(options.model, options.target.target);
  if (!options.name.empty()) request.name = options.name;
  Progress progress;
  request.pipeline = options.passes.pipeline(model);
  request.pipeline.progress = [&](const std::string& what) {
    progress.show(options.model + ": " + what);
  };
  const bool as_c = request.target.kind == "c";
  for (const std::string& kind : options.emit)
    if (as_c ? kind == "llvm" || kind == "asm" : kind == "c")
      throw UsageError("--emit {} is not of target `{}`", kind, options.target.target);
  auto libraries = model.libraries();
  request.libraries = libraries;
  request.required = options.target.requirements();
  request.unchecked = options.target.unchecked;
  const IRModule module = model.read(options.model);
  LoweredModule lowered = lower(with_pools(module, options.target.c), request);
  warn_of_unmatched(lowered.pipeline.remarks, options.model);
  model.warn_of_unused(module, lowered.pipeline, libraries.get());
  model.write_plans(lowered.pipeline.remarks, request.target);
  options.passes.tell();
  if (as_c) return write_as_c(lowered, request, *libraries, options, progress);
  libraries = with_external_modules(lowered.pipeline.module, libraries, model.link);
  const Place place = place_of(options, c_backend::c_identifier(request.name));
  const llvm_backend::CompileOptions emit{.name = request.name, .manifest = lowered.manifest};
  const IRModule& program_module = lowered.pipeline.module;
  std::vector<std::string> files;
  const auto written = [&](const std::string& path) { files.push_back(path); };
  std::optional<int64_t> constant_bytes;
  if (wanted("so") || wanted("c-example")) {  // an example of a program that is there
    llvm_backend::CompiledProgram program = generate(lowered, request, libraries.get());
    constant_bytes = program.constants.bytes;
    llvm_backend::write_shared_library(program, place(".so"), libraries.get());
    written(place(".so"));
    program.constants.items.clear();  // what is asked is what it declares
    const auto linked = llvm_backend::link_in_process(std::move(program), libraries);
    write_file(place(".h"), c_header(*linked->program(), request.name));
    written(place(".h"));
    write_file(place(".json"), lowered.manifest + "\n");
    written(place(".json"));
    if (wanted("c-example")) {
      const std::string source = place("_example.c");
      write_file(source, c_example(*linked->program(), request.name,
                                   fs::path(place(".so")).filename().string(),
                                   fs::path(source).filename().string()));
      written(source);
    }
  }
  if (wanted("tvmscript")) {
    write_module(program_module, place(".tvmscript"));
    written(place(".tvmscript"));
  }
  if (wanted("llvm")) {
    write_file(place(".ll"), llvm_backend::emit_llvm(program_module, request.target, emit));
    written(place(".ll"));
  }
  if (wanted("asm")) {
    write_file(place(".s"), llvm_backend::emit_assembly(program_module, request.target, emit));
    written(place(".s"));
  }
  progress.clear();
  print_files(files, lowered, request.target, constant_bytes);
  return 0;
}

}  // namespace

void add_compile_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<CompileCommandOptions>();
  CLI::App* command = app.add_subcommand("compile", "compile a model ahead of time");
  command->add_option("MODEL", options->model, ".onnx, .py, .tvmscript or .relay")->required();
  command
      ->add_option("-o,--out", options->out,
                   "x.so (with x.h and x.json beside it), or a folder for all files")
      ->required();
  command
      ->add_option(
          "--emit", options->emit,
          "so, llvm, asm, tvmscript, c-example (C that calls the .so), separated by commas; "
          "target c: c, tvmscript, c-example")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--name", options->name, "of the program (default: the model's file name)");
  command->add_flag("--constants", options->target.c.constants_file,
                    "target c: constants as a file for the caller to map, not as arrays");
  command->add_flag("--separate-arrays", options->target.c.separate_arrays,
                    "target c: a static array for each buffer, to measure what planning costs");
  options->target.add_to(*command);
  options->passes.add_to(*command);
  options->target.model.add_plan_to(*command);
  options->target.model.add_write_plan_to(*command);
  command->callback([options, command, &action] {
    action = [options, command] {
      check_options(*command, options->target.form());
      return compile(*options);
    };
  });
}

}  // namespace tenon
