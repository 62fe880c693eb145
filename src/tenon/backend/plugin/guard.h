// SPDX-License-Identifier: Apache-2.0
// Guards calls into foreign code: a crash or exception inside is an error of that code.
#pragma once

#include <functional>
#include <string>

namespace tenon::plugin {

/// Runs `body`, which calls a plugin; one such call at a time. A crash inside (SIGSEGV, SIGBUS,
/// SIGFPE, SIGILL, SIGABRT, a stack that overflows) or an exception that leaves it becomes an error
/// that names it.
///
/// A crash leaves by siglongjmp, on a stack of its own: what the foreign code held at that moment
/// (memory, locks) is lost, so all that a process should do afterwards is to report the error and
/// end. While `body` runs the handlers of these signals are Tenon's; what another thread raises
/// goes to those that were there before.
/// \param what  "callback `generate` of back end `acc`"
/// \throws CompileError (kPluginCrash, kBadBackend); those that `body` throws itself.
void guarded(const std::string& what, const std::function<void()>& body);

/// What a signal says of the code that it ended: "called abort (SIGABRT)".
const char* words_of_signal(int number);

}  // namespace tenon::plugin
