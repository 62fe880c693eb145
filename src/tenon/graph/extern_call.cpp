// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/extern_call.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/op.h"
#include "tenon/support/names.h"

namespace tenon::graph {

using tir::Buffer;
using tir::ExternFunction;
using tir::ParamUse;

std::vector<size_t> ForeignCall::fresh_outputs() const {
  std::vector<size_t> fresh;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (in_place.empty() || in_place[i] == kFresh) fresh.push_back(i);
  return fresh;
}

std::optional<ForeignCall> foreign_call(const Call& call) {
  using Form = ForeignCall::Form;
  ForeignCall out;
  if (!call.op) {
    if (!call.callee.as<ExternRef>()) return std::nullopt;
    out.form = Form::kPacked;
    out.arguments = call.args;
  } else if (call.is("call_dps_packed")) {
    if (call.args.size() > 1) {
      const auto* tuple = call.args[1].as<Tuple>();
      out.arguments =
          tuple ? tuple->values : std::vector<Value>(call.args.begin() + 1, call.args.end());
    }
  } else if (call.is("call_pure_packed") || call.is("call_inplace_packed")) {
    out.form = call.is("call_pure_packed") ? Form::kPurePacked : Form::kInPlace;
    out.arguments.assign(call.args.begin() + 1, call.args.end());
  } else {
    return std::nullopt;
  }
  out.outputs = call.type_args;
  if (out.outputs.size() == 1)
    if (const auto* tuple = out.outputs[0].as<TupleType>()) {
      const std::vector<Type> types = tuple->types;
      out.outputs = types;
    }
  // What nobody can look into is nothing that the program has to hold.
  if (out.is_packed() && out.outputs.size() == 1 && out.outputs[0].as<ObjectType>())
    out.outputs.clear();
  if (out.form != Form::kInPlace) return out;
  out.in_place = in_place_indices(call, out.outputs.size(), out.arguments.size());
  return out;
}

std::vector<size_t> in_place_indices(const Call& call, size_t outputs, size_t arguments) {
  std::vector<size_t> places(outputs, ForeignCall::kFresh);
  if (!call.is("call_inplace_packed") && !call.is("call_tir_inplace")) return places;
  const auto* indices = call.attrs.find("inplace_indices");
  const auto given = indices ? indices->as<AttrList>() : nullptr;
  if (!given || given->size() != outputs)
    throw CompileError(kBadAttribute, call.origin,
                       "`inplace_indices` of {} has {} items for {} outputs", call.op->name,
                       given ? given->size() : 0, outputs);
  std::set<int64_t> seen;
  for (size_t i = 0; i < outputs; ++i) {
    const AttrValue& item = (*given)[i];
    const auto* index = item.as<int64_t>();
    const bool is_fresh = index && *index == -1;
    if (!index || *index < -1 || *index >= static_cast<int64_t>(arguments) ||
        (!is_fresh && !seen.insert(*index).second))
      throw CompileError(kBadAttribute, call.origin,
                         "`inplace_indices` of {} has item {}; expected -1 or an argument, 0 to "
                         "{}, each once",
                         call.op->name, item.str(), static_cast<int64_t>(arguments) - 1);
    if (!is_fresh) places[i] = static_cast<size_t>(*index);
  }
  return places;
}

std::vector<Type> output_types(const Call& call) {
  if (call.type_args.size() == 1)
    if (const auto* several = call.type_args[0].as<TupleType>()) return several->types;
  return call.type_args;
}

std::vector<ExternSlot> extern_slots(const ExternFunction& function, ForeignCall::Form form) {
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
        if (form == ForeignCall::Form::kInPlace) {
          slots.push_back({From::kInPlace, arguments++});
          break;
        }
        throw CompileError(kUnsupported, function.origin,
                           "parameter `{}` of extern function `{}` is inout; values of a graph are "
                           "never changed, so only a PrimFunc can call it",
                           function.buffers[i]->name, function.symbol);
    }
  }
  return slots;
}

std::string symbol_of(const IRModule& module, const Call& call) {
  const Value& callee = call.op ? call.args.at(0) : call.callee;
  if (const auto* external = callee.as<ExternRef>()) return external->symbol;
  if (const auto* text = callee.as<StringValue>()) return text->value;
  const auto* ref = callee.as<FuncRef>();
  const BaseFunc function = ref ? module.find(ref->name) : BaseFunc();
  if (const auto* declared = function.as<ExternFunction>()) return declared->symbol;
  if (const auto* undeclared = function.as<ExternFunc>()) return undeclared->symbol;
  throw CompileError(kUnknownCallee, call.origin,
                     "R.{} of `{}`, which is no extern function; R.call_tir calls a PrimFunc",
                     call.op ? call.op->name : "call_packed", ref ? ref->name : "a value");
}

std::optional<tir::Callee> declared_callee(const IRModule& module, const Call& call) {
  const bool packed = !call.is("call_dps_packed");
  const auto* ref = call.op ? call.args.at(0).as<FuncRef>() : nullptr;
  const std::string symbol = symbol_of(module, call);
  for (const auto& [name, function] : module.functions()) {
    const auto declared = cast<ExternFunction>(function);
    const bool is_it =
        declared &&
        (ref ? name == ref->name : declared->symbol == symbol && !declared->attrs.flag("derived"));
    if (!is_it) continue;
    if (packed && !declared->is_packed)
      throw CompileError(kBadArgument, call.origin,
                         "R.{} of `{}`, which is declared as a C function; R.call_dps_packed calls "
                         "it, or declare it with `\"packed\": True`",
                         call.op ? call.op->name : "call_packed", symbol)
          .note(declared->origin, "it is `{}`", declared->prototype());
    return tir::callee_of(name, declared);
  }
  return std::nullopt;
}

namespace {

// Parameters with names of their own, and dimensions by what they were.
class Derivation {
 public:
  Derivation(std::string symbol, Origin origin)
      : symbol_(std::move(symbol)), origin_(std::move(origin)) {}

  void add_text(const std::string& name) {
    parts_.params.push_back(make<tenon::Var>(names_.take(name), kHandle));
    parts_.buffers.emplace_back();
    parts_.uses.push_back(ParamUse::kIn);
  }

  void add(const std::string& name, const Type& type, ParamUse use) {
    if (const auto* scalar = type.as<PrimType>(); scalar && use == ParamUse::kIn) {
      parts_.params.push_back(make<tenon::Var>(names_.take(name), scalar->dtype));
      parts_.buffers.emplace_back();
      parts_.uses.push_back(ParamUse::kIn);
      return;
    }
    const auto* tensor = type.as<TensorType>();
    if (!tensor || !tensor->shape || tensor->dtype.is_void())
      throw CompileError(kUnsupported, origin_,
                         "library function `{}` {} a value of type {}; its signature cannot be "
                         "derived from that: expected tensors of known shape{}",
                         symbol_, use == ParamUse::kOut ? "gives" : "is given", str(type),
                         use == ParamUse::kOut ? "" : ", scalars or texts");
    std::vector<Expr> shape;
    for (const Expr& dim : *tensor->shape) shape.push_back(dimension(dim));
    Buffer::Options options;
    options.alignment = std::max<int64_t>(1, tensor->dtype.bytes());
    parts_.buffers.push_back(make<Buffer>(names_.take(name), tensor->dtype, shape, options));
    parts_.params.push_back(make<tenon::Var>(parts_.buffers.back()->name + "_handle", kHandle));
    parts_.uses.push_back(use);
  }

  Ref<ExternFunction> finish(const ForeignCall& call) {
    parts_.is_packed = call.is_packed();
    parts_.is_pure = call.form != ForeignCall::Form::kPacked;
    return make<ExternFunction>(symbol_, std::move(parts_), Attrs{{"derived", true}}, origin_);
  }

 private:
  Expr dimension(const Expr& dim) {
    if (as_int(dim)) return dim;
    for (const auto& [known, var] : dimensions_)
      if (structural_equal(known, dim)) return var;
    const auto* named = dim.as<tenon::Var>();
    dimensions_.emplace_back(dim, tenon::Var::size(names_.take(named ? named->name : "d")));
    return dimensions_.back().second;
  }

  std::string symbol_;
  Origin origin_;
  ExternFunction::Parts parts_;
  std::vector<std::pair<Expr, Expr>> dimensions_;
  NameSupply names_;
};

}  // namespace

Ref<ExternFunction> derived_function(const std::string& symbol, const ForeignCall& call,
                                     const Origin& origin) {
  Derivation derivation(symbol, origin);
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    const Value& argument = call.arguments[i];
    const auto* var = argument.as<Var>();
    const std::string name = var ? var->name : fmt::format("x{}", i);
    if (argument.as<StringValue>()) {
      derivation.add_text(name);
      continue;
    }
    const bool changes =
        std::find(call.in_place.begin(), call.in_place.end(), i) != call.in_place.end();
    derivation.add(name, type_of(argument), changes ? ParamUse::kInOut : ParamUse::kIn);
  }
  const std::vector<size_t> fresh = call.fresh_outputs();
  for (size_t i = 0; i < fresh.size(); ++i)
    derivation.add(fresh.size() == 1 ? "output" : fmt::format("output_{}", i),
                   call.outputs[fresh[i]], ParamUse::kOut);
  return derivation.finish(call);
}

std::string add_extern_function(IRModule& module, const Ref<ExternFunction>& function) {
  for (const auto& [name, known] : module.functions())
    if (const auto* same = known.as<ExternFunction>();
        same && same->symbol == function->symbol && structural_equal(known, function))
      return name;
  std::string name = function->symbol;  // of a packed function: any text
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  if (std::isdigit(static_cast<unsigned char>(name[0]))) name = "f_" + name;
  return module.add_unique(name, function);
}

void check_extern_argument(const tir::ExternFunction& function, size_t i, const NodePtr& arg,
                           const Substitution& bound, const Origin& origin) {
  const Ref<tir::Buffer>& declared = function.buffers[i];
  const auto* region = arg.as<tir::BufferRegion>();
  if (static_cast<bool>(declared) != (region != nullptr))
    throw CompileError(kBadArgument, origin,
                       "library function `{}` is given a {} for parameter `{}`", function.symbol,
                       region ? "tensor" : "scalar",
                       declared ? declared->name : function.params[i]->name)
        .note(function.origin, "it is `{}`", function.prototype());
  if (!declared) return;
  const tir::Buffer& given = *region->buffer;
  bool fits = given.dtype == declared->dtype && given.ndim() == declared->ndim();
  for (size_t d = 0; fits && d < given.ndim(); ++d) {
    const auto wanted = as_int(arith::simplify(substitute(declared->shape[d], bound)));
    const auto is = as_int(given.shape[d]);
    fits = !wanted || !is || *wanted == *is;
  }
  if (fits) return;
  throw CompileError(kRegionMismatch, origin,
                     "library function `{}` is given `{}`, {} of shape {}, for parameter `{}`, "
                     "{} of shape {}",
                     function.symbol, given.name, given.dtype.str(), tenon::str(given.shape),
                     declared->name, declared->dtype.str(), tenon::str(declared->shape))
      .note(function.origin, "it is `{}`", function.prototype());
}

}  // namespace tenon::graph
