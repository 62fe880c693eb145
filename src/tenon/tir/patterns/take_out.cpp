// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/patterns/take_out.h"

#include <algorithm>
#include <map>
#include <set>

#include "tenon/tir/compute.h"
#include "tenon/tir/patterns/block_graph.h"

namespace tenon::tir {

namespace {

// op_pattern of what FuseOps may join to its neighbours, and of what it leaves alone.
constexpr int64_t kInjectiveKind = 2, kOpaqueKind = 8;

struct Refused {
  std::string why;
};

bool holds(const std::vector<Ref<Buffer>>& buffers, const Node* buffer) {
  return std::any_of(buffers.begin(), buffers.end(),
                     [&](const Ref<Buffer>& other) { return other.get() == buffer; });
}

/// What a part of a function uses, in order of first appearance.
std::vector<Ref<Buffer>> buffers_of(const std::vector<Stmt>& stmts) {
  std::vector<Ref<Buffer>> out;
  for (const Stmt& stmt : stmts)
    walk<Buffer>(stmt, [&](const Buffer& buffer) {
      if (!holds(out, &buffer)) out.push_back(ref_to(&buffer));
    });
  return out;
}

/// A function over `inputs` and `outputs`, whose free variables become its own.
Ref<PrimFunc> close(const Piece& piece, std::vector<Ref<Buffer>> allocs, std::vector<Stmt> stmts,
                    Attrs attrs, const Origin& origin, std::vector<Expr>& scalars) {
  std::vector<Ref<Buffer>> params = piece.inputs;
  params.insert(params.end(), piece.outputs.begin(), piece.outputs.end());
  Block::Parts root;
  root.name = "root";
  root.alloc_buffers = std::move(allocs);
  root.body = seq(std::move(stmts));
  const Stmt body =
      make<BlockRealize>(std::vector<Expr>{}, boolean(true), make<Block>(std::move(root)), origin);
  const Ref<PrimFunc> open = PrimFunc::of_buffers(params, body, attrs, origin);
  std::set<const Node*> bound;
  for (const Ref<Var>& symbol : symbolic_vars(*open)) bound.insert(symbol.get());
  std::vector<Ref<Var>> free;
  walk(open, [&](const NodePtr& node) {
    if (const auto* loop = node.as<For>()) bound.insert(loop->loop_var.get());
    if (const auto* let = node.as<Let>()) bound.insert(let->var.get());
    if (const auto* bind = node.as<Bind>()) bound.insert(bind->var.get());
    if (const auto* block = node.as<Block>())
      for (const IterVar& iter : block->iter_vars) bound.insert(iter.var.get());
    if (const auto* var = node.as<Var>(); var && !var->dtype.is_handle())
      free.push_back(ref_to(var));
  });
  std::vector<Ref<Var>> handles = open->params;
  std::vector<Ref<Buffer>> buffers = open->buffers;
  for (const Ref<Var>& var : free) {
    if (!bound.insert(var.get()).second) continue;
    handles.push_back(var);
    buffers.emplace_back();
    scalars.push_back(var);
  }
  return renew_definitions(
      with(make<PrimFunc>(std::move(handles), std::move(buffers), body, std::move(attrs), origin),
           [&](PrimFunc& made) { made.is_private = true; }));
}

class Division {
 public:
  Division(const PrimFunc& function, const BlockMatch& match,
           const std::vector<Ref<Buffer>>& outputs, const TakeOutOptions& options)
      : function_(function),
        match_(match),
        outputs_(outputs),
        options_(options),
        graph_(function) {}

  std::vector<Piece> run() {
    std::set<size_t> members;
    for (size_t b = 0; b < graph_.blocks().size(); ++b) {
      const auto& realize = graph_.blocks()[b].realize;
      const auto is = [&](const Ref<Block>& block) {
        return realize && realize->block.same_as(block);
      };
      if (std::any_of(match_.blocks.begin(), match_.blocks.end(), is) ||
          std::any_of(match_.starts.begin(), match_.starts.end(), is))
        members.insert(b);
    }
    const auto parts = graph_.divide(members);
    check(members.size() == match_.blocks.size() + match_.starts.size() && parts,
          "a match of another function");
    match_piece();
    before_ = effects_in(parts->before);
    after_ = effects_in(parts->after);
    matched_.has_others = false;
    for (const size_t m : members) matched_.add(graph_.blocks()[m].effects);
    check_buffers();
    std::vector<Piece> out;
    const auto add = [&](Piece piece, const Effects& touched) {
      if (!piece.outputs.empty())
        out.push_back(std::move(piece));
      else if (touched.has_others)
        throw Refused{"a part of the function beside the match only checks or calls something"};
    };
    if (!parts->before.empty())
      add(rest(Piece::Role::kBefore, parts->before, before_,
               [&](const Node* buffer) {
                 return matched_.reads.count(buffer) || after_.reads.count(buffer);
               }),
          before_);
    out.insert(out.end(), layouts_before_.begin(), layouts_before_.end());
    out.push_back(std::move(composite_));
    out.insert(out.end(), layouts_after_.begin(), layouts_after_.end());
    if (!parts->after.empty())
      add(rest(Piece::Role::kAfter, parts->after, after_, [](const Node*) { return false; }),
          after_);
    return out;
  }

 private:
  static Effects effects_in(const std::vector<Stmt>& stmts) {
    Effects out;
    for (const Stmt& stmt : stmts) out.add(effects_of(stmt));
    return out;
  }

  bool is_output(const Node* buffer) const { return holds(outputs_, buffer); }

  // Each buffer is filled by one piece, and by nobody before.
  void check_buffers() const {
    const Effects* const order[] = {&before_, &matched_, &after_};
    std::vector<Ref<Buffer>> all = root_block(function_)->alloc_buffers;
    for (const Ref<Buffer>& param : function_.buffers)
      if (param) all.push_back(param);
    for (const Ref<Buffer>& buffer : all) {
      int writers = 0;
      bool early = false, written = false;
      for (const Effects* part : order) {
        const bool writes = part->writes_buffer(buffer);
        early |= part->reads_buffer(buffer) && !written && !writes;
        written |= writes;
        writers += writes;
      }
      if (writers > 1)
        throw Refused{fmt::format("`{}` is stored to by the match and by others", buffer->name)};
      const bool is_param = !graph_.is_intermediate(buffer);
      if (writers == 1 && is_param && !is_output(buffer.get()))
        throw Refused{fmt::format("`{}` is an input that is stored to", buffer->name)};
      if (writers == 1 && early)
        throw Refused{fmt::format("`{}` is read before it is filled", buffer->name)};
      if (writers == 0 && is_output(buffer.get()))
        throw Refused{fmt::format("output `{}` is never filled", buffer->name)};
      if (!buffer->is_compact() && (matched_.touches(buffer)))
        throw Refused{fmt::format("`{}` has strides", buffer->name)};
    }
    for (const Ref<Block>& block : match_.blocks)
      for (size_t b = 0; b < graph_.blocks().size(); ++b)
        if (graph_.blocks()[b].realize && graph_.blocks()[b].realize->block.same_as(block) &&
            graph_.blocks()[b].definition->reads_itself())
          throw Refused{fmt::format("block `{}` adds to what was there before", block->name)};
  }

  Piece rest(Piece::Role role, const std::vector<Stmt>& stmts, const Effects& touched,
             const std::function<bool(const Node*)>& is_read_later) const {
    Piece piece;
    piece.role = role;
    std::vector<Ref<Buffer>> allocs;
    for (const Ref<Buffer>& buffer : buffers_of(stmts)) {
      const bool is_local = graph_.is_intermediate(buffer);
      if (!is_local && !holds(function_.buffers, buffer.get())) continue;  // a block's own
      if (touched.writes_buffer(buffer)) {
        const bool leaves = is_output(buffer.get()) || is_read_later(buffer.get());
        (leaves ? piece.outputs : allocs).push_back(buffer);
      } else if (touched.reads_buffer(buffer)) {
        piece.inputs.push_back(buffer);
      }
    }
    // Parameters keep their order.
    std::vector<Ref<Buffer>> ordered;
    for (const Ref<Buffer>& param : function_.buffers)
      if (param && holds(piece.outputs, param.get())) ordered.push_back(param);
    for (const Ref<Buffer>& buffer : piece.outputs)
      if (!holds(ordered, buffer.get())) ordered.push_back(buffer);
    piece.outputs = std::move(ordered);
    std::vector<Stmt> own;
    for (const Stmt& stmt : stmts) own.push_back(renew_definitions(stmt));
    Attrs attrs = function_.attrs.without("global_symbol");
    attrs.set("op_pattern",
              piece.outputs.size() == 1 && is_elementwise(stmts) ? kInjectiveKind : kOpaqueKind);
    piece.function = close(piece, std::move(allocs), std::move(own), std::move(attrs),
                           function_.origin, piece.scalars);
    return piece;
  }

  // Blocks without reductions, and nothing else.
  bool is_elementwise(const std::vector<Stmt>& stmts) const {
    return std::all_of(stmts.begin(), stmts.end(), [&](const Stmt& stmt) {
      const auto found = outermost_realizes_in(stmt);
      return !found.empty() && std::all_of(found.begin(), found.end(), [&](const auto& realize) {
        return std::any_of(graph_.blocks().begin(), graph_.blocks().end(),
                           [&](const GraphBlock& block) {
                             return block.realize.same_as(realize) && block.definition &&
                                    !block.definition->init && !block.definition->reads_itself();
                           });
      });
    });
  }

  // The pattern, for what was captured.
  void match_piece() {
    const PrimFunc& pattern = *match_.pattern;
    composite_.role = Piece::Role::kMatch;
    Substitution values;
    Attrs captured;
    std::vector<Ref<Var>> scalars;
    for (const Ref<Var>& symbol : symbolic_vars(pattern)) {
      const auto value = match_.values.find(symbol.get());
      if (value == match_.values.end()) continue;
      if (const auto number = as_int(value->second))
        values[symbol.get()] = imm(symbol->dtype, *number);
    }
    for (size_t i = 0; i < pattern.params.size(); ++i) {
      if (pattern.buffers[i]) continue;
      const Ref<Var>& scalar = pattern.params[i];
      const Expr& value = match_.values.at(scalar.get());
      if (const auto number = as_int(value)) {
        values[scalar.get()] = imm(scalar->dtype, *number);
        captured.set(scalar->name, *number);
      } else if (const auto real = as_float(value)) {
        values[scalar.get()] = imm(scalar->dtype, *real);
        captured.set(scalar->name, *real);
      } else {
        scalars.push_back(scalar);
        composite_.scalars.push_back(value);
      }
    }
    const Effects inside = effects_of(root_block(pattern)->body);
    std::vector<Ref<Var>> params;
    std::vector<Ref<Buffer>> buffers;
    for (const bool outputs : {false, true})
      for (size_t i = 0; i < pattern.params.size(); ++i) {
        const Ref<Buffer>& buffer = pattern.buffers[i];
        if (!buffer || inside.writes_buffer(buffer) != outputs) continue;
        params.push_back(pattern.params[i]);
        buffers.push_back(with_values(buffer, values));
        const BufferBinding& binding = match_.buffers[i];
        (outputs ? composite_.outputs : composite_.inputs)
            .push_back(binding.is_permuted() ? in_order(binding, outputs) : binding.buffer);
      }
    for (const Ref<Var>& scalar : scalars) {
      params.push_back(scalar);
      buffers.emplace_back();
    }
    Attrs attrs = pattern.attrs;
    for (const char* name : {"Pattern", "priority", "global_symbol"}) attrs.erase(name);
    attrs.set("Composite", options_.composite);
    attrs.set("op_pattern", kOpaqueKind);
    attrs.set("tir.noalias", true);
    if (!captured.empty())
      attrs.set("constants", AttrValue(AttrValue::Map(captured.begin(), captured.end())));
    composite_.function = renew_definitions(
        with(make<PrimFunc>(std::move(params), std::move(buffers), substitute(pattern.body, values),
                            std::move(attrs), pattern.origin),
             [&](PrimFunc& made) { made.is_private = true; }));
  }

  // A parameter's buffer with `values` in its shape; its uses become those of the new one.
  static Ref<Buffer> with_values(const Ref<Buffer>& buffer, Substitution& values) {
    std::vector<Expr> shape;
    bool changes = false;
    for (const Expr& dim : buffer->shape) {
      shape.push_back(arith::simplify(substitute(dim, values)));
      changes |= !shape.back().same_as(dim);
    }
    if (!changes) return buffer;
    Buffer::Options options;
    options.scope = buffer->scope;
    options.alignment = buffer->alignment;
    options.data = buffer->data;
    for (const Expr& stride : buffer->strides)
      options.strides.push_back(arith::simplify(substitute(stride, values)));
    const auto next = make<Buffer>(buffer->name, buffer->dtype, shape, options, buffer->origin);
    values[buffer.get()] = next;
    return next;
  }

  // The buffer of the pattern's order that a copy fills, or that a copy is made from.
  Ref<Buffer> in_order(const BufferBinding& binding, bool is_output) {
    if (!options_.copy_layouts)
      throw Refused{fmt::format("the dimensions of `{}` are in another order than the pattern's",
                                binding.buffer->name)};
    const auto known = copies_.find({binding.buffer.get(), binding.dims});
    if (known != copies_.end()) return known->second;
    const Ref<Buffer>& from = binding.buffer;
    std::vector<Expr> shape;
    for (const size_t d : binding.dims) shape.push_back(from->shape[d]);
    const auto copy = make<Buffer>(from->name + "_ordered", from->dtype, shape, from->origin);
    copies_[{from.get(), binding.dims}] = copy;
    Piece piece;
    piece.role = Piece::Role::kLayout;
    const Ref<Buffer>& source = is_output ? copy : from;
    const Ref<Buffer>& target = is_output ? from : copy;
    piece.inputs = {source};
    piece.outputs = {target};
    // target[i] = source[...]: dimension d of the copy is dimension dims[d] of the other.
    std::vector<Expr> extents;
    for (const Expr& dim : target->shape) extents.push_back(tenon::cast(kInt64, dim));
    const std::vector<Axis> axes = KernelBuilder::axes(extents);
    const Indices at = KernelBuilder::indices(axes);
    Indices place(at.size());
    for (size_t d = 0; d < at.size(); ++d)
      place[is_output ? d : binding.dims[d]] = at[is_output ? binding.dims[d] : d];
    const Stmt stmt =
        define(target->name, axes, {}, make<BufferStore>(target, load(source, place), at));
    piece.function =
        close(piece, {}, {stmt}, {{"op_pattern", kInjectiveKind}, {"tir.noalias", true}},
              function_.origin, piece.scalars);
    (is_output ? layouts_after_ : layouts_before_).push_back(std::move(piece));
    return copy;
  }

  const PrimFunc& function_;
  const BlockMatch& match_;
  const std::vector<Ref<Buffer>>& outputs_;
  const TakeOutOptions& options_;
  BlockGraph graph_;
  Effects before_, matched_, after_;
  Piece composite_;
  std::vector<Piece> layouts_before_, layouts_after_;
  std::map<std::pair<const Node*, std::vector<size_t>>, Ref<Buffer>> copies_;
};

}  // namespace

std::optional<std::vector<Piece>> take_out(const PrimFunc& function, const BlockMatch& match,
                                           const std::vector<Ref<Buffer>>& outputs,
                                           const TakeOutOptions& options, std::string* why) {
  try {
    return Division(function, match, outputs, options).run();
  } catch (const Refused& refused) {
    if (why) *why = refused.why;
    return std::nullopt;
  }
}

}  // namespace tenon::tir
