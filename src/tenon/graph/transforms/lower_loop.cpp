// SPDX-License-Identifier: Apache-2.0
// A loop in a lowered graph function: its body stands in a `for` or `while`, with its calls.
#include <algorithm>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/infer.h"
#include "tenon/graph/loop.h"
#include "tenon/graph/transforms/lowering.h"
#include "tenon/tir/compute.h"
#include "tenon/tir/host_memory.h"

namespace tenon::graph {

using tir::AllocBuffer;
using tir::Buffer;
using tir::BufferStore;
using tir::DeclBuffer;
using tir::Stmt;

namespace {

std::vector<Expr> zeros(size_t count) { return std::vector<Expr>(count, int64(0)); }

bool uses(const NodePtr& node, const std::set<const Node*>& vars) {
  bool found = false;
  walk<tenon::Var>(node, [&](const tenon::Var& var) { found |= vars.count(&var) > 0; });
  return found;
}

}  // namespace

class Lowering::Loop {
 public:
  Loop(Lowering& in, const Binding& binding, const Call& call, Origin origin)
      : in_(in),
        binding_(binding),
        call_(call),
        loop_(loop_call(call)),
        origin_(std::move(origin)),
        index_(make<tenon::Var>(in.names_.take("i"), kInt64)) {}

  void run() {
    instantiate();
    const auto& declared = call_.type_args[0].to<TupleType>().types;
    // Sizes that change, or follow from the iteration, are read anew each time.
    std::set<const Node*> varying = changing_;
    varying.insert(index_.get());
    // So is the length of what is stacked, where the loop's type does not say it.
    const bool has_late_stacks =
        std::any_of(declared.begin() + static_cast<std::ptrdiff_t>(loop_.states.size()),
                    declared.end(), [](const Type& type) { return !type.to<TensorType>().shape; });
    counts_ = loop_.while_first || !changing_.empty() || has_late_stacks || has_sizes_of(varying);
    if (counts_) {
      steps_ = small_buffer("steps", 1);
      in_.stmts_.push_back(make<BufferStore>(steps_, int64(0), zeros(1)));
    }
    Storage storage;
    storage.is_tuple = true;
    for (size_t k = 0; k < loop_.states.size(); ++k) {
      states_.push_back(begin_state(k));
      storage.buffers.push_back(states_[k].place);
    }
    for (size_t k = loop_.states.size(); k < declared.size(); ++k) {
      stacked_.push_back(begin_stack(k, declared[k]));
      storage.buffers.push_back(stacked_.back().whole);
    }
    const Stmt body = iteration();
    if (counts_) {
      Expr more = tir::load(steps_, zeros(1)) < loop_.count;
      if (loop_.while_first) more = logical_and(more, tir::load(states_[0].place, {}));
      in_.stmts_.push_back(make<tir::While>(more, body, origin_));
    } else {
      in_.stmts_.push_back(make<tir::For>(index_, int64(0), max(loop_.count, int64(0)),
                                          tir::ForKind::kSerial, body, Attrs(), origin_));
    }
    end();
    in_.storage_[binding_.var.get()] = std::move(storage);
  }

 private:
  struct State {
    Ref<Buffer> place;        // null where dimensions change
    Ref<Buffer> dims;         // null where they do not
    int64_t slot = 0;         // of the host's memory where they do
    Ref<Buffer> now;          // in the iteration
    bool is_written = false;  // its place by what computes the next
  };
  struct Stack {
    Ref<Buffer> whole;  // null where its length is not known
    Ref<Buffer> dims;
    int64_t slot = 0;
    std::vector<Expr> shape;  // of one
    Ref<Buffer> now;
  };

  const Ref<Var>& state_param(size_t k) const { return params_[k + 1]; }
  Value result(size_t k) const { return results_[k]; }

  Ref<Buffer> small_buffer(const std::string& name, int64_t count) {
    const auto buffer =
        make<Buffer>(in_.names_.take(name), kInt64,
                     std::vector<Expr>{int64(std::max<int64_t>(count, 1))}, origin_);
    in_.stmts_.push_back(make<AllocBuffer>(buffer, Attrs(), origin_));
    return buffer;
  }
  void store_dims(const Ref<Buffer>& dims, const std::vector<Expr>& shape) {
    for (size_t d = 0; d < shape.size(); ++d)
      in_.stmts_.push_back(
          make<BufferStore>(dims, shape[d], std::vector<Expr>{int64(static_cast<int64_t>(d))}));
  }
  static Expr dim_of(const Ref<Buffer>& dims, size_t d) {
    return tir::load(dims, {int64(static_cast<int64_t>(d))});
  }
  Type tensor_of(const std::vector<Expr>& shape, DType dtype) {
    return make<TensorType>(shape, dtype);
  }

  // The body with variables of its own, in terms of what is around the loop.
  void instantiate() {
    const auto body = renew_definitions(in_.module_.find<Function>(loop_.body));
    const auto changes = changing_dims(*body, loop_.states.size());
    find_changing(*body, changes);
    Substitution values;
    unify(body->params[0]->type, loop_numbers(loop_, index_), values);
    const std::vector<Type> given = loop_operand_types(loop_);
    for (size_t i = 0; i < given.size(); ++i) {
      Substitution own;
      unify(body->params[i + 1]->type, given[i], own);
      for (const auto& [var, value] : own)
        if (!changing_.count(var)) values.emplace(var, value);
    }
    for (const Ref<Var>& param : body->params) {
      params_.push_back(make<Var>(param->name, substitute(param->type, values), false, origin_));
      values.emplace(param.get(), params_.back());
    }
    body_ = make<Function>(params_, substitute(body->body, values), Type(), Attrs(), true, origin_);
    in_.bodies_.push_back(body_);
    in_.flatten(body_->body->body, results_);
    for (size_t k = 0; k < loop_.states.size(); ++k) {
      const auto& shape = *state_param(k)->type.to<TensorType>().shape;
      is_changing_.push_back(
          std::any_of(changes[k].begin(), changes[k].end(), [](bool c) { return c; }) ||
          std::any_of(shape.begin(), shape.end(),
                      [&](const Expr& dim) { return uses(dim, changing_); }));
    }
  }
  // Variables that stand for dimensions of states which change.
  void find_changing(const Function& body, const std::vector<std::vector<bool>>& changes) {
    for (size_t k = 0; k < changes.size(); ++k) {
      const auto& shape = *body.params[k + 1]->type.to<TensorType>().shape;
      for (size_t d = 0; d < shape.size(); ++d)
        if (changes[k][d]) changing_.insert(shape[d].get());
    }
  }

  bool has_sizes_of(const std::set<const Node*>& vars) const {
    bool found = false;
    walk<Binding>(body_->body,
                  [&](const Binding& binding) { found |= uses(binding.var->type, vars); });
    return found;
  }

  // ---- before the loop

  State begin_state(size_t k) {
    State state;
    const Type type = type_of(loop_.states[k]);
    if (!is_changing_[k]) {
      state.place = in_.changed_place(binding_, true, k, type, loop_.states[k], origin_);
      return state;
    }
    const auto& shape = *type.to<TensorType>().shape;
    state.dims = small_buffer(state_param(k)->name + "_dims", static_cast<int64_t>(shape.size()));
    state.slot = ++in_.slots_;
    store_dims(state.dims, shape);
    const Ref<Buffer> first = in_.host_memory(state_param(k)->name, type, state.slot, origin_);
    in_.copy(in_.buffer_of(loop_.states[k]), first);
    in_.late_results_[{binding_.var.get(), static_cast<int64_t>(k)}] = {state.dims, state.slot};
    return state;
  }

  Stack begin_stack(size_t k, const Type& declared) {
    Stack stack;
    const auto& one = type_of(result(k)).to<TensorType>();
    stack.shape = *one.shape;
    if (uses(type_of(result(k)), changing_) || uses(type_of(result(k)), {index_.get()}))
      throw CompileError(kUnsupported, origin_,
                         "result {} of a loop is {} in an iteration, which may change; what is "
                         "stacked has one shape",
                         k, str(type_of(result(k))));
    const std::string name = fmt::format("{}_{}", binding_.var->name, k);
    if (declared.to<TensorType>().shape) {
      stack.whole =
          in_.storage_for(binding_.var.get(), static_cast<int64_t>(k), name, declared, origin_);
      return stack;
    }
    if (loop_.reversed_outputs.count(k - loop_.states.size()))
      throw CompileError(kUnsupported, origin_,
                         "result {} of a loop is stacked from the end, whose place is not known "
                         "before the loop ends",
                         k);
    stack.dims = small_buffer(name + "_dims", one.ndim + 1);
    stack.slot = ++in_.slots_;
    in_.late_results_[{binding_.var.get(), static_cast<int64_t>(k)}] = {stack.dims, stack.slot};
    return stack;
  }

  // ---- an iteration

  Stmt iteration() {
    std::vector<Stmt> outer = std::move(in_.stmts_);
    in_.stmts_.clear();
    const bool was_outermost = std::exchange(in_.is_outermost_, false);
    const LateSizeChecks checks = in_.late_sizes_;
    Lifetimes lifetimes = std::exchange(in_.lifetimes_, Lifetimes(*body_));
    if (counts_)
      in_.stmts_.push_back(make<tir::Bind>(index_, tir::load(steps_, zeros(1)), origin_));
    in_.late_sizes_.add(index_.get());
    if (const auto most = in_.module_.attrs.get<int64_t>("max_steps"))
      if (const auto count = as_int(loop_.count); !count || *count > *most)
        in_.stmts_.push_back(
            make<tir::Assert>(Expr(index_) < int64(*most), steps_message(*most), origin_));
    in_.find_late_numbers(*body_->body);
    define_operands();
    claim_results();
    in_.sequence(*body_->body);
    store_results();
    if (counts_) in_.stmts_.push_back(make<BufferStore>(steps_, Expr(index_) + 1, zeros(1)));
    in_.lifetimes_ = std::move(lifetimes);
    in_.late_sizes_ = checks;
    in_.is_outermost_ = was_outermost;
    std::vector<Stmt> inner = std::move(in_.stmts_);
    in_.stmts_ = std::move(outer);
    return make<tir::Seq>(std::move(inner));
  }

  // Dimensions of states are read first, so that they are known together.
  void define_operands() {
    std::map<const Node*, std::pair<size_t, size_t>> known;
    for (size_t k = 0; k < states_.size(); ++k) {
      if (!states_[k].dims) continue;
      const auto& shape = *state_param(k)->type.to<TensorType>().shape;
      for (size_t d = 0; d < shape.size(); ++d)
        if (shape[d].as<tenon::Var>() && changing_.count(shape[d].get()) &&
            known.try_emplace(shape[d].get(), k, d).second) {
          in_.late_sizes_.add(shape[d].get());
          in_.numbers_.insert(shape[d].get());
          in_.stmts_.push_back(make<tir::Bind>(ref_to(shape[d].as<tenon::Var>()),
                                               dim_of(states_[k].dims, d), origin_));
        }
    }
    for (size_t k = 0; k < states_.size(); ++k) {
      State& state = states_[k];
      const Type& type = state_param(k)->type;
      if (state.dims) {
        check_dims(k, known);
        state.now = in_.host_memory(state_param(k)->name, type, state.slot, origin_);
      } else {
        state.now = state.place;
      }
      in_.storage_[state_param(k).get()] = {{state.now}, false};
    }
    size_t param = 1 + states_.size();
    for (size_t j = 0; j < loop_.slices.size(); ++j, ++param) {
      const Ref<Buffer> whole = in_.buffer_of(loop_.slices[j]);
      in_.storage_[params_[param].get()] = {{part(whole, at(loop_.reversed_inputs.count(j) > 0),
                                                  params_[param]->name, params_[param]->type)},
                                            false};
    }
    for (const Value& value : loop_.captured)
      in_.storage_[params_[param++].get()] = {{in_.buffer_of(value)}, false};
  }
  // A dimension that is another one's, or an expression of it, was that in the last iteration too.
  void check_dims(size_t k, const std::map<const Node*, std::pair<size_t, size_t>>& read) {
    const auto& shape = *state_param(k)->type.to<TensorType>().shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      const auto it = read.find(shape[d].get());
      const bool is_read_here = it != read.end() && it->second == std::pair(k, d);
      if (is_read_here || !uses(shape[d], changing_)) continue;
      in_.stmts_.push_back(
          make<tir::Assert>(eq(dim_of(states_[k].dims, d), shape[d]),
                            fmt::format("dimension {} of a loop's state `{}` is not {}", d,
                                        state_param(k)->name, tenon::str(shape[d])),
                            origin_));
    }
  }

  Expr at(bool reversed) const {
    return reversed ? arith::simplify(loop_.count - 1 - Expr(index_)) : Expr(index_);
  }
  // Element `index` of the first axis of `whole`.
  Ref<Buffer> part(const Ref<Buffer>& whole, const Expr& index, const std::string& name,
                   const Type& type) {
    const Ref<Buffer> buffer = in_.new_buffer(name, type, origin_);
    std::vector<Expr> first = zeros(whole->ndim());
    first[0] = index;
    in_.stmts_.push_back(make<DeclBuffer>(
        buffer, tenon::call(IntrinsicId::kAddressOf, {tir::load(whole, first)}), origin_));
    return buffer;
  }

  // What computes a result does it where it belongs, if nobody needs what is there by then.
  void claim_results() {
    for (size_t k = 0; k < states_.size(); ++k) {
      State& state = states_[k];
      const Maker maker = in_.maker_of(result(k));
      if (state.dims || !maker.binding || in_.claimed_.count(maker.result)) continue;
      if (!in_.lifetimes_.ends_before(*maker.binding, state_param(k))) continue;
      in_.claimed_.emplace(maker.result, state.place);
      state.is_written = true;
    }
    for (size_t s = 0; s < stacked_.size(); ++s) {
      Stack& stack = stacked_[s];
      const size_t k = states_.size() + s;
      const Type type = tensor_of(stack.shape, type_of(result(k)).to<TensorType>().dtype);
      Ref<Buffer> whole = stack.whole;
      if (!whole) {
        std::vector<Expr> shape = stack.shape;
        shape.insert(shape.begin(), Expr(index_) + 1);
        whole = in_.host_memory(fmt::format("{}_{}", binding_.var->name, k),
                                tensor_of(shape, type.to<TensorType>().dtype), stack.slot, origin_);
      }
      stack.now = part(whole, at(loop_.reversed_outputs.count(s) > 0),
                       fmt::format("{}_{}_part", binding_.var->name, k), type);
      const Maker maker = in_.maker_of(result(k));
      if (maker.binding) in_.claimed_.emplace(maker.result, stack.now);
    }
  }

  void store_results() {
    for (size_t s = 0; s < stacked_.size(); ++s) {
      const Ref<Buffer> from = in_.buffer_of(result(states_.size() + s));
      if (!in_.views_of(from, stacked_[s].now)) in_.copy(from, stacked_[s].now);
    }
    // States may change places: what is another one's old value is put aside first.
    std::vector<Ref<Buffer>> from;
    for (size_t k = 0; k < states_.size(); ++k) {
      Ref<Buffer> next = in_.buffer_of(result(k));
      for (size_t other = 0; other < states_.size(); ++other)
        if (other != k && in_.views_of(next, states_[other].now) &&
            !in_.views_of(next, states_[k].now)) {
          const Ref<Buffer> aside =
              in_.new_buffer(next->name, tensor_of(next->shape, next->dtype), origin_);
          in_.late_sizes_.check(*aside, in_.stmts_);
          in_.stmts_.push_back(make<AllocBuffer>(aside, Attrs(), origin_));
          in_.copy(next, aside);
          next = aside;
          break;
        }
      from.push_back(next);
    }
    for (size_t k = 0; k < states_.size(); ++k) {
      State& state = states_[k];
      if (!in_.views_of(from[k], state.now)) {
        const Ref<Buffer> to =
            state.dims
                ? in_.host_memory(state_param(k)->name, tensor_of(from[k]->shape, from[k]->dtype),
                                  state.slot, origin_)
                : state.now;
        in_.copy(from[k], to);
      }
      if (state.dims) store_dims(state.dims, from[k]->shape);
    }
  }

  // ---- behind the loop

  void end() {
    for (const Stack& stack : stacked_) {
      if (!stack.dims) continue;
      std::vector<Expr> shape = stack.shape;
      shape.insert(shape.begin(), tir::load(steps_, zeros(1)));
      store_dims(stack.dims, shape);
    }
  }

  Lowering& in_;
  const Binding& binding_;
  const Call& call_;
  const LoopCall loop_;
  const Origin origin_;
  const Ref<tenon::Var> index_;
  bool counts_ = false;  // the number of the iteration lies in memory
  Ref<Buffer> steps_;
  Ref<Function> body_;
  std::vector<Ref<Var>> params_;
  std::vector<Value> results_;
  std::set<const Node*> changing_;  // variables
  std::vector<bool> is_changing_;   // states
  std::vector<State> states_;
  std::vector<Stack> stacked_;
};

void Lowering::lower_loop(const Binding& binding, const Call& call, const Origin& origin) {
  Loop(*this, binding, call, origin).run();
}

Ref<Buffer> Lowering::host_memory(const std::string& name, const Type& type, int64_t slot,
                                  const Origin& origin) {
  const Ref<Buffer> buffer = new_buffer(name, type, origin);
  late_sizes_.check(*buffer, stmts_);
  stmts_.push_back(make<AllocBuffer>(buffer, Attrs{{tir::kHostWorkspace, slot}}, origin));
  return buffer;
}

const Lowering::LateResult* Lowering::late_result(const Value& value) const {
  Value at = value;
  while (const Binding* bound = at.as<Var>() ? lifetimes_.binding_of(at) : nullptr) {
    if (bound->match || !(bound->value.as<Var>() || bound->value.as<TupleGetItem>())) break;
    at = bound->value;
  }
  const auto it = late_results_.find(place_of(at));
  return it == late_results_.end() ? nullptr : &it->second;
}

void Lowering::name_dims(const Binding& binding, const LateResult& result, const Origin& origin) {
  const std::vector<Expr>* dims = dims_of(binding.match);
  if (!dims)
    throw CompileError(kUnsupported, origin,
                       "match_cast of a loop's result to {} cannot be compiled",
                       str(binding.match));
  std::vector<Stmt> checks;
  for (size_t d = 0; d < dims->size(); ++d) {
    const Expr found = tir::load(result.dims, {int64(static_cast<int64_t>(d))});
    const auto* var = (*dims)[d].as<tenon::Var>();
    if (var && late_sizes_.depends((*dims)[d]) && numbers_.insert(var).second)
      stmts_.push_back(make<tir::Bind>(ref_to(var), found, origin));
    else
      checks.push_back(make<tir::Assert>(eq(found, (*dims)[d]),
                                         fmt::format("dimension {} of `{}` is not {}", d,
                                                     binding.var->name, tenon::str((*dims)[d])),
                                         origin));
  }
  stmts_.insert(stmts_.end(), checks.begin(), checks.end());
  storage_[binding.var.get()] = {
      {host_memory(binding.var->name, binding.match, result.slot, origin)}, false};
}

}  // namespace tenon::graph
