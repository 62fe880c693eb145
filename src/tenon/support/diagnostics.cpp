#include "tenon/support/diagnostics.h"

#include <algorithm>

namespace tenon {

// The line of a script that an origin points at, with the range underlined; empty where there is no
// text.
static std::string excerpt(const Origin& origin) {
  if (!origin || origin->kind != OriginInfo::Kind::kScript || !origin->file) return {};
  const std::string& text = origin->file->text;
  size_t begin = 0;
  for (uint32_t line = 1; line < origin->line; ++line) {
    begin = text.find('\n', begin);
    if (begin == std::string::npos) return {};
    ++begin;
  }
  const size_t end = std::min(text.find('\n', begin), text.size());
  std::string line = text.substr(begin, end - begin);
  constexpr size_t kLongestLine = 240;
  size_t column = origin->column > 0 ? origin->column - 1 : 0;
  if (column > line.size()) column = line.size();
  if (line.size() > kLongestLine) {  // show the part round the place
    const size_t from = column > kLongestLine / 2 ? column - kLongestLine / 2 : 0;
    line = line.substr(from, kLongestLine);
    column -= from;
  }
  std::string under;
  for (size_t i = 0; i < column; ++i) under += line[i] == '\t' ? '\t' : ' ';
  const size_t room = line.size() > column ? line.size() - column : 1;
  under.append(std::clamp<size_t>(origin->length, 1, room), '^');
  return fmt::format("\n  {}\n  {}", line, under);
}

static std::string line_of(const Origin& origin, const std::string& severity,
                           const std::string& message) {
  const std::string place = origin ? origin.str() + ": " : "";
  return place + severity + ": " + message + excerpt(origin);
}

std::string render(const Diagnostic& diagnostic) {
  std::string text =
      line_of(diagnostic.origin, fmt::format("error[{}]", diagnostic.code.id), diagnostic.message);
  for (const Note& note : diagnostic.notes)
    text += "\n" + line_of(note.origin, "note", note.message);
  return text;
}

CompileError::CompileError(std::vector<Diagnostic> diagnostics)
    : diagnostics_(std::move(diagnostics)) {
  refresh();
}

void CompileError::add_note(Note note) {
  diagnostics_.back().notes.push_back(std::move(note));
  refresh();
}

void CompileError::refresh() {
  text_.clear();
  for (const Diagnostic& diagnostic : diagnostics_)
    text_ += (text_.empty() ? "" : "\n") + render(diagnostic);
}

}  // namespace tenon
