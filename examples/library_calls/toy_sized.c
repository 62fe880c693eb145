/* A library for dense layers of any size. It is given the sizes, wants the weights first, needs
 * memory for the weights in another order, and says whether it succeeded. */
#include <stdint.h>

static int32_t dense(const float* w, const float* x, const float* b, float* y, float* packed,
                     int32_t m, int32_t n, int32_t k, int relu) {
  int32_t i, j, p;
  if (m < 0 || n < 1 || k < 1) return 7;
  for (j = 0; j < n; ++j)
    for (p = 0; p < k; ++p) packed[p * n + j] = w[j * k + p];
  for (i = 0; i < m; ++i) {
    for (j = 0; j < n; ++j) y[i * n + j] = 0;
    for (p = 0; p < k; ++p)
      for (j = 0; j < n; ++j) y[i * n + j] += x[i * k + p] * packed[p * n + j];
    for (j = 0; j < n; ++j) {
      y[i * n + j] += b[j];
      if (relu && y[i * n + j] < 0) y[i * n + j] = 0;
    }
  }
  return 0;
}

int32_t dense_bias_relu(const float* w, const float* x, const float* b, float* y, float* packed,
                        int32_t m, int32_t n, int32_t k) {
  return dense(w, x, b, y, packed, m, n, k, 1);
}

int32_t dense_bias(const float* w, const float* x, const float* b, float* y, float* packed,
                   int32_t m, int32_t n, int32_t k) {
  return dense(w, x, b, y, packed, m, n, k, 0);
}
