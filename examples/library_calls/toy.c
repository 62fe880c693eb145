#include "toy.h"

static float dense(const float* x, const float* w, float b, int k) {
  float sum = 0;
  int i;
  for (i = 0; i < k; ++i) sum += x[i] * w[i];
  return sum + b;
}

void dense_bias_relu(const float* x, const float* w, const float* b, float* y) {
  int i, j;
  for (i = 0; i < 64; ++i)
    for (j = 0; j < 500; ++j) {
      const float sum = dense(x + i * 800, w + j * 800, b[j], 800);
      y[i * 500 + j] = sum > 0 ? sum : 0;
    }
}

void dense_bias(const float* x, const float* w, const float* b, float* y) {
  int i, j;
  for (i = 0; i < 64; ++i)
    for (j = 0; j < 10; ++j) y[i * 10 + j] = dense(x + i * 500, w + j * 500, b[j], 500);
}
