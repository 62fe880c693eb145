// SPDX-License-Identifier: Apache-2.0
// Operators of the graph level whose operands and attributes do not fit.
#include "cases.h"

namespace tenon::bad_input {

// What one call says of these parameters, each `name: shape dtype`.
static Case call(const std::string& name, const std::string& parameters, const std::string& text,
                 const std::string& says, const std::string& command = "check") {
  return {name,
          {command, "m.tvmscript"},
          {{"m.tvmscript",
            "@R.function\ndef main(" + parameters + "):\n    y = " + text + "\n    return y\n"}},
          1,
          "m.tvmscript:3:9: error[" + says};
}

static std::string tensor(const std::string& name, const std::string& shape,
                          const std::string& dtype = "float32") {
  return name + ": R.Tensor(" + shape + ", \"" + dtype + "\")";
}

std::vector<Case> graph_operator_cases() {
  const std::string trees =
      "R.tree_ensemble(x, R.const([1]), R.const([0.5]), R.const([[1, 2]]), R.const([0]), "
      "R.const([0, 0]), R.const([1.0, 2.0]), ";
  const std::string lstm = tensor("x", "(3, 2, 4)") + ", " + tensor("w", "(1, 20, 4)") + ", " +
                           tensor("r", "(1, 20, 5)");
  const std::string attention = tensor("k", "(2, 3, 2, 4)") + ", " + tensor("v", "(2, 3, 2, 4)") +
                                ", " + tensor("s", "(2, 2, 4, 4)");
  return {
      call("ScatterOfAnotherMode", tensor("x", "(2, 5, 3)") + ", " + tensor("u", "(2, 1, 3)"),
           "R.tensor_scatter(x, u, mode=\"round\")",
           "TN0104]: attribute `mode` of `tensor_scatter` is \"round\"; expected \"linear\" or "
           "\"circular\""),
      call("WeightsOfThreeBits",
           tensor("x", "(2, 8)") + ", " + tensor("w", "(1, 4, 3)", "uint8") + ", " +
               tensor("s", "(1, 3)"),
           "R.nn.matmul_nbits(x, w, s, bits=3)",
           "TN0104]: `nn.matmul_nbits` of 3 bits; expected 2, 4 or 8"),
      call("AlphasOfOtherActivations", lstm,
           "R.nn.lstm(x, w, r, hidden_size=5, activations=[\"sigmoid\", \"tanh\", \"tanh\"], "
           "activation_alpha=[0.5])",
           "TN0104]: attribute `activation_alpha` of `nn.lstm` has 1 numbers for 3 activations"),
      call("ColumnsOfFourAxes", tensor("x", "(1, 2, 3, 3)") + ", " + tensor("o", "(1, 8, 2, 2)"),
           "R.nn.deformable_columns(x, o, kernel_size=[1, 1, 1, 1])",
           "TN0104]: `nn.deformable_columns` has 4 spatial axes and 1 groups; expected 1 to 3, and "
           "1 or more"),
      call("TextOfHalves", tensor("x", "(2,)", "float16"), "R.string.to_text(x)",
           "TN0102]: argument `x` of `string.to_text` has dtype float16; expected a bool, an "
           "integer, float32 or float64"),
      call("TextsReadAsShortIntegers", tensor("x", "(2,)", "string"),
           "R.string.parse(x, dtype=\"int8\")",
           "TN0104]: attribute `dtype` of `string.parse` is int8; expected float32, float64 or "
           "int64"),
      call("TreesOfAMean", tensor("x", "(2, 2)"), trees + "n_targets=1, aggregate=\"mean\")",
           "TN0104]: attribute `aggregate` of `tree_ensemble` is \"mean\"; expected \"sum\", "
           "\"min\" or \"max\""),
      call("TreesWithoutTargets", tensor("x", "(2, 2)"), trees + "n_targets=0)",
           "TN0104]: `tree_ensemble` has n_targets 0; expected at least 1"),
      call("KeysOfUnknownNumber",
           tensor("x", "(3,)", "int64") + ", " + tensor("k", "(\"n\",)", "int64") + ", " +
               tensor("v", "(\"n\",)"),
           "R.lookup(x, k, v, R.const(0.0, \"float32\"))",
           "TN0001]: argument `keys` of `lookup` is R.Tensor((n,), \"int64\"); expected a "
           "dimension that is known",
           "run"),
      call("FoldWithoutABlock", tensor("x", "(1, 4, 9)"), "R.nn.col2im(x, R.shape([4, 4]))",
           "TN0105]: `nn.col2im` has both or none of attribute `block_size` and argument "
           "`block_shape`; expected one"),
      call("FoldOfNoAxes", tensor("x", "(1, 4, 9)"), "R.nn.col2im(x, R.shape([]), block_size=[])",
           "TN0104]: `nn.col2im` has no spatial axes"),
      call("FoldToAnotherRank", tensor("x", "(1, 4, 9)"),
           "R.nn.col2im(x, R.shape([4]), block_size=[2, 2])",
           "TN0105]: argument `image_shape` of `nn.col2im` has 1 numbers; expected 2"),
      call("PictureOfOneExtent", tensor("x", "(\"n\",)", "uint8"),
           "R.image.decode(x, R.shape([4]))",
           "TN0105]: argument `size` of `image.decode` has 1 numbers; expected 2"),
      call("AttentionOfUnknownShape", "q: R.Tensor(dtype=\"float32\", ndim=4), " + attention,
           "R.nn.linear_attention(q, k, v, s)",
           "TN0001]: `nn.linear_attention` of shapes that "
           "are not known"),
      call("AttentionOfSymbolicHeads", tensor("q", "(2, 3, \"h\", 4)") + ", " + attention,
           "R.nn.linear_attention(q, k, v, s)",
           "TN0001]: `nn.linear_attention` with h heads of queries and 2 of keys"),
  };
}

}  // namespace tenon::bad_input
