// SPDX-License-Identifier: Apache-2.0
// Small networks of awkward sizes for every machine of the list, against the interpreter.
#include <gtest/gtest.h>

#include <map>

#include "run.h"
#include "tenon/backend/llvm/host.h"
#include "tenon/driver/compare.h"
#include "tenon/driver/compiler.h"
#include "tenon/driver/executable.h"
#include "tenon/driver/verify.h"
#include "tenon/graph/transforms.h"
#include "tenon/script/parser.h"
#include "tenon/support/remarks.h"

namespace tenon::testing_targets {
namespace {

// Operators of one kind: parameters and values in the order in which they are written.
class Network {
 public:
  /// `float32` where `dtype` is not given; names of constants start with w, of indices with i.
  std::string param(char kind, const std::string& shape, const std::string& dtype = "float32") {
    const std::string name = kind + std::to_string(count_++);
    params_ +=
        fmt::format("{}{}: R.Tensor({}, \"{}\")", params_.empty() ? "" : ", ", name, shape, dtype);
    return name;
  }
  std::string input(const std::string& shape, const std::string& dtype = "float32") {
    return param('x', shape, dtype);
  }
  std::string weight(const std::string& shape, const std::string& dtype = "float32") {
    return param('w', shape, dtype);
  }
  std::string value(const std::string& expression) {
    const std::string name = "v" + std::to_string(count_++);
    body_ += fmt::format("            {} = {}\n", name, expression);
    return name;
  }
  void output(const std::string& expression) { outputs_.push_back(value(expression)); }

  IRModule module() const {
    std::string names;
    for (const std::string& name : outputs_) names += name + ", ";
    const std::string text =
        "@I.ir_module\nclass Module:\n    @R.function\n    def main(" + params_ + "):\n" +
        (params_.find("\"n\"") != std::string::npos ? "        n = T.int64()\n" : "") +
        "        with R.dataflow():\n" + body_ + "            R.output(" +
        names.substr(0, names.size() - 2) + ")\n        return (" + names + ")\n";
    IRModule module = script::parse_module(text);
    std::map<std::string, Ref<TensorData>> weights;
    for (const Port& port : signature_of(module).inputs)
      if (port.name[0] == 'w') weights[port.name] = elements(port, {});
    module = graph::bind_params(std::move(module), weights);
    verify_module(module);
    return module;
  }

  /// Elements for a parameter; indices run below 7, and 8 bits are any.
  static Ref<TensorData> elements(const Port& port, const std::map<std::string, int64_t>& symbols) {
    return random_elements(port.dtype, shape_of(port, symbols, 1),
                           static_cast<unsigned>(std::stoi(port.name.substr(1))),
                           port.dtype.bits == 8 ? 256 : 7);
  }

 private:
  int count_ = 0;
  std::string params_, body_;
  std::vector<std::string> outputs_;
};

// Columns around multiples of the vectors and of the tiles of every machine.
constexpr int kColumns[] = {1, 2, 7, 8, 9, 15, 17, 31, 33, 41, 47, 49, 64, 65, 97};

Network packed_products() {
  Network n;
  const std::string x = n.input("(5, 24)"), row = n.input("(1, 24)");
  for (const int columns : kColumns) {
    const std::string w = n.weight(fmt::format("(24, {})", columns));
    n.output(fmt::format("R.matmul({}, {})", x, w));
    n.output(fmt::format("R.nn.relu(R.add(R.matmul({}, {}), {}))", row, w,
                         n.weight(fmt::format("({},)", columns))));
  }
  return n;
}

Network products_of_inputs() {
  Network n;
  for (const int columns : {1, 9, 17, 33, 49}) {
    n.output(fmt::format("R.matmul({}, {})", n.input("(2, 7, 19)"),
                         n.input(fmt::format("(2, 19, {})", columns))));
    n.output(fmt::format("R.matmul({}, R.permute_dims({}, axes=[0, 2, 1]))", n.input("(2, 6, 21)"),
                         n.input(fmt::format("(2, {}, 21)", columns))));
  }
  n.output(fmt::format("R.matmul({}, {})", n.input("(13,)"), n.weight("(13, 33)")));
  n.output(fmt::format("R.matmul({}, {})", n.input("(3, 1, 4, 10)"), n.weight("(5, 10, 17)")));
  return n;
}

Network symbolic_products() {
  Network n;
  const std::string x = n.input("(\"n\", 20)");
  for (const int columns : {1, 17, 33, 49})
    n.output(fmt::format("R.matmul({}, {})", x, n.weight(fmt::format("(20, {})", columns))));
  n.output(fmt::format("R.matmul({}, {})", n.input("(3, 20)"), n.input("(20, \"n\")")));
  n.output(fmt::format("R.nn.softmax({}, axis=-1)", n.input("(3, \"n\")")));
  n.output(fmt::format("R.sum({}, axis=[0])", x));
  return n;
}

struct Window {
  int in, out, size, kernel, stride, pad, dilation, groups;
};

Network convolutions() {
  Network n;
  for (const Window& c : {Window{3, 17, 9, 3, 1, 1, 1, 1}, Window{17, 5, 7, 1, 1, 0, 1, 1},
                          Window{16, 33, 8, 3, 2, 1, 1, 1}, Window{5, 24, 9, 3, 1, 2, 2, 1},
                          Window{8, 12, 7, 3, 1, 1, 1, 4}, Window{34, 34, 6, 3, 2, 0, 1, 2},
                          Window{24, 49, 5, 5, 1, 2, 1, 1}}) {
    const std::string w =
        n.weight(fmt::format("({}, {}, {}, {})", c.out, c.in / c.groups, c.kernel, c.kernel));
    n.output(fmt::format(
        "R.nn.relu(R.add(R.nn.conv2d({}, {}, strides=[{s}, {s}], padding=[{p}, {p}, {p}, {p}], "
        "dilation=[{d}, {d}], groups={}), {}))",
        n.input(fmt::format("(1, {}, {}, {})", c.in, c.size, c.size + 2)), w, c.groups,
        n.weight(fmt::format("(1, {}, 1, 1)", c.out)), fmt::arg("s", c.stride),
        fmt::arg("p", c.pad), fmt::arg("d", c.dilation)));
  }
  n.output(fmt::format("R.nn.conv1d({}, {}, padding=[1, 1])", n.input("(2, 6, 20)"),
                       n.weight("(9, 6, 3)")));
  return n;
}

/// Convolutions whose results are joined: where they lie in the whole, and where they cannot.
Network joined_convolutions() {
  Network n;
  const auto conv = [&](const std::string& x, int in, int out, int kernel) {
    const std::string w = n.weight(fmt::format("({}, {}, {}, {})", out, in, kernel, kernel));
    return n.value(
        fmt::format("R.nn.relu(R.add(R.nn.conv2d({}, {}, padding=[{p}, {p}, {p}, {p}]), {}))", x, w,
                    n.weight(fmt::format("(1, {}, 1, 1)", out)), fmt::arg("p", kernel / 2)));
  };
  const auto join = [&](const std::string& parts) {
    return n.value(fmt::format("R.concat(({}), axis=1)", parts));
  };
  const std::string x = n.input("(1, 16, 7, 9)");
  // Branches, each part read once; then one of them inside of the next whole.
  const std::string a = join(conv(x, 16, 16, 1) + ", " + conv(x, 16, 32, 3));
  const std::string b = join(a + ", " + conv(x, 16, 16, 3));
  n.output(fmt::format("R.nn.max_pool2d({}, pool_size=[2, 2])", conv(b, 64, 16, 1)));
  // A part that the next one is computed from.
  const std::string c = conv(x, 16, 32, 3), d = conv(c, 32, 16, 1);
  n.output(conv(join(c + ", " + d), 48, 16, 3));
  // The same part twice, one that is read later, an input, channels that fill no block.
  const std::string e = conv(x, 16, 16, 1), f = conv(x, 16, 16, 3);
  n.output(conv(join(e + ", " + e), 32, 16, 1));
  n.output(fmt::format("R.add({}, {})", conv(join(f + ", " + conv(x, 16, 16, 1)), 32, 16, 1), f));
  n.output(conv(join(x + ", " + conv(x, 16, 16, 1)), 32, 16, 1));
  n.output(join(conv(x, 16, 10, 1) + ", " + conv(x, 16, 7, 3)));
  // Several images, and a result of the program.
  const std::string y = n.input("(2, 16, 4, 4)");
  n.output(conv(join(conv(y, 16, 16, 1) + ", " + conv(y, 16, 16, 3)), 32, 16, 1));
  n.output(join(conv(x, 16, 16, 1) + ", " + conv(x, 16, 32, 3)));
  return n;
}

Network depthwise_convolutions() {
  Network n;
  for (const Window& c : {Window{17, 17, 9, 3, 1, 1, 1, 17}, Window{33, 33, 8, 3, 2, 1, 1, 33},
                          Window{8, 8, 11, 5, 1, 2, 1, 8}, Window{24, 24, 9, 3, 1, 2, 2, 24}})
    n.output(fmt::format(
        "R.nn.relu(R.nn.conv2d({}, {}, strides=[{s}, {s}], padding=[{p}, {p}, {p}, {p}], "
        "dilation=[{d}, {d}], groups={}))",
        n.input(fmt::format("(1, {}, {}, {})", c.in, c.size, c.size)),
        n.weight(fmt::format("({}, 1, {}, {})", c.in, c.kernel, c.kernel)), c.groups,
        fmt::arg("s", c.stride), fmt::arg("p", c.pad), fmt::arg("d", c.dilation)));
  n.output(
      fmt::format("R.nn.conv2d_transpose({}, {}, strides=[2, 2], padding=[1, 1, 1, 1], "
                  "output_padding=[1, 1])",
                  n.input("(1, 9, 5, 5)"), n.weight("(9, 17, 3, 3)")));
  n.output(fmt::format("R.nn.conv2d_transpose({}, {}, strides=[2, 2], groups=2)",
                       n.input("(1, 8, 4, 5)"), n.weight("(8, 5, 2, 2)")));
  return n;
}

Network windows_and_reductions() {
  Network n;
  const std::string x = n.input("(1, 17, 9, 11)");
  n.output(fmt::format(
      "R.nn.max_pool2d({}, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1])", x));
  n.output(fmt::format(
      "R.nn.avg_pool2d({}, pool_size=[3, 3], strides=[1, 1], padding=[1, 1, 1, 1])", x));
  n.output(fmt::format("R.nn.max_pool2d({}, pool_size=[2, 2], strides=[2, 2], ceil_mode=True)", x));
  n.output(fmt::format("R.mean({}, axis=[2, 3], keepdims=True)", x));
  for (const char* axes : {"[0]", "[1]", "[2]", "[0, 2]", "[1, 2]"}) {
    const std::string y = n.input("(5, 7, 33)");
    n.output(fmt::format("R.sum({}, axis={})", y, axes));
    n.output(fmt::format("R.max({}, axis={}, keepdims=True)", y, axes));
  }
  const std::string y = n.input("(3, 5, 17)");
  n.output(fmt::format("R.nn.softmax({}, axis=-1)", y));
  n.output(fmt::format("R.nn.softmax({}, axis=1)", y));
  n.output(fmt::format("R.nn.layer_norm({}, {}, {}, axes=[-1])", y, n.weight("(17,)"),
                       n.weight("(17,)")));
  n.output(fmt::format("R.cumsum({}, axis=1)", y));
  n.output(fmt::format("R.argmax({}, axis=2)", y));
  return n;
}

Network moved_elements() {
  Network n;
  const std::string x = n.input("(5, 7, 33)"), y = n.input("(5, 1, 33)");
  for (const char* axes : {"[2, 1, 0]", "[1, 0, 2]", "[0, 2, 1]", "[2, 0, 1]"})
    n.output(fmt::format("R.permute_dims({}, axes={})", x, axes));
  n.output(fmt::format("R.concat(({}, {}), axis=1)", x, y));
  n.output(fmt::format("R.concat(({}, {}), axis=2)", x, n.input("(5, 7, 1)")));
  n.output(fmt::format("R.take({}, {}, axis=1)", x, n.param('i', "(9,)", "int64")));
  n.output(
      fmt::format("R.take({}, {}, axis=0)", n.input("(7, 17)"), n.param('i', "(3, 2)", "int32")));
  n.output(
      fmt::format("R.strided_slice({}, axes=[1, 2], begin=[1, 30], end=[6, 3], "
                  "strides=[2, -3])",
                  x));
  n.output(fmt::format("R.reshape({}, R.shape([7, 165]))", x));
  n.output(fmt::format("R.add(R.multiply({}, {}), R.tanh({}))", x, y, y));
  n.output(fmt::format("R.where(R.greater({}, {}), {}, {})", x, y, y, x));
  return n;
}

Network other_dtypes() {
  Network n;
  const std::string h = n.input("(5, 24)", "float16");
  for (const char* columns : {"1", "17", "33"}) {
    n.output(
        fmt::format("R.matmul({}, {})", h, n.weight(fmt::format("(24, {})", columns), "float16")));
    n.output(fmt::format("R.matmul({}, {}, out_dtype=\"int32\")", n.input("(5, 24)", "int8"),
                         n.weight(fmt::format("(24, {})", columns), "int8")));
    n.output(fmt::format("R.matmul({}, {})", n.input("(3, 10)", "int32"),
                         n.weight(fmt::format("(10, {})", columns), "int32")));
  }
  n.output(fmt::format("R.nn.softmax({}, axis=-1)", h));
  n.output(fmt::format("R.astype({}, dtype=\"float32\")", h));
  n.output(
      fmt::format("R.floor_divide({}, {})", n.input("(19,)", "int32"), "R.const(3, \"int32\")"));
  return n;
}

// Reductions that fill words of four, and that do not; numbers at the ends of both ranges.
Network quantised_products() {
  Network n;
  for (const char* dtype : {"uint8", "int8"}) {
    const std::string x = n.input("(5, 24)", dtype), row = n.input("(1, 68)", dtype);
    for (const int columns : {2, 15, 17, 49, 97}) {
      n.output(fmt::format("R.matmul({}, {}, out_dtype=\"int32\")", x,
                           n.weight(fmt::format("(24, {})", columns), "int8")));
      n.output(fmt::format("R.matmul({}, {}, out_dtype=\"int32\")", row,
                           n.weight(fmt::format("(68, {})", columns), "int8")));
    }
    n.output(fmt::format("R.matmul({}, {}, out_dtype=\"int32\")", n.input("(3, 22)", dtype),
                         n.weight("(22, 17)", "int8")));
    n.output(fmt::format("R.matmul({}, {}, out_dtype=\"int32\")", n.input("(\"n\", 20)", dtype),
                         n.weight("(20, 33)", "int8")));
  }
  return n;
}

Network quantised_convolutions() {
  Network n;
  for (const char* dtype : {"uint8", "int8"})
    for (const Window& c : {Window{3, 17, 9, 3, 2, 1, 1, 1}, Window{17, 16, 7, 1, 1, 0, 1, 1},
                            Window{16, 33, 8, 3, 2, 1, 1, 1}, Window{8, 24, 9, 3, 1, 2, 2, 1},
                            Window{32, 32, 6, 3, 1, 1, 1, 2}, Window{33, 33, 8, 3, 1, 1, 1, 33},
                            Window{24, 16, 5, 5, 1, 2, 1, 1}, Window{1, 16, 9, 3, 1, 1, 1, 1}}) {
      const std::string w = n.weight(
          fmt::format("({}, {}, {}, {})", c.out, c.in / c.groups, c.kernel, c.kernel), "int8");
      const std::string sums = n.value(fmt::format(
          "R.nn.conv2d({}, {}, {}, strides=[{s}, {s}], padding=[{p}, {p}, {p}, {p}], "
          "dilation=[{d}, {d}], groups={}, out_dtype=\"int32\")",
          n.input(fmt::format("(1, {}, {}, {})", c.in, c.size, c.size + 2), dtype), w,
          fmt::format("R.const({}, \"{}\")", dtype[0] == 'u' ? 131 : -7, dtype), c.groups,
          fmt::arg("s", c.stride), fmt::arg("p", c.pad), fmt::arg("d", c.dilation)));
      n.output(fmt::format(
          "R.quantize(R.multiply(R.astype({}, dtype=\"float32\"), {}), R.const(1, \"float32\"), "
          "R.const(3, \"{}\"), out_dtype=\"{}\")",
          sums, "R.const(0.001953125, \"float32\")", dtype, dtype));
    }
  return n;
}

/// Widths of whole tiles, of several tiles, of vectors and columns that are left over, and of these alone.
Network recurrences() {
  Network n;
  struct Shape {
    int batch, hidden;
  };
  for (const Shape& s :
       {Shape{1, 3}, Shape{1, 17}, Shape{2, 28}, Shape{1, 100}, Shape{4, 64}, Shape{1, 320}}) {
    const std::string x = n.input(fmt::format("(3, {}, 5)", s.batch)),
                      h = n.input(fmt::format("(1, {}, {})", s.batch, s.hidden));
    const auto operands = [&](int gates) {
      const int rows = gates * s.hidden;
      return fmt::format("{}, {}, {}, {}, {}", x, n.weight(fmt::format("(1, {}, 5)", rows)),
                         n.weight(fmt::format("(1, {}, {})", rows, s.hidden)),
                         n.weight(fmt::format("(1, {})", 2 * rows)), h);
    };
    const std::string hidden = fmt::format("hidden_size={}", s.hidden);
    n.output(n.value(fmt::format("R.nn.lstm({}, {}, {})", operands(4), h, hidden)) + "[0]");
    n.output(n.value(fmt::format("R.nn.gru({}, {})", operands(3), hidden)) + "[0]");
    n.output(n.value(fmt::format("R.nn.rnn({}, {})", operands(1), hidden)) + "[0]");
  }
  return n;
}

struct Kind {
  const char* name;
  Network (*make)();
};
constexpr Kind kKinds[] = {{"packed_products", packed_products},
                           {"products_of_inputs", products_of_inputs},
                           {"symbolic_products", symbolic_products},
                           {"convolutions", convolutions},
                           {"joined_convolutions", joined_convolutions},
                           {"depthwise_convolutions", depthwise_convolutions},
                           {"windows_and_reductions", windows_and_reductions},
                           {"recurrences", recurrences},
                           {"moved_elements", moved_elements},
                           {"other_dtypes", other_dtypes},
                           {"quantised_products", quantised_products},
                           {"quantised_convolutions", quantised_convolutions}};

// float32: products and sums of at most a few hundred terms below 1 in another order; float16: its
// own precision, of results below 8.
double tolerance_of(DType dtype) { return dtype == kFloat16 ? 4e-3 : 1e-5; }

class Networks : public testing::TestWithParam<std::tuple<Kind, TestTarget>> {};

TEST_P(Networks, GiveTheInterpretersNumbers) {
  const auto& [kind, description] = GetParam();
  const IRModule module = kind.make().module();
  const Target target = resolve(std::string(description.description));
  for (const int64_t size : {1, 5, 18}) {
    const Signature signature = signature_of(module);
    Tensors inputs;
    bool is_symbolic = false;
    for (const Port& port : signature.inputs) {
      for (const PortDim& dim : port.dims) is_symbolic = is_symbolic || !dim.symbol.empty();
      inputs.push_back(Network::elements(port, {{"n", size}}));
    }
    if (!is_symbolic && size > 1) break;
    const Tensors expected = interpreted(module)->run(inputs);
    const Tensors got = run_for(module, target, inputs);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      const DType dtype = expected[i]->dtype;
      const auto wrong =
          dtype.is_float() ? difference(*got[i], *expected[i], Tolerance{0, 0, tolerance_of(dtype)})
                           : exact_difference(*got[i], *expected[i]);
      EXPECT_FALSE(wrong) << "output " << i << ", n = " << size << ": " << *wrong;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Networks,
                         testing::Combine(testing::ValuesIn(kKinds), testing::ValuesIn(kTargets)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param).name,
                                              std::get<1>(info.param).name);
                         });

class Joins : public testing::TestWithParam<TestTarget> {};

TEST_P(Joins, AreElided) {
  CompileRequest request;
  request.target = resolve(std::string(GetParam().description));
  const LoweredModule lowered = lower(joined_convolutions().module(), request);
  int elided = 0;
  for (const Remark& remark : lowered.pipeline.remarks)
    elided += remark.pass == "ElideConcats" && remark.verdict == "elided";
  // The two of the first branches, and the one of which a part is computed from another.
  EXPECT_GE(elided, 3);
}

INSTANTIATE_TEST_SUITE_P(Targets, Joins, testing::ValuesIn(kTargets),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Machines, ThatDoNotRunHereAreNamed) {
  for (const TestTarget& one : kTargets) {
    const Target target = resolve(std::string(one.description));
    if (way_of(target) == Way::kInterpreted)
      GTEST_SKIP() << one.description << " is interpreted: this host has no "
                   << llvm_backend::missing_here(target) << " and no emulator of it";
  }
}

}  // namespace
}  // namespace tenon::testing_targets
