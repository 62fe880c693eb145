"""C = relu(A @ B), tiled by hand, as kernels are written for TVM."""
from tvm.script import tir as T

M, N, K = 64, 48, 96
TILE = 16
dtype = "float32"


def relu(x):
    return T.max(x, T.float32(0))


@T.prim_func
def matmul_relu(a: T.handle, b: T.handle, c: T.handle) -> None:
    T.func_attr({"global_symbol": "matmul_relu", "tir.noalias": True})
    A = T.match_buffer(a, (M, K), dtype)
    B = T.match_buffer(b, [K, N], dtype=dtype)
    C = T.match_buffer(c, (M, N), dtype)
    D = T.alloc_buffer((M, N))
    for io, jo in T.grid(M // TILE, N // TILE):
        with T.block("tile"):
            vio, vjo = T.axis.remap("SS", [io, jo])
            for i, j, k in T.grid(TILE, TILE, K):
                with T.block("matmul"):
                    vi = T.axis.spatial(M, vio * TILE + i)
                    vj = T.axis.spatial(N, vjo * TILE + j)
                    vk = T.axis.reduce(K, k)
                    with T.init():
                        D[vi, vj] = 0.0
                    D[vi, vj] += A[vi, vk] * B[vk, vj]
    for i, j in T.grid(M, N):
        with T.block("relu"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = relu(D[vi, vj])


if __name__ == "__main__":
    print(matmul_relu.script())
