// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/memory_use.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "tenon/arith/analyzer.h"
#include "tenon/ir/attrs.h"
#include "tenon/ir/visit.h"
#include "tenon/memory/pools.h"
#include "tenon/tir/host_memory.h"
#include "tenon/tir/stmt.h"

namespace tenon {

static constexpr size_t kMostLargest = 8;  // buffers of a pool that a report names

namespace {

struct PlacedBuffer {
  std::string name;
  std::optional<int64_t> offset, bytes;  // not set: depends on the symbols
};

std::vector<PlacedBuffer> placed_buffers(const std::vector<Remark>& remarks) {
  std::vector<PlacedBuffer> out;
  for (const Remark& remark : remarks) {
    if (remark.pass != "PlanMemory" || remark.verdict != "placed") continue;
    PlacedBuffer& buffer = out.emplace_back(PlacedBuffer{remark.subject, {}, {}});
    for (const auto& [name, value] : remark.numbers) {
      if (value < 0) continue;
      if (name == "bytes") buffer.bytes = static_cast<int64_t>(value);
      if (name == "offset") buffer.offset = static_cast<int64_t>(value);
    }
  }
  return out;
}

// The pools as PlanMemory laid them out in the workspace; one where none is stated.
std::vector<MemoryUse::Pool> laid_out_pools(const tir::PrimFunc& entry) {
  std::vector<MemoryUse::Pool> pools;
  const AttrValue* layout = entry.attrs.find("tenon.pools");
  const auto* rows = layout ? layout->as<AttrList>() : nullptr;
  for (size_t i = 0; rows && i < rows->size(); ++i) {
    const auto* row = (*rows)[i].as<AttrList>();
    const auto* name = row && row->size() == 3 ? (*row)[0].as<std::string>() : nullptr;
    const auto* offset = name ? (*row)[1].as<int64_t>() : nullptr;
    const auto* capacity = name ? (*row)[2].as<int64_t>() : nullptr;
    if (!offset || !capacity) return {};
    MemoryUse::Pool& pool = pools.emplace_back();
    pool.name = *name;
    pool.offset = *offset;
    if (*capacity >= 0) pool.capacity = *capacity;
  }
  if (pools.empty()) pools.emplace_back().name = "workspace";
  return pools;
}

}  // namespace

// What the program asks for while it runs.
static std::vector<MemoryUse::Late> late_memory(const tir::PrimFunc& entry) {
  std::unordered_set<const Node*> known;
  for (const Ref<Var>& symbol : tir::symbolic_vars(entry)) known.insert(symbol.get());
  for (const Ref<Var>& param : entry.params) known.insert(param.get());
  std::vector<MemoryUse::Late> out;
  walk<tir::AllocBuffer>(entry.body, [&](const tir::AllocBuffer& alloc) {
    if (!tir::is_host_memory(alloc)) return;
    const tir::Buffer& buffer = *alloc.buffer;
    MemoryUse::Late late;
    if (tir::host_output(alloc)) {
      late.what = fmt::format("output `{}`", buffer.name);
      late.size = str(buffer.shape);
    } else {
      late.what = "workspace";
      const Expr bytes = tir::element_count(buffer.shape) * buffer.dtype.bytes();
      late.size = str(arith::simplify(bytes)) + " bytes";
    }
    for (const Expr& dim : buffer.shape)
      walk<Var>(dim, [&](const Var& var) {
        if (!known.count(&var) &&
            std::find(late.numbers.begin(), late.numbers.end(), var.name) == late.numbers.end())
          late.numbers.push_back(var.name);
      });
    out.push_back(std::move(late));
  });
  return out;
}

MemoryUse memory_use_of(const IRModule& module, const std::vector<Remark>& remarks) {
  MemoryUse use;
  Ref<tir::PrimFunc> entry;
  for (const auto& [name, function] : module.functions())
    if (function->attrs.flag("tenon.entry"))
      if (const auto found = tenon::cast<tir::PrimFunc>(function)) entry = found;
  if (!entry) return use;
  use.late = late_memory(*entry);
  use.pools = laid_out_pools(*entry);
  if (use.pools.empty()) return use;
  for (MemoryUse::Pool& pool : use.pools) pool.bytes = 0;
  for (const PlacedBuffer& buffer : placed_buffers(remarks)) {
    size_t p = use.pools.size() - 1;  // where buffers of unknown size are
    while (buffer.offset && p > 0 && *buffer.offset < use.pools[p].offset) --p;
    MemoryUse::Pool& pool = use.pools[p];
    ++pool.buffers;
    if (!buffer.offset || !buffer.bytes) continue;
    const int64_t offset = *buffer.offset - pool.offset;
    pool.bytes = std::max(*pool.bytes, offset + *buffer.bytes);
    pool.largest.push_back({buffer.name, offset, *buffer.bytes});
  }
  for (MemoryUse::Pool& pool : use.pools) {
    std::sort(pool.largest.begin(), pool.largest.end(), [](const auto& a, const auto& b) {
      return std::tuple(-a.bytes, a.offset, a.name) < std::tuple(-b.bytes, b.offset, b.name);
    });
    if (pool.largest.size() > kMostLargest) pool.largest.resize(kMostLargest);
  }
  if (const auto total = entry->attrs.get<int64_t>("tenon.workspace_bytes")) {
    use.bytes = *total;
    use.bound_bytes = entry->attrs.get<int64_t>("tenon.bound_bytes");
  } else if (entry->attrs.contains("tenon.workspace_bytes")) {
    use.pools.back().bytes.reset();
  } else {
    use.bytes = use.bound_bytes = 0;
  }
  if (const auto text = module.attrs.get<std::string>("pools"))
    for (const memory::PoolOption& option : memory::parse_pools(*text)) {
      if (!option.is_read_only) continue;
      MemoryUse::Pool& pool = use.pools.emplace_back();
      pool.name = option.name;
      pool.capacity = option.capacity;
      pool.is_read_only = true;
    }
  return use;
}

static std::string pool_line(const MemoryUse::Pool& pool, std::optional<int64_t> bytes) {
  std::string text = fmt::format("pool       {} ", pool.name);
  if (bytes && pool.capacity)
    text += fmt::format("{} of {} bytes", *bytes, *pool.capacity);
  else if (bytes)
    text += fmt::format("{} bytes", *bytes);
  else
    text += pool.is_read_only ? "constants" : "known only at run time";
  if (pool.is_read_only) return text + (bytes ? " of constants\n" : "\n");
  text += fmt::format(", {} buffer{}", pool.buffers, pool.buffers == 1 ? "" : "s");
  constexpr size_t kMostNamed = 3;
  for (size_t i = 0; i < std::min(kMostNamed, pool.largest.size()); ++i) {
    const MemoryUse::Buffer& buffer = pool.largest[i];
    text += fmt::format("{}`{}` ({} bytes at {})", i == 0 ? ", the largest " : ", ", buffer.name,
                        buffer.bytes, buffer.offset);
  }
  return text + "\n";
}

std::string memory_lines(const MemoryUse& use, std::optional<int64_t> constant_bytes,
                         std::optional<int64_t> workspace_bytes) {
  std::string text = "memory     peak ";
  if (use.bytes)
    text += fmt::format("{} bytes, lower bound {} bytes", *use.bytes, use.bound_bytes.value_or(0));
  else if (workspace_bytes)
    text += fmt::format("{} bytes in this run", *workspace_bytes);
  else
    text += "known only at run time";
  if (constant_bytes) text += fmt::format("; constants {} bytes", *constant_bytes);
  text += "\n";
  for (const MemoryUse::Late& late : use.late)
    text += fmt::format("late       {} of {}{}{}{}\n", late.what, late.size,
                        late.numbers.empty() ? "" : ", when `", fmt::join(late.numbers, "` and `"),
                        late.numbers.empty()       ? ""
                        : late.numbers.size() == 1 ? "` is known"
                                                   : "` are known");
  const bool is_stated =
      use.pools.size() > 1 ||
      (!use.pools.empty() && (use.pools[0].name != "workspace" || use.pools[0].capacity));
  if (!is_stated) return text;
  for (const MemoryUse::Pool& pool : use.pools) {
    std::optional<int64_t> bytes = pool.is_read_only ? constant_bytes : pool.bytes;
    if (!bytes && workspace_bytes) bytes = *workspace_bytes - pool.offset;
    text += pool_line(pool, bytes);
  }
  return text;
}

nlohmann::ordered_json json_of(const MemoryUse& use) {
  using Json = nlohmann::ordered_json;
  const auto number = [](const std::optional<int64_t>& value) {
    return value ? Json(*value) : Json();
  };
  Json pools = Json::array();
  for (const MemoryUse::Pool& pool : use.pools) {
    Json& row = pools.emplace_back(Json{{"name", pool.name}, {"capacity", number(pool.capacity)}});
    if (pool.is_read_only) {
      row["read_only"] = true;
      continue;
    }
    row["offset"] = pool.offset;
    row["bytes"] = number(pool.bytes);
    row["buffers"] = pool.buffers;
    row["largest"] = Json::array();
    for (const MemoryUse::Buffer& buffer : pool.largest)
      row["largest"].push_back(
          {{"name", buffer.name}, {"offset", buffer.offset}, {"bytes", buffer.bytes}});
  }
  Json json = {{"bytes", number(use.bytes)},
               {"bound_bytes", number(use.bound_bytes)},
               {"pools", std::move(pools)}};
  for (const MemoryUse::Late& late : use.late)
    json["late"].push_back({{"what", late.what}, {"size", late.size}, {"numbers", late.numbers}});
  return json;
}

MemoryUse memory_use_from(const nlohmann::json& json) {
  MemoryUse use;
  const auto number = [](const nlohmann::json& object, const char* key) -> std::optional<int64_t> {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) return std::nullopt;
    return found->get<int64_t>();
  };
  try {
    use.bytes = number(json, "bytes");
    use.bound_bytes = number(json, "bound_bytes");
    for (const auto& row : json.value("pools", nlohmann::json::array())) {
      MemoryUse::Pool& pool = use.pools.emplace_back();
      pool.name = row.value("name", "");
      pool.capacity = number(row, "capacity");
      pool.is_read_only = row.value("read_only", false);
      pool.offset = number(row, "offset").value_or(0);
      pool.bytes = number(row, "bytes");
      pool.buffers = row.value("buffers", int64_t{0});
      for (const auto& buffer : row.value("largest", nlohmann::json::array()))
        pool.largest.push_back({buffer.value("name", ""), buffer.value("offset", int64_t{0}),
                                buffer.value("bytes", int64_t{0})});
    }
    for (const auto& row : json.value("late", nlohmann::json::array()))
      use.late.push_back({row.value("what", ""), row.value("size", ""),
                          row.value("numbers", std::vector<std::string>{})});
  } catch (const nlohmann::json::exception&) {
    return {};
  }
  return use;
}

}  // namespace tenon
