// SPDX-License-Identifier: Apache-2.0
// NameDims: a kernel whose buffers have dimensions like (n + 15) // 16 - 1 is given n as a scalar
// parameter. It is a kernel of the dimension itself: a symbol h that its buffers define, with
// n = 16 * (h + 1) - 15 + r for some r in [0, 16). Where every expression of n is one of h (r
// cancels), h takes its place: bounds of h are known, indices have no quotients, and kernels of
// other sizes become the same one.
#include <algorithm>
#include <unordered_set>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/op.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/kernels_of_graphs.h"
#include "tenon/support/remarks.h"

namespace tenon::graph {

namespace {

bool uses(const NodePtr& root, const tenon::Var& var) {
  bool found = false;
  walk_if(root, [&](const NodePtr& node) {
    found |= node.get() == &var;
    return !found;
  });
  return found;
}

/// `dim` is (var + shift) // divisor + offset.
struct Quotient {
  int64_t shift = 0, divisor = 1, offset = 0;

  static std::optional<Quotient> of(const Expr& dim, const tenon::Var& var) {
    Quotient out;
    Expr rest = without_constant(dim, out.offset);
    if (const auto* op = rest.as<Binary>(); op && op->op == BinaryOp::kFloorDiv) {
      const auto divisor = as_int(op->rhs);
      if (!divisor || *divisor < 1) return std::nullopt;
      out.divisor = *divisor;
      rest = without_constant(op->lhs, out.shift);
    }
    return rest.get() == &var ? std::optional(out) : std::nullopt;
  }

  /// What `var` is where the dimension is `value`, with a remainder in [0, divisor).
  Expr inverse(const Expr& value, const Expr& remainder) const {
    return (value - offset) * divisor - shift + remainder;
  }

 private:
  static Expr without_constant(const Expr& sum, int64_t& constant) {
    const auto* op = sum.as<Binary>();
    if (!op || (op->op != BinaryOp::kAdd && op->op != BinaryOp::kSub)) return sum;
    const auto number = as_int(op->rhs);
    if (!number) return sum;
    constant += op->op == BinaryOp::kAdd ? *number : -*number;
    return op->lhs;
  }
};

using Renamed = std::function<std::optional<Expr>(const Expr&)>;

/// Renames expressions of sizes, each as a whole, and simplifies what comes of it.
class Renamer : public Rewriter {
 public:
  Renamer(const tir::PrimFunc& function, arith::Analyzer& analyzer, Renamed renamed)
      : analyzer_(analyzer), renamed_(std::move(renamed)) {
    for (const Ref<tenon::Var>& var : function.params) sizes_.insert(var.get());
    for (const Ref<tenon::Var>& var : tir::symbolic_vars(function)) sizes_.insert(var.get());
  }

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    const auto* expr = node.as<ExprNode>();
    if (expr && expr->dtype.is_integer() && is_of_sizes(node))
      if (const auto next = renamed_(downcast<ExprNode>(node))) return analyzer_.simplify(*next);
    return rewrite_members(node);
  }
  NodePtr rewrite_use(const NodePtr& node) override {
    if (const auto* var = node.as<tenon::Var>(); var && sizes_.count(var))
      if (const auto next = renamed_(downcast<ExprNode>(node))) return analyzer_.simplify(*next);
    return node;
  }

 private:
  // Made of sizes and constants by arithmetic alone.
  bool is_of_sizes(const NodePtr& node) const {
    bool all = true;
    walk_if(node, [&](const NodePtr& part) {
      all &= part.as<Binary>() || part.as<IntImm>() || part.as<Cast>() ||
             (part.as<tenon::Var>() && sizes_.count(part.get()));
      return all;
    });
    return all;
  }

  arith::Analyzer& analyzer_;
  Renamed renamed_;
  std::unordered_set<const Node*> sizes_;
};

class Namer {
 public:
  explicit Namer(const Ref<tir::PrimFunc>& function) : function_(function), given_(function) {}

  /// Which of the function's scalars it still has.
  std::vector<bool> run() {
    std::vector<bool> kept;
    for (size_t i = 0; i < given_->params.size(); ++i) {
      const Ref<tenon::Var>& param = given_->params[i];
      if (given_->buffers[i]) continue;
      const bool is_size = param->dtype == kInt64;
      kept.push_back(!is_size || !(invert(param) || replace(param) || drop(param)));
    }
    return kept;
  }
  const Ref<tir::PrimFunc>& function() const { return function_; }

 private:
  // Dimensions of parameters that are expressions of `var`, each once.
  std::vector<Expr> dims_of(const tenon::Var& var) const {
    std::vector<Expr> out;
    for (const Ref<tir::Buffer>& buffer : function_->buffers)
      for (const Expr& dim : buffer ? buffer->shape : std::vector<Expr>{})
        if (!dim.as<tenon::Var>() && uses(dim, var) &&
            std::ranges::none_of(out, [&](const Expr& e) { return structural_equal(e, dim); }))
          out.push_back(dim);
    return out;
  }

  // By the dimension with the least divisor, of which the others may be expressions.
  bool invert(const Ref<tenon::Var>& var) {
    std::optional<Quotient> finest;
    for (const Expr& dim : dims_of(*var))
      if (const auto found = Quotient::of(dim, *var);
          found && (!finest || found->divisor < finest->divisor))
        finest = found;
    if (!finest) return false;
    const Ref<tenon::Var> symbol = tenon::Var::size(var->name),
                          remainder = make<tenon::Var>("r", kInt64);
    arith::Analyzer analyzer;
    analyzer.bind(remainder, int64(0), int64(finest->divisor));
    const Substitution values = {{var.get(), finest->inverse(symbol, remainder)}};
    return accept(
        var, analyzer,
        [&](const Expr& expr) -> std::optional<Expr> {
          if (!uses(expr, *var)) return std::nullopt;
          return substitute(expr, values);
        },
        *remainder);
  }

  // The one dimension that `var` stands in: a product, a sum with other sizes.
  bool replace(const Ref<tenon::Var>& var) {
    const std::vector<Expr> dims = dims_of(*var);
    if (dims.size() != 1) return false;
    const Ref<tenon::Var> symbol = tenon::Var::size(var->name);
    arith::Analyzer analyzer;
    return accept(
        var, analyzer,
        [&](const Expr& expr) -> std::optional<Expr> {
          if (!uses(expr, *var)) return std::nullopt;
          return downcast<ExprNode>(
              tenon::rewrite(expr, [&](const NodePtr& node) -> std::optional<NodePtr> {
                if (structural_equal(node, dims[0])) return symbol;
                return std::nullopt;
              }));
        },
        *var);
  }

  // Replacing one parameter may leave no use of another.
  bool drop(const Ref<tenon::Var>& var) {
    if (function_.same_as(given_) || uses_of(*var)) return false;
    function_ = without(var, *function_);
    return true;
  }
  bool uses_of(const tenon::Var& var) const {
    return uses(function_->body, var) ||
           std::ranges::any_of(function_->buffers,
                               [&](const auto& b) { return b && uses(b, var); });
  }

  // Renames in the whole function; kept where neither `var` nor `left` remains.
  bool accept(const Ref<tenon::Var>& var, arith::Analyzer& analyzer, const Renamed& renamed,
              const tenon::Var& left) {
    Renamer rename(*function_, analyzer, renamed);
    const Ref<tir::PrimFunc> next = without(var, *rename(function_));
    if (uses(next, *var) || uses(next, left)) return false;
    function_ = next;
    return true;
  }

  static Ref<tir::PrimFunc> without(const Ref<tenon::Var>& param, const tir::PrimFunc& function) {
    std::vector<Ref<tenon::Var>> params = function.params;
    std::vector<Ref<tir::Buffer>> buffers = function.buffers;
    const auto at = std::ranges::find_if(params, [&](const auto& p) { return p.same_as(param); });
    buffers.erase(buffers.begin() + (at - params.begin()));
    params.erase(at);
    return with(make<tir::PrimFunc>(std::move(params), std::move(buffers), function.body,
                                    function.attrs, function.origin),
                [&](tir::PrimFunc& made) {
                  made.result = function.result;
                  made.is_private = function.is_private;
                });
  }

  Ref<tir::PrimFunc> function_, given_;
};

}  // namespace

IRModule name_dims(IRModule module) {
  std::unordered_map<std::string, std::vector<bool>> kept;  // of the scalars, in order
  const std::unordered_set<std::string> candidates = kernels_of_graphs(module);
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, function] : entries) {
    if (!candidates.count(name)) continue;
    Namer namer(module.find<tir::PrimFunc>(name));
    std::vector<bool> scalars = namer.run();
    if (std::ranges::find(scalars, false) == scalars.end()) continue;
    record({"NameDims",
            name,
            "named",
            "symbols-of-buffers",
            {{"symbols", static_cast<double>(std::ranges::count(scalars, false))}},
            "",
            function->origin});
    module.set(name, namer.function());
    kept.emplace(name, std::move(scalars));
  }
  if (kept.empty()) return module;
  for (const auto& [name, function] : entries) {
    const auto* graph = function.as<Function>();
    if (!graph) continue;
    module.set(
        name, rewrite(ref_to(graph), [&](const NodePtr& node) -> std::optional<NodePtr> {
          const auto* call = node.as<Call>();
          const auto* callee = call && is_call_tir(*call) ? call->args[0].as<FuncRef>() : nullptr;
          const auto found = callee ? kept.find(callee->name) : kept.end();
          if (found == kept.end()) return std::nullopt;
          std::vector<Expr> scalars;
          const std::vector<Expr>& given = call->args.at(2).as<ShapeExpr>()->values;
          for (size_t i = 0; i < given.size(); ++i)
            if (found->second[i]) scalars.push_back(given[i]);
          std::vector<Value> args = {call->args[0], call->args[1]};
          if (!scalars.empty()) args.push_back(make<ShapeExpr>(std::move(scalars)));
          return make<Call>(call->op, std::move(args), call->attrs, call->type_args, call->origin);
        }));
  }
  return module;
}

}  // namespace tenon::graph
