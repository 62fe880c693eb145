// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/kernel_sample.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "tenon/driver/sampled_function.h"
#include "tenon/graph/infer.h"
#include "tenon/graph/shape.h"

namespace tenon {

using graph::Value;

// 16 of `m` in "n > 1 and m % 16 == 0"; 1 where the condition has no such term.
static int64_t divisor_in(const std::string& condition, const std::string& name) {
  constexpr int64_t kMost = 1024;
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (size_t at = condition.find(name); at != std::string::npos;
       at = condition.find(name, at + 1)) {
    if (at > 0 && is_word(condition[at - 1])) continue;
    size_t next = at + name.size();
    const auto skip = [&] {
      while (next < condition.size() && condition[next] == ' ') ++next;
    };
    skip();
    if (next >= condition.size() || condition[next] != '%') continue;
    ++next;
    skip();
    int64_t divisor = 0;
    while (next < condition.size() && condition[next] >= '0' && condition[next] <= '9' &&
           divisor <= kMost)
      divisor = divisor * 10 + (condition[next++] - '0');
    if (divisor > 1 && divisor <= kMost) return divisor;
  }
  return 1;
}

KernelSampler::KernelSampler(const IRModule& module, const graph::OperatorKernel& kernel,
                             uint64_t seed, const std::map<std::string, int64_t>& sizes,
                             const std::optional<Target>& target)
    : module_(module),
      kernel_(kernel),
      anywhere_(kernel),
      target_(target),
      random_(seed),
      sizes_(sizes) {
  const tir::PrimFunc& function = *kernel.function;
  anywhere_.function = with(function, [](tir::PrimFunc& copy) { copy.attrs.erase("op_target"); });
  for (size_t i = 0; i < function.params.size(); ++i) {
    if (function.buffers[i])
      buffers_.push_back(function.buffers[i]);
    else
      scalars_.push_back(function.params[i]);
  }
  for (const Ref<Var>& var : tir::symbolic_vars(function))
    if (std::none_of(scalars_.begin(), scalars_.end(),
                     [&](const Ref<Var>& scalar) { return scalar.same_as(var); }))
      dims_.push_back(var);
  if (const auto map = function.attrs.get<AttrValue::Map>("op_attrs")) pins_ = *map;
  const std::string condition = function.attrs.get<std::string>("op_when").value_or("");
  for (const Ref<Var>& dim : dims_) divisors_.push_back(divisor_in(condition, dim->name));
}

void KernelSampler::refuse(int rank, std::string words) {
  if (rank < nearest_rank_) return;
  nearest_rank_ = rank;
  nearest_ = std::move(words);
}

const AttrValue* KernelSampler::pinned(const std::string& name) const {
  const auto found = pins_.find(name);
  return found == pins_.end() ? nullptr : &found->second;
}

bool KernelSampler::is_scalar_parameter(const std::string& name) const {
  return std::any_of(scalars_.begin(), scalars_.end(), [&](const Ref<Var>& scalar) {
    return scalar->name == name || scalar->name.starts_with(name + "_");
  });
}

std::optional<KernelSample> KernelSampler::next(int trial) {
  constexpr int kRounds = 150;
  const int rounds = trial == 0 ? 4 : kRounds;
  for (int round = 0; round < rounds; ++round)
    for (const std::string& op : kernel_.operators)
      if (auto sample = attempt(op, trial, round)) {
        op_ = op;
        return sample;
      }
  return std::nullopt;
}

// One dimension in turn is long, the others as short as keeps the work within bounds; where the
// kernel takes none of these, sizes of all kinds are tried.
int64_t KernelSampler::size_of(size_t dim, int trial, int round) {
  static const std::vector<int64_t> kPrimes = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31};
  static const std::vector<int64_t> kSizes = {1,  2,  3,  4,  5,  6,  7,  8,  9,  12, 13, 15, 16,
                                              17, 19, 24, 31, 32, 33, 37, 48, 63, 64, 65, 96, 128};
  static const std::vector<int64_t> kLong = {255,  256,  257,  384,  511,  513,  768,
                                             1000, 1024, 1025, 2000, 2049, 3072, 4095};
  constexpr double kMostWork = 100000;  // all dimensions multiplied
  constexpr int kRoundsOfKind = 40;
  if (const auto given = sizes_.find(dims_[dim]->name); given != sizes_.end()) return given->second;
  if (trial == 0 && round == 0) return 1;
  // Mostly of what the kernel's condition asks of it.
  if (const int64_t divisor = divisors_[dim]; divisor > 1 && random_.bits() % 8 != 0)
    return divisor * pick({1, 2, 3});
  const auto count = static_cast<double>(std::max<size_t>(2, dims_.size()));
  const auto below = [&](const std::vector<int64_t>& sizes, double most) {
    std::vector<int64_t> out;
    for (const int64_t size : sizes)
      if (static_cast<double>(size) <= most) out.push_back(size);
    return pick(out.empty() ? std::vector<int64_t>{1, 2} : out);
  };
  if (trial > 1 && round < kRoundsOfKind) {
    const size_t longest = static_cast<size_t>(trial - 2) % dims_.size();
    if (dim == longest) return pick(kLong);
    return below(kSizes, std::pow(kMostWork / static_cast<double>(kLong.back()), 1 / (count - 1)));
  }
  return below(trial == 1 && round < kRoundsOfKind ? kPrimes : kSizes,
               std::pow(kMostWork, 1 / count));
}

std::optional<KernelSample> KernelSampler::attempt(const std::string& op, int trial, int round) {
  Substitution sizes;
  for (size_t i = 0; i < dims_.size(); ++i)
    sizes.emplace(dims_[i].get(), imm(dims_[i]->dtype, size_of(i, trial, round)));
  ++attempts_;
  for (size_t count = buffers_.size(); count-- > 0;) {
    for (const bool as_tuple : {false, true})
      if (auto sample = with_inputs(op, sizes, count, as_tuple)) return sample;
  }
  return std::nullopt;
}

std::optional<KernelSample> KernelSampler::with_inputs(const std::string& op,
                                                       const Substitution& sizes, size_t count,
                                                       bool as_tuple) {
  KernelSample sample;
  sample.op = op;
  for (size_t i = 0; i < count; ++i) {
    std::vector<Expr> shape;
    for (const Expr& dim : buffers_[i]->shape) {
      const Expr size = graph::simplify_dim(tenon::cast(kInt64, substitute(dim, sizes)));
      if (!as_int(size) || *as_int(size) < 0) return std::nullopt;
      shape.push_back(size);
    }
    sample.params.push_back(make<graph::Var>(
        buffers_[i]->name, make<graph::TensorType>(std::move(shape), buffers_[i]->dtype)));
  }
  try {
    sample.function = function_of(op, sample.params);
    sample.call =
        sample.function
            ? make<graph::Call>(make<graph::FuncRef>(kSampledFunction),
                                std::vector<Value>(sample.params.begin(), sample.params.end()),
                                Attrs{}, std::vector<graph::Type>{}, kernel_.function->origin)
            : call_of(op, sample.params, sizes, as_tuple);
    const auto seen = seen_call(module_, sample);
    if (!seen) return std::nullopt;
    auto match = graph::match_kernel(anywhere_, *seen, target_);
    if (const auto* refusal = std::get_if<graph::KernelRefusal>(&match)) {
      static const std::vector<std::string> kOrder = {"arity",     "dtype", "rank",
                                                      "attribute", "shape", "condition"};
      const auto at = std::find(kOrder.begin(), kOrder.end(), refusal->code);
      refuse(1 + static_cast<int>(at - kOrder.begin()), refusal->code + ": " + refusal->words);
      return std::nullopt;
    }
    sample.kernel = std::get<graph::KernelUse>(match).function;
    sample.outputs = seen->outputs.size();
    for (const graph::OperatorCall::Input& input : seen->inputs) {
      sample.text += fmt::format("{}{} {} {}", sample.text.empty() ? "" : ", ", input.name,
                                 input.type->dtype.str(), str(*input.type->static_shape()));
      sample.inputs.push_back(input.type);
    }
    for (const auto& [name, value] : seen->attrs)
      if (pinned(name) || is_scalar_parameter(name))
        sample.text += fmt::format(", {}={}", name, value.str());
    for (const Ref<Var>& scalar : scalars_)
      if (const auto value = seen->named.scalar(scalar->name);
          value && seen->attrs.empty() && sample.function)
        sample.text += fmt::format(", {}={}", scalar->name, value->str());
  } catch (const CompileError& error) {
    const std::string_view code = error.first().code.id;
    const bool other_form =
        code == kBadArgument.id || code == kRankMismatch.id || code == kTypeMismatch.id;
    refuse(other_form ? 0 : 1, error.first().message);
    return std::nullopt;
  }
  return sample;
}

// A value that an attribute of this kind may have.
AttrValue KernelSampler::attribute(const graph::OpAttr& attr) {
  if (const AttrValue* value = pinned(attr.name)) return *value;
  if (attr.default_value && (!is_scalar_parameter(attr.name) || random_.bits() % 3 == 0))
    return *attr.default_value;
  switch (attr.kind) {
    case graph::AttrKind::kInt: return pick({-1, 0, 1, 2, 3});
    case graph::AttrKind::kFloat: return static_cast<double>(pick({-3, 1, 2, 5, 7})) / 8;
    case graph::AttrKind::kBool: return random_.bits() % 2 == 0;
    case graph::AttrKind::kInts: {
      // As long as the default, or as the parameters that name its items.
      size_t length = 0;
      if (const auto* list = attr.default_value ? attr.default_value->as<AttrList>() : nullptr)
        length = list->size();
      const auto items_named = std::count_if(
          scalars_.begin(), scalars_.end(),
          [&](const Ref<Var>& scalar) { return scalar->name.starts_with(attr.name + "_"); });
      if (items_named > 0) length = static_cast<size_t>(items_named);
      std::vector<int64_t> items;
      for (size_t i = 0; i < std::max<size_t>(1, length); ++i) items.push_back(pick({1, 2, 3}));
      return items;
    }
    default: return attr.default_value.value_or(AttrValue());
  }
}

Value KernelSampler::scalar_argument(const std::string& name, DType dtype,
                                     const AttrValue* otherwise) {
  const AttrValue* value = pinned(name);
  if (!value && otherwise && (!is_scalar_parameter(name) || random_.bits() % 3 == 0))
    value = otherwise;
  if (value) {
    if (const auto* number = value->as<double>())
      return make<graph::PrimValue>(imm(dtype, *number));
    if (const auto* number = value->as<int64_t>())
      return make<graph::PrimValue>(dtype.is_float() ? imm(dtype, static_cast<double>(*number))
                                                     : imm(dtype, *number));
    if (const auto* flag = value->as<bool>())
      return make<graph::PrimValue>(imm(dtype, int64_t{*flag}));
  }
  // Bounds in order, as clip has them.
  if (dtype.is_float() && (name == "min" || name == "max"))
    return make<graph::PrimValue>(
        imm(dtype, (name == "min" ? -0.125 : 0.125) * static_cast<double>(pick({1, 2, 5}))));
  if (dtype.is_float())
    return make<graph::PrimValue>(imm(dtype, static_cast<double>(pick({-3, 1, 2, 5, 7})) / 8));
  return make<graph::PrimValue>(imm(dtype, dtype.is_bool() ? pick({0, 1}) : pick({1, 2, 3})));
}

std::vector<std::string> KernelSampler::kernel_left_out(const std::string& op) const {
  return graph::left_out_by(module_, *kernel_.function, op);
}

std::optional<graph::OperatorCall> seen_call(const IRModule& module, const KernelSample& sample) {
  return sample.function ? graph::function_call(module, *sample.function, sample.call->args)
                         : graph::operator_call(module, *sample.call);
}

Ref<graph::Function> KernelSampler::function_of(const std::string& op,
                                                const std::vector<Ref<graph::Var>>& tensors) {
  AttributeWishes wishes{
      pins_, {}, [this](const std::vector<int64_t>& from) { return pick(from); }};
  for (const Ref<Var>& scalar : scalars_) wishes.parameters.emplace(scalar->name, scalar->dtype);
  if (const auto pattern = graph::pattern_named(module_, op))
    return sampled_group(module_, op, *pattern, tensors, wishes);
  if (op.find("::") == std::string::npos || graph::declaration_of(module_, op)) return {};
  return sampled_node(op, tensors, buffers_.size() - tensors.size(), wishes,
                      kernel_.function->origin);
}

Ref<graph::Call> KernelSampler::call_of(const std::string& op,
                                        const std::vector<Ref<graph::Var>>& tensors,
                                        const Substitution& sizes, bool as_tuple) {
  const Origin& origin = kernel_.function->origin;
  if (const graph::OpDef* def = graph::find_op(op)) {
    Attrs attrs;
    for (const graph::OpAttr& attr : def->attrs) {
      AttrValue value = attribute(attr);
      if (!value.is_none() || attr.default_value) attrs.set(attr.name, std::move(value));
    }
    std::vector<Value> args;
    if (as_tuple) {
      args.push_back(make<graph::Tuple>(std::vector<Value>(tensors.begin(), tensors.end())));
      return graph::call_op(op, args, attrs, origin);
    }
    size_t next = 0;
    for (const graph::OpInput& input : def->inputs) {
      if (pinned(input.name) || is_scalar_parameter(input.name)) {
        DType dtype = kFloat32;
        if (const AttrValue* value = pinned(input.name); value && value->as<int64_t>())
          dtype = kInt64;
        for (const Ref<Var>& scalar : scalars_)
          if (scalar->name == input.name) dtype = scalar->dtype;
        const AttrValue* list = pinned(input.name);
        if (const auto numbers = list ? Attrs{{"v", *list}}.ints("v") : std::nullopt)
          args.push_back(make<graph::ShapeExpr>(to_exprs(*numbers)));
        else
          args.push_back(scalar_argument(input.name, dtype));
      } else if (next < tensors.size()) {
        args.push_back(tensors[next++]);
      } else if (input.name == "shape" || input.name == "target_shape") {
        std::vector<Expr> shape;  // that of the kernel's result
        for (const Expr& dim : buffers_.back()->shape)
          shape.push_back(graph::simplify_dim(tenon::cast(kInt64, substitute(dim, sizes))));
        args.push_back(make<graph::ShapeExpr>(std::move(shape)));
      }
    }
    if (next != tensors.size())
      throw CompileError(kBadArgument, origin, "`{}` has fewer than {} tensors", op,
                         tensors.size());
    return graph::call_op(op, args, attrs, origin);
  }
  for (const auto& [name, base] : module_.functions()) {
    const auto function = cast<graph::Function>(base);
    if (!function || !graph::declares_operator(*function) ||
        function->attrs.get<std::string>("op") != op ||
        graph::left_out_inputs(*function) != kernel_left_out(op))
      continue;
    const auto defaults = function->attrs.get<AttrValue::Map>("op_attrs");
    std::vector<Value> args;
    size_t next = 0;
    for (const Ref<graph::Var>& param : function->params) {
      const AttrValue* otherwise = nullptr;
      if (defaults)
        if (const auto found = defaults->find(param->name); found != defaults->end())
          otherwise = &found->second;
      if (param->type.as<graph::TensorType>()) {
        if (next >= tensors.size())
          throw CompileError(kBadArgument, origin, "`{}` has more than {} tensors", op, next);
        args.push_back(tensors[next++]);
      } else if (const auto* prim = param->type.as<graph::PrimType>()) {
        args.push_back(scalar_argument(param->name, prim->dtype, otherwise));
      } else if (const auto* shape = param->type.as<graph::ShapeType>()) {
        const AttrValue* value = pinned(param->name) ? pinned(param->name) : otherwise;
        auto numbers = value ? Attrs{{"v", *value}}.ints("v") : std::nullopt;
        if (!numbers) {
          numbers.emplace();
          for (int64_t i = 0; i < std::max<int64_t>(1, shape->ndim); ++i)
            numbers->push_back(pick({1, 2, 3}));
        }
        args.push_back(make<graph::ShapeExpr>(to_exprs(*numbers)));
      } else {
        const AttrValue* value = pinned(param->name) ? pinned(param->name) : otherwise;
        const auto* text = value ? value->as<std::string>() : nullptr;
        args.push_back(make<graph::StringValue>(text ? *text : ""));
      }
    }
    if (next != tensors.size() || as_tuple)
      throw CompileError(kBadArgument, origin, "`{}` has {} tensors", op, next);
    const auto call = make<graph::Call>(make<graph::FuncRef>(name), std::move(args), Attrs{},
                                        std::vector<graph::Type>{}, origin);
    Substitution bound;
    for (size_t i = 0; i < call->args.size(); ++i)
      graph::unify(function->params[i]->type, graph::type_of(call->args[i]), bound);
    for (size_t i = 0; i < call->args.size(); ++i) {
      const graph::Type wanted = substitute(function->params[i]->type, bound),
                        given = graph::type_of(call->args[i]);
      if (wanted.as<graph::TensorType>() && !graph::is_subtype(given, wanted))
        throw CompileError(kShapeMismatch, origin, "`{}` is {}; it is declared as {}",
                           function->params[i]->name, graph::str(given), graph::str(wanted));
    }
    return call;
  }
  throw CompileError(kUnknownOperator, origin, "there is no operator `{}`", op);
}

}  // namespace tenon
