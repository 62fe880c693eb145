// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tenon/support/remarks.h"
#include "tenon/tir/analysis/access_bounds.h"
#include "tenon/tir/transforms.h"

namespace tenon::tir {

namespace {

using Kind = AccessCheck::Kind;

constexpr const char* kPass = "InstrumentBoundCheckers";

std::string_view reason_of(Kind kind) {
  switch (kind) {
    case Kind::kIndex: return "index";
    case Kind::kRegion: return "region";
    case Kind::kDivisor: return "divisor";
    case Kind::kShift: return "shift";
    case Kind::kView: return "view";
    case Kind::kPointer:
    case Kind::kWhole: return "pointer";
  }
  unreachable("a kind of check");
}

// Puts a check into each access of `found`, where it stands: an index by T.check_index, so that
// blocks and loops keep their form; regions of a statement by an assertion in front of it, so that
// calls keep their arguments.
class Instrumenter final : public Rewriter {
 public:
  explicit Instrumenter(const std::string& function) : function_(function) {}

  void add(const AccessCheck& check) {
    auto& of_node = (check.masked ? masked_ : found_)[check.node.get()];
    for (const AccessCheck& known : of_node)
      if (known.dim == check.dim && same_as_before(known, check)) return;
    of_node.push_back(check);
  }

 protected:
  NodePtr rewrite(const NodePtr& node) override {
    if (const auto* call = node.as<CallTir>()) return with_regions_of(call->args, node);
    if (const auto* block = node.as<Block>(); block && !block->match_buffers.empty()) {
      std::vector<NodePtr> sources;
      for (const MatchBuffer& match : block->match_buffers) {
        sources.push_back(match.source);
        sources.push_back(match.buffer);
      }
      std::vector<Stmt> checks = assertions(sources);
      const Ref<Block> kept = downcast<Block>(rewrite_members(node));
      if (checks.empty()) return kept;
      Block::Parts parts = kept->parts();
      // The body reads now what only the views' places did.
      for (const Stmt& check : checks)
        walk<BufferLoad>(check, [&](const BufferLoad& load) {
          if (std::none_of(parts.reads.begin(), parts.reads.end(),
                           [&](const auto& read) { return read->buffer.same_as(load.buffer); }))
            parts.reads.push_back(BufferRegion::whole(load.buffer));
        });
      checks.push_back(parts.body);
      parts.body = seq(std::move(checks));
      return make<Block>(std::move(parts), kept->origin);
    }
    if (node.as<DeclBuffer>()) return with_regions_of({node}, node);
    const NodePtr next = rewrite_members(node);
    if (const auto* call = node.as<Call>(); call && !call->args.empty())
      if (const auto known = masked_.find(call->args[0].get()); known != masked_.end())
        return with_checked_lanes(*next.as<Call>(), known->second);
    if (const auto* call = node.as<Call>(); call && call->callee)
      return with_checked_regions(*call, *next.as<Call>());
    const auto known = found_.find(node.get());
    if (known == found_.end()) return next;
    if (const auto* load = next.as<BufferLoad>())
      return make<BufferLoad>(load->buffer, checked(load->indices, known->second), load->origin);
    if (const auto* store = next.as<BufferStore>())
      return make<BufferStore>(store->buffer, store->value, checked(store->indices, known->second),
                               store->origin);
    if (const auto* call = next.as<Call>()) {
      const AccessCheck& check = known->second.front();
      std::vector<NodePtr> args = call->args;
      const size_t checked = check.kind == Kind::kPointer ? 2 : 1;  // the offset, or the amount
      args[checked] = cast(call->arg(checked)->dtype, check_of(check, call->arg(checked)));
      return make<Call>(call->op, std::move(args), call->result, call->origin);
    }
    return next;  // a divisor: code generators check what is not a constant
  }

 private:
  static bool same_as_before(const AccessCheck& a, const AccessCheck& b) {
    return a.index.same_as(b.index) || str(a.index) == str(b.index);
  }

  NodePtr with_regions_of(const std::vector<NodePtr>& args, const NodePtr& node) {
    std::vector<Stmt> checks = assertions(args);
    const Stmt kept = downcast<StmtNode>(rewrite_members(node));
    if (checks.empty()) return kept;
    checks.push_back(kept);
    return seq(std::move(checks));
  }

  // The arguments of a call in an expression, which has no place for statements in front of it.
  NodePtr with_checked_regions(const Call& call, const Call& next) {
    std::vector<NodePtr> args = next.args;
    bool any = false;
    for (size_t i = 0; i < args.size(); ++i) {
      const auto known = found_.find(call.args[i].get());
      if (known == found_.end()) continue;
      const auto& region = *args[i].as<BufferRegion>();
      std::vector<Range> ranges = region.region;
      for (const AccessCheck& check : known->second)
        ranges[check.dim].min = check_of(check, ranges[check.dim].min);
      args[i] = make<BufferRegion>(region.buffer, std::move(ranges), region.drop, region.origin);
      any = true;
    }
    if (!any) return ref_to(&next);
    return make<Call>(next.callee, std::move(args), next.result, next.origin);
  }

  std::vector<Stmt> assertions(const std::vector<NodePtr>& regions) {
    std::vector<Stmt> out;
    for (const NodePtr& region : regions) {
      const auto known = found_.find(region.get());
      if (known == found_.end()) continue;
      for (const AccessCheck& check : known->second) {
        const Expr index = (*this)(check.index);
        const Expr ends = limit(check, index);
        out.push_back(
            make<Assert>(logical_and(index >= imm(index->dtype, int64_t{0}), index < ends),
                         message_of(check), check.origin));
      }
    }
    return out;
  }

  // What the index must stay below, in its dtype.
  Expr limit(const AccessCheck& check, const Expr& index) {
    Expr extent = (*this)(check.extent);
    if (check.kind == Kind::kView) extent = extent + 1;
    if (check.length) {
      const Expr length = (*this)(check.length);
      // No elements have no more room than some.
      extent = extent - (check.kind == Kind::kPointer ? max(length, int64(0)) : length) + 1;
    }
    return cast(index->dtype, extent);
  }

  std::string message_of(const AccessCheck& check) const {
    const std::string in = fmt::format(" in `{}`", function_);
    switch (check.kind) {
      case Kind::kIndex:
        return fmt::format(
            "index {{value}} of dimension {} of buffer `{}`{} lies outside of its extent {{bound}}",
            check.dim, check.buffer->name, in);
      case Kind::kRegion:
        return fmt::format(
            "a region of {} elements of dimension {} of buffer `{}`{} begins at {{value}}; inside "
            "of its extent {} it begins below {{bound}}",
            str(check.length), check.dim, check.buffer->name, in, str(check.extent));
      case Kind::kShift:
        return fmt::format("a shift by {{value}}{}; the dtype has {{bound}} bits", in);
      case Kind::kView:
        return fmt::format("{}{} is {{value}}; it must be below {{bound}}", subject_of(check), in);
      case Kind::kPointer:
        return fmt::format(
            "a pointer into the memory of buffer `{}`{} begins at element {{value}}; with what "
            "lies behind it inside of {} elements it begins below {{bound}}",
            check.buffer->name, in, str(check.extent));
      case Kind::kDivisor:
      case Kind::kWhole: break;
    }
    unreachable("a check of a code generator, or none, has no message of its own");
  }

  Expr check_of(const AccessCheck& check, Expr index) {
    // Of 64 bits where the extent may have as many.
    if (index->dtype.is_uint() || !as_int(check.extent)) index = cast(kInt64, index);
    return call(IntrinsicId::kCheckIndex,
                {index, limit(check, index), make<StringImm>(message_of(check))}, kVoid,
                check.origin);
  }

  // T.masked_load or T.masked_store: a lane where the mask does not hold is at index 0 for the
  // check.
  NodePtr with_checked_lanes(const Call& call, const std::vector<AccessCheck>& checks) {
    const auto& element = *call.args[0].as<BufferLoad>();
    const Expr mask = call.arg(1);
    const auto lane = [](const Expr& vector, int64_t i) {
      if (vector->dtype.is_scalar()) return vector;
      return Expr(make<Shuffle>(std::vector<Expr>{vector}, std::vector<int64_t>{i}));
    };
    std::vector<Expr> indices = element.indices;
    std::vector<bool> done(indices.size());
    for (const AccessCheck& check : checks) {
      if (done[check.dim]) continue;
      done[check.dim] = true;
      Expr& index = indices[check.dim];
      const auto* ramp = index.as<Ramp>();
      Expr first = ramp ? ramp->base : index;
      std::vector<Expr> lanes;
      std::vector<int64_t> order;
      for (int64_t i = 0; i < mask->dtype.lanes; ++i) {
        const Expr at = ramp ? ramp->base + ramp->stride * i : lane(index, i);
        const Expr used = make<Select>(lane(mask, i), at, imm(at->dtype, int64_t{0}));
        const Expr inside = cast(at->dtype, check_of(check, used));
        if (ramp || index->dtype.is_scalar()) {
          first = first + (inside - used);  // of one step for all lanes: nothing is added
        } else {
          lanes.push_back(inside);
          order.push_back(i);
        }
      }
      if (ramp)
        index = make<Ramp>(first, ramp->stride, ramp->lanes);
      else
        index = lanes.empty() ? first : make<Shuffle>(std::move(lanes), std::move(order));
    }
    std::vector<NodePtr> args = call.args;
    args[0] = make<BufferLoad>(element.buffer, std::move(indices), element.origin);
    return make<Call>(call.op, std::move(args), call.result, call.origin);
  }

  std::vector<Expr> checked(std::vector<Expr> indices, const std::vector<AccessCheck>& checks) {
    std::vector<bool> done(indices.size());
    for (const AccessCheck& check : checks) {
      if (done[check.dim]) continue;
      done[check.dim] = true;
      Expr& index = indices[check.dim];
      if (const auto* splat = index.as<Broadcast>()) {
        index = make<Broadcast>(check_of(check, splat->value), splat->lanes);
      } else if (const auto* ramp = index.as<Ramp>()) {
        const Expr span = ramp->stride * (ramp->lanes - 1);  // as VectorizeLoop does
        const Expr last = check_of(check, ramp->base + span) - cast(kInt64, span);
        const Expr first = check_of(check, last);
        index = make<Ramp>(first, cast(first->dtype, ramp->stride), ramp->lanes);
      } else if (index->dtype.is_scalar()) {
        index = check_of(check, index);
      } else {
        // Lane by lane.
        std::vector<Expr> lanes;
        std::vector<int64_t> order;
        for (int64_t lane = 0; lane < index->dtype.lanes; ++lane) {
          lanes.push_back(
              check_of(check, make<Shuffle>(std::vector<Expr>{index}, std::vector<int64_t>{lane})));
          order.push_back(lane);
        }
        index = make<Shuffle>(std::move(lanes), std::move(order));
      }
    }
    return indices;
  }

  const std::string& function_;
  std::unordered_map<const Node*, std::vector<AccessCheck>> found_;
  std::unordered_map<const Node*, std::vector<AccessCheck>> masked_;  // by the element
};

}  // namespace

IRModule instrument_bound_checkers(IRModule module, const BoundCheckOptions& options) {
  Diagnostics diagnostics;
  IRModule out = module;
  for (const auto& [name, function] : module.functions()) {
    const auto prim = cast<PrimFunc>(function);
    if (!prim) continue;
    Instrumenter instrumenter(name);
    bool any = false;
    find_unproved(*prim, [&](const AccessCheck& check) {
      if (check.fails) {
        report(check, name, diagnostics);
        return;
      }
      const bool judged = check.kind != Kind::kWhole;
      const bool stays = options.unchecked && check.kind != Kind::kDivisor;
      record({.pass = kPass,
              .subject = name,
              .verdict = !judged ? "not judged"
                         : stays ? "unchecked"
                                 : "checked",
              .reason = std::string(reason_of(check.kind)),
              .numbers = {},
              .detail = check.buffer && judged
                            ? fmt::format("{}, extent {}", subject_of(check), str(check.extent))
                            : subject_of(check),
              .origin = check.origin});
      if (stays || !judged || check.kind == Kind::kDivisor) return;
      instrumenter.add(check);
      any = true;
    });
    walk<Assert>(prim->body, [&](const Assert& claim) {
      record({.pass = kPass,
              .subject = name,
              .verdict = "checked",
              .reason = "assertion",
              .numbers = {},
              .detail = claim.message,
              .origin = claim.origin ? claim.origin : prim->origin});
    });
    if (any) out.set(name, instrumenter(prim));
  }
  diagnostics.throw_if_any();
  return out;
}

}  // namespace tenon::tir
