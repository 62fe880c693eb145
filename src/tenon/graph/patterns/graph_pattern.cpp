// SPDX-License-Identifier: Apache-2.0
// Reads graph functions as patterns.
#include <set>
#include <unordered_map>

#include "tenon/graph/patterns/dataflow_pattern.h"
#include "tenon/tir/patterns/block_pattern.h"

namespace tenon::graph {

namespace {

class FromFunction {
 public:
  FromFunction(const std::string& name, const Function& function,
               const GraphPatternOptions& options)
      : name_(name), function_(function), options_(options) {
    all_ = function.attrs.flag("any");
    for (const std::string& attr :
         function.attrs.strings("any").value_or(std::vector<std::string>{}))
      any_.insert(attr);
  }

  DFPattern run() {
    std::vector<PatternPtr> params;
    for (const Ref<Var>& param : function_.params) {
      params.push_back(make<ParamPattern>(param->name, param->type, param->origin));
      known_.emplace(param.get(), params.back());
    }
    for (const Ref<BindingBlock>& block : function_.body->blocks)
      for (const Ref<Binding>& binding : block->bindings) bind(*binding);
    const Value& result = function_.body->body;
    std::vector<PatternPtr> results;
    const PatternPtr whole = pattern(result);
    const auto* tuple = whole.as<TuplePattern>();
    if (tuple)
      results = tuple->items;
    else
      results = {whole};
    if (results.empty()) throw bad(result->origin, "returns nothing");
    for (const PatternPtr& item : results)
      if (item.as<ParamPattern>() || !computes(item))
        throw bad(result->origin, "does not return the result of one operator");
    for (size_t i = 0; i < params.size(); ++i)
      if (!used_.count(params[i].get()))
        throw bad(function_.params[i]->origin,
                  "does not use its parameter `" + function_.params[i]->name + "`");
    return make<GraphPattern>(std::move(params), std::move(results), tuple != nullptr,
                              options_.exclusive, function_.origin);
  }

 private:
  CompileError bad(const Origin& origin, const std::string& why) const {
    return CompileError(kBadPattern, origin ? origin : function_.origin, "pattern `{}` {}", name_,
                        why);
  }

  static bool computes(const PatternPtr& pattern) {
    return pattern.as<CallPattern>() || pattern.as<AttrPattern>() || pattern.as<OrPattern>() ||
           pattern.as<TupleGetItemPattern>() || pattern.as<TuplePattern>();
  }

  void bind(const Binding& binding) {
    if (binding.value.as<If>() || binding.value.as<FunctionValue>() || binding.match)
      throw bad(binding.origin, "has control flow; expected operators only");
    const PatternPtr bound = pattern(binding.value);
    known_.emplace(binding.var.get(), bound);
    if (options_.labels && bound) options_.labels->insert_or_assign(binding.var->name, bound);
  }

  PatternPtr pattern(const Value& value) {
    if (!value) return {};
    if (value.as<Var>()) {
      const auto found = known_.find(value.get());
      if (found == known_.end()) throw bad(value->origin, "uses a variable that is not its own");
      used_.insert(found->second.get());
      return found->second;
    }
    if (const auto* call = value.as<Call>()) return call_pattern(*call);
    if (const auto* tuple = value.as<Tuple>())
      return make<TuplePattern>(patterns(tuple->values), false, value->origin);
    if (const auto* get = value.as<TupleGetItem>()) {
      const PatternPtr tuple = pattern(get->tuple);
      const auto* items = tuple.as<TuplePattern>();
      if (items) return items->items.at(static_cast<size_t>(get->index));
      return make<TupleGetItemPattern>(tuple, get->index, value->origin);
    }
    if (const auto* shape = value.as<ShapeExpr>())
      return make<ShapeExprPattern>(shape->values, value->origin);
    if (const auto* external = value.as<ExternRef>())
      return make<ExternFuncPattern>(external->symbol, value->origin);
    if (const auto* ref = value.as<FuncRef>()) {
      const auto function =
          options_.module ? options_.module->find<tir::PrimFunc>(ref->name) : nullptr;
      if (!function) return make<GlobalVarPattern>(ref->name, value->origin);
      tir::check_block_pattern(*function);
      return make<PrimFuncPattern>(function, value->origin);
    }
    return make<ExprPattern>(value, value->origin);
  }

  std::vector<PatternPtr> patterns(const std::vector<Value>& values) {
    std::vector<PatternPtr> out;
    for (const Value& value : values) out.push_back(pattern(value));
    while (!out.empty() && !out.back()) out.pop_back();
    return out;
  }

  PatternPtr call_pattern(const Call& call) {
    if (!call.op) throw bad(call.origin, "calls a function; expected operators only");
    std::vector<PatternPtr> args = patterns(call.args);
    const PatternPtr first = args.empty() ? PatternPtr() : args[0];
    PatternPtr out = make<CallPattern>(make<OpPattern>(call.op, call.origin), std::move(args),
                                       false, call.origin);
    Attrs attrs;
    for (const auto& [name, value] : call.attrs)
      if (!all_ && !any_.count(name)) attrs.set(name, value);
    if (!attrs.empty()) out = make<AttrPattern>(out, std::move(attrs), call.origin);
    // A constant that is written transposed already.
    if (call.is("permute_dims") && first && first.as<ParamPattern>())
      out = make<OrPattern>(out, make<TransposedPattern>(first, call.origin), call.origin);
    return out;
  }

  const std::string& name_;
  const Function& function_;
  const GraphPatternOptions& options_;
  bool all_ = false;
  std::set<std::string> any_;
  std::unordered_map<const Node*, PatternPtr> known_;
  std::set<const Node*> used_;
};

}  // namespace

DFPattern pattern_from_function(const std::string& name, const Function& function,
                                const GraphPatternOptions& options) {
  return FromFunction(name, function, options).run();
}

}  // namespace tenon::graph
