from tvm.relax.dpl import *
x = wildcard()
a = is_op("relax.exp")(None)
b = is_op("relax.exp")(x, add_constraint=True, third=2)
c = x.has_attr(3)
d = x.optional(is_op("relax.exp"))
e = any_of()
f = is_op()
g = is_const(3)
h = graph_pattern([x], [is_op("relax.exp")(x)])
i = graph_pattern([param("p")], [])
j = is_tuple([3])
k = is_op(3)
l = x[10000000]
m = [x, x][5]
n = x | 3
o = is_op("relax.exp")(3)
p = x.has_dtype("float32", "int32", 3)
q = is_tuple_get_item(x, "one")
# SEARCHED

# EXPECT
# 3:24 bad-argument: `None` as an argument
# 4:48 bad-argument: no argument is named `third`
# 5:16 type-mismatch: something else than a dict of attributes
# 6:5 unsupported: `optional` of a pattern; write `p | op(p)`
# 7:5 bad-argument: any_of no patterns
# 8:5 bad-argument: argument `op_name` is missing
# 9:14 bad-argument: an argument too many
# 10:5 type-mismatch: a parameter that is no `param(...)`
# 11:5 bad-argument: a graph pattern without a result
# 12:14 type-mismatch: a list of something else than patterns
# 13:11 type-mismatch: something else than a string
# 14:7 type-mismatch: something else than a small integer
# 15:5 out-of-bounds: item 5 of a list of 2
# 16:5 type-mismatch: `|` of something else than patterns
# 17:24 type-mismatch: something else than a pattern
# 18:28 bad-argument: an argument too many
# 19:26 type-mismatch: something else than a small integer
