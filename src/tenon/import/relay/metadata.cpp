// SPDX-License-Identifier: Apache-2.0
#include "tenon/import/relay/metadata.h"

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "tenon/import/relay/tensor_record.h"

namespace tenon::relay {

namespace {

using Json = nlohmann::json;

constexpr size_t kLongest = size_t{4} << 30;

class Reader {
 public:
  Reader(const std::shared_ptr<const SourceFile>& file, const Place& place)
      : origin_(Origin::script(file, place.line, place.column, place.length)) {}

  std::vector<Ref<TensorData>> constants(std::string_view text) {
    if (text.size() > kLongest)
      throw CompileError(kLimitExceeded, origin_, "metadata of {} bytes; at most {} are accepted",
                         text.size(), kLongest);
    graph_ = Json::parse(text.begin(), text.end(), nullptr, false);
    if (graph_.is_discarded() || !graph_.is_object()) fail("is no JSON object");
    const Json& map = node(index_of(member(graph_, "root", "the metadata")));
    std::vector<Ref<TensorData>> out;
    if (const auto keys = map.find("keys"); keys != map.end()) {
      const Json& data = list(map, "data");
      if (!keys->is_array() || keys->size() != data.size())
        fail("has a map whose `keys` and `data` differ in number");
      for (size_t i = 0; i < data.size(); ++i)
        if ((*keys)[i] == "relay.Constant") read_list(node(index_of(data[i])), out);
    } else if (const auto attrs = map.find("attrs"); attrs != map.end()) {
      // The form of older versions: the kinds are attributes of the root.
      if (const auto kind = attrs->find("relay.Constant"); kind != attrs->end())
        read_list(node(index_of(*kind)), out);
    }
    return out;
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw CompileError(kBadModel, origin_, "the metadata {}",
                       fmt::format(format, std::forward<Args>(args)...));
  }

  const Json& member(const Json& object, const char* name, std::string_view of) const {
    const auto it = object.is_object() ? object.find(name) : object.end();
    if (!object.is_object() || it == object.end()) fail("has no `{}` in {}", name, of);
    return *it;
  }
  const Json& list(const Json& object, const char* name) const {
    const Json& value = member(object, name, "a node");
    if (!value.is_array()) fail("has a `{}` that is no list", name);
    return value;
  }

  // A number, or its decimal text.
  int64_t index_of(const Json& value) const {
    if (value.is_number_integer()) return value.get<int64_t>();
    int64_t number = -1;
    if (value.is_string()) {
      const auto& text = value.get_ref<const std::string&>();
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error == std::errc() && end == text.data() + text.size()) return number;
    }
    fail("has {} where the index of a node stands", value.is_string() ? "a text" : "no number");
  }

  const Json& node(int64_t index) const {
    const Json& nodes = member(graph_, "nodes", "the metadata");
    if (!nodes.is_array() || index < 0 || index >= static_cast<int64_t>(nodes.size()))
      fail("refers to node {}, which it does not have", index);
    return nodes[static_cast<size_t>(index)];
  }

  void read_list(const Json& array, std::vector<Ref<TensorData>>& out) {
    for (const Json& item : list(array, "data")) {
      const Json& constant = node(index_of(item));
      const auto key = constant.find("type_key");
      if (!constant.is_object() || key == constant.end() || *key != "relay.Constant") {
        out.emplace_back();
        continue;
      }
      out.push_back(
          tensor(index_of(member(member(constant, "attrs", "a node"), "data", "a node"))));
    }
  }

  // Each is decoded once, however many constants refer to it.
  Ref<TensorData> tensor(int64_t index) {
    Ref<TensorData>& known = tensors_[index];
    if (!known) known = decoded(index);
    return known;
  }

  Ref<TensorData> decoded(int64_t index) {
    const Json& all = member(graph_, "b64ndarrays", "the metadata");
    if (!all.is_array() || index < 0 || index >= static_cast<int64_t>(all.size()) ||
        !all[static_cast<size_t>(index)].is_string())
      fail("refers to tensor {}, which it does not have", index);
    auto bytes = decode_base64(all[static_cast<size_t>(index)].get_ref<const std::string&>());
    if (!bytes) fail("has a tensor {} that is no base64", index);
    const auto kept = std::make_shared<const std::vector<std::byte>>(std::move(*bytes));
    Bytes in(*kept, kept, fmt::format("tensor {} of the metadata", index), origin_);
    Ref<TensorData> out = read_tensor(in);
    if (!in.empty()) in.fail("goes on behind its elements");
    return out;
  }

  Origin origin_;
  Json graph_;
  std::map<int64_t, Ref<TensorData>> tensors_;
};

}  // namespace

std::vector<Ref<TensorData>> read_metadata(const std::shared_ptr<const SourceFile>& file,
                                           std::string_view json, const Place& place) {
  return Reader(file, place).constants(json);
}

}  // namespace tenon::relay
