// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/c/prototypes.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "tenon/ir/visit.h"
#include "tenon/support/diagnostics.h"

namespace tenon::c_backend {

namespace {

struct Token {
  std::string text;
  int line;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Words and signs, without comments, literals and preprocessor lines.
std::vector<Token> tokens_of(const std::string& text) {
  std::vector<Token> out;
  int line = 1;
  bool at_start = true;  // of a line
  const size_t size = text.size();
  for (size_t i = 0; i < size;) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      at_start = true;
      ++i;
    } else if (std::isspace(static_cast<unsigned char>(c))) {
      ++i;
    } else if (c == '#' && at_start) {
      while (i < size && text[i] != '\n') {
        if (text[i] == '\\' && i + 1 < size && text[i + 1] == '\n') {
          ++line;
          ++i;
        }
        ++i;
      }
    } else if (c == '/' && i + 1 < size && text[i + 1] == '/') {
      while (i < size && text[i] != '\n') ++i;
    } else if (c == '/' && i + 1 < size && text[i + 1] == '*') {
      i += 2;
      while (i < size && !(text[i] == '*' && i + 1 < size && text[i + 1] == '/'))
        line += text[i++] == '\n';
      i = std::min(i + 2, size);
    } else if (c == '"' || c == '\'') {
      const size_t begin = i++;
      while (i < size && text[i] != c && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
      i = std::min(i + 1, size);
      out.push_back({text.substr(begin, i - begin), line});
      at_start = false;
    } else {
      const size_t begin = i++;
      if (is_word(c))
        while (i < size && is_word(text[i])) ++i;
      out.push_back({text.substr(begin, i - begin), line});
      at_start = false;
    }
  }
  return out;
}

using Tokens = std::vector<Token>;

std::string joined(const Tokens& tokens) {
  std::string out;
  for (const Token& token : tokens) {
    const char c = token.text[0];
    const bool tight = out.empty() || c == ',' || c == ')' || c == '*' || c == '(' || c == '[' ||
                       c == ']' || out.back() == '(' || out.back() == '[';
    out += (tight ? "" : " ") + token.text;
  }
  return out;
}

const std::set<std::string>& type_words() {
  static const std::set<std::string> kWords = {
      "void",     "char",    "short",   "int",     "long",     "float",     "double",   "signed",
      "unsigned", "_Bool",   "bool",    "size_t",  "ssize_t",  "ptrdiff_t", "intptr_t", "int8_t",
      "int16_t",  "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t",  "uint64_t", "DLTensor"};
  return kWords;
}
bool is_qualifier(const std::string& word) {
  return word == "const" || word == "restrict" || word == "__restrict" || word == "__restrict__" ||
         word == "struct" || word == "volatile";
}

class Reader {
 public:
  explicit Reader(const std::string& header) : tokens_(tokens_of(header)) {}

  std::vector<Prototype> run() {
    while (at_ < tokens_.size()) declaration();
    return std::move(found_);
  }

 private:
  // Up to `;`, or a body in braces.
  void declaration() {
    Tokens head;
    int depth = 0;
    while (at_ < tokens_.size()) {
      const Token& token = tokens_[at_];
      if (depth == 0 && (token.text == ";" || token.text == "}")) {
        ++at_;
        break;
      }
      if (token.text == "{") {
        // `extern "C" {` is a scope whose declarations follow.
        const bool is_linkage = head.size() == 2 && head[0].text == "extern" && depth == 0;
        if (is_linkage) {
          ++at_;
          return;
        }
        skip_braces();
        if (is_function(head)) break;
        continue;  // of a struct: what follows belongs to the declaration
      }
      depth += token.text == "(" || token.text == "[";
      depth -= token.text == ")" || token.text == "]";
      head.push_back(token);
      ++at_;
    }
    if (!head.empty() && head[0].text == "typedef") return type_name(head);
    function(head);
  }

  void skip_braces() {
    int depth = 0;
    do {
      depth += tokens_[at_].text == "{";
      depth -= tokens_[at_].text == "}";
      ++at_;
    } while (at_ < tokens_.size() && depth > 0);
  }

  static bool is_function(const Tokens& head) {
    return std::any_of(head.begin(), head.end(), [](const Token& t) { return t.text == "("; });
  }

  // `typedef float toy_float;`
  void type_name(const Tokens& head) {
    if (head.size() < 3 || is_function(head) || head.back().text == "]") return;
    const std::string& kind = head[1].text;
    if (kind == "struct" || kind == "union") return;  // a type of its own
    if (kind == "enum") {
      names_[head.back().text] = {{"int", head.back().line}};
      return;
    }
    names_[head.back().text] = Tokens(head.begin() + 1, head.end() - 1);
  }

  // `<type> name ( <parameters> )`; what stands behind is attributes.
  void function(const Tokens& head) {
    size_t open = 0;
    while (open < head.size() && head[open].text != "(") ++open;
    if (open == head.size() || open < 2 || !is_word(head[open - 1].text[0])) return;
    size_t close = open;
    int depth = 0;
    std::vector<Tokens> parameters(1);
    for (; close < head.size(); ++close) {
      const std::string& text = head[close].text;
      depth += text == "(" || text == "[";
      depth -= text == ")" || text == "]";
      if (depth == 0) break;
      if (depth == 1 && text == ",")
        parameters.emplace_back();
      else if (close > open)
        parameters.back().push_back(head[close]);
    }
    Prototype out;
    out.name = head[open - 1].text;
    out.line = head[open - 1].line;
    Tokens result(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(open) - 1);
    static const std::set<std::string> kStorage = {"extern", "static", "inline", "__inline"};
    std::erase_if(result, [](const Token& token) {
      const bool is_macro =
          token.text.size() > 1 &&  // `TOY_API`
          std::none_of(token.text.begin(), token.text.end(),
                       [](char c) { return std::islower(static_cast<unsigned char>(c)); }) &&
          token.text != "_Bool";
      return kStorage.count(token.text) != 0 || token.text[0] == '"' || is_macro;
    });
    out.text = joined(Tokens(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(
                                                              std::min(close + 1, head.size()))));
    out.result = joined(followed(result));
    if (parameters.size() == 1 && (parameters[0].empty() || joined(parameters[0]) == "void"))
      parameters.clear();
    for (Tokens& parameter : parameters) out.types.push_back(type_of(std::move(parameter)));
    found_.push_back(std::move(out));
  }

  // A parameter without its name; an array is a pointer.
  std::string type_of(Tokens parameter) {
    bool is_array = false;
    while (!parameter.empty() && parameter.back().text == "]") {
      while (!parameter.empty() && parameter.back().text != "[") parameter.pop_back();
      if (!parameter.empty()) parameter.pop_back();
      is_array = true;
    }
    size_t words = 0;
    for (const Token& token : parameter) words += !is_qualifier(token.text) && token.text != "*";
    const std::string last = parameter.empty() ? "" : parameter.back().text;
    // The last word is the name where it is no type by itself.
    if (words > 1 && is_word(last[0]) && !type_words().count(last) && !is_qualifier(last))
      parameter.pop_back();
    if (is_array) parameter.push_back({"*", 0});
    return joined(followed(parameter));
  }

  // With typedefs replaced by what they stand for.
  Tokens followed(const Tokens& type) const {
    Tokens out = type;
    for (int round = 0; round < 8; ++round) {
      Tokens next;
      bool changed = false;
      for (const Token& token : out) {
        const auto known = names_.find(token.text);
        const bool is_own = known != names_.end() && !type_words().count(token.text);
        changed |= is_own;
        if (is_own)
          next.insert(next.end(), known->second.begin(), known->second.end());
        else
          next.push_back(token);
      }
      out = std::move(next);
      if (!changed) break;
    }
    return out;
  }

  Tokens tokens_;
  size_t at_ = 0;
  std::map<std::string, Tokens> names_;  // typedefs
  std::vector<Prototype> found_;
};

}  // namespace

std::vector<Prototype> read_prototypes(const std::string& header) { return Reader(header).run(); }

// `const struct conv_params*` of `conv_params` and of `struct conv_params`, and `const void*`.
static bool is_pointer_to(const std::string& type, std::string_view element) {
  if (element.starts_with("struct ")) element.remove_prefix(7);
  size_t stars = 0;
  bool is_const = false, is_it = false;
  for (const Token& token : tokens_of(type)) {
    stars += token.text == "*";
    is_const |= token.text == "const" && stars == 0;
    is_it |= token.text == element || token.text == "void";
  }
  return stars == 1 && is_const && is_it;
}

std::optional<std::string> difference(const Prototype& prototype,
                                      const tir::ExternFunction& function) {
  using Kind = tir::CType::Kind;
  const std::vector<tir::ExternFunction::CParameter> parameters = function.c_parameters();
  if (prototype.types.size() != parameters.size())
    return fmt::format("it has {} parameters; calls pass {} arguments", prototype.types.size(),
                       parameters.size());
  const auto result =
      prototype.result == "void" ? std::nullopt : tir::CType::parse(prototype.result);
  if (prototype.result != "void" && !result) return std::nullopt;
  if (function.result.is_void() && prototype.result != "void")
    return fmt::format(
        "it returns `{}`; calls expect nothing (a code of type int32_t is declared by "
        "`\"returns\": "
        "\"int32\"`)",
        prototype.result);
  if (!function.result.is_void() &&
      (!result || result->kind != Kind::kScalar || result->dtype() != function.result))
    return fmt::format("it returns `{}`; calls expect `int32_t`", prototype.result);
  for (size_t i = 0; i < prototype.types.size(); ++i) {
    const auto declared = tir::CType::parse(prototype.types[i]);
    const tir::CType& passed = parameters[i].type;
    if (passed.kind == Kind::kStruct) {
      if (is_pointer_to(prototype.types[i], passed.element)) continue;
      return fmt::format("parameter {} is `{}`; calls pass `{}`", i + 1, prototype.types[i],
                         passed.str());
    }
    if (!declared) return std::nullopt;
    bool fits = declared->kind == passed.kind;
    if (declared->kind == Kind::kPointer && passed.kind == Kind::kPointer) {
      // Any pointer to data becomes one to void, and back; const may be added only.
      fits = declared->element == "void" || passed.element == "void" ||
             declared->dtype() == passed.dtype();
      fits = fits && (declared->is_const || !passed.is_const);
    } else if (fits && declared->kind == Kind::kScalar) {
      const DType a = declared->dtype(), b = passed.dtype();
      fits = a == b || (a.is_integer() && b.is_integer() && a.bits == b.bits);
    } else if (fits && declared->kind == Kind::kTensor) {
      fits = declared->is_const || !passed.is_const;
    }
    if (!fits)
      return fmt::format("parameter {} is `{}`; calls pass `{}`", i + 1, declared->str(),
                         passed.str());
  }
  return "";
}

std::vector<Remark> check_prototypes(const IRModule& lowered,
                                     const std::vector<std::string>& headers) {
  struct Seen {
    Prototype prototype;
    std::string file;
  };
  std::map<std::string, Seen> seen;
  std::vector<Remark> remarks;
  for (const std::string& header : headers) {
    std::ifstream file(header, std::ios::binary);
    if (!file) {
      remarks.push_back({"CheckPrototypes",
                         header,
                         "unread",
                         "no-file",
                         {},
                         "it is left to the C compiler to find it",
                         {}});
      continue;
    }
    std::ostringstream text;
    text << file.rdbuf();
    for (Prototype& prototype : read_prototypes(text.str()))
      seen.emplace(prototype.name, Seen{prototype, header});
  }
  Diagnostics diagnostics;
  std::set<std::string> told, called;
  for (const auto& [name, function] : lowered.functions())
    walk<tir::CallTir>(function,
                       [&](const tir::CallTir& call) { called.insert(call.callee->name); });
  for (const auto& [name, base] : lowered.functions()) {
    const auto function = base.as<tir::ExternFunction>();
    if (!function || !called.count(name) || function->is_packed ||
        !told.insert(function->symbol).second)
      continue;
    const auto found = seen.find(function->symbol);
    if (found == seen.end()) {
      remarks.push_back({"CheckPrototypes",
                         function->symbol,
                         "unread",
                         "not-found",
                         {},
                         "no prototype of it was found in the headers of --include",
                         function->origin});
      continue;
    }
    const Prototype& prototype = found->second.prototype;
    const auto differs = difference(prototype, *function);
    if (!differs)
      remarks.push_back({"CheckPrototypes",
                         function->symbol,
                         "unread",
                         "not-understood",
                         {},
                         "`" + prototype.text + "` is not understood",
                         function->origin});
    else if (!differs->empty())
      diagnostics
          .error(kPrototypeMismatch, function->origin, "{}:{} declares `{}`: {}",
                 found->second.file, prototype.line, prototype.text, *differs)
          .notes.push_back({function->origin, fmt::format("calls are made by `{}`; --signatures "
                                                          "declares another one",
                                                          function->prototype())});
  }
  diagnostics.throw_if_any();
  return remarks;
}

}  // namespace tenon::c_backend
