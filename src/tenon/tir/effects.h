// SPDX-License-Identifier: Apache-2.0
// What statements and expressions do to memory, and besides: the one place that knows for each kind
// of node. Why and for whom: docs/design/0010-effects.md.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "tenon/tir/stmt.h"

namespace tenon::tir {

/// What a function does to a buffer parameter (scalars: neither). `in` reads, `out` writes, `inout`
/// does both. What it reads only after it wrote it, as a sum reads what it adds to, is `out`.
struct ParamEffect {
  bool reads = false, writes = false;
  bool fills = false;  // writes every element before it reads any, in every run
  bool is_out() const { return writes && !reads; }
  bool operator==(const ParamEffect&) const = default;
};

/// What callee `callee` does to its argument `argument`, a region of `buffer`.
using CalleeEffects =
    std::function<ParamEffect(const std::string& callee, size_t argument, const Buffer& buffer)>;
/// Reads and writes: of a callee that is not known.
ParamEffect unknown_callee(const std::string& callee, size_t argument, const Buffer& buffer);

/// The element that a call is given as a place, not as a value (T.address_of, T.prefetch, masked
/// loads and stores); null where it is given none.
const BufferLoad* place_given_to(const Call& call);

/// One thing that a statement does.
struct StmtEffect {
  enum class Kind : uint8_t {
    kRead,        // of an element, or of the lanes of a vector
    kAccumulate,  // a read of what the init of the block around it stored at the same place
    kWrite,       // of an element, or of the lanes of a vector
    kArgument,    // a region that a call is given, with `use`
    kView,        // `memory` gets another name; what is done to the view is done to it
    kOpaque,      // a pointer is formed or handed out: anything may be done to all of `memory`
    kCheck,       // may stop the program: an assertion, a check of an index
    kDivide,      // may stop the program: an integer division by what may be 0
    kLoop,        // may not end: a `while`
    kCall,        // runs a function of the module, which may do more than its arguments show
    kForeign,     // runs a function that nothing declares
  };
  Kind kind;
  /// The load, store, region (of an argument or a match_buffer), statement or call.
  NodePtr node;
  /// A Buffer, or the pointer of one; null of what is no access.
  NodePtr memory = {};
  ParamEffect use = {};
  const Block* block = nullptr;  // the innermost around it within the root

  bool reads() const { return use.reads; }
  bool writes() const { return use.writes; }
};

/// Calls `see` for everything that a run of `root`, a statement or an expression, may do, in the
/// order in which it stands. Regions that blocks state are not asked: they follow from the body.
/// Conditions and loops around an effect are not told; an effect may happen never or often.
void each_effect(const NodePtr& root, const CalleeEffects& callees,
                 const std::function<void(const StmtEffect&)>& see);

/// All of that by memory: buffers and their pointers.
struct Effects {
  std::set<const Node*> reads, writes;
  /// More than accesses and divisions. A CallTir counts by its arguments alone.
  bool has_others = false;

  bool reads_buffer(const Ref<Buffer>& buffer) const { return reads.count(buffer.get()) != 0; }
  bool writes_buffer(const Ref<Buffer>& buffer) const { return writes.count(buffer.get()) != 0; }
  bool touches(const Ref<Buffer>& buffer) const {
    return reads_buffer(buffer) || writes_buffer(buffer);
  }
  void add(const Effects& other);
  /// Whether it writes what `earlier` touches, or both do more than access memory.
  bool overwrites(const Effects& earlier) const;
  /// Whether one of the two must stay before the other.
  bool conflicts(const Effects& other) const;
};
Effects effects_of(const NodePtr& root, const CalleeEffects& callees = unknown_callee);

}  // namespace tenon::tir
