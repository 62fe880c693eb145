from tvm.relax.dpl import *
patterns = [is_op("relax.exp")(wildcard())]
# SEARCHED

# EXPECT
# 2:13 bad-pattern: a pattern of the list `patterns` has no name; expected `("name", pattern)`
