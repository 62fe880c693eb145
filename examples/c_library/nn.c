#include "nn.h"

#include <math.h>

enum { NN_BAD_SHAPE = 1, NN_BAD_AXIS = 2 };

static float activated(float value, int32_t activation, float low, float high) {
  if (activation == NN_RELU) return value > 0 ? value : 0;
  if (activation == NN_CLIP) return value < low ? low : value > high ? high : value;
  return value;
}

/* The pixels that one row of the output sees, a row of `ow` for each weight: (channels * kh * kw, ow). */
static void gather(const float* x, float* patch, const nn_conv_params* p, int32_t first,
                   int32_t channels, int32_t row) {
  for (int32_t c = 0; c < channels; ++c)
    for (int32_t r = 0; r < p->kh; ++r)
      for (int32_t s = 0; s < p->kw; ++s) {
        const int32_t i = row * p->strides[0] - p->padding[0] + r * p->dilation[0];
        for (int32_t q = 0; q < p->ow; ++q) {
          const int32_t j = q * p->strides[1] - p->padding[1] + s * p->dilation[1];
          const int inside = i >= 0 && i < p->h && j >= 0 && j < p->w;
          *patch++ = inside ? x[((first + c) * p->h + i) * p->w + j] : 0;
        }
      }
}

static int32_t conv2d(const float* x, const float* weight, const float* bias, float* y,
                      float* patch, const nn_conv_params* p, int32_t activation, float low,
                      float high) {
  if (p->groups < 1 || p->c % p->groups != 0 || p->o % p->groups != 0) return NN_BAD_SHAPE;
  const int32_t channels = p->c / p->groups, outputs = p->o / p->groups;
  const int32_t terms = channels * p->kh * p->kw;
  for (int32_t n = 0; n < p->n; ++n)
    for (int32_t g = 0; g < p->groups; ++g)
      for (int32_t row = 0; row < p->oh; ++row) {
        gather(x + n * p->c * p->h * p->w, patch, p, g * channels, channels, row);
        for (int32_t o = g * outputs; o < (g + 1) * outputs; ++o) {
          float* out = y + ((n * p->o + o) * p->oh + row) * p->ow;
          for (int32_t q = 0; q < p->ow; ++q) out[q] = bias[o];
          for (int32_t t = 0; t < terms; ++t)
            for (int32_t q = 0; q < p->ow; ++q)
              out[q] += weight[o * terms + t] * patch[t * p->ow + q];
          for (int32_t q = 0; q < p->ow; ++q) out[q] = activated(out[q], activation, low, high);
        }
      }
  return 0;
}

int32_t nn_conv2d(const float* x, const float* weight, const float* bias, float* y, float* patch,
                  const nn_conv_params* conv) {
  return conv2d(x, weight, bias, y, patch, conv, NN_NONE, 0, 0);
}

int32_t nn_conv2d_relu(const float* x, const float* weight, const float* bias, float* y,
                       float* patch, const nn_conv_params* conv) {
  return conv2d(x, weight, bias, y, patch, conv, NN_RELU, 0, 0);
}

int32_t nn_conv2d_clip(const float* x, const float* weight, const float* bias, float* y,
                       float* patch, const nn_conv_params* conv, float low, float high) {
  return conv2d(x, weight, bias, y, patch, conv, NN_CLIP, low, high);
}

int32_t nn_depthwise2d(const float* x, const float* weight, const float* bias, float* y,
                       const nn_conv_params* p, int32_t activation, float low, float high) {
  if (p->groups != p->c || p->o != p->c) return NN_BAD_SHAPE;
  for (int32_t plane = 0; plane < p->n * p->c; ++plane) {
    const float* in = x + plane * p->h * p->w;
    const float* kernel = weight + plane % p->c * p->kh * p->kw;
    for (int32_t i = 0; i < p->oh; ++i)
      for (int32_t j = 0; j < p->ow; ++j) {
        float sum = bias[plane % p->c];
        for (int32_t r = 0; r < p->kh; ++r)
          for (int32_t s = 0; s < p->kw; ++s) {
            const int32_t a = i * p->strides[0] - p->padding[0] + r * p->dilation[0];
            const int32_t b = j * p->strides[1] - p->padding[1] + s * p->dilation[1];
            if (a >= 0 && a < p->h && b >= 0 && b < p->w)
              sum += in[a * p->w + b] * kernel[r * p->kw + s];
          }
        *y++ = activated(sum, activation, low, high);
      }
  }
  return 0;
}

void nn_max_pool2d(const float* x, float* y, int32_t planes, int32_t h, int32_t w, int32_t oh,
                   int32_t ow, const int64_t pool_size[2], const int64_t strides[2],
                   const int64_t padding[4], const int64_t dilation[2]) {
  for (int32_t plane = 0; plane < planes; ++plane, x += h * w)
    for (int32_t i = 0; i < oh; ++i)
      for (int32_t j = 0; j < ow; ++j) {
        float most = -INFINITY;
        for (int64_t r = 0; r < pool_size[0]; ++r)
          for (int64_t s = 0; s < pool_size[1]; ++s) {
            const int64_t a = i * strides[0] - padding[0] + r * dilation[0];
            const int64_t b = j * strides[1] - padding[1] + s * dilation[1];
            if (a >= 0 && a < h && b >= 0 && b < w && x[a * w + b] > most) most = x[a * w + b];
          }
        *y++ = most;
      }
}

void nn_avg_pool2d(const float* x, float* y, int32_t planes, int32_t h, int32_t w, int32_t oh,
                   int32_t ow, const int64_t pool_size[2], const int64_t strides[2],
                   const int64_t padding[4], int32_t count_include_pad) {
  for (int32_t plane = 0; plane < planes; ++plane, x += h * w)
    for (int32_t i = 0; i < oh; ++i)
      for (int32_t j = 0; j < ow; ++j) {
        float sum = 0;
        int32_t count = 0;
        for (int64_t r = 0; r < pool_size[0]; ++r)
          for (int64_t s = 0; s < pool_size[1]; ++s) {
            const int64_t a = i * strides[0] - padding[0] + r, b = j * strides[1] - padding[1] + s;
            const int inside = a >= 0 && a < h && b >= 0 && b < w;
            if (inside) sum += x[a * w + b];
            count += inside || count_include_pad;
          }
        *y++ = sum / (float)count;
      }
}

void nn_global_avg_pool(const float* x, float* y, int32_t planes, int32_t size) {
  for (int32_t plane = 0; plane < planes; ++plane) {
    float sum = 0;
    for (int32_t i = 0; i < size; ++i) sum += *x++;
    y[plane] = sum / (float)size;
  }
}

void nn_dense(const float* x, const float* weight, const float* bias, float* y, int32_t m,
              int32_t n, int32_t k) {
  for (int32_t i = 0; i < m; ++i)
    for (int32_t j = 0; j < n; ++j) {
      float sum = bias[j];
      for (int32_t t = 0; t < k; ++t) sum += x[i * k + t] * weight[j * k + t];
      y[i * n + j] = sum;
    }
}

void nn_add(const float* a, const float* b, float* y, int32_t size) {
  for (int32_t i = 0; i < size; ++i) y[i] = a[i] + b[i];
}

void nn_add_relu(const float* a, const float* b, float* y, int32_t size) {
  for (int32_t i = 0; i < size; ++i) y[i] = activated(a[i] + b[i], NN_RELU, 0, 0);
}

void nn_relu(const float* x, float* y, int32_t size) {
  for (int32_t i = 0; i < size; ++i) y[i] = activated(x[i], NN_RELU, 0, 0);
}

int32_t nn_softmax(const float* x, float* y, int32_t rows, int32_t size, int32_t axis) {
  if (axis != -1 && axis != 1) return NN_BAD_AXIS;
  for (int32_t row = 0; row < rows; ++row, x += size, y += size) {
    float most = x[0], sum = 0;
    for (int32_t i = 1; i < size; ++i) most = x[i] > most ? x[i] : most;
    for (int32_t i = 0; i < size; ++i) sum += y[i] = expf(x[i] - most);
    for (int32_t i = 0; i < size; ++i) y[i] /= sum;
  }
  return 0;
}
