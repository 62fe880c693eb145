from tvm.relax.dpl import *
x = wildcard()
patterns = [x, 3]
# SEARCHED

# EXPECT
# 3:1 bad-pattern: the list `patterns` holds something else than patterns
