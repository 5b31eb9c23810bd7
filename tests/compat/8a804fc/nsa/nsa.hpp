// NSA Runtime for C++17: the C ABI (nsa/nsa.h) with RAII and exceptions. Header-only: nothing of C++ crosses the
// library's boundary, so the host may use any compiler and standard library, nvcc included.
//
//   nsa::Engine engine;                                             // cuda:0, else the CPU
//   nsa::Spec spec;
//   spec.op = NSA_OP_WINDOW; spec.dtype = NSA_BF16; spec.queryHeads = 64; spec.kvHeads = 4;
//   spec.qkDim = spec.vDim = 128; spec.window = 512;
//   nsa::Plan plan = engine.plan(spec, {/*batch*/ 1, /*seqlenQ*/ 4096, /*seqlenK*/ 4096});
//   plan.run({{NSA_Q, q}, {NSA_K, k}, {NSA_V, v}, {NSA_OUT, out}}, workspace, workspaceBytes, stream);
//
// Ownership: an Engine and its Plans may be destroyed in any order. Thread-safety: as nsa.h says of the handles.
#pragma once

#include <nsa/nsa.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace nsa {
// The library's own C++ classes have the same names; a host that is built with them must not mix the two up.
inline namespace api {

// What the library refused, with the C struct's parts.
class Error : public std::runtime_error {
public:
  explicit Error(const nsa_error &error) : std::runtime_error(compose(error)), parts(error) {}

  nsa_status code() const { return parts.code; }
  const char *field() const { return parts.field; }
  const char *value() const { return parts.value; }
  const char *rule() const { return parts.rule; }
  const char *hint() const { return parts.hint; }

private:
  static std::string compose(const nsa_error &error) {
    std::string text = error.message;
    if (error.hint[0] != '\0')
      text.append(" (hint: ").append(error.hint).append(")");
    return text;
  }
  nsa_error parts;
};

namespace detail {

template <typename Call> void check(Call call) {
  nsa_error error;
  if (call(&error) != NSA_OK)
    throw Error(error);
}

struct Free {
  void operator()(char *text) const { nsa_free(text); }
};

template <typename Call> std::string takeText(Call call) {
  char *text = nullptr;
  check([&](nsa_error *error) { return call(&text, error); });
  std::unique_ptr<char, Free> owner(text);
  return text;
}

} // namespace detail

// What is computed (nsa_spec).
struct Spec {
  nsa_op op = NSA_OP_WINDOW;
  nsa_dtype dtype = NSA_BF16;
  nsa_layout layout = NSA_LAYOUT_DENSE;
  std::int32_t queryHeads = 0;
  std::int32_t kvHeads = 0;
  std::int32_t qkDim = 0;
  std::int32_t vDim = 0;
  std::int32_t window = 512;
  float scale = 0;
  std::int32_t cmpBlock = 32;
  std::int32_t cmpStride = 16;
  nsa_cmp_kind cmpKind = NSA_CMP_MEAN;
  std::int32_t mlpHidden = 0;
  nsa_activation mlpActivation = NSA_RELU;
  std::int32_t selBlock = 64;
  std::int32_t selCount = 16;
  std::int32_t initBlocks = 1;
  std::int32_t localBlocks = 2;
  nsa_gate gate = NSA_GATE_VALUE;
  bool gatePerGroup = false;
  std::int32_t branches = NSA_BRANCHES_ALL;
  std::int32_t pageSize = 0;

  nsa_spec c() const {
    nsa_spec spec = NSA_INIT(nsa_spec);
    spec.op = op;
    spec.dtype = dtype;
    spec.layout = layout;
    spec.query_heads = queryHeads;
    spec.kv_heads = kvHeads;
    spec.qk_dim = qkDim;
    spec.v_dim = vDim;
    spec.window = window;
    spec.scale = scale;
    spec.cmp_block = cmpBlock;
    spec.cmp_stride = cmpStride;
    spec.cmp_kind = cmpKind;
    spec.mlp_hidden = mlpHidden;
    spec.mlp_activation = mlpActivation;
    spec.sel_block = selBlock;
    spec.sel_count = selCount;
    spec.init_blocks = initBlocks;
    spec.local_blocks = localBlocks;
    spec.gate = gate;
    spec.gate_per_group = gatePerGroup ? 1 : 0;
    spec.branches = branches;
    spec.page_size = pageSize;
    return spec;
  }
};

// Bounds that a plan is made for (nsa_maxima).
struct Maxima {
  std::int64_t batch = 1;
  std::int64_t seqlenQ = 0;
  std::int64_t seqlenK = 0;
  std::int64_t tokensQ = 0; // 0: batch * seqlenQ

  nsa_maxima c() const {
    nsa_maxima maxima = NSA_INIT(nsa_maxima);
    maxima.max_batch = batch;
    maxima.max_tokens_q = tokensQ;
    maxima.max_seqlen_q = seqlenQ;
    maxima.max_seqlen_k = seqlenK;
    return maxima;
  }
};

// A tensor that borrows its data (nsa_tensor). Strides left out mean row-major.
class Tensor {
public:
  Tensor(const void *data, nsa_dtype dtype, std::initializer_list<std::int64_t> shape,
         std::initializer_list<std::int64_t> strides = {}) {
    if (shape.size() < 1 || shape.size() > 5 || (strides.size() != 0 && strides.size() != shape.size()))
      throw std::invalid_argument("nsa::Tensor: needs 1 to 5 dimensions, and as many strides or none");
    tensor.data = const_cast<void *>(data); // inputs are only read; the C struct has one pointer for both
    tensor.dtype = dtype;
    tensor.rank = static_cast<std::int32_t>(shape.size());
    std::int64_t rowMajor = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      tensor.shape[axis] = shape.begin()[axis];
      tensor.strides[axis] = strides.size() != 0 ? strides.begin()[axis] : rowMajor;
      rowMajor *= tensor.shape[axis];
    }
  }
  Tensor(const float *data, std::initializer_list<std::int64_t> shape, std::initializer_list<std::int64_t> strides = {})
      : Tensor(data, NSA_FP32, shape, strides) {}
  Tensor(const std::int32_t *data, std::initializer_list<std::int64_t> shape,
         std::initializer_list<std::int64_t> strides = {})
      : Tensor(data, NSA_INT32, shape, strides) {}

  // `dlTensor` points to a DLTensor (DLPack 1.x), which stays the caller's.
  static Tensor fromDlpack(const void *dlTensor) {
    Tensor result;
    detail::check([&](nsa_error *error) { return nsa_tensor_from_dlpack(dlTensor, &result.tensor, error); });
    return result;
  }
  // Fills a DLTensor that borrows this object's data, shape and strides. device: "cpu" or "cuda:N".
  void toDlpack(const char *device, void *dlTensor) {
    detail::check([&](nsa_error *error) { return nsa_tensor_to_dlpack(&tensor, device, dlTensor, error); });
  }

  const nsa_tensor &c() const { return tensor; }

private:
  Tensor() = default;
  nsa_tensor tensor = NSA_INIT(nsa_tensor);
};

// How block lists and token ranges belong together (nsa_range_options).
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

// Fill the second tensor; both lie in host memory. See nsa.h.
inline void rangesFromBlockList(const Tensor &blockList, const Tensor &ranges, const RangeOptions &options) {
  const nsa_range_options cOptions = options.c();
  detail::check(
      [&](nsa_error *error) { return nsa_ranges_from_block_list(&blockList.c(), &cOptions, &ranges.c(), error); });
}
inline void blockListFromRanges(const Tensor &ranges, const Tensor &blockList, const RangeOptions &options) {
  const nsa_range_options cOptions = options.c();
  detail::check(
      [&](nsa_error *error) { return nsa_block_list_from_ranges(&ranges.c(), &cOptions, &blockList.c(), error); });
}

struct Binding {
  nsa_name name;
  const Tensor &tensor;
};

// Host memory, aligned as nsa_run wants it, for plans of a CPU engine.
class HostWorkspace {
public:
  explicit HostWorkspace(std::size_t bytes) : bytes(bytes) {
    if (bytes != 0)
      memory.reset(static_cast<std::byte *>(::operator new(bytes, std::align_val_t(kAlignment))));
  }
  void *data() const { return memory.get(); }
  std::size_t size() const { return bytes; }

private:
  static constexpr std::size_t kAlignment = 256;
  struct Delete {
    void operator()(std::byte *pointer) const { ::operator delete(pointer, std::align_val_t(kAlignment)); }
  };
  std::size_t bytes;
  std::unique_ptr<std::byte, Delete> memory;
};

class Plan {
public:
  std::size_t workspaceSize() const {
    std::size_t bytes = 0;
    detail::check([&](nsa_error *error) { return nsa_plan_workspace_size(plan.get(), &bytes, error); });
    return bytes;
  }

  // Enqueues on `stream`; on the CPU returns when the result is there.
  void run(std::initializer_list<Binding> bindings, void *workspace, std::size_t workspaceBytes,
           void *stream = nullptr) const {
    run(bindings.begin(), bindings.size(), workspace, workspaceBytes, stream);
  }
  void run(const Binding *bindings, std::size_t bindingCount, void *workspace, std::size_t workspaceBytes,
           void *stream = nullptr) const {
    nsa_binding converted[NSA_NAMES];
    const std::size_t count = convert(bindings, bindingCount, converted);
    detail::check([&](nsa_error *error) {
      return nsa_run(plan.get(), converted, count, workspace, workspaceBytes, stream, error);
    });
  }

  // Where a run's time goes; waits. See nsa_run_timed.
  std::vector<nsa_part_time> runTimed(const Binding *bindings, std::size_t bindingCount, void *workspace,
                                      std::size_t workspaceBytes, void *stream = nullptr) const {
    nsa_binding converted[NSA_NAMES];
    const std::size_t given = convert(bindings, bindingCount, converted);
    std::vector<nsa_part_time> times(kMostParts);
    std::size_t count = 0;
    detail::check([&](nsa_error *error) {
      return nsa_run_timed(plan.get(), converted, given, workspace, workspaceBytes, stream, times.data(), times.size(),
                           &count, error);
    });
    times.resize(count);
    return times;
  }

  // Waits for `stream` and throws when a kernel met lengths that break a rule.
  void checkStatus(void *stream = nullptr) {
    detail::check([&](nsa_error *error) { return nsa_plan_status(plan.get(), stream, error); });
  }

  // JSON; see nsa_plan_describe.
  std::string describe() const { return nsa_plan_describe(plan.get()); }

  // JSON, of a plan that compares; see nsa_plan_compare_report.
  std::string compareReport() const {
    return detail::takeText(
        [&](char **text, nsa_error *error) { return nsa_plan_compare_report(plan.get(), text, error); });
  }

private:
  friend class Engine;
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
  explicit Plan(nsa_plan *handle) : plan(handle) {}
  std::unique_ptr<nsa_plan, Destroy> plan;
};

class Engine {
public:
  // Start from NSA_INIT(nsa_engine_options); what is left zero takes its default.
  explicit Engine(const nsa_engine_options &options = NSA_INIT(nsa_engine_options)) {
    nsa_engine *handle = nullptr;
    detail::check([&](nsa_error *error) { return nsa_engine_create(&options, &handle, error); });
    engine.reset(handle);
  }

  Plan plan(const Spec &spec, const Maxima &maxima, void *stream = nullptr) {
    nsa_spec cSpec = spec.c();
    nsa_maxima cMaxima = maxima.c();
    nsa_plan *handle = nullptr;
    detail::check(
        [&](nsa_error *error) { return nsa_plan_create(engine.get(), &cSpec, &cMaxima, stream, &handle, error); });
    return Plan(handle);
  }

  // A plan whose runs compare their kernels with what defines them (nsa_plan_options.compare).
  Plan planThatCompares(const Spec &spec, const Maxima &maxima, void *stream = nullptr) {
    nsa_spec cSpec = spec.c();
    nsa_maxima cMaxima = maxima.c();
    nsa_plan_options options = NSA_INIT(nsa_plan_options);
    options.compare = 1;
    nsa_plan *handle = nullptr;
    detail::check([&](nsa_error *error) {
      return nsa_plan_create_with(engine.get(), &cSpec, &cMaxima, &options, stream, &handle, error);
    });
    return Plan(handle);
  }

  // JSON texts; see nsa_explain, nsa_tune, nsa_engine_describe.
  std::string explain(const Spec &spec, const Maxima &maxima) { return ask(nsa_explain, spec, maxima); }
  std::string tune(const Spec &spec, const Maxima &maxima) { return ask(nsa_tune, spec, maxima); }
  // See nsa_tune_kernel.
  std::string tuneKernel(const Spec &spec, const Maxima &maxima, const std::string &problem, double budgetSeconds = 0) {
    return ask(
        [&](nsa_engine *handle, const nsa_spec *cSpec, const nsa_maxima *cMaxima, char **text, nsa_error *error) {
          return nsa_tune_kernel(handle, cSpec, cMaxima, problem.c_str(), budgetSeconds, text, error);
        },
        spec, maxima);
  }
  std::string describe() {
    return detail::takeText(
        [&](char **text, nsa_error *error) { return nsa_engine_describe(engine.get(), text, error); });
  }

  nsa_stats stats() const {
    nsa_stats stats = NSA_INIT(nsa_stats);
    detail::check([&](nsa_error *error) { return nsa_engine_stats(engine.get(), &stats, error); });
    return stats;
  }

private:
  template <typename Function> std::string ask(Function function, const Spec &spec, const Maxima &maxima) {
    nsa_spec cSpec = spec.c();
    nsa_maxima cMaxima = maxima.c();
    return detail::takeText(
        [&](char **text, nsa_error *error) { return function(engine.get(), &cSpec, &cMaxima, text, error); });
  }
  struct Destroy {
    void operator()(nsa_engine *handle) const { nsa_engine_destroy(handle); }
  };
  std::unique_ptr<nsa_engine, Destroy> engine;
};

} // namespace api
} // namespace nsa
