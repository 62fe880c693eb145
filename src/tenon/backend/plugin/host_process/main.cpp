// SPDX-License-Identifier: Apache-2.0
// tenon-plugin-host: the process in which a back end from outside of the tree runs. It speaks with
// Tenon over a socket, whose descriptor is its argument (backend/plugin/channel.h), and ends with
// it.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <exception>
#include <string>

#include "tenon/backend/plugin/channel.h"
#include "tenon/backend/plugin/descriptor.h"
#include "tenon/backend/plugin/wire.h"
#include "tenon/support/diagnostics.h"
#include "tenon/support/plugin_codes.h"

namespace tenon::plugin {

namespace {

using Kind = MessageKind;

// Without the other side there is nothing left to do, and no destructor of the plugin's to run.
[[noreturn]] void leave() { _exit(3); }

class Process final : public MatchSource {
 public:
  explicit Process(int fd) : channel_(fd) {}

  [[noreturn]] void run() {
    for (;;) {
      Message message;
      if (channel_.receive(message) != Channel::Status::kOk) leave();
      try {
        WireReader in(message.bytes);
        answer(message.kind, in);
      } catch (const BadWire&) {
        leave();
      } catch (const CompileError& error) {
        fault(std::string(error.first().code.id), error.first().message);
      } catch (const std::exception& error) {
        fault(std::string(kBadBackend.id), std::string("threw an exception: ") + error.what());
      } catch (...) {
        fault(std::string(kBadBackend.id), "threw an exception");
      }
    }
  }

  // ---- what a match is asked

  std::string text(const TenonMatch& match) const override {
    const auto text = ask(Kind::kAskText, match, [](WireWriter&) {});
    return text.value_or("");
  }
  std::optional<std::string> choice(const TenonMatch& match, int32_t op) const override {
    return ask(Kind::kAskChoice, match, [&](WireWriter& out) { out.put(op); });
  }
  const void* data(const TenonMatch& match, int32_t input) const override {
    const auto bytes = ask(Kind::kAskData, match, [&](WireWriter& out) { out.put(input); });
    if (!bytes) return nullptr;
    constexpr size_t kAlignment = 64;
    const size_t room = (bytes->size() + kAlignment) / kAlignment * kAlignment;
    void* memory = aligned_alloc(kAlignment, room);
    if (!memory) leave();
    std::memcpy(memory, bytes->data(), bytes->size());
    kept_.emplace_back(memory, &free);
    return memory;
  }

 private:
  void send(Kind kind, const std::string& bytes) const {
    if (channel_.send(kind, bytes) != Channel::Status::kOk) leave();
  }
  void fault(const std::string& code, const std::string& words) const {
    WireWriter out;
    out.put(code);
    out.put(words);
    send(Kind::kFault, out.take());
  }

  std::optional<std::string> reply() const {
    Message message;
    if (channel_.receive(message) != Channel::Status::kOk || message.kind != Kind::kReply) leave();
    WireReader in(message.bytes);
    const bool is_there = in.number<uint8_t>() != 0;
    std::string text = in.string();
    return is_there ? std::optional(std::move(text)) : std::nullopt;
  }

  template <typename Put>
  std::optional<std::string> ask(Kind kind, const TenonMatch& match, const Put& put_more) const {
    WireWriter out;
    out.put(static_cast<uint64_t>(match.place.size()));
    for (const int32_t op : match.place) out.put(op);
    put_more(out);
    send(kind, out.take());
    return reply();
  }

  // ---- requests

  void answer(Kind kind, WireReader& in) {
    switch (kind) {
      case Kind::kDescribe: return describe_plugin(in);
      case Kind::kMatch:
        kept_.clear();
        match_ = read_match_bytes(in);
        use_source(*match_);
        return;
      case Kind::kCheck:
      case Kind::kPack:
      case Kind::kGenerate: return callback(kind, in);
      case Kind::kCost: return number(plugin_.raw.cost(host(), match_.get()));
      case Kind::kScratch: return number(plugin_.raw.scratch(host(), match_.get()));
      case Kind::kPass: return pass(in);
      default: throw BadWire();
    }
  }

  void use_source(TenonMatch& match) {
    match.source = this;
    for (TenonMatch::Operator& op : match.operators)
      if (op.part) use_source(*op.part);
  }

  void describe_plugin(WireReader& in) {
    const std::string file = in.string(), path = in.string();
    const auto bad = [&](const std::string& words) {
      return CompileError(kBadPlugin, {}, "plugin {}: {}", file, words);
    };
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* reason = dlerror();
      throw bad(reason ? reason : "it does not load");
    }
    const auto entry = reinterpret_cast<TenonBackendFunction>(dlsym(handle, TENON_BACKEND_ENTRY));
    if (!entry) throw bad(std::string("it exports no function `") + TENON_BACKEND_ENTRY + "`");
    plugin_ = describe(entry, file);
    const Descriptor& d = plugin_.descriptor;
    if (!d.run_symbol.empty() && !dlsym(handle, d.run_symbol.c_str()))
      throw bad("it exports no function `" + d.run_symbol + "`, its run_symbol");
    WireWriter out;
    for (const std::string* text : {&d.name, &d.version, &d.patterns, &d.run_symbol})
      out.put(*text);
    out.put(d.size);
    for (const uint32_t word : {d.abi, d.unit, d.threads, d.flags}) out.put(word);
    out.put(d.priority);
    out.put(d.callbacks);
    out.put(static_cast<uint64_t>(d.passes.size()));
    for (const PassDescriptor& one : d.passes) {
      out.put(one.name);
      out.put(one.summary);
    }
    send(Kind::kResult, out.take());
  }

  template <typename T>
  void number(T value) {
    WireWriter out;
    out.put(value);
    send(Kind::kResult, out.take());
  }

  TenonAnswer empty_answer(TenonAnswer::Callback callback, std::string subject) const {
    TenonAnswer answer;
    answer.backend = plugin_.descriptor.name;
    answer.callback = callback;
    answer.subject = std::move(subject);
    answer.keeps_logs = true;
    return answer;
  }

  void send_result(int32_t status, const TenonAnswer& answer) const {
    WireWriter out;
    out.put(status);
    put(out, answer);
    send(Kind::kResult, out.take());
  }

  void callback(Kind kind, WireReader& in) {
    using Callback = TenonAnswer::Callback;
    const auto input = in.number<int32_t>();
    TenonAnswer answer = empty_answer(kind == Kind::kCheck  ? Callback::kCheck
                                      : kind == Kind::kPack ? Callback::kPack
                                                            : Callback::kGenerate,
                                      in.string());
    if (!match_) throw BadWire();
    const TenonBackend& raw = plugin_.raw;
    const int32_t status = kind == Kind::kCheck  ? raw.check(host(), match_.get(), &answer)
                           : kind == Kind::kPack ? raw.pack(host(), match_.get(), input, &answer)
                                                 : raw.generate(host(), match_.get(), &answer);
    send_result(status, answer);
  }

  void pass(WireReader& in) {
    const auto index = in.number<uint64_t>();
    if (index >= plugin_.descriptor.passes.size()) throw BadWire();
    TenonAnswer answer = empty_answer(TenonAnswer::Callback::kPass, in.string());
    const std::string text = in.string();
    const Attrs arguments = read_attrs(in);
    answer.arguments = &arguments;
    answer.choose_in = [&](const std::string& function, const std::string& variable) {
      WireWriter out;
      out.put(function);
      out.put(variable);
      send(Kind::kAskChoiceIn, out.take());
      return reply();
    };
    send_result(plugin_.raw.passes[index]->run(host(), text.c_str(), &answer), answer);
  }

  mutable Channel channel_;
  Described plugin_;
  std::unique_ptr<TenonMatch> match_;
  mutable std::vector<std::unique_ptr<void, void (*)(void*)>> kept_;  // data of its constants
};

}  // namespace

}  // namespace tenon::plugin

int main(int argc, char** argv) {
  if (argc != 2 || std::string(argv[1]) != "3" || fcntl(3, F_SETFD, FD_CLOEXEC) != 0) {
    static constexpr char kWords[] =
        "tenon-plugin-host: tenon starts this program, to run back ends in it\n";
    (void)!write(STDERR_FILENO, kWords, sizeof kWords - 1);
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  tenon::plugin::Process process(3);
  process.run();
}
