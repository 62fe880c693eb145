// SPDX-License-Identifier: Apache-2.0
// Files that are written: under a name that nobody else has, moved to their place when they are
// whole, and removed where that never happens, also when a signal ends the process.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tenon {

/// A file that replaces the one at `path` once it is whole, or never.
///
/// It is written to a new file in the same folder (no link is followed, nothing that is there is
/// opened), which commit() moves to its place. What is no regular file (a terminal, a pipe,
/// /dev/null) is written as it is.
class OutputFile {
 public:
  /// \throws CompileError (kFileError) where nothing can be written there.
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// What was not written before `offset` is zeros. Not of a pipe.
  void write_at(uint64_t offset, std::span<const std::byte> bytes);
  /// Cut off, or filled with zeros.
  void resize(uint64_t bytes);
  /// \throws CompileError (kFileError) where it could not be written; then nothing has changed.
  void commit();

 private:
  [[noreturn]] void fail(int error) const;
  void put(std::span<const std::byte> bytes, int64_t offset);

  std::string path_, temporary_;  // no temporary: written as it is
  int fd_ = -1;
  int slot_ = -1;
};

/// Writes all of a file. \throws CompileError (kFileError).
void write_file(const std::string& path, std::string_view contents);

/// A new folder that is removed at the end with the files in it.
class TemporaryFolder {
 public:
  /// Under the system's folder for temporary files. \throws CompileError (kFileError).
  TemporaryFolder();
  /// In the folder of the file `path`, so that files can be moved to it.
  static TemporaryFolder beside(const std::string& path);
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  TemporaryFolder(std::string pattern, const std::string& otherwise);
  std::string path_;
  int slot_ = -1;
};

/// Removes what temporary files and folders this process has; may be called by a handler of
/// signals, before the process ends.
void remove_temporary_files() noexcept;

}  // namespace tenon
