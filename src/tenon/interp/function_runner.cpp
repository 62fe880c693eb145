// SPDX-License-Identifier: Apache-2.0
#include "tenon/interp/function_runner.h"

#include <algorithm>

#include "tenon/interp/call_memo.h"

namespace tenon::interp {

View view_of(const TensorData& data) {
  View view;
  view.memory = std::make_shared<Memory>();
  view.memory->bytes.assign(data.data().begin(), data.data().end());
  view.shape = data.shape;
  view.strides = compact(data.shape);
  view.dtype = data.dtype;
  return view;
}

View fresh_view(DType dtype, const std::vector<int64_t>& shape, const Origin& origin) {
  View view;
  const int64_t elements = checked_elements(shape, std::max<int64_t>(1, dtype.bytes()), origin);
  view.memory = allocate(elements * dtype.bytes(), "output", origin);
  view.shape = shape;
  view.strides = compact(shape);
  view.dtype = dtype;
  return view;
}

Ref<TensorData> data_of(View&& view) {
  return TensorData::owned(view.dtype, view.shape, std::move(view.memory->bytes));
}

FunctionRunner::FunctionRunner(const IRModule& module, Options options)
    : options_(std::move(options)) {
  if (options_.rounding_seed) rounding_.emplace(options_.rounding_seed);
  if (options_.watch_open_loops && !options_.find_races && !rounding_) {
    open_ = with_open_loops(module);
    if (!open_.empty()) races_ = std::make_unique<RaceTracker>(RaceTracker::Scope::kParallelLoops);
  }
}

const Code* FunctionRunner::code_of(const Ref<tir::PrimFunc>& function,
                                    const std::vector<View>& buffers) {
  auto& [keeper, codes] = code_[function.get()];
  if (!keeper) keeper = function;
  std::vector<int64_t> dims = dims_of(*function, buffers);
  const bool watched =
      options_.find_races || (races_ && (races_->is_running() || open_.count(function.get()) > 0));
  std::unique_ptr<Code>& code = codes[{dims, watched}];
  if (!code) code = resolve(function, {std::move(dims), watched, rounding_.has_value()});
  return code.get();
}

const Code* FunctionRunner::code_of(const Ref<tir::ExternFunction>& function,
                                    const std::vector<View>& buffers) {
  if (!function->body) return nullptr;
  auto& reference = references_[function.get()];
  if (!reference.second) reference = {function, function->reference()};
  return code_of(reference.second, buffers);
}

Machine FunctionRunner::machine_for(const IRModule& module) {
  Machine machine(
      [this, &module](const std::string& name, const std::vector<View>& buffers) -> const Code* {
        const auto function = module.find<tir::PrimFunc>(name);
        if (function) return code_of(function, buffers);
        const auto external = module.find<tir::ExternFunction>(name);
        return external ? code_of(external, buffers) : nullptr;
      },
      options_.step_limit, steps_,
      [this, &module](const std::string& name, std::vector<View>& buffers,
                      const std::vector<Slot>& scalars, const Origin& origin) {
        const auto external = module.find<tir::ExternFunction>(name);
        if (external) call_library(*external, buffers, scalars, origin);
        return static_cast<bool>(external);
      },
      [this](const tenon::Call& call, std::vector<OpaqueArgument>& arguments) {
        return call_opaque(call, arguments);
      },
      races_.get(), rounding_ ? &*rounding_ : nullptr);
  if (options_.memo && !races_ && !rounding_)
    machine.keep_results(*options_.memo, [this, &module](const Code& code) {
      const auto [known, fresh] = programs_.try_emplace({&module, &code}, nullptr);
      if (fresh) known->second = options_.memo->program_of(module, code);
      return known->second;
    });
  return machine;
}

// What a library reports has no place of its own.
template <typename Action>
static void place_errors(const Origin& origin, const Action& action) {
  try {
    action();
  } catch (const CompileError& error) {
    if (error.first().origin) throw;
    throw CompileError(error.first().code, origin, "{}", error.first().message);
  }
}

Slot FunctionRunner::call_opaque(const tenon::Call& call,
                                 const std::vector<OpaqueArgument>& given) {
  if (!options_.call_opaque)
    throw CompileError(kUnsupported, call.origin,
                       "`T.{}` of a function that nothing declares is not run here", call.op->name);
  std::vector<ExternArgument> arguments;
  for (size_t i = 0; i < given.size(); ++i) {
    ExternArgument argument;
    argument.text = given[i].text;
    if (given[i].view) {
      argument.data = given[i].view->memory->bytes.data() + given[i].view->offset;
      argument.shape = given[i].view->shape;
      argument.strides = given[i].view->strides;
    } else if (!argument.text && downcast<ExprNode>(call.args[i + 1])->dtype.is_float()) {
      argument.number = given[i].scalar.f;
    } else {
      argument.integer = given[i].scalar.i;
    }
    arguments.push_back(std::move(argument));
  }
  Slot result{0};
  place_errors(call.origin, [&] {
    const ExternArgument out = options_.call_opaque(call, arguments);
    if (call.dtype.is_float())
      result.f = out.number;
    else
      result.i = out.integer;
  });
  return result;
}

AskLibrary FunctionRunner::ask() {
  if (!options_.call_opaque) return {};
  return [this](const tenon::Call& call) {
    std::vector<OpaqueArgument> arguments(call.args.size() - 1);
    for (size_t i = 0; i < arguments.size(); ++i)
      arguments[i].scalar.i = evaluate(call.arg(i + 1), {});
    return call_opaque(call, arguments).i;
  };
}

void FunctionRunner::call_library(const tir::ExternFunction& function, std::vector<View>& buffers,
                                  const std::vector<Slot>& scalars, const Origin& origin) {
  if (!options_.call_library)
    throw CompileError(kUnsupported, origin,
                       "extern function `{}` has no reference body, so the interpreter has to "
                       "call the library; give it with --link",
                       function.symbol);
  std::vector<ExternArgument> arguments;
  size_t next_buffer = 0, next_scalar = 0;
  for (size_t i = 0; i < function.params.size(); ++i) {
    ExternArgument argument;
    if (!function.buffers[i]) {
      const Slot& slot = scalars.at(next_scalar++);
      if (function.params[i]->dtype.is_handle())
        argument.text = reinterpret_cast<const char*>(slot.i);
      else if (function.params[i]->dtype.is_float())
        argument.number = slot.f;
      else
        argument.integer = slot.i;
      arguments.push_back(std::move(argument));
      continue;
    }
    View& view = buffers.at(next_buffer++);
    Memory& memory = *view.memory;
    argument.data = memory.bytes.data() + view.offset;
    argument.shape = view.shape;
    argument.strides = view.strides;
    if (function.uses[i] != tir::ParamUse::kIn)
      std::fill(memory.written.begin(), memory.written.end(), uint8_t{1});
    arguments.push_back(std::move(argument));
  }
  place_errors(origin, [&] { options_.call_library(function, arguments); });
}

std::vector<Ref<TensorData>> FunctionRunner::run(const IRModule& module,
                                                 const Ref<tir::PrimFunc>& function,
                                                 const std::vector<Ref<TensorData>>& buffers,
                                                 const std::vector<Slot>& scalars) {
  std::vector<View> views;
  views.reserve(buffers.size());
  for (const Ref<TensorData>& data : buffers) views.push_back(data ? view_of(*data) : View());
  if (options_.find_races) races_ = std::make_unique<RaceTracker>(RaceTracker::Scope::kAll);
  Machine machine = machine_for(module);
  allocate_missing(*function, views, scalars, ask());
  const Code* code = code_of(function, views);
  if (options_.find_races)
    for (const View& view : views) races_->watch_output(view.memory.get());
  watched_ = options_.find_races ? views : std::vector<View>();
  host_outputs_.clear();
  machine.keep_outputs(host_outputs_);
  machine.run(*code, views, scalars, function->origin);
  if (options_.find_races) check_written(views, *function);
  std::vector<Ref<TensorData>> out;
  out.reserve(views.size());
  for (View& view : views) out.push_back(data_of(std::move(view)));
  return out;
}

std::map<int64_t, Ref<TensorData>> FunctionRunner::take_host_outputs() {
  std::map<int64_t, Ref<TensorData>> out;
  for (auto& [index, view] : host_outputs_) out[index] = data_of(std::move(view));
  host_outputs_.clear();
  return out;
}

void FunctionRunner::call(const IRModule& module, const Ref<tir::PrimFunc>& function,
                          std::vector<View>& buffers, const std::vector<Slot>& scalars,
                          const Origin& origin) {
  const Code* code = code_of(function, buffers);
  machine_for(module).call(*code, buffers, scalars, origin);
}

void FunctionRunner::call(const IRModule& module, const Ref<tir::ExternFunction>& function,
                          std::vector<View>& buffers, const std::vector<Slot>& scalars,
                          const Origin& origin) {
  if (const Code* code = code_of(function, buffers))
    machine_for(module).call(*code, buffers, scalars, origin);
  else
    call_library(*function, buffers, scalars, origin);
}

Origin FunctionRunner::last_writer(size_t buffer, int64_t element) const {
  if (!races_ || buffer >= watched_.size()) return {};
  const View& view = watched_[buffer];
  return races_->writer(view.memory.get(), view.offset + element * view.dtype.bytes());
}

}  // namespace tenon::interp
