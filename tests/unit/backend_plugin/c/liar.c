/* A back end that does one thing wrong, chosen by `liar_lie`; with 0 it is a good one. */
#include "liar.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/backend.h>

int liar_lie = 0;

static const char relu_pattern[] =
    "@R.function\n"
    "def relu(x: R.Tensor(dtype=\"float32\")) -> R.Tensor(dtype=\"float32\"):\n"
    "    y = R.nn.relu(x)\n"
    "    return y\n";

static volatile int zero = 0;

/* Uses up the stack. */
static int deep(int n) {
  volatile char room[4096];
  room[0] = (char)n;
  return n < 0 ? 0 : deep(n + 1) + room[0];
}

static int32_t crash(int how) {
  volatile int* volatile nowhere = (volatile int*)16; /* where, the compiler must not know */
  if (how == 0) return *nowhere;
  if (how == 1) abort();
  if (how == 2) return 1000 / zero;
  return deep(1);
}

static int32_t check(const TenonHost* h, const TenonMatch* m, TenonAnswer* a) {
  (void)m;
  switch (liar_lie) {
    case CHECK_RETURNS_5: return 5;
    case CHECK_REFUSES_AND_RETURNS_0: h->refuse(a, "dtype", "no"); return 0;
    case CHECK_CODE_IS_A_SENTENCE: return h->refuse(a, "I do not like it!", "no");
    case CHECK_EMITS: h->emit(a, TENON_SYMBOL, "f", TENON_TEXT); return 0;
    case CHECK_REFUSES: return h->refuse(a, "dtype", "not today");
    case CHECK_READS_NULL: return crash(0);
    case CHECK_ABORTS: return crash(1);
    case CHECK_DIVIDES_BY_ZERO: return crash(2);
    case CHECK_OVERFLOWS_THE_STACK: return crash(3);
    default: return 0;
  }
}

static double cost(const TenonHost* h, const TenonMatch* m) {
  (void)h, (void)m;
  if (liar_lie == COST_IS_NAN) return NAN;
  if (liar_lie == COST_IS_INFINITE) return INFINITY;
  return 1e-6;
}

static int64_t scratch(const TenonHost* h, const TenonMatch* m) {
  (void)h, (void)m;
  switch (liar_lie) {
    case SCRATCH_IS_NEGATIVE: return -8;
    case SCRATCH_IS_HUGE: return INT64_MAX;
    case SCRATCH_IS_TOO_LITTLE: return 16;
    default: return 0;
  }
}

static int32_t pack(const TenonHost* h, const TenonMatch* m, int32_t input, TenonAnswer* a) {
  (void)m, (void)input;
  switch (liar_lie) {
    case PACK_GIVES_TWO:
      h->emit(a, TENON_PACKED, "abcd", 4);
      h->emit(a, TENON_PACKED, "abcd", 4);
      return 0;
    case PACK_GIVES_A_SYMBOL: h->emit(a, TENON_SYMBOL, "f", TENON_TEXT); return 0;
    case PACK_SIZE_IS_NEGATIVE: h->emit(a, TENON_PACKED, "abcd", -7); return 0;
    case PACK_SIZE_IS_0: h->emit(a, TENON_PACKED, "abcd", 0); return 0;
    case PACK_HAS_NO_DATA: h->emit(a, TENON_PACKED, NULL, 4); return 0;
    case PACK_READS_PAST_THE_END: h->emit(a, TENON_PACKED, "abcd", (int64_t)1 << 31); return 0;
    default: return 0;
  }
}

/* A PrimFunc over a constant and an input of (4, 8), which adds them. */
static int32_t script(const TenonHost* h, TenonAnswer* a, const char* text) {
  return h->emit(a, TENON_TVMSCRIPT, text, TENON_TEXT);
}

#define ENTRY(NAME, X, C, Y, BODY)                                      \
  "@T.prim_func\n"                                                      \
  "def " NAME "(x: T.Buffer(" X "), c: T.Buffer(" C "), y: T.Buffer(" Y \
  ")):\n"                                                               \
  "    for i, j in T.grid(4, 8):\n"                                     \
  "        with T.block(\"b\"):\n"                                      \
  "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"                 \
  "            " BODY "\n"
#define F32 "(4, 8), \"float32\""
#define RIGHT "y[vi, vj] = T.max(x[vi, vj] + c[vi, vj], T.float32(0))"

static int32_t generate(const TenonHost* h, const TenonMatch* m, TenonAnswer* a) {
  char text[4096];
  const char* name = h->symbol(m);
  switch (liar_lie) {
    case GENERATE_GIVES_NOTHING: return 0;
    case GENERATE_RETURNS_3: return 3;
    case GENERATE_REFUSES: return h->refuse(a, "memory", "it does not fit after all");
    case GENERATE_GIVES_TWO:
      h->emit(a, TENON_SYMBOL, "f", TENON_TEXT);
      return h->emit(a, TENON_C, "int f(void);", TENON_TEXT);
    case GENERATE_KIND_IS_UNKNOWN: h->emit(a, 77, "f", TENON_TEXT); return 0;
    case GENERATE_PACKS: h->emit(a, TENON_PACKED, "f", TENON_TEXT); return 0;
    case SYMBOL_IS_NO_NAME: return h->emit(a, TENON_SYMBOL, "system(\"ls\")", TENON_TEXT);
    case SYMBOL_IS_EMPTY: return h->emit(a, TENON_SYMBOL, "", 0);
    case C_DEFINES_NOTHING: return h->emit(a, TENON_C, "int other(void) { return 0; }", TENON_TEXT);
    case C_HAS_ZERO_BYTES: {
      strcpy(text, name);
      strcat(text, "(void)");
      return h->emit(a, TENON_C, text, (int64_t)strlen(text) + 9);
    }
    case PRELUDE_WITHOUT_C:
      h->emit(a, TENON_C_PRELUDE, "#include <stdint.h>\n", TENON_TEXT);
      return h->emit(a, TENON_SYMBOL, "f", TENON_TEXT);
    case OBJECT_IS_TEXT: return h->emit(a, TENON_OBJECT, "no object", TENON_TEXT);
    case OBJECT_IS_CUT_OFF: return h->emit(a, TENON_OBJECT, liar_object, liar_object_size / 3);
    case OBJECT_IS_A_PROGRAM:
      if (liar_object_size > (int64_t)sizeof text) return 1;
      memcpy(text, liar_object, (size_t)liar_object_size);
      text[16] = 2; /* e_type */
      return h->emit(a, TENON_OBJECT, text, liar_object_size);
    case OBJECT_DEFINES_NOTHING: return h->emit(a, TENON_OBJECT, liar_object, liar_object_size);
    case SCRIPT_IS_GARBAGE: return script(h, a, "def (((:\n  \x01\x02 return of the king");
    case SCRIPT_IS_EMPTY: return h->emit(a, TENON_TVMSCRIPT, "", 0);
    case SCRIPT_HAS_ANOTHER_NAME: return script(h, a, ENTRY("other", F32, F32, F32, RIGHT));
    case RUN_WITHOUT_AN_ENTRY: return h->emit(a, TENON_RUN, "blob", 4);
    case LINKS_A_PATH: h->link(a, "/tmp/evil.so"); return h->emit(a, TENON_SYMBOL, "f", TENON_TEXT);
    case LINKS_AN_OPTION:
      h->link(a, "-Wl,--wrap");
      return h->emit(a, TENON_SYMBOL, "f", TENON_TEXT);
    case LINKS_ITSELF: h->link(a, NULL); return h->emit(a, TENON_SYMBOL, "f", TENON_TEXT);
    case GENERATE_CRASHES: return crash(0);
    case GENERATE_EMITS_FROM_NOWHERE: return h->emit(a, TENON_C, (const void*)64, 4096);
    default: break;
  }
  /* The rest is TensorIR under the right name. */
  const char *body = RIGHT, *x = F32, *c = F32, *y = F32;
  switch (liar_lie) {
    case SCRIPT_SHAPE_IS_WRONG: x = "(4, 9), \"float32\""; break;
    case SCRIPT_RANK_IS_WRONG:
      c = "(32,), \"float32\"";
      body = "y[vi, vj] = x[vi, vj]";
      break;
    case SCRIPT_DTYPE_IS_WRONG:
      y = "(4, 8), \"int32\"";
      body = "y[vi, vj] = 0";
      break;
    case SCRIPT_WRITES_OUTSIDE: body = "y[vi + 1, vj] = x[vi, vj]"; break;
    case SCRIPT_USES_WHAT_IS_NOT_THERE: body = "y[vi, vj] = z[vi, vj]"; break;
    case SCRIPT_CALLS_ITSELF: body = "T.call_tir(cls.ENTRY, x, c, y)"; break;
    default: break;
  }
  text[0] = 0;
  const int is_class = liar_lie == SCRIPT_CALLS_ITSELF;
  if (liar_lie == SCRIPT_CALLS_ITSELF) {
    strcat(text, "@I.ir_module\nclass Module:\n    @T.prim_func\n    def ");
    strcat(text, name);
    strcat(text, "(x: T.Buffer(" F32 "), c: T.Buffer(" F32 "), y: T.Buffer(" F32
                 ")):\n"
                 "        cls = Module\n        T.call_tir(cls.");
    strcat(text, name);
    strcat(text, ", x, c, y)\n");
  }
  if (!is_class) {
    strcat(text, "@T.prim_func\ndef ");
    strcat(text, name);
    strcat(text, "(x: T.Buffer(");
    strcat(text, x);
    strcat(text, "), c: T.Buffer(");
    strcat(text, c);
    strcat(text, "), y: T.Buffer(");
    strcat(text, y);
    strcat(text, liar_lie == SCRIPT_TAKES_TOO_MUCH ? "), more: T.Buffer((4,), \"float32\")" : ")");
    if (liar_lie == SCRATCH_IS_TOO_LITTLE) strcat(text, ", room: T.Buffer((1024,), \"uint8\")");
    strcat(text,
           "):\n    for i, j in T.grid(4, 8):\n        with T.block(\"b\"):\n"
           "            vi, vj = T.axis.remap(\"SS\", [i, j])\n            ");
    strcat(text, body);
    strcat(text, "\n");
  }
  return script(h, a, text);
}

static int32_t run_pass(const TenonHost* h, const char* module, TenonAnswer* a) {
  switch (liar_lie) {
    case PASS_GIVES_GARBAGE:
      return h->emit(a, TENON_MODULE, "garbage in, garbage out (", TENON_TEXT);
    case PASS_GIVES_TWO:
      h->emit(a, TENON_MODULE, module, TENON_TEXT);
      return h->emit(a, TENON_MODULE, module, TENON_TEXT);
    case PASS_BREAKS_TYPES:
      return h->emit(a, TENON_MODULE,
                     "@R.function\ndef main(x: R.Tensor((2, 3), \"float32\")):\n"
                     "    y = R.matmul(x, x)\n    return y\n",
                     TENON_TEXT);
    case PASS_REFUSES: return h->refuse(a, "empty", "there is nothing to do");
    case PASS_RETURNS_9: return 9;
    case PASS_CRASHES: return crash(1);
    case PASS_EMITS_C: h->emit(a, TENON_C, "int f;", TENON_TEXT); return 0;
    default: return h->emit(a, TENON_MODULE, module, TENON_TEXT);
  }
}

static int32_t run_other(const TenonHost* h, const char* module, TenonAnswer* a) {
  (void)h, (void)module, (void)a;
  return 0;
}

const TenonBackend* liar_backend(const TenonHost* host) {
  static TenonPass pass, other;
  static const TenonPass* passes[2];
  static TenonBackend b;
  static char name[200];
  pass = (TenonPass){sizeof(TenonPass), "Same", "gives what it gets", run_pass};
  other = (TenonPass){sizeof(TenonPass), "Other", NULL, run_other};
  passes[0] = &pass;
  passes[1] = &other;
  b = (TenonBackend){
      .size = sizeof(TenonBackend), .abi = TENON_BACKEND_ABI, .name = "liar", .version = "1"};
  b.patterns = relu_pattern;
  b.check = check;
  b.cost = cost;
  b.scratch = scratch;
  b.pack = pack;
  b.generate = generate;
  b.passes = passes;
  b.num_passes = 2;
  (void)host;
  switch (liar_lie) {
    case SIZE_IS_TOO_SMALL: b.size = 8; break;
    case SIZE_IS_TOO_LARGE: b.size = sizeof b + 64; break;
    case SIZE_IS_AN_OLDER_ONE: b.size = offsetof(TenonBackend, passes); break; /* no lie */
    case ABI_MAJOR_IS_NEWER: b.abi += 1u << 16; break;
    case ABI_MINOR_IS_NEWER: b.abi += 1; break;
    case ABI_IS_GARBAGE: b.abi = 0xdeadbeef; break;
    case THERE_IS_NO_BACKEND: return NULL;
    case NAME_IS_NULL: b.name = NULL; break;
    case NAME_HAS_A_DOT: b.name = "liar.conv"; break;
    case NAME_IS_LONG:
      memset(name, 'a', 199);
      b.name = name;
      break;
    case NAME_IS_NOWHERE: b.name = (const char*)8; break;
    case NAME_IS_NONE: b.name = "none"; break;
    case UNIT_IS_7: b.unit = 7; break;
    case THREADS_ARE_9: b.threads = 9; break;
    case FLAGS_ARE_UNKNOWN: b.flags = 1u << 20; break;
    case PRIORITY_IS_HUGE: b.priority = INT32_MAX; break;
    case PATTERNS_ARE_GARBAGE: b.patterns = "relu = is_op(((("; break;
    case PATTERNS_NAME_NO_OPERATOR:
      b.patterns = "f = is_op('relax.nn.no_such_thing')(wildcard())";
      break;
    case PATTERNS_WITHOUT_GENERATE: b.generate = NULL; break;
    case NOTHING_AT_ALL:
      b.patterns = NULL;
      b.num_passes = 0;
      break;
    case PASSES_ARE_NEGATIVE: b.num_passes = -1; break;
    case PASSES_ARE_NULL: b.passes = NULL; break;
    case PASS_NAME_IS_A_SENTENCE: pass.name = "Fold all"; break;
    case PASSES_HAVE_ONE_NAME: other.name = "Same"; break;
    case PASS_HAS_NO_FUNCTION: pass.run = NULL; break;
    case PASS_SIZE_IS_0: pass.size = 0; break;
    case RUN_SYMBOL_IS_NO_NAME: b.run_symbol = "run me"; break;
    case ENTRY_CRASHES: crash(0); break;
    case GENERATE_IS_NOWHERE:
      b.generate = (int32_t (*)(const TenonHost*, const TenonMatch*, TenonAnswer*))16;
      break;
    default: break;
  }
  return &b;
}
