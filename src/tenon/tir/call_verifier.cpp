// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/call_verifier.h"

#include <algorithm>
#include <numeric>

#include "tenon/tir/call_graph.h"

namespace tenon::tir {

// Whether constant extents are those of `shape` in another order, as of a transposed buffer.
static bool are_in_another_order(const std::vector<Expr>& extents, const std::vector<Expr>& shape) {
  std::vector<int64_t> a, b;
  for (const Expr& extent : extents) a.push_back(as_int(extent).value_or(-1));
  for (const Expr& dim : shape) b.push_back(as_int(dim).value_or(-2));
  return a != b && std::is_permutation(a.begin(), a.end(), b.begin(), b.end());
}

static Origin place_of(const CheckedCall& site, size_t argument) {
  const NodePtr& arg = (*site.args)[argument];
  return arg.get()->origin ? arg.get()->origin : site.origin;
}

Diagnostic& CallVerifier::error(const CheckedCall& site, size_t argument, const Code& code,
                                std::string message) {
  return diagnostics_.error(code, place_of(site, argument), "{}", message);
}

void CallVerifier::declared(Diagnostic& diagnostic, const Callee& callee, size_t param) const {
  const Ref<Buffer>& buffer = callee.buffers[param];
  const Origin& place = buffer ? buffer->origin : callee.params[param]->origin;
  diagnostic.notes.push_back({place ? place : callee.function->origin,
                              fmt::format("`{}` declares parameter {} as `{}`", callee.name,
                                          param + 1, callee.declaration(param))});
}

static std::string signature(const Callee& callee) {
  std::string text = callee.name + "(";
  for (size_t i = 0; i < callee.params.size(); ++i) text += (i ? ", " : "") + callee.declaration(i);
  return text + ")";
}

void CallVerifier::check(const CheckedCall& site) {
  const std::string& name = site.callee;
  if (!module_.contains(name)) {
    diagnostics_.error(kUnknownCallee, site.origin,
                       "`{}` calls `{}`, which the module does not have", site.in, name);
    return;
  }
  const auto [known, is_new] = callees_.try_emplace(name);
  if (is_new) known->second = callee_of(module_, name);
  const std::optional<Callee>& callee = known->second;
  if (!callee) {
    const bool is_undeclared = static_cast<bool>(module_.find<ExternFunc>(name));
    diagnostics_
        .error(kUnknownCallee, site.origin, "`{}` calls `{}`, {}", site.in, name,
               is_undeclared
                   ? "an extern function without a signature; declare it under @T.extern_func"
                   : "which is no PrimFunc")
        .notes.push_back({module_.find(name)->origin, fmt::format("`{}` is defined here", name)});
    return;
  }
  const Origin& definition = callee->function->origin;
  if (site.args->size() != callee->params.size()) {
    diagnostics_
        .error(kBadArgument, site.origin, "`{}` calls `{}` with {} arguments; it has {}", site.in,
               name, site.args->size(), callee->params.size())
        .notes.push_back({definition, fmt::format("declared as `{}`", signature(*callee))});
    return;
  }
  bool fit = true;
  for (size_t i = 0; i < site.args->size(); ++i) fit &= fits(site, *callee, i);
  if (fit) facts(site, *callee);
  if (fit) alignments(site, *callee);
  threads(site);
  overlaps(site, *callee);
  if (!site.is_expression) return;
  if (callee->result.is_void() || callee->is_extern()) {
    diagnostics_
        .error(kTypeMismatch, site.origin,
               "`{}` returns no value; call it as a statement, with a buffer for what it computes",
               name)
        .notes.push_back({definition, fmt::format("declared as `{}`", signature(*callee))});
    return;
  }
  if (callee->result != site.result)
    diagnostics_
        .error(kDTypeMismatch, site.origin, "a call of `{}` has dtype {}; it returns {}", name,
               site.result.str(), callee->result.str())
        .notes.push_back({definition, fmt::format("`{}` is defined here", name)});
  for (size_t i = 0; i < site.args->size(); ++i) {
    if (!(*site.args)[i].as<BufferRegion>() || !effects_.of(name, i).writes) continue;
    declared(error(site, i, kBadArgument,
                   fmt::format("`{}` writes argument {}; inside an expression a call may only read",
                               name, i + 1)),
             *callee, i);
  }
}

// Kind, dtype and rank.
bool CallVerifier::fits(const CheckedCall& site, const Callee& callee, size_t i) {
  const Ref<Buffer>& buffer = callee.buffers[i];
  const NodePtr& arg = (*site.args)[i];
  const auto* region = arg.as<BufferRegion>();
  if (static_cast<bool>(buffer) != (region != nullptr)) {
    declared(error(site, i, kBadArgument,
                   fmt::format("argument {} of `{}` is a {}; parameter `{}` is a {}", i + 1,
                               callee.name, region ? "region" : "scalar",
                               buffer ? buffer->name : callee.params[i]->name,
                               buffer ? "buffer" : "scalar")),
             callee, i);
    return false;
  }
  const DType actual = region ? region->buffer->dtype : downcast<ExprNode>(arg)->dtype;
  const DType wanted = buffer ? buffer->dtype : callee.params[i]->dtype;
  if (actual != wanted) {
    const std::string what = region ? "is " + str(*region) + " of dtype " : "has dtype ";
    declared(error(site, i, kDTypeMismatch,
                   fmt::format("argument {} of `{}` {}{}; parameter `{}` has {}", i + 1,
                               callee.name, what, actual.str(),
                               buffer ? buffer->name : callee.params[i]->name, wanted.str())),
             callee, i);
  }
  if (!region && callee.is_extern() && wanted.is_handle() && !arg.as<StringImm>()) {
    declared(error(site, i, kBadArgument,
                   fmt::format("argument {} of `{}` is no constant text; parameter `{}` takes one",
                               i + 1, callee.name, callee.params[i]->name)),
             callee, i);
    return false;
  }
  if (!region) return true;
  const std::vector<Expr> extents = kept_extents(*region);
  if (extents.size() == buffer->ndim()) return true;
  std::string hint;
  if (extents.size() > buffer->ndim()) hint = "; an index in place of a slice drops a dimension";
  declared(error(site, i, kRegionMismatch,
                 fmt::format("argument {} of `{}` is {} of {} dimensions; parameter `{}` has {}{}",
                             i + 1, callee.name, str(*region), extents.size(), buffer->name,
                             buffer->ndim(), hint)),
           callee, i);
  return false;
}

// Extents and strides, the callee's symbolic dimensions unified.
void CallVerifier::facts(const CheckedCall& site, const Callee& callee) {
  const Substitution bound = bind_symbols(callee, *site.args);
  for (const Ref<Var>& symbol : callee.symbols())
    if (!bound.count(symbol.get()))
      diagnostics_.error(kBadArgument, site.origin,
                         "no argument of the call of `{}` determines its dimension `{}`",
                         callee.name, symbol->name);
  std::vector<bool> reported(site.args->size());
  for (const CallFact& fact : call_facts(callee, *site.args, bound)) {
    if (reported[fact.argument] || judge(fact, analyzer_) != Verdict::kFails) continue;
    reported[fact.argument] = true;
    const Ref<Buffer>& buffer = callee.buffers[fact.argument];
    const auto& region = *(*site.args)[fact.argument].as<BufferRegion>();
    const bool is_extent = fact.kind == CallFact::Kind::kExtent;
    std::string message;
    if (is_extent) {
      message =
          fmt::format("argument {} of `{}` is {} of extents {}; parameter `{}` has shape {}",
                      fact.argument + 1, callee.name, str(region), tenon::str(kept_extents(region)),
                      buffer->name, tenon::str(buffer->shape));
      if (are_in_another_order(kept_extents(region), buffer->shape))
        message += "; they are in another order: copy it transposed into a buffer of this shape";
    } else {
      std::vector<Expr> strides;
      for (const Expr& stride : kept_strides(region)) strides.push_back(analyzer_.simplify(stride));
      message = fmt::format(
          "argument {} of `{}` is {} of strides {}; parameter `{}` {}", fact.argument + 1,
          callee.name, str(region), tenon::str(strides), buffer->name,
          buffer->is_compact()
              ? fmt::format("is compact, which in dimension {} is stride {}; declare it with "
                            "symbolic strides to take any region",
                            fact.dim, tenon::str(analyzer_.simplify(fact.declared)))
              : fmt::format("has strides {}", tenon::str(buffer->strides)));
    }
    Diagnostic& diagnostic =
        error(site, fact.argument, is_extent ? kRegionMismatch : kRegionMismatch, message);
    declared(diagnostic, callee, fact.argument);
    // What each name of the declaration stands for, and which argument said so.
    std::vector<Expr> names;
    if (is_extent)
      names = buffer->shape;
    else if (!buffer->is_compact())
      names = buffer->strides;
    std::vector<const Node*> told;
    const auto tell = [&](const Var& var) {
      const auto value = bound.find(&var);
      if (value == bound.end() || std::find(told.begin(), told.end(), &var) != told.end()) return;
      told.push_back(&var);
      size_t by = 0;
      while (by < callee.params.size()) {
        const Ref<Buffer>& other = callee.buffers[by];
        bool here = callee.params[by].get() == &var;
        if (other) {
          for (const Expr& d : other->shape) here |= d.get() == &var;
          for (const Expr& d : other->strides) here |= d.get() == &var;
        }
        if (here) break;
        ++by;
      }
      if (by == callee.params.size()) return;
      diagnostic.notes.push_back(
          {place_of(site, by), fmt::format("`{}` is {}, from argument {}", var.name,
                                           tenon::str(downcast<ExprNode>(value->second)), by + 1)});
    };
    for (const Expr& name : names) walk<Var>(name, tell);
  }
}

bool CallVerifier::apart(const CheckedCall& site, const BufferRegion& a, const BufferRegion& b) {
  const auto seen_through = [&](const BufferRegion& region) -> std::vector<Range> {
    std::vector<Range> ranges = region.region;
    const Buffer* buffer = region.buffer.get();
    while (site.views) {
      const auto view = site.views->find(buffer);
      if (view == site.views->end()) break;
      const BufferRegion& source = *view->second;
      if (source.region.size() != ranges.size()) return source.region;  // of fewer dimensions
      for (size_t d = 0; d < ranges.size(); ++d)
        ranges[d].min =
            source.region[d].min + tenon::cast(source.region[d].min->dtype, ranges[d].min);
      buffer = source.buffer.get();
    }
    return ranges;
  };
  const std::vector<Range> x = seen_through(a), y = seen_through(b);
  for (size_t d = 0; d < x.size() && d < y.size(); ++d)
    if (analyzer_.proves(x[d].min + x[d].extent <= y[d].min) ||
        analyzer_.proves(y[d].min + y[d].extent <= x[d].min))
      return true;
  return false;
}

void CallVerifier::overlaps(const CheckedCall& site, const Callee& callee) {
  const auto root_of = [&](const BufferRegion& region) {
    const Buffer* buffer = region.buffer.get();
    while (site.views) {
      const auto view = site.views->find(buffer);
      if (view == site.views->end()) break;
      buffer = view->second->buffer.get();
    }
    return buffer;
  };
  const std::vector<NodePtr>& args = *site.args;
  for (size_t i = 0; i < args.size(); ++i) {
    const auto* a = args[i].as<BufferRegion>();
    const ParamEffect effect = effects_.of(callee.name, i);
    if (!a || !effect.writes) continue;
    for (size_t j = 0; j < args.size(); ++j) {
      const auto* b = args[j].as<BufferRegion>();
      const bool seen = j < i && effects_.of(callee.name, j).writes;
      if (!b || j == i || seen || root_of(*a) != root_of(*b) || apart(site, *a, *b)) continue;
      if (callee.is_extern() && callee.external()->works_in_place && str(*a) == str(*b)) continue;
      Diagnostic& diagnostic =
          error(site, i, kAliasing,
                fmt::format("argument {} of `{}`, {}, is written and not proved apart from "
                            "argument {}, {}",
                            i + 1, callee.name, str(*a), j + 1, str(*b)));
      diagnostic.notes.push_back({place_of(site, j), fmt::format("argument {} is here", j + 1)});
      declared(diagnostic, callee, i);
    }
  }
}

// ---- threads ------------------------------------------------------------------------------------

void CallVerifier::threads(const CheckedCall& site) {
  if (!site.parallel) return;
  const auto [known, is_new] = unsafe_.try_emplace(site.callee);
  if (is_new) known->second = unsafe_function(module_, site.callee);
  const ExternFunction* found = known->second;
  if (!found) return;
  const bool is_direct = module_.find(site.callee).get() == found;
  Diagnostic& diagnostic = diagnostics_.error(
      kNotThreadSafe, site.origin,
      "`{}` calls `{}`{} in a parallel loop; library function `{}` is declared with "
      "`\"thread_safe\": False`: make the loop serial",
      site.in, site.callee, is_direct ? "" : ", which reaches `" + found->symbol + "`,",
      found->symbol);
  diagnostic.notes.push_back({site.parallel->origin, "the parallel loop is here"});
  diagnostic.notes.push_back({found->origin, fmt::format("`{}` is declared here", found->symbol)});
}

// ---- alignment ----------------------------------------------------------------------------------

// The greatest power of two up to `most` that the region's place in its buffer is a multiple of.
int64_t CallVerifier::offset_alignment(const BufferRegion& region, int64_t most) {
  const Buffer& buffer = *region.buffer;
  const std::vector<Expr> strides =
      buffer.is_compact() ? compact_strides(buffer.shape) : buffer.strides;
  const int64_t width = std::max<int64_t>(1, buffer.dtype.bytes());
  const auto is_multiple = [&](const Expr& expr, int64_t of) {
    const auto number = as_int(expr);
    if (of <= 1 || number) return of <= 1 || *number % of == 0;
    return analyzer_.proves_equal(floormod(expr, imm(expr->dtype, of)),
                                  imm(expr->dtype, int64_t{0}));
  };
  const auto suits = [&](int64_t at) {
    const int64_t elements = at / std::gcd(at, width);
    if (buffer.elem_offset && !buffer.elem_offset.as<Var>() &&
        !is_multiple(buffer.elem_offset, elements))
      return false;
    for (size_t d = 0; d < region.region.size(); ++d) {
      const Expr& min = region.region[d].min;
      const Expr stride = analyzer_.simplify(strides[d]);
      const auto step = as_int(stride);
      const int64_t rest = step ? elements / std::gcd(elements, *step) : elements;
      if (!is_multiple(min, rest) && !is_multiple(stride, elements)) return false;
    }
    return true;
  };
  for (int64_t at = most; at > 1; at /= 2)
    if (suits(at)) return at;
  return 1;
}

void CallVerifier::alignments(const CheckedCall& site, const Callee& callee) {
  for (size_t i = 0; i < site.args->size(); ++i) {
    const auto* region = (*site.args)[i].as<BufferRegion>();
    const int64_t needed = region ? alignments_.of(callee.name, i) : 1;
    if (needed <= 1) continue;
    // Through views to the memory itself.
    int64_t known = offset_alignment(*region, needed);
    const auto shown_by = [&](const Buffer* buffer) -> const BufferRegion* {
      for (const auto* views : {site.views, site.declared}) {
        if (!views) continue;
        if (const auto view = views->find(buffer); view != views->end()) return view->second.get();
      }
      return nullptr;
    };
    const Buffer* buffer = region->buffer.get();
    for (const BufferRegion* shown = shown_by(buffer); shown; shown = shown_by(buffer)) {
      known = std::min(known, offset_alignment(*shown, needed));
      buffer = shown->buffer.get();
    }
    // A parameter is what its declaration says, which its callers are held to; every other memory
    // is the program's own.
    const auto function = module_.find<PrimFunc>(site.in);
    const bool is_param =
        function && std::any_of(function->buffers.begin(), function->buffers.end(),
                                [&](const Ref<Buffer>& param) { return param.get() == buffer; });
    const int64_t base =
        is_param ? buffer->alignment : std::max(kMemoryAlignment, buffer->alignment);
    known = std::min(known, base);
    if (known >= needed) continue;
    std::string what = fmt::format(
        "argument {} of `{}` is {}, which is known to be aligned to {} byte{}; parameter `{}` asks "
        "for {}",
        i + 1, callee.name, str(*region), known, known == 1 ? "" : "s", callee.buffers[i]->name,
        needed);
    if (base < needed)
      what += fmt::format("; declare `{}` with align={}", buffer->name, needed);
    else
      what += "; copy it into a buffer of its own";
    declared(error(site, i, kMisaligned, what), callee, i);
  }
}

}  // namespace tenon::tir
