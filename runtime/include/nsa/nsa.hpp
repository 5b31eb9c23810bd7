// NSA Runtime for C++17: the C ABI (nsa/nsa.h) with RAII and exceptions. This wrapper is header-only. Nothing of C++
// crosses the library's boundary, so the host may use any compiler and standard library, nvcc included.
//
//   nsa::Engine engine;                                             // cuda:0, else the CPU
//   nsa::Spec spec;
//   spec.op = NSA_OP_WINDOW; spec.dtype = NSA_BF16; spec.query_heads = 64; spec.kv_heads = 4;
//   spec.qk_dim = spec.v_dim = 128; spec.window = 512;
//   nsa::Plan plan = engine.plan(spec, {/*batch*/ 1, /*seqlenQ*/ 4096, /*seqlenK*/ 4096});
//   plan.run({{NSA_Q, q}, {NSA_K, k}, {NSA_V, v}, {NSA_OUT, out}}, workspace, workspaceBytes, stream);
//
// Ownership: an Engine and its Plans may be destroyed in any order.
// Thread-safety: the classes have the same rules as the handles of nsa.h.
#pragma once

#include <nsa/nsa.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
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
  explicit Error(std::shared_ptr<const Parts> parts)
      : std::runtime_error(parts->message + (parts->hint.empty() ? "" : " (hint: " + parts->hint + ")")),
        parts(std::move(parts)) {}
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

// What is computed: an nsa_spec that begins with the defaults of nsa_spec_init and the operator `window`.
struct Spec : nsa_spec {
  Spec() : nsa_spec() {
    nsa_spec_init(this);
    op = NSA_OP_WINDOW;
  }
  // The fields that this header knows. The library may have more of them, or fewer.
  explicit Spec(const nsa_spec &spec) : nsa_spec() {
    std::memcpy(static_cast<nsa_spec *>(this), &spec, std::min(spec.size, sizeof(nsa_spec)));
    if (size != 0) // else the library refuses the spec
      size = sizeof(nsa_spec);
  }
};

// Bounds that a plan is made for (nsa_maxima).
struct Maxima {
  std::int64_t batch = 1;
  std::int64_t seqlenQ = 0;
  std::int64_t seqlenK = 0;
  std::int64_t tokensQ = 0; // 0: batch * seqlenQ

  static Maxima of(const nsa_maxima &maxima) {
    return {maxima.max_batch, maxima.max_seqlen_q, maxima.max_seqlen_k, maxima.max_tokens_q};
  }
  nsa_maxima c() const {
    nsa_maxima maxima = NSA_INIT(nsa_maxima);
    maxima.max_batch = batch;
    maxima.max_tokens_q = tokensQ;
    maxima.max_seqlen_q = seqlenQ;
    maxima.max_seqlen_k = seqlenK;
    return maxima;
  }
};

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

  const nsa_tensor &c() const { return tensor; }

private:
  nsa_tensor tensor = NSA_INIT(nsa_tensor);
};

// Options of the conversions between block lists and token ranges (nsa_range_options).
struct RangeOptions {
  std::int32_t selBlock = 64;
  bool merge = false;
  std::int64_t seqlenK = 0;
  const Tensor *cuSeqlensQ = nullptr, *cuSeqlensK = nullptr;

  nsa_range_options c() const {
    nsa_range_options options = NSA_INIT(nsa_range_options);
    options.sel_block = selBlock;
    options.merge = merge ? 1 : 0;
    options.seqlen_k = seqlenK;
    options.cu_seqlens_q = cuSeqlensQ ? &cuSeqlensQ->c() : nullptr;
    options.cu_seqlens_k = cuSeqlensK ? &cuSeqlensK->c() : nullptr;
    return options;
  }
};

// Convert block lists to token ranges, and token ranges to block lists (nsa.h). rangesFromBlockList and
// blockListFromRanges write the result to their second parameter. All tensors must be in host memory.
inline void rangesFromBlockList(const Tensor &blockList, const Tensor &ranges, const RangeOptions &options) {
  const nsa_range_options cOptions = options.c();
  detail::check(nsa_ranges_from_block_list(&blockList.c(), &cOptions, &ranges.c(), nullptr));
}
inline void blockListFromRanges(const Tensor &ranges, const Tensor &blockList, const RangeOptions &options) {
  const nsa_range_options cOptions = options.c();
  detail::check(nsa_block_list_from_ranges(&ranges.c(), &cOptions, &blockList.c(), nullptr));
}

struct Binding {
  nsa_name name;
  const Tensor &tensor;
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

class Plan {
public:
  Plan() = default; // an empty plan: `handle` is null, `describe` gives "", every other call throws
  nsa_plan *handle() const { return plan.get(); } // this object keeps the handle; null for an empty plan

  std::size_t workspaceSize() const {
    std::size_t bytes = 0;
    detail::check(nsa_plan_workspace_size(plan.get(), &bytes, nullptr));
    return bytes;
  }

  // Enqueues the operator on `stream`. On the CPU `run` returns when the result is there.
  void run(std::initializer_list<Binding> bindings, void *workspace, std::size_t workspaceBytes,
           void *stream = nullptr) const {
    run(bindings.begin(), bindings.size(), workspace, workspaceBytes, stream);
  }
  void run(const Binding *bindings, std::size_t bindingCount, void *workspace, std::size_t workspaceBytes,
           void *stream = nullptr) const {
    nsa_binding converted[NSA_NAMES];
    const std::size_t count = convert(bindings, bindingCount, converted);
    detail::check(nsa_run(plan.get(), converted, count, workspace, workspaceBytes, stream, nullptr));
  }

  // Runs, waits, and returns where the time of the run went (nsa_run_timed).
  std::vector<nsa_part_time> runTimed(const Binding *bindings, std::size_t bindingCount, void *workspace,
                                      std::size_t workspaceBytes, void *stream = nullptr) const {
    nsa_binding converted[NSA_NAMES];
    const std::size_t given = convert(bindings, bindingCount, converted);
    std::vector<nsa_part_time> times(kMostParts);
    std::size_t count = 0;
    detail::check(nsa_run_timed(plan.get(), converted, given, workspace, workspaceBytes, stream, times.data(),
                                times.size(), &count, nullptr));
    times.resize(count);
    return times;
  }

  // Waits for `stream`, and throws an Error if a kernel found invalid sequence lengths, block lists or page numbers.
  void checkStatus(void *stream = nullptr) { detail::check(nsa_plan_status(plan.get(), stream, nullptr)); }

  // Returns the facts of the plan that programs read.
  nsa_plan_info info() const {
    nsa_plan_info info = NSA_INIT(nsa_plan_info);
    detail::check(nsa_plan_get_info(plan.get(), &info, nullptr));
    return info;
  }

  std::vector<nsa_launch> launches() const {
    return detail::takeList<nsa_launch>([&](nsa_launch *launches, std::size_t capacity, std::size_t *count) {
      return nsa_plan_launches(plan.get(), launches, capacity, count, nullptr);
    });
  }

  // Returns the JSON of nsa_plan_describe.
  std::string describe() const { return nsa_plan_describe(plan.get()); }

  // Returns the JSON of nsa_plan_compare_report. The plan must be one with the option `compare`.
  std::string compareReport() const {
    return detail::takeText([&](char **text) { return nsa_plan_compare_report(plan.get(), text, nullptr); });
  }

  std::vector<nsa_comparison> comparisons() const {
    return detail::takeList<nsa_comparison>([&](nsa_comparison *comparisons, std::size_t capacity, std::size_t *count) {
      return nsa_plan_comparisons(plan.get(), comparisons, capacity, count, nullptr);
    });
  }

private:
  friend class EngineView;
  static constexpr std::size_t kMostParts = 16;
  static std::size_t convert(const Binding *bindings, std::size_t count, nsa_binding (&converted)[NSA_NAMES]) {
    if (count > NSA_NAMES)
      throw std::invalid_argument("nsa::Plan: more bindings than there are names");
    for (std::size_t i = 0; i < count; ++i)
      converted[i] = {bindings[i].name, &bindings[i].tensor.c()};
    return count;
  }
  struct Destroy {
    void operator()(nsa_plan *handle) const { nsa_plan_destroy(handle); }
  };
  explicit Plan(nsa_plan *made) : plan(made) {}
  std::unique_ptr<nsa_plan, Destroy> plan;
};

// Gives access to an engine that another object owns. Copying an EngineView is cheap, and no EngineView keeps the
// engine alive.
class EngineView {
public:
  explicit EngineView(nsa_engine *handle) : engine(handle) {}
  nsa_engine *handle() const { return engine; } // null in an `Engine` that was moved away

  Plan plan(const Spec &spec, const Maxima &maxima, void *stream = nullptr) const {
    return plan(spec, maxima, NSA_INIT(nsa_plan_options), stream);
  }
  Plan plan(const Spec &spec, const Maxima &maxima, const nsa_plan_options &options, void *stream = nullptr) const {
    const nsa_maxima cMaxima = maxima.c();
    nsa_plan *made = nullptr;
    detail::check(nsa_plan_create_with(engine, &spec, &cMaxima, &options, stream, &made, nullptr));
    return Plan(made);
  }

  // Returns the JSON text of nsa_explain.
  std::string explain(const Spec &spec, const Maxima &maxima) const {
    const nsa_maxima cMaxima = maxima.c();
    return detail::takeText([&](char **text) { return nsa_explain(engine, &spec, &cMaxima, text, nullptr); });
  }
  std::vector<nsa_choice> choices(const Spec &spec, const Maxima &maxima) const {
    const nsa_maxima cMaxima = maxima.c();
    return detail::takeList<nsa_choice>([&](nsa_choice *choices, std::size_t capacity, std::size_t *count) {
      return nsa_explain_choices(engine, &spec, &cMaxima, choices, capacity, count, nullptr);
    });
  }
  // Tunes the kernels of a spec, and returns the JSON report. See nsa_tune_spec. `counts` may be null.
  std::string tune(const Spec &spec, const Maxima &maxima, const nsa_tune_options &options = NSA_INIT(nsa_tune_options),
                   nsa_tune_counts *counts = nullptr) const {
    const nsa_maxima cMaxima = maxima.c();
    return detail::takeText(
        [&](char **text) { return nsa_tune_spec(engine, &spec, &cMaxima, &options, counts, text, nullptr); });
  }
  // Tunes a workload, and returns the JSON report. See nsa_tune_workload. `counts` may be null.
  std::string tuneWorkload(const std::string &workload, const nsa_tune_options &options = NSA_INIT(nsa_tune_options),
                           nsa_tune_counts *counts = nullptr) const {
    return detail::takeText(
        [&](char **text) { return nsa_tune_workload(engine, workload.c_str(), &options, counts, text, nullptr); });
  }
  std::string describe() const {
    return detail::takeText([&](char **text) { return nsa_engine_describe(engine, text, nullptr); });
  }

  nsa_device_info device() const {
    nsa_device_info info = NSA_INIT(nsa_device_info);
    detail::check(nsa_engine_get_device(engine, &info, nullptr));
    return info;
  }

  nsa_stats stats() const {
    nsa_stats stats = NSA_INIT(nsa_stats);
    detail::check(nsa_engine_get_stats(engine, &stats, nullptr));
    return stats;
  }

protected:
  nsa_engine *engine;
};

class Engine : public EngineView {
public:
  // A function that the engine calls when a better plan can be had. nsa_tuned_callback says on which thread the
  // function is called, and what it may do. A function of type Tuned should make plans with the EngineView that it
  // receives as an argument. A function of type Tuned must not use the host's Engine object while another thread moves,
  // assigns or destroys this object. An exception that leaves a function of type Tuned ends the process.
  using Tuned = std::function<void(EngineView engine, const Spec &spec, const Maxima &maxima)>;

  // Opens an engine. `options` begin with NSA_INIT(nsa_engine_options). A field of the options that stays zero takes
  // its default.
  explicit Engine(const nsa_engine_options &options = NSA_INIT(nsa_engine_options)) : EngineView(open(options)) {}
  // Opens an engine. If the function `tuned` is not empty, it replaces options.tuned and options.tuned_user. The Engine
  // stores `tuned` until the Engine is destroyed.
  Engine(nsa_engine_options options, Tuned tuned) : EngineView(nullptr) {
    if (tuned) {
      told = std::make_shared<Told>();
      told->tuned = std::move(tuned);
      options.tuned_user = told.get();
      options.tuned = [](void *user, nsa_engine *caller, const nsa_spec *spec, const nsa_maxima *maxima) noexcept {
        // If the host's function destroys its Engine, which is forbidden, `kept` keeps the function alive until it
        // returns.
        const std::shared_ptr<Told> kept = static_cast<Told *>(user)->shared_from_this();
        kept->tuned(EngineView(caller), Spec(*spec), Maxima::of(*maxima));
      };
    }
    engine = open(options);
  }
  Engine(Engine &&other) noexcept : EngineView(std::exchange(other.engine, nullptr)), told(std::move(other.told)) {}
  Engine &operator=(Engine &&other) noexcept {
    Engine moved(std::move(other));
    std::swap(engine, moved.engine);
    std::swap(told, moved.told);
    return *this;
  }
  ~Engine() { nsa_engine_destroy(engine); } // waits for `told`

private:
  struct Told : std::enable_shared_from_this<Told> {
    Tuned tuned;
  };

  static nsa_engine *open(const nsa_engine_options &options) {
    nsa_engine *made = nullptr;
    detail::check(nsa_engine_create(&options, &made, nullptr));
    return made;
  }
  std::shared_ptr<Told> told; // which the engine may call until it is destroyed
};

} // namespace api
} // namespace nsa
