// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/relay/params.h"

#include <algorithm>

#include "tenon/import/relay/tensor_record.h"

namespace tenon::relay {

Params read_params(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper,
                   const std::string& name) {
  constexpr uint64_t kMagic = 0xF7E58D4F05049CB7ULL;
  constexpr uint64_t kLongestName = 1 << 16;
  Bytes in(bytes, std::move(keeper), name, {});
  if (bytes.size() < sizeof(kMagic) || in.number<uint64_t>() != kMagic)
    in.fail("not a file of parameters; expected what relay.save_param_dict writes");
  (void)in.number<uint64_t>();  // reserved
  const auto count = in.number<uint64_t>();
  std::vector<std::string> names;
  for (uint64_t i = 0; i < count; ++i) {  // each takes bytes, so a wrong count ends soon
    const auto length = in.number<uint64_t>();
    if (length > kLongestName)
      in.fail("a name of {} bytes; expected at most {}", length, kLongestName);
    const auto text = in.take(length, "a name");
    names.emplace_back(reinterpret_cast<const char*>(text.data()), text.size());
  }
  const auto tensors = in.number<uint64_t>();
  if (tensors != count) in.fail("has {} names and {} tensors", count, tensors);
  Params params;
  for (const std::string& key : names) {
    Ref<TensorData> tensor = read_tensor(in);
    if (!params.emplace(key, std::move(tensor)).second)
      in.fail("parameter `{}` is there twice", key);
  }
  if (!in.empty()) in.fail("goes on behind its last tensor");
  return params;
}

}  // namespace tenon::relay
