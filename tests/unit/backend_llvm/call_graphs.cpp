// SPDX-License-Identifier: Apache-2.0
#include "call_graphs.h"

#include <fmt/format.h>

namespace tenon::llvm_backend {

static constexpr int kSide = 16;

std::string CallGraph::constant() {
  static const char* kValues[] = {"0.5", "1.0", "-1.0", "2.0", "0.25", "3.0"};
  return fmt::format("T.float32({})", kValues[below(6)]);
}

std::string CallGraph::text() {
  text_ = "@I.ir_module\nclass Module:\n";
  const int leaves = 3 + below(3), layers = 1 + below(3);
  for (int i = 0; i < leaves; ++i) leaf(i);
  for (int i = 0; i < layers; ++i) composed(i);
  main();
  return text_;
}

// One loop nest: of one or two inputs, writing or adding to its output; or the sum of a row.
void CallGraph::leaf(int number) {
  Kernel kernel;
  kernel.name = fmt::format("leaf{}", number);
  const bool is_symbolic = chance(60);
  static const int kShapes[][2] = {{4, 16}, {1, 16}, {4, 4}, {8, 16}, {2, 8}};
  const auto& shape = kShapes[below(5)];
  if (!is_symbolic) {
    kernel.rows = shape[0];
    kernel.columns = shape[1];
  }
  const int inputs = number == 0 ? 1 : 1 + below(2);
  kernel.returns = number > 1 && chance(25);
  for (int i = 0; i < inputs; ++i) kernel.params.push_back({chance(50), Param::Use::kIn});
  const bool adds = number > 0 && chance(30);
  if (!kernel.returns)
    kernel.params.push_back({chance(50), adds ? Param::Use::kInOut : Param::Use::kOut});
  std::string signature, matches, symbols;
  for (size_t p = 0; p < kernel.params.size(); ++p) {
    signature += fmt::format("{}v{}: T.handle", p ? ", " : "", p);
    std::string strides;
    if (kernel.params[p].strided) {
      symbols += fmt::format("        s{0} = T.int64()\n        t{0} = T.int64()\n", p);
      strides = fmt::format(", strides=[s{0}, t{0}]", p);
    }
    matches +=
        fmt::format("        b{} = T.match_buffer(v{}, ({}), \"float32\"{})\n", p, p,
                    is_symbolic ? "m, n" : fmt::format("{}, {}", shape[0], shape[1]), strides);
  }
  if (is_symbolic) symbols = "        m = T.int64()\n        n = T.int64()\n" + symbols;
  const std::string rows = is_symbolic ? "m" : std::to_string(shape[0]);
  const std::string columns = is_symbolic ? "n" : std::to_string(shape[1]);
  text_ +=
      fmt::format("    @T.prim_func{}\n    def {}({}){}:\n{}{}", chance(50) ? "(private=True)" : "",
                  kernel.name, signature, kernel.returns ? " -> T.float32" : "", symbols, matches);
  std::string value = fmt::format("b0[i, j] * {}", constant());
  if (inputs == 2) value += " + b1[i, j]";
  const size_t out = kernel.params.size() - 1;
  if (kernel.returns) {
    text_ += fmt::format(
        "        acc = T.decl_buffer((1,), \"float32\", scope=\"local\")\n"
        "        acc[0] = T.float32(0)\n"
        "        for i, j in T.grid({}, {}):\n            acc[0] = acc[0] + {}\n"
        "        return acc[0]\n",
        rows, columns, value);
  } else if (chance(50)) {
    text_ += fmt::format(
        "        for i, j in T.grid({0}, {1}):\n            with T.block(\"leaf\"):\n"
        "                vi, vj = T.axis.remap(\"{4}\", [i, j])\n"
        "                b{2}[vi, vj] = {3}\n",
        rows, columns, out,
        (adds ? fmt::format("b{}[vi, vj] + ", out) : "") +
            [&] {
              std::string v = value;
              for (size_t at; (at = v.find("[i, j]")) != std::string::npos;)
                v.replace(at, 6, "[vi, vj]");
              return v;
            }(),
        "SS");
  } else {
    text_ += fmt::format("        for i, j in T.grid({}, {}):\n            b{}[i, j] = {}{}\n",
                         rows, columns, out, adds ? fmt::format("b{}[i, j] + ", out) : "", value);
  }
  text_ += "\n";
  kernels_.push_back(kernel);
}

// The region of `place` that a kernel of this shape gets, and whether it is compact.
std::string CallGraph::call(const Kernel& kernel, const std::vector<Place>& readable,
                            const std::vector<Place>& writable, const std::string& indent) {
  if (writable.empty() && !kernel.returns) return "";
  int rows = kernel.rows, columns = kernel.columns;
  bool any_compact = false;
  for (const Param& param : kernel.params) any_compact |= !param.strided;
  if (rows == 0) {
    rows = 1 << below(4);
    columns = any_compact ? kSide : 1 << (1 + below(3));
  }
  // Where a parameter is compact, whole rows of buffers of that width, or one row.
  const auto region = [&](const Place& place, bool strided,
                          const std::string& row_loop) -> std::string {
    if (place.rows < rows || place.columns < columns) return "";
    if (!strided && rows > 1 && place.columns != columns) return "";
    const int row = row_loop.empty() ? below(place.rows - rows + 1) : 0;
    const int column = below(place.columns - columns + 1);
    const std::string first =
        row_loop.empty() ? std::to_string(row) : fmt::format("{} * {}", row_loop, rows);
    return fmt::format("{}[{}:{} + {}, {}:{}]", place.buffer, first, first, rows, column,
                       column + columns);
  };
  const std::string loop =
      chance(40) && kSide % rows == 0 && rows < kSide ? fmt::format("r{}", names_++) : "";
  std::string args, output;
  size_t used = writable.size();
  for (size_t p = 0; p < kernel.params.size(); ++p) {
    const Param& param = kernel.params[p];
    const bool is_in = param.use == Param::Use::kIn;
    const auto& places = is_in ? readable : writable;
    std::string text;
    for (int attempt = 0; attempt < 6 && text.empty(); ++attempt) {
      const size_t k = static_cast<size_t>(below(static_cast<int>(places.size())));
      if (!loop.empty() && places[k].rows != kSide) continue;
      text = region(places[k], param.strided, loop);
      if (!text.empty() && !is_in) used = k;
    }
    if (text.empty()) return "";
    // What is written is no input of the same call.
    if (!is_in && args.find(writable[used].buffer + "[") != std::string::npos) return "";
    args += ", " + text;
  }
  std::string out, inner = indent;
  if (!loop.empty()) {
    out += fmt::format("{}for {} in range({}):\n", indent, loop, kSide / rows);
    inner += "    ";
  }
  if (kernel.returns) {
    if (writable.empty()) return "";
    const Place& place = writable[static_cast<size_t>(below(static_cast<int>(writable.size())))];
    const std::string cell =
        fmt::format("{}[{}, {}]", place.buffer, below(place.rows), below(place.columns));
    out += fmt::format("{0}{1} = {1} + T.call_tir(cls.{2}{3})\n", inner, cell, kernel.name, args);
    return out;
  }
  if (chance(30)) {
    out += fmt::format("{}with T.block(\"b{}\"):\n", inner, names_++);
    inner += "    ";
  }
  out += fmt::format("{}T.call_tir(cls.{}{})\n", inner, kernel.name, args);
  return out;
}

const CallGraph::Kernel* CallGraph::pick(int rows, int columns, size_t inputs, bool compact_in,
                                         bool compact_out) {
  (void)compact_in;
  (void)compact_out;
  std::vector<const Kernel*> fit;
  for (const Kernel& kernel : kernels_) {
    const bool shaped = kernel.rows == 0 || (kernel.rows == rows && kernel.columns == columns);
    if (!kernel.returns && shaped && kernel.params.size() == inputs + 1 &&
        kernel.params.back().use == Param::Use::kOut)
      fit.push_back(&kernel);
  }
  if (fit.empty()) return nullptr;
  return fit[static_cast<size_t>(below(static_cast<int>(fit.size())))];
}

// A loop over slabs of four rows through two or three stages.
std::string CallGraph::pipeline(const Place& in, const Place& out, const std::string& indent) {
  const int rows = 4, columns = in.columns, tiles = in.rows / rows;
  const Kernel* first = pick(rows, columns, 1, true, true);
  const Kernel* second = pick(rows, columns, 1, true, true);
  const Kernel* third = pick(rows, columns, 2, true, true);
  if (!first || !second || tiles < 1) return "";
  const bool three = third != nullptr && chance(50);
  const std::string t = fmt::format("t{}", names_), h = fmt::format("h{}", names_),
                    k = fmt::format("k{}", names_);
  ++names_;
  const std::string slab = fmt::format("[{0} * {1}:{0} * {1} + {1}, 0:{2}]", t, rows, columns);
  const std::string versions =
      chance(30) ? fmt::format(", \"software_pipeline_versions\": {}", 2 + below(3)) : "";
  std::string text = fmt::format(
      "{}for {} in T.serial({}, annotations={{\"software_pipeline_stage\": {}{}}}):\n"
      "{}    with T.block(\"frame\"):\n",
      indent, t, tiles, three ? "[0, 1, 2]" : "[0, 1]", versions, indent);
  const std::string inner = indent + "        ";
  text += fmt::format("{}{} = T.alloc_buffer(({}, {}), \"float32\")\n", inner, h, rows, columns);
  if (three)
    text += fmt::format("{}{} = T.alloc_buffer(({}, {}), \"float32\")\n", inner, k, rows, columns);
  text += fmt::format("{}T.call_tir(cls.{}, {}{}, {})\n", inner, first->name, in.buffer, slab, h);
  if (!three)
    return text + fmt::format("{}T.call_tir(cls.{}, {}, {}{})\n", inner, second->name, h,
                              out.buffer, slab);
  text += fmt::format("{}T.call_tir(cls.{}, {}, {})\n", inner, second->name, h, k);
  return text + fmt::format("{}T.call_tir(cls.{}, {}, {}, {}{})\n", inner, third->name, h, k,
                            out.buffer, slab);
}

std::string CallGraph::calls(const std::vector<Place>& readable, const std::vector<Place>& writable,
                             const std::string& indent, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    if (chance(25)) {
      const Place& in = readable[static_cast<size_t>(below(static_cast<int>(readable.size())))];
      const Place& out = writable[static_cast<size_t>(below(static_cast<int>(writable.size())))];
      if (in.buffer != out.buffer) text += pipeline(in, out, indent);
      continue;
    }
    const Kernel kernel = kernels_[static_cast<size_t>(below(static_cast<int>(kernels_.size())))];
    text += call(kernel, readable, writable, indent);
  }
  return text;
}

// A kernel of 16 x 16 buffers: x is read, y written as a whole first.
void CallGraph::composed(int number) {
  Kernel kernel;
  kernel.name = fmt::format("composed{}", number);
  kernel.rows = kernel.columns = kSide;
  kernel.params = {{false, Param::Use::kIn}, {false, Param::Use::kOut}};
  text_ += fmt::format(
      "    @T.prim_func{}\n"
      "    def {}(x: T.Buffer((16, 16), \"float32\"), y: T.Buffer((16, 16), \"float32\")):\n"
      "        cls = Module\n        with T.block(\"root\"):\n",
      chance(50) ? "(private=True)" : "", kernel.name);
  std::vector<Place> readable{{"x", kSide, kSide}, {"y", kSide, kSide}};
  std::vector<Place> writable{{"y", kSide, kSide}};
  const std::string indent = "            ";
  std::string fill = "y";
  if (chance(60)) {
    text_ += indent + "t = T.alloc_buffer((16, 16), \"float32\")\n";
    readable.push_back({"t", kSide, kSide});
    writable.push_back({"t", kSide, kSide});
    fill = "t";
  }
  for (const Place& place : writable)
    text_ += fmt::format("{0}for i, j in T.grid(16, 16):\n{0}    {1}[i, j] = x[i, j] + {2}\n",
                         indent, place.buffer, constant());
  text_ += calls(readable, writable, indent, 1 + below(4)) + "\n";
  kernels_.push_back(kernel);
}

void CallGraph::main() {
  const std::string type = "T.Buffer((16, 16), \"float32\")";
  text_ += fmt::format(
      "    @T.prim_func\n    def main(X0: {0}, X1: {0}, Y0: {0}, Y1: {0}):\n"
      "        T.func_attr({{\"tenon.entry\": True, \"tenon.num_inputs\": 2}})\n"
      "        cls = Module\n"
      "        for i, j in T.grid(16, 16):\n            Y0[i, j] = X0[i, j]\n"
      "        for i, j in T.grid(16, 16):\n            Y1[i, j] = X1[i, j] - X0[i, j]\n",
      type);
  const std::vector<Place> readable{
      {"X0", kSide, kSide}, {"X1", kSide, kSide}, {"Y0", kSide, kSide}, {"Y1", kSide, kSide}};
  const std::vector<Place> writable{{"Y0", kSide, kSide}, {"Y1", kSide, kSide}};
  text_ += calls(readable, writable, "        ", 2 + below(5));
}

}  // namespace tenon::llvm_backend
