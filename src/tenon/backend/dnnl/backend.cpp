// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/dnnl/backend.h"

#ifdef TENON_DNNL_LIBRARY

#include <memory>
#include <mutex>

#include "tenon/backend/callbacks.h"
#include "tenon/backend/dnnl/emit.h"
#include "tenon/backend/dnnl/texts.h"

namespace tenon::backend {

namespace dnnl {

namespace {

// ---- callbacks

// The plan of the match that was asked for last: the callbacks of one part ask for it in turn.
struct Planned {
  MatchGraph graph;
  Region region;
};
std::shared_ptr<const Planned> planned(const TenonHost* host, const TenonMatch* match) {
  static std::mutex mutex;
  static std::shared_ptr<const Planned> last;
  MatchGraph graph = read_match(host, match, kNames);
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
    check_worth(read_match(host, match, kNames));
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

// The library's speed, roughly; fitted to no benchmark but the first.
constexpr double kCallSeconds =
    5e-7;  // to run a primitive: about 0.6 us in a chain of small products
constexpr double kFlopPerSecond = 9e10;
constexpr double kBytesPerSecond = 2e10;  // of results, which are often in cache

// Multiplications and additions of what has weights; bytes of the rest.
double cost(const TenonHost* host, const TenonMatch* match) {
  return number_of([&] {
    const MatchGraph graph = read_match(host, match);
    double seconds = kCallSeconds;
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
      seconds += flop / kFlopPerSecond + results * 4 / kBytesPerSecond;
    }
    return seconds;
  });
}

}  // namespace

}  // namespace dnnl

const TenonBackend* dnnl_backend(const TenonHost*) {
  static const TenonBackend made = [] {
    TenonBackend backend = {};
    backend.size = sizeof(TenonBackend);
    backend.abi = TENON_BACKEND_ABI;
    backend.name = "dnnl";
    backend.version = TENON_DNNL_LIBRARY;
    backend.patterns = dnnl::kPatternsText;
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
