// SPDX-License-Identifier: Apache-2.0
// Makes the functions on which kernels for ONNX nodes and for groups are tried: from the kernel's
// own buffers, with attributes drawn at random.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tenon/graph/kernels.h"

namespace tenon {

/// What a kernel says of attributes, by the names that it uses.
struct AttributeWishes {
  AttrValue::Map pinned;                    // op_attrs
  std::map<std::string, DType> parameters;  // scalar parameters: any value may be drawn
  std::function<int64_t(const std::vector<int64_t>&)> pick;
};

/// A node of ONNX's operator `op` ("ai.onnx::Conv") in the newest operator set, as a function of
/// these inputs with `outputs` results. \throws CompileError where the importer refuses it.
Ref<graph::Function> sampled_node(const std::string& op, const std::vector<Ref<graph::Var>>& inputs,
                                  size_t outputs, const AttributeWishes& wishes,
                                  const Origin& origin);

/// What the pattern `pattern` matches, as a function of these inputs. \throws CompileError where
/// its operators do not take them.
Ref<graph::Function> sampled_group(const IRModule& module, const std::string& name,
                                   const graph::Function& pattern,
                                   const std::vector<Ref<graph::Var>>& inputs,
                                   const AttributeWishes& wishes);

}  // namespace tenon
