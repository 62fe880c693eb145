#include <stdint.h>

/* y = w x + b, of n numbers to m. */
void dense_bias(const float* x, const float* w, const float* b, float* y, int32_t m, int32_t n) {
  for (int32_t i = 0; i < m; ++i) {
    float sum = b[i];
    for (int32_t j = 0; j < n; ++j) sum += x[j] * w[i * n + j];
    y[i] = sum;
  }
}
