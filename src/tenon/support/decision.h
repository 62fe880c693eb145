// SPDX-License-Identifier: Apache-2.0
// Decisions about who computes an operator, as data: what the account of providers is made of, and
// what remarks about placement render.
#pragma once

#include <cstdint>
#include <string>

namespace tenon {

/// One decision about one operator, or about one kernel. Later steps decide about what the steps
/// before them left; the account (driver/offload.h) replays them in order.
struct Decision {
  enum class Step : uint8_t {
    kKernels,         // SelectKernels: kernels of the user's
    kPlacement,       // AnnotatePlacement: patterns over operators
    kKernelPatterns,  // SplitCallTIRByPattern: patterns over TensorIR
    kCodegen,         // RunCodegen: what back ends were given
  };
  enum class Kind : uint8_t {
    kTaken,    // `provider` computes it, by `candidate`
    kRefused,  // `candidate` of `provider` was found for it and does not take it, for `code`
    kKept,     // own code computes it: nobody was found, or the user wants it so
    kDivided,  // of a kernel: `provider` takes all of it, or a part
    kScratch,  // a call of `provider` works in `bytes`
  };
  Step step = Step::kPlacement;
  Kind kind = Kind::kKept;
  std::string provider = {};   // "dnnl", "kernels", "extern"; empty where nobody was found
  std::string candidate = {};  // its pattern, kernel or symbol: "dnnl.conv2d", "my_softmax"
  std::string code = {};       // why not: "dtype", "cost", "no-pattern"
  double flop = 0;             // of the operator; a symbolic dimension counts as 1
  bool in_group = false;       // another operator of its group has the call
  bool is_kernel = false;      // it is about a kernel, not an operator
  bool holds_operator = true;  // of a divided kernel: a whole operator is in what was taken
  int64_t bytes = 0;           // of kScratch
};

}  // namespace tenon
