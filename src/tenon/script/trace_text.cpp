// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/trace_text.h"

#include <limits>
#include <map>

#include "tenon/script/literals.h"

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

using tir::TraceKind;

std::string_view words_of(TraceKind kind) {
  switch (kind) {
    case TraceKind::kBlock: return "a block";
    case TraceKind::kLoop:
    case TraceKind::kLoops: return "a loop";
    case TraceKind::kLoopOrBlock: return "a loop or a block";
    case TraceKind::kNumber: return "a whole number";
    case TraceKind::kNumbers: return "a list of whole numbers";
    case TraceKind::kText: return "a string";
    case TraceKind::kExprs: return "a list of sizes";
    case TraceKind::kScalar: return "a number";
    case TraceKind::kBuffer: return "(\"read\", i) or (\"write\", i)";
    case TraceKind::kIndexMap: return "a lambda";
    case TraceKind::kAny: return "a value";
  }
  unreachable("a kind of argument that does not exist");
}

bool is_kind(const AttrValue& value, TraceKind kind) {
  const auto* list = value.as<AttrList>();
  const auto is_number = [](const AttrValue& v) { return v.as<int64_t>() != nullptr; };
  const auto is_size = [](const AttrValue& v) {
    return v.is_none() || v.as<int64_t>() || v.as<NodePtr>();
  };
  switch (kind) {
    case TraceKind::kNumber: return is_number(value);
    case TraceKind::kNumbers: return list && std::all_of(list->begin(), list->end(), is_number);
    case TraceKind::kText: return value.as<std::string>();
    case TraceKind::kExprs: return list && std::all_of(list->begin(), list->end(), is_size);
    case TraceKind::kScalar: return !list && !value.as<std::string>();
    case TraceKind::kBuffer: {
      const auto* role = list && list->size() == 2 ? (*list)[0].as<std::string>() : nullptr;
      return role && (*role == "read" || *role == "write") && is_number((*list)[1]);
    }
    default: return true;
  }
}

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
    const tir::Primitive* known = tir::find_primitive(step.name);
    // The name of a block may stand without `name=`.
    if (step.name == "get_block" && call.items.size() == 2 && call.keywords.empty())
      step.attrs.emplace_back("name", checked(*known, known->attrs[0], *call.items[1]));
    else
      step.inputs = inputs(*known, call);
    for (const ast::Keyword& keyword : call.keywords)
      if (std::none_of(known->attrs.begin(), known->attrs.end(),
                       [&](const auto& attr) { return attr.name == keyword.name; }))
        fail(kBadArgument, keyword.place, "`{}` has no argument `{}`", step.name, keyword.name);
    // They are used by position.
    for (size_t i = step.attrs.size(); i < known->attrs.size(); ++i) {
      const auto found =
          std::find_if(call.keywords.begin(), call.keywords.end(),
                       [&](const auto& keyword) { return keyword.name == known->attrs[i].name; });
      if (found == call.keywords.end())
        fail(kBadArgument, call.place, "`{}` has no value for `{}`", step.name,
             known->attrs[i].name);
      step.attrs.emplace_back(found->name, checked(*known, known->attrs[i], *found->value));
    }
    if (step.name == "tensorize" && !trace_.intrins.count(*step.attrs[0].second.as<std::string>()))
      fail(kUndefined, call.place, "no tensor intrinsic has the implementation `{}`",
           *step.attrs[0].second.as<std::string>());
    if (assigns) {
      const ast::Expr& target = *stmt.target;
      const bool several = target.kind == ExprKind::kTuple || target.kind == ExprKind::kList;
      for (size_t i = 0; i < (several ? target.items.size() : 1); ++i)
        step.outputs.push_back(define(several ? *target.items[i] : target, known->gives_blocks));
    }
    trace_.add(std::move(step));
  }

  /// The loops and blocks that a call is given, as the primitive takes them.
  std::vector<TraceValue> inputs(const tir::Primitive& known, const ast::Expr& call) const {
    const size_t given = call.items.size() - 1;
    const bool takes_any_number = known.inputs == std::vector{TraceKind::kLoops};
    if (!takes_any_number && given != known.inputs.size())
      fail(kBadArgument, call.place, "`{}` is given {} loops and blocks; expected {}", known.name,
           given, known.inputs.size());
    std::vector<TraceValue> values;
    for (size_t i = 0; i < given; ++i) {
      const TraceKind kind = takes_any_number ? TraceKind::kLoops : known.inputs[i];
      values.push_back(handle(*call.items[i + 1]));
      const bool is_block = std::holds_alternative<BlockRV>(values.back());
      if (kind != TraceKind::kLoopOrBlock && is_block != (kind == TraceKind::kBlock))
        fail(kBadArgument, call.items[i + 1]->place, "`{}` is given {}; expected {}", known.name,
             words_of(is_block ? TraceKind::kBlock : TraceKind::kLoop), words_of(kind));
    }
    return values;
  }

  AttrValue checked(const tir::Primitive& known, const tir::Primitive::Attr& attr,
                    const ast::Expr& expr) const {
    AttrValue value = attr.kind == TraceKind::kIndexMap ? index_map(expr) : attribute(expr);
    if (!is_kind(value, attr.kind))
      fail(kBadArgument, expr.place, "`{}` of `{}` is {}; expected {}", attr.name, known.name,
           value.str(), words_of(attr.kind));
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

  TraceValue define(const ast::Expr& target, bool is_block) {
    if (target.kind != ExprKind::kName)
      fail(kSyntax, target.place, "expected a name for each result");
    const TraceValue value =
        is_block ? TraceValue(result_block(target.text)) : TraceValue(LoopRV{var(target.text)});
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
    if (expr.kind == ExprKind::kCall && primitive(expr) == "get_block" && expr.items.size() == 2 &&
        expr.items[1]->kind == ExprKind::kString)
      return BlockRV{expr.items[1]->text};
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
