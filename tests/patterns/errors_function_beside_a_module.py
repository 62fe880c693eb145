@I.ir_module
class Patterns:
    @R.function
    def exp(x: R.Tensor):
        return R.exp(x)

@R.function
def log(x: R.Tensor):
    y = R.log(x)
    return y
# SEARCHED

# EXPECT
# 8:5 syntax: function `log` beside a module; expected it in the module, or functions alone
