// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <random>

#include "tenon/support/diagnostics.h"

static constexpr size_t kMostBytesAtOnce = size_t{512} << 20;
static std::atomic<size_t> refused_bytes{0};  // of the last allocation that was too large

static void* allocate_bounded(size_t bytes) {
  if (bytes > kMostBytesAtOnce) {
    refused_bytes = bytes;
    throw std::bad_alloc();
  }
  if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

void* operator new(size_t bytes) { return allocate_bounded(bytes); }
void* operator new[](size_t bytes) { return allocate_bounded(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace tenon::fuzz {

namespace {

using Random = std::mt19937_64;

size_t below(size_t bound, Random& random) { return bound == 0 ? 0 : random() % bound; }

void mutate_once(std::string& text, const std::vector<std::string>& seeds,
                 const std::vector<std::string>& words, Random& random) {
  const size_t at = below(text.size() + 1, random);
  const size_t length =
      below(std::min<size_t>(text.size() - at, 1 + below(64, random)) + 1, random);
  switch (random() % 10) {
    case 0:  // a bit
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
      break;
    case 1:  // a byte
      if (at < text.size()) text[at] = static_cast<char>(random());
      break;
    case 2: text.erase(at, length); break;
    case 3: text.insert(at, text.substr(at, length)); break;
    case 4:  // a piece of another place or seed
    {
      const std::string& other = seeds[below(seeds.size(), random)];
      const size_t from = below(other.size(), random);
      text.replace(at, length, other.substr(from, below(64, random)));
      break;
    }
    case 5:
      if (!words.empty()) text.insert(at, words[below(words.size(), random)]);
      break;
    case 6:
      if (!words.empty()) text.replace(at, length, words[below(words.size(), random)]);
      break;
    case 7: {  // a number becomes one at a limit
      static const char* const kNumbers[] = {"0",
                                             "-1",
                                             "1",
                                             "9223372036854775807",
                                             "-9223372036854775808",
                                             "18446744073709551616",
                                             "4294967296",
                                             "2147483648",
                                             "1e400",
                                             "1000000007"};
      const size_t digit = text.find_first_of("0123456789", at);
      if (digit == std::string::npos) break;
      const size_t end = text.find_first_not_of("0123456789", digit);
      text.replace(digit, (end == std::string::npos ? text.size() : end) - digit,
                   kNumbers[below(std::size(kNumbers), random)]);
      break;
    }
    case 8: {  // a line moves
      const size_t begin = text.rfind('\n', at), end = text.find('\n', at);
      if (begin == std::string::npos || end == std::string::npos || begin >= end) break;
      const std::string line = text.substr(begin, end - begin);
      text.erase(begin, end - begin);
      text.insert(below(text.size() + 1, random), line);
      break;
    }
    default:  // cut short, rarely
      if (random() % 8 == 0) text.resize(at);
  }
}

// What the process is at, for the handler of fatal signals.
const std::string* current_input = nullptr;
char current_file[256];

void on_fatal_signal(int number) {
  const int file = open(current_file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0 && current_input) {
    [[maybe_unused]] auto n = write(file, current_input->data(), current_input->size());
    close(file);
  }
  const char* text = number == SIGALRM ? "\nthe reader hangs; its input is in "
                                       : "\na fatal signal; the reader's input is in ";
  [[maybe_unused]] auto n = write(2, text, std::strlen(text));
  n = write(2, current_file, std::strlen(current_file));
  n = write(2, "\n", 1);
  signal(number, SIG_DFL);
  raise(number);
}

class SignalHandlers {
 public:
  explicit SignalHandlers(const std::string& file) {
    std::snprintf(current_file, sizeof(current_file), "%s", file.c_str());
    static std::vector<char> stack(1 << 16);  // an overflowing stack has no room for a handler
    stack_t alternative{};
    alternative.ss_sp = stack.data();
    alternative.ss_size = stack.size();
    sigaltstack(&alternative, nullptr);
    for (const int number : kSignals) {
      struct sigaction action{};
      action.sa_handler = on_fatal_signal;
      action.sa_flags = SA_ONSTACK | static_cast<int>(SA_RESETHAND);
      sigaction(number, &action, nullptr);
    }
  }
  ~SignalHandlers() {
    alarm(0);
    for (const int number : kSignals) signal(number, SIG_DFL);
    current_input = nullptr;
  }
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;

 private:
  static constexpr int kSignals[] = {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS, SIGALRM};
};

void keep(const std::string& file, const std::string& input) {
  std::ofstream(file, std::ios::binary) << input;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void expect_only_diagnostics(const std::vector<std::string>& seeds, const Options& options,
                             const std::function<void(const std::string&)>& reader) {
  const std::string file =
      testing::TempDir() + "tenon_fuzz_" + options.name + "_" + std::to_string(getpid());
  const SignalHandlers handlers(file);
  const char* stated = std::getenv("TENON_FUZZ_SECONDS");
  const double seconds = stated ? std::atof(stated) : options.seconds;
  const char* stated_seed = std::getenv("TENON_FUZZ_SEED");
  const uint64_t seed = stated_seed ? std::strtoull(stated_seed, nullptr, 10) : 1;
  if (!options.seeds_may_fail)
    for (const std::string& good : seeds) ASSERT_NO_THROW(reader(good)) << good;
  const auto start = std::chrono::steady_clock::now();
  int64_t cases = 0, refused = 0;
  int failures = 0;
  for (; (stated || cases < options.most_cases) && seconds_since(start) < seconds; ++cases) {
    Random random(seed * 1000003 + static_cast<uint64_t>(cases));
    std::string input = seeds[below(seeds.size(), random)];
    for (size_t n = random() % 2 ? 1 : 1 + below(6, random); n > 0; --n)
      mutate_once(input, seeds, options.words, random);
    current_input = &input;
    std::string fault;
    alarm(60);
    const auto case_start = std::chrono::steady_clock::now();
    try {
      reader(input);
    } catch (const CompileError& error) {
      ++refused;
      if (error.diagnostics().empty() || error.first().message.empty())
        fault = "a diagnostic without text";
    } catch (const std::bad_alloc&) {
      fault = fmt::format("it asked for {} bytes at once", refused_bytes.load());
    } catch (const std::exception& error) {
      fault = error.what();
    }
    alarm(0);
    const double took = seconds_since(case_start);
    if (fault.empty() && took > options.seconds_per_case) fault = fmt::format("it took {} s", took);
    if (fault.empty()) continue;
    keep(file + "_" + std::to_string(++failures), input);
    ADD_FAILURE() << options.name << " case " << cases << ": " << fault << "\nthe input is in "
                  << file << "_" << failures;
    if (failures == 5) break;
  }
  testing::Test::RecordProperty("cases", static_cast<int>(cases));
  std::printf("%s: %lld mutations, %lld refused\n", options.name.c_str(),
              static_cast<long long>(cases), static_cast<long long>(refused));
  EXPECT_GT(static_cast<double>(refused), static_cast<double>(cases) * options.least_refused)
      << "mutations do little";
}

}  // namespace tenon::fuzz
