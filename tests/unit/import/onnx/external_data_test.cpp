// SPDX-License-Identifier: Apache-2.0
// External data: mapped from below the model's directory, never from elsewhere.
#include <unistd.h>

#include "model_builder.h"
#include "tenon/support/mapped_file.h"

namespace tenon::onnx {
namespace {

// Two floats in `location`.
ModelBuilder external(const std::string& location, const std::string& offset = "",
                      const std::string& length = "") {
  ModelBuilder m;
  m.input("x", {"2"});
  auto& w = m.tensor("w", {2}, {});
  w.set_data_location(pb::TensorProto::EXTERNAL);
  const auto entry = [&](const char* key, const std::string& value) {
    auto* e = w.add_external_data();
    e->set_key(key);
    e->set_value(value);
  };
  entry("location", location);
  if (!offset.empty()) entry("offset", offset);
  if (!length.empty()) entry("length", length);
  m.node("Add", {"x", "w"}, {"y"}, "add");
  m.output("y");
  return m;
}

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

class ExternalData : public ::testing::Test {
 protected:
  ExternalData() {
    directory_.write("data.bin", floats({1, 2, 3, 4}));
    std::filesystem::create_directory(directory_ / "sub");
    directory_.write("sub/data.bin", floats({5, 6}));
  }
  std::string error(const ModelBuilder& model) {
    directory_.write("m.onnx", model.bytes());
    return error_of([](const std::string& path) { (void)import_onnx(path); }, directory_);
  }
  std::vector<float> weights(const ModelBuilder& model) {
    const std::string path = directory_.write("m.onnx", model.bytes());
    const Model read = read_model(path);
    const auto data = read.graph.initializers.at(0).data->as_span<float>();
    return {data.begin(), data.end()};
  }
  Directory directory_;
};

TEST_F(ExternalData, IsReadFromBesideTheModel) {
  EXPECT_EQ(weights(external("data.bin", "", "8")), (std::vector<float>{1, 2}));
  EXPECT_EQ(weights(external("data.bin", "8", "8")), (std::vector<float>{3, 4}));
  EXPECT_EQ(weights(external("sub/data.bin")), (std::vector<float>{5, 6}));
  EXPECT_EQ(weights(external("./sub//data.bin")), (std::vector<float>{5, 6}));
}

TEST_F(ExternalData, IsRefusedElsewhere) {
  const Directory outside;
  outside.write("data.bin", floats({1, 2}));
  const std::string below = "; expected a path below the model's directory";
  EXPECT_EQ(error(external("")), "TN0503: w: the location `` of external data is empty" + below);
  EXPECT_EQ(error(external("/etc/passwd")),
            "TN0503: w: the location `/etc/passwd` of external data is absolute" + below);
  EXPECT_EQ(error(external("../data.bin")),
            "TN0503: w: the location `../data.bin` of external data contains `..`" + below);
  EXPECT_EQ(error(external("sub/../data.bin")),
            "TN0503: w: the location `sub/../data.bin` of external data contains `..`" + below);
  EXPECT_EQ(error(external(std::string("data.bin\0x", 10))),
            "TN0503: w: the location `data.bin` of external data contains a zero byte" + below);
  EXPECT_EQ(error(external("none.bin")),
            "TN0503: w: cannot open external data `none.bin`: No such file or directory");
  EXPECT_EQ(error(external("sub")), "TN0503: w: external data `sub` is not a regular file");
}

TEST_F(ExternalData, LinksAreRefused) {
  const Directory outside;
  const std::string secret = outside.write("secret.bin", floats({1, 2}));
  const std::string through =
      " is reached through a symbolic link; expected a regular file below the model's directory";
  std::filesystem::create_symlink(secret, directory_ / "soft.bin");
  EXPECT_EQ(error(external("soft.bin")), "TN0503: w: external data `soft.bin`" + through);
  std::filesystem::create_directory_symlink(outside / "", directory_ / "dir");
  EXPECT_EQ(error(external("dir/secret.bin")),
            "TN0503: w: external data `dir/secret.bin`" + through);
  std::filesystem::create_hard_link(directory_ / "data.bin", directory_ / "hard.bin");
  EXPECT_EQ(error(external("hard.bin")),
            "TN0503: w: external data `hard.bin` has 2 hard links; expected 1 (another may lie "
            "outside the model's directory)");
}

TEST_F(ExternalData, RangesAreChecked) {
  EXPECT_EQ(error(external("data.bin", "12")),
            "TN0503: w: external data `data.bin` has 16 bytes; expected 8 bytes from offset 12");
  EXPECT_EQ(error(external("data.bin", "9223372036854775800")),
            "TN0503: w: external data `data.bin` has 16 bytes; expected 8 bytes from offset "
            "9223372036854775800");
  EXPECT_EQ(error(external("data.bin", "18446744073709551608")),
            "TN0503: w: the offset of external data is `18446744073709551608`; expected a number "
            "below 2^63");
  EXPECT_EQ(error(external("data.bin", "-8")),
            "TN0503: w: the offset of external data is `-8`; expected a number below 2^63");
  EXPECT_EQ(error(external("data.bin", "0", "16")),
            "TN0503: w: external data of 16 bytes; a tensor of shape (2,) and type float32 has 8");
}

TEST(RangeFits, DoesNotWrap) {
  constexpr uint64_t kMost = UINT64_MAX;
  EXPECT_TRUE(range_fits(0, 16, 16));
  EXPECT_TRUE(range_fits(16, 0, 16));
  EXPECT_FALSE(range_fits(1, 16, 16));
  EXPECT_FALSE(range_fits(kMost, 2, 16));
  EXPECT_FALSE(range_fits(2, kMost, 16));
  EXPECT_FALSE(range_fits(kMost, kMost, kMost));
}

}  // namespace
}  // namespace tenon::onnx
