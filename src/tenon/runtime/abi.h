// SPDX-License-Identifier: Apache-2.0
/* The contract between generated code and the runtime: plain C99, the same text in C++.
 *
 * A compiled program is one constant TenonProgram: what it takes and gives, and the functions that
 * run it. A shared library exports
 *
 *     const TenonProgram* tenon_program(void);
 *
 * or PREFIX_tenon_program where several programs are linked into one process. The host calls
 * `shapes` with the values of the symbols, allocates outputs and workspace, and calls `run`.
 * Generated code allocates nothing, keeps no state between calls, and calls back only through
 * TenonContext; so one program may run in several threads at once, each with a context, outputs and
 * workspace of its own.
 *
 * Every function returns TENON_OK (0) or an error code, and stops at the first callee that returned
 * one.
 *
 * Floating point: functions are entered with round-to-nearest and IEEE denormals (neither
 * flush-to-zero nor denormals-are-zero), on every thread, so that results equal the reference
 * interpreter's and do not depend on what the host set; the runtime sets that state and restores
 * the caller's.
 *
 * Versions: a host runs a program of its own major version and of the same or a lower minor
 * version. A minor version only appends members to TenonProgram (absent ones, beyond `struct_size`,
 * read as zero) and to TenonContext; everything else, the layout of TenonTensorInfo and TenonSymbol
 * included, is fixed within a major version.
 */
#ifndef TENON_RUNTIME_ABI_H_
#define TENON_RUNTIME_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_ABI_MAJOR 1
#define TENON_ABI_MINOR 2
#define TENON_ABI_VERSION ((uint32_t)TENON_ABI_MAJOR << 16 | (uint32_t)TENON_ABI_MINOR)

/* Error codes; int32_t wherever one is passed. */
enum {
  TENON_OK = 0,
  /* an argument does not fit its declaration: count, dtype, rank, dimension, strides */
  TENON_ERROR_ARGUMENT = 1,
  TENON_ERROR_INDEX = 2, /* an index found at run time lies outside its axis */
  TENON_ERROR_SHAPE = 3, /* a dimension found at run time does not fit: match_cast, a negative or
                            too large extent */
  /* a value found at run time is not allowed: division by zero of integers, ... */
  TENON_ERROR_VALUE = 4,
  TENON_ERROR_MEMORY = 5,      /* memory could not be allocated */
  TENON_ERROR_LIBRARY = 6,     /* a call into a foreign library failed */
  TENON_ERROR_LOAD = 7,        /* a file is not a program, or one of another ABI version */
  TENON_ERROR_UNSUPPORTED = 8, /* this runtime cannot do it */
  TENON_ERROR_INTERNAL = 9     /* a fault of Tenon */
};

/* DLPack's type codes; those from 6 on are of DLPack 0.8 and 1.1: older dlpack.h lack them.
 *
 * An element of less than 8 bits (int4, uint4, int2, uint2, float4_e2m1fn) takes a byte, as DLPack's
 * flag for padded sub-byte types says: its bits are the lowest ones, and those above repeat the sign
 * of a signed integer and are zero elsewhere. Programs write them so; they ignore the bits above
 * where they compute, and keep them where they only move elements. Files (ONNX) pack them; whoever
 * reads a file unpacks. */
enum {
  TENON_DTYPE_INT = 0,
  TENON_DTYPE_UINT = 1,
  TENON_DTYPE_FLOAT = 2,
  TENON_DTYPE_BFLOAT = 4,
  TENON_DTYPE_BOOL = 6, /* 8 bits: one byte, 0 or 1 */
  TENON_DTYPE_FLOAT8_E4M3FN = 10,
  TENON_DTYPE_FLOAT8_E4M3FNUZ = 11,
  TENON_DTYPE_FLOAT8_E5M2 = 12,
  TENON_DTYPE_FLOAT8_E5M2FNUZ = 13,
  TENON_DTYPE_FLOAT8_E8M0FNU = 14,
  TENON_DTYPE_FLOAT4_E2M1FN = 17, /* 4 bits */
  TENON_DTYPE_STRING = 64 /* not DLPack's; 128 bits: an element is a TenonString. Since 1.2 */
};

/* A string of the caller: UTF-8, not owned. Inside of a program an element is a number of 64 bits
 * that stands for a text in a table of the run; the host numbers the texts of inputs and gives out
 * those of outputs. Since 1.2. */
typedef struct TenonString {
  const char* data; /* may be null where `size` is 0; of outputs, a 0 follows the last byte */
  int64_t size;     /* bytes */
} TenonString;

typedef struct TenonContext TenonContext;

/* A value that a packed function takes or gives: 8 bytes, what is in them in a code beside it. */
typedef union TenonValue {
  int64_t integer;
  double number;
  void* pointer;
  const char* text;
} TenonValue;

/* The codes; up to TENON_VALUE_TEXT as TVM numbers them. */
enum {
  TENON_VALUE_INT = 0,     /* `integer`: signed integers of every width, and bool */
  TENON_VALUE_UINT = 1,    /* `integer`: unsigned ones */
  TENON_VALUE_FLOAT = 2,   /* `number`: floats of every width */
  TENON_VALUE_POINTER = 3, /* `pointer` */
  TENON_VALUE_NONE = 4,    /* nothing */
  TENON_VALUE_TENSOR = 7,  /* `pointer`: a DLTensor in CPU memory, which lives during the call */
  TENON_VALUE_TEXT = 11,   /* `text`, which lives as long as the program */
  TENON_VALUE_MANAGED_TENSOR = 64 /* `pointer`: a DLManagedTensor; whoever gets it deletes it */
};

/* A function that programs call by name: with this signature as a C function of a library that is
 * linked in, or registered (tenon_register_function). It is that of TVM's packed functions in C.
 *
 *   args, codes    `count` values with their codes
 *   results        a value for each tensor of the result, or one for a scalar
 *   result_codes   TENON_VALUE_TENSOR at entry where `results` holds a tensor of the declared type:
 *                  its memory, uninitialised, is the program's, and the function fills it. It may
 *                  give a TENON_VALUE_MANAGED_TENSOR of the same shape and dtype, compact, in its
 *                  place, which is copied and deleted. TENON_VALUE_NONE at entry where a scalar is
 *                  expected or nothing: the function may leave that.
 *   context        what it was registered with; null for a function of a library
 *
 * Returns 0, or a code that stops the program. May be called from several threads at once where a
 * program is run by several. */
typedef int32_t (*TenonPackedFunction)(TenonValue* args, int32_t* codes, int32_t count,
                                       TenonValue* results, int32_t* result_codes, void* context);

/* One task of a parallel loop: `task` counts from 0, `env` is what the caller of parallel_for
 * handed over. */
typedef int32_t (*TenonTask)(TenonContext* context, void* env, int64_t task);

/* What a program may ask of its host during one call. Handed to every generated function. */
struct TenonContext {
  uint32_t abi_version; /* of the host */
  uint32_t struct_size; /* bytes of this struct as the host knows it */
  void* state;          /* the host's own */

  /* Runs body(context, env, task) once for each task in [0, tasks) and returns when all have ended.
   * Tasks run in any order on any thread, so they may not depend on one another; inside a task it
   * runs serially. Returns the code of the lowest task that failed, or TENON_OK; after a failure,
   * tasks above the failed one may be left out, those below it never are. */
  int32_t (*parallel_for)(TenonContext* context, TenonTask body, void* env, int64_t tasks);

  /* Records an error and returns `code`, so that a function can end with
   * `return context->report(...)`. The first is kept: in a parallel loop that of the lowest task, at
   * any number of threads.
   *
   *   where    the operator, kernel or ONNX node at fault
   *   message  begins in lower case; "{value}" and "{bound}" in it are replaced by the numbers:
   *            "index {value} is out of range for an axis of {bound} elements"
   *
   * Both strings must live as long as the program (they are not copied before `run` returns). */
  int32_t (*report)(TenonContext* context, int32_t code, const char* where, const char* message,
                    int64_t value, int64_t bound);

  /* In `run`: the dimensions of all outputs, concatenated, as `shapes` computed them. Where an
   * extent depends on the data that is its upper bound; `run` writes the actual one here and packs
   * the output by it. Null in `shapes`. */
  int64_t* output_dims;

  /* Since 1.1. Of this run, at least 1: for libraries that bring threads of their own. */
  int32_t threads;
  int32_t reserved; /* 0 */
  /* Since 1.1. Calls TenonProgram.packed[function], as TenonPackedFunction says, with
   * `result_count` results. A failure is reported with `where`. */
  int32_t (*call_packed)(TenonContext* context, int32_t function, TenonValue* args, int32_t* codes,
                         int32_t count, TenonValue* results, int32_t* result_codes,
                         int32_t result_count, const char* where);

  /* Since 1.2. Memory whose size is known only when part of the program has run, for `run` alone and
   * outside of parallel loops. Each sets `*memory`, aligned as the program declares, and returns
   * TENON_OK, or the code of an error that it has reported.
   *
   * provide_memory: `bytes` of workspace, which live until `run` returns or `slot` (from 1) is asked
   * for again. They hold what the slot held, as far as it goes; the rest is uninitialised. A negative
   * number of bytes is an error (TENON_ERROR_SHAPE).
   * provide_output: the memory of output `output`, which has TENON_TENSOR_LATE, of `dims`.
   * The program then reports the same code with the place, which the host does not know. */
  int32_t (*provide_memory)(TenonContext* context, int32_t slot, int64_t bytes, void** memory);
  int32_t (*provide_output)(TenonContext* context, int32_t output, const int64_t* dims,
                            void** memory);
};

/* A dimension in TenonTensorInfo: a constant (>= 0), symbol s as -1 - s, or, for outputs only, what
 * `shapes` computes. */
#define TENON_DIM_SYMBOL(s) (-1 - (int64_t)(s))
#define TENON_DIM_COMPUTED INT64_MIN

/* One input or output: packed, row-major. */
typedef struct TenonTensorInfo {
  const char* name;
  const int64_t* dims; /* ndim of them; may be null where ndim is 0 */
  int32_t ndim;
  uint8_t code; /* TENON_DTYPE_* */
  uint8_t bits;
  uint16_t lanes;
  int32_t alignment; /* bytes that `run` relies on for this buffer, a power of two; 0: the program's
                        alignment */
  uint32_t flags;    /* TENON_TENSOR_* */
} TenonTensorInfo;

/* Since 1.2. Of outputs whose dimensions are known only when part of the program has run: `shapes`
 * gives 0 for those that it does not know, `buffers` of `run` has a null pointer, and the program
 * asks for the memory (TenonContext.provide_output). */
enum { TENON_TENSOR_LATE = 1 };

/* Since 1.2. Of outputs that share their memory with an input of the same dtype and dimensions, which
 * the program may change: when `run` begins, the output's memory holds what the input holds, and the
 * program reads it there alone. A host that wants no copy gives one pointer for both; others copy. */
enum { TENON_TENSOR_IN_PLACE = 2 };
/* The flags of an output that shares the memory of input `input` (below 2^24), and that input. */
#define TENON_TENSOR_IN_PLACE_OF(input) ((uint32_t)TENON_TENSOR_IN_PLACE | (uint32_t)(input) << 8)
#define TENON_TENSOR_INPUT(flags) ((uint32_t)(flags) >> 8)

/* Where a symbol's value is read from. */
enum {
  TENON_SYMBOL_DIM = 0,  /* dimension `index` of input `input` */
  TENON_SYMBOL_VALUE = 1 /* element `index` (row-major) of input `input`, whose dtype is an integer
                            of 8 to 64 bits, or bool */
};

/* A dimension known only at run time. The host reads it from its source, checks lower <= value <=
 * upper, and checks every other input dimension that names the symbol against it. */
typedef struct TenonSymbol {
  const char* name;
  int32_t source; /* TENON_SYMBOL_* */
  int32_t input;
  int64_t index;
  int64_t lower; /* at least 0 for a symbol that is a dimension */
  int64_t upper; /* INT64_MAX: unbounded */
} TenonSymbol;

/* A packed function that the program calls. */
typedef struct TenonPacked {
  const char* name;             /* as it is registered */
  TenonPackedFunction function; /* of a library that is linked in; null: it must be registered */
} TenonPacked;

typedef struct TenonProgram {
  uint32_t abi_version; /* TENON_ABI_VERSION of the compiler that made it */
  uint32_t struct_size; /* sizeof(TenonProgram), likewise */
  const char* name;     /* of the model */

  int32_t input_count;
  int32_t output_count;
  const TenonTensorInfo* inputs;
  const TenonTensorInfo* outputs;

  int32_t symbol_count;
  int32_t alignment; /* bytes, a power of two, of workspace, constants and, where they state none,
                        inputs and outputs */
  const TenonSymbol* symbols;

  /* From the values of the symbols: the dimensions of all outputs, concatenated (dims of output 0,
   * of output 1, ...), and the workspace in bytes. An extent that depends on the data gets its
   * upper bound. Null where all output dimensions are constants and workspace_bytes >= 0. */
  int32_t (*shapes)(TenonContext* context, const int64_t* symbols, int64_t* output_dims,
                    int64_t* workspace_bytes);

  /* buffers: the data of the inputs, then of the outputs, aligned as declared; none null, not even
   * of an empty tensor, but for outputs with TENON_TENSOR_LATE. No output overlaps another buffer, but for
   * those with TENON_TENSOR_IN_PLACE their input. workspace: uninitialised. constants:
   * constant_bytes bytes, never written. */
  int32_t (*run)(TenonContext* context, void* const* buffers, const int64_t* symbols,
                 void* workspace, const void* constants);

  const void* constants; /* null with constant_bytes > 0: whoever loads the program supplies them */
  int64_t constant_bytes;
  int64_t workspace_bytes; /* -1: depends on the symbols, see shapes */
  int64_t planned_bytes;   /* peak of the memory plan, for reports; -1: depends on the symbols */
  int64_t bound_bytes;  /* what no plan could go below, for reports; -1: depends on the symbols */
  const char* manifest; /* JSON text for reports: model hash, target, pipeline, plan; may be null */

  /* Since 1.1. Whoever loads the program finds those that must be registered. */
  const TenonPacked* packed;
  int64_t packed_count;

  /* Since 1.2. The texts whose numbers, 0 and on, stand in constants. */
  const TenonString* strings;
  int64_t string_count;

  /* Since 1.2, where struct_size has it. For messages: the nodes of the model that ask for the memory
   * of each output, and for most of the workspace. output_count + 1 texts, or null. */
  const char* const* asked_by;
} TenonProgram;

/* The entry of a shared library, by name, and its type. */
#define TENON_PROGRAM_SYMBOL "tenon_program"
typedef const TenonProgram* (*TenonProgramFunction)(void);

#ifdef __cplusplus
}
#endif

#endif /* TENON_RUNTIME_ABI_H_ */
