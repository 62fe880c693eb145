// SPDX-License-Identifier: Apache-2.0
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

// A million places explain no more than some do, and take a while to show.
static constexpr size_t kMostShown = 100;
static constexpr std::string_view kMoreNotes = "\nnote: and ";

static std::string notes_left_out(size_t count) {
  return count <= kMostShown ? "" : fmt::format("{}{} more places", kMoreNotes, count - kMostShown);
}

std::string render(const Diagnostic& diagnostic) {
  std::string text =
      line_of(diagnostic.origin, fmt::format("error[{}]", diagnostic.code.id), diagnostic.message);
  for (size_t i = 0; i < diagnostic.notes.size() && i < kMostShown; ++i)
    text += "\n" + line_of(diagnostic.notes[i].origin, "note", diagnostic.notes[i].message);
  return text + notes_left_out(diagnostic.notes.size());
}

CompileError::CompileError(std::vector<Diagnostic> diagnostics)
    : diagnostics_(std::move(diagnostics)) {
  refresh();
}

// The last error's text ends the whole, so that a note is written behind it.
void CompileError::add_note(Note note) {
  std::vector<Note>& notes = diagnostics_.back().notes;
  notes.push_back(std::move(note));
  if (diagnostics_.size() > kMostShown) return;
  if (notes.size() > kMostShown + 1) text_.resize(text_.rfind(kMoreNotes));
  text_ += notes.size() > kMostShown
               ? notes_left_out(notes.size())
               : "\n" + line_of(notes.back().origin, "note", notes.back().message);
}

void CompileError::refresh() {
  text_.clear();
  for (size_t i = 0; i < diagnostics_.size() && i < kMostShown; ++i)
    text_ += (text_.empty() ? "" : "\n") + render(diagnostics_[i]);
  if (diagnostics_.size() > kMostShown)
    text_ += fmt::format("\nand {} more errors", diagnostics_.size() - kMostShown);
}

}  // namespace tenon
