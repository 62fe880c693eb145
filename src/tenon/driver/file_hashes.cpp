// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/file_hashes.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "tenon/support/content_hash.h"
#include "tenon/support/diagnostics.h"
#include "tenon/support/mapped_file.h"
#include "tenon/support/temporary_files.h"

namespace tenon {

namespace fs = std::filesystem;

// What the system says of a large file, as far as it tells whether the content is the same.
static std::optional<struct stat> state_of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 || status.st_size < FileHashes::kLargeBytes)
    return std::nullopt;
  return status;
}

static std::string name_of(const struct stat& status) {
  return content_hash(fmt::format("{} {} {} {}.{} {}.{}", status.st_dev, status.st_ino,
                                  status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                                  status.st_ctim.tv_sec, status.st_ctim.tv_nsec));
}

std::string FileHashes::of(const std::string& path) const {
  const auto before = state_of(path);
  const std::string name = before ? name_of(*before) : std::string();
  if (before) {
    std::string known;
    if (std::ifstream(folder_ + "/" + name) >> known && is_content_hash(known)) return known;
  }
  const std::time_t now = std::time(nullptr);
  const std::string hash = content_hash("", MappedFile::open(path)->bytes());
  if (!before || now - before->st_ctim.tv_sec < settled_.count()) return hash;
  // Another file may have come to its place while it was read.
  if (const auto after = state_of(path); after && name_of(*after) == name) record(name, hash);
  return hash;
}

void FileHashes::record(const std::string& name, const std::string& hash) const {
  std::error_code error;
  ::mkdir(folder_.c_str(), S_IRWXU);  // whatever the umask: what lies here decides what is run
  std::vector<std::pair<fs::file_time_type, fs::path>> records;
  for (auto at = fs::directory_iterator(folder_, error); !error && at != fs::directory_iterator();
       at.increment(error))
    records.emplace_back(at->last_write_time(error), at->path());
  std::sort(records.begin(), records.end());
  for (size_t i = 0; i + kMostRecords <= records.size(); ++i) fs::remove(records[i].second, error);
  try {
    write_file(folder_ + "/" + name, hash);
  } catch (const CompileError&) {
    return;  // no room, or no folder: the file is read again next time
  }
}

}  // namespace tenon
