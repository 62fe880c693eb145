#include "tenon/graph/ops/define.h"

namespace tenon::graph {

std::vector<OpDef> index_ops() { return {}; }

}  // namespace tenon::graph
