// The target machine, and a lowered program as an object or as a listing. The only symbol that leaves the plugin.
#include <fmt/format.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "codegen/llvm/lowering.h"
#include "codegen/plugin.h"

namespace boltbeam::codegen {
namespace {

/// LLVM prints about a feature that it does not know and goes on: nothing else gets through.
constexpr std::array kFeatures = std::to_array<std::string_view>(
    {"avx",        "avx2",    "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vbmi", "avx512vl",
     "avx512vnni", "avxvnni", "bmi",      "bmi2",     "dotprod",  "f16c",    "fma",        "fullfp16",
     "i8mm",       "neon",    "popcnt",   "sse3",     "sse4.1",   "sse4.2",  "ssse3"});

/// What went wrong inside; it never leaves the plugin.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// LLVM ends the process after this handler returns, so it does not return.
void OnFatalError(void* /*data*/, const char* reason, bool /*generate_crash_dump*/) { throw Refusal(reason); }

void InitializeOnce() {
  static std::once_flag flag;
  std::call_once(flag, [] {
    llvm::install_fatal_error_handler(OnFatalError);
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

std::string FeatureText(const Target& target) {
  std::string text;
  for (const std::string& feature : target.features) {
    if (std::ranges::find(kFeatures, feature) == kFeatures.end()) {
      throw Refusal(fmt::format("unknown feature '{}' of {}", feature, target.triple));
    }
    text += (text.empty() ? "+" : ",+") + feature;
  }
  return text;
}

/// The plainest processor of the architecture: features alone say more.
std::unique_ptr<llvm::TargetMachine> MakeMachine(const Target& target, const std::string& cpu) {
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (found == nullptr) throw Refusal(error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // a fused multiply-add is its own operation
  options.MCOptions.AsmVerbose = false;
  // "Less" makes kernels as fast as "Aggressive". A small code model: constants lie beside the code.
  std::unique_ptr<llvm::TargetMachine> machine(
      found->createTargetMachine(target.triple, cpu, FeatureText(target), options, llvm::Reloc::PIC_,
                                 llvm::CodeModel::Small, llvm::CodeGenOptLevel::Less, /*JIT=*/false));
  if (machine == nullptr) throw Refusal(fmt::format("LLVM has no code generator for {}", target.triple));
  return machine;
}

Isa IsaOf(const llvm::TargetMachine& machine) {
  const llvm::MCSubtargetInfo& info = *machine.getMCSubtargetInfo();
  const auto has = [&info](const char* feature) { return info.checkFeatures(feature); };
  Isa isa;
  isa.x86 = machine.getTargetTriple().isX86();
  isa.arm = !isa.x86;
  if (isa.arm) {
    isa.fma = true;
    isa.dotprod = has("+dotprod");
    isa.i8mm = has("+i8mm");
    return isa;
  }
  isa.ssse3 = has("+ssse3");
  isa.sse41 = has("+sse4.1");
  isa.avx = has("+avx");
  isa.avx2 = has("+avx2");
  isa.fma = has("+fma");
  isa.f16c = has("+f16c");
  isa.avx512f = has("+avx512f");
  isa.avx512bw = has("+avx512bw");
  isa.avx512vl = has("+avx512vl");
  isa.avx512vnni = has("+avx512vnni");
  isa.avxvnni = has("+avxvnni");
  return isa;
}

/// The default handler of errors prints and exits; warnings and remarks are of no use here.
void OnDiagnostic(const llvm::DiagnosticInfo* info, void* text) {
  if (info->getSeverity() != llvm::DS_Error) return;
  llvm::raw_string_ostream stream(*static_cast<std::string*>(text));
  llvm::DiagnosticPrinterRawOStream printer(stream);
  info->print(printer);
}

void SetAttributes(llvm::Module& module, const llvm::TargetMachine& machine, const Isa& isa) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    if (isa.avx512f) {  // else LLVM may keep to 256 bits
      function.addFnAttr("prefer-vector-width", "512");
      function.addFnAttr("min-legal-vector-width", "512");
    }
  }
}

std::string EmitFile(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType kind) {
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, kind)) throw Refusal("LLVM can't emit this kind of file");
  passes.run(module);
  return std::string(bytes.str());
}

std::string Generate(const kernel::Program& program, const Target& target, Output output) {
  if (target.triple != "x86_64-unknown-linux-gnu" && target.triple != "aarch64-unknown-linux-gnu") {
    throw Refusal(fmt::format("unknown target '{}'", target.triple));
  }
  InitializeOnce();
  const std::unique_ptr<llvm::TargetMachine> machine =
      MakeMachine(target, target.triple.starts_with("x86_64") ? "x86-64" : "generic");
  const Isa isa = IsaOf(*machine);

  std::string diagnostics;
  llvm::LLVMContext context;
  context.setDiagnosticHandlerCallBack(OnDiagnostic, &diagnostics, /*RespectFilters=*/false);
  llvm::Module module(program.name, context);
  module.setTargetTriple(target.triple);
  module.setDataLayout(machine->createDataLayout());
  Lowering(program, isa, module, /*name_values=*/output == Output::kLlvmIr).Run();
  SetAttributes(module, *machine, isa);

  std::string text;
  llvm::raw_string_ostream stream(text);
  if (llvm::verifyModule(module, &stream)) throw Refusal(text);
  if (output == Output::kLlvmIr) {
    module.print(stream, nullptr);
    return text;
  }
  text = EmitFile(module, *machine,
                  output == Output::kObject ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile);
  if (!diagnostics.empty()) throw Refusal(diagnostics);
  return text;
}

}  // namespace
}  // namespace boltbeam::codegen

// NOLINTNEXTLINE(readability-identifier-naming): a C symbol, which dlsym looks for
extern "C" __attribute__((visibility("default"))) bool boltbeam_llvm_generate_v1(
    const boltbeam::kernel::Program* program, const boltbeam::codegen::Target* target, boltbeam::codegen::Output output,
    std::string* text) {
  try {
    *text = boltbeam::codegen::Generate(*program, *target, output);
    return true;
  } catch (const std::exception& error) {
    *text = error.what();
  } catch (...) {
    *text = "an exception of an unknown kind";
  }
  return false;
}
