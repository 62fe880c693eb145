// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/plugin/remote.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <mutex>

#include "tenon/backend/plugin/channel.h"
#include "tenon/backend/plugin/guard.h"
#include "tenon/backend/plugin/wire.h"
#include "tenon/support/check.h"
#include "tenon/support/diagnostics.h"
#include "tenon/support/plugin_codes.h"

extern char** environ;

namespace tenon::plugin {

namespace {

namespace fs = std::filesystem;
using Kind = MessageKind;

// Beside this program or the library that this code is in, or where it is installed.
std::string host_program() {
  std::error_code error;
  std::vector<fs::path> folders;
  Dl_info own{};
  if (::dladdr(reinterpret_cast<void*>(&host_program), &own) != 0 && own.dli_fname != nullptr)
    folders.push_back(fs::path(own.dli_fname).parent_path());
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    folders.push_back(program.parent_path());
    folders.push_back(program.parent_path() / "../lib/tenon");
  }
  for (const fs::path& folder : folders) {
    const fs::path file = folder / "tenon-plugin-host";
    if (fs::is_regular_file(file, error)) return file.string();
  }
  return "";
}

/// A started process and the socket to it.
class Server {
 public:
  explicit Server(const std::string& file) {
    const std::string program = host_program();
    const auto cannot = [&](const std::string& why) {
      return CompileError(kBadPlugin, {},
                          "plugin {}: `tenon-plugin-host`, in which it would run, {}; --in-process "
                          "loads it into this one",
                          file, why);
    };
    if (program.empty()) throw cannot("is not beside this program");
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw cannot(std::string("cannot be started: ") + std::strerror(errno));
    channel_ = std::make_unique<Channel>(ends[0]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 3);
    // Signals do there what they do where nobody handles them.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t all;
    sigfillset(&all);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    std::string name = program, socket = "3";
    char* argv[] = {name.data(), socket.data(), nullptr};
    const int failed = posix_spawn(&pid_, program.c_str(), &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (failed) throw cannot(std::string("cannot be started: ") + std::strerror(failed));
  }
  ~Server() { (void)end(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Channel& channel() { return *channel_; }
  /// The status that waitpid gives; ends the process where it has not ended by itself.
  int end() {
    if (pid_ <= 0) return status_;
    channel_.reset();
    // Whoever closed the socket is about to end; give it a moment to say how.
    for (int i = 0; i < 100; ++i) {
      if (::waitpid(pid_, &status_, WNOHANG) == pid_) {
        pid_ = -1;
        return status_;
      }
      ::usleep(1000);
    }
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status_;
  }
  void kill() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
  }
  uint64_t match = 0;  // that it was sent last

 private:
  pid_t pid_ = -1;
  int status_ = 0;
  std::unique_ptr<Channel> channel_;
};

/// Sends what is asked, answers what is asked back, and says what came of it.
class RemoteHooks final : public Hooks {
 public:
  RemoteHooks(std::string file, std::string path, double seconds)
      : file_(std::move(file)), path_(std::move(path)), seconds_(seconds) {}

  Descriptor describe() {
    const std::lock_guard lock(mutex_);
    return start();
  }

  int32_t check(const std::string& what, const TenonMatch& match, TenonAnswer& answer) override {
    return answered(what, Kind::kCheck, match, 0, answer);
  }
  double cost(const std::string& what, const TenonMatch& match) override {
    return number<double>(what, Kind::kCost, match);
  }
  int64_t scratch(const std::string& what, const TenonMatch& match) override {
    return number<int64_t>(what, Kind::kScratch, match);
  }
  int32_t pack(const std::string& what, const TenonMatch& match, int32_t input,
               TenonAnswer& answer) override {
    return answered(what, Kind::kPack, match, input, answer);
  }
  int32_t generate(const std::string& what, const TenonMatch& match, TenonAnswer& answer) override {
    return answered(what, Kind::kGenerate, match, 0, answer);
  }
  int32_t run_pass(const std::string& what, size_t pass, const std::string& text,
                   TenonAnswer& answer) override {
    WireWriter out;
    out.put(static_cast<uint64_t>(pass));
    out.put(answer.subject);
    out.put(text);
    // As text, which is all that a pass sees of them.
    Attrs arguments;
    for (const auto& [key, value] : *answer.arguments) {
      const auto* words = value.as<std::string>();
      arguments.set(key, words ? *words : value.str());
    }
    put(out, arguments);
    const std::lock_guard lock(mutex_);
    const std::string result = ask(what, Kind::kPass, out.take(), nullptr, &answer);
    return status_of(what, result, answer);
  }

 private:
  int32_t answered(const std::string& what, Kind kind, const TenonMatch& match, int32_t input,
                   TenonAnswer& answer) {
    WireWriter out;
    out.put(input);
    out.put(answer.subject);
    const std::lock_guard lock(mutex_);
    const std::string result = ask(what, kind, out.take(), &match, nullptr);
    return status_of(what, result, answer);
  }

  template <typename T>
  T number(const std::string& what, Kind kind, const TenonMatch& match) {
    const std::lock_guard lock(mutex_);
    const std::string result = ask(what, kind, "", &match, nullptr);
    return parsed(what, [&] {
      WireReader in(result);
      const T value = in.number<T>();
      if (!in.done()) throw BadWire();
      return value;
    });
  }

  int32_t status_of(const std::string& what, const std::string& result, TenonAnswer& answer) {
    return parsed(what, [&] {
      WireReader in(result);
      const auto status = in.number<int32_t>();
      replay(in, answer);
      if (!in.done()) throw BadWire();
      return status;
    });
  }

  template <typename Read>
  auto parsed(const std::string& what, const Read& read) -> decltype(read()) {
    try {
      return read();
    } catch (const BadWire&) {
      server_.reset();
      throw CompileError(kBadBackend, {},
                         "{} answered with bytes that have no meaning; the process that it runs in "
                         "was ended",
                         what);
    }
  }

  Channel::Deadline deadline() const {
    if (!(seconds_ > 0)) return std::nullopt;
    return Channel::Clock::now() + std::chrono::duration_cast<Channel::Clock::duration>(
                                       std::chrono::duration<double>(std::min(seconds_, 1e9)));
  }

  // ---- the process

  Descriptor start() {
    server_ = std::make_unique<Server>(file_);
    const std::string what = "plugin " + file_ + ", when it was loaded,";
    const auto until = deadline();
    WireWriter out;
    out.put(file_);
    out.put(path_);
    must(what, server_->channel().send(Kind::kDescribe, out.take(), until));
    Message message;
    must(what, server_->channel().receive(message, until));
    return parsed(what, [&] {
      WireReader in(message.bytes);
      if (message.kind == Kind::kFault) {
        const std::string id = in.string();
        const std::string words = printable(in.string().c_str(), 2000);
        throw CompileError(id == kBadBackend.id ? kBadBackend : kBadPlugin, {}, "{}", words);
      }
      if (message.kind != Kind::kResult) throw BadWire();
      return descriptor_from(in);
    });
  }

  Descriptor descriptor_from(WireReader& in) const {
    Descriptor d;
    d.file = file_;
    d.name = in.string();
    d.version = printable(in.string().c_str(), 256);
    d.patterns = in.string();
    d.run_symbol = in.string();
    d.size = in.number<uint64_t>();
    d.abi = in.number<uint32_t>();
    d.unit = in.number<uint32_t>();
    d.threads = in.number<uint32_t>();
    d.flags = in.number<uint32_t>();
    d.priority = in.number<int32_t>();
    d.callbacks = in.number<uint32_t>();
    for (size_t n = in.count(); n > 0; --n) {
      PassDescriptor pass;
      pass.name = in.string();
      pass.summary = printable(in.string().c_str(), 200);
      d.passes.push_back(std::move(pass));
    }
    if (!in.done()) throw BadWire();
    check_descriptor(d);
    return d;
  }

  /// What became of a process that does not answer.
  [[noreturn]] void ended(const std::string& what, Channel::Status status) {
    if (status != Channel::Status::kClosed) server_->kill();
    const int how = server_->end();
    server_.reset();
    if (status == Channel::Status::kLate)
      throw CompileError(kPluginHang, {},
                         "{} did not come to an end in {} s; this is a fault of the back end, or "
                         "--plugin-timeout gives it more time",
                         what, seconds_);
    if (status == Channel::Status::kBad)
      throw CompileError(kBadBackend, {}, "{} answered with bytes that have no meaning", what);
    if (WIFSIGNALED(how))
      throw CompileError(kPluginCrash, {}, "{} crashed: it {}; this is a fault of the back end",
                         what, words_of_signal(WTERMSIG(how)));
    throw CompileError(kPluginExit, {},
                       "{} ended the process that it runs in, with status {}; this is a fault of "
                       "the back end",
                       what, WIFEXITED(how) ? WEXITSTATUS(how) : how);
  }

  void must(const std::string& what, Channel::Status status) {
    if (status != Channel::Status::kOk) ended(what, status);
  }

  // ---- one request

  std::string ask(const std::string& what, Kind kind, const std::string& bytes,
                  const TenonMatch* match, TenonAnswer* pass) {
    tenon::check(!is_busy_, "a back end was asked while it was being answered");
    struct Busy {
      bool& flag;
      explicit Busy(bool& f) : flag(f) { flag = true; }
      ~Busy() { flag = false; }
    };
    const Busy busy(is_busy_);
    if (!server_) (void)start();
    const auto until = deadline();
    Channel& channel = server_->channel();
    if (match && server_->match != match->number) {
      WireWriter out;
      put(out, *match);
      must(what, channel.send(Kind::kMatch, out.take(), until));
      server_->match = match->number;
    }
    must(what, channel.send(kind, bytes, until));
    for (;;) {
      Message message;
      must(what, channel.receive(message, until));
      if (message.kind == Kind::kResult) return std::move(message.bytes);
      if (message.kind == Kind::kFault)
        parsed(what, [&]() -> int {
          WireReader in(message.bytes);
          (void)in.text();
          throw CompileError(kBadBackend, {}, "{} {}", what, printable(in.string().c_str(), 2000));
        });
      const std::string reply = parsed(what, [&] { return reply_to(message, match, pass); });
      must(what, channel.send(Kind::kReply, reply, until));
    }
  }

  // The part of a match that a question is about.
  static const TenonMatch& at_place(const TenonMatch* match, WireReader& in) {
    if (!match) throw BadWire();
    for (size_t n = in.count(); n > 0; --n) {
      const auto op = in.number<int32_t>();
      if (op < 0 || static_cast<size_t>(op) >= match->operators.size() ||
          !match->operators[static_cast<size_t>(op)].part)
        throw BadWire();
      match = match->operators[static_cast<size_t>(op)].part.get();
    }
    return *match;
  }

  static std::string reply_to(const Message& message, const TenonMatch* match,
                              const TenonAnswer* pass) {
    WireReader in(message.bytes);
    WireWriter out;
    const auto answer = [&](const char* text) {
      out.put(static_cast<uint8_t>(text ? 1 : 0));
      out.put(text ? text : "");
    };
    switch (message.kind) {
      case Kind::kAskText: answer(host()->text(&at_place(match, in))); break;
      case Kind::kAskChoice: {
        const TenonMatch& about = at_place(match, in);
        answer(host()->choose(&about, in.number<int32_t>()));
        break;
      }
      case Kind::kAskChoiceIn: {
        if (!pass) throw BadWire();
        const std::string function = in.string(), variable = in.string();
        const auto text = pass->choose_in(function, variable);
        answer(text ? text->c_str() : nullptr);
        break;
      }
      case Kind::kAskData: {
        const TenonMatch& about = at_place(match, in);
        const auto input = in.number<int32_t>();
        if (input < 0 || static_cast<size_t>(input) >= about.inputs.size()) throw BadWire();
        const Ref<TensorData>& data = about.inputs[static_cast<size_t>(input)]->data;
        if (!data) throw BadWire();
        const auto bytes = data->data();
        out.put(static_cast<uint8_t>(1));
        out.put(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
        break;
      }
      default: throw BadWire();
    }
    return out.take();
  }

  std::string file_, path_;
  double seconds_;
  std::recursive_mutex mutex_;  // one question at a time
  bool is_busy_ = false;        // with one of this very thread
  std::unique_ptr<Server> server_;
};

}  // namespace

Descriptor load_apart(const std::string& file, const std::string& path, double seconds) {
  const auto hooks = std::make_shared<RemoteHooks>(file, path, seconds);
  Descriptor d = hooks->describe();
  d.hooks = hooks;
  return d;
}

}  // namespace tenon::plugin
