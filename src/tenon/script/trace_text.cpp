// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/trace_text.h"

#include <limits>
#include <map>

#include "tenon/script/literals.h"
#include "tenon/tir/schedule/primitives.h"

namespace tenon::script {

namespace {

using ast::ExprKind;
using tir::BlockRV;
using tir::Instruction;
using tir::LoopRV;
using tir::TraceValue;

/// Blocks that are results have names which no block of a function has; replay() knows which block
/// each became.
BlockRV result_block(const std::string& name) { return {"%" + name}; }

using tir::ArgumentKind;
using tir::Primitive;

class TraceReader {
 public:
  TraceReader(std::shared_ptr<const SourceFile> file, const tir::PrimFunc& function,
              const std::vector<tir::TensorIntrin>& intrins)
      : file_(std::move(file)) {
    trace_.symbols = tir::symbolic_vars(function);
    for (const Ref<Var>& symbol : trace_.symbols) variables_.emplace(symbol->name, symbol);
    for (const tir::TensorIntrin& intrin : intrins)
      trace_.intrins.emplace(intrin.implementation_name, intrin);
  }

  tir::Trace read() {
    Diagnostics diagnostics;
    const ast::Body body = ast::parse_file(file_, diagnostics, ast::OtherPython::kReported);
    diagnostics.throw_if_any();
    for (const ast::StmtPtr& stmt : body) statement(*stmt);
    return std::move(trace_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(const Code& code, const Place& place, fmt::format_string<Args...> format,
                         Args&&... args) const {
    throw CompileError(code, Origin::script(file_, place.line, place.column, place.length), format,
                       std::forward<Args>(args)...);
  }

  void statement(const ast::Stmt& stmt) {
    const bool assigns = stmt.kind == ast::StmtKind::kAssign && stmt.more_targets.empty();
    if (!stmt.value || (stmt.kind != ast::StmtKind::kExpr && !assigns))
      fail(kSyntax, stmt.place, "this is no application of a primitive; expected `sch.NAME(...)`");
    const ast::Expr& call = *stmt.value;
    Instruction step;
    step.name = primitive(call);
    const Primitive* known = tir::find_primitive(step.name);
    bind(*known, call, step);
    if (step.name == "tensorize" && !trace_.intrins.count(*step.attrs[0].second.as<std::string>()))
      fail(kUndefined, call.place, "no tensor intrinsic has the implementation `{}`",
           *step.attrs[0].second.as<std::string>());
    if (assigns) {
      const ast::Expr& target = *stmt.target;
      const bool several = target.kind == ExprKind::kTuple || target.kind == ExprKind::kList;
      for (size_t i = 0; i < (several ? target.items.size() : 1); ++i)
        step.outputs.push_back(define(several ? *target.items[i] : target, *known));
    }
    trace_.add(std::move(step));
  }

  /// Arguments by position and by name, as Python binds them.
  void bind(const Primitive& known, const ast::Expr& call, Instruction& step) const {
    std::vector<Primitive::Parameter> parameters = known.inputs;
    parameters.insert(parameters.end(), known.attrs.begin(), known.attrs.end());
    const size_t count = call.items.size() - 1;
    if (!known.is_variadic && count > parameters.size())
      fail(kBadArgument, call.place, "`{}` is given {} arguments; expected at most {}", known.name,
           count, parameters.size());
    std::vector<const ast::Expr*> given(known.is_variadic ? count : parameters.size());
    for (size_t i = 0; i < count; ++i) given[i] = call.items[i + 1].get();
    for (const ast::Keyword& keyword : call.keywords) {
      const auto found =
          std::find_if(parameters.begin(), parameters.end(),
                       [&](const auto& parameter) { return parameter.name == keyword.name; });
      if (found == parameters.end() || known.is_variadic)
        fail(kBadArgument, keyword.place, "`{}` has no argument `{}`", known.name, keyword.name);
      const ast::Expr*& value = given[static_cast<size_t>(found - parameters.begin())];
      if (value)
        fail(kBadArgument, keyword.place, "`{}` of `{}` is given twice", keyword.name, known.name);
      value = keyword.value.get();
    }
    for (size_t i = 0; i < given.size(); ++i) {
      if (known.is_variadic || i < known.inputs.size()) {
        if (!given[i]) missing(known, parameters[i], call);
        step.inputs.push_back(input(known, i, *given[i]));
        continue;
      }
      const Primitive::Parameter& attr = parameters[i];
      if (!given[i] && !attr.default_value) missing(known, attr, call);
      step.attrs.emplace_back(attr.name, given[i]
                                             ? checked(known, i - known.inputs.size(), *given[i])
                                             : *attr.default_value);
    }
  }

  [[noreturn]] void missing(const Primitive& known, const Primitive::Parameter& parameter,
                            const ast::Expr& call) const {
    fail(kBadArgument, call.place, "`{}` has no value for `{}`", known.name, parameter.name);
  }

  TraceValue input(const Primitive& known, size_t i, const ast::Expr& expr) const {
    TraceValue value = handle(expr);
    if (const auto misfit = tir::misfit_of_input(known, i, value))
      fail(kBadArgument, expr.place, "{}", *misfit);
    return value;
  }

  AttrValue checked(const Primitive& known, size_t i, const ast::Expr& expr) const {
    AttrValue value =
        known.attrs[i].kind == ArgumentKind::kIndexMap ? index_map(expr) : attribute(expr);
    if (const auto misfit = tir::misfit_of_attr(known, i, value))
      fail(kBadArgument, expr.place, "{}", *misfit);
    return value;
  }

  std::string primitive(const ast::Expr& call) const {
    const bool is_call = call.kind == ExprKind::kCall && !call.items.empty() &&
                         call.items[0]->kind == ExprKind::kAttribute &&
                         call.items[0]->items[0]->kind == ExprKind::kName &&
                         call.items[0]->items[0]->text == "sch";
    if (!is_call) fail(kSyntax, call.place, "expected `sch.NAME(...)`");
    const std::string& name = call.items[0]->text;
    if (!tir::find_primitive(name))
      fail(kBadArgument, call.items[0]->place, "`{}` is no primitive of schedules", name);
    return name;
  }

  TraceValue define(const ast::Expr& target, const Primitive& giver) {
    if (target.kind != ExprKind::kName)
      fail(kSyntax, target.place, "expected a name for each result");
    if (giver.gives_numbers()) {
      const Ref<Var> number = var(target.text);
      variables_.insert_or_assign(target.text, number);
      return tir::NumberRV{number};
    }
    const TraceValue value = giver.gives_blocks() ? TraceValue(result_block(target.text))
                                                  : TraceValue(LoopRV{var(target.text)});
    handles_.insert_or_assign(target.text, value);
    return value;
  }

  TraceValue handle(const ast::Expr& expr) const {
    if (expr.kind == ExprKind::kName) {
      const auto found = handles_.find(expr.text);
      if (found == handles_.end())
        fail(kUndefined, expr.place, "`{}` is no loop or block of the trace so far", expr.text);
      return found->second;
    }
    if (expr.kind == ExprKind::kCall && primitive(expr) == "get_block") {
      Instruction block;
      bind(*tir::find_primitive("get_block"), expr, block);
      return BlockRV{*block.attrs[0].second.as<std::string>()};
    }
    if (expr.kind == ExprKind::kString) return BlockRV{expr.text};
    fail(kSyntax, expr.place, "expected a loop or a block");
  }

  AttrValue attribute(const ast::Expr& expr) const {
    return ast::literal_value(expr, [&](const ast::Expr& other) -> AttrValue {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      const bool is_negative = other.kind == ExprKind::kUnary && other.text == "-";
      const std::string& name = is_negative ? other.items[0]->text : other.text;
      if (name == "inf") return is_negative ? -kInfinity : kInfinity;
      if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
      const Expr value = expression(other, variables_);
      if (const auto number = as_int(value)) return *number;
      return NodePtr(value);
    });
  }

  using Variables = std::map<std::string, Ref<Var>>;

  AttrValue index_map(const ast::Expr& expr) const {
    if (expr.kind != ExprKind::kLambda) fail(kSyntax, expr.place, "expected a lambda");
    Variables variables = variables_;
    AttrList from, to;
    for (const std::string& name : expr.operators) {
      const Ref<Var> index = var(name);
      variables.insert_or_assign(name, index);
      from.push_back(NodePtr(index));
    }
    const ast::Expr& body = *expr.items[0];
    const bool several = body.kind == ExprKind::kTuple || body.kind == ExprKind::kList;
    for (size_t i = 0; i < (several ? body.items.size() : 1); ++i)
      to.push_back(NodePtr(expression(several ? *body.items[i] : body, variables)));
    return AttrList{AttrValue(from), AttrValue(to)};
  }

  Expr expression(const ast::Expr& expr, const Variables& variables) const {
    const auto operand = [&](size_t i) { return expression(*expr.items[i], variables); };
    if (expr.kind == ExprKind::kInteger) {
      if (expr.integer > std::numeric_limits<int64_t>::max())
        fail(kBadLiteral, expr.place, "this number needs more than 64 bits");
      return int64(static_cast<int64_t>(expr.integer));
    }
    if (expr.kind == ExprKind::kName) {
      const auto found = variables.find(expr.text);
      if (found == variables.end())
        fail(kUndefined, expr.place, "`{}` is no dimension of the function", expr.text);
      return found->second;
    }
    if (expr.kind == ExprKind::kUnary && expr.text == "-") return int64(0) - operand(0);
    if (expr.kind == ExprKind::kBinary) {
      static const std::map<std::string, BinaryOp> kOperators = {
          {"+", BinaryOp::kAdd},       {"-", BinaryOp::kSub},      {"*", BinaryOp::kMul},
          {"//", BinaryOp::kFloorDiv}, {"%", BinaryOp::kFloorMod},
      };
      const auto found = kOperators.find(expr.text);
      if (found != kOperators.end()) return binary(found->second, operand(0), operand(1));
    }
    if (expr.kind == ExprKind::kCall && expr.items[0]->kind == ExprKind::kName) {
      const std::string& name = expr.items[0]->text;
      if (name == "Min" && expr.items.size() == 3) return min(operand(1), operand(2));
      if (name == "Max" && expr.items.size() == 3) return max(operand(1), operand(2));
      if (name == "int64" && expr.items.size() == 2) return cast(kInt64, operand(1));
      if (name == "int32" && expr.items.size() == 2) return cast(kInt32, operand(1));
    }
    fail(kSyntax, expr.place,
         "expected a sum, product, quotient or remainder of whole numbers and dimensions");
  }

  std::shared_ptr<const SourceFile> file_;
  tir::Trace trace_;
  Variables variables_;
  std::map<std::string, TraceValue> handles_;
};

}  // namespace

tir::Trace parse_trace(const std::shared_ptr<const SourceFile>& file,
                       const Ref<tir::PrimFunc>& function,
                       const std::vector<tir::TensorIntrin>& intrins) {
  return TraceReader(file, *function, intrins).read();
}

tir::Trace parse_trace(const std::string& text, const Ref<tir::PrimFunc>& function,
                       const std::vector<tir::TensorIntrin>& intrins) {
  return parse_trace(std::make_shared<const SourceFile>(SourceFile{"<trace>", text}), function,
                     intrins);
}

}  // namespace tenon::script
