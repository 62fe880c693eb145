#include "tenon/support/codes.h"

#include "tenon/support/plugin_codes.h"

namespace tenon {

static constexpr const Code* kAllCodes[] = {
    &kUnsupported,
    &kFileError,
    &kLimitExceeded,
    &kBadOption,
    &kUnknownPass,
    &kShapeMismatch,
    &kDTypeMismatch,
    &kRankMismatch,
    &kBadAttribute,
    &kBadArgument,
    &kUnknownOperator,
    &kTypeMismatch,
    &kNotNormal,
    &kOverflow,
    &kUndefined,
    &kRedefined,
    &kUnknownCallee,
    &kRecursion,
    &kTooDeep,
    &kWrongForm,
    &kIndexRank,
    &kOutOfBounds,
    &kUninitialisedRead,
    &kBadBlock,
    &kScheduleIllegal,
    &kRegionMismatch,
    &kAliasing,
    &kNotThreadSafe,
    &kMisaligned,
    &kSyntax,
    &kBadLiteral,
    &kBadModel,
    &kUnsupportedOperator,
    &kExternalData,
    &kBadTensor,
    &kBadInput,
    &kRunFailed,
    &kLinkFailed,
    &kBadProblem,
    &kDoesNotFit,
    &kBadBackend,
    &kSignatureMismatch,
    &kBadPattern,
    &kBadExternalModule,
    &kCyclicPartition,
    &kBadPlacement,
    &kNotOffloaded,
    &kEndlessRewrite,
    &kPrototypeMismatch,
    &kBadPlugin,
    &kPluginCrash,
    &kBackendRefused,
};

std::span<const Code* const> all_codes() { return kAllCodes; }

}  // namespace tenon
