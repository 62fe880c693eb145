// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/dnnl/groups.h"

#include <dnnl_types.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace tenon::backend::dnnl {

namespace {

using Operator = MatchGraph::Operator;

struct Unary {
  const char* name;
  int alg;
  const char* alpha = nullptr;  // attributes, where it has any
  const char* beta = nullptr;
  float fixed_alpha = 0, fixed_beta = 0;
};

// The library's elementwise operations by the graph's names.
constexpr Unary kUnary[] = {
    {"nn.relu", dnnl_eltwise_relu},
    {"nn.relu6", dnnl_eltwise_clip, nullptr, nullptr, 0, 6},
    {"nn.leakyrelu", dnnl_eltwise_relu, "alpha"},
    {"nn.elu", dnnl_eltwise_elu, "alpha"},
    {"nn.gelu", dnnl_eltwise_gelu_erf},
    {"nn.gelu_tanh", dnnl_eltwise_gelu_tanh},
    {"nn.silu", dnnl_eltwise_swish, nullptr, nullptr, 1},
    {"nn.swish", dnnl_eltwise_swish, "alpha"},
    {"nn.hardswish", dnnl_eltwise_hardswish},
    {"sigmoid", dnnl_eltwise_logistic},
    {"tanh", dnnl_eltwise_tanh},
    {"abs", dnnl_eltwise_abs},
    {"exp", dnnl_eltwise_exp},
    {"sqrt", dnnl_eltwise_sqrt},
};

struct Binary {
  const char* name;
  int alg;
  bool is_commutative;
};
// Not `maximum` and `minimum`: the library's drop a NaN of their first operand.
constexpr Binary kBinary[] = {
    {"add", dnnl_binary_add, true},
    {"multiply", dnnl_binary_mul, true},
    {"subtract", dnnl_binary_sub, false},
    {"divide", dnnl_binary_div, false},
};

const Binary* binary_of(const std::string& name) {
  for (const Binary& row : kBinary)
    if (name == row.name) return &row;
  return nullptr;
}

std::optional<Group::Root> root_of(const Operator& op) {
  using Root = Group::Root;
  const auto is_windowed = [&](const std::string& prefix, const std::string& suffix) {
    for (const char* rank : {"1d", "2d", "3d"})
      if (op.name == prefix + rank + suffix) return true;
    return false;
  };
  if (is_windowed("nn.conv", "")) return Root::kConvolution;
  if (is_windowed("nn.conv", "_transpose")) return Root::kDeconvolution;
  if (is_windowed("nn.max_pool", "") || is_windowed("nn.avg_pool", "")) return Root::kPooling;
  if (op.name == "mean" || is_windowed("nn.adaptive_avg_pool", "")) return Root::kGlobalPooling;
  if (op.name == "matmul") return Root::kMatmul;
  if (op.name == "nn.batch_norm" || op.name == "nn.batch_norm_result") return Root::kBatchNorm;
  if (op.name == "nn.layer_norm") return Root::kLayerNorm;
  if (op.name == "nn.softmax" || op.name == "nn.log_softmax") return Root::kSoftmax;
  return std::nullopt;
}

// Whether `shape` broadcasts to `to` without changing it.
bool broadcasts_to(const std::vector<int64_t>& shape, const std::vector<int64_t>& to) {
  if (shape.size() > to.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t extent = shape[shape.size() - 1 - i];
    if (extent != 1 && extent != to[to.size() - 1 - i]) return false;
  }
  return true;
}

// Constants of networks are rounded in their own ways.
constexpr float kNearlyEqual = 1e-5F;

class Grouper {
 public:
  explicit Grouper(const MatchGraph& graph)
      : graph_(graph),
        users_(graph.values.size()),
        makers_(graph.values.size(), nullptr),
        taken_(graph.operators.size()) {
    for (const Operator& op : graph.operators) makers_[static_cast<size_t>(op.result)] = &op;
    for (size_t i = 0; i < graph.operators.size(); ++i)
      for (const MatchGraph::Argument& argument : graph.operators[i].args)
        if (argument.kind == MatchGraph::Argument::Kind::kValue)
          users_[static_cast<size_t>(argument.value)].push_back(i);
  }

  std::vector<Group> run() {
    std::vector<std::pair<size_t, Group>> found;  // with the position of its last operator
    for (size_t i = 0; i < graph_.operators.size(); ++i)
      if (root_of(graph_.operators[i])) found.push_back(chain_of(i));
    for (size_t i = 0; i < graph_.operators.size(); ++i)
      if (!taken_[i] && graph_.operators[i].name != "permute_dims") found.push_back(chain_of(i));
    for (size_t i = 0; i < graph_.operators.size(); ++i)
      if (!taken_[i]) refuse(graph_.operators[i]);
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Group> groups;
    for (auto& [position, group] : found) groups.push_back(std::move(group));
    return groups;
  }

 private:
  [[noreturn]] static void refuse(const Operator& op) {
    throw Refusal{"operator", "`" + op.name + "` has no form in the library here"};
  }

  bool is_output(int value) const {
    return std::find(graph_.outputs.begin(), graph_.outputs.end(), value) != graph_.outputs.end();
  }
  // The one operator that uses a value; nothing where there are others.
  std::optional<size_t> only_user(int value) const {
    const auto& users = users_[static_cast<size_t>(value)];
    if (is_output(value) || users.empty()) return std::nullopt;
    for (const size_t user : users)
      if (user != users[0]) return std::nullopt;
    return taken_[users[0]] ? std::nullopt : std::optional(users[0]);
  }

  // A chain that begins at operator `first`, and the position of its last operator.
  std::pair<size_t, Group> chain_of(size_t first) {
    const Operator& op = graph_.operators[first];
    Group group;
    size_t last = first;
    if (const auto root = root_of(op)) {
      group.root = *root;
      group.op = &op;
      group.results = {op.result};
      if (group.root == Group::Root::kMatmul) {
        see_through(op, 0, group);
        see_through(op, 1, group);
      }
      taken_[first] = true;
    } else {
      group.source = chain_source(op);
      group.results = {group.source};
      if (!absorb(first, group)) refuse(op);
    }
    for (;;) {
      const int value = group.results.back();
      if (const auto gelu = absorb_gelu(value, group)) {
        last = std::max(last, *gelu);
        continue;
      }
      const auto user = only_user(value);
      if (!user || group.posts.size() > 4 || !absorb(*user, group)) break;
      last = std::max(last, *user);
    }
    return {last, std::move(group)};
  }

  // An operand that is a transposed view of something.
  void see_through(const Operator& op, size_t i, Group& group) {
    int value = op.value_arg(i);
    const auto made_by = std::find_if(graph_.operators.begin(), graph_.operators.end(),
                                      [&](const Operator& o) { return o.result == value; });
    if (made_by != graph_.operators.end() && made_by->name == "permute_dims" && only_user(value)) {
      group.permutation[i] = made_by->ints("axes");
      if (group.permutation[i].empty())
        for (size_t d = graph_[value].shape.size(); d-- > 0;)
          group.permutation[i].push_back(static_cast<int64_t>(d));
      taken_[static_cast<size_t>(made_by - graph_.operators.begin())] = true;
      value = made_by->value_arg(0);
    }
    group.operands[i] = value;
  }

  // The operand of an elementwise operator that has the shape of its result.
  int chain_source(const Operator& op) const {
    const Binary* binary = binary_of(op.name);
    const auto fits = [&](size_t i) {
      return graph_[op.value_arg(i)].shape == graph_[op.result].shape;
    };
    if (!binary) return op.value_arg(0);
    if (fits(0) && !graph_[op.value_arg(0)].data) return op.value_arg(0);
    if (fits(1) && (binary->is_commutative || !fits(0))) return op.value_arg(1);
    if (fits(0)) return op.value_arg(0);
    throw Refusal{"shape", "both operands of `" + op.name + "` are broadcast"};
  }

  static void add_post(Group& group, Post post, int result) {
    group.posts.push_back(post);
    group.results.push_back(result);
  }
  static Post eltwise(int alg, double alpha, double beta) {
    return {Post::Kind::kEltwise, alg, static_cast<float>(alpha), static_cast<float>(beta), -1};
  }

  // Takes operator `position`, which uses the group's last value, into the group.
  bool absorb(size_t position, Group& group) {
    const Operator& op = graph_.operators[position];
    const int chain = group.results.back();
    if (graph_[op.result].shape != graph_[chain].shape) return false;
    if (!absorb_unary(op, group) && !absorb_binary(op, chain, group)) return false;
    taken_[position] = true;
    return true;
  }

  // A scalar argument: a number, or a constant of one element.
  double scalar_arg(const Operator& op, size_t i) const {
    float number = 0;
    if (i < op.args.size() && op.args[i].kind == MatchGraph::Argument::Kind::kValue &&
        graph_.is_scalar(op.args[i].value, &number))
      return static_cast<double>(number);
    return op.number_arg(i);
  }

  bool absorb_unary(const Operator& op, Group& group) const {
    for (const Unary& row : kUnary) {
      if (op.name != row.name) continue;
      add_post(group,
               eltwise(row.alg, row.alpha ? op.number(row.alpha, 0) : row.fixed_alpha,
                       row.beta ? op.number(row.beta, 0) : row.fixed_beta),
               op.result);
      return true;
    }
    if (op.name == "clip") {
      add_post(group, eltwise(dnnl_eltwise_clip, scalar_arg(op, 1), scalar_arg(op, 2)), op.result);
      return true;
    }
    if (op.name == "nn.hardsigmoid") {
      add_post(group, eltwise(dnnl_eltwise_linear, op.number("alpha", 0), op.number("beta", 0)),
               -1);
      add_post(group, eltwise(dnnl_eltwise_clip, 0, 1), op.result);
      return true;
    }
    return false;
  }

  bool absorb_binary(const Operator& op, int chain, Group& group) const {
    const Binary* binary = binary_of(op.name);
    if (!binary) return false;
    const int lhs = op.value_arg(0), rhs = op.value_arg(1);
    const int other = lhs == chain ? rhs : lhs;
    float number = 0;
    if (graph_.is_scalar(other, &number)) {
      if (const auto post = with_scalar(op.name, lhs == chain, number)) {
        add_post(group, *post, op.result);
        return true;
      }
    }
    if (lhs != chain && !binary->is_commutative) return false;
    if (other == chain && chain != group.source) return false;  // stored nowhere
    if (!broadcasts_to(graph_[other].shape, graph_[chain].shape)) return false;
    if (is_bias(op, other, chain, group)) {
      group.bias = other;
      group.results.back() = op.result;
      return true;
    }
    add_post(group, {Post::Kind::kBinary, binary->alg, 0, 0, other}, op.result);
    return true;
  }

  static std::optional<Post> with_scalar(const std::string& name, bool chain_is_first, float c) {
    const int linear = dnnl_eltwise_linear;
    if (name == "add") return eltwise(linear, 1, c);
    if (name == "multiply") return eltwise(linear, c, 0);
    if (name == "subtract") return chain_is_first ? eltwise(linear, 1, -c) : eltwise(linear, -1, c);
    int exponent = 0;  // division by a power of two is a product, exactly
    if (name == "divide" && chain_is_first && std::abs(std::frexp(c, &exponent)) == 0.5F)
      return eltwise(linear, 1 / c, 0);
    return std::nullopt;
  }

  // A vector over the channels (of a convolution) or columns (of a product), constant, added first.
  bool is_bias(const Operator& op, int other, int chain, const Group& group) const {
    const bool is_windowed =
        group.root == Group::Root::kConvolution || group.root == Group::Root::kDeconvolution;
    if (op.name != "add" || group.bias >= 0 || !group.posts.empty() || !graph_[other].data)
      return false;
    if (!is_windowed && group.root != Group::Root::kMatmul) return false;
    const auto& to = graph_[chain].shape;
    const auto& shape = graph_[other].shape;
    const size_t axis = is_windowed ? 1 : to.size() - 1;
    if (to.empty() || graph_.elements(other) != to[axis]) return false;
    const size_t behind = to.size() - 1 - axis;  // dimensions behind the axis
    return shape.size() > behind && shape[shape.size() - 1 - behind] == to[axis];
  }

  // GELU spelled out, which the pattern found behind `x`; the position of its last operator. The
  // pattern leaves the numbers to us.
  std::optional<size_t> absorb_gelu(int x, Group& group) {
    for (const MatchGraph::Part& part : graph_.parts) {
      if (part["gelu_source"] != x) continue;
      const auto is = [&](const char* name, float wanted) {
        float number = 0;
        return part[name] < 0 ||
               (graph_.is_scalar(part[name], &number) && std::abs(number - wanted) < kNearlyEqual);
      };
      if (!is("half", 0.5F) || !is("one", 1) || !is("erf_divisor", 1.4142135F) ||
          !is("erf_factor", 0.70710677F) || !is("tanh_factor", 0.7978846F) ||
          !is("cube_factor", 0.044715F) || !is("exponent", 3))
        return std::nullopt;
      const bool has_tanh = part["tanh_factor"] >= 0;
      take_between(x, part.results.front());
      add_post(group, eltwise(has_tanh ? dnnl_eltwise_gelu_tanh : dnnl_eltwise_gelu_erf, 0, 0),
               part.results.front());
      return position_of(part.results.front());
    }
    return std::nullopt;
  }

  size_t position_of(int value) const {
    return static_cast<size_t>(makers_[static_cast<size_t>(value)] - graph_.operators.data());
  }
  // The operators that make `value` of `x`.
  void take_between(int x, int value) {
    if (value < 0 || value == x || !makers_[static_cast<size_t>(value)]) return;
    if (taken_[position_of(value)]) return;
    taken_[position_of(value)] = true;
    for (const MatchGraph::Argument& argument : makers_[static_cast<size_t>(value)]->args)
      take_between(x, argument.value);
  }

  const MatchGraph& graph_;
  std::vector<std::vector<size_t>> users_;  // of each value, with repetition
  std::vector<const Operator*> makers_;     // of each value; null for inputs
  std::vector<bool> taken_;
};

}  // namespace

std::vector<Group> group(const MatchGraph& graph) {
  for (const MatchGraph::Value& value : graph.values) {
    if (value.dtype != "float32")
      throw Refusal{"dtype", "a tensor of " + value.dtype + "; expected float32"};
    if (value.shape.size() > 6) throw Refusal{"rank", "a tensor of more than 6 dimensions"};
    for (const int64_t extent : value.shape) {
      if (extent == TENON_SYMBOLIC) throw Refusal{"symbolic", "a dimension is not a number"};
      if (extent < 1) throw Refusal{"shape", "a tensor without elements"};
    }
  }
  return Grouper(graph).run();
}

}  // namespace tenon::backend::dnnl
