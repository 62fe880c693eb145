// SPDX-License-Identifier: Apache-2.0
// Products in terms of cblas_sgemm, compiled by the system's compiler and compared with loops.
#include "tenon/backend/blas/product.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <optional>
#include <random>

#include "tenon/backend/blas/backend.h"
#include "tenon/backend/c_compiler.h"

namespace tenon::backend::blas {
namespace {

using Shape = std::vector<int64_t>;
using Data = std::vector<float>;

// matmul(a, b), perhaps of permuted operands, times `scale`, plus an addend.
struct Case {
  Shape a, b, y;
  Shape permutation_a = {}, permutation_b = {};
  float scale = 1;
  std::optional<Shape> addend = {};
};

int64_t count(const Shape& shape) {
  int64_t all = 1;
  for (const int64_t extent : shape) all *= extent;
  return all;
}

// The element at `at`, which is aligned at the right and broadcasts.
float element(const Data& data, const Shape& shape, const Shape& at) {
  int64_t index = 0;
  for (size_t d = 0; d < shape.size(); ++d)
    index = index * shape[d] + (shape[d] == 1 ? 0 : at[at.size() - shape.size() + d]);
  return data[static_cast<size_t>(index)];
}

std::pair<Data, Shape> permuted(const Data& data, const Shape& shape, const Shape& axes) {
  if (axes.empty()) return {data, shape};
  Shape to;
  for (const int64_t axis : axes) to.push_back(shape[static_cast<size_t>(axis)]);
  Data out(data.size());
  for (size_t i = 0; i < out.size(); ++i) {
    Shape at(shape.size());
    auto rest = static_cast<int64_t>(i);
    for (size_t d = to.size(); d-- > 0; rest /= to[d])
      at[static_cast<size_t>(axes[d])] = rest % to[d];
    out[i] = element(data, shape, at);
  }
  return {out, to};
}

struct Fixture {
  MatchGraph graph;
  std::vector<Data> data;
  float scale = 1;

  Shape symbolic;  // extents that stand for dimensions known at run time only

  int add_value(const Shape& shape, bool is_input) {
    MatchGraph::Value value;
    value.dtype = "float32";
    value.shape = shape;
    for (int64_t& extent : value.shape) {
      const auto symbol = std::find(symbolic.begin(), symbolic.end(), extent);
      const bool is_symbol = symbol != symbolic.end();
      value.symbols.push_back(is_symbol ? static_cast<int>(symbol - symbolic.begin()) : -1);
      if (is_symbol) extent = TENON_SYMBOLIC;
    }
    if (is_input) {
      value.input = static_cast<int>(graph.inputs.size());
      graph.inputs.push_back(static_cast<int>(graph.values.size()));
      std::mt19937 engine(static_cast<unsigned>(value.input));
      std::uniform_real_distribution<float> between(-1, 1);
      data.emplace_back(static_cast<size_t>(count(shape)));
      for (float& item : data.back()) item = between(engine);
    }
    graph.values.push_back(value);
    return static_cast<int>(graph.values.size()) - 1;
  }
  int add_operator(const std::string& name, const std::vector<int>& args, const Shape& shape,
                   const Shape& axes = {}) {
    MatchGraph::Operator op;
    op.name = name;
    for (const int arg : args) {
      op.args.emplace_back();
      op.args.back().kind = MatchGraph::Argument::Kind::kValue;
      op.args.back().value = arg;
    }
    if (!axes.empty()) op.attributes["axes"] = {true, axes, 0, {}};
    op.result = add_value(shape, false);
    graph.operators.push_back(op);
    return op.result;
  }

  explicit Fixture(const Case& c, Shape symbols = {})
      : scale(c.scale), symbolic(std::move(symbols)) {
    graph.symbols = static_cast<int>(symbolic.size());
    const int a = add_value(c.a, true), b = add_value(c.b, true);
    const auto view = [&](int value, const Shape& shape, const Shape& axes) {
      if (axes.empty()) return value;
      Shape to;
      for (const int64_t axis : axes) to.push_back(shape[static_cast<size_t>(axis)]);
      return add_operator("permute_dims", {value}, to, axes);
    };
    const int left = view(a, c.a, c.permutation_a), right = view(b, c.b, c.permutation_b);
    int y = add_operator("matmul", {left, right}, c.y);
    if (c.scale != 1) {
      const int factor = add_value({}, false);
      graph.values.back().data = &scale;
      y = add_operator("multiply", {y, factor}, c.y);
    }
    if (c.addend) y = add_operator("add", {add_value(*c.addend, true), y}, c.y);
    graph.outputs = {y};
  }
};

Data expected_of(const Case& c, const Fixture& fixture) {
  auto [a, a_shape] = permuted(fixture.data[0], c.a, c.permutation_a);
  auto [b, b_shape] = permuted(fixture.data[1], c.b, c.permutation_b);
  const bool has_rows = a_shape.size() > 1, has_columns = b_shape.size() > 1;
  Data y(static_cast<size_t>(count(c.y)));
  for (size_t i = 0; i < y.size(); ++i) {
    Shape at(c.y.size());
    auto rest = static_cast<int64_t>(i);
    for (size_t d = at.size(); d-- > 0; rest /= c.y[d]) at[d] = rest % c.y[d];
    const auto batch_end = at.end() - has_rows - has_columns;
    double sum = 0;
    for (int64_t k = 0; k < a_shape.back(); ++k) {
      Shape at_a(at.begin(), batch_end), at_b(at.begin(), batch_end);
      if (has_rows) at_a.push_back(at[at.size() - 1 - has_columns]);
      at_a.push_back(k);
      at_b.push_back(k);
      if (has_columns) at_b.push_back(at.back());
      sum += static_cast<double>(element(a, a_shape, at_a)) *
             static_cast<double>(element(b, b_shape, at_b));
    }
    sum *= static_cast<double>(c.scale);
    if (c.addend) sum += static_cast<double>(element(fixture.data[2], *c.addend, at));
    y[i] = static_cast<float>(sum);
  }
  return y;
}

#ifdef TENON_HAS_OPENBLAS

class Products : public testing::TestWithParam<Case> {};

TEST_P(Products, AreRightAndTheSameAtEveryNumberOfThreads) {
  const Case c = GetParam();
  Fixture fixture(c);
  const TemporaryFolder folder;
  std::ofstream(folder.file("f.c"))
      << c_prelude() << c_function("f", fixture.graph, read_product(fixture.graph));
  run_c_compiler({"-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC",
                  folder.file("f.c"), "-o", folder.file("f.so"), "-lopenblas"},
                 "test");
  void* library = dlopen(folder.file("f.so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  void* f = dlsym(library, "f");
  const Data expected = expected_of(c, fixture);
  Data once;
  for (const int threads : {1, 2, 3}) {
    Data y(expected.size(), NAN);
    const float *a = fixture.data[0].data(), *b = fixture.data[1].data();
    if (c.addend)
      reinterpret_cast<int32_t (*)(const float*, const float*, const float*, float*, int32_t)>(f)(
          a, b, fixture.data[2].data(), y.data(), threads);
    else
      reinterpret_cast<int32_t (*)(const float*, const float*, float*, int32_t)>(f)(a, b, y.data(),
                                                                                    threads);
    if (once.empty()) once = y;
    EXPECT_EQ(y, once) << threads << " threads";
    for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], 1e-4) << "at " << i;
  }
}

// Extents of `shape` are those of `like` that are symbols; each run has other values for them.
struct SymbolicCase {
  Case shape;
  Shape like;
  std::vector<Shape> runs;
};

Case with_values(Case c, const Shape& like, const Shape& values) {
  const auto put = [&](Shape& shape) {
    for (int64_t& extent : shape) {
      const auto symbol = std::find(like.begin(), like.end(), extent);
      if (symbol != like.end()) extent = values[static_cast<size_t>(symbol - like.begin())];
    }
  };
  for (Shape* shape : {&c.a, &c.b, &c.y}) put(*shape);
  if (c.addend) put(*c.addend);
  return c;
}

class SymbolicProducts : public testing::TestWithParam<SymbolicCase> {};

TEST_P(SymbolicProducts, AreRightForEverySize) {
  const SymbolicCase c = GetParam();
  const Fixture made(c.shape, c.like);
  const Product product = read_product(made.graph);
  EXPECT_LT(product.flop(), 0);
  const TemporaryFolder folder;
  const bool has_addend = c.shape.addend.has_value();
  std::string symbols;
  for (size_t i = 0; i < c.like.size(); ++i) symbols += "n[" + std::to_string(i) + "], ";
  std::ofstream(folder.file("f.c"))
      << c_prelude() << c_function("f", made.graph, product)
      << "int32_t call(const float* const* x, float* y, const int64_t* n, int32_t threads) {\n"
      << "  return f(x[0], x[1], " << (has_addend ? "x[2], " : "") << "y, " << symbols
      << "threads);\n}\n";
  run_c_compiler({"-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC",
                  folder.file("f.c"), "-o", folder.file("f.so"), "-lopenblas"},
                 "test");
  void* library = dlopen(folder.file("f.so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto call =
      reinterpret_cast<int32_t (*)(const float* const*, float*, const int64_t*, int32_t)>(
          dlsym(library, "call"));
  for (const Shape& values : c.runs) {
    SCOPED_TRACE(testing::PrintToString(values));
    const Case now = with_values(c.shape, c.like, values);
    const Fixture fixture(now);
    const Data expected = expected_of(now, fixture);
    std::vector<const float*> inputs;
    for (const Data& data : fixture.data) inputs.push_back(data.data());
    for (const int threads : {1, 2}) {
      Data y(expected.size() + 1, NAN);
      ASSERT_EQ(call(inputs.data(), y.data(), values.data(), threads), 0);
      for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(y[i], expected[i], 1e-4) << i;
      EXPECT_TRUE(std::isnan(y.back())) << "wrote behind its output";
    }
  }
  const auto too_large = [&](size_t symbol) {
    Shape values(c.like.size(), 1);
    values[symbol] = int64_t{1} << 40;
    const float* const nothing[] = {nullptr, nullptr, nullptr};
    return call(nothing, nullptr, values.data(), 1);
  };
  // What is no batch is handed to the library as an `int`.
  for (size_t i = 0; i < c.like.size(); ++i) {
    const Extent symbol = Extent::of_symbol(static_cast<int>(i));
    for (const Extent& extent : {product.m, product.n, product.k})
      if (extent == symbol) EXPECT_EQ(too_large(i), kTooLarge);
  }
}

const std::vector<Shape> kOfOne = {{1}, {2}, {17}, {0}};
const std::vector<Shape> kOfTwo = {{1, 1}, {1, 6}, {5, 1}, {3, 8}, {0, 4}, {4, 0}, {40, 33}};

INSTANTIATE_TEST_SUITE_P(
    Kinds, SymbolicProducts,
    testing::Values(
        // Rows, columns, what is summed; vectors.
        SymbolicCase{{{5, 7}, {7, 3}, {5, 3}}, {5}, kOfOne},
        SymbolicCase{{{5, 7}, {7, 3}, {5, 3}, {}, {}, 1, Shape{3}}, {3}, kOfOne},
        SymbolicCase{{{5, 7}, {7, 3}, {5, 3}}, {7}, kOfOne},
        SymbolicCase{{{5, 7}, {7, 3}, {5, 3}, {}, {}, 2, Shape{5, 1}}, {7}, kOfOne},
        SymbolicCase{{{7}, {7, 3}, {3}}, {7}, kOfOne},
        SymbolicCase{{{5, 7}, {7}, {5}}, {5, 7}, kOfTwo},
        // A batch that becomes rows, with addends of each form.
        SymbolicCase{{{2, 5, 7}, {7, 3}, {2, 5, 3}, {}, {}, 1, Shape{3}}, {2, 5}, kOfTwo},
        SymbolicCase{{{2, 5, 7}, {7, 3}, {2, 5, 3}, {}, {}, 1, Shape{2, 5, 3}}, {2, 5}, kOfTwo},
        SymbolicCase{{{2, 5, 7}, {7, 3}, {2, 5, 3}, {}, {}, 1, Shape{2, 5, 1}}, {2, 5}, kOfTwo},
        // Transposed operands: attention, recurrences.
        SymbolicCase{{{7, 5}, {3, 7}, {5, 3}, {1, 0}, {1, 0}, 2, Shape{5, 1}}, {5, 3}, kOfTwo},
        SymbolicCase{{{2, 5, 3, 8}, {2, 5, 3, 8}, {2, 3, 5, 5}, {0, 2, 1, 3}, {0, 2, 3, 1}, 0.5F},
                     {2, 5},
                     kOfTwo},
        SymbolicCase{{{2, 3, 5, 7}, {2, 7, 3, 8}, {2, 3, 5, 8}, {}, {0, 2, 1, 3}}, {5, 7}, kOfTwo},
        SymbolicCase{{{6, 2, 7}, {7, 3}, {2, 6, 3}, {1, 0, 2}, {}, 1, Shape{3}}, {6, 2}, kOfTwo},
        // Batches that broadcast.
        SymbolicCase{
            {{4, 1, 5, 7}, {6, 7, 2}, {4, 6, 5, 2}, {}, {}, 1, Shape{5, 1}}, {4, 6}, kOfTwo},
        SymbolicCase{
            {{2, 5, 7}, {2, 7, 3}, {2, 5, 3}, {}, {}, 0.5F, Shape{2, 1, 3}}, {2, 5}, kOfTwo}));

INSTANTIATE_TEST_SUITE_P(
    Kinds, Products,
    testing::Values(Case{{5, 7}, {7, 3}, {5, 3}}, Case{{7}, {7, 3}, {3}}, Case{{5, 7}, {7}, {5}},
                    Case{{7}, {7}, {}}, Case{{2, 5, 7}, {7, 3}, {2, 5, 3}, {}, {}, 1, Shape{3}},
                    Case{{2, 5, 7}, {2, 7, 3}, {2, 5, 3}, {}, {}, 0.5F, Shape{2, 1, 3}},
                    Case{{4, 1, 5, 7}, {3, 7, 2}, {4, 3, 5, 2}, {}, {}, 1, Shape{5, 1}},
                    Case{{7, 5}, {3, 7}, {5, 3}, {1, 0}, {1, 0}, 2, Shape{5, 1}},
                    Case{{1, 6, 2, 8}, {1, 6, 2, 8}, {1, 2, 6, 6}, {0, 2, 1, 3}, {0, 2, 3, 1}},
                    Case{{65, 300}, {300, 130}, {65, 130}, {}, {}, 1, Shape{65, 130}},
                    Case{{1, 256}, {256, 1000}, {1, 1000}, {}, {}, 1, Shape{1000}},
                    Case{{131, 90}, {90, 203}, {131, 203}},
                    // Sums that the library takes in parts.
                    Case{{12, 1000}, {1000, 100}, {12, 100}},
                    Case{{1000, 12}, {100, 1000}, {12, 100}, {1, 0}, {1, 0}, 1, Shape{12, 1}}));

#else

TEST(Products, AreThere) { GTEST_SKIP() << "this build has no OpenBLAS"; }

#endif

TEST(ProductRefusals, SayWhy) {
  const auto code_of = [](const Case& c, const std::function<void(Fixture&)>& change = {}) {
    Fixture fixture(c);
    if (change) change(fixture);
    try {
      (void)read_product(fixture.graph);
    } catch (const Refusal& refusal) {
      return refusal.code;
    }
    return std::string("taken");
  };
  const Case plain{{5, 7}, {7, 3}, {5, 3}};
  EXPECT_EQ(code_of(plain), "taken");
  EXPECT_EQ(code_of(plain, [](Fixture& f) { f.graph.values[0].dtype = "int8"; }), "dtype");
  EXPECT_EQ(code_of(plain, [](Fixture& f) { f.graph.values[0].shape[0] = TENON_SYMBOLIC; }),
            "symbolic");  // a dimension that is no argument
  EXPECT_EQ(code_of(plain, [](Fixture& f) { f.graph.values[0].shape[0] = 0; }), "shape");
  EXPECT_EQ(code_of(plain, [](Fixture& f) { f.graph.operators[0].name = "einsum"; }), "operator");
  EXPECT_EQ(code_of({{2, 3, 4, 5}, {5, 3}, {4, 2, 3, 3}, {2, 0, 1, 3}}), "taken");
  EXPECT_EQ(code_of({{2, 3, 4}, {2, 5}, {4, 3, 5}, {2, 1, 0}}), "layout");
  EXPECT_EQ(code_of({{2, 3, 4, 5}, {4, 2}, {5, 2, 3, 2}, {3, 0, 1, 2}}), "layout");
  EXPECT_EQ(code_of({{2, 3, 5}, {5, 4}, {2, 3, 4}, {}, {}, 1, Shape{2, 1, 1}}), "shape");
}

TEST(ProductRefusals, SizesThatAreEqualAtRunTimeOnly) {
  const auto code_of = [](const Case& c, const Shape& symbols) {
    try {
      (void)read_product(Fixture(c, symbols).graph);
    } catch (const Refusal& refusal) {
      return refusal.code;
    }
    return std::string("taken");
  };
  EXPECT_EQ(code_of({{5, 7}, {7, 3}, {5, 3}}, {5, 7, 3}), "taken");
  EXPECT_EQ(code_of({{5, 7}, {8, 3}, {5, 3}}, {7, 8}), "symbolic");
  EXPECT_EQ(code_of({{5, 7}, {8, 3}, {5, 3}}, {7}), "symbolic");
  EXPECT_EQ(code_of({{2, 5, 7}, {4, 7, 3}, {2, 5, 3}}, {2, 4}), "symbolic");
  EXPECT_EQ(code_of({{5, 7}, {7, 3}, {5, 3}, {}, {}, 1, Shape{4, 3}}, {5, 4}), "symbolic");
  EXPECT_EQ(code_of({{5, 7}, {7, 3}, {5, 3}, {}, {}, 1, Shape{5, 4}}, {4}), "symbolic");
  EXPECT_EQ(code_of({{2, 5, 7}, {7, 3}, {2, 5, 3}, {}, {}, 1, Shape{5, 3}}, {2, 5}), "shape");
  EXPECT_EQ(code_of({{2, 3, 4, 5}, {4, 2}, {5, 2, 3, 2}, {3, 0, 1, 2}}, {3}), "layout");
}

}  // namespace
}  // namespace tenon::backend::blas
