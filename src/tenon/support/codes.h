// SPDX-License-Identifier: Apache-2.0
// Every diagnostic code, once: its number, its name and what it means. `docs/diagnostics.md` is
// generated from all_codes(). A code never changes its meaning; a new one takes the next free
// number of its room.
#pragma once

#include <span>
#include <string_view>

namespace tenon {

/// A kind of error, by which tests and scripts recognise it.
struct Code {
  std::string_view id;       // "TN0101"
  std::string_view name;     // "shape-mismatch"
  std::string_view summary;  // one line for the generated table
};

// -- any room (TN00xx) ---------------------------------------------------------------------------
inline constexpr Code kUnsupported{"TN0001", "unsupported",
                                   "a form that Tenon does not handle yet"};
inline constexpr Code kFileError{"TN0002", "file-error", "a file cannot be read or written"};
inline constexpr Code kLimitExceeded{"TN0003", "limit-exceeded",
                                     "a size, count or depth beyond what Tenon accepts"};
inline constexpr Code kBadOption{"TN0004", "bad-option",
                                 "an option or target that Tenon does not know"};
inline constexpr Code kUnknownPass{"TN0005", "unknown-pass", "no pass of this name exists"};

// -- types and graph level (TN01xx) --------------------------------------------------------------
inline constexpr Code kShapeMismatch{"TN0101", "shape-mismatch",
                                     "two shapes that must agree do not"};
inline constexpr Code kDTypeMismatch{"TN0102", "dtype-mismatch",
                                     "two element types that must agree do not"};
inline constexpr Code kRankMismatch{"TN0103", "rank-mismatch",
                                    "a tensor has another number of dimensions than needed"};
inline constexpr Code kBadAttribute{
    "TN0104", "bad-attribute",
    "an attribute is missing, unknown, or has a value that is not allowed"};
inline constexpr Code kBadArgument{"TN0105", "bad-argument",
                                   "a call has the wrong number or kind of arguments"};
inline constexpr Code kUnknownOperator{"TN0106", "unknown-operator",
                                       "no operator of this name exists"};
inline constexpr Code kTypeMismatch{"TN0107", "type-mismatch",
                                    "a value has another type than declared"};
inline constexpr Code kNotNormal{"TN0108", "not-normal", "a function is not in A-normal form"};
inline constexpr Code kOverflow{"TN0109", "overflow", "a size or shape overflows 64 bits"};

// -- definitions and uses, both levels (TN02xx) --------------------------------------------------
inline constexpr Code kUndefined{"TN0201", "undefined",
                                 "a variable, buffer or function is used where it is not defined"};
inline constexpr Code kRedefined{"TN0202", "redefined",
                                 "one variable or buffer has two definitions"};
inline constexpr Code kUnknownCallee{"TN0203", "unknown-callee",
                                     "a call names a function that the module does not have"};
inline constexpr Code kRecursion{"TN0204", "recursion", "functions call each other in a cycle"};
inline constexpr Code kTooDeep{"TN0205", "too-deep",
                               "an expression or statement nests deeper than Tenon accepts"};
inline constexpr Code kWrongForm{"TN0206", "wrong-form",
                                 "a pass needs another form of module than it was given"};

// -- TensorIR (TN03xx) ---------------------------------------------------------------------------
inline constexpr Code kIndexRank{
    "TN0301", "index-rank",
    "a buffer is indexed with another number of indices than it has dimensions"};
inline constexpr Code kOutOfBounds{"TN0302", "out-of-bounds", "an access lies outside its buffer"};
inline constexpr Code kUninitialisedRead{"TN0303", "uninitialised-read",
                                         "an element is read before it is written"};
inline constexpr Code kBadBlock{"TN0304", "bad-block",
                                "a block's axes, regions or bindings are not well formed"};
inline constexpr Code kScheduleIllegal{"TN0305", "schedule-illegal",
                                       "a schedule primitive does not apply here"};
inline constexpr Code kRegionMismatch{"TN0306", "region-mismatch",
                                      "a call's region differs from the callee's declaration"};
inline constexpr Code kAliasing{"TN0307", "aliasing",
                                "a written region of a call overlaps another of its regions"};
inline constexpr Code kNotThreadSafe{
    "TN0308", "not-thread-safe",
    "a function that may not run beside itself is called where it would"};
inline constexpr Code kMisaligned{"TN0309", "misaligned",
                                  "a call's argument is less aligned than its callee asks for"};

// -- text (TN04xx) -------------------------------------------------------------------------------
inline constexpr Code kSyntax{"TN0401", "syntax", "the text does not follow the grammar"};
inline constexpr Code kBadLiteral{"TN0402", "bad-literal",
                                  "a literal is malformed or does not fit its type"};

// -- importers (TN05xx) --------------------------------------------------------------------------
inline constexpr Code kBadModel{"TN0501", "bad-model", "a model file is malformed"};
inline constexpr Code kUnsupportedOperator{
    "TN0502", "unsupported-operator",
    "a model has operators, types or forms that Tenon does not import"};
inline constexpr Code kExternalData{
    "TN0503", "external-data",
    "external data is missing, outside the model's directory, or of another size"};
inline constexpr Code kBadTensor{"TN0504", "bad-tensor",
                                 "a tensor's bytes do not fit its shape and type"};

// -- running (TN06xx) ----------------------------------------------------------------------------
inline constexpr Code kBadInput{
    "TN0601", "bad-input",
    "an input has another name, shape or element type than the program declares"};
inline constexpr Code kRunFailed{"TN0602", "run-failed", "a running program reported an error"};
inline constexpr Code kLinkFailed{"TN0603", "link-failed",
                                  "an object or library could not be linked or loaded"};

// -- memory planning (TN07xx) --------------------------------------------------------------------
inline constexpr Code kBadProblem{"TN0701", "bad-problem", "an allocation problem is malformed"};
inline constexpr Code kDoesNotFit{"TN0702", "does-not-fit", "the buffers do not fit the pool"};

// -- back ends and libraries (TN08xx) ------------------------------------------------------------
inline constexpr Code kBadBackend{"TN0801", "bad-backend",
                                  "a back end's hook gave something else than it must"};
inline constexpr Code kSignatureMismatch{
    "TN0802", "signature-mismatch",
    "a library function's signature does not fit the composite that is to call it"};
inline constexpr Code kBadPattern{"TN0803", "bad-pattern", "a pattern of operators is malformed"};
inline constexpr Code kBadExternalModule{"TN0804", "bad-external-module",
                                         "an artefact in `external_mods` is malformed or clashes"};
inline constexpr Code kCyclicPartition{"TN0805", "cyclic-partition",
                                       "a composite would depend on its own result"};
inline constexpr Code kBadPlacement{"TN0806", "bad-placement",
                                    "an operator cannot run where an annotation places it"};
inline constexpr Code kNotOffloaded{"TN0807", "not-offloaded",
                                    "libraries take less of a model than is required"};
inline constexpr Code kEndlessRewrite{"TN0809", "endless-rewrite",
                                      "rewriting a function does not come to an end"};
inline constexpr Code kPrototypeMismatch{
    "TN0810", "prototype-mismatch",
    "a library function's signature differs from its prototype in a header"};

/// Every code above, in order of number.
std::span<const Code* const> all_codes();

}  // namespace tenon
