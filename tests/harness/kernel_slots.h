// The arguments of a kernel that a test launches by itself.
// Thread-safety: none needed, one test uses one object.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace nsa::test {

// The slot block of a launch, in the order of the program's arguments.
class Slots {
public:
  // `flags` are of ManifestParam (runtime/base/manifest.h).
  Slots &view(const void *data, const std::vector<int64_t> &strides, uint64_t flags = 0) {
    words.push_back(reinterpret_cast<uint64_t>(data));
    for (int64_t stride : strides)
      words.push_back(uint64_t(stride));
    words.push_back(flags);
    return *this;
  }
  Slots &pagedView(const void *data, const std::vector<int64_t> &strides, const int32_t *table, int64_t tableStride) {
    view(data, strides);
    words.push_back(reinterpret_cast<uint64_t>(table));
    words.push_back(uint64_t(tableStride));
    return *this;
  }
  Slots &i32(int32_t value) {
    words.push_back(uint32_t(value));
    return *this;
  }
  Slots &f32(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    words.push_back(bits);
    return *this;
  }
  Slots &append(const Slots &more) {
    words.insert(words.end(), more.words.begin(), more.words.end());
    return *this;
  }
  const uint64_t *data() const { return words.data(); }

private:
  std::vector<uint64_t> words;
};

// What a launch gives a kernel, by the names that its program declares.
class Arguments {
public:
  Arguments &view(const std::string &name, const void *data, const std::vector<int64_t> &strides, uint64_t flags = 0) {
    return set(name, Slots().view(data, strides, flags));
  }
  Arguments &pagedView(const std::string &name, const void *data, const std::vector<int64_t> &strides,
                       const int32_t *table, int64_t tableStride) {
    return set(name, Slots().pagedView(data, strides, table, tableStride));
  }
  Arguments &i32(const std::string &name, int32_t value) { return set(name, Slots().i32(value)); }
  Arguments &f32(const std::string &name, float value) { return set(name, Slots().f32(value)); }

  // Nullptr: nothing has this name.
  const Slots *find(const std::string &name) const {
    const auto found = given.find(name);
    return found == given.end() ? nullptr : &found->second;
  }

private:
  Arguments &set(const std::string &name, Slots slots) {
    given.insert_or_assign(name, std::move(slots));
    return *this;
  }

  std::map<std::string, Slots> given;
};

} // namespace nsa::test
