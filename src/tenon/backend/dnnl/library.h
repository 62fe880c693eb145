// SPDX-License-Identifier: Apache-2.0
// The functions of libdnnl that planning calls. The library is loaded at the first call: a program
// that uses no oneDNN loads neither it nor its threads.
#pragma once

#include <dnnl.h>

namespace tenon::backend::dnnl {

/// The address of a function of libdnnl or of what it needs.
/// \throws Refusal ("library") where it cannot be loaded.
void* library_function(const char* name);

/// A function by its name in the library's header; called like it.
template <typename Function>
class Loaded {
 public:
  constexpr explicit Loaded(const char* name) : name_(name) {}
  operator Function*() const { return reinterpret_cast<Function*>(library_function(name_)); }

 private:
  const char* name_;
};

#define TENON_DNNL_FUNCTION(name) inline constexpr Loaded<decltype(::name)> name(#name)
TENON_DNNL_FUNCTION(dnnl_batch_normalization_forward_desc_init);
TENON_DNNL_FUNCTION(dnnl_binary_desc_init);
TENON_DNNL_FUNCTION(dnnl_dilated_convolution_forward_desc_init);
TENON_DNNL_FUNCTION(dnnl_dilated_deconvolution_forward_desc_init);
TENON_DNNL_FUNCTION(dnnl_eltwise_forward_desc_init);
TENON_DNNL_FUNCTION(dnnl_engine_create);
TENON_DNNL_FUNCTION(dnnl_layer_normalization_forward_desc_init);
TENON_DNNL_FUNCTION(dnnl_matmul_desc_init);
TENON_DNNL_FUNCTION(dnnl_memory_create);
TENON_DNNL_FUNCTION(dnnl_memory_desc_equal);
TENON_DNNL_FUNCTION(dnnl_memory_desc_get_size);
TENON_DNNL_FUNCTION(dnnl_memory_desc_init_by_strides);
TENON_DNNL_FUNCTION(dnnl_memory_desc_init_by_tag);
TENON_DNNL_FUNCTION(dnnl_memory_destroy);
TENON_DNNL_FUNCTION(dnnl_pooling_v2_forward_desc_init);
TENON_DNNL_FUNCTION(dnnl_post_ops_append_binary);
TENON_DNNL_FUNCTION(dnnl_post_ops_append_eltwise);
TENON_DNNL_FUNCTION(dnnl_post_ops_append_sum);
TENON_DNNL_FUNCTION(dnnl_post_ops_create);
TENON_DNNL_FUNCTION(dnnl_post_ops_destroy);
TENON_DNNL_FUNCTION(dnnl_primitive_attr_create);
TENON_DNNL_FUNCTION(dnnl_primitive_attr_destroy);
TENON_DNNL_FUNCTION(dnnl_primitive_attr_set_post_ops);
TENON_DNNL_FUNCTION(dnnl_primitive_attr_set_scratchpad_mode);
TENON_DNNL_FUNCTION(dnnl_primitive_create);
TENON_DNNL_FUNCTION(dnnl_primitive_desc_destroy);
TENON_DNNL_FUNCTION(dnnl_primitive_desc_iterator_create);
TENON_DNNL_FUNCTION(dnnl_primitive_desc_iterator_destroy);
TENON_DNNL_FUNCTION(dnnl_primitive_desc_iterator_fetch);
TENON_DNNL_FUNCTION(dnnl_primitive_desc_iterator_next);
TENON_DNNL_FUNCTION(dnnl_primitive_desc_query);
TENON_DNNL_FUNCTION(dnnl_primitive_desc_query_md);
TENON_DNNL_FUNCTION(dnnl_primitive_destroy);
TENON_DNNL_FUNCTION(dnnl_primitive_execute);
TENON_DNNL_FUNCTION(dnnl_reduction_desc_init);
TENON_DNNL_FUNCTION(dnnl_reorder_primitive_desc_create);
TENON_DNNL_FUNCTION(dnnl_softmax_v2_forward_desc_init);
TENON_DNNL_FUNCTION(dnnl_stream_create);
TENON_DNNL_FUNCTION(dnnl_stream_destroy);
TENON_DNNL_FUNCTION(dnnl_stream_wait);
TENON_DNNL_FUNCTION(dnnl_version);
#undef TENON_DNNL_FUNCTION
inline constexpr Loaded<void(int)> omp_set_num_threads("omp_set_num_threads");
inline constexpr Loaded<int()> omp_get_max_threads("omp_get_max_threads");

}  // namespace tenon::backend::dnnl
