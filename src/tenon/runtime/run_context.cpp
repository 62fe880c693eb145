// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/run_context.h"

#include <new>

#include "tenon/runtime/error.h"

namespace tenon::runtime {

static std::string filled_in(const char* message, int64_t value, int64_t bound) {
  std::string text = message != nullptr ? message : "";
  auto replace = [&](const std::string& mark, int64_t number) {
    std::string digits = std::to_string(number);
    for (size_t at = text.find(mark); at != std::string::npos;
         at = text.find(mark, at + digits.size()))
      text.replace(at, mark.size(), digits);
  };
  replace("{value}", value);
  replace("{bound}", bound);
  return text;
}

static std::string code_text(int32_t code) {
  switch (code) {
    case TENON_ERROR_ARGUMENT: return "an argument does not fit";
    case TENON_ERROR_INDEX: return "an index is out of range";
    case TENON_ERROR_SHAPE: return "a dimension does not fit";
    case TENON_ERROR_VALUE: return "a value is not allowed";
    case TENON_ERROR_MEMORY: return "memory could not be allocated";
    case TENON_ERROR_LIBRARY: return "a library call failed";
    case TENON_ERROR_UNSUPPORTED: return "not supported";
    default: return "error " + std::to_string(code);
  }
}

RunContext::RunContext(ThreadPool* pool, int64_t* output_dims) : pool_(pool) {
  context_.abi_version = TENON_ABI_VERSION;
  context_.struct_size = sizeof(TenonContext);
  context_.state = this;
  context_.parallel_for = parallel_for;
  context_.report = report;
  context_.output_dims = output_dims;
  context_.threads = pool == nullptr ? 1 : pool->threads();
  context_.call_packed = call_packed;
  context_.provide_memory = provide_memory;
  context_.provide_output = provide_output;
}

/// `give` is called with the provider; what it throws is reported.
template <typename Give>
static int32_t provide(TenonContext* context, MemoryProvider* provider, void** memory, Give give) {
  try {
    if (provider == nullptr)
      return context->report(context, TENON_ERROR_INTERNAL, nullptr,
                             "memory is asked for outside of a run", 0, 0);
    *memory = give(*provider);
    return TENON_OK;
  } catch (const Error& error) {
    return context->report(context, error.code(), nullptr, error.what(), 0, 0);
  } catch (const std::bad_alloc&) {
    return context->report(context, TENON_ERROR_MEMORY, nullptr, "out of memory", 0, 0);
  }
}

int32_t RunContext::provide_memory(TenonContext* context, int32_t slot, int64_t bytes,
                                   void** memory) {
  return provide(context, static_cast<RunContext*>(context->state)->provider_, memory,
                 [&](MemoryProvider& provider) { return provider.memory(slot, bytes); });
}

int32_t RunContext::provide_output(TenonContext* context, int32_t output, const int64_t* dims,
                                   void** memory) {
  return provide(context, static_cast<RunContext*>(context->state)->provider_, memory,
                 [&](MemoryProvider& provider) { return provider.output(output, dims); });
}

int32_t RunContext::parallel_for(TenonContext* context, TenonTask body, void* env, int64_t tasks) {
  RunContext* self = static_cast<RunContext*>(context->state);
  // Only the thread that runs the program is outside of all tasks, so nobody else writes or reads
  // the count just now.
  if (ThreadPool::current_task() < 0) ++self->loops_;
  if (self->pool_ != nullptr) return self->pool_->parallel_for(context, body, env, tasks);
  int32_t code = TENON_OK;
  for (int64_t task = 0; task < tasks && code == TENON_OK; ++task) code = body(context, env, task);
  return code;
}

int32_t RunContext::report(TenonContext* context, int32_t code, const char* where,
                           const char* message, int64_t value, int64_t bound) {
  std::string text;
  try {
    text = filled_in(message, value, bound);
  } catch (const std::bad_alloc&) {
    text.clear();  // the code alone must do
  }
  return static_cast<RunContext*>(context->state)->record(code, where, text, nullptr);
}

int32_t RunContext::record(int32_t code, const char* where, const std::string& message,
                           std::exception_ptr thrown) {
  int64_t task = ThreadPool::current_task();
  std::lock_guard lock(mutex_);
  bool lower_task = task >= 0 && task < task_ && loop_ == loops_;
  // Who asked for something says where that was, after what the host says was wrong with it.
  const auto with_place = [&](const std::string& text) {
    has_place_ = where != nullptr && *where != 0;
    return has_place_ ? "`" + std::string(where) + "`: " + text : text;
  };
  try {
    if (code_ == code && !has_place_ && !lower_task) message_ = with_place(message_);
  } catch (const std::bad_alloc&) {  // then without
  }
  if (code_ != TENON_OK && !lower_task) return code;
  code_ = code;
  loop_ = loops_;
  task_ = task;
  std::swap(thrown_, thrown);
  try {
    message_ = with_place(message);
  } catch (const std::bad_alloc&) {
    message_.clear();
  }
  return code;
}

int32_t RunContext::call_string_function(const char* name, const TenonValue* args, int32_t count,
                                         const TenonValue* results, const char* where) {
  try {
    const StringFunction function = find_string_function(name);
    if (function == nullptr || strings_ == nullptr)
      throw Error(TENON_ERROR_INTERNAL, "there is no table of strings");
    function(*strings_, {args, static_cast<size_t>(count)},
             *static_cast<const DLTensor*>(results[0].pointer));
    return TENON_OK;
  } catch (const Error& error) {
    return report(&context_, error.code(), where, error.what(), 0, 0);
  } catch (const std::bad_alloc&) {
    return report(&context_, TENON_ERROR_MEMORY, where, "out of memory", 0, 0);
  }
}

int32_t RunContext::call_packed(TenonContext* context, int32_t function, TenonValue* args,
                                int32_t* codes, int32_t count, TenonValue* results,
                                int32_t* result_codes, int32_t result_count, const char* where) {
  RunContext* self = static_cast<RunContext*>(context->state);
  if (function < 0 || static_cast<size_t>(function) >= self->packed_.size())
    return report(context, TENON_ERROR_INTERNAL, where, "packed function {value} of {bound}",
                  function, static_cast<int64_t>(self->packed_.size()));
  const PackedFunction& callee = self->packed_[static_cast<size_t>(function)];
  if (callee.function == nullptr)
    return self->call_string_function(self->packed_table_[function].name, args, count, results,
                                      where);
  try {
    const PackedCall call{where, results, result_count, self->memory_};
    const PackedCallScope scope(call);
    return runtime::call_packed(context, self->packed_table_[function].name, callee, args, codes,
                                count, results, result_codes, result_count, where);
  } catch (const std::bad_alloc&) {
    return report(context, TENON_ERROR_MEMORY, where, "out of memory", 0, 0);
  } catch (const Error& error) {  // a shape whose size overflows, or what the function says
    return self->record(error.code(), where, error.what(), nullptr);
  } catch (...) {
    return self->record(TENON_ERROR_LIBRARY, where, "a packed function threw an exception",
                        std::current_exception());
  }
}

void RunContext::check(int32_t code, const std::string& what) const {
  if (code == TENON_OK) return;
  if (thrown_) std::rethrow_exception(thrown_);
  if (code_ != TENON_OK && !message_.empty()) throw Error(code_, message_);
  throw Error(code, what + " failed: " + code_text(code));
}

}  // namespace tenon::runtime
