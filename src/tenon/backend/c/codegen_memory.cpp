// SPDX-License-Identifier: Apache-2.0
// Generates C for addresses, loads, stores and local memory. It relies on the alignment of an
// element only.
#include <algorithm>

#include "tenon/backend/c/codegen.h"
#include "tenon/backend/c/vectors.h"
#include "tenon/tir/analysis/element_places.h"
#include "tenon/tir/host_memory.h"

namespace tenon::c_backend {

using tir::Buffer;

static constexpr int64_t kMaxStackBytes = 256 << 10;  // of one buffer

FunctionCodegen::Place& FunctionCodegen::place(const Buffer& buffer, const Origin& origin) {
  auto it = places_.find(&buffer);
  if (it == places_.end()) {
    // A view declared by its data pointer alone.
    const auto data = data_.find(buffer.data.get());
    if (data == data_.end())
      throw CompileError(kUndefined, origin, "buffer `{}` is used where it is not defined",
                         buffer.name);
    Place found = data->second;
    if (buffer.elem_offset && !is_int(buffer.elem_offset, 0))
      found.pointer = fmt::format("({} + {})", found.pointer, index(buffer.elem_offset).s);
    it = places_.emplace(&buffer, found).first;
  }
  use(it->second.own_name.empty() ? it->second.pointer : it->second.own_name);
  return it->second;
}

/// Elements from the first element to the one at scalar indices.
Text FunctionCodegen::offset(const Buffer& buffer, const std::vector<Expr>& indices) {
  Expr sum = int64(0);
  const std::vector<Expr> strides =
      buffer.is_compact() ? tir::compact_strides(buffer.shape) : buffer.strides;
  const auto wide = [](const Expr& e) { return cast(kInt64, e); };
  for (size_t i = 0; i < indices.size(); ++i) sum = sum + wide(indices[i]) * wide(strides[i]);
  return index(sum);
}

// Which of the caller's pools a place in the workspace lies in.
std::string FunctionCodegen::workspace_pointer(const Expr& offset) {
  const std::vector<PoolParameter>& pools = m_.pools();
  const auto constant = as_int(offset);
  size_t pool = pools.size() - 1;  // what has no constant place is in the last
  if (constant)
    while (pool > 0 && *constant < pools[pool].offset) --pool;
  use(pools[pool].name);
  if (!constant && pools[pool].offset > 0)
    return fmt::format("{} + ({} - {})", pools[pool].name, index(offset).s, pools[pool].offset);
  if (!constant) return fmt::format("{} + {}", pools[pool].name, index(offset).at(Text::kSum));
  const int64_t rest = *constant - pools[pool].offset;
  return rest == 0 ? pools[pool].name : fmt::format("{} + {}", pools[pool].name, rest);
}

std::string FunctionCodegen::pointer_to(const Buffer& buffer, const std::vector<Expr>& indices,
                                        const Origin& origin) {
  std::vector<Expr> first = indices;
  if (!first.empty() && first.back()->dtype.is_vector()) {
    const auto* ramp = first.back().as<Ramp>();
    first.back() = ramp ? ramp->base : imm(first.back()->dtype.element(), int64_t{0});
  }
  const Place& at = place(buffer, origin);
  if (at.is_workspace) return workspace_pointer(first.empty() ? int64(0) : first[0]);
  const std::string base = at.pointer;
  const Text from = offset(buffer, first);
  return from.s == "0" ? base : fmt::format("{} + {}", base, from.at(Text::kSum));
}

std::string FunctionCodegen::element(const Buffer& buffer, const std::vector<Expr>& indices,
                                     const Origin& origin) {
  const Place& at = place(buffer, origin);
  if (at.is_workspace)
    return fmt::format("*({})", workspace_pointer(indices.empty() ? int64(0) : indices[0]));
  const std::string base = at.pointer;
  return fmt::format("{}[{}]", base, offset(buffer, indices).s);
}

FunctionCodegen::Address FunctionCodegen::address(const Buffer& buffer,
                                                  const std::vector<Expr>& indices,
                                                  const Origin& origin) {
  if (buffer.dtype.is_vector())
    throw CompileError(kUnsupported, origin, "buffer `{}` of vectors ({}) has no C code",
                       buffer.name, buffer.dtype.str());
  Address out;
  out.pointer = pointer_to(buffer, indices, origin);
  if (indices.empty() || indices.back()->dtype.is_scalar()) return out;
  out.lanes = indices.back()->dtype.lanes;
  const Expr last = buffer.is_compact() ? int64(1) : buffer.strides.back();
  if (const auto* ramp = indices.back().as<Ramp>()) {
    const Expr stride = cast(kInt64, ramp->stride) * cast(kInt64, last);
    if (!is_int(stride, 1)) out.stride = stride;
    return out;
  }
  out.lane_indices = indices.back();
  if (!is_int(last, 1))
    out.lane_indices = out.lane_indices *
                       broadcast_to_lanes(cast(out.lane_indices->dtype.element(), last), out.lanes);
  return out;
}

Text FunctionCodegen::load(const tir::BufferLoad& node) {
  const Buffer& buffer = *node.buffer;
  if (const std::string* slice = slice_of(buffer, node.indices)) return {use(*slice), Text::kAtom};
  if (node.indices.empty() || node.indices.back()->dtype.is_scalar()) {
    const std::string at = element(buffer, node.indices, node.origin);
    if (buffer.dtype.is_bool()) return {at + " != 0", Text::kAny};
    return {at, at[0] == '*' ? Text::kUnary : Text::kAtom};
  }
  const Address at = address(buffer, node.indices, node.origin);
  const DType dtype = buffer.dtype.with_lanes(at.lanes);
  const Text pointer{at.pointer, Text::kAny};
  if (at.lane_indices)
    return apply(vector_gather(m_.prelude(), dtype, at.lane_indices->dtype),
                 {pointer, value(at.lane_indices)});
  if (at.stride) return apply(vector_load_every(m_.prelude(), dtype), {pointer, index(at.stride)});
  return apply(vector_load(m_.prelude(), dtype), {pointer});
}

void FunctionCodegen::store(const tir::BufferStore& node) {
  const Buffer& buffer = *node.buffer;
  const Text stored = value(node.value);
  if (const std::string* slice = slice_of(buffer, node.indices)) {
    line("{} = {};", *slice, stored.s);
    return;
  }
  if (node.indices.empty() || node.indices.back()->dtype.is_scalar()) {
    const std::string at = element(buffer, node.indices, node.origin);
    line("{} = {};", at, buffer.dtype.is_bool() ? "(uint8_t)" + stored.at(Text::kUnary) : stored.s);
    return;
  }
  const Address at = address(buffer, node.indices, node.origin);
  const DType dtype = buffer.dtype.with_lanes(at.lanes);
  const Text pointer{at.pointer, Text::kAny};
  Text call;
  if (at.lane_indices) {
    call = apply(vector_scatter(m_.prelude(), dtype, at.lane_indices->dtype),
                 {pointer, value(at.lane_indices), stored});
  } else if (at.stride) {
    call = apply(vector_store_every(m_.prelude(), dtype), {pointer, index(at.stride), stored});
  } else {
    call = apply(vector_store(m_.prelude(), dtype), {pointer, stored});
  }
  line("{};", call.s);
}

Text FunctionCodegen::masked(const Call& call) {
  const auto* node = call.args.at(0).as<tir::BufferLoad>();
  const Address at = node ? address(*node->buffer, node->indices, call.origin) : Address();
  if (!node || at.stride || at.lane_indices)
    throw CompileError(kUnsupported, call.origin, "a masked load of lanes that are not adjacent");
  const DType dtype = node->buffer->dtype.with_lanes(at.lanes);
  return apply(masked_load(m_.prelude(), dtype),
               {{at.pointer, Text::kAny}, value(call.arg(1)), value(call.arg(2))});
}

void FunctionCodegen::masked_store_to(const Call& call) {
  const auto* node = call.args.at(0).as<tir::BufferLoad>();
  const Address at = node ? address(*node->buffer, node->indices, call.origin) : Address();
  if (!node || at.stride || at.lane_indices)
    throw CompileError(kUnsupported, call.origin, "a masked store to lanes that are not adjacent");
  const DType dtype = node->buffer->dtype.with_lanes(at.lanes);
  const Text done = apply(masked_store(m_.prelude(), dtype),
                          {{at.pointer, Text::kAny}, value(call.arg(1)), value(call.arg(2))});
  line("{};", done.s);
}

// ---- views and allocations ----------------------------------------------------------------------

Text FunctionCodegen::pointer_value(const Expr& expr) {
  if (const auto* call = expr.as<Call>(); call && call->is(IntrinsicId::kAddressOf))
    if (const auto* node = call->args.at(0).as<tir::BufferLoad>())
      return {pointer_to(*node->buffer, node->indices, call->origin), Text::kSum};
  if (const auto* call = expr.as<Call>(); call && call->is(IntrinsicId::kTvmAccessPtr))
    return {fmt::format("({}*)({}) + {}", c_type(tir::element_of_access_ptr(*call)),
                        pointer_value(call->arg(1)).s, index(call->arg(2)).at(Text::kSum)),
            Text::kAny};
  if (expr.as<Var>()) {
    const auto it = data_.find(expr.get());
    if (it != data_.end()) {
      use(it->second.own_name.empty() ? it->second.pointer : it->second.own_name);
      return {it->second.pointer, Text::kAtom};
    }
  }
  throw CompileError(kUnsupported, expr->origin, "pointer `{}` has no C code", str(expr));
}

// A view of the same elements is the same pointer; of others it is declared.
void FunctionCodegen::view(const tir::DeclBuffer& decl) {
  const Buffer& buffer = *decl.buffer;
  Place at;
  at.element = buffer.dtype;
  const auto* source = decl.data.as<Var>();
  const auto known = source ? data_.find(source) : data_.end();
  const bool at_start = !buffer.elem_offset || is_int(buffer.elem_offset, 0);
  if (known != data_.end() && at_start && known->second.element == buffer.dtype) {
    at = known->second;
    data_.emplace(buffer.data.get(), at);
    places_[&buffer] = at;
    if (const auto slices = slices_.find(source); slices != slices_.end()) {
      auto copy = slices->second;
      slices_.emplace(buffer.data.get(), std::move(copy));
    }
    return;
  }
  bool in_workspace = false;
  if (const auto* call = decl.data.as<Call>(); call && call->is(IntrinsicId::kAddressOf)) {
    const auto* node = call->args.at(0).as<tir::BufferLoad>();
    if (node && !node->indices.empty()) {
      const Place& from = place(*node->buffer, decl.origin);
      at.is_const = from.is_const;
      in_workspace = from.is_workspace;
    }
  } else if (known != data_.end()) {
    at.is_const = known->second.is_const;
  }
  const std::string name = names_.take(buffer.name);
  at.pointer = at.own_name = name;
  const std::string c = c_type(buffer.dtype);
  const auto elements = as_int(tir::element_count(buffer.shape));
  if (!is_used(name)) {
  } else if (in_workspace && m_.options().separate_arrays && elements) {
    line("static {} {}[{}] {};", c, name, std::max<int64_t>(1, *elements),
         m_.aligned(buffer.alignment));
  } else {
    Text from = pointer_value(decl.data);
    if (!at_start)
      from = {fmt::format("({}*)({}) + {}", c, from.s, index(buffer.elem_offset).at(Text::kSum)),
              Text::kAny};
    const char* qualifier = at.is_const ? "const " : "";
    line("{0}{1}* const {2} = ({0}{1}*)({3}); /* {4} */", qualifier, c, name, from.s,
         comment_text(str(buffer.shape)));
  }
  places_[&buffer] = at;
  data_.emplace(buffer.data.get(), at);
}

void FunctionCodegen::allocate(const tir::AllocBuffer& alloc) {
  if (tir::is_host_memory(alloc)) return take_late_memory(alloc);
  const Buffer& buffer = *alloc.buffer;
  if (const auto it = slices_.find(buffer.data.get()); it != slices_.end()) {
    for (auto& [slice, name] : it->second) {
      name = names_.take(fmt::format("{}_{}", buffer.name, slice.offset));
      // Always written before it is read, which not every compiler sees.
      line("{} = {};", declare(buffer.dtype.with_lanes(slice.lanes), name),
           slice.lanes > 1 ? "{0}" : "0");
      if (!is_used(name)) line("(void){};", name);  // written, and never read
    }
    Place none;
    none.pointer = "";
    none.element = buffer.dtype;
    places_[&buffer] = none;
    data_[buffer.data.get()] = none;
    return;
  }
  int64_t count = backend::allocated_elements(alloc, info_.name);
  int64_t skipped = 0;
  if (buffer.elem_offset) {
    const auto stated = as_int(buffer.elem_offset);
    check(stated.has_value(), "an allocated buffer with a symbolic offset");
    skipped = *stated;
  }
  count = std::max<int64_t>(count + skipped, 1);
  if (count > kMaxStackBytes / buffer.dtype.bytes())
    throw CompileError(kUnsupported, alloc.origin,
                       "buffer `{}` of shape {} is allocated inside PrimFunc `{}` and was not "
                       "planned; at most {} bytes go on the stack",
                       buffer.name, str(buffer.shape), info_.name, kMaxStackBytes);
  Place at;
  at.element = buffer.dtype;
  const std::string name = names_.take(buffer.name);
  if (is_used(name))
    line("{} {}[{}] {};", c_type(buffer.dtype), name, count, m_.aligned(buffer.alignment));
  at.own_name = at.pointer = name;
  data_[buffer.data.get()] = at;
  if (skipped > 0) at.pointer = fmt::format("({} + {})", name, skipped);
  places_[&buffer] = at;
}

// ---- arrays that are variables ------------------------------------------------------------------

// The place of an access with one constant index, scalar or dense.
static std::optional<std::pair<int64_t, int>> constant_slice(const std::vector<Expr>& indices) {
  if (indices.size() != 1) return std::nullopt;
  if (const auto at = as_int(indices[0]); at && indices[0]->dtype.is_scalar())
    return std::pair(*at, 1);
  const auto* ramp = indices[0].as<Ramp>();
  const auto base = ramp ? as_int(ramp->base) : std::nullopt;
  if (!base || !is_int(ramp->stride, 1)) return std::nullopt;
  return std::pair(*base, static_cast<int>(ramp->lanes));
}

const std::string* FunctionCodegen::slice_of(const Buffer& buffer,
                                             const std::vector<Expr>& indices) {
  const auto it = slices_.find(buffer.data.get());
  if (it == slices_.end()) return nullptr;
  const auto at = constant_slice(indices);
  check(at.has_value(), "an array of variables at a place that is no constant");
  const auto found = it->second.find({at->first, at->second});
  check(found != it->second.end(), "an array of variables at an unknown place");
  return &found->second;
}

// Allocations whose every access is one of some disjoint slices at constant places: each slice
// becomes a variable, so that a C compiler needs no analysis to keep it in a register.
void FunctionCodegen::find_slices(const tir::Stmt& body) {
  static constexpr size_t kMostSlices = 256;
  std::unordered_map<const Node*, const Node*> root;  // data pointer -> that of the allocation
  std::unordered_map<const Node*, std::map<Slice, std::string>> found;
  std::unordered_set<const Node*> refused;
  std::unordered_map<const Node*, const Node*> in_order;
  // Views come after what they view.
  walk(body, [&](const NodePtr& node) {
    if (const auto* alloc = node.as<tir::AllocBuffer>()) {
      const Buffer& buffer = *alloc->buffer;
      if (buffer.dtype.is_bool() || buffer.elem_offset || !buffer.is_compact()) return;
      root[buffer.data.get()] = buffer.data.get();
    }
  });
  for (bool grows = true; grows;) {
    grows = false;
    walk(body, [&](const NodePtr& node) {
      const auto* decl = node.as<tir::DeclBuffer>();
      if (!decl) return;
      const auto it = root.find(decl->data.get());
      if (it == root.end()) return;
      const Buffer& buffer = *decl->buffer;
      if (buffer.elem_offset && !is_int(buffer.elem_offset, 0)) refused.insert(it->second);
      grows |= root.emplace(buffer.data.get(), it->second).second;
    });
  }
  if (root.empty()) return;
  const auto access = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    const auto it = root.find(buffer.data.get());
    if (it == root.end()) return;
    const auto at = constant_slice(indices);
    if (at) {
      found[it->second].emplace(Slice{at->first, at->second}, "");
    } else {
      refused.insert(it->second);
    }
  };
  const auto refuse = [&](const NodePtr& node) {
    const auto* load = node.as<tir::BufferLoad>();
    const auto* region = node.as<tir::BufferRegion>();
    const Node* data = load     ? load->buffer->data.get()
                       : region ? region->buffer->data.get()
                                : node.get();
    if (const auto it = root.find(data); it != root.end()) refused.insert(it->second);
  };
  walk(body, [&](const NodePtr& node) {
    if (const auto* load = node.as<tir::BufferLoad>()) access(*load->buffer, load->indices);
    if (const auto* store = node.as<tir::BufferStore>()) access(*store->buffer, store->indices);
    if (node.as<tir::BufferRegion>()) refuse(node);
    if (const auto* call = node.as<Call>();
        call &&
        (call->is(IntrinsicId::kMaskedLoad) || call->is(IntrinsicId::kMaskedStore) ||
         call->is(IntrinsicId::kAddressOf) || call->is(IntrinsicId::kTvmAccessPtr) ||
         call->is(IntrinsicId::kPrefetch) || (call->op && call->op->effect == Effect::kOpaque)))
      for (const NodePtr& arg : call->args) refuse(arg);
  });
  for (auto& [data, slices] : found) {
    if (refused.count(data) || slices.size() > kMostSlices) continue;
    int64_t end = -1;
    bool disjoint = true;
    for (const auto& [slice, name] : slices) {
      disjoint &= slice.offset >= end && slice.offset >= 0;
      end = slice.offset + slice.lanes;
    }
    if (disjoint) slices_.emplace(data, std::move(slices));
  }
}

}  // namespace tenon::c_backend
