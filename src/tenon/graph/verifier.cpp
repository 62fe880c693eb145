// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/verifier.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tenon/graph/builder.h"
#include "tenon/graph/extern_call.h"
#include "tenon/graph/infer.h"
#include "tenon/graph/kernels.h"
#include "tenon/graph/loop.h"
#include "tenon/graph/shape.h"
#include "tenon/ir/division.h"
#include "tenon/support/limit_codes.h"

namespace tenon::graph {

namespace {

class Verifier {
 public:
  Verifier(const IRModule& module, Diagnostics& diagnostics)
      : module_(module), diagnostics_(diagnostics) {}

  void function(const std::string& name, const Function& f) {
    in_ = name;
    const size_t outer_vars = scope_.size();
    for (const Ref<Var>& param : f.params) {
      define(param, param->origin);
      define_symbolic(param->type);
    }
    for (const Ref<Var>& param : f.params) type(param->type, param->origin, param->name);
    body(*f.body);
    if (f.result) {
      type(f.result, f.origin, "the result");
      const Type found = guarded([&] { return type_of(f.body->body, module_); });
      if (found && !fits(found, f.result))
        diagnostics_.error(kTypeMismatch, f.body->body->origin,
                           "function `{}` returns a value of type {}; it is declared to return {}",
                           in_, str(found), str(f.result));
    }
    check(scope_.size() >= outer_vars, "a scope closed twice");
    close(outer_vars);
  }

 private:
  // ---- definitions

  void define(const Ref<Var>& var, const Origin& origin) {
    if (!var) return;
    if (!ever_.insert(var.get()).second) {
      diagnostics_.error(kRedefined, origin, "variable `{}` of `{}` is defined twice", var->name,
                         in_);
      return;
    }
    visible_.insert(var.get());
    scope_.push_back(var.get());
  }
  void close(size_t size) {
    while (scope_.size() > size) {
      visible_.erase(scope_.back());
      scope_.pop_back();
    }
  }
  // Bare variables in a type that may define them: of a parameter, of a match_cast.
  void define_symbolic(const Type& t) {
    const auto add = [&](const std::vector<Expr>& dims) {
      for (const Expr& dim : dims)
        if (dim.as<tenon::Var>()) symbolic_.insert(dim.get());
    };
    if (const auto* tensor = t.as<TensorType>()) {
      if (tensor->shape) add(*tensor->shape);
    } else if (const auto* shape = t.as<ShapeType>()) {
      if (shape->values) add(*shape->values);
    } else if (const auto* prim = t.as<PrimType>()) {
      if (prim->value) add({prim->value});
    } else if (const auto* tuple = t.as<TupleType>()) {
      for (const Type& item : tuple->types) define_symbolic(item);
    }
  }
  void dims(const NodePtr& root, const Origin& origin, const std::string& what) {
    walk(root, [&](const NodePtr& node) {
      if (divides_by_zero(node) && reported_.insert(node.get()).second)
        diagnostics_.error(kBadArgument, origin, "`{}` in the type of {} divides by zero",
                           str(downcast<ExprNode>(node)), what);
      const auto* var = node.as<tenon::Var>();
      if (!var || symbolic_.count(var) || !reported_.insert(var).second) return;
      diagnostics_.error(kUndefined, origin,
                         "symbolic variable `{}` in the type of {} is not defined in `{}`",
                         var->name, what, in_);
    });
  }
  void type(const Type& t, const Origin& origin, const std::string& what) {
    if (t.as<FuncType>()) return;  // a signature has variables of its own
    if (tensors_in(t) > kMostTensors)
      diagnostics_.error(kTooMuchWork, origin, "`{}` is a tuple of more than {} tensors in all",
                         what, kMostTensors);
    dims(t, origin, what == "the result" ? what : "`" + what + "`");
  }

  // A tuple of two tuples of two tuples ... is short to write.
  static constexpr int64_t kMostTensors = 16384;
  int64_t tensors_in(const Type& t) {
    const auto* tuple = t.as<TupleType>();
    if (!tuple) return 1;
    const auto known = tensors_.find(tuple);
    if (known != tensors_.end()) return known->second;
    int64_t count = 0;
    for (const Type& item : tuple->types)
      if (item) count = std::min(count + tensors_in(item), kMostTensors + 1);
    return tensors_[tuple] = count;
  }

  // ---- values

  void use(const Var& var, const Origin& origin) {
    if (visible_.count(&var) || !reported_.insert(&var).second) return;
    if (ever_.count(&var)) {
      diagnostics_
          .error(kUndefined, origin ? origin : var.origin,
                 "variable `{}` is used outside the block that defines it", var.name)
          .notes.push_back({var.origin, "it is visible inside its dataflow block or branch only"});
      return;
    }
    diagnostics_.error(kUndefined, origin ? origin : var.origin,
                       "variable `{}` is used in `{}`, where it is not defined", var.name, in_);
  }

  void leaf(const Value& value, const Origin& origin, std::string_view what) {
    if (!value) return;  // an argument left out
    if (!is_leaf(value)) {
      diagnostics_.error(kNotNormal, value->origin ? value->origin : origin,
                         "{} is a `{}`; expected a variable, a constant or a tuple of these", what,
                         value.get()->type().name);
      return;
    }
    if (const auto* var = value.as<Var>()) {
      use(*var, origin);
    } else if (const auto* tuple = value.as<Tuple>()) {
      for (const Value& item : tuple->values) leaf(item, origin, "an item of a tuple");
    } else if (const auto* get = value.as<TupleGetItem>()) {
      leaf(get->tuple, origin, "a tuple");
    } else if (const auto* ref = value.as<FuncRef>()) {
      if (!module_.contains(ref->name))
        diagnostics_.error(kUnknownCallee, ref->origin ? ref->origin : origin,
                           "`{}` uses function `{}`, which the module does not have", in_,
                           ref->name);
    } else if (value.as<ShapeExpr>() || value.as<PrimValue>()) {
      dims(value, value->origin ? value->origin : origin, "a shape");
    }
  }

  void body(const SeqExpr& seq) {
    for (const Ref<BindingBlock>& block : seq.blocks) {
      std::vector<const Node*> local;
      for (const Ref<Binding>& binding : block->bindings) {
        this->binding(*binding, block->is_dataflow);
        if (!binding->var->is_dataflow) continue;
        if (!block->is_dataflow)
          diagnostics_.error(kNotNormal, binding->origin,
                             "variable `{}` is a dataflow variable, but its block is none",
                             binding->var->name);
        local.push_back(binding->var.get());
      }
      for (const Node* var : local) visible_.erase(var);
    }
    leaf(seq.body, seq.origin, "a result");
  }

  void binding(const Binding& b, bool dataflow) {
    const Origin& origin = b.origin;
    if (const auto* call = b.value.as<Call>()) {
      this->call(*call, origin, dataflow);
    } else if (const auto* branch = b.value.as<If>()) {
      if (dataflow)
        diagnostics_.error(kNotNormal, origin, "`{}` is an `if` inside a dataflow block",
                           b.var->name);
      leaf(branch->condition, origin, "a condition");
      for (const Ref<SeqExpr>& side : {branch->then_branch, branch->else_branch}) {
        const size_t outer = scope_.size();
        body(*side);
        close(outer);
      }
    } else if (const auto* function = b.value.as<FunctionValue>()) {
      const std::string name = in_;
      this->function(b.var->name, *function->function);
      in_ = name;
    } else if (b.value.as<SeqExpr>()) {
      diagnostics_.error(kNotNormal, origin, "`{}` is bound to a sequence of bindings",
                         b.var->name);
    } else {
      leaf(b.value, origin, "a value");
    }
    if (b.match) {
      define_symbolic(b.match);
      type(b.match, origin, b.var->name);
    }
    type(b.var->type, origin, b.var->name);
    if (tensors_in(b.var->type) > kMostTensors) return define(b.var, origin);
    const Type found = b.match ? b.match : guarded([&] { return type_of(b.value, module_); });
    if (found && !fits(found, b.var->type))
      diagnostics_.error(kTypeMismatch, origin,
                         "`{}` is declared with type {}; its value has type {}", b.var->name,
                         str(b.var->type), str(found));
    define(b.var, origin);
  }

  // What nothing is known of (the result of a foreign function) fits every declaration.
  static bool fits(const Type& found, const Type& declared) {
    return found.as<ObjectType>() || is_subtype(found, declared);
  }

  template <typename F>
  Type guarded(const F& infer) {
    try {
      return infer();
    } catch (const CompileError& error) {
      diagnostics_.add(error);
      return {};
    }
  }

  // ---- calls

  bool is_pure(const Call& call) const {
    if (call.op) return call.op->pure;
    if (const auto* ref = call.callee.as<FuncRef>()) {
      if (const auto function = module_.find<Function>(ref->name)) return function->pure;
      return static_cast<bool>(module_.find<tir::PrimFunc>(ref->name));
    }
    if (const auto* var = call.callee.as<Var>())
      if (const auto* type = var->type.as<FuncType>()) return type->pure;
    return false;
  }

  void call(const Call& call, const Origin& at, bool dataflow) {
    const Origin& origin = call.origin ? call.origin : at;
    if (call.callee) leaf(call.callee, origin, "a callee");
    for (const Value& arg : call.args) leaf(arg, origin, "an argument");
    for (const Type& arg : call.type_args) type(arg, origin, "the result");
    if (dataflow && !is_pure(call))
      diagnostics_.error(kNotNormal, origin, "an impure call of `{}` inside a dataflow block",
                         callee_name(call));
    if (call.op) {
      guarded([&]() -> Type {
        (void)checked_attrs(*call.op, call.attrs, origin);
        return {};
      });
      if (call.is("call_tir") || call.is("call_tir_inplace")) call_tir(call, origin);
      if (call.is("loop")) loop(call, origin);
      return;
    }
    const auto* ref = call.callee.as<FuncRef>();
    const auto function = ref ? module_.find<Function>(ref->name) : nullptr;
    if (!function) return;
    if (function->params.size() != call.args.size()) {
      diagnostics_.error(kBadArgument, origin, "`{}` is called with {} arguments; it has {}",
                         ref->name, call.args.size(), function->params.size());
      return;
    }
    Substitution bound;
    std::vector<Type> given;
    for (size_t i = 0; i < call.args.size(); ++i) {
      given.push_back(type_of(call.args[i]));
      unify(function->params[i]->type, given[i], bound);
    }
    for (size_t i = 0; i < call.args.size(); ++i) {
      const Type wanted = substitute(function->params[i]->type, bound);
      if (!fits(given[i], wanted))
        diagnostics_.error(kTypeMismatch, origin,
                           "argument {} of `{}` has type {}; parameter `{}` has type {}", i + 1,
                           ref->name, str(given[i]), function->params[i]->name, str(wanted));
    }
  }

  static std::string callee_name(const Call& call) {
    if (call.op) return call.op->name;
    if (const auto* ref = call.callee.as<FuncRef>()) return ref->name;
    if (const auto* ref = call.callee.as<ExternRef>()) return ref->symbol;
    if (const auto* var = call.callee.as<Var>()) return var->name;
    return "a function";
  }

  void loop(const Call& call, const Origin& origin) {
    const auto* ref = call.args.empty() ? nullptr : call.args[0].as<FuncRef>();
    if (!ref || !module_.contains(ref->name)) return;  // reported already
    const auto body = module_.find<Function>(ref->name);
    if (!body) {
      diagnostics_.error(kUnknownCallee, origin, "`loop` calls `{}`, which is no graph function",
                         ref->name);
      return;
    }
    guarded([&]() -> Type {
      (void)type_of(ref_to(&call));
      check_loop(call, *body);
      return {};
    });
  }

  // The arguments and results of a call_tir against the parameters of its PrimFunc.
  void call_tir(const Call& call, const Origin& origin) {
    const auto* ref = call.args.empty() ? nullptr : call.args[0].as<FuncRef>();
    if (!ref) return;  // the type rule reports it
    const auto callee = module_.find<tir::PrimFunc>(ref->name);
    if (!callee) {
      if (module_.contains(ref->name))
        diagnostics_.error(kUnknownCallee, origin, "`{}` calls `{}`, which is no PrimFunc",
                           call.op->name, ref->name);
      return;
    }
    std::vector<Type> types;
    const Type given = guarded([&] { return type_of(call.args[1]); });
    const auto* tuple = given.as<TupleType>();
    if (!tuple) return;
    types = tuple->types;
    const size_t inputs = types.size();
    const std::vector<Type> outputs = output_types(call);
    std::vector<size_t> in_place(outputs.size(), ForeignCall::kFresh);
    guarded([&]() -> Type {
      in_place = in_place_indices(call, outputs.size(), inputs);
      return {};
    });
    for (size_t i = 0; i < outputs.size(); ++i)
      if (in_place[i] != ForeignCall::kFresh && !fits(types[in_place[i]], outputs[i]))
        diagnostics_.error(kTypeMismatch, origin,
                           "the result of `{}` is {}; it takes the memory of argument {}, {}",
                           ref->name, str(outputs[i]), in_place[i] + 1, str(types[in_place[i]]));
    for (size_t i = 0; i < outputs.size(); ++i)
      if (in_place[i] == ForeignCall::kFresh) types.push_back(outputs[i]);
    const Type scalars = call.args.size() > 2 ? type_of(call.args[2]) : Type();
    const auto* shape = scalars.as<ShapeType>();
    const size_t count =
        types.size() + (shape && shape->ndim > 0 ? static_cast<size_t>(shape->ndim) : size_t{0});
    if (count != callee->params.size()) {
      diagnostics_.error(kBadArgument, origin,
                         "call_tir gives `{}` {} tensors and {} scalars; it has {} parameters",
                         ref->name, types.size(), count - types.size(), callee->params.size());
      return;
    }
    Substitution bound;
    if (shape && shape->values)
      for (size_t i = types.size(); i < count; ++i)
        bound.emplace(callee->params[i].get(), (*shape->values)[i - types.size()]);
    for (size_t i = 0; i < types.size(); ++i)
      if (const auto* tensor = types[i].as<TensorType>(); tensor && tensor->shape)
        if (const Ref<tir::Buffer>& buffer = callee->buffers[i])
          for (size_t d = 0; d < buffer->shape.size() && d < tensor->shape->size(); ++d)
            if (buffer->shape[d].as<tenon::Var>())
              bound.emplace(buffer->shape[d].get(), (*tensor->shape)[d]);
    for (size_t i = 0; i < types.size(); ++i)
      argument(*ref, *callee, i, i < inputs, types[i], bound, origin);
  }

  void argument(const FuncRef& ref, const tir::PrimFunc& callee, size_t i, bool is_input,
                const Type& type, const Substitution& bound, const Origin& origin) {
    const Ref<tir::Buffer>& buffer = callee.buffers[i];
    const auto* tensor = type.as<TensorType>();
    const auto fault = [&](const Code& code) {
      diagnostics_.error(code, origin, "{} of `{}` is {}; parameter `{}` is a buffer {} of {}",
                         is_input ? fmt::format("argument {}", i + 1) : "the result", ref.name,
                         str(type), buffer->name, tenon::str(buffer->shape), buffer->dtype.str());
    };
    if (!buffer) {
      diagnostics_.error(
          kBadArgument, origin, "argument {} of `{}` is {}; parameter `{}` is a scalar of {}",
          i + 1, ref.name, str(type), callee.params[i]->name, callee.params[i]->dtype.str());
      return;
    }
    if (!tensor) return fault(kTypeMismatch);
    if (!tensor->dtype.is_void() && tensor->dtype != buffer->dtype) return fault(kDTypeMismatch);
    if (tensor->ndim >= 0 && tensor->ndim != static_cast<int64_t>(buffer->ndim()))
      return fault(kRankMismatch);
    if (!tensor->shape) return;
    for (size_t d = 0; d < buffer->ndim(); ++d) {
      const Expr wanted = substitute(buffer->shape[d], bound);
      if (dims_agree((*tensor->shape)[d], wanted) == DimsAgree::kNo) return fault(kShapeMismatch);
    }
  }

  const IRModule& module_;
  Diagnostics& diagnostics_;
  std::string in_;
  std::unordered_set<const Node*> ever_, visible_, symbolic_, reported_;
  std::vector<const Node*> scope_;
  std::unordered_map<const Node*, int64_t> tensors_;  // in a tuple type
};

}  // namespace

void verify(const IRModule& module, Diagnostics& diagnostics) {
  for (const auto& [name, function] : module.functions())
    if (const auto* f = function.as<Function>()) Verifier(module, diagnostics).function(name, *f);
  verify_kernels(module, diagnostics);
}

}  // namespace tenon::graph
