// SPDX-License-Identifier: Apache-2.0
// Operands that only the run knows, and that the operator cannot have: at every target the program
// ends with an error that names the node, before anything is allocated by them. Each operand is
// given as an input, known before anything runs, and computed by the program, known in its middle.
#include <cstring>

#include "cases.h"
#include "onnx_bytes.h"

namespace tenon::bad_input {

namespace {

std::string raw_bytes(const Dims& values) {
  std::string raw(8 * values.size(), '\0');
  std::memcpy(raw.data(), values.data(), raw.size());
  return raw;
}

// Of shape (n,), or (1, n).
std::string numbers_file(const Dims& values, bool is_row) {
  std::string header = std::string("{'descr': '<i8', 'fortran_order': False, 'shape': (") +
                       (is_row ? "1, " : "") + std::to_string(values.size()) + ",), }";
  header.resize((header.size() + 10 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string out("\x93NUMPY\x01\0", 8);
  out += static_cast<char>(header.size() & 255);
  out += static_cast<char>(header.size() >> 8);
  return out + header + raw_bytes(values);
}

Message ints(const std::string& name, const Dims& values) {
  return tensor(name, {static_cast<int64_t>(values.size())}, raw_bytes(values), kOnnxInt64);
}
Message number(const std::string& name, int64_t value) {
  return tensor(name, {}, raw_bytes({value}), kOnnxInt64);
}

// Nodes on x, float32 of shape (2, 3), and on int64 k, the last of which gives y.
struct Network {
  std::vector<Message> nodes;
  Dims k;
  bool is_scalar = false;  // k is
  std::vector<Message> constants = {}, inputs = {};
  int64_t opset = 21;
};

struct Bad {
  std::string name;
  Network network;
  std::string says;             // at every target
  std::string node = "node_y";  // which is named
  std::vector<std::string> arguments = {};
  std::string other = {};  // what is said instead where another check comes first
};

Case run(const Bad& bad, bool is_late, const char* suffix, const std::vector<std::string>& how) {
  const Network& network = bad.network;
  const auto count = static_cast<int64_t>(network.k.size());
  Graph graph{network.nodes, {value("x", {2, 3})}, {value("y", {})}, network.constants};
  graph.inputs.insert(graph.inputs.end(), network.inputs.begin(), network.inputs.end());
  const auto first = [&](const Message& one) { graph.nodes.insert(graph.nodes.begin(), one); };
  if (is_late) {
    // The sum of one row, or of its one element.
    first(node("ReduceSum", {"given", "summed"}, {"k"}, {attribute("keepdims", 0)}));
    graph.initializers.push_back(ints("summed", network.is_scalar ? Dims{0, 1} : Dims{0}));
    graph.inputs.push_back(value("given", {1, count}, kOnnxInt64));
  } else if (network.is_scalar) {
    first(node("Squeeze", {"given"}, {"k"}));
    graph.inputs.push_back(value("given", {1}, kOnnxInt64));
  } else {
    graph.inputs.push_back(value("k", {count}, kOnnxInt64));
  }
  std::vector<std::string> arguments = {"run", "m.onnx", "-i",
                                        is_late || network.is_scalar ? "given=k.npy" : "k=k.npy"};
  arguments.insert(arguments.end(), bad.arguments.begin(), bad.arguments.end());
  arguments.insert(arguments.end(), how.begin(), how.end());
  Case out{bad.name + (is_late ? "Late" : "") + suffix,
           arguments,
           {{"m.onnx", model(graph, network.opset)}, {"k.npy", numbers_file(network.k, is_late)}},
           1,
           bad.says};
  out.other = bad.other;
  out.names = bad.node;
  return out;
}

constexpr int64_t kHuge = int64_t{1} << 40, kMost = INT64_MAX;

// One node of x and k.
Network of(const std::string& op, const Names& inputs, const Dims& k,
           const std::vector<Message>& attributes = {}) {
  return {{node(op, inputs, {"y"}, attributes)}, k};
}
Network of_number(const std::string& op, const Names& inputs, int64_t k,
                  const std::vector<Message>& constants = {},
                  const std::vector<Message>& attributes = {}) {
  return {{node(op, inputs, {"y"}, attributes)}, {k}, true, constants};
}

// A sequence l of three tensors, of which `op` makes m; its tensors are joined.
Network of_sequence(const std::string& op, const Names& inputs, int64_t k) {
  return {{node("SequenceConstruct", {"x", "x", "x"}, {"l"}), node(op, inputs, {"m"}),
           node("ConcatFromSequence", {"m"}, {"y"}, {attribute("axis", 0)})},
          {k},
          true};
}
Network of_pieces(const Dims& k, bool is_scalar) {
  return {{node("SplitToSequence", {"x", "k"}, {"m"}),
           node("ConcatFromSequence", {"m"}, {"y"}, {attribute("axis", 0)})},
          k,
          is_scalar};
}

// A Resize of x by scales that are computed of k by `how`, of floats f = k and g = k - 1.
Network scaled(const Dims& k, const std::string& how = "") {
  Network out{{node("Cast", {"k"}, {"f"}, {attribute("to", 1)})}, k, false, {number("one", 1)}};
  if (how.empty()) {
    out.nodes.push_back(node("Resize", {"x", "", "f"}, {"y"}));
    return out;
  }
  out.nodes.push_back(node("Sub", {"k", "one"}, {"less"}));
  out.nodes.push_back(node("Cast", {"less"}, {"g"}, {attribute("to", 1)}));
  out.nodes.push_back(node("Div", {how == "inf" ? "f" : "g", "g"}, {"s"}));
  out.nodes.push_back(node("Resize", {"x", "", "s"}, {"y"}));
  return out;
}

// Boxes with k as floats g / g, where g is k - k: no number.
Network boxes(const std::string& threshold, int64_t k) {
  return {{node("Cast", {"k"}, {"f"}, {attribute("to", 1)}), node("Sub", {"f", "f"}, {"g"}),
           node("Div", {"g", "g"}, {"nan"}),
           node("NonMaxSuppression", {"b", "s", "", threshold}, {"y"})},
          {k},
          false,
          {},
          {value("b", {1, 5, 4}), value("s", {1, 2, 5})}};
}

// A loop of at most k iterations, while what it starts with is true.
Network endless(int64_t k) {
  const Graph body{{node("Identity", {"go"}, {"goes_on"}), node("Tanh", {"h"}, {"h_next"})},
                   {value("i", {}, kOnnxInt64), value("go", {}, 9), value("h", {2, 3})},
                   {value("goes_on", {}, 9), value("h_next", {2, 3})}};
  return {
      {node("Loop", {"k", "", "x"}, {"y"}, {graph_attribute("body", body.message())})}, {k}, true};
}

// A pool of 5 elements, 4 apart, of a row of k's last number of elements.
Network pool(int64_t row) {
  return {{node("Expand", {"cell", "k"}, {"row"}),
           node("MaxPool", {"row"}, {"y"},
                {attribute("kernel_shape", Dims{5}), attribute("strides", Dims{4})})},
          {1, 1, row},
          false,
          {tensor("cell", {1, 1, 1}, std::string(4, '\0'))}};
}

std::vector<Bad> shapes() {
  const Names shape = {"x", "k"};
  return {
      {"WindowBeyondItsAxis", pool(4), "a window of `nn.max_pool1d` covers 5, more than the"},
      {"ReshapeToOtherElements", of("Reshape", shape, {4, 2}),
       "the shape has another number of elements than the tensor"},
      {"ReshapeWithTwoOpenDimensions", of("Reshape", shape, {-1, -1}),
       "the shape has two dimensions of -1"},
      {"ReshapeToANegativeDimension", of("Reshape", shape, {-2, -3}), "negative"},
      // (2^40)^3 wraps to 0.
      {"ReshapeToDimensionsThatWrap", of("Reshape", shape, {kHuge, kHuge, kHuge}), "elements"},
      {"ExpandToAnotherExtent", of("Expand", shape, {2, 4}),
       "the tensor cannot be broadcast to the shape"},
      {"ExpandToANegativeExtent", of("Expand", shape, {-2, 3}),
       "the tensor cannot be broadcast to the shape"},
      {"ExpandBeyondMemory", of("Expand", shape, {kHuge, kHuge, 2, 3}), "elements"},
      {"TileMoreThanMemory", of("Tile", shape, {kHuge, kHuge}), "elements"},
      {"TileByANegativeNumber",
       of("Tile", shape, {1, -1}),
       "negative",
       "node_y",
       {},
       "expected at least 0"},
      {"FilledBeyondMemory", of("ConstantOfShape", {"k"}, {int64_t{1} << 62, 8}), "elements"},
      {"FilledWithMoreThanThereIs",
       of("ConstantOfShape", {"k"}, {kHuge}),
       "cannot allocate",
       "node_y",
       {},
       "allocates at most"},
      {"WorkspaceBeyondMemory",
       {{node("Expand", {"w", "k"}, {"large"}),
         node("Softmax", {"large"}, {"s"}, {attribute("axis", 0)}),
         node("CumSum", {"s", "one"}, {"sums"}),
         node("ReduceMax", {"sums"}, {"y"}, {attribute("keepdims", 0)})},
        {kHuge, 3},
        false,
        {number("one", 1)},
        {value("w", {1, 3})}},
       "cannot allocate",
       "node_large",
       {},
       "allocates at most"},
      {"FilledBackwards",
       of("ConstantOfShape", {"k"}, {3, -1}),
       "negative",
       "node_y",
       {},
       "expected at least 0"},
      {"CropToANegativeSize", of("CenterCropPad", shape, {2, -1}), "negative"},
      {"PadBeyondAnAxis", of("Pad", shape, {0, 3, 0, 0}, {attribute("mode", "reflect")}),
       "axis 1 is too short to be padded in mode reflect"},
      {"PadToLessThanNothing",
       of("Pad", shape, {0, -2, 0, -2}),
       "negative",
       "node_y",
       {},
       "removes more elements than axis 1 has"},
      {"PadByWidthsThatWrap", of("Pad", shape, {kMost, 0, kMost, 0}),
       "`Pad` by more elements than there can be"},
      {"ResizeToANegativeSize", of("Resize", {"x", "", "", "k"}, {4, -1}), "negative"},
      {"ResizeToSizesThatWrap", of("Resize", {"x", "", "", "k"}, {kHuge, kHuge}), "elements"},
      {"ResizeByThreeSizes", of("Resize", {"x", "", "", "k"}, {4, 1, 1}),
       "`Resize` has 3 sizes for 2 axes"},
      {"ResizeByNothing", scaled({1, 0}), "a scale of `Resize` is not positive, or too large"},
      {"ResizeBackwards", scaled({-1, 1}), "a scale of `Resize` is not positive, or too large"},
      {"ResizeBeyondMemory", scaled({kHuge, 1}),
       "a scale of `Resize` is not positive, or too large"},
      {"ResizeByInfinity", scaled({1, 1}, "inf"),
       "a scale of `Resize` is not positive, or too large"},
      {"ResizeByNoNumber", scaled({1, 1}, "nan"),
       "a scale of `Resize` is not positive, or too large"},
      {"ResizeByThreeScales", scaled({1, 1, 1}),
       "operand `scales` of `Resize` has shape (3,) for 2 axes"},
      {"WindowOfANegativeSize", of("HannWindow", {"k"}, {-3}), "negative"},
      {"WindowBeyondMemory",
       of("HannWindow", {"k"}, {kMost}),
       "elements",
       "node_y",
       {},
       "`HannWindow` is negative, or too large"},
      {"WindowOfTwoSizes", of("HannWindow", {"k"}, {3, 4}),
       "operand `size` of `HannWindow` has 2 elements; expected 1"},
      {"FramesThatStandStill", of("STFT", {"x", "k", "", "k"}, {0}),
       "`STFT` has a frame_step or frame_length below 1, or frames longer than the signal"},
      {"FramesBeyondTheSignal", of("STFT", {"x", "k", "", "k"}, {4}),
       "`STFT` has a frame_step or frame_length below 1, or frames longer than the signal"},
      {"BandsWithoutARate", of("MelWeightMatrix", {"k", "k", "k", "k", "k"}, {0}),
       "`MelWeightMatrix` has bands, points or a sample rate out of range"},
      {"BlocksOfAMatrix", of("Col2Im", {"x", "k", "k"}, {1, 1}),
       "`Col2Im` of a tensor of rank 2 has 2 axes and blocks of 2"},
      {"RangeThatStandsStill",
       of_number("Range", {"start", "limit", "k"}, 0, {number("start", 0), number("limit", 4)}),
       "delta of 0"},
      {"RangeBeyondMemory",
       of_number("Range", {"start", "k", "step"}, kMost, {number("start", 0), number("step", 1)}),
       "`Range` ends beyond 2^62 elements",
       "node_y",
       {},
       "elements"},
      {"RangeThatWraps",
       of_number("Range", {"start", "k", "step"}, kMost,
                 {number("start", INT64_MIN), number("step", 1)}),
       "`Range` ends beyond 2^62 elements"},
      {"OneHotOfNoDepth",
       of_number("OneHot", {"at", "k", "values"}, 0, {ints("at", {0, 1}), ints("values", {0, 1})}),
       "the depth of `OneHot` is not positive"},
      {"OneHotOfANegativeDepth",
       of_number("OneHot", {"at", "k", "values"}, -2, {ints("at", {0, 1}), ints("values", {0, 1})}),
       "negative",
       "node_y",
       {},
       "not positive"},
      {"OneHotBeyondMemory",
       of_number("OneHot", {"at", "k", "values"}, kMost,
                 {ints("at", {0, 1}), ints("values", {0, 1})}),
       "elements"},
  };
}

std::vector<Bad> axes() {
  const std::string misfit = " is not distinct axes of a tensor of rank ";
  const std::vector<Message> bounds = {ints("one", {1}), ints("two", {2})};
  return {
      {"ReduceAlongNoAxis", of("ReduceSum", {"x", "k"}, {2}),
       "operand `axes` of `ReduceSum`" + misfit + "2"},
      {"ReduceAlongAnAxisTwice", of("ReduceSum", {"x", "k"}, {1, -1}),
       "operand `axes` of `ReduceSum`" + misfit + "2"},
      {"SqueezeOfAnAxisOfThree", of("Squeeze", {"x", "k"}, {1}), "axis 1"},
      {"SqueezeOfNoAxis", of("Squeeze", {"x", "k"}, {9}), "`Squeeze` of axis 1"},
      {"UnsqueezeTwiceAtAPlace", of("Unsqueeze", {"x", "k"}, {1, -3}),
       "operand `axes` of `Unsqueeze`" + misfit + "4"},
      {"UnsqueezeBeyondTheRank", of("Unsqueeze", {"x", "k"}, {9}),
       "operand `axes` of `Unsqueeze`" + misfit + "3"},
      {"SumsAlongNoAxis", of_number("CumSum", {"x", "k"}, 2), "axis"},
      {"SliceAlongNoAxis",
       {{node("Slice", {"x", "one", "two", "k"}, {"y"})}, {2}, false, bounds},
       "axes"},
      {"SliceThatStandsStill", of("Slice", {"x", "k", "k", "k", "k"}, {0}), "step"},
      {"PadAlongNoAxis",
       {{node("Pad", {"x", "w", "", "k"}, {"y"})}, {5}, false, {ints("w", {1, 1})}},
       "axes"},
      {"TransformAlongNoAxis", of_number("DFT", {"x", "", "k"}, 7), "axis"},
      {"TopKBeyondTheAxis",
       {{node("TopK", {"x", "k"}, {"y", "i"})}, {4}},
       "`K` is negative, or greater than the axis"},
      {"TopKOfANegativeNumber",
       {{node("TopK", {"x", "k"}, {"y", "i"})}, {-1}},
       "`K` is negative, or greater than the axis"},
      {"SplitBySizesThatMiss", {{node("Split", {"x", "k"}, {"y", "z"})}, {1, 2}}, "axis"},
      {"SplitByANegativeSize",
       {{node("Split", {"x", "k"}, {"y", "z"})}, {-1, 3}},
       "a size of `Split` is negative"},
      // They add up to 2, but for 2^64.
      {"SplitBySizesThatWrap",
       {{node("Split", {"x", "k"}, {"y", "z", "v", "w"})},
        {int64_t{1} << 62, int64_t{1} << 62, int64_t{1} << 62, (int64_t{1} << 62) + 2}},
       "elements"},
  };
}

std::vector<Bad> places() {
  const Message pair = tensor("r2", {1, 2}, std::string(8, '\0'));
  const Message row = tensor("r", {1}, std::string(4, '\0'));
  const Network unsqueezed = {
      {node("Unsqueeze", {"k", "first"}, {"at"})}, {2, 0}, false, {ints("first", {0}), row, pair}};
  const auto at = [&](const std::string& op, const Names& inputs) {
    Network out = unsqueezed;
    out.nodes.push_back(node(op, inputs, {"y"}));
    return out;
  };
  return {
      {"GatherBeyondTheEnd", of("Gather", {"x", "k"}, {0, 2}), "an index is outside its axis"},
      {"GatherBeforeTheStart", of("Gather", {"x", "k"}, {-3}), "an index is outside its axis"},
      {"GatherElementsBeyondTheEnd", at("GatherElements", {"x", "at"}),
       "an index is outside its axis"},
      {"GatherNDBeyondTheEnd", at("GatherND", {"x", "at"}), "an index is outside its axis"},
      {"ScatterNDBeyondTheEnd", at("ScatterND", {"x", "at", "r"}), "an index is outside its axis"},
      {"ScatterElementsBeyondTheEnd", at("ScatterElements", {"x", "at", "r2"}),
       "an index is outside its axis"},
      {"AxesOfAnyNumberBeyondTheRank",
       {{node("NonZero", {"k"}, {"p"}), node("Reshape", {"p", "flat"}, {"axes"}),
         node("ReduceSum", {"x", "axes"}, {"y"})},
        {0, 1, 1},
        false,
        {ints("flat", {-1})}},
       "operand `axes` of `ReduceSum` is not distinct axes of a tensor of rank 2"},
      {"InsertBeyondTheEnd", of_sequence("SequenceInsert", {"l", "x", "k"}, 4),
       "operand `position` of `SequenceInsert` is outside of its sequence of 3", "node_m"},
      {"EraseBeforeTheStart", of_sequence("SequenceErase", {"l", "k"}, -4),
       "operand `position` of `SequenceErase` is outside of its sequence of 3", "node_m"},
      {"TensorBeyondTheEnd",
       {{node("SequenceConstruct", {"x", "x", "x"}, {"l"}), node("SequenceAt", {"l", "k"}, {"y"})},
        {3},
        true},
       "operand `position` of `SequenceAt` is outside of its sequence of 3"},
      {"PiecesOfNoSize", of_pieces({0}, true),
       "operand `split` of `SplitToSequence` is not above 0", "node_m"},
      {"PiecesOfANegativeSize", of_pieces({-1}, true),
       "operand `split` of `SplitToSequence` is not above 0", "node_m"},
      {"PiecesThatMiss",
       of_pieces({1, 2}, false),
       "the sizes of `SplitToSequence` are not those of its axis",
       "node_m",
       {},
       "does not lie inside of it"},
      {"ConditionsBeyondTheElements", of("Compress", {"x", "k"}, {1, 1, 1, 1, 1, 1, 1}),
       "`Compress` has 7 conditions for 6 elements"},
      {"ConditionsInAMatrix", of("Compress", {"k", "x"}, {1}),
       "operand `condition` of `Compress` has rank 2; expected 1"},
      {"BoxesByTwoLimits", of("NonMaxSuppression", {"x", "x", "k"}, {1, 2}),
       "operand `max_output_boxes_per_class` of `NonMaxSuppression` has 2 elements; expected 1"},
      {"BoxesByTwoThresholds", of("NonMaxSuppression", {"x", "x", "", "x"}, {1}),
       "operand `iou_threshold` of `NonMaxSuppression` has shape (2, 3); expected one number"},
      {"BoxesThatMayOverlapTwice", boxes("f", 2), "`iou_threshold` is not in [0, 1]"},
      {"BoxesByNoNumber", boxes("nan", 2), "`iou_threshold` is not in [0, 1]"},
  };
}

// Where k is 1, x of rank 3, which a permutation of two axes does not take; otherwise x.
Network of_two_ranks(int64_t k) {
  const Graph more{{node("Unsqueeze", {"x", "axis"}, {"a"})}, {}, {value("a", {})}},
      same{{node("Identity", {"x"}, {"b"})}, {}, {value("b", {})}};
  return {{node("Equal", {"k", "one"}, {"c"}),
           node("If", {"c"}, {"z"},
                {graph_attribute("then_branch", more.message()),
                 graph_attribute("else_branch", same.message())}),
           node("Transpose", {"z"}, {"y"}, {attribute("perm", Dims{1, 0})})},
          {k},
          true,
          {number("one", 1), ints("axis", {0})}};
}

// Where k is 1, x of rank 3, which has an axis more than x to be flattened before; otherwise x.
Network flattened(int64_t k) {
  Network out = of_two_ranks(k);
  out.nodes.back() = node("Flatten", {"z"}, {"y"}, {attribute("axis", 3)});
  return out;
}

// Rows of x, k at a time, and a sequence of one tensor, of which each gives the sum of two.
Network of_two_lengths(int64_t k) {
  const Graph sum{{node("Add", {"a", "b"}, {"c"})},
                  {value("a", {-1, 3}), value("b", {2, 3})},
                  {value("c", {-1, 3})}};
  return {{node("SplitToSequence", {"x", "k"}, {"m"}), node("SequenceConstruct", {"x"}, {"l"}),
           node("SequenceMap", {"m", "l"}, {"s"}, {graph_attribute("body", sum.message())}),
           node("ConcatFromSequence", {"s"}, {"y"}, {attribute("axis", 0)})},
          {k},
          true};
}

// A vector that is longer in each of k iterations, and all of these.
Network growing(int64_t k) {
  const Graph body{{node("Identity", {"c"}, {"go"}),
                    node("Concat", {"s", "first"}, {"next"}, {attribute("axis", 0)}),
                    node("Identity", {"next"}, {"row"})},
                   {value("i", {}, kOnnxInt64), value("c", {}, 9), value("s", {-1})},
                   {value("go", {}, 9), value("next", {-1}), value("row", {-1})}};
  return {{node("ReduceSum", {"x", "axis"}, {"first"}, {attribute("keepdims", 0)}),
           node("Loop", {"k", "", "first"}, {"z", "y"}, {graph_attribute("body", body.message())})},
          {k},
          true,
          {ints("axis", {0})}};
}

std::vector<Bad> control_flow() {
  const std::vector<std::string> most = {"--max-steps", "1000"};
  return {
      {"EndlessLoop", endless(kMost), "the loop runs for more than 1000 iterations", "node_y",
       most},
      {"BranchOfAnotherRank", of_two_ranks(1),
       "takes its other branch, which gives a rank that the nodes behind it do not take", "node_z"},
      {"BranchThatANodeDoesNotTake", flattened(2),
       "takes its other branch, whose results node `node_y` does not take", "node_z"},
      {"RowsOfSeveralLengths", growing(2), "tensors of `ConcatFromSequence` differ", "node_z"},
      {"MapOfSeveralLengths", of_two_lengths(1), "`SequenceMap` of sequences of several lengths",
       "node_s"}};
}

// Dimensions of inputs that do not go together.
void broadcasts(std::vector<Case>& cases, const char* suffix, const std::vector<std::string>& how) {
  Case out{std::string("BroadcastOfTwoAndThree") + suffix,
           {"run", "m.onnx", "--dim", "k_d0=2", "--dim", "l_d0=3"},
           {{"m.onnx", model(Graph{{node("Add", {"k", "l"}, {"y"})},
                                   {value("k", {-1}), value("l", {-1})},
                                   {value("y", {-1})}},
                             21)}},
           1,
           "dimensions k_d0 and l_d0 cannot be broadcast"};
  out.arguments.insert(out.arguments.end(), how.begin(), how.end());
  out.names = "node_y";
  cases.push_back(out);
}

// Zeros of the shape k beside what only fits another shape.
std::vector<Bad> extents() {
  const auto with_zeros = [](const Message& last, const Dims& k,
                             std::vector<Message> constants = {}) {
    return Network{{node("ConstantOfShape", {"k"}, {"zeros"}), last}, k, false, constants};
  };
  const Message vector = tensor("v", {3}, std::string(12, '\0'));
  const Message kernel = tensor("w", {4, 2, 1}, std::string(32, '\0'));
  return {
      {"ProductOfOtherLengths", with_zeros(node("MatMul", {"x", "zeros"}, {"y"}), {2, 5}),
       "of `matmul` differ"},
      {"GemmOfOtherLengths", with_zeros(node("Gemm", {"x", "zeros"}, {"y"}), {2, 5}),
       "of `matmul` differ"},
      {"JoinedOfOtherLengths",
       with_zeros(node("Concat", {"x", "zeros"}, {"y"}, {attribute("axis", 0)}), {1, 2}),
       "of `concat` differ"},
      {"NormOfOtherLengths",
       with_zeros(node("LayerNormalization", {"zeros", "v", "v"}, {"y"}), {4, 2}, {vector}),
       "of `nn.layer_norm` differ"},
      {"NormOfOtherChannels",
       with_zeros(node("BatchNormalization", {"zeros", "v", "v", "v", "v"}, {"y"}), {4, 2},
                  {vector}),
       "of `nn.batch_norm` differ"},
      {"ConvolutionOfOtherChannels",
       with_zeros(node("Conv", {"zeros", "w"}, {"y"}), {1, 1, 5}, {kernel}),
       "of `nn.conv1d` differ"},
  };
}

}  // namespace

std::vector<Case> run_time_cases() {
  const std::pair<const char*, std::vector<std::string>> targets[] = {
      {"", {}}, {"InC", {"--target", "c"}}, {"Interpreted", {"--interpret"}}};
  std::vector<Case> cases;
  for (const auto& [suffix, how] : targets) {
    for (const auto& family : {shapes(), axes(), places(), control_flow(), extents()})
      for (const Bad& bad : family)
        for (const bool is_late : {false, true}) cases.push_back(run(bad, is_late, suffix, how));
    broadcasts(cases, suffix, how);
  }
  return cases;
}

}  // namespace tenon::bad_input
