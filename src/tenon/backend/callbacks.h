// SPDX-License-Identifier: Apache-2.0
// Wrappers of the callbacks of back ends inside the tree: no exception leaves one.
#pragma once

#include <exception>

#include "tenon/backend/match_graph.h"

namespace tenon::backend {

/// The host did not take an answer, and has said why.
struct NotTaken {};
inline void take(int32_t status) {
  if (status != 0) throw NotTaken();
}

/// Runs `work`, whose Refusal becomes the answer.
template <typename Work>
int32_t answer_of(const TenonHost* host, TenonAnswer* answer, const Work& work) {
  try {
    work();
    return 0;
  } catch (const Refusal& refusal) {
    return host->refuse(answer, refusal.code.c_str(), refusal.words.c_str());
  } catch (const NotTaken&) {
    return 1;
  } catch (const std::exception& error) {
    return host->refuse(answer, "internal", error.what());
  }
}

/// A number, or -1 where that cannot be said.
template <typename Work>
auto number_of(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (...) {
    return -1;
  }
}

}  // namespace tenon::backend
