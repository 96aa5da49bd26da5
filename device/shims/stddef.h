// SPDX-License-Identifier: Apache-2.0
// NVRTC knows size_t and ptrdiff_t without a header; this gives the rest.
#pragma once

#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
typedef decltype(nullptr) nullptr_t;
