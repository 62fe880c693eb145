from tvm.relax.dpl import *
x = is_op("relax.exp")(wildcard())
patterns = [("toy.exp", 3)]
# SEARCHED

# EXPECT
# 3:1 bad-pattern: a pattern to register is no `("name", pattern)`
