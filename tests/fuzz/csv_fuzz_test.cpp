// SPDX-License-Identifier: Apache-2.0
// Memory planning problems.
#include "fuzz.h"
#include "gtest/gtest.h"
#include "readers/readers.h"

namespace tenon::fuzz {
namespace {

TEST(Fuzz, Csv) {
  const std::vector<std::string> seeds = {
      "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n",
      "id,lower,upper,size,alignment,offset\nb1,0,3,64,32,0\n\"b "
      "2\",3,9,128,64,64\nb3,2,5,4096,1,192\n"};
  const std::vector<std::string> words = {",",
                                          "\n",
                                          "\r\n",
                                          "\"",
                                          "id",
                                          "size",
                                          "upper",
                                          "-",
                                          "+",
                                          " ",
                                          ".",
                                          "1e3",
                                          std::string(1, '\0'),
                                          "\xef\xbb\xbf"};
  expect_only_diagnostics(seeds, {.name = "csv", .seconds = 2, .words = words},
                          readers().at("csv"));
}

}  // namespace
}  // namespace tenon::fuzz
