// SPDX-License-Identifier: Apache-2.0
// Native code against expected values: every operation and dtype, loops, calls, checks.
#include <cmath>
#include <limits>

#include "run_program.h"

namespace tenon::llvm_backend {
namespace {

using namespace tir;

Ref<Buffer> buffer(const std::string& name, DType dtype, std::vector<Expr> shape) {
  return make<Buffer>(name, dtype, std::move(shape));
}

/// out[i] = f(a[i], b[i]) for i < n.
template <typename F>
Ref<PrimFunc> elementwise(DType in, DType out, int64_t n, F f) {
  auto a = buffer("a", in, {int64(n)}), b = buffer("b", in, {int64(n)});
  auto c = buffer("c", out, {int64(n)});
  auto i = var("i");
  Stmt body = nest({i}, {int64(n)},
                   make<BufferStore>(c, f(load(a, {i}), load(b, {i})), std::vector<Expr>{i}));
  return PrimFunc::of_buffers({a, b, c}, body);
}

template <typename T, typename F, typename G>
void expect_binary(DType dtype, const std::vector<T>& a, const std::vector<T>& b, F expr,
                   G scalar) {
  const auto kernel = elementwise(dtype, dtype, static_cast<int64_t>(a.size()), expr);
  std::vector<Bytes> inputs;
  inputs.emplace_back(a);
  inputs.emplace_back(b);
  const auto got = run_kernel(kernel, std::move(inputs), a.size() * sizeof(T)).template as<T>();
  for (size_t i = 0; i < a.size(); ++i) {
    const T want = scalar(a[i], b[i]);
    if (want != want) {
      EXPECT_TRUE(got[i] != got[i]) << "at " << i;
    } else {
      EXPECT_EQ(got[i], want) << "of " << +a[i] << " and " << +b[i];
    }
  }
}

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInf = std::numeric_limits<float>::infinity();

TEST(Codegen, MinAndMaxGiveNanWhereEitherIs) {
  const std::vector<float> a{1, 2, kNan, 3, kNan, -kInf, 5, 0, 1};
  const std::vector<float> b{2, 1, 3, kNan, kNan, 1, kInf, -1, 1};
  expect_binary<float>(
      kFloat32, a, b, [](Expr x, Expr y) { return max(x, y); },
      [](float x, float y) { return x != x || y != y ? kNan : std::max(x, y); });
  expect_binary<float>(
      kFloat32, a, b, [](Expr x, Expr y) { return min(x, y); },
      [](float x, float y) { return x != x || y != y ? kNan : std::min(x, y); });
  expect_binary<float>(
      kFloat32, a, b, [](Expr x, Expr) { return max(x, imm(kFloat32, 0.0)); },
      [](float x, float) { return x != x ? kNan : std::max(x, 0.0f); });
  expect_binary<float>(
      kFloat32, a, b, [](Expr x, Expr) { return min(imm(kFloat32, 1.0), x); },
      [](float x, float) { return x != x ? kNan : std::min(x, 1.0f); });
}

// InstCombine must not take `|x| > 0` for `x > 0`.
TEST(Codegen, MaxOfAnAbsoluteValueAndAZeroThatIsFoundLater) {
  const std::vector<float> a{1, -2, kNan, -kInf, 0, -0.0f, -1e-40f, 3, -4};
  const auto zero = [] {
    const auto v = var("v", kFloat32);
    return Expr(make<Let>(v, imm(kFloat32, 0.0), v));
  };
  const auto absolute = [](Expr x) { return call(IntrinsicId::kFabs, {x}); };
  expect_binary<float>(
      kFloat32, a, a, [&](Expr x, Expr) { return max(absolute(x), zero()); },
      [](float x, float) { return std::fabs(x); });
  expect_binary<float>(
      kFloat32, a, a, [&](Expr x, Expr) { return min(absolute(x), zero()); },
      [](float x, float) { return x != x ? kNan : 0.0f; });
  // The same written by hand, and from the other side.
  const Expr none = imm(kFloat32, 0.0);
  expect_binary<float>(
      kFloat32, a, a,
      [&](Expr x, Expr) {
        const Expr y = absolute(x);
        return make<Select>(call(IntrinsicId::kIsnan, {y}), y, make<Select>(y > none, y, none));
      },
      [](float x, float) { return std::fabs(x); });
  expect_binary<float>(
      kFloat32, a, a,
      [&](Expr x, Expr) {
        const Expr y = absolute(x);
        return make<Select>(call(IntrinsicId::kIsnan, {y}), y, make<Select>(none < y, y, none));
      },
      [](float x, float) { return std::fabs(x); });
  // Every comparison with 0 is that of the absolute value.
  using Compare = Expr (*)(Expr, Expr);
  const std::pair<Compare, bool (*)(float)> kCompares[] = {
      {[](Expr x, Expr y) { return x > y; }, [](float x) { return x > 0; }},
      {[](Expr x, Expr y) { return x >= y; }, [](float x) { return x >= 0; }},
      {[](Expr x, Expr y) { return x < y; }, [](float x) { return x < 0; }},
      {[](Expr x, Expr y) { return x <= y; }, [](float x) { return x <= 0; }},
      {[](Expr x, Expr y) { return eq(x, y); }, [](float x) { return x == 0; }},
      {[](Expr x, Expr y) { return ne(x, y); }, [](float x) { return x != 0; }}};
  for (const auto& [compare, expected] : kCompares)
    expect_binary<float>(
        kFloat32, a, a,
        [&, compare = compare](Expr x, Expr) {
          return make<Select>(compare(absolute(x), none), imm(kFloat32, 1.0), none);
        },
        [expected = expected](float x, float) { return expected(std::fabs(x)) ? 1.0f : 0.0f; });
}

TEST(Codegen, MaxWithAConstantIsOneInstruction) {
  const auto a = buffer("a", kFloat32, {int64(16)}), c = buffer("c", kFloat32, {int64(16)});
  const Expr lanes = make<Ramp>(int64(0), int64(1), 16);
  const auto kernel = PrimFunc::of_buffers(
      {a, c}, make<BufferStore>(c, max(load(a, {lanes}), imm(kFloat32.with_lanes(16), 0.0)),
                                std::vector<Expr>{lanes}));
  const std::string text =
      emit_assembly(program_of(kernel), resolve_target("llvm -mcpu=skylake-avx512"));
  EXPECT_NE(text.find("vmaxps"), std::string::npos) << text;
  EXPECT_EQ(text.find("vcmp"), std::string::npos) << text;
}

// A copy of the elements of 6 rows of 9 at each of `places`, which are of row `i`.
static Ref<PrimFunc> copies_of(const Ref<Var>& i, const std::vector<Expr>& places) {
  const auto a = buffer("a", kFloat32, {int64(54)}), c = buffer("c", kFloat32, {int64(54)});
  std::vector<Stmt> stores;
  for (const Expr& place : places)
    stores.push_back(make<BufferStore>(c, load(a, {place}), std::vector<Expr>{place}));
  return PrimFunc::of_buffers({a, c}, nest({i}, {int64(6)}, seq(stores)),
                              Attrs{{"tir.is_scheduled", true}});
}

// With the constant in the index, each element gets an index of its own: `i * 8 | 3`.
TEST(Codegen, ElementsAConstantApartHaveOnePointer) {
  const auto i = var("i");
  const std::string text = emit_llvm(
      program_of(copies_of(i, {i * int64(8), i * int64(8) + int64(3), int64(5) + i * int64(8),
                               (i * int64(8) - int64(2)) + int64(9)})),
      host());
  EXPECT_EQ(text.find("or disjoint"), std::string::npos) << text;
}

TEST(Codegen, ConstantsOfIndicesCountWhereverTheyAre) {
  const auto i = var("i");
  const auto kernel =
      copies_of(i, {i * int64(9) + int64(3), int64(5) + i * int64(9),
                    (i + int64(1)) * int64(9) - int64(9), (i * int64(9) - int64(2)) + int64(10),
                    (int64(2) + i * int64(4)) + (int64(5) + i * int64(5))});
  std::vector<float> in(54);
  for (size_t k = 0; k < in.size(); ++k) in[k] = static_cast<float>(k + 1);
  std::vector<Bytes> buffers;
  buffers.emplace_back(in);
  const auto out = run_kernel(kernel, std::move(buffers), in.size() * sizeof(float)).as<float>();
  for (size_t row = 0; row < 6; ++row)
    for (const size_t column : {0, 3, 5, 7, 8})
      EXPECT_EQ(out[row * 9 + column], in[row * 9 + column]) << row << " " << column;
}

// A copy of the elements at `places` of `i` and `j`, which are of 6 rows of 9.
static Ref<PrimFunc> copies_of(const Ref<Var>& i, const Ref<Var>& j,
                               const std::vector<Expr>& places) {
  const auto a = buffer("a", kFloat32, {int64(54)}), c = buffer("c", kFloat32, {int64(54)});
  std::vector<Stmt> stores;
  for (const Expr& place : places)
    stores.push_back(make<BufferStore>(c, load(a, {place}), std::vector<Expr>{place}));
  return PrimFunc::of_buffers({a, c}, nest({i, j}, {int64(6), int64(3)}, seq(stores)),
                              Attrs{{"tir.is_scheduled", true}});
}

static size_t count(const std::string& text, const std::string& word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

// One sum in an iteration of each loop, for what is read and what is written.
TEST(Codegen, PointersAdvance) {
  const auto i = var("i"), j = var("j");
  const Expr place = i * int64(9) + j * int64(3);
  const auto kernel = copies_of(i, j, {place, place + int64(1), place + int64(2)});
  const std::string text = emit_llvm(program_of(kernel), host());
  EXPECT_EQ(count(text, "phi ptr"), 4) << text;
  EXPECT_EQ(count(text, " mul "), 0) << text;
  EXPECT_EQ(count(text, " shl "), 0) << text;
}

// Rows that no constant is between: their offsets stay, and one pointer into each buffer advances.
TEST(Codegen, RowsInAnyOrderShareAPointer) {
  const auto i = var("i"), j = var("j");
  std::vector<Expr> places;
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t k = 0; k < 3; ++k)
      places.push_back(floormod(i + int64(row), int64(6)) * int64(9) + j * int64(3) + int64(k));
  const auto kernel = copies_of(i, j, places);
  const std::string text = emit_llvm(program_of(kernel), host());
  EXPECT_EQ(count(text, "phi ptr"), 2) << text;
  std::vector<float> in(54);
  for (size_t k = 0; k < in.size(); ++k) in[k] = static_cast<float>(k + 1);
  std::vector<Bytes> buffers;
  buffers.emplace_back(in);
  const auto out = run_kernel(kernel, std::move(buffers), in.size() * sizeof(float)).as<float>();
  for (size_t k = 0; k < in.size(); ++k) EXPECT_EQ(out[k], in[k]) << k;
}

// Elements that are read under conditions have one pointer in common, made in front of the first of these.
TEST(Codegen, GuardedReadsShareAPointer) {
  const auto a = buffer("a", kFloat32, {int64(54)}), c = buffer("c", kFloat32, {int64(54)});
  const auto i = var("i"), j = var("j");
  std::vector<Stmt> stores;
  for (int64_t k = -2; k < 4; ++k) {
    const Expr from = i * int64(9) + j * int64(3) + int64(k);
    const Expr inside = logical_and(from >= int64(0), from < int64(54));
    stores.push_back(make<BufferStore>(
        c, if_then_else(inside, load(a, {from}), imm(kFloat32, -1.0)),
        std::vector<Expr>{floormod(i * int64(9) + j * int64(3) + int64(k + 2), int64(54))}));
  }
  const auto kernel = PrimFunc::of_buffers({a, c}, nest({i, j}, {int64(6), int64(3)}, seq(stores)));
  std::vector<float> in(54);
  for (size_t k = 0; k < in.size(); ++k) in[k] = static_cast<float>(k + 1);
  std::vector<Bytes> buffers;
  buffers.emplace_back(in);
  const auto out = run_kernel(kernel, std::move(buffers), in.size() * sizeof(float)).as<float>();
  for (size_t k = 4; k < in.size(); ++k) EXPECT_EQ(out[k], in[k - 2]) << k;
  const std::string text = emit_llvm(program_of(kernel), host());
  const std::string body = text.substr(0, text.find("then"));
  EXPECT_EQ(count(text, " mul "), count(body, " mul ")) << text;
}

// What a branch made is not known behind it, where a value is chosen next without any address.
TEST(Codegen, PointersOfABranchEndWithIt) {
  const auto a = buffer("a", kFloat32, {int64(54)}), c = buffer("c", kFloat32, {int64(54)});
  const auto i = var("i"), j = var("j");
  const Expr place = i * int64(9) + j * int64(3);
  const auto put = [&](const Expr& at, const Expr& value) {
    return Stmt(make<BufferStore>(c, value, std::vector<Expr>{at}));
  };
  const Stmt branch = make<IfThenElse>(i > int64(3), put(place, load(a, {place})));
  const Expr chosen = if_then_else(j > int64(0), floordiv(i, j), int64(7));
  const auto kernel = PrimFunc::of_buffers(
      {a, c}, nest({i, j}, {int64(6), int64(3)},
                   seq({branch, put(place + int64(1), make<Cast>(kFloat32, chosen))})));
  std::vector<Bytes> buffers;
  buffers.emplace_back(std::vector<float>(54, 5));
  const auto out = run_kernel(kernel, std::move(buffers), 54 * sizeof(float)).as<float>();
  EXPECT_EQ(out[1], 7);
  EXPECT_EQ(out[5 * 9 + 2 * 3 + 1], 2);
  EXPECT_EQ(out[5 * 9 + 2 * 3], 5);
}

// A variable that is bound twice in one block is two values.
TEST(Codegen, PointersFollowTheirVariables) {
  const auto a = buffer("a", kFloat32, {int64(4)}), c = buffer("c", kFloat32, {int64(4)});
  const auto i = var("i");
  std::vector<Stmt> body;
  for (const int64_t from : {0, 2}) {
    body.push_back(make<Bind>(i, int64(from)));
    body.push_back(make<BufferStore>(c, load(a, {i + int64(1)}), std::vector<Expr>{i}));
  }
  std::vector<Bytes> buffers;
  buffers.emplace_back(std::vector<float>{1, 2, 3, 4});
  const auto out = run_kernel(PrimFunc::of_buffers({a, c}, seq(body)), std::move(buffers), 16);
  EXPECT_EQ(out.as<float>()[0], 2);
  EXPECT_EQ(out.as<float>()[2], 4);
}

// Vectors wider than the target's, which a schedule of one's own may ask for: LLVM divides them, but not
// instructions by name.
TEST(Codegen, WiderVectorsThanTheTargetsAreDivided) {
  const DType floats = kFloat32.with_lanes(16), words = kInt32.with_lanes(16);
  const auto a = buffer("a", kFloat32, {int64(16)}), c = buffer("c", kInt32, {int64(16)});
  const Expr lanes = make<Ramp>(int64(0), int64(1), 16);
  const Expr bounded = min(max(load(a, {lanes}), imm(floats, -128.0)), imm(floats, 127.0));
  const Expr rounded = make<Cast>(words, call(IntrinsicId::kRound, {bounded}));
  const auto kernel =
      PrimFunc::of_buffers({a, c}, make<BufferStore>(c, rounded, std::vector<Expr>{lanes}));
  const auto assembly = [&](const char* target) {
    return emit_assembly(program_of(kernel), resolve_target(target));
  };
  EXPECT_NE(assembly("llvm -mcpu=skylake-avx512").find("vcvtps2dq"), std::string::npos);
  for (const char* bits : {"128", "256"}) {
    const std::string text =
        assembly(fmt::format("llvm -mcpu=skylake-avx512 -vector-bits={}", bits).c_str());
    EXPECT_NE(text.find("cvt"), std::string::npos) << text;
    EXPECT_EQ(text.find("zmm"), std::string::npos) << text;
  }
}

// Of numbers of up to four bits a vector of floats is looked up: by lanes whose other bits are not
// masked, and with what is taken off them in the table.
TEST(Codegen, FloatsOfFewBitsAreLookedUp) {
  const DType words = kUInt32.with_lanes(16), floats = kFloat32.with_lanes(16);
  const auto a = buffer("a", kUInt32, {int64(16)}), c = buffer("c", kFloat32, {int64(16)});
  const Expr lanes = make<Ramp>(int64(0), int64(1), 16);
  const auto text_of = [&](int64_t mask, const char* target) {
    const Expr shifted = call(IntrinsicId::kShiftRight, {load(a, {lanes}), imm(words, int64_t{8})});
    const Expr number = call(IntrinsicId::kBitwiseAnd, {shifted, imm(words, mask)});
    const Expr value = cast(floats, number) - imm(floats, 8.0);
    const auto kernel =
        PrimFunc::of_buffers({a, c}, make<BufferStore>(c, value, std::vector<Expr>{lanes}));
    return emit_assembly(program_of(kernel), resolve_target(target));
  };
  for (const int64_t mask : {3, 15}) {
    const std::string text = text_of(mask, "llvm -mcpu=skylake-avx512");
    EXPECT_NE(text.find("vperm"), std::string::npos) << text;
    for (const char* other : {"vcvt", "vpand", "vsubps", "vaddps"})
      EXPECT_EQ(text.find(other), std::string::npos) << text;
  }
  EXPECT_EQ(text_of(31, "llvm -mcpu=skylake-avx512").find("vperm"), std::string::npos);
  EXPECT_EQ(text_of(15, "llvm -mcpu=haswell").find("vpermps"), std::string::npos);
}

// Not lane by lane, as LLVM compares halves on a processor that only converts them.
TEST(Codegen, HalvesAreComparedAsVectors) {
  const auto a = buffer("a", kFloat16, {int64(16)}), c = buffer("c", kFloat32, {int64(16)});
  const Expr lanes = make<Ramp>(int64(0), int64(1), 16);
  const Expr loaded = load(a, {lanes});
  const Expr x = cast(kFloat32.with_lanes(16), loaded + loaded);
  const auto number = [](double value) { return imm(kFloat32.with_lanes(16), value); };
  const Expr value = select(logical_or(ne(x, x), eq(x, number(0))), number(1), x);
  const auto kernel =
      PrimFunc::of_buffers({a, c}, make<BufferStore>(c, value, std::vector<Expr>{lanes}));
  for (const char* target : {"llvm -mcpu=skylake-avx512", "llvm -mcpu=haswell"}) {
    const std::string text = emit_assembly(program_of(kernel), resolve_target(target));
    EXPECT_NE(text.find("vcvtph2ps"), std::string::npos) << text;
    EXPECT_EQ(text.find("comiss"), std::string::npos) << text;
  }
}

template <typename T>
std::vector<T> edge_values() {
  const T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  return {least,
          static_cast<T>(least + 1),
          static_cast<T>(0 - 7),
          static_cast<T>(0 - 1),
          0,
          1,
          2,
          7,
          100,
          static_cast<T>(most - 1),
          most};
}

template <typename T>
class CodegenIntegers : public testing::Test {};
using IntegerTypes =
    testing::Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(CodegenIntegers, IntegerTypes);

TYPED_TEST(CodegenIntegers, EveryOperationMatchesFolding) {
  using T = TypeParam;
  DType dtype = std::is_signed_v<T> ? kInt64 : kUInt64;
  dtype.bits = sizeof(T) * 8;
  std::vector<T> a, b;
  for (const T x : edge_values<T>())
    for (const T y : edge_values<T>()) {
      a.push_back(x);
      b.push_back(y);
    }
  for (int op = 0; op < static_cast<int>(BinaryOp::kEQ); ++op) {
    const auto code = static_cast<BinaryOp>(op);
    std::vector<T> divisors = b;
    if (code >= BinaryOp::kDiv && code <= BinaryOp::kFloorMod)
      for (T& y : divisors) y = y == 0 ? T{3} : y;
    expect_binary<T>(
        dtype, a, divisors, [&](Expr x, Expr y) { return make<Binary>(code, x, y); },
        [&](T x, T y) {
          return static_cast<T>(
              *fold_int(code, dtype, static_cast<int64_t>(x), static_cast<int64_t>(y)));
        });
  }
  for (const int64_t divisor : {1, 2, 3, 8, 64, 100}) {  // by constants
    for (const BinaryOp code :
         {BinaryOp::kFloorDiv, BinaryOp::kFloorMod, BinaryOp::kDiv, BinaryOp::kMod})
      expect_binary<T>(
          dtype, a, b,
          [&](Expr x, Expr) { return Expr(make<Binary>(code, x, imm(x->dtype, divisor))); },
          [&](T x, T) {
            return static_cast<T>(*fold_int(code, dtype, static_cast<int64_t>(x), divisor));
          });
  }
}

TYPED_TEST(CodegenIntegers, Comparisons) {
  using T = TypeParam;
  DType dtype = std::is_signed_v<T> ? kInt64 : kUInt64;
  dtype.bits = sizeof(T) * 8;
  std::vector<T> a, b;
  for (const T x : edge_values<T>())
    for (const T y : edge_values<T>()) {
      a.push_back(x);
      b.push_back(y);
    }
  for (int op = static_cast<int>(BinaryOp::kEQ); op <= static_cast<int>(BinaryOp::kGE); ++op) {
    const auto code = static_cast<BinaryOp>(op);
    const auto kernel = elementwise(dtype, kBool, static_cast<int64_t>(a.size()),
                                    [&](Expr x, Expr y) { return make<Binary>(code, x, y); });
    std::vector<Bytes> inputs;
    inputs.emplace_back(a);
    inputs.emplace_back(b);
    const auto got = run_kernel(kernel, std::move(inputs), a.size()).template as<uint8_t>();
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_EQ(got[i],
                *fold_int(code, dtype, static_cast<int64_t>(a[i]), static_cast<int64_t>(b[i])));
  }
}

TEST(Codegen, CastsSaturateAndTruncate) {
  const std::vector<float> a{1.9f, -1.9f, 300.f, -300.f, 3e9f, -3e9f, kNan, kInf, 0.5f, 254.6f};
  const auto cast_to = [&](DType to) {
    return elementwise(kFloat32, to, static_cast<int64_t>(a.size()),
                       [&](Expr x, Expr) { return cast(to, x); });
  };
  const auto run_cast = [&](DType to) {
    std::vector<Bytes> inputs;
    inputs.emplace_back(a);
    inputs.emplace_back(a);
    return run_kernel(cast_to(to), std::move(inputs), a.size() * static_cast<size_t>(to.bytes()));
  };
  EXPECT_EQ(run_cast(kInt8).as<int8_t>(),
            (std::vector<int8_t>{1, -1, 127, -128, 127, -128, 0, 127, 0, 127}));
  EXPECT_EQ(run_cast(kUInt8).as<uint8_t>(),
            (std::vector<uint8_t>{1, 0, 255, 0, 255, 0, 0, 255, 0, 254}));
  EXPECT_EQ(run_cast(kInt32).as<int32_t>(),
            (std::vector<int32_t>{1, -1, 300, -300, INT32_MAX, INT32_MIN, 0, INT32_MAX, 0, 254}));
  EXPECT_EQ(run_cast(kBool).as<uint8_t>(), (std::vector<uint8_t>{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
}

TEST(Codegen, SmallFloatsRoundToNearestEven) {
  const std::vector<float> a{1.0f,   1.00390625f, 1.01171875f, 3.3e38f, kInf,   -kInf,
                             1e-40f, 65504.f,     65520.f,     6e-8f,   -3e-6f, kNan};
  const auto n = static_cast<int64_t>(a.size());
  const auto twice = [](const auto& values) {
    std::vector<Bytes> inputs;
    inputs.emplace_back(values);
    inputs.emplace_back(values);
    return inputs;
  };
  const auto cast_to = [&](DType dtype) {
    return elementwise(kFloat32, dtype, n, [&](Expr x, Expr) { return cast(dtype, x); });
  };
  // The first has no instructions for float16.
  for (const char* name : {"llvm -mcpu=x86-64", "llvm -mcpu=haswell", "native"}) {
    const Target target = resolve_target(name);
    auto brain = run_kernel(cast_to(kBFloat16), twice(a), a.size() * 2, target).as<uint16_t>();
    EXPECT_GT(brain.back() & 0x7fff, 0x7f80);
    brain.pop_back();
    EXPECT_EQ(brain, (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f82, 0x7f78, 0x7f80, 0xff80, 0x0001,
                                            0x4780, 0x4780, 0x3381, 0xb649}));
    auto half = run_kernel(cast_to(kFloat16), twice(a), a.size() * 2, target).as<uint16_t>();
    EXPECT_GT(half.back() & 0x7fff, 0x7c00);
    half.pop_back();
    EXPECT_EQ(half, (std::vector<uint16_t>{0x3c00, 0x3c04, 0x3c0c, 0x7c00, 0x7c00, 0xfc00, 0x0000,
                                           0x7bff, 0x7c00, 0x0001, 0x8032}));
    const auto sum = elementwise(kFloat16, kFloat16, n - 1, [](Expr x, Expr y) { return x + y; });
    const auto doubled = run_kernel(sum, twice(half), half.size() * 2, target).as<uint16_t>();
    EXPECT_EQ(doubled, (std::vector<uint16_t>{0x4000, 0x4004, 0x400c, 0x7c00, 0x7c00, 0xfc00,
                                              0x0000, 0x7c00, 0x7c00, 0x0002, 0x8064}));
  }
}

TEST(Codegen, DivisionByZeroIsReported) {
  const auto kernel = elementwise(kInt32, kInt32, 4, [](Expr x, Expr y) { return floordiv(x, y); });
  const auto program = load(program_of(kernel));
  std::vector<Bytes> buffers;
  buffers.emplace_back(std::vector<int32_t>{1, 2, 3, 4});
  buffers.emplace_back(std::vector<int32_t>{1, 2, 0, 4});
  buffers.emplace_back(16);
  Host host;
  EXPECT_EQ(run(*program, host, buffers), TENON_ERROR_VALUE);
  EXPECT_EQ(host.message, "integer division by zero");
}

TEST(Codegen, AssertReportsValueAndBound) {
  auto a = buffer("a", kInt64, {int64(3)}), c = buffer("c", kInt64, {int64(3)});
  auto i = var("i");
  const Expr index = load(a, {i});
  Stmt body = seq({make<Assert>(logical_and(index >= int64(0), index < int64(3)),
                                "index {value} is out of {bound}"),
                   make<BufferStore>(c, load(a, {index}), std::vector<Expr>{i})});
  const auto kernel = PrimFunc::of_buffers({a, c}, nest({i}, {int64(3)}, body), {},
                                           Origin::model("m.onnx", "gather_1", "Gather"));
  const auto program = load(program_of(kernel));
  std::vector<Bytes> buffers;
  buffers.emplace_back(std::vector<int64_t>{2, 1, 0});
  buffers.emplace_back(24);
  Host host;
  EXPECT_EQ(run(*program, host, buffers), 0);
  EXPECT_EQ(buffers[1].as<int64_t>(), (std::vector<int64_t>{0, 1, 2}));
  buffers[0] = Bytes(std::vector<int64_t>{2, 7, 0});
  EXPECT_EQ(run(*program, host, buffers), TENON_ERROR_INDEX);
  EXPECT_EQ(host.value, 7);
  EXPECT_EQ(host.bound, 3);
  EXPECT_EQ(host.where, "gather_1");
}

TEST(Codegen, IfThenElseGuardsReads) {
  auto a = buffer("a", kFloat32, {int64(4)}), c = buffer("c", kFloat32, {int64(6)});
  auto i = var("i");
  const Expr inside = logical_and(i >= int64(1), i < int64(5));
  const auto kernel = PrimFunc::of_buffers(
      {a, c}, nest({i}, {int64(6)},
                   make<BufferStore>(c, if_then_else(inside, load(a, {i - 1}), imm(kFloat32, 9.0)),
                                     std::vector<Expr>{i})));
  std::vector<Bytes> inputs;
  inputs.emplace_back(std::vector<float>{1, 2, 3, 4});
  EXPECT_EQ(run_kernel(kernel, std::move(inputs), 24).as<float>(),
            (std::vector<float>{9, 1, 2, 3, 4, 9}));
}

TEST(Codegen, VectorsOfAllForms) {
  auto a = buffer("a", kFloat32, {int64(64)}), c = buffer("c", kFloat32, {int64(64)});
  const auto ramp = [](int64_t base, int64_t stride, int64_t lanes) -> Expr {
    return make<Ramp>(int64(base), int64(stride), lanes);
  };
  const auto store = [&](Expr index, Expr value) -> Stmt {
    return make<BufferStore>(c, value, std::vector<Expr>{index});
  };
  const Expr mask = make<Ramp>(int32(0), int32(1), 8) < make<Broadcast>(int32(5), 8);
  const Expr shuffled =
      make<Shuffle>(std::vector<Expr>{load(a, {ramp(0, 1, 4)}), load(a, {ramp(8, 1, 8)})},
                    std::vector<int64_t>{11, 0, 4, 3});
  const Expr gathered = load(a, {make<Ramp>(int64(0), int64(1), 8) * make<Broadcast>(int64(3), 8)});
  // Offsets 2, 3, 2, 3, ... begin like every third element and are not.
  const Expr in_turn =
      load(a, {floormod(make<Ramp>(int64(0), int64(1), 8), make<Broadcast>(int64(2), 8)) +
               make<Broadcast>(int64(2), 8)});
  const auto kernel = PrimFunc::of_buffers(
      {a, c}, seq({store(ramp(0, 1, 16), make<Broadcast>(imm(kFloat32, -1.0), 16)),
                   store(ramp(16, 1, 16), make<Broadcast>(imm(kFloat32, -1.0), 16)),
                   store(ramp(32, 1, 32), make<Broadcast>(imm(kFloat32, -1.0), 32)),
                   store(ramp(0, 1, 8), load(a, {ramp(0, 2, 8)})),  // strided lanes
                   store(ramp(8, 1, 4), shuffled), store(ramp(16, 1, 8), gathered),
                   store(ramp(40, 1, 8), in_turn), store(ramp(24, 2, 4), load(a, {ramp(7, -1, 4)})),
                   store(ramp(32, 1, 8),
                         call(IntrinsicId::kMaskedLoad, {load(a, {ramp(0, 1, 8)}), mask,
                                                         make<Broadcast>(imm(kFloat32, 7.0), 8)})),
                   make<Evaluate>(call(IntrinsicId::kMaskedStore, {load(c, {ramp(48, 1, 8)}), mask,
                                                                   load(a, {ramp(0, 1, 8)})}))}));
  std::vector<float> in(64);
  for (size_t i = 0; i < 64; ++i) in[i] = static_cast<float>(i);
  std::vector<Bytes> inputs;
  inputs.emplace_back(in);
  for (const char* target : {"native", "llvm -mcpu=haswell", "llvm -mcpu=x86-64"}) {
    std::vector<Bytes> copy;
    copy.emplace_back(in);
    const auto out = run_kernel(kernel, std::move(copy), 256, resolve_target(target)).as<float>();
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(out[i], 2.f * static_cast<float>(i));
      EXPECT_EQ(out[16 + i], 3.f * static_cast<float>(i));
      EXPECT_EQ(out[40 + i], 2.f + static_cast<float>(i % 2));
      EXPECT_EQ(out[32 + i], i < 5 ? static_cast<float>(i) : 7.f);
      EXPECT_EQ(out[48 + i], i < 5 ? static_cast<float>(i) : -1.f);
    }
    EXPECT_EQ(out[8], 15.f);
    EXPECT_EQ(out[9], 0.f);
    EXPECT_EQ(out[10], 8.f);
    EXPECT_EQ(out[11], 3.f);
    EXPECT_EQ(out[24], 7.f);
    EXPECT_EQ(out[26], 6.f);
    EXPECT_EQ(out[25], -1.f);
  }
}

TEST(Codegen, ParallelLoopCapturesWhatItUses) {
  auto n = Var::size("n");
  auto a = buffer("a", kFloat32, {n, int64(8)}), c = buffer("c", kFloat32, {n, int64(8)});
  auto i = var("i"), j = var("j"), k = var("k");
  auto local =
      make<Buffer>("acc", kFloat32, std::vector<Expr>{int64(8)}, Buffer::Options{.scope = "local"});
  auto scale = make<Buffer>("scale", kFloat32, std::vector<Expr>{int64(1)},
                            Buffer::Options{.scope = "local"});
  Stmt inner = seq(
      {make<AllocBuffer>(local),
       nest({j}, {int64(8)},
            make<BufferStore>(local, load(a, {i, j}) * load(scale, {int64(0)}),
                              std::vector<Expr>{j})),
       nest({k}, {int64(8)},
            make<BufferStore>(c, load(local, {k}) + cast(kFloat32, n), std::vector<Expr>{i, k}))});
  const auto kernel = PrimFunc::of_buffers(
      {a, c}, seq({make<AllocBuffer>(scale),
                   make<BufferStore>(scale, imm(kFloat32, 2.0), std::vector<Expr>{int64(0)}),
                   make<For>(i, int64(0), n, ForKind::kParallel, inner)}));
  const auto program = load(program_of(kernel));
  ASSERT_EQ(program->program()->symbol_count, 1);
  EXPECT_NE(program->program()->shapes, nullptr);
  for (const int64_t rows : {1, 5, 33}) {
    std::vector<float> in(static_cast<size_t>(rows) * 8);
    for (size_t x = 0; x < in.size(); ++x) in[x] = static_cast<float>(x);
    std::vector<Bytes> buffers;
    buffers.emplace_back(in);
    buffers.emplace_back(in.size() * 4);
    Host host;
    int64_t dims[2] = {}, workspace = -1;
    ASSERT_EQ(program->program()->shapes(&host.context, &rows, dims, &workspace), 0);
    EXPECT_EQ(dims[0], rows);
    EXPECT_EQ(dims[1], 8);
    EXPECT_EQ(workspace, 0);
    ASSERT_EQ(run(*program, host, buffers, {rows}), 0);
    EXPECT_EQ(host.parallel_loops, 1);
    const auto out = buffers[1].as<float>();
    for (size_t x = 0; x < out.size(); ++x)
      EXPECT_EQ(out[x], 2.f * static_cast<float>(x) + static_cast<float>(rows));
  }
}

TEST(Codegen, CallsBindSymbolsFromRegionsAndStrides) {
  // scale(x[m, n] strided, y[m, n]): y = x * m, called on a sub-box and a dropped dimension.
  auto m = Var::size("m"), n = Var::size("n"), s = Var::size("s");
  auto x = make<Buffer>("x", kFloat32, std::vector<Expr>{m, n},
                        Buffer::Options{.strides = {s, int64(1)}});
  auto y = make<Buffer>("y", kFloat32, std::vector<Expr>{m, n});
  auto i = var("i"), j = var("j");
  const auto callee = PrimFunc::of_buffers(
      {x, y},
      nest({i, j}, {m, n},
           make<BufferStore>(y, load(x, {i, j}) * cast(kFloat32, m), std::vector<Expr>{i, j})));
  auto a = buffer("a", kFloat32, {int64(2), int64(4), int64(6)}),
       c = buffer("c", kFloat32, {int64(2), int64(3)});
  auto w = buffer("w", kFloat32, {int64(2), int64(3)});
  auto p = var("p"), q = var("q");
  const auto region = make<BufferRegion>(
      a, std::vector<Range>{{int64(1), int64(1)}, {int64(2), int64(2)}, {int64(1), int64(3)}},
      std::vector<bool>{true, false, false});
  const auto main = PrimFunc::of_buffers(
      {a, c},
      seq({make<AllocConst>(w, TensorData::of<float>(kFloat32, {2, 3}, {10, 20, 30, 40, 50, 60})),
           make<CallTir>(make<GlobalVar>("scale"),
                         std::vector<NodePtr>{region, BufferRegion::whole(c)}),
           nest({p, q}, {int64(2), int64(3)},
                make<BufferStore>(c, load(c, {p, q}) + load(w, {p, q}), std::vector<Expr>{p, q}))}),
      Attrs{{"tenon.entry", true}, {"tenon.num_inputs", 1}});
  IRModule module;
  module.set("scale", callee);
  module.set("main", main);
  const auto program = load(module);
  EXPECT_EQ(program->program()->constant_bytes, 64);
  std::vector<float> in(48);
  for (size_t k = 0; k < 48; ++k) in[k] = static_cast<float>(k);
  std::vector<Bytes> buffers;
  buffers.emplace_back(in);
  buffers.emplace_back(24);
  Host host;
  ASSERT_EQ(run(*program, host, buffers), 0);
  const auto out = buffers[1].as<float>();
  for (size_t r = 0; r < 2; ++r)
    for (size_t k = 0; k < 3; ++k)
      EXPECT_EQ(out[r * 3 + k],
                2 * in[24 + (2 + r) * 6 + 1 + k] + 10.f * static_cast<float>(r * 3 + k + 1));
}

TEST(Codegen, ObjectsAreDeterministicAndIdenticalKernelsAreOne) {
  const auto kernel = elementwise(kFloat32, kFloat32, 8, [](Expr x, Expr y) { return x + y; });
  IRModule module = program_of(kernel);
  module.set("again", renew_definitions(kernel));
  const auto main = module.find<PrimFunc>("main");
  std::vector<Stmt> calls = stmts_of(main->body);
  calls.push_back(make<CallTir>(make<GlobalVar>("again"), calls[0].as<CallTir>()->args));
  module.set("main", main->with_body(seq(calls)));
  const std::string object = compile(module, host()).object;
  EXPECT_EQ(object, compile(module, host()).object);
  const std::string text = emit_llvm(module, host());
  EXPECT_NE(text.find("@fn.kernel"), std::string::npos);
  EXPECT_EQ(text.find("@fn.again"), std::string::npos);
}

TEST(Codegen, RefusesWhatItDoesNotKnow) {
  const auto kernel =
      elementwise(kFloat32, kFloat32, 8, [](Expr x, Expr) { return call(IntrinsicId::kExp, {x}); });
  try {
    compile(program_of(kernel), host());
    FAIL() << "unlowered `exp` was compiled";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.first().code.id, kUnsupported.id);
  }
  EXPECT_THROW(compile(IRModule(), host()), CompileError);
  EXPECT_THROW(resolve_target("cuda"), CompileError);
}

}  // namespace
}  // namespace tenon::llvm_backend
