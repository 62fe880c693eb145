// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/kernel_files.h"

#include <algorithm>
#include <map>
#include <set>

#include "tenon/driver/load.h"
#include "tenon/driver/story.h"
#include "tenon/driver/usage.h"
#include "tenon/driver/warnings.h"
#include "tenon/graph/kernels.h"
#include "tenon/import/onnx/operators.h"
#include "tenon/support/nearest.h"
#include "tenon/support/usage_codes.h"

namespace tenon {

namespace {

constexpr std::string_view kOnnx = "ai.onnx::";

// The operator of ONNX that `op` names ("Conv", "ai.onnx::Conv"), in full.
std::optional<std::string> onnx_operator(const std::string& op) {
  const std::string name = op.starts_with(kOnnx) ? op.substr(kOnnx.size()) : op;
  if (!onnx::find_operator("", name)) return std::nullopt;
  return std::string(kOnnx) + name;
}

// Of a --kernel option: whether it names an operator, and no node.
bool is_operator(const std::string& name) {
  return name.find("::") != std::string::npos ||
         (!name.starts_with('/') && (onnx_operator(name) || !graph::operators_named(name).empty()));
}

// A graph function that a kernel names as what it computes is a pattern.
bool is_pattern(const IRModule& module, const std::string& name) {
  const auto function = name == "main" ? nullptr : module.find<graph::Function>(name);
  return function && !graph::declares_operator(*function);
}

void mark_pattern(IRModule& module, const std::string& name) {
  module.set(name, with(*module.find<graph::Function>(name), [&](graph::Function& copy) {
               copy.attrs.erase("Composite");
               copy.attrs.set("Pattern", name);
             }));
}

// With what their annotations say in full.
IRModule as_kernels(IRModule module) {
  for (const auto& [name, function] : std::vector<IRModule::Entry>(module.functions())) {
    const auto op = function->attrs.get<std::string>("op");
    const auto kernel = cast<tir::PrimFunc>(function);
    if (!kernel || !op) continue;
    if (is_pattern(module, *op)) {
      mark_pattern(module, *op);
      continue;
    }
    if (op->starts_with(kOnnx) && !onnx_operator(*op) && !graph::declaration_of(module, *op))
      throw CompileError(kUnknownOperator, function->origin,
                         "kernel `{}` is for `{}`, which neither the importer has nor a function "
                         "under @R.function declares; `tenon operators` lists what it has",
                         name, *op);
    // One that is no single operator of the graph is told by its domain.
    if (!onnx_operator(*op) || !graph::operators_named(*op).empty()) continue;
    module.set(name, with(*kernel,
                          [&](tir::PrimFunc& copy) { copy.attrs.set("op", *onnx_operator(*op)); }));
  }
  return module;
}

IRModule load_kernels(const std::string& file) {
  if (kind_of(file) != ModelKind::kScript)
    throw UsageError("--kernels {}: expected TVMScript, .py or .tvmscript", file);
  return as_kernels(load_module(file));
}

// The operators of the calls that come from node `name`. Of a node that stays whole, with `inside`,
// also those in it.
std::set<std::string> operators_of_node(const IRModule& module, const std::string& name,
                                        bool inside) {
  std::set<std::string> found;
  for (const auto& [key, function] : module.functions()) {
    const auto graph = cast<graph::Function>(function);
    if (!graph || (graph::is_node_function(*graph) && !inside)) continue;
    // A binding of `main` is a node of its variable's name too.
    walk<graph::Binding>(graph->body, [&, &key = key](const graph::Binding& binding) {
      const auto* call = binding.value.as<graph::Call>();
      if (!call) return;
      const Origin& origin = call->origin ? call->origin : binding.origin;
      const bool is_named = key == "main" && binding.var->name == name;
      if (!is_named && (!origin || origin.name() != name)) return;
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

// For this module alone.
BaseFunc hidden(const BaseFunc& function, bool keeps_annotation) {
  const auto change = [&](auto& copy) {
    copy.is_private = true;
    if (!keeps_annotation) copy.attrs.erase("op");
  };
  if (const auto* kernel = function.as<tir::PrimFunc>()) return with(*kernel, change);
  if (const auto* graph = function.as<graph::Function>()) return with(*graph, change);
  return function;
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
      // Declared operators came with the model, and patterns with other kernels.
      const bool known =
          there && function.as<graph::Function>() &&
          (graph::declares_operator(*function) || function->attrs.contains("Pattern")) &&
          structural_equal(hidden(there, true), hidden(function, true));
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
      module_.set(names[name], hidden(with_pattern_of(renamed, names), keep(name)));
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
  // Patterns go by the names of their functions, which may be others now.
  static BaseFunc with_pattern_of(const BaseFunc& function,
                                  const std::map<std::string, std::string>& names) {
    const bool is_kernel = function.as<tir::PrimFunc>() != nullptr;
    const char* attr = is_kernel ? "op" : "Pattern";
    const auto old = function->attrs.get<std::string>(attr);
    const auto found = old ? names.find(*old) : names.end();
    if (found == names.end() || found->second == found->first) return function;
    const auto change = [&](auto& copy) { copy.attrs.set(attr, found->second); };
    if (is_kernel) return with(*function.as<tir::PrimFunc>(), change);
    const auto* graph = function.as<graph::Function>();
    return graph ? BaseFunc(with(*graph, change)) : function;
  }

  IRModule& module_;
};

}  // namespace

KernelFiles::Choice KernelFiles::parse_choice(const std::string& text) {
  const size_t equals = text.find('='), colon = text.rfind(':');
  if (equals == std::string::npos || equals == 0 || colon == std::string::npos ||
      colon < equals + 2 || colon + 1 == text.size())
    throw UsageError("--kernel {}: expected OPERATOR=FILE:FUNCTION, or NODE=FILE:FUNCTION", text);
  return {"--kernel " + text, text.substr(0, equals), text.substr(equals + 1, colon - equals - 1),
          text.substr(colon + 1)};
}

std::vector<KernelFiles::Choice> KernelFiles::read_choices() const {
  std::vector<Choice> out;
  for (const std::string& text : choices) {
    out.push_back(parse_choice(text));
    out.back().module = load_kernels(out.back().file);
  }
  for (const Chosen& one : chosen)
    out.push_back({fmt::format("kernel `{}` for `{}`", one.function, one.name), one.name,
                   "its module", one.function, as_kernels(one.module)});
  return out;
}

void KernelFiles::annotate(IRModule& module, const std::string& name, const Choice& choice,
                           const std::map<std::string, std::string>& names) {
  const auto function = module.find<tir::PrimFunc>(name);
  Attrs attrs = function->attrs;
  attrs.set("op_requested", true);
  const std::string& asked = choice.name;
  const auto own = function->attrs.get<std::string>("op");
  const auto group = names.find(asked);
  if (group != names.end() && graph::pattern_named(module, group->second)) {
    attrs.set("op", group->second);
  } else if (is_operator(asked)) {
    attrs.set("op", onnx_operator(asked).value_or(asked));
  } else if (own && graph::pattern_named(module, *own)) {
    attrs.set("op_node", asked);
  } else {
    std::set<std::string> found = operators_of_node(module, asked, own.has_value());
    if (found.empty()) {
      const std::string node = nearest(asked, node_names(module));
      const std::string meant = node.empty() ? graph::nearest_operator(asked) : node;
      throw UsageError("{}: the model has no node `{}`, and there is no such operator{}",
                       choice.text, asked, meant.empty() ? "" : "; did you mean `" + meant + "`?");
    }
    attrs.set("op_node", asked);
    std::set<std::string> wanted;
    if (own) {
      // A composite operator is its parts where no kernel takes all of it.
      for (const std::string& op : std::set(found))
        if (const graph::OpDef* def = graph::find_op(op))
          found.insert(def->parts.begin(), def->parts.end());
      if (own->find("::") != std::string::npos) wanted.insert(*own);
      if (const auto onnx = onnx_operator(*own)) wanted.insert(*onnx);
      for (const graph::OpDef* op : graph::operators_named(*own)) wanted.insert(op->name);
      std::erase_if(wanted, [&](const std::string& op) { return !found.count(op); });
      // The whole node before what is in it, which the same kernel is asked about after it.
      if (const auto onnx = onnx_operator(*own); onnx && wanted.count(*onnx)) wanted = {*onnx};
    } else {
      wanted = found;
    }
    if (wanted.size() != 1)
      throw UsageError(
          "{}: node `{}` is {}; state which of them the kernel computes, as attribute "
          "`op`",
          choice.text, asked, joined(found));
    attrs.set("op", *wanted.begin());
  }
  module.set(name, with(function, [&](tir::PrimFunc& copy) {
               copy.attrs = std::move(attrs);
               copy.is_private = true;
             }));
}

std::vector<IRModule> KernelFiles::annotated() const {
  std::vector<IRModule> out;
  for (const std::string& file : files) out.push_back(load_kernels(file));
  for (const IRModule& module : modules) out.push_back(as_kernels(module));
  return out;
}

DeclaredOperators KernelFiles::declared() const {
  KernelFiles all{.files = {}, .choices = {}, .modules = modules, .chosen = {}};
  for (const Chosen& one : chosen) all.modules.push_back(one.module);
  std::set<std::string> seen;
  for (const std::string& file : files)
    if (seen.insert(file).second) all.files.push_back(file);
  for (const std::string& text : choices)
    if (std::string file = parse_choice(text).file; seen.insert(file).second)
      all.files.push_back(std::move(file));
  DeclaredOperators out;
  for (const IRModule& module : all.annotated()) {
    for (const auto& [name, function] : module.functions()) {
      if (!graph::declares_operator(*function)) continue;
      const auto declared = cast<graph::Function>(function);
      const auto op = *declared->attrs.get<std::string>("op");
      const auto is_it = [&](const auto& other) {
        return *other.second->attrs.template get<std::string>("op") == op;
      };
      if (const auto other = std::find_if(out.begin(), out.end(), is_it); other != out.end()) {
        // The declaration may come with several kernels.
        if (other->first == name &&
            structural_equal(hidden(other->second, true), hidden(function, true)))
          continue;
        throw CompileError(kRedefined, declared->origin, "operator `{}` is declared twice", op)
            .note(other->second->origin, "it is declared here");
      }
      out.emplace_back(name,
                       with(*declared, [&](graph::Function& copy) { copy.is_private = true; }));
    }
  }
  return out;
}

KernelFiles::Whole KernelFiles::whole() const {
  Whole out;
  const auto add = [&](const std::string& op) {
    // ONNX's Gemm is this operator, which the importer takes apart.
    if (op == "gemm" || op == "nn.gemm") out.operators.insert("ai.onnx::Gemm");
    if (const auto name = onnx_operator(op)) out.operators.insert(*name);
  };
  for (const IRModule& module : annotated()) {
    for (const auto& [name, function] : module.functions())
      if (function.as<tir::PrimFunc>()) add(function->attrs.get<std::string>("op").value_or(""));
  }
  for (const Choice& choice : read_choices()) {
    if (is_pattern(choice.module, choice.name)) continue;
    if (is_operator(choice.name)) {
      add(choice.name);
      continue;
    }
    const auto function = choice.module.find<tir::PrimFunc>(choice.function);
    if (!function) continue;  // add_to() reports it
    const auto own = function->attrs.get<std::string>("op");
    if (own)
      add(*own);
    else
      out.nodes.insert(choice.name);
  }
  return out;
}

IRModule KernelFiles::add_to(IRModule module) const {
  Adder adder(module);
  for (const IRModule& kernels : annotated())
    adder.add(kernels, [](const std::string&) { return true; });
  for (const Choice& choice : read_choices()) {
    IRModule file = choice.module;
    if (is_pattern(file, choice.name)) mark_pattern(file, choice.name);
    if (!file.find<tir::PrimFunc>(choice.function)) {
      std::set<std::string> names;
      for (const auto& [name, function] : file.functions())
        if (function.as<tir::PrimFunc>()) names.insert(name);
      const std::vector<std::string> list(names.begin(), names.end());
      throw UsageError("{}: {} has no PrimFunc `{}`; it has {}{}", choice.text, choice.file,
                       choice.function, names.empty() ? "none" : joined(names),
                       did_you_mean(choice.function, list));
    }
    const auto names = adder.add(file, [&](const std::string& name) {
      return name == choice.function || !file.find<tir::PrimFunc>(name);
    });
    annotate(module, names.at(choice.function), choice, names);
  }
  for (const auto& [name, function] : module.functions()) {
    const auto op = function->attrs.get<std::string>("op");
    if (op && op->starts_with(kOnnx) && onnx_operator(*op) && graph::declares_operator(*function))
      warn(kNotUsed, function->origin,
           "the importer's own `{}` is not used: it is declared here, for all nodes of it", *op);
  }
  if (!empty()) {
    Diagnostics diagnostics;
    graph::verify_kernels(module, diagnostics);
    diagnostics.throw_if_any();
  }
  return module;
}

static bool is_of_kernels(const Remark& remark) {
  return remark.decision && remark.decision->step == Decision::Step::kKernels;
}

// How far a call came before it was refused: in the order in which these are looked at.
static size_t nearness(const Remark& remark) {
  static const std::vector<std::string> kOrder = {"arity", "attribute", "dtype",  "rank",
                                                  "shape", "condition", "target", "lower-priority"};
  const std::string& code = remark.decision->code;
  return static_cast<size_t>(std::find(kOrder.begin(), kOrder.end(), code) - kOrder.begin());
}

// Why a kernel was asked about no call.
static std::string absent(const IRModule& module, const std::string& op, const std::string& node) {
  const std::string where = node.empty() ? "" : " in node `" + node + "`";
  if (graph::pattern_named(module, op))
    return fmt::format("pattern `{}` matches nothing{}", op, where);
  return fmt::format("the model calls no `{}`{}", op, where);
}

void KernelFiles::warn_of_unused(const IRModule& module, const std::vector<Remark>& remarks) const {
  struct FileState {
    Origin first;
    bool used = false;
    std::string why;
  };
  std::map<std::string, FileState> states;
  std::map<std::string, FileState> by_place;
  for (const auto& [name, function] : module.functions()) {
    const bool is_requested = function->attrs.flag("op_requested");
    const bool is_kernel = function->attrs.contains("op") && !graph::declares_operator(*function);
    if (!is_requested && !is_kernel) continue;
    bool used = false;
    const Remark* nearest = nullptr;
    for (const Remark& remark : remarks) {
      if (!is_of_kernels(remark) || remark.decision->candidate != name) continue;
      used |= remark.decision->kind == Decision::Kind::kTaken;
      if (!nearest || nearness(remark) > nearness(*nearest)) nearest = &remark;
    }
    const std::string op = function->attrs.get<std::string>("op").value_or("?");
    const std::string node = function->attrs.get<std::string>("op_node").value_or("");
    const std::string why =
        nearest ? fmt::format("{}: {} [{}]", nearest->reason,
                              std::string_view(nearest->detail).substr(name.size() + 4),
                              nearest->subject)
                : absent(module, op, node);
    if (is_requested) {
      if (!used) warn(kNotUsed, function->origin, "kernel `{}` is not used: {}", name, why);
      continue;
    }
    const Origin& origin = function->origin;
    if (!origin || origin->kind != OriginInfo::Kind::kScript) continue;
    FileState& here = by_place[origin.str()];
    if (!here.first) here = {origin, used, fmt::format("`{}` is not used: {}", name, why)};
    here.used |= used;
    FileState& state = states[origin->file->name];
    if (!state.first) state = {origin, used, fmt::format("`{}`: {}", name, why)};
    state.used |= used;
  }
  for (const std::string& file : files) {
    const auto state = states.find(file);
    if (state != states.end() && !state->second.used)
      warn(kNotUsed, state->second.first, "no kernel of {} is used; {}", file, state->second.why);
  }
  // Kernels that a program gives are asked together, as those of a file are.
  const FileState* first = nullptr;
  bool used = false;
  for (const IRModule& given : modules)
    for (const auto& [name, function] : given.functions()) {
      const auto state = by_place.find(function->origin ? function->origin.str() : "");
      if (state == by_place.end()) continue;
      if (!first) first = &state->second;
      used |= state->second.used;
    }
  if (first && !used) warn(kNotUsed, first->first, "kernel {}", first->why);
}

std::vector<std::string> kernel_lines(const std::vector<Remark>& remarks) {
  struct Count {
    int64_t calls = 0;
    std::set<std::string> used, seen;
    std::map<std::string, std::set<std::string>> refused;  // by reason, the first of each place
  };
  std::map<std::string, Count> counts;
  for (const Remark& remark : remarks) {
    if (!is_of_kernels(remark)) continue;
    const Decision& decision = *remark.decision;
    Count& count = counts[decision.candidate];
    if (decision.kind == Decision::Kind::kTaken) {
      count.calls += count.used.insert(remark.subject).second && !decision.in_group;
    } else if (count.seen.insert(remark.subject).second) {
      count.refused[decision.code].insert(remark.subject);
    }
  }
  std::vector<std::string> out;
  for (auto& [name, count] : counts) {
    std::string line =
        fmt::format("{} in {} {}", name, count.calls, count.calls == 1 ? "place" : "places");
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
