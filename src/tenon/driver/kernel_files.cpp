#include "tenon/driver/kernel_files.h"

#include <algorithm>
#include <map>
#include <set>

#include "tenon/driver/load.h"
#include "tenon/driver/story.h"
#include "tenon/driver/usage.h"
#include "tenon/driver/warnings.h"
#include "tenon/graph/kernels.h"
#include "tenon/support/nearest.h"
#include "tenon/support/usage_codes.h"

namespace tenon {

namespace {

// `NAME=FILE:FUNCTION`.
struct Choice {
  std::string text, name, file, function;
};

Choice parse_choice(const std::string& text) {
  const size_t equals = text.find('='), colon = text.rfind(':');
  if (equals == std::string::npos || equals == 0 || colon == std::string::npos ||
      colon < equals + 2 || colon + 1 == text.size())
    throw UsageError("--kernel {}: expected OPERATOR=FILE:FUNCTION, or NODE=FILE:FUNCTION", text);
  return {text, text.substr(0, equals), text.substr(equals + 1, colon - equals - 1),
          text.substr(colon + 1)};
}

// Of a --kernel option: whether it names an operator, and no node.
bool is_operator(const std::string& name) {
  return name.find("::") != std::string::npos ||
         (!name.starts_with('/') && !graph::operators_named(name).empty());
}

IRModule load_kernels(const std::string& file) {
  if (kind_of(file) != ModelKind::kScript)
    throw UsageError("--kernels {}: expected TVMScript, .py or .tvmscript", file);
  return load_module(file);
}

// The operators of the calls that come from node `name`.
std::set<std::string> operators_of_node(const IRModule& module, const std::string& name) {
  std::set<std::string> found;
  for (const auto& [key, function] : module.functions()) {
    const auto graph = cast<graph::Function>(function);
    if (!graph) continue;
    walk<graph::Call>(graph->body, [&](const graph::Call& call) {
      if (!call.origin || call.origin.name() != name) return;
      if (const auto seen = graph::operator_call(module, call)) found.insert(seen->op);
    });
    // A call may have no place of its own: that of its binding counts.
    walk<graph::Binding>(graph->body, [&](const graph::Binding& binding) {
      const auto* call = binding.value.as<graph::Call>();
      if (!call || call->origin || !binding.origin || binding.origin.name() != name) return;
      if (const auto seen = graph::operator_call(module, *call)) found.insert(seen->op);
    });
  }
  return found;
}

std::string joined(const std::set<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "`" : ", `") + name + "`";
  return out;
}

// The functions of a file under names that the module does not have.
class Adder {
 public:
  explicit Adder(IRModule& module) : module_(module) {}

  /// Adds all functions of `file`; those for which `keep` is false lose their annotation.
  template <typename Keep>
  std::map<std::string, std::string> add(const IRModule& file, const Keep& keep) {
    std::map<std::string, std::string> names;
    for (const auto& [name, function] : file.functions()) {
      if (name == "main") continue;
      const BaseFunc there = module_.find(name);
      // Declared operators came with the model.
      const bool known =
          there && graph::declares_operator(*function) && structural_equal(there, function);
      names[name] = known || !there ? name : unique(name, file);
    }
    for (const auto& [name, function] : file.functions()) {
      if (name == "main") continue;
      const BaseFunc renamed =
          rewrite(function, [&](const NodePtr& node) -> std::optional<NodePtr> {
            if (const auto* ref = node.as<graph::FuncRef>())
              if (const auto to = names.find(ref->name);
                  to != names.end() && to->second != ref->name)
                return NodePtr(make<graph::FuncRef>(to->second, ref->origin));
            if (const auto* ref = node.as<GlobalVar>())
              if (const auto to = names.find(ref->name);
                  to != names.end() && to->second != ref->name)
                return NodePtr(make<GlobalVar>(to->second, ref->origin));
            return std::nullopt;
          });
      module_.set(names[name], hidden(renamed, keep(name)));
    }
    return names;
  }

 private:
  std::string unique(const std::string& name, const IRModule& file) const {
    for (int i = 1;; ++i) {
      std::string candidate = fmt::format("{}_{}", name, i);
      if (!module_.contains(candidate) && !file.contains(candidate)) return candidate;
    }
  }
  static BaseFunc hidden(const BaseFunc& function, bool keeps_annotation) {
    const auto changed = [&](auto* copy) {
      copy->is_private = true;
      if (!keeps_annotation) copy->attrs.erase("op");
      return BaseFunc(copy);
    };
    if (const auto* kernel = function.as<tir::PrimFunc>())
      return changed(new tir::PrimFunc(*kernel));
    if (const auto* graph = function.as<graph::Function>())
      return changed(new graph::Function(*graph));
    return function;
  }

  IRModule& module_;
};

void annotate(IRModule& module, const std::string& name, const Choice& choice) {
  const auto function = module.find<tir::PrimFunc>(name);
  auto* copy = new tir::PrimFunc(*function);
  const Ref<tir::PrimFunc> made(copy);
  copy->attrs.set("op_by_hand", true);
  copy->is_private = true;
  const std::string& asked = choice.name;
  const auto own = function->attrs.get<std::string>("op");
  if (is_operator(asked)) {
    copy->attrs.set("op", asked);
  } else {
    std::set<std::string> found = operators_of_node(module, asked);
    if (found.empty()) {
      const std::string node = nearest(asked, node_names(module));
      const std::string meant = node.empty() ? graph::nearest_operator(asked) : node;
      throw UsageError("--kernel {}: the model has no node `{}`, and there is no such operator{}",
                       choice.text, asked, meant.empty() ? "" : "; did you mean `" + meant + "`?");
    }
    copy->attrs.set("op_node", asked);
    std::set<std::string> wanted;
    if (own) {
      // A Gemm that was kept whole is these where no kernel takes all of it.
      if (found.count("nn.gemm")) found.insert({"matmul", "multiply", "add", "permute_dims"});
      if (own->find("::") != std::string::npos) wanted.insert(*own);
      for (const graph::OpDef* op : graph::operators_named(*own)) wanted.insert(op->name);
      std::erase_if(wanted, [&](const std::string& op) { return !found.count(op); });
    } else {
      wanted = found;
    }
    if (wanted.size() != 1)
      throw UsageError(
          "--kernel {}: node `{}` is {}; state which of them the kernel computes, as attribute "
          "`op`",
          choice.text, asked, joined(found));
    copy->attrs.set("op", *wanted.begin());
  }
  module.set(name, made);
}

}  // namespace

DeclaredOperators KernelFiles::declared() const {
  std::vector<std::string> all = files;
  for (const std::string& text : choices) all.push_back(parse_choice(text).file);
  DeclaredOperators out;
  std::set<std::string> seen;
  for (const std::string& file : all) {
    if (!seen.insert(file).second) continue;
    const IRModule module = load_kernels(file);
    for (const auto& [name, function] : module.functions()) {
      if (!graph::declares_operator(*function)) continue;
      const auto declared = cast<graph::Function>(function);
      const auto op = *declared->attrs.get<std::string>("op");
      for (const auto& [other, before] : out)
        if (*before->attrs.get<std::string>("op") == op)
          throw CompileError(kRedefined, declared->origin, "operator `{}` is declared twice", op)
              .note(before->origin, "it is declared here");
      auto* copy = new graph::Function(*declared);
      copy->is_private = true;
      out.emplace_back(name, Ref<graph::Function>(copy));
    }
  }
  return out;
}

bool KernelFiles::may_compute_gemm() const {
  const auto is_gemm = [](const std::string& name) {
    const auto operators = graph::operators_named(name);
    return operators.size() == 1 && operators[0]->name == "nn.gemm";
  };
  for (const std::string& file : files) {
    const IRModule module = load_kernels(file);
    for (const auto& [name, function] : module.functions())
      if (is_gemm(function->attrs.get<std::string>("op").value_or(""))) return true;
  }
  for (const std::string& text : choices) {
    const Choice choice = parse_choice(text);
    if (is_gemm(choice.name)) return true;
    if (is_operator(choice.name)) continue;
    const auto function = load_kernels(choice.file).find<tir::PrimFunc>(choice.function);
    if (!function) continue;  // add_to() reports it
    const auto own = function->attrs.get<std::string>("op");
    if (!own || is_gemm(*own)) return true;
  }
  return false;
}

IRModule KernelFiles::add_to(IRModule module) const {
  Adder adder(module);
  for (const std::string& file : files)
    adder.add(load_kernels(file), [](const std::string&) { return true; });
  for (const std::string& text : choices) {
    const Choice choice = parse_choice(text);
    const IRModule file = load_kernels(choice.file);
    if (!file.find<tir::PrimFunc>(choice.function)) {
      std::set<std::string> names;
      for (const auto& [name, function] : file.functions())
        if (function.as<tir::PrimFunc>()) names.insert(name);
      const std::vector<std::string> list(names.begin(), names.end());
      throw UsageError("--kernel {}: {} has no PrimFunc `{}`; it has {}{}", text, choice.file,
                       choice.function, names.empty() ? "none" : joined(names),
                       did_you_mean(choice.function, list));
    }
    const auto names = adder.add(file, [&](const std::string& name) {
      return name == choice.function || graph::declares_operator(*file.find(name));
    });
    annotate(module, names.at(choice.function), choice);
  }
  if (!empty()) {
    Diagnostics diagnostics;
    graph::verify_kernels(module, diagnostics);
    diagnostics.throw_if_any();
  }
  return module;
}

void KernelFiles::warn_of_unused(const IRModule& module, const std::vector<Remark>& remarks) const {
  struct FileState {
    Origin first;
    bool used = false;
    std::string why;
  };
  std::map<std::string, FileState> states;
  for (const auto& [name, function] : module.functions()) {
    const bool by_hand = function->attrs.flag("op_by_hand");
    const bool is_kernel = function->attrs.contains("op") && !graph::declares_operator(*function);
    if (!by_hand && !is_kernel) continue;
    bool used = false;
    const Remark* nearest = nullptr;
    for (const Remark& remark : remarks) {
      if (remark.pass != graph::kSelectKernels || graph::kernel_of_remark(remark.detail) != name)
        continue;
      used |= remark.verdict == "used";
      if (!nearest) nearest = &remark;
    }
    const std::string op = function->attrs.get<std::string>("op").value_or("?");
    const std::string node = function->attrs.get<std::string>("op_node").value_or("");
    const std::string why =
        nearest ? fmt::format("{}: {} [{}]", nearest->reason,
                              std::string_view(nearest->detail).substr(name.size() + 4),
                              nearest->subject)
                : fmt::format("the model calls no `{}`{}", op,
                              node.empty() ? "" : " in node `" + node + "`");
    if (by_hand) {
      if (!used) warn(kNotUsed, function->origin, "kernel `{}` is not used: {}", name, why);
      continue;
    }
    const Origin& origin = function->origin;
    if (!origin || origin->kind != OriginInfo::Kind::kScript) continue;
    FileState& state = states[origin->file->name];
    if (!state.first) state = {origin, used, fmt::format("`{}`: {}", name, why)};
    state.used |= used;
  }
  for (const std::string& file : files) {
    const auto state = states.find(file);
    if (state != states.end() && !state->second.used)
      warn(kNotUsed, state->second.first, "no kernel of {} is used; {}", file, state->second.why);
  }
}

std::vector<std::string> kernel_lines(const std::vector<Remark>& remarks) {
  struct Count {
    std::set<std::string> used;
    std::map<std::string, std::set<std::string>> refused;  // by reason
  };
  std::map<std::string, Count> counts;
  for (const Remark& remark : remarks) {
    if (remark.pass != graph::kSelectKernels) continue;
    Count& count = counts[graph::kernel_of_remark(remark.detail)];
    if (remark.verdict == "used")
      count.used.insert(remark.subject);
    else
      count.refused[remark.reason].insert(remark.subject);
  }
  std::vector<std::string> out;
  for (auto& [name, count] : counts) {
    std::string line = fmt::format("{} in {} {}", name, count.used.size(),
                                   count.used.size() == 1 ? "place" : "places");
    std::string refused;
    for (auto& [reason, where] : count.refused) {
      for (const std::string& subject : count.used) where.erase(subject);
      if (!where.empty())
        refused += fmt::format("{}{} {}", refused.empty() ? "" : ", ", where.size(), reason);
    }
    out.push_back(refused.empty() ? line : line + "; refused: " + refused);
  }
  return out;
}

}  // namespace tenon
