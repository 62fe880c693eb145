// SPDX-License-Identifier: Apache-2.0
// Networks as Relay text give bit for bit what they give as ONNX. The files of relay/ come from
// scripts/onnx_to_relay.py: digits.relay holds its weights in the text's metadata, block.relay, a
// transformer block, in a file of parameters.
#include "command.h"

namespace {

namespace fs = std::filesystem;
using tenon::testing_command::read;

class RelayTest : public tenon::testing_command::CommandTest {
 protected:
  RelayTest() : CommandTest("relay") {}

  // Status, with both outputs in `text_`.
  int tenon(const std::string& arguments) {
    auto said = shell("timeout 300 " TENON_BINARY " " + arguments);
    text_ = std::move(said.text);
    return said.status;
  }
  // The one output of a run.
  std::string output_of(const std::string& arguments) {
    const std::string out = folder_ + "/outputs";
    fs::remove_all(out);
    EXPECT_EQ(tenon("run " + arguments + " -o " + out), 0) << text_;
    for (const auto& file : fs::directory_iterator(out)) return read(file.path());
    return "";
  }

  std::string text_;
};

TEST_F(RelayTest, DigitsWithMetadata) {
  const std::string input = " -i image=examples/digits/test_images.npy";
  const std::string relay = output_of("tests/end_to_end/relay/digits.relay" + input);
  EXPECT_GT(relay.size(), 450u * 10 * 4);
  EXPECT_EQ(relay, output_of("examples/digits/digits.onnx" + input));
}

// The two forms agree on tokens of the vocabulary: Relay clips others, ONNX counts from the end.
TEST_F(RelayTest, TransformerBlockWithParameters) {
  std::string header = "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 6), }";
  header.resize(117, ' ');
  header += '\n';
  std::string npy = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0';
  npy += header;
  for (const int64_t token : {0, 19, 7, 7, 1, 13})
    npy.append(reinterpret_cast<const char*>(&token), sizeof(token));
  fs::create_directories(folder_);
  std::ofstream(folder_ + "/tokens.npy", std::ios::binary) << npy;
  const std::string tokens = " -i tokens=" + folder_ + "/tokens.npy";
  const std::string relay = output_of(
      "tests/end_to_end/relay/block.relay --params tests/end_to_end/relay/block.params" + tokens);
  EXPECT_GT(relay.size(), 6u * 16 * 4);
  EXPECT_EQ(relay, output_of("tests/end_to_end/relay/block.onnx" + tokens));
}

// A region of a back end with its composites, alone in a file: our own code runs it.
TEST_F(RelayTest, RegionAlone) {
  const std::string region = "tests/golden/relay/print/region_with_composites.relay";
  fs::create_directories(folder_);
  const std::string text = read(std::string(TENON_SOURCE_DIR "/") + region);
  std::ofstream(folder_ + "/region.relay") << text.substr(0, text.find("// EXPECT"));
  EXPECT_EQ(tenon("check " + folder_ + "/region.relay"), 0) << text_;
  const std::string compiled = output_of(folder_ + "/region.relay --seed 3");
  EXPECT_GT(compiled.size(), 64u * 10 * 4);
  EXPECT_EQ(tenon("print " + folder_ + "/region.relay -o " + folder_ + "/region.py"), 0) << text_;
  EXPECT_EQ(compiled, output_of(folder_ + "/region.py --seed 3"));
}

TEST_F(RelayTest, ParametersThatDoNotFit) {
  const std::string params = " --params tests/end_to_end/relay/block.params";
  EXPECT_EQ(tenon("run examples/digits/digits.onnx" + params), 1);
  EXPECT_NE(text_.find("expected a .relay model"), std::string::npos) << text_;
  std::ofstream(folder_ + "/other.relay") << "def @main(%x: float32) { %x }\n";
  EXPECT_EQ(tenon("run " + folder_ + "/other.relay" + params), 1);
  EXPECT_NE(text_.find("none of the parameters given is one of `@main`"), std::string::npos)
      << text_;
  std::ofstream(folder_ + "/shape.relay")
      << "def @main(%fc1.bias: Tensor[(3), float32]) { %fc1.bias }\n";
  EXPECT_EQ(tenon("run " + folder_ + "/shape.relay" + params), 1);
  EXPECT_NE(text_.find("parameter `%fc1.bias` is declared as R.Tensor((3,), \"float32\")"),
            std::string::npos)
      << text_;
  std::ofstream(folder_ + "/cut.params", std::ios::binary)
      << read(TENON_SOURCE_DIR "/tests/end_to_end/relay/block.params").substr(0, 5000);
  EXPECT_EQ(tenon("run tests/end_to_end/relay/block.relay --params " + folder_ + "/cut.params"), 1);
  EXPECT_NE(text_.find("error[TN0504]"), std::string::npos) << text_;
}

}  // namespace
