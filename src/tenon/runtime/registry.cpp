// SPDX-License-Identifier: Apache-2.0
#include "tenon/runtime/registry.h"

#include <dlpack/dlpack.h>

#include <cstring>
#include <map>
#include <mutex>

#include "tenon/runtime/error.h"
#include "tenon/runtime/image_library.h"
#include "tenon/runtime/strings.h"
#include "tenon/runtime/tensor.h"

namespace tenon::runtime {

namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, PackedFunction> functions;
};

Registry& registry() {
  static Registry* const instance = new Registry;  // never destroyed: libraries unload late
  return *instance;
}

}  // namespace

void register_packed(const std::string& name, PackedFunction function) {
  if (name.empty() || function.function == nullptr)
    throw Error(TENON_ERROR_ARGUMENT, "a packed function needs a name and an address");
  Registry& all = registry();
  // What was there ends outside of the lock: its host's code may ask the registry.
  std::lock_guard lock(all.mutex);
  std::swap(all.functions[name], function);
}

std::string register_packed_beside(const std::string& name, PackedFunction function) {
  if (name.empty() || function.function == nullptr)
    throw Error(TENON_ERROR_ARGUMENT, "a packed function needs a name and an address");
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  std::string free = name;
  for (int i = 1; all.functions.count(free) > 0; ++i) free = name + "_" + std::to_string(i);
  all.functions.emplace(free, std::move(function));
  return free;
}

bool unregister_packed(const std::string& name) {
  Registry& all = registry();
  std::map<std::string, PackedFunction>::node_type taken;  // ends outside of the lock
  std::lock_guard lock(all.mutex);
  taken = all.functions.extract(name);
  return !taken.empty();
}

bool unregister_packed(const std::string& name, const void* context) {
  Registry& all = registry();
  std::map<std::string, PackedFunction>::node_type taken;
  std::lock_guard lock(all.mutex);
  const auto found = all.functions.find(name);
  if (found == all.functions.end() || found->second.context != context) return false;
  taken = all.functions.extract(found);
  return true;
}

std::optional<PackedFunction> find_packed(const std::string& name) {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  const auto found = all.functions.find(name);
  if (found != all.functions.end()) return found->second;
  const TenonPackedFunction own = find_image_function(name);
  return own == nullptr ? std::nullopt : std::optional(PackedFunction{own, nullptr, nullptr});
}

std::vector<std::string> packed_names() {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  std::vector<std::string> names;
  names.reserve(all.functions.size());
  for (const auto& [name, function] : all.functions) names.push_back(name);
  return names;
}

std::vector<PackedFunction> resolve_packed(std::span<const TenonPacked> table) {
  std::vector<PackedFunction> out;
  std::string missing;
  int count = 0;
  for (const TenonPacked& item : table) {
    if (item.function != nullptr) {
      out.push_back({item.function, nullptr, nullptr});
      continue;
    }
    const std::string name = item.name != nullptr ? item.name : "";
    const auto found = find_packed(name);
    if (!found && find_string_function(name) == nullptr) {
      missing += (missing.empty() ? "`" : ", `") + name + "`";
      ++count;
    }
    out.push_back(found.value_or(PackedFunction()));
  }
  if (count > 0)
    throw Error(TENON_ERROR_LOAD,
                "the program calls packed function" + std::string(count > 1 ? "s " : " ") +
                    missing + (count > 1 ? ", which are" : ", which is") +
                    " neither linked in nor registered; register " + (count > 1 ? "them" : "it") +
                    " with tenon_register_function before the program is loaded");
  return out;
}

static bool is_compact(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  int64_t expected = 1;
  for (int32_t i = tensor.ndim; i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

/// Copies what the function gave where the program wants it. \returns why that cannot be; or null
static const char* copy_result(const DLTensor& given, const DLTensor& wanted) {
  if (given.device.device_type != kDLCPU) return "gave a tensor that is not in CPU memory";
  if (given.dtype.code != wanted.dtype.code || given.dtype.bits != wanted.dtype.bits ||
      given.dtype.lanes != wanted.dtype.lanes)
    return "gave a tensor of another dtype than declared";
  bool same = given.ndim == wanted.ndim;
  for (int32_t i = 0; same && i < given.ndim; ++i) same = given.shape[i] == wanted.shape[i];
  if (!same) return "gave a tensor of another shape than declared";
  if (!is_compact(given)) return "gave a tensor with gaps; expected compact memory";
  const int64_t bytes = byte_count(given.dtype, {given.shape, static_cast<size_t>(given.ndim)});
  if (bytes > 0) std::memcpy(data_of(wanted), data_of(given), static_cast<size_t>(bytes));
  return nullptr;
}

int32_t call_packed(TenonContext* context, const char* name, const PackedFunction& function,
                    TenonValue* args, int32_t* codes, int32_t count, TenonValue* results,
                    int32_t* result_codes, int32_t result_count, const char* where) {
  const auto fail = [&](const std::string& what, int64_t value) {
    // The message must outlive the run; failures are rare and few.
    static std::mutex mutex;
    static std::map<std::string, int>* const texts = new std::map<std::string, int>;
    std::lock_guard lock(mutex);
    const std::string message = "packed function `" + std::string(name) + "` " + what;
    const char* kept = texts->try_emplace(message).first->first.c_str();
    return context->report(context, TENON_ERROR_LIBRARY, where, kept, value, 0);
  };
  std::vector<TenonValue> wanted(results, results + result_count);
  std::vector<int32_t> declared(result_codes, result_codes + result_count);
  const int32_t code =
      function.function(args, codes, count, results, result_codes, function.context);
  const char* wrong = nullptr;
  for (int32_t i = 0; i < result_count; ++i) {
    const bool is_managed =
        result_codes[i] == TENON_VALUE_MANAGED_TENSOR && results[i].pointer != nullptr;
    const bool wants_tensor = declared[static_cast<size_t>(i)] == TENON_VALUE_TENSOR;
    const TenonValue& place = wanted[static_cast<size_t>(i)];
    if (is_managed) {
      auto* managed = static_cast<DLManagedTensor*>(results[i].pointer);
      if (code == TENON_OK && wrong == nullptr && wants_tensor)
        wrong = copy_result(managed->dl_tensor, *static_cast<const DLTensor*>(place.pointer));
      if (managed->deleter != nullptr) managed->deleter(managed);
      results[i].integer = 0;
      result_codes[i] = TENON_VALUE_NONE;
    } else if (wants_tensor && code == TENON_OK && wrong == nullptr) {
      const bool filled =
          result_codes[i] == TENON_VALUE_TENSOR && results[i].pointer == place.pointer;
      if (!filled)
        wrong = "gave something else than the tensor that was to be filled or a DLManagedTensor";
    }
    if (wants_tensor) {
      results[i] = place;
      result_codes[i] = TENON_VALUE_TENSOR;
    }
  }
  if (code != TENON_OK) return fail("failed with code {value}", code);
  return wrong != nullptr ? fail(wrong, 0) : TENON_OK;
}

}  // namespace tenon::runtime
