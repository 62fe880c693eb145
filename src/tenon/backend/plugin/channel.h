// SPDX-License-Identifier: Apache-2.0
// Messages over a socket between Tenon and a back end that runs in its own process.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::plugin {

/// A message's meaning. From Tenon: requests, and answers to questions. From the other side:
/// results, and questions while a request is being done.
enum class MessageKind : uint32_t {
  kDescribe = 1,  // file of the library
  kMatch,         // what the callbacks that follow are about
  kCheck,
  kCost,
  kScratch,
  kPack,      // input
  kGenerate,  // nothing
  kPass,      // index, text, arguments
  kReply,     // to a question: whether there is an answer, the answer
  kResult,
  kFault,  // of kDescribe: code, words
  kAskText,
  kAskChoice,
  kAskChoiceIn,
  kAskData,
};

struct Message {
  MessageKind kind = MessageKind::kResult;
  std::string bytes;
};

/// One end of a socket that carries messages: a kind (32 bits), a length (64 bits), bytes.
class Channel {
 public:
  using Clock = std::chrono::steady_clock;
  using Deadline = std::optional<Clock::time_point>;  // none: as long as it takes

  enum class Status : uint8_t { kOk, kClosed, kLate, kBad };

  explicit Channel(int fd) : fd_(fd) {}
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  Status send(MessageKind kind, std::string_view bytes, Deadline deadline = {});
  Status receive(Message& message, Deadline deadline = {});

 private:
  Status wait(short events, Deadline deadline) const;
  Status send_all(const char* data, size_t size, Deadline deadline);
  Status receive_all(char* data, size_t size, Deadline deadline);
  int fd_;
};

}  // namespace tenon::plugin
