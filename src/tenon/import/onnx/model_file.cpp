// SPDX-License-Identifier: Apache-2.0
// Reads ONNX files: bytes to protobuf's messages, messages to tenon::onnx::Model.
#include <algorithm>
#include <utility>

#include "onnx/onnx-data_pb.h"
#include "tenon/import/names.h"
#include "tenon/import/onnx/model.h"
#include "tenon/import/onnx/tensor_reader.h"
#include "tenon/import/onnx/wire.h"
#include "tenon/support/mapped_file.h"

namespace tenon::onnx {

using importers::printable;

namespace {

// Of what is left of a model without its large weights.
constexpr size_t kMostStructureBytes = size_t{1} << 30;

template <typename Message>
bool parse(Message& message, std::span<const std::byte> bytes) {
  // Protobuf writes what it dislikes to stderr; the importer says it in diagnostics.
  static const auto kSilent = google::protobuf::SetLogHandler(nullptr);
  (void)kSilent;
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

std::vector<std::string> strings(const google::protobuf::RepeatedPtrField<std::string>& field) {
  return {field.begin(), field.end()};
}

class ModelReader {
 public:
  explicit ModelReader(const std::string& path) : path_(path), tensors_(path) {
    const auto file = MappedFile::open(path);
    bytes_ = file->bytes();
    keeper_ = file;
  }
  explicit ModelReader(const NamedBytes& model)
      : path_(model.name), tensors_(path_), bytes_(model.bytes), keeper_(model.keeper) {}

  Model read() {
    pb::ModelProto proto;
    std::map<size_t, std::span<const std::byte>> raw;
    parse_model(proto, raw);
    Model model;
    model.path = path_;
    model.ir_version = proto.ir_version();
    model.opsets = opsets(proto.opset_import());
    model.graph = graph(*proto.mutable_graph(), &raw);
    for (pb::FunctionProto& f : *proto.mutable_functions()) model.functions.push_back(function(f));
    return model;
  }

 private:
  template <typename... Args>
  [[noreturn]] void bad(fmt::format_string<Args...> format, Args&&... args) {
    throw CompileError(kBadModel, Origin(), "`{}`: {}", path_,
                       fmt::format(format, std::forward<Args>(args)...));
  }

  void parse_model(pb::ModelProto& proto, std::map<size_t, std::span<const std::byte>>& raw) {
    if (bytes_.empty()) bad("the file is empty; expected an ONNX model");
    auto stripped = strip_raw_data(bytes_);
    const auto rest = stripped ? std::as_bytes(std::span(stripped->bytes)) : bytes_;
    if (rest.size() > kMostStructureBytes)
      throw CompileError(kLimitExceeded, {}, "`{}` has {} bytes besides its weights; at most {}",
                         path_, rest.size(), kMostStructureBytes);
    if (!parse(proto, rest))
      bad("not an ONNX model, truncated, or damaged: its bytes are no protobuf message ModelProto");
    if (stripped) raw = std::move(stripped->raw_data);
    if (!proto.has_graph()) bad("not an ONNX model: it has no graph");
    if (!proto.has_ir_version()) bad("the model states no ir_version");
    constexpr int64_t kNewestIr = 64;  // newer versions add fields, which stay unread
    if (proto.ir_version() < 1 || proto.ir_version() > kNewestIr)
      bad("ir_version {}; expected 1 to {}", proto.ir_version(), kNewestIr);
    // Files before opset imports existed (IR version 2) are of version 1.
    if (proto.opset_import_size() == 0 && proto.ir_version() >= 3)
      bad("the model imports no operator set");
  }

  template <typename Field>
  Opsets opsets(const Field& imports) {
    Opsets out;
    for (const auto& import : imports) {
      const std::string domain = normal_domain(import.domain());
      const auto [it, added] = out.emplace(domain, import.version());
      if (!added && it->second != import.version())
        bad("operator set `{}` is imported with versions {} and {}",
            domain.empty() ? "ai.onnx" : printable(domain), it->second, import.version());
    }
    if (out.empty()) out.emplace("", 1);
    return out;
  }

  Graph graph(pb::GraphProto& proto,
              const std::map<size_t, std::span<const std::byte>>* raw = nullptr) {
    Graph out;
    out.name = proto.name();
    out.nodes.reserve(static_cast<size_t>(proto.node_size()));
    for (pb::NodeProto& n : *proto.mutable_node()) out.nodes.push_back(node(n));
    for (const auto& v : proto.input()) out.inputs.push_back(value_info(v));
    for (const auto& v : proto.output()) out.outputs.push_back(value_info(v));
    for (const auto& v : proto.value_info()) out.values.push_back(value_info(v));
    for (int i = 0; i < proto.initializer_size(); ++i) {
      const auto* found = raw ? find(*raw, static_cast<size_t>(i)) : nullptr;
      out.initializers.push_back(tensors_.read(*proto.mutable_initializer(i), found, keeper_));
    }
    for (const auto& s : proto.sparse_initializer())
      out.sparse_initializers.push_back(s.values().name());
    return out;
  }

  static const std::span<const std::byte>* find(
      const std::map<size_t, std::span<const std::byte>>& raw, size_t position) {
    const auto it = raw.find(position);
    return it == raw.end() ? nullptr : &it->second;
  }

  Node node(pb::NodeProto& proto) {
    Node out;
    out.name = proto.name();
    out.op_type = proto.op_type();
    out.domain = normal_domain(proto.domain());
    out.inputs = strings(proto.input());
    out.outputs = strings(proto.output());
    for (pb::AttributeProto& a : *proto.mutable_attribute()) {
      if (!out.attributes.emplace(a.name(), attribute(a)).second)
        throw CompileError(kBadModel, Origin::model(path_, printable(out.name), out.op_type),
                           "attribute `{}` is given twice", printable(a.name()));
    }
    return out;
  }

  Attribute attribute(pb::AttributeProto& proto) {
    using P = pb::AttributeProto;
    Attribute out;
    if (proto.has_ref_attr_name() && !proto.ref_attr_name().empty()) {
      out.ref = proto.ref_attr_name();
      return out;
    }
    // Old files leave the type out: the field that is filled says it.
    P::AttributeType type = proto.type();
    if (type == P::UNDEFINED) {
      if (proto.has_f()) type = P::FLOAT;
      if (proto.has_i()) type = P::INT;
      if (proto.has_s()) type = P::STRING;
      if (proto.has_t()) type = P::TENSOR;
      if (proto.has_g()) type = P::GRAPH;
      if (proto.has_tp()) type = P::TYPE_PROTO;
      if (proto.floats_size()) type = P::FLOATS;
      if (proto.ints_size()) type = P::INTS;
      if (proto.strings_size()) type = P::STRINGS;
    }
    switch (type) {
      case P::FLOAT: out.value = static_cast<double>(proto.f()); break;
      case P::INT: out.value = static_cast<int64_t>(proto.i()); break;
      case P::STRING: out.value = proto.s(); break;
      case P::TENSOR: out.value = tensors_.read(*proto.mutable_t()); break;
      case P::GRAPH: out.value = std::make_shared<const Graph>(graph(*proto.mutable_g())); break;
      case P::FLOATS:
        out.value = std::vector<double>(proto.floats().begin(), proto.floats().end());
        break;
      case P::INTS:
        out.value = std::vector<int64_t>(proto.ints().begin(), proto.ints().end());
        break;
      case P::STRINGS: out.value = strings(proto.strings()); break;
      case P::TYPE_PROTO: out.value = std::make_shared<const ValueInfo>(type_of(proto.tp())); break;
      default:
        out.unsupported = P::AttributeType_IsValid(type) && type != P::UNDEFINED
                              ? "of kind " + P::AttributeType_Name(type)
                              : "of an unknown kind";
    }
    return out;
  }

  static ValueInfo value_info(const pb::ValueInfoProto& proto) {
    ValueInfo out = type_of(proto.type());
    out.name = proto.name();
    return out;
  }

  static ValueInfo type_of(const pb::TypeProto& type) {
    if (type.has_optional_type()) {
      ValueInfo out = type_of(type.optional_type().elem_type());
      if (out.is_optional()) out.unsupported = "an optional of an optional";
      if (out.map) out.unsupported = "an optional of a map";
      out.map.reset();
      out.kind = out.is_sequence() ? ValueKind::kOptionalSequence : ValueKind::kOptionalTensor;
      return out;
    }
    if (type.has_sequence_type()) {
      ValueInfo out = type_of(type.sequence_type().elem_type());
      if (out.kind != ValueKind::kTensor)
        out.unsupported = out.is_optional() ? "a sequence of optionals" : "a sequence of sequences";
      if (out.map) out.unsupported = "a sequence of maps";
      out.map.reset();
      out.kind = ValueKind::kSequence;
      return out;
    }
    ValueInfo out;
    if (!type.has_tensor_type()) {
      out.unsupported = type.has_map_type()             ? "a map"
                        : type.has_sparse_tensor_type() ? "a sparse tensor"
                                                        : "of no declared type";
      if (type.has_map_type()) {
        const auto key = dtype_of(type.map_type().key_type());
        const auto value = dtype_of(type.map_type().value_type().tensor_type().elem_type());
        if (key && value) out.map = {*key, *value};
      }
      return out;
    }
    const auto& tensor = type.tensor_type();
    out.dtype = dtype_of(tensor.elem_type());
    if (!out.dtype)
      out.unsupported = fmt::format("a tensor of {}", data_type_name(tensor.elem_type()));
    if (!tensor.has_shape()) return out;
    out.shape.emplace();
    for (const auto& d : tensor.shape().dim()) {
      Dim dim;
      if (d.has_dim_value()) dim.value = d.dim_value();
      if (d.has_dim_param()) dim.name = d.dim_param();
      out.shape->push_back(std::move(dim));
    }
    return out;
  }

  FunctionDef function(pb::FunctionProto& proto) {
    FunctionDef out;
    out.domain = normal_domain(proto.domain());
    out.name = proto.name();
    out.inputs = strings(proto.input());
    out.outputs = strings(proto.output());
    out.attributes = strings(proto.attribute());
    // `attribute_proto`, defaults of attributes, is newer than the schema.
    constexpr int kAttributeProto = 11;
    const auto& unknown = proto.GetReflection()->GetUnknownFields(proto);
    for (int i = 0; i < unknown.field_count(); ++i) {
      const auto& field = unknown.field(i);
      if (field.number() != kAttributeProto ||
          field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED)
        continue;
      pb::AttributeProto a;
      if (!a.ParseFromString(field.length_delimited()))
        bad("function `{}` has a damaged attribute", printable(out.name));
      const std::string name = a.name();
      out.default_attributes.emplace(name, attribute(a));
    }
    for (pb::NodeProto& n : *proto.mutable_node()) out.nodes.push_back(node(n));
    out.opsets = opsets(proto.opset_import());
    return out;
  }

  std::string path_;
  TensorReader tensors_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> keeper_;  // of the bytes
};

}  // namespace

std::string normal_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

Model read_model(const std::string& path) { return ModelReader(path).read(); }
Model read_model(const NamedBytes& model) { return ModelReader(model).read(); }

TensorFile read_tensor_pb(const std::string& path) {
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  const auto fail = [&](const char* what) -> CompileError {
    return CompileError(kBadModel, {}, "`{}`: {}", path, what);
  };
  if (bytes.size() > kMostStructureBytes)
    throw CompileError(kLimitExceeded, {}, "`{}` has {} bytes; at most {}", path, bytes.size(),
                       kMostStructureBytes);
  // A SequenceProto and an OptionalProto keep their elements in fields of numbers that a tensor of
  // test data does not use (a TensorProto's `segment`), or uses otherwise.
  pb::TensorProto proto;
  TensorFile out;
  const bool is_tensor = parse(proto, bytes) && proto.has_data_type() && !proto.has_segment() &&
                         proto.GetReflection()->GetUnknownFields(proto).empty();
  pb::SequenceProto sequence;
  if (!is_tensor && parse(sequence, bytes) && sequence.has_elem_type()) {
    out.name = sequence.name();
    out.unsupported = "a sequence or an optional";
    return out;
  }
  if (!is_tensor) {
    if (bytes.empty()) {
      out.unsupported = "an empty sequence or optional";
      return out;
    }
    throw fail(
        "not a tensor, truncated, or damaged: its bytes are no protobuf message TensorProto");
  }
  Tensor tensor = TensorReader(path).read(proto);
  out.name = std::move(tensor.name);
  out.data = std::move(tensor.data);
  out.unsupported = std::move(tensor.unsupported);
  return out;
}

ValueFile read_value_pb(const std::string& path, ValueKind kind) {
  ValueFile out;
  const auto add = [&](pb::TensorProto& proto) {
    Tensor tensor = TensorReader(path).read(proto);
    if (!tensor.data) out.unsupported = tensor.unsupported;
    out.tensors->push_back(std::move(tensor.data));
  };
  if (kind == ValueKind::kTensor) {
    TensorFile file = read_tensor_pb(path);
    if (!file.data) out.unsupported = file.unsupported;
    out.tensors.emplace(1, std::move(file.data));
    return out;
  }
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  const bool is_optional = kind != ValueKind::kSequence;
  const auto fail = [&] {
    return CompileError(kBadModel, {}, "`{}`: its bytes are no protobuf message {}", path,
                        is_optional ? "OptionalProto" : "SequenceProto");
  };
  if (bytes.size() > kMostStructureBytes)
    throw CompileError(kLimitExceeded, {}, "`{}` has {} bytes; at most {}", path, bytes.size(),
                       kMostStructureBytes);
  pb::SequenceProto sequence;
  if (is_optional) {
    pb::OptionalProto optional;
    if (!parse(optional, bytes)) throw fail();
    if (optional.elem_type() == pb::OptionalProto::UNDEFINED) return out;
    if (optional.has_sequence_value() != (kind == ValueKind::kOptionalSequence) ||
        optional.has_tensor_value() == optional.has_sequence_value())
      throw fail();
    out.tensors.emplace();
    if (optional.has_tensor_value()) {
      add(*optional.mutable_tensor_value());
      return out;
    }
    sequence = std::move(*optional.mutable_sequence_value());
  } else if (!parse(sequence, bytes)) {
    throw fail();
  }
  if (sequence.elem_type() != pb::SequenceProto::TENSOR &&
      sequence.elem_type() != pb::SequenceProto::UNDEFINED) {
    out.unsupported = "a sequence of other values than tensors";
    return out;
  }
  out.tensors.emplace();
  for (pb::TensorProto& tensor : *sequence.mutable_tensor_values()) add(tensor);
  return out;
}

}  // namespace tenon::onnx
