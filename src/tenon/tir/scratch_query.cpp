// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/scratch_query.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "tenon/support/identifiers.h"
#include "tenon/support/nearest.h"

namespace tenon::tir {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

class Reader {
 public:
  explicit Reader(const ExternFunction& function) : function_(function) {
    const auto add = [&](const Var& var) {
      if (var.dtype.is_integer() && var.dtype.is_scalar())
        vars_.emplace(var.name, Expr(ref_to(&var)));
    };
    std::set<const Node*> known, of_scratch;
    for (size_t i = 0; i < function.params.size(); ++i) {
      if (!function.buffers[i]) continue;
      const bool is_scratch = function.uses[i] == ParamUse::kScratch;
      for (const Expr& dim : function.buffers[i]->shape)
        walk<Var>(dim, [&](const Var& var) {
          (is_scratch ? of_scratch : known).insert(&var);
          if (!is_scratch) add(var);
        });
    }
    // How much scratch there is follows from the answer.
    for (size_t i = 0; i < function.params.size(); ++i)
      if (const Var* param = function.params[i].get();
          !function.buffers[i] && (known.count(param) || !of_scratch.count(param)))
        add(*param);
  }

  ScratchQuery read(size_t parameter, std::string_view text) const {
    const Buffer& buffer = *function_.buffers[parameter];
    if (buffer.ndim() != 1 || buffer.dtype.bytes() != 1)
      fail("`{}` is {} of shape {}; what a query gives the size of is bytes in one dimension",
           buffer.name, buffer.dtype.str(), tenon::str(buffer.shape));
    ScratchQuery query;
    query.parameter = parameter;
    const size_t open = text.find('(');
    const std::string_view name = trimmed(text.substr(0, open));
    if (open == std::string_view::npos || !trimmed(text).ends_with(')') || !is_identifier(name))
      fail(
          "`{}` is no call; expected a function with names of dimensions, of scalar parameters "
          "or integers: `f_scratch_bytes(m, k)`",
          text);
    query.symbol = std::string(name);
    std::string_view rest = trimmed(text);
    rest.remove_prefix(rest.find('(') + 1);
    rest.remove_suffix(1);
    if (trimmed(rest).empty()) return query;
    for (;;) {
      const size_t comma = rest.find(',');
      query.args.push_back(argument(trimmed(rest.substr(0, comma))));
      if (comma == std::string_view::npos) return query;
      rest.remove_prefix(comma + 1);
    }
  }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    throw CompileError(kBadAttribute, function_.origin,
                       "`scratch_query` of extern function `{}`: {}", function_.symbol,
                       fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  Expr argument(std::string_view text) const {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return int64(number);
    const auto var = vars_.find(std::string(text));
    if (var != vars_.end()) return tenon::cast(kInt64, var->second);
    std::vector<std::string> names;
    for (const auto& [name, value] : vars_) names.push_back(name);
    fail(
        "`{}` is neither a dimension of another parameter, nor a scalar parameter, nor an "
        "integer{}",
        text, did_you_mean(text, names));
  }

  const ExternFunction& function_;
  std::map<std::string, Expr> vars_;
};

}  // namespace

std::vector<ScratchQuery> scratch_queries(const ExternFunction& function) {
  const AttrValue* stated = function.attrs.find("scratch_query");
  if (!stated || stated->is_none()) return {};
  const Reader reader(function);
  const auto* by_name = stated->as<AttrValue::Map>();
  if (!by_name)
    reader.fail("it is {}; expected a dict from scratch parameters to calls", stated->str());
  std::vector<ScratchQuery> queries;
  for (const auto& [name, value] : *by_name) {
    std::vector<std::string> scratch;
    std::optional<size_t> parameter;
    for (size_t i = 0; i < function.params.size(); ++i) {
      if (!function.buffers[i] || function.uses[i] != ParamUse::kScratch) continue;
      scratch.push_back(function.buffers[i]->name);
      if (scratch.back() == name) parameter = i;
    }
    if (!parameter)
      reader.fail("it names `{}`, which is no scratch parameter{}", name,
                  did_you_mean(name, scratch));
    const auto* text = value.as<std::string>();
    if (!text) reader.fail("that of `{}` is {}; expected a string", name, value.str());
    queries.push_back(reader.read(*parameter, *text));
  }
  return queries;
}

const Var* ScratchQuery::extent(const ExternFunction& function) const {
  const auto* name = function.buffers[parameter]->shape[0].as<Var>();
  if (!name) return nullptr;
  for (size_t i = 0; i < function.params.size(); ++i) {
    if (!function.buffers[i] || i == parameter) continue;
    for (const Expr& dim : function.buffers[i]->shape)
      if (dim.get() == name) return nullptr;
  }
  return name;
}

Expr ScratchQuery::bytes(const Substitution& values) const {
  std::vector<NodePtr> list{make<StringImm>(symbol)};
  for (const Expr& arg : args) list.push_back(tenon::cast(kInt64, substitute(arg, values)));
  return call(IntrinsicId::kCallPureExtern, std::move(list), kInt64);
}

std::vector<std::string> scratch_query_symbols(const IRModule& module) {
  std::vector<std::string> symbols;
  for (const auto& [name, function] : module.functions())
    if (const auto* external = function.as<ExternFunction>())
      for (const ScratchQuery& query : scratch_queries(*external))
        if (std::find(symbols.begin(), symbols.end(), query.symbol) == symbols.end())
          symbols.push_back(query.symbol);
  return symbols;
}

void bind_scratch(const ExternFunction& function, const std::vector<NodePtr>& args,
                  Substitution& values) {
  for (size_t i = 0; i < args.size() && i < function.params.size(); ++i)
    if (!function.buffers[i] && args[i].as<ExprNode>())
      values.emplace(function.params[i].get(), args[i]);
  for (const ScratchQuery& query : scratch_queries(function))
    if (const Var* extent = query.extent(function); extent && !values.count(extent))
      values.emplace(extent, tenon::cast(extent->dtype, query.bytes(values)));
}

}  // namespace tenon::tir
