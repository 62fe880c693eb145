#include "tenon/driver/load.h"

#include <cstring>
#include <filesystem>

#include "tenon/driver/console.h"
#include "tenon/driver/verify.h"
#include "tenon/onnx/import.h"
#include "tenon/onnx/mapped_file.h"
#include "tenon/script/parser.h"
#include "tenon/script/printer.h"
#include "tenon/script/relay/read_relay.h"

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

// ---- constants beside a text: a line of text for each, "dtype dim dim ...\n", then its bytes
// ------

static constexpr std::string_view kMagic = "tenon constants 1\n";

static std::string constants_path(const std::string& path) { return path + ".constants"; }

static script::ConstantStore read_constants(const std::string& path) {
  script::ConstantStore store;
  if (!std::filesystem::exists(path)) return store;
  const auto file = std::make_shared<const std::string>(read_file(path));
  const std::string_view text = *file;
  const auto bytes = std::as_bytes(std::span(text));
  const auto broken = [&](std::string_view why) {
    return CompileError(kBadTensor, {}, "{}: {}", path, why);
  };
  if (!text.starts_with(kMagic)) throw broken("not a file of constants");
  size_t at = kMagic.size();
  while (at < text.size()) {
    constexpr size_t kLongestLine = 4096;
    const size_t end = text.substr(at, kLongestLine).find('\n');
    if (end == std::string_view::npos) throw broken("a constant's line does not end");
    std::string line(text.substr(at, end));
    at += end + 1;
    char* word = std::strtok(line.data(), " ");
    const auto dtype = DType::parse(word ? word : "");
    if (!dtype || dtype->is_void() || dtype->is_handle() || dtype->bytes() < 1)
      throw broken("a constant has no element type");
    std::vector<int64_t> shape;
    while ((word = std::strtok(nullptr, " "))) {
      char* stop = nullptr;
      shape.push_back(std::strtoll(word, &stop, 10));
      if (*stop != '\0' || shape.back() < 0) throw broken("a constant has no shape");
    }
    const int64_t elements = checked_elements(shape, dtype->bytes());
    const auto size = static_cast<size_t>(elements * dtype->bytes());
    if (size > text.size() - at) throw broken("ends inside a constant");
    store.add(TensorData::view(*dtype, std::move(shape), bytes.subspan(at, size), file));
    at += size;
  }
  return store;
}

static void write_constants(const script::ConstantStore& store, const std::string& path) {
  std::string out(kMagic);
  for (const Ref<TensorData>& constant : store.items()) {
    out += constant->dtype.str();
    for (const int64_t dim : constant->shape) out += fmt::format(" {}", dim);
    out += "\n";
    const auto data = constant->data();
    out.append(reinterpret_cast<const char*>(data.data()), data.size());
  }
  write_file(path, out);
}

static IRModule load_relay(const std::string& path, const LoadOptions& options) {
  script::relay::Params params;
  for (const std::string& name : options.params) {
    const auto file = onnx::MappedFile::open(name);
    for (auto& [key, value] : script::relay::read_params(file->bytes(), file, name))
      params[key] = value;
  }
  const auto file = std::make_shared<const SourceFile>(SourceFile{path, read_file(path)});
  return script::relay::read_relay(file, {.params = &params});
}

IRModule load_module(const std::string& path, const LoadOptions& options) {
  IRModule module;
  if (!options.params.empty() && kind_of(path) != ModelKind::kRelay)
    throw CompileError(kBadOption, {}, "{}: parameters are given; expected a .relay model", path);
  switch (kind_of(path)) {
    case ModelKind::kOnnx: {
      onnx::ImportOptions import;
      import.operators = options.operators;
      import.keeps_gemm = options.keeps_gemm;
      module = onnx::import_onnx(path, import);
      break;
    }
    case ModelKind::kScript: {
      const script::ConstantStore constants = read_constants(constants_path(path));
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
  return module;
}

void write_module(const IRModule& module, const std::string& path) {
  script::ConstantStore constants;
  script::PrintOptions options;
  options.constants = &constants;
  write_file(path, script::print(module, options));
  if (!constants.items().empty()) write_constants(constants, constants_path(path));
}

}  // namespace tenon
