// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/load.h"

#include <algorithm>
#include <filesystem>

#include "tenon/driver/console.h"
#include "tenon/driver/trust.h"
#include "tenon/driver/verify.h"
#include "tenon/driver/warnings.h"
#include "tenon/import/onnx/given_params.h"
#include "tenon/import/onnx/import.h"
#include "tenon/import/onnx/maps.h"
#include "tenon/import/relay/read_relay.h"
#include "tenon/script/constant_file.h"
#include "tenon/script/parser.h"
#include "tenon/script/printer.h"
#include "tenon/support/mapped_file.h"

namespace tenon {

ModelKind kind_of(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending == ".onnx") return ModelKind::kOnnx;
  if (ending == ".py" || ending == ".tvmscript") return ModelKind::kScript;
  if (ending == ".so") return ModelKind::kCompiled;
  if (ending == ".relay") return ModelKind::kRelay;
  throw CompileError(kFileError, {},
                     "{}: not a kind of model that Tenon reads; expected .onnx, .py, .tvmscript, "
                     ".relay or .so",
                     path);
}

static std::string constants_path(const std::string& path) { return path + ".constants"; }

ModelKind kind_of(std::span<const std::byte> contents) {
  const std::string_view text(reinterpret_cast<const char*>(contents.data()), contents.size());
  if (text.starts_with("\x7f"
                       "ELF"))
    return ModelKind::kCompiled;
  // Messages of protobuf begin with a control character, or hold one soon.
  constexpr size_t kLooked = 4096;
  for (const char c : text.substr(0, kLooked))
    if (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' && c != '\r' && c != '\f')
      return ModelKind::kOnnx;
  static constexpr std::string_view kRelayLines[] = {
      "#[version", "def @", "fn (", "fn(", "fn <", "fn<", "free_var ", "let %", "type ", "/*", "%"};
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    for (const std::string_view start : kRelayLines)
      if (line.starts_with(start)) return ModelKind::kRelay;
    begin = end + 1;
    // Neither empty nor a comment: this line would have shown it.
    if (const size_t word = line.find_first_not_of(" \t\r");
        word != std::string_view::npos && line[word] != '#')
      break;
  }
  return ModelKind::kScript;
}

static IRModule load_relay(const std::shared_ptr<const SourceFile>& file,
                           const LoadOptions& options) {
  relay::Params params = options.values;
  for (const std::string& name : options.params) {
    const auto given = MappedFile::open(name);
    for (auto& [key, value] : relay::read_params(given->bytes(), given, name)) params[key] = value;
  }
  return relay::read_relay(file, {.params = &params});
}

static onnx::ImportOptions import_options(const LoadOptions& options) {
  onnx::ImportOptions import;
  import.input_shapes = options.shapes;
  import.operators = options.operators;
  import.whole = options.whole.operators;
  import.whole_nodes = options.whole.nodes;
  import.lengths = options.lengths;
  import.rank_of = options.rank_of;
  import.warn = print_warning;
  return import;
}

// `source`: a path, or a model in memory.
template <typename Source>
static IRModule load_onnx(const Source& source, const LoadOptions& options) {
  onnx::ImportOptions import = import_options(options);
  if (options.values.empty()) return onnx::import_onnx(source, import);
  onnx::Model model = onnx::with_maps_in_pairs(onnx::read_model(source));
  model = onnx::with_params(std::move(model), options.values, import.dims);
  return onnx::import_onnx(model, import);
}

static IRModule load_script(const std::shared_ptr<const SourceFile>& file,
                            const script::ConstantStore* constants) {
  return script::parse_module(file, {.constants = constants, .module_name = {}});
}

// What suits one kind of model alone is not passed over in silence.
static void check_suits(ModelKind kind, const std::string& name, const LoadOptions& options) {
  if (!options.params.empty() && kind != ModelKind::kRelay)
    throw CompileError(kBadOption, {}, "{}: parameters are given; expected a .relay model", name);
  if (!options.values.empty() && kind != ModelKind::kRelay && kind != ModelKind::kOnnx)
    throw CompileError(kBadOption, {},
                       "{}: values of parameters are given; expected a .relay or .onnx model",
                       name);
  if (!options.shapes.empty() && kind != ModelKind::kOnnx)
    throw CompileError(kBadOption, {}, "{}: shapes are given; expected an .onnx model", name);
  if (!options.lengths.empty() && kind != ModelKind::kOnnx)
    throw CompileError(kBadOption, {}, "{}: lengths are given; expected an .onnx model", name);
}

[[noreturn]] static void refuse_compiled(const std::string& name) {
  throw CompileError(kUnsupported, {},
                     "{}: a compiled program holds no module; expected .onnx, .py, "
                     ".tvmscript or .relay",
                     name);
}

static IRModule checked(IRModule module) {
  verify_module(module);
  remember_loaded_code(module);
  return module;
}

IRModule load_module(const std::string& path, const LoadOptions& options) {
  const ModelKind kind = kind_of(path);
  check_suits(kind, path, options);
  const auto source = [&] {
    return std::make_shared<const SourceFile>(SourceFile{path, read_file(path)});
  };
  switch (kind) {
    case ModelKind::kOnnx: return checked(load_onnx(path, options));
    case ModelKind::kScript: {
      script::ConstantStore constants;
      if (const std::string beside = constants_path(path); std::filesystem::exists(beside))
        constants = script::read_constants(beside);
      return checked(load_script(source(), &constants));
    }
    case ModelKind::kRelay: return checked(load_relay(source(), options));
    case ModelKind::kCompiled: break;
  }
  refuse_compiled(path);
}

IRModule load_module(ModelKind kind, const NamedBytes& model, const LoadOptions& options,
                     const script::ConstantStore* constants) {
  check_suits(kind, model.name, options);
  const auto source = [&] {
    const auto* text = reinterpret_cast<const char*>(model.bytes.data());
    return std::make_shared<const SourceFile>(
        SourceFile{model.name, std::string(text, model.bytes.size())});
  };
  switch (kind) {
    case ModelKind::kOnnx: return checked(load_onnx(model, options));
    case ModelKind::kScript: return checked(load_script(source(), constants));
    case ModelKind::kRelay: return checked(load_relay(source(), options));
    case ModelKind::kCompiled: break;
  }
  refuse_compiled(model.name);
}

void write_module(const IRModule& module, const std::string& path) {
  script::ConstantStore constants;
  script::PrintOptions options;
  options.constants = &constants;
  write_file(path, script::print(module, options));
  if (!constants.items().empty()) script::write_constants(constants_path(path), constants);
}

}  // namespace tenon
