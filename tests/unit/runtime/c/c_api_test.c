/* The C interface, used from C as the documentation shows it. Argument: the path of the library of
 * sample_program.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/runtime/tenon_runtime.h"

static void expect(int holds, const char* what, int line) {
  if (holds) return;
  fprintf(stderr, "line %d: expected %s; last error: %s\n", line, what, tenon_last_error());
  exit(1);
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)

/* Multiplies into the tensor it is given, or, with `own`, gives a tensor of its own. */
typedef struct {
  int own, calls, deleted;
  int32_t fails;
  int64_t shape[2];
  float data[8];
  DLManagedTensor tensor;
} Twice;

static void delete_twice(DLManagedTensor* tensor) { ((Twice*)tensor->manager_ctx)->deleted += 1; }

static int32_t twice(TenonValue* args, int32_t* codes, int32_t count, TenonValue* results,
                     int32_t* result_codes, void* context) {
  Twice* self = (Twice*)context;
  const DLTensor* x = (const DLTensor*)args[0].pointer;
  const DLTensor* y = (const DLTensor*)results[0].pointer;
  float* out = self->own ? self->data : (float*)y->data;
  int64_t i, size = x->shape[0] * x->shape[1];
  self->calls += 1;
  if (self->fails != 0) return self->fails;
  EXPECT(count == 2 && codes[0] == TENON_VALUE_TENSOR && codes[1] == TENON_VALUE_FLOAT);
  EXPECT(result_codes[0] == TENON_VALUE_TENSOR);
  for (i = 0; i < size; ++i) out[i] = (float)(((const float*)x->data)[i] * args[1].number);
  if (!self->own) return 0;
  self->tensor.dl_tensor = *y;
  self->tensor.dl_tensor.data = out;
  self->tensor.dl_tensor.strides = NULL;
  self->tensor.dl_tensor.shape = self->shape;
  self->tensor.manager_ctx = self;
  self->tensor.deleter = delete_twice;
  results[0].pointer = &self->tensor;
  result_codes[0] = TENON_VALUE_MANAGED_TENSOR;
  return 0;
}

/* A program that calls a function of the host. */
static void packed_functions(const char* path, const DLTensor** inputs, DLTensor** outputs) {
  TenonModel* model = NULL;
  float* y = (float*)outputs[0]->data;
  Twice context = {0, 0, 0, 0, {2, 4}, {0}, {{0}, 0, 0}};
  int i;
  EXPECT(tenon_model_load(path, "packed", &model) == TENON_ERROR_LOAD);
  EXPECT(strstr(tenon_last_error(),
                "calls packed function `sample.twice`, which is neither linked "
                "in nor registered") != NULL);
  EXPECT(tenon_register_function(NULL, twice, NULL) == TENON_ERROR_ARGUMENT);
  EXPECT(tenon_register_function("sample.twice", NULL, NULL) == TENON_ERROR_ARGUMENT);
  EXPECT(tenon_register_function("sample.twice", twice, &context) == TENON_OK);
  EXPECT(tenon_model_load(path, "packed", &model) == TENON_OK);
  EXPECT(tenon_unregister_function("sample.twice") == TENON_OK);
  EXPECT(tenon_unregister_function("sample.twice") == TENON_ERROR_ARGUMENT);
  EXPECT(tenon_model_run(model, inputs, 1, outputs, 1) == TENON_OK && context.calls == 1);
  for (i = 0; i < 8; ++i) EXPECT(y[i] == (float)(2 * i));

  memset(y, 0, 8 * sizeof(float));
  context.own = 1;
  EXPECT(tenon_model_run(model, inputs, 1, outputs, 1) == TENON_OK && context.deleted == 1);
  for (i = 0; i < 8; ++i) EXPECT(y[i] == (float)(2 * i));
  context.shape[1] = 3;
  EXPECT(tenon_model_run(model, inputs, 1, outputs, 1) == TENON_ERROR_LIBRARY);
  EXPECT(context.deleted == 2);
  EXPECT(strcmp(tenon_last_error(),
                "`sample`: packed function `sample.twice` gave a tensor of "
                "another shape than declared") == 0);
  context.fails = 7;
  EXPECT(tenon_model_run(model, inputs, 1, outputs, 1) == TENON_ERROR_LIBRARY);
  EXPECT(strcmp(tenon_last_error(),
                "`sample`: packed function `sample.twice` failed with code 7") == 0);
  tenon_model_free(model);
}

int main(int argc, char** argv) {
  TenonModel* model = NULL;
  const TenonProgram* program;
  float x_data[8] = {0, 1, 2, 3, 4, 5, 6, 7}, y_data[8] = {0};
  int64_t x_shape[] = {2, 4}, y_shape[] = {2, 4}, dims[2] = {0, 0}, workspace_bytes = -1;
  DLTensor x = {0}, y;
  const DLTensor* inputs[1];
  DLTensor* outputs[1];
  int i;

  EXPECT(argc == 2);
  EXPECT(strcmp(tenon_last_error(), "") == 0);
  EXPECT(tenon_model_load("no/such/file.so", NULL, &model) == TENON_ERROR_LOAD);
  EXPECT(strncmp(tenon_last_error(), "cannot load `no/such/file.so`: ", 31) == 0);
  EXPECT(model == NULL);
  EXPECT(tenon_model_load(argv[1], "other", &model) == TENON_ERROR_LOAD);
  EXPECT(strstr(tenon_last_error(),
                "has no function `other_tenon_program`; it is not a compiled program") != NULL);
  EXPECT(tenon_model_load(argv[1], "newer", &model) == TENON_ERROR_LOAD);
  EXPECT(strstr(tenon_last_error(),
                "compiled for version 1.3 of the runtime interface; this runtime provides 1.2") !=
         NULL);
  EXPECT(tenon_model_load(argv[1], "null", &model) == TENON_ERROR_LOAD);
  EXPECT(tenon_model_load(NULL, NULL, &model) == TENON_ERROR_ARGUMENT);

  EXPECT(tenon_model_load(argv[1], NULL, &model) == TENON_OK);
  program = tenon_model_program(model);
  EXPECT(program->input_count == 1 && strcmp(program->inputs[0].name, "x") == 0);
  EXPECT(strcmp(program->symbols[0].name, "n") == 0);
  EXPECT(tenon_model_set_threads(model, 2) == TENON_OK);

  x.data = x_data;
  x.device.device_type = kDLCPU;
  x.ndim = 2;
  x.dtype.code = TENON_DTYPE_FLOAT;
  x.dtype.bits = 32;
  x.dtype.lanes = 1;
  x.shape = x_shape;
  y = x;
  y.data = y_data;
  y.shape = y_shape;
  inputs[0] = &x;
  outputs[0] = &y;
  EXPECT(tenon_model_shapes(model, inputs, 1, dims, &workspace_bytes) == TENON_OK);
  EXPECT(dims[0] == 2 && dims[1] == 4 && workspace_bytes == 0);
  EXPECT(tenon_model_run(model, inputs, 1, outputs, 1) == TENON_OK);
  for (i = 0; i < 8; ++i) EXPECT(y_data[i] == (float)(2 * i + 1));
  packed_functions(argv[1], inputs, outputs);

  EXPECT(tenon_model_run(model, inputs, 0, outputs, 1) == TENON_ERROR_ARGUMENT);
  EXPECT(strcmp(tenon_last_error(), "0 inputs given; the program declares 1: `x`") == 0);
  EXPECT(tenon_model_run(model, NULL, 1, outputs, 1) == TENON_ERROR_ARGUMENT);
  y_shape[0] = 1;
  EXPECT(tenon_model_run(model, inputs, 1, outputs, 1) == TENON_ERROR_ARGUMENT);
  EXPECT(strcmp(tenon_last_error(),
                "output `y` has shape (1, 4); the program declares (n, 4), here (2, 4)") == 0);

  tenon_model_free(model);
  tenon_model_free(NULL);
  return 0;
}
