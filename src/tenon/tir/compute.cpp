// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/compute.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "tenon/support/names.h"

namespace tenon::tir {

Operand::Operand(Ref<Buffer> buffer) : buffer(buffer), dtype(buffer->dtype), shape(buffer->shape) {}
Operand::Operand(Expr value, std::vector<Expr> shape)
    : value(value), dtype(value->dtype), shape(std::move(shape)) {}

Expr Operand::operator()(const Indices& indices) const {
  check(static_cast<bool>(*this), "an element of no operand");
  check(indices.size() == shape.size(), "an operand indexed by another number of indices");
  return tenon::cast(dtype, value ? value : load(buffer, indices));
}

Expr Operand::broadcast(const Indices& indices) const {
  check(indices.size() >= shape.size(), "an operand broadcast to a smaller rank");
  Indices own(indices.end() - static_cast<std::ptrdiff_t>(shape.size()), indices.end());
  for (size_t i = 0; i < own.size(); ++i)
    if (is_int(shape[i], 1)) own[i] = int64(0);
  return (*this)(own);
}

Expr least_value(DType dtype) {
  if (dtype.is_float()) return imm(dtype, -std::numeric_limits<double>::infinity());
  if (dtype.is_int()) return imm(dtype, static_cast<int64_t>(~uint64_t{0} << (dtype.bits - 1)));
  return imm(dtype, int64_t{0});
}
Expr greatest_value(DType dtype) {
  if (dtype.is_float()) return imm(dtype, std::numeric_limits<double>::infinity());
  if (dtype.is_int()) return imm(dtype, static_cast<int64_t>(~(~uint64_t{0} << (dtype.bits - 1))));
  if (dtype.is_bool()) return imm(dtype, int64_t{1});
  return imm(dtype, static_cast<int64_t>(~uint64_t{0} >> (64 - dtype.bits)));
}

Reducer sum_reducer() {
  return {[](DType dtype) { return imm(dtype, int64_t{0}); }, [](Expr a, Expr b) { return a + b; }};
}
Reducer prod_reducer() {
  return {[](DType dtype) { return imm(dtype, int64_t{1}); }, [](Expr a, Expr b) { return a * b; }};
}
Reducer max_reducer() {
  return {least_value,
          [](Expr a, Expr b) { return a->dtype.is_bool() ? logical_or(a, b) : tenon::max(a, b); }};
}
Reducer min_reducer() {
  return {greatest_value,
          [](Expr a, Expr b) { return a->dtype.is_bool() ? logical_and(a, b) : tenon::min(a, b); }};
}

// ---- access -------------------------------------------------------------------------------------

namespace {

class AccessCollector {
 public:
  explicit AccessCollector(const Stmt& body) {
    walk(body, [&](const NodePtr& node) {
      if (const auto* let = node.as<Let>()) inner_.insert(let->var.get());
      if (const auto* bind = node.as<Bind>()) inner_.insert(bind->var.get());
      if (const auto* loop = node.as<For>()) inner_.insert(loop->loop_var.get());
    });
  }

  Ref<BufferRegion> region(const Ref<Buffer>& buffer, const std::vector<Expr>& indices) {
    std::vector<Range> ranges;
    for (size_t i = 0; i < indices.size(); ++i) {
      bool is_point = true;
      walk(indices[i], [&](const NodePtr& node) {
        if (node.as<BufferLoad>() || inner_.count(node.get())) is_point = false;
      });
      if (is_point) {
        ranges.push_back({indices[i], imm(indices[i]->dtype, int64_t{1})});
      } else {
        ranges.push_back({imm(buffer->shape[i]->dtype, int64_t{0}), buffer->shape[i]});
      }
    }
    return make<BufferRegion>(buffer, std::move(ranges));
  }

  static void add(std::vector<Ref<BufferRegion>>& regions, Ref<BufferRegion> region) {
    for (const Ref<BufferRegion>& known : regions)
      if (known->buffer.same_as(region->buffer) && structural_equal(known, region)) return;
    regions.push_back(std::move(region));
  }

 private:
  std::unordered_set<const Node*> inner_;
};

}  // namespace

Access access_of(const Stmt& init, const Stmt& body) {
  Access access;
  AccessCollector collector(body);
  const auto visit = [&](const Stmt& stmt) {
    walk(stmt, [&](const NodePtr& node) {
      if (const auto* read = node.as<BufferLoad>())
        AccessCollector::add(access.reads, collector.region(read->buffer, read->indices));
      if (const auto* store = node.as<BufferStore>())
        AccessCollector::add(access.writes, collector.region(store->buffer, store->indices));
    });
  };
  if (init) visit(init);
  visit(body);
  if (init) {
    std::erase_if(access.reads, [&](const Ref<BufferRegion>& read) {
      return std::any_of(access.writes.begin(), access.writes.end(), [&](const auto& write) {
        return write->buffer.same_as(read->buffer) && structural_equal(write, read);
      });
    });
  }
  return access;
}

Stmt define(const std::string& name, const std::vector<Axis>& axes, Stmt init, Stmt body) {
  Block::Parts parts;
  parts.name = name;
  std::vector<Expr> values, extents;
  std::vector<Ref<Var>> loops;
  for (const Axis& axis : axes) {
    const Expr first = imm(axis.var->dtype, int64_t{0});
    parts.iter_vars.push_back({axis.var, {first, axis.extent}, axis.kind});
    values.push_back(axis.loop ? Expr(axis.loop) : axis.value);
    if (!axis.loop) continue;
    loops.push_back(axis.loop);
    extents.push_back(axis.extent);
  }
  Access access = access_of(init, body);
  parts.reads = std::move(access.reads);
  parts.writes = std::move(access.writes);
  parts.init = std::move(init);
  parts.body = std::move(body);
  return nest(loops, extents,
              make<BlockRealize>(std::move(values), boolean(true), make<Block>(std::move(parts))));
}

// ---- KernelBuilder ------------------------------------------------------------------------------

std::string KernelBuilder::unique(const std::string& name) {
  return fresh_name(name, [&](const std::string& n) { return !names_.insert(n).second; });
}

Operand KernelBuilder::input(const std::string& name, std::vector<Expr> shape, DType dtype) {
  inputs_.push_back(make<Buffer>(unique(name), dtype, std::move(shape)));
  return inputs_.back();
}

Operand KernelBuilder::allocate(const std::string& name, const std::vector<Expr>& shape,
                                DType dtype) {
  defined_.push_back(make<Buffer>(unique(name), dtype, shape));
  return defined_.back();
}

std::vector<Axis> KernelBuilder::axes(const std::vector<Expr>& extents, IterKind kind,
                                      const std::string& prefix) {
  std::vector<Axis> out;
  for (size_t i = 0; i < extents.size(); ++i) {
    const std::string name = fmt::format("{}{}", prefix, i);
    const DType dtype = extents[i]->dtype;
    out.push_back({make<Var>("v_" + name, dtype), extents[i], kind, make<Var>(name, dtype), {}});
  }
  return out;
}

Indices KernelBuilder::indices(const std::vector<Axis>& axes) {
  Indices out;
  for (const Axis& axis : axes) out.push_back(axis.var);
  return out;
}

Operand KernelBuilder::compute(const std::string& name, const std::vector<Expr>& shape,
                               const std::function<Expr(const Indices&)>& element) {
  const std::vector<Axis> axes = KernelBuilder::axes(shape);
  const Indices at = indices(axes);
  const Expr value = element(at);
  const Operand out = allocate(name, shape, value->dtype);
  append(define(out.buffer->name, axes, {}, make<BufferStore>(out.buffer, value, at)));
  return out;
}

Operand KernelBuilder::reduce(const std::string& name, const std::vector<Expr>& shape,
                              const std::vector<Expr>& extents, const Reducer& reducer,
                              const std::function<Expr(const Indices&, const Indices&)>& element) {
  if (extents.empty())
    return compute(name, shape, [&](const Indices& at) { return element(at, {}); });
  std::vector<Axis> axes = KernelBuilder::axes(shape);
  const std::vector<Axis> inner = KernelBuilder::axes(extents, IterKind::kReduce, "k");
  const Indices at = indices(axes), over = indices(inner);
  const Expr value = element(at, over);
  // A block's init runs with its first element: where there is none, the result is the identity.
  if (std::any_of(extents.begin(), extents.end(), [](const Expr& e) { return is_int(e, 0); }))
    return compute(name, shape, [&](const Indices&) { return reducer.identity(value->dtype); });
  const Operand out = allocate(name, shape, value->dtype);
  const Stmt init = make<BufferStore>(out.buffer, reducer.identity(value->dtype), at);
  const Stmt body = make<BufferStore>(out.buffer, reducer.combine(out(at), value), at);
  axes.insert(axes.end(), inner.begin(), inner.end());
  append(define(out.buffer->name, axes, init, body));
  return out;
}

Operand KernelBuilder::scan(const std::string& name, const std::vector<Expr>& shape, size_t axis,
                            DType dtype,
                            const std::function<Expr(const Indices&, const Operand&)>& element) {
  std::vector<Axis> axes = KernelBuilder::axes(shape);
  axes.at(axis).kind = IterKind::kScan;
  const Indices at = indices(axes);
  const Operand out = allocate(name, shape, dtype);
  const Expr value = element(at, out);
  append(define(out.buffer->name, axes, {}, make<BufferStore>(out.buffer, value, at)));
  return out;
}

Kernel KernelBuilder::finish(const std::vector<Operand>& outputs, Attrs attrs, Origin origin) {
  std::vector<Ref<Buffer>> params = inputs_;
  Block::Parts root;
  root.name = "root";
  for (const Ref<Buffer>& buffer : defined_) {
    const bool is_output = std::any_of(outputs.begin(), outputs.end(), [&](const Operand& out) {
      return out.buffer.same_as(buffer);
    });
    if (!is_output) root.alloc_buffers.push_back(buffer);
  }
  for (const Operand& out : outputs) params.push_back(out.buffer);
  root.body = seq(std::move(stmts_));
  const Stmt body = make<BlockRealize>(std::vector<Expr>{}, boolean(true), make<Block>(root));
  attrs.set("tir.noalias", true);
  Ref<PrimFunc> function = PrimFunc::of_buffers(params, body, {}, origin);

  // Free variables become the function's own: those that no parameter's shape shows bare are
  // scalar parameters.
  std::unordered_set<const Node*> bound, bare;
  std::vector<Ref<Var>> free;
  for (const Ref<Buffer>& buffer : params)
    for (const Expr& dim : buffer->shape)
      if (dim.as<Var>()) bare.insert(dim.get());
  walk(function, [&](const NodePtr& node) {
    if (const auto* loop = node.as<For>()) bound.insert(loop->loop_var.get());
    if (const auto* let = node.as<Let>()) bound.insert(let->var.get());
    if (const auto* bind = node.as<Bind>()) bound.insert(bind->var.get());
    if (const auto* block = node.as<Block>())
      for (const IterVar& iter : block->iter_vars) bound.insert(iter.var.get());
    if (const auto* var = node.as<Var>(); var && !var->dtype.is_handle() && !bound.count(var))
      free.push_back(ref_to(var));
  });
  Kernel kernel;
  Substitution renamed;
  std::vector<Ref<Var>> handles = function->params;
  std::vector<Ref<Buffer>> buffers = params;
  for (const Ref<Var>& var : free) {
    if (bound.count(var.get()) || renamed.count(var.get())) continue;
    const Ref<Var> own = var->is_size || bare.count(var.get()) ? Var::size(var->name, var->dtype)
                                                               : make<Var>(var->name, var->dtype);
    renamed.emplace(var.get(), own);
    if (bare.count(var.get())) continue;
    kernel.scalars.push_back(var);
    handles.push_back(own);
    buffers.push_back(nullptr);
  }
  function = substitute(function, renamed);
  for (size_t i = 0; i < function->params.size(); ++i) {
    handles[i] = function->params[i];
    buffers[i] = function->buffers[i];
  }
  kernel.function = with(make<PrimFunc>(std::move(handles), std::move(buffers), function->body,
                                        std::move(attrs), std::move(origin)),
                         [&](PrimFunc& made) { made.is_private = true; });
  return kernel;
}

Ref<PrimFunc> copy_kernel(const std::vector<Expr>& shape, DType dtype, Origin origin) {
  KernelBuilder builder;
  const Operand x = builder.input("x", shape, dtype);
  return builder.finish({builder.compute("y", shape, x)}, {}, std::move(origin)).function;
}

}  // namespace tenon::tir
