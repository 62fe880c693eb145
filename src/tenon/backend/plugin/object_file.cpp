// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/plugin/object_file.h"

#include <elf.h>
#include <fmt/core.h>

#include <cstring>
#include <optional>
#include <vector>

namespace tenon::plugin {

#if defined(__x86_64__)
static constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
static constexpr uint16_t kMachine = EM_AARCH64;
#else
static constexpr uint16_t kMachine = EM_RISCV;
#endif

template <typename T>
static std::optional<T> read_at(std::string_view bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return out;
}

std::string object_fault(std::string_view bytes, const std::string& symbol) {
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return "they are no ELF file";
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
    return "they are no 64-bit little-endian ELF file";
  if (header->e_type != ET_REL)
    return fmt::format("they are an ELF file of type {}; expected {}, a relocatable object",
                       header->e_type, ET_REL);
  if (header->e_machine != kMachine)
    return fmt::format("they are for machine {}; expected {}", header->e_machine, kMachine);
  std::vector<Elf64_Shdr> sections;
  for (uint32_t i = 0; i < header->e_shnum; ++i) {
    const auto section =
        read_at<Elf64_Shdr>(bytes, header->e_shoff + uint64_t{i} * sizeof(Elf64_Shdr));
    if (!section ||
        (section->sh_type != SHT_NOBITS && (section->sh_offset > bytes.size() ||
                                            bytes.size() - section->sh_offset < section->sh_size)))
      return fmt::format("their section {} lies outside of them", i);
    sections.push_back(*section);
  }
  for (const Elf64_Shdr& table : sections) {
    if (table.sh_type != SHT_SYMTAB || table.sh_link >= sections.size()) continue;
    const Elf64_Shdr& names = sections[table.sh_link];
    if (names.sh_type != SHT_STRTAB) continue;
    const std::string_view text = bytes.substr(names.sh_offset, names.sh_size);
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      const auto entry = read_at<Elf64_Sym>(bytes, table.sh_offset + at);
      if (!entry || entry->st_name >= text.size()) continue;
      const std::string_view rest = text.substr(entry->st_name);
      if (rest.substr(0, rest.find('\0')) != symbol) continue;
      if (entry->st_shndx != SHN_UNDEF && ELF64_ST_BIND(entry->st_info) != STB_LOCAL) return "";
    }
  }
  return fmt::format("they define no function `{}`", symbol);
}

}  // namespace tenon::plugin
