// SPDX-License-Identifier: Apache-2.0
// Reads cases in the layout of the ONNX backend tests.
#pragma once

#include <string>
#include <vector>

#include "tenon/driver/compare.h"

namespace tenon {

/// Files of one data set, by position; a gap ends the list.
struct OnnxDataSet {
  std::vector<std::string> inputs, outputs;
  bool generated_inputs = false;  // element i of n is i / n (the flat layout has no input files)
};

struct OnnxCase {
  std::string name;   // the folder (or model) relative to the one that was searched
  std::string model;  // path
  std::vector<OnnxDataSet> data_sets;
  Tolerance tolerance = kOnnxTolerance;  // of `rtol` and `atol` in a file data.json beside it
};

/// All cases in `path`, sorted by name: it is a case itself (`model.onnx`, `test_data_set_*`), or
/// holds some at any depth, or flat ones (`NAME.onnx` with `NAME_output_0.pb`). `path` may also be
/// the model of one case. \throws CompileError (kFileError) where it does not exist or holds none,
/// or where a data.json is no object whose `rtol` and `atol` are numbers from 0.
std::vector<OnnxCase> find_onnx_cases(const std::string& path);

}  // namespace tenon
