#include "tenon/graph/extern_call.h"

#include <set>

namespace tenon::graph {

using tir::Buffer;
using tir::ExternFunction;
using tir::ParamUse;

std::vector<ExternSlot> extern_slots(const ExternFunction& function) {
  std::set<const Node*> dimensions;
  for (const Ref<Buffer>& buffer : function.buffers)
    if (buffer)
      for (const Expr& dim : buffer->shape) dimensions.insert(dim.get());
  std::vector<ExternSlot> slots;
  size_t arguments = 0, outputs = 0;
  using From = ExternSlot::From;
  for (size_t i = 0; i < function.params.size(); ++i) {
    if (!function.buffers[i]) {
      if (dimensions.count(function.params[i].get()))
        slots.push_back({From::kDimension});
      else
        slots.push_back({From::kArgument, arguments++});
      continue;
    }
    switch (function.uses[i]) {
      case ParamUse::kIn: slots.push_back({From::kArgument, arguments++}); break;
      case ParamUse::kOut: slots.push_back({From::kOutput, outputs++}); break;
      case ParamUse::kScratch: slots.push_back({From::kScratch}); break;
      case ParamUse::kInOut:
        throw CompileError(kUnsupported, function.origin,
                           "parameter `{}` of extern function `{}` is inout; values of a graph are "
                           "never changed, so only a PrimFunc can call it",
                           function.buffers[i]->name, function.symbol);
    }
  }
  return slots;
}

std::string symbol_of(const IRModule& module, const Call& call) {
  const Value& callee = call.args.at(0);
  if (const auto* external = callee.as<ExternRef>()) return external->symbol;
  if (const auto* text = callee.as<StringValue>()) return text->value;
  const auto* ref = callee.as<FuncRef>();
  const BaseFunc function = ref ? module.find(ref->name) : BaseFunc();
  if (const auto* declared = function.as<ExternFunction>()) return declared->symbol;
  if (const auto* undeclared = function.as<ExternFunc>()) return undeclared->symbol;
  throw CompileError(kUnknownCallee, call.origin,
                     "R.call_dps_packed of `{}`, which is no extern function; R.call_tir calls a "
                     "PrimFunc",
                     ref ? ref->name : "a value");
}

std::optional<tir::Callee> declared_callee(const IRModule& module, const Call& call) {
  const auto* ref = call.args.at(0).as<FuncRef>();
  if (const auto named = ref ? module.find<ExternFunction>(ref->name) : nullptr)
    return tir::callee_of(ref->name, named);
  const std::string symbol = symbol_of(module, call);
  for (const auto& [name, function] : module.functions())
    if (const auto declared = cast<ExternFunction>(function);
        declared && declared->symbol == symbol && !declared->attrs.flag("derived"))
      return tir::callee_of(name, declared);
  return std::nullopt;
}

std::vector<Type> output_types(const Call& call) {
  std::vector<Type> types = call.type_args;
  if (types.size() == 1)
    if (const auto* tuple = types[0].as<TupleType>()) return tuple->types;
  return types;
}

std::vector<Value> extern_arguments(const Call& call) {
  if (call.args.size() < 2) return {};
  if (const auto* tuple = call.args[1].as<Tuple>()) return tuple->values;
  return {call.args.begin() + 1, call.args.end()};
}

namespace {

// Parameters with names of their own, and dimensions by what they were.
class Derivation {
 public:
  Derivation(std::string symbol, Origin origin)
      : symbol_(std::move(symbol)), origin_(std::move(origin)) {}

  void add(const std::string& name, const Type& type, ParamUse use) {
    if (const auto* scalar = type.as<PrimType>()) {
      parts_.params.push_back(make<tenon::Var>(unique(name), scalar->dtype));
      parts_.buffers.emplace_back();
      parts_.uses.push_back(ParamUse::kIn);
      return;
    }
    const auto* tensor = type.as<TensorType>();
    if (!tensor || !tensor->shape || tensor->dtype.is_void())
      throw CompileError(kUnsupported, origin_,
                         "library function `{}` is given a value of type {}; its signature cannot "
                         "be derived from that, declare it under @T.extern_func",
                         symbol_, str(type));
    std::vector<Expr> shape;
    for (const Expr& dim : *tensor->shape) shape.push_back(dimension(dim));
    Buffer::Options options;
    options.alignment = std::max<int64_t>(1, tensor->dtype.bytes());
    parts_.buffers.push_back(make<Buffer>(unique(name), tensor->dtype, shape, options));
    parts_.params.push_back(make<tenon::Var>(parts_.buffers.back()->name + "_handle", kHandle));
    parts_.uses.push_back(use);
  }

  Ref<ExternFunction> finish() {
    return make<ExternFunction>(symbol_, std::move(parts_), Attrs{{"derived", true}}, origin_);
  }

 private:
  Expr dimension(const Expr& dim) {
    if (as_int(dim)) return dim;
    for (const auto& [known, var] : dimensions_)
      if (structural_equal(known, dim)) return var;
    const auto* named = dim.as<tenon::Var>();
    dimensions_.emplace_back(dim, tenon::Var::size(unique(named ? named->name : "d")));
    return dimensions_.back().second;
  }
  std::string unique(const std::string& name) {
    std::string taken = name;
    for (int n = 1; !names_.insert(taken).second; ++n) taken = fmt::format("{}_{}", name, n);
    return taken;
  }

  std::string symbol_;
  Origin origin_;
  ExternFunction::Parts parts_;
  std::vector<std::pair<Expr, Expr>> dimensions_;
  std::set<std::string> names_;
};

}  // namespace

Ref<ExternFunction> derived_function(const std::string& symbol, const std::vector<Value>& arguments,
                                     const std::vector<Type>& outputs, const Origin& origin) {
  Derivation derivation(symbol, origin);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* var = arguments[i].as<Var>();
    derivation.add(var ? var->name : fmt::format("x{}", i), type_of(arguments[i]), ParamUse::kIn);
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    derivation.add(outputs.size() == 1 ? "output" : fmt::format("output_{}", i), outputs[i],
                   ParamUse::kOut);
  return derivation.finish();
}

std::string add_extern_function(IRModule& module, const Ref<ExternFunction>& function) {
  for (const auto& [name, known] : module.functions())
    if (const auto* same = known.as<ExternFunction>();
        same && same->symbol == function->symbol && structural_equal(known, function))
      return name;
  return module.add_unique(function->symbol, function);
}

}  // namespace tenon::graph
