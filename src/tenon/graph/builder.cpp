// SPDX-License-Identifier: Apache-2.0
#include "tenon/graph/builder.h"

#include <set>
#include <unordered_map>
#include <unordered_set>

#include "tenon/graph/infer.h"
#include "tenon/support/identifiers.h"
#include "tenon/support/names.h"

namespace tenon::graph {

namespace {

// Names handed out in one function.
struct Names {
  NameSupply supply;

  /// False where it is taken already, or no name.
  bool take(const std::string& name) { return identifier(name) == name && supply.reserve(name); }

  std::string unique(const std::string& hint) {
    const std::string base = identifier(hint);
    const bool digit_last = base.back() >= '0' && base.back() <= '9';
    return supply.take(base, digit_last ? "_" : "");
  }

  // What TVMScript can name: letters, digits and underscores, no digit first, no word of Python.
  static std::string identifier(const std::string& hint) {
    std::string name;
    for (const char c : hint) {
      const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
      if (word) {
        name += c;
      } else if (!name.empty() && name.back() != '_') {
        name += '_';
      } else if (name.empty() && c == '_') {
        name += '_';
      }
    }
    if (name.empty() || name == "_") name = "v";
    if (name[0] >= '0' && name[0] <= '9') name = "v" + name;
    if (is_python_keyword(name) || name == "cls" || name == "I" || name == "R" || name == "T")
      name += "_";
    return name;
  }
};

}  // namespace

struct BlockBuilder::Frame {
  std::vector<Ref<Var>> params;
  std::vector<Ref<BindingBlock>> blocks;
  std::vector<Ref<Binding>> bindings;  // of the block that is open
  bool open_is_dataflow = false;
  bool explicit_dataflow = false;
  bool is_branch = false;
  std::shared_ptr<Names> names;

  void close() {
    if (bindings.empty()) return;
    blocks.push_back(make<BindingBlock>(std::move(bindings), open_is_dataflow));
    bindings.clear();
  }
  void open(bool dataflow) {
    if (dataflow != open_is_dataflow) close();
    open_is_dataflow = dataflow;
  }
};

void BlockBuilder::begin_function(std::vector<Ref<Var>> params) {
  auto frame = std::make_shared<Frame>();
  frame->names = std::make_shared<Names>();
  for (const Ref<Var>& param : params) frame->names->supply.reserve(param->name);
  frame->params = std::move(params);
  frames_.push_back(std::move(frame));
}

void BlockBuilder::begin_branch() {
  check(!frames_.empty(), "a branch outside a function");
  auto frame = std::make_shared<Frame>();
  frame->names = frames_.back()->names;
  frame->is_branch = true;
  frames_.push_back(std::move(frame));
}

void BlockBuilder::begin_dataflow() {
  Frame& frame = *frames_.back();
  check(!frame.explicit_dataflow, "dataflow blocks do not nest");
  frame.close();
  frame.explicit_dataflow = true;
  frame.open_is_dataflow = true;
}
void BlockBuilder::end_dataflow() {
  Frame& frame = *frames_.back();
  check(frame.explicit_dataflow, "no dataflow block to end");
  frame.close();
  frame.explicit_dataflow = false;
}

namespace {

// Variables of dataflow blocks that are used outside their block become variables of the function.
class Escapes {
 public:
  explicit Escapes(const SeqExpr& body) { visit(body); }
  const std::vector<Ref<Var>>& vars() const { return escaped_; }

 private:
  void visit(const SeqExpr& body) {
    for (const Ref<BindingBlock>& block : body.blocks) {
      const int64_t id = ++last_block_;
      for (const Ref<Binding>& binding : block->bindings) {
        value(binding->value, block->is_dataflow ? id : 0);
        if (block->is_dataflow && binding->var->is_dataflow)
          block_of_.emplace(binding->var.get(), id);
      }
    }
    value(body.body, 0);
  }
  void value(const Value& v, int64_t block) {
    if (const auto* branch = v.as<If>()) {
      value(branch->condition, block);
      visit(*branch->then_branch);
      visit(*branch->else_branch);
      return;
    }
    if (v.as<FunctionValue>()) block = 0;
    walk(v, [&](const NodePtr& node) {
      const auto* var = node.as<Var>();
      if (!var) return;
      const auto it = block_of_.find(var);
      if (it == block_of_.end() || it->second == block) return;
      if (seen_.insert(var).second) escaped_.push_back(ref_to(var));
    });
  }

  int64_t last_block_ = 0;
  std::unordered_map<const Node*, int64_t> block_of_;
  std::unordered_set<const Node*> seen_;
  std::vector<Ref<Var>> escaped_;
};

Ref<SeqExpr> export_escaping(Ref<SeqExpr> body) {
  Substitution exported;
  const Escapes escapes(*body);
  for (const Ref<Var>& var : escapes.vars())
    exported.emplace(var.get(), make<Var>(var->name, var->type, false, var->origin));
  return exported.empty() ? body : substitute(body, exported);
}

}  // namespace

Ref<Function> BlockBuilder::end_function(Value result, Attrs attrs, bool pure, Origin origin) {
  check(!frames_.empty() && !frames_.back()->is_branch, "no function to end");
  if (!is_leaf(result)) result = emit(result);
  const std::shared_ptr<Frame> frame = frames_.back();
  frame->close();
  frames_.pop_back();
  Ref<SeqExpr> body = export_escaping(make<SeqExpr>(std::move(frame->blocks), std::move(result)));
  Type type = type_of(body->body);
  return make<Function>(std::move(frame->params), std::move(body), std::move(type),
                        std::move(attrs), pure, std::move(origin));
}

Ref<SeqExpr> BlockBuilder::end_branch(Value result) {
  check(!frames_.empty() && frames_.back()->is_branch, "no branch to end");
  if (!is_leaf(result)) result = emit(result);
  const std::shared_ptr<Frame> frame = frames_.back();
  frame->close();
  frames_.pop_back();
  return make<SeqExpr>(std::move(frame->blocks), std::move(result));
}

static bool is_pure(const Value& value, const IRModule& module) {
  if (value.as<If>())
    return false;  // has blocks of its own, so it cannot stand in a dataflow block
  const auto* call = value.as<Call>();
  if (!call) return true;
  if (call->op) return call->op->pure;
  if (const auto* ref = call->callee.as<FuncRef>()) {
    if (const auto function = module.find<Function>(ref->name)) return function->pure;
    return static_cast<bool>(module.find<tir::PrimFunc>(ref->name));
  }
  if (const auto* var = call->callee.as<Var>())
    if (const auto* type = var->type.as<FuncType>()) return type->pure;
  return false;
}

const Binding& BlockBuilder::last() const { return *frames_.back()->bindings.back(); }

void BlockBuilder::push(Ref<Binding> binding) {
  frames_.back()->bindings.push_back(std::move(binding));
  ++emitted_;
}

bool BlockBuilder::emit_kept(const Value& value, const Type& match, const std::string& name,
                             bool dataflow) {
  if (!kept_ || !kept_->value.same_as(value) || !kept_->match.same_as(match) ||
      kept_->var->name != name)
    return false;
  Frame& frame = *frames_.back();
  if (dataflow != kept_in_dataflow_ || (!dataflow && frame.explicit_dataflow)) return false;
  // An operator's result follows from the call, which is the same; a function may be another now.
  const auto* call = value.as<Call>();
  if (!match && !(call && call->op) && !structural_equal(type_of(value, module_), kept_->var->type))
    return false;
  if (!frame.names->take(name)) return false;
  frame.open(dataflow);
  push(std::move(kept_));
  kept_ = {};
  return true;
}

Value BlockBuilder::emit(Value value, const std::string& name) {
  check(!frames_.empty(), "a value emitted outside a function");
  if (const auto* tuple = value.as<Tuple>()) {
    std::vector<Value> items;
    bool changed = false;
    for (const Value& item : tuple->values) {
      items.push_back(!item || (is_leaf(item) && !item.as<Tuple>()) ? item : emit(item));
      changed |= !items.back().same_as(item);
    }
    return changed ? make<Tuple>(std::move(items), tuple->origin) : value;
  }
  if (const auto* get = value.as<TupleGetItem>()) {
    const Value tuple = is_leaf(get->tuple) ? get->tuple : emit(get->tuple);
    if (const auto* items = tuple.as<Tuple>()) {
      (void)type_of(value);  // checks the index
      return items->values[static_cast<size_t>(get->index)];
    }
    return tuple.same_as(get->tuple) ? value : make<TupleGetItem>(tuple, get->index, get->origin);
  }
  if (const auto* seq = value.as<SeqExpr>()) {
    // Its bindings are inlined here. Their variables stay what they are.
    Frame& frame = *frames_.back();
    for (const Ref<BindingBlock>& block : seq->blocks) {
      frame.open(block->is_dataflow);
      for (const Ref<Binding>& binding : block->bindings) push(binding);
    }
    return emit(seq->body, name);
  }
  if (const auto* call = value.as<Call>()) {
    std::vector<Value> args;
    bool changed = false;
    for (const Value& arg : call->args) {
      args.push_back(arg ? emit(arg) : arg);
      changed |= !args.back().same_as(arg);
    }
    if (changed)
      value = call->op ? make<Call>(call->op, std::move(args), call->attrs, call->type_args,
                                    call->origin)
                       : make<Call>(call->callee, std::move(args), call->attrs, call->type_args,
                                    call->origin);
  } else if (is_leaf(value)) {
    return value;
  }
  const bool pure = is_pure(value, module_);
  if (emit_kept(value, {}, name, pure)) return last().var;
  Type type = type_of(value, module_);
  Frame& frame = *frames_.back();
  // A branch stands between two dataflow blocks where one was begun.
  check(pure || value.as<If>() || !frame.explicit_dataflow,
        "an impure binding in a dataflow block");
  frame.open(pure);
  const Origin origin = value->origin ? value->origin : origin_;
  auto var = make<Var>(frame.names->unique(name), std::move(type), frame.open_is_dataflow, origin);
  push(make<Binding>(var, std::move(value), nullptr, origin));
  return var;
}

Value BlockBuilder::op(std::string_view op, std::vector<Value> args, Attrs attrs,
                       const std::string& name) {
  return emit(call_op(op, std::move(args), std::move(attrs), origin_), name);
}

Value BlockBuilder::match_cast(Value value, Type type, const std::string& name) {
  if (!is_leaf(value)) value = emit(value);
  Frame& frame = *frames_.back();
  const bool dataflow = frame.explicit_dataflow || frame.open_is_dataflow || frame.bindings.empty();
  if (emit_kept(value, type, name, dataflow)) return last().var;
  frame.open(dataflow);
  auto var = make<Var>(frame.names->unique(name), type, frame.open_is_dataflow, origin_);
  push(make<Binding>(var, std::move(value), std::move(type), origin_));
  return var;
}

Value BlockBuilder::call_tir(const std::string& name, Ref<tir::PrimFunc> function,
                             std::vector<Value> args, std::vector<Type> out_types,
                             std::vector<Expr> tir_vars) {
  const std::string hint = Names::identifier(name);
  const uint64_t hash = structural_hash(function);
  std::string callee;
  for (const std::string& candidate : by_hash_[hash]) {
    const BaseFunc known = module_.find(candidate);
    if (!known || candidate.compare(0, hint.size(), hint) != 0) continue;
    if (!structural_equal(known, function)) continue;
    callee = candidate;
    break;
  }
  if (callee.empty()) {
    callee = module_.add_unique(hint, function);
    by_hash_[hash].push_back(callee);
  }
  std::vector<Value> call_args = {make<FuncRef>(callee), make<Tuple>(std::move(args))};
  if (!tir_vars.empty()) call_args.push_back(make<ShapeExpr>(std::move(tir_vars)));
  return emit(make<Call>(find_op("call_tir"), std::move(call_args), Attrs{}, std::move(out_types),
                         origin_));
}

}  // namespace tenon::graph
