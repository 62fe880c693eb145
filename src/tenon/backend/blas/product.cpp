// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/blas/product.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <set>

namespace tenon::backend::blas {

namespace {

using Operator = MatchGraph::Operator;

// A stack of matrices: the last two dimensions, those before them, and where the elements lie.
struct Stack {
  Extents shape, strides;
};

Stack stored(const Extents& shape) {
  Stack stack{shape, Extents(shape.size(), 1)};
  for (size_t d = shape.size(); d-- > 1;) stack.strides[d - 1] = stack.strides[d] * shape[d];
  return stack;
}

Stack permuted(const Stack& from, std::vector<int64_t> axes) {
  if (axes.empty())
    for (size_t d = from.shape.size(); d-- > 0;) axes.push_back(static_cast<int64_t>(d));
  Stack to;
  for (const int64_t axis : axes) {
    to.shape.push_back(from.shape.at(static_cast<size_t>(axis)));
    to.strides.push_back(from.strides.at(static_cast<size_t>(axis)));
  }
  return to;
}

// Rows (or columns) of one matrix lie one after the other: its leading dimension, and whether it
// is the transpose of what lies there. What is a symbol may be 1 too, and then any stride serves.
void read_matrix(const Stack& stack, bool& is_transposed, Extent& leading) {
  const size_t last = stack.shape.size() - 1;
  const Extent rows = stack.shape[last - 1], columns = stack.shape[last];
  const Extent row = stack.strides[last - 1], column = stack.strides[last];
  if ((column.is(1) || columns.is(1)) && (row.is_at_least(columns) || rows.is(1))) {
    is_transposed = false;
    leading = rows.is(1) ? columns : row;
  } else if ((row.is(1) || rows.is(1)) && (column.is_at_least(rows) || columns.is(1))) {
    is_transposed = true;
    leading = columns.is(1) ? rows : column;
  } else {
    throw Refusal{"layout", "an operand has neither its rows nor its columns in one piece"};
  }
}

bool is_row_major(const Stack& stack) {
  const Extents expected = stored(stack.shape).strides;
  for (size_t d = 0; d < expected.size(); ++d)
    if (!stack.shape[d].is(1) && stack.strides[d] != expected[d]) return false;
  return true;
}

Extents batch_strides(const Stack& stack, const Extents& batch) {
  Extents strides(batch.size(), 0);
  const size_t own = stack.shape.size() - 2;
  for (size_t d = 0; d < own; ++d)
    if (!stack.shape[own - 1 - d].is(1)) strides[batch.size() - 1 - d] = stack.strides[own - 1 - d];
  return strides;
}

// One of two that are broadcast.
Extent broadcast(const Extent& a, const Extent& b) {
  if (a == b || b.is(1)) return a;
  if (a.is(1)) return b;
  throw Refusal{"symbolic",
                "dimensions that are equal only at run time, " + a.str() + " and " + b.str()};
}

class Reader {
 public:
  explicit Reader(const MatchGraph& graph) : graph_(graph) {
    for (const MatchGraph::Value& value : graph.values) {
      if (value.dtype != "float32" && value.dtype != "float64")
        throw Refusal{"dtype", "a tensor of " + value.dtype + "; expected float32 or float64"};
      for (const int64_t extent : value.shape) {
        if (extent < 1 && extent != TENON_SYMBOLIC)
          throw Refusal{"shape", "a tensor without elements"};
      }
    }
    if (graph.outputs.size() != 1) throw Refusal{"output", "more than one output"};
  }

  Product read() {
    const auto matmul = std::find_if(graph_.operators.begin(), graph_.operators.end(),
                                     [](const Operator& op) { return op.name == "matmul"; });
    if (matmul == graph_.operators.end()) throw Refusal{"operator", "no matrix product"};
    taken_ = 1;
    const std::string dtype = matmul->text("out_dtype", "void");
    out_.dtype = graph_[matmul->result].dtype;
    if (dtype != "void" && dtype != out_.dtype)
      throw Refusal{"dtype", "products of other elements than their operands"};
    Stack a = operand(*matmul, 0, out_.a), b = operand(*matmul, 1, out_.b);
    read_shapes(a, b);
    if (product_of(extents(matmul->result)) != out_.m * out_.n * product_of(out_.batch))
      throw Refusal{"symbolic", "a result whose size is known at run time only"};
    int value = matmul->result;
    for (const Operator* op = user_of(value); op; op = user_of(value)) {
      read_follower(*op, value);
      value = op->result;
      ++taken_;
    }
    out_.y = value;
    if (value != graph_.outputs[0] || taken_ != graph_.operators.size())
      throw Refusal{"operator", "more than a matrix product, its scale and its bias"};
    return out_;
  }

 private:
  Extents extents(int value) const {
    const MatchGraph::Value& v = graph_[value];
    Extents out;
    for (size_t d = 0; d < v.shape.size(); ++d) {
      if (v.shape[d] != TENON_SYMBOLIC) {
        out.emplace_back(v.shape[d]);
        continue;
      }
      if (d >= v.symbols.size() || v.symbols[d] < 0)
        throw Refusal{"symbolic", "a dimension of a result is no dimension of an input"};
      out.push_back(Extent::of_symbol(v.symbols[d]));
    }
    return out;
  }

  Stack operand(const Operator& matmul, size_t i, int& value) {
    value = matmul.value_arg(i);
    for (const Operator& op : graph_.operators) {
      if (op.result != value) continue;
      if (op.name != "permute_dims")
        throw Refusal{"operator", "`" + op.name + "` in front of a product"};
      value = op.value_arg(0);
      ++taken_;
      return permuted(stored(extents(value)), op.ints("axes"));
    }
    return stored(extents(value));
  }

  void read_shapes(Stack& a, Stack& b) {
    if (a.shape.size() == 1) {
      a.shape.insert(a.shape.begin(), 1);
      a.strides.insert(a.strides.begin(), a.shape[1]);
    }
    if (b.shape.size() == 1) {
      b.shape.push_back(1);
      b.strides.push_back(1);
    }
    const bool one_matrix = b.shape.size() == 2 && is_row_major(a);
    if (one_matrix) {  // more rows rather than a batch
      const Extents rows(a.shape.begin(), a.shape.end() - 1);
      a = stored({product_of(rows), a.shape.back()});
    }
    out_.m = a.shape[a.shape.size() - 2];
    out_.k = broadcast(a.shape.back(), b.shape[b.shape.size() - 2]);
    out_.n = b.shape.back();
    read_matrix(a, out_.transposes_a, out_.lda);
    read_matrix(b, out_.transposes_b, out_.ldb);
    const size_t outer = std::max(a.shape.size(), b.shape.size()) - 2;
    out_.batch.assign(outer, 1);
    for (const Stack* stack : {&a, &b})
      for (size_t d = 0; d + 2 < stack->shape.size(); ++d) {
        Extent& extent = out_.batch[outer - (stack->shape.size() - 2) + d];
        extent = broadcast(extent, stack->shape[d]);
      }
    out_.stride_a = batch_strides(a, out_.batch);
    out_.stride_b = batch_strides(b, out_.batch);
    out_.stride_addend.assign(outer, 0);
    for (const Extent& extent : {out_.m, out_.n, out_.k, out_.lda, out_.ldb})
      if (extent.is_number() && extent.number() > INT_MAX)
        throw Refusal{"shape", "a dimension beyond the library's integers"};
  }

  const Operator* user_of(int value) const {
    for (const Operator& op : graph_.operators)
      for (const MatchGraph::Argument& argument : op.args)
        if (argument.kind == MatchGraph::Argument::Kind::kValue && argument.value == value)
          return &op;
    return nullptr;
  }

  void read_follower(const Operator& op, int value) {
    if (op.name != "multiply" && op.name != "add")
      throw Refusal{"operator", "`" + op.name + "` behind a product"};
    const int other = op.value_arg(0) == value ? op.value_arg(1) : op.value_arg(0);
    if (other == value) throw Refusal{"operator", "a product combined with itself"};
    if (op.name == "multiply") {
      float number = 0;
      if (out_.addend >= 0 || !graph_.is_scalar(other, &number))
        throw Refusal{"operator", "a product multiplied by more than a number"};
      out_.alpha *= number;
      return;
    }
    if (out_.addend >= 0) throw Refusal{"operator", "a product with two addends"};
    if (extents(op.result) != extents(value))
      throw Refusal{"shape", "an addend that is larger than the product"};
    out_.addend = other;
    read_addend(extents(other), extents(value));
  }

  // Broadcast against the result, whose batch may have become rows.
  void read_addend(const Extents& shape, const Extents& y) {
    const Stack own = stored(shape);
    Extents strides(y.size(), 0);
    for (size_t d = 0; d < shape.size(); ++d) {
      const Extent& extent = shape[shape.size() - 1 - d];
      if (extent.is(1)) continue;
      if (extent != y[y.size() - 1 - d])
        throw Refusal{"symbolic", "an addend that is broadcast or not, as is known at run time"};
      strides[y.size() - 1 - d] = own.strides[shape.size() - 1 - d];
    }
    const bool has_columns = out_.n == (y.empty() ? Extent(1) : y.back());
    if (out_.batch.empty()) {
      out_.addend_column = has_columns && !strides.empty() ? strides.back() : 0;
      const Extents rows(strides.begin(),
                         strides.end() - (strides.empty() || !has_columns ? 0 : 1));
      const Extents extents(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(rows.size()));
      const Extents dense = stored(extents).strides;
      if (std::all_of(rows.begin(), rows.end(), [](const Extent& stride) { return stride.is(0); }))
        return;
      const Extent unit = rows.back();
      for (size_t d = 0; d < rows.size(); ++d)
        if (!extents[d].is(1) && rows[d] != dense[d] * unit)
          throw Refusal{"shape", "an addend that is broadcast over some of the rows"};
      out_.addend_row = unit;
      return;
    }
    if (y.size() != out_.batch.size() + 2) throw Refusal{"rank", "an addend of a batch of vectors"};
    out_.stride_addend.assign(strides.begin(), strides.end() - 2);
    out_.addend_row = strides[y.size() - 2];
    out_.addend_column = strides.back();
  }

  const MatchGraph& graph_;
  Product out_;
  size_t taken_ = 0;
};

}  // namespace

double Product::flop() const {
  const Extent count = 2 * m * n * k * product_of(batch);
  return count.is_number() ? static_cast<double>(count.number()) : -1;
}

Product read_product(const MatchGraph& graph) { return Reader(graph).read(); }

std::string c_prelude() {
  return R"(#include <stdint.h>
#include <string.h>
void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
void cblas_dgemm(int, int, int, int, int, int, double, const double*, int, const double*, int, double, double*, int);
void openblas_set_num_threads(int);
int openblas_get_num_threads(void);
char* openblas_get_corename(void);
enum { TENON_BLAS_ROWS = 101, TENON_BLAS_PLAIN = 111, TENON_BLAS_TRANSPOSED = 112 };
/* Most of the library's kernels add up in another order at the edges of the piece of a matrix that a thread takes. */
static inline int32_t tenon_blas_threads(int32_t threads) {
  static const char* const kernels[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
  for (int i = 0; i < 3; ++i)
    if (strcmp(openblas_get_corename(), kernels[i]) == 0) return threads;
  return 1;
}
)";
}

namespace {

// An argument of the library, whose integers are C's.
std::string int_of(const Extent& extent) {
  return extent.is_number() ? extent.str() : "(int)(" + extent.str() + ")";
}

// What is known at run time only: nothing to do, or too much.
std::string c_checks(const Product& p) {
  std::string too_large, out;
  for (const Extent& extent : {p.m, p.n, p.k, p.lda, p.ldb}) {
    const std::string test = extent.str() + " > INT32_MAX";
    if (extent.is_number() || too_large.find(test) != std::string::npos) continue;
    too_large += (too_large.empty() ? "" : " || ") + test;
  }
  const Extent all = p.m * p.n * product_of(p.batch);
  for (const int symbol : std::set(all.symbols().begin(), all.symbols().end()))
    out += fmt::format("  if (n{} == 0) return 0;\n", symbol);
  if (!too_large.empty()) out += fmt::format("  if ({}) return {};\n", too_large, kTooLarge);
  return out;
}

// Terms of a sum that one call adds up. The library takes a sum in parts of about this many (its Q,
// 192 to 448 floats, 128 to 384 doubles on x86), and cuts the last two where it likes: at another
// place with one thread than with several, which shows in the last bits. Parts that are no longer
// than its own it leaves whole.
int64_t most_terms(const Product& p) { return p.dtype == "float32" ? 192 : 128; }

// One call, or one for each part of the sums.
std::string c_call(const MatchGraph& graph, const Product& p, const std::string& offset_a,
                   const std::string& offset_b) {
  const auto form = [](bool is_transposed) {
    return is_transposed ? "TENON_BLAS_TRANSPOSED" : "TENON_BLAS_PLAIN";
  };
  const auto call = [&](const std::string& terms, const std::string& a, const std::string& b,
                        const std::string& beta) {
    return fmt::format(
        "cblas_{}gemm(TENON_BLAS_ROWS, {}, {}, {}, {}, {}, {:a}, i{}{}, {}, i{}{}, {}, {}, to, "
        "{});",
        p.dtype == "float32" ? "s" : "d", form(p.transposes_a), form(p.transposes_b), int_of(p.m),
        int_of(p.n), terms, p.alpha, graph[p.a].input, offset_a + a, int_of(p.lda),
        graph[p.b].input, offset_b + b, int_of(p.ldb), beta, int_of(p.n));
  };
  const std::string beta = p.addend >= 0 ? "1" : "0";
  const int64_t most = most_terms(p);
  if (p.k.is_number() && p.k.number() <= most) return call(int_of(p.k), "", "", beta);
  const std::string k = p.k.str();
  return fmt::format("for (int64_t k = 0; k < {}; k += {})\n        ", k, most) +
         call(fmt::format("(int)({0} - k < {1} ? {0} - k : {1})", k, most),
              p.transposes_a ? " + k * " + p.lda.str() : " + k",
              p.transposes_b ? " + k" : " + k * " + p.ldb.str(), p.addend >= 0 ? "1" : "k > 0");
}

}  // namespace

std::string c_function(const std::string& symbol, const MatchGraph& graph, const Product& product) {
  const char* type = product.dtype == "float32" ? "float" : "double";
  std::string out = fmt::format("int32_t {}(", symbol);
  for (size_t i = 0; i < graph.inputs.size(); ++i) out += fmt::format("const {}* i{}, ", type, i);
  out += fmt::format("{}* y, ", type);
  for (int i = 0; i < graph.symbols; ++i) out += fmt::format("int64_t n{}, ", i);
  out += "int32_t threads) {\n" + c_checks(product);
  // The kernels for doubles depend on the pieces on every processor.
  out += product.dtype == "float32" ? "  threads = tenon_blas_threads(threads);\n"
                                    : "  threads = 1;\n";
  out +=
      "  const int before = openblas_get_num_threads();\n"
      "  if (before != threads) openblas_set_num_threads(threads);\n";
  std::string offset_a, offset_b, offset_addend, offset_y;
  Extent stride_y = product.m * product.n;
  for (size_t d = product.batch.size(); d-- > 0;) {
    const auto term = [&](std::string& text, const Extent& stride) {
      if (!stride.is(0)) text += fmt::format(" + b{} * {}", d, stride.str());
    };
    term(offset_a, product.stride_a[d]);
    term(offset_b, product.stride_b[d]);
    term(offset_addend, product.stride_addend[d]);
    term(offset_y, stride_y);
    stride_y = stride_y * product.batch[d];
  }
  for (size_t d = 0; d < product.batch.size(); ++d)
    out += fmt::format("  for (int64_t b{0} = 0; b{0} < {1}; ++b{0})\n", d, product.batch[d].str());
  out += "  {\n";
  out += fmt::format("    {}* to = y{};\n", type, offset_y);
  const std::string m = product.m.str(), n = product.n.str(), k = product.k.str();
  if (product.addend >= 0)
    out += fmt::format(
        "    const {}* from = i{}{};\n"
        "    for (int64_t r = 0; r < {}; ++r)\n"
        "      for (int64_t c = 0; c < {}; ++c) to[r * {} + c] = from[r * {} + c * {}];\n",
        type, graph[product.addend].input, offset_addend, m, n, n, product.addend_row.str(),
        product.addend_column.str());
  if (!product.k.is_number()) out += fmt::format("    if ({} > 0)\n  ", k);
  out += "    " + c_call(graph, product, offset_a, offset_b) + "\n";
  if (!product.k.is_number() && product.addend < 0)
    out += fmt::format("    else\n      for (int64_t e = 0; e < {} * {}; ++e) to[e] = 0;\n", m, n);
  return out + "  }\n  if (before != threads) openblas_set_num_threads(before);\n  return 0;\n}\n";
}

}  // namespace tenon::backend::blas
