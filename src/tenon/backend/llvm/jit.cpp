// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/llvm/jit.h"

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <sys/mman.h>

#include <cstring>

#include "tenon/backend/constants.h"
#include "tenon/backend/llvm/host.h"
#include "tenon/backend/llvm/machine.h"
#include "tenon/backend/llvm/parts.h"

namespace tenon::llvm_backend {

namespace {

class JitProgram final : public LoadedProgram {
 public:
  JitProgram(const CompiledProgram& compiled, std::shared_ptr<const backend::Libraries> libraries)
      : libraries_(std::move(libraries)) {
    if (!libraries_)
      libraries_ = std::make_shared<const backend::Libraries>(std::vector<std::string>{});
    check_runs_here(compiled.target);
    libraries_->check(compiled.libraries);
    if (compiled.constants.bytes > 0) load_constants(compiled.constants);
    link(compiled);
  }
  ~JitProgram() override {
    jit_.reset();
    if (mapped_) munmap(mapped_, mapped_bytes_);
  }

 private:
  void load_constants(const ConstantsLayout& layout) {
    const auto size = static_cast<size_t>(layout.bytes);
    // Pages have an alignment of their own.
    const auto alignment = static_cast<uintptr_t>(layout.alignment);
    constexpr uintptr_t kPage = 4096;
    mapped_bytes_ = size + (alignment > kPage ? alignment : 0);
    mapped_ =
        mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED) {
      mapped_ = nullptr;
      throw CompileError(kLinkFailed, {}, "{} bytes for constants could not be allocated",
                         layout.bytes);
    }
    const uintptr_t address = reinterpret_cast<uintptr_t>(mapped_) + alignment - 1;
    void* memory = reinterpret_cast<void*>(address / alignment * alignment);
    constants_ = memory;
    madvise(memory, size, MADV_HUGEPAGE);  // large weights: fewer page faults and TLB misses
    backend::stream_constants(layout, [&](int64_t offset, std::span<const std::byte> bytes) {
      std::memcpy(static_cast<std::byte*>(memory) + offset, bytes.data(), bytes.size());
    });
    mprotect(memory, size, PROT_READ);
  }

  template <typename T>
  static T must(llvm::Expected<T> value) {
    if (!value) throw CompileError(kLinkFailed, {}, "{}", llvm::toString(value.takeError()));
    return std::move(*value);
  }
  static void must(llvm::Error error) {
    if (error) throw CompileError(kLinkFailed, {}, "{}", llvm::toString(std::move(error)));
  }

  void link(const CompiledProgram& compiled) {
    (void)llvm_target(Target());
    using namespace llvm::orc;
    JITTargetMachineBuilder machine{llvm::Triple(kX86Triple)};
    jit_ = must(LLJITBuilder()
                    .setJITTargetMachineBuilder(machine)
                    .setPlatformSetUp(setUpInactivePlatform)
                    .setObjectLinkingLayerCreator(
                        [](ExecutionSession& session,
                           const llvm::Triple&) -> llvm::Expected<std::unique_ptr<ObjectLayer>> {
                          return std::make_unique<ObjectLinkingLayer>(session);
                        })
                    .create());
    JITDylib& main = jit_->getMainJITDylib();
    main.addGenerator(must(DynamicLibrarySearchGenerator::GetForCurrentProcess('\0')));
    if (constants_) {
      SymbolMap symbols;
      symbols[jit_->mangleAndIntern(kConstantsSymbol)] = {ExecutorAddr::fromPtr(constants_),
                                                          llvm::JITSymbolFlags::Exported};
      must(main.define(absoluteSymbols(std::move(symbols))));
    }
    SymbolMap found;
    for (const backend::LibraryFunction& function : compiled.libraries)
      if (void* address = libraries_->find(function.symbol))
        found[jit_->mangleAndIntern(function.symbol)] = {
            ExecutorAddr::fromPtr(address),
            llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    if (!found.empty()) must(main.define(absoluteSymbols(std::move(found))));
    int number = 0;
    for (const std::string& object : objects_of(compiled.object))
      must(jit_->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(
          object, compiled.name + "." + std::to_string(number++))));
    const ExecutorAddr entry = must(jit_->lookup(TENON_PROGRAM_SYMBOL));
    program_ = entry.toPtr<TenonProgramFunction>()();
  }

  std::shared_ptr<const backend::Libraries> libraries_;
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  void* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
  void* constants_ = nullptr;  // in what is mapped
};

}  // namespace

std::unique_ptr<LoadedProgram> link_in_process(
    const CompiledProgram& compiled, std::shared_ptr<const backend::Libraries> libraries) {
  return std::make_unique<JitProgram>(compiled, std::move(libraries));
}

}  // namespace tenon::llvm_backend
