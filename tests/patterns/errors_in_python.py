from tvm.relax.dpl import *
x = wildcard()
def starred(*all):
    return x
def needs(a, b):
    return a | b
def endless(a):
    return endless(a)
a = starred(x)
b = needs(x)
c = endless(x)
d, e = x, x, x
x.name = wildcard()
while x:
    f = x
with x:
    g = x
h = FusionPattern(3, x)
i = FusionPattern("exp", is_op("relax.exp")(x), {"a": 3})
# SEARCHED

# EXPECT
# 3:14 unsupported: a starred parameter
# 10:5 bad-argument: argument `b` is missing
# 8:12 too-deep: functions that call each other more than 40 deep
# 12:1 syntax: 2 names for 3 values
# 13:1 syntax: an assignment to something else than a name
# 14:1 syntax: a statement that has no meaning in a pattern file
# 16:1 syntax: `with` of something else than `PatternContext()`
# 18:5 bad-pattern: a pattern to register is no `("name", pattern)`
# 19:5 bad-pattern: annotation `a` is no pattern
