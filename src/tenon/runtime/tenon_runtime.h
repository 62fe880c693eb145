// SPDX-License-Identifier: Apache-2.0
/* The runtime for C programs: load a compiled program, see what it takes and gives, run it.
 *
 *     TenonModel* model = NULL;
 *     if (tenon_model_load("digits.so", NULL, &model) != TENON_OK) {
 *       puts(tenon_last_error());
 *       return 1;
 *     }
 *     const DLTensor* inputs[] = {&image};
 *     DLTensor* outputs[] = {&scores};
 *     if (tenon_model_run(model, inputs, 1, outputs, 1) != TENON_OK) puts(tenon_last_error());
 *     tenon_model_free(model);
 *
 * Every function that returns int32_t returns TENON_OK or one of TENON_ERROR_* (abi.h);
 * tenon_last_error() then has the message. A model may be used from several threads at once, except
 * that nothing may use it while it is freed.
 *
 * Tensors are DLPack's, in CPU memory and packed (row-major without gaps). Data that is less
 * aligned than the program declares (TenonTensorInfo.alignment, else TenonProgram.alignment; mostly
 * 64) is copied on its way: right, but slower.
 *
 * Link with libtenon.so (`pkg-config --cflags --libs tenon`), or with the static library
 * tenon_runtime, the C++ standard library, pthreads and dl.
 */
#ifndef TENON_RUNTIME_TENON_RUNTIME_H_
#define TENON_RUNTIME_TENON_RUNTIME_H_

#include <stdint.h>

#include "tenon/runtime/abi.h"
#include "tenon/runtime/dltensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TenonModel TenonModel;

/* Loads what `tenon compile` wrote. `prefix`: of the names in it, null for none. */
int32_t tenon_model_load(const char* path, const char* prefix, TenonModel** model);

/* A program that is linked into this one. `constants`: where it does not hold them itself, else
 * null; both must outlive the model. */
int32_t tenon_model_from_program(const TenonProgram* program, const void* constants,
                                 TenonModel** model);

/* Null is allowed. */
void tenon_model_free(TenonModel* model);

/* What it declares: inputs, outputs, symbols, sizes, manifest. Lives as long as the model. */
const TenonProgram* tenon_model_program(const TenonModel* model);

/* For the runs that begin from now on, the calling thread included; 0, the default: as many as the
 * process's CPU affinity and CPU quota allow. Results do not depend on it. */
int32_t tenon_model_set_threads(TenonModel* model, int32_t threads);

/* Checks the inputs and computes what follows from their shapes, before a run.
 *
 *   output_dims      dimensions of all outputs, concatenated: as many as the sum of the declared
 *                    ranks; may be null
 *   workspace_bytes  what a run needs beside inputs, outputs and constants; may be null */
int32_t tenon_model_shapes(const TenonModel* model, const DLTensor* const* inputs,
                           int32_t input_count, int64_t* output_dims, int64_t* workspace_bytes);

/* Runs into the caller's outputs, whose shapes are those that tenon_model_shapes gives. Where an
 * output turns out smaller, because its extent depends on the data, its `shape` is changed to what
 * it is. Outputs may overlap nothing. */
int32_t tenon_model_run(TenonModel* model, const DLTensor* const* inputs, int32_t input_count,
                        DLTensor* const* outputs, int32_t output_count);

/* Frees the characters of a tensor of strings (elements are TenonString, dtype TENON_DTYPE_STRING of
 * 128 bits) that tenon_model_run filled: one block for each output, which begins with the first
 * element's and is the caller's. The elements are empty afterwards. Null is allowed. */
void tenon_release_strings(DLTensor* tensor);

/* Registers `function` for this process: programs call it by `name` (R.call_packed, T.call_packed)
 * and hand it `context`. A program that is loaded finds its functions here where it is not linked
 * with them, and is not loaded where one is missing; so register first. A name that is registered
 * again is another function for the programs that are loaded from then on. `function` and `context`
 * must outlive the programs that use them. */
int32_t tenon_register_function(const char* name, TenonPackedFunction function, void* context);

/* Programs that are loaded keep it. TENON_ERROR_ARGUMENT where the name is not registered. */
int32_t tenon_unregister_function(const char* name);

/* Of the last call on this thread that failed; "" before the first. Valid until the next that
 * fails. */
const char* tenon_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* TENON_RUNTIME_TENON_RUNTIME_H_ */
