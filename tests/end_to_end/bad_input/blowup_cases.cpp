// SPDX-License-Identifier: Apache-2.0
// Short inputs that stand for more work or memory than anyone has: each is refused, or done.
#include "cases.h"
#include "onnx_bytes.h"

namespace tenon::bad_input {

namespace {

const std::string kHead = "from tenon.script import ir as I, relax as R, tir as T\n\n";

std::string module(const std::string& functions) {
  return kHead + "@I.ir_module\nclass Module:\n" + functions;
}

Case compiled(std::string name, std::string text, int status, std::string says) {
  return {std::move(name),
          {"compile", "m.py", "-o", "m.so"},
          {{"m.py", std::move(text)}},
          status,
          std::move(says)};
}

// Each function calls the one before twice: 2^(n - 1) copies of the first.
std::string doubling_graph(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) {
    const std::string callee = i == 0 ? "R.exp" : "Module.f" + std::to_string(i - 1);
    text += "    @R.function(private=True)\n    def f" + std::to_string(i) +
            "(x: R.Tensor((4,), \"float32\")) -> R.Tensor((4,), \"float32\"):\n"
            "        a: R.Tensor((4,), \"float32\") = " +
            callee + "(x)\n        b: R.Tensor((4,), \"float32\") = " + callee +
            "(a)\n        return b\n";
  }
  return module(text +
                "    @R.function\n    def main(x: R.Tensor((4,), \"float32\")) -> R.Tensor((4,), "
                "\"float32\"):\n        a: R.Tensor((4,), \"float32\") = Module.f" +
                std::to_string(n - 1) + "(x)\n        return a\n");
}

std::string doubling_kernels(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) {
    text += "    @T.prim_func(private=True)\n    def f" + std::to_string(i) +
            "(a: T.Buffer((4,), \"float32\")):\n"
            "        T.func_attr({\"tir.inline\": True})\n";
    const std::string call =
        i == 0 ? "        a[0] = a[0] + T.float32(1)\n"
               : "        T.call_tir(Module.f" + std::to_string(i - 1) + ", a[0:4])\n";
    text += call + call;
  }
  return module(text +
                "    @T.prim_func\n    def main(a: T.Buffer((4,), \"float32\")):\n"
                "        T.call_tir(Module.f" +
                std::to_string(n - 1) + ", a[0:4])\n");
}

// Functions of ONNX that call one another twice, `n` deep.
std::string doubling_functions(int n) {
  Message model;
  model.number(1, 8);
  Message opset;
  opset.text(1, "").number(2, 18);
  Message own;
  own.text(1, "own").number(2, 1);
  model.message(8, opset).message(8, own);
  const auto node = [](const std::string& op, const std::string& in, const std::string& out,
                       const std::string& domain) {
    Message message;
    message.text(1, in).text(2, out).text(4, op).text(7, domain);
    return message;
  };
  for (int i = 0; i < n; ++i) {
    Message function;
    const std::string callee = i == 0 ? "Neg" : "f" + std::to_string(i - 1);
    const std::string domain = i == 0 ? "" : "own";
    function.text(1, "f" + std::to_string(i)).text(4, "x").text(5, "y");
    function.message(7, node(callee, "x", "t", domain)).message(7, node(callee, "t", "y", domain));
    function.message(9, opset).message(9, own).text(10, "own");
    model.message(25, function);
  }
  Message graph;
  graph.message(1, node("f" + std::to_string(n - 1), "x", "y", "own")).text(2, "g");
  graph.message(11, value("x", {2, 3})).message(12, value("y", {2, 3}));
  return model.message(7, graph).bytes();
}

// Loops in loops, all to be unrolled: 64^n copies of a statement.
std::string nested_unrolling(int n) {
  std::string shape, index, loops, indent(8, ' ');
  for (int i = 0; i < n; ++i) {
    const std::string name = "i" + std::to_string(i);
    shape += "64, ";
    index += (i == 0 ? "" : ", ") + name;
    loops += indent + "for " + name + " in T.unroll(64):\n";
    indent += "    ";
  }
  return module("    @T.prim_func\n    def main(A: T.Buffer((" + shape +
                "), \"float32\"), B: T.Buffer((" + shape + "), \"float32\")):\n" + loops + indent +
                "B[" + index + "] = A[" + index + "] + T.float32(1)\n");
}

// PrimFuncs that call one another, `n` deep.
std::string nested_calls(int n) {
  std::string text;
  for (int i = 0; i + 1 < n; ++i)
    text += "    @T.prim_func(private=True)\n    def f" + std::to_string(i) +
            "(a: T.Buffer((4,), \"float32\")):\n" +
            (i == 0 ? "        a[0] = a[0] + T.float32(1)\n"
                    : "        T.call_tir(Module.f" + std::to_string(i - 1) + ", a[0:4])\n");
  return module(text +
                "    @T.prim_func\n    def main(a: T.Buffer((4,), \"float32\")):\n"
                "        T.call_tir(Module.f" +
                std::to_string(n - 2) + ", a[0:4])\n");
}

// Constants that are computed from one another; `op` is an expression of the last one, `a`.
std::string folding(const std::string& first, const std::string& op, int n) {
  std::string text =
      "    @R.function\n    def main(x: R.Tensor((1,), \"float32\")):\n        b = " + first +
      "\n        a = b\n";
  for (int i = 0; i < n; ++i) text += "        a = " + op + "\n";
  return module(text + "        s = R.sum(a)\n        y = R.add(x, s)\n        return y\n");
}

// A length of the input, multiplied by itself `n` times.
std::string powers_of_a_length(int n) {
  const auto node = [](const std::string& op, const std::string& a, const std::string& b,
                       const std::string& out) {
    Message message;
    message.text(1, a);
    if (!b.empty()) message.text(1, b);
    return message.text(2, out).text(4, op);
  };
  Message model, opset, graph, dim, shape, tensor, type, x;
  model.number(1, 8).message(8, opset.text(1, "").number(2, 18));
  graph.message(1, node("Shape", "x", "", "s0"));
  for (int i = 0; i < n; ++i) {
    const std::string s = "s" + std::to_string(i);
    graph.message(1, node("Mul", s, s, "s" + std::to_string(i + 1)));
  }
  graph.message(1, node("ConstantOfShape", "s" + std::to_string(n), "", "y")).text(2, "g");
  tensor.number(1, 1).message(2, shape.message(1, dim.text(2, "n")));
  x.text(1, "x").message(2, type.message(1, tensor));
  Message y;
  y.text(1, "y").message(2, type);
  return model.message(7, graph.message(11, x).message(12, y)).bytes();
}

}  // namespace

std::vector<Case> blowup_cases() {
  return {
      compiled("GraphFunctionsThatDouble", doubling_graph(40), 1,
               "bindings once the functions that it calls are inlined; at most "),
      compiled("KernelsThatDouble", doubling_kernels(40), 0, ""),
      {"OnnxFunctionsThatDouble",
       {"compile", "m.onnx", "-o", "m.so"},
       {{"m.onnx", doubling_functions(28)}},
       1,
       "error[TN0020]: m.onnx: more than 10"},
      compiled(
          "TuplesThatDouble",
          [] {
            std::string text =
                "    @R.function\n    def main(x: R.Tensor((4,), \"float32\")):\n"
                "        t0 = (x, x)\n";
            for (int i = 0; i < 40; ++i)
              text += "        t" + std::to_string(i + 1) + " = (t" + std::to_string(i) + ", t" +
                      std::to_string(i) + ")\n";
            return module(text + "        return t40\n");
          }(),
          1, "error[TN0020]: "),
      compiled("LoopsThatUnrollWithoutEnd", nested_unrolling(4), 0, ""),
      compiled("CallsOfMoreBytesThan32BitsCount", nested_unrolling(6), 0, ""),
      compiled("CallsAsDeepAsAccepted", nested_calls(120), 0, ""),
      compiled("CallsDeeperThanAccepted", nested_calls(129), 1, "error[TN0205]: calls nest "),
      compiled(
          "ConstantConvolution",
          folding("R.ones((8, 64, 224, 224), dtype=\"float32\")",
                  "R.nn.conv2d(a, R.ones((64, 64, 7, 7), dtype=\"float32\"), padding=(3, 3))", 3),
          0, ""),
      compiled("ConstantsOfConstants",
               folding("R.arange(0, 4000000, 1, dtype=\"float32\")", "R.maximum(a, b)", 100), 0,
               ""),
      compiled("ConstantOfOneNumber",
               module("    @R.function\n    def main(x: R.Tensor((1,), \"float32\")):\n"
                      "        y = R.full((65536, 65536), R.const(1.5, \"float32\"), "
                      "dtype=\"float32\")\n        z = R.add(R.sum(y), x)\n        return z\n"),
               0, ""),
      {"OnnxLengthsThatMultiply",
       {"compile", "m.onnx", "-o", "m.so"},
       {{"m.onnx", powers_of_a_length(30)}},
       0,
       ""},
      compiled(
          "LengthsThatSquare",
          [] {
            std::string text =
                "    @R.function\n    def main(x: R.Tensor((\"n\",), \"float32\")):\n"
                "        n = T.int64()\n";
            for (int i = 0; i < 30; ++i)
              text +=
                  "        x = R.flatten(R.multiply(R.expand_dims(x, axis=0), R.expand_dims(x, "
                  "axis=1)))\n";
            return module(text + "        return x\n");
          }(),
          1, "error[TN0020]: "),
  };
}

}  // namespace tenon::bad_input
