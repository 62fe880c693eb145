// SPDX-License-Identifier: Apache-2.0
#include "tenon/backend/llvm/constants_object.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "tenon/backend/constants.h"

namespace tenon::llvm_backend {

// Far from code whatever its size: relocations in code need not reach over it.
static constexpr uint64_t kLargeSection = 0x10000000;  // SHF_X86_64_LARGE

void write_constants_object(const ConstantsLayout& layout, const Target& target,
                            const std::string& path) {
  // Section header names and symbol names share one table.
  static constexpr char kNames[] = "\0.lrodata.tenon\0.symtab\0.strtab\0tenon_constants";
  static constexpr uint32_t kDataName = 1, kSymbolsName = 16, kStringsName = 24, kSymbolName = 32;
  check(std::string(kNames + kSymbolName) == kConstantsSymbol, "the table of names is off");

  const auto bytes = static_cast<uint64_t>(layout.bytes);
  const uint64_t data_at = 4096;
  const uint64_t symbols_at = (data_at + bytes + 7) / 8 * 8;
  const uint64_t strings_at = symbols_at + 2 * sizeof(Elf64_Sym);
  const uint64_t headers_at = (strings_at + sizeof(kNames) + 7) / 8 * 8;

  Elf64_Ehdr file{};
  std::memcpy(file.e_ident, ELFMAG, SELFMAG);
  file.e_ident[EI_CLASS] = ELFCLASS64;
  file.e_ident[EI_DATA] = ELFDATA2LSB;
  file.e_ident[EI_VERSION] = EV_CURRENT;
  file.e_type = ET_REL;
  file.e_machine = target.is_x86() ? EM_X86_64 : EM_AARCH64;
  file.e_version = EV_CURRENT;
  file.e_shoff = headers_at;
  file.e_ehsize = sizeof(Elf64_Ehdr);
  file.e_shentsize = sizeof(Elf64_Shdr);
  file.e_shnum = 4;
  file.e_shstrndx = 3;

  Elf64_Sym symbols[2] = {};
  symbols[1].st_name = kSymbolName;
  symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  symbols[1].st_other = STV_HIDDEN;
  symbols[1].st_shndx = 1;
  symbols[1].st_size = bytes;

  Elf64_Shdr sections[4] = {};
  sections[1].sh_name = kDataName;
  sections[1].sh_type = SHT_PROGBITS;
  sections[1].sh_flags = SHF_ALLOC | (target.is_x86() ? kLargeSection : 0);
  sections[1].sh_offset = data_at;
  sections[1].sh_size = bytes;
  sections[1].sh_addralign = std::max<uint64_t>(4096, static_cast<uint64_t>(layout.alignment));
  sections[2].sh_name = kSymbolsName;
  sections[2].sh_type = SHT_SYMTAB;
  sections[2].sh_offset = symbols_at;
  sections[2].sh_size = sizeof(symbols);
  sections[2].sh_link = 3;
  sections[2].sh_info = 1;  // the first symbol that is not local
  sections[2].sh_addralign = 8;
  sections[2].sh_entsize = sizeof(Elf64_Sym);
  sections[3].sh_name = kStringsName;
  sections[3].sh_type = SHT_STRTAB;
  sections[3].sh_offset = strings_at;
  sections[3].sh_size = sizeof(kNames);
  sections[3].sh_addralign = 1;

  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  const auto write_at = [&](uint64_t offset, const void* data, size_t size) {
    out.seekp(static_cast<std::streamoff>(offset));
    out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  };
  write_at(0, &file, sizeof(file));
  backend::stream_constants(layout, [&](int64_t offset, std::span<const std::byte> piece) {
    write_at(data_at + static_cast<uint64_t>(offset), piece.data(), piece.size());
  });
  write_at(symbols_at, symbols, sizeof(symbols));
  write_at(strings_at, kNames, sizeof(kNames));
  write_at(headers_at, sections, sizeof(sections));
  out.close();
  if (!out) throw CompileError(kFileError, {}, "constants could not be written to `{}`", path);
}

}  // namespace tenon::llvm_backend
