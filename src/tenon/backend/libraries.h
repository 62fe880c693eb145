// SPDX-License-Identifier: Apache-2.0
// The libraries that a program is linked with; it resolves the functions of T.call_extern.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tenon/backend/c_compiler.h"
#include "tenon/backend/functions.h"
#include "tenon/support/diagnostics.h"

namespace tenon::backend {

/// What of the process itself a program may call by name.
enum class Trust : uint8_t {
  kNamed,     // functions of numbers; all else must be in a library that was named
  kAnything,  // whatever the process has
};

/// What programs that are timed kernel by kernel call (driver/kernel_times.h).
inline constexpr const char* kKernelMark = "tenon_kernel_mark";
/// Where it is, in a process whose program does not export it.
void set_kernel_mark(void* function);

/// Libraries by their files, opened in this process: `lib.so` (also a name that the system's loader
/// or linker finds, as `libm.so.6` or `libm.so`), `lib.a`, `file.o`, or `file.c`, which the
/// system's C compiler makes into one.
class Libraries {
 public:
  /// \throws CompileError kFileError where a file is missing; kLinkFailed where one cannot be
  /// opened or compiled, with the compiler's or loader's words.
  /// `own`, where there is one, is a folder whose files belong to the program: it lives as long as
  /// the linker may need it.
  explicit Libraries(std::vector<std::string> files,
                     std::shared_ptr<const TemporaryFolder> own = {}, Trust trust = Trust::kNamed);
  ~Libraries();

  bool empty() const { return files_.empty(); }
  Trust trust() const { return trust_; }
  /// As they were given, for messages: "`a.so` and `b.c`".
  std::string names() const;
  /// The function's address in the first library that has it; null where none has. A function of
  /// the C library, on which every library depends, is in none but where that was named.
  void* find(const std::string& symbol) const;
  /// The files that have none of these functions, and after which no file comes that could call
  /// theirs.
  std::vector<std::string> without(const std::set<std::string>& symbols) const;
  /// Files for a linker: shared libraries by absolute path, objects, archives.
  const std::vector<std::string>& linker_inputs() const { return inputs_; }

  /// A shared library that belongs to the program: what is linked with it takes it along.
  bool is_own(const std::string& input) const {
    return own_ && input.ends_with(".so") && input.starts_with(own_->path() + "/");
  }

  /// Every function that a program calls is in one of the libraries. One that is called without a
  /// signature may also be a function of numbers of the mathematical library, or with
  /// Trust::kAnything one that the process has.
  /// \throws CompileError at each call of one that is not: its symbol, who calls it, what to do
  /// (kLinkFailed; kUntrustedCode where the process has it).
  void check(const std::vector<LibraryFunction>& functions) const;
  /// Of these errors those of kUntrustedCode alone: what is called may be given later.
  void check_trust(const std::vector<LibraryFunction>& functions) const;

 private:
  /// A shared library, or those that a script of the linker's stands for.
  void open(const std::string& path, const std::string& given);
  static void* must_load(const std::string& path, const std::string& given);

  bool is_hidden(const void* address) const;
  bool is_untrusted(const LibraryFunction& function) const;
  static void report_untrusted(const LibraryFunction& function, Diagnostics& diagnostics);

  std::vector<std::string> files_, inputs_;
  Trust trust_ = Trust::kNamed;
  std::vector<void*> handles_;
  std::vector<size_t> first_handle_;  // of each file
  std::unique_ptr<TemporaryFolder> folder_;
  std::shared_ptr<const TemporaryFolder> own_;
};

}  // namespace tenon::backend
