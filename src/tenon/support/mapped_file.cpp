// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/mapped_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "tenon/support/limit_codes.h"
#include "tenon/support/mapped_pages.h"
#include "tenon/support/temporary_files.h"

namespace tenon {

namespace {

// A file descriptor, closed with its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

std::vector<std::string> components(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Why a location may not be opened at all; empty where it may.
std::string refusal(const std::string& location) {
  if (location.empty()) return "is empty";
  if (location.find('\0') != std::string::npos) return "contains a zero byte";
  if (location.size() > 4096) return "is longer than 4096 bytes";
  if (location[0] == '/') return "is absolute";
  for (const std::string& part : components(location))
    if (part == "..") return "contains `..`";
  return "";
}

Descriptor open_component_wise(int directory, const std::string& location) {
  Descriptor at(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::vector<std::string> parts = components(location);
  for (size_t i = 0; i < parts.size() && at; ++i) {
    const bool last = i + 1 == parts.size();
    if (!last && (parts[i].empty() || parts[i] == ".")) continue;
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (last ? O_NONBLOCK : O_DIRECTORY);
    at = Descriptor(::openat(at.get(), parts[i].c_str(), flags));
  }
  return at;
}

// The mappings that the handler of SIGBUS knows: plain memory, since it can take no lock.
struct Watched {
  std::atomic<uintptr_t> begin{0};  // 0: free
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> is_taken{false};
};
constexpr int kWatched = 1024;
std::array<Watched, kWatched> watched;
std::atomic<bool> any_cut_off{false};
std::array<char, 512> cut_off_name;  // of the first
std::array<std::array<char, 512>, kWatched> names;
struct sigaction previous;

void on_bus_error(int number, siginfo_t* info, void* context) {
  if (restore_mapped_page(info->si_addr)) return;
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction) {
    previous.sa_sigaction(number, info, context);
    return;
  }
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(number);
    return;
  }
  remove_temporary_files();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &previous);
  });
}

// -1 where too many files are mapped at once.
int watch(const void* data, size_t size, const std::string& path) {
  install_handler();
  for (int i = 0; i < kWatched; ++i) {
    Watched& slot = watched[static_cast<size_t>(i)];
    bool taken = false;
    if (!slot.is_taken.compare_exchange_strong(taken, true)) continue;
    auto& name = names[static_cast<size_t>(i)];
    const size_t length = std::min(path.size(), name.size() - 1);
    std::memcpy(name.data(), path.data(), length);
    name[length] = '\0';
    slot.end = reinterpret_cast<uintptr_t>(data) + size;
    slot.begin = reinterpret_cast<uintptr_t>(data);
    return i;
  }
  return -1;
}

void forget(int index) {
  if (index < 0) return;
  Watched& slot = watched[static_cast<size_t>(index)];
  slot.begin = 0;
  slot.end = 0;
  slot.is_taken = false;
}

// The same bytes in memory of our own, which no one else can cut off.
bool replace_by_copy(void* data, size_t size, int fd) {
  if (::mmap(data, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
      MAP_FAILED)
    return false;
  for (size_t at = 0; at < size;) {
    const ssize_t count =
        ::pread(fd, static_cast<char*>(data) + at, size - at, static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

bool restore_mapped_page(const void* address) noexcept {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (size_t i = 0; i < watched.size(); ++i) {
    const uintptr_t begin = watched[i].begin, end = watched[i].end;
    if (begin == 0 || at < begin || at >= end) continue;
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    // All that may be gone: everything from here on. What is there still is zeros then too, which
    // does not matter: nothing that was made of the file is used.
    const uintptr_t first = at / page * page;
    if (::mmap(reinterpret_cast<void*>(first), (end - first + page - 1) / page * page, PROT_READ,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
      return false;
    if (!any_cut_off.exchange(true)) cut_off_name = names[i];
    return true;
  }
  return false;
}

void drop_mapped_pages(std::span<const std::byte> bytes) noexcept {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t begin = (first + page - 1) / page * page;
  const uintptr_t end = (first + bytes.size()) / page * page;
  if (begin >= end) return;
  for (const Watched& slot : watched) {
    const uintptr_t low = slot.begin, high = slot.end;
    if (low == 0 || begin < low || end > high) continue;
    // Nobody writes to the mapping, so nothing is lost.
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    return;
  }
}

void check_mapped_files() {
  if (!any_cut_off) return;
  throw CompileError(kFileChanged, {},
                     "`{}` was cut off while it was in use; nothing that was made of it is kept",
                     cut_off_name.data());
}

MappedFile::~MappedFile() {
  if (size_ == 0) return;
  forget(slot_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

static thread_local MappedFileScope* innermost = nullptr;

MappedFileScope::MappedFileScope() : outer_(innermost) { innermost = this; }
MappedFileScope::~MappedFileScope() { innermost = outer_; }

std::shared_ptr<const MappedFile> MappedFile::map(const std::string& path, int fd, size_t size) {
  if (innermost) innermost->paths_.push_back(path);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(path, nullptr, 0, -1));
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return nullptr;
  const int slot = watch(data, size, path);
  if (slot < 0 && !replace_by_copy(data, size, fd)) {
    ::munmap(data, size);
    return nullptr;
  }
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, static_cast<const std::byte*>(data), size, slot));
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) throw CompileError(kFileError, {}, "cannot open `{}`: {}", path, std::strerror(errno));
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0)
    throw CompileError(kFileError, {}, "cannot read `{}`: {}", path, std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    throw CompileError(kFileError, {}, "`{}` is not a regular file", path);
  auto file = map(path, fd.get(), static_cast<size_t>(status.st_size));
  if (!file) throw CompileError(kFileError, {}, "cannot map `{}`: {}", path, std::strerror(errno));
  return file;
}

std::shared_ptr<const MappedFile> MappedFile::open_beneath(const std::string& directory,
                                                           const std::string& location,
                                                           const Origin& origin) {
  if (const std::string why = refusal(location); !why.empty())
    throw CompileError(kExternalData, origin,
                       "the location `{}` of external data {}; expected a path below the model's "
                       "directory",
                       location.c_str(), why);
  const Descriptor root(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root)
    throw CompileError(kExternalData, origin, "cannot open the model's directory `{}`: {}",
                       directory, std::strerror(errno));
  struct open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  Descriptor fd(
      static_cast<int>(::syscall(SYS_openat2, root.get(), location.c_str(), &how, sizeof how)));
  // Older kernels, and sandboxes that do not know the call.
  if (!fd && (errno == ENOSYS || errno == EPERM || errno == EINVAL))
    fd = open_component_wise(root.get(), location);
  if (!fd) {
    const int error = errno;
    if (error == ELOOP || error == EXDEV)
      throw CompileError(
          kExternalData, origin,
          "external data `{}` is reached through a symbolic link; expected a regular "
          "file below the model's directory",
          location);
    throw CompileError(kExternalData, origin, "cannot open external data `{}`: {}", location,
                       std::strerror(error));
  }
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode))
    throw CompileError(kExternalData, origin, "external data `{}` is not a regular file", location);
  if (status.st_nlink != 1)
    throw CompileError(kExternalData, origin,
                       "external data `{}` has {} hard links; expected 1 (another may lie outside "
                       "the model's directory)",
                       location, static_cast<int64_t>(status.st_nlink));
  auto file = map(directory + "/" + location, fd.get(), static_cast<size_t>(status.st_size));
  if (!file)
    throw CompileError(kExternalData, origin, "cannot map external data `{}`: {}", location,
                       std::strerror(errno));
  return file;
}

}  // namespace tenon
