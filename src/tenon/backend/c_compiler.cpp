// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/c_compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tenon/support/diagnostics.h"

extern char** environ;

namespace tenon::backend {

void run_c_compiler(const std::vector<std::string>& arguments, const std::string& what) {
  // CC may hold a wrapper and options: `ccache gcc`.
  std::vector<std::string> words;
  const char* chosen = std::getenv("CC");
  std::istringstream text(chosen && *chosen ? chosen : "cc");
  for (std::string word; text >> word;) words.push_back(word);
  const std::string compiler = words[0];
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const TemporaryFolder folder;
  const std::string log = folder.file("log");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawnp(&child, compiler.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error)
    throw CompileError(kLinkFailed, {},
                       "{} needs the C compiler `{}`, which does not start: {}; install one, or "
                       "name it in the environment's CC",
                       what, compiler, std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  std::ostringstream said;
  said << std::ifstream(log).rdbuf();
  constexpr size_t kMostText = 4000;
  std::string complaint = said.str().substr(0, kMostText);
  while (!complaint.empty() && complaint.back() == '\n') complaint.pop_back();
  throw CompileError(kLinkFailed, {}, "{} cannot be compiled by `{}`:\n{}", what, compiler,
                     complaint);
}

}  // namespace tenon::backend
