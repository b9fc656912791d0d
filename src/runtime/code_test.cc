// The loader on objects that are cut, changed or hostile: an error, never a crash.
#include "runtime/code.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>

#include "codegen/test_targets.h"
#include "kernel/builder.h"

namespace boltbeam::runtime {
namespace {

using kernel::Builder;
using kernel::Value;

/// With constants in their own section, so that there are relocations.
const std::string& Object() {
  static const std::string kObject = [] {
    Builder b("axpy", "y = x * 0.1 + y");
    const std::uint32_t x = b.AddBuffer("x");
    const std::uint32_t y = b.AddBuffer("y", true);
    b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value i, auto) -> std::vector<Value> {
      const Value lanes = ToF32(b.LaneIndex(8));
      b.Store(y, i * 32, b.LoadF32(x, 8, i * 32) * b.F32(0.1F, 8) + lanes);
      return {};
    });
    Result<std::string> object = codegen::Compile(std::move(b).Finish(), codegen::RunnableTargets().back().target);
    return object ? *object : std::string();
  }();
  return kObject;
}

Elf64_Ehdr HeaderOf(const std::string& object) {
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof(header));
  return header;
}

/// Changes every entry of T in every section of a type.
template <typename T>
std::string Changed(std::uint32_t section_type, const std::function<void(T&)>& change) {
  std::string object = Object();
  const Elf64_Ehdr header = HeaderOf(object);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, object.data() + header.e_shoff + i * sizeof(section), sizeof(section));
    if (section.sh_type != section_type) continue;
    for (std::size_t at = 0; at + sizeof(T) <= section.sh_size; at += sizeof(T)) {
      T entry;
      std::memcpy(&entry, object.data() + section.sh_offset + at, sizeof(T));
      change(entry);
      std::memcpy(object.data() + section.sh_offset + at, &entry, sizeof(T));
    }
  }
  return object;
}

std::string ChangedSections(const std::function<void(Elf64_Shdr&)>& change) {
  std::string object = Object();
  const Elf64_Ehdr header = HeaderOf(object);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    char* at = object.data() + header.e_shoff + i * sizeof(section);
    std::memcpy(&section, at, sizeof(section));
    change(section);
    std::memcpy(at, &section, sizeof(section));
  }
  return object;
}

void ExpectRefused(const std::string& object, const std::string& why) {
  const Result<Code> code = Code::Load(object);
  ASSERT_FALSE(code) << why;
  EXPECT_EQ(code.error().code, boltbeam::Code::kCodegen);
  EXPECT_NE(code.error().Message().find(why), std::string::npos) << code.error().Message();
}

TEST(Code, RunsAndMoves) {
  Result<Code> loaded = Code::Load(Object());
  ASSERT_TRUE(loaded) << loaded.error().Message();
  const Code code = std::move(*loaded);
  std::vector<float> x(16, 10.0F);
  std::vector<float> y(16, 0.0F);
  void* buffers[] = {x.data(), y.data()};
  code.function()(buffers, 1, 2);
  EXPECT_EQ(y[0], 0.0F);
  EXPECT_EQ(y[8], 1.0F);
  EXPECT_EQ(y[15], 8.0F);
}

TEST(Code, CutAtEveryByte) {
  for (std::size_t length = 0; length < Object().size(); ++length) {
    const Result<Code> code = Code::Load(Object().substr(0, length));
    ASSERT_FALSE(code) << length;
    EXPECT_EQ(code.error().code, boltbeam::Code::kCodegen);
  }
}

TEST(Code, EveryByteChanged) {
  std::mt19937 random(5);
  for (std::size_t at = 0; at < Object().size(); ++at) {
    for (const int flip : {0x80, 0x01, 0xff, static_cast<int>(random() % 255) + 1}) {
      std::string object = Object();
      object[at] = static_cast<char>(object[at] ^ flip);
      static_cast<void>(Code::Load(object));  // loads or is refused: code itself may have changed, so it is not run
    }
  }
}

TEST(Code, ManyBytesChanged) {
  std::mt19937 random(6);
  for (int round = 0; round < 3000; ++round) {
    std::string object = Object();
    for (int i = 0; i < 12; ++i) object[random() % object.size()] = static_cast<char>(random());
    static_cast<void>(Code::Load(object));
  }
}

TEST(Code, Refusals) {
  ExpectRefused("", "only 0 bytes");
  ExpectRefused(std::string(4096, 'x'), "no ELF file");
  ExpectRefused(Changed<Elf64_Sym>(SHT_SYMTAB, [](Elf64_Sym& symbol) { symbol.st_shndx = SHN_UNDEF; }),
                "undefined symbol 'kernel'");
  ExpectRefused(Changed<Elf64_Sym>(SHT_SYMTAB, [](Elf64_Sym& symbol) { symbol.st_value = 1 << 30; }), "lies outside");
  ExpectRefused(Changed<Elf64_Sym>(SHT_SYMTAB, [](Elf64_Sym& symbol) { symbol.st_name = 0xffffffff; }),
                "no function 'kernel'");
  ExpectRefused(Changed<Elf64_Rela>(SHT_RELA, [](Elf64_Rela& r) { r.r_offset = ~std::uint64_t{0}; }),
                "a relocation outside its section");
  ExpectRefused(Changed<Elf64_Rela>(SHT_RELA, [](Elf64_Rela& r) { r.r_info = std::uint64_t{999999} << 32 | 2; }),
                "a relocation to no symbol");
  ExpectRefused(Changed<Elf64_Rela>(SHT_RELA, [](Elf64_Rela& r) { r.r_info |= 0x63; }), "relocation of type");
  ExpectRefused(Changed<Elf64_Rela>(SHT_RELA, [](Elf64_Rela& r) { r.r_addend = std::int64_t{1} << 40; }),
                "does not reach");
  ExpectRefused(ChangedSections([](Elf64_Shdr& s) { s.sh_flags |= SHF_WRITE; }), "neither code nor a constant");
  ExpectRefused(ChangedSections([](Elf64_Shdr& s) { s.sh_addralign = 3; }), "aligned to 3");
  ExpectRefused(ChangedSections([](Elf64_Shdr& s) { s.sh_flags &= ~std::uint64_t{SHF_EXECINSTR}; }), "no code");
  ExpectRefused(ChangedSections([](Elf64_Shdr& s) {
                  if (s.sh_type == SHT_RELA) s.sh_type = SHT_REL;
                }),
                "without addends");
}

}  // namespace
}  // namespace boltbeam::runtime
