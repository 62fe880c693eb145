// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/constant_file.h"

#include <algorithm>
#include <cstring>

#include "tenon/support/mapped_file.h"
#include "tenon/support/temporary_files.h"

namespace tenon::script {

namespace {

constexpr std::string_view kMagic = "TENONCST";
constexpr uint32_t kVersion = 1, kSplat = 1, kMostRank = 64;
constexpr size_t kHeader = 24, kHashLength = 32, kDTypeLength = 16, kAlignment = 64;

size_t align(size_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::span<const std::byte> stored(const TensorData& data) {
  return data.is_splat() ? data.splat_element() : data.data();
}

/// Reads the table; every read is checked against its end.
class Reader {
 public:
  explicit Reader(const NamedBytes& file)
      : path_(file.name), keeper_(file.keeper), bytes_(file.bytes) {}

  ConstantStore run() {
    if (text(kMagic.size()) != kMagic) fail("it does not begin with `{}`", kMagic);
    const auto version = number<uint32_t>();
    if (version != kVersion) fail("it has version {}; expected {}", version, kVersion);
    const auto count = number<uint32_t>();
    const auto table = number<uint64_t>();
    if (table > bytes_.size() - at_) fail("its table of {} bytes is cut off", table);
    const size_t data_begin = at_ + static_cast<size_t>(table);
    ConstantStore out;
    for (uint32_t i = 0; i < count; ++i) entry(i, data_begin, out);
    if (at_ != data_begin) fail("its table has {} bytes too many", data_begin - at_);
    return out;
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
    throw CompileError(kBadTensor, Origin(), "`{}` is no file of constants: {}", path_,
                       fmt::format(format, std::forward<Args>(args)...));
  }

  std::string_view text(size_t length) {
    if (length > bytes_.size() - at_) fail("it ends inside its table");
    const std::string_view out(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
    at_ += length;
    return out;
  }
  template <typename T>
  T number() {
    T value;
    const std::string_view raw = text(sizeof(T));
    std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }

  void entry(uint32_t index, size_t data_begin, ConstantStore& out) {
    const std::string hash(text(kHashLength));
    std::string name(text(kDTypeLength));
    name.resize(std::min(name.size(), name.find('\0')));
    const auto dtype = DType::parse(name);
    if (!dtype || dtype->bytes() <= 0 || dtype->is_handle())
      fail("constant {} has dtype `{}`", index, name);
    const auto flags = number<uint32_t>();
    if (flags > kSplat) fail("constant {} has unknown flags {}", index, flags);
    const auto rank = number<uint32_t>();
    if (rank > kMostRank) fail("constant {} has rank {}", index, rank);
    std::vector<int64_t> shape;
    for (uint32_t i = 0; i < rank; ++i) shape.push_back(number<int64_t>());
    const int64_t elements = checked_elements(shape, dtype->bytes());
    const auto offset = number<uint64_t>(), size = number<uint64_t>();
    const auto wanted = static_cast<uint64_t>((flags & kSplat ? 1 : elements) * dtype->bytes());
    if (size != wanted)
      fail("constant {} of shape {} and type {} has {} bytes; expected {}", index, str(shape), name,
           size, wanted);
    if (offset % kAlignment != 0 || offset < data_begin || offset > bytes_.size() ||
        size > bytes_.size() - offset)
      fail("constant {} lies at {} to {} of {} bytes", index, offset, offset + size, bytes_.size());
    const auto content = bytes_.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
    if (dtype->is_bool() &&
        std::any_of(content.begin(), content.end(), [](std::byte b) { return b > std::byte{1}; }))
      fail("constant {} has bools that are neither 0 nor 1", index);
    const auto data = flags & kSplat
                          ? TensorData::splat(*dtype, shape, {content.begin(), content.end()})
                          : TensorData::view(*dtype, shape, content, keeper_);
    if (data->content_hash() != hash)
      fail("the content of constant {} has hash {}; expected `{}`", index, data->content_hash(),
           hash);
    out.add(data);
  }

  std::string path_;
  std::shared_ptr<const void> keeper_;  // of the bytes
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

// What comes before the data of the constants.
std::string head_of(const ConstantStore& constants) {
  size_t table_bytes = 0;
  for (const auto& data : constants.items())
    table_bytes += kHashLength + kDTypeLength + 24 + 8 * data->shape.size();
  std::string head(kMagic);
  put(head, kVersion);
  put(head, static_cast<uint32_t>(constants.items().size()));
  put(head, static_cast<uint64_t>(table_bytes));
  size_t offset = kHeader + table_bytes;
  for (const auto& data : constants.items()) {
    head += data->content_hash();
    std::string dtype = data->dtype.str();
    dtype.resize(kDTypeLength, '\0');
    head += dtype;
    put(head, data->is_splat() ? kSplat : uint32_t{0});
    put(head, static_cast<uint32_t>(data->shape.size()));
    for (const int64_t dim : data->shape) put(head, dim);
    offset = align(offset);
    put(head, static_cast<uint64_t>(offset));
    put(head, static_cast<uint64_t>(stored(*data).size()));
    offset += stored(*data).size();
  }
  return head;
}

// Hands the file to `write`, piece by piece.
template <typename Write>
void write_file_of(const ConstantStore& constants, const Write& write) {
  const std::string head = head_of(constants);
  write(std::as_bytes(std::span(head)));
  size_t written = head.size();
  for (const auto& data : constants.items()) {
    const std::string padding(align(written) - written, '\0');
    write(std::as_bytes(std::span(padding)));
    const auto content = stored(*data);
    write(content);
    written = align(written) + content.size();
  }
}

}  // namespace

void write_constants(const std::string& path, const ConstantStore& constants) {
  OutputFile out(path);
  write_file_of(constants, [&](std::span<const std::byte> piece) { out.write(piece); });
  out.commit();
}

std::string bytes_of(const ConstantStore& constants) {
  std::string out;
  write_file_of(constants, [&](std::span<const std::byte> piece) {
    out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  return out;
}

ConstantStore read_constants(const std::string& path) {
  const auto file = MappedFile::open(path);
  return read_constants({path, file->bytes(), file});
}

ConstantStore read_constants(const NamedBytes& file) { return Reader(file).run(); }

}  // namespace tenon::script
