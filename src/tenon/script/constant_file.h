// SPDX-License-Identifier: Apache-2.0
// A file of constants beside a printed module. Layout, little endian: "TENONCST", version (u32),
// number of constants (u32), size of the table in bytes (u64); for each constant its content hash
// (32 characters), dtype (16 characters, zero padded), flags (u32, 1: a splat), rank (u32),
// dimensions (i64 each), offset and size of its data (u64 each, from the start of the file); then
// the data, each aligned to 64 bytes.
#pragma once

#include <string>

#include "tenon/script/constants.h"
#include "tenon/support/mapped_file.h"

namespace tenon::script {

/// \throws CompileError (kFileError) where it cannot be written.
void write_constants(const std::string& path, const ConstantStore& constants);

/// What such a file holds, in memory.
std::string bytes_of(const ConstantStore& constants);

/// The constants of a file, their bytes mapped and not copied; the map lives as long as they do.
/// \throws CompileError kFileError where it cannot be read, kBadTensor where it is malformed or a
/// content differs from its hash
ConstantStore read_constants(const std::string& path);
/// The same of a file in memory.
ConstantStore read_constants(const NamedBytes& file);

}  // namespace tenon::script
