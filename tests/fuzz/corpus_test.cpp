// What libFuzzer begins with, and every input that it once found a fault with (tests/fuzz/corpus,
// named after what was wrong): each reader takes them or refuses them, and takes some.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "readers/readers.h"
#include "tenon/support/diagnostics.h"

namespace tenon::fuzz {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kMost(5);  // for one input; most take less than a millisecond

class Corpus : public testing::TestWithParam<std::string> {};

TEST_P(Corpus, IsTakenOrRefused) {
  const auto folder = std::filesystem::path(TENON_SOURCE_DIR) / "tests/fuzz/corpus" / GetParam();
  const Reader& reader = readers().at(GetParam());
  int taken = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const auto start = Clock::now();
    try {
      if (reader(bytes)) ++taken;
    } catch (const CompileError& error) {
      EXPECT_FALSE(error.diagnostics().empty() || error.first().message.empty());
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    EXPECT_LT(Clock::now() - start, kMost);
  }
  EXPECT_GT(taken, 0) << "no seed is well formed";
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& [name, reader] : readers()) out.push_back(name);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Readers, Corpus, testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tenon::fuzz
