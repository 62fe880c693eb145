#include "tenon/graph/ops/define.h"

namespace tenon::graph {

std::vector<OpDef> image_ops() { return {}; }

}  // namespace tenon::graph
