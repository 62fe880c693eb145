// SPDX-License-Identifier: Apache-2.0
// What files contain, by hash, and what the hashes of large files were when they were read last.
#pragma once

#include <chrono>
#include <string>

namespace tenon {

/// Hashes of files. Those of large files are recorded in a folder, by what the system says of the
/// file (device, inode, size, times of its last change): while it says the same, nothing is read.
///
/// A file that has just changed gets no record. It could change again and keep its times: within their
/// resolution, or where a process writes to a mapped page that is not on the disk yet.
class FileHashes {
 public:
  static constexpr int64_t kLargeBytes = int64_t{4} << 20;
  static constexpr std::chrono::seconds kSettled{60};
  static constexpr size_t kMostRecords = 256;  // the oldest go

  /// \param folder   of the records; made where it is missing, and nothing is recorded where it cannot
  ///                 be used. Nobody but the user may write to it
  /// \param settled  for how long a file that is recorded has not changed
  explicit FileHashes(std::string folder, std::chrono::seconds settled = kSettled)
      : folder_(std::move(folder)), settled_(settled) {}

  /// content_hash of the file. \throws CompileError (kFileError) where it cannot be read.
  std::string of(const std::string& path) const;

 private:
  void record(const std::string& name, const std::string& hash) const;

  std::string folder_;
  std::chrono::seconds settled_;
};

}  // namespace tenon
