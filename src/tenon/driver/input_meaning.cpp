// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/input_meaning.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "tenon/graph/op.h"
#include "tenon/graph/shape.h"
#include "tenon/tir/stmt.h"

namespace tenon {

namespace {

using Kind = InputMeaning::Kind;
constexpr int kMostDepth = 32;  // of functions that call one another
/// Of the parameters of functions that are called, by name: each is looked at once.
using Known = std::map<std::string, std::vector<InputMeaning>>;

std::vector<InputMeaning> meanings_of(const IRModule& module, const std::string& name,
                                      const tir::PrimFunc& function, int depth, Known& known);
std::vector<InputMeaning> meanings_of(const IRModule& module, const std::string& name,
                                      const graph::Function& function, int depth, Known& known);

class GraphUses {
 public:
  GraphUses(const IRModule& module, const graph::Function& function, int depth, Known& known)
      : module_(module), depth_(depth), known_(known), meanings_(function.params.size()) {
    for (size_t i = 0; i < function.params.size(); ++i)
      of_[function.params[i].get()].moved.insert(i);
    sequence(*function.body);
    // Integers that only steer must stay small; floats are values all the same.
    for (const size_t i : steering_) {
      const auto* tensor = function.params[i]->type.as<graph::TensorType>();
      if (meanings_[i].kind == Kind::kValue && tensor && tensor->dtype.is_integer())
        meanings_[i].kind = Kind::kSteers;
    }
  }
  std::vector<InputMeaning> take() { return std::move(meanings_); }

 private:
  // The parameters whose elements a value has, and those that it is computed from.
  struct Sources {
    std::set<size_t> moved, computed;
    void add(const Sources& other) {
      moved.insert(other.moved.begin(), other.moved.end());
      computed.insert(other.computed.begin(), other.computed.end());
    }
  };

  Sources sources(const graph::Value& value) {
    if (value.as<graph::Var>()) {
      const auto found = of_.find(value.get());
      return found == of_.end() ? Sources() : found->second;
    }
    Sources out;
    if (const auto* tuple = value.as<graph::Tuple>())
      for (const graph::Value& item : tuple->values) out.add(sources(item));
    if (const auto* get = value.as<graph::TupleGetItem>()) out = sources(get->tuple);
    return out;
  }

  void sequence(const graph::SeqExpr& body) {
    for (const Ref<graph::BindingBlock>& block : body.blocks)
      for (const Ref<graph::Binding>& binding : block->bindings)
        of_[binding->var.get()] = bound(binding->value);
  }

  Sources bound(const graph::Value& value) {
    if (const auto* call = value.as<graph::Call>()) return of_call(*call);
    if (const auto* branch = value.as<graph::If>()) {
      sequence(*branch->then_branch);
      sequence(*branch->else_branch);
      Sources out = sources(branch->then_branch->body);
      out.add(sources(branch->else_branch->body));
      return out;
    }
    return sources(value);
  }

  Sources of_call(const graph::Call& call) {
    std::vector<graph::Value> args = call.args;
    std::vector<InputMeaning> callee;
    bool known = false;
    if (call.is("call_tir") || call.is("call_tir_inplace")) {
      const auto* ref = call.args.at(0).as<graph::FuncRef>();
      const auto* tuple = call.args.size() > 1 ? call.args[1].as<graph::Tuple>() : nullptr;
      const auto kernel = ref ? module_.find<tir::PrimFunc>(ref->name) : nullptr;
      if (kernel && tuple) {
        callee = meanings_of(module_, ref->name, *kernel, 0, known_);
        args.assign(tuple->values.begin(), tuple->values.end());
        known = true;
      }
    } else if (const auto* ref = call.callee ? call.callee.as<graph::FuncRef>() : nullptr) {
      const auto function = module_.find<graph::Function>(ref->name);
      if (function && depth_ < kMostDepth) {
        callee = meanings_of(module_, ref->name, *function, depth_ + 1, known_);
        known = true;
      }
    }
    Sources out;
    for (size_t i = 0; i < args.size(); ++i) {
      const Sources from = sources(args[i]);
      // Dimensions of the callee mean nothing here unless they are numbers.
      if (i < callee.size()) {
        if (callee[i].extent && !as_int(callee[i].extent))
          steer(from);
        else
          ask(from, callee[i]);
      }
      if (!known && !call.op) steer(from);  // of a function that is not followed
      const graph::OpInput* input = nullptr;
      if (!known && call.op && i < call.op->inputs.size()) input = &call.op->inputs[i];
      if (input) of_input(call, *input, from);
      if (input && input->moved) {
        out.add(from);
      } else {
        out.computed.insert(from.moved.begin(), from.moved.end());
        out.computed.insert(from.computed.begin(), from.computed.end());
      }
    }
    return out;
  }

  // What the definition of the operator asks of an input.
  void of_input(const graph::Call& call, const graph::OpInput& input, const Sources& from) {
    const Expr extent = input.extent ? input.extent(call) : Expr();
    if (input.use == Kind::kSteers || (input.extent && !extent)) return steer(from);
    // `where(i < 0, i + extent, i)` counts indices from the end.
    const bool from_end = input.use == Kind::kIndex;
    if (from_end) steering_.insert(from.computed.begin(), from.computed.end());
    ask(from, {input.use, extent, from_end});
  }

  // An index range is the least of those asked for; other wishes do not overwrite it.
  void ask(const Sources& from, const InputMeaning& meaning) {
    if (meaning.kind == Kind::kValue) return;
    if (meaning.kind == Kind::kSteers) return steer(from);
    for (const size_t i : from.moved) {
      InputMeaning& now = meanings_[i];
      if (now.kind == Kind::kIndex) {
        if (meaning.kind != Kind::kIndex) continue;
        now.from_end = now.from_end && meaning.from_end;
        const auto a = as_int(now.extent), b = as_int(meaning.extent);
        if (!a || (b && *b >= *a)) continue;
        now.extent = meaning.extent;
      } else if (now.kind == Kind::kValue || meaning.kind == Kind::kIndex) {
        now = meaning;
      }
    }
  }

  void steer(const Sources& from) {
    steering_.insert(from.moved.begin(), from.moved.end());
    steering_.insert(from.computed.begin(), from.computed.end());
  }

  const IRModule& module_;
  const int depth_;
  Known& known_;
  std::vector<InputMeaning> meanings_;
  std::set<size_t> steering_;
  std::unordered_map<const Node*, Sources> of_;
};

// ---- TensorIR

class LoopUses {
 public:
  LoopUses(const IRModule& module, const tir::PrimFunc& function, int depth, Known& known)
      : module_(module), depth_(depth), known_(known) {
    for (const Ref<tir::Buffer>& buffer : function.buffers)
      if (buffer) params_.emplace(buffer.get(), params_.size());
    meanings_.resize(params_.size());
    walk(function.body, [&](const NodePtr& node) { visit(node); });
  }
  std::vector<InputMeaning> take() { return std::move(meanings_); }

 private:
  void visit(const NodePtr& node) {
    if (const auto* load = node.as<tir::BufferLoad>()) {
      indices(*load->buffer, load->indices);
    } else if (const auto* store = node.as<tir::BufferStore>()) {
      indices(*store->buffer, store->indices);
    } else if (const auto* op = node.as<Binary>()) {
      const bool divides = op->op == BinaryOp::kDiv || op->op == BinaryOp::kMod ||
                           op->op == BinaryOp::kFloorDiv || op->op == BinaryOp::kFloorMod;
      if (divides) ask(op->rhs, {Kind::kDivisor, {}, false});
    } else if (const auto* op = node.as<tenon::Call>()) {
      const bool shifts = op->is(IntrinsicId::kShiftLeft) || op->is(IntrinsicId::kShiftRight);
      const bool positive = op->is(IntrinsicId::kLog) || op->is(IntrinsicId::kLog1p) ||
                            op->is(IntrinsicId::kLog2) || op->is(IntrinsicId::kLog10) ||
                            op->is(IntrinsicId::kSqrt) || op->is(IntrinsicId::kRsqrt) ||
                            op->is(IntrinsicId::kPow);
      if (shifts) ask(op->arg(1), {Kind::kShift, {}, false});
      if (positive) ask(op->arg(0), {Kind::kPositive, {}, false});
      if (op->is(IntrinsicId::kAsin) || op->is(IntrinsicId::kAcos) || op->is(IntrinsicId::kAtanh))
        ask(op->arg(0), {Kind::kUnit, {}, false});
    } else if (const auto* loop = node.as<tir::For>()) {
      steer(loop->extent);
      steer(loop->min);
    } else if (const auto* call = node.as<tir::CallTir>()) {
      follow(*call);
    }
  }

  void indices(const tir::Buffer& buffer, const std::vector<Expr>& indices) {
    for (size_t d = 0; d < indices.size() && d < buffer.shape.size(); ++d) {
      const Expr& index = indices[d];
      // `x < 0 ? x + extent : x` counts from the end.
      const auto* choice = index.as<Select>();
      const auto* call = index.as<tenon::Call>();
      if (choice) {
        ask(choice->false_value, {Kind::kIndex, buffer.shape[d], true});
      } else if (call && call->is(IntrinsicId::kIfThenElse)) {
        ask(call->arg(2), {Kind::kIndex, buffer.shape[d], true});
      } else {
        ask(index, {Kind::kIndex, buffer.shape[d], false});
      }
      if (!loaded(index)) steer(index);
    }
  }

  // The parameter of which `expr` is an element, perhaps of another type.
  const size_t* loaded(Expr expr) const {
    while (const auto* change = expr.as<tenon::Cast>()) expr = change->value;
    const auto* load = expr.as<tir::BufferLoad>();
    const auto found = load ? params_.find(load->buffer.get()) : params_.end();
    return found == params_.end() ? nullptr : &found->second;
  }

  void ask(const Expr& expr, const InputMeaning& meaning) {
    const size_t* param = loaded(expr);
    if (!param) return;
    InputMeaning& now = meanings_[*param];
    const bool is_index = meaning.kind == Kind::kIndex;
    const bool weak = now.kind == Kind::kValue || now.kind == Kind::kSteers;
    if (weak || (is_index && now.kind != Kind::kIndex)) {
      now = meaning;
    } else if (is_index) {
      now.from_end = now.from_end && meaning.from_end;
      const auto a = as_int(now.extent), b = as_int(meaning.extent);
      if (a && b && *b < *a) now.extent = meaning.extent;
    }
  }

  void steer(const Expr& expr) {
    walk<tir::BufferLoad>(expr, [&](const tir::BufferLoad& load) {
      const auto found = params_.find(load.buffer.get());
      if (found == params_.end() || !load.buffer->dtype.is_integer()) return;
      InputMeaning& now = meanings_[found->second];
      if (now.kind == Kind::kValue) now.kind = Kind::kSteers;
    });
  }

  void follow(const tir::CallTir& call) {
    const auto callee = module_.find<tir::PrimFunc>(call.callee->name);
    if (!callee || depth_ >= kMostDepth) return;
    const std::vector<InputMeaning> inner =
        meanings_of(module_, call.callee->name, *callee, depth_ + 1, known_);
    size_t next = 0;
    for (size_t i = 0; i < call.args.size() && i < callee->buffers.size(); ++i) {
      if (!callee->buffers[i]) continue;
      const InputMeaning& meaning = inner.at(next++);
      const auto* region = call.args[i].as<tir::BufferRegion>();
      const auto found = region ? params_.find(region->buffer.get()) : params_.end();
      if (found == params_.end() || meaning.kind == Kind::kValue) continue;
      InputMeaning& now = meanings_[found->second];
      // The callee's dimensions mean nothing here unless they are numbers.
      if (meaning.extent && !as_int(meaning.extent)) {
        if (now.kind == Kind::kValue) now.kind = Kind::kSteers;
      } else if (now.kind == Kind::kValue || now.kind == Kind::kSteers) {
        now = meaning;
      }
    }
  }

  const IRModule& module_;
  const int depth_;
  Known& known_;
  std::unordered_map<const Node*, size_t> params_;
  std::vector<InputMeaning> meanings_;
};

std::vector<InputMeaning> meanings_of(const IRModule& module, const std::string& name,
                                      const tir::PrimFunc& function, int depth, Known& known) {
  if (const auto found = known.find(name); found != known.end()) return found->second;
  return known[name] = LoopUses(module, function, depth, known).take();
}

std::vector<InputMeaning> meanings_of(const IRModule& module, const std::string& name,
                                      const graph::Function& function, int depth, Known& known) {
  if (const auto found = known.find(name); found != known.end()) return found->second;
  return known[name] = GraphUses(module, function, depth, known).take();
}

}  // namespace

std::vector<InputMeaning> input_meanings(const IRModule& module, const graph::Function& function) {
  Known known;
  return GraphUses(module, function, 0, known).take();
}

std::vector<InputMeaning> input_meanings(const IRModule& module, const tir::PrimFunc& function) {
  Known known;
  return LoopUses(module, function, 0, known).take();
}

std::vector<InputMeaning> input_meanings(const IRModule& module) {
  std::vector<InputMeaning> out;
  if (const auto function = module.find<graph::Function>("main")) {
    out = input_meanings(module, *function);
    for (size_t i = 0; i < out.size() && i < function->params.size(); ++i)
      if (const auto* type = function->params[i]->type.as<graph::TensorType>(); type && type->shape)
        out[i].shape = *type->shape;
  } else if (const auto function = module.find<tir::PrimFunc>("main")) {
    out = input_meanings(module, *function);
  }
  return out;
}

}  // namespace tenon
