// SPDX-License-Identifier: Apache-2.0
// Functions of oneDNN calls, compiled by the system's compiler and compared with loops.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <random>

#include "tenon/backend/c_compiler.h"
#include "tenon/backend/dnnl/backend.h"

#ifdef TENON_HAS_DNNL

#include "tenon/backend/dnnl/emit.h"

namespace tenon::backend::dnnl {
namespace {

using Shape = std::vector<int64_t>;
using Data = std::vector<float>;

Data random_data(size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> between(-1, 1);
  Data data(count);
  for (float& item : data) item = between(engine);
  return data;
}

// A graph under construction, with the meaning of each operator beside it.
struct Network {
  MatchGraph graph;
  std::vector<Data> data;  // of each value

  int value(const Shape& shape) {
    MatchGraph::Value made;
    made.dtype = "float32";
    made.shape = shape;
    graph.values.push_back(made);
    const int id = static_cast<int>(graph.values.size()) - 1;
    data.emplace_back(static_cast<size_t>(graph.elements(id)));
    return id;
  }
  int input(const Shape& shape, bool is_constant = false) {
    const int id = value(shape);
    data.back() = random_data(data.back().size(), static_cast<unsigned>(id));
    auto& made = graph.values.back();
    made.input = static_cast<int>(graph.inputs.size());
    graph.inputs.push_back(id);
    if (is_constant) constants.push_back(id);
    return id;
  }
  int constant(const Shape& shape) { return input(shape, true); }
  int scalar(float number) {
    const int id = input({}, true);
    data[static_cast<size_t>(id)] = {number};
    return id;
  }
  int add(const std::string& name, const std::vector<int>& args, const Shape& shape,
          std::map<std::string, Shape> attributes = {}) {
    MatchGraph::Operator op;
    op.name = name;
    for (const int arg : args) {
      MatchGraph::Argument made;
      made.kind = MatchGraph::Argument::Kind::kValue;
      made.value = arg;
      op.args.push_back(made);
    }
    for (auto& [key, ints] : attributes) {
      op.attributes[key] = {true, ints, ints.empty() ? 0.0 : static_cast<double>(ints[0]), {}};
    }
    op.result = value(shape);
    graph.operators.push_back(op);
    return op.result;
  }
  Data& operator[](int id) { return data[static_cast<size_t>(id)]; }
  std::vector<int> constants;
};

struct Compiled {
  TemporaryFolder folder;
  void* library = nullptr;
  Region region;
  std::vector<std::string> packed;

  explicit Compiled(Network& network) {
    for (const int id : network.constants)
      network.graph.values[static_cast<size_t>(id)].data = network[id].data();
    region = plan_region(network.graph);
    std::ofstream(folder.file("f.c")) << c_prelude() << c_function("f", network.graph, region);
    run_c_compiler({"-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC",
                    folder.file("f.c"), "-o", folder.file("f.so"), "-ldnnl", "-l:libgomp.so.1"},
                   "test");
    library = dlopen(folder.file("f.so").c_str(), RTLD_NOW);
    EXPECT_NE(library, nullptr) << dlerror();
  }
  ~Compiled() { dlclose(library); }

  std::vector<Data> run(Network& network, int threads) {
    const MatchGraph& graph = network.graph;
    std::vector<std::string> constants;
    constants.reserve(graph.inputs.size());
    std::vector<void*> pointers;
    for (const int id : graph.inputs) {
      const auto packing = region.packings.find(graph[id].input);
      void* pointer = network[id].data();
      if (packing != region.packings.end()) {
        constants.push_back(pack_constant(packing->second, pointer));
        pointer = constants.back().data();
      }
      pointers.push_back(pointer);
    }
    std::vector<Data> outputs;
    for (const int id : graph.outputs) outputs.emplace_back(network[id].size(), NAN);
    for (Data& output : outputs) pointers.push_back(output.data());
    std::vector<char> scratch(static_cast<size_t>(region.scratch_bytes), '\x7f');
    if (!scratch.empty()) pointers.push_back(scratch.data());
    EXPECT_EQ(call(pointers, threads), 0);
    return outputs;
  }

  int32_t call(const std::vector<void*>& p, int32_t threads) const {
    void* f = dlsym(library, "f");
    using P = void*;
    switch (p.size()) {
      case 2: return reinterpret_cast<int32_t (*)(P, P, int32_t)>(f)(p[0], p[1], threads);
      case 3: return reinterpret_cast<int32_t (*)(P, P, P, int32_t)>(f)(p[0], p[1], p[2], threads);
      case 4:
        return reinterpret_cast<int32_t (*)(P, P, P, P, int32_t)>(f)(p[0], p[1], p[2], p[3],
                                                                     threads);
      case 5:
        return reinterpret_cast<int32_t (*)(P, P, P, P, P, int32_t)>(f)(p[0], p[1], p[2], p[3],
                                                                        p[4], threads);
      case 6:
        return reinterpret_cast<int32_t (*)(P, P, P, P, P, P, int32_t)>(f)(p[0], p[1], p[2], p[3],
                                                                           p[4], p[5], threads);
      case 7:
        return reinterpret_cast<int32_t (*)(P, P, P, P, P, P, P, int32_t)>(f)(
            p[0], p[1], p[2], p[3], p[4], p[5], p[6], threads);
      case 8:
        return reinterpret_cast<int32_t (*)(P, P, P, P, P, P, P, P, int32_t)>(f)(
            p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], threads);
      case 9:
        return reinterpret_cast<int32_t (*)(P, P, P, P, P, P, P, P, P, int32_t)>(f)(
            p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], threads);
      default: ADD_FAILURE() << p.size() << " pointers"; return -1;
    }
  }
};

struct ConvSizes {
  int64_t n, c, h, w, o, k, stride, before, after, dilation, groups;
};

void convolve(const ConvSizes& s, const Data& x, const Data& w, Data& y, int64_t oh, int64_t ow) {
  const int64_t per_group = s.c / s.groups;
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t o = 0; o < s.o; ++o)
      for (int64_t i = 0; i < oh; ++i)
        for (int64_t j = 0; j < ow; ++j) {
          double sum = 0;
          for (int64_t c = 0; c < per_group; ++c)
            for (int64_t a = 0; a < s.k; ++a)
              for (int64_t b = 0; b < s.k; ++b) {
                const int64_t yy = i * s.stride - s.before + a * s.dilation;
                const int64_t xx = j * s.stride - s.before + b * s.dilation;
                if (yy < 0 || xx < 0 || yy >= s.h || xx >= s.w) continue;
                const int64_t channel = o / (s.o / s.groups) * per_group + c;
                sum += static_cast<double>(
                           x[static_cast<size_t>(((n * s.c + channel) * s.h + yy) * s.w + xx)]) *
                       static_cast<double>(
                           w[static_cast<size_t>(((o * per_group + c) * s.k + a) * s.k + b)]);
              }
          y[static_cast<size_t>(((n * s.o + o) * oh + i) * ow + j)] = static_cast<float>(sum);
        }
}

void expect_near(const Data& found, const Data& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 2e-5 * (1 + std::abs(expected[i]))) << "at " << i;
}

// Right, and the same bits at each number of threads.
void expect_runs(Network& network) {
  Compiled compiled(network);
  const std::vector<Data> once = compiled.run(network, 1);
  for (size_t i = 0; i < once.size(); ++i) expect_near(once[i], network[network.graph.outputs[i]]);
  for (const int threads : {2, 3, 40}) EXPECT_EQ(compiled.run(network, threads), once) << threads;
}

class Convolutions : public testing::TestWithParam<ConvSizes> {};

// relu(conv + bias + residual), then pooled over all of the image: a region with blocked layouts
// inside.
TEST_P(Convolutions, WithPostOperationsAndPooling) {
  const ConvSizes s = GetParam();
  Network net;
  const int64_t reach = (s.k - 1) * s.dilation + 1;
  const int64_t oh = (s.h + s.before + s.after - reach) / s.stride + 1;
  const int64_t ow = (s.w + s.before + s.after - reach) / s.stride + 1;
  const int x = net.input({s.n, s.c, s.h, s.w}), rest = net.input({s.n, s.o, oh, ow});
  const int w = net.constant({s.o, s.c / s.groups, s.k, s.k}), b = net.constant({1, s.o, 1, 1});
  const Shape shape = {s.n, s.o, oh, ow};
  const int conv = net.add("nn.conv2d", {x, w}, shape,
                           {{"strides", {s.stride, s.stride}},
                            {"dilation", {s.dilation, s.dilation}},
                            {"groups", {s.groups}},
                            {"padding", {s.before, s.before, s.after, s.after}}});
  const int biased = net.add("add", {b, conv}, shape);
  const int sum = net.add("add", {biased, rest}, shape);
  const int relu = net.add("nn.relu", {sum}, shape);
  const int mean = net.add("mean", {relu}, {s.n, s.o, 1, 1}, {{"axis", {2, 3}}});
  net.graph.outputs = {relu, mean};
  convolve(s, net[x], net[w], net[conv], oh, ow);
  for (size_t i = 0; i < net[conv].size(); ++i) {
    const size_t image = i / static_cast<size_t>(oh * ow);
    const float v = net[conv][i] + net[b][image % static_cast<size_t>(s.o)] + net[rest][i];
    net[relu][i] = std::max(v, 0.0F);
    net[mean][image] += net[relu][i] / static_cast<float>(oh * ow);
  }
  expect_runs(net);
}

INSTANTIATE_TEST_SUITE_P(Forms, Convolutions,
                         testing::Values(ConvSizes{1, 3, 15, 17, 20, 3, 2, 1, 1, 1, 1},
                                         ConvSizes{2, 16, 9, 9, 16, 3, 1, 1, 1, 1, 16},
                                         ConvSizes{1, 32, 10, 10, 32, 1, 1, 0, 0, 1, 1},
                                         ConvSizes{1, 8, 12, 12, 12, 3, 1, 0, 2, 2, 4},
                                         ConvSizes{1, 64, 14, 14, 40, 5, 3, 2, 1, 1, 1}));

// A chain whose intermediate values stay in the library's layouts, with a residual in place.
TEST(Regions, ResidualBlock) {
  Network net;
  const Shape shape = {1, 32, 8, 8};
  const int x = net.input(shape), w1 = net.constant({32, 32, 3, 3}),
            w2 = net.constant({32, 32, 3, 3});
  const std::map<std::string, Shape> attributes = {{"padding", {1, 1, 1, 1}}};
  const int a = net.add("nn.conv2d", {x, w1}, shape, attributes);
  const int ra = net.add("nn.relu", {a}, shape);
  const int b = net.add("nn.conv2d", {ra, w2}, shape, attributes);
  const int sum = net.add("add", {ra, b}, shape);
  const int out = net.add("nn.relu", {sum}, shape);
  net.graph.outputs = {out};
  const ConvSizes s{1, 32, 8, 8, 32, 3, 1, 1, 1, 1, 1};
  convolve(s, net[x], net[w1], net[a], 8, 8);
  for (size_t i = 0; i < net[a].size(); ++i) net[ra][i] = std::max(net[a][i], 0.0F);
  convolve(s, net[ra], net[w2], net[b], 8, 8);
  for (size_t i = 0; i < net[a].size(); ++i) net[out][i] = std::max(net[ra][i] + net[b][i], 0.0F);
  expect_runs(net);
}

// Values stay in blocks of channels through it: it is not brought into an order and back.
TEST(Regions, DepthwiseBetweenPointwise) {
  Network net;
  const Shape shape = {1, 32, 10, 10};
  const int x = net.input(shape), w1 = net.constant({32, 32, 1, 1}),
            w2 = net.constant({32, 1, 3, 3}), w3 = net.constant({32, 32, 1, 1});
  const int a = net.add("nn.conv2d", {x, w1}, shape);
  const int ra = net.add("nn.relu", {a}, shape);
  const int b =
      net.add("nn.conv2d", {ra, w2}, shape, {{"padding", {1, 1, 1, 1}}, {"groups", {32}}});
  const int rb = net.add("nn.relu", {b}, shape);
  const int c = net.add("nn.conv2d", {rb, w3}, shape);
  net.graph.outputs = {c};
  const ConvSizes pointwise{1, 32, 10, 10, 32, 1, 1, 0, 0, 1, 1};
  convolve(pointwise, net[x], net[w1], net[a], 10, 10);
  for (size_t i = 0; i < net[a].size(); ++i) net[ra][i] = std::max(net[a][i], 0.0F);
  convolve({1, 32, 10, 10, 32, 3, 1, 1, 1, 1, 32}, net[ra], net[w2], net[b], 10, 10);
  for (size_t i = 0; i < net[b].size(); ++i) net[rb][i] = std::max(net[b][i], 0.0F);
  convolve(pointwise, net[rb], net[w3], net[c], 10, 10);
  expect_runs(net);
  const Region region = plan_region(net.graph);
  std::vector<int> kinds;
  for (const tenon_dnnl_step& step : region.steps) kinds.push_back(step.kind);
  // At the ends, where values are plain, the library may ask for a reorder.
  while (!kinds.empty() && kinds.front() == TENON_DNNL_REORDER) kinds.erase(kinds.begin());
  while (!kinds.empty() && kinds.back() == TENON_DNNL_REORDER) kinds.pop_back();
  EXPECT_EQ(kinds, std::vector<int>(3, TENON_DNNL_CONVOLUTION));
}

// Scores of attention: a product of transposed operands, whose sums the library's threads would
// share in parts that depend on how many they are.
TEST(Regions, ScoresOfHeads) {
  constexpr int64_t kLength = 256, kHeads = 4, kSize = 32;
  Network net;
  const int x = net.input({kLength, kHeads, kSize}), y = net.input({kLength, kHeads, kSize});
  const int rows = net.add("permute_dims", {x}, {kHeads, kLength, kSize}, {{"axes", {1, 0, 2}}});
  const int columns = net.add("permute_dims", {y}, {kHeads, kSize, kLength}, {{"axes", {1, 2, 0}}});
  const int scores = net.add("matmul", {rows, columns}, {kHeads, kLength, kLength});
  net.graph.outputs = {scores};
  for (int64_t h = 0; h < kHeads; ++h)
    for (int64_t i = 0; i < kLength; ++i)
      for (int64_t j = 0; j < kLength; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < kSize; ++k)
          sum += static_cast<double>(net[x][static_cast<size_t>((i * kHeads + h) * kSize + k)]) *
                 static_cast<double>(net[y][static_cast<size_t>((j * kHeads + h) * kSize + k)]);
        net[scores][static_cast<size_t>((h * kLength + i) * kLength + j)] = static_cast<float>(sum);
      }
  expect_runs(net);
}

// A scale for each channel, as squeeze-and-excitation has it: computed in the blocks of channels
// that the convolution gives. Of two layouts the library has only its reference implementation.
TEST(Regions, ScaleOfChannels) {
  Network net;
  const Shape shape = {1, 32, 6, 6};
  const int x = net.input(shape), scale = net.input({1, 32, 1, 1}),
            w = net.constant({32, 32, 3, 3});
  const int conv = net.add("nn.conv2d", {x, w}, shape, {{"padding", {1, 1, 1, 1}}});
  const int mean = net.add("mean", {conv}, {1, 32, 1, 1}, {{"axis", {2, 3}}});
  const int factor = net.add("multiply", {mean, scale}, {1, 32, 1, 1});
  const int scaled = net.add("multiply", {conv, factor}, shape);
  net.graph.outputs = {scaled};
  convolve({1, 32, 6, 6, 32, 3, 1, 1, 1, 1, 1}, net[x], net[w], net[conv], 6, 6);
  for (size_t i = 0; i < net[conv].size(); ++i) net[mean][i / 36] += net[conv][i] / 36;
  for (size_t c = 0; c < 32; ++c) net[factor][c] = net[mean][c] * net[scale][c];
  for (size_t i = 0; i < net[conv].size(); ++i) net[scaled][i] = net[conv][i] * net[factor][i / 36];
  expect_runs(net);
  for (const std::string& name : plan_region(net.graph).implementations)
    EXPECT_EQ(name.find("ref"), std::string::npos) << name;
}

TEST(Regions, ProductWithBiasAndGelu) {
  Network net;
  const int x = net.input({2, 7, 24}), w = net.constant({24, 40}), b = net.constant({40});
  const Shape shape = {2, 7, 40};
  const int product = net.add("matmul", {x, w}, shape);
  const int biased = net.add("add", {b, product}, shape);
  const int divisor = net.scalar(1.4142135F), one = net.scalar(1), half = net.scalar(0.5F);
  const int scaled = net.add("divide", {biased, divisor}, shape);
  const int erf = net.add("erf", {scaled}, shape);
  const int plus = net.add("add", {erf, one}, shape);
  const int times = net.add("multiply", {biased, plus}, shape);
  const int out = net.add("multiply", {times, half}, shape);
  net.graph.outputs = {out};
  net.graph.parts = {
      {{{"gelu_source", biased}, {"erf_divisor", divisor}, {"one", one}, {"half", half}}, {out}}};
  for (int64_t r = 0; r < 14; ++r)
    for (int64_t c = 0; c < 40; ++c) {
      double sum = static_cast<double>(net[b][static_cast<size_t>(c)]);
      for (int64_t k = 0; k < 24; ++k)
        sum += static_cast<double>(net[x][static_cast<size_t>(r * 24 + k)]) *
               static_cast<double>(net[w][static_cast<size_t>(k * 40 + c)]);
      net[out][static_cast<size_t>(r * 40 + c)] =
          static_cast<float>(sum * (1 + std::erf(sum / std::sqrt(2.0))) / 2);
    }
  expect_runs(net);
  EXPECT_EQ(group(net.graph).size(), 1U);
}

// (x - mean) / sqrt(variance + epsilon) * scale + shift by channels, behind what `x` is.
int batch_norm(Network& net, int x, bool has_constants) {
  const Shape shape = net.graph[x].shape, channels = {shape[1]};
  std::vector<int> args = {x};
  for (int i = 0; i < 4; ++i) args.push_back(net.input(channels, has_constants));
  for (float& variance : net[args[4]]) variance = std::abs(variance) + 0.1F;
  const int y = net.add("nn.batch_norm_result", args, shape, {{"axis", {1}}});
  net.graph.operators.back().attributes["epsilon"] = {true, {}, 1e-3, {}};
  const auto inner = net[x].size() / static_cast<size_t>(shape[0] * shape[1]);
  for (size_t i = 0; i < net[x].size(); ++i) {
    const size_t c = i / inner % static_cast<size_t>(shape[1]);
    net[y][i] =
        (net[x][i] - net[args[3]][c]) / std::sqrt(net[args[4]][c] + 1e-3F) * net[args[1]][c] +
        net[args[2]][c];
  }
  return y;
}
int relu(Network& net, int x) {
  const int y = net.add("nn.relu", {x}, net.graph[x].shape);
  for (size_t i = 0; i < net[x].size(); ++i) net[y][i] = std::max(net[x][i], 0.0F);
  return y;
}

class BatchNorms : public testing::TestWithParam<std::tuple<Shape, bool>> {};

TEST_P(BatchNorms, AtTheInput) {
  Network net;
  const auto& [shape, has_constants] = GetParam();
  net.graph.outputs = {batch_norm(net, net.input(shape), has_constants)};
  expect_runs(net);
}

TEST_P(BatchNorms, BetweenActivations) {
  Network net;
  const auto& [shape, has_constants] = GetParam();
  net.graph.outputs = {relu(net, batch_norm(net, relu(net, net.input(shape)), has_constants))};
  expect_runs(net);
}

INSTANTIATE_TEST_SUITE_P(Forms, BatchNorms,
                         testing::Combine(testing::Values(Shape{2, 5}, Shape{1, 6, 9},
                                                          Shape{2, 16, 7, 5}, Shape{1, 3, 4, 5, 6}),
                                          testing::Bool()));

// Its source lies in a layout of the library's.
TEST(Regions, BatchNormBehindPooling) {
  Network net;
  const int x = net.input({1, 16, 8, 8}), w = net.constant({16, 16, 3, 3});
  const int conv = net.add("nn.conv2d", {x, w}, {1, 16, 8, 8}, {{"padding", {1, 1, 1, 1}}});
  convolve({1, 16, 8, 8, 16, 3, 1, 1, 1, 1, 1}, net[x], net[w], net[conv], 8, 8);
  const int pool =
      net.add("nn.max_pool2d", {conv}, {1, 16, 4, 4}, {{"pool_size", {2, 2}}, {"strides", {2, 2}}});
  for (size_t i = 0; i < net[pool].size(); ++i) {
    const size_t corner = i / 16 * 64 + i / 4 % 4 * 16 + i % 4 * 2;
    const Data& y = net[conv];
    net[pool][i] = std::max({y[corner], y[corner + 1], y[corner + 8], y[corner + 9]});
  }
  net.graph.outputs = {relu(net, batch_norm(net, pool, true))};
  expect_runs(net);
}

// With x ** 3 as such or as products; `is_bound`: the pattern has found it.
Network gelu_tanh(bool has_power, float half_number, bool is_bound) {
  Network net;
  const int a = net.input({6, 24}), w = net.constant({24, 40});
  const Shape shape = {6, 40};
  const int x = net.add("matmul", {a, w}, shape);
  const int exponent = net.scalar(3), cube_factor = net.scalar(0.044715F),
            tanh_factor = net.scalar(0.7978845608F), one = net.scalar(1),
            half = net.scalar(half_number);
  const int cube = has_power ? net.add("power", {x, exponent}, shape)
                             : net.add("multiply", {net.add("multiply", {x, x}, shape), x}, shape);
  const int scaled = net.add("multiply", {cube_factor, cube}, shape);
  const int sum = net.add("add", {x, scaled}, shape);
  const int inner = net.add("multiply", {sum, tanh_factor}, shape);
  const int tanh = net.add("tanh", {inner}, shape);
  const int plus = net.add("add", {tanh, one}, shape);
  const int out = has_power
                      ? net.add("multiply", {net.add("multiply", {x, plus}, shape), half}, shape)
                      : net.add("multiply", {net.add("multiply", {x, half}, shape), plus}, shape);
  net.graph.outputs = {out};
  if (is_bound)
    net.graph.parts = {{{{"gelu_source", x},
                         {"exponent", exponent},
                         {"cube_factor", cube_factor},
                         {"tanh_factor", tanh_factor},
                         {"one", one},
                         {"half", half}},
                        {out}}};
  for (size_t i = 0; i < net[out].size(); ++i) {
    double sums = 0;
    for (size_t k = 0; k < 24; ++k)
      sums += static_cast<double>(net[a][i / 40 * 24 + k]) *
              static_cast<double>(net[w][k * 40 + i % 40]);
    const double raised = 1 + std::tanh(0.7978845608 * (sums + 0.044715 * sums * sums * sums));
    net[out][i] = static_cast<float>(sums * raised * static_cast<double>(half_number));
  }
  return net;
}

TEST(Regions, ProductWithGeluThroughTanh) {
  for (const bool has_power : {false, true}) {
    Network net = gelu_tanh(has_power, 0.5F, true);
    expect_runs(net);  // which gives constants their data
    const auto groups = group(net.graph);
    ASSERT_EQ(groups.size(), 1U);
    ASSERT_EQ(groups[0].posts.size(), 1U);
    EXPECT_EQ(groups[0].posts[0].alg, dnnl_eltwise_gelu_tanh);
  }
}

TEST(Regions, WhatIsNearlyGeluThroughTanhIsNotTakenForIt) {
  for (const auto& [half, is_bound] : {std::pair(0.25F, true), std::pair(0.5F, false)}) {
    Network net = gelu_tanh(false, half, is_bound);
    expect_runs(net);
    for (const Group& one : group(net.graph))
      for (const Post& post : one.posts) EXPECT_NE(post.alg, dnnl_eltwise_gelu_tanh);
  }
}

TEST(Regions, RefusalsSayWhy) {
  const auto code_of = [](const std::function<void(Network&)>& build) {
    Network net;
    build(net);
    try {
      (void)plan_region(net.graph);
    } catch (const Refusal& refusal) {
      return refusal.code;
    }
    return std::string("taken");
  };
  const auto relu_of = [](Network& net, int x, const Shape& shape) {
    net.graph.outputs = {net.add("nn.relu", {x}, shape)};
  };
  const auto relu = [&](Network& net) { relu_of(net, net.input({1, 2, 3, 4}), {1, 2, 3, 4}); };
  EXPECT_EQ(code_of(relu), "taken");
  EXPECT_EQ(code_of([&](Network& net) {
              const int x = net.input({1, 2, 3, 4});
              net.graph.values[0].dtype = "float64";
              relu_of(net, x, {1, 2, 3, 4});
            }),
            "dtype");
  EXPECT_EQ(code_of([&](Network& net) {
              const int x = net.input({1, 2, 3, 4});
              net.graph.values[0].shape[0] = TENON_SYMBOLIC;
              relu_of(net, x, {1, 2, 3, 4});
            }),
            "symbolic");
  EXPECT_EQ(code_of([&](Network& net) {
              relu_of(net, net.input({1, 1, 1, 1, 1, 2, 2}), {1, 1, 1, 1, 1, 2, 2});
            }),
            "rank");
  EXPECT_EQ(code_of([&](Network& net) {
              net.graph.outputs = {net.add("nn.max_pool2d", {net.input({4, 4})}, {4, 4})};
            }),
            "rank");
  EXPECT_EQ(code_of([&](Network& net) {
              net.graph.outputs = {net.add("cumsum", {net.input({4, 4})}, {4, 4})};
            }),
            "operator");
  // It would lose NaNs.
  for (const char* name : {"maximum", "minimum"})
    EXPECT_EQ(code_of([&](Network& net) {
                const int x = net.input({1, 2, 3, 4}), y = net.input({1, 2, 3, 4});
                net.graph.outputs = {net.add(name, {x, y}, {1, 2, 3, 4})};
              }),
              "operator");
  EXPECT_EQ(code_of([&](Network& net) {
              net.graph.outputs = {
                  net.add("mean", {net.input({1, 2, 3, 4})}, {1, 3, 4}, {{"axis", {1}}})};
            }),
            "attribute");
  EXPECT_EQ(code_of([&](Network& net) {
              const int x = net.input({1, 4, 4, 8});
              const int w = net.constant({8, 8, 1, 1});
              net.graph.outputs = {net.add("nn.conv2d", {x, w}, {1, 4, 4, 8})};
              net.graph.operators[0].attributes["data_layout"] = {false, {}, 0, "NHWC"};
            }),
            "layout");
}

}  // namespace
}  // namespace tenon::backend::dnnl

#else

TEST(Dnnl, IsThere) { GTEST_SKIP() << "this build has no oneDNN"; }

#endif
