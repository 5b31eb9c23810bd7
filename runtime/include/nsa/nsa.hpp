// NSA Runtime for C++17: the C ABI (nsa/nsa.h) with RAII and exceptions. This wrapper is header-only. Nothing of C++
// crosses the library's boundary, so the host may use any compiler and standard library, nvcc included. tensor.hpp has
// errors, tensors and the workspace, and program.hpp has programs of one's own.
//
//   nsa::Engine engine;                                             // cuda:0, else the CPU
//   nsa::Spec spec;
//   spec.op = NSA_OP_WINDOW; spec.dtype = NSA_BF16; spec.query_heads = 64; spec.kv_heads = 4;
//   spec.qk_dim = spec.v_dim = 128; spec.window = 512;
//   nsa::Plan plan = engine.plan(spec, {/*batch*/ 1, /*seqlenQ*/ 4096, /*seqlenK*/ 4096});
//   plan.run({{NSA_Q, q}, {NSA_K, k}, {NSA_V, v}, {NSA_OUT, out}}, workspace, workspaceBytes, stream);
//
// Ownership: an Engine, its Plans and its Programs may be destroyed in any order.
// Thread-safety: the classes have the same rules as the handles of nsa.h.
#pragma once

#include <nsa/program.hpp>
#include <nsa/tensor.hpp>

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
inline namespace api {

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

// What a call binds to a name. A binding refers to its tensor, which must live and stay where it is until the call
// returns. Bindings may be copied and assigned.
class Binding {
public:
  Binding(nsa_name name, const Tensor &tensor) : binding{name, &tensor.c()} {}
  const nsa_binding &c() const { return binding; }

private:
  nsa_binding binding;
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
    std::vector<nsa_part_time> times(NSA_MOST_PARTS);
    std::size_t count = 0;
    detail::check(nsa_run_timed(plan.get(), converted, given, workspace, workspaceBytes, stream, times.data(),
                                times.size(), &count, nullptr));
    times.resize(count < times.size() ? count : times.size());
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
  static std::size_t convert(const Binding *bindings, std::size_t count, nsa_binding (&converted)[NSA_NAMES]) {
    if (count > NSA_NAMES)
      throw std::invalid_argument("nsa::Plan: more bindings than there are names");
    for (std::size_t i = 0; i < count; ++i)
      converted[i] = bindings[i].c();
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

  // Finds or makes the kernel of a program of one's own. See nsa_program_create.
  Program program(const ProgramSource &source, const std::vector<ProgramValue> &values, void *stream = nullptr) const {
    const nsa_program_source cSource = source.c();
    const std::vector<nsa_program_value> cValues = detail::valuesOf(values);
    nsa_program *made = nullptr;
    detail::check(nsa_program_create(engine, &cSource, cValues.data(), cValues.size(), stream, &made, nullptr));
    return Program(made);
  }
  // Returns the JSON text of nsa_program_explain.
  std::string explainProgram(const ProgramSource &source, const std::vector<ProgramValue> &values) const {
    const nsa_program_source cSource = source.c();
    const std::vector<nsa_program_value> cValues = detail::valuesOf(values);
    return detail::takeText([&](char **text) {
      return nsa_program_explain(engine, &cSource, cValues.data(), cValues.size(), text, nullptr);
    });
  }
  // Tunes the kernel of a program, and returns the JSON report. See nsa_program_tune.
  std::string tuneProgram(const ProgramSource &source, const std::vector<ProgramValue> &values,
                          double budgetSeconds = 0) const {
    const nsa_program_source cSource = source.c();
    const std::vector<nsa_program_value> cValues = detail::valuesOf(values);
    return detail::takeText([&](char **text) {
      return nsa_program_tune(engine, &cSource, cValues.data(), cValues.size(), budgetSeconds, text, nullptr);
    });
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
