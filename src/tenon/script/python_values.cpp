// SPDX-License-Identifier: Apache-2.0
// Evaluates the Python that TVM runs before it sees a script: built-in functions, f-strings,
// comprehensions, and helper functions of the file.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tenon/ir/visit.h"
#include "tenon/script/evaluator.h"

namespace tenon::script {

using ast::ExprKind;
using ast::Integer;
using ast::StmtKind;

/// A list that Python makes while it reads may be as long.
static constexpr Integer kLongestList = 65536;

void ModuleContext::charge(size_t work, const Place& place) {
  work_left -= static_cast<int64_t>(std::min<size_t>(work, 1) + work);
  if (work_left < 0)
    throw CompileError(kLimitExceeded, Origin::script(file, place.line, place.column, place.length),
                       "lists, macros and calls of Python evaluate too much");
}

// What is shared counts as often as it would be written.
static int64_t written_size(const NodePtr& node, std::unordered_map<const Node*, int64_t>& known) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const auto it = known.find(node.get());
  if (it != known.end()) return it->second;
  int64_t size = 1;
  if (node.as<ExprNode>() && !node.as<Var>())
    each_member(node, [&](const NodePtr& member, FieldRole) {
      if (member.as<ExprNode>()) size = std::min(kMost, size + written_size(member, known));
    });
  return known[node.get()] = size;
}

void Evaluator::check_size(const Object& value, const Place& place) {
  constexpr int64_t kMost = 100000;
  const auto* expr = value.as<Expr>();
  if (!expr) return;
  std::unordered_map<const Node*, int64_t> known;
  if (written_size(*expr, known) > kMost)
    fail(kLimitExceeded, place, "an expression of more than {} operations", kMost);
}

// ---- built-in functions -------------------------------------------------------------------------

static std::optional<double> number_of(const Object& value) {
  if (const auto* number = value.as<double>()) return *number;
  if (const auto* integer = value.as<Integer>()) return static_cast<double>(*integer);
  if (const auto* flag = value.as<bool>()) return *flag ? 1.0 : 0.0;
  return std::nullopt;
}

static std::optional<Object> convert(const std::string& name, const Object& value) {
  const auto* number = value.as<double>();
  const auto* integer = value.as<Integer>();
  const auto* list = value.as<List>();
  if (name == "float") {
    if (const auto converted = number_of(value)) return Object(*converted);
    if (const auto* text = value.as<std::string>()) {
      if (*text == "nan") return Object(std::numeric_limits<double>::quiet_NaN());
      if (*text == "inf") return Object(std::numeric_limits<double>::infinity());
      if (*text == "-inf") return Object(-std::numeric_limits<double>::infinity());
    }
  }
  if (name == "int") {
    if (integer) return value;
    if (const auto* flag = value.as<bool>()) return Object(Integer(*flag));
    if (number && std::fabs(*number) < 9e18) return Object(Integer(static_cast<int64_t>(*number)));
  }
  if (name == "bool" && value.as<bool>()) return value;
  // A symbolic dimension of later TVM: in a shape, its name is what a string is.
  if (name == "TypeVar" && value.as<std::string>()) return value;
  if (name == "str" && value.as<std::string>()) return value;
  if (name == "str" && integer) return Object(fmt::format("{}", static_cast<int64_t>(*integer)));
  if (name == "abs" && integer) return Object(*integer < 0 ? -*integer : *integer);
  if (name == "abs" && number) return Object(std::fabs(*number));
  if (!list) return std::nullopt;
  if (name == "len") return Object(Integer(list->items->size()));
  if (name == "list" || name == "tuple") return Object(List{list->items, name == "tuple"});
  std::vector<Object> out;
  if (name == "reversed") {
    out.assign(list->items->rbegin(), list->items->rend());
    return make_list(std::move(out), false);
  }
  if (name != "enumerate") return std::nullopt;
  for (size_t i = 0; i < list->items->size(); ++i)
    out.push_back(make_list({Integer(i), (*list->items)[i]}, true));
  return make_list(std::move(out), false);
}

static std::optional<Object> mathematics(const std::string& name, const std::vector<double>& args) {
  if (args.size() == 1) {
    const double x = args[0];
    if (name == "sqrt") return Object(std::sqrt(x));
    if (name == "exp") return Object(std::exp(x));
    if (name == "log") return Object(std::log(x));
    if (name == "log2") return Object(std::log2(x));
    if (std::fabs(x) < 9e18) {
      if (name == "ceil") return Object(Integer(static_cast<int64_t>(std::ceil(x))));
      if (name == "floor") return Object(Integer(static_cast<int64_t>(std::floor(x))));
    }
  }
  if (args.size() == 2 && name == "pow") return Object(std::pow(args[0], args[1]));
  return std::nullopt;
}

Object Evaluator::call_python(const std::string& path, const ast::Expr& call) {
  Arguments args = arguments(call);
  const std::string name =
      path.substr(path.find('.') == std::string::npos ? 0 : path.find('.') + 1);
  const auto cannot = [&]() -> Object {
    fail(kBadArgument, call.place, "`{}` cannot be evaluated here", name);
  };
  for (auto& item : args.items) {
    if (!item.keyword.empty()) return cannot();
    item.used = true;
  }
  const std::vector<Arguments::Item>& items = args.items;
  if (path.starts_with("math.")) {
    std::vector<double> numbers;
    for (const auto& item : items) {
      const auto number = number_of(item.value);
      if (!number) return cannot();
      numbers.push_back(*number);
    }
    const auto out = mathematics(name, numbers);
    return out ? *out : cannot();
  }
  if ((name == "min" || name == "max") && items.size() >= 2) {
    const BinaryOp op = name == "min" ? BinaryOp::kMin : BinaryOp::kMax;
    Object out = items[0].value;
    for (size_t i = 1; i < items.size(); ++i) {
      const Object& next = items[i].value;
      if (!out.is_literal() || !next.is_literal()) {
        out = binary(op, out, next, call.place, true);
      } else {
        const Object less = python("<", next, out, call.place);
        if (*less.as<bool>() == (op == BinaryOp::kMin)) out = next;
      }
    }
    return out;
  }
  if (name == "range" && !items.empty() && items.size() <= 3) {
    std::vector<Integer> bounds;
    for (const auto& item : items) bounds.push_back(to_int(item.value, item.place, "a bound"));
    const Integer begin = bounds.size() > 1 ? bounds[0] : 0;
    const Integer end = bounds.size() > 1 ? bounds[1] : bounds[0];
    const Integer step = bounds.size() > 2 ? bounds[2] : 1;
    if (step == 0) return cannot();
    std::vector<Object> out;
    for (Integer i = begin; step > 0 ? i < end : i > end; i += step) {
      if (Integer(out.size()) >= kLongestList)
        fail(kLimitExceeded, call.place, "a list of more than {} elements",
             static_cast<int64_t>(kLongestList));
      out.emplace_back(i);
    }
    module_.charge(out.size(), call.place);
    return make_list(std::move(out), false);
  }
  if (name == "zip" && !items.empty()) {
    std::vector<Object> out;
    for (size_t i = 0;; ++i) {
      std::vector<Object> row;
      for (const auto& item : items) {
        const auto& list = to_items(item.value, item.place, "an argument of `zip`");
        if (i >= list.size()) return make_list(std::move(out), false);
        row.push_back(list[i]);
      }
      out.push_back(make_list(std::move(row), true));
    }
  }
  if (items.size() == 1) {
    if (name == "min" || name == "max" || name == "sum") {
      const auto& list = to_items(items[0].value, items[0].place, "the argument");
      if (list.empty()) return name == "sum" ? Object(Integer(0)) : cannot();
      Object out = list[0];
      for (size_t i = 1; i < list.size(); ++i) {
        if (name == "sum") {
          out = combine("+", out, list[i], call.place);
        } else if (out.is_literal() && list[i].is_literal()) {
          const Object less = python("<", list[i], out, call.place);
          if (*less.as<bool>() == (name == "min")) out = list[i];
        } else {
          return cannot();
        }
      }
      return out;
    }
    if (auto out = convert(name, items[0].value)) return *out;
  }
  return cannot();
}

// ---- strings and lists --------------------------------------------------------------------------

Object Evaluator::eval_format(const ast::Expr& expr) {
  std::string out;
  for (const auto& piece : expr.items) {
    const Object value = eval(*piece);
    if (const auto* text = value.as<std::string>()) {
      out += *text;
    } else if (const auto* integer = value.as<Integer>()) {
      out += fmt::format("{}", static_cast<int64_t>(*integer));
    } else if (const auto* flag = value.as<bool>()) {
      out += *flag ? "True" : "False";
    } else {
      fail(kUnsupported, piece->place, "{} in an f-string", script::describe(value));
    }
    module_.charge(out.size() / 16, expr.place);
  }
  return out;
}

void Evaluator::assign_python(const ast::Expr& target, const Object& value) {
  if (target.kind == ExprKind::kName)
    return define(target.text, held(value, target.text, target.place));
  if (target.kind != ExprKind::kTuple && target.kind != ExprKind::kList)
    fail(kSyntax, target.place, "this cannot be assigned to");
  const Object list = unpacked(value, target.place);
  const auto& items = to_items(list, target.place, "what is unpacked");
  const size_t names = target.items.size();
  for (size_t i = 0, taken = 0; i < names; ++i) {
    if (target.items[i]->kind == ExprKind::kStarred) {
      if (items.size() + 1 < names)
        fail(kBadArgument, target.place, "{} values for {} names", items.size(), names);
      const size_t count = items.size() + 1 - names;
      const auto first = items.begin() + static_cast<std::ptrdiff_t>(taken);
      assign_python(
          *target.items[i]->items[0],
          make_list(std::vector<Object>(first, first + static_cast<std::ptrdiff_t>(count)), false));
      taken += count;
      continue;
    }
    if (taken >= items.size() || (i + 1 == names && taken + 1 != items.size()))
      fail(kBadArgument, target.place, "{} values for {} names", items.size(), names);
    assign_python(*target.items[i], items[taken++]);
  }
}

Object Evaluator::eval_list_of(const ast::Expr& expr) {
  const Object source = eval(*expr.items[2]);
  std::vector<Object> out;
  for (const Object& item : to_items(source, expr.items[2]->place, "what a list is made of")) {
    const Scope scope(*this);
    assign_python(*expr.items[1], item);
    if (expr.items[3]) {
      const auto holds = decided(eval(*expr.items[3]));
      if (!holds)
        fail(kUnsupported, expr.items[3]->place,
             "a condition of the program decides what a list holds");
      if (!*holds) continue;
    }
    out.push_back(eval(*expr.items[0]));
    module_.charge(1, expr.place);
  }
  return make_list(std::move(out), false);
}

// ---- helper functions ---------------------------------------------------------------------------

std::optional<bool> Evaluator::decided(const Object& condition) {
  if (condition.is_none()) return false;
  if (const auto number = number_of(condition)) return *number != 0;
  if (const auto* text = condition.as<std::string>()) return !text->empty();
  if (const auto* list = condition.as<List>()) return !list->items->empty();
  return std::nullopt;
}

void Evaluator::bind_parameters(const Helper& helper, Arguments& args, const ast::Expr& call) {
  const auto bind = [&](size_t i, const std::string& name, const ast::Expr* otherwise) {
    const Arguments::Item* given = args.find(i, {name});
    const Object* known = nullptr;
    if (!given && helper.defaults)
      if (const auto found = helper.defaults->find(name); found != helper.defaults->end())
        known = &found->second;
    if (!given && !known && !otherwise) given = &need(args, call, i, {name});
    if (given || known) return define(name, held(given ? given->value : *known, name, call.place));
    const InTextOf text(module_, helper);
    define(name, eval(*otherwise));
  };
  const auto bind_rest = [&](size_t i, const std::string& name) {  // *args: the rest by position
    std::vector<Object> rest;
    for (size_t k = i; k < args.positional; ++k) {
      args.items[k].used = true;
      rest.push_back(held(args.items[k].value, name, call.place));
    }
    define(name, make_list(std::move(rest), true));
    args.positional = std::min(args.positional, i);
  };
  if (!helper.definition) {
    const auto& names = helper.lambda->operators;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i][0] == '*')
        bind_rest(i, names[i].substr(1));
      else
        bind(i, names[i], nullptr);
    }
    return finish(args, call);
  }
  const auto& parameters = helper.definition->parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].starred)
      bind_rest(i, parameters[i].name);
    else
      bind(i, parameters[i].name, parameters[i].otherwise.get());
  }
  finish(args, call);
}

bool Evaluator::is_hygienic(const ast::Stmt& macro) {
  bool hygienic = true;
  for (const auto& decorator : macro.decorators)
    for (const ast::Keyword& keyword : decorator->keywords)
      if (keyword.name == "hygienic") hygienic = keyword.value->kind != ExprKind::kFalse;
  return hygienic;
}

std::optional<Object> Evaluator::run_helper(const ast::Body& body) {
  for (const auto& stmt : body) {
    module_.charge(1, stmt->place);
    switch (stmt->kind) {
      case StmtKind::kReturn: return stmt->value ? eval(*stmt->value) : Object();
      case StmtKind::kAssign:
        if (!stmt->more_targets.empty())
          fail(kUnsupported, stmt->place, "an assignment with several `=`");
        assign_python(*stmt->target, eval(*stmt->value));
        continue;
      case StmtKind::kAugmented: {
        const Object value =
            combine(stmt->text, eval(*stmt->target), eval(*stmt->value), stmt->place);
        assign_python(*stmt->target, value);
        continue;
      }
      case StmtKind::kIf: {
        const auto holds = decided(eval(*stmt->value));
        if (!holds)
          fail(kUnsupported, stmt->value->place,
               "a condition of the program decides what a Python function does; "
               "T.if_then_else or T.Select choose a value");
        if (auto out = run_helper(*holds ? stmt->body : stmt->orelse)) return out;
        continue;
      }
      case StmtKind::kExpr:
        if (stmt->value->kind == ExprKind::kString) continue;
        if (stmt->value->kind == ExprKind::kCall && call_statement(*stmt->value)) continue;
        break;
      case StmtKind::kAssert:
      case StmtKind::kPass:
      case StmtKind::kImport: continue;
      default: break;
    }
    fail(kUnsupported, stmt->place, "this statement in a Python function that is called here");
  }
  return std::nullopt;
}

Object Evaluator::call_helper(const Helper& helper, Arguments args, const ast::Expr& call) {
  constexpr int kDeepest = 50;
  module_.charge(1, call.place);
  if (module_.call_depth >= kDeepest)
    fail(kLimitExceeded, call.place, "Python functions call each other more than {} deep",
         kDeepest);
  struct Depth {
    int& depth;
    explicit Depth(int& d) : depth(d) { ++depth; }
    ~Depth() { --depth; }
  } depth(module_.call_depth);
  const bool sees_caller = helper.is_macro && helper.definition && !is_hygienic(*helper.definition);
  const Scope scope(*this, sees_caller ? this->depth() : std::min(helper.visible, this->depth()));
  bind_parameters(helper, args, call);
  try {
    Object out;
    {
      const InTextOf text(module_, helper);
      if (helper.lambda) {
        out = eval(*helper.lambda->items[0]);
      } else if (auto value = run_helper(helper.definition->body)) {
        out = std::move(*value);
      }
    }
    check_size(out, call.place);
    return out;
  } catch (CompileError& error) {
    error.note(origin(call.place), "called here");
    throw;
  }
}

}  // namespace tenon::script
