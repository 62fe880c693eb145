// SPDX-License-Identifier: Apache-2.0
// An ONNX network as the importer reads it: decoded, checked for size, free of protobuf. Tensors
// are views of the mapped files where they can be.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tenon/ir/constant.h"
#include "tenon/support/dtype.h"
#include "tenon/support/mapped_file.h"

namespace tenon::onnx {

/// An element type by ONNX's number (TensorProto.DataType). Nothing where Tenon has none such.
std::optional<DType> dtype_of(int64_t data_type);
/// "float", "string", "int4"; "type 99" for a number that ONNX does not know.
std::string data_type_name(int64_t data_type);

/// A tensor of the file. Its type may be one that Tenon cannot hold: that is an error only where
/// the tensor is used.
struct Tensor {
  std::string name;
  Ref<TensorData> data;     // null where `unsupported` says why
  std::string unsupported;  // "type string"
};

/// A dimension of a declared shape.
struct Dim {
  std::optional<int64_t> value;
  std::string name;  // dim_param; empty where neither is given
};

/// The element types of a map of ai.onnx.ml.
struct MapTypes {
  DType key, value;
};

/// What a value of a network is. An optional is one of the others, or absent.
enum class ValueKind : uint8_t { kTensor, kSequence, kOptionalTensor, kOptionalSequence };

/// A declared graph input, output or intermediate value, or a type that an attribute holds.
struct ValueInfo {
  std::string name;
  ValueKind kind = ValueKind::kTensor;
  std::optional<DType> dtype;  // of the tensors
  std::optional<std::vector<Dim>> shape;
  std::string unsupported;  // what it is instead of tensors that Tenon can hold: "a map"
  std::optional<MapTypes> map = std::nullopt;  // of a map

  bool is_sequence() const {
    return kind == ValueKind::kSequence || kind == ValueKind::kOptionalSequence;
  }
  bool is_optional() const {
    return kind == ValueKind::kOptionalTensor || kind == ValueKind::kOptionalSequence;
  }
};

struct Graph;

/// An attribute's value; monostate for a form that Tenon does not read (`unsupported` says which).
struct Attribute {
  std::variant<std::monostate, int64_t, double, std::string, Tensor, std::shared_ptr<const Graph>,
               std::vector<int64_t>, std::vector<double>, std::vector<std::string>,
               std::shared_ptr<const ValueInfo>>
      value;
  std::string ref;  // ref_attr_name: the enclosing function's attribute that gives the value
  std::string unsupported;  // "sparse_tensor"
};

struct Node {
  std::string name;  // of the file; may be empty
  std::string op_type;
  std::string domain;                        // "" for ai.onnx
  std::vector<std::string> inputs, outputs;  // "" where one is left out
  std::map<std::string, Attribute> attributes;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<ValueInfo> values;  // what the file says of results in between
  std::vector<Tensor> initializers;
  std::vector<std::string> sparse_initializers;  // names only
};

using Opsets = std::map<std::string, int64_t>;  // domain -> version; "" is ai.onnx

/// A model-local function.
struct FunctionDef {
  std::string domain, name;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;  // without default
  std::map<std::string, Attribute> default_attributes;
  std::vector<Node> nodes;
  Opsets opsets;
};

struct Model {
  std::string path;
  int64_t ir_version = 0;
  Opsets opsets;
  Graph graph;
  std::vector<FunctionDef> functions;
};

/// "ai.onnx" and "" are one domain.
std::string normal_domain(const std::string& domain);

/// Reads a model. Weights stay in the mapped file (or the external file beside it).
/// \throws CompileError kFileError, kBadModel, kBadTensor, kExternalData, kLimitExceeded, kOverflow
Model read_model(const std::string& path);
/// The same of a model in memory: weights stay where they are, external data lies beside `name`.
Model read_model(const NamedBytes& model);

/// What an ONNX `.pb` file of test data holds.
struct TensorFile {
  std::string name;
  Ref<TensorData> data;     // null where `unsupported` says why
  std::string unsupported;  // "a sequence", "an optional", "type string"
};

/// Reads a TensorProto (a SequenceProto or OptionalProto is recognised, not read).
/// \throws CompileError kFileError, kBadModel, kBadTensor, kExternalData
TensorFile read_tensor_pb(const std::string& path);

/// The tensors of a `.pb` file of test data, which holds a value of `kind`: those of a sequence in
/// order, nothing where an optional is absent.
struct ValueFile {
  std::optional<std::vector<Ref<TensorData>>> tensors;
  std::string unsupported;  // "type string": a tensor that Tenon cannot hold
};
/// \throws CompileError as read_tensor_pb(); kBadModel where the file holds another kind of value.
ValueFile read_value_pb(const std::string& path, ValueKind kind);

}  // namespace tenon::onnx
