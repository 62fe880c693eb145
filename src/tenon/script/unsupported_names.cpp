// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/unsupported_names.h"

#include <array>

namespace tenon::script {

static constexpr std::string_view kGpu =
    "threads or matrix units of a GPU; Tenon compiles for CPUs";
static constexpr std::string_view kHost =
    "part of TVM's calling convention, which its lowering makes; write the kernel before that";
static constexpr std::string_view kScalable =
    "vectors whose length is known at run time only; write a number of lanes";
static constexpr std::string_view kDevice = "a device other than a CPU";

struct Row {
  std::string_view name;  // after "T."; ending with `*`: names that begin so
  std::string_view reason;
};
static constexpr auto kRows = std::to_array<Row>({
    {"ptx*", kGpu},
    {"cuda*", kGpu},
    {"mma_*", kGpu},
    {"simdgroup_*", kGpu},
    {"make_filled_simdgroup_matrix", kGpu},
    {"cooperative_tensor*", kGpu},
    {"tvm_warp_*", kGpu},
    {"tvm_load_matrix_sync", kGpu},
    {"tvm_store_matrix_sync", kGpu},
    {"tvm_mma_sync", kGpu},
    {"tvm_bmma_sync", kGpu},
    {"tvm_fill_fragment", kGpu},
    {"tvm_storage_sync", kGpu},
    {"tvm_thread_allreduce", kGpu},
    {"tvm_thread_invariant", kGpu},
    {"tvm_global_barrier_kinit", kGpu},
    {"tvm_kernel_replace_point", kGpu},
    {"create_barriers", kGpu},
    {"launch_thread", kGpu},
    {"env_thread", kGpu},
    {"thread_id*", kGpu},
    {"lane_id", kGpu},
    {"warp*", kGpu},
    {"wg*", kGpu},
    {"cta*", kGpu},
    {"cluster*", kGpu},
    {"thread_return", kGpu},
    {"device_entry", kGpu},
    {"alloc_shared", kGpu},
    {"shared_scalar", kGpu},
    {"call_kernel", kGpu},
    {"nvshmem*", kGpu},
    {"metal*", kDevice},
    {"webgpu*", kDevice},
    {"nki*", kDevice},
    {"texture2d_*", kDevice},
    {"dma_*", kDevice},
    {"tile*", kDevice},
    {"tvm_struct_get", kHost},
    {"tvm_struct_set", kHost},
    {"tvm_stack_*", kHost},
    {"tvm_check_return", kHost},
    {"tvm_throw_last_error", kHost},
    {"tvm_context_id", kHost},
    {"lookup_param", kHost},
    {"anylist_*", kHost},
    {"call_packed_lowered", kHost},
    {"call_cpacked_lowered", kHost},
    {"tvm_call_packed_lowered", kHost},
    {"tvm_call_cpacked_lowered", kHost},
    {"TVMBackend*", kHost},
    {"vscale", kScalable},
    {"get_active_lane_mask", kScalable},
    {"get_vscale_expr", kScalable},
    {"dp4a", "a dot product of four bytes of a GPU; write it as a sum of products"},
    {"q_multiply_shift_per_axis", "write T.q_multiply_shift with the shifts of the channel"},
    {"start_profile_intrinsic", "profiling marks; `tenon bench --per-kernel` measures kernels"},
    {"end_profile_intrinsic", "profiling marks; `tenon bench --per-kernel` measures kernels"},
    {"comm_reducer", "a reducer of tensor expressions; write a block with T.init() and an update"},
    {"Reduce", "a reduction of tensor expressions; write a block with T.init() and an update"},
    {"realize", "a form of the time before blocks; write T.alloc_buffer"},
    {"preflattened_buffer", "a form that TVM has given up; write T.match_buffer"},
    {"load", "access by pointer, which TVM has given up; write `A[i]`"},
    {"store", "access by pointer, which TVM has given up; write `A[i] = x`"},
    {"index_map", "maps of layouts are arguments of schedule primitives"},
    {"break_loop", "a loop runs to its end; put what it skips under `if`"},
    {"continue_loop", "a loop runs to its end; put what it skips under `if`"},
    {"If", "a form of TVM's builder; write `if`"},
    {"Then", "a form of TVM's builder; write `if`"},
    {"Else", "a form of TVM's builder; write `else`"},
    {"While", "a form of TVM's builder; write `while`"},
});

std::string why_unsupported(std::string_view path) {
  if (!path.starts_with("T.")) return "";
  path.remove_prefix(2);
  for (const Row& row : kRows) {
    const bool prefix = row.name.ends_with("*");
    const std::string_view name = row.name.substr(0, row.name.size() - (prefix ? 1 : 0));
    if (prefix ? path.starts_with(name) : path == name) return std::string(row.reason);
  }
  return "";
}

}  // namespace tenon::script
