/* A made-up accelerator: its driver library, with a simulator in the place of the hardware.
 *
 * It has 128 KiB of memory of its own, which only its units and its DMA see: data is copied in,
 * layers run on addresses in it, and results are copied out. Tensors are float32. Images are
 * (channels, height, width), weights of convolutions (output channels, height, width, input
 * channels): not the order of ONNX.
 *
 * Every function returns 0, or ACC_FAULT where an address lies outside of the memory. */
#ifndef ACCELERATOR_H_
#define ACCELERATOR_H_

#include <stdint.h>

#define ACC_MEMORY (128 * 1024) /* bytes */
#define ACC_FAULT 7

typedef struct {
  int channels, height, width;              /* of the input */
  int outputs, kernel_height, kernel_width; /* of the kernel */
  int stride, padding;                      /* the same in both directions */
  int relu;                                 /* 1: negative results become 0 */
} acc_window;

/* DMA: `bytes` from or to the program's memory. */
int32_t acc_copy_in(uint32_t to, const void* from, uint32_t bytes);
int32_t acc_copy_out(void* to, uint32_t from, uint32_t bytes);

/* Layers, on addresses in the accelerator's memory. `bias` has a value for each output channel. */
int32_t acc_conv2d(const acc_window* w, uint32_t x, uint32_t weight, uint32_t bias, uint32_t y);
int32_t acc_max_pool(const acc_window* w, uint32_t x, uint32_t y);
/* y[n] = x[k] . weight[k][n] + bias[n] */
int32_t acc_dense(int k, int n, uint32_t x, uint32_t weight, uint32_t bias, uint32_t y);

/* What it has done since the program began. With ACC_REPORT=1 in the environment they are printed
 * when the process ends. */
typedef struct {
  uint64_t layers, multiplications, bytes_in, bytes_out;
} acc_counters;
const acc_counters* acc_read_counters(void);

#endif
