// SPDX-License-Identifier: Apache-2.0
// Only here so that the precompiled headers have a target of their own.
