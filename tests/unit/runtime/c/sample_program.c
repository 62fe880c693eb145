/* A shared library as the compiler writes them, by hand: y = 2 x + 1 over x (n, 4). Beside it under
 * prefixes: a program of another version of the ABI, and one that is none. */
#include <dlpack/dlpack.h>
#include <stddef.h>

#include "tenon/runtime/abi.h"

typedef struct Env {
  const float* x;
  float* y;
} Env;

static int32_t row(TenonContext* context, void* env, int64_t task) {
  const Env* e = (const Env*)env;
  (void)context;
  for (int64_t i = task * 4; i < task * 4 + 4; ++i) e->y[i] = 2 * e->x[i] + 1;
  return TENON_OK;
}

static int32_t run(TenonContext* context, void* const* buffers, const int64_t* symbols,
                   void* workspace, const void* constants) {
  Env env;
  (void)workspace;
  (void)constants;
  env.x = (const float*)buffers[0];
  env.y = (float*)buffers[1];
  return context->parallel_for(context, row, &env, symbols[0]);
}

static const int64_t dims[] = {TENON_DIM_SYMBOL(0), 4};
static const TenonTensorInfo input = {"x", dims, 2, TENON_DTYPE_FLOAT, 32, 1, 0, 0};
static const TenonTensorInfo output = {"y", dims, 2, TENON_DTYPE_FLOAT, 32, 1, 0, 0};
static const TenonSymbol symbol = {"n", TENON_SYMBOL_DIM, 0, 0, 1, INT64_MAX};

#define PROGRAM(VERSION)           \
  {VERSION,  sizeof(TenonProgram), \
   "sample", 1,                    \
   1,        &input,               \
   &output,  1,                    \
   64,       &symbol,              \
   NULL,     run,                  \
   NULL,     0,                    \
   0,        0,                    \
   0,        "{}",                 \
   NULL,     0,                    \
   NULL,     0,                    \
   NULL}

const TenonProgram* tenon_program(void);
const TenonProgram* tenon_program(void) {
  static const TenonProgram program = PROGRAM(TENON_ABI_VERSION);
  return &program;
}

const TenonProgram* newer_tenon_program(void);
const TenonProgram* newer_tenon_program(void) {
  static const TenonProgram program = PROGRAM(TENON_ABI_VERSION + 1);
  return &program;
}

const TenonProgram* null_tenon_program(void);
const TenonProgram* null_tenon_program(void) { return NULL; }

/* Calls what the host registered as `sample.twice` for the whole of its input. */
static int32_t packed_run(TenonContext* context, void* const* buffers, const int64_t* symbols,
                          void* workspace, const void* constants) {
  int64_t shape[2];
  DLTensor x = {0}, y;
  TenonValue args[2], results[1];
  int32_t codes[2] = {TENON_VALUE_TENSOR, TENON_VALUE_FLOAT};
  int32_t result_codes[1] = {TENON_VALUE_TENSOR};
  (void)workspace;
  (void)constants;
  shape[0] = symbols[0];
  shape[1] = 4;
  x.data = buffers[0];
  x.device.device_type = kDLCPU;
  x.ndim = 2;
  x.dtype.code = TENON_DTYPE_FLOAT;
  x.dtype.bits = 32;
  x.dtype.lanes = 1;
  x.shape = shape;
  y = x;
  y.data = buffers[1];
  args[0].pointer = &x;
  args[1].number = 2.0;
  results[0].pointer = &y;
  return context->call_packed(context, 0, args, codes, 2, results, result_codes, 1, "sample");
}

const TenonProgram* packed_tenon_program(void);
const TenonProgram* packed_tenon_program(void) {
  static const TenonPacked packed = {"sample.twice", NULL};
  static TenonProgram program = PROGRAM(TENON_ABI_VERSION);
  program.run = packed_run;
  program.packed = &packed;
  program.packed_count = 1;
  return &program;
}
