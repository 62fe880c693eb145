#include "tenon/tir/patterns/block_pattern.h"

#include "tenon/support/codes.h"

namespace tenon::tir {

bool BufferBinding::is_permuted() const {
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != i) return true;
  return false;
}

std::vector<BlockMatch> match_blocks(const PrimFunc& pattern, const PrimFunc&, std::string*) {
  throw CompileError(kUnsupported, pattern.origin, "patterns over TensorIR are not matched yet");
}

std::optional<FunctionMatch> matches(const PrimFunc& pattern, const PrimFunc&, std::string*) {
  throw CompileError(kUnsupported, pattern.origin, "patterns over TensorIR are not matched yet");
}

void check_block_pattern(const PrimFunc&) {}

}  // namespace tenon::tir
