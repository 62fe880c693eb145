#include "tenon/backend/llvm/shared_library.h"

#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>

#include <cstdio>
#include <fstream>
#include <mutex>

#include "tenon/backend/llvm/constants_object.h"

LLD_HAS_DRIVER(elf)

namespace tenon::llvm_backend {

namespace {

// A file that is gone when this goes.
struct TemporaryFile {
  explicit TemporaryFile(std::string path) : path(std::move(path)) {}
  ~TemporaryFile() { std::remove(path.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path;
};

}  // namespace

void write_shared_library(const CompiledProgram& compiled, const std::string& path) {
  const TemporaryFile code(path + ".code.o"), constants(path + ".constants.o");
  {
    std::ofstream out(code.path, std::ios::binary | std::ios::trunc);
    out.write(compiled.object.data(), static_cast<std::streamsize>(compiled.object.size()));
    out.close();
    if (!out) throw CompileError(kFileError, {}, "`{}` could not be written", code.path);
  }
  std::vector<const char*> args{"ld.lld",
                                "-shared",
                                "-z",
                                "now",
                                "-z",
                                "noexecstack",
                                "-z",
                                "relro",
                                "--hash-style=gnu",
                                "--build-id=fast",
                                "-o",
                                path.c_str(),
                                code.path.c_str()};
  if (compiled.constants.bytes > 0) {
    write_constants_object(compiled.constants, constants.path);
    args.push_back(constants.path.c_str());
  }
  static std::mutex one_at_a_time;  // LLD keeps its state in globals
  const std::lock_guard lock(one_at_a_time);
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const lld::Result result = lld::lldMain(args, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    throw CompileError(kLinkFailed, {}, "`{}` could not be linked: {}", path, messages);
}

}  // namespace tenon::llvm_backend
