// SPDX-License-Identifier: Apache-2.0
// FuseRows: a kernel and the one that reads its result by a window become one kernel, which keeps a few
// rows of what is between them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "tenon/arith/analyzer.h"
#include "tenon/graph/transforms.h"
#include "tenon/graph/transforms/kernels_of_graphs.h"
#include "tenon/graph/transforms/rebuild.h"
#include "tenon/support/remarks.h"
#include "tenon/tir/analysis/region.h"
#include "tenon/tir/compute.h"
#include "tenon/tir/schedule/default_schedule.h"
#include "tenon/tir/schedule/default_winograd.h"
#include "tenon/tir/schedule/in_place.h"
#include "tenon/tir/schedule/machine_model.h"
#include "tenon/tir/schedule/row_stage.h"

namespace tenon::graph {

namespace {

using tir::Block;
using tir::BlockRealize;
using tir::Buffer;
using tir::BufferRegion;
using tir::CallTir;
using tir::For;
using tir::ForKind;
using tir::PrimFunc;
using tir::RowWindow;
using tir::Slice;
using tir::SlicedKernel;
using tir::Stmt;

using ScalarVar = Ref<tenon::Var>;

int64_t extent(const Ref<Buffer>& buffer, size_t dim) {
  return as_int(buffer->shape[dim]).value_or(0);
}

int64_t bytes_of(const Ref<Buffer>& buffer) {
  int64_t bytes = buffer->dtype.bytes();
  for (size_t d = 0; d < buffer->ndim(); ++d) bytes *= extent(buffer, d);
  return bytes;
}

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Memory is planned in multiples of this.
constexpr int64_t kPlannedBytes = 64;
int64_t planned(int64_t bytes) { return divided_up(bytes, kPlannedBytes) * kPlannedBytes; }

/// How the rows of two kernels are computed together.
struct RowPlan {
  RowWindow window = {};
  std::vector<int64_t> parts = {};  // of each shared dimension: elements that a task takes
  int64_t row_tasks = 1;            // tasks that the rows of the result are cut into
  int64_t chunk = 1;                // rows of the result between two moves of the ring's rows
  int64_t chunks = 1;               // of a task
  int64_t ring_rows = 1, ring_bytes = 0, tasks = 1;
};

/// Makes one kernel of two.
class RowKernel {
 public:
  RowKernel(const PrimFunc& producer, const PrimFunc& consumer, size_t input, const RowPlan& plan)
      : producer_(producer), consumer_(consumer), input_(input), plan_(plan) {
    for (size_t i = 0; i < plan.window.shared.size(); ++i) {
      const int64_t count = extent(result(), plan.window.shared[i]) / plan.parts[i];
      part_vars_.push_back(var(fmt::format("part{}", i)));
      part_counts_.push_back(count);
      ranges_.emplace_back(part_vars_.back(), count);
    }
  }

  /// The stages, where both kernels can be computed by rows.
  bool make_stages() {
    const RowWindow& window = plan_.window;
    const Ref<Buffer>& between = producer_.buffers.back();
    std::vector<Expr> shape = window.padded->shape;
    for (size_t i = 0; i < window.shared.size(); ++i)
      shape[window.shared[i]] = int64(plan_.parts[i]);
    shape[window.row] = int64(plan_.ring_rows);
    ring_ = make<Buffer>("ring", between->dtype, shape);
    const auto row = var("row"), at = var("at");
    std::vector<ScalarVar> scalars = part_vars_;
    scalars.push_back(row);
    scalars.push_back(at);
    auto ranges = ranges_;
    ranges.emplace_back(at, plan_.ring_rows);

    ranges.emplace_back(row, extent(between, window.row));
    SlicedKernel first(producer_, ranges);
    if (!first.compute(slices(row))) return false;
    tir::Place out{ring_, std::vector<Expr>(shape.size())};
    for (size_t d = 0; d < shape.size(); ++d)
      if (window.before[d] != 0) out.shift[d] = int64(window.before[d]);
    for (size_t i = 0; i < window.shared.size(); ++i)
      out.shift[window.shared[i]] = int64(0) - part_vars_[i] * int64(plan_.parts[i]);
    out.shift[window.row] = Expr(at) - Expr(row);
    first_ = first.kernel(std::nullopt, out, scalars);

    ranges.back() = {row, extent(result(), window.row)};
    SlicedKernel second(consumer_, ranges);
    second.take_out(window.padded, input_);
    if (!second.compute(slices(row))) return false;
    tir::Place in{ring_, std::vector<Expr>(shape.size())};
    for (size_t d = 0; d < shape.size(); ++d)
      if (second.needed()[d]) in.shift[d] = int64(0) - second.needed()[d]->first;
    in.shift[window.row] = in.shift[window.row] + Expr(at);
    second_ = second.kernel(in, std::nullopt, scalars);
    return !divides_parts(*first_) && !divides_parts(*second_);
  }

  /// Adds the kernels to the module. \returns the name of the one that computes all
  std::string add_to(IRModule& module, const std::string& first, const std::string& second) {
    names_ = {module.add_unique(first + "_row", first_),
              module.add_unique(second + "_row", second_)};
    if (has_row_padding()) fill_row_ = module.add_unique(second + "_fill_row", fill_kernel(true));
    if (has_other_padding())
      fill_edges_ = module.add_unique(second + "_fill_edges", fill_kernel(false));
    if (plan_.chunks > 1 && carried() > 0)
      move_row_ = module.add_unique(second + "_move_row", move_kernel());
    return module.add_unique(second + "_by_rows", whole());
  }

 private:
  const Ref<Buffer>& result() const { return consumer_.buffers.back(); }

  std::vector<Slice> slices(const ScalarVar& row) const {
    std::vector<Slice> out;
    out.reserve(part_vars_.size() + 1);
    for (size_t i = 0; i < part_vars_.size(); ++i)
      out.push_back(
          {plan_.window.shared[i], part_vars_[i] * int64(plan_.parts[i]), plan_.parts[i]});
    out.push_back({plan_.window.row, row, 1});
    return out;
  }

  /// Rows of the ring that two rows of the result have in common.
  int64_t carried() const { return plan_.window.rows - plan_.window.stride; }
  int64_t rows_before() const { return plan_.window.before[plan_.window.row]; }
  int64_t rows_between() const { return extent(producer_.buffers.back(), plan_.window.row); }

  bool has_row_padding() const {
    const RowWindow& window = plan_.window;
    const int64_t last = (extent(result(), window.row) - 1) * window.stride + window.rows;
    return rows_before() > 0 || last > rows_before() + rows_between();
  }
  bool has_other_padding() const {
    for (size_t d = plan_.window.row + 1; d < ring_->ndim(); ++d)
      if (extent(ring_, d) != extent(producer_.buffers.back(), d)) return true;
    return false;
  }

  // Whether a quotient or remainder depends on which part a task takes: parts are cut elsewhere.
  bool divides_parts(const PrimFunc& stage) const {
    bool found = false;
    walk<Binary>(stage.body, [&](const Binary& op) {
      if (op.op != BinaryOp::kFloorDiv && op.op != BinaryOp::kFloorMod) return;
      for (const Ref<tenon::Var>& param : stage.params)
        found = found || tir::uses_var(op.lhs, param.get());
    });
    return found;
  }

  // Fills a row of the ring, or all that is beside what the producer writes of its rows.
  Ref<PrimFunc> fill_kernel(bool is_row) const {
    const auto ring = make<Buffer>("ring", ring_->dtype, ring_->shape);
    const auto at = var("at");
    const Expr outside = plan_.window.outside ? plan_.window.outside : imm(ring->dtype, int64_t{0});
    std::vector<Stmt> stmts;
    const auto add = [&](const std::vector<tir::Range>& box) {
      std::vector<Expr> extents, indices;
      for (const tir::Range& range : box) extents.push_back(range.extent);
      const std::vector<tir::Axis> axes = tir::KernelBuilder::axes(extents);
      for (size_t d = 0; d < box.size(); ++d) indices.push_back(box[d].min + Expr(axes[d].var));
      stmts.push_back(tir::define(fmt::format("fill_{}", stmts.size()), axes, {},
                                  make<tir::BufferStore>(ring, outside, indices)));
    };
    std::vector<tir::Range> whole;
    for (const Expr& dim : ring->shape) whole.push_back({int64(0), dim});
    if (is_row) {
      whole[plan_.window.row] = {at, int64(1)};
      add(whole);
    } else {
      for (size_t d = plan_.window.row + 1; d < whole.size(); ++d) {
        const int64_t before = plan_.window.before[d];
        const int64_t inside = extent(producer_.buffers.back(), d);
        const int64_t after = extent(ring, d) - before - inside;
        std::vector<tir::Range> box = whole;
        box[d] = {int64(0), int64(before)};
        if (before > 0) add(box);
        box[d] = {int64(before + inside), int64(after)};
        if (after > 0) add(box);
      }
    }
    std::vector<Ref<tenon::Var>> params = {make<tenon::Var>("ring_handle", kHandle)};
    std::vector<Ref<Buffer>> buffers = {ring};
    if (is_row) {
      params.push_back(at);
      buffers.push_back(nullptr);
    }
    return in_task(params, buffers, std::move(stmts));
  }

  // Copies what lies in one row of one place of the dimensions before it.
  Ref<PrimFunc> move_kernel() const {
    std::vector<Expr> shape(
        ring_->shape.begin() + static_cast<std::ptrdiff_t>(plan_.window.row) + 1,
        ring_->shape.end());
    const tir::Buffer::Options options{.alignment = ring_->dtype.bytes()};
    const auto from = make<Buffer>("from_row", ring_->dtype, shape, options),
               to = make<Buffer>("to_row", ring_->dtype, shape, options);
    const std::vector<tir::Axis> axes = tir::KernelBuilder::axes(shape);
    const std::vector<Expr> indices = tir::KernelBuilder::indices(axes);
    const Stmt move =
        tir::define("move", axes, {},
                    make<tir::BufferStore>(to, make<tir::BufferLoad>(from, indices), indices));
    return in_task(
        {make<tenon::Var>("from_handle", kHandle), make<tenon::Var>("to_handle", kHandle)},
        {from, to}, {move});
  }

  static Ref<PrimFunc> in_task(std::vector<Ref<tenon::Var>> params,
                               std::vector<Ref<Buffer>> buffers, std::vector<Stmt> stmts) {
    Block::Parts root;
    root.name = "root";
    root.body = tir::seq(std::move(stmts));
    Attrs attrs;
    attrs.set("tir.noalias", true);
    attrs.set(tir::kRunsInTask, true);
    return with(
        make<PrimFunc>(std::move(params), std::move(buffers),
                       make<BlockRealize>(std::vector<Expr>{}, boolean(true), make<Block>(root)),
                       attrs),
        [](PrimFunc& made) { made.is_private = true; });
  }

  // ---- the kernel that calls them ---------------------------------------------------------------

  Stmt call(const std::string& name, const std::vector<Ref<Buffer>>& buffers,
            const std::vector<Expr>& scalars) const {
    std::vector<NodePtr> args;
    args.reserve(buffers.size() + scalars.size());
    for (const Ref<Buffer>& buffer : buffers) args.push_back(BufferRegion::whole(buffer));
    for (const Expr& scalar : scalars) args.push_back(scalar);
    return make<CallTir>(make<GlobalVar>(name), std::move(args));
  }

  Stmt stage(bool is_first, const Expr& row, const Expr& at) const {
    std::vector<Expr> scalars = parts_;
    scalars.push_back(row);
    scalars.push_back(at);
    return call(is_first ? names_.first : names_.second, is_first ? first_args_ : second_args_,
                scalars);
  }

  // Row `row` of what is between, from the first, into row `at` of the ring.
  Stmt produce(const Expr& row, const Expr& at) const {
    Stmt made = stage(true, row, at);
    if (!has_row_padding()) return made;
    return make<tir::IfThenElse>(logical_and(int64(0) <= row, row < int64(rows_between())), made,
                                 call(fill_row_, {ring_}, {at}));
  }

  static Stmt loop(const ScalarVar& var, int64_t extent, Stmt body) {
    if (extent == 1) return substitute(body, {{var.get(), int64(0)}});
    return make<For>(var, int64(0), int64(extent), ForKind::kSerial, std::move(body));
  }

  // The rows of the ring that the next ones of the result need too move to its front.
  Stmt move_rows() const {
    const int64_t from = plan_.chunk * plan_.window.stride;
    const auto row = var("row");
    std::vector<tir::Range> first, second;
    std::vector<ScalarVar> vars;
    std::vector<int64_t> extents;
    for (size_t d = 0; d < ring_->ndim(); ++d) {
      tir::Range range{int64(0), ring_->shape[d]};
      if (d < plan_.window.row) {
        vars.push_back(var(fmt::format("i{}", d)));
        extents.push_back(extent(ring_, d));
        range = {vars.back(), int64(1)};
      }
      first.push_back(range);
      second.push_back(range);
    }
    first[plan_.window.row] = {Expr(row) + int64(from), int64(1)};
    second[plan_.window.row] = {row, int64(1)};
    std::vector<bool> drop(ring_->ndim());
    for (size_t d = 0; d <= plan_.window.row; ++d) drop[d] = true;
    Stmt stmt = make<CallTir>(make<GlobalVar>(move_row_),
                              std::vector<NodePtr>{make<BufferRegion>(ring_, first, drop),
                                                   make<BufferRegion>(ring_, second, drop)});
    stmt = loop(row, carried(), stmt);
    for (size_t i = vars.size(); i-- > 0;) stmt = loop(vars[i], extents[i], stmt);
    return stmt;
  }

  Ref<PrimFunc> whole() {
    std::vector<Ref<Buffer>> params;
    const auto param = [&](const Ref<Buffer>& buffer) {
      params.push_back(make<Buffer>(buffer->name, buffer->dtype, buffer->shape, buffer->origin));
      return params.back();
    };
    for (size_t i = 0; i + 1 < producer_.buffers.size(); ++i)
      first_args_.push_back(param(producer_.buffers[i]));
    first_args_.push_back(ring_);
    for (size_t i = 0; i < consumer_.buffers.size(); ++i)
      second_args_.push_back(i == input_ ? ring_ : param(consumer_.buffers[i]));

    const RowWindow& window = plan_.window;
    const auto task = var("task"), v_task = var("v_task");
    arith::Analyzer analyzer;
    analyzer.bind(v_task, int64(0), int64(plan_.tasks));
    Expr rest = v_task;
    const Expr row_task = analyzer.simplify(floormod(rest, int64(plan_.row_tasks)));
    rest = floordiv(rest, int64(plan_.row_tasks));
    parts_.resize(part_vars_.size());
    for (size_t i = part_vars_.size(); i-- > 0;) {
      parts_[i] = analyzer.simplify(floormod(rest, int64(part_counts_[i])));
      rest = floordiv(rest, int64(part_counts_[i]));
    }
    const auto chunk = var("chunk"), step = var("step"), head = var("head"), next = var("next");
    const int64_t task_rows = plan_.chunks * plan_.chunk;
    const Expr first_row = row_task * int64(task_rows) + chunk * int64(plan_.chunk);
    std::vector<Stmt> body;
    if (has_other_padding()) body.push_back(call(fill_edges_, {ring_}, {}));
    std::vector<Stmt> inner;
    if (carried() > 0) {
      const Stmt fresh = loop(
          head, carried(),
          produce(analyzer.simplify(first_row * int64(window.stride) - int64(rows_before()) + head),
                  head));
      inner.push_back(plan_.chunks == 1
                          ? fresh
                          : make<tir::IfThenElse>(eq(chunk, int64(0)), fresh, move_rows()));
    }
    const Expr row = first_row + step;
    const Expr start = step * int64(window.stride);
    const Expr new_at = start + int64(carried()) + next;
    std::vector<Stmt> one = {
        loop(next, window.stride,
             produce(analyzer.simplify(row * int64(window.stride) - int64(rows_before()) +
                                       int64(carried()) + next),
                     analyzer.simplify(new_at))),
        stage(false, analyzer.simplify(row), analyzer.simplify(start))};
    Stmt step_body = tir::seq(one);
    if (task_rows * plan_.row_tasks != extent(result(), window.row))
      step_body = make<tir::IfThenElse>(
          analyzer.simplify(row) < int64(extent(result(), window.row)), step_body);
    inner.push_back(loop(step, plan_.chunk, step_body));
    body.push_back(loop(chunk, plan_.chunks, tir::seq(inner)));

    Block::Parts parts;
    parts.name = "rows";
    parts.iter_vars.push_back({v_task, {int64(0), int64(plan_.tasks)}, tir::IterKind::kSpatial});
    parts.alloc_buffers = {ring_};
    for (const Ref<Buffer>& buffer : params)
      (buffer.same_as(params.back()) ? parts.writes : parts.reads)
          .push_back(BufferRegion::whole(buffer));
    parts.body = tir::seq(body);
    Block::Parts root;
    root.name = "root";
    root.body =
        make<For>(task, int64(0), int64(plan_.tasks), ForKind::kParallel,
                  make<BlockRealize>(std::vector<Expr>{task}, boolean(true), make<Block>(parts)));
    Attrs attrs;
    attrs.set("tir.noalias", true);
    auto made = PrimFunc::of_buffers(
        params, make<BlockRealize>(std::vector<Expr>{}, boolean(true), make<Block>(root)), attrs,
        Origin::merge({producer_.origin, consumer_.origin}));
    return renew_definitions(with(made, [](PrimFunc& f) { f.is_private = true; }));
  }

  const PrimFunc &producer_, &consumer_;
  size_t input_;
  const RowPlan& plan_;
  std::vector<ScalarVar> part_vars_;
  std::vector<int64_t> part_counts_;
  std::vector<std::pair<ScalarVar, int64_t>> ranges_;
  Ref<Buffer> ring_;
  Ref<PrimFunc> first_, second_;
  std::pair<std::string, std::string> names_;
  std::string fill_row_, fill_edges_, move_row_;
  std::vector<Ref<Buffer>> first_args_, second_args_;
  std::vector<Expr> parts_;
};

// ---- the choice ---------------------------------------------------------------------------------

/// Kernels that are to be one, and why not.
struct Pair {
  const Call* producer;
  const Call* consumer;
  size_t input;  // of the consumer
};

class RowFusion {
 public:
  RowFusion(IRModule& module, const RowOptions& options)
      : module_(module), options_(options), kernels_(kernels_of_graphs(module)) {
    const auto text = module.attrs.get<std::string>("target");
    target_ = text ? parse_target(*text) : parse_target("llvm");
    is_fast_ = tir::takes_fast_forms(module, target_);
  }

  void decide(const Function& function) {
    bool is_pure = true;
    walk<Call>(function.body,
               [&](const Call& call) { is_pure = is_pure && !call.is("call_tir_inplace"); });
    if (!is_pure) return;
    const std::unordered_map<const Node*, int> uses = count_uses(function);
    walk<BindingBlock>(function.body, [&](const BindingBlock& block) {
      std::unordered_map<const Node*, const Binding*> made;
      for (const Ref<Binding>& binding : block.bindings) {
        const Call* call = kernel_call(*binding);
        if (!call) continue;
        const auto& args = call->args[1].as<Tuple>()->values;
        for (size_t i = 0; i < args.size(); ++i) {
          const auto found = made.find(args[i].get());
          if (found == made.end() || uses.at(args[i].get()) != 1) continue;
          if (decide({kernel_call(*found->second), call, i})) {
            decided_.emplace(binding.get(), std::pair(found->second, i));
            made.erase(found);
            break;
          }
        }
        if (!decided_.count(binding.get())) made.emplace(binding->var.get(), binding.get());
      }
    });
    for (const auto& [consumer, pair] : decided_) producers_.emplace(pair.first, nullptr);
  }

  Ref<Function> apply(const Ref<Function>& function) {
    return rebuild(
        module_, function,
        [&](BlockBuilder& builder, const Binding& binding,
            const Value& value) -> std::optional<Value> {
          if (const auto it = producers_.find(&binding); it != producers_.end()) it->second = value;
          const auto found = decided_.find(&binding);
          if (found == decided_.end()) return std::nullopt;
          const auto* first = producers_.at(found->second.first).as<Call>();
          const auto* second = value.as<Call>();
          std::vector<Value> args = first->args[1].as<Tuple>()->values;
          const auto& others = second->args[1].as<Tuple>()->values;
          for (size_t i = 0; i < others.size(); ++i)
            if (i != found->second.second) args.push_back(others[i]);
          const std::string& name = *made_.at(key(*first, *second, found->second.second));
          return builder.emit(
              make<Call>(
                  second->op, std::vector<Value>{make<FuncRef>(name), make<Tuple>(std::move(args))},
                  second->attrs, second->type_args, Origin::merge({first->origin, second->origin})),
              binding.var->name);
        });
  }

 private:
  using Key = std::tuple<std::string, std::string, size_t>;
  static Key key(const Call& producer, const Call& consumer, size_t input) {
    return {producer.args[0].as<FuncRef>()->name, consumer.args[0].as<FuncRef>()->name, input};
  }

  // The call of a kernel that may be taken apart, with one result.
  const Call* kernel_call(const Binding& binding) const {
    const auto* call = binding.value.as<Call>();
    if (!call || !call->is("call_tir") || binding.match || call->args.size() != 2) return nullptr;
    const auto* ref = call->args[0].as<FuncRef>();
    const auto* args = call->args[1].as<Tuple>();
    if (!ref || !args || !kernels_.count(ref->name)) return nullptr;
    const auto kernel = module_.find<PrimFunc>(ref->name);
    return kernel && kernel->buffers.size() == args->values.size() + 1 ? call : nullptr;
  }

  bool decide(const Pair& pair) {
    const auto [it, is_new] = made_.try_emplace(key(*pair.producer, *pair.consumer, pair.input));
    if (!is_new) return it->second.has_value();
    const std::string& first = std::get<0>(it->first);
    const std::string& second = std::get<1>(it->first);
    const auto producer = module_.find<PrimFunc>(first), consumer = module_.find<PrimFunc>(second);
    const auto window = tir::row_window(*consumer, pair.input);
    if (!window) return false;  // no window, or one that is no other kernel's result
    Remark remark{"FuseRows", second, "kept", "", {}, {}, pair.consumer->origin};
    const auto chosen = choose(*producer, *consumer, pair, *window, remark);
    if (chosen) {
      RowKernel kernel(*producer, *consumer, pair.input, *chosen);
      check(kernel.make_stages(), "rows that were chosen are made");
      it->second = kernel.add_to(module_, first, second);
      const int64_t between = bytes_of(producer->buffers.back());
      remark.verdict = "fused";
      remark.reason = "rows";
      remark.numbers = {{"bytes", static_cast<double>(between)},
                        {"ring", static_cast<double>(chosen->ring_bytes)},
                        {"tasks", static_cast<double>(chosen->tasks)}};
      remark.detail =
          fmt::format("with {}: {} rows of {} in the place of {} bytes", first, chosen->ring_rows,
                      extent(producer->buffers.back(), window->row), between);
    }
    record(std::move(remark));
    return it->second.has_value();
  }

  std::optional<RowPlan> choose(const PrimFunc& producer, const PrimFunc& consumer,
                                const Pair& pair, const RowWindow& window, Remark& remark) const {
    const tir::MachineModel& model = tir::machine_model(target_);
    const auto kept = [&](const char* reason) {
      remark.reason = reason;
      return std::nullopt;
    };
    const Ref<Buffer>& between = producer.buffers.back();
    if (window.taps > model.row_taps) return kept("long-reduction");
    if (window.rows < window.stride) return kept("rows-unread");
    if (!options_.all && is_winograd(producer)) return kept("winograd");
    if (!options_.all && target_.kind != "c" && transposes(producer)) return kept("transposes");
    if (!options_.all && target_.kind != "c" &&
        bytes_of(between) < target_.l2_bytes / model.row_l2_parts)
      return kept("fits-cache");
    int64_t inner = 1;
    for (const size_t d : window.inner) inner *= extent(between, d);
    RowPlan plan;
    plan.window = window;
    plan.parts.assign(window.shared.size(), 1);
    const size_t last = window.shared.size() - 1;
    const int64_t parts = window.shared.empty() ? 1 : extent(between, window.shared[last]);
    for (int64_t part = 1; part <= parts; ++part) {
      if (parts % part != 0 || (part < parts && part * inner < model.row_channels)) continue;
      if (!window.shared.empty()) plan.parts[last] = part;
      size_up(plan, between, consumer.buffers.back(), model);
      if (!RowKernel(producer, consumer, pair.input, plan).make_stages()) continue;
      if (!options_.all && !has_room(plan, producer, consumer, pair)) return kept("needs-memory");
      return plan;
    }
    return kept("not-by-rows");
  }

  // Whether the kernel sums nothing up and reads along another axis than it writes, as a conversion of
  // a layout does. Whole, it is transposed in registers, square by square; a row is no square.
  static bool transposes(const PrimFunc& producer) {
    bool sums = false, across = false;
    walk<Block>(producer.body, [&](const Block& block) {
      for (const tir::IterVar& axis : block.iter_vars)
        sums = sums || axis.kind != tir::IterKind::kSpatial;
    });
    walk<tir::BufferStore>(producer.body, [&](const tir::BufferStore& store) {
      const auto* along = store.indices.empty() ? nullptr : store.indices.back().as<tenon::Var>();
      if (!along) return;
      walk<tir::BufferLoad>(store.value, [&](const tir::BufferLoad& load) {
        for (size_t d = 0; d + 1 < load.indices.size(); ++d)
          across = across || (tir::uses_var(load.indices[d], along) &&
                              !tir::uses_var(load.indices.back(), along));
      });
    });
    return across && !sums;
  }

  // Whether the kernel may be a convolution by a form that is faster than sums of its rows.
  bool is_winograd(const PrimFunc& producer) const {
    bool found = false;
    if (is_fast_ && producer.attrs.contains(tir::kLayoutFreeBuffers))
      walk<Block>(producer.body, [&](const Block& block) {
        found = found || tir::choose_winograd(block, target_, std::numeric_limits<int64_t>::max());
      });
    return found;
  }

  // Into how many tasks the rows are cut, for each of `groups` of channels: more of them divide better
  // over threads, and compute more rows twice. The number follows from sizes only.
  // \param repeated  rows between the kernels that two tasks share, as a part of all
  static int64_t choose_row_tasks(int64_t groups, int64_t rows, double repeated,
                                  const tir::MachineModel& model) {
    int64_t best = 1;
    double least = std::numeric_limits<double>::infinity();
    for (int64_t tasks = 1; tasks <= rows; ++tasks) {
      const int64_t part = divided_up(rows, tasks);
      if (divided_up(rows, part) != tasks || (tasks > 1 && part < model.least_task_rows)) continue;
      const double twice = repeated * static_cast<double>(tasks - 1);
      const double cost =
          tir::spread_cost(groups * tasks, static_cast<double>(part) * (1 + twice), model);
      if (cost >= least) continue;
      least = cost;
      best = tasks;
    }
    return best;
  }

  void size_up(RowPlan& plan, const Ref<Buffer>& between, const Ref<Buffer>& result,
               const tir::MachineModel& model) const {
    const RowWindow& window = plan.window;
    const int64_t rows = extent(result, window.row);
    int64_t groups = 1, row_bytes = between->dtype.bytes();
    for (size_t d = 0; d < between->ndim(); ++d) {
      const auto shared = std::find(window.shared.begin(), window.shared.end(), d);
      if (shared != window.shared.end()) {
        const int64_t part = plan.parts[static_cast<size_t>(shared - window.shared.begin())];
        groups *= extent(between, d) / part;
        row_bytes *= part;
      } else if (d != window.row) {
        row_bytes *= extent(window.padded, d);
      }
    }
    const int64_t carried = window.rows - window.stride;
    plan.row_tasks = 1;
    if (target_.kind != "c" && groups < model.enough_tasks)
      plan.row_tasks = choose_row_tasks(
          groups, rows, static_cast<double>(carried) / static_cast<double>(rows * window.stride),
          model);
    int64_t task_rows = divided_up(rows, plan.row_tasks);
    const int64_t slots = target_.kind == "c" ? 1 : groups * plan.row_tasks;
    const int64_t ring_bytes = std::min(target_.l2_bytes / model.ring_l2_parts,
                                        bytes_of(between) / model.ring_parts / slots);
    const int64_t fitting = (ring_bytes / row_bytes - carried) / window.stride;
    plan.chunk =
        std::clamp<int64_t>(fitting, std::min(task_rows, model.least_ring_steps), task_rows);
    plan.chunk = std::min(plan.chunk, model.most_ring_steps);
    // Rows that move lie apart from where they move to.
    plan.chunk = std::min(task_rows, std::max(plan.chunk, divided_up(carried, window.stride)));
    plan.chunks = divided_up(task_rows, plan.chunk);
    plan.chunk = divided_up(task_rows, plan.chunks);
    task_rows = plan.chunks * plan.chunk;
    plan.row_tasks = divided_up(rows, task_rows);
    plan.tasks = groups * plan.row_tasks;
    plan.ring_rows = carried + plan.chunk * window.stride;
    plan.ring_bytes = plan.ring_rows * row_bytes;
  }

  // Whether no more is alive while both are computed together than there was at most while one of them
  // was, nor between the two.
  bool has_room(const RowPlan& plan, const PrimFunc& producer, const PrimFunc& consumer,
                const Pair& pair) const {
    const Ref<Buffer>&between = producer.buffers.back(), &result = consumer.buffers.back();
    int64_t inputs = 0;
    const auto& args = pair.producer->args[1].as<Tuple>()->values;
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].as<Constant>()) continue;
      inputs += planned(bytes_of(producer.buffers[i]));
      if (tir::may_share_memory(producer, i, args.size())) return false;
    }
    // The result may stand where another argument of its size does, as long as kernels are two.
    bool is_in_place = false;
    const auto& others = pair.consumer->args[1].as<Tuple>()->values;
    for (size_t i = 0; i < others.size(); ++i)
      is_in_place = is_in_place || (i != pair.input && !others[i].as<Constant>() &&
                                    bytes_of(consumer.buffers[i]) == bytes_of(result));
    const int64_t rings = planned(plan.ring_bytes) * (target_.kind == "c" ? 1 : plan.tasks);
    const int64_t results = planned(bytes_of(result));
    return inputs <= bytes_of(between) &&
           rings + std::min(results, is_in_place ? inputs + results : inputs) <= bytes_of(between);
  }

  IRModule& module_;
  const RowOptions& options_;
  Target target_;
  bool is_fast_ = false;
  std::unordered_set<std::string> kernels_;
  std::map<Key, std::optional<std::string>> made_;
  std::unordered_map<const Binding*, std::pair<const Binding*, size_t>> decided_;
  std::unordered_map<const Binding*, Value> producers_;
};

}  // namespace

IRModule fuse_rows(IRModule module, const RowOptions& options) {
  const std::vector<IRModule::Entry> entries = module.functions();
  RowFusion fusion(module, options);
  for (const auto& [name, function] : entries)
    if (const auto graph = cast<Function>(function)) fusion.decide(*graph);
  for (const auto& [name, function] : entries)
    if (const auto graph = cast<Function>(function)) module.set(name, fusion.apply(graph));
  return eliminate_dead_code(std::move(module));
}

}  // namespace tenon::graph
