// SPDX-License-Identifier: Apache-2.0
#include "readers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "tenon/backend/plugin/object_file.h"
#include "tenon/backend/plugin/wire.h"
#include "tenon/driver/manifest.h"
#include "tenon/driver/npy.h"
#include "tenon/driver/pass_list.h"
#include "tenon/driver/signature.h"
#include "tenon/driver/verify.h"
#include "tenon/import/onnx/import.h"
#include "tenon/import/relay/read_relay.h"
#include "tenon/memory/csv.h"
#include "tenon/runtime/error.h"
#include "tenon/runtime/program.h"
#include "tenon/script/constant_file.h"
#include "tenon/script/parser.h"
#include "tenon/script/pattern_file.h"

namespace tenon::fuzz {
namespace {

/// A file in memory, for readers that open one.
const std::string& as_file(const std::string& bytes) {
  static const int fd = memfd_create("input", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  if (ftruncate(fd, 0) != 0 ||
      pwrite(fd, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    std::abort();
  return path;
}

// What is well formed prints, and what is printed is accepted.
bool read_module(const IRModule& module) {
  verify_module(module);
  check_text(module);
  return true;
}

// What is imported is well formed.
bool read_network(const std::string& bytes) {
  const IRModule module = onnx::import_onnx(as_file(bytes));
  try {
    verify_module(module);
  } catch (const CompileError& error) {
    throw std::logic_error(std::string("an imported module is refused: ") + error.what());
  }
  return true;
}

bool read_tensor(const std::string& bytes) {
  return onnx::read_tensor_pb(as_file(bytes)).unsupported.empty();
}

bool read_array(const std::string& bytes) {
  (void)read_npy(as_file(bytes));
  return true;
}

bool read_params(const std::string& bytes) {
  const auto kept = std::make_shared<const std::string>(bytes);
  (void)relay::read_params(std::as_bytes(std::span(*kept)), kept, "p.params");
  return true;
}

bool read_csv(const std::string& text) {
  memory::parse_csv(std::make_shared<const SourceFile>(SourceFile{"p.csv", text}));
  return true;
}

// A pass is read as it prints.
bool read_pipeline(const std::string& text) {
  for (const Pass& pass : parse_pass_list(text)) {
    const std::string once = pass_text(pass);
    const Pipeline again = parse_pass_list(once);
    if (again.size() != 1 || pass_text(again.front()) != once)
      throw std::logic_error("a pass prints as what is read otherwise: " + once);
  }
  return true;
}

bool read_patterns(const std::string& text) {
  for (const auto& [name, pattern] : script::read_pattern_file(text).named)
    (void)script::print_pattern(pattern, name);
  return true;
}

bool read_constant_file(const std::string& bytes) {
  (void)script::read_constants(as_file(bytes));
  return true;
}

/// Numbers taken from the input; zeros behind its end.
class Bytes {
 public:
  explicit Bytes(const std::string& bytes) : bytes_(bytes) {}
  template <typename T>
  T take() {
    T value{};
    const size_t count = std::min(sizeof value, bytes_.size() - at_);
    std::memcpy(&value, bytes_.data() + at_, count);
    at_ += count;
    return value;
  }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

// Asks a program for its shapes as a caller does, with arguments that are small.
void ask_for_shapes(const runtime::Program& program, const Signature& signature) {
  static char data[4096] = {1, 2, 3};
  std::vector<std::vector<int64_t>> shapes;
  std::vector<DLTensor> tensors;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    const Port& port = signature.inputs[i];
    (void)port.str();
    const TenonTensorInfo& declared = program.inputs()[i];
    const DLDataType dtype = {declared.code, declared.bits, declared.lanes};
    shapes.push_back(shape_of(port, {{"n", 2}}, 3));
    if (runtime::byte_count(dtype, shapes.back()) > static_cast<int64_t>(sizeof data)) return;
    tensors.push_back({data, {kDLCPU, 0}, declared.ndim, dtype, shapes.back().data(), nullptr, 0});
  }
  std::vector<const DLTensor*> pointers;
  for (const DLTensor& tensor : tensors) pointers.push_back(&tensor);
  (void)program.shapes(pointers);
}

// What a compiled library declares: lists are as long as they say, what they say is anything.
bool read_metadata(const std::string& bytes) {
  const size_t cut = bytes.find('\0');
  (void)read_manifest(bytes.substr(0, cut));
  if (cut == std::string::npos) return true;
  const std::string rest = bytes.substr(cut + 1);
  Bytes in(rest);
  constexpr int kMost = 4;
  int64_t dims[2 * kMost][kMost] = {};
  TenonTensorInfo tensors[2 * kMost] = {};
  TenonSymbol symbols[kMost] = {};
  for (int i = 0; i < 2 * kMost; ++i) {
    for (int64_t& dim : dims[i]) dim = in.take<int16_t>() - 8;
    tensors[i] = {in.take<uint8_t>() & 1 ? "a\"/*" : "b",
                  dims[i],
                  in.take<int8_t>() % (kMost + 1),
                  in.take<uint8_t>(),
                  in.take<uint8_t>(),
                  in.take<uint8_t>(),
                  in.take<int8_t>(),
                  in.take<uint8_t>()};
  }
  for (TenonSymbol& symbol : symbols)
    symbol = {"n",
              in.take<uint8_t>(),
              in.take<int8_t>(),
              in.take<int8_t>(),
              in.take<int64_t>(),
              in.take<int64_t>()};
  TenonProgram program = {};
  program.abi_version = TENON_ABI_VERSION + in.take<uint8_t>() % 3 - 1;
  program.struct_size = sizeof(TenonProgram) - in.take<uint8_t>() % 3 * 8;
  program.name = "p";
  program.input_count = in.take<int8_t>() % (kMost + 1);
  program.output_count = in.take<int8_t>() % (kMost + 1);
  program.inputs = tensors;
  program.outputs = tensors + kMost;
  program.symbol_count = in.take<int8_t>() % (kMost + 1);
  program.symbols = symbols;
  program.alignment = in.take<int16_t>();
  program.constant_bytes = in.take<int64_t>();
  program.workspace_bytes = in.take<int64_t>();
  program.run = [](TenonContext*, void* const*, const int64_t*, void*, const void*) -> int32_t {
    return 0;
  };
  try {
    const auto loaded = runtime::Program::wrap(&program);
    ask_for_shapes(*loaded, signature_of(loaded->declaration()));
    return true;
  } catch (const runtime::Error&) {
    return false;
  }
}

// What a back end in another process may send.
bool read_answer(const std::string& bytes) {
  if (bytes.empty()) return false;
  const std::string_view rest = std::string_view(bytes).substr(1);
  plugin::WireReader in(rest);
  try {
    switch (bytes[0] % 4) {
      case 0: (void)plugin::read_match_bytes(in); break;
      case 1: (void)plugin::read_attrs(in); break;
      case 2: return plugin::object_fault(rest, "f").empty();
      default: {
        TenonAnswer answer;
        answer.callback = static_cast<TenonAnswer::Callback>(bytes[0] / 4 % 4);
        plugin::replay(in, answer);
      }
    }
    return true;
  } catch (const plugin::BadWire&) {
    return false;
  }
}

}  // namespace

const std::map<std::string, Reader>& readers() {
  static const std::map<std::string, Reader> kReaders = {
      {"onnx", read_network},
      {"tensor", read_tensor},
      {"script", [](const std::string& text) { return read_module(script::parse_module(text)); }},
      {"relay", [](const std::string& t) { return read_module(relay::read_relay(t)); }},
      {"params", read_params},
      {"npy", read_array},
      {"csv", read_csv},
      {"pipeline", read_pipeline},
      {"pattern", read_patterns},
      {"answer", read_answer},
      {"constants", read_constant_file},
      {"metadata", read_metadata},
  };
  return kReaders;
}

}  // namespace tenon::fuzz
