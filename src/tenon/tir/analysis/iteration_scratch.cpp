// SPDX-License-Identifier: Apache-2.0
// Finds memory of which each iteration of a parallel loop has a copy of its own.
#include <algorithm>

#include "tenon/arith/int_set.h"
#include "tenon/tir/analysis/race_witness.h"
#include "tenon/tir/analysis/region.h"

namespace tenon::tir {

using Access = ParallelAccess;

namespace {

class Scratch {
 public:
  Scratch(const ParallelLoop& loop, const std::vector<Ref<Var>>& symbols)
      : loop_(loop), symbols_(symbols) {}

  /// kNone: an iteration reads only what it has written. kRace: the read at `at` is before any
  /// write.
  RaceAnswer look(const std::vector<const Access*>& accesses, size_t& at) const {
    RaceAnswer answer = RaceAnswer::kNone;
    for (size_t r = 0; r < accesses.size(); ++r) {
      const Access& read = *accesses[r];
      if (read.writes) continue;
      bool covered = false, preceded = false;
      for (size_t w = r; w-- > 0 && !covered;) {
        if (!accesses[w]->writes) continue;
        preceded = preceded || happens_later(*accesses[w]);
        covered = covers(*accesses[w], read);
      }
      if (covered) continue;
      at = r;
      if (!preceded && read.is_certain && happens_always(read)) return RaceAnswer::kRace;
      answer = RaceAnswer::kOpen;
    }
    return answer;
  }

 private:
  void bind(const Access& access, arith::Analyzer& analyzer, size_t from, size_t to) const {
    for (size_t l = from; l < to; ++l)
      analyzer.bind(access.loops[l].var, access.loops[l].min, access.loops[l].extent);
  }
  // In an iteration that is not the first.
  bool happens_later(const Access& access) const {
    arith::Analyzer analyzer;
    for (const Ref<Var>& symbol : symbols_) analyzer.bind_lower(symbol, 1);
    bind(access, analyzer, 0, access.loops.size());
    const Running& running = access.loops[loop_.depth];
    analyzer.assume(Expr(running.var) > cast(running.var->dtype, running.min));
    for (const Access::Guard& guard : access.guards)
      if (analyzer.proves(logical_not(guard.condition))) return false;
    return true;
  }
  bool happens_always(const Access& access) const {
    arith::Analyzer analyzer;
    for (const Ref<Var>& symbol : symbols_) analyzer.bind_lower(symbol, 1);
    bind(access, analyzer, 0, access.loops.size());
    const Running& running = access.loops[loop_.depth];
    if (analyzer.proves(running.extent < imm(running.extent->dtype, int64_t{2}))) return false;
    return std::all_of(access.guards.begin(), access.guards.end(), [&](const Access::Guard& guard) {
      return guard.depth <= loop_.depth || analyzer.proves(guard.condition);
    });
  }

  // `write` has filled all that `read` sees, in the same iteration.
  bool covers(const Access& write, const Access& read) const {
    if (!write.is_certain || !write.is_known || !read.is_known || write.is_flat != read.is_flat)
      return false;
    size_t shared = loop_.depth;
    while (shared < write.loops.size() && shared < read.loops.size() &&
           write.loops[shared].var.same_as(read.loops[shared].var))
      ++shared;
    // The loops around both stand still where the write is in the same iteration of them; or the
    // write's have all run.
    for (size_t still = shared; still > loop_.depth; --still)
      if (covers(write, read, still)) return true;
    return false;
  }
  bool covers(const Access& write, const Access& read, size_t still) const {
    arith::Analyzer analyzer;
    for (const Ref<Var>& symbol : symbols_) analyzer.bind_lower(symbol, 0);
    bind(read, analyzer, 0, still);
    arith::Domain domain;
    Substitution renamed;
    for (size_t l = still; l < read.loops.size(); ++l) {
      const Running& loop = read.loops[l];
      const Ref<Var> fresh = make<Var>(loop.var->name, loop.var->dtype);
      const Expr min = substitute(loop.min, renamed), extent = substitute(loop.extent, renamed);
      analyzer.bind(fresh, min, extent);
      domain[fresh.get()] = arith::Interval::of(min, extent);
      renamed[loop.var.get()] = Expr(fresh);
    }
    for (const Access::Guard& guard : read.guards)
      analyzer.assume(substitute(guard.condition, renamed));
    std::vector<const Var*> loops;
    for (size_t l = still; l < write.loops.size(); ++l) loops.push_back(write.loops[l].var.get());
    std::vector<Range> box = write.box;
    for (const Access::Guard& guard : write.guards) {
      const bool inside = std::any_of(loops.begin(), loops.end(), [&](const Var* var) {
        return uses_var(guard.condition, var);
      });
      if (inside || !analyzer.proves(guard.condition)) return false;
    }
    // Each loop of the write makes one dimension longer.
    for (size_t l = write.loops.size(); l-- > still;) {
      const Running& loop = write.loops[l];
      if (!analyzer.proves(loop.extent >= imm(loop.extent->dtype, int64_t{1}))) return false;
      const Var* var = loop.var.get();
      size_t dim = box.size();
      for (size_t d = 0; d < box.size(); ++d) {
        if (uses_var(box[d].extent, var)) return false;
        if (!uses_var(box[d].min, var)) continue;
        if (dim < box.size()) return false;
        dim = d;
      }
      if (dim == box.size()) continue;
      const Ref<Var> vars[] = {loop.var};
      const auto form = analyzer.linear(box[dim].min, vars);
      const auto factor = form ? as_int(form->coefficients[0]) : std::nullopt;
      const auto length = as_int(analyzer.simplify(box[dim].extent));
      if (!factor || *factor < 1 || !length || *length < *factor) return false;
      box[dim] = {substitute(box[dim].min, {{var, cast(loop.var->dtype, loop.min)}}),
                  box[dim].extent + (loop.extent - imm(loop.extent->dtype, int64_t{1})) * *factor};
    }
    for (size_t d = 0; d < box.size(); ++d) {
      const Expr begin = cast(kInt64, box[d].min), end = begin + cast(kInt64, box[d].extent);
      const Expr low = cast(kInt64, substitute(read.box[d].min, renamed));
      const Expr high = low + cast(kInt64, substitute(read.box[d].extent, renamed));
      for (const Expr& room : {low - begin, end - high}) {
        const arith::Interval range = arith::evaluate(analyzer, analyzer.simplify(room), domain);
        if (!range.min || !analyzer.proves_nonnegative(range.min)) return false;
      }
    }
    return true;
  }

  const ParallelLoop& loop_;
  const std::vector<Ref<Var>>& symbols_;
};

}  // namespace

RaceAnswer look_at_scratch(const ParallelLoop& loop,
                           const std::vector<const ParallelAccess*>& accesses,
                           const std::vector<Ref<Var>>& symbols, size_t& at) {
  return Scratch(loop, symbols).look(accesses, at);
}

}  // namespace tenon::tir
