// SPDX-License-Identifier: Apache-2.0
// Evaluates the expressions of a script: Python's arithmetic on literals, scalar IR on everything
// else. The builders of the two levels derive from it and add their statements and names.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/script/host.h"
#include "tenon/script/parser.h"
#include "tenon/tir/param_group.h"

namespace tenon::script {

/// What the module says of a function before its body is read.
struct Declaration {
  std::string name;  // in the module
  const ast::Stmt* definition = nullptr;
  bool is_prim_func = false, is_extern = false;
  std::vector<bool> buffer_params;   // of a PrimFunc: which parameters are buffers
  std::vector<DType> scalar_dtypes;  // as many: of a scalar its dtype, else void
  DType result = kVoid;              // of a PrimFunc
  BaseFunc function = {};            // of one that was read before; else null
};

class Evaluator;

/// The use of a name about whose definition an error has been reported already: not reported again.
class PoisonedUse final : public CompileError {
 public:
  explicit PoisonedUse(Origin origin)
      : CompileError(kUndefined, std::move(origin), "a name whose definition has an error") {}
};

struct ModuleContext {
  std::shared_ptr<const SourceFile> file;
  const ParseOptions* options = nullptr;
  std::string class_name;
  std::map<std::string, Declaration> functions;  // by the name in the text
  std::map<std::string, const Declaration*> by_module_name;
  Diagnostics* diagnostics = nullptr;
  /// Calls that were given a buffer for their result; the callee must fill it (`y =
  /// T.call_tir(...)`).
  struct ResultCall {
    std::string callee;
    Origin origin;
  };
  std::vector<ResultCall> result_calls;
  const Evaluator* surroundings = nullptr;  // the names of the Python around the module
  const HostNames* names = nullptr;         // those of the program that it stands in
  /// Functions of other modules that the text names, and what they call.
  IRModule captured;
  // Against endless expansion of helpers and macros:
  int64_t work_left = 1000000;
  int call_depth = 0;

  /// Counts what reading evaluates or expands. \throws CompileError (kLimitExceeded).
  void charge(size_t work, const Place& place);

  /// Of the function with this name in the module; null where there is none.
  const Declaration* function_named(const std::string& name) const {
    const auto it = by_module_name.find(name);
    return it == by_module_name.end() ? nullptr : it->second;
  }

  /// The name in this module of a function of another one, which from now on has it and all that it
  /// calls; `name` empty: its own name, or a free one like it.
  /// \throws CompileError (kRedefined) where `name` is taken.
  FunctionName capture(const CapturedFunction& function, const Place& place,
                       const std::string& name = {});

  /// Adds what was wrong, unless it only repeats an error that is known.
  void report(const CompileError& error) const {
    if (!dynamic_cast<const PoisonedUse*>(&error)) diagnostics->add(error);
  }

 private:
  std::map<std::pair<const IRModule*, std::string>, std::string> captured_names_;
  std::vector<std::shared_ptr<const IRModule>> captured_modules_;  // keep the addresses above alive
  std::map<std::string, Declaration> captured_declarations_;
};

/// While it lives, names and places are those of the text in which a helper stands.
class InTextOf {
 public:
  InTextOf(ModuleContext& module, const Helper& helper);
  ~InTextOf();
  InTextOf(const InTextOf&) = delete;
  InTextOf& operator=(const InTextOf&) = delete;

 private:
  ModuleContext& module_;
  std::shared_ptr<const SourceFile> file_;
  const Evaluator* surroundings_;
  const HostNames* names_;
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
    scopes_.push_back({{}, 0});
  }
  virtual ~Evaluator() = default;

  Object eval(const ast::Expr& expr);
  AttrValue to_attr(const Object& object, const Place& place);
  /// A parameter of an extern function that C takes as one and that is several scalars here:
  /// `T.Array(4, "int64")`, `T.Struct("conv_params", strides="int32[2]", groups="int32")`.
  struct GroupAnnotation {
    tir::ParamGroup group;
    std::vector<DType> dtypes;  // of each item
  };
  std::optional<GroupAnnotation> group_annotation(const ast::Parameter& parameter);
  /// The path that a callee or annotation names, `T.Buffer`; empty where it is something else.
  std::string path_of(const ast::Expr& callee);
  /// Null where there is none of this name.
  const Object* lookup(const std::string& name) const;

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
    explicit Scope(Evaluator& evaluator) : Scope(evaluator, evaluator.scopes_.size()) {}
    /// Only the outermost `visible` scopes are seen from it.
    Scope(Evaluator& evaluator, size_t visible) : evaluator(evaluator) {
      evaluator.scopes_.push_back({{}, visible});
    }
    ~Scope() { evaluator.scopes_.pop_back(); }
    Evaluator& evaluator;
  };
  size_t depth() const { return scopes_.size(); }
  void define(const std::string& name, Object value);
  /// As lookup(), without the Python around.
  const Object* lookup_own(const std::string& name) const;
  /// Defines what is assigned to, as unknown: after an error in the definition.
  void poison(const ast::Expr& target);

  // -- calls
  Arguments arguments(const ast::Expr& call);
  const Arguments::Item& need(Arguments& args, const ast::Expr& call, size_t position,
                              std::initializer_list<std::string_view> names);
  /// Reports an argument that nothing asked for.
  void finish(const Arguments& args, const ast::Expr& call) const;
  /// The result of calling `callee`, which is neither a dtype, an operation nor an intrinsic of T.
  virtual Object call_other(const ast::Expr& call, const Object& callee) = 0;
  /// A call of an operator of the program's; nothing where it is none, or there are no values here.
  virtual std::optional<Object> call_operator(const HostValue&, const Arguments&,
                                              const ast::Expr&) {
    return std::nullopt;
  }
  /// What a name is given for `value`: in a graph a variable that is bound to it, so that a function
  /// of Python that uses it twice computes it once.
  virtual Object held(const Object& value, const std::string&, const Place&) { return value; }
  /// What names in a tuple are given: in a graph the items of a value that is a tuple.
  virtual Object unpacked(const Object& value, const Place&) { return value; }
  /// A statement of a function of Python that is a call; false where it can have no meaning.
  virtual bool call_statement(const ast::Expr&) { return false; }
  /// What a function of Python, or a macro, gives for the arguments of `call`.
  Object call_helper(const Helper& helper, Arguments args, const ast::Expr& call);
  /// Whether a macro sees only the names around its own text.
  static bool is_hygienic(const ast::Stmt& macro);
  /// Defines the parameters of `helper` in the innermost scope, from the arguments of `call`.
  void bind_parameters(const Helper& helper, Arguments& args, const ast::Expr& call);
  /// A condition that Python would decide while it reads; nothing where it is one of the program.
  std::optional<bool> decided(const Object& condition);
  /// The call's callee as a Path's text; empty where it is something else.
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

  /// Python's operators, on whatever has them.
  Object combine(const std::string& op, const Object& a, const Object& b, const Place& place);
  /// Gives the names of a target, a tuple of targets too, to a value.
  void assign_python(const ast::Expr& target, const Object& value);

  // -- pieces
  Expr binary(BinaryOp op, const Object& a, const Object& b, const Place& place,
              bool folds = false);
  void unify(Expr& a, Expr& b);
  /// Both as operands of one dtype; `keeps_width`: a literal never widens the other side.
  void unify(const Object& a, const Object& b, const Place& place, Expr& x, Expr& y,
             bool keeps_width = false);
  Expr extent_between(const Expr& begin, const Expr& end, const Place& place);
  /// (min, extent) of `end`, or of `begin` and `end`; literals take `expected`.
  tir::Range bounds(const Object* begin, const Object& end, const Place& place, DType expected);
  Object subscript(const Object& object, const ast::Expr& expr);
  Object index_buffer(const Ref<tir::Buffer>& buffer, const ast::Expr& expr);
  Ref<tir::BufferRegion> to_region(const Object& object, const Place& place);
  /// The constant of the file of constants that has this hash.
  Ref<TensorData> stored_constant(const Arguments::Item& hash);
  Ref<Var> new_var(const std::string& name, DType dtype, Arguments& args, const Place& place);
  Ref<TensorData> converted(const TensorData& data, DType dtype, const Place& place);
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
  Object identity(const std::string& op, const Object& a, const Object& b, const Place& place);

  Object python(const std::string& op, const Object& a, const Object& b, const Place& place);
  std::optional<Object> call_scalar(const std::string& name, const ast::Expr& call);
  std::optional<Object> call_construct(const std::string& name, const ast::Expr& call);
  std::optional<Object> call_intrinsic(const std::string& name, const ast::Expr& call);
  Object call_dtype(DType dtype, const ast::Expr& call);
  std::optional<Object> call_value(const std::string& name, const ast::Expr& call);
  std::optional<Object> call_unary(const std::string& name, const ast::Expr& call);
  Object call_by_name(Arguments& args, const ast::Expr& call);
  Object call_method(const Method& method, const ast::Expr& call);
  /// The indices of `buffer[begin]` as a vector of `dtype`.
  std::vector<Expr> vector_indices(const Ref<tir::Buffer>& buffer, const Arguments::Item& begin,
                                   DType dtype);
  Expr element_offset(const Ref<tir::Buffer>& buffer, const Arguments::Item& indices);
  /// Refuses an expression that would be too long where it is written out.
  void check_size(const Object& value, const Place& place);
  // -- Python at reading time (python_values.cpp)
  Object call_python(const std::string& name, const ast::Expr& call);
  // -- the program around the text (captured.cpp)
  std::optional<Object> attribute_of_host(const Object& base, const std::string& name,
                                          const ast::Expr& expr);
  Object call_host(const HostValue& host, const ast::Expr& call);
  std::optional<Object> item_of_host(const Object& object, const ast::Expr& expr);
  std::optional<Object> run_helper(const ast::Body& body);
  Object eval_list_of(const ast::Expr& expr);
  Object eval_format(const ast::Expr& expr);

  struct Names {
    std::unordered_map<std::string, Object> names;
    size_t visible;
  };
  std::vector<Names> scopes_;
};

/// What a path says after its package is known: `tvm.script.tir.block` is `T.block`.
std::string canonical_path(const std::string& path);

/// A path's text with one spelling for what has two: `tirx.sblock` is `T.block`.
std::string canonical(const std::string& path);

}  // namespace tenon::script
