// SPDX-License-Identifier: Apache-2.0
// Built in: nothing to declare.
#pragma once

