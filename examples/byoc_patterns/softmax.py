softmax = is_call_tir("softmax")
