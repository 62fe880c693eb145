#include <algorithm>
#include <numeric>

#include "tenon/graph/patterns/pattern.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

namespace {

std::vector<Pattern> take_patterns(IRModule& module) {
  std::vector<Pattern> patterns;
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<Function>(base);
    const auto composite = function ? function->attrs.get<std::string>("Pattern") : std::nullopt;
    if (!composite) continue;
    patterns.emplace_back(*composite, function);
    module.erase(name);
  }
  // The largest first: a pattern may be a part of another.
  std::vector<size_t> order(patterns.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const size_t x = patterns[a].operators, y = patterns[b].operators;
    return x != y ? x > y : a < b;
  });
  std::vector<Pattern> sorted;
  for (const size_t i : order) sorted.push_back(patterns[i]);
  return sorted;
}

std::string identifier(const std::string& composite) {
  std::string name;
  for (const char c : composite) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

class Partition {
 public:
  Partition(IRModule& module, const std::vector<Pattern>& patterns)
      : module_(module), patterns_(patterns), found_(patterns.size(), 0), why_(patterns.size()) {}

  Ref<Function> run(const Ref<Function>& function) {
    const PatternSearch search(*function);
    std::unordered_map<const Node*, std::pair<size_t, PatternMatch>> roots;
    std::unordered_map<const Node*, bool> taken;
    for (size_t p = 0; p < patterns_.size(); ++p)
      for (const Ref<BindingBlock>& block : function->body->blocks)
        for (auto it = block->bindings.rbegin(); it != block->bindings.rend(); ++it) {
          if (taken.count((*it)->var.get())) continue;
          auto match = search.match(patterns_[p], *it, &why_[p]);
          if (!match || !is_free(*match, taken, *block)) continue;
          for (const Ref<Binding>& part : match->bindings) taken[part->var.get()] = true;
          roots.emplace((*it)->var.get(), std::pair(p, std::move(*match)));
          ++found_[p];
        }
    if (roots.empty()) return function;
    std::vector<Ref<BindingBlock>> blocks;
    for (const Ref<BindingBlock>& block : function->body->blocks) {
      std::vector<Ref<Binding>> bindings;
      for (const Ref<Binding>& binding : block->bindings) {
        const auto root = roots.find(binding->var.get());
        if (root != roots.end())
          call(root->second.first, root->second.second, *binding, block->is_dataflow, bindings);
        else if (!taken.count(binding->var.get()))
          bindings.push_back(binding);
      }
      blocks.push_back(make<BindingBlock>(std::move(bindings), block->is_dataflow, block->origin));
    }
    return function->with_body(
        make<SeqExpr>(std::move(blocks), function->body->body, function->body->origin));
  }

  // A pattern that is nowhere is most likely not what was meant.
  void report() const {
    for (size_t p = 0; p < patterns_.size(); ++p)
      record({"FuseOpsByPattern",
              patterns_[p].name,
              found_[p] ? "matched" : "unmatched",
              "",
              {{"times", static_cast<double>(found_[p])}},
              found_[p] ? "" : why_[p],
              patterns_[p].function->origin});
  }

 private:
  static bool is_free(const PatternMatch& match, const std::unordered_map<const Node*, bool>& taken,
                      const BindingBlock& block) {
    return std::all_of(match.bindings.begin(), match.bindings.end(), [&](const auto& part) {
      if (taken.count(part->var.get())) return false;
      return std::any_of(block.bindings.begin(), block.bindings.end(),
                         [&](const auto& binding) { return binding.same_as(part); });
    });
  }

  void call(size_t p, const PatternMatch& match, const Binding& root, bool is_dataflow,
            std::vector<Ref<Binding>>& out) {
    std::vector<Value> args;
    for (const Value& argument : match.arguments) {
      if (!argument.as<Call>()) {
        args.push_back(argument);
        continue;
      }
      const auto var = make<Var>("packed", type_of(argument), is_dataflow);
      out.push_back(make<Binding>(var, argument, Type(), root.origin));
      args.push_back(var);
    }
    std::string& name = known_[match.function];
    if (name.empty()) name = module_.add_unique(identifier(patterns_[p].name), match.function);
    out.push_back(make<Binding>(root.var,
                                make<Call>(make<FuncRef>(name), std::move(args), Attrs(),
                                           std::vector<Type>{}, match.function->origin),
                                Type(), match.function->origin));
  }

  IRModule& module_;
  const std::vector<Pattern>& patterns_;
  std::vector<int> found_;
  std::vector<std::string> why_;
  std::unordered_map<NodePtr, std::string, StructuralHash, StructuralEqual> known_;
};

}  // namespace

IRModule fuse_ops_by_pattern(IRModule module) {
  const std::vector<Pattern> patterns = take_patterns(module);
  Partition partition(module, patterns);
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<Function>(base);
    if (!function || function->attrs.flag("Primitive") || function->attrs.contains("Composite"))
      continue;
    module.set(name, partition.run(function));
  }
  partition.report();
  return eliminate_dead_code(std::move(module));
}

}  // namespace tenon::graph
