// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/llvm/parts.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/Object/Archive.h>
#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "tenon/runtime/cpu_count.h"
#include "tenon/support/diagnostics.h"

namespace tenon::llvm_backend {

namespace {

// A part has at least so many instructions: below, what it shares with the others is not worth it.
constexpr size_t kLeastInstructions = 4000;
constexpr size_t kMostParts = 16;

/// The functions with bodies, by their numbers in the module, and the part of each.
struct Deal {
  size_t parts = 1;
  std::vector<size_t> part_of;
};

// The largest first, each to the part that has least so far.
Deal deal_out(const llvm::Module& module) {
  std::vector<size_t> sizes;
  for (const llvm::Function& function : module)
    if (!function.isDeclaration()) sizes.push_back(function.getInstructionCount());
  const size_t total = std::accumulate(sizes.begin(), sizes.end(), size_t{0});
  Deal deal;
  deal.parts = std::clamp<size_t>(total / kLeastInstructions, 1, kMostParts);
  deal.part_of.resize(sizes.size());
  std::vector<size_t> order(sizes.size()), loads(deal.parts);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(sizes[b], a) < std::pair(sizes[a], b); });
  for (const size_t i : order) {
    const auto least = std::min_element(loads.begin(), loads.end());
    deal.part_of[i] = static_cast<size_t>(least - loads.begin());
    *least += sizes[i] + 1;
  }
  return deal;
}

// What was the module's own is the program's own.
void share(llvm::GlobalValue& value) {
  if (value.isDeclaration() || !value.hasLocalLinkage()) return;
  if (llvm::isa<llvm::GlobalVariable>(value)) value.setName("tenon.data." + value.getName());
  value.setLinkage(llvm::GlobalValue::ExternalLinkage);
  value.setVisibility(llvm::GlobalValue::HiddenVisibility);
}

template <typename T>
T must(llvm::Expected<T> value) {
  if (!value) throw CompileError(kLinkFailed, {}, "{}", llvm::toString(value.takeError()));
  return std::move(*value);
}
void must(llvm::Error error) {
  if (error) throw CompileError(kLinkFailed, {}, "{}", llvm::toString(std::move(error)));
}

std::string emit_part(llvm::MemoryBufferRef bitcode, const Deal& deal, size_t part,
                      const std::function<std::string(llvm::Module&)>& emit) {
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> module = must(llvm::getLazyBitcodeModule(bitcode, context));
  size_t number = 0;
  for (llvm::Function& function : *module) {
    if (function.isDeclaration()) continue;
    if (deal.part_of.at(number++) != part) function.deleteBody();
  }
  must(module->materializeAll());
  if (part != 0)
    for (llvm::GlobalVariable& global : module->globals()) global.setInitializer(nullptr);
  return emit(*module);
}

}  // namespace

std::string emit_in_parts(llvm::Module& module,
                          const std::function<std::string(llvm::Module&)>& emit) {
  const Deal deal = deal_out(module);
  if (deal.parts == 1) return emit(module);
  for (llvm::GlobalValue& value : module.global_values()) share(value);
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::WriteBitcodeToFile(module, stream);
  const llvm::MemoryBufferRef bitcode({bytes.data(), bytes.size()}, module.getName());

  std::vector<std::string> objects(deal.parts);
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (size_t part = next++; part < deal.parts; part = next++)
        objects[part] = emit_part(bitcode, deal, part, emit);
    } catch (...) {
      next = deal.parts;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  const auto threads = std::min(deal.parts, static_cast<size_t>(runtime::default_thread_count()));
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);

  std::vector<llvm::NewArchiveMember> members;
  std::vector<std::string> names;
  for (size_t part = 0; part < deal.parts; ++part)
    names.push_back("part" + std::to_string(part) + ".o");
  for (size_t part = 0; part < deal.parts; ++part)
    members.emplace_back(llvm::MemoryBufferRef(objects[part], names[part]));
  const auto archive = must(llvm::writeArchiveToBuffer(
      members, llvm::SymtabWritingMode::NormalSymtab, llvm::object::Archive::K_GNU,
      /*Deterministic=*/true, /*Thin=*/false));
  return archive->getBuffer().str();
}

std::vector<std::string> objects_of(const std::string& emitted) {
  if (!llvm::StringRef(emitted).starts_with(llvm::object::ArchiveMagic)) return {emitted};
  const auto archive =
      must(llvm::object::Archive::create(llvm::MemoryBufferRef(emitted, "program")));
  std::vector<std::string> objects;
  llvm::Error error = llvm::Error::success();
  for (const llvm::object::Archive::Child& child : archive->children(error))
    objects.push_back(must(child.getBuffer()).str());
  must(std::move(error));
  return objects;
}

}  // namespace tenon::llvm_backend
