/* One call of oneDNN as plain data, and the primitive that it stands for. Plain C99 and C++: the
 * compiler plans with it, and generated code, in front of which this text stands, runs with it. */
#include <dnnl.h>
#include <stdint.h>
#include <string.h>

enum {
  TENON_DNNL_CONVOLUTION,
  TENON_DNNL_DECONVOLUTION,
  TENON_DNNL_MATMUL,
  TENON_DNNL_POOLING,
  TENON_DNNL_BATCH_NORM,
  TENON_DNNL_LAYER_NORM,
  TENON_DNNL_SOFTMAX,
  TENON_DNNL_ELTWISE,
  TENON_DNNL_BINARY,
  TENON_DNNL_REDUCTION,
  TENON_DNNL_REORDER
};
enum { TENON_DNNL_POST_ELTWISE, TENON_DNNL_POST_SUM, TENON_DNNL_POST_BINARY };
enum { TENON_DNNL_MAX_POSTS = 8 };

/* What is done to each element of a result before it is stored. */
typedef struct {
  int32_t kind, alg;
  float alpha, beta;
  int32_t memory; /* of POST_BINARY */
} tenon_dnnl_post;

/* Memory that steps work on: a tensor of some layout at an offset of one of the function's
 * pointers. */
typedef struct {
  int32_t descriptor, pointer;
  int64_t offset;
} tenon_dnnl_memory;

/* Operands are positions in the table of memories; -1: none. */
typedef struct {
  int32_t kind, alg, axis;
  int32_t threads; /* at most */
  float alpha, beta;
  dnnl_dims_t kernel, strides, dilation, before, after; /* spatial axes */
  int32_t src, weights, bias, dst;
  int32_t statistics[2]; /* mean, variance */
  int32_t scaling[2];    /* scale, shift */
  int32_t num_posts;
  tenon_dnnl_post posts[TENON_DNNL_MAX_POSTS];
  int64_t scratch, scratch_bytes; /* in the function's scratch memory */
  const char* implementation;     /* the library's name for how it does it; NULL: any */
} tenon_dnnl_step;

/* Whether a way of doing it, by the library's name, is taken. */
typedef int (*tenon_dnnl_accept)(const char* implementation, const void* data);

static inline int tenon_dnnl_is_same(const char* implementation, const void* data) {
  return strcmp(implementation, (const char*)data) == 0;
}

static inline const dnnl_memory_desc_t* tenon_dnnl_layout(const dnnl_memory_desc_t* layouts,
                                                          const tenon_dnnl_memory* memories,
                                                          int32_t memory) {
  return memory < 0 ? NULL : &layouts[memories[memory].descriptor];
}

static inline dnnl_status_t tenon_dnnl_attributes(const dnnl_memory_desc_t* layouts,
                                                  const tenon_dnnl_memory* memories,
                                                  const tenon_dnnl_step* step,
                                                  dnnl_primitive_attr_t* made) {
  dnnl_post_ops_t posts = NULL;
  dnnl_status_t status = dnnl_primitive_attr_create(made);
  int32_t i;
  if (status != dnnl_success) return status;
  status = dnnl_primitive_attr_set_scratchpad_mode(*made, dnnl_scratchpad_mode_user);
  if (status != dnnl_success || step->num_posts == 0) return status;
  status = dnnl_post_ops_create(&posts);
  for (i = 0; i < step->num_posts && status == dnnl_success; ++i) {
    const tenon_dnnl_post* post = &step->posts[i];
    if (post->kind == TENON_DNNL_POST_ELTWISE)
      status = dnnl_post_ops_append_eltwise(posts, 1.0f, (dnnl_alg_kind_t)post->alg, post->alpha,
                                            post->beta);
    else if (post->kind == TENON_DNNL_POST_SUM)
      status = dnnl_post_ops_append_sum(posts, 1.0f);
    else
      status = dnnl_post_ops_append_binary(posts, (dnnl_alg_kind_t)post->alg,
                                           tenon_dnnl_layout(layouts, memories, post->memory));
  }
  if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(*made, posts);
  dnnl_post_ops_destroy(posts);
  return status;
}

/* The first of the library's ways that is accepted. */
static inline dnnl_status_t tenon_dnnl_choose(const_dnnl_op_desc_t op,
                                              dnnl_primitive_attr_t attributes,
                                              dnnl_engine_t engine, tenon_dnnl_accept accept,
                                              const void* data, dnnl_primitive_desc_t* made) {
  dnnl_primitive_desc_iterator_t ways = NULL;
  dnnl_status_t status = dnnl_primitive_desc_iterator_create(&ways, op, attributes, engine, NULL);
  while (status == dnnl_success) {
    const char* name = NULL;
    *made = dnnl_primitive_desc_iterator_fetch(ways);
    if (!*made) status = dnnl_out_of_memory;
    if (status == dnnl_success)
      status = dnnl_primitive_desc_query(*made, dnnl_query_impl_info_str, 0, (void*)&name);
    if (status == dnnl_success && accept(name, data)) break;
    if (*made) dnnl_primitive_desc_destroy(*made);
    *made = NULL;
    if (status == dnnl_success) status = dnnl_primitive_desc_iterator_next(ways);
  }
  if (ways) dnnl_primitive_desc_iterator_destroy(ways);
  return status;
}

/* The primitive descriptor of a step, for the number of threads that OpenMP is set to. Layouts may
 * be `any`: the library then chooses. */
static inline dnnl_status_t tenon_dnnl_describe(dnnl_engine_t engine,
                                                const dnnl_memory_desc_t* layouts,
                                                const tenon_dnnl_memory* memories,
                                                const tenon_dnnl_step* step,
                                                tenon_dnnl_accept accept, const void* data,
                                                dnnl_primitive_desc_t* made) {
  const dnnl_prop_kind_t forward = dnnl_forward_inference;
  const dnnl_alg_kind_t alg = (dnnl_alg_kind_t)step->alg;
  const dnnl_memory_desc_t* src = tenon_dnnl_layout(layouts, memories, step->src);
  const dnnl_memory_desc_t* weights = tenon_dnnl_layout(layouts, memories, step->weights);
  const dnnl_memory_desc_t* bias = tenon_dnnl_layout(layouts, memories, step->bias);
  const dnnl_memory_desc_t* dst = tenon_dnnl_layout(layouts, memories, step->dst);
  dnnl_primitive_attr_t attributes = NULL;
  dnnl_status_t status = tenon_dnnl_attributes(layouts, memories, step, &attributes);
  union {
    dnnl_convolution_desc_t convolution;
    dnnl_matmul_desc_t matmul;
    dnnl_pooling_v2_desc_t pooling;
    dnnl_batch_normalization_desc_t batch_norm;
    dnnl_layer_normalization_desc_t layer_norm;
    dnnl_softmax_v2_desc_t softmax;
    dnnl_eltwise_desc_t eltwise;
    dnnl_binary_desc_t binary;
    dnnl_reduction_desc_t reduction;
  } op;
  if (status == dnnl_success) switch (step->kind) {
      case TENON_DNNL_CONVOLUTION:
        status = dnnl_dilated_convolution_forward_desc_init(
            &op.convolution, forward, alg, src, weights, bias, dst, step->strides, step->dilation,
            step->before, step->after);
        break;
      case TENON_DNNL_DECONVOLUTION:
        status = dnnl_dilated_deconvolution_forward_desc_init(
            &op.convolution, forward, alg, src, weights, bias, dst, step->strides, step->dilation,
            step->before, step->after);
        break;
      case TENON_DNNL_MATMUL:
        status = dnnl_matmul_desc_init(&op.matmul, src, weights, bias, dst);
        break;
      case TENON_DNNL_POOLING:
        status = dnnl_pooling_v2_forward_desc_init(&op.pooling, forward, alg, src, dst,
                                                   step->strides, step->kernel, step->dilation,
                                                   step->before, step->after);
        break;
      case TENON_DNNL_BATCH_NORM:
        status = dnnl_batch_normalization_forward_desc_init(
            &op.batch_norm, forward, src, step->alpha,
            dnnl_use_global_stats | (step->scaling[0] < 0 ? 0 : dnnl_use_scale) |
                (step->scaling[1] < 0 ? 0 : dnnl_use_shift));
        break;
      case TENON_DNNL_LAYER_NORM:
        status = dnnl_layer_normalization_forward_desc_init(
            &op.layer_norm, forward, src, NULL, step->alpha,
            (step->scaling[0] < 0 ? 0 : dnnl_use_scale) |
                (step->scaling[1] < 0 ? 0 : dnnl_use_shift));
        break;
      case TENON_DNNL_SOFTMAX:
        status = dnnl_softmax_v2_forward_desc_init(&op.softmax, forward, alg, src, dst, step->axis);
        break;
      case TENON_DNNL_ELTWISE:
        status =
            dnnl_eltwise_forward_desc_init(&op.eltwise, forward, alg, src, step->alpha, step->beta);
        break;
      case TENON_DNNL_BINARY:
        status = dnnl_binary_desc_init(&op.binary, alg, src, weights, dst);
        break;
      case TENON_DNNL_REDUCTION:
        status = dnnl_reduction_desc_init(&op.reduction, alg, src, dst, 0.0f, 0.0f);
        break;
      default: break;
    }
  if (status == dnnl_success) {
    if (step->kind == TENON_DNNL_REORDER)
      status = dnnl_reorder_primitive_desc_create(made, src, engine, dst, engine, attributes);
    else
      status = tenon_dnnl_choose(&op, attributes, engine, accept, data, made);
  }
  if (attributes) dnnl_primitive_attr_destroy(attributes);
  return status;
}
