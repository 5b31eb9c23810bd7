// Hand-assembled CPU kernels in a store: so the whole way from a database to a finished run is tested without a
// compiler, and what a kernel received can be seen.
#pragma once

#include "cache/kernel_store.h"
#include "runtime/base/cpu_features.h"
#include "runtime/engine/graph/pipeline.h"
#include "runtime/include/nsa/nsa.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace nsa::test {

inline std::vector<std::byte> codeOf(std::initializer_list<int> bytes) {
  std::vector<std::byte> code;
  for (int byte : bytes)
    code.push_back(static_cast<std::byte>(byte));
  return code;
}

// Raises the 64-bit word that slot 0 points to, once for each program:
//   mov rax, [rdi] ; lock inc qword [rax] ; ret
inline std::vector<std::byte> countingCode() { return codeOf({0x48, 0x8b, 0x07, 0xf0, 0x48, 0xff, 0x00, 0xc3}); }

// Copies `count` slots to where slot 0 points to:
//   mov rsi, rdi ; mov rdi, [rdi] ; mov ecx, count ; rep movsq ; ret
inline std::vector<std::byte> copyingCode(int count) {
  return codeOf({0x48, 0x89, 0xfe, 0x48, 0x8b, 0x3f, 0xb9, count, 0, 0, 0, 0xf3, 0x48, 0xa5, 0xc3});
}

inline std::string cpuDeviceKey() { return "cpu " + std::string(hostCpuFeatures()); }

struct KernelText {
  std::string templateName = "counting";
  std::string params = "param view out bf16 3\n";
  std::string grid = "ceildiv(max_seqlen_q * group, 16) ; kv_heads ; batch";
  std::string target = "cpu";
  std::string dtype = "bf16";
  int scratchBytes = 0;
  std::string config = "tile=16";
};

inline std::string manifestOf(const KernelText &text, const Spec &spec) {
  return "manifest 1\nentry +0\ntemplate " + text.templateName + "\noperator " + std::string(operatorName(spec.op)) +
         "\ntarget " + text.target + "\nfixed dtype=" + text.dtype + "\nconfig " + text.config + "\nrevision 0\n" +
         text.params + "grid " + text.grid + "\nthreads 1\nscratch " + std::to_string(text.scratchBytes) + "\n";
}

inline void storeChoice(KernelStore &store, const Spec &spec, const Maxima &maxima, const KernelText &text,
                        std::vector<std::byte> code, const std::string &device = cpuDeviceKey()) {
  StoredKernel kernel{"content-of-" + text.templateName, manifestOf(text, spec), std::move(code)};
  StoredChoice choice;
  choice.problem = Problem::make(spec, maxima).key();
  choice.device = device;
  choice.content = kernel.content;
  choice.tuned = true;
  Status status = store.put(kernel, &choice);
  ASSERT_TRUE(status.isOk()) << status.toString();
}

// A kernel for a step that returns at once.
inline void storeReturning(KernelStore &store, const Step &step, const std::string &target,
                           const std::string &device = cpuDeviceKey()) {
  storeChoice(store, step.spec, step.maxima,
              {.templateName = "returning_" + std::string(operatorName(step.spec.op)),
               .params = "param view sequences int32 2\n",
               .grid = "batch ; 1 ; 1",
               .target = target,
               .dtype = Problem::make(step.spec, step.maxima).fixed().at("dtype")},
              codeOf({0xc3}), device);
}

// Stores the kernel as the choice for spec and maxima on this machine's CPU; where lengths are in device memory also
// one for `sequences`, which returns at once: what the kernel receives is not what it says.
inline void storeKernel(const std::string &path, const Spec &spec, const Maxima &maxima, const KernelText &text,
                        std::vector<std::byte> code) {
  std::string warning;
  Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = path, .readOnly = false}, warning);
  ASSERT_TRUE(store.isOk()) << store.status().toString();
  storeChoice(**store, spec, maxima, text, std::move(code));
  for (const Step &step : stepsOf(spec, maxima))
    if (step.role == Role::kSequences)
      storeReturning(**store, step, text.target);
}

// One for each step of an operator that takes several, all of which return at once.
inline void storeReturningKernels(const std::string &path, const Spec &spec, const Maxima &maxima) {
  std::string warning;
  Result<std::unique_ptr<KernelStore>> store = KernelStore::open({.path = path, .readOnly = false}, warning);
  ASSERT_TRUE(store.isOk()) << store.status().toString();
  for (const Step &step : stepsOf(spec, maxima))
    storeReturning(**store, step, "cpu");
}

// For an engine that runs what is stored and makes nothing. Borrows both texts.
inline nsa_engine_options storedKernelOptions(const char *device, const std::string &cache) {
  nsa_engine_options options = NSA_INIT(nsa_engine_options);
  options.device = device;
  options.cache_path = cache.c_str();
  options.miss_policy = NSA_MISS_FAIL;
  options.cpu_threads = 2;
  return options;
}

} // namespace nsa::test
