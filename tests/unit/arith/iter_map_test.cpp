// SPDX-License-Identifier: Apache-2.0
#include "tenon/arith/iter_map.h"

#include <gtest/gtest.h>

#include <set>

#include "random_exprs.h"

namespace tenon::arith {
namespace {

class IterMaps : public ::testing::Test {
 protected:
  // "i -> extents; inverse", or "none"
  std::string of(const std::vector<Expr>& indices, const std::vector<Iterator>& domain,
                 MapKind kind = MapKind::kBijective, const Expr& predicate = {}) {
    const auto map = detect_iter_map(analyzer, indices, domain, kind, predicate);
    if (!map) return "none";
    return str(map->extent) + " " + str(map->inverse);
  }
  static Iterator iterator(const Ref<Var>& var, const Expr& extent) {
    return {var, imm(var->dtype, int64_t{0}), extent};
  }

  Analyzer analyzer;
  Ref<Var> i = var("i"), j = var("j"), k = var("k"), n = Var::size("n"), m = Var::size("m");
};

TEST_F(IterMaps, SplitsAndFusions) {
  const std::vector<Iterator> ij{iterator(i, int64(4)), iterator(j, int64(8))};
  EXPECT_EQ(of({i, j}, ij), "(4, 8) (y0, y1)");
  EXPECT_EQ(of({j, i}, ij), "(8, 4) (y1, y0)");
  EXPECT_EQ(of({i * 8 + j}, ij), "(32,) (y0 // 8, y0 % 8)");
  EXPECT_EQ(of({i * 8 + j + 3}, ij), "(32,) ((y0 + 5) // 8 - 1, (y0 + 5) % 8)");
  EXPECT_EQ(of({floordiv(i * 8 + j, 2), floormod(Expr(j), 2)}, ij),
            "(16, 2) (y0 // 4, y0 % 4 * 2 + y1)");
  EXPECT_EQ(of({floordiv(j, 4), Expr(i), floormod(j, 4)}, ij), "(2, 4, 4) (y1, y0 * 4 + y2)");
  // A fused index split across the seam of its parts.
  const std::vector<Iterator> odd{iterator(i, int64(4)), iterator(j, int64(6))};
  EXPECT_EQ(of({floordiv(i * 6 + j, 8), floormod(i * 6 + j, 8)}, odd),
            "(3, 8) ((y0 * 8 + y1) // 6, (y0 * 8 + y1) % 6)");
}

TEST_F(IterMaps, WhatIsNone) {
  const std::vector<Iterator> ij{iterator(i, int64(4)), iterator(j, int64(8))};
  EXPECT_EQ(of({i * 4 + j}, ij), "none");  // overlaps
  EXPECT_EQ(of({Expr(i)}, ij), "none");    // j is lost
  EXPECT_EQ(of({i + j}, ij), "none");
  EXPECT_EQ(of({Expr(i), Expr(j), Expr(j)}, ij), "none");  // the diagonal of a box
  EXPECT_EQ(of({i * 16 + j}, ij), "none");                 // gaps
  EXPECT_EQ(of({i * 16 + j}, ij, MapKind::kInjective), "(64,) (y0 // 16, y0 % 16)");
  EXPECT_EQ(of({i * 4 + j}, ij, MapKind::kInjective), "none");
  EXPECT_EQ(of({i * Expr(j)}, ij), "none");
  const std::vector<Iterator> j10{iterator(j, int64(10))};
  EXPECT_EQ(of({floordiv(j, 4), floormod(j, 4)}, j10), "none");  // 3 x 4 holds 12 points
  EXPECT_EQ(of({floordiv(j, 4), floormod(j, 4)}, j10, MapKind::kInjective),
            "(3, 4) (y0 * 4 + y1,)");
}

TEST_F(IterMaps, Symbols) {
  const std::vector<Iterator> domain{iterator(i, n), iterator(j, m)};
  EXPECT_EQ(of({i * Expr(m) + j}, domain), "(m * n,) (y0 // m, y0 % m)");
  EXPECT_EQ(of({Expr(j), Expr(i)}, domain), "(m, n) (y1, y0)");
  const std::vector<Iterator> tiled{iterator(i, ceildiv(n, int64(4))), iterator(j, int64(4))};
  EXPECT_EQ(of({i * 4 + j}, tiled, MapKind::kBijective, i * 4 + j < Expr(n)),
            "(n,) (y0 // 4, y0 % 4)");
  const std::vector<Iterator> whole{iterator(i, n), iterator(k, int64(1))};
  EXPECT_EQ(of({i + k}, whole), "(n,) (y0, 0)");
}

// Random chains of splits and fusions, and what was found compared with the points themselves.
TEST_F(IterMaps, AgreeWithEnumeration) {
  RandomExprs random({i, j, k}, kInt64, 11);
  int found = 0, injective = 0;
  for (int round = 0; round < 1500; ++round) {
    const int64_t extents[] = {random.number(1, 6), random.number(1, 8), random.number(1, 4)};
    const std::vector<Iterator> domain{iterator(i, int64(extents[0])),
                                       iterator(j, int64(extents[1])),
                                       iterator(k, int64(extents[2]))};
    std::vector<Expr> parts{i, j, k};
    std::vector<int64_t> sizes(extents, extents + 3);
    for (int step = 0; step < 3; ++step) {
      const size_t at = random.number(0, parts.size() - 1);
      const int64_t c = random.number(1, 6);
      if (random.number(0, 1)) {
        const Expr part = parts[at];
        parts[at] = floordiv(part, c);
        parts.insert(parts.begin() + at + 1, floormod(part, c));
        sizes[at] = (sizes[at] + c - 1) / c;
        sizes.insert(sizes.begin() + at + 1, c);
      } else if (at + 1 < parts.size()) {
        const int64_t scale = random.number(0, 3) ? sizes[at + 1] : c;
        parts[at] = parts[at] * scale + parts[at + 1];
        sizes[at] = sizes[at] * sizes[at + 1];
        parts.erase(parts.begin() + at + 1);
        sizes.erase(sizes.begin() + at + 1);
      }
    }
    for (const MapKind kind : {MapKind::kBijective, MapKind::kInjective}) {
      const auto map = detect_iter_map(analyzer, parts, domain, kind);
      if (!map) continue;
      (kind == MapKind::kBijective ? found : injective)++;
      std::set<std::vector<int64_t>> seen;
      for (int64_t a = 0; a < extents[0]; ++a)
        for (int64_t b = 0; b < extents[1]; ++b)
          for (int64_t c = 0; c < extents[2]; ++c) {
            const Point point{{i.get(), a}, {j.get(), b}, {k.get(), c}};
            Point image;
            std::vector<int64_t> values;
            for (size_t d = 0; d < parts.size(); ++d) {
              values.push_back(*evaluate(parts[d], point));
              image[map->placeholders[d].get()] = values[d];
            }
            EXPECT_TRUE(seen.insert(values).second) << str(parts);
            const int64_t expected[] = {a, b, c};
            for (size_t d = 0; d < 3; ++d)
              ASSERT_EQ(evaluate(map->inverse[d], image), expected[d])
                  << str(parts) << " inverse " << str(map->inverse);
          }
      int64_t box = 1;
      for (const Expr& extent : map->extent) box *= as_int(extent).value();
      if (kind == MapKind::kBijective) ASSERT_EQ(seen.size(), box) << str(parts);
    }
  }
  EXPECT_GT(found, 300);
  EXPECT_GT(injective, found);
}

}  // namespace
}  // namespace tenon::arith
