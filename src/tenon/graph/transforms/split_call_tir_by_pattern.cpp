// SPDX-License-Identifier: Apache-2.0
// SplitCallTIRByPattern: blocks that a back end has a kernel for leave the PrimFuncs that hold
// them.
#include "tenon/graph/transforms/split_call_tir_by_pattern.h"

#include <algorithm>
#include <set>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/backend.h"
#include "tenon/graph/patterns/candidate_rank.h"
#include "tenon/graph/transforms/kernel_operators.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/graph/user_placement.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/patterns/take_out.h"

namespace tenon::graph {

namespace {

using tir::Buffer;
using tir::Piece;
using tir::PrimFunc;

// In the order of registration.
std::vector<FusionPattern> checked(std::vector<FusionPattern> patterns) {
  std::erase_if(patterns, [](const FusionPattern& pattern) { return !pattern.tir; });
  for (const FusionPattern& pattern : patterns) tir::check_block_pattern(*pattern.tir);
  return patterns;
}

std::string backend_name(const FusionPattern& pattern) { return backend_part(pattern.name); }

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
        why_(patterns_.size()) {
    for (const FusionPattern& pattern : patterns_)
      backends_.push_back(find_backend(backend_name(pattern)));
  }

  Ref<Function> run(const Ref<Function>& function) {
    function_ = function.get();
    return rebuild(module_, function,
                   [&](BlockBuilder& builder, const Binding& binding, const Value& value) {
                     return replace(builder, binding, value);
                   });
  }

  /// \throws CompileError (kBadPlacement).
  void check_user_placement() const {
    for (const auto& [node, wanted] : options_.user_placement) {
      if (wanted == kNoProvider || done_.count(node)) continue;
      const std::string why = operators_.reasons(node);
      const auto site = seen_.find(node);
      throw CompileError(kBadPlacement, site == seen_.end() ? Origin() : site->second,
                         "placement of `{}` as `{}`: {}", node, wanted,
                         !why.empty() ? why
                         : site == seen_.end()
                             ? "no kernel of it is left"
                             : "no pattern of `" + wanted + "` matches in its kernels");
    }
  }

  void report() const {
    operators_.report();
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
    bool is_kept = false;
    each_part(origin_, [&](const Origin& part) {
      const auto placed = options_.user_placement.find(placement_name(part));
      if (placed == options_.user_placement.end()) return;
      is_kept |= placed->second == kNoProvider;
      seen_.emplace(placed->first, part);
    });
    site.function = with_origins_of(site.function, origin_);
    operators_.add(*site.function);
    if (is_kept) return std::nullopt;
    refused_.clear();
    const auto values = split(builder, site);
    builder.set_origin(origin_);
    if (!values) return std::nullopt;
    divided_.push_back(ref->name);
    return several ? Value(make<Tuple>(*values)) : values->at(0);
  }

  /// A match that may be taken.
  struct Candidate {
    size_t pattern;
    tir::BlockMatch match;
    std::vector<Ref<tir::Block>> blocks;  // with those that start reductions
    CandidateRank rank = {};              // its cost is asked later
  };

  // In the order in which they are to be taken, but for their cost.
  std::vector<Candidate> candidates(const PrimFunc& function) {
    std::vector<Candidate> out;
    for (size_t p = 0; p < patterns_.size(); ++p) {
      std::string why;
      for (tir::BlockMatch& match : tir::match_blocks(*patterns_[p].tir, function, &why)) {
        Candidate candidate{p, std::move(match), {}};
        candidate.blocks = candidate.match.blocks;
        candidate.blocks.insert(candidate.blocks.end(), candidate.match.starts.begin(),
                                candidate.match.starts.end());
        CandidateRank& rank = candidate.rank;
        rank.backend_priority = backends_[p] ? backends_[p]->priority : 0;
        rank.pattern_priority = patterns_[p].priority;
        rank.size = static_cast<int64_t>(candidate.match.blocks.size());
        for (const Ref<tir::Block>& block : candidate.match.blocks)
          if (const tir::BlockWork work = tir::work_of(*block);
              work.kind == tir::WorkKind::kContracts)
            rank.work += work.points;
        bool elsewhere = false;
        each_part(origin_of(candidate.blocks), [&](const Origin& part) {
          const auto placed = options_.user_placement.find(placement_name(part));
          if (placed == options_.user_placement.end()) return;
          const bool is_meant =
              placed->second == patterns_[p].name || placed->second == backend_name(patterns_[p]);
          (is_meant ? rank.is_user_placed : elsewhere) = true;
        });
        const bool is_asked = !options_.on_request_only.count(backend_name(patterns_[p]));
        if (!rank.is_user_placed && !is_asked) continue;
        if (elsewhere)
          refuse(candidate, Verdict::refuse(kUserPlacement, "it is written to run elsewhere"));
        else
          out.push_back(std::move(candidate));
      }
      if (!why.empty()) why_[p] = why;
    }
    for (size_t i = 0; i < out.size(); ++i) out[i].rank.number = i;
    std::sort(out.begin(), out.end(),
              [](const Candidate& a, const Candidate& b) { return a.rank < b.rank; });
    return out;
  }

  void refuse(const Candidate& candidate, const Verdict& verdict) {
    const std::string& pattern = patterns_[candidate.pattern].name;
    const std::string code = verdict.code.empty() ? "refused" : verdict.code;
    // What is left of a kernel that was divided is gone through again.
    std::string key = pattern;
    for (const Ref<tir::Block>& block : candidate.blocks) key += " " + block->name;
    if (!refused_.insert(key).second) return;
    why_[candidate.pattern] = verdict.words;
    operators_.refuse(pattern, candidate.blocks, {false, code, verdict.words});
    const Origin origin = origin_of(candidate.blocks);
    record({"SplitCallTIRByPattern",
            name_,
            "refused",
            code,
            {},
            pattern + ": " + verdict.words,
            origin ? origin : origin_});
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
    name_ = site.name;
    const std::vector<Candidate> all = candidates(function);
    for (size_t i = 0; i < all.size();) {
      // Of those that are equal but for their cost, the cheapest.
      const Candidate* best = nullptr;
      std::vector<Piece> pieces;
      double seconds = 0;
      const size_t first = i;
      for (; i < all.size() && all[i].rank.importance() == all[first].rank.importance(); ++i) {
        const FusionPattern& pattern = patterns_[all[i].pattern];
        auto made = tir::take_out(function, all[i].match, outputs,
                                  {pattern.name, options_.copy_layouts}, &why_[all[i].pattern]);
        if (!made) continue;
        const KernelWeight weight = judge(all[i], *made, *symbols);
        if (!weight.verdict.accepted) {
          refuse(all[i], weight.verdict);
        } else if (!best || weight.seconds < seconds) {
          best = &all[i];
          pieces = std::move(*made);
          seconds = weight.seconds;
        }
      }
      if (!best) continue;
      ++found_[best->pattern];
      const Origin origin = origin_of(best->blocks);
      each_part(origin, [&](const Origin& part) {
        if (best->rank.is_user_placed) done_.insert(placement_name(part));
      });
      operators_.take({site.name, patterns_[best->pattern].name, best->blocks, pieces.size() == 1,
                       origin ? origin : origin_});
      return emit(builder, site, params, outputs, pieces, origin, *symbols);
    }
    return std::nullopt;
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

  // A back end that decides about matches, says what they cost, or adds to their attributes, sees a
  // function that calls the kernel.
  KernelWeight judge(const Candidate& candidate, std::vector<Piece>& pieces,
                     const Substitution& symbols) {
    const FusionPattern& pattern = patterns_[candidate.pattern];
    const Backend* backend = backends_[candidate.pattern].get();
    const bool has_cost = backend && backend->cost && options_.weigh;
    Piece& piece = *std::find_if(pieces.begin(), pieces.end(), [](const Piece& other) {
      return other.role == Piece::Role::kMatch;
    });
    std::optional<double> declared;
    if (pattern.check || pattern.attrs || has_cost) {
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
      const Ref<Function> composite =
          builder.end_function(result, attrs_of_composite(*piece.function));
      const Match match;
      const std::map<std::string, Value> annotated;
      const PatternCheck seen{module, *function_, match, composite, annotated};
      if (pattern.check) {
        Verdict verdict = pattern.check(seen);
        if (!verdict.accepted) return {0, std::move(verdict)};
      }
      if (has_cost) declared = backend->cost(seen);
      if (pattern.attrs)
        for (const auto& [name, value] : pattern.attrs(seen))
          if (name != "Composite") piece.function = piece.function->with_attr(name, value);
    }
    if (!options_.weigh) return {};
    std::vector<Ref<PrimFunc>> copies;
    for (const Piece& other : pieces)
      if (other.role == Piece::Role::kLayout) copies.push_back(other.function);
    KernelWeight weight = options_.weigh(*piece.function, copies, declared);
    if (candidate.rank.is_user_placed) weight.verdict = {};
    return weight;
  }

  static std::vector<Expr> scalars_of(const Piece& piece, const Substitution& symbols) {
    std::vector<Expr> out;
    for (const Expr& scalar : piece.scalars) out.push_back(substitute(scalar, symbols));
    return out;
  }

  std::vector<Value> emit(BlockBuilder& builder, const CallSite& site,
                          const std::vector<Ref<Buffer>>& params,
                          const std::vector<Ref<Buffer>>& outputs, const std::vector<Piece>& pieces,
                          const Origin& matched, const Substitution& symbols) {
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
      // Of what computes it; a back end that makes no code for it gives back these operators.
      const Origin origin =
          piece.role == Piece::Role::kMatch ? matched : origin_of(tir::blocks_of(*piece.function));
      const bool is_rest = piece.role == Piece::Role::kBefore || piece.role == Piece::Role::kAfter;
      const auto divided = is_rest ? split(builder, call) : std::nullopt;
      builder.set_origin(origin ? origin : origin_);
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
  std::vector<std::shared_ptr<const Backend>>
      backends_;  // of patterns_; null where none is registered
  KernelOperators operators_;
  const Function* function_ = nullptr;
  Origin origin_ = {};                  // of the call that is divided
  std::string name_;                    // of its callee, or of the part of it that is divided
  std::set<std::string> refused_;       // of the call that is divided: pattern and blocks
  std::set<std::string> done_;          // placement names that were heeded
  std::map<std::string, Origin> seen_;  // by placement name: what has a kernel
};

bool is_named(const IRModule& module, const std::string& name) {
  bool found = false;
  for (const auto& [other, function] : module.functions()) {
    walk<FuncRef>(function, [&](const FuncRef& ref) { found |= ref.name == name; });
    walk<GlobalVar>(function, [&](const GlobalVar& ref) { found |= ref.name == name; });
  }
  return found;
}

}  // namespace

std::vector<FusionPattern> take_kernel_patterns(IRModule& module) {
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

IRModule split_call_tir_by_pattern(IRModule module, const SplitOptions& options) {
  std::vector<FusionPattern> patterns =
      options.patterns.empty() ? take_kernel_patterns(module) : options.patterns;
  Splitter splitter(module, options, checked(std::move(patterns)));
  const std::vector<IRModule::Entry> entries = module.functions();
  for (const auto& [name, base] : entries)
    if (const auto function = cast<Function>(base)) module.set(name, splitter.run(function));
  splitter.check_user_placement();
  splitter.report();
  for (const std::string& name : splitter.divided()) {
    const BaseFunc function = module.find(name);
    if (function && function->is_private && !is_named(module, name)) module.erase(name);
  }
  return module;
}

}  // namespace tenon::graph
