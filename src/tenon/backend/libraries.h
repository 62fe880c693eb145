// The libraries that a program is linked with: where the functions of T.call_extern are found.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tenon/backend/c_compiler.h"
#include "tenon/backend/functions.h"

namespace tenon::backend {

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
                     std::shared_ptr<const TemporaryFolder> own = {});
  ~Libraries();

  bool empty() const { return files_.empty(); }
  /// As they were given, for messages: "`a.so` and `b.c`".
  std::string names() const;
  /// The function's address in the first library that has it; null where none has.
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

  /// Every function that a program calls is in one of the libraries; one that is called without a
  /// signature may also be the C library's.
  /// \throws CompileError (kLinkFailed) at each call of one that is not: its symbol, who calls it,
  /// what to do.
  void check(const std::vector<LibraryFunction>& functions) const;

 private:
  /// A shared library, or those that a script of the linker's stands for.
  void open(const std::string& path, const std::string& given);
  static void* must_load(const std::string& path, const std::string& given);

  std::vector<std::string> files_, inputs_;
  std::vector<void*> handles_;
  std::vector<size_t> first_handle_;  // of each file
  std::unique_ptr<TemporaryFolder> folder_;
  std::shared_ptr<const TemporaryFolder> own_;
};

}  // namespace tenon::backend
