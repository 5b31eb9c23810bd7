// What the compiler is asked for, of a problem and of a kernel that is stored.
#include "runtime/engine/choices/provenance.h"
#include "runtime/engine/options/compile_request.h"
#include "tests/unit/runtime/stored_kernel.h"

#include <gtest/gtest.h>

namespace nsa {
namespace {

EngineOptions optionsOfTest() {
  EngineOptions options;
  options.templateDir = "/templates";
  options.nvrtcPath = "/nvrtc.so";
  options.cpuFeatures = "x86-64-v3";
  return options;
}

TEST(CompileRequest, OfAProblemIsForAnyCandidate) {
  Spec spec;
  spec.queryHeads = spec.kvHeads = 2;
  spec.qkDim = spec.vDim = 16;
  const Problem problem = Problem::make(spec, {1, 64, 64, 64});
  const CompileRequest request = requestOf(ProblemKey::of(problem), optionsOfTest(), "cpu");
  EXPECT_EQ(request.target, "cpu");
  EXPECT_EQ(request.op, problem.opName());
  EXPECT_EQ(request.fixed, problem.fixed());
  EXPECT_EQ(request.templateName, "");
  EXPECT_TRUE(request.config.empty());
  EXPECT_EQ(request.templateDir, "/templates");
  EXPECT_EQ(request.nvrtcPath, "/nvrtc.so");
  EXPECT_EQ(request.cpuFeatures, "x86-64-v3");
}

// Another processor may compile it again.
TEST(CompileRequest, OfAStoredKernelIsForItsConfigurationAndItsProcessor) {
  Manifest manifest = *Manifest::parse(test::manifestOf({}, Spec()));
  EXPECT_EQ(requestOf(manifest, optionsOfTest()).cpuFeatures, "") << "of a GPU";
  manifest.evidence["features"] = "x86-64-v4";
  const CompileRequest request = requestOf(manifest, optionsOfTest());
  EXPECT_EQ(request.target, manifest.target);
  EXPECT_EQ(request.op, manifest.op);
  EXPECT_EQ(request.fixed, manifest.fixed);
  EXPECT_EQ(request.templateName, "counting");
  EXPECT_EQ(request.config, manifest.config);
  EXPECT_EQ(request.templateDir, "/templates");
  EXPECT_EQ(request.nvrtcPath, "/nvrtc.so");
  EXPECT_EQ(request.cpuFeatures, "x86-64-v4");
}

TEST(Provenance, IsReadAsItIsWritten) {
  EXPECT_EQ(revisionOf(provenanceOf("0123")), "0123");
  EXPECT_EQ(revisionOf(provenanceOf("0123") + " driver=13000"), "0123");
  EXPECT_EQ(revisionOf(remadeProvenance(provenanceOf("0123"), "45")), "0123") << "with which it was measured";
  EXPECT_EQ(revisionOf("driver=13000"), "");
}

} // namespace
} // namespace nsa
