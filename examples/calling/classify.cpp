// The digits of the first ten images, from C++: classify PROGRAM.so IMAGES.npy
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <vector>

#include "digits.h"  // made by `tenon compile`

static void must(int32_t code) {
  if (code != TENON_OK) throw std::runtime_error(tenon_last_error());
}

struct FreeModel {
  void operator()(TenonModel* model) const { tenon_model_free(model); }
};
using Model = std::unique_ptr<TenonModel, FreeModel>;

static Model load(const char* path) {
  TenonModel* model = nullptr;
  must(tenon_model_load(path, nullptr, &model));
  return Model(model);
}

int main(int argc, char** argv) try {
  if (argc != 3) throw std::runtime_error("usage: classify PROGRAM.so IMAGES.npy");
  constexpr int64_t kImages = 450, kPixels = 64, kDigits = 10;
  std::vector<float> images(kImages * kPixels), scores(kImages * kDigits);
  std::ifstream file(argv[2], std::ios::binary);
  file.seekg(128);  // the header of this .npy file
  file.read(reinterpret_cast<char*>(images.data()),
            static_cast<std::streamsize>(images.size() * sizeof(float)));
  if (!file) throw std::runtime_error("the images cannot be read");

  const Model model = load(argv[1]);
  const digits_inputs in = {images.data()};
  const digits_outputs out = {scores.data()};
  must(digits_run(model.get(), &in, &out, kImages));
  for (int i = 0; i < 10; ++i) {
    const auto begin = scores.begin() + i * kDigits;
    std::printf("%d ", static_cast<int>(std::max_element(begin, begin + kDigits) - begin));
  }
  std::printf("\n");
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
