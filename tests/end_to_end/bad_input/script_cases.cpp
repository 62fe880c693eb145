// TVMScript files.
#include "cases.h"

namespace tenon::bad_input {

static Case check(const std::string& name, const std::string& text, const std::string& says) {
  return {name, {"check", "m.tvmscript"}, {{"m.tvmscript", text}}, 1, says};
}

// The body of a PrimFunc over A, B: float32 (4, 8).
static Case tir(const std::string& name, const std::string& body, const std::string& says) {
  return check(name,
               "@T.prim_func\ndef f(A: T.Buffer((4, 8), \"float32\"), B: T.Buffer((4, 8), "
               "\"float32\")):\n" + body, says);
}
// The body of a graph function of x: float32 (2, 3).
static Case relax(const std::string& name, const std::string& body, const std::string& says) {
  return check(name, "@R.function\ndef main(x: R.Tensor((2, 3), \"float32\")):\n" + body, says);
}

static std::string repeat(const std::string& text, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += text;
  return out;
}

std::vector<Case> script_cases() {
  return {
      check("EmptyText", "", ""),
      check("NoModule", "x = 1\n", ""),
      check("Binary", std::string("\x7f""ELF\x02\x01\0\0\xff\xfe", 10), ""),
      tir("BadIndentation", "    for i in range(4):\n    B[i, 0] = A[i, 0]\n", ""),
      tir("IndentationBetween", "    for i in range(4):\n        B[i, 0] = A[i, 0]\n      B[i, 1] = A[i, 1]\n", ""),
      tir("UnterminatedString", "    T.func_attr({\"a: 1})\n    B[0, 0] = A[0, 0]\n", ""),
      tir("UnclosedBracket", "    B[0, 0] = T.max(A[0, 0], A[0, 1]\n", ""),
      tir("UnknownName", "    for i in range(4):\n        B[i, 0] = C[i, 0]\n", ""),
      tir("UnknownFunction", "    B[0, 0] = T.frobnicate(A[0, 0])\n", ""),
      tir("WrongRank", "    B[0] = A[0, 0]\n", ""),
      tir("OtherDType", "    B[0, 0] = A[0, 0] + T.float64(1)\n", ""),
      tir("OutsideTheBuffer", "    for i in range(5):\n        B[i, 0] = A[i, 0]\n", ""),
      tir("HugeNumber", "    B[99999999999999999999999999, 0] = A[0, 0]\n", ""),
      tir("NumberBeyondItsType", "    B[0, 0] = T.Cast(\"float32\", T.int8(300))\n", ""),
      tir("BadDType", "    C = T.alloc_buffer((4,), \"float33\")\n    B[0, 0] = A[0, 0]\n", ""),
      tir("HugeBuffer", "    C = T.alloc_buffer((4294967296, 4294967296, 4294967296), \"float32\")\n    B[0, 0] = A[0, 0]\n", ""),
      tir("DeepNesting", "    B[0, 0] = " + repeat("(", 100000) + "A[0, 0]" + repeat(")", 100000) + "\n", ""),
      tir("DeepSum", "    B[0, 0] = A[0, 0]" + repeat(" + A[0, 0]", 50000) + "\n", ""),
      tir("DivisionByZero", "    for i in range(4):\n        B[i // 0, 0] = A[i, 0]\n", ""),
      relax("UnknownOperator", "    y = R.frobnicate(x)\n    return y\n", ""),
      relax("InnerDimensions", "    y = R.matmul(x, x)\n    return y\n", ""),
      relax("OtherShapeThanDeclared", "    y: R.Tensor((3, 3), \"float32\") = R.add(x, x)\n    return y\n", ""),
      relax("UnknownVariable", "    return z\n", ""),
      relax("UnknownAttribute", "    y = R.nn.softmax(x, axes=1)\n    return y\n", ""),
      relax("TypesDiffer", "    y = R.add(x, R.const([1, 2, 3], \"int32\"))\n    return y\n", ""),
      relax("ConstantMissing", "    y = R.add(x, R.const(\"0123456789abcdef0123456789abcdef\", R.Tensor((2, 3), \"float32\")))\n    return y\n", ""),
      check("CalleeMissing", "@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((2, 3), \"float32\")):\n        cls = Module\n        y = R.call_tir(cls.nothing, (x,), out_sinfo=R.Tensor((2, 3), \"float32\"))\n        return y\n", ""),
      {"NotTheMain", {"run", "m.tvmscript"}, {{"m.tvmscript", "@R.function\ndef other(x: R.Tensor((2, 3), \"float32\")):\n    return x\n"}}, 1, ""},
  };
}

}  // namespace tenon::bad_input
