#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/embedded.h"
#include "formats/format.h"

namespace boltbeam::formats {
namespace {

TEST(RegistryTest, BuiltInRegistryIsValid) {
  const auto registry =
      ParseRegistry(base::Embedded("formats/types.json").value(), base::Embedded("formats/rows.json").value());
  ASSERT_TRUE(registry) << registry.error().Message();
  EXPECT_EQ(registry->formats.size(), AllFormats().size());
  EXPECT_EQ(AllFormats().size(), 35U);
}

}  // namespace
}  // namespace boltbeam::formats
