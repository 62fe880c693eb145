// SPDX-License-Identifier: Apache-2.0
/* Back ends of Tenon: the one header that a back end, outside the tree or inside, includes.
 *
 * A back end states patterns, as text; checks each match of one; and answers what is to run in its
 * place: a function of a library, TensorIR, C source, an object, or its own `run` entry with a blob
 * of bytes. It is one shared library with one exported function:
 *
 *     #include <tenon/backend.h>
 *
 *     static int32_t generate(const TenonHost* host, const TenonMatch* match, TenonAnswer* to) {
 *       return host->emit(to, TENON_SYMBOL, "mylib_relu", TENON_TEXT);
 *     }
 *     static const TenonBackend mine = {
 *         .size = sizeof(TenonBackend), .abi = TENON_BACKEND_ABI, .name = "mylib",
 *         .patterns = "relu = is_op(\"relax.nn.relu\")(wildcard())", .generate = generate};
 *     TENON_EXPORT const TenonBackend* tenon_backend(const TenonHost* host) { return &mine; }
 *
 *     cc -shared -fPIC mylib.c -o mylib.so  &&  tenon run model.onnx --plugin ./mylib.so
 *
 * Plain C99, and the same in C++. Nothing has to be linked: all that is asked of Tenon goes through
 * TenonHost.
 *
 * Order of the calls for one match:  check, cost (while places are chosen);  then, once it is
 * placed, for each constant input pack, then scratch, then generate.  A match may be checked that
 * is placed elsewhere in the end, and the same match may be checked more than once, so no callback
 * may keep state from one call to the next; the same questions must get the same answers. Calls of
 * one back end never overlap in time; they may come from different threads.
 *
 * Memory. What the host returns (strings, tensors, data) is the host's, is never written by the
 * back end, and lives until the callback returns. What the back end hands over in `emit`, `refuse`,
 * `link` and `log` is copied before these return. TenonBackend and everything that it points to
 * belong to the back end and must stay as they are while its library is loaded; Tenon never unloads
 * it.
 *
 * Trust. Every answer is checked: a back end that answers what it may not is refused by an error
 * that names it, and a callback that crashes is reported as the back end's. No exception and no
 * longjmp may leave a callback.
 *
 * Versions. A back end is loaded where its major ABI version is the host's and its minor one not
 * above the host's. A minor version only appends members to the structs here (`size` tells how many
 * are there; absent ones read as zero) and enumerators to the lists; nothing that is there changes
 * within a major version. Since 1.1 an expression (2 * n) that is a dimension of an input is a
 * symbol of the match; to back ends of 1.0 it is none. Since 1.2 `annotated` answers in every
 * callback, for parts of a region too, and constants are bound as well.
 */
#ifndef TENON_BACKEND_H_
#define TENON_BACKEND_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_BACKEND_ABI_MAJOR 1
#define TENON_BACKEND_ABI_MINOR 2
#define TENON_BACKEND_ABI \
  ((uint32_t)TENON_BACKEND_ABI_MAJOR << 16 | (uint32_t)TENON_BACKEND_ABI_MINOR)

/* What matched a pattern, or a region of neighbouring matches. Valid during the callback. */
typedef struct TenonMatch TenonMatch;
/* What a callback answers is gathered here. Valid during the callback. */
typedef struct TenonAnswer TenonAnswer;

/* ---- what the host tells --------------------------------------------------------------------- */

/* A dimension that is not a number at compile time. */
#define TENON_SYMBOLIC ((int64_t)-1)
/* An integer of an operand (TENON_OPERAND_INTS) that is not known at compile time. */
#define TENON_UNKNOWN INT64_MIN

/* A tensor: an input or output of a match, or the result of an operator in it. Row-major without
 * gaps. */
typedef struct TenonTensor {
  const char* name;       /* of the variable in the composite's text */
  const char* type;       /* as text: R.Tensor((n, 64), "float32") */
  const char* dtype;      /* "float32", "int64", "bool", ... */
  int32_t element_bytes;  /* of one element */
  int32_t rank;           /* -1: not known; then `shape` is null */
  const int64_t* shape;   /* `rank` dimensions; TENON_SYMBOLIC where one is not a number */
  const int32_t* symbols; /* for each dimension: which symbol of the match it is; -1: none (a
                             number, or an expression that is no dimension of an input) */
  const void* data; /* of an input that is a constant: its elements (before packing); else null */
  int64_t bytes;    /* of all elements; -1 where a dimension is symbolic */
} TenonTensor;

/* Where an argument of an operator comes from. */
enum {
  TENON_OPERAND_NONE = 0,  /* an optional argument that is left out */
  TENON_OPERAND_INPUT = 1, /* input `index` of the match (a constant is an input with data) */
  /* result `field` of operator `index` of the match, which stands before this one */
  TENON_OPERAND_OPERATOR = 2,
  TENON_OPERAND_INTS = 3,   /* a shape or a list of integers: `count` numbers in `ints` */
  TENON_OPERAND_NUMBER = 4, /* a scalar: `number` */
  TENON_OPERAND_TEXT = 5    /* a string, a dtype, or what has no other form: `text` */
};
typedef struct TenonOperand {
  int32_t kind;
  int32_t index;
  int32_t field; /* 0 where the operator's result is no tuple */
  int32_t count;
  const int64_t* ints;
  double number;
  const char* text;
} TenonOperand;

/* ---- what a callback may emit ---------------------------------------------------------------- */

enum {
  /* `pack` only: bytes that take the place of this constant; the generated function gets a pointer
   * to them, aligned to 64 bytes. They become a constant of the program. */
  TENON_PACKED = 1,
  /* `pack` only: the function does not get this constant at all (size 0). */
  TENON_OMITTED = 2,

  /* `generate`: exactly one of the five. */
  TENON_SYMBOL = 10,    /* the name of a C function; of the libraries of `link` or of --link */
  TENON_TVMSCRIPT = 11, /* a module of TVMScript with a PrimFunc named as `symbol` says, and what it
                           calls: PrimFuncs, extern functions. Its parameters: the inputs, then the
                           outputs, then a uint8 buffer of `scratch` bytes where that is above 0
                           (T.alloc_buffer inside is planned memory too). */
  TENON_C = 12,         /* C99 source with a function named as `symbol` says */
  TENON_OBJECT = 13, /* a relocatable object (ELF, for the target), its function named likewise */
  TENON_RUN = 14,    /* any bytes: the program calls TenonBackend.run_symbol with them */

  /* `generate`, beside TENON_C, any number of times: C source that stands once in front of all
   * functions of this back end in a module: includes, static helpers. The same text is taken only
   * once. */
  TENON_C_PRELUDE = 20,

  /* `TenonPass.run`: the whole module as TVMScript. Nothing emitted: it stays as it was. */
  TENON_MODULE = 30
};
/* For `size`, where `data` is a string that ends in 0. */
#define TENON_TEXT ((int64_t)-1)

/* ---- the host -------------------------------------------------------------------------------- */

/* What Tenon offers. No function of it fails on wrong arguments: where an index or a name does not
 * exist it returns null, -1 or the fallback. */
typedef struct TenonHost {
  size_t size;         /* of this struct as the host knows it: see TENON_HOST_HAS */
  uint32_t abi;        /* TENON_BACKEND_ABI of the host */
  const char* version; /* of Tenon */

  /* -- the match -- */
  /* "mylib.conv2d_relu": back end, dot, the pattern's name; of a region: the back end's name. */
  const char* (*pattern)(const TenonMatch* match);
  /* The name for the generated function: a C identifier, unique in the module. */
  const char* (*symbol)(const TenonMatch* match);
  /* For messages: the node of the ONNX file, or file and line. */
  const char* (*where)(const TenonMatch* match);
  /* The match as a module of TVMScript. */
  const char* (*text)(const TenonMatch* match);

  /* Inputs: the values that the match needs, constants among them. Outputs: one, or several of a
   * region or a tuple. null where `i` is out of range. */
  int32_t (*num_inputs)(const TenonMatch* match);
  int32_t (*num_outputs)(const TenonMatch* match);
  const TenonTensor* (*input)(const TenonMatch* match, int32_t i);
  const TenonTensor* (*output)(const TenonMatch* match, int32_t i);
  /* Which operator (or input) gives output `i`. */
  const TenonOperand* (*output_source)(const TenonMatch* match, int32_t i);
  /* The dimensions of the inputs that are not numbers, each once: variables (n) in order of
   * appearance, then expressions (n * m, under a name made up for it). The generated function gets
   * the value of each as int64_t, 0 or more. Every dimension of an output is made of them. Only
   * back ends with flag TENON_TAKES_SYMBOLIC_SHAPES see matches that have any. */
  int32_t (*num_symbols)(const TenonMatch* match);
  const char* (*symbol_name)(const TenonMatch* match, int32_t i);

  /* -- its operators, in an order in which they can be computed -- */
  /* In a match of one pattern they are operators of the graph ("relax.nn.conv2d"). In a region
   * (TenonBackend.unit) they are the matches that it consists of, each named by its pattern
   * ("mylib.conv2d_relu"); `part` then gives the match itself, and operand j of it is what its
   * input j is in the region. A match of a TensorIR pattern is one operator, "relax.call_tir",
   * whose operands are the inputs; `text` has the kernel. */
  int32_t (*num_operators)(const TenonMatch* match);
  const char* (*operator_name)(const TenonMatch* match, int32_t op);
  /* Null where `match` is no region. */
  const TenonMatch* (*part)(const TenonMatch* match, int32_t op);
  /* Arguments in order. Where one is a tuple of tensors (`concat`) its members stand in its place,
   * one after the other. */
  int32_t (*num_operands)(const TenonMatch* match, int32_t op);
  const TenonOperand* (*operand)(const TenonMatch* match, int32_t op, int32_t i);
  /* What operator `op` gives; `field` counts the members where that is a tuple, else it is 0. */
  const TenonTensor* (*result)(const TenonMatch* match, int32_t op, int32_t field);
  /* What a name of the pattern is bound to in this match: an annotation, or a variable of the
   * pattern's text. An input (constants are inputs) or an operator; null where the name has no part
   * in the match. Of a region: ask the part. */
  const TenonOperand* (*annotated)(const TenonMatch* match, const char* name);

  /* -- attributes of operator `op`; of the match itself (also: what a TensorIR pattern captured)
   * with op -1 -- */
  int32_t (*num_attributes)(const TenonMatch* match, int32_t op);
  const char* (*attribute_name)(const TenonMatch* match, int32_t op, int32_t i);
  /* An integer, a truth value (0, 1); `fallback` where it is absent or something else. */
  int64_t (*attribute_int)(const TenonMatch* match, int32_t op, const char* name, int64_t fallback);
  double (*attribute_number)(const TenonMatch* match, int32_t op, const char* name,
                             double fallback);
  /* A string or a dtype; null where it is absent or something else. */
  const char* (*attribute_text)(const TenonMatch* match, int32_t op, const char* name);
  /* A list of integers, or one integer as a list of one (as operators have them: a list of one
   * number may stand for all axes): writes their number to `count` (may be null); null where it is
   * absent or something else. */
  const int64_t* (*attribute_ints)(const TenonMatch* match, int32_t op, const char* name,
                                   int32_t* count);

  /* -- settings -- */
  /* What the user gave: --backend-option NAME.key=value, or options={"key": ...} of pass
   * RunCodegen; null: nothing. */
  const char* (*option)(const TenonMatch* match, const char* key);
  /* The target that is compiled for: "llvm -mcpu=skylake-avx512 ...", "c". */
  const char* (*target)(const TenonMatch* match);

  /* -- answers -- */
  /* "No", with a short reason code ("dtype", "layout", "shape", "rank", "attribute", ...:
   * [a-z0-9-], up to 32 characters) and words for people.
   *  - In `check` the match is not placed here: another pattern or back end may take it.
   *  - In `pack` and `generate` the match or region becomes own code, whose reason the report tells
   *    (no other back end is asked any more); where the user named the function, by
   *    RunCodegen(function=...), compilation ends with the words.
   *  - In a pass compilation ends with the words.
   * Returns 1, so that a callback can end with `return host->refuse(...)`. */
  int32_t (*refuse)(TenonAnswer* answer, const char* code, const char* words);
  /* Hands over an answer; see TENON_PACKED and those after it. `size` in bytes, or TENON_TEXT.
   * Returns 0, or 1 where the host does not take it (it has then recorded why: the callback should
   * return 1). */
  int32_t (*emit)(TenonAnswer* answer, int32_t kind, const void* data, int64_t size);
  /* A library that the generated code needs: "dnnl" (as in -ldnnl), a file name that the system's
   * loader finds ("libdnnl.so.3"; no path, which would mean another thing elsewhere), or null for
   * the back end's own shared library. Returns as `emit`. */
  int32_t (*link)(TenonAnswer* answer, const char* library);
  /* A remark for the user's report (`tenon explain`, --remarks). */
  void (*log)(TenonAnswer* answer, const char* words);

  /* -- what Tenon itself would do -- */
  /* The PrimFunc that would be chosen for operator `op` of the match if it stayed with Tenon, as a
   * module of TVMScript; null where there is none. */
  const char* (*choose)(const TenonMatch* match, int32_t op);

  /* -- passes -- */
  /* The value that the pass was given for `key`, as text: --passes "mylib.MyPass(key=3)"; null:
   * nothing. */
  const char* (*argument)(const TenonAnswer* answer, const char* key);
  /* As `choose`, for the call that is bound to `variable` in graph function `function` of the
   * pass's module. */
  const char* (*choose_in)(TenonAnswer* answer, const char* function, const char* variable);
} TenonHost;

/* True where the host is new enough to have `member`, for a back end that is to work with older
 * ones as well. */
#define TENON_HOST_HAS(host, member) \
  ((host)->size >= offsetof(TenonHost, member) + sizeof((host)->member) && (host)->member != NULL)

/* ---- the back end ---------------------------------------------------------------------------- */

/* A pass over modules, `NAME.Pass` on the command line and in --list-passes. Text in, text out. */
typedef struct TenonPass {
  size_t size;         /* sizeof(TenonPass) */
  const char* name;    /* a C identifier: "FoldScales" */
  const char* summary; /* one line */
  /* `module` is TVMScript. Answers by emit(TENON_MODULE). 0, or not 0 after `refuse`. */
  int32_t (*run)(const TenonHost* host, const char* module, TenonAnswer* answer);
} TenonPass;

/* TenonBackend.unit: what `pack`, `scratch` and `generate` are given. */
enum {
  TENON_UNIT_MATCH = 0, /* each match of a pattern by itself */
  TENON_UNIT_REGION = 1 /* neighbouring matches together, as one function */
};

/* TenonBackend.threads: on which threads its functions work. */
enum {
  TENON_THREADS_CALLER = 0,  /* on the thread that calls them, and on no other */
  TENON_THREADS_OWN_POOL = 1 /* on their own threads: it runs alone, while Tenon's workers sleep */
};

/* TenonBackend.flags. */
enum {
  /* Results may differ in the last bits from one number of threads to another. */
  TENON_VARIES_WITH_THREADS = 1,
  /* Generated functions take a last parameter `int32_t threads`: of the run, at least 1. */
  TENON_PASS_THREADS = 2,
  /* One function may not run at the same time as another of this back end. */
  TENON_NOT_THREAD_SAFE = 4,
  /* Functions have effects beside their outputs: their calls are neither dropped nor merged nor
     moved. */
  TENON_HAS_EFFECTS = 8,
  /* Matches with symbolic dimensions are wanted too. Without it they are refused for the back end,
     as "symbolic". */
  TENON_TAKES_SYMBOLIC_SHAPES = 16,
  /* An output may be the memory of an input of the same size. */
  TENON_WORKS_IN_PLACE = 32
};

/* The function that a program calls for a match, unless TensorIR was emitted:
 *
 *     int32_t f(const T* input..., T* output..., int64_t symbol..., void* scratch,
 *               int32_t threads);
 *
 * a pointer for each input that `pack` did not omit (const uint8_t* where it packed), a pointer for
 * each output, the value of each symbol, then `scratch` only where the scratch callback gave more
 * than 0 bytes, then `threads` only with flag TENON_PASS_THREADS. It returns 0, or a code that ends
 * the run with an error. Pointers are aligned to the element, `scratch` and packed constants to 64
 * bytes. Outputs and scratch hold anything at entry; nothing overlaps.
 *
 * With TENON_RUN the program calls function `run_symbol` of the back end's own library with all
 * that as one record: */
typedef struct TenonRun {
  size_t size;      /* of this struct as the program knows it */
  const void* blob; /* what was emitted; aligned to 64 bytes */
  int64_t blob_bytes;
  int32_t num_inputs; /* those that `pack` did not omit */
  int32_t num_outputs;
  int32_t num_symbols;
  int32_t threads; /* of the run with flag TENON_PASS_THREADS; else 1 */
  const void* const* inputs;
  void* const* outputs;
  const int64_t* symbols;
  void* scratch; /* null where there is none */
} TenonRun;
typedef int32_t (*TenonRunFunction)(const TenonRun* run);

/* A back end. Zero is a good default for every member after `name`. */
typedef struct TenonBackend {
  size_t size;         /* sizeof(TenonBackend) */
  uint32_t abi;        /* TENON_BACKEND_ABI */
  const char* name;    /* [a-z][a-z0-9_]*: part of pattern names, `--libs`, reports */
  const char* version; /* of the back end, part of what a program says about itself; null: "" */

  /* What it takes: text as docs/plugin.md tells, one of
   *  - TVMScript: each graph function or PrimFunc is a pattern, named after it;
   *  - assignments, with the combinators of the pattern language:
   *
   *     conv_relu = is_op("relax.nn.relu")(is_op("relax.nn.conv2d")(wildcard(), is_const()))
   *
   * Names get the back end's name and a dot in front. The larger pattern is preferred, then the
   * earlier one. */
  const char* patterns;

  uint32_t unit;    /* TENON_UNIT_* */
  uint32_t threads; /* TENON_THREADS_* */
  uint32_t flags;   /* TENON_VARIES_WITH_THREADS | ... */
  int32_t priority; /* where several back ends want a node: higher first; then the lower cost */

  /* All return 0, or not 0 after `refuse`. Null: everything that matches is taken; nothing is
   * known; 0 bytes; no constant is packed. */

  /* Is the match (of one pattern, also where `unit` is a region) one that can be done? */
  int32_t (*check)(const TenonHost* host, const TenonMatch* match, TenonAnswer* answer);
  /* Seconds of one run on one thread; below 0: unknown. */
  double (*cost)(const TenonHost* host, const TenonMatch* match);
  /* Bytes of memory that the function works in; part of the program's one memory plan. Below 2^40.
   * A number: where it would depend on a symbol, `check` has to refuse. */
  int64_t (*scratch)(const TenonHost* host, const TenonMatch* match);
  /* Called for each input that is a constant. May emit TENON_PACKED or TENON_OMITTED; nothing: it
   * stays as it is. */
  int32_t (*pack)(const TenonHost* host, const TenonMatch* match, int32_t input,
                  TenonAnswer* answer);
  /* What runs in the place of the match. */
  int32_t (*generate)(const TenonHost* host, const TenonMatch* match, TenonAnswer* answer);

  /* For TENON_RUN: the name of an exported function of type TenonRunFunction. */
  const char* run_symbol;

  const TenonPass* const* passes; /* `num_passes` of them */
  int32_t num_passes;
} TenonBackend;

/* The function that a plugin exports, by name, and its type. `host` lives as long as the process.
 * Returns null where the back end cannot work here. */
#define TENON_BACKEND_ENTRY "tenon_backend"
typedef const TenonBackend* (*TenonBackendFunction)(const TenonHost* host);

#if defined(_WIN32)
#define TENON_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define TENON_EXPORT __attribute__((visibility("default")))
#else
#define TENON_EXPORT
#endif

#ifdef __cplusplus
}
#endif

#endif /* TENON_BACKEND_H_ */
