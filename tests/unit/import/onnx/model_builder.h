// SPDX-License-Identifier: Apache-2.0
// Small ONNX models in memory, for the importer's tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"
#include "tenon/graph/expr.h"
#include "tenon/import/onnx/import.h"
#include "tenon/support/temporary_files.h"

namespace tenon::onnx {

namespace pb = ::onnx;

/// A directory of its own for each test, removed at the end.
class Directory {
 public:
  std::string operator/(const std::string& name) const { return folder_.file(name); }
  std::string write(const std::string& name, const std::string& bytes) const {
    write_file(*this / name, bytes);
    return *this / name;
  }

 private:
  TemporaryFolder folder_;
};

struct ModelBuilder {
  pb::ModelProto model;

  explicit ModelBuilder(int64_t opset = 13) {
    model.set_ir_version(8);
    model.mutable_graph()->set_name("g");
    import_opset("", opset);
  }
  void import_opset(const std::string& domain, int64_t version) {
    auto* opset = model.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(version);
  }
  pb::GraphProto& graph() { return *model.mutable_graph(); }

  /// Dimensions: a number, "" for none, otherwise a name.
  static void declare(pb::ValueInfoProto& value, const std::string& name,
                      const std::vector<std::string>& dims, int type = 1) {
    value.set_name(name);
    auto* tensor = value.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    auto* shape = tensor->mutable_shape();
    for (const std::string& dim : dims) {
      auto* d = shape->add_dim();
      if (dim.empty()) continue;
      const bool number = dim.find_first_not_of("-0123456789") == std::string::npos;
      if (number) {
        d->set_dim_value(std::stoll(dim));
      } else {
        d->set_dim_param(dim);
      }
    }
  }
  void input(const std::string& name, const std::vector<std::string>& dims, int type = 1) {
    declare(*graph().add_input(), name, dims, type);
  }
  void output(const std::string& name) { declare(*graph().add_output(), name, {}); }
  pb::NodeProto& node(const std::string& op, const std::vector<std::string>& inputs,
                      const std::vector<std::string>& outputs, const std::string& name = "") {
    return add_node(graph(), op, inputs, outputs, name);
  }
  static pb::NodeProto& add_node(pb::GraphProto& graph, const std::string& op,
                                 const std::vector<std::string>& inputs,
                                 const std::vector<std::string>& outputs,
                                 const std::string& name = "") {
    auto* node = graph.add_node();
    node->set_op_type(op);
    node->set_name(name);
    for (const auto& input : inputs) node->add_input(input);
    for (const auto& output : outputs) node->add_output(output);
    return *node;
  }
  pb::TensorProto& tensor(const std::string& name, const std::vector<int64_t>& dims,
                          const std::vector<float>& values) {
    auto* t = graph().add_initializer();
    t->set_name(name);
    t->set_data_type(1);
    for (const int64_t d : dims) t->add_dims(d);
    for (const float v : values) t->add_float_data(v);
    return *t;
  }
  pb::TensorProto& ints(const std::string& name, const std::vector<int64_t>& values) {
    auto* t = graph().add_initializer();
    t->set_name(name);
    t->set_data_type(7);
    t->add_dims(static_cast<int64_t>(values.size()));
    for (const int64_t v : values) t->add_int64_data(v);
    return *t;
  }

  std::string bytes() const { return model.SerializeAsString(); }
};

inline void set_int(pb::NodeProto& node, const std::string& name, int64_t value) {
  auto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(pb::AttributeProto::INT);
  a->set_i(value);
}
inline void set_ints(pb::NodeProto& node, const std::string& name,
                     const std::vector<int64_t>& values) {
  auto* a = node.add_attribute();
  a->set_name(name);
  a->set_type(pb::AttributeProto::INTS);
  for (const int64_t v : values) a->add_ints(v);
}

/// `x` -> Relu -> `y`, 2 x 3 floats.
inline ModelBuilder relu_model() {
  ModelBuilder m;
  m.input("x", {"2", "3"});
  m.node("Relu", {"x"}, {"y"}, "relu");
  m.output("y");
  return m;
}

inline Ref<graph::Function> import_main(const ModelBuilder& model,
                                        const ImportOptions& options = {}) {
  const Directory directory;
  const IRModule module = import_onnx(directory.write("m.onnx", model.bytes()), options);
  return module.find<graph::Function>("main");
}

/// The error of importing these bytes as `m.onnx`: "TN0501: message", the path of the directory
/// left out; notes follow, a line for each. Empty where there is none.
inline std::string error_of(const std::function<void(const std::string& path)>& run,
                            const Directory& directory) {
  const std::string path = directory / "m.onnx";
  std::string text;
  try {
    run(path);
  } catch (const CompileError& error) {
    const Diagnostic& d = error.first();
    text =
        fmt::format("{}: {}{}{}", d.code.id, d.origin ? d.origin.name() + ": " : "", "", d.message);
    for (const Note& note : d.notes)
      text += fmt::format("\n  {}: {}", note.origin ? note.origin.name() : "", note.message);
  }
  const std::string prefix = directory / "";
  for (size_t at; (at = text.find(prefix)) != std::string::npos;) text.erase(at, prefix.size());
  return text;
}
inline std::string error_of(const std::string& bytes) {
  const Directory directory;
  directory.write("m.onnx", bytes);
  return error_of([](const std::string& path) { (void)import_onnx(path); }, directory);
}
inline std::string error_of(const ModelBuilder& model) { return error_of(model.bytes()); }

}  // namespace tenon::onnx
