// SPDX-License-Identifier: Apache-2.0
// NVRTC has printf built in.
#pragma once

