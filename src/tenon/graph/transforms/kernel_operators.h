// SPDX-License-Identifier: Apache-2.0
// Which operators of a graph the blocks of its kernels compute, and which of these were taken: the
// bookkeeping of SplitCallTIRByPattern.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tenon/graph/patterns/fusion_pattern.h"
#include "tenon/support/operator_id.h"
#include "tenon/tir/analysis/block_work.h"

namespace tenon::graph {

/// Calls `visit` for each origin that `origin` is merged from, or for itself.
void each_part(const Origin& origin, const std::function<void(const Origin&)>& visit);

/// The name by which user placement knows an operator: its node of the model, or its place in a
/// script.
std::string placement_name(const Origin& part);

/// `kernel` as it is called from `site`: kernels that compute the same are one function, whose
/// blocks have the origins of the first call. Where it cannot be told which operator a block is of
/// it gets all of them.
Ref<tir::PrimFunc> with_origins_of(const Ref<tir::PrimFunc>& kernel, const Origin& site);

/// All operators that blocks are of.
Origin origin_of(const std::vector<Ref<tir::Block>>& blocks);

/// An operator is taken by a back end whose patterns take what it computes: its contractions, where
/// it has any, else its arithmetic, else the copies that it consists of.
class KernelOperators {
 public:
  void add(const tir::PrimFunc& kernel);
  struct Taken {
    std::string kernel, pattern;
    std::vector<Ref<tir::Block>> blocks;
    bool is_whole = false;  // all of the kernel
    Origin origin = {};
  };
  void take(Taken taken);
  void refuse(const std::string& pattern, const std::vector<Ref<tir::Block>>& blocks,
              const Verdict& verdict);
  /// Why no pattern took the operators of this placement_name, as far as it is known.
  std::string reasons(const std::string& name) const;
  /// Records a remark for each kernel that was taken (verdict "placed", reason: the pattern, number
  /// `operators`: those that are taken and that it computes a part of), for each operator that is
  /// ("taken", the pattern), and for each that patterns found and were refused ("left", the code).
  void report() const;

 private:
  struct Count {
    int of[3] = {0, 0, 0};  // blocks, by WorkKind
    bool is_told = true;    // whether it is known which blocks are its own
  };
  struct Operator {
    Origin origin;
    Count all;
    std::map<std::string, Count> taken;                     // by back end
    std::map<std::string, std::string> patterns;            // by back end: the first
    std::vector<std::pair<std::string, Verdict>> refusals;  // by pattern
  };
  static void count(Count& count, const tir::Block& block);
  static const std::string* taker_of(const Operator& op);
  static std::string reasons(const Operator& op);
  Operator& at(const Origin& part);

  std::vector<Operator> operators_;  // in order of appearance
  std::map<OperatorId, size_t> index_;
  std::vector<Taken> taken_;
};

}  // namespace tenon::graph
