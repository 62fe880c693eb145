#include "tenon/onnx/mapped_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace tenon::onnx {

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

}  // namespace

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<std::byte*>(data_), size_);
}

std::shared_ptr<const MappedFile> MappedFile::map(int fd, size_t size) {
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(nullptr, 0));
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return nullptr;
  return std::shared_ptr<const MappedFile>(
      new MappedFile(static_cast<const std::byte*>(data), size));
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) throw CompileError(kFileError, {}, "cannot open `{}`: {}", path, std::strerror(errno));
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0)
    throw CompileError(kFileError, {}, "cannot read `{}`: {}", path, std::strerror(errno));
  if (!S_ISREG(status.st_mode))
    throw CompileError(kFileError, {}, "`{}` is not a regular file", path);
  auto file = map(fd.get(), static_cast<size_t>(status.st_size));
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
  auto file = map(fd.get(), static_cast<size_t>(status.st_size));
  if (!file)
    throw CompileError(kExternalData, origin, "cannot map external data `{}`: {}", location,
                       std::strerror(errno));
  return file;
}

}  // namespace tenon::onnx
