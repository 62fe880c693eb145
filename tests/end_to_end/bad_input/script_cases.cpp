// SPDX-License-Identifier: Apache-2.0
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
               "\"float32\")):\n" +
                   body,
               says);
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

// An entry as PlanMemory leaves it, but for what its attributes say.
static Case planned(const std::string& name, const std::string& command,
                    const std::string& parameter, const std::string& attributes,
                    const std::string& says, const std::string& body = "    T.evaluate(0)\n") {
  std::vector<std::string> arguments{command, "m.tvmscript"};
  if (command == "compile") arguments.insert(arguments.end(), {"--target", "c", "-o", "m.c"});
  return {name,
          arguments,
          {{"m.tvmscript", "@T.prim_func\ndef main(" + parameter +
                               "):\n    T.func_attr({\"global_symbol\": \"main\", "
                               "\"tenon.entry\": True, \"tenon.num_inputs\": 0, " +
                               attributes + "})\n" + body}},
          1,
          says};
}

static const char* const kTwoPools =
    "\"tenon.workspace_bytes\": 192, \"tenon.pools\": [[\"x\", 0, 64], [\"y\", 64, 32]]";

std::vector<Case> script_cases() {
  return {
      check("EmptyText", "",
            "m.tvmscript:1:1: error[TN0401]: no module in this file; expected a class under "
            "`@I.ir_module`, or functions under `@T.prim_func` or `@R.function`"),
      check("NoModule", "x = 1\n",
            "m.tvmscript:1:1: error[TN0401]: no module in this file; expected a class under "
            "`@I.ir_module`, or functions under `@T.prim_func` or `@R.function`"),
      check("Binary",
            std::string("\x7f"
                        "ELF\x02\x01\0\0\xff\xfe",
                        10),
            "m.tvmscript:1:1: error[TN0401]: no module in this file; expected a class under "
            "`@I.ir_module`, or functions under `@T.prim_func` or `@R.function`"),
      tir("BadIndentation", "    for i in range(4):\n    B[i, 0] = A[i, 0]\n",
          "m.tvmscript:4:5: error[TN0401]: `B`; expected an indented block\n      B[i, 0] = A[i, "
          "0]\n      ^"),
      tir("IndentationBetween",
          "    for i in range(4):\n        B[i, 0] = A[i, 0]\n      B[i, 1] = A[i, 1]\n",
          "m.tvmscript:5:7: error[TN0401]: indentation matches no block around it"),
      tir("UnterminatedString", "    T.func_attr({\"a: 1})\n    B[0, 0] = A[0, 0]\n",
          "m.tvmscript:3:18: error[TN0401]: a string that does not end\n      T.func_attr({\"a: "
          "1})\n                   ^^^^^^^"),
      tir("UnclosedBracket", "    B[0, 0] = T.max(A[0, 0], A[0, 1]\n",
          "m.tvmscript:4:1: error[TN0401]: the end of the line; expected `)`\n  \n  ^"),
      tir("UnknownName", "    for i in range(4):\n        B[i, 0] = C[i, 0]\n",
          "m.tvmscript:4:19: error[TN0201]: `C` is not defined"),
      tir("UnknownFunction", "    B[0, 0] = T.frobnicate(A[0, 0])\n",
          "m.tvmscript:3:15: error[TN0201]: `T.frobnicate` is not known here"),
      tir("WrongRank", "    B[0] = A[0, 0]\n",
          "m.tvmscript:3:5: error[TN0301]: buffer `B` is indexed with 1 indices; it has 2 "
          "dimensions"),
      tir("OtherDType", "    C = T.alloc_buffer((4,), \"int32\")\n    C[0] = A[0, 0]\n",
          "m.tvmscript:4:5: error[TN0102]: a value of dtype float32 is stored into buffer `C`; "
          "expected int32\n      C[0] = A[0, 0]\n      ^^^^"),
      tir("OutsideTheBuffer", "    for i in range(4):\n        B[i + 4, 0] = A[i, 0]\n",
          "m.tvmscript:4:9: error[TN0302]: index i + 4 of dimension 0 of buffer `B` is 4 where "
          "i = 0; its extent is 4"),
      tir("DivisionByZero", "    for i in range(4):\n        B[i // 0, 0] = A[i, 0]\n",
          "m.tvmscript:4:11: error[TN0340]: `i // 0` in `f` divides by zero"),
      tir("HugeNumber", "    B[99999999999999999999999999, 0] = A[0, 0]\n",
          "m.tvmscript:3:7: error[TN0402]: `99999999999999999999999999` does not fit 64 bits"),
      tir("NumberBeyondItsType", "    B[0, 0] = T.Cast(\"float32\", T.int8(300))\n",
          "m.tvmscript:3:33: error[TN0402]: 300 does not fit int8"),
      tir("BadDType", "    C = T.alloc_buffer((4,), \"float33\")\n    B[0, 0] = A[0, 0]\n",
          "m.tvmscript:3:30: error[TN0402]: `float33` is no dtype"),
      tir("HugeBuffer",
          "    C = T.alloc_buffer((4294967296, 4294967296, 4294967296), \"float32\")\n    B[0, 0] "
          "= A[0, 0]\n",
          "m.tvmscript:3:9: error[TN0109]: shape (4294967296, 4294967296, 4294967296) has more "
          "than 2^62 elements"),
      tir("DeepNesting",
          "    B[0, 0] = " + repeat("(", 100000) + "A[0, 0]" + repeat(")", 100000) + "\n",
          "m.tvmscript:3:413: error[TN0205]: nesting of more than 400 levels"),
      tir("DeepSum", "    B[0, 0] = A[0, 0]" + repeat(" + A[0, 0]", 50000) + "\n",
          "m.tvmscript:3:20023: error[TN0205]: a chain of more than 2000 operators"),
      relax("UnknownOperator", "    y = R.frobnicate(x)\n    return y\n",
            "m.tvmscript:3:9: error[TN0106]: there is no operator `R.frobnicate`"),
      relax("InnerDimensions", "    y = R.matmul(x, x)\n    return y\n",
            "m.tvmscript:3:9: error[TN0101]: `matmul` inner dimensions differ: 3 and 2\n      y = "
            "R.matmul(x, x)\n          ^^^^^^^^^^^^^^\nm.tvmscript:2:10: note: left operand is "
            "R.Tensor((2, 3), \"float32\")\n  def main(x: R.Tensor((2, 3), \"float32\")):\n        "
            "   ^\nm.tvmscript:2:10: note: right operand is R.Tensor((2, 3), \"float32\")\n  def "
            "main(x: R.Tensor((2, 3), \"float32\")):\n           ^"),
      relax("OtherShapeThanDeclared",
            "    y: R.Tensor((3, 3), \"float32\") = R.add(x, x)\n    return y\n",
            "m.tvmscript:3:5: error[TN0107]: `y` is declared with type R.Tensor((3, 3), "
            "\"float32\"); its value has type R.Tensor((2, 3), \"float32\")"),
      relax("UnknownVariable", "    return z\n",
            "m.tvmscript:3:12: error[TN0201]: `z` is not defined"),
      relax("UnknownAttribute", "    y = R.nn.softmax(x, axes=1)\n    return y\n",
            "m.tvmscript:3:9: error[TN0104]: `nn.softmax` has no attribute `axes`; it has `axis`"),
      relax("TypesDiffer", "    y = R.add(x, R.const([1, 2, 3], \"int32\"))\n    return y\n",
            "m.tvmscript:3:9: error[TN0102]: operands of `add` have dtypes float32 and int32"),
      tir("ConstantMissing",
          "    C = T.allocate_const(T.const_ref(\"0123\"), \"float32\", [4])\n    A[0, 0] = C[0]\n",
          "m.tvmscript:3:38: error[TN0201]: constant `0123` is not in the file of constants"),
      check("CalleeMissing",
            "@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((2, 3), "
            "\"float32\")):\n        cls = Module\n        y = R.call_tir(cls.nothing, (x,), "
            "out_sinfo=R.Tensor((2, 3), \"float32\"))\n        return y\n",
            "m.tvmscript:6:24: error[TN0201]: the module has no function `nothing`"),
      {"NotTheMain",
       {"run", "m.tvmscript"},
       {{"m.tvmscript",
         "@I.ir_module\nclass Module:\n"
         "    @R.function\n    def f(x: R.Tensor((2, 3), \"float32\")):\n        return x\n"
         "    @R.function\n    def g(x: R.Tensor((2, 3), \"float32\")):\n        return x\n"}},
       1,
       "error[TN0201]: the module has no function `main`, and several that nothing calls: `f`, "
       "`g`; rename one to `main`"},
      planned("WorkspaceThatIsNoParameter", "run", "", "\"tenon.workspace_bytes\": 0",
              "`main` has attribute `tenon.workspace_bytes`; expected a last parameter that is a "
              "buffer of bytes"),
      planned("WorkspaceOfAnotherSize", "run", "w: T.Buffer((4096,), \"uint8\")",
              "\"tenon.workspace_bytes\": 0",
              "attribute `tenon.workspace_bytes` of `main` is 0; its last parameter, `w`, has 4096 "
              "bytes"),
      planned("PoolsBelowTheWorkspace", "compile", "w: T.Buffer((64,), \"uint8\")",
              "\"tenon.workspace_bytes\": 64, \"tenon.pools\": [[\"a\", -64, -1]]",
              "the offsets of `tenon.pools` do not ascend from 0 to at most the 64 bytes"),
      planned("NoPools", "compile", "w: T.Buffer((64,), \"uint8\")",
              "\"tenon.workspace_bytes\": 64, \"tenon.pools\": []",
              "the offsets of `tenon.pools` do not ascend from 0"),
      planned(
          "BufferInTwoPools", "compile", "w: T.Buffer((192,), \"uint8\")", kTwoPools,
          "m.tvmscript:4:5: error[TN0104]: buffer `b` at byte 32 of `w` is not proved to lie in "
          "one of `tenon.pools`; pool `x` has 64 bytes from byte 0 on",
          "    b = T.decl_buffer((16,), \"float32\", data=T.address_of(w[32]))\n"
          "    b[15] = T.float32(1)\n"),
      planned(
          "BufferBeyondAPool", "compile", "w: T.Buffer((192,), \"uint8\")", kTwoPools,
          "buffer `b` at byte 128 of `w` is not proved to lie in one of `tenon.pools`; pool `y` "
          "has 32 bytes from byte 64 on",
          "    b = T.decl_buffer((16,), \"float32\", data=T.address_of(w[128]))\n"
          "    b[15] = T.float32(1)\n"),
      planned("WorkspaceOfTwoPoolsAsAWhole", "compile", "w: T.Buffer((192,), \"uint8\")", kTwoPools,
              "`w` is used as a whole, and `tenon.pools` divides it",
              "    for i in range(192):\n        w[i] = T.uint8(0)\n"),
  };
}

}  // namespace tenon::bad_input
