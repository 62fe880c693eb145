// SPDX-License-Identifier: Apache-2.0
// Programs that were compiled before, as shared libraries in a folder of the user's: found by what
// they were made of.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/driver/file_hashes.h"
#include "tenon/runtime/program.h"

namespace tenon {

/// What a program is made of, as far as it is known before the model is read.
class ArtefactKey {
 public:
  /// Of this compiler. \throws CompileError (kFileError) where the model cannot be read.
  ArtefactKey(const std::string& model, const FileHashes& hashes);
  /// An option and what it says.
  void add(std::string_view name, std::string_view value);
  /// The name of the entry: 32 hex digits.
  std::string str() const;

 private:
  std::string text_;
};

/// A folder with an entry for each program: the library, and the files that its model refers to,
/// by their contents. Entries appear and vanish as a whole, so that any number of processes may use
/// it at once; those that were not used for longest go when it grows beyond its bound. Where the
/// folder cannot be used there is no cache, and nothing fails.
class ArtefactCache {
 public:
  static constexpr int64_t kDefaultBytes = int64_t{4} << 30;

  /// The one of the environment: TENON_CACHE names the folder ("off": none), else it is `tenon` in
  /// XDG_CACHE_HOME, or in .cache of HOME. TENON_CACHE_BYTES is its bound. Nothing where there is no
  /// folder, or others than this user may write to it: what lies there is run.
  static std::optional<ArtefactCache> of_user();

  /// The program, where its entry is whole and the files that it names are as they were.
  /// \param folder  of the model: files below it are known by their place there
  std::shared_ptr<runtime::Program> find(const std::string& key, const std::string& folder) const;
  /// Makes an entry and loads it; null where that fails.
  /// \param write  writes the library to a path
  /// \param files  what the program was made of besides the model
  std::shared_ptr<runtime::Program> store(
      const std::string& key, const std::string& folder, const std::vector<std::string>& files,
      const std::function<void(const std::string&)>& write) const;

  const std::string& folder() const { return folder_; }
  /// Of the files that programs are made of.
  const FileHashes& hashes() const { return hashes_; }

 private:
  ArtefactCache(std::string folder, int64_t most_bytes)
      : folder_(std::move(folder)), most_bytes_(most_bytes), hashes_(folder_ + "/hashes") {}
  void make_room() const;

  std::string folder_;
  int64_t most_bytes_;
  FileHashes hashes_;
};

}  // namespace tenon
