// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/plugin/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tenon::plugin {

static constexpr uint64_t kMostBytes = (uint64_t{1} << 32) + (uint64_t{1} << 20);
// What one read makes room for: a length that was only claimed takes no memory.
static constexpr size_t kPiece = size_t{16} << 20;

Channel::~Channel() {
  if (fd_ >= 0) ::close(fd_);
}

Channel::Status Channel::wait(short events, Deadline deadline) const {
  for (;;) {
    int milliseconds = -1;
    if (deadline) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(*deadline - Clock::now()).count();
      if (left <= 0) return Status::kLate;
      milliseconds = static_cast<int>(std::min<int64_t>(left + 1, 1 << 30));
    }
    pollfd item{fd_, events, 0};
    const int ready = ::poll(&item, 1, milliseconds);
    if (ready > 0) return Status::kOk;
    if (ready < 0 && errno != EINTR) return Status::kClosed;
  }
}

Channel::Status Channel::send_all(const char* data, size_t size, Deadline deadline) {
  while (size > 0) {
    if (const Status ready = wait(POLLOUT, deadline); ready != Status::kOk) return ready;
    const ssize_t count = ::send(fd_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return Status::kClosed;
    data += count;
    size -= static_cast<size_t>(count);
  }
  return Status::kOk;
}

Channel::Status Channel::receive_all(char* data, size_t size, Deadline deadline) {
  while (size > 0) {
    if (const Status ready = wait(POLLIN, deadline); ready != Status::kOk) return ready;
    const ssize_t count = ::recv(fd_, data, size, MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return Status::kClosed;
    data += count;
    size -= static_cast<size_t>(count);
  }
  return Status::kOk;
}

Channel::Status Channel::send(MessageKind kind, std::string_view bytes, Deadline deadline) {
  char head[12];
  const auto number = static_cast<uint32_t>(kind);
  const uint64_t size = bytes.size();
  std::memcpy(head, &number, 4);
  std::memcpy(head + 4, &size, 8);
  const Status sent = send_all(head, sizeof head, deadline);
  return sent == Status::kOk ? send_all(bytes.data(), bytes.size(), deadline) : sent;
}

Channel::Status Channel::receive(Message& message, Deadline deadline) {
  char head[12];
  if (const Status got = receive_all(head, sizeof head, deadline); got != Status::kOk) return got;
  uint32_t kind = 0;
  uint64_t size = 0;
  std::memcpy(&kind, head, 4);
  std::memcpy(&size, head + 4, 8);
  if (kind < static_cast<uint32_t>(MessageKind::kDescribe) ||
      kind > static_cast<uint32_t>(MessageKind::kAskData) || size > kMostBytes)
    return Status::kBad;
  message.kind = static_cast<MessageKind>(kind);
  message.bytes.clear();
  while (message.bytes.size() < size) {
    const size_t at = message.bytes.size();
    const size_t piece = static_cast<size_t>(std::min<uint64_t>(size - at, kPiece));
    message.bytes.resize(at + piece);
    const Status got = receive_all(message.bytes.data() + at, piece, deadline);
    if (got != Status::kOk) return got;
  }
  return Status::kOk;
}

}  // namespace tenon::plugin
