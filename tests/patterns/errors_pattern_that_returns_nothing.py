@R.function
def nothing(x: R.Tensor):
    y = R.exp(x)
    return ()
# SEARCHED

# EXPECT
# 4:12 bad-pattern: pattern `nothing` returns nothing
