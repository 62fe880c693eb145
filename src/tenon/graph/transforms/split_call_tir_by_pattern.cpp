// SplitCallTIRByPattern: blocks that a back end has a kernel for leave the PrimFuncs that hold
// them.
#include "tenon/graph/transforms/split_call_tir_by_pattern.h"

#include <algorithm>
#include <numeric>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/patterns/take_out.h"

namespace tenon::graph {

namespace {

using tir::Buffer;
using tir::Piece;
using tir::PrimFunc;

// In the order in which they are tried: by priority, then the larger, then as registered.
std::vector<FusionPattern> sorted(std::vector<FusionPattern> patterns) {
  std::erase_if(patterns, [](const FusionPattern& pattern) { return !pattern.tir; });
  const auto size = [](const FusionPattern& pattern) {
    int64_t blocks = 0;
    walk<tir::Block>(pattern.tir, [&](const tir::Block&) { ++blocks; });
    return blocks;
  };
  std::vector<size_t> order(patterns.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (patterns[a].priority != patterns[b].priority)
      return patterns[a].priority > patterns[b].priority;
    const int64_t x = size(patterns[a]), y = size(patterns[b]);
    return x != y ? x > y : a < b;
  });
  std::vector<FusionPattern> out;
  for (const size_t i : order) out.push_back(patterns[i]);
  for (const FusionPattern& pattern : out) tir::check_block_pattern(*pattern.tir);
  return out;
}

// A call_tir and what it gives.
struct CallSite {
  std::string name;
  Ref<PrimFunc> function;
  std::vector<Value> args;
  std::vector<Type> types;  // of its outputs
  std::vector<Expr> scalars;
};

class Splitter {
 public:
  Splitter(IRModule& module, const SplitOptions& options, std::vector<FusionPattern> patterns)
      : module_(module),
        options_(options),
        patterns_(std::move(patterns)),
        found_(patterns_.size(), 0),
        why_(patterns_.size()) {}

  Ref<Function> run(const Ref<Function>& function) {
    function_ = function.get();
    return rebuild(module_, function,
                   [&](BlockBuilder& builder, const Binding& binding, const Value& value) {
                     return replace(builder, binding, value);
                   });
  }

  void report() const {
    for (size_t p = 0; p < patterns_.size(); ++p)
      record({"SplitCallTIRByPattern",
              patterns_[p].name,
              found_[p] ? "matched" : "unmatched",
              "",
              {{"times", static_cast<double>(found_[p])}},
              found_[p] ? "" : why_[p],
              patterns_[p].tir->origin});
  }

  const std::vector<std::string>& divided() const { return divided_; }

 private:
  std::optional<Value> replace(BlockBuilder& builder, const Binding& binding, const Value& value) {
    const auto* call = value.as<Call>();
    if (!call || !call->is("call_tir")) return std::nullopt;
    const auto* ref = call->args.at(0).as<FuncRef>();
    const auto* args = call->args.size() > 1 ? call->args[1].as<Tuple>() : nullptr;
    if (!ref || !args) return std::nullopt;
    CallSite site{ref->name, module_.find<PrimFunc>(ref->name), args->values, {}, {}};
    if (!site.function || site.function->attrs.contains("Composite")) return std::nullopt;
    const Type result = call->type_args.size() == 1 ? call->type_args[0] : binding.var->type;
    const auto* several = result.as<TupleType>();
    site.types = several ? several->types : std::vector<Type>{result};
    if (call->args.size() > 2) {
      const auto* shape = call->args[2].as<ShapeExpr>();
      if (!shape) return std::nullopt;
      site.scalars = shape->values;
    }
    origin_ = binding.origin ? binding.origin : call->origin;
    std::set<std::string> nodes;
    add_nodes(origin_, nodes);
    if (std::any_of(nodes.begin(), nodes.end(),
                    [&](const std::string& node) { return options_.keep.count(node) != 0; }))
      return std::nullopt;
    const auto values = split(builder, site);
    if (!values) return std::nullopt;
    divided_.push_back(ref->name);
    return several ? Value(make<Tuple>(*values)) : values->at(0);
  }

  // The outputs of a call, made by calls of the pieces of its callee; nothing where no pattern is
  // in it.
  std::optional<std::vector<Value>> split(BlockBuilder& builder, const CallSite& site) {
    const PrimFunc& function = *site.function;
    if (!tir::root_block(function)) return std::nullopt;
    std::vector<Ref<Buffer>> params;
    for (const Ref<Buffer>& buffer : function.buffers)
      if (buffer) params.push_back(buffer);
    if (params.size() != site.args.size() + site.types.size()) return std::nullopt;
    const std::vector<Ref<Buffer>> outputs(
        params.begin() + static_cast<std::ptrdiff_t>(site.args.size()), params.end());
    const auto symbols = symbols_of(site, params);
    if (!symbols) return std::nullopt;
    for (size_t p = 0; p < patterns_.size(); ++p) {
      std::string why;
      for (const tir::BlockMatch& match : tir::match_blocks(*patterns_[p].tir, function, &why)) {
        auto pieces = tir::take_out(function, match, outputs,
                                    {patterns_[p].name, options_.copy_layouts}, &why);
        if (!pieces) continue;
        const Verdict verdict = judge(p, *pieces, *symbols);
        if (!verdict.accepted) {
          why = verdict.words;
          record({"SplitCallTIRByPattern",
                  site.name,
                  "refused",
                  verdict.code,
                  {},
                  verdict.words,
                  builder.origin()});
          continue;
        }
        ++found_[p];
        record({"SplitCallTIRByPattern",
                site.name,
                "placed",
                patterns_[p].name,
                {},
                pieces->size() == 1 ? "whole" : "a part",
                origin_});
        return emit(builder, site, params, outputs, *pieces, *symbols);
      }
      if (!why.empty()) why_[p] = why;
    }
    return std::nullopt;
  }

  // The model's nodes that a call came from.
  static void add_nodes(const Origin& origin, std::set<std::string>& nodes) {
    if (!origin) return;
    if (origin->kind == OriginInfo::Kind::kModel) nodes.insert(origin->node_name);
    for (const Origin& part : origin->parts) add_nodes(part, nodes);
  }

  // The callee's symbols and scalars in terms of the caller's.
  static std::optional<Substitution> symbols_of(const CallSite& site,
                                                const std::vector<Ref<Buffer>>& params) {
    Substitution out;
    for (size_t i = 0; i < params.size(); ++i) {
      const Type type =
          i < site.args.size() ? type_of(site.args[i]) : site.types[i - site.args.size()];
      const auto* tensor = type.as<TensorType>();
      if (!tensor || !tensor->has_shape() || tensor->shape->size() != params[i]->ndim())
        return std::nullopt;
      for (size_t d = 0; d < params[i]->ndim(); ++d)
        if (const auto* symbol = params[i]->shape[d].as<tenon::Var>())
          out.emplace(symbol, cast(symbol->dtype, (*tensor->shape)[d]));
    }
    size_t next = 0;
    for (size_t i = 0; i < site.function->params.size(); ++i) {
      if (site.function->buffers[i]) continue;
      if (next >= site.scalars.size()) return std::nullopt;
      const Ref<tenon::Var>& scalar = site.function->params[i];
      out[scalar.get()] = cast(scalar->dtype, site.scalars[next++]);
    }
    return out;
  }

  static Type type_of_buffer(const Buffer& buffer, const Substitution& symbols) {
    std::vector<Expr> shape;
    for (const Expr& dim : buffer.shape)
      shape.push_back(arith::simplify(cast(kInt64, substitute(dim, symbols))));
    return make<TensorType>(std::move(shape), buffer.dtype);
  }

  // A back end that decides about matches, or adds to their attributes, sees a function that calls
  // the kernel.
  Verdict judge(size_t p, std::vector<Piece>& pieces, const Substitution& symbols) {
    const FusionPattern& pattern = patterns_[p];
    if (!pattern.check && !pattern.attrs) return {};
    Piece& piece = *std::find_if(pieces.begin(), pieces.end(), [](const Piece& candidate) {
      return candidate.role == Piece::Role::kMatch;
    });
    IRModule module = module_;
    BlockBuilder builder(module);
    std::vector<Ref<Var>> params;
    for (const Ref<Buffer>& buffer : piece.inputs)
      params.push_back(make<Var>(buffer->name, type_of_buffer(*buffer, symbols)));
    std::vector<Type> types;
    for (const Ref<Buffer>& buffer : piece.outputs)
      types.push_back(type_of_buffer(*buffer, symbols));
    builder.begin_function(params);
    const Value result =
        builder.call_tir(pattern.name, piece.function, {params.begin(), params.end()}, types,
                         scalars_of(piece, symbols));
    const Ref<Function> composite = builder.end_function(result, {{"Composite", pattern.name}});
    const Match match;
    const std::map<std::string, Value> annotated;
    const PatternCheck seen{module, *function_, match, composite, annotated};
    if (pattern.check) {
      const Verdict verdict = pattern.check(seen);
      if (!verdict.accepted) return verdict;
    }
    if (!pattern.attrs) return {};
    for (const auto& [name, value] : pattern.attrs(seen))
      if (name != "Composite") piece.function = piece.function->with_attr(name, value);
    return {};
  }

  static std::vector<Expr> scalars_of(const Piece& piece, const Substitution& symbols) {
    std::vector<Expr> out;
    for (const Expr& scalar : piece.scalars) out.push_back(substitute(scalar, symbols));
    return out;
  }

  std::vector<Value> emit(BlockBuilder& builder, const CallSite& site,
                          const std::vector<Ref<Buffer>>& params,
                          const std::vector<Ref<Buffer>>& outputs, const std::vector<Piece>& pieces,
                          const Substitution& symbols) {
    std::unordered_map<const Node*, Value> values;
    for (size_t i = 0; i < site.args.size(); ++i) values[params[i].get()] = site.args[i];
    for (const Piece& piece : pieces) {
      CallSite call{site.name, piece.function, {}, {}, scalars_of(piece, symbols)};
      for (const Ref<Buffer>& buffer : piece.inputs) call.args.push_back(values.at(buffer.get()));
      for (const Ref<Buffer>& buffer : piece.outputs)
        call.types.push_back(type_of_buffer(*buffer, symbols));
      std::vector<Value> made;
      switch (piece.role) {
        case Piece::Role::kBefore: call.name += "_before"; break;
        case Piece::Role::kAfter: call.name += "_after"; break;
        case Piece::Role::kLayout: call.name += "_layout"; break;
        case Piece::Role::kMatch:
          call.name = *piece.function->attrs.get<std::string>("Composite");
          break;
      }
      const bool is_rest = piece.role == Piece::Role::kBefore || piece.role == Piece::Role::kAfter;
      const auto divided = is_rest ? split(builder, call) : std::nullopt;
      made = divided ? *divided : emit_call(builder, call);
      for (size_t i = 0; i < made.size(); ++i) values[piece.outputs[i].get()] = made[i];
    }
    std::vector<Value> out;
    for (const Ref<Buffer>& buffer : outputs) out.push_back(values.at(buffer.get()));
    return out;
  }

  static std::vector<Value> emit_call(BlockBuilder& builder, const CallSite& call) {
    const Value result =
        builder.call_tir(call.name, call.function, call.args, call.types, call.scalars);
    if (call.types.size() == 1) return {result};
    std::vector<Value> out;
    for (size_t i = 0; i < call.types.size(); ++i)
      out.push_back(builder.emit(make<TupleGetItem>(result, static_cast<int64_t>(i))));
    return out;
  }

  IRModule& module_;
  const SplitOptions& options_;
  std::vector<FusionPattern> patterns_;
  std::vector<int> found_;
  std::vector<std::string> why_;
  std::vector<std::string> divided_;
  const Function* function_ = nullptr;
  Origin origin_ = {};  // of the call that is divided
};

// The module's own patterns, which are no part of the program.
std::vector<FusionPattern> take_patterns(IRModule& module) {
  std::vector<FusionPattern> patterns;
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries) {
    const auto function = cast<PrimFunc>(base);
    const auto composite = function ? function->attrs.get<std::string>("Pattern") : std::nullopt;
    if (!composite) continue;
    FusionPattern pattern;
    pattern.name = *composite;
    pattern.tir = function;
    pattern.priority = static_cast<int>(function->attrs.get<int64_t>("priority").value_or(0));
    patterns.push_back(std::move(pattern));
    module.erase(name);
  }
  return patterns;
}

bool is_named(const IRModule& module, const std::string& name) {
  bool found = false;
  for (const auto& [other, function] : module.functions()) {
    walk<FuncRef>(function, [&](const FuncRef& ref) { found |= ref.name == name; });
    walk<GlobalVar>(function, [&](const GlobalVar& ref) { found |= ref.name == name; });
  }
  return found;
}

}  // namespace

IRModule split_call_tir_by_pattern(IRModule module, const SplitOptions& options) {
  std::vector<FusionPattern> patterns =
      options.patterns.empty() ? take_patterns(module) : options.patterns;
  Splitter splitter(module, options, sorted(std::move(patterns)));
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries)
    if (const auto function = cast<Function>(base)) module.set(name, splitter.run(function));
  splitter.report();
  for (const std::string& name : splitter.divided()) {
    const BaseFunc function = module.find(name);
    if (function && function->is_private && !is_named(module, name)) module.erase(name);
  }
  return module;
}

}  // namespace tenon::graph
