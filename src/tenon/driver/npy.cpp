// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/npy.h"

#include <bit>

#include "tenon/driver/console.h"
#include "tenon/interp/reference/strided_copy.h"
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
