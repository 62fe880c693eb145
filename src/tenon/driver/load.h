// Models of every kind, by their files.
#pragma once

#include <string>

#include "tenon/ir/module.h"

namespace tenon {

enum class ModelKind : uint8_t {
  kOnnx,      // .onnx
  kScript,    // .py, .tvmscript
  kCompiled,  // .so
};

/// By the name's ending. \throws CompileError kUnsupported (.relay), kFileError at any other.
ModelKind kind_of(const std::string& path);

/// Imports or parses a model, and verifies it. Constants that a script refers to are read from
/// `path` + ".constants" where that exists.
/// \throws CompileError what the importer, the parser and the verifier find; kUnsupported for a
/// compiled program, which holds no module.
IRModule load_module(const std::string& path);

/// Writes a module as TVMScript, and the constants that the text refers to, where there are any, to
/// `path` + ".constants". \throws CompileError (kFileError).
void write_module(const IRModule& module, const std::string& path);

}  // namespace tenon
