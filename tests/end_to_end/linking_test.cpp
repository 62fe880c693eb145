// SPDX-License-Identifier: Apache-2.0
// Shared libraries that a compiled program calls, where they are found later.
#include "command.h"

namespace {

using tenon::testing_command::CommandTest;
using tenon::testing_command::Outcome;
namespace fs = std::filesystem;

class LinkingTest : public CommandTest {
 protected:
  LinkingTest() : CommandTest("linking") {}
};

// Where it was, and beside the program, whether or not the library states a name of its own.
TEST_F(LinkingTest, ALibraryMovesWithTheProgram) {
  for (const std::string name : {"", "-Wl,-soname,libtoy.so"}) {
    SCOPED_TRACE(name);
    const std::string made = folder_ + "/made", moved = folder_ + "/moved";
    fs::remove_all(made);
    fs::remove_all(moved);
    fs::create_directories(made);
    fs::create_directories(moved);
    const std::string library = made + "/libtoy.so";
    const auto built =
        shell("cc -shared -fPIC " + name + " -o " + library + " examples/library_calls/toy.c");
    ASSERT_EQ(built.status, 0) << built.text;
    const Outcome compiled = tenon(
        "compile examples/library_calls/network.py --call-by-name toy "
        "--link " +
        library + " -o " + moved + "/n.so");
    ASSERT_EQ(compiled.status, 0) << compiled.err;
    EXPECT_EQ(tenon("run " + moved + "/n.so").status, 0);
    fs::rename(library, moved + "/libtoy.so");
    const Outcome beside = tenon("run " + moved + "/n.so");
    EXPECT_EQ(beside.status, 0) << beside.err;
    fs::remove(moved + "/libtoy.so");
    expect_error("run " + moved + "/n.so", 1, "error[TN0603]");
  }
}

}  // namespace
