// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <regex>

#include "tenon/driver/guarded.h"
#include "tenon/support/codes.h"
#include "tenon/support/diagnostics.h"

extern char** environ;

namespace tenon {

// What a run said last; what it said before does not tell faults apart.
static constexpr size_t kMostOutput = 64 << 10;

// The line that names the fault, without what differs between two models that show the same one:
// numbers, quoted code, the file, and the values that a message ends with.
static std::string fault_line(std::string output, const std::string& file) {
  for (size_t at = 0; !file.empty() && (at = output.find(file, at)) != std::string::npos;)
    output.replace(at, file.size(), "MODEL");
  static const std::regex kLine(
      R"((internal error: [^\n]*|error\[TN\d+\]: [^\n]*|SUMMARY: [A-Za-z]+Sanitizer: [^\n(]*))");
  std::smatch found;
  if (!std::regex_search(output, found, kLine)) return "";
  static const std::regex kQuoted("`[^`]*`"), kNumber(R"(-?\b\d+(\.\d+)?(e[-+]?\d+)?)"),
      kModel("MODEL: "), kValues(": (output|element) .*");
  std::string line = std::regex_replace(std::string(found[1]), kModel, "");
  line = std::regex_replace(line, kValues, "");
  return std::regex_replace(std::regex_replace(line, kQuoted, "`...`"), kNumber, "N");
}

static constexpr int kNotStarted = 127;

static std::string key_of(const Outcome& outcome, const std::string& file) {
  switch (outcome.kind) {
    case Outcome::Kind::kSuccess: return "success";
    case Outcome::Kind::kTimeLimit: return "time limit";
    case Outcome::Kind::kSignal:
      return fmt::format("signal {} ({})", outcome.status, strsignal(outcome.status));
    case Outcome::Kind::kFailure: break;
  }
  const std::string line = fault_line(outcome.output, file);
  return fmt::format("status {}{}{}", outcome.status, line.empty() ? "" : ", ", line);
}

namespace {

// A pipe of the child's two streams, read until it ends or the time is over.
class Child {
 public:
  // `body` runs in the child and does not return.
  Child(const std::function<void()>& body, const ProbeOptions& options) {
    std::fflush(nullptr);  // what is written already is not written twice
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
    read_end_ = ends[0];
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ < 0) fail("fork");
    if (pid_ == 0) {
      // A group of its own, so that what it starts ends with it; and it ends with this process,
      // however that ends.
      setpgid(0, 0);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(kNotStarted);
      dup2(ends[1], STDOUT_FILENO);
      dup2(ends[1], STDERR_FILENO);
      const int null = open("/dev/null", O_RDONLY);
      dup2(null, STDIN_FILENO);
      if (options.memory_limit > 0) {
        const auto bytes = static_cast<rlim_t>(options.memory_limit);
        const rlimit limit = {bytes, bytes};
        setrlimit(RLIMIT_AS, &limit);
      }
      const rlimit no_core = {0, 0};
      setrlimit(RLIMIT_CORE, &no_core);
      body();
      _exit(kNotStarted);
    }
    close(ends[1]);
  }
  ~Child() { close(read_end_); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  Outcome wait(double seconds) {
    Outcome outcome;
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (;;) {
      const double left =
          std::chrono::duration<double>(end - std::chrono::steady_clock::now()).count();
      if (left <= 0) {
        outcome.kind = Outcome::Kind::kTimeLimit;
        break;
      }
      pollfd readable = {read_end_, POLLIN, 0};
      const int ready = poll(&readable, 1, static_cast<int>(left * 1000) + 1);
      if (ready <= 0) continue;
      char bytes[4096];
      const ssize_t count = read(read_end_, bytes, sizeof bytes);
      if (count <= 0) break;
      outcome.output.append(bytes, static_cast<size_t>(count));
      if (outcome.output.size() > 2 * kMostOutput)
        outcome.output.erase(0, outcome.output.size() - kMostOutput);
    }
    if (outcome.kind == Outcome::Kind::kTimeLimit) kill(-pid_, SIGKILL);
    int status = 0;
    rusage used = {};
    while (wait4(pid_, &status, 0, &used) < 0 && errno == EINTR) {
    }
    outcome.peak_bytes = int64_t{used.ru_maxrss} << 10;
    kill(-pid_, SIGKILL);  // what it left running
    if (outcome.kind == Outcome::Kind::kTimeLimit) return outcome;
    if (WIFSIGNALED(status)) {
      outcome.kind = Outcome::Kind::kSignal;
      outcome.status = WTERMSIG(status);
    } else if (WEXITSTATUS(status) != 0) {
      outcome.kind = Outcome::Kind::kFailure;
      outcome.status = WEXITSTATUS(status);
    }
    return outcome;
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    throw CompileError(kRunFailed, {}, "cannot start a command: {}: {}", what,
                       std::strerror(errno));
  }

  int read_end_ = -1;
  pid_t pid_ = -1;
};

}  // namespace

static Outcome outcome_of(const std::function<void()>& body, const ProbeOptions& options) {
  Child child(body, options);
  Outcome outcome = child.wait(options.time_limit);
  outcome.key = key_of(outcome, options.file);
  return outcome;
}

Outcome probe(const std::vector<std::string>& arguments, const ProbeOptions& options) {
  std::vector<char*> argv;
  for (const std::string& word : arguments) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const Outcome outcome = outcome_of([&] { execvp(argv[0], argv.data()); }, options);
  if (outcome.kind == Outcome::Kind::kFailure && outcome.status == kNotStarted &&
      outcome.output.empty())
    throw CompileError(kRunFailed, {}, "cannot start `{}`", arguments[0]);
  return outcome;
}

Outcome probe_shell(const std::string& line, const ProbeOptions& options) {
  return probe({"/bin/sh", "-c", line}, options);
}

Outcome probe_call(const std::function<int()>& body, const ProbeOptions& options) {
  return outcome_of(
      [&] {
        const int status = guarded(body);
        std::fflush(nullptr);
        _exit(status);
      },
      options);
}

static std::vector<std::string>& words_of_own() {
  static std::vector<std::string> words;
  return words;
}

void set_own_command(std::vector<std::string> words) { words_of_own() = std::move(words); }

std::vector<std::string> own_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = words_of_own();
  if (command.empty()) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
    command.push_back(error ? "tenon" : path.string());
  }
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

std::string shell_word(const std::string& text) {
  static const std::regex kPlain(R"([A-Za-z0-9_./:=,@%+-]+)");
  if (std::regex_match(text, kPlain)) return text;
  return "'" + std::regex_replace(text, std::regex("'"), R"('\'')") + "'";
}

std::string shell_line(const std::vector<std::string>& arguments) {
  std::string line;
  for (const std::string& word : arguments) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

}  // namespace tenon
