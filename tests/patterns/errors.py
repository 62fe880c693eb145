a = is_op("relax.no_such_operator")(wildcard())
b = is_op("relax.exp")(wildcard()).has_dtype("float31")
c = wildcard() >> wildcard()
d = is_tuple(3)
e = is_op("relax.exp")(wildcard(), colour=1)
f = undefined_name(wildcard())
# SEARCHED

# EXPECT
# 1:5 unknown-operator: `relax.no_such_operator` is no operator; `tenon operators` lists them
# 2:46 bad-literal: `float31` is no dtype
# 3:5 bad-pattern: a constraint between patterns outside of `with PatternContext()`
# 4:14 type-mismatch: something else than a list of patterns
# 5:36 bad-argument: no argument is named `colour`
# 6:5 undefined: `undefined_name` is not defined
