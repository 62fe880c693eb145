/* A back end that writes a C function for each `negative`. */
#include <stdio.h>
#include <tenon/backend.h>

static int32_t generate(const TenonHost* host, const TenonMatch* match, TenonAnswer* answer) {
  char code[400];
  snprintf(code, sizeof code,
           "#include <stdint.h>\nint32_t %s(const float* x, float* y) {\n"
           "  for (int64_t i = 0; i < %lld; ++i) y[i] = -x[i];\n  return 0;\n}\n",
           host->symbol(match), (long long)(host->input(match, 0)->bytes / 4));
  return host->emit(answer, TENON_C, code, TENON_TEXT);
}

static const TenonBackend backend = {.size = sizeof(TenonBackend),
                                     .abi = TENON_BACKEND_ABI,
                                     .name = "negate",
                                     .patterns = "negative = is_op('relax.negative')(wildcard())",
                                     .generate = generate};

TENON_EXPORT const TenonBackend* tenon_backend(const TenonHost* host) {
  return host ? &backend : NULL;
}
