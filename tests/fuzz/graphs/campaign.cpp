// SPDX-License-Identifier: Apache-2.0
#include "campaign.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "generators.h"
#include "reduce.h"
#include "tenon/driver/npy.h"
#include "tenon/script/constant_file.h"
#include "tenon/script/printer.h"

namespace tenon::fuzz {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr char kTooLong[] = "it takes too long";
// What waits for ever takes no time of the processor: that is seen by the clock.
constexpr double kClockFactor = 20;

constexpr rlim_t kMostBytes = rlim_t{3} << 30;

// ---- what a child says --------------------------------------------------------------------------

// A line for each event, fields separated by tabs.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '\n' ? "\\n" : c == '\t' ? " " : std::string(1, c);
  return out;
}
std::string unescaped(std::string text) {
  for (size_t at = 0; (at = text.find("\\n", at)) != std::string::npos;) text.replace(at, 2, "\n");
  return text;
}
void say(int pipe, const std::string& line) {
  const std::string whole = line + "\n";
  for (size_t done = 0; done < whole.size();) {
    const ssize_t n = write(pipe, whole.data() + done, whole.size() - done);
    if (n <= 0) _exit(3);
    done += static_cast<size_t>(n);
  }
}

void say_failure(int pipe, const Failure& failure) {
  say(pipe,
      "failed\t" + failure.configuration + "\t" + failure.kind + "\t" + escaped(failure.text));
}

// Generates and tries one network; every failure is said.
void try_network(const CampaignOptions& options, Choices& choices, uint64_t seed, int pipe) {
  // In seconds of this process: others may leave it little of the machine.
  const itimerval limit{{0, 0}, {static_cast<time_t>(options.case_seconds), 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
  say(pipe, "at\tgenerator");
  std::optional<Network> network;
  try {
    network = random_network(choices);
  } catch (const std::exception& error) {
    say_failure(pipe, {"generator", "internal error", error.what()});
    return;
  }
  say(pipe, fmt::format("made\t{}", fmt::join(network->operators, " ")));
  say(pipe, "at\tinterpreter");
  if (const auto failure = try_interpreter(*network)) {
    say_failure(pipe, *failure);
    return;
  }
  for (const Configuration& with : options.configurations) {
    if (!runs_with(with, seed)) continue;
    say(pipe, "at\t" + with.name);
    if (const auto failure = try_configuration(*network, with, seed)) say_failure(pipe, *failure);
    say(pipe, "ran\t" + with.name);
  }
}

// ---- children -----------------------------------------------------------------------------------

// A process that runs `work` with the writing end of a pipe.
struct Child {
  pid_t pid = 0;
  int pipe = -1;
  std::string buffer;

  explicit Child(const std::function<void(int)>& work) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("no pipe can be made");
    std::fflush(nullptr);
    pid = fork();
    if (pid < 0) throw std::runtime_error("no process can be made");
    if (pid == 0) {
      close(ends[0]);
      const rlimit data{kMostBytes, kMostBytes}, core{0, 0};
      setrlimit(RLIMIT_DATA, &data);
      setrlimit(RLIMIT_CORE, &core);
      // What a failing program prints belongs to no report.
      const int null = open("/dev/null", O_WRONLY);
      dup2(null, 1);
      dup2(null, 2);
      work(ends[1]);
      _exit(0);
    }
    close(ends[1]);
    pipe = ends[0];
  }
  ~Child() {
    if (pid > 0) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    if (pipe >= 0) close(pipe);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The lines that are there; false at the end of the pipe.
  bool read_lines(std::vector<std::string>& lines) {
    char bytes[65536];
    const ssize_t n = read(pipe, bytes, sizeof(bytes));
    if (n <= 0) return false;
    buffer.append(bytes, static_cast<size_t>(n));
    for (size_t end; (end = buffer.find('\n')) != std::string::npos; buffer.erase(0, end + 1))
      lines.push_back(buffer.substr(0, end));
    return true;
  }
  // Waits for its end; empty where it ended by itself.
  std::string end() {
    int status = 0;
    waitpid(pid, &status, 0);
    pid = 0;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF) return kTooLong;
    if (WIFSIGNALED(status))
      return fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0) return fmt::format("exit status {}", WEXITSTATUS(status));
    return "";
  }
};

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == '\t') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

// What kind of failure it is, whatever the numbers and names in it: one is reduced of each.
std::string signature(const Failure& failure) {
  std::string text = failure.kind == "wrong" || failure.kind == "threads"
                         ? ""
                         : failure.text.substr(0, failure.text.find("\n#"));
  std::string out;
  for (const char c : text.substr(0, 160))
    if (!(c >= '0' && c <= '9')) out += c;
  return failure.configuration + ": " + failure.kind + (out.empty() ? "" : ": " + out);
}

// The failure of what a list of choices makes, with one configuration, found in a child.
std::optional<Failure> failure_of(const CampaignOptions& options, const std::vector<uint32_t>& list,
                                  uint64_t seed) {
  Child child([&](int pipe) {
    Choices choices(list);
    try_network(options, choices, seed, pipe);
  });
  const auto start = Clock::now();
  std::string at;
  std::optional<Failure> failure;
  while (true) {
    pollfd waiting{child.pipe, POLLIN, 0};
    const double left = kClockFactor * options.case_seconds - seconds_since(start);
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left * 1000) + 1) == 0)
      return Failure{at, "hang", kTooLong};
    std::vector<std::string> lines;
    if (!child.read_lines(lines)) break;
    for (const std::string& line : lines) {
      const auto fields = fields_of(line);
      if (fields[0] == "at") at = fields[1];
      if (fields[0] == "failed" && !failure)
        failure = Failure{fields[1], fields[2], unescaped(fields[3])};
    }
  }
  if (const std::string how = child.end(); !how.empty())
    return Failure{at, how == kTooLong ? "hang" : "crash", how};
  return failure;
}

// ---- reports ------------------------------------------------------------------------------------

std::string file_name(const Failure& failure, uint64_t seed) {
  std::string name = fmt::format("{}-{}-{}", seed, failure.configuration, failure.kind);
  for (char& c : name)
    if (c == ' ' || c == '/') c = '_';
  return name;
}

std::string commented(const std::string& text) {
  std::string out = "# ";
  for (const char c : text) out += c == '\n' ? std::string("\n# ") : std::string(1, c);
  return out;
}

// Reduces the failure and writes what is needed to see it again; runs in a child.
void write_report(const CampaignOptions& options, uint64_t seed, const Failure& failure) {
  CampaignOptions one = options;
  std::erase_if(one.configurations,
                [&](const Configuration& c) { return c.name != failure.configuration; });
  for (Configuration& with : one.configurations) with.every = 1;
  const std::string wanted = signature(failure);
  Choices choices(seed);
  try {
    random_network(choices);
  } catch (const std::exception&) {  // what was chosen up to there
  }
  const auto fails = [&](const std::vector<uint32_t>& list) {
    const auto found = failure_of(one, list, seed);
    return found && signature(*found) == wanted;
  };
  std::vector<uint32_t> list = choices.taken();
  try {
    list = reduced(choices, fails, options.reduce_seconds);
  } catch (const std::exception&) {
  }
  const std::string path = options.out + "/" + file_name(failure, seed);
  std::ofstream(path + ".choices") << fmt::format("{}", fmt::join(list, " ")) << "\n";
  const auto again = failure_of(one, list, seed);
  std::ofstream report(path + ".tvmscript");
  report << "# seed " << seed << "\n"
         << commented(again ? again->text : failure.text + "\n(not seen again)") << "\n"
         << "# shown by: fuzz_graphs --seed " << seed << " --count 1 --targets "
         << failure.configuration << "\n#       and: fuzz_graphs --choices " << path
         << ".choices --targets " << failure.configuration << "\n";
  try {
    Choices replay(list);
    const Network network = random_network(replay);
    std::string inputs;
    for (size_t i = 0; i < network.inputs.size(); ++i) {
      const std::string file = fmt::format("{}.x{}.npy", path, i);
      try {
        write_npy(file, *network.inputs[i]);
        inputs += fmt::format(" --input x{}={}", i, file);
      } catch (const std::exception&) {
      }
    }
    const auto with =
        configurations(failure.configuration == "interpreter" ? "native" : failure.configuration);
    report << "#       and: tenon run " << path << ".tvmscript" << inputs << " --target \""
           << with[0].target << "\"" << (with[0].libs.empty() ? "" : " --libs " + with[0].libs)
           << "\n";
    script::ConstantStore constants;
    script::PrintOptions printing;
    printing.constants = &constants;
    report << script::print(network.module, printing);
    if (!constants.items().empty())
      script::write_constants(path + ".tvmscript.constants", constants);
  } catch (const std::exception& error) {
    report << commented(error.what()) << "\n";
  }
}

// ---- the campaign -------------------------------------------------------------------------------

struct Worker {
  std::unique_ptr<Child> child;
  uint64_t next = 0, end = 0;  // seeds
  std::string at;
  Clock::time_point since;
};

struct Counts {
  int64_t networks = 0, operators = 0;
  std::map<std::string, int64_t> by_operator, by_configuration;
  std::map<std::string, std::vector<uint64_t>> failures;  // seeds by signature
  std::map<std::string, std::string> texts;               // of the first
};

class Campaign {
 public:
  explicit Campaign(const CampaignOptions& options)
      : options_(options), next_(options.seed), last_(options.seed + options.count) {}

  bool run() {
    std::filesystem::create_directories(options_.out);
    workers_.resize(static_cast<size_t>(std::max(1, options_.jobs)));
    for (Worker& worker : workers_) start(worker);
    while (std::any_of(workers_.begin(), workers_.end(),
                       [](const Worker& worker) { return worker.child != nullptr; }))
      wait();
    print();
    return counts_.failures.empty();
  }

 private:
  bool is_over() const { return options_.seconds > 0 && seconds_since(begin_) > options_.seconds; }

  // The next seeds; or a failure to reduce.
  void start(Worker& worker) {
    worker.child.reset();
    if (!reports_.empty()) {
      const auto [seed, failure] = reports_.back();
      reports_.pop_back();
      worker.at = "report";
      worker.since = Clock::now();
      worker.next = worker.end = 0;
      worker.child = std::make_unique<Child>(
          [&, seed = seed, failure = failure](int) { write_report(options_, seed, failure); });
      return;
    }
    constexpr uint64_t kSeedsAtOnce = 64;
    if (worker.next == worker.end) {
      if (next_ == last_ || is_over()) return;
      worker.next = next_;
      next_ = worker.end = std::min(last_, next_ + kSeedsAtOnce);
    }
    worker.since = Clock::now();
    worker.child = std::make_unique<Child>([&, from = worker.next, to = worker.end](int pipe) {
      for (uint64_t seed = from; seed < to; ++seed) {
        say(pipe, fmt::format("begin\t{}", seed));
        Choices choices(seed);
        try_network(options_, choices, seed, pipe);
        say(pipe, fmt::format("end\t{}", seed));
      }
    });
  }

  void wait() {
    std::vector<pollfd> waiting;
    std::vector<Worker*> of;
    for (Worker& worker : workers_) {
      if (!worker.child) continue;
      waiting.push_back({worker.child->pipe, POLLIN, 0});
      of.push_back(&worker);
    }
    poll(waiting.data(), waiting.size(), 500);
    for (size_t i = 0; i < of.size(); ++i) {
      Worker& worker = *of[i];
      const double limit = kClockFactor * options_.case_seconds +
                           (worker.at == "report" ? options_.reduce_seconds : 0);
      if (waiting[i].revents == 0) {
        if (seconds_since(worker.since) < limit) continue;
        if (worker.at != "report") fail(worker.next, {worker.at, "hang", kTooLong});
        after_end(worker);
        continue;
      }
      std::vector<std::string> lines;
      const bool open = worker.child->read_lines(lines);
      for (const std::string& line : lines) take(worker, fields_of(line));
      if (open) continue;
      const std::string how = worker.child->end();
      if (!how.empty() && worker.at != "report")
        fail(worker.next, {worker.at, how == kTooLong ? "hang" : "crash", how});
      after_end(worker, how.empty());
    }
  }

  // Goes on behind the seed at which a child ended.
  void after_end(Worker& worker, bool well = false) {
    if (worker.at != "report" && !well && worker.next < worker.end) {
      ++counts_.networks;
      ++worker.next;
    }
    if (worker.next == worker.end) worker.next = worker.end = 0;
    worker.at.clear();
    start(worker);
  }

  void take(Worker& worker, const std::vector<std::string>& fields) {
    if (fields[0] == "begin") {
      worker.since = Clock::now();
    } else if (fields[0] == "at") {
      worker.at = fields[1];
    } else if (fields[0] == "ran") {
      ++counts_.by_configuration[fields[1]];
    } else if (fields[0] == "made") {
      std::istringstream names(fields[1]);
      for (std::string name; names >> name; ++counts_.operators) ++counts_.by_operator[name];
    } else if (fields[0] == "failed") {
      fail(worker.next, {fields[1], fields[2], unescaped(fields[3])});
    } else if (fields[0] == "end") {
      ++counts_.networks;
      ++worker.next;
      if (seconds_since(told_) > 60) {
        told_ = Clock::now();
        fmt::print("{} networks, {} failures, {:.0f} s\n", counts_.networks, failures_,
                   seconds_since(begin_));
        std::fflush(stdout);
      }
    }
  }

  void fail(uint64_t seed, const Failure& failure) {
    ++failures_;
    const std::string key = signature(failure);
    std::vector<uint64_t>& seeds = counts_.failures[key];
    seeds.push_back(seed);
    constexpr size_t kReduced = 2;
    if (seeds.size() == 1) {
      counts_.texts[key] = failure.text;
      fmt::print("seed {}: {}: {}: {}\n", seed, failure.configuration, failure.kind, failure.text);
      std::fflush(stdout);
    }
    if (seeds.size() <= kReduced && options_.reduce_seconds > 0)
      reports_.push_back({seed, failure});
  }

  void print() {
    const double took = seconds_since(begin_);
    fmt::print("\n{} networks from seed {}, {} calls of {} operators, {:.0f} s ({:.0f} a minute)\n",
               counts_.networks, options_.seed, counts_.operators, counts_.by_operator.size(), took,
               static_cast<double>(counts_.networks) / std::max(took, 1e-9) * 60);
    for (const auto& [name, count] : counts_.by_configuration)
      fmt::print("  {:12} {:8} networks\n", name, count);
    fmt::print("failures: {}\n", failures_);
    for (const auto& [key, seeds] : counts_.failures)
      fmt::print(
          "  {:4} x {}\n         seeds {}\n", seeds.size(), key,
          fmt::join(seeds.begin(),
                    seeds.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(seeds.size(), 8)),
                    ", "));
    if (failures_ > 0) fmt::print("reduced cases are in {}\n", options_.out);
  }

  const CampaignOptions& options_;
  uint64_t next_, last_;
  std::vector<Worker> workers_;
  std::vector<std::pair<uint64_t, Failure>> reports_;
  Counts counts_;
  int64_t failures_ = 0;
  Clock::time_point begin_ = Clock::now(), told_ = begin_;
};

}  // namespace

bool run_campaign(const CampaignOptions& options) { return Campaign(options).run(); }

bool run_choices(const CampaignOptions& options, const std::vector<uint32_t>& list) {
  const auto failure = failure_of(options, list, 0);
  if (failure)
    fmt::print("{}: {}: {}\n", failure->configuration, failure->kind, failure->text);
  else
    fmt::print("no failure\n");
  return !failure;
}

}  // namespace tenon::fuzz
