@I.ir_module
class Patterns:
    far = R.ExternFunc("far")
# SEARCHED

# EXPECT
# 3:5 bad-pattern: pattern `far` is no graph function and no PrimFunc
