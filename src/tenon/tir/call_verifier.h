// Calls against the declarations of their callees: a part of the verifier.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/arith/analyzer.h"
#include "tenon/support/diagnostics.h"
#include "tenon/tir/call_effects.h"
#include "tenon/tir/call_facts.h"

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
  const For* parallel = nullptr;  // the loop whose iterations run it beside one another
};

/// Bytes that the address of memory which a program allocates, takes or holds is a multiple of.
inline constexpr int64_t kMemoryAlignment = 64;

class CallVerifier {
 public:
  CallVerifier(const IRModule& module, CallEffects& effects, Diagnostics& diagnostics)
      : module_(module), effects_(effects), diagnostics_(diagnostics) {}

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
  /// What a call of `name` asks of the address of argument `i`, in bytes: as its extern function
  /// declares, or what a PrimFunc needs for the calls in it.
  int64_t needed_alignment(const std::string& name, size_t i, int depth = 0);
  int64_t offset_alignment(const BufferRegion& region, int64_t most);
  bool apart(const CheckedCall& site, const BufferRegion& a, const BufferRegion& b);

  const IRModule& module_;
  CallEffects& effects_;
  Diagnostics& diagnostics_;
  arith::Analyzer analyzer_;
  std::unordered_map<std::string, std::optional<Callee>> callees_;
  std::unordered_map<std::string, const ExternFunction*> unsafe_;
  std::unordered_map<std::string, std::vector<int64_t>> alignments_;
};

}  // namespace tenon::tir
