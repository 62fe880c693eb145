// SPDX-License-Identifier: Apache-2.0
// Calls of kernels and of foreign functions in a lowered graph function, with the memory that they
// ask for.
#include <algorithm>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/op.h"
#include "tenon/graph/transforms/lowering.h"
#include "tenon/tir/call_body.h"
#include "tenon/tir/scratch_query.h"

namespace tenon::graph {

using tir::AllocBuffer;
using tir::AllocConst;
using tir::Buffer;
using tir::BufferRegion;
using tir::CallTir;
using tir::PrimFunc;
using tir::Stmt;

void Lowering::call_tir(const Binding& binding, const Call& call, const Origin& origin) {
  const auto* ref = call.args.at(0).as<FuncRef>();
  if (!ref || !module_.find<PrimFunc>(ref->name))
    throw CompileError(kUnknownCallee, origin,
                       "R.call_tir of `{}`, which is no PrimFunc of the module",
                       ref ? ref->name : "a value");
  std::vector<NodePtr> args;
  const auto& inputs = call.args.at(1).as<Tuple>()->values;
  const std::vector<Type> types = output_types(call);
  const std::vector<size_t> places = in_place_indices(call, types.size(), inputs.size());
  Storage storage;
  storage.is_tuple = call.type_args.size() != 1 || call.type_args[0].as<TupleType>();
  for (size_t i = 0; i < types.size(); ++i)
    storage.buffers.push_back(
        places[i] == kFresh
            ? output_place(binding, storage.is_tuple, i, types[i], origin)
            : changed_place(binding, storage.is_tuple, i, types[i], inputs[places[i]], origin));
  for (size_t j = 0; j < inputs.size(); ++j) {
    const auto output =
        static_cast<size_t>(std::find(places.begin(), places.end(), j) - places.begin());
    args.push_back(BufferRegion::whole(output < places.size() ? storage.buffers[output]
                                                              : buffer_of(inputs[j])));
  }
  for (size_t i = 0; i < types.size(); ++i)
    if (places[i] == kFresh) args.push_back(BufferRegion::whole(storage.buffers[i]));
  if (call.args.size() > 2)
    if (const auto* dims = call.args[2].as<ShapeExpr>())
      for (const Expr& value : dims->values) args.push_back(value);
  const auto callee = module_.find<PrimFunc>(ref->name);
  align(ref->name, args);
  if (callee->attrs.flag("tenon.inline"))
    inline_body(callee, args, origin);
  else
    stmts_.push_back(make<CallTir>(make<GlobalVar>(ref->name), std::move(args), Attrs(), origin));
  storage_[binding.var.get()] = std::move(storage);
}

Ref<Buffer> Lowering::output_place(const Binding& binding, bool is_tuple, size_t i,
                                   const Type& type, const Origin& origin) {
  const std::string name =
      is_tuple ? fmt::format("{}_{}", binding.var->name, i) : binding.var->name;
  return storage_for(binding.var.get(), static_cast<int64_t>(i), name, type, origin);
}

Ref<Buffer> Lowering::changed_place(const Binding& binding, bool is_tuple, size_t i,
                                    const Type& type, const Value& argument, const Origin& origin) {
  const Ref<Buffer> source = buffer_of(argument);
  const bool is_same = is_shape_of(*source, type);
  if (is_same && lifetimes_.ends_in(binding, argument)) return source;
  const Ref<Buffer> place = output_place(binding, is_tuple, i, type, origin);
  copy(source, place);
  return place;
}

bool Lowering::is_shape_of(const Buffer& buffer, const Type& type) {
  const auto* tensor = type.as<TensorType>();
  return tensor && tensor->shape && tensor->dtype == buffer.dtype &&
         std::equal(tensor->shape->begin(), tensor->shape->end(), buffer.shape.begin(),
                    buffer.shape.end(),
                    [](const Expr& a, const Expr& b) { return structural_equal(a, b); });
}

void Lowering::call_extern(const Binding& binding, const Call& call, const ForeignCall& foreign,
                           const Origin& origin) {
  std::optional<tir::Callee> callee = declared_callee(module_, call);
  const std::vector<Value>& arguments = foreign.arguments;
  if (!callee) {
    const auto derived = derived_function(symbol_of(module_, call), foreign, origin);
    const std::string name = add_extern_function(module_, derived);
    callee = tir::callee_of(name, module_.find<tir::ExternFunction>(name));
  }
  const tir::ExternFunction& function = *callee->external();
  const std::vector<ExternSlot> slots = extern_slots(function, foreign.form);
  const std::vector<size_t> fresh = foreign.fresh_outputs();
  using From = ExternSlot::From;
  const auto count = [&](From from) {
    return static_cast<size_t>(std::count_if(
        slots.begin(), slots.end(), [&](const ExternSlot& slot) { return slot.from == from; }));
  };
  const size_t taken = count(From::kArgument) + count(From::kInPlace);
  if (arguments.size() != taken || fresh.size() != count(From::kOutput) ||
      foreign.outputs.size() - fresh.size() != count(From::kInPlace))
    throw CompileError(kBadArgument, origin,
                       "library function `{}` is called with {} arguments for {} outputs; it has "
                       "{} and {}",
                       function.symbol, arguments.size(), foreign.outputs.size(), taken,
                       count(From::kOutput) + count(From::kInPlace))
        .note(function.origin, "it is `{}`", function.prototype());
  Storage storage;
  storage.is_tuple = call.type_args.size() != 1 || call.type_args[0].as<TupleType>();
  storage.buffers.resize(foreign.outputs.size());
  for (const size_t i : fresh)
    storage.buffers[i] = output_place(binding, storage.is_tuple, i, foreign.outputs[i], origin);
  for (size_t i = 0; i < foreign.in_place.size(); ++i)
    if (foreign.in_place[i] != ForeignCall::kFresh)
      storage.buffers[i] = changed_place(binding, storage.is_tuple, i, foreign.outputs[i],
                                         arguments[foreign.in_place[i]], origin);
  std::vector<NodePtr> args(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].from == From::kOutput)
      args[i] = BufferRegion::whole(storage.buffers[fresh[slots[i].index]]);
    if (slots[i].from == From::kInPlace) {
      size_t output = 0;
      while (output < foreign.in_place.size() && foreign.in_place[output] != slots[i].index)
        ++output;
      if (output == foreign.in_place.size())
        throw CompileError(kBadArgument, origin,
                           "library function `{}` changes argument {}, which "
                           "`inplace_indices` does not name",
                           function.symbol, slots[i].index)
            .note(function.origin, "it is `{}`", function.prototype());
      args[i] = BufferRegion::whole(storage.buffers[output]);
    }
    if (slots[i].from != From::kArgument) continue;
    const Value& value = arguments[slots[i].index];
    if (const auto* scalar = value.as<PrimValue>()) {
      const DType wanted = function.params[i]->dtype;
      args[i] = function.buffers[i] ? scalar->value : tenon::cast(wanted, scalar->value);
    } else if (const auto* text = value.as<StringValue>()) {
      args[i] = make<StringImm>(text->value, origin);
    } else {
      args[i] = BufferRegion::whole(buffer_of(value));
    }
  }
  // Dimensions and scratch follow from these.
  Substitution bound = tir::bind_symbols(*callee, args);
  tir::bind_scratch(function, args, bound);
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].from == From::kDimension) {
      const auto it = bound.find(function.params[i].get());
      if (it == bound.end())
        throw CompileError(kShapeMismatch, origin,
                           "dimension `{}` of library function `{}` follows from no argument",
                           function.params[i]->name, function.symbol);
      args[i] = it->second;
    }
    if (slots[i].from == From::kScratch) args[i] = scratch(function, i, bound, origin);
  }
  for (size_t i = 0; i < args.size(); ++i)
    check_extern_argument(function, i, args[i], bound, origin);
  align(callee->name, args);
  stmts_.push_back(make<CallTir>(make<GlobalVar>(callee->name), std::move(args), Attrs(), origin));
  storage_[binding.var.get()] = std::move(storage);
}

void Lowering::align(const std::string& callee, const std::vector<NodePtr>& args) {
  for (size_t i = 0; i < args.size(); ++i) {
    const auto* region = args[i].as<BufferRegion>();
    const int64_t needed = region ? needed_alignments_.of(callee, i) : 1;
    if (needed <= tir::kMemoryAlignment) continue;
    int64_t& known = alignments_[root_of(region->buffer)];
    known = std::max(known, needed);
  }
}

void Lowering::align_memory(std::vector<Ref<Buffer>>& params, std::vector<Stmt>& body) {
  if (alignments_.empty()) return;
  Substitution aligned;
  const auto change = [&](const Ref<Buffer>& buffer) {
    const auto asked = alignments_.find(buffer.get());
    if (asked == alignments_.end() || asked->second <= buffer->alignment) return;
    aligned.emplace(buffer.get(),
                    with(buffer, [&](Buffer& copy) { copy.alignment = asked->second; }));
  };
  for (const Ref<Buffer>& param : params) change(param);
  for (const Stmt& stmt : body) {
    walk<AllocBuffer>(stmt, [&](const AllocBuffer& alloc) { change(alloc.buffer); });
    if (const auto* constant = stmt.as<AllocConst>()) change(constant->buffer);
  }
  if (aligned.empty()) return;
  for (Ref<Buffer>& param : params) param = substitute(param, aligned);
  for (Stmt& stmt : body) stmt = substitute(stmt, aligned);
}

void Lowering::inline_body(const Ref<PrimFunc>& callee, const std::vector<NodePtr>& args,
                           const Origin& origin) {
  const Substitution values = tir::bind_symbols(tir::callee_of("", callee), args);
  for (size_t i = 0; i < args.size(); ++i) {
    const Ref<Buffer>& param = callee->buffers[i];
    const auto* region = args[i].as<BufferRegion>();
    if (!param || !region) continue;
    bool same = param->shape.size() == region->buffer->shape.size();
    for (size_t d = 0; same && d < param->shape.size(); ++d)
      same = structural_equal(substitute(param->shape[d], values), region->buffer->shape[d]);
    if (!same)
      throw CompileError(kRegionMismatch, origin, "argument {} has shape {}; the callee's has {}",
                         i + 1, tenon::str(region->buffer->shape), tenon::str(param->shape));
  }
  for (const Stmt& stmt : tir::stmts_of(tir::body_in_place(callee, args))) {
    if (const auto* alloc = stmt.as<AllocBuffer>()) names_.reserve(alloc->buffer->name);
    stmts_.push_back(stmt);
  }
}

NodePtr Lowering::scratch(const tir::ExternFunction& function, size_t i, const Substitution& bound,
                          const Origin& origin) {
  const Buffer& declared = *function.buffers[i];
  std::vector<Expr> shape;
  for (const Expr& dim : declared.shape) {
    walk<tenon::Var>(dim, [&](const tenon::Var& var) {
      if (!bound.count(&var))
        throw CompileError(kShapeMismatch, origin,
                           "dimension `{}` of scratch parameter `{}` of library function `{}` "
                           "follows from no argument",
                           var.name, declared.name, function.symbol)
            .note(declared.origin, "`{}` is declared here", declared.name);
    });
    shape.push_back(arith::simplify(substitute(dim, bound)));  // a number, where it is one
  }
  const auto buffer =
      make<Buffer>(names_.take(function.symbol + "_" + declared.name), declared.dtype, shape,
                   Buffer::Options{.alignment = std::max<int64_t>(64, declared.alignment)}, origin);
  stmts_.push_back(make<AllocBuffer>(buffer, Attrs(), origin));
  return BufferRegion::whole(buffer);
}

}  // namespace tenon::graph
