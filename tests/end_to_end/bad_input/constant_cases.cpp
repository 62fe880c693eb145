// SPDX-License-Identifier: Apache-2.0
// Files of constants beside a TVMScript module, and of parameters of a Relay module, that are cut
// off, or say what cannot be.
#include <cstring>

#include "cases.h"

namespace tenon::bad_input {

namespace {

template <typename T>
std::string bytes_of(T value) {
  std::string out(sizeof(T), '\0');
  std::memcpy(out.data(), &value, sizeof(T));
  return out;
}

std::string padded(std::string text, size_t length) {
  text.resize(length, '\0');
  return text;
}

// One entry of the table, and what it says of its constant.
struct Entry {
  std::string dtype = "float32";
  uint32_t flags = 0;
  std::vector<int64_t> shape = {2};
  uint64_t offset = 1024, size = 8;

  std::string bytes() const {
    std::string out = std::string(32, 'a') + padded(dtype, 16) + bytes_of(flags) +
                      bytes_of(static_cast<uint32_t>(shape.size()));
    for (const int64_t dim : shape) out += bytes_of(dim);
    return out + bytes_of(offset) + bytes_of(size);
  }
};

std::string head(uint32_t version, uint32_t count, uint64_t table) {
  return "TENONCST" + bytes_of(version) + bytes_of(count) + bytes_of(table);
}

// A file of one constant whose content lies at byte 1024.
std::string file(const Entry& entry, const std::string& content = std::string(8, '\0')) {
  const std::string table = entry.bytes();
  return padded(head(1, 1, table.size()) + table, 1024) + content;
}

Case damaged(const std::string& name, const std::string& constants, const std::string& says) {
  const char* module =
      "@R.function\ndef main(x: R.Tensor((2,), \"float32\")):\n    y = R.exp(x)\n    return y\n";
  return {name,
          {"check", "m.tvmscript"},
          {{"m.tvmscript", module}, {"m.tvmscript.constants", constants}},
          1,
          "error[TN0504]: `m.tvmscript.constants` is no file of constants: " + says};
}

// What relay.save_param_dict writes of one float32 vector.
std::string parameters(const std::string& name, int64_t extent, uint64_t length) {
  const auto bytes = static_cast<uint64_t>(extent) * 4;
  return bytes_of(uint64_t{0xF7E58D4F05049CB7}) + bytes_of(uint64_t{0}) + bytes_of(uint64_t{1}) +
         bytes_of(length) + name + bytes_of(uint64_t{1}) + bytes_of(uint64_t{0xDD5E40F096B4A13F}) +
         bytes_of(uint64_t{0}) + bytes_of(uint64_t{1}) + bytes_of(int32_t{1}) +
         bytes_of(uint8_t{2}) + bytes_of(uint8_t{32}) + bytes_of(uint16_t{1}) + bytes_of(extent) +
         bytes_of(bytes) + std::string(bytes, '\0');
}

Case given(const std::string& name, const std::string& functions, const std::string& params,
           const std::string& says) {
  return {name,
          {"print", "m.relay", "--params", "p.params"},
          {{"m.relay", functions}, {"p.params", params}},
          1,
          says};
}

}  // namespace

std::vector<Case> constant_cases() {
  const std::string table = Entry{}.bytes();
  const std::string main =
      "def @main(%x: Tensor[(2), float32], %w: Tensor[(2), float32]) { add(%x, %w) }\n";
  return {
      damaged("ConstantsOfAnotherKind", "something else than constants",
              "it does not begin with `TENONCST`"),
      damaged("ConstantsOfTheFuture", head(7, 0, 0), "it has version 7; expected 1"),
      damaged("ConstantsWithoutTheirTable", head(1, 1, 80), "its table of 80 bytes is cut off"),
      damaged("ConstantsOfAShortTable", head(1, 1, 40) + table.substr(0, 40),
              "it ends inside its table"),
      damaged("ConstantsOfALongTable", head(1, 0, 8) + std::string(8, '\0'),
              "its table has 8 bytes too many"),
      damaged("ConstantOfAnUnknownType", file({.dtype = "float31"}),
              "constant 0 has dtype `float31`"),
      damaged("ConstantOfUnknownFlags", file({.flags = 6}), "constant 0 has unknown flags 6"),
      damaged("ConstantOfManyDimensions", file({.shape = std::vector<int64_t>(65, 1)}),
              "constant 0 has rank 65"),
      damaged("ConstantOfAnotherSize", file({.size = 12}),
              "constant 0 of shape (2,) and type float32 has 12 bytes; expected 8"),
      damaged("ConstantBeyondTheFile", file({.offset = 1088}),
              "constant 0 lies at 1088 to 1096 of 1032 bytes"),
      damaged("ConstantOfOddBools", file({.dtype = "bool", .size = 2}, "\1\2"),
              "constant 0 has bools that are neither 0 nor 1"),
      damaged("ConstantThatWasChanged", file({}),
              "the content of constant 0 has hash f12366f13ad5eff8089f55533316bdd0; expected "
              "`aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa`"),
      given("ParameterOfAnotherShape", main, parameters("w", 3, 1),
            "m.relay:1:37: error[TN0601]: parameter `%w` is declared as R.Tensor((2,), "
            "\"float32\"); the value given for it is R.Tensor((3,), \"float32\")"),
      given("ParameterOfNoName", main, parameters("weight", 2, 6),
            "m.relay:1:5: error[TN0601]: none of the parameters given is one of `@main`: `weight`"),
      given("ParameterOfALongName", main, parameters("w", 2, 1 << 20),
            "error[TN0504]: p.params: a name of 1048576 bytes; expected at most 65536"),
      given("ParametersForNobody",
            "def @f(%x: Tensor[(2), float32]) { exp(%x) }\n"
            "def @g(%x: Tensor[(2), float32]) { exp(%x) }\n",
            parameters("w", 2, 1),
            "error[TN0601]: parameters are given for a module without an entry: no function is "
            "`@main`, and not exactly one is called by no other"),
  };
}

}  // namespace tenon::bad_input
