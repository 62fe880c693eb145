// SPDX-License-Identifier: Apache-2.0
#include "definitions.h"

#include <functional>

#include "tenon/graph/builder.h"
#include "tenon/graph/transforms.h"

namespace tenon::fuzz {

namespace {

using graph::BlockBuilder;
using graph::Value;
using Shape = std::vector<int64_t>;

/// What a definition draws its sizes and attributes from, and the function that it builds.
class Sketch {
 public:
  Sketch(Random& random, IRModule& module) : random(random), builder(module) {
    if (random.one_in(6)) symbol_ = Var::size("n");
  }

  /// A parameter; where the function is symbolic, some dimension of extent `open` is `n`.
  Value input(Shape shape, DType dtype = kFloat32, int64_t open = -1) {
    std::vector<Expr> dims = to_exprs(shape);
    for (Expr& dim : dims)
      if (symbol_ && open > 0 && is_int(dim, open)) {
        dim = symbol_;
        break;
      }
    params.push_back(make<graph::Var>("x" + std::to_string(params.size()),
                                      make<graph::TensorType>(dims, dtype)));
    return params.back();
  }
  int64_t size(int64_t most = 6) { return random.from(1, most); }
  Shape shape(size_t rank, int64_t most = 6) {
    Shape out;
    for (size_t i = 0; i < rank; ++i) out.push_back(size(most));
    return out;
  }
  static AttrValue ints(Shape values) { return AttrValue(std::move(values)); }

  Random& random;
  BlockBuilder builder;
  std::vector<Ref<graph::Var>> params;

 private:
  Ref<Var> symbol_;
};

struct Definition {
  std::string name;
  std::function<Value(Sketch&, const std::function<void()>& begin)> build;
  double tolerance = 0;
  bool indices = false;
};

constexpr double kClose = 1e-5;  // of float32 sums in another order, and of functions of these

Value unary_chain(Sketch& s, Value x) {
  if (s.random.coin()) x = s.builder.op("nn.relu", {x});
  if (s.random.one_in(3)) x = s.builder.op("negative", {x});
  if (s.random.one_in(3)) x = s.builder.op("multiply", {x, x});
  return x;
}

Value convolution(Sketch& s, const std::function<void()>& begin) {
  const int64_t groups = s.random.one_in(4) ? 2 : 1, kernel = s.random.from(1, 3);
  const int64_t in = s.size(3) * groups, out = s.size(3) * groups, pad = s.random.from(0, 1);
  const int64_t stride = s.random.from(1, 2), dilation = s.random.from(1, 2);
  const int64_t side = (kernel - 1) * dilation + s.random.from(1, 4);
  const Value x = s.input({s.size(2), in, side, side + s.random.from(0, 2)});
  const Value w = s.input({out, in / groups, kernel, kernel});
  const bool bias = s.random.coin();
  const Value b = bias ? s.input({1, out, 1, 1}) : Value();
  begin();
  Value y = s.builder.op("nn.conv2d", {x, w},
                         {{"padding", Sketch::ints({pad, pad, pad, pad})},
                          {"strides", Sketch::ints({stride, stride})},
                          {"dilation", Sketch::ints({dilation, dilation})},
                          {"groups", groups}});
  if (bias) y = s.builder.op("add", {y, b});
  return s.random.coin() ? s.builder.op("nn.relu", {y}) : y;
}

/// The convolution that Schedule::winograd takes.
Value convolution_of_three(Sketch& s, const std::function<void()>& begin) {
  const int64_t in = s.size(3), pad = s.random.from(0, 1);
  const int64_t rows = 3 - pad + s.random.from(0, 4), columns = 3 - pad + s.random.from(0, 6);
  const Value x = s.input({s.size(2), in, rows, columns});
  const Value w = s.input({s.size(3), in, 3, 3});
  begin();
  const Value y =
      s.builder.op("nn.conv2d", {x, w}, {{"padding", Sketch::ints({pad, pad, pad, pad})}});
  return s.random.coin() ? s.builder.op("nn.relu", {y}) : y;
}

Value pool(Sketch& s, const std::function<void()>& begin, const char* op) {
  const int64_t window = s.random.from(1, 3), pad = window > 1 ? s.random.from(0, 1) : 0;
  const int64_t stride = s.random.from(1, 2), side = window + s.random.from(0, 4);
  const Value x = s.input({1, s.size(3), side, side + s.random.from(0, 1)});
  begin();
  return s.builder.op(op, {x},
                      {{"pool_size", Sketch::ints({window, window})},
                       {"strides", Sketch::ints({stride, stride})},
                       {"padding", Sketch::ints({pad, pad, pad, pad})}});
}

Value reduction(Sketch& s, const std::function<void()>& begin) {
  const size_t rank = s.random.below(3) + 1;
  const int64_t n = s.size(9);
  Shape shape = s.shape(rank, 7);
  shape[s.random.below(rank)] = n;
  const Value x = s.input(shape, kFloat32, n);
  Shape axes;
  for (size_t d = 0; d < rank; ++d)
    if (s.random.coin()) axes.push_back(static_cast<int64_t>(d));
  if (axes.empty()) axes.push_back(static_cast<int64_t>(s.random.below(rank)));
  begin();
  static const std::vector<const char*> kOps = {"sum", "max", "min", "prod", "mean"};
  const Value y = s.builder.op(s.random.pick(kOps), {unary_chain(s, x)},
                               {{"axis", Sketch::ints(axes)}, {"keepdims", s.random.coin()}});
  return s.random.coin() ? s.builder.op("nn.relu", {y}) : y;
}

const std::vector<Definition>& definitions() {
  static const std::vector<Definition> kAll = {
      {"elementwise",
       [](Sketch& s, auto& begin) {
         const Shape shape = s.shape(1 + s.random.below(3), 7);
         const Value x = s.input(shape, kFloat32, shape[0]);
         const Value y = s.input(s.random.coin() ? shape : Shape{1}, kFloat32, shape[0]);
         begin();
         static const std::vector<const char*> kOps = {"add", "subtract", "multiply", "maximum"};
         return unary_chain(s, s.builder.op(s.random.pick(kOps), {unary_chain(s, x), y}));
       }},
      {"matmul",
       [](Sketch& s, auto& begin) {
         const int64_t m = s.size(7), k = s.size(7), n = s.size(9);
         const Value a = s.input({m, k}, kFloat32, m), b = s.input({k, n});
         const bool bias = s.random.coin();
         const Value c = bias ? s.input({n}) : Value();
         begin();
         Value y = s.builder.op("matmul", {a, b});
         if (bias) y = s.builder.op("add", {y, c});
         return s.random.coin() ? s.builder.op("nn.relu", {y}) : y;
       }},
      {"batched_matmul",
       [](Sketch& s, auto& begin) {
         const int64_t h = s.size(3), m = s.size(4), k = s.size(5), n = s.size(5);
         const Value a = s.input({h, m, k}), b = s.input({h, k, n});
         begin();
         return s.builder.op("matmul", {a, b});
       }},
      {"conv2d", convolution},
      {"conv2d_3x3", convolution_of_three},
      {"conv2d_transpose",
       [](Sketch& s, auto& begin) {
         const int64_t k = s.random.from(1, 3), stride = s.random.from(1, 2), in = s.size(3);
         const Value x = s.input({1, in, s.size(3), s.size(4)}), w = s.input({in, s.size(3), k, k});
         begin();
         return s.builder.op("nn.conv2d_transpose", {x, w},
                             {{"strides", Sketch::ints({stride, stride})}});
       }},
      {"max_pool", [](Sketch& s, auto& begin) { return pool(s, begin, "nn.max_pool2d"); }},
      {"avg_pool", [](Sketch& s, auto& begin) { return pool(s, begin, "nn.avg_pool2d"); }},
      {"softmax",
       [](Sketch& s, auto& begin) {
         const int64_t n = s.size(6);
         const Value x = s.input({n, s.size(7)}, kFloat32, n);
         begin();
         return s.builder.op(s.random.coin() ? "nn.softmax" : "nn.log_softmax", {x},
                             {{"axis", s.random.from(0, 1)}});
       },
       kClose},
      {"layer_norm",
       [](Sketch& s, auto& begin) {
         const int64_t m = s.size(5), n = s.random.from(2, 8);
         const Value x = s.input({m, n}, kFloat32, m), g = s.input({n}), b = s.input({n});
         begin();
         return s.random.coin()
                    ? s.builder.op("nn.layer_norm", {x, g, b}, {{"axes", Sketch::ints({-1})}})
                    : s.builder.op("nn.rms_norm", {x, g}, {{"axes", Sketch::ints({-1})}});
       },
       1e-4},  // of nearly equal elements the variance is small
      {"reduction", reduction},
      {"argmax",
       [](Sketch& s, auto& begin) {
         const Value x = s.input({s.size(5), s.size(7)});
         begin();
         return s.builder.op(s.random.coin() ? "argmax" : "argmin", {x},
                             {{"axis", Sketch::ints({s.random.from(0, 1)})}});
       }},
      {"transpose",
       [](Sketch& s, auto& begin) {
         const size_t rank = 2 + s.random.below(2);
         const Shape shape = s.shape(rank);
         const Value x = s.input(shape, kFloat32, shape[0]);
         Shape axes;
         for (size_t d = 0; d < rank; ++d) axes.push_back(static_cast<int64_t>(d));
         s.random.shuffle(axes);
         begin();
         return unary_chain(
             s, s.builder.op("permute_dims", {unary_chain(s, x)}, {{"axes", Sketch::ints(axes)}}));
       }},
      {"concat",
       [](Sketch& s, auto& begin) {
         const int64_t n = s.size(5);
         const Value x = s.input({n, s.size(5)}), y = s.input({n, s.size(4)});
         begin();
         return s.builder.op("concat", {make<graph::Tuple>(std::vector<Value>{x, y})},
                             {{"axis", int64_t{1}}});
       }},
      {"slice",
       [](Sketch& s, auto& begin) {
         const int64_t n = s.random.from(3, 9), from = s.random.from(0, 2);
         const Value x = s.input({s.size(4), n});
         begin();
         const auto list = [](Shape v) { return make<graph::ShapeExpr>(to_exprs(v)); };
         return unary_chain(s, s.builder.op("strided_slice", {x, list({1}), list({from}), list({n}),
                                                              list({s.random.from(1, 2)})}));
       }},
      {"take",
       [](Sketch& s, auto& begin) {
         const Value x = s.input({s.random.from(2, 5), s.random.from(2, 5)});
         const Value i = s.input({s.size(4)}, kInt64);
         begin();
         return unary_chain(s, s.builder.op("take", {x, i}, {{"axis", s.random.from(0, 1)}}));
       },
       0, true},
      {"cumsum",
       [](Sketch& s, auto& begin) {
         const Value x = s.input({s.size(5), s.size(6)});
         begin();
         return s.builder.op("cumsum", {x}, {{"axis", s.random.from(0, 1)}});
       }},
      {"pad",
       [](Sketch& s, auto& begin) {
         const Value x = s.input({s.size(5), s.size(5)});
         begin();
         return unary_chain(
             s, s.builder.op(
                    "nn.pad", {unary_chain(s, x)},
                    {{"pad_width", Sketch::ints({s.random.from(0, 2), s.random.from(0, 2),
                                                 s.random.from(0, 2), s.random.from(0, 2)})}}));
       }},
      {"reshape",
       [](Sketch& s, auto& begin) {
         const int64_t a = s.size(5), b = s.size(5);
         const Value x = s.input({a, b});
         begin();
         return unary_chain(
             s, s.builder.op("reshape",
                             {unary_chain(s, x), make<graph::ShapeExpr>(to_exprs(Shape{a * b}))}));
       }},
      {"attention_scores",
       [](Sketch& s, auto& begin) {
         const int64_t m = s.size(4), k = s.size(4), n = s.size(5);
         const Value q = s.input({m, k}), t = s.input({k, n});
         begin();
         return s.builder.op("nn.softmax", {s.builder.op("matmul", {q, t})});
       },
       kClose},
      {"where",
       [](Sketch& s, auto& begin) {
         const Shape shape = s.shape(2);
         const Value c = s.input(shape, kBool), x = s.input(shape), y = s.input(shape);
         begin();
         return unary_chain(s, s.builder.op("where", {c, x, y}));
       }},
      {"cast",
       [](Sketch& s, auto& begin) {
         const Value x = s.input(s.shape(2, 7), s.random.coin() ? kFloat32 : kInt64);
         begin();
         static const std::vector<DType> kTypes = {kInt32, kInt64, kFloat64, kFloat16};
         return s.builder.op("astype", {x}, {{"dtype", s.random.pick(kTypes)}});
       }},
  };
  return kAll;
}

}  // namespace

std::vector<std::string> definition_names() {
  std::vector<std::string> out;
  for (const Definition& definition : definitions()) out.push_back(definition.name);
  return out;
}

Kernel random_definition(Random& random) {
  const Definition& definition = definitions()[random.below(definitions().size())];
  IRModule module;
  Sketch sketch(random, module);
  const auto begin = [&]() {
    sketch.builder.begin_function(sketch.params);
    sketch.builder.begin_dataflow();
  };
  try {
    const Value result = definition.build(sketch, begin);
    sketch.builder.end_dataflow();
    module.set("main", sketch.builder.end_function(result));
    module = graph::legalize_ops(std::move(module));
  } catch (const CompileError&) {
    return {};  // symbolic sizes that do not go together
  }
  if (random.below(4) != 0) module = graph::fuse_tir(graph::fuse_ops(std::move(module)));
  std::vector<Ref<tir::PrimFunc>> kernels;
  for (const auto& [name, function] : module.functions())
    if (const auto kernel = cast<tir::PrimFunc>(function)) kernels.push_back(kernel);
  Kernel out{definition.name, {}, definition.tolerance, definition.indices};
  if (!kernels.empty()) out.function = random.pick(kernels);
  return out;
}

}  // namespace tenon::fuzz
