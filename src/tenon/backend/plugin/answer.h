// SPDX-License-Identifier: Apache-2.0
// Gathers and checks the answer of a plugin's callback as it comes in.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/backend.h"
#include "tenon/ir/attrs.h"
#include "tenon/ir/module.h"

struct TenonAnswer {
  enum class Callback : uint8_t { kCheck, kPack, kGenerate, kPass };
  struct Emitted {
    int32_t kind = 0;
    std::string bytes;
  };

  std::string backend;
  Callback callback = Callback::kCheck;
  std::string subject = {};  // what it is about, for remarks

  bool is_refused = false;
  std::string code = {}, words = {};
  std::vector<Emitted> emitted = {};
  /// `generate` of a back end in this process: PrimFuncs, as TENON_TVMSCRIPT has them in a text.
  std::shared_ptr<const tenon::IRModule> functions = {};
  /// The same: a packed function that is registered in this process as long as `life` lives.
  struct HostFunction {
    std::string name, words;  // registered name; what it is, for people
    std::shared_ptr<const void> life;
  };
  std::optional<HostFunction> host_function = {};
  std::vector<std::string> libraries = {};
  bool links_itself = false;
  /// What the callback did that it may not: the first such thing.
  std::string fault = {};

  std::vector<std::string> logs = {};
  bool keeps_logs = false;  // instead of recording them as remarks

  // Of a pass.
  const tenon::Attrs* arguments = nullptr;
  /// The kernel that would be chosen for the call that is bound to a variable of a function.
  std::function<std::optional<std::string>(const std::string& function,
                                           const std::string& variable)>
      choose_in = {};
  mutable std::deque<std::string> texts = {};  // handed out

  const Emitted* find(int32_t kind) const {
    for (const Emitted& item : emitted)
      if (item.kind == kind) return &item;
    return nullptr;
  }
};

namespace tenon::plugin {

/// The table of functions that every plugin is given.
const TenonHost* host();

/// The name of a kind of answer, as the header spells it.
std::string name_of_kind(int32_t kind);

/// A string that foreign code gave: at most `limit` bytes of it, control characters as `?`.
std::string printable(const char* text, size_t limit);

}  // namespace tenon::plugin
