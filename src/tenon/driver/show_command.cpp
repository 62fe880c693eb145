// SPDX-License-Identifier: Apache-2.0
// `tenon show`: prints the interface and the needs of a compiled program or a model.
#include "tenon/driver/show_command.h"

#include <dlfcn.h>
#include <link.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tenon/driver/commands.h"
#include "tenon/driver/console.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/load.h"
#include "tenon/driver/manifest.h"
#include "tenon/driver/option_table.h"
#include "tenon/driver/signature.h"
#include "tenon/driver/tensors.h"
#include "tenon/driver/usage.h"

namespace tenon {

namespace {

struct ShowOptions {
  std::string model;
  std::vector<std::string> dims;
  bool json = false;
};

// Libraries that a loaded program names as its dependencies.
std::vector<std::string> needed_libraries(const std::string& path) {
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  std::vector<std::string> out;
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  link_map* map = nullptr;
  if (handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0) {
    const char* names = nullptr;
    for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry)
      if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    for (const ElfW(Dyn)* entry = map->l_ld; names && entry->d_tag != DT_NULL; ++entry)
      if (entry->d_tag == DT_NEEDED) out.emplace_back(names + entry->d_un.d_val);
  }
  if (handle) dlclose(handle);
  return out;
}

nlohmann::ordered_json json_of(const std::vector<Port>& ports) {
  auto list = nlohmann::ordered_json::array();
  for (const Port& port : ports) {
    auto shape = nlohmann::ordered_json::array();
    for (const PortDim& dim : port.dims) {
      if (dim.value >= 0)
        shape.push_back(dim.value);
      else if (!dim.symbol.empty())
        shape.push_back(dim.symbol);
      else
        shape.push_back(nullptr);
    }
    list.push_back({{"name", port.name}, {"dtype", port.dtype.str()}, {"shape", shape}});
  }
  return list;
}

std::string lines_of(const char* title, const std::vector<Port>& ports) {
  std::string out = fmt::format("{}\n", title);
  size_t width = 0;
  for (const Port& port : ports) width = std::max(width, port.name.size());
  for (const Port& port : ports) out += fmt::format("  {:<{}}  {}\n", port.name, width, port.str());
  return ports.empty() ? fmt::format("{:<10} none\n", title) : out;
}

std::string joined(const std::vector<std::string>& names, const char* otherwise) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? otherwise : out;
}

/// A compiled program, and what is computed of it for given dimensions.
class Shown {
 public:
  Shown(std::string path, const std::map<std::string, int64_t>& dims)
      : path_(std::move(path)), program_(inspect(path_)), signature_(signature_of(declared())) {
    libraries_ = needed_libraries(path_);
    for (int64_t i = 0; i < declared().packed_count; ++i)
      if (const TenonPacked& packed = declared().packed[i]; packed.function == nullptr)
        registered_.emplace_back(packed.name ? packed.name : "");
    workspace_bytes_ = declared().workspace_bytes;
    if (dims.empty()) return;
    InputOptions inputs;
    inputs.dims = dims;
    const BoundRun bound(program_, make_inputs(signature_, inputs));
    dims_ = dims;
    workspace_bytes_ = bound.workspace_bytes();
    output_shapes_ = bound.output_shapes();
  }

  std::string text() const {
    const TenonProgram& program = declared();
    std::string out =
        fmt::format("program    {}; interface {}.{}\n", program.name ? program.name : "",
                    program.abi_version >> 16, program.abi_version & 0xffff);
    if (const std::string target = read_manifest(manifest()).target; !target.empty())
      out += fmt::format("target     {}\n", target);
    out += lines_of("inputs", signature_.inputs) + lines_of("outputs", signature_.outputs);
    if (program.symbol_count > 0) out += "dimensions\n";
    for (int32_t s = 0; s < program.symbol_count; ++s)
      out += fmt::format("  {}  {}\n", program.symbols[s].name, source_of(program.symbols[s]));
    if (!dims_.empty()) {
      out += "where     ";
      for (const auto& [name, value] : dims_) out += fmt::format(" {}={}", name, value);
      out += "\n";
      for (size_t i = 0; i < output_shapes_.size(); ++i)
        out += fmt::format("  {}  {}\n", signature_.outputs[i].name, shape_text(output_shapes_[i]));
    }
    out +=
        fmt::format("memory     workspace {}; constants {} bytes; addresses are multiples of {}\n",
                    workspace_bytes_ >= 0 ? fmt::format("{} bytes", workspace_bytes_)
                                          : "as the dimensions are (--dim NAME=N tells)",
                    program.constant_bytes, program.alignment);
    out += fmt::format("libraries  {}\n", joined(libraries_, "none"));
    if (!registered_.empty())
      out += fmt::format("to be registered before it is loaded: {}\n", joined(registered_, ""));
    return out;
  }

  nlohmann::ordered_json json() const {
    const TenonProgram& program = declared();
    nlohmann::ordered_json out = {{"file", path_},
                                  {"name", program.name ? program.name : ""},
                                  {"interface", fmt::format("{}.{}", program.abi_version >> 16,
                                                            program.abi_version & 0xffff)},
                                  {"target", read_manifest(manifest()).target},
                                  {"inputs", json_of(signature_.inputs)},
                                  {"outputs", json_of(signature_.outputs)},
                                  {"dimensions", nlohmann::ordered_json::array()}};
    for (int32_t s = 0; s < program.symbol_count; ++s) {
      const TenonSymbol& symbol = program.symbols[s];
      nlohmann::ordered_json row = {
          {"name", symbol.name},
          {"of", symbol.source == TENON_SYMBOL_DIM ? "shape" : "elements"},
          {"input", program.inputs[symbol.input].name},
          {"index", symbol.index},
          {"lower", symbol.lower},
          {"upper", nullptr}};
      if (symbol.upper != INT64_MAX) row["upper"] = symbol.upper;
      out["dimensions"].push_back(std::move(row));
    }
    if (!dims_.empty()) out["where"] = {{"dimensions", dims_}, {"output_shapes", output_shapes_}};
    out["workspace_bytes"] = nullptr;
    if (workspace_bytes_ >= 0) out["workspace_bytes"] = workspace_bytes_;
    out["constant_bytes"] = program.constant_bytes;
    out["alignment"] = program.alignment;
    out["libraries"] = libraries_;
    out["registered"] = registered_;
    const std::string text = manifest();
    const auto stated = nlohmann::ordered_json::parse(text, nullptr, false);
    out["manifest"] = stated.is_discarded() ? nlohmann::ordered_json() : stated;
    return out;
  }

 private:
  static std::shared_ptr<runtime::Program> inspect(const std::string& path) {
    try {
      return runtime::Program::inspect(path);
    } catch (const runtime::Error& error) {
      throw CompileError(kLinkFailed, {}, "{}", error.what());
    }
  }
  const TenonProgram& declared() const { return program_->declaration(); }
  std::string manifest() const { return declared().manifest ? declared().manifest : ""; }

  std::string source_of(const TenonSymbol& symbol) const {
    const std::string input = signature_.inputs.at(static_cast<size_t>(symbol.input)).name;
    std::string out = symbol.source == TENON_SYMBOL_DIM
                          ? fmt::format("dimension {} of input `{}`", symbol.index, input)
                          : fmt::format("element {} of input `{}`", symbol.index, input);
    if (symbol.lower > 0) out += fmt::format(", at least {}", symbol.lower);
    if (symbol.upper != INT64_MAX) out += fmt::format(", at most {}", symbol.upper);
    return out;
  }

  static std::string shape_text(const std::vector<int64_t>& shape) {
    std::string out;
    for (const int64_t dim : shape) out += fmt::format("{}{}", out.empty() ? "" : ", ", dim);
    return "(" + out + ")";
  }

  std::string path_;
  std::shared_ptr<runtime::Program> program_;
  Signature signature_;
  std::vector<std::string> libraries_, registered_;
  std::map<std::string, int64_t> dims_;
  int64_t workspace_bytes_ = -1;
  std::vector<std::vector<int64_t>> output_shapes_;
};

int show(const ShowOptions& options) {
  const auto dims = parse_dims(options.dims);
  if (options.model.ends_with(".so")) {
    const Shown shown(options.model, dims);
    if (options.json)
      print_json(shown.json());
    else
      std::cout << shown.text();
    return 0;
  }
  const Signature signature = signature_of(ModelOptions().prepare(load_module(options.model)));
  if (options.json)
    print_json({{"file", options.model},
                {"inputs", json_of(signature.inputs)},
                {"outputs", json_of(signature.outputs)}});
  else
    std::cout << lines_of("inputs", signature.inputs) << lines_of("outputs", signature.outputs);
  return 0;
}

}  // namespace

std::string interface_text(const std::string& path) { return Shown(path, {}).text(); }

void add_show_command(CLI::App& app, Action& action) {
  const auto options = std::make_shared<ShowOptions>();
  CLI::App* command = app.add_subcommand(
      "show", "what a compiled program, or a model, takes and gives, and what it needs");
  command->add_option("MODEL", options->model, "a compiled .so, .onnx, .py, .tvmscript or .relay")
      ->required();
  command->add_option("--dim", options->dims,
                      "NAME=N: a symbolic dimension; the memory and the outputs of a run with it");
  command->add_flag("--json", options->json, "the same as JSON");
  command->callback([options, command, &action] {
    action = [options, command] {
      check_options(*command, options->model.ends_with(".so") ? "compiled" : "model");
      return show(*options);
    };
  });
}

}  // namespace tenon
