// SPDX-License-Identifier: Apache-2.0
// Products of floats with weights of few bits as sums of products of 8 bits: a block of floats becomes
// a scale and, for each number, three signed digits to the base 256.
#include "tenon/graph/ops/define.h"

namespace tenon::graph {

namespace {

// The first digit of the largest number, so that no other number's exceeds 127.
constexpr double kLargest = 127 * 65536;
// Blocks whose numbers are all smaller are as if their largest were this, of which the scale is no
// subnormal and its reciprocal finite.
constexpr double kLeast = 1e-31;
// Numbers of a block whose sum fits an int32.
constexpr int64_t kLargestBlock = 256;

// ---- nn.digits

struct DigitsAttrs {
  int64_t block = 0;
  static auto table() {
    return std::tuple{required<&DigitsAttrs::block>(
        "block", "numbers that share a scale, a multiple of 4, 256 at most")};
  }
};

constexpr int64_t kDigits = 3;

enum Digits : size_t { kWords, kScale, kSum };

Type infer_digits(const Call& call) {
  const Ref<TensorType> a = tensor_arg(call, 0);
  const auto [block] = attrs_as<DigitsAttrs>(call);
  check_dtype(call, 0, kFloat32);
  if (a->ndim == 0) check_rank(call, 0, 1);
  if (block < 4 || block % 4 != 0 || block > kLargestBlock)
    throw CompileError(kBadAttribute, call.origin,
                       "`{}` of blocks of {}; expected a multiple of 4, {} at most", call.op->name,
                       block, kLargestBlock);
  std::vector<Type> results;
  for (size_t i = kWords; i <= kSum; ++i) {
    const bool words = i == kWords;
    std::optional<std::vector<Expr>> shape;
    if (a->shape) {
      shape = *a->shape;
      if (const auto last = as_int(shape->back()); last && *last % block != 0)
        throw CompileError(kShapeMismatch, call.origin,
                           "`{}` of {} numbers in a row; expected a multiple of {}", call.op->name,
                           *last, block);
      shape->back() = simplify_dim(floordiv(shape->back(), int64_t{block}));
      if (words) shape->insert(shape->end(), {int64(kDigits), int64(block / 4)});
    }
    const int64_t ndim = a->ndim < 0 ? a->ndim : a->ndim + (words ? 2 : 0);
    results.push_back(tensor_of(shape, words ? kInt32 : kFloat32, ndim));
  }
  return make<TupleType>(std::move(results));
}

Value lower_digits(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const Operand a = kernel.arg(0);
  const auto [block] = attrs_as<DigitsAttrs>(call);
  const int64_t length = block, words = block / 4;
  const auto number = [&](const Indices& at, const Expr& k) {  // k of the block `at`
    Indices place = at;
    place.back() = at.back() * length + k;
    return place;
  };
  const std::vector<Expr> blocks = kernel.shape(kScale);
  const Operand most = kernel.reduce("largest", blocks, {int64(length)}, tir::max_reducer(),
                                     [&](const Indices& i, const Indices& k) {
                                       return tenon::call(IntrinsicId::kFabs, {a(number(i, k[0]))});
                                     });
  const Operand reciprocal = kernel.compute("reciprocal", blocks, [&](const Indices& i) {
    return imm(kFloat32, kLargest) / max(most(i), imm(kFloat32, kLeast));
  });
  std::vector<Expr> numbers = blocks;
  numbers.push_back(int64(length));
  const Operand whole = kernel.compute("whole", numbers, [&](const Indices& i) {
    const Indices at(i.begin(), i.end() - 1);
    return tenon::cast(
        kInt32, tenon::call(IntrinsicId::kRound, {a(number(at, i.back())) * reciprocal(at)}));
  });
  const auto whole_of = [&](const Indices& at, const Expr& k) {
    Indices place = at;
    place.push_back(k);
    return whole(place);
  };
  // A digit is what is left when the lower ones are taken off: adding half of the base to each before
  // they are shifted out, 0x80 or 0x8080, rounds to the nearest multiple.
  const Operand digits = kernel.compute("words", kernel.shape(kWords), [&](const Indices& i) {
    const Indices at(i.begin(), i.end() - 2);
    const Expr shift = tenon::cast(kInt32, (i[i.size() - 2] * -1 + (kDigits - 1)) * 8);
    const Expr below = tenon::call(IntrinsicId::kShiftLeft, {int32(1), shift}) - 1;
    const Expr half = tenon::call(IntrinsicId::kBitwiseAnd, {below, int32(0x8080)});
    Expr word;
    for (int64_t byte = 0; byte < 4; ++byte) {
      Expr bits = tenon::call(IntrinsicId::kShiftRight,
                              {whole_of(at, i.back() + byte * words) + half, shift});
      if (byte < 3) bits = tenon::call(IntrinsicId::kBitwiseAnd, {bits, int32(255)});
      if (byte > 0) bits = tenon::call(IntrinsicId::kShiftLeft, {bits, int32(byte * 8)});
      word = byte == 0 ? bits : tenon::call(IntrinsicId::kBitwiseOr, {word, bits});
    }
    return word;
  });
  const Operand scale = kernel.compute("scale", blocks, [&](const Indices& i) {
    return max(most(i), imm(kFloat32, kLeast)) * imm(kFloat32, 1 / kLargest);
  });
  const Operand total =
      kernel.reduce("total", blocks, {int64(length)}, tir::sum_reducer(),
                    [&](const Indices& i, const Indices& k) { return whole_of(i, k[0]); });
  const Operand sum = kernel.compute(
      "sum", blocks, [&](const Indices& i) { return tenon::cast(kFloat32, total(i)) * scale(i); });
  return kernel.emit({digits, scale, sum});
}

OpDef digits() {
  OpDef op;
  op.name = "nn.digits";
  op.summary =
      "Blocks of floats as whole multiples of a scale, 127 * 65536 of which are the largest, by "
      "three signed digits to the base 256: (words, scale, sum). Word g of a block and digit holds "
      "those of numbers g, g + block / 4, ..., lowest byte first, the highest digits first; sum is "
      "that of the multiples.";
  op.inputs = {{"a", "(..., blocks * block), float32"}};
  op.attrs = attrs_of<DigitsAttrs>();
  op.infer_type = infer_digits;
  op.lower = lower_digits;
  op.fusion = FusionKind::kOpaque;
  return op;
}

// ---- nn.matmul_nbits_of_digits

struct MatmulDigitsAttrs {
  int64_t bits = 4, units = 0;
  static auto table() {
    return std::tuple{attr<&MatmulDigitsAttrs::bits>("bits", "of a weight: 2, 4 or 8"),
                      required<&MatmulDigitsAttrs::units>("units", "columns of the result")};
  }
};

enum OfDigits : size_t { kAWords, kAScale, kASum, kB, kScales, kZeroPoints };

Type infer_matmul_of_digits(const Call& call) {
  const auto [bits, units] = attrs_as<MatmulDigitsAttrs>(call);
  if (bits != 2 && bits != 4 && bits != 8)
    throw CompileError(kBadAttribute, call.origin, "`{}` of {} bits; expected 2, 4 or 8",
                       call.op->name, bits);
  const Ref<TensorType> a = tensor_arg(call, kAScale), b = tensor_arg(call, kB);
  if (a->ndim == 0) check_rank(call, kAScale, 1);
  check_dtype(call, kAWords, kInt32);
  check_dtype(call, kAScale, kFloat32);
  check_dtype(call, kASum, kFloat32);
  check_rank(call, kB, 4);
  check_dtype(call, kB, kUInt32);
  check_rank(call, kScales, 3);
  check_dtype(call, kScales, kFloat32);
  if (arg_or_null(call, kZeroPoints)) check_rank(call, kZeroPoints, 3);
  if (!a->shape || !b->shape) return make<TensorType>(kFloat32, a->ndim);
  for (size_t i = 0; i <= kASum; ++i) {
    const Ref<TensorType> type = tensor_arg(call, i);
    check_rank(call, i, a->ndim + (i == kAWords ? 2 : 0));
    if (!type->shape) continue;
    for (int64_t d = 0; d < a->ndim; ++d)
      check_dim(call, i, type->dim(d), a->dim(d), fmt::format("dimension {}", d));
    if (i != kAWords) continue;
    check_dim(call, i, type->dim(-2), int64(kDigits), "the last dimension but one");
    check_dim(call, i, type->dim(-1), simplify_dim(b->dim(2) * (8 / bits)), "the last dimension");
  }
  check_dim(call, kAScale, a->dim(-1), b->dim(1), "the last dimension");
  for (const size_t i : {kScales, kZeroPoints}) {
    if (!arg_or_null(call, i)) continue;
    const Ref<TensorType> type = tensor_arg(call, i);
    if (!type->shape) continue;
    for (int64_t d = 0; d < 3; ++d)
      check_dim(call, i, type->dim(d), b->dim(d + (d > 1)), fmt::format("dimension {}", d));
  }
  check_units(call, units, *b);
  std::vector<Expr> shape = *a->shape;
  shape.back() = int64(units);
  return make<TensorType>(std::move(shape), kFloat32);
}

Value lower_matmul_of_digits(BlockBuilder& builder, const Call& call) {
  KernelOf kernel(builder, call);
  const auto [bits, units] = attrs_as<MatmulDigitsAttrs>(call);
  const Operand a = kernel.buffer_arg(kAWords);
  const Operand a_scale = kernel.buffer_arg(kAScale), a_sum = kernel.buffer_arg(kASum);
  const Operand b = kernel.buffer_arg(kB), scales = kernel.buffer_arg(kScales);
  const Operand zeros = arg_or_null(call, kZeroPoints) ? kernel.buffer_arg(kZeroPoints) : Operand();
  const Expr blocks = b.shape[1], words = b.shape[2], width = b.shape[3];
  // Words of a weight have numbers of `bits` bits at the same place of each byte together: those of
  // a word of digits.
  const int64_t parts = 8 / bits;
  const int64_t ones = ((int64_t{1} << bits) - 1) * 0x01010101;
  const Expr share = imm(kFloat32, 1.0) / tenon::cast(kFloat32, words * parts);
  const Expr middle = imm(kFloat32, int64_t{1} << (bits - 1));
  return kernel.emit({kernel.reduce(
      kernel.out_name(), kernel.shape(), {blocks, words, int64(parts)}, tir::sum_reducer(),
      [&](const Indices& i, const Indices& k) {
        const Expr panel = floordiv(i.back(), width), column = floormod(i.back(), width);
        Expr weight = b({panel, k[0], k[1], column});
        if (parts > 1)
          weight = tenon::call(
              IntrinsicId::kBitwiseAnd,
              {tenon::call(IntrinsicId::kShiftRight, {weight, tenon::cast(kUInt32, k[2] * bits)}),
               imm(kUInt32, ones)});
        Indices row = i;
        row.back() = k[0];
        const auto product = [&](int64_t digit) {
          Indices word = row;
          word.insert(word.end(), {int64(digit), k[1] * parts + k[2]});
          return tenon::call(IntrinsicId::kDot4, {weight, a(word)});
        };
        const Expr multiples = tenon::cast(kFloat32, product(0)) * imm(kFloat32, 65536.0) +
                               tenon::cast(kFloat32, product(1) * 256 + product(2));
        const Expr zero = zeros ? tenon::cast(kFloat32, zeros({panel, k[0], column})) : middle;
        // Each term takes its share of the zero point's product.
        return scales({panel, k[0], column}) *
               (a_scale(row) * multiples - zero * (a_sum(row) * share));
      })});
}

OpDef matmul_of_digits() {
  OpDef op;
  op.name = "nn.matmul_nbits_of_digits";
  op.summary =
      "nn.matmul_nbits of what nn.digits made of the other operand: as exact as sums of float32 "
      "but "
      "where a weight of 0 meets the largest number of a block, and not finite where that is not.";
  op.inputs = {{"a", "(..., blocks, 3, words * 8 / bits), int32: words of digits"},
               {"a_scale", "(..., blocks), float32"},
               {"a_sum", "as a_scale"},
               {"b",
                "(ceil(units / w), blocks, words, w), uint32; byte j of word i has the numbers j * "
                "bytes / 4 + "
                "i, ... of the block's bytes"},
               {"scales", "(ceil(units / w), blocks, w), float32"},
               {"zero_points", "as scales, numbers; 2^(bits - 1) where there are none", true}};
  op.attrs = attrs_of<MatmulDigitsAttrs>();
  op.infer_type = infer_matmul_of_digits;
  op.lower = lower_matmul_of_digits;
  op.fusion = FusionKind::kContraction;
  op.macs = [](const std::vector<KnownShape>& args, const KnownShape& result) {
    std::optional<double> macs;
    if (result && args[kAWords])
      macs = product_of(*result) * args[kAScale]->back() * args[kAWords]->back() * 4;
    return macs;
  };
  return op;
}

}  // namespace

std::vector<OpDef> digit_ops() { return {digits(), matmul_of_digits()}; }

}  // namespace tenon::graph
