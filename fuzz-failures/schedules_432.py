# fault: compiled: then schedule-illegal [v512]
# found with --kind schedules --seed 432 --count 1; again with fuzz_tir --replay fuzz-failures/schedules_432.py
# > l0, l1, l2 = sch.get_loops(sch.get_block("T_matmul"))
# > sch.annotate(l1, ann_key="software_pipeline_stage", ann_val=[0])
# > sch.annotate(l1, ann_key="software_pipeline_versions", ann_val=2)
# > l3, l4, l5 = sch.get_loops(sch.get_block("T_matmul"))
# > sch.vectorize(l4)
# tolerance 0
# indices 0
# seed 432
# sizes 1 7
# step software_pipeline 2445213186336762337
# step vectorize 8289105782175768092
class Module:
    @T.prim_func(private=True)
    def kernel(x1: T.Buffer((T.int64(1), T.int64(1)), "float32"), x2: T.Buffer((T.int64(1), T.int64(1)), "float32"), T_matmul: T.Buffer((T.int64(1), T.int64(1)), "float32")):
        for i0, i1, k0 in T.grid(T.int64(1), T.int64(1), T.int64(1)):
            with T.block("T_matmul"):
                v_i0, v_i1, v_k0 = T.axis.remap("SSR", [i0, i1, k0])
                T_matmul[v_i0, v_i1] = T_matmul[v_i0, v_i1] + x1[v_i0, v_k0] * x2[v_k0, v_i1]
