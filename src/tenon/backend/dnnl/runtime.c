/* Running the steps of a function. Its primitives and memory objects are made at the first call
 * with a number of threads and kept; calls at the same time have objects of their own. */
#include <pthread.h>
#include <stdlib.h>

extern void omp_set_num_threads(int);
extern int omp_get_max_threads(void);

enum {
  TENON_DNNL_NO_MEMORY = 1001,
  TENON_DNNL_NO_ENGINE = 1002,
  TENON_DNNL_NO_PRIMITIVE = 1003, /* this library does not have it for the packed layouts */
  TENON_DNNL_SCRATCH = 1004       /* this library needs more scratch memory than was planned */
};

typedef struct tenon_dnnl_objects {
  struct tenon_dnnl_objects* next;
  int threads, is_busy;
  dnnl_stream_t stream;
  dnnl_primitive_t* primitives; /* of each step */
  int* step_threads;            /* likewise */
  dnnl_memory_t* scratch;       /* likewise; null where it needs none */
  dnnl_memory_t* memories;
} tenon_dnnl_objects;

typedef struct tenon_dnnl_function {
  const dnnl_memory_desc_t* layouts;
  const tenon_dnnl_memory* memories;
  const tenon_dnnl_step* steps;
  int32_t num_memories, num_steps;
  tenon_dnnl_objects* objects;
  struct tenon_dnnl_function* next; /* of those that have objects */
} tenon_dnnl_function;

static pthread_mutex_t tenon_dnnl_lock = PTHREAD_MUTEX_INITIALIZER;
static tenon_dnnl_function* tenon_dnnl_functions;
static dnnl_engine_t tenon_dnnl_engine;

static int tenon_dnnl_is_any(const char* implementation, const void* data) {
  (void)implementation;
  (void)data;
  return 1;
}

/* In the way that was planned; on a processor where the library does not have that, in its first.
 */
static dnnl_status_t tenon_dnnl_describe_planned(const tenon_dnnl_function* f,
                                                 const tenon_dnnl_step* step,
                                                 dnnl_primitive_desc_t* made) {
  if (step->implementation &&
      tenon_dnnl_describe(tenon_dnnl_engine, f->layouts, f->memories, step, tenon_dnnl_is_same,
                          step->implementation, made) == dnnl_success)
    return dnnl_success;
  return tenon_dnnl_describe(tenon_dnnl_engine, f->layouts, f->memories, step, tenon_dnnl_is_any,
                             NULL, made);
}

/* With as many threads as the planned scratch memory is enough for. */
static int32_t tenon_dnnl_make_step(const tenon_dnnl_function* f, tenon_dnnl_objects* objects,
                                    int32_t i) {
  const tenon_dnnl_step* step = &f->steps[i];
  int threads = objects->threads < step->threads ? objects->threads : step->threads;
  int32_t code = TENON_DNNL_NO_PRIMITIVE;
  for (;; threads /= 2) {
    dnnl_primitive_desc_t description = NULL;
    const dnnl_memory_desc_t* scratch;
    omp_set_num_threads(threads);
    if (tenon_dnnl_describe_planned(f, step, &description) != dnnl_success)
      return TENON_DNNL_NO_PRIMITIVE;
    scratch = dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0);
    if (scratch && (int64_t)dnnl_memory_desc_get_size(scratch) > step->scratch_bytes) {
      code = TENON_DNNL_SCRATCH;
    } else if (dnnl_primitive_create(&objects->primitives[i], description) == dnnl_success) {
      code = 0;
      if (scratch && dnnl_memory_desc_get_size(scratch) > 0 &&
          dnnl_memory_create(&objects->scratch[i], scratch, tenon_dnnl_engine, DNNL_MEMORY_NONE) !=
              dnnl_success)
        code = TENON_DNNL_NO_MEMORY;
    }
    dnnl_primitive_desc_destroy(description);
    objects->step_threads[i] = threads;
    if (code != TENON_DNNL_SCRATCH || threads == 1) return code;
  }
}

static void tenon_dnnl_free(const tenon_dnnl_function* f, tenon_dnnl_objects* objects) {
  int32_t i;
  for (i = 0; objects->primitives && objects->scratch && i < f->num_steps; ++i) {
    if (objects->primitives[i]) dnnl_primitive_destroy(objects->primitives[i]);
    if (objects->scratch[i]) dnnl_memory_destroy(objects->scratch[i]);
  }
  for (i = 0; objects->memories && i < f->num_memories; ++i)
    if (objects->memories[i]) dnnl_memory_destroy(objects->memories[i]);
  if (objects->stream) dnnl_stream_destroy(objects->stream);
  free(objects->primitives);
  free(objects->step_threads);
  free(objects->scratch);
  free(objects->memories);
  free(objects);
}

static int32_t tenon_dnnl_make(const tenon_dnnl_function* f, int threads,
                               tenon_dnnl_objects** made) {
  tenon_dnnl_objects* objects = (tenon_dnnl_objects*)calloc(1, sizeof(tenon_dnnl_objects));
  const size_t steps = (size_t)f->num_steps;
  int32_t i, code = 0;
  if (!objects) return TENON_DNNL_NO_MEMORY;
  objects->threads = threads;
  objects->primitives = (dnnl_primitive_t*)calloc(steps, sizeof(dnnl_primitive_t));
  objects->step_threads = (int*)calloc(steps, sizeof(int));
  objects->scratch = (dnnl_memory_t*)calloc(steps, sizeof(dnnl_memory_t));
  objects->memories = (dnnl_memory_t*)calloc((size_t)f->num_memories, sizeof(dnnl_memory_t));
  if (!objects->primitives || !objects->step_threads || !objects->scratch || !objects->memories)
    code = TENON_DNNL_NO_MEMORY;
  if (!code && !tenon_dnnl_engine &&
      dnnl_engine_create(&tenon_dnnl_engine, dnnl_cpu, 0) != dnnl_success)
    code = TENON_DNNL_NO_ENGINE;
  if (!code && dnnl_stream_create(&objects->stream, tenon_dnnl_engine, dnnl_stream_default_flags) !=
                   dnnl_success)
    code = TENON_DNNL_NO_ENGINE;
  for (i = 0; !code && i < f->num_memories; ++i)
    if (dnnl_memory_create(&objects->memories[i], &f->layouts[f->memories[i].descriptor],
                           tenon_dnnl_engine, DNNL_MEMORY_NONE) != dnnl_success)
      code = TENON_DNNL_NO_MEMORY;
  for (i = 0; !code && i < f->num_steps; ++i) code = tenon_dnnl_make_step(f, objects, i);
  if (code) {
    tenon_dnnl_free(f, objects);
    return code;
  }
  *made = objects;
  return 0;
}

static int tenon_dnnl_pass(dnnl_exec_arg_t* args, int n, int name, dnnl_memory_t memory) {
  args[n].arg = name;
  args[n].memory = memory;
  return n + 1;
}

static dnnl_status_t tenon_dnnl_run_step(const tenon_dnnl_function* f,
                                         const tenon_dnnl_objects* objects, int32_t i) {
  const tenon_dnnl_step* step = &f->steps[i];
  const dnnl_memory_t* memories = objects->memories;
  dnnl_exec_arg_t args[9 + TENON_DNNL_MAX_POSTS];
  int32_t p;
  int n = tenon_dnnl_pass(args, 0, DNNL_ARG_SRC, memories[step->src]);
  n = tenon_dnnl_pass(args, n, DNNL_ARG_DST, memories[step->dst]);
  if (step->weights >= 0)
    n = tenon_dnnl_pass(args, n,
                        step->kind == TENON_DNNL_BINARY ? DNNL_ARG_SRC_1 : DNNL_ARG_WEIGHTS,
                        memories[step->weights]);
  if (step->bias >= 0) n = tenon_dnnl_pass(args, n, DNNL_ARG_BIAS, memories[step->bias]);
  if (step->statistics[0] >= 0)
    n = tenon_dnnl_pass(args, n, DNNL_ARG_MEAN, memories[step->statistics[0]]);
  if (step->statistics[1] >= 0)
    n = tenon_dnnl_pass(args, n, DNNL_ARG_VARIANCE, memories[step->statistics[1]]);
  if (step->scaling[0] >= 0)
    n = tenon_dnnl_pass(args, n, DNNL_ARG_SCALE, memories[step->scaling[0]]);
  if (step->scaling[1] >= 0)
    n = tenon_dnnl_pass(args, n, DNNL_ARG_SHIFT, memories[step->scaling[1]]);
  for (p = 0; p < step->num_posts; ++p)
    if (step->posts[p].kind == TENON_DNNL_POST_BINARY)
      n = tenon_dnnl_pass(args, n, DNNL_ARG_ATTR_MULTIPLE_POST_OP(p) | DNNL_ARG_SRC_1,
                          memories[step->posts[p].memory]);
  if (objects->scratch[i]) n = tenon_dnnl_pass(args, n, DNNL_ARG_SCRATCHPAD, objects->scratch[i]);
  omp_set_num_threads(objects->step_threads[i]);
  return dnnl_primitive_execute(objects->primitives[i], objects->stream, n, args);
}

/* The objects of a function that no other call uses now, for this number of threads. */
static int32_t tenon_dnnl_take(tenon_dnnl_function* f, int threads, tenon_dnnl_objects** taken) {
  tenon_dnnl_objects* objects;
  int32_t code = 0;
  pthread_mutex_lock(&tenon_dnnl_lock);
  objects = f->objects;
  while (objects && (objects->is_busy || objects->threads != threads)) objects = objects->next;
  if (!objects) {
    code = tenon_dnnl_make(f, threads, &objects);
    if (!code) {
      if (!f->objects) {
        f->next = tenon_dnnl_functions;
        tenon_dnnl_functions = f;
      }
      objects->next = f->objects;
      f->objects = objects;
    }
  }
  if (!code) objects->is_busy = 1;
  pthread_mutex_unlock(&tenon_dnnl_lock);
  *taken = objects;
  return code;
}

/* When the program is unloaded, or its process ends. */
__attribute__((destructor)) static void tenon_dnnl_release(void) {
  for (; tenon_dnnl_functions; tenon_dnnl_functions = tenon_dnnl_functions->next)
    while (tenon_dnnl_functions->objects) {
      tenon_dnnl_objects* objects = tenon_dnnl_functions->objects;
      tenon_dnnl_functions->objects = objects->next;
      tenon_dnnl_free(tenon_dnnl_functions, objects);
    }
  if (tenon_dnnl_engine) dnnl_engine_destroy(tenon_dnnl_engine);
  tenon_dnnl_engine = NULL;
}

/* `pointers`: inputs, outputs, then the scratch memory, which is number `scratch`. */
static int32_t tenon_dnnl_run(tenon_dnnl_function* f, void* const* pointers, int32_t scratch,
                              int32_t threads) {
  const int before = omp_get_max_threads();
  tenon_dnnl_objects* objects = NULL;
  int32_t i, code = tenon_dnnl_take(f, threads < 1 ? 1 : threads, &objects);
  for (i = 0; !code && i < f->num_memories; ++i)
    code = (int32_t)dnnl_memory_set_data_handle(
        objects->memories[i], (char*)pointers[f->memories[i].pointer] + f->memories[i].offset);
  for (i = 0; !code && i < f->num_steps; ++i)
    if (objects->scratch[i])
      code = (int32_t)dnnl_memory_set_data_handle(objects->scratch[i],
                                                  (char*)pointers[scratch] + f->steps[i].scratch);
  for (i = 0; !code && i < f->num_steps; ++i) code = (int32_t)tenon_dnnl_run_step(f, objects, i);
  if (!code) code = (int32_t)dnnl_stream_wait(objects->stream);
  omp_set_num_threads(before);
  if (objects) {
    pthread_mutex_lock(&tenon_dnnl_lock);
    objects->is_busy = 0;
    pthread_mutex_unlock(&tenon_dnnl_lock);
  }
  return code;
}
