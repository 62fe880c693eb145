// SPDX-License-Identifier: Apache-2.0
// Module attribute `external_mods`: what back ends generated, kept in the module until it is
// linked. It prints and parses like every attribute; code is a constant, so that the text holds its
// content hash and the side file its bytes.
#pragma once

#include <string>
#include <vector>

#include "tenon/ir/constant.h"
#include "tenon/ir/module.h"

namespace tenon::graph {

/// One artefact: C source, a relocatable object, an archive or a shared library, by its content or
/// (a shared library) by the name under which the system finds it. Or a packed function that is
/// registered in this process: `code` says what it is and keeps it as long as somebody has these very
/// bytes; elsewhere they are only words.
///
/// As an attribute a dictionary: {"kind": "c", "symbols": ["f"], "code": <constant, uint8>,
/// "link": ["libm.so.6"], "origin": "mine"}; "name" instead of "code" for one by name.
struct ExternalModule {
  enum class Kind : uint8_t { kC, kObject, kArchive, kShared, kHost };
  Kind kind = Kind::kC;
  std::vector<std::string> symbols = {};  // functions that it has for this module; none: any
  Ref<TensorData> code = {};              // bytes; null where `name` says where they are
  std::string name = {};                  // "libfoo.so.1"
  std::vector<std::string> link = {};     // shared libraries that it needs, by name
  std::string origin = {};                // the back end that made it

  static ExternalModule of_bytes(Kind kind, std::string_view bytes,
                                 std::vector<std::string> symbols, std::string origin);
};

/// "c", "object", "archive", "shared", "host".
std::string_view name_of(ExternalModule::Kind kind);

/// Those of the module, in order. \throws CompileError (kBadExternalModule) at what is not of the
/// form above.
std::vector<ExternalModule> external_modules(const IRModule& module);

/// Adds one at the end; nothing where an equal one is there already.
/// \throws CompileError (kBadExternalModule) where it is malformed or defines a symbol that another
/// one has.
void add_external_module(IRModule& module, const ExternalModule& added);

/// Whether the module has code that this back end made: an artefact of its, or a PrimFunc that
/// stands for a unit of it.
bool has_code_of(const IRModule& module, const std::string& backend);

/// Two modules as one: the functions of both and the artefacts of both. Functions of the same name
/// must be equal, but that a declaration of a library function gives way to nothing else.
/// \throws CompileError (kRedefined) at functions of one name that differ; kBadExternalModule.
IRModule merge_modules(IRModule module, const IRModule& other);

}  // namespace tenon::graph
