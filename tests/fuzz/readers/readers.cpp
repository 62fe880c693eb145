// Every reader of foreign bytes as a target of libFuzzer: what it is given is refused by a
// CompileError or taken; anything else (another exception, what the sanitizers find, more than a
// few seconds or a gigabyte) is a fault. One program; which reader it feeds is the end of the name
// that it is called by (libfuzzer_onnx, ...).
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "tenon/backend/plugin/object_file.h"
#include "tenon/backend/plugin/wire.h"
#include "tenon/driver/load.h"
#include "tenon/driver/manifest.h"
#include "tenon/driver/npy.h"
#include "tenon/driver/pass_list.h"
#include "tenon/driver/signature.h"
#include "tenon/driver/verify.h"
#include "tenon/memory/csv.h"
#include "tenon/onnx/import.h"
#include "tenon/runtime/error.h"
#include "tenon/runtime/program.h"
#include "tenon/script/constant_file.h"
#include "tenon/script/parser.h"
#include "tenon/script/pattern_file.h"
#include "tenon/script/relay/read_relay.h"

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
void read_module(const IRModule& module) {
  verify_module(module);
  check_text(module);
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

// What a compiled library declares: lists are as long as they say, what they say is anything.
void read_metadata(const std::string& bytes) {
  const size_t cut = bytes.find('\0');
  (void)read_manifest(bytes.substr(0, cut));
  if (cut == std::string::npos) return;
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
                  0,
                  in.take<int8_t>()};
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
    (void)signature_of(runtime::Program::wrap(&program)->declaration());
  } catch (const runtime::Error&) {
  }
}

// What a back end in another process may send.
void read_answer(const std::string& bytes) {
  if (bytes.empty()) return;
  const std::string_view rest = std::string_view(bytes).substr(1);
  plugin::WireReader in(rest);
  try {
    switch (bytes[0] % 4) {
      case 0: (void)plugin::read_match_bytes(in); break;
      case 1: (void)plugin::read_attrs(in); break;
      case 2: (void)plugin::object_fault(rest, "f"); break;
      default: {
        TenonAnswer answer;
        answer.callback = static_cast<TenonAnswer::Callback>(bytes[0] / 4 % 4);
        plugin::replay(in, answer);
      }
    }
  } catch (const plugin::BadWire&) {
  }
}

using Reader = std::function<void(const std::string&)>;

const std::map<std::string, Reader>& readers() {
  static const std::map<std::string, Reader> kReaders = {
      {"onnx", [](const std::string& bytes) { verify_module(onnx::import_onnx(as_file(bytes))); }},
      {"tensor", [](const std::string& bytes) { onnx::read_tensor_pb(as_file(bytes)); }},
      {"script", [](const std::string& text) { read_module(script::parse_module(text)); }},
      {"relay", [](const std::string& text) { read_module(script::relay::read_relay(text)); }},
      {"params",
       [](const std::string& bytes) {
         const auto kept = std::make_shared<const std::string>(bytes);
         (void)script::relay::read_params(std::as_bytes(std::span(*kept)), kept, "p.params");
       }},
      {"npy", [](const std::string& bytes) { read_npy(as_file(bytes)); }},
      {"csv",
       [](const std::string& text) {
         memory::parse_csv(std::make_shared<const SourceFile>(SourceFile{"p.csv", text}));
       }},
      {"pipeline", [](const std::string& text) { (void)parse_pass_list(text); }},
      {"pattern", [](const std::string& text) { (void)script::read_pattern_file(text); }},
      {"answer", read_answer},
      {"constants", [](const std::string& bytes) { (void)script::read_constants(as_file(bytes)); }},
      {"metadata", read_metadata},
  };
  return kReaders;
}

const Reader* chosen = nullptr;

}  // namespace
}  // namespace tenon::fuzz

// Containers that cross into LLVM's and protobuf's libraries, which are not instrumented, are not
// annotated on both sides.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "detect_container_overflow=0"; }

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** argv) {
  std::string name = (*argv)[0];
  name = name.substr(name.find_last_of("/_") + 1);
  const auto found = tenon::fuzz::readers().find(name);
  if (found == tenon::fuzz::readers().end()) {
    std::fprintf(stderr, "libfuzzer_%s: there is no such reader\n", name.c_str());
    std::exit(2);
  }
  tenon::fuzz::chosen = &found->second;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    (*tenon::fuzz::chosen)(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const tenon::CompileError&) {
  }
  return 0;
}
