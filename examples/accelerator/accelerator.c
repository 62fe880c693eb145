#include "accelerator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Alignas(64) unsigned char memory[ACC_MEMORY];
static acc_counters counters;

const acc_counters *acc_read_counters(void) { return &counters; }

__attribute__((destructor)) static void report(void) {
  if (getenv("ACC_REPORT") && counters.layers)
    fprintf(stderr, "accelerator: %llu layers, %llu multiplications, %llu bytes in, %llu bytes out\n",
            (unsigned long long)counters.layers, (unsigned long long)counters.multiplications,
            (unsigned long long)counters.bytes_in, (unsigned long long)counters.bytes_out);
}

/* `count` floats at an address; null where they are not all in the memory. */
static float *floats(uint32_t address, uint64_t count) {
  if (address % 4 || address > ACC_MEMORY || count > (ACC_MEMORY - address) / 4) return NULL;
  return (float *)(void *)(memory + address);
}

int32_t acc_copy_in(uint32_t to, const void *from, uint32_t bytes) {
  if (to > ACC_MEMORY || bytes > ACC_MEMORY - to) return ACC_FAULT;
  memcpy(memory + to, from, bytes);
  counters.bytes_in += bytes;
  return 0;
}

int32_t acc_copy_out(void *to, uint32_t from, uint32_t bytes) {
  if (from > ACC_MEMORY || bytes > ACC_MEMORY - from) return ACC_FAULT;
  memcpy(to, memory + from, bytes);
  counters.bytes_out += bytes;
  return 0;
}

static int result_height(const acc_window *w) { return (w->height + 2 * w->padding - w->kernel_height) / w->stride + 1; }
static int result_width(const acc_window *w) { return (w->width + 2 * w->padding - w->kernel_width) / w->stride + 1; }

int32_t acc_conv2d(const acc_window *w, uint32_t x_at, uint32_t weight_at, uint32_t bias_at, uint32_t y_at) {
  const int height = result_height(w), width = result_width(w);
  const int taps = w->kernel_height * w->kernel_width * w->channels;
  const float *x = floats(x_at, (uint64_t)w->channels * w->height * w->width);
  const float *weight = floats(weight_at, (uint64_t)w->outputs * taps), *bias = floats(bias_at, w->outputs);
  float *y = floats(y_at, (uint64_t)w->outputs * height * width);
  if (!x || !weight || !bias || !y) return ACC_FAULT;
  for (int o = 0; o < w->outputs; ++o)
    for (int i = 0; i < height; ++i)
      for (int j = 0; j < width; ++j) {
        float sum = bias[o];
        for (int r = 0; r < w->kernel_height; ++r)
          for (int s = 0; s < w->kernel_width; ++s) {
            const int a = i * w->stride - w->padding + r, b = j * w->stride - w->padding + s;
            if (a < 0 || a >= w->height || b < 0 || b >= w->width) continue;
            for (int c = 0; c < w->channels; ++c)
              sum += x[(c * w->height + a) * w->width + b] *
                     weight[((o * w->kernel_height + r) * w->kernel_width + s) * w->channels + c];
          }
        y[(o * height + i) * width + j] = w->relu && sum < 0 ? 0 : sum;
      }
  counters.layers += 1;
  counters.multiplications += (uint64_t)w->outputs * height * width * taps;
  return 0;
}

int32_t acc_max_pool(const acc_window *w, uint32_t x_at, uint32_t y_at) {
  const int height = result_height(w), width = result_width(w);
  const float *x = floats(x_at, (uint64_t)w->channels * w->height * w->width);
  float *y = floats(y_at, (uint64_t)w->channels * height * width);
  if (!x || !y || w->padding) return ACC_FAULT;
  for (int c = 0; c < w->channels; ++c)
    for (int i = 0; i < height; ++i)
      for (int j = 0; j < width; ++j) {
        float most = x[(c * w->height + i * w->stride) * w->width + j * w->stride];
        for (int r = 0; r < w->kernel_height; ++r)
          for (int s = 0; s < w->kernel_width; ++s) {
            const float value = x[(c * w->height + i * w->stride + r) * w->width + j * w->stride + s];
            if (value > most) most = value;
          }
        y[(c * height + i) * width + j] = most;
      }
  counters.layers += 1;
  return 0;
}

int32_t acc_dense(int k, int n, uint32_t x_at, uint32_t weight_at, uint32_t bias_at, uint32_t y_at) {
  const float *x = floats(x_at, k), *weight = floats(weight_at, (uint64_t)k * n), *bias = floats(bias_at, n);
  float *y = floats(y_at, n);
  if (!x || !weight || !bias || !y) return ACC_FAULT;
  for (int i = 0; i < n; ++i) {
    float sum = bias[i];
    for (int j = 0; j < k; ++j) sum += x[j] * weight[j * n + i];
    y[i] = sum;
  }
  counters.layers += 1;
  counters.multiplications += (uint64_t)k * n;
  return 0;
}
