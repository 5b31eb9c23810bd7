// The database's promise: a fresh process with the driver's own cache off and no compiler library runs a stored
// kernel, and maps neither compiler nor NVRTC.
#include "tests/harness/scratch.h"
#include "tests/harness/session.h"

#include <cstdlib>
#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

namespace nsa::test {
namespace {

class GpuWarmProcess : public AttentionTest {
protected:
  // The probe stands beside this executable, in the build tree and in the bundle.
  nlohmann::json probe(const std::string &arguments) {
    const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
    const std::string report = scratch.file("report.json");
    const std::string command = "CUDA_CACHE_DISABLE=1 '" + (own.parent_path() / "nsa_warm_probe").string() +
                                "' cuda:0 '" + scratch.file("kernels.db") + "' " + arguments + " >'" + report + "'";
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command;
    return nlohmann::json::parse(readFile(report), nullptr, false);
  }

  Scratch scratch;
};

TEST_F(GpuWarmProcess, AStoredKernelNeedsNoCompiler) {
  const nlohmann::json cold = probe("default");
  ASSERT_TRUE(cold.is_object());
  EXPECT_EQ(cold.value("source", ""), "compiled");
  EXPECT_TRUE(cold.value("right", false));
  EXPECT_TRUE(cold.value("compiler_mapped", false)) << "the check of the maps sees nothing";

  const nlohmann::json warm = probe("fail absent.so");
  ASSERT_TRUE(warm.is_object());
  EXPECT_EQ(warm.value("source", ""), "database");
  EXPECT_TRUE(warm.value("right", false));
  EXPECT_FALSE(warm.value("compiler_mapped", true));
  EXPECT_FALSE(warm.value("nvrtc_mapped", true));
  EXPECT_FALSE(warm.value("llvm_mapped", true));
}

} // namespace
} // namespace nsa::test
