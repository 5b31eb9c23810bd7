// The parts of nsa.hpp that plans and programs share: errors, tensors and the workspace. Included by nsa.hpp.
// Ownership: a Tensor borrows its data, and a HostWorkspace owns its memory.
// Thread-safety: values.
#pragma once

#include <nsa/nsa.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace nsa {
// The library's internal C++ classes have the same names as the classes of this wrapper. The inline namespace `api`
// gives the wrapper's classes other symbols, so that one program may contain the wrapper's classes and the library's
// classes.
inline namespace api {

// A failure of the library, with the parts of nsa_error_info.
class Error : public std::runtime_error {
public:
  Error() : Error(std::make_shared<const Parts>()) {} // the last failure of the calling thread

  nsa_status code() const { return parts->code; }
  const char *field() const { return parts->field.c_str(); }
  const char *value() const { return parts->value.c_str(); }
  const char *rule() const { return parts->rule.c_str(); }
  const char *hint() const { return parts->hint.c_str(); }

private:
  struct Parts {
    Parts() {
      nsa_error_info info = NSA_INIT(nsa_error_info);
      nsa_error_get_info(&info, nullptr);
      code = info.code;
      field = info.field, value = info.value, rule = info.rule, message = info.message, hint = info.hint;
    }
    nsa_status code;
    std::string field, value, rule, message, hint;
  };
  explicit Error(std::shared_ptr<const Parts> read)
      : std::runtime_error(read->message + (read->hint.empty() ? "" : " (hint: " + read->hint + ")")),
        parts(std::move(read)) {}
  std::shared_ptr<const Parts> parts;
};

namespace detail {

inline void check(nsa_status status) {
  if (status != NSA_OK)
    throw Error();
}

struct Free {
  void operator()(char *text) const { nsa_free(text); }
};

template <typename Call> std::string takeText(Call call) {
  char *text = nullptr;
  check(call(&text));
  std::unique_ptr<char, Free> owner(text);
  return text;
}

// Takes a list of whatever length: fill(entries, capacity, &count).
template <typename Entry, typename Fill> std::vector<Entry> takeList(Fill fill) {
  std::vector<Entry> entries(16);
  for (std::size_t count = 0;; entries.resize(count)) {
    check(fill(entries.data(), entries.size(), &count));
    if (count <= entries.size()) {
      entries.resize(count);
      return entries;
    }
  }
}

} // namespace detail

// Dimensions or strides of a tensor, in elements: {1, tokens, heads, dim}, or a std::vector, std::array or std::span of
// std::int64_t. An Extents stores at most five values. An Extents also stores how many values its constructor received,
// so that the constructor of nsa::Tensor can throw std::invalid_argument if there were more than five.
class Extents {
public:
  static constexpr std::size_t kMost = 5;

  Extents() = default;
  Extents(std::initializer_list<std::int64_t> values) : Extents(values.begin(), values.size()) {}
  Extents(const std::int64_t *values, std::size_t rank) : count(rank) {
    for (std::size_t axis = 0; axis < rank && axis < kMost; ++axis)
      extents[axis] = values[axis];
  }
  template <typename Container, typename = std::enable_if_t<std::is_convertible_v<
                                    decltype(std::declval<const Container &>().data()), const std::int64_t *>>>
  Extents(const Container &values) : Extents(values.data(), values.size()) {}

  std::size_t size() const { return count; }
  const std::int64_t *data() const { return extents; }
  std::int64_t operator[](std::size_t axis) const { return extents[axis]; }

private:
  std::int64_t extents[kMost] = {};
  std::size_t count = 0;
};

// A tensor that borrows its data (nsa_tensor). Strides that are left out mean row-major. Every call refuses an empty
// tensor.
class Tensor {
public:
  Tensor() = default;
  Tensor(const void *data, nsa_dtype dtype, Extents shape, Extents strides = {}) {
    if (shape.size() < 1 || shape.size() > Extents::kMost || (strides.size() != 0 && strides.size() != shape.size()))
      throw std::invalid_argument("nsa::Tensor: shape has " + std::to_string(shape.size()) +
                                  " dimensions and strides has " + std::to_string(strides.size()) +
                                  ": a tensor has 1 to 5, and as many strides or none");
    // Inputs are only read; the C struct has one pointer for both.
    nsa_tensor_rows(&tensor, const_cast<void *>(data), dtype, static_cast<std::int32_t>(shape.size()), shape.data());
    for (std::size_t axis = 0; axis < strides.size(); ++axis)
      tensor.strides[axis] = strides[axis];
  }
  Tensor(const float *data, Extents shape, Extents strides = {}) : Tensor(data, NSA_FP32, shape, strides) {}
  Tensor(const std::int32_t *data, Extents shape, Extents strides = {}) : Tensor(data, NSA_INT32, shape, strides) {}
  // Makes a tensor over a std::vector, std::array or std::span of float or std::int32_t, which must hold all elements
  // of the shape.
  template <typename Container, typename = decltype(std::declval<const Container &>().data())>
  Tensor(const Container &elements, Extents shape) : Tensor(elements.data(), shape) {
    std::int64_t wanted = 1;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      wanted *= shape[axis];
    if (static_cast<std::int64_t>(elements.size()) < wanted)
      throw std::invalid_argument("nsa::Tensor: the container has " + std::to_string(elements.size()) +
                                  " elements: the shape needs " + std::to_string(wanted));
  }

  // `dlTensor` points to a DLTensor (DLPack 1.x), which the caller keeps.
  static Tensor fromDlpack(const void *dlTensor) {
    Tensor result;
    detail::check(nsa_tensor_from_dlpack(dlTensor, &result.tensor, nullptr));
    return result;
  }
  // Fills a DLTensor that borrows this object's data, shape and strides. device: "cpu" or "cuda:N".
  void toDlpack(const char *device, void *dlTensor) {
    detail::check(nsa_tensor_to_dlpack(&tensor, device, dlTensor, nullptr));
  }

  // Returns this tensor with nsa_tensor's field `accumulate` set: a call adds the gradient to what the tensor holds.
  Tensor accumulated() const {
    Tensor result = *this;
    result.tensor.accumulate = 1;
    return result;
  }

  const nsa_tensor &c() const { return tensor; }

private:
  nsa_tensor tensor = NSA_INIT(nsa_tensor);
};

// A buffer in host memory with the alignment that nsa_run needs, for plans of a CPU engine.
class HostWorkspace {
public:
  HostWorkspace() = default;
  explicit HostWorkspace(std::size_t wanted) : bytes(wanted) {
    if (wanted != 0)
      memory.reset(static_cast<std::byte *>(::operator new(wanted, std::align_val_t(kAlignment))));
  }
  void *data() const { return memory.get(); }
  std::size_t size() const { return bytes; }

private:
  static constexpr std::size_t kAlignment = 256;
  struct Delete {
    void operator()(std::byte *pointer) const { ::operator delete(pointer, std::align_val_t(kAlignment)); }
  };
  std::size_t bytes = 0;
  std::unique_ptr<std::byte, Delete> memory;
};

} // namespace api
} // namespace nsa
