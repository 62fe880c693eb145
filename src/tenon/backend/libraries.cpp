// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/libraries.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>

#include "tenon/backend/linker_script.h"
#include "tenon/runtime/shared_object.h"
#include "tenon/support/limit_codes.h"

namespace tenon::backend {

namespace fs = std::filesystem;

// Where the loader found library `name`.
static std::string loaded_file(void* handle, const std::string& name) {
  char folder[4096] = "";
  if (name.find('/') != std::string::npos) return name;
  return dlinfo(handle, RTLD_DI_ORIGIN, folder) == 0 && *folder ? std::string(folder) + "/" + name
                                                                : name;
}

// The file that `address` is in.
static const void* base_of(const void* address) {
  Dl_info info = {};
  return address && dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

// Of the C library; it holds `system`, and every library depends on it.
static const void* c_library_base() {
  static const void* const base = base_of(dlsym(RTLD_DEFAULT, "system"));
  return base;
}

// Functions of numbers alone, which do nothing but give one.
static bool is_mathematical(const std::string& symbol) {
  static const void* const library = base_of(dlsym(RTLD_DEFAULT, "fmodf"));
  static const std::set<std::string> kWithPointers = {
      "frexp",  "frexpf",  "modf",  "modff",  "remquo",   "remquof",   "sincos", "sincosf",
      "lgamma", "lgammaf", "gamma", "gammaf", "lgamma_r", "lgammaf_r", "nan",    "nanf"};
  const void* address = dlsym(RTLD_DEFAULT, symbol.c_str());
  return address && library && base_of(address) == library && !kWithPointers.count(symbol);
}

Libraries::Libraries(std::vector<std::string> files, std::shared_ptr<const TemporaryFolder> own,
                     Trust trust)
    : files_(std::move(files)), trust_(trust), own_(std::move(own)) {
  for (size_t i = 0; i < files_.size(); ++i) {
    const std::string& given = files_[i];
    first_handle_.push_back(handles_.size());
    const fs::path path(given);
    const bool exists = fs::is_regular_file(path);
    const std::string ending = path.extension().string();
    const bool is_c = ending == ".c", is_static = ending == ".a" || ending == ".o";
    if (!exists) {
      // A bare name of a shared library is looked for where the system's libraries are.
      const bool by_name = !is_c && !is_static && !path.has_parent_path();
      if (!by_name) throw CompileError(kFileError, {}, "--link {}: there is no such file", given);
      open(given, given);
      continue;
    }
    const std::string absolute = fs::absolute(path).lexically_normal().string();
    if (!is_c && !is_static) {
      open(absolute, given);
      continue;
    }
    if (!folder_) folder_ = std::make_unique<TemporaryFolder>();
    const std::string what = "library `" + given + "`";
    const std::string shared = folder_->file("library" + std::to_string(i) + ".so");
    std::string object = absolute;
    if (is_c) {
      object = folder_->file("library" + std::to_string(i) + ".o");
      run_c_compiler({"-c", "-O2", "-fPIC", "-ffp-contract=off", "-o", object, absolute}, what);
    }
    std::vector<std::string> arguments = {"-shared", "-o", shared};
    if (ending == ".a")
      arguments.insert(arguments.end(), {"-Wl,--whole-archive", object, "-Wl,--no-whole-archive"});
    else
      arguments.push_back(object);
    // It may call what the shared libraries before it have.
    for (const std::string& input : inputs_)
      if (input.find(".so") != std::string::npos) arguments.push_back(input);
    arguments.push_back("-lm");
    run_c_compiler(arguments, what);
    handles_.push_back(must_load(shared, given));
    inputs_.push_back(object);
  }
}

Libraries::~Libraries() {
  for (void* handle : handles_) dlclose(handle);
}

static void* load(const std::string& path) { return runtime::open_shared_object(path); }

void* Libraries::must_load(const std::string& path, const std::string& given) {
  if (void* handle = load(path)) return handle;
  const char* reason = dlerror();
  throw CompileError(kLinkFailed, {}, "--link {}: {}", given,
                     reason ? reason : "it cannot be loaded");
}

void Libraries::open(const std::string& path, const std::string& given) {
  const bool is_file = path.find('/') != std::string::npos;
  if (void* handle = load(path)) {
    handles_.push_back(handle);
    inputs_.push_back(is_file ? path : loaded_file(handle, path));
    return;
  }
  // What the loader does not take may be a script of the linker's.
  const std::vector<std::string> parts =
      is_file ? libraries_of_script(path) : libraries_behind(path);
  if (parts.empty()) (void)must_load(path, given);  // throws, with the loader's words
  for (const std::string& part : parts) {
    handles_.push_back(must_load(part, given));
    inputs_.push_back(loaded_file(handles_.back(), part));
  }
}

std::string Libraries::names() const {
  std::string text;
  for (size_t i = 0; i < files_.size(); ++i)
    text += (i == 0 ? "`" : i + 1 == files_.size() ? " and `" : ", `") + files_[i] + "`";
  return text;
}

// A function of the C library that was found since a library depends on it.
bool Libraries::is_hidden(const void* address) const {
  if (trust_ == Trust::kAnything || !c_library_base() || base_of(address) != c_library_base())
    return false;
  for (void* handle : handles_) {
    const link_map* map = nullptr;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 &&
        reinterpret_cast<const void*>(map->l_addr) == c_library_base())
      return false;
  }
  return true;
}

static std::atomic<void*> kernel_mark = nullptr;

void set_kernel_mark(void* function) { kernel_mark = function; }

void* Libraries::find(const std::string& symbol) const {
  if (symbol == kKernelMark && kernel_mark) return kernel_mark;
  for (void* handle : handles_)
    if (void* address = dlsym(handle, symbol.c_str()); address && !is_hidden(address))
      return address;
  return nullptr;
}

std::vector<std::string> Libraries::without(const std::set<std::string>& symbols) const {
  std::vector<std::string> out;
  for (size_t i = 0; i < files_.size(); ++i) {
    const size_t end = i + 1 < files_.size() ? first_handle_[i + 1] : handles_.size();
    bool used = false;
    for (size_t h = first_handle_[i]; h < end && !used; ++h)
      used = std::any_of(symbols.begin(), symbols.end(), [&](const std::string& symbol) {
        return dlsym(handles_[h], symbol.c_str()) != nullptr;
      });
    for (size_t later = i + 1; later < files_.size() && !used; ++later)
      used = files_[later].ends_with(".a") || files_[later].ends_with(".o") ||
             files_[later].ends_with(".c");
    if (!used) out.push_back(files_[i]);
  }
  return out;
}

// Called by its name alone, in no library that was named, and found in the process.
bool Libraries::is_untrusted(const LibraryFunction& function) const {
  return !function.function && trust_ != Trust::kAnything && !find(function.symbol) &&
         dlsym(RTLD_DEFAULT, function.symbol.c_str()) && function.symbol != kKernelMark &&
         !is_mathematical(function.symbol);
}

void Libraries::report_untrusted(const LibraryFunction& function, Diagnostics& diagnostics) {
  diagnostics.error(kUntrustedCode, function.origin,
                    "`{}` calls `{}` of the system, with the rights of this process; name the "
                    "library that has it with --link, or permit it with --allow-code "
                    "(docs/trust.md)",
                    function.caller, function.symbol);
}

void Libraries::check_trust(const std::vector<LibraryFunction>& functions) const {
  Diagnostics diagnostics;
  for (const LibraryFunction& function : functions)
    if (is_untrusted(function)) report_untrusted(function, diagnostics);
  diagnostics.throw_if_any();
}

void Libraries::check(const std::vector<LibraryFunction>& functions) const {
  Diagnostics diagnostics;
  for (const LibraryFunction& function : functions) {
    if (find(function.symbol)) continue;
    if (is_untrusted(function)) {
      report_untrusted(function, diagnostics);
      continue;
    }
    if (!function.function && dlsym(RTLD_DEFAULT, function.symbol.c_str())) continue;
    const std::string declared =
        function.function ? " as `" + function.function->prototype() + "`" : "";
    if (empty())
      diagnostics.error(kLinkFailed, function.origin,
                        "`{}` calls library function `{}`, and no library is given; name the one "
                        "that has it{} with --link",
                        function.caller, function.symbol, declared);
    else
      diagnostics.error(
          kLinkFailed, function.origin,
          "`{}` calls library function `{}`, which {} {} not have; add it there{}, or "
          "name another library with --link",
          function.caller, function.symbol, names(), files_.size() > 1 ? "do" : "does", declared);
  }
  diagnostics.throw_if_any();
}

}  // namespace tenon::backend
