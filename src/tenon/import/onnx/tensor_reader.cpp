// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/onnx/tensor_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "tenon/import/names.h"
#include "tenon/ir/text_constant.h"

namespace tenon::onnx {

using importers::printable;

namespace {

struct TypeRow {
  int64_t number;
  const char* name;
  DType dtype;  // void: Tenon has none
};
// TensorProto.DataType up to IR version 13.
constexpr TypeRow kTypes[] = {
    {0, "undefined", kVoid},
    {1, "float", kFloat32},
    {2, "uint8", kUInt8},
    {3, "int8", kInt8},
    {4, "uint16", kUInt16},
    {5, "int16", kInt16},
    {6, "int32", kInt32},
    {7, "int64", kInt64},
    {8, "string", kString},
    {9, "bool", kBool},
    {10, "float16", kFloat16},
    {11, "double", kFloat64},
    {12, "uint32", kUInt32},
    {13, "uint64", kUInt64},
    {14, "complex64", kVoid},
    {15, "complex128", kVoid},
    {16, "bfloat16", kBFloat16},
    {17, "float8e4m3fn", kFloat8e4m3fn},
    {18, "float8e4m3fnuz", kFloat8e4m3fnuz},
    {19, "float8e5m2", kFloat8e5m2},
    {20, "float8e5m2fnuz", kFloat8e5m2fnuz},
    {21, "uint4", kUInt4},
    {22, "int4", kInt4},
    {23, "float4e2m1", kFloat4e2m1fn},
    {24, "float8e8m0", kFloat8e8m0fnu},
    {25, "uint2", kUInt2},
    {26, "int2", kInt2},
};

const TypeRow* find_type(int64_t number) {
  for (const TypeRow& row : kTypes)
    if (row.number == number) return &row;
  return nullptr;
}

// A decimal number of at most 63 bits, nothing around it.
std::optional<uint64_t> parse_size(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value >> 63) return std::nullopt;
  return value;
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The elements of a typed field, converted to the dtype's width.
template <typename To, typename Field>
std::vector<std::byte> converted(const Field& field) {
  std::vector<std::byte> bytes(static_cast<size_t>(field.size()) * sizeof(To));
  size_t at = 0;
  for (const auto element : field) {
    const auto narrow = static_cast<To>(element);
    std::memcpy(bytes.data() + at, &narrow, sizeof(To));
    at += sizeof(To);
  }
  return bytes;
}

struct TypedData {
  const char* field;
  int64_t count;
  std::vector<std::byte> (*bytes)(const pb::TensorProto&);
};

TypedData typed_data(const pb::TensorProto& proto, DType dtype) {
  using P = pb::TensorProto;
  if (dtype == kFloat32)
    return {"float_data", proto.float_data_size(),
            [](const P& p) { return converted<float>(p.float_data()); }};
  if (dtype == kFloat64)
    return {"double_data", proto.double_data_size(),
            [](const P& p) { return converted<double>(p.double_data()); }};
  if (dtype == kInt64)
    return {"int64_data", proto.int64_data_size(),
            [](const P& p) { return converted<int64_t>(p.int64_data()); }};
  if (dtype == kUInt64)
    return {"uint64_data", proto.uint64_data_size(),
            [](const P& p) { return converted<uint64_t>(p.uint64_data()); }};
  if (dtype == kUInt32)
    return {"uint64_data", proto.uint64_data_size(),
            [](const P& p) { return converted<uint32_t>(p.uint64_data()); }};
  const int64_t count = proto.int32_data_size();
  switch (dtype.bytes()) {
    case 1:
      return {"int32_data", count, [](const P& p) { return converted<uint8_t>(p.int32_data()); }};
    case 2:
      return {"int32_data", count, [](const P& p) { return converted<uint16_t>(p.int32_data()); }};
    default:
      return {"int32_data", count, [](const P& p) { return converted<int32_t>(p.int32_data()); }};
  }
}

// Bools are bytes 0 or 1 in Tenon; a file may hold others.
Ref<TensorData> normal_bools(Ref<TensorData> tensor) {
  if (!tensor->dtype.is_bool()) return tensor;
  const auto data = tensor->data();
  if (std::all_of(data.begin(), data.end(), [](std::byte b) { return b <= std::byte{1}; }))
    return tensor;
  std::vector<std::byte> bytes(data.begin(), data.end());
  for (std::byte& b : bytes) b = b == std::byte{0} ? std::byte{0} : std::byte{1};
  return TensorData::owned(kBool, tensor->shape, std::move(bytes), tensor->origin);
}

// Bytes of a tensor in a file: elements of less than 8 bits stand there without gaps.
int64_t file_bytes(DType dtype, int64_t elements) {
  if (dtype.bits >= 8) return elements * dtype.bytes();
  const int64_t in_a_byte = 8 / dtype.bits;
  return elements / in_a_byte + (elements % in_a_byte != 0);
}

// A tensor of what stands in a file. The first element is in the lowest bits of the first byte.
Ref<TensorData> from_file(DType dtype, std::vector<int64_t> shape, std::span<const std::byte> data,
                          std::shared_ptr<const void> keeper, const Origin& origin) {
  if (dtype.bits >= 8)
    return normal_bools(TensorData::view(dtype, std::move(shape), data, std::move(keeper), origin));
  std::vector<std::byte> bytes(static_cast<size_t>(checked_elements(shape, 1, origin)));
  const unsigned bits = dtype.bits, sign = dtype.is_int() ? 1U << (bits - 1) : 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto packed = static_cast<unsigned>(data[i * bits / 8]) >> (i * bits % 8);
    const unsigned value = packed & ((1U << bits) - 1);
    bytes[i] = static_cast<std::byte>((value ^ sign) - sign);
  }
  return TensorData::owned(dtype, std::move(shape), std::move(bytes), origin);
}

void check_size(const std::string& what, int64_t seen, int64_t wanted,
                const std::vector<int64_t>& shape, DType dtype, const Origin& origin) {
  if (seen != wanted)
    throw CompileError(kBadTensor, origin, "{}; a tensor of shape {} and type {} has {}", what,
                       str(shape), dtype.str(), wanted);
}

}  // namespace

std::optional<DType> dtype_of(int64_t data_type) {
  const TypeRow* row = find_type(data_type);
  return row && !row->dtype.is_void() ? std::optional(row->dtype) : std::nullopt;
}

std::string data_type_name(int64_t data_type) {
  const TypeRow* row = find_type(data_type);
  return row ? row->name : fmt::format("type {}", data_type);
}

Ref<TensorData> TensorReader::external(const pb::TensorProto& proto, DType dtype,
                                       std::vector<int64_t> shape, const Origin& origin) {
  std::string location;
  std::optional<uint64_t> offset = 0, length;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() != "offset" && entry.key() != "length") continue;
    const auto number = parse_size(entry.value());
    if (!number)
      throw CompileError(kExternalData, origin,
                         "the {} of external data is `{}`; expected a number below 2^63",
                         entry.key(), printable(entry.value()));
    (entry.key() == "offset" ? offset : length) = number;
  }
  const auto wanted =
      static_cast<uint64_t>(file_bytes(dtype, checked_elements(shape, dtype.bytes(), origin)));
  if (length && *length != wanted)
    throw CompileError(kExternalData, origin,
                       "external data of {} bytes; a tensor of shape {} and type {} has {}",
                       *length, str(shape), dtype.str(), wanted);
  auto& file = files_[location];
  if (!file) file = MappedFile::open_beneath(directory_of(path_), location, origin);
  const auto bytes = file->bytes();
  if (!range_fits(*offset, wanted, bytes.size()))
    throw CompileError(kExternalData, origin,
                       "external data `{}` has {} bytes; expected {} bytes from offset {}",
                       printable(location), bytes.size(), wanted, *offset);
  return from_file(dtype, std::move(shape),
                   bytes.subspan(static_cast<size_t>(*offset), static_cast<size_t>(wanted)), file,
                   origin);
}

Tensor TensorReader::read(pb::TensorProto& proto, const std::span<const std::byte>* raw,
                          std::shared_ptr<const void> keeper) {
  Tensor out;
  out.name = proto.name();
  const Origin origin = Origin::model(path_, printable(out.name), "tensor");
  std::vector<int64_t> shape(proto.dims().begin(), proto.dims().end());
  constexpr size_t kMostDims = 64;
  if (shape.size() > kMostDims)
    throw CompileError(kLimitExceeded, origin, "a tensor has {} dimensions; expected at most {}",
                       shape.size(), kMostDims);
  const TypeRow* type = find_type(proto.data_type());
  if (!type || proto.data_type() == 0)
    throw CompileError(kBadTensor, origin, "a tensor's element type is {}; expected 1 to 26",
                       proto.data_type());
  for (const int64_t dim : shape)
    if (dim < 0)
      throw CompileError(kBadTensor, origin, "shape {} has a negative dimension", str(shape));
  if (type->dtype.is_void()) {
    out.unsupported = fmt::format("type {}", type->name);
    return out;
  }
  const DType dtype = type->dtype;
  if (dtype.is_string()) {
    const int64_t count = checked_elements(shape, dtype.bytes(), origin);
    const std::vector<std::string> texts(proto.string_data().begin(), proto.string_data().end());
    check_size(fmt::format("string_data has {} elements", texts.size()),
               static_cast<int64_t>(texts.size()), count, shape, dtype, origin);
    out.data = tensor_of_texts(std::move(shape), texts, origin);
    return out;
  }
  const int64_t elements = checked_elements(shape, dtype.bytes(), origin);
  if (proto.has_segment())
    throw CompileError(kUnsupported, origin, "a tensor is stored in segments");
  if (proto.data_location() == pb::TensorProto::EXTERNAL) {
    out.data = external(proto, dtype, std::move(shape), origin);
    return out;
  }
  if (raw || proto.has_raw_data()) {
    std::span<const std::byte> bytes;
    if (raw) {
      bytes = *raw;
    } else {
      // The bytes move out of the message: no copy.
      auto text = std::shared_ptr<const std::string>(proto.release_raw_data());
      bytes = std::as_bytes(std::span(text->data(), text->size()));
      keeper = std::move(text);
    }
    const auto seen = static_cast<int64_t>(bytes.size());
    check_size(fmt::format("raw_data has {} bytes", seen), seen, file_bytes(dtype, elements), shape,
               dtype, origin);
    out.data = from_file(dtype, std::move(shape), bytes, std::move(keeper), origin);
    return out;
  }
  const TypedData typed = typed_data(proto, dtype);
  // An entry holds a byte where elements take less.
  check_size(fmt::format("{} has {} elements", typed.field, typed.count), typed.count,
             dtype.bits < 8 ? file_bytes(dtype, elements) : elements, shape, dtype, origin);
  const auto bytes = std::make_shared<const std::vector<std::byte>>(typed.bytes(proto));
  out.data = from_file(dtype, std::move(shape), *bytes, bytes, origin);
  return out;
}

}  // namespace tenon::onnx
