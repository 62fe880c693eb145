// SPDX-License-Identifier: Apache-2.0
// The generated C header is C99 and C++ whatever the names of a program are.
#include "tenon/driver/c_header.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tenon/backend/c/names.h"
#include "tenon/support/temporary_files.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

const int64_t kImage[] = {TENON_DIM_SYMBOL(0), 3, 32, 32};
const int64_t kScores[] = {TENON_DIM_SYMBOL(0), 10};

TenonTensorInfo tensor(const char* name, const int64_t* dims, int32_t ndim, uint8_t code,
                       uint8_t bits) {
  TenonTensorInfo info{};
  info.name = name;
  info.dims = dims;
  info.ndim = ndim;
  info.code = code;
  info.bits = bits;
  info.lanes = 1;
  return info;
}

// Whether `compiler` accepts a file that includes the header and calls `run`.
int status_of(const std::string& compiler, const fs::path& folder, const std::string& source) {
  const std::string file = (folder / source).string();
  std::ofstream(file)
      << "#include \"model.h\"\n#include \"model.h\"\nint main(void) { return 0; }\n";
  return std::system((compiler +
                      " -Wall -Wextra -Werror -fsyntax-only -I" TENON_SOURCE_DIR "/src -I" +
                      folder.string() + " " + file)
                         .c_str());
}

TEST(CHeader, CompilesWhateverTheNames) {
  // Names that are no identifiers, keywords, that clash once they are, and that end a comment.
  const TenonTensorInfo inputs[] = {tensor("input:0", kImage, 4, TENON_DTYPE_FLOAT, 32),
                                    tensor("input.0", kImage, 4, TENON_DTYPE_FLOAT, 16),
                                    tensor("class", nullptr, 0, TENON_DTYPE_INT, 64),
                                    tensor("*/ int x; /*", kScores, 2, TENON_DTYPE_BOOL, 8),
                                    tensor("0\n", kScores, 2, TENON_DTYPE_BFLOAT, 16),
                                    tensor("", kScores, 2, TENON_DTYPE_UINT, 8)};
  const TenonTensorInfo outputs[] = {tensor("return", kScores, 2, TENON_DTYPE_FLOAT, 32)};
  const TenonSymbol symbols[] = {{"in", TENON_SYMBOL_DIM, 0, 0, 0, INT64_MAX}};
  TenonProgram program{};
  program.inputs = inputs;
  program.input_count = 6;
  program.outputs = outputs;
  program.output_count = 1;
  program.symbols = symbols;
  program.symbol_count = 1;
  program.alignment = 64;

  const TemporaryFolder folder;
  for (const char* model : {"digits", "9 to */ 5", "int"}) {
    const std::string header = c_header(program, model);
    EXPECT_EQ(header, c_header(program, model));
    write_file(folder.file("model.h"), header);
    EXPECT_EQ(status_of("gcc -std=c99 -Wpedantic", folder.path(), "a.c"), 0) << header;
    EXPECT_EQ(status_of("g++ -std=c++20", folder.path(), "a.cpp"), 0) << header;
  }
}

TEST(CHeader, NamesAreKeptWhereTheyAreIdentifiers) {
  EXPECT_EQ(c_backend::c_identifier("image"), "image");
  EXPECT_EQ(c_backend::c_identifier("input:0"), "input_0");
  EXPECT_EQ(c_backend::c_identifier("0"), "_0");
  EXPECT_EQ(c_backend::c_identifier("while"), "while_");
  EXPECT_EQ(c_backend::c_identifier(""), "_");
}

}  // namespace
}  // namespace tenon
