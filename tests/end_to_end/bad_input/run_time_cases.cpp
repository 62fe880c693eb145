// SPDX-License-Identifier: Apache-2.0
// Operands that only the run knows, and that the operator cannot have: the program ends with the
// node's name, before anything is allocated by them.
#include <cstring>

#include "cases.h"
#include "onnx_bytes.h"

namespace tenon::bad_input {

namespace {

std::string vector_file(const Dims& values) {
  std::string header = "{'descr': '<i8', 'fortran_order': False, 'shape': (" +
                       std::to_string(values.size()) + ",), }";
  header.resize((header.size() + 10 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string out("\x93NUMPY\x01\0", 8);
  out += static_cast<char>(header.size() & 255);
  out += static_cast<char>(header.size() >> 8);
  std::string raw(8 * values.size(), '\0');
  std::memcpy(raw.data(), values.data(), raw.size());
  return out + header + raw;
}

// `op` of x, of shape (2, 3), and of operand k, with the values of k given to the run.
Case fails(const std::string& name, const Message& op, const Dims& k, const std::string& says) {
  const auto count = static_cast<int64_t>(k.size());
  const Graph graph{{op}, {value("x", {2, 3}), value("k", {count}, kOnnxInt64)}, {value("y", {})}};
  return {name,
          {"run", "m.onnx", "-i", "k=k.npy"},
          {{"m.onnx", model(graph, 21)}, {"k.npy", vector_file(k)}},
          1,
          says};
}

// `op` of a sequence l of three tensors and of operand k gives m, whose tensors are joined.
Case fails_in_sequence(const std::string& name, const Message& op, const Dims& k,
                       const std::string& says) {
  const auto count = static_cast<int64_t>(k.size());
  const Graph graph{{node("SequenceConstruct", {"x", "x", "x"}, {"l"}), op,
                     node("ConcatFromSequence", {"m"}, {"y"}, {attribute("axis", 0)})},
                    {value("x", {2, 3}), value("k", {count}, kOnnxInt64)},
                    {value("y", {})}};
  return {name,
          {"run", "m.onnx", "-i", "k=k.npy"},
          {{"m.onnx", model(graph, 21)}, {"k.npy", vector_file(k)}},
          1,
          says};
}

// A loop whose condition stays as it is, run with --max-steps.
Case endless(const std::string& name, const std::vector<std::string>& how) {
  std::vector<std::string> args = {"run", "m.tvmscript", "--max-steps", "1000"};
  args.insert(args.end(), how.begin(), how.end());
  return {name,
          args,
          {{"m.tvmscript",
            "@I.ir_module\n"
            "class Module:\n"
            "    @R.function(private=True)\n"
            "    def body(dims: R.Shape([\"i\"]), go: R.Tensor((), \"bool\"), s: R.Tensor((3,), "
            "\"float32\")):\n"
            "        t = R.tanh(s)\n"
            "        return (go, t)\n"
            "    @R.function\n"
            "    def main(go: R.Tensor((), \"bool\"), s: R.Tensor((3,), \"float32\")):\n"
            "        on = R.logical_or(go, R.const(True, \"bool\"))\n"
            "        lv = R.loop(cls.body, R.prim_value(9223372036854775807), R.shape([]), (on, "
            "s), (), "
            "(), while_first=True, sinfo_args=(R.Tuple(R.Tensor((), \"bool\"), R.Tensor((3,), "
            "\"float32\")),))\n"
            "        return lv[1]\n"}},
          1,
          "the loop runs for more than 1000 iterations"};
}

constexpr int64_t kHuge = int64_t{1} << 40;

// A Resize of x by scales that the run computes of k.
Case scaled(const std::string& name, const Dims& k, const std::string& says) {
  Case out = fails(name, node("Resize", {"x", "", "s"}, {"y"}), k, says);
  const auto count = static_cast<int64_t>(k.size());
  out.files.at(0).second = model(Graph{{node("Cast", {"k"}, {"s"}, {attribute("to", 1)}),
                                        node("Resize", {"x", "", "s"}, {"y"})},
                                       {value("x", {2, 3}), value("k", {count}, kOnnxInt64)},
                                       {value("y", {})}},
                                 21);
  return out;
}

}  // namespace

std::vector<Case> run_time_cases() {
  const Message reshape = node("Reshape", {"x", "k"}, {"y"});
  const std::string misfits = "the shape has another number of elements than the tensor";
  return {
      fails("ReshapeToOtherElements", reshape, {4, 2}, "`node_y`: " + misfits),
      fails("ReshapeWithTwoOpenDimensions", reshape, {-1, -1},
            "`node_y`: the shape has two dimensions of -1"),
      fails("ReshapeToANegativeDimension", reshape, {-2, -3},
            "output `y` of shape (-2, -3) has a negative dimension"),
      // 2^63 * 2 wraps to 0, and (2^40)^3 to 0.
      fails("ReshapeToDimensionsThatWrap", reshape, {kHuge, kHuge, kHuge},
            "output `y` of shape (1099511627776, 1099511627776, 1099511627776) has more than"),
      fails("ExpandToAnotherExtent", node("Expand", {"x", "k"}, {"y"}), {2, 4},
            "`node_y`: the tensor cannot be broadcast to the shape"),
      fails("TileMoreThanMemory", node("Tile", {"x", "k"}, {"y"}), {kHuge, kHuge},
            "output `y` of shape (2199023255552, 3298534883328) has more than"),
      fails("TileByANegativeNumber", node("Tile", {"x", "k"}, {"y"}), {1, -1},
            "output `y` of shape (2, -3) has a negative dimension"),
      fails("FilledBeyondMemory", node("ConstantOfShape", {"k"}, {"y"}), {int64_t{1} << 62, 8},
            "output `y` of shape (4611686018427387904, 8) has more than"),
      fails("ReduceAlongNoAxis", node("ReduceSum", {"x", "k"}, {"y"}), {2},
            "operand `axes` of `ReduceSum` is not distinct axes of a tensor of rank 2"),
      fails("ReduceAlongAnAxisTwice", node("ReduceSum", {"x", "k"}, {"y"}), {1, -1},
            "operand `axes` of `ReduceSum` is not distinct axes of a tensor of rank 2"),
      fails("SqueezeOfAnAxisOfThree", node("Squeeze", {"x", "k"}, {"y"}), {1},
            "`Squeeze` of axis 1 of shape (2, 3), which is not 1"),
      fails("TopKBeyondTheAxis", node("TopK", {"x", "k"}, {"y", "i"}), {4},
            "`node_y`: `K` is negative, or greater than the axis"),
      fails("SplitBySizesThatMiss", node("Split", {"x", "k"}, {"y", "z"}), {1, 2},
            "the sizes of `Split` are not those of its axis"),
      fails("SplitByANegativeSize", node("Split", {"x", "k"}, {"y", "z"}), {-1, 3},
            "a size of `Split` is negative"),
      fails("SliceThatStandsStill", node("Slice", {"x", "k", "k", "k", "k"}, {"y"}), {0},
            "a step of `Slice` is 0"),
      {"BoxesThatMayOverlapTwice",
       {"run", "m.onnx", "-i", "k=k.npy"},
       {{"m.onnx",
         model(Graph{{node("Cast", {"k"}, {"t"}, {attribute("to", 1)}),
                      node("NonMaxSuppression", {"b", "s", "k", "t"}, {"y"})},
                     {value("b", {1, 5, 4}), value("s", {1, 2, 5}), value("k", {1}, kOnnxInt64)},
                     {value("y", {})}},
               21)},
        {"k.npy", vector_file({2})}},
       1,
       "`vision.all_class_non_max_suppression` (node_y): `iou_threshold` is not in [0, 1]"},
      fails("UnsqueezeTwiceAtAPlace", node("Unsqueeze", {"x", "k"}, {"y"}), {1, -3},
            "operand `axes` of `Unsqueeze` is not distinct axes of a tensor of rank 4"),
      fails("WindowOfANegativeSize", node("HannWindow", {"k"}, {"y"}), {-3},
            "output `y` of shape (-3,) has a negative dimension"),
      fails("WindowOfTwoSizes", node("HannWindow", {"k"}, {"y"}), {3, 4},
            "operand `size` of `HannWindow` has 2 elements; expected 1"),
      fails("FramesThatStandStill", node("STFT", {"x", "k", "", "k"}, {"y"}), {0},
            "`STFT` has a frame_step or frame_length below 1, or frames longer than the signal"),
      fails("FramesBeyondTheSignal", node("STFT", {"x", "k", "", "k"}, {"y"}), {4},
            "`STFT` has a frame_step or frame_length below 1, or frames longer than the signal"),
      fails("BandsWithoutARate", node("MelWeightMatrix", {"k", "k", "k", "k", "k"}, {"y"}), {0},
            "`MelWeightMatrix` has bands, points or a sample rate out of range"),
      fails("BlocksOfAMatrix", node("Col2Im", {"x", "k", "k"}, {"y"}), {1, 1},
            "`Col2Im` of a tensor of rank 2 has 2 axes and blocks of 2"),
      fails("CropToANegativeSize", node("CenterCropPad", {"x", "k"}, {"y"}), {2, -1},
            "has a negative dimension"),
      fails("ConditionsBeyondTheElements", node("Compress", {"x", "k"}, {"y"}),
            {1, 1, 1, 1, 1, 1, 1}, "`Compress` has 7 conditions for 6 elements"),
      fails("ConditionsInAMatrix", node("Compress", {"k", "x"}, {"y"}), {1},
            "operand `condition` of `Compress` has rank 2; expected 1"),
      fails(
          "BoxesByTwoLimits", node("NonMaxSuppression", {"x", "x", "k"}, {"y"}), {1, 2},
          "operand `max_output_boxes_per_class` of `NonMaxSuppression` has 2 elements; expected 1"),
      fails("BoxesByTwoThresholds", node("NonMaxSuppression", {"x", "x", "", "x"}, {"y"}), {1},
            "operand `iou_threshold` of `NonMaxSuppression` has shape (2, 3); expected one number"),
      fails("ResizeToANegativeSize", node("Resize", {"x", "", "", "k"}, {"y"}), {4, -1},
            "output `y` of shape (4, -1) has a negative dimension"),
      fails("ResizeByThreeSizes", node("Resize", {"x", "", "", "k"}, {"y"}), {4, 1, 1},
            "`Resize` has 3 sizes for 2 axes"),
      scaled("ResizeByNothing", {1, 0},
             "`node_y`: a scale of `Resize` is not positive, or too large"),
      scaled("ResizeBackwards", {-1, 1},
             "`node_y`: a scale of `Resize` is not positive, or too large"),
      scaled("ResizeBeyondMemory", {kHuge, 1},
             "`node_y`: a scale of `Resize` is not positive, or too large"),
      scaled("ResizeByThreeScales", {1, 1, 1},
             "operand `scales` of `Resize` has shape (3,) for 2 axes"),
      fails_in_sequence("InsertBeyondTheEnd", node("SequenceInsert", {"l", "x", "k"}, {"m"}), {4},
                        "operand `position` of `SequenceInsert` is outside of its sequence of 3"),
      fails_in_sequence("EraseBeforeTheStart", node("SequenceErase", {"l", "k"}, {"m"}), {-4},
                        "operand `position` of `SequenceErase` is outside of its sequence of 3"),
      endless("EndlessLoop", {}),
      endless("EndlessLoopInC", {"--target", "c"}),
      endless("EndlessLoopInterpreted", {"--interpret"}),
      {"BroadcastOfTwoAndThree",
       {"run", "m.onnx", "--dim", "k_d0=2", "--dim", "l_d0=3"},
       {{"m.onnx", model(Graph{{node("Add", {"k", "l"}, {"y"})},
                               {value("k", {-1}), value("l", {-1})},
                               {value("y", {-1})}},
                         21)}},
       1,
       "`node_y`: dimensions k_d0 and l_d0 cannot be broadcast"},
      fails("PadBeyondAnAxis", node("Pad", {"x", "k"}, {"y"}, {attribute("mode", "reflect")}),
            {0, 3, 0, 0}, "axis 1 is too short to be padded in mode reflect"),
      fails("PadToLessThanNothing", node("Pad", {"x", "k"}, {"y"}), {0, -2, 0, -2},
            "output `y` of shape (2, -1) has a negative dimension"),
  };
}

}  // namespace tenon::bad_input
