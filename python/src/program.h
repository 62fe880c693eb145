// SPDX-License-Identifier: Apache-2.0
// A compiled program as Python sees it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common.h"
#include "tenon/driver/commands.h"
#include "tenon/runtime/program.h"

namespace tenon::python {

/// One that was compiled here, or loaded from a library.
class Program {
 public:
  /// What calls need to know of a port, kept as Python's objects.
  struct Port {
    nb::object name, numpy_dtype;
    bool is_late = false;
  };

  Program(std::shared_ptr<runtime::Program> program, std::shared_ptr<const BuiltModel> built,
          std::shared_ptr<const TargetOptions> options, std::string name);

  /// \throws CompileError (kOtherMachine) where it is for another machine than this one.
  runtime::Program& program() const;
  bool is_here() const { return program_ != nullptr; }
  const Signature& signature() const { return signature_; }
  const std::string& name() const { return name_; }
  const BuiltModel* built() const { return built_.get(); }
  const TargetOptions* options() const { return options_.get(); }
  const std::string& manifest() const { return manifest_; }

  /// Made with the first call: numpy is not imported before.
  const std::vector<Port>& input_ports();
  const std::vector<Port>& output_ports();

 private:
  void make_ports();
  std::shared_ptr<runtime::Program> program_;  // null: of another machine
  std::shared_ptr<const BuiltModel> built_;    // null: loaded
  std::shared_ptr<const TargetOptions> options_;
  std::string name_, manifest_;
  Signature signature_;
  bool has_ports_ = false;
  std::vector<Port> input_ports_, output_ports_;
};

/// Program.__call__.
PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) noexcept;

}  // namespace tenon::python
