from tvm.relax.dpl import *
x = is_op("relax.exp")(wildcard())
def check(context):
    return True
patterns = [("toy.exp", x, {}, check)]
# SEARCHED

# EXPECT
# 5:1 unsupported: a check of a pattern as text; back ends check in code, and patterns with has_dtype, has_shape, has_attr
