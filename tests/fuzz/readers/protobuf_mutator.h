// SPDX-License-Identifier: Apache-2.0
// Mutations of protobuf messages that know fields, so that what they leave is nearly always a
// message: a byte that is put in moves no length out of step.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tenon::fuzz {

/// Mutates bytes of no structure in place: at most `room` of them afterwards.
using MutateBytes = std::function<void(std::string& bytes, size_t room)>;

/// One mutation of the message that `bytes` is, at most `room` bytes long afterwards; nothing where
/// it is no message. Fields are left out, doubled, moved and put elsewhere, also ones of `other`,
/// which may be no message; numbers become ones at limits; `mutate_bytes` mutates what has no
/// fields.
std::string mutate_message(const std::string& bytes, const std::string& other, size_t room,
                           uint32_t seed, const MutateBytes& mutate_bytes);

}  // namespace tenon::fuzz
