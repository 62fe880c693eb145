/* The digits of the first ten images, from C: classify PROGRAM.so IMAGES.npy */
#include <stdio.h>
#include <stdlib.h>

#include "digits.h" /* made by `tenon compile` */

enum { kImages = 450, kPixels = 64, kDigits = 10 };

static void must(int32_t code) {
  if (code == TENON_OK) return;
  fprintf(stderr, "%s\n", tenon_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  static float images[kImages * kPixels], scores[kImages * kDigits];
  FILE* file = argc == 3 ? fopen(argv[2], "rb") : NULL;
  int i, d;
  /* The header of this .npy file has 128 bytes. */
  if (!file || fseek(file, 128, SEEK_SET) != 0 ||
      fread(images, sizeof(float) * kPixels, kImages, file) != kImages) {
    fprintf(stderr, "usage: classify PROGRAM.so IMAGES.npy\n");
    return 2;
  }
  fclose(file);

  TenonModel* model = NULL;
  must(tenon_model_load(argv[1], NULL, &model));
  digits_inputs in = {images};
  digits_outputs out = {scores};
  must(digits_run(model, &in, &out, kImages)); /* the batch is symbolic: any size */
  tenon_model_free(model);

  for (i = 0; i < 10; ++i) {
    int best = 0;
    for (d = 1; d < kDigits; ++d)
      if (scores[i * kDigits + d] > scores[i * kDigits + best]) best = d;
    printf("%d ", best);
  }
  printf("\n");
  return 0;
}
