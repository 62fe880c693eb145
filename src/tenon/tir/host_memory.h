// SPDX-License-Identifier: Apache-2.0
// Memory whose size is known in the middle of a program only: the host gives it while the program
// runs. In the entry function such an AllocBuffer carries an annotation.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// Annotation of an output of the program: its index among all outputs.
inline constexpr const char* kHostOutput = "tenon.output";
/// Annotation of a part of the workspace: its number, from 1.
inline constexpr const char* kHostWorkspace = "tenon.workspace";

inline std::optional<int64_t> host_output(const AllocBuffer& alloc) {
  return alloc.annotations.get<int64_t>(kHostOutput);
}
inline std::optional<int64_t> host_workspace(const AllocBuffer& alloc) {
  return alloc.annotations.get<int64_t>(kHostWorkspace);
}
inline bool is_host_memory(const AllocBuffer& alloc) {
  return host_output(alloc) || host_workspace(alloc);
}

/// An output of an entry function.
struct ProgramOutput {
  Ref<Buffer> buffer;
  bool is_late = false;  // given by the host while the program runs: no parameter
};

/// The outputs of `function`, in order, of which `params` are parameters. \throws CompileError
/// (kBadAttribute) where the annotations of the others leave a gap.
std::vector<ProgramOutput> program_outputs(const PrimFunc& function,
                                           std::span<const Ref<Buffer>> params);

/// The nodes of the model whose values take most of `memory`, a workspace of `function`: joined by
/// "` or `" where that depends on the sizes. Empty where nothing lies in it.
std::string asked_by(const PrimFunc& function, const Buffer& memory);

}  // namespace tenon::tir
