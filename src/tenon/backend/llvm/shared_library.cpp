// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/llvm/shared_library.h"

#include <dlfcn.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/raw_ostream.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>

#include "tenon/backend/llvm/constants_object.h"
#include "tenon/support/mapped_file.h"
#include "tenon/support/temporary_files.h"

LLD_HAS_DRIVER(elf)

namespace tenon::llvm_backend {

namespace fs = std::filesystem;

// What LLD complained of, a line each, without its own name and without the places in scratch files
// (lines that begin with ">>>").
static std::vector<std::string> complaints(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find("error: ");
    if (at != std::string::npos && line.compare(0, 3, ">>>") != 0)
      out.push_back(line.substr(at + 7));
  }
  if (out.empty()) out.push_back("the linker gave no reason");
  return out;
}

static void link(const std::vector<std::string>& inputs, const std::string& output,
                 const CompiledProgram& program) {
  const std::string& name = program.name;
  std::vector<const char*> args = {"ld.lld",
                                   "-shared",
                                   "-m",
                                   program.target.is_x86() ? "elf_x86_64" : "aarch64linux",
                                   "--hash-style=gnu",
                                   "--build-id=fast",
                                   "--eh-frame-hdr",
                                   "-z",
                                   "defs",  // a program calls nothing but what it contains
                                   "-z",
                                   "now",
                                   "-z",
                                   "relro",
                                   "-z",
                                   "noexecstack",
                                   "--threads=1",
                                   "-o",
                                   output.c_str()};
  // Constants last: a segment of their own, far from code.
  if (program.target.is_x86()) args.insert(args.end(), {"-z", "lrodata-after-bss"});
  for (const std::string& input : inputs) args.push_back(input.c_str());

  // LLD keeps its state in globals, and leaves a fatal error by a jump to the recovery context,
  // which must be enabled or the process would end.
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  static bool is_usable = true;
  if (!is_usable)
    throw CompileError(kLinkFailed, {}, "an earlier failure left the linker unusable");
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::CrashRecoveryContext::Enable();
  const lld::Result result = lld::lldMain(args, stream, stream, {{lld::Gnu, &lld::elf::link}});
  llvm::CrashRecoveryContext::Disable();
  is_usable = result.canRunAgain;
  if (result.retCode == 0) return;

  static constexpr std::string_view kUndefined = "undefined symbol: ";
  std::vector<Diagnostic> diagnostics;
  for (const std::string& complaint : complaints(stream.str())) {
    const bool undefined = complaint.compare(0, kUndefined.size(), kUndefined) == 0;
    diagnostics.push_back(
        {kLinkFailed,
         {},
         undefined ? fmt::format("`{}` calls `{}`, which neither it, nor a library given with "
                                 "it, nor the C library defines",
                                 name, complaint.substr(kUndefined.size()))
                   : fmt::format("`{}` cannot be linked: {}", name, complaint),
         {}});
  }
  throw CompileError(std::move(diagnostics));
}

static void copy(const std::string& from, const fs::path& to) {
  std::ifstream in(from, std::ios::binary);
  OutputFile out(to.string());
  std::vector<char> piece(size_t{1} << 20);
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0)
    out.write(std::string_view(piece.data(), static_cast<size_t>(in.gcount())));
  if (in.bad()) throw CompileError(kFileError, {}, "cannot read `{}`", from);
  out.commit();
}

// The C library and what belongs to it, by the files that the loader has open.
static std::vector<std::string> c_library() {
  std::vector<std::string> files;
  for (const char* name : {"libm.so.6", "libc.so.6"}) {
    void* handle = dlopen(name, RTLD_NOW);
    char folder[4096] = "";
    if (!handle) continue;
    if (dlinfo(handle, RTLD_DI_ORIGIN, folder) == 0 && *folder)
      files.push_back(std::string(folder) + "/" + name);
    dlclose(handle);
  }
  return files;
}

void write_shared_library(const CompiledProgram& compiled, const std::string& path,
                          const backend::Libraries* libraries) {
  const backend::Libraries none({});
  if (!libraries) libraries = &none;
  libraries->check(compiled.libraries);
  const fs::path target(path);
  std::error_code ignored;
  if (target.filename().empty() || fs::is_directory(target, ignored))
    throw CompileError(kFileError, {}, "cannot write `{}`: it is a folder", path);
  const TemporaryFolder scratch = TemporaryFolder::beside(path);
  std::vector<std::string> inputs{"--whole-archive", scratch.file("program.o")};
  write_file(inputs.back(), compiled.object);
  inputs.push_back("--no-whole-archive");
  if (compiled.constants.bytes > 0) {
    inputs.push_back(scratch.file("constants.o"));
    write_constants_object(compiled.constants, compiled.target, inputs.back());
  }
  if (!compiled.libraries.empty()) {
    if (!compiled.target.is_x86())
      throw CompileError(
          kLinkFailed, {},
          "`{}` calls `{}`, which is there for this host only; the program is for {}",
          compiled.name, compiled.libraries.front().symbol, compiled.target.triple);
    // A shared library that is used is found beside the program, or where it is now.
    std::set<std::string> folders;
    bool has_own = false;
    for (const std::string& library : libraries->linker_inputs()) {
      if (libraries->is_own(library)) {
        // By its name alone: a path to it would stay in the program.
        inputs.push_back("-L" + fs::path(library).parent_path().string());
        inputs.push_back("-l:" + fs::path(library).filename().string());
        has_own = true;
        copy(library, target.parent_path() / fs::path(library).filename());
        continue;
      }
      if (library.ends_with(".o") || library.ends_with(".a")) {
        inputs.push_back(library);
        continue;
      }
      // By its name alone too: one that states none would be found at its path only.
      const std::string folder = fs::path(library).parent_path().string();
      inputs.push_back("-L" + folder);
      inputs.push_back("-l:" + fs::path(library).filename().string());
      folders.insert(folder);
    }
    std::string places = "-rpath=$ORIGIN";
    for (const std::string& folder : folders) places += ":" + folder;
    if (has_own || !folders.empty()) inputs.push_back(places);
    inputs.push_back("--as-needed");
    for (const std::string& library : c_library()) inputs.push_back(library);
  }
  const std::string linked = scratch.file("linked.so");
  link(inputs, linked, compiled);
  check_mapped_files();  // constants may have been copied from one that was cut off
  std::error_code error;
  fs::rename(linked, target, error);
  if (error) throw CompileError(kFileError, {}, "cannot write `{}`: {}", path, error.message());
}

}  // namespace tenon::llvm_backend
