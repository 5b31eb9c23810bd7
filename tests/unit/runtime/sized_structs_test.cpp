// Each struct of nsa.h with a size, smaller, as it is and larger, as hosts of other headers hand it over.
#include "runtime/capi/sized_structs.h"

#include "tests/unit/runtime/c_api_fixture.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace nsa::test::c_api {
namespace {

using capi::kMostStructBytes;
using capi::SizedStruct;

// What is called with each struct, the name of the argument, and the answer to a struct that is accepted.
template <typename T> struct Probe;

template <> struct Probe<nsa_error_info> {
  static constexpr std::string_view kName = "info";
  static constexpr nsa_status kAccepted = NSA_OK;
  nsa_error_info value() const { return NSA_INIT(nsa_error_info); }
  nsa_status call(nsa_engine *, nsa_error_info *changed, nsa_error *error) const {
    return nsa_error_get_info(changed, error);
  }
};

template <> struct Probe<nsa_spec> : Call {
  static constexpr std::string_view kName = "spec";
  static constexpr nsa_status kAccepted = NSA_CACHE_MISS;
  Probe() : Call(NSA_LAYOUT_DENSE) {}
  nsa_spec value() const { return spec; }
  nsa_status call(nsa_engine *engine, nsa_spec *changed, nsa_error *error) const {
    nsa_plan *plan = nullptr;
    return nsa_plan_create_with(engine, changed, &maxima, nullptr, nullptr, &plan, error);
  }
};

template <> struct Probe<nsa_maxima> : Call {
  static constexpr std::string_view kName = "maxima";
  static constexpr nsa_status kAccepted = NSA_CACHE_MISS;
  Probe() : Call(NSA_LAYOUT_DENSE) {}
  nsa_maxima value() const { return maxima; }
  nsa_status call(nsa_engine *engine, nsa_maxima *changed, nsa_error *error) const {
    nsa_plan *plan = nullptr;
    return nsa_plan_create_with(engine, &spec, changed, nullptr, nullptr, &plan, error);
  }
};

template <> struct Probe<nsa_plan_options> : Call {
  static constexpr std::string_view kName = "plan_options";
  static constexpr nsa_status kAccepted = NSA_CACHE_MISS;
  Probe() : Call(NSA_LAYOUT_DENSE) {}
  nsa_plan_options value() const { return NSA_INIT(nsa_plan_options); }
  nsa_status call(nsa_engine *engine, nsa_plan_options *changed, nsa_error *error) const {
    nsa_plan *plan = nullptr;
    return nsa_plan_create_with(engine, &spec, &maxima, changed, nullptr, &plan, error);
  }
};

template <> struct Probe<nsa_engine_options> {
  static constexpr std::string_view kName = "options";
  static constexpr nsa_status kAccepted = NSA_OK;
  // Fields that every header has had in the same place.
  nsa_engine_options value() const {
    nsa_engine_options options = NSA_INIT(nsa_engine_options);
    options.device = "cpu";
    options.cache_path = ":memory:";
    return options;
  }
  nsa_status call(nsa_engine *, nsa_engine_options *changed, nsa_error *error) const {
    nsa_engine *made = nullptr;
    const nsa_status status = nsa_engine_create(changed, &made, error);
    nsa_engine_destroy(made);
    return status;
  }
};

template <> struct Probe<nsa_tensor> : Call {
  static constexpr std::string_view kName = "tensor";
  static constexpr nsa_status kAccepted = NSA_OK;
  Probe() : Call(NSA_LAYOUT_DENSE) {}
  nsa_tensor value() const { return tensors[NSA_Q]; }
  nsa_status call(nsa_engine *, nsa_tensor *changed, nsa_error *error) const {
    alignas(16) std::byte target[64]; // a DLTensor has 48
    return nsa_tensor_to_dlpack(changed, "cpu", target, error);
  }
};

template <> struct Probe<nsa_stats> {
  static constexpr std::string_view kName = "stats";
  static constexpr nsa_status kAccepted = NSA_OK;
  nsa_stats value() const { return NSA_INIT(nsa_stats); }
  nsa_status call(nsa_engine *engine, nsa_stats *changed, nsa_error *error) const {
    return nsa_engine_get_stats(engine, changed, error);
  }
};

template <> struct Probe<nsa_device_info> {
  static constexpr std::string_view kName = "info";
  static constexpr nsa_status kAccepted = NSA_OK;
  nsa_device_info value() const { return NSA_INIT(nsa_device_info); }
  nsa_status call(nsa_engine *engine, nsa_device_info *changed, nsa_error *error) const {
    return nsa_engine_get_device(engine, changed, error);
  }
};

template <> struct Probe<nsa_plan_info> : Call {
  static constexpr std::string_view kName = "info";
  static constexpr nsa_status kAccepted = NSA_OK;
  Scratch folder;
  std::optional<Engine> stored;
  std::optional<Plan> plan;
  Probe() : Call(NSA_LAYOUT_DENSE) {
    const std::string cache = folder.file("kernels.db");
    storeKernel(cache, internalSpec(), internalMaxima(), {}, countingCode());
    stored.emplace(cache);
    plan.emplace(*stored, *this);
  }
  nsa_plan_info value() const { return NSA_INIT(nsa_plan_info); }
  nsa_status call(nsa_engine *, nsa_plan_info *changed, nsa_error *error) const {
    return nsa_plan_get_info(plan->handle, changed, error);
  }
};

template <> struct Probe<nsa_range_options> : AnyCall {
  static constexpr std::string_view kName = "options";
  static constexpr nsa_status kAccepted = NSA_OK;
  mutable int32_t list[2] = {0, -1}, ranges[4] = {};
  Probe() {
    set(NSA_BLOCK_LIST, list, NSA_INT32, {1, 1, 1, 2});
    set(NSA_READS, ranges, NSA_INT32, {1, 1, 2, 2});
  }
  nsa_range_options value() const {
    nsa_range_options options = NSA_INIT(nsa_range_options);
    options.sel_block = 4;
    return options;
  }
  nsa_status call(nsa_engine *, nsa_range_options *changed, nsa_error *error) const {
    return nsa_ranges_from_block_list(&tensors[NSA_BLOCK_LIST], changed, &tensors[NSA_READS], error);
  }
};

// Tuning a workload, with an engine that has no compiler: a struct that is accepted is followed by that error.
struct TuningCall {
  static constexpr nsa_status kAccepted = NSA_UNAVAILABLE;
  static constexpr const char *kWorkload =
      R"({"name": "w", "heads": [{"name": "h", "config": {"query_heads": 2, "kv_heads": 1, "qk_dim": 16}}],
          "prefill": {"lengths": [64]}})";
  nsa_engine *own = nullptr;
  TuningCall() {
    nsa_engine_options options = NSA_INIT(nsa_engine_options);
    options.device = "cpu";
    options.cache_path = ":memory:";
    options.compiler_path = "libnsa_that_is_not_there.so";
    EXPECT_EQ(nsa_engine_create(&options, &own, nullptr), NSA_OK);
  }
  TuningCall(const TuningCall &) = delete;
  ~TuningCall() { nsa_engine_destroy(own); }
};

template <> struct Probe<nsa_tune_options> : TuningCall {
  static constexpr std::string_view kName = "options";
  nsa_tune_options value() const { return NSA_INIT(nsa_tune_options); }
  nsa_status call(nsa_engine *, nsa_tune_options *changed, nsa_error *error) const {
    return nsa_tune_workload(own, kWorkload, changed, nullptr, nullptr, error);
  }
};

template <> struct Probe<nsa_tune_counts> : TuningCall {
  static constexpr std::string_view kName = "counts";
  nsa_tune_counts value() const { return NSA_INIT(nsa_tune_counts); }
  nsa_status call(nsa_engine *, nsa_tune_counts *changed, nsa_error *error) const {
    return nsa_tune_workload(own, kWorkload, nullptr, changed, nullptr, error);
  }
};

template <> struct Probe<nsa_program_source> {
  static constexpr std::string_view kName = "source";
  static constexpr nsa_status kAccepted = NSA_CACHE_MISS;
  nsa_program_source value() const {
    nsa_program_source source = NSA_INIT(nsa_program_source);
    source.text = "kernel nothing\ngrid 1, 1, 1\nthreads 32\n";
    return source;
  }
  nsa_status call(nsa_engine *engine, nsa_program_source *changed, nsa_error *error) const {
    nsa_program *program = nullptr;
    return nsa_program_create(engine, changed, nullptr, 0, nullptr, &program, error);
  }
};

template <typename T> class SizedStructs : public testing::Test {
protected:
  // Hands over the first bytes of a struct of `size` bytes, and 0xff behind them.
  nsa_status call(size_t size, unsigned char last = 0) {
    const T value = probe.value();
    std::fill(std::begin(memory), std::end(memory), 0xff);
    const size_t written = std::clamp(size, sizeof size, kMostStructBytes); // the size itself at least
    memset(memory, 0, written);
    memcpy(memory, &value, std::min(sizeof value, written));
    if (last != 0)
      memory[written - 1] = last;
    memcpy(memory + offsetof(T, size), &size, sizeof size);
    const nsa_status status = probe.call(engine.handle, reinterpret_cast<T *>(memory), &error);
    EXPECT_TRUE(std::all_of(memory + written, std::end(memory), [](unsigned char byte) { return byte == 0xff; }))
        << "nothing is written behind a host's struct";
    return status;
  }

  Probe<T> probe;
  Engine engine{":memory:"};
  nsa_error error = {};
  alignas(T) unsigned char memory[kMostStructBytes + 64];
};

#define NSA_SIZED_STRUCT(type, last) type,
using Sized = testing::Types<
#include "runtime/capi/sized_structs.def"
    nsa_spec>; // the list ends with a comma

TYPED_TEST_SUITE(SizedStructs, Sized);

TYPED_TEST(SizedStructs, FieldsThatAHostDoesNotKnowAreZero) {
  for (size_t size = SizedStruct<TypeParam>::kLeastBytes; size <= sizeof(TypeParam); ++size)
    EXPECT_EQ(this->call(size), Probe<TypeParam>::kAccepted) << size << ": " << this->error.message;
}

TYPED_TEST(SizedStructs, FieldsThatTheLibraryDoesNotKnowMustBeZero) {
  const size_t larger = sizeof(TypeParam) + 8;
  EXPECT_EQ(this->call(larger), Probe<TypeParam>::kAccepted) << this->error.message;
  EXPECT_EQ(this->call(larger, 1), NSA_INVALID_ARGUMENT);
  EXPECT_EQ(this->error.field, std::string(Probe<TypeParam>::kName) + ".size");
  EXPECT_EQ(this->error.value, std::to_string(larger));
  EXPECT_NE(std::string(this->error.rule).find(SizedStruct<TypeParam>::kName), std::string::npos) << this->error.rule;
  EXPECT_NE(std::string(this->error.rule).find(std::to_string(sizeof(TypeParam))), std::string::npos)
      << this->error.rule;
  EXPECT_STREQ(this->error.hint, "use a library at least as new as nsa.h");
}

TYPED_TEST(SizedStructs, ASizeThatWasNotSetIsRefused) {
  for (const size_t size : {size_t{0}, SizedStruct<TypeParam>::kLeastBytes - 1, kMostStructBytes + 1, SIZE_MAX}) {
    EXPECT_EQ(this->call(size), NSA_INVALID_ARGUMENT) << size;
    EXPECT_EQ(this->error.field, std::string(Probe<TypeParam>::kName) + ".size");
    EXPECT_NE(std::string(this->error.rule).find(SizedStruct<TypeParam>::kName), std::string::npos) << this->error.rule;
    EXPECT_STREQ(this->error.hint, "initialise it with NSA_INIT");
  }
}

// Functions that fill a whole struct write as much as the host has.
TEST(FilledStructs, NothingIsWrittenBehindTheHostsStruct) {
  constexpr size_t kLeastTensor = SizedStruct<nsa_tensor>::kLeastBytes, kLeastSpec = SizedStruct<nsa_spec>::kLeastBytes;
  static_assert(kLeastSpec <= kLeastTensor);
  const int64_t shape[] = {2, 3};
  float data[6];
  struct {
    void *data;
    struct {
      int32_t type, id;
    } device;
    int32_t rank;
    uint8_t code, bits;
    uint16_t lanes;
    const int64_t *shape, *strides;
    uint64_t offset;
  } dlTensor = {data, {1, 0}, 2, 2, 32, 1, shape, nullptr, 0};
  alignas(16) unsigned char memory[kMostStructBytes + 64];
  const auto isUntouchedFrom = [&](size_t size) {
    return std::all_of(memory + size, std::end(memory), [](unsigned char byte) { return byte == 0xff; });
  };
  auto *tensor = reinterpret_cast<nsa_tensor *>(memory);
  auto *spec = reinterpret_cast<nsa_spec *>(memory);
  for (const size_t size : {kLeastTensor, sizeof(nsa_tensor), sizeof(nsa_tensor) + 40, kMostStructBytes}) {
    memset(memory, 0xff, sizeof memory);
    EXPECT_EQ(nsa_tensor_rows_sized(tensor, size, data, NSA_FP32, 2, shape), tensor);
    EXPECT_EQ(tensor->size, size);
    EXPECT_EQ(tensor->strides[0], 3);
    EXPECT_TRUE(isUntouchedFrom(size)) << size;
    memset(memory, 0xff, sizeof memory);
    EXPECT_EQ(nsa_tensor_from_dlpack_sized(&dlTensor, tensor, size, nullptr), NSA_OK);
    EXPECT_EQ(tensor->size, size);
    EXPECT_EQ(tensor->strides[0], 3);
    EXPECT_TRUE(isUntouchedFrom(size)) << size;
  }
  for (const size_t size : {kLeastSpec, sizeof(nsa_spec), sizeof(nsa_spec) + 40, kMostStructBytes}) {
    memset(memory, 0xff, sizeof memory);
    nsa_spec_init_sized(spec, size);
    EXPECT_EQ(spec->size, size);
    EXPECT_EQ(spec->window, 512);
    EXPECT_TRUE(isUntouchedFrom(size)) << size;
  }
  for (const size_t size : {size_t{0}, size_t{8}, kLeastSpec - 1, kMostStructBytes + 1, SIZE_MAX}) {
    memset(memory, 0xff, sizeof memory);
    nsa_tensor_rows_sized(tensor, size, data, NSA_FP32, 2, shape);
    EXPECT_EQ(tensor->size, size) << "which the reader refuses";
    EXPECT_TRUE(isUntouchedFrom(sizeof size)) << size;
    nsa_spec_init_sized(spec, size);
    EXPECT_TRUE(isUntouchedFrom(sizeof size)) << size;
    nsa_error error;
    EXPECT_EQ(nsa_tensor_from_dlpack_sized(&dlTensor, tensor, size, &error), NSA_INVALID_ARGUMENT);
    EXPECT_STREQ(error.field, "tensor_bytes");
    EXPECT_EQ(error.value, std::to_string(size));
    EXPECT_TRUE(isUntouchedFrom(sizeof size)) << size;
  }
  nsa_spec_init_sized(nullptr, sizeof(nsa_spec));
}

// The times of a run go to entries of the host's size.
TEST_F(CApi, EntriesHaveTheSizeThatTheHostPasses) {
  Call call(NSA_LAYOUT_DENSE);
  store(call, {.scratchBytes = 64}, countingCode());
  Engine engine(cache);
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  alignas(16) unsigned char memory[2 * kMostStructBytes];
  auto *times = reinterpret_cast<nsa_part_time *>(memory);
  const auto run = [&](size_t each, size_t capacity, size_t *count) {
    memset(memory, 0xff, sizeof memory);
    return nsa_run_timed_sized(plan.handle, call.bindings.data(), call.bindings.size(), plan.workspace,
                               plan.workspaceBytes, nullptr, times, each, capacity, count, &plan.error);
  };
  size_t count = 7;
  for (const size_t each : {size_t{40}, size_t{48}, size_t{4096}}) {
    ASSERT_EQ(run(each, 1, &count), NSA_OK) << plan.error.message;
    EXPECT_EQ(count, 1u);
    EXPECT_STREQ(times->name, "window");
    EXPECT_EQ(times->launches, 1);
    EXPECT_TRUE(std::all_of(memory + 40, memory + each, [](unsigned char byte) { return byte == 0; })) << each;
    EXPECT_TRUE(std::all_of(memory + each, std::end(memory), [](unsigned char byte) { return byte == 0xff; })) << each;
  }
  EXPECT_EQ(run(40, 0, &count), NSA_OK);
  EXPECT_EQ(count, 1u) << "how many there are";
  EXPECT_EQ(memory[0], 0xff);
  for (const size_t each : {size_t{0}, size_t{39}, size_t{4097}}) {
    EXPECT_EQ(run(each, 1, &count), NSA_INVALID_ARGUMENT);
    EXPECT_STREQ(plan.error.field, "time_bytes");
    EXPECT_EQ(count, 0u);
    EXPECT_EQ(memory[0], 0xff);
  }
  EXPECT_EQ(run(40, 1, nullptr), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.error.field, "count");
}

// A launch reads the tensors of hosts whose nsa_tensor is larger.
TEST_F(CApi, ARunTakesTensorsOfALaterHeader) {
  Call call(NSA_LAYOUT_DENSE);
  store(call, {.scratchBytes = 64}, countingCode());
  Engine engine(cache);
  Plan plan(engine, call);
  ASSERT_EQ(plan.status, NSA_OK) << plan.error.message;
  struct {
    nsa_tensor tensor;
    int64_t later;
  } larger = {call.tensors[NSA_Q], 0};
  larger.tensor.size = sizeof larger;
  for (nsa_binding &binding : call.bindings)
    if (binding.name == NSA_Q)
      binding.tensor = &larger.tensor;
  EXPECT_EQ(plan.run(call), NSA_OK) << plan.error.message;
  larger.later = 1;
  EXPECT_EQ(plan.run(call), NSA_INVALID_ARGUMENT);
  EXPECT_STREQ(plan.error.field, "q.size");
}

} // namespace
} // namespace nsa::test::c_api
