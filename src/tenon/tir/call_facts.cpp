// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/call_facts.h"

#include "tenon/tir/scratch_query.h"

namespace tenon::tir {

Expr CallFact::condition() const {
  if (kind == Kind::kScratch) return declared <= actual;
  const Expr equal = eq(actual, declared);
  return kind == Kind::kExtent ? equal : logical_or(extent <= int64(1), equal);
}

std::vector<CallFact> call_facts(const Callee& callee, const std::vector<NodePtr>& args,
                                 const Substitution& bound) {
  std::vector<CallFact> facts;
  const auto wide = [](const Expr& expr) { return tenon::cast(kInt64, expr); };
  const auto declared_as = [&](const Expr& expr) {
    return expr.as<IntImm>() ? wide(expr) : wide(substitute(expr, bound));
  };
  for (size_t i = 0; i < args.size() && i < callee.buffers.size(); ++i) {
    const auto* region = args[i].as<BufferRegion>();
    const Ref<Buffer>& buffer = callee.buffers[i];
    if (!region || !buffer) continue;
    const std::vector<Expr> extents = kept_extents(*region), strides = kept_strides(*region);
    if (extents.size() != buffer->ndim()) continue;
    for (size_t d = 0; d < extents.size(); ++d)
      facts.push_back({CallFact::Kind::kExtent, i, d, wide(extents[d]),
                       declared_as(buffer->shape[d]), wide(extents[d])});
    // Row-major in the extents that the callee sees, or as it declares.
    Expr row = int64(1);
    for (size_t d = extents.size(); d-- > 0;) {
      const Expr declared = buffer->is_compact() ? row : declared_as(buffer->strides[d]);
      facts.push_back(
          {CallFact::Kind::kStride, i, d, wide(strides[d]), declared, wide(extents[d])});
      if (buffer->is_compact()) row = row * wide(extents[d]);
    }
  }
  if (const ExternFunction* function = callee.external()) {
    Substitution values = bound;
    bind_scratch(*function, args, values);
    for (const ScratchQuery& query : scratch_queries(*function)) {
      if (query.parameter >= args.size()) continue;
      const auto* region = args[query.parameter].as<BufferRegion>();
      if (!region || kept_extents(*region).size() != 1) continue;
      const Expr extent = wide(kept_extents(*region)[0]);
      facts.push_back(
          {CallFact::Kind::kScratch, query.parameter, 0, extent, query.bytes(values), extent});
    }
  }
  return facts;
}

Verdict judge(const CallFact& fact, arith::Analyzer& analyzer) {
  if (fact.kind == CallFact::Kind::kScratch)  // what a library answers is known when it is asked
    return structural_equal(fact.actual, fact.declared) ? Verdict::kHolds : Verdict::kUnknown;
  const auto actual = as_int(fact.actual), declared = as_int(fact.declared);
  const auto extent = as_int(fact.extent);
  const bool is_stride = fact.kind == CallFact::Kind::kStride;
  if (is_stride && extent && *extent <= 1) return Verdict::kHolds;
  if (actual && declared) {
    if (*actual == *declared) return Verdict::kHolds;
    if (!is_stride || extent) return Verdict::kFails;
  }
  if (fact.actual.same_as(fact.declared) || analyzer.proves_equal(fact.actual, fact.declared))
    return Verdict::kHolds;
  if (!analyzer.proves(ne(fact.actual, fact.declared))) return Verdict::kUnknown;
  if (is_stride && !analyzer.proves_less(int64(1), fact.extent)) return Verdict::kUnknown;
  return Verdict::kFails;
}

std::string str(const BufferRegion& region) {
  const Buffer& buffer = *region.buffer;
  bool whole = true;
  for (size_t d = 0; d < region.region.size(); ++d)
    whole = whole && !region.drops(d) && is_int(region.region[d].min, 0) &&
            structural_equal(region.region[d].extent, buffer.shape[d]);
  if (whole) return buffer.name;
  std::string out = buffer.name + "[";
  for (size_t d = 0; d < region.region.size(); ++d) {
    const Range& range = region.region[d];
    out += d ? ", " : "";
    out += region.drops(d) ? tenon::str(range.min)
                           : tenon::str(range.min) + ":" +
                                 tenon::str(arith::simplify(range.min + range.extent));
  }
  return out + "]";
}

}  // namespace tenon::tir
