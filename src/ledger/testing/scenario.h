// Test support: a ledger on a simulated disk, records that can be told apart, and what was said about each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ledger/ledger.h"
#include "ledger/testing/simulated_disk.h"

namespace boltbeam::ledger {

inline constexpr const char* kDiskFolder = "/data/boltbeam/ledger";
inline constexpr const char* kDiskChain = "/data/boltbeam/ledger/writer.jsonl";
inline constexpr const char* kDiskAnchor = "/data/boltbeam/ledger/writer.head";

/// How a ledger is found by what is tested.
enum class Start : std::uint8_t {
  kNothing,     // not even a folder
  kRecords,     // three confirmed records
  kTornShort,   // and the beginning of a fourth
  kTornLong,    // and 3,000 bytes that are no record, longer than what replaces them
  kUnanchored,  // and a whole fourth that the anchor does not know
  kNoAnchor,    // three records, without the anchor
};
inline constexpr Start kStarts[] = {Start::kNothing,  Start::kRecords,    Start::kTornShort,
                                    Start::kTornLong, Start::kUnanchored, Start::kNoAnchor};

struct Said {
  std::string marker;
  enum class What : std::uint8_t { kRecorded, kNotRecorded, kUnknown } what = What::kRecorded;
  std::string hash;
  std::string blob;  // of a recorded one
};

Options DiskOptions(SimulatedDisk& disk, const std::string& writer = "writer");
Prediction MarkedPrediction(const std::string& marker);
Verdict MarkedVerdict(const std::string& marker, Ruling ruling = Ruling::kInconclusive);

/// A disk in that state; what is confirmed there is added to said.
SimulatedDisk MakeDisk(Start start, std::vector<Said>& said);

/// Three records, one of them with samples. What each call returned is added to said.
void AppendThree(SimulatedDisk& disk, const std::string& prefix, std::vector<Said>& said);
void AppendOne(SimulatedDisk& disk, const std::string& marker, std::vector<Said>& said);

/// Empty, or what is wrong: a recorded one is missing or another, one that was not recorded is there, the chain is
/// damaged, a blob is missing. A torn end is right as long as nothing was recorded since.
std::string WhatIsWrong(SimulatedDisk& disk, const std::vector<Said>& said, bool may_be_torn);

}  // namespace boltbeam::ledger
