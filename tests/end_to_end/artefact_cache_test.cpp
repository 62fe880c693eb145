// SPDX-License-Identifier: Apache-2.0
// Programs that `tenon run` compiled before.
#include <nlohmann/json.hpp>
#include <set>

#include "bad_input/onnx_bytes.h"
#include "command.h"

namespace {

using nlohmann::json;
using tenon::testing_command::CommandTest;
using tenon::testing_command::read;
using tenon::testing_command::Said;
namespace fs = std::filesystem;

const std::string kDigits = "examples/digits/digits.onnx";

class ArtefactCacheTest : public CommandTest {
 protected:
  ArtefactCacheTest() : CommandTest("artefact_cache") {}

  // What the run says as JSON; checks that it is cached or not, as it should be.
  json run(const std::string& arguments, bool is_cached, const std::string& environment = {}) {
    const Said said = shell("env TENON_CACHE=" + folder_ + "/cache " + environment +
                            " " TENON_BINARY " run --json " + arguments);
    EXPECT_EQ(said.status, 0) << said.text;
    json out = json::parse(said.text, nullptr, false);
    EXPECT_TRUE(out.is_object()) << said.text;
    EXPECT_EQ(out["cached"], is_cached) << arguments;
    for (const char* time : {"cached", "compile_ms", "load_ms", "min_ms", "median_ms"})
      out.erase(time);
    return out;
  }
  std::set<std::string> entries() const {
    std::set<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder_ + "/cache", error))
      names.insert(entry.path().filename());
    return names;
  }
};

TEST_F(ArtefactCacheTest, SecondRunTakesTheProgramOfTheFirst) {
  const json first = run(kDigits, false);
  EXPECT_EQ(first, run(kDigits, true));
  EXPECT_EQ(first, run(kDigits + " --no-cache", false));
  EXPECT_EQ(entries().size(), 1U);
  const Said said = shell("env TENON_CACHE=" + folder_ + "/cache " TENON_BINARY " run " + kDigits);
  EXPECT_NE(said.text.find("(compiled before; --no-cache compiles again)"), std::string::npos)
      << said.text;
}

TEST_F(ArtefactCacheTest, AProgramIsFoundByWhatItWasMadeOf) {
  run(kDigits, false);
  for (const std::string option : {" --fp=fast", " --unchecked", " --target 'llvm -mcpu=x86-64-v2'",
                                   " --shape image=2,1,8,8"}) {
    run(kDigits + option, false);
    run(kDigits + option, true);
  }
  run(kDigits + " --threads 1 --seed 3 --repeat 2", true);  // these are of the run
  EXPECT_EQ(entries().size(), 5U);
  // Content counts, and the name that errors of the program have.
  fs::copy_file(TENON_SOURCE_DIR "/" + kDigits, folder_ + "/digits.onnx");
  run(folder_ + "/digits.onnx", true);
}

TEST_F(ArtefactCacheTest, RandomInputsAreThoseOfTheModel) {
  write("m.tvmscript",
        "@R.function\ndef main(x: R.Tensor((\"n\", 4), \"float32\"), i: R.Tensor((5,), \"int64\"), "
        "w: R.Tensor((\"n + 2\",), \"float32\")):\n    y = R.take(x, i, axis=0)\n"
        "    z = R.log(w)\n    return (y, z)\n");
  const std::string model = folder_ + "/m.tvmscript";
  for (const std::string dims : {"", " --dim n=3", " --dim n=1000"})
    EXPECT_EQ(run(model + dims + " --no-cache", false), run(model + dims, !dims.empty())) << dims;
}

TEST_F(ArtefactCacheTest, FilesBesideTheModelCount) {
  using namespace tenon::bad_input;
  const std::string threes(16, '\x40'), twelves(16, '\x41');
  const std::string network =
      model({node("Add", {"x", "w"}, {"y"})}, {4}, {external("w", {4}, "data/w.bin")});
  for (const std::string place : {"", "/moved"}) {
    fs::create_directories(folder_ + place + "/data");
    write(place + "/m.onnx", network);
    write(place + "/data/w.bin", threes);
  }
  const std::string here = folder_ + "/m.onnx", moved = folder_ + "/moved/m.onnx";
  const json first = run(here, false);
  run(here, true);
  fs::remove(folder_ + "/data/w.bin");
  write("/data/w.bin", threes);
  run(here, true);  // the same contents
  EXPECT_EQ(first["outputs"], run(moved, true)["outputs"]);
  write("/data/w.bin", twelves);
  EXPECT_NE(first["outputs"], run(here, false)["outputs"]);
  EXPECT_NE(first["outputs"], run(here, true)["outputs"]);
  EXPECT_EQ(first["outputs"], run(moved, false)["outputs"]);
  EXPECT_EQ(entries().size(), 1U);
}

TEST_F(ArtefactCacheTest, WhatIsMoreThanAProgramIsCompiledAgain) {
  run(kDigits, false);
  run(kDigits + " --check-text 2>/dev/null", false);
  run(kDigits + " --profile " + folder_ + "/trace.json", false);
  run(kDigits + " --kernels examples/own_kernel/softmax.py 2>/dev/null", false);
  EXPECT_EQ(entries().size(), 1U);
}

TEST_F(ArtefactCacheTest, AWarningIsToldEachTime) {
  const std::string plans = folder_ + "/plans.json";
  ASSERT_EQ(tenon("explain " + kDigits + " --write-plan " + plans).status, 0);
  json changed = json::parse(read(plans));
  changed["plans"][0]["kernel"] = "nothing";
  changed["plans"][0]["hash"] = "0000000000000000";
  write("plans.json", changed.dump());
  const std::string command =
      "env TENON_CACHE=" + folder_ + "/cache " TENON_BINARY " run " + kDigits + " --plan " + plans;
  for (int i = 0; i < 2; ++i) {
    const Said said = shell(command);
    EXPECT_EQ(said.status, 0);
    EXPECT_NE(said.text.find("warning[TN0012]"), std::string::npos) << said.text;
  }
  EXPECT_TRUE(entries().empty());
}

TEST_F(ArtefactCacheTest, BrokenEntriesAreMadeAnew) {
  const json first = run(kDigits, false);
  const std::string entry = folder_ + "/cache/" + *entries().begin();
  std::ofstream(entry + "/files.json") << "{";
  EXPECT_EQ(first, run(kDigits, false));
  EXPECT_EQ(first, run(kDigits, true));
  fs::remove(entry + "/program.so");
  std::ofstream(entry + "/program.so") << "no library";
  EXPECT_EQ(first, run(kDigits, false));
  EXPECT_EQ(first, run(kDigits, true));
  fs::remove(entry + "/files.json");
  EXPECT_EQ(first, run(kDigits, false));
  EXPECT_EQ(entries().size(), 1U);
}

TEST_F(ArtefactCacheTest, WhatWasNotUsedForLongestMakesRoom) {
  // Programs of one size: other forms of convolutions have larger filters.
  const std::string digits = kDigits + " --fp=strict";
  run(digits, false);
  const std::string oldest = *entries().begin();
  int64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(folder_ + "/cache/" + oldest))
    bytes += static_cast<int64_t>(file.file_size());
  // Room for two and a half.
  const std::string bound = "TENON_CACHE_BYTES=" + std::to_string(bytes * 5 / 2);
  run(digits + " --shape image=1,1,8,8", false, bound);
  run(digits, true, bound);  // used again
  run(digits + " --shape image=2,1,8,8", false, bound);
  run(digits, true, bound);
  run(digits + " --shape image=1,1,8,8", false, bound);
  EXPECT_LE(entries().size(), 2U);
  run(digits, false, "TENON_CACHE_BYTES=0");
  const Said said = shell("env TENON_CACHE_BYTES=many TENON_CACHE=" + folder_ +
                          "/cache " TENON_BINARY " run " + digits);
  EXPECT_EQ(said.status, 2);
  EXPECT_NE(said.text.find("TENON_CACHE_BYTES=many: expected a number of bytes"),
            std::string::npos);
}

TEST_F(ArtefactCacheTest, AFolderThatOthersMayWriteIsNotUsed) {
  fs::create_directory(folder_ + "/cache");
  fs::permissions(folder_ + "/cache", fs::perms::all);
  run(kDigits, false);
  run(kDigits, false);
  EXPECT_TRUE(entries().empty());
  fs::remove(folder_ + "/cache");
  fs::create_directory(folder_ + "/other");
  fs::create_directory_symlink(folder_ + "/other", folder_ + "/cache");
  run(kDigits, false);
  EXPECT_TRUE(fs::is_empty(folder_ + "/other"));
}

TEST_F(ArtefactCacheTest, ProcessesAtOnceAllRun) {
  const Said said = shell("for i in 1 2 3 4 5 6; do env TENON_CACHE=" + folder_ +
                          "/cache " TENON_BINARY " run --json " + kDigits + " > " + folder_ +
                          "/$i.json || echo failed & done; wait");
  EXPECT_EQ(said.text, "");
  for (int i = 1; i <= 6; ++i)
    EXPECT_EQ(json::parse(read(folder_ + "/" + std::to_string(i) + ".json"))["outputs"],
              json::parse(read(folder_ + "/1.json"))["outputs"]);
  EXPECT_EQ(entries().size(), 1U);
}

}  // namespace
