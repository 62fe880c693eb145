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
      auto gelu = absorb_gelu(value, group);
      if (!gelu) gelu = absorb_gelu_tanh(value, group);
      if (gelu) {
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

  // x * (1 + erf(x / sqrt(2))) / 2 spelled out; the position of its last operator.
  std::optional<size_t> absorb_gelu(int x, Group& group) {
    std::vector<size_t> parts;
    std::vector<size_t> users = users_[static_cast<size_t>(x)];
    if (users.size() != 2 || is_output(x)) return std::nullopt;
    for (const size_t scaled : users) {
      const Operator& op = graph_.operators[scaled];
      float c = 0;
      if (!scalar_of(op, x, &c)) continue;
      const bool is_scale = (op.name == "divide" && std::abs(c - 1.4142135F) < 1e-5F) ||
                            (op.name == "multiply" && std::abs(c - 0.70710677F) < 1e-5F);
      const auto erf = only_user(op.result);
      if (!is_scale || !erf || graph_.operators[*erf].name != "erf") continue;
      const auto plus = only_user(graph_.operators[*erf].result);
      if (!plus || graph_.operators[*plus].name != "add" ||
          !scalar_of(graph_.operators[*plus], graph_.operators[*erf].result, &c) || c != 1)
        continue;
      const auto times = only_user(graph_.operators[*plus].result);
      if (!times || graph_.operators[*times].name != "multiply") continue;
      const Operator& product = graph_.operators[*times];
      const int other = product.value_arg(product.value_arg(0) == graph_.operators[*plus].result);
      parts = {scaled, *erf, *plus, *times};
      const size_t second = users[0] == scaled ? users[1] : users[0];
      size_t last = *times;
      if (other == x && second == *times) {
        const auto half = only_user(product.result);
        if (!half || graph_.operators[*half].name != "multiply" ||
            !scalar_of(graph_.operators[*half], product.result, &c) || c != 0.5F)
          continue;
        parts.push_back(last = *half);
      } else {
        const Operator& half = graph_.operators[second];
        if (half.result != other || half.name != "multiply" || !scalar_of(half, x, &c) ||
            c != 0.5F || !only_user(other))
          continue;
        parts.push_back(second);
      }
      for (const size_t part : parts) taken_[part] = true;
      add_post(group, eltwise(dnnl_eltwise_gelu_erf, 0, 0), graph_.operators[last].result);
      return last;
    }
    return std::nullopt;
  }

  // x * (1 + tanh(0.79788 * (x + 0.044715 * x * x * x))) / 2 spelled out, likewise. It is read from
  // its result backwards.
  std::optional<size_t> absorb_gelu_tanh(int x, Group& group) {
    constexpr size_t kLeastUses = 3;  // x ** 3, the sum, the last product
    if (users_[static_cast<size_t>(x)].size() < kLeastUses || is_output(x)) return std::nullopt;
    for (const Operator& op : graph_.operators) {
      std::vector<const Operator*> parts;
      if (op.name != "multiply" || !is_gelu_tanh(x, op.result, parts)) continue;
      const auto is_part = [&](size_t user) {
        return std::find(parts.begin(), parts.end(), &graph_.operators[user]) != parts.end();
      };
      const auto is_inner = [&](int value) {
        const auto& users = users_[static_cast<size_t>(value)];
        return !is_output(value) && std::all_of(users.begin(), users.end(), is_part);
      };
      const bool is_closed =
          is_inner(x) && std::all_of(parts.begin(), parts.end(), [&](const Operator* part) {
            return part == &op || is_inner(part->result);
          });
      if (!is_closed) continue;
      size_t last = 0;
      for (const Operator* part : parts) {
        const auto position = static_cast<size_t>(part - graph_.operators.data());
        taken_[position] = true;
        last = std::max(last, position);
      }
      add_post(group, eltwise(dnnl_eltwise_gelu_tanh, 0, 0), op.result);
      return last;
    }
    return std::nullopt;
  }

  bool is_gelu_tanh(int x, int result, std::vector<const Operator*>& parts) const {
    const auto is = [](int a, int b) { return a >= 0 && a == b; };
    // Of `op`, one operand that is `first`: the other; -1 where it has none.
    const auto other_operand = [&](int value, const char* name, int first) {
      const Operator* op = maker(value, name, parts);
      if (!op) return -1;
      if (is(op->value_arg(0), first)) return op->value_arg(1);
      return is(op->value_arg(1), first) ? op->value_arg(0) : -1;
    };
    int raised = -1;
    if (const int product = with_number(result, "multiply", 0.5F, parts); product >= 0) {
      raised = other_operand(product, "multiply", x);
    } else if (const Operator* op = maker(result, "multiply", parts)) {
      for (const size_t i : {size_t{0}, size_t{1}})
        if (raised < 0 && is(with_number(op->value_arg(i), "multiply", 0.5F, parts), x))
          raised = op->value_arg(1 - i);
    }
    const Operator* tanh = maker(with_number(raised, "add", 1, parts), "tanh", parts);
    if (!tanh) return false;
    const int sum = with_number(tanh->value_arg(0), "multiply", 0.7978846F, parts);
    const int cube = with_number(other_operand(sum, "add", x), "multiply", 0.044715F, parts);
    if (is(with_number(cube, "power", 3, parts), x)) return true;
    return is(other_operand(other_operand(cube, "multiply", x), "multiply", x), x);
  }

  // The operator of this name that gives `value`, which is noted; null where it is another.
  const Operator* maker(int value, const char* name, std::vector<const Operator*>& parts) const {
    const Operator* op = value < 0 ? nullptr : makers_[static_cast<size_t>(value)];
    if (!op || op->name != name) return nullptr;
    parts.push_back(op);
    return op;
  }
  // What `value` is the sum, product or power of with this number; -1 where it is none.
  int with_number(int value, const std::string& name, float number,
                  std::vector<const Operator*>& parts) const {
    const Operator* op = value < 0 ? nullptr : makers_[static_cast<size_t>(value)];
    if (!op || op->name != name) return -1;
    for (const size_t i : {size_t{0}, size_t{1}}) {
      float found = 0;
      if (name == "power" && i == 1) break;
      if (!graph_.is_scalar(op->value_arg(1 - i), &found) || std::abs(found - number) > 1e-5F)
        continue;
      parts.push_back(op);
      return op->value_arg(i);
    }
    return -1;
  }

  // The scalar that `op` combines `x` with; for what does not commute, x stands first.
  bool scalar_of(const Operator& op, int x, float* number) const {
    if (!binary_of(op.name)) return false;
    if (op.value_arg(0) == x) return graph_.is_scalar(op.value_arg(1), number);
    return op.value_arg(1) == x && op.name != "divide" && op.name != "subtract" &&
           graph_.is_scalar(op.value_arg(0), number);
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
