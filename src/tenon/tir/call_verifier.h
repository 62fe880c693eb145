// SPDX-License-Identifier: Apache-2.0
// Verifies calls against the declarations of their callees: a part of the verifier.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/arith/analyzer.h"
#include "tenon/support/diagnostics.h"
#include "tenon/tir/call_effects.h"
#include "tenon/tir/call_facts.h"
#include "tenon/tir/needed_alignment.h"

namespace tenon::tir {

/// A call where it stands.
struct CheckedCall {
  std::string in;  // the function around it
  std::string callee;
  const std::vector<NodePtr>* args;
  Origin origin;
  bool is_expression = false;  // Call with a callee, whose value is used
  DType result = kVoid;        // as the expression states it
  const std::unordered_map<const Node*, Ref<BufferRegion>>* views = nullptr;  // what views show
  /// What DeclBuffers show, where that is the begin of a buffer or a place known by numbers.
  const std::unordered_map<const Node*, Ref<BufferRegion>>* declared = nullptr;
  const For* parallel = nullptr;  // the loop whose iterations run it beside one another
};

class CallVerifier {
 public:
  CallVerifier(const IRModule& module, CallEffects& effects, Diagnostics& diagnostics)
      : module_(module), effects_(effects), diagnostics_(diagnostics), alignments_(module) {}

  /// Reports what is wrong with the call; each error shows the callee's declaration beside it.
  void check(const CheckedCall& site);

 private:
  Diagnostic& error(const CheckedCall& site, size_t argument, const Code& code,
                    std::string message);
  void declared(Diagnostic& diagnostic, const Callee& callee, size_t param) const;
  bool fits(const CheckedCall& site, const Callee& callee, size_t i);
  void facts(const CheckedCall& site, const Callee& callee);
  void overlaps(const CheckedCall& site, const Callee& callee);
  void threads(const CheckedCall& site);
  void alignments(const CheckedCall& site, const Callee& callee);
  int64_t offset_alignment(const BufferRegion& region, int64_t most);
  bool apart(const CheckedCall& site, const BufferRegion& a, const BufferRegion& b);

  const IRModule& module_;
  CallEffects& effects_;
  Diagnostics& diagnostics_;
  arith::Analyzer analyzer_;
  std::unordered_map<std::string, std::optional<Callee>> callees_;
  std::unordered_map<std::string, const ExternFunction*> unsafe_;
  NeededAlignments alignments_;
};

}  // namespace tenon::tir
