// SPDX-License-Identifier: Apache-2.0
#include "tenon/support/markup.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Markup, WhatHtmlReadsOtherwiseIsAnEntity) {
  EXPECT_EQ(markup("</script><b>\"x\" & 'y'"),
            "&lt;/script&gt;&lt;b&gt;&quot;x&quot; &amp; &#39;y&#39;");
  EXPECT_EQ(markup("plain text, 1/2"), "plain text, 1/2");
  EXPECT_EQ(markup(""), "");
}

TEST(Markup, Utf8Stays) {
  EXPECT_EQ(markup("conv\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"),
            "conv\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
}

TEST(Markup, WhatIsNoUtf8IsReplacedByteByByte) {
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(markup("a\xFF"
                   "b"),
            "a" + replaced + "b");
  EXPECT_EQ(markup("\xC3"), replaced);                 // cut off
  EXPECT_EQ(markup("\xC0\xAF"), replaced + replaced);  // `/`, longer than it needs to be
  EXPECT_EQ(markup("\xED\xA0\x80"), replaced + replaced + replaced);  // half of a surrogate pair
  EXPECT_EQ(markup("\xF4\x90\x80\x80"), replaced + replaced + replaced + replaced);
  EXPECT_EQ(markup(std::string_view("\0\x1b\x7f", 3)), replaced + replaced + replaced);
  EXPECT_EQ(markup("a\tb\nc"), "a\tb\nc");
}

TEST(Markup, TextsAreCutBetweenCharacters) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdefg", 6), "abc...");
  EXPECT_EQ(shortened("ab\xC3\xA9"
                      "fgh",
                      6),
            "ab...");
  EXPECT_EQ(shortened("abc", 2), "...");
}

}  // namespace
}  // namespace tenon
