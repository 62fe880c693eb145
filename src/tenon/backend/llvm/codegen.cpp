// The module: which functions, in which order, with which signatures; types, attributes, constants.
#include "tenon/backend/llvm/codegen.h"

#include <algorithm>

namespace tenon::llvm_backend {

ModuleCodegen::ModuleCodegen(const IRModule& module, const Target& target,
                             const CompileOptions& options, llvm::LLVMContext& context,
                             bool converts_halves)
    : module_(module),
      target_(target),
      options_(options),
      context_(context),
      converts_halves_(converts_halves) {}

llvm::Type* ModuleCodegen::register_type(DType dtype, const Origin& origin) {
  llvm::Type* element = nullptr;
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
  if (!element || (dtype.is_integer() && dtype.bits % 8 != 0))
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

// Constants are laid out in the order of first use. The same node needs no look at its content.
int64_t ModuleCodegen::constant_offset(const Ref<TensorData>& data) {
  const auto known = constant_by_node_.find(data.get());
  if (known != constant_by_node_.end()) return known->second;
  // The shape does not matter to the bytes, but to the hash; equal shapes are the common case.
  const auto [it, is_new] = constant_by_hash_.emplace(data->content_hash(), constants_.bytes);
  if (is_new) {
    constants_.items.push_back({data, constants_.bytes});
    constants_.bytes += (std::max<int64_t>(data->bytes(), 1) + kConstantAlignment - 1) /
                        kConstantAlignment * kConstantAlignment;
  }
  constant_by_node_.emplace(data.get(), it->second);
  return it->second;
}

const FunctionInfo& ModuleCodegen::callee(const std::string& name, const Origin& origin) const {
  const auto it = index_.find(name);
  if (it == index_.end())
    throw CompileError(kUnknownCallee, origin, "the module has no PrimFunc `{}`", name);
  return functions_[it->second];
}

// Adds `name` after all that it calls. Functions of equal structure are generated once.
void ModuleCodegen::collect(const std::string& name, const Origin& origin) {
  if (index_.count(name)) return;
  if (std::find(stack_.begin(), stack_.end(), name) != stack_.end())
    throw CompileError(kRecursion, origin, "PrimFunc `{}` calls itself", name);
  const auto function = module_.find<tir::PrimFunc>(name);
  if (!function) {
    if (module_.contains(name))
      throw CompileError(kUnsupported, origin,
                         "`{}` is not a PrimFunc; calls of it have no native code", name);
    throw CompileError(kUnknownCallee, origin, "the module has no function `{}`", name);
  }
  stack_.push_back(name);
  FunctionInfo info;
  info.function = function;
  info.name = name;
  info.symbols = tir::symbolic_vars(*function);
  info.scheduled = function->attrs.flag("tir.is_scheduled");
  std::vector<std::pair<std::string, Origin>> callees;
  walk(function->body, [&](const NodePtr& node) {
    if (const auto* call = node.as<tir::CallTir>())
      callees.emplace_back(call->callee->name, call->origin);
    if (node.as<tir::Assert>()) info.can_fail = true;
    if (node.as<tir::AllocConst>()) info.uses_constants = true;
    if (const auto* op = node.as<Binary>())
      info.can_fail |= op->op >= BinaryOp::kDiv && op->op <= BinaryOp::kFloorMod &&
                       op->lhs->dtype.is_integer() && !as_int(op->rhs);
    // A parallel loop can fail on the host's side too.
    if (const auto* loop = node.as<tir::For>())
      info.can_fail |= loop->kind == tir::ForKind::kParallel;
  });
  for (const auto& [callee_name, place] : callees) {
    collect(callee_name, place);
    const FunctionInfo& inner = callee(callee_name, place);
    info.can_fail |= inner.can_fail;
    info.uses_constants |= inner.uses_constants;
  }
  stack_.pop_back();
  const bool is_entry = name == entry_;
  const uint64_t hash = structural_hash(function);
  if (!is_entry) {
    for (const size_t other : by_hash_[hash])
      if (structural_equal(functions_[other].function, function)) {
        index_.emplace(name, other);
        return;
      }
    by_hash_[hash].push_back(functions_.size());
  }
  index_.emplace(name, functions_.size());
  functions_.push_back(std::move(info));
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
  auto* type = llvm::FunctionType::get(llvm::Type::getInt32Ty(context_), types, false);
  // With a prefix: a kernel may be called `exp` or `memcpy`.
  info.code = llvm::Function::Create(type, llvm::Function::InternalLinkage, "fn." + info.name,
                                     llvm_module_.get());
  set_attributes(*info.code);
  if (info.scheduled) info.code->addFnAttr(kScheduledAttribute);
  if (info.name != entry_) info.code->addFnAttr(llvm::Attribute::NoInline);
  info.code->addParamAttr(0, llvm::Attribute::NoAlias);

  // Which parameters are written decides `readonly`.
  std::unordered_set<const Node*> written;
  walk(function.body, [&](const NodePtr& node) {
    if (const auto* store = node.as<tir::BufferStore>()) written.insert(store->buffer.get());
    if (const auto* region = node.as<tir::BufferRegion>()) written.insert(region->buffer.get());
    if (const auto* view = node.as<tir::DeclBuffer>())  // through the view, perhaps
      if (const auto* data = view->data.as<Var>()) written.insert(data);
    if (const auto* call = node.as<Call>(); call && call->op && call->op->effect == Effect::kOpaque)
      for (const NodePtr& arg : call->args)
        if (const auto* element = arg.as<tir::BufferLoad>()) written.insert(element->buffer.get());
    if (const auto* call = node.as<Call>(); call && call->is("address_of"))
      if (const auto* element = call->args[0].as<tir::BufferLoad>())
        written.insert(element->buffer.get());
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
  llvm_module_->setTargetTriple("x86_64-unknown-linux-gnu");
  llvm_module_->setSourceFileName(options_.name);
  llvm_module_->setPICLevel(llvm::PICLevel::BigPIC);
  for (const auto& [name, function] : module_.functions()) {
    const auto prim = cast<tir::PrimFunc>(function);
    if (!prim || !prim->attrs.flag("tenon.entry")) continue;
    if (!entry_.empty())
      throw CompileError(kWrongForm, prim->origin, "PrimFuncs `{}` and `{}` are both the entry",
                         entry_, name);
    entry_ = name;
  }
  if (entry_.empty())
    throw CompileError(kWrongForm, {}, "the module has no entry PrimFunc (tenon.entry)");
  collect(entry_, module_.find(entry_)->origin);
  for (FunctionInfo& info : functions_) declare(info);
  for (FunctionInfo& info : functions_) FunctionCodegen(*this, info, info.code).define();
  define_program();
  return std::move(llvm_module_);
}

}  // namespace tenon::llvm_backend
