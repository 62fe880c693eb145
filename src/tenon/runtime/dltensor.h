// SPDX-License-Identifier: Apache-2.0
/* DLPack's tensors: those of <dlpack/dlpack.h> where that header is found or was included, else as
 * DLPack 0.6 to 1.1 lay them out, so that nobody has to have it. A program that has a dlpack.h of
 * its own in another place includes it before this file. Source: github.com/dmlc/dlpack.
 */
#ifndef TENON_RUNTIME_DLTENSOR_H_
#define TENON_RUNTIME_DLTENSOR_H_

#include <stdint.h>

#if !defined(DLPACK_DLPACK_H_) && !defined(TENON_OWN_DLTENSOR) && defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif

#ifndef DLPACK_DLPACK_H_

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  kDLCPU = 1 /* the only one that Tenon runs on */
} DLDeviceType;

typedef struct {
  DLDeviceType device_type;
  int device_id; /* 0 */
} DLDevice;

typedef enum {
  kDLInt = 0U,
  kDLUInt = 1U,
  kDLFloat = 2U,
  kDLOpaqueHandle = 3U,
  kDLBfloat = 4U,
  kDLComplex = 5U
} DLDataTypeCode; /* abi.h names those above, too (TENON_DTYPE_*) */

typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes; /* 1 */
} DLDataType;

typedef struct {
  void* data;
  DLDevice device;
  int ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; null: packed, row-major */
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

#ifdef __cplusplus
}
#endif

#endif /* DLPACK_DLPACK_H_ */

#endif /* TENON_RUNTIME_DLTENSOR_H_ */
