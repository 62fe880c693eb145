// Classifies handwritten digits with a compiled network, through the runtime's C API alone.
//
//     digits PROGRAM.so IMAGES.npy LABELS.npy
//
// Shows some images with the network's answer, then accuracy, memory plan and times. Status 1 where
// a file does not fit or the accuracy is not above 97 %.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/runtime/tenon_runtime.h"

namespace {

constexpr int64_t kSide = 8;      // pixels
constexpr int64_t kClasses = 10;  // digits
constexpr double kWantedAccuracy = 0.97;
constexpr int kShown = 6;  // images in a row

/// The elements of a `.npy` file that holds a row-major array of T (format 1 or 2).
///
/// \param descr  NumPy's name of T, such as "<f4".
/// \throws std::runtime_error where the file holds anything else.
template <typename T>
std::vector<T> load_npy(const std::string& path, const std::string& descr) {
  static_assert(std::endian::native == std::endian::little);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};

  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(bytes[i])); };
  if (bytes.size() < 12 || bytes.compare(0, 6, "\x93NUMPY") != 0 || byte(6) < 1 || byte(6) > 2)
    throw std::runtime_error(path + ": not a .npy file of format 1 or 2");
  size_t start = 10, length = byte(8) | byte(9) << 8;
  if (byte(6) == 2) start = 12, length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - start) throw std::runtime_error(path + ": ends inside its header");
  const std::string header = bytes.substr(start, length);
  if (header.find("'descr': '" + descr + "'") == std::string::npos ||
      header.find("'fortran_order': False") == std::string::npos)
    throw std::runtime_error(path + ": expected a row-major array of " + descr + ", found " +
                             header);

  const size_t data = start + length;
  if ((bytes.size() - data) % sizeof(T) != 0)
    throw std::runtime_error(path + ": ends inside an element");
  std::vector<T> elements((bytes.size() - data) / sizeof(T));
  std::memcpy(elements.data(), bytes.data() + data, bytes.size() - data);
  return elements;
}

/// Throws the runtime's message where `status` is an error.
void must(int32_t status) {
  if (status != TENON_OK) throw std::runtime_error(tenon_last_error());
}

/// A packed float32 tensor over memory that somebody else owns.
DLTensor tensor_over(float* data, std::span<int64_t> shape) {
  DLTensor tensor{};
  tensor.data = data;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.dtype = {kDLFloat, 32, 1};
  tensor.shape = shape.data();
  return tensor;
}

struct FreeModel {
  void operator()(TenonModel* model) const { tenon_model_free(model); }
};
using Model = std::unique_ptr<TenonModel, FreeModel>;

/// Bytes of the buffer that a run on `image` needs for all that lies between input and output.
int64_t workspace_bytes(const TenonModel* model, const DLTensor& image) {
  const DLTensor* inputs[] = {&image};
  int64_t bytes = 0;
  must(tenon_model_shapes(model, inputs, 1, nullptr, &bytes));
  return bytes;
}

/// Images per run: what the program fixes, or all of them where its batch is symbolic.
int64_t batch_of(const TenonProgram& program, int64_t images) {
  if (program.input_count != 1 || program.output_count != 1 || program.inputs[0].ndim != 4)
    throw std::runtime_error(
        "the program is not this network: one input of 4 dimensions, one output");
  const int64_t declared = program.inputs[0].dims[0];
  if (declared > 0 && images % declared != 0)
    throw std::runtime_error("the number of images is no multiple of the program's batch");
  return declared > 0 ? declared : images;
}

/// A row of images as characters, the darker the pixel the denser, with label and answer below.
void show(std::span<const float> images, std::span<const int64_t> labels,
          std::span<const int64_t> answers, std::span<const int64_t> which) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  for (int64_t y = 0; y < kSide; ++y) {
    for (int64_t i : which) {
      for (int64_t x = 0; x < kSide; ++x) {
        const float pixel = std::clamp(images[i * kSide * kSide + y * kSide + x], 0.0f, 1.0f);
        const char shade =
            kShades[static_cast<size_t>(std::lround(pixel * float(kShades.size() - 1)))];
        std::printf("%c%c", shade, shade);
      }
      std::printf("   ");
    }
    std::printf("\n");
  }
  for (int64_t i : which) {
    std::printf("is %" PRId64 ", answer %" PRId64 "%-6s", labels[i], answers[i],
                labels[i] == answers[i] ? "" : " (!)");
  }
  std::printf("\n\n");
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

/// Runs the network over all images. \returns the ten probabilities of each, one after the other.
std::vector<float> classify(TenonModel* model, std::span<float> images, int64_t batch) {
  const int64_t count = std::ssize(images) / (kSide * kSide);
  std::vector<float> probabilities(count * kClasses);
  int64_t in_shape[] = {batch, 1, kSide, kSide}, out_shape[] = {batch, kClasses};
  for (int64_t first = 0; first < count; first += batch) {
    const DLTensor image = tensor_over(&images[first * kSide * kSide], in_shape);
    DLTensor probability = tensor_over(&probabilities[first * kClasses], out_shape);
    const DLTensor* inputs[] = {&image};
    DLTensor* outputs[] = {&probability};
    must(tenon_model_run(model, inputs, 1, outputs, 1));
  }
  return probabilities;
}

/// Where the largest of each ten probabilities stands.
std::vector<int64_t> most_likely(std::span<const float> probabilities) {
  std::vector<int64_t> answers(probabilities.size() / kClasses);
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto scores = probabilities.subspan(i * kClasses, kClasses);
    answers[i] = std::ranges::max_element(scores) - scores.begin();
  }
  return answers;
}

int run(const char* program_path, const char* images_path, const char* labels_path) {
  std::vector<float> images = load_npy<float>(images_path, "<f4");
  const std::vector<int64_t> labels = load_npy<int64_t>(labels_path, "<i8");
  const int64_t count = std::ssize(labels);
  if (count == 0 || std::ssize(images) != count * kSide * kSide)
    throw std::runtime_error("images and labels do not belong together");

  auto start = std::chrono::steady_clock::now();
  TenonModel* loaded = nullptr;
  must(tenon_model_load(program_path, nullptr, &loaded));
  const Model model(loaded);
  const double load_ms = milliseconds_since(start);
  const TenonProgram& program = *tenon_model_program(model.get());
  const int64_t batch = batch_of(program, count);

  // The first run warms caches and threads; the fastest of the others is what the network takes.
  const std::vector<float> probabilities = classify(model.get(), images, batch);
  double best_ms = 1e9;
  for (int i = 0; i < 20; ++i) {
    start = std::chrono::steady_clock::now();
    classify(model.get(), images, batch);
    best_ms = std::min(best_ms, milliseconds_since(start));
  }

  const std::vector<int64_t> answers = most_likely(probabilities);
  std::vector<int64_t> shown, wrong;
  for (int64_t i = 0; i < count; ++i) {
    if (answers[i] != labels[i]) wrong.push_back(i);
    if (answers[i] == labels[i] && std::ssize(shown) < kShown) shown.push_back(i);
  }
  show(images, labels, answers, shown);
  if (!wrong.empty()) {
    std::printf("%s it gets wrong:\n\n", wrong.size() > kShown ? "some that" : "those that");
    show(images, labels, answers, std::span(wrong).first(std::min<size_t>(wrong.size(), kShown)));
  }

  int64_t shape[] = {batch, 1, kSide, kSide};
  const double accuracy = 1.0 - double(wrong.size()) / double(count);
  std::printf("accuracy   %.2f %%: %" PRId64 " of %" PRId64 " images\n", 100 * accuracy,
              count - std::ssize(wrong), count);
  std::printf("memory     workspace of %" PRId64 " bytes for %" PRId64 " images a run",
              workspace_bytes(model.get(), tensor_over(images.data(), shape)), batch);
  if (program.planned_bytes >= 0)
    std::printf(" (peak of the plan %" PRId64 ", no plan below %" PRId64 ")", program.planned_bytes,
                program.bound_bytes);
  std::printf("; constants %" PRId64 " bytes\n", program.constant_bytes);
  std::printf("times      load %.2f ms; all images %.3f ms, %.2f us an image\n", load_ms, best_ms,
              1e3 * best_ms / double(count));
  if (accuracy > kWantedAccuracy) return 0;
  std::fprintf(stderr, "error: expected an accuracy above %.0f %%\n", 100 * kWantedAccuracy);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: digits PROGRAM.so IMAGES.npy LABELS.npy\n");
    return 2;
  }
  try {
    return run(argv[1], argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
