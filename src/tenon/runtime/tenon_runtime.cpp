// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/tenon_runtime.h"

#include <algorithm>
#include <new>
#include <span>
#include <string>

#include "tenon/runtime/program.h"
#include "tenon/runtime/strings.h"

struct TenonModel {
  std::shared_ptr<tenon::runtime::Program> program;
};

namespace tenon::runtime {

static std::string& last_error() {
  static thread_local std::string message;
  return message;
}

/// Runs `action`; no exception leaves it.
template <typename Action>
static int32_t guarded(Action action) noexcept {
  try {
    try {
      action();
      return TENON_OK;
    } catch (const Error& error) {
      last_error() = error.what();
      return error.code();
    } catch (const std::bad_alloc&) {
      last_error() = "out of memory";
      return TENON_ERROR_MEMORY;
    } catch (const std::exception& error) {
      last_error() = error.what();
      return TENON_ERROR_INTERNAL;
    } catch (...) {
      last_error() = "a packed function threw an exception";
      return TENON_ERROR_LIBRARY;
    }
  } catch (...) {  // no memory for the message either
    return TENON_ERROR_MEMORY;
  }
}

static void require(bool holds, const char* what) {
  if (!holds) throw Error(TENON_ERROR_ARGUMENT, what);
}

template <typename T>
static std::span<T> tensors(T* first, int32_t count, const char* what) {
  require(count == 0 || (count > 0 && first != nullptr), what);
  return {first, static_cast<size_t>(count)};
}

extern "C" {

int32_t tenon_model_load(const char* path, const char* prefix, TenonModel** model) {
  return guarded([&] {
    require(path != nullptr && model != nullptr,
            "`tenon_model_load` needs a path and a place for the model");
    *model = nullptr;
    *model = new TenonModel{Program::load(path, prefix != nullptr ? prefix : "")};
  });
}

int32_t tenon_model_from_program(const TenonProgram* program, const void* constants,
                                 TenonModel** model) {
  return guarded([&] {
    require(model != nullptr, "`tenon_model_from_program` needs a place for the model");
    *model = nullptr;
    *model = new TenonModel{Program::wrap(program, constants)};
  });
}

void tenon_model_free(TenonModel* model) { delete model; }

const TenonProgram* tenon_model_program(const TenonModel* model) {
  return model != nullptr ? &model->program->declaration() : nullptr;
}

int32_t tenon_model_set_threads(TenonModel* model, int32_t threads) {
  return guarded([&] {
    require(model != nullptr, "`tenon_model_set_threads` needs a model");
    model->program->set_threads(threads);
  });
}

int32_t tenon_model_shapes(const TenonModel* model, const DLTensor* const* inputs,
                           int32_t input_count, int64_t* output_dims, int64_t* workspace_bytes) {
  return guarded([&] {
    require(model != nullptr, "`tenon_model_shapes` needs a model");
    Program::Shapes shapes =
        model->program->shapes(tensors(inputs, input_count, "inputs are null"));
    if (output_dims != nullptr)
      std::copy(shapes.output_dims.begin(), shapes.output_dims.end(), output_dims);
    if (workspace_bytes != nullptr) *workspace_bytes = shapes.workspace_bytes;
  });
}

int32_t tenon_model_run(TenonModel* model, const DLTensor* const* inputs, int32_t input_count,
                        DLTensor* const* outputs, int32_t output_count) {
  return guarded([&] {
    require(model != nullptr, "`tenon_model_run` needs a model");
    model->program->run(tensors(inputs, input_count, "inputs are null"),
                        tensors(outputs, output_count, "outputs are null"));
  });
}

void tenon_release_strings(DLTensor* tensor) {
  if (tensor != nullptr) release_texts(*tensor);
}

int32_t tenon_register_function(const char* name, TenonPackedFunction function, void* context) {
  return guarded([&] {
    require(name != nullptr, "`tenon_register_function` needs a name");
    register_packed(name, {function, context, nullptr});
  });
}

int32_t tenon_unregister_function(const char* name) {
  return guarded([&] {
    require(name != nullptr, "`tenon_unregister_function` needs a name");
    if (!unregister_packed(name))
      throw Error(TENON_ERROR_ARGUMENT,
                  "there is no registered function `" + std::string(name) + "`");
  });
}

const char* tenon_last_error(void) { return last_error().c_str(); }

}  // extern "C"

}  // namespace tenon::runtime
