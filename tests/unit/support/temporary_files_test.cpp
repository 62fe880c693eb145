// SPDX-License-Identifier: Apache-2.0
// Files that are written, and files that others cut off while they are read.
#include "tenon/support/temporary_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tenon/support/diagnostics.h"
#include "tenon/support/limit_codes.h"
#include "tenon/support/mapped_file.h"
#include "tenon/support/mapped_pages.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Files : public testing::Test {
 protected:
  size_t count() const {
    size_t n = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_.path())) ++n;
    return n;
  }
  /// The status of a child that does this.
  template <typename Work>
  static int in_a_child(const Work& work) {
    const pid_t child = fork();
    if (child == 0) {
      work();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }
  TemporaryFolder folder_;
};

TEST_F(Files, AreReplacedWhole) {
  const std::string path = folder_.file("out");
  write_file(path, "first");
  {
    OutputFile half(path);
    half.write("sec");
  }
  EXPECT_EQ(contents(path), "first");
  write_file(path, "second");
  EXPECT_EQ(contents(path), "second");
  OutputFile sparse(path);
  sparse.write_at(4, std::as_bytes(std::span(std::string_view("x"))));
  sparse.resize(8);
  sparse.commit();
  EXPECT_EQ(contents(path), std::string("\0\0\0\0x\0\0\0", 8));
  EXPECT_EQ(count(), 1u);
  EXPECT_THROW(write_file(folder_.path(), ""), CompileError);
  EXPECT_THROW(write_file(folder_.file("none/out"), ""), CompileError);
}

// Whoever may write to the folder puts links where a temporary file is expected.
TEST_F(Files, FollowNoLink) {
  const std::string victim = folder_.file("victim"), path = folder_.file("out");
  write_file(victim, "kept");
  fs::create_symlink(victim, path + ".tmp");
  fs::create_symlink(victim, path);
  write_file(path, "new");
  EXPECT_EQ(contents(victim), "kept");
  EXPECT_EQ(contents(path), "new");
  EXPECT_FALSE(fs::is_symlink(path));
}

TEST_F(Files, WhatIsNoFileIsWrittenAsItIs) {
  write_file("/dev/null", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(Files, AreGoneAfterASignal) {
  std::vector<int> numbers = {SIGTERM, SIGINT, SIGABRT};
#ifndef TENON_SANITIZE  // which says itself what a wild access was
  numbers.push_back(SIGSEGV);
#endif
  for (const int number : numbers) {
    SCOPED_TRACE(number);
    const int status = in_a_child([&] {
      OutputFile file(folder_.file("out"));
      file.write("half");
      const TemporaryFolder beside = TemporaryFolder::beside(folder_.file("x"));
      std::ofstream(beside.file("inner")) << "text";
      if (count() != 2) _exit(9);
      raise(number);
    });
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), number);
    EXPECT_EQ(count(), 0u);
  }
}

TEST_F(Files, AChildLeavesThoseOfItsParent) {
  OutputFile file(folder_.file("out"));
  in_a_child([] { raise(SIGTERM); });
  EXPECT_EQ(count(), 1u);
  file.write("text");
  file.commit();
  EXPECT_EQ(contents(folder_.file("out")), "text");
}

// One that is cut off while it is mapped gives zeros and an error, and no signal.
TEST_F(Files, MappedOnesMayBeCutOff) {
  const std::string path = folder_.file("weights");
  write_file(path, std::string(40000, 'w'));
  const int status = in_a_child([&] {
    const auto file = MappedFile::open(path);
    check_mapped_files();
    if (truncate(path.c_str(), 4096) != 0) _exit(2);
    if (file->bytes()[100] != std::byte{'w'}) _exit(3);
    if (file->bytes()[39999] != std::byte{0} || file->bytes()[20000] != std::byte{0}) _exit(4);
    try {
      check_mapped_files();
      _exit(5);
    } catch (const CompileError& error) {
      if (error.first().code.id != kFileChanged.id) _exit(6);
    }
    // Nothing that was made of it is kept.
    try {
      write_file(folder_.file("out"), "text");
      _exit(7);
    } catch (const CompileError&) {
    }
  });
  EXPECT_EQ(status, 0) << "exit status " << WEXITSTATUS(status);
  EXPECT_FALSE(fs::exists(folder_.file("out")));
  // Written to a file, the pages that are gone are met by the system, which gives no signal.
  write_file(path, std::string(40000, 'w'));
  const int written = in_a_child([&] {
    const auto file = MappedFile::open(path);
    if (truncate(path.c_str(), 4096) != 0) _exit(2);
    try {
      OutputFile out(folder_.file("out"));
      out.write(file->bytes());
      out.commit();
      _exit(3);
    } catch (const CompileError& error) {
      if (error.first().code.id != kFileChanged.id) _exit(4);
    }
  });
  EXPECT_EQ(written, 0) << "exit status " << WEXITSTATUS(written);
}

TEST(Diagnostics, ManyNotesAreShownInPart) {
  CompileError error(kUnsupported, {}, "much");
  for (int i = 0; i < 100000; ++i) error.note({}, "place {}", i);
  const std::string text = error.what();
  EXPECT_LT(text.size(), 5000u);
  EXPECT_NE(text.find("note: place 99\nnote: and 99900 more places"), std::string::npos) << text;
}

// Whether the page at `address` is in this process's memory: bit 63 of its entry.
bool is_present(const void* address) {
  const int map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  uint64_t entry = 0;
  const auto page = reinterpret_cast<uintptr_t>(address) / static_cast<uintptr_t>(getpagesize());
  EXPECT_EQ(::pread(map, &entry, sizeof(entry), static_cast<off_t>(page * sizeof(entry))), 8);
  ::close(map);
  return (entry >> 63) != 0;
}

TEST_F(Files, PagesOfMappedFilesAreDroppedAndReadAgain) {
  const std::string path = folder_.path() + "/pages";
  const auto page = static_cast<size_t>(getpagesize());
  std::ofstream(path, std::ios::binary)
      << std::string(page, 'a') << std::string(page, 'b') << std::string(page, 'c');
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  const auto value = [&](size_t number) { return static_cast<char>(bytes[number * page]); };
  EXPECT_EQ(value(0), 'a');
  EXPECT_EQ(value(1), 'b');
  ASSERT_TRUE(is_present(&bytes[page]));
  drop_mapped_pages(bytes.subspan(1, 2 * page));  // one whole page
  EXPECT_FALSE(is_present(&bytes[page]));
  EXPECT_TRUE(is_present(bytes.data()));
  EXPECT_EQ(value(1), 'b');
  EXPECT_EQ(value(2), 'c');
}

TEST_F(Files, MemoryOfOthersIsNotDropped) {
  const std::vector<std::byte> own(size_t{1} << 20, std::byte{7});
  drop_mapped_pages(own);
  EXPECT_EQ(own[own.size() / 2], std::byte{7});
}

}  // namespace
}  // namespace tenon
