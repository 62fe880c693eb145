/* A library for one network: the sizes of its two layers are fixed. */
#ifndef TOY_H_
#define TOY_H_

/* y (64, 500) = max(x (64, 800) w (500, 800)' + b (500), 0) */
void dense_bias_relu(const float* x, const float* w, const float* b, float* y);

/* y (64, 10) = x (64, 500) w (10, 500)' + b (10) */
void dense_bias(const float* x, const float* w, const float* b, float* y);

#endif
