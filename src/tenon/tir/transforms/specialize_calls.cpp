// SpecializeCalls: a callee with symbolic dimensions gets a copy for each combination of constants
// that its callers give them.

#include "tenon/support/remarks.h"
#include "tenon/tir/call_transforms.h"
#include "tenon/tir/callee.h"

namespace tenon::tir {

namespace {

class Specializer {
 public:
  explicit Specializer(IRModule module) : module_(std::move(module)) {}

  IRModule run() {
    std::vector<std::string> work;
    for (const auto& [name, function] : module_.functions())
      if (function.as<PrimFunc>()) work.push_back(name);
    // What a copy calls may be specialised in its turn.
    while (!work.empty()) {
      const std::string name = work.back();
      work.pop_back();
      const auto function = module_.find<PrimFunc>(name);
      std::vector<std::string> made;
      const auto next = rewrite(function, [&](const NodePtr& node) -> std::optional<NodePtr> {
        if (const auto* call = node.as<CallTir>()) {
          const auto callee = specialised(*call->callee, call->args, call->origin, made);
          if (!callee) return std::nullopt;
          return make<CallTir>(callee, call->args, call->annotations, call->origin);
        }
        if (const auto* call = node.as<Call>(); call && call->callee) {
          const auto callee = specialised(*call->callee, call->args, call->origin, made);
          if (!callee) return std::nullopt;
          return make<Call>(callee, call->args, call->result, call->origin);
        }
        return std::nullopt;
      });
      if (!next.same_as(function)) module_.set(name, next);
      work.insert(work.end(), made.begin(), made.end());
    }
    return std::move(module_);
  }

 private:
  Ref<GlobalVar> specialised(const GlobalVar& name, const std::vector<NodePtr>& args,
                             const Origin& origin, std::vector<std::string>& made) {
    const auto function = module_.find<PrimFunc>(name.name);
    if (!function || args.size() != function->params.size()) return {};
    const Callee callee = callee_of(name.name, function);
    const Substitution bound = bind_symbols(callee, args);
    Substitution constants;
    std::string key = name.name;
    for (const Ref<Var>& symbol : callee.symbols()) {
      const auto value = bound.find(symbol.get());
      const auto number =
          value == bound.end() ? std::nullopt : as_int(downcast<ExprNode>(value->second));
      key += number ? "_" + std::to_string(*number) : "_" + symbol->name;
      if (number) constants.emplace(symbol.get(), imm(symbol->dtype, *number));
    }
    if (constants.empty()) return {};
    const auto known = copies_.find(key);
    if (known != copies_.end()) return make<GlobalVar>(known->second, name.origin);
    const std::string copy = module_.add_unique(key, with_constants(*function, constants));
    copies_.emplace(key, copy);
    made.push_back(copy);
    record({"SpecializeCalls",
            name.name,
            "specialised",
            "constant-dimensions",
            {{"symbols", static_cast<double>(constants.size())}},
            copy,
            origin});
    return make<GlobalVar>(copy, name.origin);
  }

  static BaseFunc with_constants(const PrimFunc& function, const Substitution& constants) {
    Substitution values = constants;
    std::vector<Ref<Buffer>> buffers;
    for (const Ref<Buffer>& buffer : function.buffers) {
      if (!buffer) {
        buffers.push_back(buffer);
        continue;
      }
      const auto replaced = [&](const std::vector<Expr>& exprs) {
        std::vector<Expr> out;
        for (const Expr& expr : exprs) out.push_back(substitute(expr, constants));
        return out;
      };
      const std::vector<Expr> shape = replaced(buffer->shape);
      std::vector<Expr> strides = replaced(buffer->strides);
      // Strides that turn out row-major need not be stated.
      const auto given = as_ints(strides), row_major = as_ints(compact_strides(shape));
      const auto extents = as_ints(shape);
      if (!strides.empty() && given && row_major && extents) {
        bool compact = true;
        for (size_t d = 0; d < given->size(); ++d)
          compact = compact && ((*extents)[d] == 1 || (*given)[d] == (*row_major)[d]);
        if (compact) strides.clear();
      }
      Expr offset = buffer->elem_offset;
      if (offset) offset = substitute(offset, constants);
      if (offset && is_int(offset, 0)) offset = {};
      buffers.push_back(make<Buffer>(buffer->name, buffer->dtype, shape,
                                     Buffer::Options{.strides = strides,
                                                     .elem_offset = offset,
                                                     .scope = buffer->scope,
                                                     .alignment = buffer->alignment,
                                                     .offset_factor = buffer->offset_factor,
                                                     .data = buffer->data},
                                     buffer->origin));
      values.emplace(buffer.get(), buffers.back());
    }
    auto* copy = new PrimFunc(function.params, std::move(buffers),
                              substitute(function.body, values), function.attrs, function.origin);
    copy->result = function.result;
    copy->is_private = true;
    return renew_definitions(Ref<PrimFunc>(copy));
  }

  IRModule module_;
  std::map<std::string, std::string> copies_;
};

}  // namespace

IRModule specialize_calls(IRModule module) { return Specializer(std::move(module)).run(); }

}  // namespace tenon::tir
