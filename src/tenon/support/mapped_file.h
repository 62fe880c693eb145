// SPDX-License-Identifier: Apache-2.0
// Files in memory: a model, its constants, and external data beside it, confined to its directory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/support/diagnostics.h"

namespace tenon {

/// A file mapped read-only; unmapped with the last owner.
///
/// Where the file is cut off while it is mapped, what is no longer there reads as zeros, and
/// check_mapped_files() says so: reading a page that a file has lost would end the process
/// (SIGBUS).
class MappedFile {
 public:
  /// \throws CompileError (kFileError) where it cannot be opened, is no regular file, or cannot be
  /// mapped.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  /// Opens `location`, a relative path below the directory `directory`, without leaving it: no
  /// absolute path, no `..`, no symbolic link on the way, a regular file with one hard link.
  /// \throws CompileError (kExternalData)
  static std::shared_ptr<const MappedFile> open_beneath(const std::string& directory,
                                                        const std::string& location,
                                                        const Origin& origin);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(std::string path, const std::byte* data, size_t size, int slot)
      : path_(std::move(path)), data_(data), size_(size), slot_(slot) {}
  static std::shared_ptr<const MappedFile> map(const std::string& path, int fd, size_t size);
  std::string path_;
  const std::byte* data_;
  size_t size_;
  int slot_;  // among those that are watched
};

/// The paths of files that are mapped on this thread while it lives, as far as no inner one has them.
class MappedFileScope {
 public:
  MappedFileScope();
  ~MappedFileScope();
  MappedFileScope(const MappedFileScope&) = delete;
  MappedFileScope& operator=(const MappedFileScope&) = delete;

  const std::vector<std::string>& paths() const { return paths_; }

 private:
  friend class MappedFile;
  std::vector<std::string> paths_;
  MappedFileScope* outer_;
};

/// What a file would hold, in memory.
struct NamedBytes {
  std::string name;  // for diagnostics
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keeper;  // keeps them alive
};

/// \throws CompileError (kFileChanged) where a file was cut off since it was mapped, whether or not
/// it is mapped still: what was made of it is not to be used.
void check_mapped_files();

/// For a handler of SIGBUS: true where `address` lies in a mapped file, whose page is zeros now.
bool restore_mapped_page(const void* address) noexcept;

/// Whether [offset, offset + length) lies in `size` bytes; no sum that could wrap.
constexpr bool range_fits(uint64_t offset, uint64_t length, uint64_t size) {
  return length <= size && offset <= size - length;
}

}  // namespace tenon
