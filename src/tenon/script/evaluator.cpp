#include "tenon/script/evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tenon/arith/analyzer.h"

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
  if (const auto* value = object.as<graph::Value>())
    return "a value of type " + graph::str(graph::type_of(*value));
  if (const auto* type = object.as<graph::Type>()) return "type " + graph::str(*type);
  return "a constant";
}

std::string canonical(const std::string& path) {
  static const std::unordered_map<std::string, std::string> kSpellings = {
      {"tvm.script.tir", "T"},
      {"tvm.script.tirx", "T"},
      {"tvm.tir", "T"},
      {"tvm.tirx", "T"},
      {"tvm.script.relax", "R"},
      {"tvm.relax", "R"},
      {"tvm.script.ir", "I"},
      {"tvm.ir", "I"},
      {"T.sblock", "T.block"},
      {"T.sblock_attr", "T.block_attr"},
      {"T.sblock_alloc_buffer", "T.alloc_buffer"},
      {"T.axis.S", "T.axis.spatial"},
      {"T.axis.R", "T.axis.reduce"},
      {"T.unrolled", "T.unroll"},
      {"T.vectorize", "T.vectorized"},
      {"R.Any", "R.Object"},
      {"R.op", "R"},
      {"R.extern", "R.ExternFunc"},
      {"R.add_", "R.add"},
      {"T.power", "T.pow"},
      {"T.Let_", "T.Let"},
      {"T.bind", "T.let"},
      {"T.LetStmt", "T.let"},
  };
  const auto it = kSpellings.find(path);
  return it == kSpellings.end() ? path : it->second;
}

// ---- names
// ---------------------------------------------------------------------------------------

void Evaluator::define(const std::string& name, Object value) {
  scopes_.back()[name] = std::move(value);
}

const Object* Evaluator::lookup(const std::string& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto it = scope->find(name);
    if (it != scope->end()) return &it->second;
  }
  return nullptr;
}

Object Evaluator::eval_name(const ast::Expr& expr) {
  if (const Object* found = lookup(expr.text)) return *found;
  static const std::unordered_map<std::string_view, std::string_view> kProvided = {
      {"T", "T"},          {"tir", "T"},
      {"tirx", "T"},       {"R", "R"},
      {"relax", "R"},      {"I", "I"},
      {"ir", "I"},         {"tvm", "tvm"},
      {"range", "range"},  {"float", "py.float"},
      {"int", "py.int"},   {"bool", "py.bool"},
      {"min", "py.min"},   {"max", "py.max"},
      {"len", "py.len"},   {"slice", "py.slice"},
      {"list", "py.list"}, {"tuple", "py.tuple"}};
  const auto provided = kProvided.find(expr.text);
  if (provided != kProvided.end()) return Path{std::string(provided->second)};
  if (expr.text == "cls" || (!module_.class_name.empty() && expr.text == module_.class_name))
    return ModuleName{};
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
  return base.empty() ? "" : canonical(base + "." + callee.text);
}

std::string Evaluator::callee_path(const ast::Expr& expr) {
  return expr.kind == ExprKind::kCall ? path_of(*expr.items[0]) : "";
}

// ---- evaluation
// ----------------------------------------------------------------------------------

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
      if (condition.is_literal()) {
        const Expr test = to_expr(condition, expr.items[0]->place);
        return eval(*expr.items[as_int(test).value_or(0) != 0 ? 1 : 2]);
      }
      Expr x, y;
      unify(eval(*expr.items[1]), eval(*expr.items[2]), expr.place, x, y);
      return Expr(make<Call>(find_intrinsic("if_then_else"),
                             std::vector<NodePtr>{to_expr(condition, expr.items[0]->place), x, y},
                             kVoid, origin(expr.place)));
    }
    case ExprKind::kLambda: fail(kUnsupported, expr.place, "a lambda here");
    case ExprKind::kStarred: fail(kSyntax, expr.place, "`*` outside a list of arguments");
  }
  unreachable("a kind of expression");
}

Object Evaluator::eval_attribute(const ast::Expr& expr) {
  const Object base = eval(*expr.items[0]);
  const std::string& name = expr.text;
  if (const auto* path = base.as<Path>()) return Path{canonical(path->text + "." + name)};
  if (base.as<ModuleName>()) {
    const auto it = module_.functions.find(name);
    if (it == module_.functions.end())
      fail(kUndefined, expr.place, "the module has no function `{}`", name);
    return FunctionName{it->second.name};
  }
  const Ref<tir::Buffer>* buffer = base.as<Ref<tir::Buffer>>();
  if (const auto* pointer = base.as<Pointer>()) buffer = &pointer->buffer;
  if (buffer) {
    const tir::Buffer& b = **buffer;
    const auto list = [](const std::vector<Expr>& exprs) {
      return make_list(std::vector<Object>(exprs.begin(), exprs.end()), true);
    };
    if (name == "data") return Expr(b.data);
    if (name == "shape") return list(b.shape);
    if (name == "strides") return list(b.strides);
    if (name == "dtype") return b.dtype.str();
    if (name == "elem_offset") return b.elem_offset ? b.elem_offset : imm(default_int_, int64_t{0});
    if (name == "name") return b.name;
    if (name == "scope") return Method{std::make_shared<const Object>(base), name};
    fail(kUnsupported, expr.place, "buffers have no attribute `{}` here", name);
  }
  if (const auto* scalar = base.as<Expr>()) {
    if (name == "dtype") return (*scalar)->dtype.str();
    if (name == "astype") return Method{std::make_shared<const Object>(base), name};
  }
  fail(kUnsupported, expr.place, "{} has no attribute `{}`", describe(base), name);
}

// ---- arithmetic
// ----------------------------------------------------------------------------------

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

void Evaluator::unify(const Object& a, const Object& b, const Place& place, Expr& x, Expr& y) {
  // A literal takes the dtype of the other side; a float literal makes an integer a float.
  const auto meets = [&](const Object& literal, const Expr& other) {
    DType dtype = other->dtype.element();
    if (literal.as<double>() && !dtype.is_float()) dtype = kFloat32;
    if (literal.as<bool>() && dtype.is_integer()) return to_expr(literal, place, kBool);
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

Object Evaluator::combine(const std::string& op, const Object& a, const Object& b,
                          const Place& place) {
  if (a.is_literal() && b.is_literal()) return python(op, a, b, place);
  if (auto result = operate(op, a, b, place)) return *result;
  if (a.as<std::string>() && b.as<std::string>()) {
    if (op == "+") return *a.as<std::string>() + *b.as<std::string>();
    if (op == "==") return *a.as<std::string>() == *b.as<std::string>();
    if (op == "!=") return *a.as<std::string>() != *b.as<std::string>();
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
  static const std::unordered_map<std::string, std::string_view> kIntrinsics = {
      {"<<", "shift_left"}, {">>", "shift_right"}, {"&", "bitwise_and"},
      {"|", "bitwise_or"},  {"^", "bitwise_xor"},  {"**", "pow"}};
  const auto it = kIntrinsics.find(op);
  if (it == kIntrinsics.end()) fail(kUnsupported, place, "operator `{}` of scalars", op);
  Expr x, y;
  unify(a, b, place, x, y);
  if (x->dtype.is_bool() && (op == "&" || op == "|"))
    return Expr(make<Binary>(op == "&" ? BinaryOp::kAnd : BinaryOp::kOr, x, y, origin(place)));
  return Expr(
      make<Call>(find_intrinsic(it->second), std::vector<NodePtr>{x, y}, kVoid, origin(place)));
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
  return Expr(make<Call>(find_intrinsic("bitwise_not"), std::vector<NodePtr>{x}, kVoid,
                         origin(expr.place)));
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

// ---- conversions
// ---------------------------------------------------------------------------------

Expr Evaluator::to_expr(const Object& object, const Place& place, DType expected) {
  if (const auto* expr = object.as<Expr>()) return *expr;
  if (const auto* flag = object.as<bool>()) return make<IntImm>(kBool, *flag, origin(place));
  if (const auto* number = object.as<Integer>()) {
    DType dtype = expected.is_void() ? default_int_ : expected.element();
    if (dtype.is_float()) return make<FloatImm>(dtype, static_cast<double>(*number), origin(place));
    if (dtype.is_handle()) dtype = default_int_;
    const Integer least = std::numeric_limits<int64_t>::min();
    if (expected.is_void() && dtype == kInt32 &&
        (*number > std::numeric_limits<int32_t>::max() ||
         *number < std::numeric_limits<int32_t>::min()))
      dtype = kInt64;
    const Integer most = dtype == kUInt64 ? Integer(std::numeric_limits<uint64_t>::max())
                                          : Integer(std::numeric_limits<int64_t>::max());
    if (*number < (dtype.is_uint() ? Integer(0) : least) || *number > most)
      fail(kBadLiteral, place, "an integer that does not fit {}", dtype.str());
    return make<IntImm>(dtype, static_cast<int64_t>(*number), origin(place));
  }
  if (const auto* number = object.as<double>()) {
    const DType dtype = expected.is_void() ? kFloat32 : expected.element();
    if (!dtype.is_float())
      fail(kDTypeMismatch, place, "the number {} where dtype {} is expected", *number, dtype.str());
    return make<FloatImm>(dtype, *number, origin(place));
  }
  if (const auto* pointer = object.as<Pointer>()) return pointer->buffer->data;
  if (const auto* region = object.as<Region>()) {
    std::vector<Expr> indices;
    for (size_t i = 0; i < region->region->region.size(); ++i) {
      const tir::Range& range = region->region->region[i];
      if (region->region->drops(i)) {
        indices.push_back(range.min);
        continue;
      }
      const auto lanes = as_int(range.extent);
      if (!lanes)
        fail(kBadArgument, place, "a slice of `{}` elements as a value; expected a constant number",
             str(range.extent));
      indices.push_back(
          make<Ramp>(range.min, imm(range.min->dtype, int64_t{1}), *lanes, origin(place)));
    }
    return make<tir::BufferLoad>(region->region->buffer, std::move(indices), origin(place));
  }
  if (const auto* prim = object.as<graph::Value>()) {
    if (const auto* value = prim->as<graph::PrimValue>()) return value->value;
  }
  if (const auto* buffer = object.as<Ref<tir::Buffer>>())
    fail(kTypeMismatch, place, "buffer `{}` as a value; index it, as in `{}[...]`", (*buffer)->name,
         (*buffer)->name);
  fail(kTypeMismatch, place, "{}; expected a scalar expression", describe(object));
}

NodePtr Evaluator::to_argument(const Object& object, const Place& place) {
  if (const auto* text = object.as<std::string>()) return make<StringImm>(*text, origin(place));
  if (const auto* buffer = object.as<Ref<tir::Buffer>>()) return *buffer;
  if (const auto* function = object.as<FunctionName>())
    return make<GlobalVar>(function->name, origin(place));
  if (const auto* region = object.as<Ref<tir::BufferRegion>>()) return *region;
  return to_expr(object, place);
}

int64_t Evaluator::to_int(const Object& object, const Place& place, std::string_view what) {
  if (const auto* number = object.as<Integer>(); number &&
                                                 *number <= std::numeric_limits<int64_t>::max() &&
                                                 *number >= std::numeric_limits<int64_t>::min())
    return static_cast<int64_t>(*number);
  if (const auto* expr = object.as<Expr>())
    if (const auto value = as_int(*expr)) return *value;
  if (const auto* flag = object.as<bool>()) return *flag;
  fail(kBadArgument, place, "{} is {}; expected an integer constant", what, describe(object));
}

std::string Evaluator::to_string(const Object& object, const Place& place, std::string_view what) {
  if (const auto* text = object.as<std::string>()) return *text;
  fail(kBadArgument, place, "{} is {}; expected a string", what, describe(object));
}

DType Evaluator::to_dtype(const Object& object, const Place& place) {
  std::optional<DType> dtype;
  if (const auto* text = object.as<std::string>())
    dtype = text->empty() ? kVoid : DType::parse(*text);
  if (const auto* given = object.as<DType>()) dtype = *given;
  if (const auto* path = object.as<Path>(); path && path->text.starts_with("T."))
    dtype = DType::parse(path->text.substr(2));
  if (object.is_none()) dtype = kVoid;
  if (!dtype) {
    const auto* text = object.as<std::string>();
    fail(kBadLiteral, place, "{} is no dtype", text ? "`" + *text + "`" : describe(object));
  }
  return *dtype;
}

const std::vector<Object>& Evaluator::to_items(const Object& object, const Place& place,
                                               std::string_view what) {
  if (const auto* list = object.as<List>()) return *list->items;
  fail(kBadArgument, place, "{} is {}; expected a list or tuple", what, describe(object));
}

std::vector<Expr> Evaluator::to_exprs(const Object& object, const Place& place, DType expected) {
  std::vector<Expr> out;
  for (const Object& item : to_items(object, place, "this"))
    out.push_back(to_expr(item, place, expected));
  return out;
}

std::vector<Expr> Evaluator::to_shape(const Object& object, const Place& place) {
  if (!object.as<List>()) return {to_expr(object, place)};
  return to_exprs(object, place);
}

AttrValue Evaluator::to_attr(const Object& object, const Place& place) {
  if (object.is_none()) return {};
  if (const auto* flag = object.as<bool>()) return *flag;
  if (const auto* number = object.as<Integer>()) return to_int(*number, place, "an attribute");
  if (const auto* number = object.as<double>()) return *number;
  if (const auto* text = object.as<std::string>()) return *text;
  if (const auto* dtype = object.as<DType>()) return *dtype;
  if (const auto* path = object.as<Path>(); path && path->text.starts_with("T."))
    if (const auto dtype = DType::parse(path->text.substr(2))) return *dtype;
  if (const auto* list = object.as<List>()) {
    AttrList out;
    for (const Object& item : *list->items) out.push_back(to_attr(item, place));
    return out;
  }
  if (const auto* dict = object.as<Dict>()) {
    AttrValue::Map out;
    for (const auto& [key, item] : *dict->items)
      out[to_string(key, place, "a key")] = to_attr(item, place);
    return out;
  }
  if (const auto* expr = object.as<Expr>()) return NodePtr(*expr);
  if (const auto* buffer = object.as<Ref<tir::Buffer>>()) return NodePtr(*buffer);
  if (const auto* region = object.as<Ref<tir::BufferRegion>>()) return NodePtr(*region);
  if (const auto* value = object.as<graph::Value>()) return NodePtr(*value);
  if (const auto* type = object.as<graph::Type>()) return NodePtr(*type);
  fail(kUnsupported, place, "{} as an attribute", describe(object));
}

Attrs Evaluator::to_attrs(const Object& object, const Place& place) {
  const auto* dict = object.as<Dict>();
  if (!dict) fail(kBadArgument, place, "{}; expected a dict of attributes", describe(object));
  Attrs out;
  for (const auto& [key, item] : *dict->items)
    out.set(to_string(key, place, "the name of an attribute"), to_attr(item, place));
  return out;
}

// ---- buffers
// -------------------------------------------------------------------------------------

Expr Evaluator::extent_between(const Expr& begin, const Expr& end, const Place& place) {
  if (is_int(begin, 0) && begin->dtype == end->dtype) return end;
  const auto a = as_int(begin), b = as_int(end);
  if (a && b) {
    Expr x = begin, y = end;
    unify(x, y);
    return make<IntImm>(x->dtype, *b - *a, origin(place));
  }
  if (const auto* sum = end.as<Binary>(); sum && sum->op == BinaryOp::kAdd) {
    if (structural_equal(sum->lhs, begin)) return sum->rhs;
    if (structural_equal(sum->rhs, begin)) return sum->lhs;
  }
  arith::Analyzer analyzer;
  Expr x = begin, y = end;
  unify(x, y);
  return analyzer.simplify(y - x);
}

tir::Range Evaluator::bounds(const Object* begin, const Object& end, const Place& place,
                             DType expected) {
  if (!begin) {
    const Expr extent = to_expr(end, place, expected);
    return {imm(extent->dtype, int64_t{0}), extent};
  }
  Expr x, y;
  if (begin->is_literal() && end.is_literal()) {
    x = to_expr(*begin, place, expected);
    y = to_expr(end, place, expected);
  } else {
    unify(*begin, end, place, x, y);
  }
  return {x, extent_between(x, y, place)};
}

Object Evaluator::subscript(const Object& object, const ast::Expr& expr) {
  if (const auto* buffer = object.as<Ref<tir::Buffer>>()) return index_buffer(*buffer, expr);
  if (const auto* pointer = object.as<Pointer>()) return index_buffer(pointer->buffer, expr);
  if (auto result = subscript_other(object, expr)) return *result;
  const ast::Expr& index = *expr.items[1];
  if (const auto* list = object.as<List>()) {
    int64_t i = to_int(eval(index), index.place, "the index");
    const auto size = static_cast<int64_t>(list->items->size());
    if (i < 0) i += size;
    if (i < 0 || i >= size) fail(kOutOfBounds, index.place, "item {} of {}", i, describe(object));
    return (*list->items)[static_cast<size_t>(i)];
  }
  if (const auto* dict = object.as<Dict>()) {
    const Object key = eval(index);
    if (const auto* text = key.as<std::string>())
      for (const auto& [name, value] : *dict->items)
        if (const auto* other = name.as<std::string>(); other && *other == *text) return value;
  }
  fail(kBadArgument, expr.place, "{} cannot be indexed so", describe(object));
}

Object Evaluator::index_buffer(const Ref<tir::Buffer>& buffer, const ast::Expr& expr) {
  const ast::Expr& index = *expr.items[1];
  std::vector<const ast::Expr*> indices;
  if (index.kind == ExprKind::kTuple) {
    for (const auto& item : index.items) indices.push_back(item.get());
  } else {
    indices.push_back(&index);
  }
  std::vector<tir::Range> ranges;
  std::vector<bool> drop;
  bool has_slice = false;
  for (size_t i = 0; i < indices.size(); ++i) {
    const ast::Expr& item = *indices[i];
    const bool inside = i < buffer->ndim();
    const DType expected = inside ? buffer->shape[i]->dtype : default_int_;
    if (item.kind != ExprKind::kSlice) {
      const Expr at = scalar(item, expected);
      ranges.push_back({at, at->dtype.is_integer() ? imm(at->dtype.element(), int64_t{1}) : at});
      drop.push_back(true);
      continue;
    }
    if (!inside)
      fail(kIndexRank, expr.place, "buffer `{}` is indexed with {} indices; it has {} dimensions",
           buffer->name, indices.size(), buffer->ndim());
    const Object begin = item.items[0] ? eval(*item.items[0]) : Object(Integer(0));
    const Object end = item.items[1] ? eval(*item.items[1]) : Object(buffer->shape[i]);
    const tir::Range range = bounds(&begin, end, item.place, expected);
    if (!item.items[2]) {
      ranges.push_back(range);
      drop.push_back(false);
      has_slice = true;
      continue;
    }
    // With a step it is a vector, whatever stands around it.
    const Expr step = scalar(*item.items[2], range.min->dtype);
    const auto extent = as_int(range.extent), stride = as_int(step);
    if (!extent || !stride || *stride < 1)
      fail(kBadArgument, item.place, "a slice with a step; expected a constant length and step");
    const Expr vector =
        make<Ramp>(range.min, step, (*extent + *stride - 1) / *stride, origin(item.place));
    ranges.push_back({vector, imm(range.min->dtype, int64_t{1})});
    drop.push_back(true);
  }
  if (has_slice) {
    for (const tir::Range& range : ranges)
      if (range.min->dtype.is_vector())
        fail(kUnsupported, expr.place, "slices with and without a step in one index");
    return Region{
        make<tir::BufferRegion>(buffer, std::move(ranges), std::move(drop), origin(expr.place))};
  }
  std::vector<Expr> points;
  for (const tir::Range& range : ranges) points.push_back(range.min);
  return Expr(make<tir::BufferLoad>(buffer, std::move(points), origin(expr.place)));
}

Ref<tir::BufferRegion> Evaluator::to_region(const Object& object, const Place& place) {
  if (const auto* buffer = object.as<Ref<tir::Buffer>>()) return tir::BufferRegion::whole(*buffer);
  if (const auto* region = object.as<Region>())
    return make<tir::BufferRegion>(region->region->buffer, region->region->region,
                                   std::vector<bool>{}, region->region->origin);
  if (const auto* expr = object.as<Expr>()) {
    if (const auto* load = expr->as<tir::BufferLoad>()) {
      std::vector<tir::Range> ranges;
      for (const Expr& index : load->indices) {
        const auto* ramp = index.as<Ramp>();
        if (ramp && is_int(ramp->stride, 1)) {
          ranges.push_back({ramp->base, imm(ramp->base->dtype, ramp->lanes)});
        } else {
          ranges.push_back({index, imm(index->dtype.element(), int64_t{1})});
        }
      }
      return make<tir::BufferRegion>(load->buffer, std::move(ranges), std::vector<bool>{},
                                     load->origin);
    }
  }
  fail(kTypeMismatch, place, "{}; expected a region of a buffer", describe(object));
}

}  // namespace tenon::script
