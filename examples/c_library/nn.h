/* A small library of neural network functions in plain C99, for tensors of floats as they lie in
 * memory: batch, channels, rows, columns. Functions that can refuse their arguments return a code,
 * 0 where all is well. None of them allocates. */
#ifndef NN_H_
#define NN_H_

#include <stdint.h>

/* What a convolution is told. Padding: above, left, below, right. */
typedef struct {
  int32_t n, c, h, w; /* of the input */
  int32_t o, kh, kw;  /* channels of the output, rows and columns of the kernel */
  int32_t oh, ow;     /* rows and columns of the output */
  int32_t strides[2], padding[4], dilation[2];
  int32_t groups;
} nn_conv_params;

typedef enum { NN_NONE = 0, NN_RELU = 1, NN_CLIP = 2 } nn_activation;

/* weight (o, c / groups, kh, kw), bias (o), patch: scratch of c / groups * kh * kw * ow floats. */
int32_t nn_conv2d(const float* x, const float* weight, const float* bias, float* y, float* patch,
                  const nn_conv_params* conv);
int32_t nn_conv2d_relu(const float* x, const float* weight, const float* bias, float* y,
                       float* patch, const nn_conv_params* conv);
int32_t nn_conv2d_clip(const float* x, const float* weight, const float* bias, float* y,
                       float* patch, const nn_conv_params* conv, float low, float high);
/* One kernel for each channel: weight (c, 1, kh, kw). Without scratch. */
int32_t nn_depthwise2d(const float* x, const float* weight, const float* bias, float* y,
                       const nn_conv_params* conv, int32_t activation, float low, float high);

void nn_max_pool2d(const float* x, float* y, int32_t planes, int32_t h, int32_t w, int32_t oh,
                   int32_t ow, const int64_t pool_size[2], const int64_t strides[2],
                   const int64_t padding[4], const int64_t dilation[2]);
void nn_avg_pool2d(const float* x, float* y, int32_t planes, int32_t h, int32_t w, int32_t oh,
                   int32_t ow, const int64_t pool_size[2], const int64_t strides[2],
                   const int64_t padding[4], int32_t count_include_pad);
/* The mean of each plane: x (planes, size), y (planes). */
void nn_global_avg_pool(const float* x, float* y, int32_t planes, int32_t size);

/* x (m, k), weight (n, k), bias (n), y (m, n). */
void nn_dense(const float* x, const float* weight, const float* bias, float* y, int32_t m,
              int32_t n, int32_t k);

/* Of `size` numbers; y may be an input. */
void nn_add(const float* a, const float* b, float* y, int32_t size);
void nn_add_relu(const float* a, const float* b, float* y, int32_t size);
void nn_relu(const float* x, float* y, int32_t size);
/* Along the last axis of (rows, size); y may be x. A code where `axis` is another one. */
int32_t nn_softmax(const float* x, float* y, int32_t rows, int32_t size, int32_t axis);

#endif
