#include "compiler/cpu/CpuImage.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBufferRef.h"

#include <cstring>

namespace nsa::cpu {
namespace {

using llvm::object::ELF64LEObjectFile;
using ElfFile = llvm::object::ELFFile<llvm::object::ELF64LE>;
using Section = ElfFile::Elf_Shdr;
using Symbol = ElfFile::Elf_Sym;
using Relocation = ElfFile::Elf_Rela;

Status refuse(std::string message, std::string hint = "") {
  return Status::error(ErrorCode::kCompileFailed, "CPU image: " + std::move(message), std::move(hint));
}

// An error of LLVM must be consumed. Its text becomes the text of the status.
template <typename T> Result<T> take(llvm::Expected<T> value) {
  if (!value)
    return refuse(llvm::toString(value.takeError()));
  return std::move(*value);
}

// Sections without effect are left out: notes, and unwind tables, because nothing unwinds through these frames.
bool belongsInImage(const Section &section, llvm::StringRef name) {
  return (section.sh_flags & llvm::ELF::SHF_ALLOC) && section.sh_size != 0 && name != ".eh_frame" &&
         section.sh_type != llvm::ELF::SHT_NOTE;
}

class ImageBuilder {
public:
  explicit ImageBuilder(const ElfFile &elf) : elf(elf) {}

  Result<CpuImage> build(llvm::StringRef entry) {
    NSA_RETURN_IF_ERROR(layOut());
    NSA_RETURN_IF_ERROR(relocate());
    NSA_RETURN_IF_ERROR(findEntry(entry));
    return std::move(image);
  }

private:
  Status layOut();
  Status relocate();
  Status relocateSection(const Section &table, const Section &target, int64_t targetOffset);
  Status apply(const Relocation &relocation, llvm::StringRef symbolName, int64_t place, int64_t symbolOffset);
  Status findEntry(llvm::StringRef entry);

  const ElfFile &elf;
  CpuImage image;
  llvm::DenseMap<uint64_t, int64_t> offsetOfSection; // by section index
};

Status ImageBuilder::layOut() {
  auto sections = take(elf.sections());
  if (!sections)
    return sections.status();
  // Code comes before data, so that the entry is near the start however many constants there are.
  for (bool code : {true, false}) {
    for (const auto &[index, section] : llvm::enumerate(*sections)) {
      auto name = take(elf.getSectionName(section));
      if (!name)
        return name.status();
      if (!belongsInImage(section, *name) || bool(section.sh_flags & llvm::ELF::SHF_EXECINSTR) != code)
        continue;
      if (section.sh_flags & llvm::ELF::SHF_WRITE)
        return refuse("section '" + name->str() + "' is writable", "kernels keep all state in scratch memory");
      if (section.sh_addralign > uint64_t(kImageAlignment))
        return refuse("section '" + name->str() + "' wants an alignment of " + std::to_string(section.sh_addralign));
      auto bytes = take(elf.getSectionContents(section));
      if (!bytes)
        return bytes.status();
      int64_t offset =
          llvm::alignTo(image.bytes.size(), code ? kImageAlignment : std::max<uint64_t>(section.sh_addralign, 1));
      image.bytes.resize(offset);
      image.bytes.insert(image.bytes.end(), bytes->begin(), bytes->end());
      offsetOfSection[index] = offset;
    }
  }
  return Status::ok();
}

Status ImageBuilder::relocate() {
  auto sections = take(elf.sections());
  if (!sections)
    return sections.status();
  for (const Section &section : *sections) {
    if (section.sh_type != llvm::ELF::SHT_RELA && section.sh_type != llvm::ELF::SHT_REL)
      continue;
    auto target = offsetOfSection.find(section.sh_info);
    if (target == offsetOfSection.end())
      continue;
    if (section.sh_type == llvm::ELF::SHT_REL)
      return refuse("relocations without addends are not used on x86-64");
    NSA_RETURN_IF_ERROR(relocateSection(section, (*sections)[section.sh_info], target->second));
  }
  return Status::ok();
}

Status ImageBuilder::relocateSection(const Section &table, const Section &target, int64_t targetOffset) {
  auto relocations = take(elf.relas(table));
  if (!relocations)
    return relocations.status();
  auto symbols = take(elf.getSection(table.sh_link));
  if (!symbols)
    return symbols.status();
  auto names = take(elf.getStringTableForSymtab(**symbols));
  if (!names)
    return names.status();
  for (const Relocation &relocation : *relocations) {
    auto symbol = take(elf.getRelocationSymbol(relocation, *symbols));
    if (!symbol)
      return symbol.status();
    auto name = take((*symbol)->getName(*names));
    if (!name)
      return name.status();
    if ((*symbol)->st_shndx == llvm::ELF::SHN_UNDEF)
      return refuse("undefined symbol '" + name->str() + "'",
                    "generated code calls no library: lower the operation that became this call");
    auto definition = offsetOfSection.find((*symbol)->st_shndx);
    if (definition == offsetOfSection.end())
      return refuse("symbol '" + name->str() + "' is not in a section of the image");
    if (relocation.r_offset >= target.sh_size)
      return refuse("a relocation lies outside its section");
    NSA_RETURN_IF_ERROR(apply(relocation, *name, targetOffset + int64_t(relocation.r_offset),
                              definition->second + int64_t((*symbol)->st_value)));
  }
  return Status::ok();
}

Status ImageBuilder::apply(const Relocation &relocation, llvm::StringRef symbolName, int64_t place,
                           int64_t symbolOffset) {
  const uint32_t type = relocation.getType(/*isMips64EL=*/false);
  const int64_t value = symbolOffset + relocation.r_addend - place;
  const bool narrow = type == llvm::ELF::R_X86_64_PC32 || type == llvm::ELF::R_X86_64_PLT32;
  if (!narrow && type != llvm::ELF::R_X86_64_PC64)
    return refuse("relocation " + llvm::object::getELFRelocationTypeName(llvm::ELF::EM_X86_64, type).str() +
                  " against '" + symbolName.str() + "' depends on where the image is mapped");
  if (place + (narrow ? 4 : 8) > int64_t(image.bytes.size()) || (narrow && !llvm::isInt<32>(value)))
    return refuse("a relocation against '" + symbolName.str() + "' does not fit");
  uint8_t *at = image.bytes.data() + place;
  if (narrow)
    llvm::support::endian::write32le(at, uint32_t(value));
  else
    llvm::support::endian::write64le(at, uint64_t(value));
  return Status::ok();
}

Status ImageBuilder::findEntry(llvm::StringRef entry) {
  auto sections = take(elf.sections());
  if (!sections)
    return sections.status();
  for (const Section &section : *sections) {
    if (section.sh_type != llvm::ELF::SHT_SYMTAB)
      continue;
    auto symbols = take(elf.symbols(&section));
    auto names = take(elf.getStringTableForSymtab(section));
    if (!symbols || !names)
      return symbols ? names.status() : symbols.status();
    for (const Symbol &symbol : *symbols) {
      auto name = take(symbol.getName(*names));
      if (!name)
        return name.status();
      auto definition = offsetOfSection.find(symbol.st_shndx);
      if (*name != entry || definition == offsetOfSection.end())
        continue;
      image.entryOffset = definition->second + int64_t(symbol.st_value);
      if (image.entryOffset % kImageAlignment != 0)
        return refuse("entry '" + entry.str() + "' is not aligned to " + std::to_string(kImageAlignment) + " bytes");
      return Status::ok();
    }
  }
  return refuse("the object does not define the entry '" + entry.str() + "'");
}

} // namespace

Result<CpuImage> makeCpuImage(std::string_view object, std::string_view entry) {
  auto file = take(ELF64LEObjectFile::create(llvm::MemoryBufferRef(object, "kernel")));
  if (!file)
    return file.status();
  if (file->getELFFile().getHeader().e_machine != llvm::ELF::EM_X86_64)
    return refuse("the object is not for x86-64");
  return ImageBuilder(file->getELFFile()).build(entry);
}

} // namespace nsa::cpu
