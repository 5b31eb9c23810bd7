// Versions that do not go together, each alone, and a machine on which all of them do.
#include "tools/nsa/pairing.h"

#include <gtest/gtest.h>

namespace nsa::tools {
namespace {

PairingFacts good() {
  PairingFacts facts;
  facts.driverVersion = 12080;
  facts.target = "sm_90a";
  facts.nvrtcVersion = "12.4";
  facts.libraryRevision = facts.compilerRevision = "abc";
  facts.stored = {{"sm_90a", "12.8"}, {"sm_80", "13.0"}};
  return facts;
}

std::string onlyFault(const PairingFacts &facts) {
  const std::vector<PairingFault> faults = findPairingFaults(facts);
  EXPECT_EQ(faults.size(), 1u);
  return faults.empty() ? "" : faults[0].text + "; " + faults[0].advice;
}

TEST(Pairing, WhatGoesTogetherHasNoFault) {
  EXPECT_TRUE(findPairingFaults(good()).empty());
  EXPECT_TRUE(findPairingFaults({}).empty()) << "nothing there, nothing wrong";
  PairingFacts facts = good();
  facts.target = ""; // no GPU: whatever is stored is for other machines
  facts.driverVersion = 0;
  facts.nvrtcVersion = "13.0";
  EXPECT_TRUE(findPairingFaults(facts).empty());
}

TEST(Pairing, AnNvrtcThatTheDriverDoesNotKnow) {
  PairingFacts facts = good();
  facts.nvrtcVersion = "13.1";
  const std::string fault = onlyFault(facts);
  EXPECT_NE(fault.find("NVRTC 13.1"), std::string::npos) << fault;
  EXPECT_NE(fault.find("12.8"), std::string::npos) << fault;
  EXPECT_NE(fault.find("NSA_NVRTC"), std::string::npos) << fault;
}

TEST(Pairing, ACompilerOfAnotherBuild) {
  PairingFacts facts = good();
  facts.compilerRevision = "def";
  EXPECT_NE(onlyFault(facts).find("one build"), std::string::npos);
  facts.compilerRevision = ""; // left out on purpose
  EXPECT_TRUE(findPairingFaults(facts).empty());
}

TEST(Pairing, APackOfAnotherArchitecture) {
  PairingFacts facts = good();
  facts.stored = {{"sm_100a", "12.8"}, {"sm_80", "12.8"}, {"sm_80", "12.8"}};
  const std::string fault = onlyFault(facts);
  EXPECT_NE(fault.find("none runs on sm_90a"), std::string::npos) << fault;
  EXPECT_NE(fault.find("1 for sm_100a, 2 for sm_80"), std::string::npos) << fault;
  facts.target = "sm_89"; // which runs code for sm_80
  EXPECT_TRUE(findPairingFaults(facts).empty());
  facts.stored = {};
  EXPECT_TRUE(findPairingFaults(facts).empty()) << "an empty cache fills";
}

TEST(Pairing, KernelsOfANewerNvrtc) {
  PairingFacts facts = good();
  facts.stored[0].nvrtcVersion = "13.0";
  EXPECT_NE(onlyFault(facts).find("1 of 1 stored kernels"), std::string::npos);
}

} // namespace
} // namespace nsa::tools
