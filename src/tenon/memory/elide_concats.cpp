// SPDX-License-Identifier: Apache-2.0
#include "tenon/memory/elide_concats.h"

#include <algorithm>
#include <map>
#include <set>

#include "tenon/graph/transforms.h"
#include "tenon/memory/plan_module.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/concat.h"
#include "tenon/tir/host_memory.h"
#include "tenon/tir/shared_buffers.h"

namespace tenon::memory {

namespace {

using tir::AllocBuffer;
using tir::Buffer;
using tir::BufferRegion;
using tir::CallTir;
using tir::Stmt;

/// How the statements of a function use one allocation.
struct Uses {
  Ref<Buffer> buffer;
  size_t allocated = 0, first = 0, last = 0;  // indices of statements
  bool only_regions = true;                   // each use is an argument of a call at the top level
};

using UsesOf = std::map<const Node*, Uses>;  // by pointer; looked up only

UsesOf uses_of(const std::vector<Stmt>& stmts) {
  UsesOf out;
  for (size_t at = 0; at < stmts.size(); ++at) {
    const auto* alloc = stmts[at].as<AllocBuffer>();
    if (alloc && !tir::is_host_memory(*alloc)) {
      out[alloc->buffer->data.get()] = {alloc->buffer, at, at, at};
      continue;
    }
    const auto note = [&](const Node* pointer, bool is_region) {
      const auto found = out.find(pointer);
      if (found == out.end()) return;
      Uses& uses = found->second;
      if (uses.first == uses.allocated) uses.first = at;
      uses.last = at;
      uses.only_regions = uses.only_regions && is_region;
    };
    const auto other = [&](const NodePtr& root) {
      walk(root, [&](const NodePtr& node) {
        const auto* buffer = node.as<Buffer>();
        note(buffer ? buffer->data.get() : node.get(), false);
      });
    };
    const auto* call = stmts[at].as<CallTir>();
    if (!call) {
      other(stmts[at]);
      continue;
    }
    for (const NodePtr& arg : call->args) {
      const auto* region = arg.as<BufferRegion>();
      if (!region) {
        other(arg);
        continue;
      }
      const auto found = out.find(region->buffer->data.get());
      if (found != out.end()) note(found->first, found->second.buffer.same_as(region->buffer));
    }
  }
  return out;
}

/// Rewrites calls: regions of `whole` in the place of the parts.
class Placement {
 public:
  Placement(Ref<Buffer> whole, size_t axis) : whole_(std::move(whole)), axis_(axis) {}

  void add(const Ref<Buffer>& part, int64_t start) { starts_[part.get()] = start; }
  bool has(const Node* part) const { return starts_.count(part) > 0; }

  Stmt applied(const Stmt& stmt) const {
    const auto* call = stmt.as<CallTir>();
    if (!call) return stmt;
    std::vector<NodePtr> args = call->args;
    for (NodePtr& arg : args)
      if (const auto* region = arg.as<BufferRegion>()) arg = placed(ref_to(region));
    return make<CallTir>(call->callee, std::move(args), call->annotations, call->origin);
  }

 private:
  NodePtr placed(const Ref<BufferRegion>& region) const {
    const auto start = starts_.find(region->buffer.get());
    if (start == starts_.end()) return region;
    std::vector<tir::Range> ranges = region->region;
    ranges[axis_].min = ranges[axis_].min + imm(ranges[axis_].min->dtype, start->second);
    return make<BufferRegion>(whole_, std::move(ranges), region->drop, region->origin);
  }

  const Ref<Buffer> whole_;
  const size_t axis_;
  std::map<const Node*, int64_t> starts_;  // looked up only
};

/// The most bytes of constant size that are alive at once beside each set of allocations whose sizes only
/// the run knows.
using Alive = std::map<std::set<const Node*>, int64_t>;

Alive alive_in(const tir::PrimFunc& entry) {
  ModuleProblem problem = extract_problem(entry);
  std::vector<std::set<const Node*>> unknown(static_cast<size_t>(problem.steps) + 1);
  for (size_t i = 0; i < problem.allocations.size(); ++i) {
    SymbolicAllocation& buffer = problem.allocations[i];
    if (as_int(buffer.bytes)) continue;
    for (int64_t step = buffer.lower; step < buffer.upper; ++step)
      unknown[static_cast<size_t>(step)].insert(problem.buffers[i].get());
    buffer.bytes = int64(0);
  }
  const std::vector<int64_t> bytes = alive_bytes(problem);
  Alive out;
  for (size_t step = 0; step < bytes.size(); ++step) {
    int64_t& most = out[unknown[step]];
    most = std::max(most, bytes[step]);
  }
  return out;
}

/// Whether there is a moment before at which as much was alive, for each after it.
bool keeps_peak(const Alive& before, const Alive& after) {
  return std::all_of(after.begin(), after.end(), [&](const auto& now) {
    return std::any_of(before.begin(), before.end(), [&](const auto& then) {
      return now.second <= then.second && std::includes(then.first.begin(), then.first.end(),
                                                        now.first.begin(), now.first.end());
    });
  });
}

class Eliding {
 public:
  explicit Eliding(IRModule module) : module_(std::move(module)) {}

  IRModule run() {
    for (const auto& [name, function] : std::vector<IRModule::Entry>(module_.functions())) {
      const auto entry = cast<tir::PrimFunc>(function);
      if (entry && entry->attrs.flag("tenon.entry")) elide_in(name, entry);
    }
    return is_changed_ ? graph::eliminate_dead_code(std::move(module_)) : std::move(module_);
  }

 private:
  void elide_in(const std::string& name, Ref<tir::PrimFunc> entry) {
    const auto* body = entry->body.as<tir::Seq>();
    if (!body) return;
    std::vector<Stmt> stmts = body->stmts;
    shares_memory_ = entry->attrs.contains(tir::kSharedBuffers);
    const auto inputs =
        static_cast<size_t>(entry->attrs.get<int64_t>("tenon.num_inputs").value_or(0));
    for (size_t i = inputs; i < entry->buffers.size(); ++i)
      if (entry->buffers[i]) results_.insert(entry->buffers[i].get());
    for (size_t at = 0; at < stmts.size();) {
      const auto* call = stmts[at].as<CallTir>();
      const auto kernel = call ? module_.find<tir::PrimFunc>(call->callee->name) : nullptr;
      const auto parts = kernel ? tir::concat_parts(*kernel) : std::nullopt;
      if (!parts) {
        ++at;
        continue;
      }
      const auto placed = without(stmts, at, *parts);
      const auto changed = placed ? entry->with_body(make<tir::Seq>(*placed)) : nullptr;
      if (!changed || !keeps_peak(alive_in(*entry), alive_in(*changed))) {
        tell(*call, "kept", placed ? "peak" : "parts-used-elsewhere");
        ++at;
        continue;
      }
      tell(*call, "elided", "");
      is_changed_ = true;
      stmts = *placed;
      entry = changed;
      at = 0;  // statements have other places now
    }
    module_.set(name, entry);
  }

  static void tell(const CallTir& call, const char* verdict, const char* reason) {
    record({"ElideConcats", call.callee->name, verdict, reason, {}, "", call.origin});
  }

  /// The statements without the call at `at`; nothing where its operands do not allow that.
  std::optional<std::vector<Stmt>> without(const std::vector<Stmt>& stmts, size_t at,
                                           const tir::ConcatParts& parts) const {
    const auto* call = stmts[at].as<CallTir>();
    if (call->args.size() != parts.starts.size() + 1) return std::nullopt;
    const UsesOf all = uses_of(stmts);
    const auto* result = call->args.back().as<BufferRegion>();
    if (!result || !is_whole(*result)) return std::nullopt;
    const auto whole = all.find(result->buffer->data.get());
    const bool is_allocated = whole != all.end();
    if (is_allocated && (!whole->second.buffer.same_as(result->buffer) || whole->second.first < at))
      return std::nullopt;
    if (!is_allocated && !is_result(*result->buffer, stmts, at)) return std::nullopt;
    Placement placement(result->buffer, parts.axis);
    size_t first = at;
    for (size_t i = 0; i < parts.starts.size(); ++i) {
      const auto* region = call->args[i].as<BufferRegion>();
      const auto part = region ? all.find(region->buffer->data.get()) : all.end();
      if (part == all.end() || !is_whole(*region) || !part->second.only_regions ||
          part->second.last != at || placement.has(region->buffer.get()) ||
          region->buffer->alignment > std::min(result->buffer->alignment, tir::kConcatAlignment))
        return std::nullopt;
      placement.add(region->buffer, parts.starts[i]);
      first = std::min(first, part->second.allocated);
    }
    std::vector<Stmt> out;
    for (size_t s = 0; s < stmts.size(); ++s) {
      if (s == first && is_allocated) out.push_back(stmts[whole->second.allocated]);
      const auto* alloc = stmts[s].as<AllocBuffer>();
      if (s == at || (is_allocated && s == whole->second.allocated) ||
          (alloc && placement.has(alloc->buffer.get())))
        continue;
      out.push_back(placement.applied(stmts[s]));
    }
    return out;
  }

  /// Whether it is a result of the program, in memory of its own, that no statement before `at` uses.
  bool is_result(const Buffer& buffer, const std::vector<Stmt>& stmts, size_t at) const {
    if (shares_memory_ || !results_.count(&buffer)) return false;
    bool used = false;
    for (size_t s = 0; s < at; ++s)
      walk(stmts[s], [&](const NodePtr& node) {
        const auto* other = node.as<Buffer>();
        used =
            used || node.get() == buffer.data.get() || (other && other->data.same_as(buffer.data));
      });
    return !used;
  }

  static bool is_whole(const BufferRegion& region) {
    if (!region.drop.empty()) return false;
    for (size_t d = 0; d < region.region.size(); ++d)
      if (!is_int(region.region[d].min, 0) ||
          as_int(region.region[d].extent) != as_int(region.buffer->shape[d]))
        return false;
    return true;
  }

  IRModule module_;
  bool is_changed_ = false;
  bool shares_memory_ = false;     // an output with an input
  std::set<const Node*> results_;  // of the entry; looked up only
};

}  // namespace

IRModule elide_concats(IRModule module) {
  if (module.attrs.contains("pools")) return module;
  return Eliding(std::move(module)).run();
}

}  // namespace tenon::memory
