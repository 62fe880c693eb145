// Evaluates the expressions of a script: Python's arithmetic on literals, scalar IR on everything
// else. The builders of the two levels derive from it and add their statements and names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/script/object.h"
#include "tenon/script/parser.h"

namespace tenon::script {

/// What the module says of a function before its body is read.
struct Declaration {
  std::string name;  // in the module
  const ast::Stmt* definition = nullptr;
  bool is_prim_func = false, is_extern = false;
  std::vector<bool> buffer_params;  // of a PrimFunc: which parameters are buffers
  DType result = kVoid;             // of a PrimFunc
};

struct ModuleContext {
  std::shared_ptr<const SourceFile> file;
  const ParseOptions* options = nullptr;
  std::string class_name;
  std::map<std::string, Declaration> functions;  // by the name in the text
  Diagnostics* diagnostics = nullptr;
};

/// The arguments of a call, by position or keyword.
class Arguments {
 public:
  struct Item {
    Object value;
    Place place;
    std::string keyword;  // empty: positional
    bool used = false;
  };
  std::vector<Item> items;
  size_t positional = 0;

  /// The argument at `position` or under one of the names; null where it is not given.
  const Item* find(size_t position, std::initializer_list<std::string_view> names);
  const Item* keyword(std::initializer_list<std::string_view> names) {
    return find(static_cast<size_t>(-1), names);
  }
};

class Evaluator {
 public:
  Evaluator(ModuleContext& module, DType default_int) : module_(module), default_int_(default_int) {
    scopes_.emplace_back();
  }
  virtual ~Evaluator() = default;

  Object eval(const ast::Expr& expr);
  AttrValue to_attr(const Object& object, const Place& place);

 protected:
  // -- places and errors
  Origin origin(const Place& place) const {
    return Origin::script(module_.file, place.line, place.column, place.length);
  }
  template <typename... Args>
  [[noreturn]] void fail(const Code& code, const Place& place, fmt::format_string<Args...> format,
                         Args&&... args) const {
    throw CompileError(code, origin(place), format, std::forward<Args>(args)...);
  }

  // -- names
  struct Scope {
    explicit Scope(Evaluator& evaluator) : evaluator(evaluator) {
      evaluator.scopes_.emplace_back();
    }
    ~Scope() { evaluator.scopes_.pop_back(); }
    Evaluator& evaluator;
  };
  void define(const std::string& name, Object value);
  const Object* lookup(const std::string& name) const;

  // -- calls
  Arguments arguments(const ast::Expr& call);
  const Arguments::Item& need(Arguments& args, const ast::Expr& call, size_t position,
                              std::initializer_list<std::string_view> names);
  /// Reports an argument that nothing asked for.
  void finish(const Arguments& args, const ast::Expr& call) const;
  /// The result of calling `callee`, which is neither a dtype, an operation nor an intrinsic of T.
  virtual Object call_other(const ast::Expr& call, const Object& callee) = 0;
  /// The call's callee as a Path's text; empty where it is something else.
  std::string path_of(const ast::Expr& callee);
  std::string callee_path(const ast::Expr& expr);
  /// Arithmetic in which the builder has a say (tensors); nothing: scalar arithmetic.
  virtual std::optional<Object> operate(const std::string&, const Object&, const Object&,
                                        const Place&) {
    return std::nullopt;
  }
  virtual std::optional<Object> subscript_other(const Object&, const ast::Expr&) {
    return std::nullopt;
  }

  // -- conversions; `expected` is the dtype that a literal takes
  Expr to_expr(const Object& object, const Place& place, DType expected = kVoid);
  Expr scalar(const ast::Expr& expr, DType expected = kVoid) {
    return to_expr(eval(expr), expr.place, expected);
  }
  /// An argument of an intrinsic: an expression, a string, a buffer or a region.
  NodePtr to_argument(const Object& object, const Place& place);
  int64_t to_int(const Object& object, const Place& place, std::string_view what);
  std::string to_string(const Object& object, const Place& place, std::string_view what);
  DType to_dtype(const Object& object, const Place& place);
  const std::vector<Object>& to_items(const Object& object, const Place& place,
                                      std::string_view what);
  std::vector<Expr> to_exprs(const Object& object, const Place& place, DType expected = kVoid);
  virtual std::vector<Expr> to_shape(const Object& object, const Place& place);
  Attrs to_attrs(const Object& object, const Place& place);

  // -- pieces
  Expr binary(BinaryOp op, const Object& a, const Object& b, const Place& place,
              bool folds = false);
  void unify(Expr& a, Expr& b);
  void unify(const Object& a, const Object& b, const Place& place, Expr& x, Expr& y);
  Expr extent_between(const Expr& begin, const Expr& end, const Place& place);
  /// (min, extent) of `end`, or of `begin` and `end`; literals take `expected`.
  tir::Range bounds(const Object* begin, const Object& end, const Place& place, DType expected);
  Object subscript(const Object& object, const ast::Expr& expr);
  Object index_buffer(const Ref<tir::Buffer>& buffer, const ast::Expr& expr);
  Ref<tir::BufferRegion> to_region(const Object& object, const Place& place);
  Ref<Var> new_var(const std::string& name, DType dtype, Arguments& args, const Place& place);
  /// The elements of a constant from nested lists or a flat one; `shape` where it is known.
  Ref<TensorData> to_tensor(const Object& object, std::optional<DType> dtype,
                            const std::optional<std::vector<int64_t>>& shape, const Place& place);

  ModuleContext& module_;
  DType default_int_;

 private:
  Object eval_name(const ast::Expr& expr);
  Object eval_attribute(const ast::Expr& expr);
  Object eval_binary(const ast::Expr& expr);
  Object eval_unary(const ast::Expr& expr);
  Object eval_compare(const ast::Expr& expr);
  Object eval_bool(const ast::Expr& expr);
  Object eval_call(const ast::Expr& expr);
  Object combine(const std::string& op, const Object& a, const Object& b, const Place& place);
  Object python(const std::string& op, const Object& a, const Object& b, const Place& place);
  std::optional<Object> call_scalar(const std::string& name, const ast::Expr& call);
  std::optional<Object> call_construct(const std::string& name, const ast::Expr& call);
  std::optional<Object> call_intrinsic(const std::string& name, const ast::Expr& call);
  Object call_dtype(DType dtype, const ast::Expr& call);

  std::vector<std::unordered_map<std::string, Object>> scopes_;
};

/// A path's text with one spelling for what has two: `tirx.sblock` is `T.block`.
std::string canonical(const std::string& path);

}  // namespace tenon::script
