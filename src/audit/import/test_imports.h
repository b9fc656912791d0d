// Test support: files of tests/data/imports, imported.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "audit/import/imported.h"
#include "base/paths.h"

namespace boltbeam::imports {

inline Result<Imported> Load(const std::string& file) {
  const auto bytes = base::ReadWholeFile(std::string(BOLTBEAM_TEST_DATA) + "/imports/" + file);
  EXPECT_TRUE(bytes) << file;
  return ImportText(file, bytes ? *bytes : "");
}

inline Imported Good(const std::string& file) {
  auto imported = Load(file);
  EXPECT_TRUE(imported) << file << ": " << (imported ? "" : imported.error().Message());
  return imported ? std::move(*imported) : Imported{};
}

}  // namespace boltbeam::imports
