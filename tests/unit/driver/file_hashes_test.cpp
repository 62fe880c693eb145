// SPDX-License-Identifier: Apache-2.0
// Hashes of files, and the records of them that spare reading a large one again.
#include "tenon/driver/file_hashes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "tenon/support/content_hash.h"
#include "tenon/support/diagnostics.h"
#include "tenon/support/temporary_files.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

class FileHashesTest : public testing::Test {
 protected:
  ~FileHashesTest() override { fs::remove_all(records_); }  // which TemporaryFolder leaves

  // A file of `bytes` times `letter`.
  std::string file(const std::string& name, int64_t bytes, char letter) {
    write_file(folder_.file(name), std::string(static_cast<size_t>(bytes), letter));
    return folder_.file(name);
  }
  // Writes the first byte, the inode and size staying; later than the resolution of a file's times.
  static void change(const std::string& path) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::fstream(path, std::ios::in | std::ios::out).put('y');
  }
  static std::string hash(int64_t bytes, char letter) {
    const std::string content(static_cast<size_t>(bytes), letter);
    return content_hash("", std::as_bytes(std::span(content)));
  }
  std::set<fs::path> records() const {
    std::set<fs::path> paths;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(records_, error)) paths.insert(entry.path());
    return paths;
  }
  // What the only record says from now on: whether it is read shows in what of() returns.
  void set_record(const std::string& text) {
    ASSERT_EQ(records().size(), 1U);
    write_file(records().begin()->string(), text);
  }

  static constexpr int64_t kLarge = FileHashes::kLargeBytes;
  const TemporaryFolder folder_;
  const std::string records_ = folder_.file("hashes"), other_ = std::string(32, 'a');
  const FileHashes hashes_{records_, seconds(0)};
};

TEST_F(FileHashesTest, ALargeFileIsReadOnce) {
  const std::string path = file("model", kLarge, 'x');
  EXPECT_EQ(hashes_.of(path), hash(kLarge, 'x'));
  set_record(other_);
  EXPECT_EQ(hashes_.of(path), other_);
}

TEST_F(FileHashesTest, AFileThatChangedIsReadAgain) {
  const std::string path = file("model", kLarge, 'x');
  hashes_.of(path);
  set_record(other_);
  change(path);
  EXPECT_NE(hashes_.of(path), other_);
  EXPECT_EQ(records().size(), 2U);
  file("model", kLarge, 'z');  // another file in its place
  EXPECT_EQ(hashes_.of(path), hash(kLarge, 'z'));
  fs::remove(path);
  EXPECT_THROW(hashes_.of(path), CompileError);
}

TEST_F(FileHashesTest, TimesThatAreSetBackDoNotHideAChange) {
  const std::string path = file("model", kLarge, 'x');
  const auto time = fs::last_write_time(path);
  hashes_.of(path);
  set_record(other_);
  change(path);
  fs::last_write_time(path, time);
  EXPECT_NE(hashes_.of(path), other_);
}

TEST_F(FileHashesTest, FilesThatAreSmallOrNewAreNotRecorded) {
  const std::string small = file("small", kLarge - 1, 'x'), large = file("large", kLarge, 'x');
  EXPECT_EQ(hashes_.of(small), hash(kLarge - 1, 'x'));
  EXPECT_EQ(FileHashes(records_).of(large), hash(kLarge, 'x'));
  EXPECT_EQ(records().size(), 0U);
}

TEST_F(FileHashesTest, ARecordThatIsBrokenIsMadeAnew) {
  const std::string path = file("model", kLarge, 'x');
  hashes_.of(path);
  for (const std::string& text : {std::string(), std::string("0123"), std::string(32, 'g')}) {
    set_record(text);
    EXPECT_EQ(hashes_.of(path), hash(kLarge, 'x')) << text;
  }
  set_record(other_);
  EXPECT_EQ(hashes_.of(path), other_);
}

TEST_F(FileHashesTest, RecordsAreBounded) {
  const std::string path = file("model", kLarge, 'x');
  hashes_.of(path);
  for (size_t i = 0; i < FileHashes::kMostRecords + 10; ++i) {
    const std::string name = records_ + "/" + std::to_string(i);
    write_file(name, other_);
    fs::last_write_time(name, fs::file_time_type::clock::now() - std::chrono::hours(24));
  }
  file("model", kLarge, 'y');
  EXPECT_EQ(hashes_.of(path), hash(kLarge, 'y'));
  EXPECT_EQ(records().size(), FileHashes::kMostRecords);
  // The old ones went: that of the new file is there.
  file("model2", kLarge, 'z');
  EXPECT_EQ(hashes_.of(folder_.file("model2")), hash(kLarge, 'z'));
  EXPECT_EQ(records().size(), FileHashes::kMostRecords);
}

TEST_F(FileHashesTest, OthersMayNotWriteRecords) {
  const std::string path = file("model", kLarge, 'x');
  const mode_t usual = ::umask(0);
  hashes_.of(path);
  ::umask(usual);
  EXPECT_EQ(fs::status(records_).permissions(), fs::perms::owner_all);
}

TEST_F(FileHashesTest, WithoutAFolderNothingIsRecorded) {
  const std::string path = file("model", kLarge, 'x');
  const FileHashes hashes(folder_.file("missing/hashes"), seconds(0));
  EXPECT_EQ(hashes.of(path), hash(kLarge, 'x'));
  EXPECT_EQ(hashes.of(path), hash(kLarge, 'x'));
  EXPECT_FALSE(fs::exists(folder_.file("missing")));
}

}  // namespace
}  // namespace tenon
