#include "tenon/backend/blas/backend.h"

#include "tenon/backend/blas/product.h"
#include "tenon/backend/callbacks.h"

namespace tenon::backend {

#ifdef TENON_HAS_OPENBLAS

namespace blas {

namespace {

// The larger first. A constant of one element is a scale.
constexpr char kPatterns[] =
    R"(matmul_scale_add = is_op("relax.add")(is_op("relax.multiply")(is_op("relax.matmul")(is_op("relax.permute_dims")(wildcard()) | wildcard(), is_op("relax.permute_dims")(wildcard()) | wildcard()), is_const()), wildcard()) | is_op("relax.add")(wildcard(), is_op("relax.multiply")(is_op("relax.matmul")(is_op("relax.permute_dims")(wildcard()) | wildcard(), is_op("relax.permute_dims")(wildcard()) | wildcard()), is_const()))
matmul_add = is_op("relax.add")(is_op("relax.matmul")(is_op("relax.permute_dims")(wildcard()) | wildcard(), is_op("relax.permute_dims")(wildcard()) | wildcard()), wildcard()) | is_op("relax.add")(wildcard(), is_op("relax.matmul")(is_op("relax.permute_dims")(wildcard()) | wildcard(), is_op("relax.permute_dims")(wildcard()) | wildcard()))
matmul_scale = is_op("relax.multiply")(is_op("relax.matmul")(is_op("relax.permute_dims")(wildcard()) | wildcard(), is_op("relax.permute_dims")(wildcard()) | wildcard()), is_const())
matmul_transposed = is_op("relax.matmul")(is_op("relax.permute_dims")(wildcard()), wildcard()) | is_op("relax.matmul")(wildcard(), is_op("relax.permute_dims")(wildcard()))
matmul = is_op("relax.matmul")(wildcard(), wildcard())
)";

int32_t check(const TenonHost* host, const TenonMatch* match, TenonAnswer* answer) {
  return answer_of(host, answer, [&] { (void)read_product(read_match(host, match)); });
}

double cost(const TenonHost* host, const TenonMatch* match) {
  return number_of([&] { return 1e-6 + read_product(read_match(host, match)).flop() / 6e10; });
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
    backend.version = "cblas";
    backend.patterns = blas::kPatterns;
    backend.unit = TENON_UNIT_MATCH;
    backend.threads = TENON_THREADS_OWN_POOL;
    backend.flags = TENON_PASS_THREADS;
    backend.check = blas::check;
    backend.cost = blas::cost;
    backend.generate = blas::generate;
    return backend;
  }();
  return &made;
}

#else

const TenonBackend* blas_backend(const TenonHost*) { return nullptr; }

#endif

}  // namespace tenon::backend
