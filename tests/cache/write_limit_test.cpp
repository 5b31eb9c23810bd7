// How often work on a file holds back the signal of the limit of file sizes: never where nothing is written, and once
// for a transaction, however many rows it has.
#include "cache/pack.h"
#include "tests/cache/pack_fixture.h"

#include <csignal>
#include <sys/syscall.h>
#include <unistd.h>

namespace {
int maskChanges = 0;
} // namespace

// In the place of libc's, for all of this program.
extern "C" int pthread_sigmask(int how, const sigset_t *set, sigset_t *before) noexcept {
  maskChanges += set != nullptr;
  constexpr size_t kKernelSetBytes = 8;
  return syscall(SYS_rt_sigprocmask, how, set, before, kKernelSetBytes) == 0 ? 0 : errno;
}

namespace nsa {
namespace {

constexpr int kOneHold = 2; // to block, and to restore

class WriteLimitTest : public PackTest {
protected:
  template <typename Body> static int changesOf(Body body) {
    maskChanges = 0;
    body();
    return maskChanges;
  }
};

TEST_F(WriteLimitTest, APackIsOpenedAndReadWithoutAHold) {
  const std::string shipped = NSA_SHIPPED_PACKS "/nvidia-h200.nsapack";
  Result<CacheFile> list = CacheFile::open(shipped, CacheFile::Check::kNothing);
  ASSERT_TRUE(list) << list.status().toString();
  const Result<std::vector<KernelSummary>> kernels = list->kernels();
  ASSERT_TRUE(kernels) << kernels.status().toString();
  ASSERT_GT(kernels->size(), 10u);
  EXPECT_EQ(changesOf([&] {
              Result<std::unique_ptr<Pack>> pack = Pack::open(shipped, {});
              ASSERT_TRUE(pack) << pack.status().toString();
              for (const KernelSummary &kernel : *kernels)
                EXPECT_TRUE((*pack)->findKernel(kernel.content)) << kernel.content;
            }),
            0);
}

TEST_F(WriteLimitTest, ATransactionAndAListAreOneHoldEach) {
  std::unique_ptr<KernelStore> store = openStore();
  for (int n = 1; n <= 3; ++n) {
    const StoredKernel kernel = makeKernel(n);
    const StoredChoice choice = makeChoice(n, true);
    EXPECT_EQ(changesOf([&] { EXPECT_TRUE(store->put(kernel, &choice).isOk()); }), kOneHold) << n;
    EXPECT_EQ(changesOf([&] { EXPECT_EQ(store->listKernels()->size(), static_cast<size_t>(n)); }), kOneHold);
  }
}

} // namespace
} // namespace nsa
