// SPDX-License-Identifier: Apache-2.0
// Decodes TensorProtos, in every form in which they hold elements. Only for sources of this folder
// that see protobuf.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "onnx/onnx_pb.h"
#include "tenon/import/onnx/model.h"
#include "tenon/support/mapped_file.h"

namespace tenon::onnx {

namespace pb = ::onnx;

/// Turns TensorProtos of one file into constants.
class TensorReader {
 public:
  /// `path`: of the file the tensors stand in; external data lies below its directory.
  explicit TensorReader(std::string path) : path_(std::move(path)) {}

  /// Takes the raw bytes out of `proto`. `raw`, where not null, stands for its raw_data, and
  /// `keeper` keeps those bytes alive.
  /// \throws CompileError kBadTensor, kOverflow, kExternalData, kLimitExceeded
  Tensor read(pb::TensorProto& proto, const std::span<const std::byte>* raw = nullptr,
              std::shared_ptr<const void> keeper = nullptr);

 private:
  Ref<TensorData> external(const pb::TensorProto& proto, DType dtype, std::vector<int64_t> shape,
                           const Origin& origin);
  std::string path_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace tenon::onnx
