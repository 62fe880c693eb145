// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/functions.h"

#include <algorithm>

#include "tenon/tir/callee.h"
#include "tenon/tir/scratch_query.h"

namespace tenon::backend {

ProgramFunctions::ProgramFunctions(const IRModule& module, const std::string& entry)
    : module_(module), entry_(entry) {
  collect(entry_, module.find(entry_) ? module.find(entry_)->origin : Origin());
}

size_t ProgramFunctions::index_of(const std::string& name, const Origin& origin) const {
  const auto it = index_.find(name);
  if (it == index_.end())
    throw CompileError(kUnknownCallee, origin, "the module has no PrimFunc `{}`", name);
  return it->second;
}

static std::vector<tir::CallFact> unproved_facts(const tir::Callee& callee,
                                                 const std::vector<NodePtr>& args) {
  std::vector<tir::CallFact> out;
  if (callee.params.size() != args.size()) return out;
  arith::Analyzer analyzer;
  for (tir::CallFact& fact : tir::call_facts(callee, args, tir::bind_symbols(callee, args)))
    if (tir::judge(fact, analyzer) != tir::Verdict::kHolds) out.push_back(std::move(fact));
  return out;
}

std::vector<tir::CallFact> unproved_facts(const tir::CallTir& call,
                                          const tir::ExternFunction& function) {
  return unproved_facts(tir::callee_of(call.callee->name, ref_to(&function)), call.args);
}

// Adds `name` after all that it calls.
void ProgramFunctions::collect(const std::string& name, const Origin& origin) {
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
  ProgramFunction info;
  info.function = function;
  info.name = name;
  info.symbols = tir::symbolic_vars(*function);
  std::vector<std::pair<std::string, Origin>> callees;
  walk(function->body, [&](const NodePtr& node) {
    const auto calls = [&](const GlobalVar& callee, const std::vector<NodePtr>& args,
                           const Origin& place) {
      callees.emplace_back(callee.name, place);
      if (const auto prim = module_.find<tir::PrimFunc>(callee.name))
        info.can_fail |= !unproved_facts(tir::callee_of(callee.name, prim), args).empty();
      if (const auto external = module_.find<tir::ExternFunction>(callee.name)) {
        info.can_fail |= !unproved_facts(tir::callee_of(callee.name, external), args).empty();
        for (const tir::ScratchQuery& query : tir::scratch_queries(*external))
          add_library({query.symbol, {}, name, place});
      }
    };
    if (const auto* call = node.as<tir::CallTir>()) calls(*call->callee, call->args, call->origin);
    if (const auto* call = node.as<Call>(); call && call->callee)
      calls(*call->callee, call->args, call->origin);
    if (const auto* call = node.as<Call>();
        call && (call->is(IntrinsicId::kCallExtern) || call->is(IntrinsicId::kCallPureExtern)) &&
        !call->args.empty())
      if (const auto* symbol = call->arg(0).as<StringImm>())
        add_library({symbol->value, {}, name, call->origin});
    if (const auto* call = node.as<Call>())
      if (const auto packed = packed_name(*call)) {
        add_packed({*packed, name, call->origin});
        info.can_fail = true;
      }
    if (node.as<tir::Assert>()) info.can_fail = true;
    if (const auto* call = node.as<Call>()) info.can_fail |= call->is(IntrinsicId::kCheckIndex);
    if (node.as<tir::AllocConst>()) info.uses_constants = true;
    if (const auto* op = node.as<Binary>())
      info.can_fail |= op->op >= BinaryOp::kDiv && op->op <= BinaryOp::kFloorMod &&
                       op->lhs->dtype.is_integer() && !as_int(op->rhs);
    if (const auto* loop = node.as<tir::For>())
      info.has_parallel |= loop->kind == tir::ForKind::kParallel;
  });
  for (const auto& [callee_name, place] : callees) {
    if (const auto external = module_.find<tir::ExternFunction>(callee_name)) {
      if (external->is_packed)
        add_packed({external->symbol, name, place});
      else
        add_library({external->symbol, external, name, place});
      info.can_fail |= !external->result.is_void();
      continue;
    }
    collect(callee_name, place);
    const ProgramFunction& inner = functions_[index_of(callee_name, place)];
    info.can_fail |= inner.can_fail;
    info.has_parallel |= inner.has_parallel;
    info.uses_constants |= inner.uses_constants;
  }
  stack_.pop_back();
  if (name != entry_) {
    const uint64_t hash = structural_hash(function);
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

std::string packed_symbol(const std::string& name) {
  std::string symbol;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    symbol += letter ? c : '_';
  }
  return symbol;
}

std::optional<std::string> packed_name(const Call& call) {
  if (!call.is(IntrinsicId::kCallPacked) && !call.is(IntrinsicId::kCallCpacked))
    return std::nullopt;
  const auto* name = call.args.empty() ? nullptr : call.args[0].as<StringImm>();
  if (!name || name->value.empty())
    throw CompileError(kBadArgument, call.origin, "`T.{}` without a function's name",
                       call.op->name);
  return name->value;
}

size_t ProgramFunctions::packed_index(const std::string& name) const {
  size_t i = 0;
  while (i < packed_.size() && packed_[i].name != name) ++i;
  check(i < packed_.size(), "a packed function that was not seen before");
  return i;
}

void ProgramFunctions::add_packed(PackedFunction function) {
  for (const PackedFunction& known : packed_)
    if (known.name == function.name) return;
  packed_.push_back(std::move(function));
}

void ProgramFunctions::add_library(LibraryFunction library) {
  for (LibraryFunction& known : libraries_) {
    if (known.symbol != library.symbol) continue;
    if (!known.function) known.function = library.function;
    if (!library.function || (library.function->c_types == known.function->c_types &&
                              library.function->groups == known.function->groups))
      return;
    throw CompileError(kDTypeMismatch, library.origin,
                       "library function `{}` is declared twice: as `{}` and as `{}`",
                       library.symbol, known.function->prototype(), library.function->prototype())
        .note(known.origin, "the first is called here");
  }
  libraries_.push_back(std::move(library));
}

std::vector<LibraryArgument> bind_library_arguments(const tir::CallTir& call,
                                                    const tir::ExternFunction& function) {
  if (call.args.size() != function.params.size())
    throw CompileError(kBadArgument, call.origin, "a call of `{}` has {} arguments; expected {}",
                       call.callee->name, call.args.size(), function.params.size());
  std::vector<LibraryArgument> out;
  for (const tir::ExternFunction::CParameter& parameter : function.c_parameters()) {
    const size_t i = parameter.first;
    LibraryArgument argument;
    argument.type = parameter.type;
    if (parameter.group) {
      argument.group = parameter.group;
      for (size_t k = 0; k < parameter.count; ++k)
        argument.items.push_back(
            tenon::cast(function.c_type(i + k).dtype(), downcast<ExprNode>(call.args[i + k])));
      out.push_back(std::move(argument));
      continue;
    }
    const auto* region = call.args[i].as<tir::BufferRegion>();
    if (static_cast<bool>(function.buffers[i]) != (region != nullptr))
      throw CompileError(kRegionMismatch, call.origin, "argument {} of `{}` must be a {}", i + 1,
                         call.callee->name, function.buffers[i] ? "region" : "scalar");
    if (region) {
      argument.region = ref_to(region);
      argument.pointer.buffer = region->buffer;
      for (const tir::Range& range : region->region) argument.pointer.minimum.push_back(range.min);
      argument.extents = tir::kept_extents(*region);
      argument.strides = tir::kept_strides(*region);
      argument.dtype = region->buffer->dtype;
    } else {
      argument.scalar = downcast<ExprNode>(call.args[i]);
      if (argument.type.kind == tir::CType::Kind::kText) {
        if (!argument.scalar.as<StringImm>())
          throw CompileError(kBadArgument, call.origin,
                             "argument {} of `{}` must be a constant text", i + 1,
                             call.callee->name);
      } else {
        argument.scalar = tenon::cast(argument.type.dtype(), argument.scalar);
      }
    }
    out.push_back(std::move(argument));
  }
  return out;
}

std::string message_of(const tir::CallFact& fact, const tir::Callee& callee) {
  if (fact.kind == tir::CallFact::Kind::kScratch)
    return fmt::format(
        "library function `{}` asks for {{bound}} bytes of scratch; `{}`, argument {}, has "
        "{{value}}",
        callee.external()->symbol, callee.buffers[fact.argument]->name, fact.argument + 1);
  const bool is_extent = fact.kind == tir::CallFact::Kind::kExtent;
  return fmt::format(
      "argument {} of `{}` has {} {{value}} in dimension {}; parameter `{}` has {{bound}}",
      fact.argument + 1, callee.name, is_extent ? "extent" : "stride", fact.dim,
      callee.buffers[fact.argument]->name);
}

CallArguments bind_arguments(const std::string& name, const std::vector<NodePtr>& args,
                             const Origin& origin, const ProgramFunction& info) {
  const tir::PrimFunc& function = *info.function;
  if (args.size() != function.params.size())
    throw CompileError(kBadArgument, origin, "a call of `{}` has {} arguments; expected {}", name,
                       args.size(), function.params.size());
  CallArguments out;
  for (size_t i = 0; i < args.size(); ++i) {
    const Ref<tir::Buffer>& param = function.buffers[i];
    if (!param) {
      const auto scalar = cast<ExprNode>(args[i]);
      if (!scalar || scalar->dtype != function.params[i]->dtype)
        throw CompileError(kRegionMismatch, origin,
                           "argument {} of `{}` must be a scalar of dtype {}", i + 1, name,
                           function.params[i]->dtype.str());
      out.scalars.push_back(scalar);
      continue;
    }
    const auto* region = args[i].as<tir::BufferRegion>();
    if (!region)
      throw CompileError(kRegionMismatch, origin, "argument {} of `{}` must be a region", i + 1,
                         name);
    if (region->buffer->dtype != param->dtype)
      throw CompileError(kRegionMismatch, origin, "argument {} of `{}` has dtype {}; expected {}",
                         i + 1, name, region->buffer->dtype.str(), param->dtype.str());
    const size_t kept = tir::kept_extents(*region).size();
    if (kept != param->ndim())
      throw CompileError(kRegionMismatch, origin,
                         "argument {} of `{}` has {} dimensions; expected {}", i + 1, name, kept,
                         param->ndim());
    CallArguments::Pointer pointer{region->buffer, {}};
    for (const tir::Range& range : region->region) pointer.minimum.push_back(range.min);
    out.pointers.push_back(std::move(pointer));
  }
  const tir::Callee callee = tir::callee_of(name, info.function);
  const Substitution bound = tir::bind_symbols(callee, args);
  for (const Ref<Var>& symbol : info.symbols) {
    const auto it = bound.find(symbol.get());
    if (it == bound.end())
      throw CompileError(kBadArgument, origin,
                         "no argument of the call of `{}` determines its dimension `{}`", name,
                         symbol->name);
    out.symbols.push_back(downcast<ExprNode>(it->second));
  }
  out.unproved = unproved_facts(callee, args);
  return out;
}

}  // namespace tenon::backend
