// SPDX-License-Identifier: Apache-2.0
// For sources that are C elsewhere.
#pragma once

