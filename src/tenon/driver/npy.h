// SPDX-License-Identifier: Apache-2.0
// Reads and writes NumPy's array files.
#pragma once

#include <string>

#include "tenon/ir/constant.h"

namespace tenon {

/// Reads one array of numbers or bools: formats 1 to 3, little-endian, row- or column-major (the
/// latter is put in row-major order). Elements of one or two bytes without a type (`V1`, `V2`), as
/// NumPy writes those of other libraries, are read as unsigned integers. The file's size is checked against the header before anything
/// is allocated.
/// \throws CompileError kFileError; kBadTensor where the file is malformed; kUnsupported at an
/// element type that Tenon does not have, or big-endian elements.
Ref<TensorData> read_npy(const std::string& path);

/// Writes format 1, row-major. Elements that NumPy has no type for are written as bytes (bfloat16
/// as uint16, float8 as uint8). \throws CompileError (kFileError).
void write_npy(const std::string& path, const TensorData& tensor);

}  // namespace tenon
