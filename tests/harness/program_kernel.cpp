#include "tests/harness/program_kernel.h"

#include "compiler/driver/TemplateFiles.h"
#include "runtime/base/text.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/engine/compile/compiler_library.h"
#include "runtime/engine/compile/library_place.h"
#include "tests/harness/session.h"
#include "tests/harness/template_folder.h"

#include <cstdlib>
#include <set>

namespace nsa::test {
namespace {

std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

Result<std::shared_ptr<const CompilerLibrary>> openCompiler() {
  const std::string named = variable("NSA_COMPILER");
  return CompilerLibrary::open(
      named.empty() ? LibraryPlace::of(reinterpret_cast<const void *>(&nsa_run)).find("libnsa_compiler.so") : named);
}

// The templates.
class ProgramFolder {
public:
  ProgramFolder() {
    if (const std::string named = variable("NSA_TEMPLATE_DIR"); !named.empty()) // of a mutant
      folder.copyFrom(named);
    else
      for (const TemplateFile &file : TemplateFiles::embedded().files())
        folder.write(file.path, file.text);
  }

  CompileRequest request(Device &device, const std::string &program, Operator op, const ProgramKernel::Pairs &fixed,
                         const ProgramKernel::Pairs &config) const {
    return {.target = device.target(),
            .op = std::string(operatorName(op)),
            .fixed = fixed,
            .templateName = program,
            .config = config,
            .templateDir = folder.path(),
            .nvrtcPath = variable("NSA_NVRTC"),
            .cpuFeatures = device.cpuFeatures(),
            .driverVersion = device.driverVersion()};
  }

private:
  TemplateFolder folder;
};

} // namespace

Result<std::unique_ptr<Device>> openTestDevice() {
  return isTestDeviceCuda() ? cuda::CudaDevice::open(0) : cpu::CpuDevice::open(0, variable("NSA_CPU_FEATURES"));
}

DeviceArray::DeviceArray(Device &device, const void *bytes, size_t size, size_t elementBytes,
                         std::vector<int64_t> shape)
    : device(&device), size(size), elementBytes(elementBytes), shape(std::move(shape)) {
  Result<DeviceBuffer> made = DeviceBuffer::allocate(device, size);
  EXPECT_TRUE(made) << made.status().toString();
  if (!made)
    return;
  buffer = std::move(*made);
  const Status status = size == 0 ? Status::ok() : device.upload(buffer.data(), bytes, size);
  EXPECT_TRUE(status.isOk()) << status.toString();
}

void DeviceArray::readInto(void *to) const {
  const Status status = size == 0 ? Status::ok() : device->download(to, buffer.data(), size);
  EXPECT_TRUE(status.isOk()) << status.toString();
}

std::vector<int64_t> DeviceArray::stridesOf(bool columnsToo) const {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size() - 1; axis-- > 0;)
    strides[axis] = strides[axis + 1] * shape[axis + 1];
  if (!columnsToo)
    strides.pop_back();
  return strides;
}

void DeviceArray::bind(Arguments &arguments, const std::string &name, bool columnsToo) const {
  const std::vector<int64_t> strides = stridesOf(columnsToo);
  bool isAligned = true;
  for (const int64_t stride : strides)
    isAligned &= static_cast<size_t>(stride) * elementBytes % 16 == 0;
  arguments.view(name, buffer.data(), strides, isAligned ? kViewRowsAligned16 : 0);
}

ProgramKernel::ProgramKernel(Device &device, const std::string &program, Operator op, const Pairs &fixed,
                             const Pairs &config)
    : device(device) {
  compile(program, op, fixed, config);
}

void ProgramKernel::compile(const std::string &program, Operator op, const Pairs &fixed, const Pairs &config) {
  const ProgramFolder folder;
  const auto compiler = openCompiler();
  ASSERT_TRUE(compiler) << compiler.status().toString();
  const Result<CompiledKernel> compiled = (*compiler)->compile(folder.request(device, program, op, fixed, config));
  ASSERT_TRUE(compiled) << compiled.status().toString();
  manifest = compiled->manifest;
  Result<std::unique_ptr<Kernel>> loaded = device.load(manifest, compiled->binary);
  ASSERT_TRUE(loaded) << loaded.status().toString();
  kernel = std::move(*loaded);
}

std::vector<std::string> ProgramKernel::valuesOf(Device &device, const std::string &program, Operator op,
                                                 const Pairs &fixed, const std::string &choice) {
  const ProgramFolder folder;
  std::set<std::string> values;
  const auto compiler = openCompiler();
  EXPECT_TRUE(compiler) << compiler.status().toString();
  if (!compiler)
    return {};
  const auto candidates = (*compiler)->list(folder.request(device, program, op, fixed, {}));
  EXPECT_TRUE(candidates) << candidates.status().toString();
  if (candidates)
    for (const Candidate &candidate : *candidates)
      for (std::string_view rest = candidate.config; !rest.empty();)
        if (const std::string_view word = takeWord(rest); word.starts_with(choice + "="))
          values.emplace(word.substr(choice.size() + 1));
  return {values.begin(), values.end()};
}

void ProgramKernel::run(const Arguments &arguments, const std::map<std::string, int64_t> &sizes) const {
  const Status status = launch(arguments, sizes);
  EXPECT_TRUE(status.isOk()) << status.toString();
}

Status ProgramKernel::launch(const Arguments &arguments, const std::map<std::string, int64_t> &sizes) const {
  if (!kernel)
    return Status::ok(); // the constructor has failed the test
  Slots slots;
  for (const ManifestParam &param : manifest.params) {
    const Slots *given = arguments.find(param.name);
    if (!given)
      return Status::invalid("argument", param.name, "is not given");
    slots.append(*given);
  }
  int32_t grid[3];
  for (int axis = 0; axis < 3; ++axis) {
    NSA_ASSIGN_OR_RETURN(const int64_t count, manifest.grid[axis].evaluate([&](std::string_view name, int64_t &number) {
      const auto found = sizes.find(std::string(name));
      number = found == sizes.end() ? 0 : found->second;
      return found != sizes.end();
    }));
    grid[axis] = static_cast<int32_t>(count);
  }
  NSA_ASSIGN_OR_RETURN(const DeviceBuffer workspace, DeviceBuffer::allocate(device, kernel->workspaceBytes()));
  return kernel->launch(slots.data(), grid, workspace.data(), device.ownStream());
}

} // namespace nsa::test
