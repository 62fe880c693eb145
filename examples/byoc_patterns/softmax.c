#include <math.h>
/* y = softmax(x) over the ten classes. */
void softmax(const float* x, float* y) {
  float sum = 0;
  for (int i = 0; i < 10; ++i) sum += y[i] = expf(x[i]);
  for (int i = 0; i < 10; ++i) y[i] /= sum;
}
