/* The back end of the accelerator: which layers it takes, and the calls of its driver that run them.
 *
 * One function of the program is a match of a pattern (a layer), or with -DUNIT=TENON_UNIT_REGION neighbouring layers
 * together: between them nothing leaves the accelerator's memory. */
#include <stdio.h>
#include <string.h>
#include <tenon/backend.h>

#include "accelerator.h"

/* What matches one of these is named after it. A constant is part of the match: `check` and `pack` see its data. */
#define CONV2D "is_op('relax.add')(is_op('relax.nn.conv2d')(wildcard(), is_const()), is_const())"
static const char patterns[] =
    "conv2d_relu = is_op('relax.nn.relu')(" CONV2D ")\n"
    "conv2d = " CONV2D "\n"
    "dense = is_op('relax.add')(is_op('relax.matmul')(wildcard(), is_const()), is_const())\n"
    "max_pool2d = is_op('relax.nn.max_pool2d')(wildcard())\n";

/* Item `i` of a list among the attributes of the first operator; a list of one number stands for all axes. */
static int item(const TenonHost *h, const TenonMatch *m, const char *name, int32_t i) {
  int32_t count = 0;
  const int64_t *list = h->attribute_ints(m, 0, name, &count);
  return count == 0 ? -1 : (int)list[i < count ? i : count - 1];
}

/* The numbers of a window (convolution, pooling). What is given back says why it cannot be done. */
static const char *read_window(const TenonHost *h, const TenonMatch *m, acc_window *w) {
  const int pool = strstr(h->pattern(m), "pool") != NULL;
  const TenonTensor *x = h->input(m, 0), *y = h->output(m, 0), *weight = pool ? NULL : h->input(m, 1);
  *w = (acc_window){(int)x->shape[1], (int)x->shape[2], (int)x->shape[3], (int)y->shape[1],
                    pool ? item(h, m, "pool_size", 0) : (int)weight->shape[2],
                    pool ? item(h, m, "pool_size", 1) : (int)weight->shape[3],
                    item(h, m, "strides", 0), item(h, m, "padding", 0), strstr(h->pattern(m), "relu") != NULL};
  if (x->shape[0] != 1) return "more than one image";
  if (w->stride != item(h, m, "strides", 1)) return "strides that differ";
  for (int i = 0; i < 4; ++i)
    if (item(h, m, "padding", i) != w->padding || (pool && w->padding)) return "this padding";
  if (item(h, m, "dilation", 0) != 1 || item(h, m, "dilation", 1) != 1) return "dilation";
  if (h->attribute_int(m, 0, "groups", 1) != 1 || h->attribute_int(m, 0, "ceil_mode", 0)) return "groups, or ceil_mode";
  return NULL;
}

static int32_t check(const TenonHost *h, const TenonMatch *m, TenonAnswer *answer) {
  acc_window window;
  const TenonTensor *y = h->output(m, 0);
  int64_t bytes = y->bytes;
  if (strcmp(y->dtype, "float32")) return h->refuse(answer, "dtype", "the accelerator computes in float32");
  for (int32_t i = 0; i < h->num_inputs(m); bytes += h->input(m, i++)->bytes)
    if (i > 0 && !h->input(m, i)->data) return h->refuse(answer, "weights", "the weights are no constants");
  if (bytes > ACC_MEMORY) return h->refuse(answer, "memory", "the layer does not fit into its memory");
  if (strstr(h->pattern(m), "dense"))
    return y->rank == 2 && y->shape[0] == 1 ? 0 : h->refuse(answer, "shape", "more than one row");
  const char *why = y->rank == 4 ? read_window(h, m, &window) : "no image";
  if (why) return h->refuse(answer, "window", why);
  if (h->num_inputs(m) == 3 && h->input(m, 2)->bytes != 4 * y->shape[1])
    return h->refuse(answer, "bias", "what is added is no bias");
  return 0;
}

/* Weights of convolutions in the accelerator's order: (o, c, r, s) becomes (o, r, s, c). */
static int32_t pack(const TenonHost *h, const TenonMatch *m, int32_t input, TenonAnswer *answer) {
  static float packed[ACC_MEMORY / 4];
  const TenonTensor *t = h->input(m, input);
  if (t->rank != 4 || t->bytes > ACC_MEMORY || t->shape[2] * t->shape[3] == 1) return 0;
  const int64_t channels = t->shape[1], taps = t->shape[2] * t->shape[3];
  for (int64_t o = 0; o < t->shape[0]; ++o)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t k = 0; k < taps; ++k)
        packed[(o * taps + k) * channels + c] = ((const float *)t->data)[(o * channels + c) * taps + k];
  return h->emit(answer, TENON_PACKED, packed, t->bytes);
}

/* What the functions call, as accelerator.h declares it; their sources stand alone. */
static const char declarations[] =
    "#include <stdint.h>\n"
    "typedef struct { int channels, height, width, outputs, kernel_height, kernel_width, stride, padding, relu; } acc_window;\n"
    "int32_t acc_copy_in(uint32_t, const void *, uint32_t), acc_copy_out(void *, uint32_t, uint32_t);\n"
    "int32_t acc_conv2d(const acc_window *, uint32_t, uint32_t, uint32_t, uint32_t);\n"
    "int32_t acc_max_pool(const acc_window *, uint32_t, uint32_t);\n"
    "int32_t acc_dense(int, int, uint32_t, uint32_t, uint32_t, uint32_t);\n";

/* The text of the function, and where its next value goes in the accelerator's memory. */
typedef struct {
  char text[16384];
  size_t length;
  int64_t next, input[64], result[64];
} writer;
#define WRITE(w, ...) ((w)->length += (size_t)snprintf((w)->text + (w)->length, sizeof (w)->text - (w)->length, __VA_ARGS__))

/* One layer, whose inputs and output are at these addresses. */
static void write_layer(const TenonHost *h, const TenonMatch *m, writer *w, const int64_t *in, int64_t out) {
  acc_window v;
  if (strstr(h->pattern(m), "dense")) {
    const int64_t *shape = h->input(m, 1)->shape;
    WRITE(w, "  if (!code) code = acc_dense(%d, %d, ", (int)shape[0], (int)shape[1]);
  } else {
    read_window(h, m, &v);
    WRITE(w, "  const acc_window w%d = {%d, %d, %d, %d, %d, %d, %d, %d, %d};\n  if (!code) code = %s(&w%d, ", (int)out,
          v.channels, v.height, v.width, v.outputs, v.kernel_height, v.kernel_width, v.stride, v.padding, v.relu,
          strstr(h->pattern(m), "pool") ? "acc_max_pool" : "acc_conv2d", (int)out);
  }
  for (int32_t i = 0; i < h->num_inputs(m); ++i) WRITE(w, "%d, ", (int)in[i]);
  WRITE(w, "%d);\n", (int)out);
}

static int32_t generate(const TenonHost *h, const TenonMatch *m, TenonAnswer *answer) {
  static writer w;
  if (h->num_inputs(m) > 64 || h->num_operators(m) > 64) return h->refuse(answer, "size", "too many layers");
  memset(&w, 0, sizeof w);
  WRITE(&w, "int32_t %s(", h->symbol(m));
  for (int32_t i = 0; i < h->num_inputs(m); ++i) WRITE(&w, "const void *x%d, ", (int)i);
  for (int32_t i = 0; i < h->num_outputs(m); ++i) WRITE(&w, "%svoid *y%d", i > 0 ? ", " : "", (int)i);
  WRITE(&w, ") {\n  int32_t code = 0;\n");
  for (int32_t i = 0; i < h->num_inputs(m); w.next += h->input(m, i++)->bytes) {
    w.input[i] = w.next;
    WRITE(&w, "  if (!code) code = acc_copy_in(%d, x%d, %d);\n", (int)w.next, (int)i, (int)h->input(m, i)->bytes);
  }
  const int is_region = h->num_operators(m) > 0 && h->part(m, 0) != NULL;
  for (int32_t op = 0; op < (is_region ? h->num_operators(m) : 1); ++op) {
    const TenonMatch *layer = is_region ? h->part(m, op) : m;
    int64_t in[3] = {0, 0, 0};
    for (int32_t i = 0; i < h->num_inputs(layer) && i < 3; ++i) {
      const TenonOperand *from = is_region ? h->operand(m, op, i) : NULL;
      in[i] = !from ? w.input[i] : from->kind == TENON_OPERAND_INPUT ? w.input[from->index] : w.result[from->index];
    }
    write_layer(h, layer, &w, in, w.result[op] = w.next);
    w.next += h->output(layer, 0)->bytes;
  }
  for (int32_t i = 0; i < h->num_outputs(m); ++i)
    WRITE(&w, "  if (!code) code = acc_copy_out(y%d, %d, %d);\n", (int)i,
          (int)w.result[is_region ? h->output_source(m, i)->index : 0], (int)h->output(m, i)->bytes);
  WRITE(&w, "  return code;\n}\n");
  if (w.next > ACC_MEMORY) return h->refuse(answer, "memory", "the layers do not fit into the accelerator's memory");
  h->emit(answer, TENON_C_PRELUDE, declarations, TENON_TEXT);
  h->link(answer, NULL);
  return h->emit(answer, TENON_C, w.text, (int64_t)w.length);
}

#ifndef UNIT
#define UNIT TENON_UNIT_MATCH
#endif
static const TenonBackend backend = {.size = sizeof(TenonBackend), .abi = TENON_BACKEND_ABI, .name = "acc",
                                     .version = "1.0", .patterns = patterns, .unit = UNIT,
                                     .flags = TENON_NOT_THREAD_SAFE, .check = check, .pack = pack,
                                     .generate = generate};

TENON_EXPORT const TenonBackend *tenon_backend(const TenonHost *host) { return host ? &backend : NULL; }
