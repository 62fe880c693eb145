// SPDX-License-Identifier: Apache-2.0
// Libraries by the names that linkers take: a text in the place of a library is read through.
#include "tenon/backend/linker_script.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tenon/backend/c_compiler.h"
#include "tenon/backend/libraries.h"

namespace tenon::backend {
namespace {

using Names = std::vector<std::string>;

TEST(LinkerScript, NamesTheSharedLibrariesOfItsGroups) {
  const TemporaryFolder folder;
  const std::string script = folder.file("libpair.so");
  const auto read = [&](const std::string& text) {
    std::ofstream(script) << text;
    return libraries_of_script(script);
  };
  EXPECT_EQ(read("/* GNU ld script\n*/\nOUTPUT_FORMAT(elf64-x86-64)\n"
                 "GROUP ( /x/libm.so.6  AS_NEEDED ( /x/libmvec.so.1 ) )\n"),
            (Names{"/x/libm.so.6", "/x/libmvec.so.1"}));
  EXPECT_EQ(read("GROUP(/x/libc.so.6 /x/libc_nonshared.a)"), Names{"/x/libc.so.6"});
  EXPECT_EQ(read("INPUT(libone.so.2,-lother)"), (Names{"libone.so.2", "libother.so"}));
  EXPECT_EQ(read("SEARCH_DIR(/x/libnot.so) /* GROUP(libnot.so) */"), Names{});
  EXPECT_EQ(read("GROUP ( GROUP ( libdeep.so"), Names{"libdeep.so"});
  EXPECT_EQ(read(std::string("\x7f"
                             "ELF\0GROUP(libnot.so)",
                             21)),
            Names{});
  EXPECT_EQ(read(""), Names{});
  EXPECT_EQ(libraries_of_script(folder.file("none.so")), Names{});
}

TEST(LinkerScript, LibrariesAreOpenedThroughIt) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("part.c")) << "int tenon_test_part(void) { return 7; }\n";
  run_c_compiler({"-shared", "-fPIC", "-o", folder.file("libpart.so.3"), folder.file("part.c")},
                 "test");
  std::ofstream(folder.file("libwhole.so")) << "INPUT ( libpart.so.3 )\n";
  const Libraries libraries({folder.file("libwhole.so")});
  auto* part = reinterpret_cast<int (*)()>(libraries.find("tenon_test_part"));
  ASSERT_NE(part, nullptr);
  EXPECT_EQ(part(), 7);
  EXPECT_EQ(libraries.linker_inputs(), Names{folder.file("libpart.so.3")});

  std::ofstream(folder.file("libtext.so")) << "no library\n";
  EXPECT_THROW(Libraries({folder.file("libtext.so")}), CompileError);
  std::ofstream(folder.file("libgone.so")) << "INPUT ( libgone.so.3 )\n";
  EXPECT_THROW(Libraries({folder.file("libgone.so")}), CompileError);
}

// With the C library's development files libm.so is a script; without them it is not there.
TEST(LinkerScript, TheMathLibraryIsFoundAsLinkersNameIt) {
  const Libraries libraries({"libm.so"});
  EXPECT_NE(libraries.find("cbrt"), nullptr);
  ASSERT_FALSE(libraries.linker_inputs().empty());
  EXPECT_TRUE(libraries.linker_inputs()[0].ends_with("/libm.so.6"));
  EXPECT_THROW(Libraries({"libtenon_no_such_library.so"}), CompileError);
}

}  // namespace
}  // namespace tenon::backend
