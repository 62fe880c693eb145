// SPDX-License-Identifier: Apache-2.0
#include "tenon/tir/scalar_sources.h"

namespace tenon::tir {

std::vector<ScalarSource> scalar_sources(const PrimFunc& function) {
  std::vector<ScalarSource> out;
  const AttrValue* value = function.attrs.find(kScalarSources);
  const auto* rows = value ? value->as<AttrList>() : nullptr;
  for (size_t i = 0; rows && i < rows->size(); ++i) {
    const auto* row = (*rows)[i].as<AttrList>();
    const auto* input = row && row->size() == 2 ? (*row)[0].as<int64_t>() : nullptr;
    const auto* element = input ? (*row)[1].as<int64_t>() : nullptr;
    if (!element || *input < 0 || *element < 0)
      throw CompileError(kBadAttribute, function.origin,
                         "item {} of attribute `{}` is {}; expected [input, element]", i,
                         kScalarSources, (*rows)[i].str());
    out.push_back({static_cast<size_t>(*input), *element});
  }
  size_t scalars = 0;
  for (const Ref<Buffer>& buffer : function.buffers) scalars += buffer ? 0 : 1;
  if (value && (!rows || scalars != out.size()))
    throw CompileError(kBadAttribute, function.origin,
                       "attribute `{}` names {} sources for {} scalar parameters", kScalarSources,
                       out.size(), scalars);
  return out;
}

}  // namespace tenon::tir
