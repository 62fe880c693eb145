// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/dlpack_code.h"

#include "tenon/runtime/abi.h"

namespace tenon::backend {

using Code = DType::Code;

static constexpr struct {
  Code code;
  uint8_t dlpack;
} kCodes[] = {
    {Code::kInt, TENON_DTYPE_INT},
    {Code::kUInt, TENON_DTYPE_UINT},
    {Code::kFloat, TENON_DTYPE_FLOAT},
    {Code::kBFloat, TENON_DTYPE_BFLOAT},
    {Code::kBool, TENON_DTYPE_BOOL},
    {Code::kFloat8e4m3fn, TENON_DTYPE_FLOAT8_E4M3FN},
    {Code::kFloat8e4m3fnuz, TENON_DTYPE_FLOAT8_E4M3FNUZ},
    {Code::kFloat8e5m2, TENON_DTYPE_FLOAT8_E5M2},
    {Code::kFloat8e5m2fnuz, TENON_DTYPE_FLOAT8_E5M2FNUZ},
    {Code::kFloat8e8m0fnu, TENON_DTYPE_FLOAT8_E8M0FNU},
    {Code::kFloat4e2m1fn, TENON_DTYPE_FLOAT4_E2M1FN},
    {Code::kString, TENON_DTYPE_STRING},
};

uint8_t dlpack_code(DType dtype, const Origin& origin) {
  for (const auto& row : kCodes)
    if (row.code == dtype.code) return row.dlpack;
  throw CompileError(kUnsupported, origin, "a tensor of type {}", dtype.str());
}

Code code_of_dlpack(uint8_t code) {
  for (const auto& row : kCodes)
    if (row.dlpack == code) return row.code;
  return Code::kVoid;
}

}  // namespace tenon::backend
