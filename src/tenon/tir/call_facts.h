// SPDX-License-Identifier: Apache-2.0
// The equations that must hold for the regions of a call to fit its callee's declaration.
#pragma once

#include <vector>

#include "tenon/arith/analyzer.h"
#include "tenon/tir/callee.h"

namespace tenon::tir {

/// One equation (of kScratch: `actual` is at least `declared`): an extent or a stride of an
/// argument's region, and what the callee's declaration makes of it once its symbolic dimensions
/// are bound. Both int64, in the caller's terms.
struct CallFact {
  enum class Kind : uint8_t {
    kExtent,
    kStride,
    kScratch,  // bytes that the caller provides, and those that the library asks for
  };
  Kind kind;
  size_t argument;
  size_t dim;  // of the parameter
  Expr actual, declared;
  Expr extent;  // of that dimension: the stride of one that has a single element is of no matter

  /// What a program that cannot prove it checks.
  Expr condition() const;
};

/// The equations of a call whose arguments fit in number, kind and rank; what a symbolic dimension
/// was bound by is left out. `bound`: as bind_symbols gives it.
std::vector<CallFact> call_facts(const Callee& callee, const std::vector<NodePtr>& args,
                                 const Substitution& bound);

enum class Verdict : uint8_t { kHolds, kFails, kUnknown };
Verdict judge(const CallFact& fact, arith::Analyzer& analyzer);

/// As text shows it: `x[0:8, r]`; the name alone where it is the whole buffer.
std::string str(const BufferRegion& region);

}  // namespace tenon::tir
