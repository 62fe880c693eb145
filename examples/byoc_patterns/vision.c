#include <stdint.h>

/* y = max(0, x * k + b): a 3x3 convolution with padding 1, of c channels to o. */
void conv_bias_relu(const float* x, const float* k, const float* b, float* y, int32_t c, int32_t o,
                    int32_t h, int32_t w) {
  for (int32_t m = 0; m < o; ++m)
    for (int32_t i = 0; i < h; ++i)
      for (int32_t j = 0; j < w; ++j) {
        float sum = b[m];
        for (int32_t n = 0; n < c; ++n)
          for (int32_t p = 0; p < 3; ++p)
            for (int32_t q = 0; q < 3; ++q) {
              const int32_t u = i + p - 1, v = j + q - 1;
              if (u >= 0 && u < h && v >= 0 && v < w)
                sum += x[(n * h + u) * w + v] * k[((m * c + n) * 3 + p) * 3 + q];
            }
        y[(m * h + i) * w + j] = sum > 0 ? sum : 0;
      }
}
