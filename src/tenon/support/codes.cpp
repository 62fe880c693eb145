#include "tenon/support/codes.h"

namespace tenon {

static constexpr const Code* kAllCodes[] = {
    &kUnsupported,       &kFileError,         &kLimitExceeded,
    &kBadOption,         &kShapeMismatch,     &kDTypeMismatch,
    &kRankMismatch,      &kBadAttribute,      &kBadArgument,
    &kUnknownOperator,   &kTypeMismatch,      &kNotNormal,
    &kOverflow,          &kUndefined,         &kRedefined,
    &kUnknownCallee,     &kRecursion,         &kTooDeep,
    &kWrongForm,         &kIndexRank,         &kOutOfBounds,
    &kUninitialisedRead, &kBadBlock,          &kScheduleIllegal,
    &kRegionMismatch,    &kAliasing,          &kSyntax,
    &kBadLiteral,        &kBadModel,          &kUnsupportedOperator,
    &kExternalData,      &kBadTensor,         &kBadInput,
    &kRunFailed,         &kLinkFailed,        &kBadProblem,
    &kDoesNotFit,        &kBadBackend,        &kSignatureMismatch,
    &kBadPattern,        &kBadExternalModule, &kCyclicPartition,
};

std::span<const Code* const> all_codes() { return kAllCodes; }

}  // namespace tenon
