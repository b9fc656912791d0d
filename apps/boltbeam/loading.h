// What the commands that compute tokens share: loading the engine with a progress bar, and reading text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chip/facts.h"
#include "command.h"
#include "engine/engine.h"
#include "model/model.h"

namespace boltbeam::app {

/// --without switches routes off, --with on.
struct RouteFlags {
  std::vector<std::string> with, without;

  void Add(CLI::App& command);
};

/// Adds -t, -ctk and -ctv, with llama.cpp's names, the routes' flags, --isa, --plan and --geometry, and checks their
/// values.
struct EngineFlags {
  std::uint32_t threads = 0;
  std::string cache_k = "f16", cache_v = "f16";  // checked by CLI11
  RouteFlags routes;
  std::string isa;   // an instruction set of chip::InstructionSets(); empty: all that the machine has
  std::string plan;  // empty: those installed for this chip; "default"; a file or the name of an installed plan
  std::vector<engine::GeometryChoice> geometry;  // turned after the plan's

  void Add(CLI::App& command);
  [[nodiscard]] Result<model::CacheFormats> Cache() const { return CacheOf(cache_k, cache_v); }
  /// "f16", or "q8_0/f16" when they differ.
  [[nodiscard]] std::string CacheName() const { return cache_k == cache_v ? cache_k : cache_k + "/" + cache_v; }
  /// kUsage when a cache is not kept in one of the two.
  static Result<model::CacheFormats> CacheOf(const std::string& keys, const std::string& values);
};

/// Adds -ctk and -ctv, for one format each.
void AddCacheTypes(CLI::App& command, std::string& keys, std::string& values);

/// Adds --isa, which holds the engine to a lesser instruction set.
void AddIsa(CLI::App& command, std::string& isa);

/// This machine as the engine is to see it: held to flags.isa, and named so. kUsage when it lacks the set.
Result<chip::Chip> MachineFor(const Globals& globals, const EngineFlags& flags);

/// Holds a chip to an instruction set and names it so; empty: to none. kUsage when it lacks the set.
Result<void> HoldTo(chip::Chip& chip, const std::string& isa);

/// What the flags and the plan that they name, or that is installed, set of an engine. Says nothing on stderr when it
/// is_quiet.
Result<engine::Options> EngineOptions(const Globals& globals, const model::Model& model, const EngineFlags& flags,
                                      std::uint64_t context, bool is_quiet = false);

/// Fills in what every command sets the same way: threads, KV format, folders, progress, Ctrl-C.
Result<std::unique_ptr<engine::Engine>> LoadEngine(const Globals& globals, const model::Model& model,
                                                   const EngineFlags& flags, std::uint64_t context);

/// Why so many threads compute: "asked for", or what was measured.
std::string WhyThreads(const chip::Chip& machine, const EngineFlags& flags);

/// Says on stderr how many threads were chosen, and why, where nobody asked for a number.
Result<void> NoteThreads(const Globals& globals, const EngineFlags& flags, const engine::Engine& engine);

/// "weights 98.4 MB, KV cache 5.3 MB, workspace 1.2 MB"
std::string DescribeMemory(const engine::MemoryUse& memory);

}  // namespace boltbeam::app
