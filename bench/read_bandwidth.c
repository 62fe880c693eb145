// SPDX-License-Identifier: Apache-2.0
// What the machine reads a second: read_bandwidth BYTES THREADS sums up that much memory, each thread a part of its own, little
// of it several times (from a cache that holds it), and prints the best of eight rounds in GB/s. cc -O3 -march=native -ffast-math -pthread
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct Part {
  const float* data;
  size_t count, passes;
  float sum;
};

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void* add(void* argument) {
  struct Part* part = argument;
  float sums[128] = {0};
  for (size_t pass = 0; pass < part->passes; ++pass) {
    for (size_t i = 0; i + 128 <= part->count; i += 128)
      for (size_t k = 0; k < 128; ++k) sums[k] += part->data[i + k];
    __asm__ volatile("" ::: "memory");  // no pass is a copy of another
  }
  for (size_t k = 0; k < 128; ++k) part->sum += sums[k];
  return NULL;
}

int main(int argc, char** argv) {
  const size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : (size_t)1 << 30;
  const int threads = argc > 2 ? atoi(argv[2]) : 1;
  float* data = aligned_alloc(1 << 21, (bytes + (1 << 21) - 1) >> 21 << 21);
  if (!data || threads < 1 || threads > 256) return 1;
  for (size_t i = 0; i < bytes / 4; ++i) data[i] = 1;
  struct Part parts[256];
  pthread_t workers[256];
  const size_t at_least = (size_t)1 << 28,
               passes = bytes < at_least ? at_least / (bytes + 1) + 1 : 1;
  double best = 1e9;
  for (int round = 0; round < 8; ++round) {
    const double start = now();
    for (int t = 0; t < threads; ++t) {
      const size_t count = bytes / 4 / (size_t)threads;
      parts[t] = (struct Part){data + (size_t)t * count, count, passes, 0};
      pthread_create(&workers[t], NULL, add, &parts[t]);
    }
    for (int t = 0; t < threads; ++t) pthread_join(workers[t], NULL);
    const double seconds = now() - start;
    if (seconds < best) best = seconds;
  }
  printf("%.2f\n", (double)bytes * (double)passes / best / 1e9 + (parts[0].sum < 0));
  return 0;
}
