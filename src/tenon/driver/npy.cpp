// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/npy.h"

#include <bit>
#include <charconv>

#include "tenon/driver/console.h"
#include "tenon/interp/reference/strided_copy.h"

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
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Header read() {
    Header header;
    bool seen[3] = {false, false, false};
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        seen[0] = true;
        if (peek() == '[')
          throw CompileError(kUnsupported, {}, "{}: a structured array; expected one of numbers",
                             path_);
        header.descr = string();
      } else if (key == "fortran_order") {
        seen[1] = true;
        header.column_major = flag();
      } else if (key == "shape") {
        seen[2] = true;
        header.shape = shape();
      } else {
        fail(fmt::format("a key `{}`", key));
      }
      if (accept('}')) break;
      expect(',');
    }
    if (!seen[0] || !seen[1] || !seen[2]) fail("no `descr`, `fortran_order` or `shape`");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw CompileError(kBadTensor, {}, "{}: the header of the .npy file has {}", path_, what);
  }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("no `{}` at byte {}", c, at_));
  }
  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail(fmt::format("no string at byte {}", at_));
    const size_t end = text_.find(quote, ++at_);
    if (end == std::string_view::npos) fail("a string without end");
    const std::string value(text_.substr(at_, end - at_));
    at_ = end + 1;
    return value;
  }
  bool flag() {
    peek();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return word == "True";
    }
    fail("a `fortran_order` that is neither True nor False");
  }
  std::vector<int64_t> shape() {
    constexpr size_t kMostDims = 64;
    std::vector<int64_t> dims;
    expect('(');
    while (!accept(')')) {
      peek();
      int64_t dim = 0;
      const auto [end, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), dim);
      if (error != std::errc() || dim < 0) fail("a shape that is no tuple of sizes");
      at_ = static_cast<size_t>(end - text_.data());
      dims.push_back(dim);
      if (dims.size() > kMostDims) fail("more than 64 dimensions");
      if (accept(')')) break;
      expect(',');
    }
    return dims;
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
};

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
  if (name == "u1") return kUInt8;
  if (name == "u2") return kUInt16;
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
  Header header = HeaderReader(std::string_view(file).substr(start, length), path).read();
  const auto dtype = dtype_of(header.descr);
  if (!dtype)
    throw CompileError(kUnsupported, {},
                       "{}: elements of NumPy type `{}`; expected little-endian numbers or bools",
                       path, header.descr);
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
  std::string shape = "(";
  for (const int64_t dim : tensor.shape) shape += fmt::format("{}, ", dim);
  if (tensor.shape.size() > 1) shape.resize(shape.size() - 2);
  if (tensor.shape.size() == 1) shape.resize(shape.size() - 1);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}), }}",
                                   descr_of(tensor.dtype), shape);
  // NumPy wants the elements to begin at a multiple of 64 bytes.
  const size_t padding = 63 - (kMagic.size() + 4 + header.size()) % 64;
  header += std::string(padding, ' ') + "\n";
  std::string file(kMagic);
  file += {'\x01', '\x00', static_cast<char>(header.size() & 255),
           static_cast<char>(header.size() >> 8)};
  file += header;
  const auto data = tensor.data();
  file.append(reinterpret_cast<const char*>(data.data()), data.size());
  write_file(path, file);
}

}  // namespace tenon
