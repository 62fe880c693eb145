// SPDX-License-Identifier: Apache-2.0
// TensorIR statements and functions: loops over buffers, blocks, calls.
#pragma once

#include <string>
#include <vector>

#include "tenon/ir/constant.h"
#include "tenon/ir/module.h"
#include "tenon/tir/buffer.h"

namespace tenon::tir {

/// Kinds of statements.
enum class StmtKind : uint8_t {
  kBufferStore,
  kEvaluate,
  kBind,
  kAllocBuffer,
  kAllocConst,
  kDeclBuffer,
  kSeq,
  kFor,
  kWhile,
  kIfThenElse,
  kAssert,
  kAttrStmt,
  kBlock,
  kBlockRealize,
  kCallTir,
};

struct StmtNode : Node {
  using Kind = StmtKind;
  static constexpr NodeFamily kFamily = NodeFamily::kStmt;

 protected:
  explicit StmtNode(Origin origin) : Node(std::move(origin)) {}
};
using Stmt = Ref<StmtNode>;

/// `buffer[indices] = value`; lanes as for BufferLoad.
struct BufferStore final : NodeOf<BufferStore, StmtNode> {
  Ref<Buffer> buffer;
  Expr value;
  std::vector<Expr> indices;

  BufferStore(Ref<Buffer> buffer, Expr value, std::vector<Expr> indices, Origin origin = {});
  void finish();
  static constexpr StmtKind kKind = StmtKind::kBufferStore;
  static constexpr std::string_view kName = "BufferStore";
  static std::vector<FieldInfo> fields();
};

/// Evaluates an expression for its effect.
struct Evaluate final : NodeOf<Evaluate, StmtNode> {
  Expr value;

  explicit Evaluate(Expr value, Origin origin = {});
  void finish() {}
  static constexpr StmtKind kKind = StmtKind::kEvaluate;
  static constexpr std::string_view kName = "Evaluate";
  static std::vector<FieldInfo> fields();
};

/// `var = value` for the statements that follow it in its sequence.
struct Bind final : NodeOf<Bind, StmtNode> {
  Expr value;
  Ref<Var> var;

  Bind(Ref<Var> var, Expr value, Origin origin = {});
  void finish();
  static constexpr StmtKind kKind = StmtKind::kBind;
  static constexpr std::string_view kName = "Bind";
  static std::vector<FieldInfo> fields();
};

/// Memory for `buffer`, for the statements that follow in its sequence. Uninitialised.
struct AllocBuffer final : NodeOf<AllocBuffer, StmtNode> {
  Ref<Buffer> buffer;
  Attrs annotations;

  explicit AllocBuffer(Ref<Buffer> buffer, Attrs annotations = {}, Origin origin = {});
  void finish() {}
  static constexpr StmtKind kKind = StmtKind::kAllocBuffer;
  static constexpr std::string_view kName = "AllocBuffer";
  static std::vector<FieldInfo> fields();
};

/// `buffer` holds constant data, for the statements that follow in its sequence. Never written.
struct AllocConst final : NodeOf<AllocConst, StmtNode> {
  Ref<Buffer> buffer;
  Ref<TensorData> data;

  AllocConst(Ref<Buffer> buffer, Ref<TensorData> data, Origin origin = {});
  void finish();
  static constexpr StmtKind kKind = StmtKind::kAllocConst;
  static constexpr std::string_view kName = "AllocConst";
  static std::vector<FieldInfo> fields();
};

/// `buffer` is a view of memory that starts at pointer `data` (at buffer.elem_offset), for the
/// statements that follow. `data` is the data pointer of another buffer or any pointer expression;
/// buffer.data is a pointer of its own.
struct DeclBuffer final : NodeOf<DeclBuffer, StmtNode> {
  Expr data;
  Ref<Buffer> buffer;

  DeclBuffer(Ref<Buffer> buffer, Expr data, Origin origin = {});
  void finish();
  static constexpr StmtKind kKind = StmtKind::kDeclBuffer;
  static constexpr std::string_view kName = "DeclBuffer";
  static std::vector<FieldInfo> fields();
};

/// Statements in order: a flat list, however long. Nested sequences are flattened and nulls
/// dropped.
struct Seq final : NodeOf<Seq, StmtNode> {
  std::vector<Stmt> stmts;

  explicit Seq(std::vector<Stmt> stmts, Origin origin = {});
  void finish();
  static constexpr StmtKind kKind = StmtKind::kSeq;
  static constexpr std::string_view kName = "Seq";
  static std::vector<FieldInfo> fields();
};
/// One statement of `stmts`: itself where there is one only.
Stmt seq(std::vector<Stmt> stmts);
/// The statements of a Seq; of another statement, itself alone.
std::vector<Stmt> stmts_of(const Stmt& stmt);

enum class ForKind : uint8_t { kSerial, kParallel, kVectorized, kUnrolled, kThreadBinding };

/// `for loop_var in [min, min + extent)`.
struct For final : NodeOf<For, StmtNode> {
  Expr min, extent;
  ForKind kind;
  std::string thread_tag;  // of kThreadBinding
  Ref<Var> loop_var;
  Stmt body;
  Attrs annotations;

  For(Ref<Var> loop_var, Expr min, Expr extent, ForKind kind, Stmt body, Attrs annotations = {},
      Origin origin = {});
  /// The same kind of loop over the same variable.
  Ref<For> with(Expr min, Expr extent, Stmt body) const;
  void finish();
  static constexpr StmtKind kKind = StmtKind::kFor;
  static constexpr std::string_view kName = "For";
  static std::vector<FieldInfo> fields();
};

struct While final : NodeOf<While, StmtNode> {
  Expr condition;
  Stmt body;

  While(Expr condition, Stmt body, Origin origin = {});
  void finish();
  static constexpr StmtKind kKind = StmtKind::kWhile;
  static constexpr std::string_view kName = "While";
  static std::vector<FieldInfo> fields();
};

struct IfThenElse final : NodeOf<IfThenElse, StmtNode> {
  Expr condition;
  Stmt then_case, else_case;  // else_case may be null

  IfThenElse(Expr condition, Stmt then_case, Stmt else_case = {}, Origin origin = {});
  void finish();
  static constexpr StmtKind kKind = StmtKind::kIfThenElse;
  static constexpr std::string_view kName = "IfThenElse";
  static std::vector<FieldInfo> fields();
};

/// Stops the program with `message` where `condition` does not hold. In a compiled program it is
/// reported with `message` (which names the operator for checks of run-time indices).
struct Assert final : NodeOf<Assert, StmtNode> {
  Expr condition;
  std::string message;

  Assert(Expr condition, std::string message, Origin origin = {});
  void finish();
  static constexpr StmtKind kKind = StmtKind::kAssert;
  static constexpr std::string_view kName = "Assert";
  static std::vector<FieldInfo> fields();
};

/// A pragma or other attribute over a statement; `subject` may be null.
struct AttrStmt final : NodeOf<AttrStmt, StmtNode> {
  std::string key;
  NodePtr subject;
  AttrValue value;
  Stmt body;

  AttrStmt(NodePtr subject, std::string key, AttrValue value, Stmt body, Origin origin = {});
  void finish() {}
  static constexpr StmtKind kKind = StmtKind::kAttrStmt;
  static constexpr std::string_view kName = "AttrStmt";
  static std::vector<FieldInfo> fields();
};

enum class IterKind : uint8_t { kSpatial, kReduce, kScan, kOpaque };

/// An axis of a block with its domain [min, min + extent).
struct IterVar {
  Ref<Var> var;
  Range domain;
  IterKind kind;
};

/// A view of a region of another buffer, inside a block.
struct MatchBuffer {
  Ref<Buffer> buffer;  // defined here
  Ref<BufferRegion> source;
};

/// The members of a block, also by themselves, to make one or a changed copy of one from.
struct BlockParts {
  std::string name = {};
  std::vector<IterVar> iter_vars = {};
  std::vector<Ref<Buffer>> alloc_buffers = {};
  std::vector<Ref<BufferRegion>> reads = {}, writes = {};
  std::vector<MatchBuffer> match_buffers = {};
  Stmt init = {};  // may be null
  Stmt body = {};
  Attrs annotations = {};
};

/// A unit of computation: its body sees its own axes only (and what encloses the block). Reads and
/// writes are regions in terms of the axes; `init` runs on the first iteration of all reduce axes.
struct Block final : NodeOf<Block, StmtNode>, BlockParts {
  using Parts = BlockParts;

  explicit Block(Parts parts, Origin origin = {});
  const Parts& parts() const { return *this; }
  void finish();
  static constexpr StmtKind kKind = StmtKind::kBlock;
  static constexpr std::string_view kName = "Block";
  static std::vector<FieldInfo> fields();
};

/// A block with the values of its axes in terms of the loops around it; runs only where `predicate`
/// holds.
struct BlockRealize final : NodeOf<BlockRealize, StmtNode> {
  std::vector<Expr> iter_values;
  Expr predicate;
  Ref<Block> block;

  BlockRealize(std::vector<Expr> iter_values, Expr predicate, Ref<Block> block, Origin origin = {});
  void finish();
  static constexpr StmtKind kKind = StmtKind::kBlockRealize;
  static constexpr std::string_view kName = "BlockRealize";
  static std::vector<FieldInfo> fields();
};

/// `T.call_tir(callee, args...)`: runs a PrimFunc of the same module (or an extern function:
/// `T.call_extern(cls.f,
/// ...)`) on regions and scalars. An argument is a BufferRegion or an Expr, in the order of the
/// callee's parameters. It allocates nothing; which regions it writes follows from the callee.
struct CallTir final : NodeOf<CallTir, StmtNode> {
  Ref<GlobalVar> callee;
  std::vector<NodePtr> args;
  Attrs annotations;

  CallTir(Ref<GlobalVar> callee, std::vector<NodePtr> args, Attrs annotations = {},
          Origin origin = {});
  void finish();
  static constexpr StmtKind kKind = StmtKind::kCallTir;
  static constexpr std::string_view kName = "CallTir";
  static std::vector<FieldInfo> fields();
};

/// A function over buffers and scalars. Symbolic Vars in the shapes, strides and offsets of its
/// parameters are defined by the first parameter that has the bare Var there; calls bind them by
/// unification.
struct PrimFunc final : NodeOf<PrimFunc, FunctionNode> {
  std::vector<Ref<Var>> params;      // a scalar, or the handle of the buffer beside it
  std::vector<Ref<Buffer>> buffers;  // as many; null for a scalar
  DType result = kVoid;              // of T.ret
  Stmt body;

  PrimFunc(std::vector<Ref<Var>> params, std::vector<Ref<Buffer>> buffers, Stmt body,
           Attrs attrs = {}, Origin origin = {});
  /// Parameters from buffers alone, each with a handle named after it.
  static Ref<PrimFunc> of_buffers(std::vector<Ref<Buffer>> buffers, Stmt body, Attrs attrs = {},
                                  Origin origin = {});
  Ref<PrimFunc> with_body(Stmt body) const;
  Ref<PrimFunc> with_attr(const std::string& name, AttrValue value) const;
  void finish();
  static constexpr FunctionKind kKind = FunctionKind::kPrimFunc;
  static constexpr std::string_view kName = "PrimFunc";
  static std::vector<FieldInfo> fields();
};

/// The symbolic Vars that the parameters' shapes, strides and offsets define, in order of first
/// appearance.
std::vector<Ref<Var>> symbolic_vars(const PrimFunc& function);

/// `for vars[0] in range(extents[0]): for vars[1] ...: body`, serial.
Stmt nest(const std::vector<Ref<Var>>& vars, const std::vector<Expr>& extents, Stmt body);

/// The root block of a schedulable function (block named "root" without axes), or null.
const Block* root_block(const PrimFunc& function);

}  // namespace tenon::tir
