# fault: compiled: then schedule-illegal [v128]
# found with --kind schedules --seed 920 --count 1; again with fuzz_tir --replay fuzz-failures/schedules_920.py
# > l0, = sch.get_loops(sch.get_block("T_relu"))
# > sch.annotate(l0, ann_key="software_pipeline_stage", ann_val=[0])
# > sch.annotate(l0, ann_key="software_pipeline_versions", ann_val=2)
# > l1, = sch.get_loops(sch.get_block("T_relu"))
# > sch.parallel(l1)
# tolerance 0
# indices 0
# seed 920
# sizes 6 1
# step software_pipeline 10277424737220933737
# step parallel 15531963506296602010
class Module:
    @T.prim_func(private=True)
    def kernel(x: T.Buffer((T.int64(1),), "float32"), T_relu: T.Buffer((T.int64(1),), "float32")):
        for i0 in range(T.int64(1)):
            with T.block("T_relu"):
                v_i0 = T.axis.spatial(T.int64(1), i0)
                T_relu[v_i0] = T.max(x[v_i0], T.float32(0.0))
