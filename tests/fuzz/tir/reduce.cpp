// SPDX-License-Identifier: Apache-2.0
#include "reduce.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <sstream>

namespace tenon::fuzz {

namespace {

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}
std::string joined(const Lines& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}
size_t indentation(const std::string& line) { return line.find_first_not_of(' '); }
bool is_comment(const std::string& line) { return line.starts_with("#"); }

class Reducer {
 public:
  Reducer(Lines lines, const std::function<std::string(const std::string&)>& kind_of,
          double seconds)
      : lines_(std::move(lines)),
        kind_of_(kind_of),
        end_(std::chrono::steady_clock::now() +
             std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000))) {
    kind_ = kind_of_(joined(lines_));
  }

  Lines run() {
    if (kind_.empty()) return lines_;
    for (bool smaller = true; smaller && !is_late();) {
      smaller = drop_steps();
      smaller = drop_blocks() || smaller;
      smaller = shrink_numbers() || smaller;
    }
    return lines_;
  }

 private:
  bool is_late() const { return std::chrono::steady_clock::now() > end_; }
  bool try_lines(Lines candidate) {
    if (is_late() || kind_of_(joined(candidate)) != kind_) return false;
    lines_ = std::move(candidate);
    return true;
  }

  bool drop_steps() {
    bool any = false;
    std::vector<size_t> steps;
    for (size_t i = 0; i < lines_.size(); ++i)
      if (lines_[i].starts_with("# step")) steps.push_back(i);
    for (size_t chunk = std::max<size_t>(1, steps.size() / 2); chunk >= 1; chunk /= 2) {
      for (size_t end = steps.size(); end > 0;) {
        const size_t begin = end > chunk ? end - chunk : 0;
        Lines candidate = lines_;
        candidate.erase(candidate.begin() + static_cast<std::ptrdiff_t>(steps[begin]),
                        candidate.begin() + static_cast<std::ptrdiff_t>(steps[end - 1] + 1));
        if (try_lines(std::move(candidate))) {
          any = true;
          steps.resize(steps.size() - (end - begin));
        }
        end = begin;
      }
    }
    return any;
  }

  // A line with all that is indented below it.
  bool drop_blocks() {
    bool any = false;
    for (size_t i = 0; i < lines_.size(); ++i) {
      if (lines_[i].empty() || is_comment(lines_[i])) continue;
      size_t end = i + 1;
      while (end < lines_.size() &&
             (lines_[end].empty() || indentation(lines_[end]) > indentation(lines_[i])))
        ++end;
      Lines candidate = lines_;
      candidate.erase(candidate.begin() + static_cast<std::ptrdiff_t>(i),
                      candidate.begin() + static_cast<std::ptrdiff_t>(end));
      if (try_lines(std::move(candidate))) {
        any = true;
        --i;
        continue;
      }
      // What is below it without the line itself.
      if (end == i + 1 || lines_[i].find("for ") == std::string::npos) continue;
      const size_t deeper = indentation(lines_[i + 1]) - indentation(lines_[i]);
      candidate = lines_;
      for (size_t k = i + 1; k < end; ++k)
        if (!candidate[k].empty()) candidate[k].erase(0, deeper);
      candidate.erase(candidate.begin() + static_cast<std::ptrdiff_t>(i));
      any = try_lines(std::move(candidate)) || any;
    }
    return any;
  }

  // Each number, wherever it stands, by a smaller one.
  bool shrink_numbers() {
    bool any = false;
    std::set<std::string> numbers;
    for (const std::string& line : lines_)
      if (!is_comment(line))
        each_number(line, [&](size_t at, size_t n) { numbers.insert(line.substr(at, n)); });
    for (const std::string& number : numbers) {
      if (number.size() > 6 || number.size() < 1) continue;
      const int value = std::stoi(number);
      for (const int next : {1, 2, value / 2, value - 1}) {
        if (next < 1 || next >= value) continue;
        Lines candidate = lines_;
        for (std::string& line : candidate) {
          if (is_comment(line)) continue;
          std::string out;
          size_t done = 0;
          each_number(line, [&](size_t at, size_t n) {
            out += line.substr(done, at - done);
            out += line.compare(at, n, number) == 0 ? std::to_string(next) : line.substr(at, n);
            done = at + n;
          });
          line = out + line.substr(done);
        }
        if (try_lines(std::move(candidate))) {
          any = true;
          break;
        }
      }
    }
    return any;
  }

  // Whole numbers that are no part of a name.
  template <typename F>
  static void each_number(const std::string& line, const F& f) {
    const auto is_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    };
    for (size_t i = 0; i < line.size();) {
      size_t end = i;
      while (end < line.size() && is_word(line[end])) ++end;
      if (end == i) {
        ++i;
        continue;
      }
      if (std::all_of(line.begin() + static_cast<std::ptrdiff_t>(i),
                      line.begin() + static_cast<std::ptrdiff_t>(end),
                      [](char c) { return c >= '0' && c <= '9'; }))
        f(i, end - i);
      i = end;
    }
  }

  Lines lines_;
  const std::function<std::string(const std::string&)>& kind_of_;
  std::chrono::steady_clock::time_point end_;
  std::string kind_;
};

}  // namespace

std::string outcome(const std::function<std::optional<Fault>()>& body, unsigned seconds) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    alarm(seconds);
    std::string kind;
    try {
      const auto fault = body();
      if (fault) kind = fault->kind;
    } catch (const std::exception&) {
      // A case that is none: it does not parse, reads what nobody wrote, ...
    }
    [[maybe_unused]] const auto n = write(ends[1], kind.data(), kind.size());
    _exit(0);
  }
  close(ends[1]);
  std::string kind;
  char piece[256];
  for (ssize_t n = 0; (n = read(ends[0], piece, sizeof(piece))) > 0;)
    kind.append(piece, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    return WTERMSIG(status) == SIGALRM ? "hang" : "signal " + std::to_string(WTERMSIG(status));
  return kind;
}

std::string reduce_text(std::string text,
                        const std::function<std::string(const std::string&)>& kind_of,
                        double seconds) {
  return joined(Reducer(lines_of(text), kind_of, seconds).run());
}

}  // namespace tenon::fuzz
