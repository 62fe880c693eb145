// SPDX-License-Identifier: Apache-2.0
// The host's side of a TenonContext: parallel loops and the first error of one call into generated
// code.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "tenon/runtime/abi.h"
#include "tenon/runtime/packed_call.h"
#include "tenon/runtime/registry.h"
#include "tenon/runtime/strings.h"
#include "tenon/runtime/thread_pool.h"

namespace tenon::runtime {

/// Where a program's memory comes from whose size it knows only when part of it has run.
class MemoryProvider {
 public:
  virtual ~MemoryProvider() = default;
  /// \throws Error (TENON_ERROR_MEMORY, TENON_ERROR_SHAPE)
  virtual void* memory(int32_t slot, int64_t bytes) = 0;
  virtual void* output(int32_t output, const int64_t* dims) = 0;
};

class RunContext {
 public:
  /// \param pool         for parallel loops; null: they run on the calling thread
  /// \param output_dims  see TenonContext
  explicit RunContext(ThreadPool* pool, int64_t* output_dims = nullptr);
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;

  TenonContext* context() { return &context_; }
  /// What the program's packed functions are: as many as its `table` has. Both must outlive this.
  void set_packed(const TenonPacked* table, std::span<const PackedFunction> functions) {
    packed_table_ = table;
    packed_ = functions;
  }

  /// What packed functions are handed is kept by this; null: nobody keeps it.
  void set_memory(std::shared_ptr<RunMemory> memory) { memory_ = std::move(memory); }

  /// Must outlive this. Without one there is no such memory.
  void set_provider(MemoryProvider* provider) { provider_ = provider; }
  /// The texts of the run. Must outlive this.
  void set_strings(StringTable* strings) { strings_ = strings; }

  /// \throws Error with what was reported, or with `code` where nothing was; unless `code` is
  /// TENON_OK. What a packed function threw, where that is the error.
  /// \param what  the function that returned it: "`resnet50`"
  void check(int32_t code, const std::string& what) const;

 private:
  static int32_t parallel_for(TenonContext* context, TenonTask body, void* env, int64_t tasks);
  static int32_t report(TenonContext* context, int32_t code, const char* where, const char* message,
                        int64_t value, int64_t bound);
  int32_t record(int32_t code, const char* where, const std::string& message,
                 std::exception_ptr thrown);
  int32_t call_string_function(const char* name, const TenonValue* args, int32_t count,
                               const TenonValue* results, const char* where);
  static int32_t call_packed(TenonContext* context, int32_t function, TenonValue* args,
                             int32_t* codes, int32_t count, TenonValue* results,
                             int32_t* result_codes, int32_t result_count, const char* where);
  static int32_t provide_memory(TenonContext* context, int32_t slot, int64_t bytes, void** memory);
  static int32_t provide_output(TenonContext* context, int32_t output, const int64_t* dims,
                                void** memory);

  TenonContext context_{};
  ThreadPool* pool_;
  MemoryProvider* provider_ = nullptr;
  const TenonPacked* packed_table_ = nullptr;
  std::span<const PackedFunction> packed_;
  std::shared_ptr<RunMemory> memory_;
  StringTable* strings_ = nullptr;
  int64_t loops_ = 0;  // outermost parallel loops begun so far

  std::mutex mutex_;  // of the report
  int32_t code_ = TENON_OK;
  bool has_place_ = false;
  int64_t loop_ = 0, task_ = -1;  // where it was made; task -1: outside parallel loops
  std::string message_;
  std::exception_ptr thrown_;  // by a packed function, of the report
};

}  // namespace tenon::runtime
