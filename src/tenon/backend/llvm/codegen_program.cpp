// SPDX-License-Identifier: Apache-2.0
// Generates a program's exports: TenonProgram, its `run` and its `shapes` (runtime/abi.h).
#include <cstddef>

#include "tenon/backend/dlpack_code.h"
#include "tenon/backend/llvm/codegen.h"
#include "tenon/runtime/abi.h"

namespace tenon::llvm_backend {

namespace {

// Mirrors of the ABI's structs in LLVM types; C's padding is LLVM's.
struct AbiTypes {
  llvm::StructType *info, *symbol;
  explicit AbiTypes(llvm::LLVMContext& c) {
    llvm::Type* p = llvm::PointerType::getUnqual(c);
    llvm::Type *i8 = llvm::Type::getInt8Ty(c), *i16 = llvm::Type::getInt16Ty(c),
               *i32 = llvm::Type::getInt32Ty(c), *i64 = llvm::Type::getInt64Ty(c);
    info = llvm::StructType::get(c, {p, p, i32, i8, i8, i16, i32, i32});
    symbol = llvm::StructType::get(c, {p, i32, i32, i64, i64, i64});
  }
};
static_assert(sizeof(TenonTensorInfo) == 32 && sizeof(TenonSymbol) == 40);
static_assert(sizeof(TenonProgram) == 160 && offsetof(TenonProgram, asked_by) == 152 &&
              offsetof(TenonProgram, run) == 64 && offsetof(TenonProgram, manifest) == 112 &&
              sizeof(TenonPacked) == 16);

}  // namespace

static llvm::GlobalVariable* constant_global(llvm::Module& module, llvm::Constant* value,
                                             const char* name) {
  return new llvm::GlobalVariable(module, value->getType(), true, llvm::GlobalValue::PrivateLinkage,
                                  value, name);
}

llvm::Constant* ModuleCodegen::tensor_infos(bool output, bool& computed) {
  const AbiTypes abi(context_);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context_);
  auto* null = llvm::ConstantPointerNull::get(llvm::PointerType::getUnqual(context_));
  const auto integer = [&](unsigned bits, uint64_t value) {
    return llvm::ConstantInt::get(llvm::Type::getIntNTy(context_, bits), value);
  };
  std::vector<llvm::Constant*> infos;
  for (size_t i = 0; i < (output ? entry().outputs : entry().inputs); ++i) {
    const tir::Buffer& buffer = output ? entry().output(i) : entry().input(i);
    std::vector<llvm::Constant*> dims;
    for (const Expr& dim : buffer.shape) {
      int64_t stated = TENON_DIM_COMPUTED;
      if (const auto number = as_int(dim)) {
        stated = *number;
      } else {
        if (output && !entry().is_late(i)) computed = true;
        for (size_t s = 0; s < entry().symbols.size(); ++s)
          if (dim.get() == entry().symbols[s].var.get()) stated = TENON_DIM_SYMBOL(s);
      }
      dims.push_back(llvm::ConstantInt::get(i64, static_cast<uint64_t>(stated)));
    }
    llvm::Constant* table = null;
    if (!dims.empty())
      table = constant_global(
          *llvm_module_, llvm::ConstantArray::get(llvm::ArrayType::get(i64, dims.size()), dims),
          "dims");
    const DType dtype = buffer.dtype;
    const std::string& name = output ? entry().output_names[i] : entry().input_names[i];
    infos.push_back(llvm::ConstantStruct::get(
        abi.info, {text(name), table, integer(32, dims.size()),
                   integer(8, backend::dlpack_code(dtype, buffer.origin)),
                   integer(8, dtype.is_string() ? 8 * sizeof(TenonString) : dtype.bits),
                   integer(16, dtype.lanes),
                   integer(32, static_cast<uint64_t>(entry().stated_alignment(
                                   output ? entry().inputs + i : i, alignment()))),
                   integer(32, output ? entry().output_flags(i) : 0)}));
  }
  if (infos.empty()) return null;
  return constant_global(
      *llvm_module_, llvm::ConstantArray::get(llvm::ArrayType::get(abi.info, infos.size()), infos),
      "tensors");
}

// The texts of constants. Where only the run has strings, the empty one is there.
llvm::Constant* ModuleCodegen::string_table() {
  llvm::Type* pointer = llvm::PointerType::getUnqual(context_);
  auto* row = llvm::StructType::get(context_, {pointer, llvm::Type::getInt64Ty(context_)});
  std::vector<llvm::Constant*> rows;
  for (const std::string& value : facts_.constants.layout().texts)
    rows.push_back(llvm::ConstantStruct::get(
        row,
        {text(value), llvm::ConstantInt::get(llvm::Type::getInt64Ty(context_), value.size())}));
  if (rows.empty()) return llvm::ConstantPointerNull::get(llvm::PointerType::getUnqual(context_));
  return constant_global(*llvm_module_,
                         llvm::ConstantArray::get(llvm::ArrayType::get(row, rows.size()), rows),
                         "strings");
}

// The nodes that ask for memory.
llvm::Constant* ModuleCodegen::asked_by_table() {
  std::vector<llvm::Constant*> rows;
  rows.reserve(entry().asked_by.size());
  for (const std::string& node : entry().asked_by) rows.push_back(text(node));
  auto* type = llvm::ArrayType::get(llvm::PointerType::getUnqual(context_), rows.size());
  return constant_global(*llvm_module_, llvm::ConstantArray::get(type, rows), "asked_by");
}

// The packed functions that it calls: those of libraries with their addresses.
llvm::Constant* ModuleCodegen::packed_table() {
  llvm::Type* pointer = llvm::PointerType::getUnqual(context_);
  auto* null = llvm::ConstantPointerNull::get(llvm::PointerType::getUnqual(context_));
  libraries_ = facts_.program.libraries();
  std::vector<llvm::Constant*> rows;
  auto* row = llvm::StructType::get(context_, {pointer, pointer});
  for (const backend::PackedFunction& function : facts_.program.packed()) {
    const std::string symbol = backend::packed_symbol(function.name);
    llvm::Constant* address = null;
    if (facts_.options.libraries && facts_.options.libraries->find(symbol)) {
      libraries_.push_back({symbol, {}, function.caller, function.origin});
      llvm::Type* i32 = llvm::Type::getInt32Ty(context_);
      auto* type =
          llvm::FunctionType::get(i32, {pointer, pointer, i32, pointer, pointer, pointer}, false);
      address =
          llvm::cast<llvm::Constant>(llvm_module_->getOrInsertFunction(symbol, type).getCallee());
    } else {
      registered_.push_back(function);
    }
    rows.push_back(llvm::ConstantStruct::get(row, {text(function.name), address}));
  }
  if (rows.empty()) return null;
  return constant_global(*llvm_module_,
                         llvm::ConstantArray::get(llvm::ArrayType::get(row, rows.size()), rows),
                         "packed");
}

// Where each symbol is read from.
llvm::Constant* ModuleCodegen::symbol_table() {
  const AbiTypes abi(context_);
  llvm::Type* i32 = llvm::Type::getInt32Ty(context_);
  const auto word = [&](int64_t value) {
    return llvm::ConstantInt::get(llvm::Type::getInt64Ty(context_), static_cast<uint64_t>(value));
  };
  std::vector<llvm::Constant*> rows;
  rows.reserve(entry().symbols.size());
  for (const backend::EntrySymbol& symbol : entry().symbols)
    rows.push_back(llvm::ConstantStruct::get(
        abi.symbol,
        {text(symbol.var->name),
         llvm::ConstantInt::get(i32, symbol.is_element ? TENON_SYMBOL_VALUE : TENON_SYMBOL_DIM),
         llvm::ConstantInt::get(i32, symbol.input), word(symbol.index),
         word(symbol.is_element ? INT64_MIN : 0), word(INT64_MAX)}));
  if (rows.empty()) return llvm::ConstantPointerNull::get(llvm::PointerType::getUnqual(context_));
  return constant_global(
      *llvm_module_, llvm::ConstantArray::get(llvm::ArrayType::get(abi.symbol, rows.size()), rows),
      "symbols");
}

// A function of `pointers` arguments that gives a status.
llvm::Function* ModuleCodegen::create_entry(const char* name, size_t pointers) {
  const std::vector<llvm::Type*> args(pointers, llvm::PointerType::getUnqual(context_));
  auto* function =
      llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getInt32Ty(context_), args, false),
                             llvm::Function::InternalLinkage, name, llvm_module_.get());
  set_attributes(*function);
  return function;
}

// int32_t run(ctx, buffers, symbols, workspace, constants)
llvm::Function* ModuleCodegen::define_run(const FunctionInfo& info) {
  llvm::Function* run = create_entry("tenon_run", 5);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context_);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context_);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context_, "entry", run));
  std::vector<llvm::Value*> args{run->getArg(0)};
  for (size_t i = 0; i < entry().inputs + entry().outputs; ++i)
    if (i < entry().inputs || !entry().is_late(i - entry().inputs))
      args.push_back(
          b.CreateLoad(pointer, b.CreateConstInBoundsGEP1_64(pointer, run->getArg(1), i)));
  if (entry().has_workspace) args.push_back(run->getArg(3));
  for (size_t s = 0; s < entry().symbols.size(); ++s)
    args.push_back(b.CreateSExtOrTrunc(
        b.CreateLoad(i64, b.CreateConstInBoundsGEP1_64(i64, run->getArg(2), s)),
        register_type(entry().symbols[s].var->dtype, entry().function->origin)));
  if (info.uses_constants) args.push_back(run->getArg(4));
  b.CreateRet(b.CreateCall(info.code, args));
  return run;
}

// int32_t shapes(ctx, symbols, output_dims, workspace_bytes); a negative `workspace` is symbolic.
llvm::Function* ModuleCodegen::define_shapes(const FunctionInfo& info, int64_t workspace) {
  llvm::Function* function = create_entry("tenon_shapes", 4);
  llvm::Type* i64 = llvm::Type::getInt64Ty(context_);
  FunctionCodegen code(*this, info, function);
  code.set_context(function->getArg(0));
  llvm::IRBuilder<>& b = code.builder();
  for (size_t s = 0; s < entry().symbols.size(); ++s) {
    const Ref<Var>& var = entry().symbols[s].var;
    llvm::Value* value =
        b.CreateLoad(i64, b.CreateConstInBoundsGEP1_64(i64, function->getArg(1), s));
    code.bind(*var, b.CreateSExtOrTrunc(value, register_type(var->dtype, {})));
  }
  for (const Ref<tir::Assert>& check : entry().given_checks) code.generate_assert(*check);
  uint64_t position = 0;
  for (size_t i = 0; i < entry().outputs; ++i)
    for (const Expr& dim : entry().output(i).shape)
      b.CreateStore(entry().is_late(i) ? b.getInt64(0) : b.CreateSExt(code.value(dim), i64),
                    b.CreateConstInBoundsGEP1_64(i64, function->getArg(2), position++));
  llvm::Value* bytes = workspace < 0 ? b.CreateSExt(code.value(entry().workspace_bytes), i64)
                                     : b.getInt64(static_cast<uint64_t>(workspace));
  b.CreateStore(bytes, function->getArg(3));
  b.CreateRet(b.getInt32(TENON_OK));
  return function;
}

void ModuleCodegen::define_program() {
  const FunctionInfo& info = callee(entry().name, {});
  llvm::Type* pointer = llvm::PointerType::getUnqual(context_);
  auto* null = llvm::ConstantPointerNull::get(llvm::PointerType::getUnqual(context_));
  const auto number = [&](uint64_t value) {
    return llvm::ConstantInt::get(llvm::Type::getInt32Ty(context_), value);
  };
  const auto word = [&](int64_t value) {
    return llvm::ConstantInt::get(llvm::Type::getInt64Ty(context_), static_cast<uint64_t>(value));
  };
  llvm::Constant* symbols = symbol_table();
  bool computed = false;
  llvm::Constant* input_infos = tensor_infos(false, computed);
  llvm::Constant* output_infos = tensor_infos(true, computed);
  llvm::Function* run = define_run(info);
  const int64_t workspace = entry().number("tenon.workspace_bytes").value_or(-1);
  llvm::Constant* shapes = null;
  if (computed || workspace < 0) shapes = define_shapes(info, workspace);
  llvm::Constant* constants = null;
  if (facts_.constants.layout().bytes > 0)
    constants =
        new llvm::GlobalVariable(*llvm_module_, llvm::Type::getInt8Ty(context_), true,
                                 llvm::GlobalValue::ExternalLinkage, nullptr, kConstantsSymbol);
  // Where the workspace is symbolic, the attributes tell of its part of constant size only.
  const auto stated_bytes = [&](const char* name) {
    return workspace < 0 ? -1 : entry().number(name).value_or(-1);
  };
  const bool names_nodes = !entry().asked_by.empty();
  std::vector<llvm::Constant*> members = {
      number(TENON_ABI_VERSION),
      number(names_nodes ? sizeof(TenonProgram) : offsetof(TenonProgram, asked_by)),
      text(facts_.options.name),
      number(entry().inputs),
      number(entry().outputs),
      input_infos,
      output_infos,
      number(entry().symbols.size()),
      number(static_cast<uint64_t>(alignment())),
      symbols,
      shapes,
      run,
      constants,
      word(facts_.constants.layout().bytes),
      word(workspace),
      word(stated_bytes("tenon.planned_bytes")),
      word(stated_bytes("tenon.bound_bytes")),
      facts_.options.manifest.empty() ? null : text(facts_.options.manifest),
      packed_table(),
      word(static_cast<int64_t>(facts_.program.packed().size())),
      string_table(),
      word(static_cast<int64_t>(facts_.constants.layout().texts.size()))};
  if (names_nodes) members.push_back(asked_by_table());
  auto* program =
      constant_global(*llvm_module_, llvm::ConstantStruct::getAnon(context_, members), "program");
  auto* getter = llvm::Function::Create(llvm::FunctionType::get(pointer, false),
                                        llvm::Function::ExternalLinkage, TENON_PROGRAM_SYMBOL,
                                        llvm_module_.get());
  set_attributes(*getter);
  llvm::IRBuilder<>(llvm::BasicBlock::Create(context_, "entry", getter)).CreateRet(program);
}

}  // namespace tenon::llvm_backend
