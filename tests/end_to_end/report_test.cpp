// SPDX-License-Identifier: Apache-2.0
// `tenon report` and `tenon run --profile`, over the binary.
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "command.h"

namespace {

using tenon::testing_command::CommandTest;
using tenon::testing_command::Outcome;
using tenon::testing_command::read;

constexpr const char* kDigits = "examples/digits/digits.onnx";
constexpr const char* kDigits1 = "examples/digits/digits_b1.onnx";
// What is planned differs with the host's vectors and caches.
constexpr const char* kTarget = " --target \"llvm -mcpu=haswell\"";

class ReportTest : public CommandTest {
 protected:
  ReportTest() : CommandTest("report") {}

  std::string page(const std::string& arguments) const {
    const std::string file = folder_ + "/report.html";
    const Outcome outcome = tenon("report " + arguments + " -o " + file);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return read(file);
  }
};

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

// Without what was measured.
std::string lasting(const std::string& page) {
  std::string out;
  size_t at = 0;
  while (true) {
    const size_t begin = page.find("<!--t-->", at);
    out += page.substr(at, begin - at);
    if (begin == std::string::npos) return out;
    at = page.find("<!--/t-->", begin);
    EXPECT_NE(at, std::string::npos) << "a mark without an end";
  }
}

// Elements open and close in order; attributes are quoted. Void elements and SVG's closed ones stand
// alone, and script and style hold text.
void expect_well_formed(const std::string& page) {
  const std::regex tag(
      "<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:\\s+[-a-zA-Z0-9:]+(?:=\"[^\"<]*\")?)*)\\s*(/?)>");
  const std::set<std::string> empty = {"meta", "link", "input", "br"};
  std::vector<std::string> open;
  size_t at = page.find("<html");
  while ((at = page.find('<', at)) != std::string::npos) {
    if (page.compare(at, 4, "<!--") == 0) {
      at = page.find("-->", at);
      continue;
    }
    std::smatch match;
    const std::string rest = page.substr(at, 4000);
    ASSERT_TRUE(std::regex_search(rest, match, tag, std::regex_constants::match_continuous))
        << rest.substr(0, 200);
    const std::string name = match[2];
    at += static_cast<size_t>(match.length());
    if (match[1] == "/") {
      ASSERT_FALSE(open.empty());
      ASSERT_EQ(open.back(), name) << page.substr(at - 200, 300);
      open.pop_back();
    } else if (match[4] != "/" && empty.count(name) == 0) {
      open.push_back(name);
      if (name == "script" || name == "style") at = page.find("</" + name, at);
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST_F(ReportTest, ThePageHasEverySection) {
  const std::string html = page(std::string(kDigits1) + kTarget + " --fp=strict --repeat 2");
  expect_well_formed(html);
  for (const char* section :
       {"graph", "memory", "times", "kernels", "decisions", "passes", "interface"}) {
    EXPECT_EQ(count(html, std::string("<section id=\"") + section + "\""), 1U) << section;
    EXPECT_NE(html.find(std::string("href=\"#") + section + "\""), std::string::npos) << section;
  }
  // Boxes of the graph: eight kernels, the input and the output; nine arrows between them.
  EXPECT_EQ(count(html, "<g transform="), 10U);
  EXPECT_EQ(count(html, "class=\"edge\""), 9U);
  EXPECT_EQ(count(html, "<rect class=\"m-block"), 8U);
  EXPECT_NE(html.find("peak 18688 bytes"), std::string::npos);
  EXPECT_NE(html.find("Conv  conv2"), std::string::npos);
  // Each kernel from its node to machine code.
  EXPECT_NE(html.find("after FoldBatchnormToConv2D"), std::string::npos);
  EXPECT_EQ(count(html, "TensorIR before it is scheduled"), 8U);
  EXPECT_EQ(count(html, "<summary>assembly"), 8U);
  EXPECT_NE(html.find("fn.conv2d_1:"), std::string::npos);
  EXPECT_NE(html.find("float32 (1, 1, 8, 8)"), std::string::npos);
  // Links lead somewhere.
  std::set<std::string> ids;
  const std::regex id("id=\"([^\"]+)\"");
  for (std::sregex_iterator it(html.begin(), html.end(), id), end; it != end; ++it)
    EXPECT_TRUE(ids.insert((*it)[1]).second) << (*it)[1];
  const std::regex link("href=\"#([^\"]+)\"");
  for (std::sregex_iterator it(html.begin(), html.end(), link), end; it != end; ++it)
    EXPECT_EQ(ids.count((*it)[1]), 1U) << (*it)[1];
}

TEST_F(ReportTest, ThePageNeedsNothingElse) {
  const std::string html = page(std::string(kDigits1) + " --repeat 1");
  const std::regex outside("(?:src|href|action|data)=\"(?!#|data:,\")[^\"]*\"|url\\((?!#)|@import");
  std::smatch match;
  EXPECT_FALSE(std::regex_search(html, match, outside)) << match[0];
  EXPECT_EQ(count(html, "http://") + count(html, "https://"),
            count(html, "xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_LT(html.size(), 2U << 20);
}

TEST_F(ReportTest, ThePageIsTheSameButForTimes) {
  const std::string arguments = std::string(kDigits1) + " --repeat 2";
  const std::string one = page(arguments), two = page(arguments);
  EXPECT_EQ(lasting(one), lasting(two));
  EXPECT_NE(one.find("<!--t-->"), std::string::npos);
}

TEST_F(ReportTest, TextsOfTheModelAreEscaped) {
  write("hostile.py", R"(
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        R.func_attr({"input_names": ["</script><b>in"], "output_names": ["'\"><img src=x>"]})
        with R.dataflow():
            y: R.Tensor((4, 4), "float32") = R.exp(x)
            z: R.Tensor((4, 4), "float32") = R.nn.softmax(y)
            R.output(z)
        return z
)");
  const std::string html = page(folder_ + "/hostile.py --repeat 1");
  expect_well_formed(html);
  EXPECT_EQ(html.find("<b>in"), std::string::npos);
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_EQ(count(html, "</script>"), 1U);
  EXPECT_NE(html.find("&lt;/script&gt;&lt;b&gt;in"), std::string::npos);
  EXPECT_NE(html.find("&#39;&quot;&gt;&lt;img src=x&gt;"), std::string::npos);
}

// A name of a node in the file, replaced by one of the same length.
TEST_F(ReportTest, NamesOfNodesAreEscapedEverywhere) {
  std::string model = read(std::string(TENON_SOURCE_DIR) + "/" + kDigits1);
  const std::string name = "conv2", hostile = "<i>\"&";
  ASSERT_GT(count(model, name), 0U);
  for (size_t at = 0; (at = model.find(name, at)) != std::string::npos;)
    model.replace(at, name.size(), hostile);
  write("hostile.onnx", model);
  const std::string html = page(folder_ + "/hostile.onnx --repeat 1");
  expect_well_formed(html);
  EXPECT_EQ(html.find(hostile), std::string::npos);
  EXPECT_EQ(html.find("<i>"), std::string::npos);
  // In the graph, in the times, as a story, and in decisions.
  EXPECT_GE(count(html, "&lt;i&gt;&quot;&amp;"), 6U);
}

TEST_F(ReportTest, ExplainWritesTheSamePage) {
  const std::string file = folder_ + "/explained.html";
  const Outcome outcome = tenon(std::string("explain ") + kDigits1 + " -o " + file);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(lasting(read(file)), lasting(page(kDigits1)));
  expect_error(std::string("explain ") + kDigits1 + " conv2 -o " + file, 2,
               "--out would have no effect with NODE");
}

TEST_F(ReportTest, SymbolicSizesAreExpressionsWithAnExample) {
  const std::string html = page(std::string(kDigits) + " --repeat 1 --dim batch=3");
  EXPECT_NE(html.find("batch = 3"), std::string::npos);
  EXPECT_NE(html.find("float32 (batch, 1, 8, 8)"), std::string::npos);
  EXPECT_NE(html.find("bytes, drawn for batch = 3"), std::string::npos);
  expect_error(std::string("report ") + kDigits + " --dim lot=3 -o " + folder_ + "/r.html", 2,
               "no input has a dimension `lot`");
  expect_error(
      std::string("report ") + kDigits + " --repeat 0 --dim lot=3 -o " + folder_ + "/r.html", 2,
      "no input has a dimension `lot`");
}

TEST_F(ReportTest, WhatIsNotRunSaysWhy) {
  const std::string unasked = page(std::string(kDigits1) + " --repeat 0");
  EXPECT_NE(unasked.find("no run was asked for"), std::string::npos);
  expect_well_formed(unasked);
  const std::string c = page(std::string(kDigits1) + " --target c");
  EXPECT_NE(c.find("it is compiled to C"), std::string::npos);
  EXPECT_EQ(c.find("<summary>assembly"), std::string::npos);
  expect_well_formed(c);
  // Each kernel down to its C, the header, and the function that calls them in order. One is a convolution
  // and the pooling behind it.
  EXPECT_EQ(count(c, "<summary>C "), 7U);
  EXPECT_NE(c.find(" void k_fused_conv2d_add_relu(const float* restrict param_0"),
            std::string::npos);
  EXPECT_NE(c.find(" void k_fused_add_relu_max_pool2d_by_rows(const float* restrict data"),
            std::string::npos);
  EXPECT_EQ(count(c, "<summary>digits_b1.h "), 1U);
  EXPECT_EQ(count(c, "<summary>digits_b1_run "), 1U);
  EXPECT_NE(c.find("int32_t digits_b1_run(const digits_b1_inputs* inputs"), std::string::npos);
  const std::string other =
      page(std::string(kDigits1) + " --target \"llvm -mtriple=aarch64-linux-gnu\"");
  EXPECT_NE(other.find("<summary>assembly"), std::string::npos);
  EXPECT_EQ(other.find(" GFLOP/s</b>"), std::string::npos);
}

TEST_F(ReportTest, TheJsonIsTheSameData) {
  const Outcome outcome = tenon(std::string("report ") + kDigits1 + kTarget + " --repeat 2 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["calls"].size(), 8U);
  EXPECT_EQ(json["kernels"].size(), 8U);
  EXPECT_EQ(json["memory"]["peak"], 18688);
  EXPECT_EQ(json["edges"].size(), 9U);
  EXPECT_GT(json["run"]["median_ms"], 0);
  double flop = 0;
  for (const auto& call : json["calls"]) {
    EXPECT_GT(call["ms"], 0) << call;
    flop += call["flop"].get<double>();
  }
  // Blocks of channels that are not full are computed whole.
  EXPECT_GE(flop, json["gflop"].get<double>() * 1e9 * 0.999);
  EXPECT_LE(flop, json["gflop"].get<double>() * 1e9 * 2);
  // As `explain` has them.
  const Outcome explained = tenon(std::string("explain ") + kDigits1 + kTarget + " --json");
  EXPECT_EQ(json["remarks"], nlohmann::json::parse(explained.out));
  const Outcome story = tenon(std::string("explain ") + kDigits1 + kTarget + " conv2 --json");
  const auto wanted = nlohmann::json::parse(story.out);
  bool is_there = false;
  for (const auto& each : json["stories"]) is_there |= each == wanted;
  EXPECT_TRUE(is_there);
}

// 256 x 256 x 256, in a parallel loop of calls: the kernel has their arithmetic, and one time.
TEST_F(ReportTest, AKernelThatCallsOthersIsOneCall) {
  const std::string model = "examples/kernel_calls/product.py --threads 2 --repeat 2 --json";
  const Outcome outcome = tenon("report " + model);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  bool is_there = false;
  const auto json = nlohmann::json::parse(outcome.out);
  for (const auto& call : json["calls"]) {
    EXPECT_GT(call["ms"], 0) << call;
    EXPECT_EQ(call["runs"], 1) << call;
    if (call["function"] != "main_kernel") continue;
    is_there = true;
    EXPECT_EQ(call["flop"], 2.0 * 256 * 256 * 256);
  }
  EXPECT_TRUE(is_there);
  const auto bench = nlohmann::json::parse(tenon("bench --per-kernel " + model).out);
  ASSERT_EQ(bench[0]["kernels"].size(), json["calls"].size());
  for (const auto& kernel : bench[0]["kernels"]) EXPECT_EQ(kernel["calls"], 1) << kernel;
}

TEST_F(ReportTest, FaultsAreErrors) {
  expect_error(std::string("report ") + kDigits1, 2, "expected -o report.html");
  expect_error("report " + folder_ + "/none.onnx -o " + folder_ + "/r.html", 1, "error[TN0002]");
  expect_error(std::string("report ") + kDigits1 + " -o " + folder_ + "/none/r.html", 1,
               "error[TN0002]");
  expect_error(std::string("report ") + kDigits1 + " --repeat -1 -o " + folder_ + "/r.html", 2,
               "--repeat -1 is below 0");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/r.html"));
}

TEST_F(ReportTest, AProfileIsATrace) {
  const std::string file = folder_ + "/trace.json";
  const Outcome outcome =
      tenon(std::string("run ") + kDigits1 + " --repeat 3 --threads 2 --profile " + file);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto trace = nlohmann::json::parse(read(file));
  std::map<std::string, int> slices;
  std::set<std::string> kernels, passes;
  bool has_memory = false;
  for (const auto& event : trace["traceEvents"]) {
    ASSERT_TRUE(event.contains("ph") && event.contains("pid") && event.contains("name")) << event;
    if (event["ph"] == "C") has_memory |= event["args"]["bytes"] > 0;
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["ts"], 0);
    EXPECT_GE(event["dur"], 0);
    ++slices[event["cat"]];
    if (event["cat"] == "kernel") kernels.insert(event["name"]);
    if (event["cat"] == "pass") passes.insert(event["name"]);
  }
  EXPECT_EQ(slices["run"], 3);
  EXPECT_EQ(slices["kernel"], 3 * 8);
  EXPECT_EQ(kernels.count("conv2d_1"), 1U);
  for (const char* pass : {"import", "FuseOps", "PlanMemory", "code generation", "link"})
    EXPECT_EQ(passes.count(pass), 1U) << pass;
  EXPECT_TRUE(has_memory);
  EXPECT_EQ(trace["otherData"]["kernel_runs_left_out"], 0);
}

TEST_F(ReportTest, AProfileChangesNoResult) {
  const std::string run = std::string("run ") + kDigits1 + " --seed 3 -o " + folder_;
  ASSERT_EQ(tenon(run + "/plain").status, 0);
  ASSERT_EQ(tenon(run + "/profiled --profile " + folder_ + "/t.json").status, 0);
  EXPECT_EQ(read(folder_ + "/plain/probabilities.npy"),
            read(folder_ + "/profiled/probabilities.npy"));
  expect_error(std::string("run ") + kDigits1 + " --profile " + folder_ + "/none/t.json", 1,
               "error[TN0002]");
}

}  // namespace
