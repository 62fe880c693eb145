// SPDX-License-Identifier: Apache-2.0
// ONNX operators whose operands, attributes and forms do not fit.
#include "onnx_network.h"

namespace tenon::bad_input {

namespace {

std::vector<Case> creating() {
  return {
      bad("ConstantOfText",
          {{node("Constant", {}, {"y"}, {text_attribute("value_string", "a")})}, {}},
          "error[TN0502]: m.onnx: one node is not supported: `Constant` (a constant of type "
          "string)"),
      bad("SparseConstant",
          {{node("Constant", {}, {"y"},
                 {Message().text(1, "sparse_value").message(22, Message()).number(20, 11)})},
           {}},
          "error[TN0502]: m.onnx: one node is not supported: `Constant` (a sparse constant)"),
      bad("ConstantWithoutAValue", {{node("Constant", {}, {"y"})}, {}},
          "m.onnx: node `node_y` (Constant): error[TN0104]: `Constant` has no value"),
      bad("ConstantOfShapeWithTwoValues",
          {{node("ConstantOfShape", {"s"}, {"y"},
                 {tensor_attribute("value", floats("v", {1, 2}))})},
           {},
           {ints("s", {2})}},
          "m.onnx: node `node_y` (ConstantOfShape): error[TN0104]: attribute `value` of "
          "`ConstantOfShape` has 2 elements; expected 1"),
      bad("ConstantOfNegativeShape",
          {{node("ConstantOfShape", {"s"}, {"y"})}, {}, {ints("s", {-2, 3})}},
          "m.onnx: node `node_y` (ConstantOfShape): error[TN0101]: `ConstantOfShape` of shape (-2, "
          "3); expected no negative dimension"),
      bad("RangeFromTwoStarts",
          {{node("Range", {"s", "l", "d"}, {"y"})},
           {},
           {ints("s", {0, 1}), ints("l", {4}), ints("d", {1})}},
          "m.onnx: node `node_y` (Range): error[TN0101]: operand `start` of `Range` has shape "
          "(2,); "
          "expected one element"),
      bad("RangeThatStandsStill",
          {{node("Range", {"s", "l", "d"}, {"y"})},
           {},
           {ints("s", {0}), ints("l", {4}), ints("d", {0})}},
          "m.onnx: node `node_y` (Range): error[TN0105]: `Range` has a delta of 0; expected "
          "another number"),
      bad("IndexBeyondAShape",
          {{node("Shape", {"x"}, {"s"}), node("Gather", {"s", "i"}, {"y"})},
           {x({2, 3})},
           {ints("i", {5})}},
          "m.onnx: node `node_y` (Gather): error[TN0302]: `take` (node_y) has index 5 into an axis "
          "of 2"),
      bad("EyeLikeAVector", {{node("EyeLike", {"x"}, {"y"})}, {x({4})}},
          "m.onnx: node `node_y` (EyeLike): error[TN0103]: `EyeLike` of a tensor of rank 1; "
          "expected 2"),
      bad("OneHotOfTwoDepths",
          {{node("OneHot", {"i", "d", "v"}, {"y"})},
           {},
           {ints("i", {0, 1}), ints("d", {2, 3}), floats("v", {0, 1})}},
          "m.onnx: node `node_y` (OneHot): error[TN0101]: operand `depth` of `OneHot` has 2 "
          "elements; expected 1"),
      bad("OneHotOfTwoFloatDepths",
          {{node("OneHot", {"i", "d", "v"}, {"y"})},
           {},
           {ints("i", {0, 1}), floats("d", {2, 3}), floats("v", {0, 1})}},
          "m.onnx: node `node_y` (OneHot): error[TN0101]: operand `depth` of `OneHot` has 2 "
          "elements; expected 1"),
      bad("OneHotOfNegativeDepth",
          {{node("OneHot", {"i", "d", "v"}, {"y"})},
           {},
           {ints("i", {0, 1}), ints("d", {-2}), floats("v", {0, 1})}},
          "m.onnx: node `node_y` (OneHot): error[TN0105]: `OneHot` of depth -2; expected 1 or "
          "more"),
      bad("OneHotOfThreeValues",
          {{node("OneHot", {"i", "d", "v"}, {"y"})},
           {},
           {ints("i", {0, 1}), ints("d", {2}), floats("v", {0, 1, 2})}},
          "m.onnx: node `node_y` (OneHot): error[TN0101]: operand `values` of `OneHot` has shape "
          "(3,); expected (2,)"),
      bad("WindowOfNegativeSize", {{node("HannWindow", {"n"}, {"y"})}, {}, {ints("n", {-1})}},
          "error[TN0502]: m.onnx: one node is not supported: `HannWindow` (size -1)"),
      bad("ShapeOfFloats", {{node("Reshape", {"x", "s"}, {"y"})}, {x({2, 3})}, {floats("s", {6})}},
          "m.onnx: node `node_y` (Reshape): error[TN0102]: operand `shape` of `Reshape` has dtype "
          "float32; expected integers"),
  };
}

std::vector<Case> elementwise() {
  return {
      bad("OperandAlignedBehindTheLastAxis",
          {{node("Add", {"x", "w"}, {"y"}, {attribute("axis", 1), attribute("broadcast", 1)})},
           {x({2, 3})},
           {weight("w", {3, 4})},
           6},
          "m.onnx: node `node_y` (Add): error[TN0101]: `Add` aligns a tensor of rank 2 at axis 1 "
          "of one of rank 2"),
      bad("ModOfFloats", {{node("Mod", {"x", "w"}, {"y"})}, {x({3})}, {weight("w", {3})}},
          "m.onnx: node `node_y` (Mod): error[TN0104]: `Mod` of dtype float32 without fmod=1"),
      bad("BitShiftUp",
          {{node("BitShift", {"x", "x"}, {"y"}, {text_attribute("direction", "UP")})},
           {x({3}, 13)}},
          "m.onnx: node `node_y` (BitShift): error[TN0104]: attribute `direction` of `BitShift` is "
          "`UP`; expected LEFT or RIGHT"),
      bad("DropoutOfEverything",
          {{node("Dropout", {"x", "r", "t"}, {"y"})},
           {x({3})},
           {floats("r", {1}), tensor("t", {}, "\x01", kOnnxBool)}},
          "m.onnx: node `node_y` (Dropout): error[TN0105]: `Dropout` has ratio 1; expected 0 to "
          "below 1"),
      bad("GeluByAnotherName",
          {{node("Gelu", {"x"}, {"y"}, {text_attribute("approximate", "erf")})}, {x({3})}},
          "error[TN0502]: m.onnx: one node is not supported: `Gelu` (approximate `erf`)"),
      bad("ScatterByDivision",
          {{node("ScatterND", {"x", "i", "u"}, {"y"}, {text_attribute("reduction", "div")})},
           {x({3})},
           {tensor("i", {1, 1}, zeros(8), kOnnxInt64), weight("u", {1})}},
          "m.onnx: node `node_y` (ScatterND): error[TN0104]: attribute `reduction` of `ScatterND` "
          "is `div`; expected none, add, mul, min or max"),
      bad("LossOfTheMedian",
          {{node("NegativeLogLikelihoodLoss", {"x", "t"}, {"y"},
                 {text_attribute("reduction", "median")})},
           {x({2, 3})},
           {ints("t", {0, 1})}},
          "m.onnx: node `node_y` (NegativeLogLikelihoodLoss): error[TN0104]: attribute `reduction` "
          "of `NegativeLogLikelihoodLoss` is `median`; expected mean, sum or none"),
      bad("LossOfOtherRanks",
          {{node("NegativeLogLikelihoodLoss", {"x", "t"}, {"y"})},
           {x({2, 3, 4})},
           {ints("t", {0, 1})}},
          "m.onnx: node `node_y` (NegativeLogLikelihoodLoss): error[TN0103]: "
          "`NegativeLogLikelihoodLoss` of scores of rank 3 and classes of rank 1"),
      bad("ScalesOfRankTwo",
          {{node("DequantizeLinear", {"x", "s"}, {"y"})},
           {x({2, 3}, kOnnxInt8)},
           {weight("s", {2, 3})}},
          "m.onnx: node `node_y` (DequantizeLinear): error[TN0103]: the scale of "
          "`DequantizeLinear` has rank 2; expected 1, or a scalar"),
      bad("ConditionOfNumbers",
          {{node("If", {"x"}, {"y"},
                 {graph_attribute(
                      "then_branch",
                      Graph{{node("Identity", {"x"}, {"a"})}, {}, {value("a", {})}}.message()),
                  graph_attribute(
                      "else_branch",
                      Graph{{node("Identity", {"x"}, {"b"})}, {}, {value("b", {})}}.message())})},
           {x({})}},
          "m.onnx: node `node_y` (If): error[TN0102]: the condition of `If` has dtype float32; "
          "expected bool"),
      bad("FormThatIsTooOld",
          {{node("ReduceSum", {"x"}, {"y"}), node("Trilu", {"y"}, {"z"})}, {x({2, 2})}, {}, 9},
          "error[TN0502]: m.onnx: one node is not supported: `Trilu` (the form of opset 9; "
          "expected at least 14)"),
      bad("DomainThatIsNotImported",
          {{node("Gelu", {"x"}, {"y"}, {}, "com.microsoft")}, {x({2, 2})}},
          "m.onnx: node `node_y` (com.microsoft.Gelu): error[TN0501]: operator set `com.microsoft` "
          "is "
          "not imported"),
      bad("InputWithoutAName", {{node("Relu", {"x"}, {"y"})}, {x({2}), value("", {3})}},
          "error[TN0501]: m.onnx: a graph input has no name"),
  };
}

std::vector<Case> normalising() {
  const std::vector<Message> four = {weight("s", {3}), weight("b", {3}), weight("m", {3}),
                                     weight("v", {3})};
  const Names all = {"x", "s", "b", "m", "v"};
  return {
      bad("BatchNormOfAVector", {{node("BatchNormalization", all, {"y"})}, {x({3})}, four},
          "m.onnx: node `node_y` (BatchNormalization): error[TN0103]: `BatchNormalization` of a "
          "tensor of rank 1; expected at least 2"),
      bad("GroupNormOfAVector",
          {{node("GroupNormalization", {"x", "s", "b"}, {"y"}, {attribute("num_groups", 1)})},
           {x({3})},
           four},
          "m.onnx: node `node_y` (GroupNormalization): error[TN0103]: `GroupNormalization` of a "
          "tensor of rank 1; expected at least 2"),
      bad("GroupNormOfNoGroups",
          {{node("GroupNormalization", {"x", "s", "b"}, {"y"}, {attribute("num_groups", 0)})},
           {x({2, 3})},
           four},
          "m.onnx: node `node_y` (GroupNormalization): error[TN0104]: attribute `num_groups` is 0; "
          "expected 1 or more"),
      bad("GroupNormOfUnknownChannels",
          {{node("GroupNormalization", {"x", "s", "b"}, {"y"}, {attribute("num_groups", 3)})},
           {named("x", {"2", "c", "4"})},
           four,
           18},
          "error[TN0502]: m.onnx: one node is not supported: `GroupNormalization` (normalisation "
          "over a symbolic dimension without a scale)"),
      bad("NormOfPowerThree",
          {{node("LpNormalization", {"x"}, {"y"}, {attribute("p", 3)})}, {x({2, 3})}},
          "m.onnx: node `node_y` (LpNormalization): error[TN0104]: attribute `p` is 3; expected 1 "
          "or 2"),
  };
}

std::vector<Case> shaping() {
  return {
      bad("ReshapeToLessThanNothing",
          {{node("Reshape", {"x", "s"}, {"y"})}, {x({2, 3})}, {ints("s", {-6, -1})}},
          "m.onnx: node `node_y` (Reshape): error[TN0101]: `Reshape` to (-6, -1) has a negative "
          "dimension"),
      bad("ReshapeOfNothing",
          {{node("Reshape", {"x", "s"}, {"y"}, {attribute("allowzero", 1)})},
           {x({0, 3})},
           {ints("s", {0, -1})}},
          "m.onnx: node `node_y` (Reshape): error[TN0101]: `Reshape` to (0, -1) cannot infer the "
          "dimension of -1"),
      bad("FlattenBehindTheLastAxis",
          {{node("Flatten", {"x"}, {"y"}, {attribute("axis", 3)})}, {x({2, 3})}},
          "m.onnx: node `node_y` (Flatten): error[TN0104]: `axis` of `Flatten` is 3; expected -2 "
          "to 2"),
      bad("SqueezeOfAWideAxis",
          {{node("Squeeze", {"x", "a"}, {"y"})}, {x({2, 3})}, {ints("a", {1})}},
          "m.onnx: node `node_y` (Squeeze): error[TN0101]: `Squeeze` of axis 1 of shape (2, 3), "
          "which is not 1"),
      bad("SplitIntoAnotherCount",
          {{node("Split", {"x"}, {"y", "z"}, {attribute("num_outputs", 3)})}, {x({6})}},
          "m.onnx: node `node_y` (Split): error[TN0104]: attribute `num_outputs` of `Split` is 3; "
          "the node has 2 outputs"),
      bad("SplitBySizesOfAnotherCount",
          {{node("Split", {"x", "s"}, {"y", "z"})}, {x({6})}, {ints("s", {1, 2, 3})}},
          "m.onnx: node `node_y` (Split): error[TN0101]: `Split` has 3 sizes for 2 outputs"),
      bad("SliceWithAnEndTooFew",
          {{node("Slice", {"x", "s", "e"}, {"y"})},
           {x({2, 3})},
           {ints("s", {0, 0}), ints("e", {1})}},
          "m.onnx: node `node_y` (Slice): error[TN0101]: `Slice` has 2 starts, 1 ends, 2 axes and "
          "2 steps"),
      bad("PadByAWish",
          {{node("Pad", {"x", "p"}, {"y"}, {text_attribute("mode", "wish")})},
           {x({3})},
           {ints("p", {1, 1})}},
          "m.onnx: node `node_y` (Pad): error[TN0104]: attribute `mode` of `Pad` is `wish`; "
          "expected constant, reflect, edge or wrap"),
      bad("PadBeyondAllBounds",
          {{node("Pad", {"x", "p"}, {"y"})}, {x({3})}, {ints("p", {int64_t{1} << 61, 1})}},
          "m.onnx: node `node_y` (Pad): error[TN0109]: `Pad` by 2305843009213693952 elements"),
      bad("TileOfAnotherRank", {{node("Tile", {"x", "r"}, {"y"})}, {x({2, 3})}, {ints("r", {2})}},
          "m.onnx: node `node_y` (Tile): error[TN0101]: `Tile` has 1 repeats for a tensor of rank "
          "2"),
      bad("DepthToSpaceOfAVector",
          {{node("DepthToSpace", {"x"}, {"y"}, {attribute("blocksize", 2)})}, {x({4})}},
          "m.onnx: node `node_y` (DepthToSpace): error[TN0103]: `DepthToSpace` of a tensor of rank "
          "1; expected 4"),
      bad("DepthToSpaceOfOddChannels",
          {{node("DepthToSpace", {"x"}, {"y"}, {attribute("blocksize", 2)})}, {x({1, 6, 2, 2})}},
          "m.onnx: node `node_y` (DepthToSpace): error[TN0101]: `DepthToSpace` of a dimension that "
          "4 "
          "does not divide: 6"),
      bad("SpaceToDepthOfAVector",
          {{node("SpaceToDepth", {"x"}, {"y"}, {attribute("blocksize", 2)})}, {x({4})}},
          "m.onnx: node `node_y` (SpaceToDepth): error[TN0103]: `SpaceToDepth` of a tensor of rank "
          "1; expected 4"),
      bad("SpaceToDepthOfOddRows",
          {{node("SpaceToDepth", {"x"}, {"y"}, {attribute("blocksize", 2)})}, {x({1, 1, 3, 2})}},
          "m.onnx: node `node_y` (SpaceToDepth): error[TN0101]: `SpaceToDepth` of a dimension that "
          "2 "
          "does not divide: 3"),
      bad("SpaceToDepthByNothing",
          {{node("SpaceToDepth", {"x"}, {"y"}, {attribute("blocksize", 0)})}, {x({1, 1, 2, 2})}},
          "m.onnx: node `node_y` (SpaceToDepth): error[TN0104]: attribute `blocksize` of "
          "`SpaceToDepth` is 0; expected at least 1"),
  };
}

std::vector<Case> imaging() {
  const Message empty = tensor("e", {0}, "");
  const auto resize = [&](const std::vector<Message>& attributes,
                          const std::vector<float>& scales) {
    return Network{{node("Resize", {"x", "", "s"}, {"y"}, attributes)},
                   {x({2, 2, 4, 4})},
                   {floats("s", scales)}};
  };
  return {
      bad("ResizeOfNoCrop",
          resize({text_attribute("coordinate_transformation_mode", "tf_crop_and_resize")},
                 {1, 1, 2, 2}),
          "m.onnx: node `node_y` (Resize): error[TN0501]: `Resize` by tf_crop_and_resize has no "
          "roi"),
      bad("ResizeByTheArea", resize({text_attribute("mode", "area")}, {1, 1, 2, 2}),
          "m.onnx: node `node_y` (Resize): error[TN0104]: attribute `mode` of `Resize` is `area`; "
          "expected nearest, linear or cubic"),
      bad("ResizeOfOtherProportions",
          resize({text_attribute("keep_aspect_ratio_policy", "any")}, {1, 1, 2, 2}),
          "m.onnx: node `node_y` (Resize): error[TN0104]: attribute `keep_aspect_ratio_policy` of "
          "`Resize` is `any`; expected stretch, not_larger or not_smaller"),
      bad("ResizeByScalesOfAnotherCount", resize({}, {2, 2}),
          "m.onnx: node `node_y` (Resize): error[TN0101]: `Resize` has 2 scales for 4 axes"),
      bad("ResizeByANegativeScale", resize({}, {1, 1, -2, 2}),
          "m.onnx: node `node_y` (Resize): error[TN0105]: `Resize` by a factor of -2"),
      bad("ResizeByNothing", {{node("Resize", {"x"}, {"y"})}, {x({2, 2, 4, 4})}},
          "m.onnx: node `node_y` (Resize): error[TN0501]: `Resize` has neither scales nor sizes"),
      bad("ResizeToSizesOfAnotherCount",
          {{node("Resize", {"x", "", "", "s"}, {"y"})}, {x({2, 2, 4, 4})}, {ints("s", {8, 8})}},
          "m.onnx: node `node_y` (Resize): error[TN0101]: `Resize` has 2 sizes for 4 axes"),
      bad("ResizeToANegativeSize",
          {{node("Resize", {"x", "", "", "s"}, {"y"})},
           {x({2, 2, 4, 4})},
           {ints("s", {2, 2, -1, 8})}},
          "m.onnx: node `node_y` (Resize): error[TN0105]: `Resize` of an axis of 4 to -1 elements"),
      bad("ScalesByTheMillion",
          {{node("Upsample", {"x", "s"}, {"y"})}, {x({2, 2})}, {weight("s", {1 << 21})}, 9},
          "error[TN0502]: m.onnx: one node is not supported: `Upsample` (operand `scales` of that "
          "size)"),
  };
}

std::vector<Case> sampling() {
  return {
      bad("AffineGridOfALine",
          {{node("AffineGrid", {"x", "s"}, {"y"})}, {x({1, 2, 3})}, {ints("s", {1, 2, 3})}},
          "m.onnx: node `node_y` (AffineGrid): error[TN0101]: operand `size` of `AffineGrid` has 3 "
          "numbers; expected 4 or 5"),
      bad("AffineGridOfAnotherBatch",
          {{node("AffineGrid", {"x", "s"}, {"y"})}, {x({1, 2, 3})}, {ints("s", {2, 1, 2, 3})}},
          "m.onnx: node `node_y` (AffineGrid): error[TN0101]: `AffineGrid` has 1 maps for a batch "
          "of 2"),
      bad("GridSampleByArea",
          {{node("GridSample", {"x", "g"}, {"y"}, {text_attribute("mode", "area")})},
           {x({1, 1, 2, 2}), value("g", {1, 2, 2, 2})}},
          "m.onnx: node `node_y` (GridSample): error[TN0104]: attribute `mode` of `GridSample` is "
          "`area`; expected linear, nearest or cubic"),
      bad("DeformConvOfAMatrix",
          {{node("DeformConv", {"x", "w", "o"}, {"y"})},
           {x({1, 2}), value("o", {1, 2})},
           {weight("w", {1, 2})}},
          "m.onnx: node `node_y` (DeformConv): error[TN0103]: operands X and W of `DeformConv` "
          "have ranks 2 and 2; expected 3 or more, the same"),
      bad("DeformConvOfAnotherKernel",
          {{node("DeformConv", {"x", "w", "o"}, {"y"}, {attribute("kernel_shape", Dims{3, 3})})},
           {x({1, 1, 4, 4}), value("o", {1, 8, 3, 3})},
           {weight("w", {1, 1, 2, 2})}},
          "m.onnx: node `node_y` (DeformConv): error[TN0101]: kernel_shape of `DeformConv` is (3, "
          "3); the weight has (2, 2)"),
      bad("DeformConvOfOtherChannels",
          {{node("DeformConv", {"x", "w", "o"}, {"y"})},
           {x({1, 2, 4, 4}), value("o", {1, 8, 3, 3})},
           {weight("w", {1, 1, 2, 2})}},
          "m.onnx: node `node_y` (DeformConv): error[TN0101]: `DeformConv` of 2 channels has "
          "weights of shape (1, 1, 2, 2) in 1 groups"),
      bad("RoiAlignOfNoShift",
          {{node("RoiAlign", {"x", "r", "b"}, {"y"},
                 {text_attribute("coordinate_transformation_mode", "whole")})},
           {x({1, 1, 4, 4}), value("r", {1, 4}), value("b", {1}, 7)}},
          "m.onnx: node `node_y` (RoiAlign): error[TN0104]: attribute "
          "`coordinate_transformation_mode` of `RoiAlign` is `whole`; expected half_pixel or "
          "output_half_pixel"),
      bad("CenterCropToLess",
          {{node("CenterCropPad", {"x", "s"}, {"y"})}, {x({2, 2})}, {ints("s", {-1, 2})}},
          "m.onnx: node `node_y` (CenterCropPad): error[TN0105]: `CenterCropPad` to the shape (-1, "
          "2); expected no negative number"),
      bad("DftOfAVector", {{node("DFT", {"x"}, {"y"})}, {x({4})}},
          "m.onnx: node `node_y` (DFT): error[TN0103]: `DFT` of a tensor of rank 1; expected at "
          "least 2"),
      bad("DftOfNoPoints", {{node("DFT", {"x", "n"}, {"y"})}, {x({4, 1})}, {ints("n", {0})}},
          "m.onnx: node `node_y` (DFT): error[TN0105]: `DFT` of 0 points; expected at least 1"),
      bad("StftOfNoStep",
          {{node("STFT", {"x", "s", "w"}, {"y"})},
           {x({1, 8, 1})},
           {ints("s", {0}), weight("w", {4})}},
          "m.onnx: node `node_y` (STFT): error[TN0105]: `STFT` has frame_step 0 and frame_length "
          "4; expected at least 1"),
      bad("StftOfAnotherWindow",
          {{node("STFT", {"x", "s", "w", "n"}, {"y"})},
           {x({1, 8, 1})},
           {ints("s", {1}), weight("w", {4}), ints("n", {5})}},
          "m.onnx: node `node_y` (STFT): error[TN0101]: operand `window` of `STFT` has 4 elements "
          "for frames of 5"),
      bad("StftOfAMatrixWindow",
          {{node("STFT", {"x", "s", "w"}, {"y"})},
           {x({1, 8, 1})},
           {ints("s", {1}), weight("w", {2, 2})}},
          "m.onnx: node `node_y` (STFT): error[TN0103]: operand `window` of `STFT` has rank 2; "
          "expected 1"),
      bad("MultinomialOfAVector", {{node("Multinomial", {"x"}, {"y"})}, {x({4})}},
          "m.onnx: node `node_y` (Multinomial): error[TN0103]: operand `input` of `Multinomial` "
          "has rank 1; expected 2"),
      bad("MultinomialOfNothing",
          {{node("Multinomial", {"x"}, {"y"}, {attribute("sample_size", 0)})}, {x({1, 4})}},
          "m.onnx: node `node_y` (Multinomial): error[TN0104]: attribute `sample_size` of "
          "`Multinomial` is 0; expected 1 or more"),
      bad("RandomIntegers",
          {{node("RandomUniformLike", {"x"}, {"y"}, {attribute("dtype", 7)})}, {x({2})}},
          "m.onnx: node `node_y` (RandomUniformLike): error[TN0104]: attribute `dtype` of "
          "`RandomUniformLike` is int64; expected a float"),
      bad("RandomOfANegativeShape",
          {{node("RandomNormal", Names{}, {"y"}, {attribute("shape", Dims{-2})})}, {x({2})}},
          "m.onnx: node `node_y` (RandomNormal): error[TN0104]: attribute `shape` of "
          "`RandomNormal` is (-2,)"),
      bad("UnpoolToAMatrix",
          {{node("MaxUnpool", {"x", "i", "s"}, {"y"}, {attribute("kernel_shape", Dims{2, 2})})},
           {x({1, 1, 2, 2}), value("i", {1, 1, 2, 2}, 7)},
           {ints("s", {3, 3})}},
          "m.onnx: node `node_y` (MaxUnpool): error[TN0101]: operand `output_shape` of `MaxUnpool` "
          "is (3, 3); expected 4 numbers"),
      bad("ResizeOfHalfACrop",
          {{node("Resize", {"x", "r", "s"}, {"y"},
                 {text_attribute("coordinate_transformation_mode", "tf_crop_and_resize")})},
           {x({4, 4})},
           {floats("r", {0, 1}), floats("s", {1, 2})}},
          "m.onnx: node `node_y` (Resize): error[TN0101]: operand `roi` of `Resize` has 2 numbers "
          "for 2 axes; expected 4"),
  };
}

std::vector<Case> windows() {
  const Message w = weight("w", {1, 1, 3, 3});
  const auto conv = [&](const std::vector<Message>& attributes) {
    return Network{{node("Conv", {"x", "w"}, {"y"}, attributes)}, {x({1, 1, 8, 8})}, {w}};
  };
  const auto pool = [&](const std::vector<Message>& attributes) {
    return Network{{node("MaxPool", {"x"}, {"y"}, attributes)}, {x({1, 1, 8, 8})}};
  };
  return {
      bad("ConvOfAnotherWindow", conv({attribute("kernel_shape", Dims{5, 5})}),
          "m.onnx: node `node_y` (Conv): error[TN0101]: kernel_shape of `Conv` is (5, 5); the "
          "weight has (3, 3)"),
      bad("ConvPaddedByAWish", conv({text_attribute("auto_pad", "WISH")}),
          "m.onnx: node `node_y` (Conv): error[TN0104]: attribute `auto_pad` of `Conv` is `WISH`; "
          "expected NOTSET, VALID, SAME_UPPER or SAME_LOWER"),
      bad("ConvOfAWeightOfAnotherRank", {{node("Conv", {"x", "w"}, {"y"})}, {x({1, 1, 8})}, {w}},
          "m.onnx: node `node_y` (Conv): error[TN0103]: `Conv` has a weight of rank 4 for an input "
          "of rank 3"),
      bad("ConvOfABiasOfRankTwo",
          {{node("Conv", {"x", "w", "b"}, {"y"})}, {x({1, 1, 8, 8})}, {w, weight("b", {1, 1})}},
          "m.onnx: node `node_y` (Conv): error[TN0103]: the bias of `Conv` has rank 2; expected 1"),
      bad("PoolPositionsOfUnknownRows",
          {{node("MaxPool", {"x"}, {"y", "i"},
                 {attribute("kernel_shape", Dims{2, 2}), attribute("strides", Dims{2, 2}),
                  text_attribute("auto_pad", "SAME_UPPER")})},
           {named("x", {"1", "1", "h", "8"})}},
          "error[TN0502]: m.onnx: one node is not supported: `MaxPool` (positions under auto_pad "
          "of "
          "a symbolic dimension)"),
      bad("TransposedConvToThreeNumbers",
          {{node("ConvTranspose", {"x", "w"}, {"y"}, {attribute("output_shape", Dims{8, 8, 8})})},
           {x({1, 1, 8, 8})},
           {w}},
          "m.onnx: node `node_y` (ConvTranspose): error[TN0104]: attribute `output_shape` of "
          "`ConvTranspose` has 3 numbers; expected 2"),
      bad("PoolWithoutAWindow", pool({}),
          "m.onnx: node `node_y` (MaxPool): error[TN0104]: `MaxPool` has no attribute "
          "`kernel_shape`, a list of integers"),
      bad("PoolOfAWindowOfAnotherRank", pool({attribute("kernel_shape", Dims{2})}),
          "m.onnx: node `node_y` (MaxPool): error[TN0103]: kernel_shape of `MaxPool` has 1 "
          "dimensions; the input has 2 spatial axes"),
      bad("PoolOfAnEmptyWindow", pool({attribute("kernel_shape", Dims{0, 2})}),
          "m.onnx: node `node_y` (MaxPool): error[TN0104]: kernel_shape of `MaxPool` is (0, 2); "
          "expected positive numbers"),
      bad("UnpoolToLess",
          {{node("MaxUnpool", {"x", "i", "s"}, {"y"}, {attribute("kernel_shape", Dims{2, 2})})},
           {x({1, 1, 2, 2}), value("i", {1, 1, 2, 2}, 7)},
           {ints("s", {1, 1, 2, 3})}},
          "m.onnx: node `node_y` (MaxUnpool): error[TN0101]: operand `output_shape` of `MaxUnpool` "
          "is (1, 1, 2, 3); expected at least (1, 1, 3, 3)"),
      bad("GlobalPoolOfAVector", {{node("GlobalAveragePool", {"x"}, {"y"})}, {x({8})}},
          "m.onnx: node `node_y` (GlobalAveragePool): error[TN0103]: `GlobalAveragePool` of a "
          "tensor of rank 1; expected at least 2"),
  };
}

std::vector<Case> recurrent() {
  const Message w = weight("w", {1, 8, 3}), r = weight("r", {1, 8, 2});
  const auto lstm = [&](const Names& more, const std::vector<Message>& attributes,
                        const std::vector<Message>& initializers = {}, int64_t opset = 21) {
    Names inputs = {"x", "w", "r"};
    inputs.insert(inputs.end(), more.begin(), more.end());
    Network out{{node("LSTM", inputs, {"y"}, attributes)}, {x({4, 1, 3})}, {w, r}, opset};
    out.initializers.insert(out.initializers.end(), initializers.begin(), initializers.end());
    return out;
  };
  return {
      bad("LstmOfAMatrix", {{node("LSTM", {"x", "w", "r"}, {"y"})}, {x({4, 3})}, {w, r}},
          "m.onnx: node `node_y` (LSTM): error[TN0103]: operands X, W and R of `LSTM` have ranks "
          "2, 3 and 3; expected 3"),
      bad("LstmOfAnotherSize", lstm({}, {attribute("hidden_size", 5)}),
          "m.onnx: node `node_y` (LSTM): error[TN0101]: attribute `hidden_size` of `LSTM` is 5; "
          "operand R has 2 units"),
      bad("LstmOfLongerSequences",
          lstm({"", "n"}, {}, {tensor("n", {1}, std::string("\5\0\0\0", 4), kOnnxInt32)}),
          "m.onnx: node `node_y` (LSTM): error[TN0105]: operand `sequence_lens` of `LSTM` has "
          "length 5 of 4 steps"),
      bad("LstmWithPeepholesOfOneGate", lstm({"", "", "", "", "p"}, {}, {weight("p", {1, 2})}),
          "m.onnx: node `node_y` (LSTM): error[TN0101]: operand P of `LSTM` has shape (1, 2); "
          "expected (1, 6)"),
  };
}

}  // namespace

std::vector<Case> onnx_operator_cases() {
  std::vector<Case> all;
  for (const auto& more : {creating(), elementwise(), normalising(), shaping(), imaging(),
                           sampling(), windows(), recurrent()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace tenon::bad_input
