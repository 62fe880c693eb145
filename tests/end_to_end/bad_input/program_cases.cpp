// SPDX-License-Identifier: Apache-2.0
// Kernels that verify, and have no native code, no C code, or no meaning to the interpreter.
#include "cases.h"

namespace tenon::bad_input {

namespace {

using Arguments = std::vector<std::string>;

const Arguments kNative = {"run", "m.tvmscript"};
const Arguments kInterpreted = {"run", "m.tvmscript", "--interpret"};
const Arguments kC = {"compile", "m.tvmscript", "--target", "c", "--emit", "c", "-o", "out"};

Case text(const std::string& name, const Arguments& arguments, const std::string& module,
          const std::string& says) {
  return {name, arguments, {{"m.tvmscript", module}}, 1, says};
}

// A kernel over x and y of 8 floats.
Case kernel(const std::string& name, const Arguments& arguments, const std::string& body,
            const std::string& says) {
  return text(name, arguments,
              "@T.prim_func\ndef main(x: T.Buffer((8,), \"float32\"), y: T.Buffer((8,), "
              "\"float32\")):\n" +
                  body,
              says);
}

// `y[i] = VALUE` for each element.
Case element(const std::string& name, const Arguments& arguments, const std::string& value,
             const std::string& says) {
  return kernel(name, arguments, "    for i in range(8):\n        y[i] = " + value + "\n", says);
}

// A statement before a copy.
Case statement(const std::string& name, const Arguments& arguments, const std::string& line,
               const std::string& says) {
  return kernel(name, arguments, "    " + line + "\n    for i in range(8):\n        y[i] = x[i]\n",
                says);
}

}  // namespace

std::vector<Case> program_cases() {
  const std::string wide = "T.reinterpret(\"float32\", T.Cast(\"float64\", x[i]))";
  const std::string pointer = "T.Cast(\"float32\", T.address_of(x[i]))";
  const std::string address = "T.Cast(\"float32\", T.Cast(\"int64\", T.address_of(x[i])))";
  const std::string lanes =
      "    y[0:8] = T.if_then_else(x[0:8] > T.Broadcast(T.float32(0), 8), x[0:8], "
      "T.Broadcast(T.float32(0), 8))\n";
  const std::string thread =
      "    for i in T.thread_binding(8, thread=\"threadIdx.x\"):\n        y[i] = x[i]\n";
  const std::string nameless = "T.evaluate(T.call_extern(\"int32\", x.data))";
  const std::string packed = "T.evaluate(T.call_packed(x.data))";
  const std::string entry =
      "    @T.prim_func\n    def NAME(x: T.Buffer((8,), \"float32\"), y: T.Buffer((8,), "
      "\"float32\")):\n        T.func_attr({\"tenon.entry\": True, \"tenon.num_inputs\": 1})\n     "
      "   for i in range(8):\n            y[i] = x[i]\n\n";
  std::string other = entry;
  other.replace(other.find("NAME"), 4, "other");
  std::string main = entry;
  main.replace(main.find("NAME"), 4, "main");
  return {
      element("BitsOfAnotherCount", kNative, wide,
              "m.tvmscript:4:16: error[TN0001]: `T.reinterpret` from float64 to float32"),
      element("BitsOfAnotherCountInC", kC, wide,
              "m.tvmscript:4:16: error[TN0001]: `T.reinterpret` from float64 to float32"),
      element("BitsOfAnotherCountInterpreted", kInterpreted, wide,
              "m.tvmscript:4:16: error[TN0102]: `T.reinterpret` of float64 as float32"),
      element(
          "PointerAsANumber", kInterpreted, pointer,
          "m.tvmscript:4:16: error[TN0102]: a cast from handle to float32; expected an integer"),
      element("AddressInC", kC, address, "a cast from handle to int64 has no C code"),
      kernel("GuardOfLanes", kNative, lanes,
             "m.tvmscript:3:14: error[TN0001]: `T.if_then_else` guards reads by a condition of 8 "
             "lanes"),
      kernel("GuardOfLanesInC", kC, lanes,
             "m.tvmscript:3:29: error[TN0001]: `T.if_then_else` guards reads by a condition of 8 "
             "lanes"),
      kernel("LoopOfThreads", kNative, thread,
             "m.tvmscript:3:5: error[TN0001]: a loop bound to `threadIdx.x` has no native code"),
      kernel("LoopOfThreadsInC", kC, thread,
             "m.tvmscript:3:5: error[TN0001]: a loop bound to `threadIdx.x` has no C code"),
      statement(
          "BufferOfVectors", kNative,
          "t = T.alloc_buffer((2,), \"float32x4\")\n    t[0] = T.Broadcast(T.float32(0), 4)",
          "m.tvmscript:4:5: error[TN0001]: buffer `t` of vectors (float32x4) has no native code"),
      statement("CallWithoutAName", kNative, nameless,
                "m.tvmscript:3:16: error[TN0105]: `T.call_extern` without a function's name"),
      statement(
          "CallWithoutANameInC", kC, nameless,
          "m.tvmscript:3:16: error[TN0105]: `T.call_extern` without the name of a C function"),
      statement("CallWithoutANameInterpreted", kInterpreted, nameless,
                "m.tvmscript:3:16: error[TN0105]: `T.call_extern` without a function's name"),
      statement("PackedCallWithoutAName", kNative, packed,
                "m.tvmscript:3:16: error[TN0105]: `T.call_packed` without a function's name"),
      statement("PackedCallOfNobody", kNative, "T.evaluate(T.call_packed(\"f\", x.data))",
                "m.tvmscript:3:16: error[TN0603]: `main_kernel` calls packed function `f`, which "
                "is neither registered (tenon_register_function) nor in a library of --link, as C "
                "function `f`"),
      statement("PrefetchOfAnUnknownMode", kNative,
                "for j in range(8):\n        T.evaluate(T.prefetch(x[j], j, 3))",
                "m.tvmscript:4:20: error[TN0105]: `T.prefetch` with a mode that is no constant"),
      statement("PrefetchOfAnUnknownModeInC", kC,
                "for j in range(8):\n        T.evaluate(T.prefetch(x[j], j, 3))",
                "m.tvmscript:4:20: error[TN0105]: `T.prefetch` with a mode that is no constant"),
      statement(
          "PrefetchOfAValue", kNative, "T.evaluate(T.prefetch(x[0] + x[1], 0, 3))",
          "m.tvmscript:3:16: error[TN0105]: argument 1 of `T.prefetch` is no element of a buffer"),
      statement("AddressOfAValue", kInterpreted,
                "T.evaluate(T.call_extern(\"int32\", \"abs\", T.address_of(x[0] + x[1])))",
                "m.tvmscript:3:46: error[TN0105]: the argument of `T.address_of` names no element"),
      statement("VectorForAFunction", kInterpreted,
                "T.evaluate(T.call_extern(\"int32\", \"abs\", T.Broadcast(3, 4)))",
                "m.tvmscript:3:16: error[TN0001]: argument 1 of `T.call_extern` is a vector; "
                "expected a scalar"),
      statement(
          "ChosenPointerInC", kC,
          "T.evaluate(T.call_extern(\"int32\", \"abs\", T.if_then_else(x[0] > T.float32(0), "
          "x.data, y.data)))",
          "m.tvmscript:3:46: error[TN0001]: pointer `if_then_else(x[0] > 0, x, y)` has no C code"),
      statement(
          "ChosenPointerInterpreted", kInterpreted,
          "T.evaluate(T.call_extern(\"int32\", \"abs\", T.if_then_else(x[0] > T.float32(0), "
          "x.data, y.data)))",
          "m.tvmscript:3:16: error[TN0001]: argument 1 of `T.call_extern` is a handle that the "
          "interpreter cannot follow; expected a buffer's data, T.address_of or T.tvm_access_ptr"),
      statement("BufferBeyondTheInterpreter", kInterpreted,
                "t = T.alloc_buffer((10000000000,), \"float32\")\n    t[0] = x[0]",
                "m.tvmscript:2:5: error[TN0003]: buffer `t` of 40000000000 bytes; the interpreter "
                "allocates at most 17179869184"),
      text("TwoEntries", kNative, "@I.ir_module\nclass Module:\n" + main + other,
           "m.tvmscript:10:9: error[TN0206]: PrimFuncs `main` and `other` are both the entry"),
      text("AxisOfAnotherType", kNative,
           "@T.prim_func\ndef main(x: T.Buffer((8,), \"float32\"), y: T.Buffer((8,), "
           "\"float32\")):\n    for i in range(8):\n        with T.block(\"b\"):\n            vi = "
           "T.axis.spatial(T.int64(8), i)\n            y[vi] = x[vi]\n",
           "m.tvmscript:4:14: error[TN0304]: axis `vi` of block `b` has dtype int64; it is bound "
           "to a value of int32"),
      text("FunctionOfEightBits", {"check", "m.tvmscript"},
           "@T.extern_func\ndef f(x: T.Buffer((8,), \"float8_e4m3fn\"), y: T.Buffer((8,), "
           "\"float32\")):\n    T.func_attr({\"effects\": [\"in\", \"out\"]})\n",
           "m.tvmscript:2:7: error[TN0001]: parameter `x` of extern function `f` has dtype "
           "float8_e4m3fn, which C has no type for"),
  };
}

}  // namespace tenon::bad_input
