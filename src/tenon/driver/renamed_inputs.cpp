// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/renamed_inputs.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "tenon/driver/bind_options.h"
#include "tenon/driver/signature.h"
#include "tenon/driver/tensors.h"
#include "tenon/graph/builder.h"
#include "tenon/graph/transforms.h"
#include "tenon/ir/visit.h"
#include "tenon/tir/shared_buffers.h"

namespace tenon {

using Tensors = std::vector<Ref<TensorData>>;

bool same_inputs(const IRModule& before, const IRModule& after) {
  const std::vector<Port> x = signature_of(before).inputs, y = signature_of(after).inputs;
  // Where a graph has an expression, its PrimFunc has a symbol and an assertion.
  const auto same_dims = [](const PortDim& p, const PortDim& q) {
    const bool is_computed = p.value < 0 && p.symbol.empty();
    return p == q || (is_computed && q.value < 0);
  };
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](const Port& p, const Port& q) {
    return p.name == q.name && p.dtype == q.dtype &&
           std::equal(p.dims.begin(), p.dims.end(), q.dims.begin(), q.dims.end(), same_dims);
  });
}

IRModule with_flat_main(IRModule module, const std::string& name) {
  const auto function = module.find<graph::Function>(name);
  check(static_cast<bool>(function), "only a graph function has tuples as parameters");
  std::string callee = name;
  if (name == "main") {
    module.erase("main");
    callee = module.add_unique("main_of_tuples", BaseFunc(function));
  }
  graph::BlockBuilder builder(module);
  const auto like = renew_definitions(function);  // dimensions of its own
  std::vector<Ref<graph::Var>> params;
  const std::function<graph::Value(const graph::Type&, const std::string&)> param_of =
      [&](const graph::Type& type, const std::string& text) -> graph::Value {
    if (const auto* tuple = type.as<graph::TupleType>()) {
      std::vector<graph::Value> items;
      for (size_t i = 0; i < tuple->types.size(); ++i)
        items.push_back(param_of(tuple->types[i], fmt::format("{}_{}", text, i)));
      return make<graph::Tuple>(std::move(items));
    }
    params.push_back(make<graph::Var>(text, type));
    return params.back();
  };
  std::vector<graph::Value> args;
  for (const Ref<graph::Var>& param : like->params)
    args.push_back(param_of(param->type, param->name));
  builder.begin_function(params);
  const graph::Value result =
      builder.emit(make<graph::Call>(make<graph::FuncRef>(callee), std::move(args), Attrs(),
                                     std::vector<graph::Type>{}, function->origin));
  module.set("main", builder.end_function(result));
  return module;
}

// The function that computes weights of `main`, which the pass added.
static std::string transform_in(const IRModule& before, const IRModule& after) {
  const auto main = before.find<graph::Function>("main");
  if (!main || !main->attrs.contains("num_input")) return "";
  for (const std::string name : {"main_transform_params", "transform_params"})
    if (!before.contains(name) && after.find<graph::Function>(name)) return name;
  return "";
}

static InputPair lifted_inputs(const std::string& transform, const IRModule& before,
                               const IRModule& after, Tensors inputs, const RunMain& run) {
  const auto kept = static_cast<std::ptrdiff_t>(
      before.find<graph::Function>("main")->attrs.get<int64_t>("num_input").value_or(0));
  InputPair pair{std::move(inputs), {}};
  const auto weights =
      pair.before.begin() +
      std::min<std::ptrdiff_t>(kept, static_cast<std::ptrdiff_t>(pair.before.size()));
  pair.after.assign(pair.before.begin(), weights);
  for (Ref<TensorData>& weight :
       run(with_flat_main(after, transform), Tensors(weights, pair.before.end())))
    pair.after.push_back(std::move(weight));
  return pair;
}

static Tensors draw(const IRModule& module, const IRModule& meant_by, uint64_t seed) {
  InputOptions options;
  options.seed = seed;
  options.meanings = named_meanings(meant_by);
  options.values = Values::kScales;
  return make_inputs(signature_of(module), options);
}

Ref<TensorData> copied_into(const TensorData& tensor, const TensorData& into) {
  check(tensor.dtype == into.dtype && tensor.shape.size() == into.shape.size(),
        "copied into another type");
  std::vector<std::byte> bytes(into.data().begin(), into.data().end());
  const auto [a, b] = std::mismatch(tensor.shape.begin(), tensor.shape.end(), into.shape.begin());
  check(a == tensor.shape.end() || std::equal(a + 1, tensor.shape.end(), b + 1),
        "copied into a shape that differs along two axes");
  const int64_t outer =
      std::accumulate(tensor.shape.begin(), a, int64_t{1}, std::multiplies<int64_t>());
  const std::span<const std::byte> values = tensor.data();
  const int64_t step = outer ? static_cast<int64_t>(values.size()) / outer : 0,
                room = outer ? static_cast<int64_t>(bytes.size()) / outer : 0;
  for (int64_t i = 0; i < outer; ++i)
    std::copy_n(values.begin() + i * step, std::min(step, room), bytes.begin() + i * room);
  return TensorData::owned(into.dtype, into.shape, std::move(bytes));
}

// Where ShareBuffers made parameters buffers of a capacity: random values behind their rows, so
// that what reads them computes something else.
static InputPair inputs_with_room(const IRModule& before, const IRModule& after, uint64_t seed,
                                  const RunMain& run) {
  constexpr int64_t kSpareRows = 3;
  InputPair pair{draw(before, before, seed), {}, true};
  pair.after = pair.before;
  const Tensors outputs = run(before, pair.before);
  const auto main = after.find<graph::Function>("main");
  for (const auto& [input, output] :
       tir::shared_buffers(main->attrs, pair.before.size(), outputs.size(), main->origin)) {
    const TensorData &held = *pair.before[input], &grown = *outputs[output];
    if (held.shape == grown.shape) continue;
    std::vector<int64_t> shape = grown.shape;
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d] != held.shape[d]) shape[d] += kSpareRows;
    pair.after[input] =
        copied_into(held, *random_values(held.dtype, std::move(shape), seed + input, {}));
  }
  check_inputs(signature_of(after), pair.after);
  return pair;
}

InputPair renamed_inputs(const Pass& pass, const IRModule& before, const IRModule& after,
                         uint64_t seed, const RunMain& run) {
  const Signature taken = signature_of(before), given = signature_of(after);
  const auto has_buffers = [](const IRModule& module) {
    const auto main = module.find<graph::Function>("main");
    return main && main->attrs.contains(tir::kSharedBuffers);
  };
  if (has_buffers(after) && !has_buffers(before)) return inputs_with_room(before, after, seed, run);
  InputPair pair;
  if (const std::string transform = transform_in(before, after); !transform.empty()) {
    pair = lifted_inputs(transform, before, after, draw(before, before, seed), run);
    check_inputs(given, pair.after);
    return pair;
  }
  std::map<std::string, Ref<TensorData>> values;  // by name
  pair.after = draw(after, before, seed);
  for (size_t i = 0; i < given.inputs.size(); ++i)
    values.emplace(given.inputs[i].name, pair.after[i]);
  if (pass.name == "BindParams") {
    const auto main = before.find<graph::Function>("main");
    const auto bound = bound_params(before, pass.options);
    for (size_t i = 0; i < main->params.size(); ++i)
      if (const auto value = bound.find(main->params[i]->name); value != bound.end())
        values.emplace(taken.inputs[i].name, value->second);
  }
  size_t used = 0;
  for (const Port& port : taken.inputs) {
    const auto value = values.find(port.name);
    if (value == values.end()) throw CompileError(kBadInput, {}, "input `{}` is gone", port.name);
    pair.before.push_back(value->second);
    ++used;
  }
  if (used != values.size())
    throw CompileError(kBadInput, {}, "it has {} inputs now, of which {} were there before",
                       given.inputs.size(), given.inputs.size() - (values.size() - used));
  check_inputs(taken, pair.before);
  return pair;
}

}  // namespace tenon
