@R.function
def f(x: R.Tensor):
    R.func_attr({"Pattern": 3})
    return R.exp(x)
# SEARCHED

# EXPECT
# 2:5 bad-pattern: `Pattern` of pattern `f` is 3; expected a name
