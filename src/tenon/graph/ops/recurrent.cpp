#include "tenon/graph/ops/define.h"

namespace tenon::graph {

std::vector<OpDef> recurrent_ops() { return {}; }

}  // namespace tenon::graph
