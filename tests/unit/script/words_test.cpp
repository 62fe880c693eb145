// SPDX-License-Identifier: Apache-2.0
// The table of words against the files that give them a meaning.
#include "tenon/script/words.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace tenon::script {

TEST(Words, EveryWordThatTheReaderKnowsIsListed) {
  std::set<std::string> listed;
  for (const Word& word : all_words()) {
    EXPECT_TRUE(listed.insert(word.name).second) << word.name << " stands twice";
    EXPECT_FALSE(word.summary.empty()) << word.name;
  }
  const std::regex literal("\"([TRI]\\.[A-Za-z_]+(\\.[A-Za-z_]+)*)\"");
  int found = 0;
  const std::filesystem::path folder = std::string(TENON_SOURCE_DIR) + "/src/tenon/script";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".cpp" || name.starts_with("print") || name == "words.cpp")
      continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const std::string source = text.str();
    for (std::sregex_iterator it(source.begin(), source.end(), literal), end; it != end; ++it) {
      const std::string word = (*it)[1];
      if (word == "T.axis" || word == "R.op") continue;  // of others
      EXPECT_TRUE(listed.count(word)) << word << " in " << name;
      ++found;
    }
  }
  EXPECT_GT(found, 50);
}

}  // namespace tenon::script
