// SPDX-License-Identifier: Apache-2.0
// What calls of PrimFuncs computed, kept from one module to the next: a kernel that a pass left as
// it was is not run again on the arguments that it had before.
//
// Sound by construction, whatever is known of a function: it runs on memory of its own, which holds
// nothing but what the key of its result names (that the function is the same, by its instructions
// or its structure and not by a hash of them, and 128 bits over the contents of its arguments). A
// function that needs more than that fails there, and is run as usual from then on.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tenon/interp/machine.h"
#include "tenon/ir/module.h"
#include "tenon/support/content_hash.h"

namespace tenon::interp {

struct MemoProgram;  // a PrimFunc with all that it calls

class CallMemo {
 public:
  /// \param most_bytes  of results; beyond, the one that was not asked for longest goes
  explicit CallMemo(int64_t most_bytes = int64_t{1} << 30) : most_bytes_(most_bytes) {}

  /// Null for what cannot be kept: a function that calls a library, or has pointers as parameters.
  MemoProgram* program_of(const IRModule& module, const Code& code);

  /// Calls `run` on these arguments or others like them, or gives what it did then.
  /// `steps` counts what runs cost.
  using Run = std::function<Slot(std::vector<View> arguments)>;
  Slot call(MemoProgram& program, const std::vector<View>& arguments,
            const std::vector<Slot>& scalars, const int64_t& steps, const Run& run);

  int64_t runs() const { return runs_; }  // of functions that are kept
  int64_t hits() const { return hits_; }

 private:
  using Key = ContentHasher::Digest;
  struct KeyHash {
    size_t operator()(const Key& key) const { return key[0]; }
  };
  // Of each argument that is written: its bytes, and which of them were written; nothing of others.
  struct Result {
    Key key;
    Slot value = {0};
    std::vector<std::shared_ptr<Memory>> memories;
    int64_t bytes = 0;
  };

  static Key key_of(const MemoProgram& program, const std::vector<View>& arguments,
                    const std::vector<Slot>& scalars);
  void keep(Result result);

  const int64_t most_bytes_;
  int64_t bytes_ = 0, runs_ = 0, hits_ = 0;
  int64_t next_program_ = 0;
  std::unordered_multimap<uint64_t, std::shared_ptr<MemoProgram>> programs_;  // by structural hash
  std::list<Result> results_;                                                 // the last used first
  std::unordered_map<Key, std::list<Result>::iterator, KeyHash> found_;
};

}  // namespace tenon::interp
