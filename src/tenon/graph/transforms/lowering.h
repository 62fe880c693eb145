// SPDX-License-Identifier: Apache-2.0
// Lowers a graph function to a PrimFunc (LowerGraph): one object for each function.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tenon/graph/extern_call.h"
#include "tenon/graph/transforms/known_dims.h"
#include "tenon/graph/transforms/lifetimes.h"
#include "tenon/graph/transforms/number_bounds.h"
#include "tenon/graph/transforms/size_checks.h"
#include "tenon/support/names.h"
#include "tenon/tir/needed_alignment.h"
#include "tenon/tir/shared_buffers.h"
#include "tenon/tir/stmt.h"

namespace tenon::graph {

/// What a graph value is in the program: one buffer for a tensor, several for a tuple.
struct Storage {
  std::vector<Ref<tir::Buffer>> buffers;
  bool is_tuple = false;
};

class Lowering {
  using Buffer = tir::Buffer;
  using PrimFunc = tir::PrimFunc;
  using Stmt = tir::Stmt;

 public:
  Lowering(IRModule& module, const Function& function)
      : module_(module),
        function_(with_dims_of_inputs(function)),
        lifetimes_(*function_),
        needed_alignments_(module),
        bounds_(module) {}

  enum class Role : uint8_t { kEntry, kCalled };

  Ref<PrimFunc> run(Role role);

 private:
  std::string output_name(size_t i) const {
    return outputs_.size() == 1 ? "output" : fmt::format("output_{}", i);
  }

  /// The input is read, and written, in the memory of the output: nothing else may claim that, since
  /// it holds the input as long as that is used.
  void share(const tir::SharedBuffer& pair, const Ref<Buffer>& input);
  /// Results that lie in memory which another result shares with an input leave it first.
  void unshare(const std::vector<Value>& results, const std::vector<tir::SharedBuffer>& shared);

  /// The variables of `body` that are known only when part of the program has run.
  void find_late_numbers(const SeqExpr& body);
  /// What computes `value`: a variable, or an item of a tuple.
  static std::pair<const Node*, int64_t> place_of(const Value& value);

  /// An output whose size is known by now: the host gives the memory.
  Ref<Buffer> late_output(size_t i, const Type& type, const Origin& origin);

  Ref<Buffer> new_buffer(const std::string& name, const Type& type, const Origin& origin);

  /// The buffer of a parameter of the entry. A host reads dimensions from inputs and computes none:
  /// where the declaration has an expression, the buffer has a dimension of its own, which must be
  /// equal to it, and the program goes on with a view of the declared shape.
  Ref<Buffer> input(const Var& param);

  void flatten(const Value& value, std::vector<Value>& out);

  /// The call that computes `value` (through reshapes) into memory that may be another's, and which
  /// of its results that is.
  struct Maker {
    const Binding* binding = nullptr;  // null where there is none
    std::pair<const Node*, int64_t> result = {};
  };
  Maker maker_of(const Value& value) const;
  /// Gives the storage of `value` to the output buffer where a call computes it.
  void claim(const Value& value, const Ref<Buffer>& output);

  static bool is_call_tir(const Call& call) {
    return call.is("call_tir") || call.is("call_tir_inplace");
  }

  /// The argument whose memory output `i` takes; null where it has its own.
  static Value changed_argument(const Call& call, const std::optional<ForeignCall>& foreign,
                                size_t i);

  Ref<Buffer> buffer_of(const Value& value);

  const Storage& storage_of(const Value& value);

  void sequence(const SeqExpr& seq);

  void bind(const Binding& binding);

  void reshape(const Binding& binding, const Call& call, const Origin& origin);

  /// Another shape over the same memory. A view of a view is one of the first buffer: a network may
  /// reshape without end, and what follows pointers to their buffer takes a step for each.
  Ref<Buffer> view(const Ref<Buffer>& source, const std::string& name, const Type& type,
                   const Origin& origin);
  const Buffer* root_of(const Ref<Buffer>& buffer) const;
  bool views_of(const Ref<Buffer>& a, const Ref<Buffer>& b) const {
    return root_of(a) == root_of(b);
  }

  Ref<Buffer> storage_for(const Node* var, int64_t item, const std::string& name, const Type& type,
                          const Origin& origin);

  void call_tir(const Binding& binding, const Call& call, const Origin& origin);

  /// The storage of output `i` of a call.
  Ref<Buffer> output_place(const Binding& binding, bool is_tuple, size_t i, const Type& type,
                           const Origin& origin);

  /// What the function changes: the argument's own memory where nobody reads it later, else a copy.
  Ref<Buffer> changed_place(const Binding& binding, bool is_tuple, size_t i, const Type& type,
                            const Value& argument, const Origin& origin);
  static bool is_shape_of(const Buffer& buffer, const Type& type);

  /// A foreign function, declared or not: T.call_extern with its scratch allocated in front.
  void call_extern(const Binding& binding, const Call& call, const ForeignCall& foreign,
                   const Origin& origin);

  /// What a call asks of its arguments' addresses is asked of the memory that they are views of.
  void align(const std::string& callee, const std::vector<NodePtr>& args);

  /// Gives memory the alignment that calls ask of it, in its declaration.
  void align_memory(std::vector<Ref<Buffer>>& params, std::vector<Stmt>& body);

  /// What a back end made of its part of the graph (attr `tenon.inline`) stands here itself, so
  /// that its allocations are this function's.
  void inline_body(const Ref<PrimFunc>& callee, const std::vector<NodePtr>& args,
                   const Origin& origin);

  NodePtr scratch(const tir::ExternFunction& function, size_t i, const Substitution& bound,
                  const Origin& origin);

  /// The call of tensor_to_shape that gives `value`; null where it is something else.
  const Call* numbers_of(const Value& value) const;

  /// The elements of a tensor become numbers: those of an input before anything runs, as scalar
  /// parameters that the host fills; others where they are computed.
  void define_numbers(const Binding& binding, const Value& tensor, const Origin& origin);

  void match_cast(const Binding& binding, const Origin& origin);

  class Loop;  // lower_loop.cpp
  void lower_loop(const Binding& binding, const Call& call, const Origin& origin);
  /// What a loop gives with dimensions that only its run knows: `dims` holds them, and the memory is
  /// that of the host's slot.
  struct LateResult {
    Ref<Buffer> dims;
    int64_t slot = 0;
  };
  const LateResult* late_result(const Value& value) const;
  void name_dims(const Binding& binding, const LateResult& result, const Origin& origin);
  Ref<Buffer> host_memory(const std::string& name, const Type& type, int64_t slot,
                          const Origin& origin);

  void lower_if(const Binding& binding, const If& branch, const Origin& origin);

  /// What decides: a scalar, or a tensor of one element.
  Expr condition(const Value& value);

  /// By a kernel that copies flat memory, made once for each element type and number of elements.
  void copy(const Ref<Buffer>& from, const Ref<Buffer>& to);
  static Expr size_var(const std::string& name) { return tenon::Var::size(name); }

  static constexpr size_t kFresh = ForeignCall::kFresh;

  IRModule& module_;
  const Ref<Function> function_;
  Lifetimes lifetimes_;
  std::map<std::pair<const Node*, int64_t>, Ref<Buffer>> claimed_;
  std::unordered_map<const Node*, Storage> storage_;
  std::map<Ref<TensorData>, Storage,
           decltype([](const Ref<TensorData>& a, const Ref<TensorData>& b) {
             return a.get() < b.get();
           })>
      constant_storage_;  // looked up only, never iterated
  std::deque<Storage> temporaries_;
  std::unordered_map<const Buffer*, const Buffer*> view_root_;
  tir::NeededAlignments needed_alignments_;
  std::unordered_map<const Buffer*, int64_t> alignments_;  // that calls ask of memory
  std::map<uint64_t, std::string> copies_;
  NameSupply names_;
  std::vector<Stmt> constants_, stmts_;
  std::unordered_map<const Node*, size_t> input_of_;  // parameters of the entry
  std::vector<Ref<tenon::Var>> scalars_;              // numbers in the inputs
  AttrList scalar_sources_;
  std::unordered_set<const Node*> numbers_;  // variables that tensors define so far
  NumberBounds bounds_;                      // of numbers that the program reads
  LateSizeChecks late_sizes_;
  std::map<size_t, Ref<Buffer>> staged_;  // copies of results, by their indices
  std::vector<Ref<Buffer>> outputs_;      // null where the size is not known yet
  std::map<std::pair<const Node*, int64_t>, size_t> late_claims_;
  bool is_outermost_ = true;  // not in a branch or loop
  std::map<std::pair<const Node*, int64_t>, LateResult> late_results_;
  std::vector<Ref<Function>> bodies_;  // of loops: what refers to their bindings may
  int64_t slots_ = 0;                  // of memory that loops ask the host for
};

}  // namespace tenon::graph
