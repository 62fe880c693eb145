// SPDX-License-Identifier: Apache-2.0
// The metadata of a text: the constants that `meta[relay.Constant][i]` refers to.
#pragma once

#include <memory>
#include <vector>

#include "tenon/import/relay/lexer.h"
#include "tenon/ir/constant.h"

namespace tenon::relay {

using script::Place;

/// The constants of a metadata section, JSON as TVM's SaveJSON writes it; null in the places of
/// other nodes. \throws CompileError kBadModel, kBadTensor where it is malformed.
std::vector<Ref<TensorData>> read_metadata(const std::shared_ptr<const SourceFile>& file,
                                           std::string_view json, const Place& place);

}  // namespace tenon::relay
