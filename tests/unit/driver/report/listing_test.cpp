// SPDX-License-Identifier: Apache-2.0
#include "tenon/driver/report/listing.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Listing, FunctionsAreCutOutWithTheirParts) {
  const auto functions = functions_of(R"(	.text
	.type	fn.f,@function
fn.f:
	.cfi_startproc
	leaq	fn.f.task(%rip), %rsi
	retq
.Lfunc_end0:
	.size	fn.f, .Lfunc_end0-fn.f
	.section	.rodata
.LCPI1_0:
	.long	1
	.text
	.type	fn.g,@function
fn.g:
	retq
	.size	fn.g, .Lfunc_end1-fn.g
	.type	fn.f.body,@function
fn.f.body:
	vaddps	%ymm0, %ymm1, %ymm2
	.size	fn.f.body, .Lfunc_end2-fn.f.body
)");
  ASSERT_EQ(functions.size(), 2U);
  EXPECT_EQ(functions.at("fn.f"),
            "fn.f:\n\tleaq\tfn.f.task(%rip), %rsi\n\tretq\nfn.f.body:\n\tvaddps\t%ymm0, %ymm1, "
            "%ymm2\n");
  EXPECT_EQ(functions.at("fn.g"), "fn.g:\n\tretq\n");
}

TEST(Listing, NamesInQuotesAreGivenWithoutThem) {
  const auto functions =
      functions_of("\t.type\t\"fn.a b\",@function\n\"fn.a b\":\n\tret\n\t.size\t\"fn.a b\", 4\n");
  ASSERT_EQ(functions.count("fn.a b"), 1U);
}

TEST(Listing, NothingHasNoFunctions) { EXPECT_TRUE(functions_of("").empty()); }

}  // namespace
}  // namespace tenon
