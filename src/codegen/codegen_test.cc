// Targets from declared features, listings, and what happens when the plugin or a feature is missing.
#include "codegen/codegen.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "codegen/test_targets.h"
#include "kernel/builder.h"
#include "runtime/code.h"

namespace boltbeam::codegen {
namespace {

using kernel::Builder;
using kernel::Memory;
using kernel::Program;
using kernel::Scalar;
using kernel::Value;

constexpr char kX86[] = "x86_64-unknown-linux-gnu";
constexpr char kArm[] = "aarch64-unknown-linux-gnu";

Program DotProgram() {
  Builder b("dots", "dots of bytes through a table, half precision, rounding");
  const std::uint32_t codes = b.AddBuffer("codes");
  const std::uint32_t factors = b.AddBuffer("factors");
  const std::uint32_t out = b.AddBuffer("out", true);
  b.Loop(b.Begin(), b.End(), b.I64(1), {}, [&](Value i, auto) -> std::vector<Value> {
    const Value packed = b.Load(codes, {Scalar::kI32, 16}, Memory::kWord, i * 64, 0, true);
    const Value bytes = b.Table16(packed & b.U32(0x0f0f0f0f, 16), std::vector<std::int32_t>(16, 3));
    const Value factor = b.LoadBroadcast(factors, {Scalar::kI32, 16}, Memory::kWord, i * 4);
    const Value sum = Dot4(b.I32(0, 16), bytes, factor);
    const Value scale = b.Load(factors, {Scalar::kF32, 16}, Memory::kF16, i * 32);
    b.Store(out, i * 64, ToI32(Round(ToF32(sum) * scale)));
    return {};
  });
  return std::move(b).Finish();
}

Target TargetOf(std::vector<std::string> features) {
  chip::Chip chip;
  chip.features = std::move(features);
  return TargetFor(chip);
}

TEST(Target, TranslatesDeclaredFeatures) {
  const Target target = TargetOf({"fpu", "pni", "ssse3", "sse4_1", "sse4_2", "avx", "avx2", "bmi1"});
  EXPECT_EQ(target.triple, kX86);
  EXPECT_EQ(target.features, (std::vector<std::string>{"sse3", "ssse3", "sse4.1", "sse4.2", "avx", "avx2", "bmi"}));
}

TEST(Target, TheOrderOfDeclarationDoesNotMatter) {
  EXPECT_EQ(TargetOf({"avx", "sse4_2", "sse4_1", "ssse3", "pni"}).features,
            TargetOf({"pni", "ssse3", "sse4_1", "sse4_2", "avx"}).features);
}

TEST(Target, AFeatureWithoutWhatItRestsOnIsNotUsed) {
  const Target target = TargetOf({"pni", "ssse3", "avx512f", "avx512_vnni"});
  EXPECT_EQ(target.features, (std::vector<std::string>{"sse3", "ssse3"}));
}

TEST(Target, Arm) {
  const Target target = TargetOf({"fp", "asimd", "asimddp", "i8mm"});
  EXPECT_EQ(target.triple, kArm);
  EXPECT_EQ(target.features, (std::vector<std::string>{"neon", "dotprod", "i8mm"}));
}

TEST(Codegen, ListingsShowWhatIsGenerated) {
  const Target vnni{kX86, {"avx512f", "avx512bw", "avx512vl", "avx512vnni"}};
  const Result<std::string> ir = EmitListing(DotProgram(), vnni, Listing::kLlvmIr);
  ASSERT_TRUE(ir) << ir.error().Message();
  EXPECT_NE(ir->find("define void @kernel(ptr %buffers, i64 %begin, i64 %end)"), std::string::npos) << *ir;
  EXPECT_NE(ir->find("load volatile <16 x i32>"), std::string::npos) << *ir;
  const Result<std::string> assembly = EmitListing(DotProgram(), vnni, Listing::kAssembly);
  ASSERT_TRUE(assembly) << assembly.error().Message();
  EXPECT_NE(assembly->find("vpdpbusd"), std::string::npos) << *assembly;
  EXPECT_NE(assembly->find("{1to16}"), std::string::npos) << *assembly;
  EXPECT_NE(assembly->find("%zmm"), std::string::npos) << *assembly;
  const Target avx2{kX86, {"avx2", "avxvnni"}};
  const Result<std::string> narrow = EmitListing(DotProgram(), avx2, Listing::kAssembly);
  ASSERT_TRUE(narrow) << narrow.error().Message();
  EXPECT_NE(narrow->find("vpdpbusd"), std::string::npos) << *narrow;
  EXPECT_EQ(narrow->find("%zmm"), std::string::npos) << *narrow;
}

TEST(Codegen, NothingCallsALibrary) {
  for (const NamedTarget& named : RunnableTargets()) {
    const Result<std::string> assembly = EmitListing(DotProgram(), named.target, Listing::kAssembly);
    ASSERT_TRUE(assembly) << assembly.error().Message();
    EXPECT_EQ(assembly->find("call"), std::string::npos) << named.name << *assembly;
  }
}

TEST(Codegen, ArmIsCompiledButNotLoadedHere) {
  for (const auto& [features, instruction] :
       {std::pair<std::vector<std::string>, const char*>{{"neon", "i8mm", "dotprod"}, "usdot"},
        {{"neon", "dotprod"}, "sdot"},
        {{"neon"}, "mul"}}) {
    const Target target{kArm, features};
    const Result<std::string> assembly = EmitListing(DotProgram(), target, Listing::kAssembly);
    ASSERT_TRUE(assembly) << assembly.error().Message();
    EXPECT_NE(assembly->find(instruction), std::string::npos) << *assembly;
    EXPECT_NE(assembly->find("tbl"), std::string::npos) << *assembly;
    EXPECT_EQ(assembly->find("\tbl\t"), std::string::npos) << *assembly;
#if defined(__x86_64__)
    const Result<std::string> object = Compile(DotProgram(), target);
    ASSERT_TRUE(object) << object.error().Message();
    const Result<runtime::Code> code = runtime::Code::Load(*object);
    ASSERT_FALSE(code);
    EXPECT_EQ(code.error().code, Code::kCodegen);
#endif
  }
}

TEST(Codegen, UnknownTargetsAndFeaturesAreRefused) {
  for (const Target& target : {Target{"riscv64-unknown-linux-gnu", {}}, Target{kX86, {"avx9"}},
                               Target{kX86, {"avx2,-sse2"}}, Target{"", {}}}) {
    const Result<std::string> object = Compile(DotProgram(), target);
    ASSERT_FALSE(object);
    EXPECT_EQ(object.error().code, Code::kCodegen);
    EXPECT_NE(object.error().Message().find("unknown"), std::string::npos) << object.error().Message();
  }
}

TEST(Codegen, AnIllegalProgramIsRefusedBeforeLlvmSeesIt) {
  Program program = DotProgram();
  program.buffers.clear();
  const Result<std::string> object = Compile(program, Target{kX86, {}});
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().code, Code::kKernelIllegal);
}

TEST(Codegen, TheVersionIsKnownWithoutThePlugin) { EXPECT_TRUE(CompilerVersion().starts_with("19.1.")); }

/// In a process of its own, since a plugin that is open stays open.
TEST(CodegenChild, Compiles) {
  const char* plugin = std::getenv("BOLTBEAM_TEST_PLUGIN");
  if (plugin == nullptr) GTEST_SKIP() << "run by the tests of a missing plugin";
  setenv("BOLTBEAM_LLVM_PLUGIN", plugin, 1);
  const Result<std::string> object = Compile(DotProgram(), Target{kX86, {}});
  ASSERT_FALSE(object);
  EXPECT_EQ(object.error().code, Code::kCodegenMissing);
  EXPECT_NE(object.error().Message().find(plugin), std::string::npos) << object.error().Message();
}

int RunChild(const std::string& plugin) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  return std::system(
      ("BOLTBEAM_TEST_PLUGIN='" + plugin + "' '" + program + "' --gtest_filter=CodegenChild.Compiles").c_str());
}

TEST(Codegen, AMissingPluginIsNamed) { EXPECT_EQ(RunChild("/nowhere/libboltbeam-llvm.so"), 0); }

TEST(Codegen, APluginThatIsNoLibraryIsNamed) {
  const std::string path = testing::TempDir() + "boltbeam_no_plugin_" + std::to_string(::getpid()) + ".so";
  std::ofstream(path) << "no library";
  EXPECT_EQ(RunChild(path), 0);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace boltbeam::codegen
