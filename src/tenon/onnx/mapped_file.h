// Files of a model in memory: the model itself, and external data beside it, confined to its
// directory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "tenon/support/diagnostics.h"

namespace tenon::onnx {

/// A file mapped read-only; unmapped with the last owner.
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
  MappedFile(const std::byte* data, size_t size) : data_(data), size_(size) {}
  static std::shared_ptr<const MappedFile> map(int fd, size_t size);
  const std::byte* data_;
  size_t size_;
};

/// Whether [offset, offset + length) lies in `size` bytes; no sum that could wrap.
constexpr bool range_fits(uint64_t offset, uint64_t length, uint64_t size) {
  return length <= size && offset <= size - length;
}

}  // namespace tenon::onnx
