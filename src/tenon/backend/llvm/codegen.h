// SPDX-License-Identifier: Apache-2.0
// Generates an LLVM module from lowered PrimFuncs. Private to backend/llvm.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "tenon/backend/entry.h"
#include "tenon/backend/facts.h"
#include "tenon/backend/functions.h"
#include "tenon/backend/llvm/block_values.h"
#include "tenon/backend/llvm/compile.h"
#include "tenon/tir/call_facts.h"
#include "tenon/tir/stmt.h"

namespace tenon::llvm_backend {

/// On functions whose loops a schedule has decided: LLVM's loop transformations stay off.
inline constexpr const char* kScheduledAttribute = "tenon-scheduled";

/// A PrimFunc with the LLVM function that stands for it. Signature: int32_t (ctx, a pointer for
/// each buffer parameter, i64 for each symbolic Var, the scalar parameters, the base of the
/// constants where it uses them, the place of its result where it returns a scalar).
struct FunctionInfo : backend::ProgramFunction {
  llvm::Function* code = nullptr;    // once the module has it
  bool scheduled = false;            // LLVM's own loop transformations stay off
  std::vector<bool> read_only = {};  // of each buffer parameter
  size_t size = 0;                   // nodes of its body
  size_t part = 0;                   // which defines it
};

/// What the target has instructions for.
struct Instructions {
  bool halves = false;                          // between float16 and float32
  bool floats_512 = false, floats_256 = false;  // of vectors of so many bits
  // Sums of products of 8 bits (bytes, signed ones) or of 16 bits (pairs), in vectors of 512 bits, or
  // of less.
  bool bytes_512 = false, bytes_256 = false, pairs_512 = false, pairs_256 = false;
  bool arm_bytes = false, arm_mixed_bytes = false;  // of like signs; of unlike ones
};

/// What is known of a program before its code is generated: all parts share it, on several threads.
struct ProgramFacts {
  ProgramFacts(const IRModule& module, const Target& target, const CompileOptions& options,
               const Instructions& instructions);
  /// Deals the functions out to several modules, where they are many; otherwise all are in part 0.
  void divide();

  const IRModule& module;
  const Target& target;
  const CompileOptions& options;
  const Instructions instructions;
  const backend::Entry entry;
  const backend::ProgramFunctions program;
  std::vector<FunctionInfo> functions;  // callees first, as in `program`
  size_t parts = 1;
  backend::ConstantsBuilder constants{/*paged=*/true};
};

/// One module of LLVM: a program, or a part of it.
class ModuleCodegen {
 public:
  ModuleCodegen(const ProgramFacts& facts, size_t part, llvm::LLVMContext& context);
  /// Generates everything. Call once.
  std::unique_ptr<llvm::Module> run();
  /// Known to part 0, which defines the program, when it has run.
  const std::vector<backend::LibraryFunction>& libraries() const { return libraries_; }
  const std::vector<backend::PackedFunction>& registered() const { return registered_; }

  // -- for the function generator
  llvm::LLVMContext& context() { return context_; }
  llvm::Module& module() { return *llvm_module_; }
  const Target& target() const { return facts_.target; }
  const Instructions& instructions() const { return facts_.instructions; }
  const FunctionInfo& callee(const std::string& name, const Origin& origin);
  /// Null where it is no extern function of the module.
  Ref<tir::ExternFunction> library_function(const std::string& name) const {
    return facts_.module.find<tir::ExternFunction>(name);
  }
  size_t packed_index(const std::string& name) const { return facts_.program.packed_index(name); }
  const backend::Entry& entry() const { return facts_.entry; }
  int64_t constant_offset(const TensorData& data) const {
    return facts_.constants.known_offset(data);
  }
  llvm::Constant* text(const std::string& value);
  llvm::Type* register_type(DType dtype, const Origin& origin);
  llvm::Type* memory_type(DType dtype, const Origin& origin);
  void set_attributes(llvm::Function& function) const;

 private:
  void declare(FunctionInfo& info);
  void define_program();
  /// Bytes that the addresses of the workspace and of the constants are multiples of.
  int64_t alignment() const {
    return std::max(entry().workspace_alignment, facts_.constants.layout().alignment);
  }
  llvm::Constant* packed_table();
  llvm::Constant* asked_by_table();
  llvm::Constant* string_table();
  llvm::Constant* symbol_table();
  llvm::Function* create_entry(const char* name, size_t pointers);
  llvm::Function* define_run(const FunctionInfo& info);
  llvm::Function* define_shapes(const FunctionInfo& info, int64_t workspace);
  llvm::Constant* tensor_infos(bool output, bool& computed);

  const ProgramFacts& facts_;
  const size_t part_;
  llvm::LLVMContext& context_;
  std::unique_ptr<llvm::Module> llvm_module_;
  std::vector<FunctionInfo> functions_;  // as the facts have them
  std::map<std::string, llvm::Constant*> texts_;
  std::vector<backend::LibraryFunction> libraries_;  // packed functions of libraries among them
  std::vector<backend::PackedFunction> registered_;  // the others
};

/// 16-bit floats compute as float.
inline bool is_small_float(DType t) { return t.is_float() && t.bits == 16; }

/// Pointers that addresses have in common which differ by a constant, by what they point into and the
/// rest of the index: an unrolled loop has a thousand addresses of ten pointers. They are of the current
/// basic block and of blocks that dominate it.
class SharedPointers {
 public:
  template <typename Make>
  llvm::Value* find_or_make(llvm::Value* base, const llvm::Type* element, const Expr& index,
                            const llvm::BasicBlock* block, Make make) {
    keep_those_of(block);
    std::vector<Pointer>& known = pointers_[hash(index)];
    for (const Pointer& pointer : known)
      if (pointer.base == base && pointer.element == element && is_same(pointer.index, index))
        return pointer.value;
    known.push_back({base, element, index, make()});
    return known.back().value;
  }
  void clear() { pointers_.clear(); }
  /// From now on pointers are made in `block`: those of another one need not dominate it.
  void keep_those_of(const llvm::BasicBlock* block) {
    if (block != block_) pointers_.clear();
    block_ = block;
  }
  /// The same, where the last one dominates `block`.
  void enter(const llvm::BasicBlock* block) { block_ = block; }

 private:
  struct Pointer {
    llvm::Value* base;
    const llvm::Type* element;  // which the index counts: views of one memory may differ in it
    Expr index;
    llvm::Value* value;
  };
  static size_t hash(const Expr& index);
  static bool is_same(const Expr& a, const Expr& b);

  const llvm::BasicBlock* block_ = nullptr;
  std::unordered_map<size_t, std::vector<Pointer>> pointers_;
};

/// Generates the body of one LLVM function.
class FunctionCodegen {
 public:
  FunctionCodegen(ModuleCodegen& module, const FunctionInfo& info, llvm::Function* function);

  void define();                         // a whole PrimFunc
  llvm::Value* value(const Expr& expr);  // codegen_expr.cpp
  void bind(const Var& var, llvm::Value* value) {
    if (!vars_.insert_or_assign(&var, value).second) shared_pointers_.clear();
  }
  llvm::IRBuilder<>& builder() { return b_; }
  void set_context(llvm::Value* context) { context_ = context; }

 private:
  friend class ModuleCodegen;

  // -- expressions
  llvm::Value* generate(const Expr& expr);
  llvm::Value* generate_binary(const Binary& op);
  llvm::Value* generate_ramp(const Ramp& node);
  llvm::Value* generate_shuffle(const Shuffle& node);
  llvm::Value* arithmetic(BinaryOp op, DType dtype, llvm::Value* a, llvm::Value* b,
                          const Binary& node);
  llvm::Value* integer_division(BinaryOp op, DType dtype, llvm::Value* a, llvm::Value* b,
                                const Binary& node);
  llvm::Value* min_max(bool is_max, llvm::Value* a, llvm::Value* b, const Expr& lhs,
                       const Expr& rhs);
  llvm::Value* generate_call(const Call& call);
  llvm::Value* convert(llvm::Value* value, DType from, DType to, const Origin& origin);
  llvm::Value* widen(llvm::Value* value, DType from);  // 16-bit floats to float
  llvm::Value* narrow(llvm::Value* value, DType to);   // and back
  llvm::Value* splat(llvm::Value* value, int lanes);

  // -- intrinsics (codegen_intrinsic.cpp)
  llvm::Value* generate_intrinsic(const Call& call);
  llvm::Value* rounding(llvm::Intrinsic::ID id, const Call& call);
  llvm::Value* unary_float(llvm::Intrinsic::ID id, const Call& call);
  llvm::Value* nary_float(llvm::Intrinsic::ID id, const Call& call);
  llvm::Value* absolute(const Call& call);
  llvm::Value* inverse_root(const Call& call);
  llvm::Value* classify(const Call& call);
  llvm::Value* shift(const Call& call);
  llvm::Value* limit(const Call& call);
  llvm::Value* thread_count(const Call& call);
  llvm::Value* reinterpret(const Call& call);
  llvm::Value* access_pointer(const Call& call);
  llvm::Value* half_of_vector(const Call& call);
  llvm::Value* nearest_integer(llvm::Value* x);
  llvm::Value* saturated(llvm::Value* value, DType to, llvm::Type* type);
  llvm::Value* look_up(const Expr& expr);
  llvm::Value* joined_vectors(const Call& call);
  /// `sum` + T.dot4(...); `sum` may be null.
  llvm::Value* dot_product(const Call& call, llvm::Value* sum);
  llvm::Value* masked_load(const Call& call);
  llvm::Value* checked_index(const Call& call);
  llvm::Value* generate_if(const Call& call);
  llvm::Value* generate_extern(const Call& call);
  llvm::Value* generate_packed(const Call& call);
  void generate_return(const Call& call);
  void generate_prefetch(const Call& call);
  void masked_store(const Call& call);

  // -- memory
  struct Address {
    llvm::Value* pointer = nullptr;  // of the first lane
    llvm::Value* lane_offsets =
        nullptr;  // vector of element offsets from `pointer`, or null: dense
    int lanes = 1;
  };
  llvm::Value* index_value(const Expr& expr);  // as i64, without wrapping
  std::vector<llvm::Value*> strides_of(const tir::Buffer& buffer);
  llvm::Value* offset_of(const tir::Buffer& buffer, const std::vector<Expr>& indices);
  /// Lanes a constant 2 to 4 elements apart, from whole vectors; null for other places.
  llvm::Value* load_every_nth(llvm::Type* element, const Address& at);
  /// A column of a square of `lanes` rows in memory of the function's own, by shuffles that the other
  /// columns need as well; null for other loads.
  llvm::Value* load_column(const tir::BufferLoad& node, llvm::Value* base);
  Address address(const tir::Buffer& buffer, const std::vector<Expr>& indices,
                  const Origin& origin);
  llvm::Value* pointer_of(const tir::Buffer& buffer, const Origin& origin);
  llvm::Type* element_type(const tir::Buffer& buffer);
  /// Of an element. The constant of its index is added last: elements whose indices differ by
  /// constants have one pointer in common, and a constant in an address costs no instruction.
  llvm::Value* pointer_to(llvm::Value* base, const tir::Buffer& buffer,
                          const std::vector<Expr>& indices);
  /// Makes the shared pointers of the elements that `expr` may read, where computing their indices
  /// cannot fail. `expr` itself may be evaluated later, under a condition, or not at all.
  void make_pointers(const Expr& expr);
  llvm::Value* element_pointer(llvm::Value* base, llvm::Value* offset, const tir::Buffer& buffer);
  llvm::Value* load_dense(llvm::Type* type, llvm::Value* pointer, llvm::Align align);
  llvm::Value* load(const tir::BufferLoad& node, llvm::Value* mask, llvm::Value* otherwise);
  void store(const tir::Buffer& buffer, const std::vector<Expr>& indices, llvm::Value* value,
             llvm::Value* mask, const Origin& origin);
  llvm::Value* from_memory(llvm::Value* value, DType dtype);
  llvm::Value* to_memory(llvm::Value* value, DType dtype);

  // -- statements
  void generate(const tir::Stmt& stmt);
  void generate_for(const tir::For& loop);
  void generate_while(const tir::While& loop);
  void generate_if(const tir::IfThenElse& branch);
  void generate_parallel(const tir::For& loop);
  void generate_call_library(const tir::CallTir& call, const tir::ExternFunction& function);
  void generate_packed_library(const tir::CallTir& call, const tir::ExternFunction& function);
  llvm::Value* group_memory(const backend::LibraryArgument& argument);
  llvm::Value* dl_tensor(const backend::LibraryArgument& argument, llvm::Value* data);
  llvm::Value* dl_tensor(const tir::BufferRegion& region, const Origin& origin);
  struct PackedValues {
    llvm::Value *values, *codes;
  };
  /// Values with their codes, on the stack.
  PackedValues packed_values(const std::vector<NodePtr>& items, const Origin& origin);
  void call_packed(const std::string& name, const PackedValues& args, size_t count,
                   const PackedValues& results, size_t result_count, const Origin& origin);
  /// A call of a PrimFunc (codegen_call.cpp). \returns what it returns; null where that is nothing.
  llvm::Value* generate_function_call(const GlobalVar& callee, const std::vector<NodePtr>& args,
                                      const Origin& origin);
  void check_facts(const std::vector<tir::CallFact>& facts, const tir::Callee& callee,
                   const Origin& origin);
  void generate_alloc(const tir::AllocBuffer& alloc);
  void generate_host_alloc(const tir::AllocBuffer& alloc);
  void generate_assert(const tir::Assert& assertion);
  void fail_unless(llvm::Value* condition, int code, const std::string& where,
                   const std::string& message, llvm::Value* value, llvm::Value* bound);
  void fail_unless(llvm::Value* condition, llvm::Value* code, const std::string& where,
                   const std::string& message, llvm::Value* value, llvm::Value* bound);
  void return_if_failed(llvm::Value* code);
  llvm::AllocaInst* stack_memory(llvm::Type* type, uint64_t alignment, const std::string& name);
  llvm::BasicBlock* block(const char* name);
  std::string where(const Origin& origin) const;

  ModuleCodegen& m_;
  const FunctionInfo& info_;
  llvm::Function* f_;
  llvm::IRBuilder<> b_;
  llvm::Value* context_ = nullptr;
  llvm::Value* constants_ = nullptr;
  llvm::Value* result_ = nullptr;  // where a function that returns a scalar puts it
  bool in_task_ = false;           // inside a parallel loop, where others run serially
  bool index_arithmetic_ = false;  // offsets stay within an object, so they do not wrap
  std::unordered_map<const Node*, llvm::Value*> vars_;
  std::unordered_map<const Node*, llvm::Value*> buffers_;  // pointer to the first element
  backend::SignFacts signs_;                               // of integer variables
  std::unordered_map<const Node*, std::pair<Expr, llvm::Value*>> memo_;  // of one statement
  SharedPointers shared_pointers_;
  BlockValues block_values_;
};

}  // namespace tenon::llvm_backend
