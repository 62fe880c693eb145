#include "tenon/backend/blas/product.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <numeric>

namespace tenon::backend::blas {

namespace {

using Operator = MatchGraph::Operator;
using Shape = std::vector<int64_t>;

// A stack of matrices: the last two dimensions, those before them, and where the elements lie.
struct Stack {
  Shape shape, strides;
};

Stack stored(const Shape& shape) {
  Stack stack{shape, Shape(shape.size(), 1)};
  for (size_t d = shape.size(); d-- > 1;) stack.strides[d - 1] = stack.strides[d] * shape[d];
  return stack;
}

Stack permuted(const Stack& from, Shape axes) {
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
// is the transpose of what lies there.
void read_matrix(const Stack& stack, bool& is_transposed, int64_t& leading) {
  const size_t last = stack.shape.size() - 1;
  const int64_t rows = stack.shape[last - 1], columns = stack.shape[last];
  const int64_t row = stack.strides[last - 1], column = stack.strides[last];
  if ((column == 1 || columns == 1) && (row >= columns || rows == 1)) {
    is_transposed = false;
    leading = rows == 1 ? columns : row;
  } else if ((row == 1 || rows == 1) && (column >= rows || columns == 1)) {
    is_transposed = true;
    leading = columns == 1 ? rows : column;
  } else {
    throw Refusal{"layout", "an operand has neither its rows nor its columns in one piece"};
  }
}

bool is_row_major(const Stack& stack) {
  const Shape expected = stored(stack.shape).strides;
  for (size_t d = 0; d < expected.size(); ++d)
    if (stack.shape[d] != 1 && stack.strides[d] != expected[d]) return false;
  return true;
}

Shape batch_strides(const Stack& stack, const Shape& batch) {
  Shape strides(batch.size(), 0);
  const size_t own = stack.shape.size() - 2;
  for (size_t d = 0; d < own; ++d)
    if (stack.shape[own - 1 - d] != 1) strides[batch.size() - 1 - d] = stack.strides[own - 1 - d];
  return strides;
}

class Reader {
 public:
  explicit Reader(const MatchGraph& graph) : graph_(graph) {
    for (const MatchGraph::Value& value : graph.values) {
      if (value.dtype != "float32" && value.dtype != "float64")
        throw Refusal{"dtype", "a tensor of " + value.dtype + "; expected float32 or float64"};
      for (const int64_t extent : value.shape) {
        if (extent == TENON_SYMBOLIC) throw Refusal{"symbolic", "a dimension is not a number"};
        if (extent < 1) throw Refusal{"shape", "a tensor without elements"};
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
  Stack operand(const Operator& matmul, size_t i, int& value) {
    value = matmul.value_arg(i);
    for (const Operator& op : graph_.operators) {
      if (op.result != value) continue;
      if (op.name != "permute_dims")
        throw Refusal{"operator", "`" + op.name + "` in front of a product"};
      value = op.value_arg(0);
      ++taken_;
      return permuted(stored(graph_[value].shape), op.ints("axes"));
    }
    return stored(graph_[value].shape);
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
      const int64_t rows =
          std::accumulate(a.shape.begin(), a.shape.end() - 1, int64_t{1}, std::multiplies<>());
      a = stored({rows, a.shape.back()});
    }
    out_.m = a.shape[a.shape.size() - 2];
    out_.k = a.shape.back();
    out_.n = b.shape.back();
    read_matrix(a, out_.transposes_a, out_.lda);
    read_matrix(b, out_.transposes_b, out_.ldb);
    const size_t outer = std::max(a.shape.size(), b.shape.size()) - 2;
    out_.batch.assign(outer, 1);
    for (const Stack* stack : {&a, &b})
      for (size_t d = 0; d + 2 < stack->shape.size(); ++d) {
        int64_t& extent = out_.batch[outer - (stack->shape.size() - 2) + d];
        extent = std::max(extent, stack->shape[d]);
      }
    out_.stride_a = batch_strides(a, out_.batch);
    out_.stride_b = batch_strides(b, out_.batch);
    out_.stride_addend.assign(outer, 0);
    for (const int64_t extent : {out_.m, out_.n, out_.k, out_.lda, out_.ldb})
      if (extent > INT_MAX) throw Refusal{"shape", "a dimension beyond the library's integers"};
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
    if (graph_[op.result].shape != graph_[value].shape)
      throw Refusal{"shape", "an addend that is larger than the product"};
    out_.addend = other;
    read_addend(graph_[other].shape, graph_[value].shape);
  }

  // Broadcast against the result, whose batch may have become rows.
  void read_addend(const Shape& shape, const Shape& y) {
    const Stack own = stored(shape);
    Shape strides(y.size(), 0);
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[shape.size() - 1 - d] != 1)
        strides[y.size() - 1 - d] = own.strides[shape.size() - 1 - d];
    const bool has_columns = out_.n == (y.empty() ? 1 : y.back());
    if (out_.batch.empty()) {
      out_.addend_column = has_columns && !strides.empty() ? strides.back() : 0;
      const Shape rows(strides.begin(), strides.end() - (strides.empty() || !has_columns ? 0 : 1));
      const Shape extents(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(rows.size()));
      const Shape dense = stored(extents).strides;
      if (std::all_of(rows.begin(), rows.end(), [](int64_t stride) { return stride == 0; })) return;
      const int64_t unit = rows.back();
      for (size_t d = 0; d < rows.size(); ++d)
        if (extents[d] != 1 && rows[d] != dense[d] * unit)
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
  double count = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  for (const int64_t extent : batch) count *= static_cast<double>(extent);
  return count;
}

Product read_product(const MatchGraph& graph) { return Reader(graph).read(); }

std::string c_prelude() {
  return R"(#include <stdint.h>
void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
void cblas_dgemm(int, int, int, int, int, int, double, const double*, int, const double*, int, double, double*, int);
void openblas_set_num_threads(int);
int openblas_get_num_threads(void);
enum { TENON_BLAS_ROWS = 101, TENON_BLAS_PLAIN = 111, TENON_BLAS_TRANSPOSED = 112 };
)";
}

std::string c_function(const std::string& symbol, const MatchGraph& graph, const Product& product) {
  const char* type = product.dtype == "float32" ? "float" : "double";
  const auto name = [&](int value) { return fmt::format("i{}", graph[value].input); };
  std::string out = fmt::format("int32_t {}(", symbol);
  for (size_t i = 0; i < graph.inputs.size(); ++i) out += fmt::format("const {}* i{}, ", type, i);
  out += fmt::format("{}* y, int32_t threads) {{\n", type);
  out +=
      "  const int before = openblas_get_num_threads();\n"
      "  if (before != threads) openblas_set_num_threads(threads);\n";
  std::string offset_a, offset_b, offset_addend, offset_y;
  int64_t stride_y = product.m * product.n;
  for (size_t d = product.batch.size(); d-- > 0;) {
    const auto term = [&](std::string& text, int64_t stride) {
      if (stride != 0) text += fmt::format(" + b{} * {}", d, stride);
    };
    term(offset_a, product.stride_a[d]);
    term(offset_b, product.stride_b[d]);
    term(offset_addend, product.stride_addend[d]);
    term(offset_y, stride_y);
    stride_y *= product.batch[d];
  }
  for (size_t d = 0; d < product.batch.size(); ++d)
    out += fmt::format("  for (int64_t b{0} = 0; b{0} < {1}; ++b{0})\n", d, product.batch[d]);
  out += "  {\n";
  out += fmt::format("    {}* to = y{};\n", type, offset_y);
  if (product.addend >= 0)
    out += fmt::format(
        "    const {}* from = {}{};\n"
        "    for (int64_t r = 0; r < {}; ++r)\n"
        "      for (int64_t c = 0; c < {}; ++c) to[r * {} + c] = from[r * {} + c * {}];\n",
        type, name(product.addend), offset_addend, product.m, product.n, product.n,
        product.addend_row, product.addend_column);
  const auto form = [](bool is_transposed) {
    return is_transposed ? "TENON_BLAS_TRANSPOSED" : "TENON_BLAS_PLAIN";
  };
  out += fmt::format(
      "    cblas_{}gemm(TENON_BLAS_ROWS, {}, {}, {}, {}, {}, {:a}, {}{}, {}, {}{}, {}, {}, to, "
      "{});\n  }}\n",
      product.dtype == "float32" ? "s" : "d", form(product.transposes_a),
      form(product.transposes_b), product.m, product.n, product.k, product.alpha, name(product.a),
      offset_a, product.lda, name(product.b), offset_b, product.ldb, product.addend >= 0 ? 1 : 0,
      product.n);
  return out + "  if (before != threads) openblas_set_num_threads(before);\n  return 0;\n}\n";
}

}  // namespace tenon::backend::blas
