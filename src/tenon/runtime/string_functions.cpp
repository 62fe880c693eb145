// SPDX-License-Identifier: Apache-2.0
// Functions on the contents of strings, by the names that programs call them by.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

#include "tenon/runtime/error.h"
#include "tenon/runtime/strings.h"

#ifdef TENON_HAVE_RE2
#include <re2/re2.h>
#endif

namespace tenon::runtime {

namespace {

using Args = std::span<const TenonValue>;

const DLTensor& tensor_at(Args args, size_t i) {
  return *static_cast<const DLTensor*>(args[i].pointer);
}
int64_t count_of(const DLTensor& tensor) {
  return element_count({tensor.shape, static_cast<size_t>(tensor.ndim)});
}
template <typename T>
T* elements(const DLTensor& tensor) {
  return static_cast<T*>(data_of(tensor));
}

// ---- conversions --------------------------------------------------------------------------------

// The fewest digits that are read as the same number.
template <typename T>
std::string float_text(T value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, static_cast<double>(value));
    if (static_cast<T>(std::strtod(text, nullptr)) == value) break;
  }
  return text;
}

std::string number_text(const DLTensor& x, int64_t i) {
  const auto signed_text = [](int64_t value) { return std::to_string(value); };
  const bool is_signed = x.dtype.code == TENON_DTYPE_INT;
  if (x.dtype.code == TENON_DTYPE_BOOL) return elements<uint8_t>(x)[i] != 0 ? "True" : "False";
  if (x.dtype.code == TENON_DTYPE_FLOAT)
    return x.dtype.bits == 64 ? float_text(elements<double>(x)[i])
                              : float_text(elements<float>(x)[i]);
  switch (x.dtype.bits) {
    case 8: return signed_text(is_signed ? elements<int8_t>(x)[i] : elements<uint8_t>(x)[i]);
    case 16: return signed_text(is_signed ? elements<int16_t>(x)[i] : elements<uint16_t>(x)[i]);
    case 32:
      return signed_text(is_signed ? int64_t{elements<int32_t>(x)[i]}
                                   : int64_t{elements<uint32_t>(x)[i]});
    default:
      return is_signed ? std::to_string(elements<int64_t>(x)[i])
                       : std::to_string(elements<uint64_t>(x)[i]);
  }
}

void to_text(StringTable& table, Args args, const DLTensor& result) {
  const DLTensor& x = tensor_at(args, 0);
  for (int64_t i = 0; i < count_of(x); ++i)
    elements<int64_t>(result)[i] = table.intern(number_text(x, i));
}

[[noreturn]] void no_number(std::string_view text) {
  throw Error(TENON_ERROR_VALUE, "\"" + std::string(text.substr(0, 60)) + "\" is no number");
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

double float_of(std::string_view text) {
  std::string_view rest = trimmed(text);
  if (!rest.empty() && rest.front() == '+') rest.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error == std::errc::result_out_of_range) {
    const std::string whole(rest);
    return std::strtod(whole.c_str(), nullptr);
  }
  if (error != std::errc() || end != rest.data() + rest.size()) no_number(text);
  return value;
}

// An integer, or a float cut to one.
int64_t integer_of(std::string_view text) {
  std::string_view rest = trimmed(text);
  if (!rest.empty() && rest.front() == '+') rest.remove_prefix(1);
  int64_t value = 0;
  const char* const last = rest.data() + rest.size();
  if (const auto [end, error] = std::from_chars(rest.data(), last, value);
      error == std::errc() && end == last)
    return value;
  uint64_t large = 0;
  if (const auto [end, error] = std::from_chars(rest.data(), last, large);
      error == std::errc() && end == last)
    return static_cast<int64_t>(large);
  const double number = float_of(text);
  if (!(std::fabs(number) < 9.3e18)) no_number(text);
  return number >= 9223372036854775808.0 ? INT64_MAX : static_cast<int64_t>(number);
}

// Of bool, float32, float64 and integers of 64 bits, which others are made of.
void parse(StringTable& table, Args args, const DLTensor& result) {
  const DLTensor& x = tensor_at(args, 0);
  const auto* ids = elements<int64_t>(x);
  for (int64_t i = 0; i < count_of(x); ++i) {
    const std::string_view text = table.text(ids[i]);
    if (result.dtype.code == TENON_DTYPE_FLOAT && result.dtype.bits == 32)
      elements<float>(result)[i] = static_cast<float>(float_of(text));
    else if (result.dtype.code == TENON_DTYPE_FLOAT)
      elements<double>(result)[i] = float_of(text);
    else
      elements<int64_t>(result)[i] = integer_of(text);
  }
}

// ---- contents -----------------------------------------------------------------------------------

void concat(StringTable& table, Args args, const DLTensor& result) {
  const auto *a = elements<int64_t>(tensor_at(args, 0)), *b = elements<int64_t>(tensor_at(args, 1));
  for (int64_t i = 0; i < count_of(result); ++i)
    elements<int64_t>(result)[i] =
        table.intern(std::string(table.text(a[i])) + std::string(table.text(b[i])));
}

// The place of each string among the keys, the last of equal ones; -1 where it is none.
void find(StringTable&, Args args, const DLTensor& result) {
  const DLTensor& keys = tensor_at(args, 1);
  std::unordered_map<int64_t, int64_t> places;
  for (int64_t i = 0; i < count_of(keys); ++i) places[elements<int64_t>(keys)[i]] = i;
  const auto* x = elements<int64_t>(tensor_at(args, 0));
  for (int64_t i = 0; i < count_of(result); ++i) {
    const auto found = places.find(x[i]);
    elements<int64_t>(result)[i] = found == places.end() ? -1 : found->second;
  }
}

void rank(StringTable& table, Args args, const DLTensor& result) {
  const auto* x = elements<int64_t>(tensor_at(args, 0));
  std::map<std::string_view, int64_t> ranks;
  for (int64_t i = 0; i < count_of(result); ++i) ranks.emplace(table.text(x[i]), 0);
  int64_t before = 0;
  for (auto& [text, own] : ranks) own = before++;
  for (int64_t i = 0; i < count_of(result); ++i)
    elements<int64_t>(result)[i] = ranks.at(table.text(x[i]));
}

// A code point of UTF-8 from the front; bytes that are none stand for themselves.
uint32_t next_code_point(std::string_view& text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80    ? 1
                        : first >= 0xf0 ? 4
                        : first >= 0xe0 ? 3
                        : first >= 0xc0 ? 2
                                        : 1;
  uint32_t code = first;
  if (length > 1 && text.size() >= length) {
    code = first & (0xffU >> (length + 1));
    for (size_t i = 1; i < length; ++i) code = code << 6 | (byte(i) & 0x3fU);
  }
  text.remove_prefix(std::min(length, text.size()));
  return code;
}

void append_code_point(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  out += static_cast<char>((0xff00U >> (more + 1) & 0xffU) | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
}

// The other case of letters of Latin, Greek and Cyrillic, whatever the locale.
uint32_t lower(uint32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  if (c >= 0xc0 && c <= 0xde && c != 0xd7) return c + 32;
  if (c >= 0x100 && c <= 0x137 && c != 0x130) return c | 1;
  if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e)) return c % 2 == 1 ? c + 1 : c;
  if (c >= 0x14a && c <= 0x177) return c | 1;
  if (c == 0x178) return 0xff;
  if (c >= 0x391 && c <= 0x3a9 && c != 0x3a2) return c + 32;
  if (c >= 0x410 && c <= 0x42f) return c + 32;
  if (c >= 0x400 && c <= 0x40f) return c + 80;
  return c;
}
uint32_t upper(uint32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  if (c >= 0xe0 && c <= 0xfe && c != 0xf7) return c - 32;
  if (c == 0xff) return 0x178;
  if (c >= 0x100 && c <= 0x137 && c != 0x131) return c & ~1U;
  if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e)) return c % 2 == 0 ? c - 1 : c;
  if (c >= 0x14a && c <= 0x177) return c & ~1U;
  if (c >= 0x3b1 && c <= 0x3c9 && c != 0x3c2) return c - 32;
  if (c >= 0x430 && c <= 0x44f) return c - 32;
  if (c >= 0x450 && c <= 0x45f) return c - 80;
  return c;
}

template <uint32_t (*kChange)(uint32_t)>
void change_case(StringTable& table, Args args, const DLTensor& result) {
  const auto* ids = elements<int64_t>(tensor_at(args, 0));
  for (int64_t i = 0; i < count_of(result); ++i) {
    std::string_view rest = table.text(ids[i]);
    std::string out;
    while (!rest.empty()) append_code_point(out, kChange(next_code_point(rest)));
    elements<int64_t>(result)[i] = table.intern(out);
  }
}

void regex_full_match(StringTable& table, Args args, const DLTensor& result) {
#ifdef TENON_HAVE_RE2
  const RE2 pattern(args[1].text, RE2::Quiet);
  if (!pattern.ok())
    throw Error(TENON_ERROR_VALUE,
                "regular expression `" + std::string(args[1].text) + "`: " + pattern.error());
  const auto* ids = elements<int64_t>(tensor_at(args, 0));
  for (int64_t i = 0; i < count_of(result); ++i) {
    const std::string_view text = table.text(ids[i]);
    elements<uint8_t>(result)[i] =
        RE2::FullMatch(re2::StringPiece(text.data(), text.size()), pattern) ? 1 : 0;
  }
#else
  (void)table, (void)args, (void)result;
  throw Error(TENON_ERROR_UNSUPPORTED, "this runtime was built without RE2");
#endif
}

// ---- parts --------------------------------------------------------------------------------------

// The parts of a text between delimiters, at most `most` of these (below 0: all); without a
// delimiter between runs of white space.
std::vector<std::string_view> parts_of(std::string_view text, std::string_view delimiter,
                                       int64_t most) {
  std::vector<std::string_view> parts;
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  const auto full = [&] { return most >= 0 && static_cast<int64_t>(parts.size()) >= most; };
  if (!delimiter.empty()) {
    for (size_t at = 0; !full() && (at = text.find(delimiter)) != std::string_view::npos;) {
      parts.push_back(text.substr(0, at));
      text.remove_prefix(at + delimiter.size());
    }
    parts.push_back(text);
    return parts;
  }
  for (;;) {
    const size_t begin = text.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) return parts;
    text.remove_prefix(begin);
    const size_t end = full() ? std::string_view::npos : text.find_first_of(kSpace);
    if (end == std::string_view::npos) {
      const size_t last = text.find_last_not_of(kSpace);
      parts.push_back(full() ? text.substr(0, last + 1) : text);
      return parts;
    }
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

void split_counts(StringTable& table, Args args, const DLTensor& result) {
  const auto* ids = elements<int64_t>(tensor_at(args, 0));
  for (int64_t i = 0; i < count_of(result); ++i)
    elements<int64_t>(result)[i] =
        static_cast<int64_t>(parts_of(table.text(ids[i]), args[1].text, args[2].integer).size());
}

// As many parts of each text as the last axis of the result has; empty ones behind the last.
void split(StringTable& table, Args args, const DLTensor& result) {
  const DLTensor& x = tensor_at(args, 0);
  const int64_t width = result.shape[result.ndim - 1];
  auto* out = elements<int64_t>(result);
  for (int64_t i = 0; i < count_of(x) && width > 0; ++i) {
    const std::string text(table.text(elements<int64_t>(x)[i]));
    const auto parts = parts_of(text, args[1].text, args[2].integer);
    for (int64_t k = 0; k < width; ++k)
      *out++ = table.intern(static_cast<size_t>(k) < parts.size() ? parts[static_cast<size_t>(k)]
                                                                  : std::string_view());
  }
}

struct Row {
  std::string_view name;
  StringFunction function;
};
constexpr Row kFunctions[] = {
    {"tenon.string.concat", concat},
    {"tenon.string.find", find},
    {"tenon.string.lower", change_case<lower>},
    {"tenon.string.parse", parse},
    {"tenon.string.rank", rank},
    {"tenon.string.regex_full_match", regex_full_match},
    {"tenon.string.split", split},
    {"tenon.string.split_counts", split_counts},
    {"tenon.string.to_text", to_text},
    {"tenon.string.upper", change_case<upper>},
};

}  // namespace

StringFunction find_string_function(std::string_view name) {
  for (const Row& row : kFunctions)
    if (row.name == name) return row.function;
  return nullptr;
}

}  // namespace tenon::runtime
