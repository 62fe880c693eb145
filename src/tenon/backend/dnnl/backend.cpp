#include "tenon/backend/dnnl/backend.h"

#ifdef TENON_DNNL_LIBRARY

#include <fmt/format.h>

#include <memory>
#include <mutex>

#include "tenon/backend/callbacks.h"
#include "tenon/backend/dnnl/emit.h"

namespace tenon::backend {

namespace dnnl {

namespace {

// ---- patterns

std::string any_op(std::initializer_list<const char*> names) {
  std::string text;
  for (const char* name : names)
    text += fmt::format("{}is_op(\"relax.{}\")", text.empty() ? "" : " | ", name);
  return names.size() == 1 ? text : "(" + text + ")";
}
std::string call(const std::string& op, std::initializer_list<std::string> args) {
  std::string text;
  for (const std::string& arg : args) text += (text.empty() ? "" : ", ") + arg;
  return op + "(" + text + ")";
}
std::string either(const std::string& a, const std::string& b) { return a + " | " + b; }

const std::string kAny = "wildcard()", kConstant = "is_const()";

std::string plus(const std::string& x, const std::string& other) {
  const std::string add = any_op({"add"});
  return "(" + either(call(add, {x, other}), call(add, {other, x})) + ")";
}

std::string activated(const std::string& x) {
  const std::string unary =
      any_op({"nn.relu", "nn.relu6", "nn.leakyrelu", "nn.elu", "nn.gelu", "nn.gelu_tanh", "nn.silu",
              "nn.swish", "nn.hardswish", "nn.hardsigmoid", "sigmoid", "tanh"});
  return "(" + either(call(unary, {x}), call(any_op({"clip"}), {x, kAny, kAny})) + ")";
}

// An operator with weights, and what may follow it.
void add_weighted(const std::string& name, const std::string& op, std::string& out) {
  const std::string root = op;
  const auto line = [&](const std::string& suffix, const std::string& pattern) {
    out += fmt::format("{}{} = {}\n", name, suffix, pattern);
  };
  const std::string bias = plus(root, kConstant);
  line("_bias_sum_activation", activated(plus(bias, kAny)));
  line("_bias_activation_sum", plus(activated(bias), kAny));
  line("_bias_activation", activated(bias));
  line("_bias_sum", plus(bias, kAny));
  line("_sum_activation", activated(plus(root, kAny)));
  line("_activation", activated(root));
  line("_bias", bias);
  line("_sum", plus(root, kAny));
  line("", root);
}

std::string patterns() {
  std::string out;
  add_weighted("conv", call(any_op({"nn.conv1d", "nn.conv2d", "nn.conv3d"}), {kAny, kAny}), out);
  add_weighted("deconv",
               call(any_op({"nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"}),
                    {kAny, kAny}),
               out);
  const std::string transposed = call(any_op({"permute_dims"}), {kAny});
  const std::string operand = "(" + transposed + " | " + kAny + ")";
  add_weighted("matmul", call(any_op({"matmul"}), {operand, operand}), out);
  out += fmt::format("plain_matmul = {}\n", call(any_op({"matmul"}), {kAny, kAny}));
  out +=
      fmt::format("pool = {}\n",
                  call(any_op({"nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "nn.avg_pool1d",
                               "nn.avg_pool2d", "nn.avg_pool3d", "nn.adaptive_avg_pool1d",
                               "nn.adaptive_avg_pool2d", "nn.adaptive_avg_pool3d", "mean"}),
                       {kAny}));
  const std::string norm = call(any_op({"nn.batch_norm_result"}), {kAny, kAny, kAny, kAny, kAny});
  out += fmt::format("batch_norm_relu = {}\n", call(any_op({"nn.relu"}), {norm}));
  out += fmt::format("batch_norm = {}\n", norm);
  out += fmt::format("layer_norm = {}\n", call(any_op({"nn.layer_norm"}), {kAny, kAny, kAny}));
  out += fmt::format("softmax = {}\n", call(any_op({"nn.softmax", "nn.log_softmax"}), {kAny}));
  const std::string binary =
      call(any_op({"add", "multiply", "maximum", "minimum", "subtract", "divide"}), {kAny, kAny});
  out += fmt::format("binary_activation = {}\n", activated(binary));
  out += fmt::format("binary = {}\n", binary);
  out += fmt::format("activation = {}\n", activated(kAny));
  return out;
}

// ---- callbacks

// The plan of the match that was asked for last: the callbacks of one part ask for it in turn.
struct Planned {
  MatchGraph graph;
  Region region;
};
std::shared_ptr<const Planned> planned(const TenonHost* host, const TenonMatch* match) {
  static std::mutex mutex;
  static std::shared_ptr<const Planned> last;
  MatchGraph graph = read_match(host, match);
  const std::lock_guard lock(mutex);
  if (last && last->graph == graph) return last;
  Planned made;
  made.graph = std::move(graph);
  made.region = plan_region(made.graph);
  return last = std::make_shared<const Planned>(std::move(made));
}

// Elementwise work by itself gains nothing, but it joins what stands around it in a network of
// images.
void check_worth(const MatchGraph& graph) {
  const std::vector<Group> groups = group(graph);
  for (const Group& group : groups)
    if (group.root == Group::Root::kNone && graph[group.source].shape.size() != 4)
      throw Refusal{"cost", "elementwise work by itself is not slower where it is"};
}

int32_t check(const TenonHost* host, const TenonMatch* match, TenonAnswer* answer) {
  return answer_of(host, answer, [&] {
    check_worth(read_match(host, match));
    (void)planned(host, match);
  });
}

int64_t scratch(const TenonHost* host, const TenonMatch* match) {
  return number_of([&] { return planned(host, match)->region.scratch_bytes; });
}

int32_t pack(const TenonHost* host, const TenonMatch* match, int32_t input, TenonAnswer* answer) {
  return answer_of(host, answer, [&] {
    const auto plan = planned(host, match);
    const auto packing = plan->region.packings.find(input);
    if (packing == plan->region.packings.end()) return;
    const std::string bytes = pack_constant(
        packing->second, plan->graph[plan->graph.inputs[static_cast<size_t>(input)]].data);
    take(host->emit(answer, TENON_PACKED, bytes.data(), static_cast<int64_t>(bytes.size())));
  });
}

int32_t generate(const TenonHost* host, const TenonMatch* match, TenonAnswer* answer) {
  return answer_of(host, answer, [&] {
    const auto plan = planned(host, match);
    const std::string prelude = c_prelude();
    const std::string code = c_function(host->symbol(match), plan->graph, plan->region);
    take(host->emit(answer, TENON_C_PRELUDE, prelude.data(), static_cast<int64_t>(prelude.size())));
    take(host->emit(answer, TENON_C, code.data(), static_cast<int64_t>(code.size())));
    take(host->link(answer, "dnnl"));
    take(host->link(answer, "libgomp.so.1"));
  });
}

// Multiplications and additions of what has weights; bytes of the rest.
double cost(const TenonHost* host, const TenonMatch* match) {
  return number_of([&] {
    const MatchGraph graph = read_match(host, match);
    double seconds = 2e-6;
    for (const MatchGraph::Operator& op : graph.operators) {
      const auto results = static_cast<double>(graph.elements(op.result));
      double flop = 0;
      if (op.name.starts_with("nn.conv")) {
        const auto& w = graph[op.value_arg(1)];
        const bool is_transposed = op.name.ends_with("_transpose");
        const auto taps =
            static_cast<double>(graph.elements(op.value_arg(1))) / static_cast<double>(w.shape[0]);
        flop = 2 * taps *
               (is_transposed ? static_cast<double>(graph.elements(op.value_arg(0))) : results);
      } else if (op.name == "matmul") {
        flop = 2 * results * static_cast<double>(graph[op.value_arg(0)].shape.back());
      }
      seconds += flop / 9e10 + results * 4 / 2e10;
    }
    return seconds;
  });
}

}  // namespace

}  // namespace dnnl

const TenonBackend* dnnl_backend(const TenonHost*) {
  static const std::string patterns = dnnl::patterns();
  static const TenonBackend made = [] {
    TenonBackend backend = {};
    backend.size = sizeof(TenonBackend);
    backend.abi = TENON_BACKEND_ABI;
    backend.name = "dnnl";
    backend.version = TENON_DNNL_LIBRARY;
    backend.patterns = patterns.c_str();
    backend.unit = TENON_UNIT_REGION;
    backend.threads = TENON_THREADS_OWN_POOL;
    backend.flags = TENON_PASS_THREADS;
    backend.check = dnnl::check;
    backend.cost = dnnl::cost;
    backend.scratch = dnnl::scratch;
    backend.pack = dnnl::pack;
    backend.generate = dnnl::generate;
    return backend;
  }();
  return &made;
}

}  // namespace tenon::backend

#else

namespace tenon::backend {

const TenonBackend* dnnl_backend(const TenonHost*) { return nullptr; }

}  // namespace tenon::backend

#endif
