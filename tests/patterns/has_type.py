tensor = is_op("relax.exp")(wildcard().has_struct_info(R.Tensor((4, 4), "float32")))
rank = is_op("relax.exp")(wildcard().has_type(R.Tensor(ndim=3)))
columns = is_op("relax.exp")(wildcard().has_type(R.Tensor(("n", 4), "float32")))
pair = is_tuple_get_item(wildcard().has_type(R.Tuple(R.Tensor((2, 4), "float32"), R.Tensor)), 0)
triple = is_tuple_get_item(wildcard().has_type(R.Tuple(R.Tensor, R.Tensor, R.Tensor)), 0)
use_pair = is_op("relax.exp")(pair)
use_triple = is_op("relax.exp")(triple)
# SEARCHED
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((2, 2, 2), "float16")):
    with R.dataflow():
        a = R.exp(x)
        b = R.exp(y)
        s = R.split(x, 2, axis=0)
        s0 = s[0]
        c = R.exp(s0)
        R.output(c)
    return c
# EXPECT
# main tensor: a
# main rank: b
# main columns: a; c
# main use_pair: c(pair=s0)
# main use_triple: nothing
