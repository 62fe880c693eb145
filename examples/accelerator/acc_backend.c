/* The back end of the accelerator: which layers it takes, and the calls of its driver that run them.
 *
 * One function of the program is a match of a pattern (a layer), or with -DUNIT=TENON_UNIT_REGION neighbouring layers together:
 * between them nothing leaves the accelerator's memory. */
#include <stdio.h>
#include <string.h>
#include <tenon/backend.h>

#include "accelerator.h"

/* Patterns are functions as text; what matches one is named after it. Attributes (strides, ...) may be any. */
#define PATTERN(NAME, PARAMS, VALUE) \
  "@R.function\ndef " NAME "(" PARAMS "):\n    R.func_attr({'any': True})\n    return " VALUE "\n"
#define LAYER "x: R.Tensor, w: R.Tensor, b: R.Tensor"
static const char patterns[] =
    PATTERN("conv2d_relu", LAYER, "R.nn.relu(R.add(R.nn.conv2d(x, w), b))")
    PATTERN("conv2d", LAYER, "R.add(R.nn.conv2d(x, w), b)")
    PATTERN("dense", LAYER, "R.add(R.matmul(x, w), b)")
    PATTERN("max_pool2d", "x: R.Tensor", "R.nn.max_pool2d(x)");

/* The numbers of a window (convolution, pooling); the words say what cannot be done. */
static const char *read_window(const TenonHost *h, const TenonMatch *m, acc_window *w) {
  const int pool = strstr(h->pattern(m), "pool") != NULL;
  const TenonTensor *x = h->input(m, h->operand(m, 0, 0)->index), *y = h->output(m, 0);
  const int64_t *kernel = pool ? h->attribute_ints(m, 0, "pool_size", NULL)
                               : h->input(m, h->operand(m, 0, 1)->index)->shape + 2;
  const int64_t *strides = h->attribute_ints(m, 0, "strides", NULL), *pad = h->attribute_ints(m, 0, "padding", NULL);
  const int64_t *dilation = h->attribute_ints(m, 0, "dilation", NULL);
  if (x->shape[0] != 1) return "more than one image";
  if (strides[0] != strides[1] || dilation[0] != 1 || dilation[1] != 1) return "strides that differ, or dilation";
  if (pad[0] != pad[1] || pad[0] != pad[2] || pad[0] != pad[3] || (pool && pad[0])) return "this padding";
  if (h->attribute_int(m, 0, "groups", 1) != 1 || h->attribute_int(m, 0, "ceil_mode", 0)) return "groups, or ceil_mode";
  *w = (acc_window){(int)x->shape[1], (int)x->shape[2], (int)x->shape[3], (int)y->shape[1],  (int)kernel[0],
                    (int)kernel[1],   (int)strides[0],  (int)pad[0],      strstr(h->pattern(m), "relu") != NULL};
  return NULL;
}

static int32_t check(const TenonHost *h, const TenonMatch *m, TenonAnswer *answer) {
  acc_window window;
  const TenonTensor *y = h->output(m, 0);
  int64_t bytes = y->bytes;
  for (int32_t i = 0; i < h->num_inputs(m); ++i) bytes += h->input(m, i)->bytes;
  if (strcmp(y->dtype, "float32")) return h->refuse(answer, "dtype", "the accelerator computes in float32");
  for (int32_t i = 1; i < h->num_inputs(m); ++i)
    if (!h->input(m, i)->data) return h->refuse(answer, "weights", "the weights are no constants");
  if (bytes > ACC_MEMORY) return h->refuse(answer, "memory", "the layer does not fit into its memory");
  if (strstr(h->pattern(m), "dense"))
    return y->rank == 2 && y->shape[0] == 1 ? 0 : h->refuse(answer, "shape", "more than one row");
  const char *why = y->rank == 4 ? read_window(h, m, &window) : "no image";
  if (why) return h->refuse(answer, "window", why);
  /* The bias has a value for each channel, and none for each pixel. */
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
    const int64_t *weight = h->input(m, 1)->shape;
    WRITE(w, "  if (!code) code = acc_dense(%d, %d, %d, %d, %d, %d);\n", (int)weight[0], (int)weight[1], (int)in[0],
          (int)in[1], (int)in[2], (int)out);
    return;
  }
  read_window(h, m, &v);
  WRITE(w, "  const acc_window w%d = {%d, %d, %d, %d, %d, %d, %d, %d, %d};\n", (int)out, v.channels, v.height, v.width,
        v.outputs, v.kernel_height, v.kernel_width, v.stride, v.padding, v.relu);
  if (strstr(h->pattern(m), "pool"))
    WRITE(w, "  if (!code) code = acc_max_pool(&w%d, %d, %d);\n", (int)out, (int)in[0], (int)out);
  else
    WRITE(w, "  if (!code) code = acc_conv2d(&w%d, %d, %d, %d, %d);\n", (int)out, (int)in[0], (int)in[1], (int)in[2],
          (int)out);
}

static int32_t generate(const TenonHost *h, const TenonMatch *m, TenonAnswer *answer) {
  static writer w;
  memset(&w, 0, sizeof w);
  WRITE(&w, "int32_t %s(", h->symbol(m));
  for (int32_t i = 0; i < h->num_inputs(m); ++i) WRITE(&w, "const void *x%d, ", (int)i);
  for (int32_t i = 0; i < h->num_outputs(m); ++i) WRITE(&w, "void *y%d%s", (int)i, i + 1 < h->num_outputs(m) ? ", " : "");
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
                                     .flags = TENON_NOT_THREAD_SAFE, .check = check, .pack = pack, .generate = generate};

TENON_EXPORT const TenonBackend *tenon_backend(const TenonHost *host) {
  (void)host;
  return &backend;
}
