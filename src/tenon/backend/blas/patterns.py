# The matrix products that OpenBLAS takes: of transposed operands, times a number, plus an addend.

def plus(x, y):
    return is_op("relax.add")(x, y) | is_op("relax.add")(y, x)

def times(x, y):
    return is_op("relax.multiply")(x, y) | is_op("relax.multiply")(y, x)

def transposed_or_not():
    return is_op("relax.permute_dims")(wildcard()) | wildcard()

_matmul = is_op("relax.matmul")(transposed_or_not(), transposed_or_not())

patterns = [
    ("matmul_scale_add", plus(times(_matmul, is_const()), wildcard())),
    ("matmul_add", plus(_matmul, wildcard())),
    ("matmul_scale", times(_matmul, is_const())),
    ("matmul", _matmul),
    ("plain_matmul", is_op("relax.matmul")(wildcard(), wildcard())),
]
