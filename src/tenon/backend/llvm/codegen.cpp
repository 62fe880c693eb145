// SPDX-License-Identifier: Apache-2.0
// Generates the LLVM module: functions in order, signatures, types, attributes, constants.
#include "tenon/backend/llvm/codegen.h"

#include <algorithm>

#include "tenon/backend/llvm/machine.h"
#include "tenon/support/interrupt.h"

namespace tenon::llvm_backend {

ModuleCodegen::ModuleCodegen(const IRModule& module, const Target& target,
                             const CompileOptions& options, llvm::LLVMContext& context,
                             const Instructions& instructions)
    : module_(module),
      target_(target),
      options_(options),
      context_(context),
      instructions_(instructions),
      entry_(backend::entry_of(module)),
      program_(module, entry_.name) {
  for (const backend::ProgramFunction& function : program_.all()) {
    FunctionInfo& info = functions_.emplace_back();
    static_cast<backend::ProgramFunction&>(info) = function;
    info.can_fail |= info.has_parallel;  // a parallel loop can fail on the host's side too
    info.scheduled = function.function->attrs.flag("tir.is_scheduled");
  }
}

llvm::Type* ModuleCodegen::register_type(DType dtype, const Origin& origin) {
  llvm::Type* element = nullptr;
  dtype = dtype.storage();
  switch (dtype.code) {
    case DType::Code::kBool: element = llvm::Type::getInt1Ty(context_); break;
    case DType::Code::kInt:
    case DType::Code::kUInt: element = llvm::Type::getIntNTy(context_, dtype.bits); break;
    case DType::Code::kHandle: element = llvm::PointerType::getUnqual(context_); break;
    case DType::Code::kBFloat: element = llvm::Type::getInt16Ty(context_); break;
    case DType::Code::kFloat:
      if (dtype.bits == 16) element = llvm::Type::getInt16Ty(context_);  // bits of a half
      if (dtype.bits == 32) element = llvm::Type::getFloatTy(context_);
      if (dtype.bits == 64) element = llvm::Type::getDoubleTy(context_);
      break;
    default: break;
  }
  if (!element)
    throw CompileError(kUnsupported, origin, "values of dtype {} have no native code", dtype.str());
  return dtype.is_vector() ? llvm::FixedVectorType::get(element, dtype.lanes) : element;
}

llvm::Type* ModuleCodegen::memory_type(DType dtype, const Origin& origin) {
  if (dtype.is_bool()) return register_type(kUInt8.with_lanes(dtype.lanes), origin);
  return register_type(dtype, origin);
}

void ModuleCodegen::set_attributes(llvm::Function& function) const {
  function.addFnAttr(llvm::Attribute::NoUnwind);
  function.addFnAttr(llvm::Attribute::WillReturn);
  function.addFnAttr("target-cpu", target_.cpu);
  if (!target_.features.empty()) function.addFnAttr("target-features", target_.features);
  const std::string bits = std::to_string(target_.vector_bits);
  function.addFnAttr("prefer-vector-width", bits);
  function.addFnAttr("min-legal-vector-width", bits);
  // Registers are spilled to slots of their own alignment only where LLVM knew before it assigned
  // registers that it would align the stack. Without, every other spilled vector straddles two
  // cache lines, or none, as the caller's stack lies.
  function.addFnAttr("stackrealign");
}

llvm::Constant* ModuleCodegen::text(const std::string& value) {
  llvm::Constant*& found = texts_[value];
  if (!found) {
    auto* data = llvm::ConstantDataArray::getString(context_, value);
    auto* global = new llvm::GlobalVariable(*llvm_module_, data->getType(), true,
                                            llvm::GlobalValue::PrivateLinkage, data, "text");
    global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    found = global;
  }
  return found;
}

const FunctionInfo& ModuleCodegen::callee(const std::string& name, const Origin& origin) const {
  return functions_[program_.index_of(name, origin)];
}

void ModuleCodegen::declare(FunctionInfo& info) {
  const tir::PrimFunc& function = *info.function;
  llvm::Type* pointer = llvm::PointerType::getUnqual(context_);
  std::vector<llvm::Type*> types{pointer};
  for (const Ref<tir::Buffer>& buffer : function.buffers)
    if (buffer) types.push_back(pointer);
  for (const Ref<Var>& symbol : info.symbols)
    types.push_back(register_type(symbol->dtype, function.origin));
  for (size_t i = 0; i < function.params.size(); ++i)
    if (!function.buffers[i])
      types.push_back(register_type(function.params[i]->dtype, function.origin));
  if (info.uses_constants) types.push_back(pointer);
  if (!function.result.is_void()) types.push_back(pointer);
  auto* type = llvm::FunctionType::get(llvm::Type::getInt32Ty(context_), types, false);
  // With a prefix: a kernel may be called `exp` or `memcpy`.
  info.code = llvm::Function::Create(type, llvm::Function::InternalLinkage, "fn." + info.name,
                                     llvm_module_.get());
  set_attributes(*info.code);
  if (info.scheduled) info.code->addFnAttr(kScheduledAttribute);
  if (info.name != entry_.name) info.code->addFnAttr(llvm::Attribute::NoInline);
  info.code->addParamAttr(0, llvm::Attribute::NoAlias);

  // Which parameters are written decides `readonly`.
  std::unordered_set<const Node*> written;
  walk(function.body, [&](const NodePtr& node) {
    if (const auto* store = node.as<tir::BufferStore>()) written.insert(store->buffer.get());
    if (const auto* region = node.as<tir::BufferRegion>()) written.insert(region->buffer.get());
    if (const auto* view = node.as<tir::DeclBuffer>())  // through the view, perhaps
      if (const auto* data = view->data.as<Var>()) written.insert(data);
    if (const auto* call = node.as<Call>(); call && call->op && call->op->effect == Effect::kOpaque)
      for (const NodePtr& arg : call->args) {
        if (const auto* element = arg.as<tir::BufferLoad>()) written.insert(element->buffer.get());
        if (arg.as<Var>() || arg.as<tir::Buffer>()) written.insert(arg.get());
      }
    if (const auto* call = node.as<Call>(); call && call->is(IntrinsicId::kAddressOf))
      if (const auto* element = call->args[0].as<tir::BufferLoad>())
        written.insert(element->buffer.get());
    if (const auto* call = node.as<Call>(); call && call->is(IntrinsicId::kTvmAccessPtr))
      written.insert(call->args[1].get());
  });
  unsigned index = 1;
  for (const Ref<tir::Buffer>& buffer : function.buffers) {
    if (!buffer) continue;
    // Every parameter is its own memory: what is in place is one parameter.
    info.code->addParamAttr(index, llvm::Attribute::NoAlias);
    info.code->addParamAttr(index, llvm::Attribute::NoUndef);
    if (!written.count(buffer.get()) && !written.count(buffer->data.get()))
      info.code->addParamAttr(index, llvm::Attribute::ReadOnly);
    const auto shape = as_ints(buffer->shape);
    const auto strides =
        as_ints(buffer->is_compact() ? tir::compact_strides(buffer->shape) : buffer->strides);
    if (shape && strides) {
      int64_t last = 0;
      bool dense = true;
      for (size_t i = 0; i < shape->size(); ++i) {
        if ((*shape)[i] <= 0 || (*strides)[i] < 0) dense = false;
        if (dense) last += ((*shape)[i] - 1) * (*strides)[i];
      }
      if (dense)
        info.code->addDereferenceableParamAttr(
            index, static_cast<uint64_t>((last + 1) * buffer->dtype.bytes()));
    }
    ++index;
  }
}

std::unique_ptr<llvm::Module> ModuleCodegen::run() {
  llvm_module_ = std::make_unique<llvm::Module>(options_.name, context_);
  llvm_module_->setTargetTriple(triple_of(target_));
  llvm_module_->setSourceFileName(options_.name);
  llvm_module_->setPICLevel(llvm::PICLevel::BigPIC);
  for (FunctionInfo& info : functions_) declare(info);
  for (FunctionInfo& info : functions_) {
    check_interrupt();
    FunctionCodegen(*this, info, info.code).define();
  }
  define_program();
  return std::move(llvm_module_);
}

}  // namespace tenon::llvm_backend
