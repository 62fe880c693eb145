// The system's C compiler, for what Tenon is given or writes as C.
#pragma once

#include <string>
#include <vector>

namespace tenon::backend {

/// Runs `cc` (the environment's CC where it is set) with these arguments and waits for it.
/// \throws CompileError (kLinkFailed) with what it wrote where it fails or is not there; `what`
/// says what was to be made: "library `toy.c`".
void run_c_compiler(const std::vector<std::string>& arguments, const std::string& what);

/// A folder of its own under the system's folder for temporary files, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace tenon::backend
