// SPDX-License-Identifier: Apache-2.0
// Declared before the kernel's source begins.
#pragma once

