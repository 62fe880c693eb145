// SPDX-License-Identifier: Apache-2.0
// Lowers graph function `main` to a PrimFunc: values become buffers, calls become T.call_tir on
// them.
//
// A value's storage is decided before its call is emitted: where a result of the program is
// computed by a call (or is a reshape of what a call computes), that call writes the output buffer
// itself; a reshape is a view; everything else is an allocation, which the memory planner places.

#include <algorithm>
#include <deque>
#include <span>
#include <unordered_set>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/assertion.h"
#include "tenon/graph/extern_call.h"
#include "tenon/graph/op.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/known_dims.h"
#include "tenon/graph/transforms/lifetimes.h"
#include "tenon/graph/transforms/size_checks.h"
#include "tenon/support/names.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/call_body.h"
#include "tenon/tir/compute.h"
#include "tenon/tir/host_memory.h"
#include "tenon/tir/needed_alignment.h"
#include "tenon/tir/scalar_sources.h"
#include "tenon/tir/scratch_query.h"
#include "tenon/tir/stmt.h"

namespace tenon::graph {

namespace {

using tir::AllocBuffer;
using tir::AllocConst;
using tir::Buffer;
using tir::BufferRegion;
using tir::CallTir;
using tir::DeclBuffer;
using tir::PrimFunc;
using tir::Stmt;

/// What a graph value is in the program: one buffer for a tensor, several for a tuple.
struct Storage {
  std::vector<Ref<Buffer>> buffers;
  bool is_tuple = false;
};

class Lowering {
 public:
  Lowering(IRModule& module, const Function& function)
      : module_(module),
        function_(with_dims_of_inputs(function)),
        lifetimes_(*function_),
        needed_alignments_(module) {}

  enum class Role : uint8_t { kEntry, kCalled };

  Ref<PrimFunc> run(Role role) {
    std::vector<Ref<Buffer>> params;
    for (const Ref<Var>& param : function_->params) {
      if (!param->type.as<TensorType>())
        throw CompileError(kUnsupported, param->origin,
                           "parameter `{}` of `main` has type {}; only tensors compile",
                           param->name, str(param->type));
      params.push_back(role == Role::kEntry ? input(*param)
                                            : new_buffer(param->name, param->type, param->origin));
      if (!storage_.count(param.get())) storage_[param.get()] = {{params.back()}, false};
      if (role == Role::kEntry) input_of_[param.get()] = params.size() - 1;
    }
    const size_t inputs = params.size();
    std::vector<Value> results;
    flatten(function_->body->body, results);
    outputs_.resize(results.size());
    find_late_numbers(role);
    for (size_t i = 0; i < results.size(); ++i) {
      const Type type = type_of(results[i]);
      if (late_sizes_.depends(type)) {
        late_claims_.emplace(place_of(results[i]), i);
        continue;
      }
      outputs_[i] = new_buffer(output_name(i), type, function_->origin);
      params.push_back(outputs_[i]);
      claim(results[i], outputs_[i]);
    }
    sequence(*function_->body);
    for (size_t i = 0; i < results.size(); ++i) {
      const Ref<Buffer> from = buffer_of(results[i]);
      if (!outputs_[i]) late_output(i, type_of(results[i]), function_->origin);
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

 private:
  std::string output_name(size_t i) const {
    return outputs_.size() == 1 ? "output" : fmt::format("output_{}", i);
  }

  /// The variables that are known only when part of the program has run.
  void find_late_numbers(Role role) {
    if (role == Role::kCalled) return;
    walk<Binding>(function_->body, [&](const Binding& binding) {
      const Call* numbers = binding.match ? numbers_of(binding.value) : nullptr;
      const std::vector<Expr>* dims = numbers ? dims_of(binding.match) : nullptr;
      if (!dims || input_of_.count(numbers->args[0].get())) return;
      for (const Expr& dim : *dims)
        if (dim.as<tenon::Var>()) late_sizes_.add(dim.get());
    });
  }
  /// What computes `value`: a variable, or an item of a tuple.
  static std::pair<const Node*, int64_t> place_of(const Value& value) {
    const auto* get = value.as<TupleGetItem>();
    return get ? std::pair<const Node*, int64_t>(get->tuple.get(), get->index)
               : std::pair<const Node*, int64_t>(value.get(), 0);
  }

  /// An output whose size is known by now: the host gives the memory.
  Ref<Buffer> late_output(size_t i, const Type& type, const Origin& origin) {
    outputs_[i] = new_buffer(output_name(i), type, origin);
    late_sizes_.check(*outputs_[i], stmts_);
    stmts_.push_back(
        make<AllocBuffer>(outputs_[i], Attrs{{tir::kHostOutput, static_cast<int64_t>(i)}}, origin));
    return outputs_[i];
  }

  Ref<Buffer> new_buffer(const std::string& name, const Type& type, const Origin& origin) {
    const auto* tensor = type.as<TensorType>();
    if (!tensor || !tensor->shape || tensor->dtype.is_void())
      throw CompileError(kUnsupported, origin,
                         "`{}` has type {}; a compiled program needs its shape and element type",
                         name, str(type));
    return make<Buffer>(names_.take(name), tensor->dtype, *tensor->shape, origin);
  }

  /// The buffer of a parameter of the entry. A host reads dimensions from inputs and computes none:
  /// where the declaration has an expression, the buffer has a dimension of its own, which must be
  /// equal to it, and the program goes on with a view of the declared shape.
  Ref<Buffer> input(const Var& param) {
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

  void flatten(const Value& value, std::vector<Value>& out) {
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

  /// Gives the storage of `value` to the output buffer where a call computes it (through reshapes).
  void claim(const Value& value, const Ref<Buffer>& output) {
    Value at = value;
    int64_t item = 0;
    for (;;) {
      if (const auto* get = at.as<TupleGetItem>()) {
        item = get->index;
        at = get->tuple;
      }
      const Binding* bound = lifetimes_.binding_of(at);
      const auto* call = bound && !bound->match ? bound->value.as<Call>() : nullptr;
      if (!call) return;
      if (call->is("reshape")) {
        at = call->args[0];
        item = 0;
        continue;
      }
      const auto foreign = foreign_call(*call);
      if (!is_call_tir(*call) && !foreign) return;
      if (const Value changed = changed_argument(*call, foreign, static_cast<size_t>(item));
          changed && lifetimes_.ends_in(*bound, changed)) {
        at = changed;
        item = 0;
        continue;
      }
      claimed_.emplace(std::pair(at.get(), item), output);
      return;
    }
  }

  static bool is_call_tir(const Call& call) {
    return call.is("call_tir") || call.is("call_tir_inplace");
  }

  /// The argument whose memory output `i` takes; null where it has its own.
  static Value changed_argument(const Call& call, const std::optional<ForeignCall>& foreign,
                                size_t i) {
    if (foreign) {
      const bool is_changed = i < foreign->in_place.size() && foreign->in_place[i] != kFresh;
      return is_changed ? foreign->arguments[foreign->in_place[i]] : Value();
    }
    const auto& args = call.args.at(1).as<Tuple>()->values;
    const std::vector<size_t> places =
        in_place_indices(call, output_types(call).size(), args.size());
    return i < places.size() && places[i] != kFresh ? args[places[i]] : Value();
  }

  Ref<Buffer> buffer_of(const Value& value) {
    if (const auto* get = value.as<TupleGetItem>()) {
      const Storage& tuple = storage_of(get->tuple);
      return tuple.buffers.at(static_cast<size_t>(get->index));
    }
    const Storage& storage = storage_of(value);
    if (storage.is_tuple || storage.buffers.size() != 1)
      throw CompileError(kUnsupported, value->origin, "a tuple stands where a tensor is needed");
    return storage.buffers[0];
  }

  const Storage& storage_of(const Value& value) {
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

  void sequence(const SeqExpr& seq) {
    for (const Ref<BindingBlock>& block : seq.blocks)
      for (const Ref<Binding>& binding : block->bindings) bind(*binding);
  }

  void bind(const Binding& binding) {
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
    if (call->is("reshape")) return reshape(binding, *call, origin);
    if (call->is("tensor_to_shape")) return;  // where a match_cast names the elements
    if (call->is("assert_op")) {
      stmts_.push_back(make<tir::Assert>(condition(call->args[0]), assert_message(*call), origin));
      return;
    }
    if (is_call_tir(*call)) return call_tir(binding, *call, origin);
    if (const auto foreign = foreign_call(*call))
      return call_extern(binding, *call, *foreign, origin);
    throw CompileError(kUnsupported, origin, "`{}` cannot be compiled here; expected R.call_tir",
                       call->op ? call->op->name : "a call of a function value");
  }

  void reshape(const Binding& binding, const Call& call, const Origin& origin) {
    const Ref<Buffer> source = buffer_of(call.args[0]);
    storage_[binding.var.get()] = {{view(source, binding.var->name, binding.var->type, origin)},
                                   false};
  }

  /// Another shape over the same memory. A view of a view is one of the first buffer: a network may
  /// reshape without end, and what follows pointers to their buffer takes a step for each.
  Ref<Buffer> view(const Ref<Buffer>& source, const std::string& name, const Type& type,
                   const Origin& origin) {
    const Ref<Buffer> buffer = new_buffer(name, type, origin);
    late_sizes_.check(*buffer, stmts_);
    const Buffer* root = root_of(source);
    stmts_.push_back(make<DeclBuffer>(buffer, root->data, origin));
    view_root_[buffer.get()] = root;
    return buffer;
  }
  const Buffer* root_of(const Ref<Buffer>& buffer) const {
    const auto it = view_root_.find(buffer.get());
    return it == view_root_.end() ? buffer.get() : it->second;
  }
  bool views_of(const Ref<Buffer>& a, const Ref<Buffer>& b) const {
    return root_of(a) == root_of(b);
  }

  Ref<Buffer> storage_for(const Node* var, int64_t item, const std::string& name, const Type& type,
                          const Origin& origin) {
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

  void call_tir(const Binding& binding, const Call& call, const Origin& origin) {
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

  /// The storage of output `i` of a call.
  Ref<Buffer> output_place(const Binding& binding, bool is_tuple, size_t i, const Type& type,
                           const Origin& origin) {
    const std::string name =
        is_tuple ? fmt::format("{}_{}", binding.var->name, i) : binding.var->name;
    return storage_for(binding.var.get(), static_cast<int64_t>(i), name, type, origin);
  }

  /// What the function changes: the argument's own memory where nobody reads it later, else a copy.
  Ref<Buffer> changed_place(const Binding& binding, bool is_tuple, size_t i, const Type& type,
                            const Value& argument, const Origin& origin) {
    const Ref<Buffer> source = buffer_of(argument);
    const bool is_same = is_shape_of(*source, type);
    if (is_same && lifetimes_.ends_in(binding, argument)) return source;
    const Ref<Buffer> place = output_place(binding, is_tuple, i, type, origin);
    copy(source, place);
    return place;
  }
  static bool is_shape_of(const Buffer& buffer, const Type& type) {
    const auto* tensor = type.as<TensorType>();
    return tensor && tensor->shape && tensor->dtype == buffer.dtype &&
           std::equal(tensor->shape->begin(), tensor->shape->end(), buffer.shape.begin(),
                      buffer.shape.end(),
                      [](const Expr& a, const Expr& b) { return structural_equal(a, b); });
  }

  /// A foreign function, declared or not: T.call_extern with its scratch allocated in front.
  void call_extern(const Binding& binding, const Call& call, const ForeignCall& foreign,
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
    stmts_.push_back(
        make<CallTir>(make<GlobalVar>(callee->name), std::move(args), Attrs(), origin));
    storage_[binding.var.get()] = std::move(storage);
  }

  /// What a call asks of its arguments' addresses is asked of the memory that they are views of.
  void align(const std::string& callee, const std::vector<NodePtr>& args) {
    for (size_t i = 0; i < args.size(); ++i) {
      const auto* region = args[i].as<BufferRegion>();
      const int64_t needed = region ? needed_alignments_.of(callee, i) : 1;
      if (needed <= tir::kMemoryAlignment) continue;
      int64_t& known = alignments_[root_of(region->buffer)];
      known = std::max(known, needed);
    }
  }

  /// Gives memory the alignment that calls ask of it, in its declaration.
  void align_memory(std::vector<Ref<Buffer>>& params, std::vector<Stmt>& body) {
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

  /// What a back end made of its part of the graph (attr `tenon.inline`) stands here itself, so
  /// that its allocations are this function's.
  void inline_body(const Ref<PrimFunc>& callee, const std::vector<NodePtr>& args,
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

  NodePtr scratch(const tir::ExternFunction& function, size_t i, const Substitution& bound,
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
    const auto buffer = make<Buffer>(
        names_.take(function.symbol + "_" + declared.name), declared.dtype, shape,
        Buffer::Options{.alignment = std::max<int64_t>(64, declared.alignment)}, origin);
    stmts_.push_back(make<AllocBuffer>(buffer, Attrs(), origin));
    return BufferRegion::whole(buffer);
  }

  /// The call of tensor_to_shape that gives `value`; null where it is something else.
  const Call* numbers_of(const Value& value) const {
    const Binding* bound = lifetimes_.binding_of(value);
    const auto* call = (bound && !bound->match ? bound->value : value).as<Call>();
    return call && call->is("tensor_to_shape") ? call : nullptr;
  }

  /// The elements of a tensor become numbers: those of an input before anything runs, as scalar
  /// parameters that the host fills; others where they are computed.
  void define_numbers(const Binding& binding, const Value& tensor, const Origin& origin) {
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
      } else {
        stmts_.push_back(make<tir::Bind>(ref_to(var), element, origin));
      }
    }
  }

  void match_cast(const Binding& binding, const Origin& origin) {
    const Call* numbers = numbers_of(binding.value);
    if (numbers && dims_of(binding.match)) return define_numbers(binding, numbers->args[0], origin);
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
      storage_[binding.var.get()] = {{view(source, binding.var->name, binding.match, origin)},
                                     false};
    }
  }

  void lower_if(const Binding& binding, const If& branch, const Origin& origin) {
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

  /// What decides: a scalar, or a tensor of one element.
  Expr condition(const Value& value) {
    Expr test;
    if (const auto* prim = value.as<PrimValue>()) {
      test = prim->value;
    } else {
      const Ref<Buffer> buffer = buffer_of(value);
      test = tir::load(buffer, std::vector<Expr>(buffer->ndim(), int64(0)));
    }
    return test->dtype.is_bool() ? test : ne(test, imm(test->dtype, int64_t{0}));
  }

  /// By a kernel that copies flat memory, made once for each element type and number of elements.
  void copy(const Ref<Buffer>& from, const Ref<Buffer>& to) {
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
  static Expr size_var(const std::string& name) { return tenon::Var::size(name); }

  static constexpr size_t kFresh = ForeignCall::kFresh;

  IRModule& module_;
  const Ref<Function> function_;
  Lifetimes lifetimes_;
  std::map<std::pair<const Node*, int64_t>, Ref<Buffer>> claimed_;
  std::unordered_map<const Node*, Storage> storage_;
  std::map<Ref<TensorData>, Storage,
           decltype([](const Ref<TensorData>& a, const Ref<TensorData>& b) {
             return a.get() < b.get();
           })>
      constant_storage_;  // looked up only, never iterated
  std::deque<Storage> temporaries_;
  std::unordered_map<const Buffer*, const Buffer*> view_root_;
  tir::NeededAlignments needed_alignments_;
  std::unordered_map<const Buffer*, int64_t> alignments_;  // that calls ask of memory
  std::map<uint64_t, std::string> copies_;
  NameSupply names_;
  std::vector<Stmt> constants_, stmts_;
  std::unordered_map<const Node*, size_t> input_of_;  // parameters of the entry
  std::vector<Ref<tenon::Var>> scalars_;              // numbers in the inputs
  AttrList scalar_sources_;
  std::unordered_set<const Node*> numbers_;  // variables that tensors define so far
  LateSizeChecks late_sizes_;
  std::vector<Ref<Buffer>> outputs_;  // null where the size is not known yet
  std::map<std::pair<const Node*, int64_t>, size_t> late_claims_;
  bool is_outermost_ = true;  // not in a branch
};

}  // namespace

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
  bool dropped = false;
  for (const auto& [name, function] : given) {
    if (name == "main" || !function.as<Function>()) continue;
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
    if (function.as<PrimFunc>() && function->attrs.flag("tenon.inline")) module.erase(name);
  return module;
}

Ref<PrimFunc> lower_function(IRModule& module, const Function& function) {
  return Lowering(module, function).run(Lowering::Role::kCalled);
}

}  // namespace tenon::graph
