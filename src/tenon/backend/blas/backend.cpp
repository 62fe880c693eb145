// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/blas/backend.h"

#ifdef TENON_HAS_OPENBLAS

#include "tenon/backend/blas/patterns_text.h"
#include "tenon/backend/blas/product.h"
#include "tenon/backend/callbacks.h"

namespace tenon::backend {

namespace blas {

namespace {

int32_t check(const TenonHost* host, const TenonMatch* match, TenonAnswer* answer) {
  return answer_of(host, answer, [&] { (void)read_product(read_match(host, match)); });
}

// The library's speed on one thread, roughly; fitted to no benchmark.
constexpr double kCallSeconds = 1e-6;
constexpr double kFlopPerSecond = 6e10;

double cost(const TenonHost* host, const TenonMatch* match) {
  return number_of([&] {
    const double flop = read_product(read_match(host, match)).flop();
    return flop < 0 ? -1 : kCallSeconds + flop / kFlopPerSecond;
  });
}

int32_t generate(const TenonHost* host, const TenonMatch* match, TenonAnswer* answer) {
  return answer_of(host, answer, [&] {
    const MatchGraph graph = read_match(host, match);
    const std::string prelude = c_prelude();
    const std::string code = c_function(host->symbol(match), graph, read_product(graph));
    take(host->emit(answer, TENON_C_PRELUDE, prelude.data(), static_cast<int64_t>(prelude.size())));
    take(host->emit(answer, TENON_C, code.data(), static_cast<int64_t>(code.size())));
    take(host->link(answer, "openblas"));
  });
}

}  // namespace

}  // namespace blas

const TenonBackend* blas_backend(const TenonHost*) {
  static const TenonBackend made = [] {
    TenonBackend backend = {};
    backend.size = sizeof(TenonBackend);
    backend.abi = TENON_BACKEND_ABI;
    backend.name = "blas";
    backend.version = "OpenBLAS";
    backend.patterns = blas::kPatternsText;
    backend.unit = TENON_UNIT_MATCH;
    backend.threads = TENON_THREADS_OWN_POOL;
    backend.flags = TENON_PASS_THREADS | TENON_TAKES_SYMBOLIC_SHAPES;
    backend.check = blas::check;
    backend.cost = blas::cost;
    backend.generate = blas::generate;
    return backend;
  }();
  return &made;
}

}  // namespace tenon::backend

#else

namespace tenon::backend {

const TenonBackend* blas_backend(const TenonHost*) { return nullptr; }

}  // namespace tenon::backend

#endif
