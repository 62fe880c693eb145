// SPDX-License-Identifier: Apache-2.0
#include "modules.h"

namespace tenon::script {

using namespace tir;

static Ref<BufferRegion> region(const Ref<Buffer>& buffer, std::vector<tir::Range> ranges) {
  return make<BufferRegion>(buffer, std::move(ranges));
}

Ref<PrimFunc> matmul(Expr n, Expr k, Expr m) {
  const auto a = make<Buffer>("A", kFloat32, std::vector<Expr>{n, k});
  const auto b = make<Buffer>("B", kFloat32, std::vector<Expr>{k, m});
  const auto c = make<Buffer>("C", kFloat32, std::vector<Expr>{n, m});
  const auto t = make<Buffer>("T.pad", kFloat32, std::vector<Expr>{n, m});
  const auto i = var("i"), j = var("j"), l = var("k");
  const auto vi = var("vi"), vj = var("vj"), vk = var("vk");
  const Expr zero = int64(0);
  const Stmt update = make<BufferStore>(
      t, load(t, {vi, vj}) + load(a, {vi, vk}) * load(b, {vk, vj}), std::vector<Expr>{vi, vj});
  const auto block = make<Block>(
      Block::Parts{.name = "matmul",
                   .iter_vars = {{vi, {zero, n}, IterKind::kSpatial},
                                 {vj, {zero, m}, IterKind::kSpatial},
                                 {vk, {zero, k}, IterKind::kReduce}},
                   .reads = {BufferRegion::point(a, {vi, vk}), BufferRegion::point(b, {vk, vj})},
                   .writes = {BufferRegion::point(t, {vi, vj})},
                   .init = make<BufferStore>(t, imm(kFloat32, 0.0), std::vector<Expr>{vi, vj}),
                   .body = update});
  const Stmt product = nest({i, j, l}, {n, m, k},
                            make<BlockRealize>(std::vector<Expr>{i, j, l}, boolean(true), block));
  const auto i1 = var("i"), j1 = var("j"), vi1 = var("vi"), vj1 = var("vj");
  const auto copy = make<Block>(
      Block::Parts{.name = "copy",
                   .iter_vars = {{vi1, {zero, n}, IterKind::kSpatial},
                                 {vj1, {int64(1), int64(3)}, IterKind::kSpatial}},
                   .reads = {region(t, {{vi1, int64(1)}, {vj1, int64(4)}})},
                   .writes = {region(c, {{zero, n}, {vj1 + 1, int64(2)}})},
                   .body = make<BufferStore>(c, max(load(t, {vi1, vj1}), imm(kFloat32, 0.1)),
                                             std::vector<Expr>{vi1, int64(0)}),
                   .annotations = {{"pragma", 4}, {"scale", 0.5}}});
  const Stmt second =
      nest({i1, j1}, {n, int64(3)},
           make<BlockRealize>(std::vector<Expr>{i1, j1 + 1}, i1 * 4 + j1 < n, copy));
  const auto root = make<Block>(
      Block::Parts{.name = "root", .alloc_buffers = {t}, .body = seq({product, second})});
  return PrimFunc::of_buffers({a, b, c},
                              make<BlockRealize>(std::vector<Expr>{}, boolean(true), root),
                              {{"op_pattern", 4}, {"tir.noalias", true}});
}

Ref<PrimFunc> lowered() {
  const auto a = make<Buffer>("A", kFloat32, std::vector<Expr>{int64(256)});
  const auto workspace = make<Buffer>("workspace", kUInt8, std::vector<Expr>{int64(4096)},
                                      Buffer::Options{.alignment = 128});
  const auto n = make<Var>("n", kInt64);
  const auto view =
      make<Buffer>("view", kFloat32, std::vector<Expr>{int64(16), int64(16)},
                   Buffer::Options{.strides = {int64(16), int64(1)}, .elem_offset = n});
  const auto acc =
      make<Buffer>("acc", kFloat32, std::vector<Expr>{int32(4)}, Buffer::Options{.scope = "local"});
  const auto weights = make<Buffer>("w/0", kFloat32, std::vector<Expr>{int64(2), int64(3)});
  const auto i = var("i"), o = make<Var>("o", kInt32), p = var("p"), s = var("s"),
             x = make<Var>("x", kFloat32);
  const auto t = make<Var>("t", kInt64);
  const Expr vec = load(a, {make<Ramp>(Expr(i) * 8, int64(1), 8)});
  const Expr head = load(a, {make<Ramp>(int64(0), int64(1), 8)});
  const auto pointer = Var::pointer("q", kFloat32);
  std::vector<Stmt> stmts = {
      make<DeclBuffer>(view, call(IntrinsicId::kAddressOf, {load(workspace, {int64(64)})})),
      make<AllocBuffer>(acc),
      make<AllocConst>(weights,
                       TensorData::of<float>(kFloat32, {2, 3}, {1, 2, 3, -0.f, 1e-7f, 0.1f})),
      make<Bind>(x, imm(kFloat32, 1e30) * load(a, {int64(3)})),
      make<Bind>(pointer, call(IntrinsicId::kAddressOf, {load(a, {int64(0)})})),
      make<Assert>(Expr(n) > int64(0), "n is \"positive\"\n"),
      make<For>(
          p, int64(0), n, ForKind::kParallel,
          seq({make<For>(
                   i, int64(2), int64(6), ForKind::kSerial,
                   seq({make<BufferStore>(a, make<Broadcast>(x, 8) + vec,
                                          std::vector<Expr>{make<Ramp>(Expr(i) * 8, int64(1), 8)}),
                        make<Evaluate>(
                            call(IntrinsicId::kPrefetch, {load(a, {i}), int32(0), int32(3)})),
                        make<Evaluate>(call(IntrinsicId::kMaskedStore,
                                            {load(a, {make<Ramp>(int64(0), int64(2), 4)}),
                                             make<Broadcast>(boolean(true), 4),
                                             make<Broadcast>(imm(kFloat32, 2.5), 4)}))}),
                   Attrs{{"unroll", 4}}),
               make<For>(o, int32(0), int32(4), ForKind::kUnrolled,
                         make<BufferStore>(acc, imm(kFloat32, -0.0), std::vector<Expr>{o}))})),
      make<While>(
          logical_and(load(a, {int64(0)}) < imm(kFloat32, 3.0), logical_not(Expr(n) < int64(2))),
          make<BufferStore>(a, call(IntrinsicId::kFma, {x, x, x}), std::vector<Expr>{int64(0)})),
      make<IfThenElse>(
          eq(floormod(Expr(n), 2), int64(0)),
          make<Evaluate>(call(IntrinsicId::kCallExtern,
                              {make<StringImm>("puts"), make<StringImm>("a\tb")}, kInt32)),
          make<Seq>(std::vector<Stmt>{})),
      make<AttrStmt>(NodePtr(x), "pragma_x", AttrValue(3),
                     make<Evaluate>(make<Let>(t, n + 1, Expr(t) * t))),
      make<BufferStore>(
          view, make<Shuffle>(std::vector<Expr>{head, head}, std::vector<int64_t>{3}),
          std::vector<Expr>{int64(0), make<Binary>(BinaryOp::kAdd, int64(1), int64(2))}),
      make<For>(s, int64(0), n, ForKind::kVectorized,
                make<BufferStore>(a, make<Cast>(kFloat32, Expr(s) * 2), std::vector<Expr>{s})),
      make<CallTir>(
          make<GlobalVar>("kernel.1"),
          std::vector<NodePtr>{
              BufferRegion::whole(a),
              make<BufferRegion>(view, std::vector<tir::Range>{{int64(3), int64(1)}, {n, int64(4)}},
                                 std::vector<bool>{true, false}),
              Expr(n + 1)}),
  };
  std::vector<Ref<Var>> params = {make<Var>("a", kHandle), make<Var>("ws", kHandle), n};
  auto function =
      make<PrimFunc>(params, std::vector<Ref<Buffer>>{a, workspace, nullptr}, seq(stmts));
  return function->with_attr("tenon.workspace_bytes", AttrValue(NodePtr(Expr(n) * 4)));
}

}  // namespace tenon::script
