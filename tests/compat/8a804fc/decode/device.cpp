#include "device.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

namespace example {
namespace {

constexpr std::size_t kAlignment = 256;

class CpuDevice final : public Device {
public:
  void *stream() const override { return nullptr; }
  void upload(void *to, const void *from, std::size_t bytes) override { copy(to, from, bytes); }
  void download(void *to, const void *from, std::size_t bytes) override { copy(to, from, bytes); }
  void fill(void *to, unsigned char value, std::size_t bytes) override {
    if (bytes != 0)
      std::memset(to, value, bytes);
  }
  std::function<void()> repeatable(std::function<void()> enqueue) override { return enqueue; }

private:
  static void copy(void *to, const void *from, std::size_t bytes) {
    if (bytes != 0)
      std::memcpy(to, from, bytes);
  }
  void *allocate(std::size_t bytes) override { return ::operator new(bytes, std::align_val_t(kAlignment)); }
  void release(void *memory) override { ::operator delete(memory, std::align_val_t(kAlignment)); }
};

} // namespace

Buffer::Buffer(Device &device, std::size_t bytes)
    : device(&device), memory(device.allocate(bytes != 0 ? bytes : 1)), bytes(bytes) {}

Buffer::~Buffer() {
  if (memory != nullptr)
    device->release(memory);
}

std::unique_ptr<Device> Device::open(const std::string &name) {
  if (name == "cpu")
    return std::make_unique<CpuDevice>();
  const std::string prefix = "cuda:";
  const std::string ordinal = name.compare(0, prefix.size(), prefix) == 0 ? name.substr(prefix.size()) : "";
  if (ordinal.empty() || ordinal.size() > 3 || ordinal.find_first_not_of("0123456789") != std::string::npos)
    throw std::runtime_error("device = " + name + ": must be cpu or cuda:N");
  return openCudaDevice(static_cast<int>(std::strtol(ordinal.c_str(), nullptr, 10)));
}

} // namespace example
