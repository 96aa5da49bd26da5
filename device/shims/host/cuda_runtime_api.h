// SPDX-License-Identifier: Apache-2.0
// The types of CUDA's runtime that headers shared with host code name. Kernels call none of its functions.
#pragma once

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
enum cudaError { cudaSuccess = 0 };
typedef cudaError cudaError_t;
