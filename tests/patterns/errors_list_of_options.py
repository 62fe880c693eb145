from tvm.relax.dpl import *
x = is_op("relax.exp")(wildcard())
patterns = [("toy.exp", x, {}, {"speed": 3})]
# SEARCHED

# EXPECT
# 3:1 bad-pattern: option `speed` of a pattern; expected `bind_constants`, True or False, or `priority`, a number
