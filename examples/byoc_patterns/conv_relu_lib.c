/* The library: a 3x3 convolution with padding 1, and the positive part of what it gives. */
void conv_relu_lib(const float* x, const float* w, float* y) {
  for (int o = 0; o < 20; ++o)
    for (int i = 0; i < 32; ++i)
      for (int j = 0; j < 32; ++j) {
        float sum = 0;
        for (int c = 0; c < 10; ++c)
          for (int p = 0; p < 3; ++p)
            for (int q = 0; q < 3; ++q) {
              const int u = i + p - 1, v = j + q - 1;
              if (u >= 0 && u < 32 && v >= 0 && v < 32)
                sum += x[(c * 32 + u) * 32 + v] * w[((o * 10 + c) * 3 + p) * 3 + q];
            }
        y[(o * 32 + i) * 32 + j] = sum > 0 ? sum : 0;
      }
}
