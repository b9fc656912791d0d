// Test support: engines over small files of random weights, which are made once and removed at the end.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "model/synth.h"

namespace boltbeam::engine {

/// A folder of this process alone, removed when it ends.
inline const std::filesystem::path& Folder() {
  struct Owned {
    std::filesystem::path path =
        std::filesystem::path(testing::TempDir()) / ("boltbeam-engine-" + std::to_string(::getpid()));
    Owned() { std::filesystem::create_directories(path); }
    ~Owned() { std::filesystem::remove_all(path); }
  };
  static const Owned kOwned;
  return kOwned.path;
}

/// A file of random weights, made once per specification.
inline std::string Synth(const std::string& spec, std::uint32_t layers = 0) {
  const std::filesystem::path path = Folder() / (spec + "_" + std::to_string(layers) + ".gguf");
  if (!std::filesystem::exists(path)) {
    model::SynthOptions options;
    options.layers = layers;
    const auto plan = model::PlanSynth(spec, options);
    EXPECT_TRUE(plan) << plan.error().Message();
    const auto written = model::WriteSynth(*plan, path.string(), options);
    EXPECT_TRUE(written) << written.error().Message();
  }
  return path.string();
}

struct Loaded {
  std::unique_ptr<model::Model> model;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Session> session;
};

inline Loaded LoadOn(const chip::Chip& machine, const std::string& path, Options options = {}) {
  Loaded loaded;
  auto model = model::Model::Load(path);
  EXPECT_TRUE(model) << model.error().Message();
  loaded.model = std::make_unique<model::Model>(std::move(*model));
  if (options.context == 0) options.context = 256;
  options.cache_folder = (std::filesystem::current_path() / "kernel-cache").string();  // of the build, shared by tests
  auto engine = Engine::Load(*loaded.model, machine, options);
  EXPECT_TRUE(engine) << engine.error().Message();
  loaded.engine = std::move(*engine);
  loaded.session = loaded.engine->NewSession().value();
  return loaded;
}

inline Loaded Load(const std::string& path, Options options = {}) {
  return LoadOn(chip::DetectThisMachine().value(), path, std::move(options));
}

inline std::vector<std::int32_t> Tokens(std::size_t count, std::uint32_t vocab) {
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < count; ++i) tokens.push_back(static_cast<std::int32_t>((i * 7919 + 13) % vocab));
  return tokens;
}

}  // namespace boltbeam::engine
