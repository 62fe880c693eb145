// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/llvm/parts.h"

#include <llvm/Object/Archive.h>
#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Support/MemoryBuffer.h>

#include "tenon/support/diagnostics.h"

namespace tenon::llvm_backend {

namespace {

template <typename T>
T must(llvm::Expected<T> value) {
  if (!value) throw CompileError(kLinkFailed, {}, "{}", llvm::toString(value.takeError()));
  return std::move(*value);
}
void must(llvm::Error error) {
  if (error) throw CompileError(kLinkFailed, {}, "{}", llvm::toString(std::move(error)));
}

}  // namespace

std::string joined_objects(std::vector<std::string> objects) {
  if (objects.size() == 1) return std::move(objects[0]);
  std::vector<llvm::NewArchiveMember> members;
  std::vector<std::string> names;
  for (size_t part = 0; part < objects.size(); ++part)
    names.push_back("part" + std::to_string(part) + ".o");
  for (size_t part = 0; part < objects.size(); ++part)
    members.emplace_back(llvm::MemoryBufferRef(objects[part], names[part]));
  const auto archive = must(llvm::writeArchiveToBuffer(
      members, llvm::SymtabWritingMode::NormalSymtab, llvm::object::Archive::K_GNU,
      /*Deterministic=*/true, /*Thin=*/false));
  return archive->getBuffer().str();
}

std::vector<std::string> objects_of(const std::string& joined) {
  if (!llvm::StringRef(joined).starts_with(llvm::object::ArchiveMagic)) return {joined};
  const auto archive =
      must(llvm::object::Archive::create(llvm::MemoryBufferRef(joined, "program")));
  std::vector<std::string> objects;
  llvm::Error error = llvm::Error::success();
  for (const llvm::object::Archive::Child& child : archive->children(error))
    objects.push_back(must(child.getBuffer()).str());
  must(std::move(error));
  return objects;
}

}  // namespace tenon::llvm_backend
