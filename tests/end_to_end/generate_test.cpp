// SPDX-License-Identifier: Apache-2.0
// `tenon generate`, and caches that grow in place, on the recorded decoders of tests/onnx/.
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "command.h"

namespace tenon::testing_command {

namespace {

constexpr const char* kShared = R"(--passes 'ShareBuffers(pairs=["past_key_values.*=present.*"])')";

std::string model_of(const std::string& form) {
  return "tests/onnx/decoder_" + form + "/model.onnx";
}

class Generate : public CommandTest {
 protected:
  Generate() : CommandTest("generate") {}

  std::vector<int> tokens_of(const std::string& arguments) const {
    const Outcome outcome = tenon("generate " + arguments + " --json");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    if (outcome.status != 0) return {};
    return nlohmann::json::parse(outcome.out)["tokens"].get<std::vector<int>>();
  }
  // Two .npy files of float32. Kernels may add up in another order where a buffer has room for more.
  static void expect_close(const std::string& file, const std::string& other,
                           const std::string& what) {
    const std::string a = read(file), b = read(other);
    ASSERT_EQ(a.size(), b.size()) << what;
    ASSERT_GT(a.size(), 128u) << what;
    const auto begin =
        10u + static_cast<unsigned char>(a[8]) + 256u * static_cast<unsigned char>(a[9]);
    ASSERT_TRUE(a.substr(0, begin) == b.substr(0, begin)) << what;
    for (size_t at = begin; at + 4 <= a.size(); at += 4) {
      float x = 0, y = 0;
      std::memcpy(&x, a.data() + at, 4);
      std::memcpy(&y, b.data() + at, 4);
      ASSERT_NEAR(x, y, 1e-5 * (1 + std::abs(x))) << what;
    }
  }
  static std::string quoted(const std::string& text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
  }
};

TEST_F(Generate, TellsTheSameOnAllTargetsAndThreads) {
  for (const std::string form : {"plain_f32", "fused_int4"}) {
    const std::string given = model_of(form) + " --tokens 8 --prompt " + quoted("a prompt");
    const std::vector<int> tokens = tokens_of(given + " --threads 1");
    EXPECT_EQ(tokens.size(), 8u);
    EXPECT_EQ(tokens_of(given + " --threads 2"), tokens) << form;
    EXPECT_EQ(tokens_of(given + " --target c"), tokens) << form;
  }
}

TEST_F(Generate, ContinuesAsIfThePromptHadBeenLonger) {
  for (const std::string form : {"plain_int4", "fused_f32"}) {
    std::string text = "abc";
    const std::vector<int> tokens =
        tokens_of(model_of(form) + " --tokens 3 --prompt " + quoted(text));
    ASSERT_EQ(tokens.size(), 3u);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const std::vector<int> next =
          tokens_of(model_of(form) + " --tokens 1 --prompt " + quoted(text));
      EXPECT_EQ(next, std::vector<int>{tokens[i]}) << form << ", token " << i;
      if (tokens[i] == 0) break;  // no argument of a command holds it
      text += static_cast<char>(tokens[i]);
    }
  }
}

TEST_F(Generate, RunsWhatWasCompiledWithSharedBuffers) {
  const std::string library = folder_ + "/decoder.so";
  const Outcome compiled =
      tenon("compile " + model_of("plain_f32") + " -o " + library + " " + kShared);
  ASSERT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_EQ(tokens_of(library + " --tokens 5"), tokens_of(model_of("plain_f32") + " --tokens 5"));
}

TEST_F(Generate, CachesInPlaceAreCachesCopied) {
  for (const std::string form : {"fused_f32"})
    for (const std::string set : {"3"}) {
      const std::string data = "tests/onnx/decoder_" + form + "/test_data_set_" + set + "/input_";
      std::string inputs = " -i input_ids=" + data + "0.pb -i attention_mask=" + data + "1.pb";
      for (int i = 0; i < 4; ++i)
        inputs += " -i past_key_values." + std::to_string(i / 2) +
                  (i % 2 == 0 ? ".key=" : ".value=") + data + std::to_string(i + 2) + ".pb";
      for (const std::string target : {"native", "c"}) {
        const std::string run =
            "run " + model_of(form) + inputs + " --target " + target + " -o " + folder_;
        ASSERT_EQ(tenon(run + "/copied").status, 0);
        const Outcome shared = tenon(run + "/shared " + kShared);
        ASSERT_EQ(shared.status, 0) << shared.err;
        for (const char* name : {"logits", "present.0.key", "present.1.value"}) {
          const std::string file = std::string("/") + name + ".npy";
          expect_close(folder_ + "/shared" + file, folder_ + "/copied" + file,
                       form + ", set " + set + ", " + target + file);
        }
      }
    }
}

TEST_F(Generate, WritesOverTheCacheInPlace) {
  const Outcome lowered =
      tenon("print " + model_of("plain_f32") + " --after LowerGraph " + kShared);
  ASSERT_EQ(lowered.status, 0) << lowered.err;
  EXPECT_NE(lowered.out.find("tenon.shared_buffers"), std::string::npos);
  EXPECT_EQ(lowered.out.find("cls.copy"), std::string::npos) << "a cache is copied";
}

TEST_F(Generate, HasRoomForWhatIsAsked) {
  const std::string data = "tests/onnx/decoder_fused_f32/test_data_set_0/input_";
  // Eleven tokens, and caches of 4 rows.
  const Outcome outcome =
      tenon("run " + model_of("fused_f32") + " -i input_ids=" + data +
            "0.pb -i attention_mask=" + data + "1.pb --dim past_sequence_length=4 " + kShared);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("has no room for all rows"), std::string::npos) << outcome.err;
}

TEST_F(Generate, SaysWhatItDoesNotTake) {
  const Outcome none = tenon("generate tests/onnx/att/model.onnx");
  EXPECT_EQ(none.status, 1);
  EXPECT_NE(none.err.find("no input is a cache of which an output is the grown one"),
            std::string::npos)
      << none.err;
  const std::string model = model_of("plain_f32");
  EXPECT_EQ(tenon("generate " + model + " --tokens 0").status, 2);
  EXPECT_EQ(tenon("generate " + model + " --prompt ''").status, 2);
}

}  // namespace

}  // namespace tenon::testing_command
