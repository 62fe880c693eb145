from tvm.relax.dpl import *
bind_constants = 3
# SEARCHED

# EXPECT
# 2:1 bad-pattern: `bind_constants` is no flag; expected `bind_constants = False`, which makes the constants that patterns match arguments
