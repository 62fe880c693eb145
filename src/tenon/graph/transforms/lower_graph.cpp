// SPDX-License-Identifier: Apache-2.0
// Lowers graph function `main` to a PrimFunc: values become buffers, calls become T.call_tir on
// them.
//
// A value's storage is decided before its call is emitted: where a result of the program is
// computed by a call (or is a reshape of what a call computes), that call writes the output buffer
// itself; a reshape is a view; everything else is an allocation, which the memory planner places.

#include <algorithm>
#include <set>
#include <span>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/assertion.h"
#include "tenon/graph/loop.h"
#include "tenon/graph/op.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/lowering.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/compute.h"
#include "tenon/tir/host_memory.h"
#include "tenon/tir/scalar_sources.h"

namespace tenon::graph {

using tir::AllocBuffer;
using tir::AllocConst;
using tir::Buffer;
using tir::BufferRegion;
using tir::CallTir;
using tir::DeclBuffer;
using tir::PrimFunc;
using tir::Stmt;

// Where a result comes from: what is wrong with its size is said there.
static Origin origin_of(const Function& function, const Value& result) {
  const Node* var = result.get();
  if (const auto* item = result.as<TupleGetItem>()) var = item->tuple.get();
  for (const Ref<BindingBlock>& block : function.body->blocks)
    for (const Ref<Binding>& binding : block->bindings)
      if (binding->var.get() == var)
        return binding->origin ? binding->origin : binding->value->origin;
  return function.origin;
}

Ref<PrimFunc> Lowering::run(Role role) {
  std::vector<Ref<Buffer>> params;
  for (const Ref<Var>& param : function_->params) {
    if (!param->type.as<TensorType>())
      throw CompileError(kUnsupported, param->origin,
                         "parameter `{}` of `main` has type {}; only tensors compile", param->name,
                         str(param->type));
    params.push_back(role == Role::kEntry ? input(*param)
                                          : new_buffer(param->name, param->type, param->origin));
    if (!storage_.count(param.get())) storage_[param.get()] = {{params.back()}, false};
    if (role == Role::kEntry) input_of_[param.get()] = params.size() - 1;
  }
  const size_t inputs = params.size();
  std::vector<Value> results;
  flatten(function_->body->body, results);
  outputs_.resize(results.size());
  if (role == Role::kEntry) find_late_numbers(*function_->body);
  const std::vector<tir::SharedBuffer> shared = tir::shared_buffers(
      role == Role::kEntry ? function_->attrs : Attrs(), inputs, results.size(), function_->origin);
  for (size_t i = 0; i < results.size(); ++i) {
    const Type type = type_of(results[i]);
    if (late_sizes_.depends(type)) {
      late_claims_.emplace(place_of(results[i]), i);
      continue;
    }
    outputs_[i] = new_buffer(output_name(i), type, origin_of(*function_, results[i]));
    params.push_back(outputs_[i]);
    const auto pair = std::find_if(shared.begin(), shared.end(),
                                   [&](const auto& other) { return other.output == i; });
    if (pair == shared.end())
      claim(results[i], outputs_[i]);
    else
      share(*pair, params[pair->input]);
  }
  sequence(*function_->body);
  if (role == Role::kEntry) bounds_.check_all_read();
  unshare(results, shared);
  for (size_t i = 0; i < results.size(); ++i) {
    const Ref<Buffer> from = staged_.count(i) ? staged_.at(i) : buffer_of(results[i]);
    if (!outputs_[i]) late_output(i, type_of(results[i]), origin_of(*function_, results[i]));
    const Ref<Buffer>& to = outputs_[i];
    if (!from.same_as(to) && !views_of(from, to)) copy(from, to);
  }
  std::vector<Stmt> body = std::move(constants_);
  if (role == Role::kEntry) {
    const std::vector<Ref<Buffer>> all = params;
    const std::span<const Ref<Buffer>> given(all);
    check_given_sizes(given.first(inputs), given.subspan(inputs), scalars_, stmts_, body);
  }
  body.insert(body.end(), stmts_.begin(), stmts_.end());
  align_memory(params, body);
  if (role == Role::kCalled)
    return PrimFunc::of_buffers(std::move(params), make<tir::Seq>(std::move(body)),
                                {{"tir.noalias", true}}, function_->origin);
  Attrs attrs = function_->attrs;
  attrs.set("tenon.entry", true);
  attrs.set("tenon.num_inputs", static_cast<int64_t>(inputs));
  attrs.set("tir.noalias", true);
  if (!scalars_.empty()) attrs.set(tir::kScalarSources, scalar_sources_);
  if (!attrs.contains("input_names")) {
    std::vector<std::string> names;
    for (const Ref<Var>& param : function_->params) names.push_back(param->name);
    attrs.set("input_names", names);
  }
  if (!attrs.contains("output_names")) {
    std::vector<std::string> names;
    for (const Ref<Buffer>& output : outputs_) names.push_back(output->name);
    attrs.set("output_names", names);
  }
  return with(PrimFunc::of_buffers(std::move(params), make<tir::Seq>(std::move(body)),
                                   std::move(attrs), function_->origin),
              [&](PrimFunc& copy) {
                copy.params.insert(copy.params.end(), scalars_.begin(), scalars_.end());
                copy.buffers.resize(copy.params.size());
              });
}

void Lowering::share(const tir::SharedBuffer& pair, const Ref<Buffer>& input) {
  const Var& param = *function_->params[pair.input];
  const Ref<Buffer>& output = outputs_[pair.output];
  if (input->dtype != output->dtype || !arith::proves_equal(input->shape, output->shape))
    throw CompileError(kShapeMismatch, param.origin,
                       "output {} of shape {} shares the memory of `{}`, which has shape {}",
                       pair.output, tenon::str(output->shape), param.name,
                       tenon::str(input->shape));
  storage_[&param] = {{output}, false};
}

void Lowering::unshare(const std::vector<Value>& results,
                       const std::vector<tir::SharedBuffer>& shared) {
  if (shared.empty()) return;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!outputs_[i]) continue;
    const Ref<Buffer> from = buffer_of(results[i]);
    const bool moves = std::any_of(shared.begin(), shared.end(), [&](const auto& pair) {
      return pair.output != i && views_of(from, outputs_[pair.output]);
    });
    if (!moves) continue;
    const Ref<Buffer> stage =
        new_buffer(output_name(i) + "_stage", type_of(results[i]), function_->origin);
    stmts_.push_back(make<AllocBuffer>(stage, Attrs(), function_->origin));
    copy(from, stage);
    staged_.emplace(i, stage);
  }
}

void Lowering::find_late_numbers(const SeqExpr& body) {
  std::set<const Node*> given_dims;  // of inputs: known before
  for (const Ref<Var>& param : function_->params)
    walk<tenon::Var>(param->type, [&](const tenon::Var& var) { given_dims.insert(&var); });
  walk<Binding>(ref_to(&body), [&](const Binding& binding) {
    if (!binding.match) return;
    const Call* numbers = numbers_of(binding.value);
    if (numbers && input_of_.count(numbers->args[0].get())) return;
    const auto* given = type_of(binding.value).as<TensorType>();
    const bool is_late_result = given && !given->shape;
    const std::vector<Expr>* dims = numbers || is_late_result ? dims_of(binding.match) : nullptr;
    if (!dims) return;
    for (const Expr& dim : *dims)
      if (dim.as<tenon::Var>() && !given_dims.count(dim.get())) late_sizes_.add(dim.get());
  });
}

std::pair<const Node*, int64_t> Lowering::place_of(const Value& value) {
  const auto* get = value.as<TupleGetItem>();
  return get ? std::pair<const Node*, int64_t>(get->tuple.get(), get->index)
             : std::pair<const Node*, int64_t>(value.get(), 0);
}

Ref<Buffer> Lowering::late_output(size_t i, const Type& type, const Origin& origin) {
  outputs_[i] = new_buffer(output_name(i), type, origin);
  late_sizes_.check(*outputs_[i], stmts_);
  stmts_.push_back(
      make<AllocBuffer>(outputs_[i], Attrs{{tir::kHostOutput, static_cast<int64_t>(i)}}, origin));
  return outputs_[i];
}

Ref<Buffer> Lowering::new_buffer(const std::string& name, const Type& type, const Origin& origin) {
  const auto* tensor = type.as<TensorType>();
  if (!tensor || !tensor->shape || tensor->dtype.is_void())
    throw CompileError(kUnsupported, origin,
                       "`{}` has type {}; a compiled program needs its shape and element type",
                       name, str(type));
  return make<Buffer>(names_.take(name), tensor->dtype, *tensor->shape, origin);
}

Ref<Buffer> Lowering::input(const Var& param) {
  const auto& type = static_cast<const TensorType&>(*param.type);
  std::vector<Stmt> checks;
  std::vector<Expr> dims = type.shape.value_or(std::vector<Expr>{});
  for (size_t d = 0; d < dims.size(); ++d) {
    if (as_int(dims[d]) || dims[d].as<tenon::Var>()) continue;
    const Expr found = size_var(names_.take(fmt::format("{}_dim{}", param.name, d)));
    checks.push_back(make<tir::Assert>(
        eq(found, dims[d]),
        fmt::format("dimension {} of input `{}` is not {}", d, param.name, str(dims[d])),
        param.origin));
    dims[d] = found;
  }
  if (checks.empty()) return new_buffer(param.name, param.type, param.origin);
  const Ref<Buffer> buffer =
      new_buffer(param.name, make<TensorType>(std::move(dims), type.dtype), param.origin);
  stmts_.insert(stmts_.end(), checks.begin(), checks.end());
  storage_[&param] = {{view(buffer, param.name, param.type, param.origin)}, false};
  return buffer;
}

void Lowering::flatten(const Value& value, std::vector<Value>& out) {
  if (const auto* tuple = value.as<Tuple>()) {
    for (const Value& item : tuple->values) flatten(item, out);
    return;
  }
  const Type type = type_of(value);
  if (const auto* types = type.as<TupleType>()) {
    for (size_t i = 0; i < types->types.size(); ++i)
      flatten(make<TupleGetItem>(value, static_cast<int64_t>(i)), out);
    return;
  }
  out.push_back(value);
}

Lowering::Maker Lowering::maker_of(const Value& value) const {
  Value at = value;
  int64_t item = 0;
  for (;;) {
    if (const auto* get = at.as<TupleGetItem>()) {
      item = get->index;
      at = get->tuple;
    }
    const Binding* bound = lifetimes_.binding_of(at);
    if (bound && !bound->match && bound->value.as<TupleGetItem>()) {
      at = bound->value;
      continue;
    }
    const auto* call = bound && !bound->match ? bound->value.as<Call>() : nullptr;
    if (!call) return {};
    if (call->is("reshape")) {
      at = call->args[0];
      item = 0;
      continue;
    }
    const auto foreign = foreign_call(*call);
    if (!is_call_tir(*call) && !foreign && !call->is("loop")) return {};
    if (const Value changed = changed_argument(*call, foreign, static_cast<size_t>(item));
        changed && lifetimes_.ends_in(*bound, changed)) {
      at = changed;
      item = 0;
      continue;
    }
    return {bound, {at.get(), item}};
  }
}

void Lowering::claim(const Value& value, const Ref<Buffer>& output) {
  if (const Maker maker = maker_of(value); maker.binding) claimed_.emplace(maker.result, output);
}

Value Lowering::changed_argument(const Call& call, const std::optional<ForeignCall>& foreign,
                                 size_t i) {
  if (foreign) {
    const bool is_changed = i < foreign->in_place.size() && foreign->in_place[i] != kFresh;
    return is_changed ? foreign->arguments[foreign->in_place[i]] : Value();
  }
  if (call.is("loop")) {
    const LoopCall loop = loop_call(call);
    return i < loop.states.size() ? loop.states[i] : Value();
  }
  const auto& args = call.args.at(1).as<Tuple>()->values;
  const std::vector<size_t> places = in_place_indices(call, output_types(call).size(), args.size());
  return i < places.size() && places[i] != kFresh ? args[places[i]] : Value();
}

Ref<Buffer> Lowering::buffer_of(const Value& value) {
  if (const auto* get = value.as<TupleGetItem>()) {
    const Storage& tuple = storage_of(get->tuple);
    return tuple.buffers.at(static_cast<size_t>(get->index));
  }
  const Storage& storage = storage_of(value);
  if (storage.is_tuple || storage.buffers.size() != 1)
    throw CompileError(kUnsupported, value->origin, "a tuple stands where a tensor is needed");
  return storage.buffers[0];
}

const Storage& Lowering::storage_of(const Value& value) {
  if (const auto* constant = value.as<Constant>()) {
    Storage& slot = constant_storage_[constant->data];
    if (slot.buffers.empty()) {
      const Ref<Buffer> buffer = make<Buffer>(names_.take("const"), constant->data->dtype,
                                              to_exprs(constant->data->shape), constant->origin);
      constants_.push_back(make<AllocConst>(buffer, constant->data, constant->origin));
      slot.buffers = {buffer};
    }
    return slot;
  }
  if (const auto* tuple = value.as<Tuple>()) {
    Storage storage;
    storage.is_tuple = true;
    for (const Value& item : tuple->values) storage.buffers.push_back(buffer_of(item));
    temporaries_.push_back(std::move(storage));
    return temporaries_.back();
  }
  const auto it = storage_.find(value.get());
  if (it == storage_.end())
    throw CompileError(kUnsupported, value->origin,
                       "a value of type {} has no place in a compiled program",
                       str(type_of(value)));
  return it->second;
}

void Lowering::sequence(const SeqExpr& seq) {
  for (const Ref<BindingBlock>& block : seq.blocks)
    for (const Ref<Binding>& binding : block->bindings) bind(*binding);
}

void Lowering::bind(const Binding& binding) {
  const Origin origin = binding.origin ? binding.origin : binding.value->origin;
  if (binding.match) return match_cast(binding, origin);
  if (const auto* branch = binding.value.as<If>()) return lower_if(binding, *branch, origin);
  const auto* call = binding.value.as<Call>();
  if (!call) {
    if (binding.value.as<FunctionValue>() || binding.value.as<SeqExpr>())
      throw CompileError(kUnsupported, origin,
                         "`{}` is bound to a function; closures run in the interpreter only",
                         binding.var->name);
    if (binding.value.as<TupleGetItem>())
      storage_[binding.var.get()] = {{buffer_of(binding.value)}, false};
    else if (!type_of(binding.value).as<ShapeType>() && !type_of(binding.value).as<PrimType>())
      storage_[binding.var.get()] = storage_of(binding.value);
    return;
  }
  if (call->is("reshape") || call->is("words")) return reshape(binding, *call, origin);
  if (call->is("tensor_to_shape")) return;  // where a match_cast names the elements
  if (call->is("assert_op")) {
    stmts_.push_back(make<tir::Assert>(condition(call->args[0]), assert_message(*call), origin));
    return;
  }
  if (is_call_tir(*call)) return call_tir(binding, *call, origin);
  if (call->is("loop")) return lower_loop(binding, *call, origin);
  if (const auto foreign = foreign_call(*call))
    return call_extern(binding, *call, *foreign, origin);
  throw CompileError(kUnsupported, origin, "`{}` cannot be compiled here; expected R.call_tir",
                     call->op ? call->op->name : "a call of a function value");
}

void Lowering::reshape(const Binding& binding, const Call& call, const Origin& origin) {
  const Ref<Buffer> source = buffer_of(call.args[0]);
  storage_[binding.var.get()] = {{view(source, binding.var->name, binding.var->type, origin)},
                                 false};
}

Ref<Buffer> Lowering::view(const Ref<Buffer>& source, const std::string& name, const Type& type,
                           const Origin& origin) {
  const Ref<Buffer> buffer = new_buffer(name, type, origin);
  late_sizes_.check(*buffer, stmts_);
  const Buffer* root = root_of(source);
  stmts_.push_back(make<DeclBuffer>(buffer, root->data, origin));
  view_root_[buffer.get()] = root;
  return buffer;
}

const Buffer* Lowering::root_of(const Ref<Buffer>& buffer) const {
  const auto it = view_root_.find(buffer.get());
  return it == view_root_.end() ? buffer.get() : it->second;
}

Ref<Buffer> Lowering::storage_for(const Node* var, int64_t item, const std::string& name,
                                  const Type& type, const Origin& origin) {
  const auto claimed = claimed_.find(std::pair(var, item));
  if (claimed != claimed_.end()) {
    const Ref<Buffer>& output = claimed->second;
    return is_shape_of(*output, type) ? output : view(output, name, type, origin);
  }
  if (const auto late = late_claims_.find(std::pair(var, item));
      late != late_claims_.end() && is_outermost_)
    return late_output(late->second, type, origin);
  const Ref<Buffer> buffer = new_buffer(name, type, origin);
  late_sizes_.check(*buffer, stmts_);
  stmts_.push_back(make<AllocBuffer>(buffer, Attrs(), origin));
  return buffer;
}

const Call* Lowering::numbers_of(const Value& value) const {
  const Binding* bound = lifetimes_.binding_of(value);
  const auto* call = (bound && !bound->match ? bound->value : value).as<Call>();
  return call && call->is("tensor_to_shape") ? call : nullptr;
}

void Lowering::define_numbers(const Binding& binding, const Value& tensor, const Origin& origin) {
  const Ref<Buffer> buffer = buffer_of(tensor);
  const auto input = input_of_.find(tensor.get());
  const std::vector<Expr>& wanted = *dims_of(binding.match);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const Expr element =
        tenon::cast(kInt64, tir::load(buffer, std::vector<Expr>(buffer->ndim(), int64(at))));
    const auto* var = wanted[i].as<tenon::Var>();
    if (!var || !numbers_.insert(var).second) {
      stmts_.push_back(make<tir::Assert>(
          eq(element, wanted[i]),
          fmt::format("element {} of `{}` is not {}", i, buffer->name, str(wanted[i])), origin));
    } else if (input != input_of_.end()) {
      scalars_.push_back(ref_to(var));
      scalar_sources_.push_back(AttrList{static_cast<int64_t>(input->second), at});
      bounds_.read(*var, origin, stmts_);
    } else {
      stmts_.push_back(make<tir::Bind>(ref_to(var), element, origin));
      bounds_.read(*var, origin, stmts_);
    }
  }
}

void Lowering::match_cast(const Binding& binding, const Origin& origin) {
  const Call* numbers = numbers_of(binding.value);
  if (numbers && dims_of(binding.match)) return define_numbers(binding, numbers->args[0], origin);
  if (const LateResult* late = late_result(binding.value)) return name_dims(binding, *late, origin);
  const Type from = type_of(binding.value);
  const std::vector<Expr>* seen = dims_of(from);
  const std::vector<Expr>* wanted = dims_of(binding.match);
  if (!seen || !wanted || seen->size() != wanted->size())
    throw CompileError(kUnsupported, origin, "match_cast of type {} to {} cannot be compiled",
                       str(from), str(binding.match));
  for (size_t i = 0; i < seen->size(); ++i) {
    if (structural_equal((*seen)[i], (*wanted)[i])) continue;
    stmts_.push_back(
        make<tir::Assert>(eq((*seen)[i], (*wanted)[i]),
                          fmt::format("dimension {} of `{}` is {}; expected {}", i,
                                      binding.var->name, str((*seen)[i]), str((*wanted)[i])),
                          origin));
  }
  if (from.as<TensorType>()) {
    const Ref<Buffer> source = buffer_of(binding.value);
    storage_[binding.var.get()] = {{view(source, binding.var->name, binding.match, origin)}, false};
  }
}

void Lowering::lower_if(const Binding& binding, const If& branch, const Origin& origin) {
  std::vector<Type> types = {binding.var->type};
  Storage storage;
  if (const auto* tuple = binding.var->type.as<TupleType>()) {
    types = tuple->types;
    storage.is_tuple = true;
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string name =
        storage.is_tuple ? fmt::format("{}_{}", binding.var->name, i) : binding.var->name;
    storage.buffers.push_back(
        storage_for(binding.var.get(), static_cast<int64_t>(i), name, types[i], origin));
  }
  const auto arm = [&](const SeqExpr& seq) {
    std::vector<Stmt> outer = std::move(stmts_);
    stmts_.clear();
    const bool was_outermost = std::exchange(is_outermost_, false);
    sequence(seq);
    is_outermost_ = was_outermost;
    std::vector<Value> values;
    flatten(seq.body, values);
    for (size_t i = 0; i < values.size(); ++i) copy(buffer_of(values[i]), storage.buffers[i]);
    std::vector<Stmt> inner = std::move(stmts_);
    stmts_ = std::move(outer);
    return make<tir::Seq>(std::move(inner));
  };
  const Stmt then_case = arm(*branch.then_branch);
  const Stmt else_case = arm(*branch.else_branch);
  stmts_.push_back(
      make<tir::IfThenElse>(condition(branch.condition), then_case, else_case, origin));
  storage_[binding.var.get()] = std::move(storage);
}

Expr Lowering::condition(const Value& value) {
  Expr test;
  if (const auto* prim = value.as<PrimValue>()) {
    test = prim->value;
  } else {
    const Ref<Buffer> buffer = buffer_of(value);
    test = tir::load(buffer, std::vector<Expr>(buffer->ndim(), int64(0)));
  }
  return test->dtype.is_bool() ? test : ne(test, imm(test->dtype, int64_t{0}));
}

void Lowering::copy(const Ref<Buffer>& from, const Ref<Buffer>& to) {
  const auto known = as_ints(to->shape);
  const Expr count = known ? int64(checked_elements(*known)) : size_var("n");
  const Ref<PrimFunc> shared = with(tir::copy_kernel({count}, from->dtype, from->origin),
                                    [](PrimFunc& copy) { copy.is_private = true; });
  std::string& name = copies_[structural_hash(shared)];
  if (name.empty()) name = module_.add_unique("copy", shared);
  const auto flat = [&](const Ref<Buffer>& buffer) {
    if (buffer->ndim() == 1) return buffer;
    return view(
        buffer, buffer->name + "_flat",
        make<TensorType>(std::vector<Expr>{tir::element_count(buffer->shape)}, buffer->dtype),
        buffer->origin);
  };
  const Ref<Buffer> source = flat(from), target = flat(to);
  stmts_.push_back(make<CallTir>(
      make<GlobalVar>(name),
      std::vector<NodePtr>{BufferRegion::whole(source), BufferRegion::whole(target)}));
}

Target target_of(const IRModule& module) {
  const auto text = module.attrs.get<std::string>("target");
  if (!text)
    throw CompileError(kBadOption, {},
                       "the module has no attribute `target`; expected a target's text");
  return parse_target(*text);
}

IRModule lower_graph(IRModule module) {
  const auto main = module.find<Function>("main");
  if (!main) throw CompileError(kUndefined, {}, "the module has no graph function `main`");
  const std::vector<IRModule::Entry> given = module.functions();
  const std::set<std::string> bodies = loop_bodies(module);
  bool dropped = false;
  for (const auto& [name, function] : given) {
    if (name == "main" || !function.as<Function>() || bodies.count(name)) continue;
    bool is_called = false;
    walk<FuncRef>(main->body,
                  [&, &self = name](const FuncRef& ref) { is_called |= ref.name == self; });
    if (is_called)
      throw CompileError(
          kUnsupported, function->origin,
          "graph function `{}` cannot be compiled by itself; inline or outline it first", name);
    // A program is what `main` does.
    record({"LowerGraph", name, "dropped", "not-called-by-main", {}, "", function->origin});
    module.erase(name);
    dropped = true;
  }
  if (dropped) module = eliminate_dead_code(std::move(module));
  const Ref<PrimFunc> lowered = Lowering(module, *main).run(Lowering::Role::kEntry);
  module.set("main", lowered);
  // What was inlined into it.
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, function] : entries)
    if (bodies.count(name) || (function.as<PrimFunc>() && function->attrs.flag("tenon.inline")))
      module.erase(name);
  return module;
}

Ref<PrimFunc> lower_function(IRModule& module, const Function& function) {
  return Lowering(module, function).run(Lowering::Role::kCalled);
}

}  // namespace tenon::graph
