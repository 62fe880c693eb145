// SPDX-License-Identifier: Apache-2.0
// A callable that is handed down and not kept.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace tenon {

template <typename Signature>
class FunctionRef;

/// A parameter's type for a callable that is called before the callee returns: two pointers, where
/// std::function copies what it calls, and allocates where that captures more than two words. It
/// refers to the callable and must not outlive it (C++26 has it as std::function_ref).
template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
 public:
  template <typename F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
             !std::is_function_v<std::remove_reference_t<F>> &&
             std::is_invocable_r_v<R, F&, Args...>)
  FunctionRef(F&& callable)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> R {
          auto& f = *static_cast<std::remove_reference_t<F>*>(object);
          return static_cast<R>(f(std::forward<Args>(args)...));
        }) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void* object, Args... args);
};

}  // namespace tenon
