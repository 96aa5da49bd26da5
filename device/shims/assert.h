// SPDX-License-Identifier: Apache-2.0
// NVRTC has assert() built in, but no header of this name.
#pragma once

