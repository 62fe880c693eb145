// SPDX-License-Identifier: Apache-2.0
// The callbacks of a back end, whether its code runs in this process or in another.
#pragma once

#include <memory>
#include <string>

#include "tenon/backend/plugin/answer.h"
#include "tenon/backend/plugin/match.h"

namespace tenon::plugin {

/// Each is called only where the back end has it. `what` names the callback in errors.
/// \throws CompileError (kPluginCrash, kPluginExit, kPluginHang, kBadBackend).
class Hooks {
 public:
  virtual ~Hooks() = default;
  virtual int32_t check(const std::string& what, const TenonMatch& match, TenonAnswer& answer) = 0;
  virtual double cost(const std::string& what, const TenonMatch& match) = 0;
  virtual int64_t scratch(const std::string& what, const TenonMatch& match) = 0;
  virtual int32_t pack(const std::string& what, const TenonMatch& match, int32_t input,
                       TenonAnswer& answer) = 0;
  virtual int32_t generate(const std::string& what, const TenonMatch& match,
                           TenonAnswer& answer) = 0;
  virtual int32_t run_pass(const std::string& what, size_t pass, const std::string& text,
                           TenonAnswer& answer) = 0;
};

}  // namespace tenon::plugin
