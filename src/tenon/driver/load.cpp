// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/load.h"

#include <filesystem>

#include "tenon/driver/console.h"
#include "tenon/driver/trust.h"
#include "tenon/driver/verify.h"
#include "tenon/driver/warnings.h"
#include "tenon/import/onnx/import.h"
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

static IRModule load_relay(const std::string& path, const LoadOptions& options) {
  relay::Params params;
  for (const std::string& name : options.params) {
    const auto file = MappedFile::open(name);
    for (auto& [key, value] : relay::read_params(file->bytes(), file, name)) params[key] = value;
  }
  const auto file = std::make_shared<const SourceFile>(SourceFile{path, read_file(path)});
  return relay::read_relay(file, {.params = &params});
}

IRModule load_module(const std::string& path, const LoadOptions& options) {
  IRModule module;
  if (!options.params.empty() && kind_of(path) != ModelKind::kRelay)
    throw CompileError(kBadOption, {}, "{}: parameters are given; expected a .relay model", path);
  if (!options.shapes.empty() && kind_of(path) != ModelKind::kOnnx)
    throw CompileError(kBadOption, {}, "{}: shapes are given; expected an .onnx model", path);
  if (!options.lengths.empty() && kind_of(path) != ModelKind::kOnnx)
    throw CompileError(kBadOption, {}, "{}: lengths are given; expected an .onnx model", path);
  switch (kind_of(path)) {
    case ModelKind::kOnnx: {
      onnx::ImportOptions import;
      import.input_shapes = options.shapes;
      import.operators = options.operators;
      import.whole = options.whole.operators;
      import.whole_nodes = options.whole.nodes;
      import.lengths = options.lengths;
      import.rank_of = options.rank_of;
      import.warn = print_warning;
      module = onnx::import_onnx(path, import);
      break;
    }
    case ModelKind::kScript: {
      script::ConstantStore constants;
      if (const std::string beside = constants_path(path); std::filesystem::exists(beside))
        constants = script::read_constants(beside);
      const auto file = std::make_shared<const SourceFile>(SourceFile{path, read_file(path)});
      module = script::parse_module(file, {.constants = &constants, .module_name = {}});
      break;
    }
    case ModelKind::kRelay: module = load_relay(path, options); break;
    case ModelKind::kCompiled:
      throw CompileError(kUnsupported, {},
                         "{}: a compiled program holds no module; expected .onnx, .py, "
                         ".tvmscript or .relay",
                         path);
  }
  verify_module(module);
  remember_loaded_code(module);
  return module;
}

void write_module(const IRModule& module, const std::string& path) {
  script::ConstantStore constants;
  script::PrintOptions options;
  options.constants = &constants;
  write_file(path, script::print(module, options));
  if (!constants.items().empty()) script::write_constants(constants_path(path), constants);
}

}  // namespace tenon
