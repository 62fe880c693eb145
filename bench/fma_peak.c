// SPDX-License-Identifier: Apache-2.0
// What the cores multiply and add: fma_peak THREADS keeps twelve independent sums of vectors in flight on each thread, and prints
// the best of eight rounds in GFLOP/s (float32, two operations an FMA). cc -O3 -march=native -pthread
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef __AVX512F__
enum { kLanes = 16 };
#else
enum { kLanes = 8 };
#endif
enum {
  kSums = 12
};  // covers 4 cycles of latency at 2 a cycle, and fits 16 registers of AVX2 with both factors
static const long kSteps = 2500000;

typedef float Vector __attribute__((vector_size(4 * kLanes)));

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void* multiply(void* result) {
  Vector sums[kSums];
  Vector factor, term;
  for (int lane = 0; lane < kLanes; ++lane) factor[lane] = 0.5f, term[lane] = 1;
  for (int i = 0; i < kSums; ++i) sums[i] = term * (float)i;
  for (long step = 0; step < kSteps; ++step) {
    __asm__ volatile("" : "+v"(factor), "+v"(term));  // else the loop is computed while compiling
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * factor + term;
  }
  Vector total = sums[0];
  for (int i = 1; i < kSums; ++i) total += sums[i];
  *(float*)result = total[0];
  return NULL;
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 1;
  if (threads < 1 || threads > 256) return 1;
  pthread_t workers[256];
  float results[256];
  double best = 1e9;
  for (int round = 0; round < 8; ++round) {
    const double start = now();
    for (int t = 0; t < threads; ++t) pthread_create(&workers[t], NULL, multiply, &results[t]);
    for (int t = 0; t < threads; ++t) pthread_join(workers[t], NULL);
    const double seconds = now() - start;
    if (seconds < best) best = seconds;
  }
  printf("%.1f\n", 2.0 * kLanes * kSums * (double)kSteps * threads / best / 1e9 + (results[0] < 0));
  return 0;
}
