// SPDX-License-Identifier: Apache-2.0
// Random numbers by a counter: element i is a function of the seed and of i alone, so a result does
// not depend on threads, targets or the order of its elements. The function is Threefry-2x32 with 20
// rounds.
#include <array>

#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

using Shape = std::vector<Expr>;

struct RandomAttrs {
  int64_t seed = 0;
  DType dtype = kFloat32;
  static auto table() {
    return std::tuple{attr<&RandomAttrs::seed>("seed", "the key: all 64 bits"),
                      attr<&RandomAttrs::dtype>("dtype", "of the result, a float")};
  }
};

Type infer_random(const Call& call) {
  const auto attrs = attrs_as<RandomAttrs>(call);
  if (!attrs.dtype.is_float()) throw_bad_kind(call, "dtype", *call.attrs.find("dtype"));
  const auto dims = dims_arg(call, 0);
  return dims ? tensor_of(*dims, attrs.dtype, 0) : Type(make<TensorType>(attrs.dtype, -1));
}

Expr u32(int64_t value) { return imm(kUInt32, value); }

// The statements that bind the two words of a block of Threefry, each step to a variable.
class Threefry {
 public:
  Threefry(int64_t seed, const Expr& counter) {
    const auto bits = static_cast<uint64_t>(seed);
    const std::array<uint32_t, 2> key = {static_cast<uint32_t>(bits),
                                         static_cast<uint32_t>(bits >> 32)};
    const std::array<uint32_t, 3> keys = {key[0], key[1], 0x1BD11BDA ^ key[0] ^ key[1]};
    static constexpr std::array<std::array<int64_t, 4>, 2> kTurns = {
        {{13, 15, 26, 6}, {17, 29, 16, 24}}};
    const Expr low = tenon::call(IntrinsicId::kBitwiseAnd, {counter, int64(0xFFFFFFFF)});
    const Expr high = tenon::call(IntrinsicId::kShiftRight, {counter, int64(32)});
    a_ = bind(tenon::cast(kUInt32, low) + u32(keys[0]));
    b_ = bind(tenon::cast(kUInt32, high) + u32(keys[1]));
    for (size_t round = 0; round < 20; ++round) {
      const int64_t turn = kTurns[round / 4 % 2][round % 4];
      a_ = bind(a_ + b_);
      const Expr left = tenon::call(IntrinsicId::kShiftLeft, {b_, u32(turn)});
      const Expr right = tenon::call(IntrinsicId::kShiftRight, {b_, u32(32 - turn)});
      const Expr turned = tenon::call(IntrinsicId::kBitwiseOr, {left, right});
      b_ = bind(tenon::call(IntrinsicId::kBitwiseXor, {turned, a_}));
      if (round % 4 != 3) continue;
      const size_t next = round / 4 + 1;
      a_ = bind(a_ + u32(keys[next % 3]));
      b_ = bind(b_ + u32(keys[(next + 1) % 3]) + u32(static_cast<int64_t>(next)));
    }
  }
  const Expr& first() const { return a_; }
  const Expr& second() const { return b_; }
  std::vector<tir::Stmt> stmts;

 private:
  Expr bind(const Expr& value) {
    const auto var = make<tenon::Var>(fmt::format("r{}", stmts.size()), kUInt32);
    stmts.push_back(make<tir::Bind>(var, value));
    return var;
  }
  Expr a_, b_;
};

// A number in [0, 1) of the top bits of a word: 24 for float32; of both words, 53 for float64.
Expr unit(const Threefry& bits, DType dtype) {
  const auto top = [](const Expr& word, int64_t drop) {
    return tenon::call(IntrinsicId::kShiftRight, {word, u32(drop)});
  };
  if (dtype == kFloat32)
    return tenon::cast(kFloat32, tenon::cast(kInt32, top(bits.first(), 8))) *
           imm(kFloat32, 1.0 / (1 << 24));
  const Expr high = tenon::cast(kInt64, top(bits.first(), 5));
  const Expr low = tenon::cast(kInt64, top(bits.second(), 6));
  return tenon::cast(kFloat64, high * (int64_t{1} << 26) + low) *
         imm(kFloat64, 1.0 / static_cast<double>(int64_t{1} << 53));
}

// Standard normal, by Box and Muller from two words; in float64 where the result is.
Expr normal(const Threefry& bits, DType dtype) {
  const auto share = [&](const Expr& word, double offset) {
    const Expr top = tenon::call(IntrinsicId::kShiftRight, {word, u32(8)});
    return (tenon::cast(dtype, tenon::cast(kInt32, top)) + imm(dtype, offset)) *
           imm(dtype, 1.0 / (1 << 24));
  };
  constexpr double kTurn = 2 * 3.14159265358979323846;
  const Expr radius =
      tenon::call(IntrinsicId::kSqrt,
                  {imm(dtype, -2.0) * tenon::call(IntrinsicId::kLog, {share(bits.first(), 1)})});
  return radius * tenon::call(IntrinsicId::kCos, {imm(dtype, kTurn) * share(bits.second(), 0)});
}

OpDef random(const char* name, const char* summary, Expr (*element)(const Threefry&, DType)) {
  OpDef op;
  op.name = name;
  op.summary = summary;
  op.inputs = {{"shape", "a shape"}};
  op.attrs = attrs_of<RandomAttrs>();
  op.infer_type = infer_random;
  op.lower = [element](BlockBuilder& builder, const Call& call) {
    KernelOf kernel(builder, call);
    const DType dtype = kernel.dtype(), wide = wide_dtype(dtype);
    const Operand out = kernel.allocate(kernel.out_name(), kernel.shape(), dtype);
    const auto axes = tir::KernelBuilder::axes(out.shape);
    const Indices at = tir::KernelBuilder::indices(axes);
    Expr counter = int64(0);
    for (size_t d = 0; d < at.size(); ++d) counter = counter * out.shape[d] + at[d];
    Threefry bits(attrs_as<RandomAttrs>(call).seed, counter);
    std::vector<tir::Stmt> body = bits.stmts;
    body.push_back(make<tir::BufferStore>(out.buffer, tenon::cast(dtype, element(bits, wide)), at));
    kernel.append(tir::define(out.buffer->name, axes, {}, tir::seq(std::move(body))));
    return kernel.emit({out});
  };
  op.source = "Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3 (2011)";
  return op;
}

}  // namespace

std::vector<OpDef> random_ops() {
  return {random("random.uniform", "Numbers in [0, 1), by a counter from a seed.", unit),
          random("random.normal", "Standard normal numbers, by a counter from a seed.", normal)};
}

}  // namespace tenon::graph
