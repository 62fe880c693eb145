// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/ask_scratch.h"

#include <algorithm>
#include <map>

#include "tenon/driver/library_call.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/scratch_query.h"
#include "tenon/tir/stmt.h"

namespace tenon {

namespace {

class Asker {
 public:
  Asker(const IRModule& module, std::shared_ptr<const backend::Libraries> libraries)
      : symbols_(tir::scratch_query_symbols(module)),
        libraries_(libraries),
        ask_(opaque_caller(std::move(libraries))) {}

  bool is_needed() const { return !symbols_.empty(); }

  std::optional<NodePtr> answer(const NodePtr& node) {
    const auto* call = node.as<Call>();
    if (!call || !call->is(IntrinsicId::kCallPureExtern) || call->args.empty()) return std::nullopt;
    const auto* symbol = call->arg(0).as<StringImm>();
    if (!symbol || std::find(symbols_.begin(), symbols_.end(), symbol->value) == symbols_.end() ||
        !libraries_->find(symbol->value))
      return std::nullopt;
    std::vector<int64_t> numbers;
    std::vector<interp::ExternArgument> arguments;
    for (size_t i = 1; i < call->args.size(); ++i) {
      const auto number = as_int(call->arg(i));
      if (!number) return std::nullopt;
      numbers.push_back(*number);
      arguments.emplace_back().integer = *number;
    }
    const auto [known, is_new] = known_.try_emplace({symbol->value, std::move(numbers)}, 0);
    if (is_new) {
      known->second = ask_(*call, arguments).integer;
      record({"AskScratch",
              symbol->value,
              "asked",
              "scratch-query",
              {{"bytes", static_cast<double>(known->second)}},
              tenon::str(downcast<ExprNode>(node)),
              call->origin});
    }
    // Nothing that a plan could hold: the program will say so.
    constexpr int64_t kMost = int64_t{1} << 46;
    if (known->second < 0 || known->second > kMost) return std::nullopt;
    return NodePtr(imm(call->dtype, known->second));
  }

 private:
  std::vector<std::string> symbols_;
  std::shared_ptr<const backend::Libraries> libraries_;
  interp::CallOpaque ask_;
  std::map<std::pair<std::string, std::vector<int64_t>>, int64_t> known_;
};

}  // namespace

Pass ask_scratch(std::shared_ptr<const backend::Libraries> libraries) {
  Pass pass;
  pass.name = "AskScratch";
  pass.summary = "scratch that libraries ask for is what they answer now";
  pass.run = [libraries = std::move(libraries)](IRModule module, const Attrs&) {
    Asker asker(module, libraries);
    if (!asker.is_needed()) return module;
    const std::vector<IRModule::Entry> entries = module.functions();
    for (const auto& [name, function] : entries) {
      const auto prim = cast<tir::PrimFunc>(function);
      if (!prim) continue;
      const tir::Stmt body =
          rewrite(prim->body, [&](const NodePtr& node) { return asker.answer(node); });
      if (body.same_as(prim->body)) continue;
      module.set(name, with(*prim, [&](tir::PrimFunc& copy) { copy.body = body; }));
    }
    return module;
  };
  return pass;
}

}  // namespace tenon
