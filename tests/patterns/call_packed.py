packed = is_call_packed("f.g")
on = is_call_packed("f.g", [is_var("x")])
other = is_call_packed("h")
too_many = is_call_packed("f.g", [wildcard(), wildcard()])
# SEARCHED
@R.function(pure=False)
def main(x: R.Tensor((4, 4), "float32")):
    a = R.call_packed("f.g", x, sinfo_args=R.Tensor((4, 4), "float32"))
    b = R.call_pure_packed("f.g", a, sinfo_args=R.Tensor((4, 4), "float32"))
    return b
# EXPECT
# main packed: a; b
# main on: a
# main other: nothing
# main too_many: nothing
