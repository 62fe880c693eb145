// SPDX-License-Identifier: Apache-2.0
// Generates the LLVM module: functions in order, signatures, types, attributes, constants.
#include "tenon/backend/llvm/codegen.h"

#include <algorithm>
#include <utility>

#include "tenon/backend/llvm/machine.h"
#include "tenon/support/interrupt.h"
#include "tenon/support/parallel.h"
#include "tenon/tir/transforms.h"

namespace tenon::llvm_backend {

// Which buffer parameters nothing writes.
static std::vector<bool> read_only_params(const tir::PrimFunc& function) {
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
  std::vector<bool> read_only;
  read_only.reserve(function.buffers.size());
  for (const Ref<tir::Buffer>& buffer : function.buffers)
    read_only.push_back(buffer && !written.count(buffer.get()) &&
                        !written.count(buffer->data.get()));
  return read_only;
}

ProgramFacts::ProgramFacts(const IRModule& module, const Target& target,
                           const CompileOptions& options, const Instructions& instructions)
    : module(module),
      target(target),
      options(options),
      instructions(instructions),
      entry(backend::entry_of(module)),
      program(module, entry.name) {
  for (const backend::ProgramFunction& function : program.all()) {
    FunctionInfo& info = functions.emplace_back();
    static_cast<backend::ProgramFunction&>(info) = function;
    info.can_fail |= info.has_parallel;  // a parallel loop can fail on the host's side too
    info.scheduled = function.function->attrs.flag("tir.is_scheduled");
  }
  for_each_in_parallel(functions.size(), [&](size_t i) {
    functions[i].read_only = read_only_params(*functions[i].function);
    functions[i].size = static_cast<size_t>(tir::unrolled_size(functions[i].function->body));
  });
  // In the order of first use.
  for (const FunctionInfo& info : functions)
    if (info.uses_constants)
      walk<tir::AllocConst>(info.function->body, [&](const tir::AllocConst& constant) {
        (void)constants.offset_of(constant.data, constant.buffer->alignment);
      });
  constants.align(entry.workspace_alignment);
}

// The largest first, each to the part that has least so far.
void ProgramFacts::divide() {
  // A part has at least so many nodes: below, what it shares with the others is not worth it.
  constexpr size_t kLeastNodes = 4000, kMostParts = 16;
  size_t total = 0;
  std::vector<size_t> order(functions.size());
  for (size_t i = 0; i < functions.size(); ++i) {
    total += functions[i].size;
    order[i] = i;
  }
  parts = std::clamp<size_t>(total / kLeastNodes, 1, kMostParts);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(functions[b].size, a) < std::pair(functions[a].size, b);
  });
  std::vector<size_t> loads(parts);
  for (const size_t i : order) {
    const auto least = std::min_element(loads.begin(), loads.end());
    functions[i].part = static_cast<size_t>(least - loads.begin());
    *least += functions[i].size;
  }
}

ModuleCodegen::ModuleCodegen(const ProgramFacts& facts, size_t part, llvm::LLVMContext& context)
    : facts_(facts), part_(part), context_(context), functions_(facts.functions) {}

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
  function.addFnAttr("target-cpu", facts_.target.cpu);
  if (!facts_.target.features.empty())
    function.addFnAttr("target-features", facts_.target.features);
  const std::string bits = std::to_string(facts_.target.vector_bits);
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

const FunctionInfo& ModuleCodegen::callee(const std::string& name, const Origin& origin) {
  FunctionInfo& info = functions_[facts_.program.index_of(name, origin)];
  if (!info.code) declare(info);
  return info;
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
  const bool is_shared = facts_.parts > 1;
  info.code = llvm::Function::Create(
      type, is_shared ? llvm::Function::ExternalLinkage : llvm::Function::InternalLinkage,
      "fn." + info.name, llvm_module_.get());
  if (is_shared) info.code->setVisibility(llvm::GlobalValue::HiddenVisibility);
  set_attributes(*info.code);
  if (info.scheduled) info.code->addFnAttr(kScheduledAttribute);
  if (info.name != entry().name) info.code->addFnAttr(llvm::Attribute::NoInline);
  info.code->addParamAttr(0, llvm::Attribute::NoAlias);

  unsigned index = 1;
  for (size_t i = 0; i < function.buffers.size(); ++i) {
    const Ref<tir::Buffer>& buffer = function.buffers[i];
    if (!buffer) continue;
    // Every parameter is its own memory: what is in place is one parameter.
    info.code->addParamAttr(index, llvm::Attribute::NoAlias);
    info.code->addParamAttr(index, llvm::Attribute::NoUndef);
    if (info.read_only[i]) info.code->addParamAttr(index, llvm::Attribute::ReadOnly);
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
  llvm_module_ = std::make_unique<llvm::Module>(facts_.options.name, context_);
  llvm_module_->setTargetTriple(triple_of(facts_.target));
  llvm_module_->setSourceFileName(facts_.options.name);
  llvm_module_->setPICLevel(llvm::PICLevel::BigPIC);
  for (FunctionInfo& info : functions_)
    if (info.part == part_) declare(info);
  for (FunctionInfo& info : functions_) {
    if (info.part != part_) continue;
    check_interrupt();
    const Ref<tir::PrimFunc> rolled = std::exchange(info.function, tir::unrolled(info.function));
    FunctionCodegen(*this, info, info.code).define();
    info.function = rolled;
  }
  if (part_ == 0) define_program();
  return std::move(llvm_module_);
}

}  // namespace tenon::llvm_backend
