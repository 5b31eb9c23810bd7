// NSA Runtime for C++17: the C ABI (nsa/nsa.h) with RAII and exceptions. This wrapper is header-only. Nothing of C++
// crosses the library's boundary, so the host may use any compiler and standard library, nvcc included.
//
//   nsa::Engine engine;                                             // cuda:0, else the CPU
//   nsa::Spec spec;
//   spec.op = NSA_OP_WINDOW; spec.dtype = NSA_BF16; spec.queryHeads = 64; spec.kvHeads = 4;
//   spec.qkDim = spec.vDim = 128; spec.window = 512;
//   nsa::Plan plan = engine.plan(spec, {/*batch*/ 1, /*seqlenQ*/ 4096, /*seqlenK*/ 4096});
//   plan.run({{NSA_Q, q}, {NSA_K, k}, {NSA_V, v}, {NSA_OUT, out}}, workspace, workspaceBytes, stream);
//
// Ownership: an Engine and its Plans may be destroyed in any order.
// Thread-safety: that of the handles in nsa.h.
#pragma once

#include <nsa/nsa.h>

#include <cstddef>
#include <cstdint>
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
// The library's internal C++ classes have the names of this wrapper's classes. A host that is built with both must not
// mix them up.
inline namespace api {

// An error of the library, with the parts of nsa_error.
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

  static Spec of(const nsa_spec &spec) {
    Spec result;
    result.op = spec.op;
    result.dtype = spec.dtype;
    result.layout = spec.layout;
    result.queryHeads = spec.query_heads;
    result.kvHeads = spec.kv_heads;
    result.qkDim = spec.qk_dim;
    result.vDim = spec.v_dim;
    result.window = spec.window;
    result.scale = spec.scale;
    result.cmpBlock = spec.cmp_block;
    result.cmpStride = spec.cmp_stride;
    result.cmpKind = spec.cmp_kind;
    result.mlpHidden = spec.mlp_hidden;
    result.mlpActivation = spec.mlp_activation;
    result.selBlock = spec.sel_block;
    result.selCount = spec.sel_count;
    result.initBlocks = spec.init_blocks;
    result.localBlocks = spec.local_blocks;
    result.gate = spec.gate;
    result.gatePerGroup = spec.gate_per_group != 0;
    result.branches = spec.branches;
    result.pageSize = spec.page_size;
    return result;
  }
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
// std::int64_t. Of more than five dimensions only their number is kept, and nsa::Tensor refuses them.
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
    tensor.data = const_cast<void *>(data); // inputs are only read; the C struct has one pointer for both
    tensor.dtype = dtype;
    tensor.rank = static_cast<std::int32_t>(shape.size());
    std::int64_t rowMajor = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      tensor.shape[axis] = shape[axis];
      tensor.strides[axis] = strides.size() != 0 ? strides[axis] : rowMajor;
      rowMajor *= tensor.shape[axis];
    }
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
    detail::check([&](nsa_error *error) { return nsa_tensor_from_dlpack(dlTensor, &result.tensor, error); });
    return result;
  }
  // Fills a DLTensor that borrows this object's data, shape and strides. device: "cpu" or "cuda:N".
  void toDlpack(const char *device, void *dlTensor) {
    detail::check([&](nsa_error *error) { return nsa_tensor_to_dlpack(&tensor, device, dlTensor, error); });
  }

  const nsa_tensor &c() const { return tensor; }

private:
  nsa_tensor tensor = NSA_INIT(nsa_tensor);
};

// How block lists and token ranges are converted (nsa_range_options).
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

// Two conversions (nsa.h), each of which fills its second tensor. The tensors of a conversion are in host memory.
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
    detail::check([&](nsa_error *error) { return nsa_plan_workspace_size(plan.get(), &bytes, error); });
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
    detail::check([&](nsa_error *error) {
      return nsa_run(plan.get(), converted, count, workspace, workspaceBytes, stream, error);
    });
  }

  // Runs, waits, and returns where the time of the run went (nsa_run_timed).
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

  // Waits for `stream`, and throws when a kernel met lengths, lists or pages that break a rule.
  void checkStatus(void *stream = nullptr) {
    detail::check([&](nsa_error *error) { return nsa_plan_status(plan.get(), stream, error); });
  }

  // Returns the JSON of nsa_plan_describe.
  std::string describe() const { return nsa_plan_describe(plan.get()); }

  // Returns the JSON of nsa_plan_compare_report, for a plan that compares.
  std::string compareReport() const {
    return detail::takeText(
        [&](char **text, nsa_error *error) { return nsa_plan_compare_report(plan.get(), text, error); });
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

// What can be asked of an engine that another object keeps. A copy of a view is cheap, and it does not keep the engine.
class EngineView {
public:
  explicit EngineView(nsa_engine *handle) : engine(handle) {}
  nsa_engine *handle() const { return engine; } // null in an `Engine` that was moved away

  Plan plan(const Spec &spec, const Maxima &maxima, void *stream = nullptr) const {
    nsa_spec cSpec = spec.c();
    nsa_maxima cMaxima = maxima.c();
    nsa_plan *made = nullptr;
    detail::check([&](nsa_error *error) { return nsa_plan_create(engine, &cSpec, &cMaxima, stream, &made, error); });
    return Plan(made);
  }

  // A plan whose runs compare their kernels with the kernels that define the operators (nsa_plan_options.compare).
  Plan planThatCompares(const Spec &spec, const Maxima &maxima, void *stream = nullptr) const {
    nsa_spec cSpec = spec.c();
    nsa_maxima cMaxima = maxima.c();
    nsa_plan_options options = NSA_INIT(nsa_plan_options);
    options.compare = 1;
    nsa_plan *made = nullptr;
    detail::check([&](nsa_error *error) {
      return nsa_plan_create_with(engine, &cSpec, &cMaxima, &options, stream, &made, error);
    });
    return Plan(made);
  }

  // JSON texts, as nsa_explain, nsa_tune and nsa_engine_describe return them.
  std::string explain(const Spec &spec, const Maxima &maxima) const { return ask(nsa_explain, spec, maxima); }
  std::string tune(const Spec &spec, const Maxima &maxima) const { return ask(nsa_tune, spec, maxima); }
  // See nsa_tune_kernel.
  std::string tuneKernel(const Spec &spec, const Maxima &maxima, const std::string &problem,
                         double budgetSeconds = 0) const {
    return ask(
        [&](nsa_engine *owner, const nsa_spec *cSpec, const nsa_maxima *cMaxima, char **text, nsa_error *error) {
          return nsa_tune_kernel(owner, cSpec, cMaxima, problem.c_str(), budgetSeconds, text, error);
        },
        spec, maxima);
  }
  std::string describe() const {
    return detail::takeText([&](char **text, nsa_error *error) { return nsa_engine_describe(engine, text, error); });
  }

  nsa_stats stats() const {
    nsa_stats stats = NSA_INIT(nsa_stats);
    detail::check([&](nsa_error *error) { return nsa_engine_stats(engine, &stats, error); });
    return stats;
  }

private:
  template <typename Function> std::string ask(Function function, const Spec &spec, const Maxima &maxima) const {
    nsa_spec cSpec = spec.c();
    nsa_maxima cMaxima = maxima.c();
    return detail::takeText(
        [&](char **text, nsa_error *error) { return function(engine, &cSpec, &cMaxima, text, error); });
  }

protected:
  nsa_engine *engine;
};

class Engine : public EngineView {
public:
  // A function that the engine calls when a better plan can be had. nsa_tuned_callback says on which thread the
  // function is called, and what it may do. The function plans with the engine that it receives: while the engine is
  // moved, assigned or destroyed, the host's own object is not to be used. An exception that leaves a `Tuned` ends the
  // process.
  using Tuned = std::function<void(EngineView engine, const Spec &spec, const Maxima &maxima)>;

  // Opens an engine. `options` begin with NSA_INIT(nsa_engine_options). A field of the options that stays zero takes
  // its default.
  explicit Engine(const nsa_engine_options &options = NSA_INIT(nsa_engine_options)) : EngineView(open(options)) {}
  // Opens an engine. `tuned` takes the place of options.tuned, unless it is empty. The engine keeps `tuned` until it is
  // destroyed.
  Engine(nsa_engine_options options, Tuned tuned) : EngineView(nullptr) {
    if (tuned) {
      told = std::make_shared<Told>();
      told->tuned = std::move(tuned);
      options.tuned_user = told.get();
      options.tuned = [](void *user, nsa_engine *caller, const nsa_spec *spec, const nsa_maxima *maxima) noexcept {
        // A function that destroys its engine, which is forbidden, lives until it returns.
        const std::shared_ptr<Told> kept = static_cast<Told *>(user)->shared_from_this();
        kept->tuned(EngineView(caller), Spec::of(*spec), Maxima::of(*maxima));
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
    detail::check([&](nsa_error *error) { return nsa_engine_create(&options, &made, error); });
    return made;
  }
  std::shared_ptr<Told> told; // which the engine may call until it is destroyed
};

} // namespace api
} // namespace nsa
