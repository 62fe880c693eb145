// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "tenon/driver/console.h"
#include "tenon/interp/reference/strided_copy.h"
#include "tenon/ir/text_constant.h"
#include "tenon/script/literals.h"

namespace tenon {

static_assert(std::endian::native == std::endian::little);

static constexpr std::string_view kMagic = "\x93NUMPY";

namespace {

struct Header {
  std::string descr;
  bool column_major = false;
  std::vector<int64_t> shape;
};

/// Reads the header: a Python dictionary literal of three known keys.
Header read_header(std::string_view text, const std::string& path) {
  const auto bad = [&](const std::string& what) {
    return CompileError(kBadTensor, {}, "{}: the header of the .npy file has {}", path, what);
  };
  AttrValue value;
  try {
    const auto file = std::make_shared<const SourceFile>(SourceFile{path, std::string(text)});
    value = script::ast::literal_value(*script::ast::parse_expression(file, file->text, {}),
                                       [](const script::ast::Expr&) { return AttrValue(); });
  } catch (const CompileError& error) {
    throw bad("what is no literal: " + error.first().message);
  }
  const auto* map = value.as<AttrValue::Map>();
  if (!map) throw bad("no dictionary");
  const auto item = [&](const char* key) -> const AttrValue& {
    const auto found = map->find(key);
    if (found == map->end() || map->size() != 3)
      throw bad("no `descr`, `fortran_order` or `shape`, or another key");
    return found->second;
  };
  const AttrValue &descr = item("descr"), &order = item("fortran_order"), &shape = item("shape");
  if (descr.as<AttrList>())
    throw CompileError(kUnsupported, {}, "{}: a structured array; expected one of numbers", path);
  if (!descr.as<std::string>()) throw bad("a `descr` that is no string");
  if (!order.as<bool>()) throw bad("a `fortran_order` that is neither True nor False");
  const auto* sizes = shape.as<AttrList>();
  constexpr size_t kMostDims = 64;
  if (sizes && sizes->size() > kMostDims) throw bad("more than 64 dimensions");
  Header header{*descr.as<std::string>(), *order.as<bool>(), {}};
  for (const AttrValue& size : sizes ? *sizes : AttrList{AttrValue(-1)}) {
    if (!size.as<int64_t>() || *size.as<int64_t>() < 0)
      throw bad("a shape that is no tuple of sizes");
    header.shape.push_back(*size.as<int64_t>());
  }
  return header;
}

}  // namespace

static std::optional<DType> dtype_of(std::string_view descr) {
  if (descr.size() < 3) return std::nullopt;
  const std::string_view name = descr.substr(1);
  if (name == "b1") return kBool;
  if (descr[0] == '>' && name != "i1" && name != "u1") return std::nullopt;
  if (name == "i1") return kInt8;
  if (name == "i2") return kInt16;
  if (name == "i4") return kInt32;
  if (name == "i8") return kInt64;
  if (name == "u1" || name == "V1") return kUInt8;
  if (name == "u2" || name == "V2") return kUInt16;
  if (name == "u4") return kUInt32;
  if (name == "u8") return kUInt64;
  if (name == "f2") return kFloat16;
  if (name == "f4") return kFloat32;
  if (name == "f8") return kFloat64;
  return std::nullopt;
}

static std::string descr_of(DType dtype) {
  if (dtype.is_bool()) return "|b1";
  const char kind = dtype.is_int() ? 'i' : dtype.code == DType::Code::kFloat ? 'f' : 'u';
  return fmt::format("{}{}{}", dtype.bytes() == 1 ? '|' : '<', kind, dtype.bytes());
}

// Code points of UTF-32, little-endian, as UTF-8 up to the zeros behind them; and back.
static std::string utf8_of(std::span<const std::byte> points) {
  std::string out;
  size_t end = 0;
  const auto point = [&](size_t i) {
    uint32_t code = 0;
    std::memcpy(&code, points.data() + 4 * i, sizeof code);
    return code;
  };
  for (size_t i = 0; i < points.size() / 4; ++i) {
    const uint32_t c = point(i);
    const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    if (more == 0) {
      out += static_cast<char>(c);
    } else {
      out += static_cast<char>((0xff00U >> (more + 1) & 0xffU) | (c >> (6 * more) & 0x3fU));
      for (int k = more - 1; k >= 0; --k) out += static_cast<char>(0x80U | (c >> (6 * k) & 0x3fU));
    }
    if (c != 0) end = out.size();
  }
  return out.substr(0, end);
}

static std::vector<uint32_t> utf32_of(std::string_view text) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<uint8_t>(text[i]);
    const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    uint32_t code = length == 1 ? first : first & (0xffU >> (length + 1));
    for (size_t k = 1; k < length && i + k < text.size(); ++k)
      code = code << 6 | (static_cast<uint8_t>(text[i + k]) & 0x3fU);
    out.push_back(code);
    i += length;
  }
  return out;
}

// Elements of a fixed number of code points ("<U5"), row-major.
static Ref<TensorData> read_texts(const Header& header, std::span<const std::byte> bytes,
                                  const std::string& path) {
  int64_t width = 0;
  const char* const end = header.descr.data() + header.descr.size();
  const auto [last, error] = std::from_chars(header.descr.data() + 2, end, width);
  if (error != std::errc() || last != end || width < 0 || width > (int64_t{1} << 28) ||
      header.column_major)
    throw CompileError(kUnsupported, {}, "{}: elements of NumPy type `{}`", path, header.descr);
  const int64_t count = checked_elements(header.shape, std::max<int64_t>(4 * width, 1));
  if (bytes.size() != static_cast<size_t>(count * width * 4))
    throw CompileError(kBadTensor, {}, "{}: {} bytes of elements; {} of {} code points need {}",
                       path, bytes.size(), count, width, count * width * 4);
  std::vector<std::string> texts;
  for (int64_t i = 0; i < count; ++i)
    texts.push_back(
        utf8_of(bytes.subspan(static_cast<size_t>(i * width * 4), static_cast<size_t>(width * 4))));
  return tensor_of_texts(header.shape, texts);
}

Ref<TensorData> read_npy(const std::string& path) {
  const std::string file = read_file(path);
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(file[i])); };
  if (file.size() < 12 || !file.starts_with(kMagic))
    throw CompileError(kBadTensor, {}, "{}: not a .npy file", path);
  const size_t version = byte(6);
  if (version < 1 || version > 3)
    throw CompileError(kUnsupported, {}, "{}: .npy format {}; expected 1 to 3", path, version);
  const size_t start = version == 1 ? 10 : 12;
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > file.size() - start)
    throw CompileError(kBadTensor, {}, "{}: ends inside its header", path);
  Header header = read_header(std::string_view(file).substr(start, length), path);
  if (header.descr.starts_with("<U"))
    return read_texts(header, std::as_bytes(std::span(file)).subspan(start + length), path);
  const auto dtype = dtype_of(header.descr);
  if (!dtype)
    throw CompileError(
        kUnsupported, {},
        "{}: elements of NumPy type `{}`; expected little-endian numbers, bools or texts", path,
        header.descr);
  size_t wanted = 0;
  try {
    wanted = static_cast<size_t>(checked_elements(header.shape, dtype->bytes()) * dtype->bytes());
  } catch (const CompileError& error) {
    throw CompileError(error.first().code, {}, "{}: {}", path, error.first().message);
  }
  const size_t data = start + length;
  if (file.size() - data != wanted)
    throw CompileError(kBadTensor, {}, "{}: {} bytes of elements; {} {} needs {}", path,
                       file.size() - data, dtype->str(), str(header.shape), wanted);
  const auto all = std::as_bytes(std::span(file)).subspan(data);
  std::vector<std::byte> bytes(all.begin(), all.end());
  if (header.column_major && header.shape.size() > 1) {
    std::vector<interp::CopyDim> dims(header.shape.size());
    int64_t column = 1, row = 1;
    for (size_t i = 0; i < dims.size(); ++i) {
      const size_t last = dims.size() - 1 - i;
      dims[i].extent = header.shape[i];
      dims[i].from_stride = column;
      dims[last].to_stride = row;
      column *= header.shape[i];
      row *= header.shape[last];
    }
    interp::strided_copy(bytes.data(), all.data(), std::move(dims), dtype->bytes());
  }
  if (dtype->is_bool())
    for (std::byte& value : bytes) value = static_cast<std::byte>(value != std::byte{0});
  return TensorData::owned(*dtype, std::move(header.shape), std::move(bytes));
}

void write_npy(const std::string& path, const TensorData& tensor) {
  std::vector<std::vector<uint32_t>> texts;
  size_t width = 1;
  for (int64_t i = 0; tensor.dtype.is_string() && i < tensor.elements(); ++i) {
    texts.push_back(utf32_of(text_at(tensor, i)));
    width = std::max(width, texts.back().size());
  }
  std::string shape = "(";
  for (const int64_t dim : tensor.shape) shape += fmt::format("{}, ", dim);
  if (tensor.shape.size() > 1) shape.resize(shape.size() - 2);
  if (tensor.shape.size() == 1) shape.resize(shape.size() - 1);
  std::string header = fmt::format(
      "{{'descr': '{}', 'fortran_order': False, 'shape': {}), }}",
      tensor.dtype.is_string() ? fmt::format("<U{}", width) : descr_of(tensor.dtype), shape);
  // NumPy wants the elements to begin at a multiple of 64 bytes.
  const size_t padding = 63 - (kMagic.size() + 4 + header.size()) % 64;
  header += std::string(padding, ' ') + "\n";
  std::string file(kMagic);
  file += {'\x01', '\x00', static_cast<char>(header.size() & 255),
           static_cast<char>(header.size() >> 8)};
  file += header;
  for (std::vector<uint32_t>& text : texts) {
    text.resize(width);
    file.append(reinterpret_cast<const char*>(text.data()), 4 * width);
  }
  if (tensor.dtype.is_string()) return write_file(path, file);
  const auto data = tensor.data();
  file.append(reinterpret_cast<const char*>(data.data()), data.size());
  write_file(path, file);
}

}  // namespace tenon
