// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string_view>
#include <unordered_set>

#include "tenon/support/diagnostics.h"

namespace tenon::memory {

static constexpr int64_t kMaxFileBytes = int64_t{1} << 30;
static constexpr size_t kMaxIdBytes = 256;

namespace {

enum Column { kId, kLower, kUpper, kSize, kAlignment, kOffset, kColumnCount };
constexpr std::array<std::string_view, kColumnCount> kColumnNames = {"id",   "lower",     "upper",
                                                                     "size", "alignment", "offset"};

/// A field of a line, and its place.
struct Field {
  std::string_view text;
  Origin origin;
};

class CsvReader {
 public:
  explicit CsvReader(std::shared_ptr<const SourceFile> file) : file_(std::move(file)) {}

  CsvProblem read() {
    rest_ = file_->text;
    if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);  // byte order mark
    read_header();
    const bool has_offsets = position_[kOffset] >= 0;
    while (next_line()) {
      if (line_.empty()) continue;
      const std::vector<std::string_view> fields = split();
      if (fields.size() != columns_)
        throw CompileError(kBadProblem, here(line_), "{} fields; the header has {}", fields.size(),
                           columns_);
      if (result_.problem.buffers.size() == static_cast<size_t>(kMaxBuffers))
        throw CompileError(kLimitExceeded, here(line_), "more than {} buffers", kMaxBuffers);
      read_buffer(fields);
      if (has_offsets) result_.offsets.push_back(number(fields, kOffset));
    }
    validate(result_.problem);
    return std::move(result_);
  }

 private:
  void read_header() {
    position_.fill(-1);
    if (!next_line() || line_.empty())
      throw CompileError(kBadProblem, Origin::script(file_, 1, 1),
                         "no header; expected `id,lower,upper,size`");
    const std::vector<std::string_view> names = split();
    columns_ = names.size();
    for (size_t i = 0; i < names.size(); ++i) {
      const auto column = std::find(kColumnNames.begin(), kColumnNames.end(), names[i]);
      if (column == kColumnNames.end())
        throw CompileError(kBadProblem, here(names[i]),
                           "unknown column `{}`; expected `id,lower,upper,size` and, where wanted, "
                           "`alignment` and `offset`",
                           printable(names[i]));
      int& position = position_[column - kColumnNames.begin()];
      if (position >= 0)
        throw CompileError(kBadProblem, here(names[i]), "column `{}` repeats", names[i]);
      position = static_cast<int>(i);
    }
    for (const Column column : {kId, kLower, kUpper, kSize})
      if (position_[column] < 0)
        throw CompileError(kBadProblem, here(line_), "the header has no column `{}`",
                           kColumnNames[column]);
  }

  void read_buffer(const std::vector<std::string_view>& fields) {
    const std::string_view id = fields[position_[kId]];
    if (id.empty() || id.size() > kMaxIdBytes)
      throw CompileError(kBadProblem, here(id), "an id of {} bytes; it must have 1 to {}",
                         id.size(), kMaxIdBytes);
    if (printable(id) != id)
      throw CompileError(kBadProblem, here(id), "the id `{}` has control characters",
                         printable(id));
    if (!ids_.insert(id).second)
      throw CompileError(kBadProblem, here(id), "buffer `{}` is there twice", id);
    Allocation& b = result_.problem.buffers.emplace_back();
    b.name = id;
    b.origin = here(line_);
    b.lower = number(fields, kLower);
    b.upper = number(fields, kUpper);
    b.bytes = number(fields, kSize);
    if (position_[kAlignment] >= 0) b.alignment = number(fields, kAlignment);
  }

  int64_t number(const std::vector<std::string_view>& fields, Column column) const {
    const std::string_view text = fields[position_[column]];
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view name = kColumnNames[column];
    if (error == std::errc::result_out_of_range)
      throw CompileError(kBadProblem, here(text), "{} `{}` does not fit 64 bits", name,
                         printable(text.substr(0, 40)));
    if (error != std::errc{} || end != text.data() + text.size())
      throw CompileError(kBadProblem, here(text), "{} `{}` is not a whole number", name,
                         printable(text.substr(0, 40)));
    if (value < 0) throw CompileError(kBadProblem, here(text), "{} {} is negative", name, value);
    return value;
  }

  bool next_line() {
    if (rest_.empty()) return false;
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    ++line_number_;
    return true;
  }

  std::vector<std::string_view> split() const {
    std::vector<std::string_view> fields;
    std::string_view rest = line_;
    // One field more than there are columns is as wrong as a million.
    while (fields.size() <= static_cast<size_t>(kColumnCount)) {
      const size_t comma = rest.find(',');
      std::string_view field = rest.substr(0, comma);
      while (field.starts_with(' ') || field.starts_with('\t')) field.remove_prefix(1);
      while (field.ends_with(' ') || field.ends_with('\t')) field.remove_suffix(1);
      fields.push_back(field);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    return fields;
  }

  Origin here(std::string_view part) const {
    return Origin::script(file_, line_number_,
                          static_cast<uint32_t>(part.data() - line_.data()) + 1,
                          static_cast<uint32_t>(std::max<size_t>(1, part.size())));
  }

  /// Control characters must not reach a terminal.
  static std::string printable(std::string_view text) {
    std::string result(text);
    for (char& c : result)
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    return result;
  }

  std::shared_ptr<const SourceFile> file_;
  std::string_view rest_, line_;
  uint32_t line_number_ = 0;
  std::array<int, kColumnCount> position_ = {};  // of each column in a line; -1: not there
  size_t columns_ = 0;
  std::unordered_set<std::string_view> ids_;
  CsvProblem result_;
};

}  // namespace

CsvProblem parse_csv(std::shared_ptr<const SourceFile> file) {
  return CsvReader(std::move(file)).read();
}

CsvProblem read_csv(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw CompileError(kFileError, {}, "cannot read `{}`: it is a directory", path);
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const int64_t size = in ? static_cast<int64_t>(in.tellg()) : -1;
  if (size < 0) throw CompileError(kFileError, {}, "cannot read `{}`", path);
  // What is no regular file may claim the greatest size there is.
  if (size > kMaxFileBytes)
    throw CompileError(kLimitExceeded, {}, "`{}` is no file of at most {} bytes", path,
                       kMaxFileBytes);
  auto file = std::make_shared<SourceFile>();
  file->name = path;
  file->text.resize(static_cast<size_t>(size));
  in.seekg(0);
  if (!in.read(file->text.data(), size))
    throw CompileError(kFileError, {}, "cannot read `{}`", path);
  return parse_csv(std::move(file));
}

void write_csv(const Problem& problem, const Plan& plan, std::ostream& out) {
  const bool aligned = std::any_of(problem.buffers.begin(), problem.buffers.end(),
                                   [](const Allocation& b) { return b.alignment != 1; });
  out << (aligned ? "id,lower,upper,size,alignment,offset\n" : "id,lower,upper,size,offset\n");
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Allocation& b = problem.buffers[i];
    out << b.name << ',' << b.lower << ',' << b.upper << ',' << b.bytes << ',';
    if (aligned) out << b.alignment << ',';
    out << plan.offsets[i] << '\n';
  }
}

}  // namespace tenon::memory
