// A loader for the relocatable objects that codegen makes: one function, its constants, relocations between the two.
// It reads files from a cache folder, so every offset is checked before it is used.
#include "runtime/code.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/checked.h"
#include "runtime/placement.h"
#include "runtime/relocation.h"

namespace boltbeam::runtime {
namespace {

#if defined(__aarch64__)
constexpr std::uint16_t kHostMachine = EM_AARCH64;
#else
constexpr std::uint16_t kHostMachine = EM_X86_64;
#endif

constexpr std::uint64_t kMaxObjectBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxAlignment = 4096;
constexpr std::string_view kEntry = "kernel";

std::unexpected<Error> Damaged(std::string found) {
  return Fail(boltbeam::Code::kCodegen, "compiled kernel", "damaged object: " + std::move(found),
              "an object as this build's code generator writes it; remove it from the cache");
}

/// Where a section of the object lies in the mapping; only sections that are loaded have a place.
struct Section {
  Elf64_Shdr header{};
  std::optional<std::uint64_t> place;
};

class Loader {
 public:
  explicit Loader(std::string_view object) : object_(object) {}

  Result<void> ReadSections();
  Result<void> ReadSymbols();
  /// Gives every loaded section its place: code first, from `shift` on, constants from the next page on.
  Result<void> Lay(std::uint64_t page, std::uint64_t shift);
  Result<void> CopyTo(std::byte* memory) const;
  Result<std::uint64_t> Entry() const;
  /// Of everything that is loaded, before it is relocated, and of the relocations.
  Result<std::string> Content() const;

  [[nodiscard]] std::uint64_t code_bytes() const { return code_bytes_; }
  [[nodiscard]] std::uint64_t total_bytes() const { return total_bytes_; }

 private:
  template <typename T>
  std::optional<T> Read(std::uint64_t offset) const {
    if (offset > object_.size() || object_.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, object_.data() + offset, sizeof(T));
    return value;
  }
  static bool IsLoaded(const Elf64_Shdr& header) { return (header.sh_flags & SHF_ALLOC) != 0 && header.sh_size > 0; }
  Result<void> LayPart(bool executable, std::uint64_t* end);
  Result<void> Relocate(const Section& relocations, std::byte* memory) const;
  Result<void> RelocateOne(const Elf64_Rela& relocation, const Section& target, std::byte* memory) const;
  Result<std::uint64_t> PlaceOfSymbol(const Elf64_Sym& symbol) const;
  std::string_view NameOf(const Elf64_Sym& symbol) const;

  std::string_view object_;
  std::vector<Section> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::string_view names_;
  std::uint64_t code_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
};

Result<void> Loader::ReadSections() {
  if (object_.size() > kMaxObjectBytes) return Damaged(fmt::format("{} bytes long", object_.size()));
  const auto header = Read<Elf64_Ehdr>(0);
  if (!header) return Damaged(fmt::format("only {} bytes", object_.size()));
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return Damaged("no ELF file");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_type != ET_REL) {
    return Damaged("no 64-bit relocatable ELF file");
  }
  if (header->e_machine != kHostMachine) {
    return Damaged(fmt::format("machine {}, this one is {}", header->e_machine, kHostMachine));
  }
  if (header->e_shentsize != sizeof(Elf64_Shdr)) return Damaged("section headers of another size");
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto at = CheckedAdd<std::uint64_t>(header->e_shoff, i * sizeof(Elf64_Shdr));
    const auto section = at ? Read<Elf64_Shdr>(*at) : std::nullopt;
    if (!section) return Damaged(fmt::format("section header {} lies outside", i));
    const bool in_file = section->sh_type != SHT_NULL && section->sh_type != SHT_NOBITS;
    if (in_file && (section->sh_offset > object_.size() || object_.size() - section->sh_offset < section->sh_size)) {
      return Damaged(fmt::format("section {} lies outside", i));
    }
    sections_.push_back({*section, std::nullopt});
  }
  return {};
}

Result<void> Loader::ReadSymbols() {
  for (const Section& section : sections_) {
    const Elf64_Shdr& header = section.header;
    if (header.sh_type != SHT_SYMTAB) continue;
    if (header.sh_link >= sections_.size() || sections_[header.sh_link].header.sh_type != SHT_STRTAB) {
      return Damaged("symbols without names");
    }
    const Elf64_Shdr& strings = sections_[header.sh_link].header;
    names_ = object_.substr(strings.sh_offset, strings.sh_size);
    for (std::uint64_t at = 0; header.sh_size - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
      symbols_.push_back(*Read<Elf64_Sym>(header.sh_offset + at));  // the section was checked to lie inside
    }
    return {};
  }
  return Damaged("no symbols");
}

Result<void> Loader::LayPart(bool executable, std::uint64_t* end) {
  for (Section& section : sections_) {
    const Elf64_Shdr& header = section.header;
    if (!IsLoaded(header) || ((header.sh_flags & SHF_EXECINSTR) != 0) != executable) continue;
    if (header.sh_type != SHT_PROGBITS || (header.sh_flags & (SHF_WRITE | SHF_TLS)) != 0) {
      return Damaged("a section that is neither code nor a constant");
    }
    const std::uint64_t alignment = std::max<std::uint64_t>(header.sh_addralign, 1);
    if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
      return Damaged(fmt::format("a section aligned to {}", alignment));
    }
    section.place = AlignUp(*end, alignment);
    *end = *section.place + header.sh_size;  // at most 65535 sections of 64 MiB
  }
  return {};
}

Result<void> Loader::Lay(std::uint64_t page, std::uint64_t shift) {
  std::uint64_t end = shift;
  BOLTBEAM_TRY(LayPart(true, &end));
  if (end == shift) return Damaged("no code");
  code_bytes_ = end = AlignUp(end, page);
  BOLTBEAM_TRY(LayPart(false, &end));
  total_bytes_ = AlignUp(end, page);
  // Sections of an honest object don't overlap, so they take little more room than the file does.
  if (total_bytes_ > 2 * kMaxObjectBytes) return Damaged("sections that overlap");
  return {};
}

Result<std::uint64_t> Loader::PlaceOfSymbol(const Elf64_Sym& symbol) const {
  if (symbol.st_shndx == SHN_UNDEF) return Damaged(fmt::format("undefined symbol '{}'", NameOf(symbol)));
  if (symbol.st_shndx >= sections_.size() || !sections_[symbol.st_shndx].place) {
    return Damaged(fmt::format("symbol '{}' in no loaded section", NameOf(symbol)));
  }
  const Section& section = sections_[symbol.st_shndx];
  if (symbol.st_value > section.header.sh_size) return Damaged(fmt::format("symbol '{}' lies outside", NameOf(symbol)));
  return *section.place + symbol.st_value;
}

std::string_view Loader::NameOf(const Elf64_Sym& symbol) const {
  if (symbol.st_name >= names_.size()) return {};
  const std::string_view rest = names_.substr(symbol.st_name);
  return rest.substr(0, rest.find('\0'));
}

Result<void> Loader::RelocateOne(const Elf64_Rela& relocation, const Section& target, std::byte* memory) const {
  const std::uint64_t index = ELF64_R_SYM(relocation.r_info);
  const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(relocation.r_info));
  if (index >= symbols_.size()) return Damaged("a relocation to no symbol");
  BOLTBEAM_ASSIGN(const std::uint64_t symbol, PlaceOfSymbol(symbols_[index]));
  const std::optional<std::uint64_t> width = RelocationWidth(kHostMachine, type);
  if (!width) return Damaged(fmt::format("relocation of type {}", type));
  if (relocation.r_offset > target.header.sh_size || target.header.sh_size - relocation.r_offset < *width) {
    return Damaged("a relocation outside its section");
  }
  std::byte* at = memory + *target.place + relocation.r_offset;
  const std::uint64_t value =
      reinterpret_cast<std::uintptr_t>(memory) + symbol + static_cast<std::uint64_t>(relocation.r_addend);
  if (const auto applied =
          ApplyRelocation(kHostMachine, type, std::span(at, *width), reinterpret_cast<std::uintptr_t>(at), value);
      !applied) {
    return Damaged(applied.error().found);
  }
  return {};
}

Result<void> Loader::Relocate(const Section& relocations, std::byte* memory) const {
  const Elf64_Shdr& header = relocations.header;
  if (header.sh_info >= sections_.size()) return Damaged("relocations of no section");
  const Section& target = sections_[header.sh_info];
  if (!target.place) return {};
  for (std::uint64_t at = 0; header.sh_size - at >= sizeof(Elf64_Rela); at += sizeof(Elf64_Rela)) {
    BOLTBEAM_TRY(RelocateOne(*Read<Elf64_Rela>(header.sh_offset + at), target, memory));
  }
  return {};
}

Result<void> Loader::CopyTo(std::byte* memory) const {
  for (const Section& section : sections_) {
    if (!section.place) continue;
    std::memcpy(memory + *section.place, object_.data() + section.header.sh_offset, section.header.sh_size);
  }
  for (const Section& section : sections_) {
    if (section.header.sh_type == SHT_REL) return Damaged("relocations without addends");
    if (section.header.sh_type == SHT_RELA) BOLTBEAM_TRY(Relocate(section, memory));
  }
  return {};
}

Result<std::uint64_t> Loader::Entry() const {
  for (const Elf64_Sym& symbol : symbols_) {
    if (NameOf(symbol) != kEntry) continue;
    BOLTBEAM_ASSIGN(const std::uint64_t place, PlaceOfSymbol(symbol));
    if (place >= code_bytes_) return Damaged("an entry that is no code");
    return place;
  }
  return Damaged(fmt::format("no function '{}'", kEntry));
}

Result<std::string> Loader::Content() const {
  std::string text;
  for (const Section& section : sections_) {
    const Elf64_Shdr& header = section.header;
    if (section.place) text.append(object_.substr(header.sh_offset, header.sh_size));  // it lies inside: LayPart
    const bool is_of_loaded = header.sh_info < sections_.size() && sections_[header.sh_info].place;
    if (header.sh_type != SHT_RELA || !is_of_loaded) continue;
    for (std::uint64_t at = 0; header.sh_size - at >= sizeof(Elf64_Rela); at += sizeof(Elf64_Rela)) {
      const auto relocation = Read<Elf64_Rela>(header.sh_offset + at);
      if (!relocation || ELF64_R_SYM(relocation->r_info) >= symbols_.size()) return Damaged("a relocation");
      const Result<std::uint64_t> symbol = PlaceOfSymbol(symbols_[ELF64_R_SYM(relocation->r_info)]);
      text += fmt::format("{} {} {} {};", relocation->r_offset, ELF64_R_TYPE(relocation->r_info), relocation->r_addend,
                          symbol ? *symbol : 0);
    }
  }
  return text;
}

std::atomic<std::uint32_t> code_placement{0};

/// By which the code of an object lies behind the beginning of its page.
std::uint64_t ShiftOf(const std::string& object) {
  const std::uint32_t placement = CodePlacement();
  if (placement == 0) return 0;
  constexpr std::uint64_t kPlaces = 4096 / kCodeShift;
  return std::hash<std::string>{}(object + std::to_string(placement)) % kPlaces * kCodeShift;
}

/// Memory that is unmapped again unless it is released.
struct Mapping {
  void* memory = MAP_FAILED;
  std::size_t bytes = 0;
  explicit Mapping(std::size_t size)
      : memory(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), bytes(size) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (memory != MAP_FAILED) munmap(memory, bytes);
  }
};

}  // namespace

void SetCodePlacement(std::uint32_t placement) { code_placement = placement; }

std::uint32_t CodePlacement() { return code_placement; }

Result<Code> Code::Load(const std::string& object) {
  Loader loader(object);
  BOLTBEAM_TRY(loader.ReadSections());
  BOLTBEAM_TRY(loader.ReadSymbols());
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  BOLTBEAM_TRY(loader.Lay(page, ShiftOf(object)));
  BOLTBEAM_ASSIGN(const std::uint64_t entry, loader.Entry());
  Mapping mapping(loader.total_bytes());
  if (mapping.memory == MAP_FAILED) {
    return Fail(boltbeam::Code::kOutOfMemory, "compiled kernel", fmt::format("no {} bytes for it", mapping.bytes),
                "memory for machine code");
  }
  auto* memory = static_cast<std::byte*>(mapping.memory);
  BOLTBEAM_TRY(loader.CopyTo(memory));
  const std::size_t constants = mapping.bytes - loader.code_bytes();
  // Never writable and executable at once.
  if (mprotect(memory, loader.code_bytes(), PROT_READ | PROT_EXEC) != 0 ||
      (constants > 0 && mprotect(memory + loader.code_bytes(), constants, PROT_READ) != 0)) {
    return Fail(boltbeam::Code::kCodegen, "compiled kernel", "the system refuses to make memory executable",
                "a system that lets a program run code that it generated");
  }
  __builtin___clear_cache(reinterpret_cast<char*>(memory), reinterpret_cast<char*>(memory) + loader.code_bytes());
  Code code;
  code.memory_ = std::exchange(mapping.memory, MAP_FAILED);
  code.bytes_ = mapping.bytes;
  code.function_ = reinterpret_cast<KernelFunction>(memory + entry);
  return code;
}

Result<std::string> Code::ContentOf(const std::string& object) {
  Loader loader(object);
  BOLTBEAM_TRY(loader.ReadSections());
  BOLTBEAM_TRY(loader.ReadSymbols());
  BOLTBEAM_TRY(loader.Lay(static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)), 0));
  return loader.Content();
}

Code::Code(Code&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      function_(std::exchange(other.function_, nullptr)) {}

Code& Code::operator=(Code&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  std::swap(function_, other.function_);
  return *this;
}

Code::~Code() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

}  // namespace boltbeam::runtime
