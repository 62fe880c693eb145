// SPDX-License-Identifier: Apache-2.0
#include "tenon/script/evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tenon/graph/op.h"
#include "tenon/script/words.h"

namespace tenon::script {

using ast::ExprKind;
using ast::Integer;

std::string describe(const Object& object) {
  if (object.is_none()) return "`None`";
  if (const auto* flag = object.as<bool>()) return *flag ? "`True`" : "`False`";
  if (const auto* number = object.as<Integer>())
    return fmt::format("the integer {}", static_cast<int64_t>(*number));
  if (const auto* number = object.as<double>()) return fmt::format("the number {}", *number);
  if (object.as<std::string>()) return "a string";
  if (object.as<DType>()) return "a dtype";
  if (const auto* expr = object.as<Expr>())
    return fmt::format("an expression of dtype {}", (*expr)->dtype.str());
  if (const auto* buffer = object.as<Ref<tir::Buffer>>())
    return fmt::format("buffer `{}`", (*buffer)->name);
  if (object.as<Region>()) return "a region of a buffer";
  if (object.as<Pointer>()) return "a pointer";
  if (const auto* path = object.as<Path>()) return "`" + path->text + "`";
  if (object.as<ModuleName>()) return "the module";
  if (const auto* function = object.as<FunctionName>()) return "function `" + function->name + "`";
  if (const auto* list = object.as<List>())
    return fmt::format("a {} of {}", list->is_tuple ? "tuple" : "list", list->items->size());
  if (object.as<Dict>()) return "a dict";
  if (object.as<Helper>()) return "a function of Python";
  if (object.as<Unknown>()) return "something unknown";
  if (const auto* function = object.as<CapturedFunction>())
    return "function `" + function->name + "`";
  if (object.as<CapturedModule>()) return "a module";
  if (const auto* host = object.as<Host>()) return host->value->describe();
  if (const auto* value = object.as<graph::Value>())
    return "a value of type " + graph::str(graph::type_of(*value));
  if (const auto* type = object.as<graph::Type>()) return "type " + graph::str(*type);
  return "a constant";
}

std::string canonical(const std::string& path) {
  const auto it = other_spellings().find(path);
  if (it != other_spellings().end()) return it->second;
  // `op.conv2d`, as `from tvm.relax import op` was first written: neural operators are among them.
  if (path.starts_with("op.")) {
    const std::string name = path.substr(3);
    return !graph::find_op(name) && graph::find_op("nn." + name) ? "R.nn." + name : "R." + name;
  }
  // The packages of TVM and of Tenon in which the languages are found.
  for (const std::string_view package :
       {"tvm.script.parser.", "tvm.script.ir_builder.", "tvm.script.", "tenon.script.", "tvm."}) {
    if (!path.starts_with(package)) continue;
    const std::string_view name = std::string_view(path).substr(package.size());
    if (name == "tir" || name == "tirx" || name == "s_tir") return "T";
    if (name == "relax") return "R";
    if (name == "ir") return "I";
    if (name == "ir_module") return "I.ir_module";
  }
  return path;
}

std::string canonical_path(const std::string& path) {
  std::string out;
  for (size_t at = 0; at <= path.size();) {
    const size_t dot = std::min(path.find('.', at), path.size());
    out = canonical(out + (at == 0 ? "" : ".") + path.substr(at, dot - at));
    at = dot + 1;
  }
  return out;
}

// ---- names --------------------------------------------------------------------------------------

void Evaluator::define(const std::string& name, Object value) {
  scopes_.back().names[name] = std::move(value);
}

void Evaluator::poison(const ast::Expr& target) {
  if (target.kind == ExprKind::kName) return define(target.text, Unknown{});
  if (target.kind == ExprKind::kTuple || target.kind == ExprKind::kList ||
      target.kind == ExprKind::kStarred)
    for (const auto& item : target.items) poison(*item);
}

const Object* Evaluator::lookup_own(const std::string& name) const {
  for (size_t at = scopes_.size(); at > 0; at = scopes_[at - 1].visible) {
    const auto it = scopes_[at - 1].names.find(name);
    if (it != scopes_[at - 1].names.end()) return &it->second;
  }
  return nullptr;
}

const Object* Evaluator::lookup(const std::string& name) const {
  if (const Object* own = lookup_own(name)) return own;
  const Evaluator* around = module_.surroundings;
  if (around && around != this) return around->lookup(name);
  // What the module defines hides what the program around it has under the same name.
  if (!module_.names || name == "cls" || name == module_.class_name ||
      module_.functions.count(name))
    return nullptr;
  return module_.names->find(name);
}

Object Evaluator::eval_name(const ast::Expr& expr) {
  if (const Object* found = lookup(expr.text)) {
    if (const auto* scalar = found->as<Scalar>())
      return Expr(make<tir::BufferLoad>(
          scalar->buffer, std::vector<Expr>{imm(default_int_, int64_t{0})}, origin(expr.place)));
    if (const auto* function = found->as<CapturedFunction>())
      return module_.capture(*function, expr.place);
    const auto* unknown = found->as<Unknown>();
    if (!unknown) return *found;
    if (unknown->reason.empty()) throw PoisonedUse(origin(expr.place));
    throw CompileError(kUndefined, origin(expr.place), "`{}` {}", expr.text, unknown->reason)
        .note(origin(unknown->place), "`{}` is set here", expr.text);
  }
  static const std::unordered_map<std::string_view, std::string_view> kProvided = {
      {"T", "T"},
      {"tir", "T"},
      {"tirx", "T"},
      {"R", "R"},
      {"relax", "R"},
      {"I", "I"},
      {"ir", "I"},
      {"tvm", "tvm"},
      {"range", "range"},
      {"float", "py.float"},
      {"int", "py.int"},
      {"bool", "py.bool"},
      {"min", "py.min"},
      {"max", "py.max"},
      {"len", "py.len"},
      {"slice", "py.slice"},
      {"list", "py.list"},
      {"tuple", "py.tuple"},
      {"abs", "py.abs"},
      {"sum", "py.sum"},
      {"str", "py.str"},
      {"zip", "py.zip"},
      {"enumerate", "py.enumerate"},
      {"reversed", "py.reversed"},
      {"TypeVar", "py.TypeVar"},
      {"op", "op"},
      {"dataflow", "R.dataflow"}};
  const auto provided = kProvided.find(expr.text);
  if (provided != kProvided.end()) return Path{std::string(provided->second)};
  if (expr.text == "cls" || (!module_.class_name.empty() && expr.text == module_.class_name))
    return ModuleName{};
  // A function of the module, by its name alone.
  const auto function = module_.functions.find(expr.text);
  if (function != module_.functions.end()) return FunctionName{function->second.name};
  fail(kUndefined, expr.place, "`{}` is not defined", expr.text);
}

std::string Evaluator::path_of(const ast::Expr& callee) {
  // Without evaluating anything: `A.data` of an undefined A is reported where it is evaluated.
  if (callee.kind == ExprKind::kName) {
    if (lookup(callee.text)) {
      const auto* path = lookup(callee.text)->as<Path>();
      return path ? path->text : "";
    }
    if (callee.text == "cls" || callee.text == module_.class_name) return "";
    try {
      const Object object = eval_name(callee);
      const auto* path = object.as<Path>();
      return path ? path->text : "";
    } catch (const CompileError&) {
      return "";
    }
  }
  if (callee.kind != ExprKind::kAttribute) return "";
  const std::string base = path_of(*callee.items[0]);
  if (!base.empty()) return canonical(base + "." + callee.text);
  // `scripts.T.grid`, of a module of the program around.
  const ast::Expr* root = &callee;
  while (root->kind == ExprKind::kAttribute) root = root->items[0].get();
  const Object* owner = root->kind == ExprKind::kName ? lookup(root->text) : nullptr;
  if (!owner || !owner->as<Host>()) return "";
  const Object object = eval(callee);
  const auto* path = object.as<Path>();
  return path ? path->text : "";
}

std::string Evaluator::callee_path(const ast::Expr& expr) {
  return expr.kind == ExprKind::kCall ? path_of(*expr.items[0]) : "";
}

// ---- evaluation ---------------------------------------------------------------------------------

Object Evaluator::eval(const ast::Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kName: return eval_name(expr);
    case ExprKind::kInteger: return Integer(expr.integer);
    case ExprKind::kFloat: return expr.number;
    case ExprKind::kString: return expr.text;
    case ExprKind::kTrue: return true;
    case ExprKind::kFalse: return false;
    case ExprKind::kNone: return Object();
    case ExprKind::kEllipsis: fail(kUnsupported, expr.place, "`...` as a value");
    case ExprKind::kTuple:
    case ExprKind::kList: {
      std::vector<Object> items;
      for (const auto& item : expr.items) {
        if (item->kind == ExprKind::kStarred) {
          const Object inner = eval(*item->items[0]);
          const auto& all = to_items(inner, item->place, "what `*` unpacks");
          items.insert(items.end(), all.begin(), all.end());
        } else {
          items.push_back(eval(*item));
        }
      }
      return make_list(std::move(items), expr.kind == ExprKind::kTuple);
    }
    case ExprKind::kDict: {
      std::vector<std::pair<Object, Object>> items;
      for (size_t i = 0; i + 1 < expr.items.size(); i += 2)
        items.emplace_back(eval(*expr.items[i]), eval(*expr.items[i + 1]));
      return Dict{std::make_shared<const std::vector<std::pair<Object, Object>>>(std::move(items))};
    }
    case ExprKind::kAttribute: return eval_attribute(expr);
    case ExprKind::kSubscript: return subscript(eval(*expr.items[0]), expr);
    case ExprKind::kSlice: fail(kSyntax, expr.place, "a slice outside an index");
    case ExprKind::kCall: return eval_call(expr);
    case ExprKind::kBinary: return eval_binary(expr);
    case ExprKind::kUnary: return eval_unary(expr);
    case ExprKind::kCompare: return eval_compare(expr);
    case ExprKind::kBool: return eval_bool(expr);
    case ExprKind::kIfElse: {
      const Object condition = eval(*expr.items[0]);
      if (const auto holds = decided(condition)) return eval(*expr.items[*holds ? 1 : 2]);
      Expr x, y;
      unify(eval(*expr.items[1]), eval(*expr.items[2]), expr.place, x, y);
      return Expr(make<Call>(IntrinsicId::kIfThenElse,
                             std::vector<NodePtr>{to_expr(condition, expr.items[0]->place), x, y},
                             kVoid, origin(expr.place)));
    }
    case ExprKind::kLambda: {
      Helper out{.lambda = &expr, .visible = depth()};
      std::map<std::string, Object> defaults;
      for (const ast::Keyword& keyword : expr.keywords)
        defaults.emplace(keyword.name, eval(*keyword.value));
      out.defaults = std::make_shared<const std::map<std::string, Object>>(std::move(defaults));
      return out;
    }
    case ExprKind::kFormat: return eval_format(expr);
    case ExprKind::kListOf: return eval_list_of(expr);
    case ExprKind::kStarred: fail(kSyntax, expr.place, "`*` outside a list of arguments");
  }
  unreachable("a kind of expression");
}

Object Evaluator::eval_attribute(const ast::Expr& expr) {
  const Object base = eval(*expr.items[0]);
  const std::string& name = expr.text;
  if (const auto* path = base.as<Path>()) {
    if (path->text == "math") {
      if (name == "inf") return std::numeric_limits<double>::infinity();
      if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
      if (name == "pi") return 3.141592653589793;
      if (name == "e") return 2.718281828459045;
    }
    return Path{canonical(path->text + "." + name)};
  }
  if (base.as<ModuleName>()) {
    const auto it = module_.functions.find(name);
    if (it == module_.functions.end())
      fail(kUndefined, expr.place, "the module has no function `{}`", name);
    return FunctionName{it->second.name};
  }
  if (auto out = attribute_of_host(base, name, expr)) return *out;
  const Ref<tir::Buffer>* buffer = base.as<Ref<tir::Buffer>>();
  if (const auto* pointer = base.as<Pointer>()) buffer = &pointer->buffer;
  if (buffer) {
    const tir::Buffer& b = **buffer;
    const auto list = [](const std::vector<Expr>& exprs) {
      return make_list(std::vector<Object>(exprs.begin(), exprs.end()), true);
    };
    if (name == "data") return Expr(b.data);
    if (name == "shape") return list(b.shape);
    if (name == "strides") return list(b.is_compact() ? tir::compact_strides(b.shape) : b.strides);
    if (name == "dtype") return b.dtype.str();
    if (name == "elem_offset") return b.elem_offset ? b.elem_offset : imm(default_int_, int64_t{0});
    if (name == "name") return b.name;
    if (name == "scope" || name == "access_ptr" || name == "vload" || name == "offset_of" ||
        name == "vstore")
      return Method{std::make_shared<const Object>(base), name};
    fail(kUnsupported, expr.place, "buffers have no attribute `{}` here", name);
  }
  if (const auto* scalar = base.as<Expr>()) {
    if (name == "dtype") return (*scalar)->dtype.str();
    if (name == "astype") return Method{std::make_shared<const Object>(base), name};
  }
  fail(kUnsupported, expr.place, "{} has no attribute `{}`", describe(base), name);
}

// ---- arithmetic ---------------------------------------------------------------------------------

static std::optional<BinaryOp> scalar_op(const std::string& op) {
  static const std::unordered_map<std::string, BinaryOp> kOps = {
      {"+", BinaryOp::kAdd},   {"-", BinaryOp::kSub},       {"*", BinaryOp::kMul},
      {"/", BinaryOp::kDiv},   {"//", BinaryOp::kFloorDiv}, {"%", BinaryOp::kFloorMod},
      {"==", BinaryOp::kEQ},   {"!=", BinaryOp::kNE},       {"<", BinaryOp::kLT},
      {"<=", BinaryOp::kLE},   {">", BinaryOp::kGT},        {">=", BinaryOp::kGE},
      {"and", BinaryOp::kAnd}, {"or", BinaryOp::kOr}};
  const auto it = kOps.find(op);
  return it == kOps.end() ? std::nullopt : std::optional(it->second);
}

// Python's own arithmetic, on two literals.
Object Evaluator::python(const std::string& op, const Object& a, const Object& b,
                         const Place& place) {
  const auto number = [](const Object& o) {
    if (const auto* flag = o.as<bool>()) return static_cast<double>(*flag);
    if (const auto* integer = o.as<Integer>()) return static_cast<double>(*integer);
    return *o.as<double>();
  };
  const auto compare = [&](const auto& x, const auto& y) -> std::optional<Object> {
    if (op == "==") return Object(x == y);
    if (op == "!=") return Object(x != y);
    if (op == "<") return Object(x < y);
    if (op == "<=") return Object(x <= y);
    if (op == ">") return Object(x > y);
    if (op == ">=") return Object(x >= y);
    return std::nullopt;
  };
  const auto zero = [&] { fail(kBadLiteral, place, "a division by zero"); };
  if (a.as<double>() || b.as<double>() || op == "/") {
    const double x = number(a), y = number(b);
    if (auto result = compare(x, y)) return *result;
    if (op == "+") return x + y;
    if (op == "-") return x - y;
    if (op == "*") return x * y;
    if (op == "**") return std::pow(x, y);
    if ((op == "/" || op == "//" || op == "%") && y == 0) zero();
    if (op == "/") return x / y;
    if (op == "//") return std::floor(x / y);
    if (op == "%") return x - std::floor(x / y) * y;
    fail(kBadArgument, place, "`{}` of numbers that are no integers", op);
  }
  const auto integer = [](const Object& o) {
    const auto* flag = o.as<bool>();
    return flag ? Integer(*flag) : *o.as<Integer>();
  };
  const Integer x = integer(a), y = integer(b);
  if (auto result = compare(x, y)) return *result;
  Integer result = 0;
  bool overflow = false;
  if (op == "+") {
    overflow = __builtin_add_overflow(x, y, &result);
  } else if (op == "-") {
    overflow = __builtin_sub_overflow(x, y, &result);
  } else if (op == "*") {
    overflow = __builtin_mul_overflow(x, y, &result);
  } else if (op == "//" || op == "%") {
    if (y == 0) zero();
    const Integer quotient = x / y - ((x % y != 0) && ((x % y < 0) != (y < 0)) ? 1 : 0);
    result = op == "//" ? quotient : x - quotient * y;
  } else if (op == "<<" || op == ">>") {
    if (y < 0 || y > 63) fail(kBadLiteral, place, "a shift by {}", static_cast<int64_t>(y));
    const Integer factor = Integer(1) << static_cast<int>(y);
    if (op == "<<") {
      overflow = __builtin_mul_overflow(x, factor, &result);
    } else {
      result = x >> static_cast<int>(y);
    }
  } else if (op == "&") {
    result = x & y;
  } else if (op == "|") {
    result = x | y;
  } else if (op == "^") {
    result = x ^ y;
  } else if (op == "**") {
    if (y < 0) return std::pow(static_cast<double>(x), static_cast<double>(y));
    if (y > 127) fail(kBadLiteral, place, "a power of {}", static_cast<int64_t>(y));
    result = 1;
    for (Integer i = 0; i < y && !overflow; ++i)
      overflow = __builtin_mul_overflow(result, x, &result);
  } else {
    fail(kUnsupported, place, "operator `{}`", op);
  }
  const Integer most = Integer(1) << 100;
  if (overflow || result > most || result < -most)
    fail(kOverflow, place, "the result of `{}` is too large", op);
  return result;
}

void Evaluator::unify(Expr& a, Expr& b) {
  if (a->dtype == b->dtype) return;
  const int lanes = std::max(a->dtype.lanes, b->dtype.lanes);
  a = broadcast_to_lanes(a, lanes);
  b = broadcast_to_lanes(b, lanes);
  const DType x = a->dtype, y = b->dtype;
  if (x == y || x.lanes != y.lanes) return;
  const auto rank = [](DType t) {
    return (t.is_float() ? 1000 : t.is_bool() ? -1000 : 0) + t.bits * 2 + (t.is_uint() ? 1 : 0);
  };
  if (x.is_handle() || y.is_handle()) return;
  if (rank(x) < rank(y)) {
    a = tenon::cast(y, a);
  } else if (rank(y) < rank(x)) {
    b = tenon::cast(x, b);
  }
}

void Evaluator::unify(const Object& a, const Object& b, const Place& place, Expr& x, Expr& y,
                      bool keeps_width) {
  // A literal is an int32 or a float32, and takes the dtype of the other side where that is wider
  // or, of an integer, floating point.
  const auto meets = [&](const Object& literal, const Expr& other) {
    DType dtype = other->dtype.element();
    if (literal.as<double>() && (!dtype.is_float() || dtype.bits < 32)) dtype = kFloat32;
    if (literal.as<bool>() && dtype.is_integer()) return to_expr(literal, place, kBool);
    if (literal.as<Integer>() && dtype.is_integer() && dtype.bits < 32 && !keeps_width)
      dtype = kInt32;
    return to_expr(literal, place, dtype);
  };
  if (a.is_literal() && !b.is_literal()) {
    y = to_expr(b, place);
    x = meets(a, y);
  } else if (b.is_literal() && !a.is_literal()) {
    x = to_expr(a, place);
    y = meets(b, x);
  } else {
    x = to_expr(a, place);
    y = to_expr(b, place);
  }
  unify(x, y);
}

Expr Evaluator::binary(BinaryOp op, const Object& a, const Object& b, const Place& place,
                       bool folds) {
  Expr x, y;
  unify(a, b, place, x, y);
  if (folds && x.as<IntImm>() && y.as<IntImm>()) return tenon::binary(op, x, y, origin(place));
  return make<Binary>(op, x, y, origin(place));
}

// `a is None`, `a in [b, c]`: of values of Python only.
Object Evaluator::identity(const std::string& op, const Object& a, const Object& b,
                           const Place& place) {
  const bool negated = op == "is not" || op == "not in";
  const auto same = [&](const Object& x, const Object& y) {
    if (x.is_none() || y.is_none()) return x.is_none() && y.is_none();
    if (x.as<std::string>() && y.as<std::string>())
      return *x.as<std::string>() == *y.as<std::string>();
    if (x.is_literal() && y.is_literal()) return *python("==", x, y, place).as<bool>();
    if (x.as<Expr>() || y.as<Expr>())
      fail(kUnsupported, place, "operator `{}` of {}; write `==`", op,
           describe(x.as<Expr>() ? x : y));
    return false;
  };
  if (op.starts_with("is")) return same(a, b) != negated;
  bool found = false;
  for (const Object& item : to_items(b, place, "the right side of `in`"))
    found = found || same(a, item);
  return found != negated;
}

Object Evaluator::combine(const std::string& op, const Object& a, const Object& b,
                          const Place& place) {
  if (op == "is" || op == "is not" || op == "in" || op == "not in")
    return identity(op, a, b, place);
  if (a.is_literal() && b.is_literal()) return python(op, a, b, place);
  if (auto result = operate(op, a, b, place)) return *result;
  if (a.as<std::string>() && b.as<std::string>()) {
    if (op == "+") {
      module_.charge((a.as<std::string>()->size() + b.as<std::string>()->size()) / 16, place);
      return *a.as<std::string>() + *b.as<std::string>();
    }
    if (op == "==") return *a.as<std::string>() == *b.as<std::string>();
    if (op == "!=") return *a.as<std::string>() != *b.as<std::string>();
  }
  const auto *left = a.as<List>(), *right = b.as<List>();
  if (left && right && op == "+") {
    module_.charge(left->items->size() + right->items->size(), place);
    std::vector<Object> items = *left->items;
    items.insert(items.end(), right->items->begin(), right->items->end());
    return make_list(std::move(items), left->is_tuple);
  }
  if (left && op == "*" && b.as<Integer>()) {
    const Integer times = *b.as<Integer>();
    std::vector<Object> items;
    if (times > 65536) fail(kLimitExceeded, place, "a list of too many elements");
    if (times > 0) module_.charge(static_cast<size_t>(times) * left->items->size(), place);
    for (Integer i = 0; i < times; ++i)
      items.insert(items.end(), left->items->begin(), left->items->end());
    return make_list(std::move(items), left->is_tuple);
  }
  if (const auto scalar = scalar_op(op)) {
    Expr x, y;
    unify(a, b, place, x, y);
    const bool integers = x->dtype.is_integer() && y->dtype.is_integer();
    if (op == "/" && integers)
      fail(kBadArgument, place,
           "`/` of integers; write `//` to round down, or T.truncdiv to round towards zero");
    if (x.as<IntImm>() && y.as<IntImm>()) return tenon::binary(*scalar, x, y, origin(place));
    return Expr(make<Binary>(*scalar, x, y, origin(place)));
  }
  static const std::unordered_map<std::string, IntrinsicId> kIntrinsics = {
      {"<<", IntrinsicId::kShiftLeft}, {">>", IntrinsicId::kShiftRight},
      {"&", IntrinsicId::kBitwiseAnd}, {"|", IntrinsicId::kBitwiseOr},
      {"^", IntrinsicId::kBitwiseXor}, {"**", IntrinsicId::kPow}};
  const auto it = kIntrinsics.find(op);
  if (it == kIntrinsics.end()) fail(kUnsupported, place, "operator `{}` of scalars", op);
  Expr x, y;
  unify(a, b, place, x, y, op != "**");
  if (x->dtype.is_bool() && (op == "&" || op == "|"))
    return Expr(make<Binary>(op == "&" ? BinaryOp::kAnd : BinaryOp::kOr, x, y, origin(place)));
  return Expr(make<Call>(it->second, std::vector<NodePtr>{x, y}, kVoid, origin(place)));
}

Object Evaluator::eval_binary(const ast::Expr& expr) {
  // A chain leans to the left: walk down it, then combine on the way back.
  std::vector<const ast::Expr*> chain;
  const ast::Expr* at = &expr;
  while (at->kind == ExprKind::kBinary) {
    chain.push_back(at);
    at = at->items[0].get();
  }
  Object value = eval(*at);
  for (auto link = chain.rbegin(); link != chain.rend(); ++link)
    value = combine((*link)->text, value, eval(*(*link)->items[1]), (*link)->place);
  return value;
}

Object Evaluator::eval_unary(const ast::Expr& expr) {
  const Object value = eval(*expr.items[0]);
  const std::string& op = expr.text;
  if (value.is_literal()) {
    if (op == "not") return as_int(to_expr(value, expr.place)).value_or(1) == 0;
    if (const auto* number = value.as<double>()) {
      if (op == "-") return -*number;
      if (op == "+") return value;
    } else {
      const Integer whole = value.as<bool>() ? Integer(*value.as<bool>()) : *value.as<Integer>();
      return op == "-" ? -whole : op == "~" ? -whole - 1 : whole;
    }
    fail(kBadArgument, expr.place, "`{}` of {}", op, describe(value));
  }
  if (op == "+") return value;
  if (op == "-") {
    if (auto result = operate("negative", value, Object(), expr.place)) return *result;
    const Expr x = to_expr(value, expr.place);
    if (const auto* number = x.as<FloatImm>())
      return Expr(make<FloatImm>(number->dtype, -number->value, origin(expr.place)));
    return binary(BinaryOp::kMul, x, imm(x->dtype.element(), int64_t{-1}), expr.place, true);
  }
  const Expr x = to_expr(value, expr.place);
  if (op == "not" || x->dtype.is_bool()) return Expr(make<Not>(x, origin(expr.place)));
  return Expr(
      make<Call>(IntrinsicId::kBitwiseNot, std::vector<NodePtr>{x}, kVoid, origin(expr.place)));
}

Object Evaluator::eval_compare(const ast::Expr& expr) {
  Object left = eval(*expr.items[0]);
  Object result;
  for (size_t i = 0; i < expr.operators.size(); ++i) {
    Object right = eval(*expr.items[i + 1]);
    Object test = combine(expr.operators[i], left, right, expr.place);
    result = i == 0 ? test : combine("and", result, test, expr.place);
    left = std::move(right);
  }
  return result;
}

Object Evaluator::eval_bool(const ast::Expr& expr) {
  Object result = eval(*expr.items[0]);
  for (size_t i = 1; i < expr.items.size(); ++i) {
    const Object next = eval(*expr.items[i]);
    if (result.as<bool>() && next.as<bool>()) {
      const bool a = *result.as<bool>(), b = *next.as<bool>();
      result = expr.text == "and" ? a && b : a || b;
    } else {
      result = Expr(make<Binary>(expr.text == "and" ? BinaryOp::kAnd : BinaryOp::kOr,
                                 to_expr(result, expr.items[i - 1]->place, kBool),
                                 to_expr(next, expr.items[i]->place, kBool), origin(expr.place)));
    }
  }
  return result;
}

}  // namespace tenon::script
