// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/llvm/jit.h"

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <sys/mman.h>

#include <cstring>

#include "tenon/backend/constant_pieces.h"
#include "tenon/backend/llvm/host.h"
#include "tenon/backend/llvm/machine.h"
#include "tenon/backend/llvm/parts.h"
#include "tenon/support/free_memory.h"
#include "tenon/support/pages.h"

namespace tenon::llvm_backend {

namespace {

/// Pages for constants, unmapped with the last owner.
class ConstantMemory {
 public:
  explicit ConstantMemory(const ConstantsLayout& layout)
      : size_(static_cast<size_t>(layout.bytes)) {
    // Pages have an alignment of their own.
    const auto alignment = static_cast<size_t>(layout.alignment);
    mapped_bytes_ = size_ + (alignment > kPageBytes ? alignment : 0);
    mapped_ =
        mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED)
      throw CompileError(kLinkFailed, {}, "{} bytes for constants could not be allocated",
                         layout.bytes);
    void* place = mapped_;
    size_t room = mapped_bytes_;
    data_ = static_cast<std::byte*>(std::align(alignment, size_, place, room));
    madvise(data_, size_, MADV_HUGEPAGE);  // large weights: fewer page faults and TLB misses
  }
  ~ConstantMemory() { munmap(mapped_, mapped_bytes_); }
  ConstantMemory(const ConstantMemory&) = delete;
  ConstantMemory& operator=(const ConstantMemory&) = delete;

  std::byte* data() const { return data_; }
  /// To be called when all of them are in place. Pages that have moved there are joined by the system
  /// later.
  void protect() const {
    mprotect(data_, size_, PROT_READ);
    madvise(data_, size_, MADV_HUGEPAGE);
  }

 private:
  size_t size_, mapped_bytes_ = 0;
  void* mapped_ = nullptr;
  std::byte* data_ = nullptr;  // in what is mapped
};

class JitProgram final : public LoadedProgram {
 public:
  JitProgram(CompiledProgram compiled, std::shared_ptr<const backend::Libraries> libraries)
      : libraries_(std::move(libraries)) {
    if (!libraries_)
      libraries_ = std::make_shared<const backend::Libraries>(std::vector<std::string>{});
    check_runs_here(compiled.target);
    libraries_->check(compiled.libraries);
    constants_ = std::move(compiled.constants);
    if (constants_.bytes > 0) load_constants();
    link(compiled);
    compiled = {};
    // Programs that make constants while a model compiles have none: that goes on with its heap.
    if (memory_) return_free_memory();
  }
  ~JitProgram() override { jit_.reset(); }

 private:
  void load_constants() {
    memory_ = std::make_shared<const ConstantMemory>(constants_);
    // Before any is copied: the last page of one that moves may hold others.
    std::vector<bool> moved;
    moved.reserve(constants_.items.size());
    for (ConstantsLayout::Item& item : constants_.items) moved.push_back(move(item));
    int64_t free_bytes = 0;
    for (size_t i = 0; i < constants_.items.size(); ++i) {
      ConstantsLayout::Item& item = constants_.items[i];
      if (moved[i]) continue;
      backend::stream_constant(item, [&](int64_t offset, std::span<const std::byte> bytes) {
        std::memcpy(memory_->data() + offset, bytes.data(), bytes.size());
      });
      if (item.data->is_splat()) continue;
      const auto size = static_cast<size_t>(item.data->bytes());
      item.data =
          TensorData::view(item.data->dtype, item.data->shape,
                           {memory_->data() + item.offset, size}, memory_, item.data->origin);
      free_bytes += item.data->bytes();
      // What was freed between other blocks of the heap is given back on request only.
      constexpr int64_t kEnough = int64_t{64} << 20;
      if (free_bytes < kEnough) continue;
      free_bytes = 0;
      return_free_memory();
    }
    memory_->protect();
  }

  // To its place without a copy, where nobody else holds it.
  bool move(ConstantsLayout::Item& item) {
    if (item.data->is_splat() || item.data->bytes() < TensorData::kPagedBytes) return false;
    std::byte* place = memory_->data() + item.offset;
    check(reinterpret_cast<uintptr_t>(place) % kPageBytes == 0,
          "a large constant begins in a page");
    bool moved = false;
    item.data =
        with(std::move(item.data), [&](TensorData& data) { moved = data.move_to(place, memory_); });
    return moved;
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
    if (memory_) {
      SymbolMap symbols;
      symbols[jit_->mangleAndIntern(kConstantsSymbol)] = {ExecutorAddr::fromPtr(memory_->data()),
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
  std::shared_ptr<const ConstantMemory> memory_;  // null where there are no constants
};

}  // namespace

std::unique_ptr<LoadedProgram> link_in_process(
    CompiledProgram compiled, std::shared_ptr<const backend::Libraries> libraries) {
  return std::make_unique<JitProgram>(std::move(compiled), std::move(libraries));
}

}  // namespace tenon::llvm_backend
