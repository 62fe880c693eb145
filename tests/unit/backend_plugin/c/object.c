/* An object without the function that back ends are asked for. */
#include <stdint.h>

int32_t liar_unrelated(void);
int32_t liar_unrelated(void) { return 0; }
