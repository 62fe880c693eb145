// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/temporary_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <utility>

#include "tenon/support/diagnostics.h"
#include "tenon/support/mapped_file.h"

namespace tenon {

namespace {

namespace fs = std::filesystem;

// What a handler of signals has to remove: plain memory, since it can take no lock.
struct Slot {
  enum State : int { kFree, kTaken, kFile, kFolder };
  std::atomic<int> state{kFree};
  std::array<char, 4096> path{};
};
constexpr int kSlots = 128;
std::array<Slot, kSlots> slots;
std::atomic<pid_t> owner{0};  // a forked child leaves its parent's files alone

// Folders hold files alone.
void remove_folder(const char* path) noexcept {
  const int folder = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (folder < 0) return;
  alignas(dirent64) std::array<char, 4096> buffer;
  for (;;) {
    const long bytes = ::syscall(SYS_getdents64, folder, buffer.data(), buffer.size());
    if (bytes <= 0) break;
    for (long at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
      ::unlinkat(folder, entry->d_name, 0);
      at += entry->d_reclen;
    }
  }
  ::close(folder);
  ::rmdir(path);
}

void end_by_signal(int number) {
  remove_temporary_files();
  // The handler is gone (SA_RESETHAND): on return the signal does what it does without one.
  ::raise(number);
}

// SIGBUS has a handler of its own (mapped_file.cpp), which asks for the same.
constexpr int kSignals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGPIPE, SIGXCPU,
                            SIGALRM, SIGABRT, SIGSEGV, SIGFPE,  SIGILL};

void install_handlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const int number : kSignals) {
      struct sigaction known = {};
      if (::sigaction(number, nullptr, &known) != 0 || known.sa_handler != SIG_DFL ||
          (known.sa_flags & SA_SIGINFO) != 0)
        continue;
      struct sigaction action = {};
      action.sa_handler = end_by_signal;
      action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_ONSTACK;
      ::sigemptyset(&action.sa_mask);
      ::sigaction(number, &action, nullptr);
    }
  });
}

// The slot that remembers `path`; -1 where there is none left.
int remember(const std::string& path, Slot::State state) {
  install_handlers();
  // A path that does not depend on the working folder.
  std::error_code error;
  const std::string absolute = fs::absolute(path, error).string();
  if (error || absolute.size() >= slots[0].path.size()) return -1;
  owner = ::getpid();
  for (int i = 0; i < kSlots; ++i) {
    Slot& slot = slots[static_cast<size_t>(i)];
    int expected = Slot::kFree;
    if (!slot.state.compare_exchange_strong(expected, Slot::kTaken)) continue;
    std::memcpy(slot.path.data(), absolute.c_str(), absolute.size() + 1);
    slot.state = state;
    return i;
  }
  return -1;
}

void forget(int slot) {
  if (slot >= 0) slots[static_cast<size_t>(slot)].state = Slot::kFree;
}

std::string folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

std::string random_name() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number)
    number = static_cast<uint64_t>(::getpid()) << 32 ^ reinterpret_cast<uintptr_t>(&number);
  return fmt::format(".tenon-{:016x}", number);
}

bool is_special(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

}  // namespace

void remove_temporary_files() noexcept {
  if (owner != ::getpid()) return;
  for (Slot& slot : slots) {
    const int state = slot.state;
    if (state == Slot::kFile) ::unlink(slot.path.data());
    if (state == Slot::kFolder) remove_folder(slot.path.data());
  }
}

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  std::error_code ignored;
  if (path_.empty() || fs::is_directory(path_, ignored))
    throw CompileError(kFileError, {}, "cannot write `{}`: it is a folder", path_);
  if (is_special(path_)) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail(errno);
    return;
  }
  constexpr int kAttempts = 100;
  for (int i = 0; i < kAttempts && fd_ < 0; ++i) {
    temporary_ = (fs::path(folder_of(path_)) / random_name()).string();
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno != EEXIST) fail(errno);
  }
  if (fd_ < 0) fail(EEXIST);
  slot_ = remember(temporary_, Slot::kFile);
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  forget(slot_);
}

void OutputFile::fail(int error) const {
  throw CompileError(kFileError, {}, "cannot write `{}`: {}", path_, std::strerror(error));
}

void OutputFile::put(std::span<const std::byte> bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t count = offset < 0 ? ::write(fd_, bytes.data(), bytes.size())
                                     : ::pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EFAULT) {
      // Pages of a mapped file that are gone: reading one here tells which file it is.
      std::byte seen{};
      for (size_t i = 0; i < bytes.size(); i += 4096)
        seen |= *const_cast<const volatile std::byte*>(&bytes[i]);
      static_cast<void>(seen);
      check_mapped_files();
      fail(EFAULT);
    }
    if (count <= 0) fail(count < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(count));
    if (offset >= 0) offset += count;
  }
}

void OutputFile::write(std::span<const std::byte> bytes) { put(bytes, -1); }
void OutputFile::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  put(bytes, static_cast<int64_t>(offset));
}
void OutputFile::resize(uint64_t bytes) {
  if (!temporary_.empty() && ::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) fail(errno);
}

void OutputFile::commit() {
  check_mapped_files();  // what is written may have been made of one that was cut off
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0 && errno != EINTR) fail(errno);
  if (temporary_.empty()) return;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  temporary_.clear();
}

void write_file(const std::string& path, std::string_view contents) {
  OutputFile file(path);
  file.write(contents);
  file.commit();
}

TemporaryFolder::TemporaryFolder(std::string pattern, const std::string& otherwise)
    : path_(std::move(pattern)) {
  if (!::mkdtemp(path_.data())) {
    path_.clear();
    throw CompileError(kFileError, {}, "{}: {}", otherwise, std::strerror(errno));
  }
  slot_ = remember(path_, Slot::kFolder);
}

static std::string system_folder() {
  std::error_code error;
  const fs::path folder = fs::temp_directory_path(error);
  return error ? "/tmp" : folder.string();
}

TemporaryFolder::TemporaryFolder()
    : TemporaryFolder((fs::path(system_folder()) / "tenon.XXXXXX").string(),
                      "cannot create a folder in `" + system_folder() + "`") {}

TemporaryFolder TemporaryFolder::beside(const std::string& path) {
  return TemporaryFolder((fs::path(folder_of(path)) / ".tenon-XXXXXX").string(),
                         "cannot write `" + path + "`");
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), slot_(std::exchange(other.slot_, -1)) {}

TemporaryFolder::~TemporaryFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  forget(slot_);
}

}  // namespace tenon
