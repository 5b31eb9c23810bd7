// A step of training: the forward pass and its gradient, from a pack alone, where no compiler can be opened, and
// recorded once. For every device; on a GPU a recording is a CUDA graph.
#include "cache/cache_file.h"
#include "cache/pack_writer.h"
#include "tests/harness/operator_fixture.h"
#include "tests/harness/scratch.h"
#include "tests/harness/seed.h"
#include "tools/support/forward_pass.h"

#include <algorithm>

namespace nsa::test {
namespace {

using T = TensorName;

class TrainingStep : public OperatorTestPerType {
protected:
  static OperatorInputs draw(Layout layout) {
    Spec spec = smallSpec(Operator::kNsaBwd, dtype());
    spec.layout = layout;
    spec.makeIndex = true;
    const tools::SequenceLengths lengths = layout == Layout::kPacked
                                               ? tools::SequenceLengths{{150, 0, 33}, {150, 0, 90}}
                                               : tools::SequenceLengths{{150, 150}, {150, 150}};
    return tools::drawInputs(spec, lengths, freshSeed(), tools::Saved::kByCaller);
  }

  tools::EngineHandle engine(const std::string &database, const std::string &packs, nsa_miss_policy policy) {
    tools::EngineSettings settings;
    settings.device = kTestDevice;
    settings.cachePath = database;
    settings.cachePacks = packs;
    settings.missPolicy = policy;
    if (policy == NSA_MISS_FAIL)
      settings.compilerPath = "absent.so";
    Result<tools::EngineHandle> made = tools::createEngine(settings);
    EXPECT_TRUE(made) << made.status().toString();
    return made ? std::move(*made) : nullptr;
  }
  tools::PlanHandle planOf(const tools::EngineHandle &engine, const OperatorInputs &inputs) {
    Result<tools::PlanHandle> made =
        tools::createPlan(engine.get(), inputs.spec, inputs.maxima, session->accelerator().stream());
    EXPECT_TRUE(made) << made.status().toString();
    return made ? std::move(*made) : nullptr;
  }

  // A pack of the kernels of a step.
  void writePackOf(const OperatorInputs &gradient) {
    const std::string database = scratch.file("kernels.db");
    {
      const tools::EngineHandle compiling = engine(database, "none", NSA_MISS_DEFAULT);
      ASSERT_TRUE(compiling);
      ASSERT_TRUE(planOf(compiling, tools::forwardInputs(gradient)) && planOf(compiling, gradient));
    }
    Result<CacheFile> file = CacheFile::open(database);
    ASSERT_TRUE(file) << file.status().toString();
    const Result<PackReport> written = writePack(*file, pack, {.source = "test"});
    ASSERT_TRUE(written) << written.status().toString();
  }

  Scratch scratch;
  const std::string pack = scratch.file("step.nsapack");
};

TEST_P(TrainingStep, RunsFromAPackAloneAndIsRecordedOnce) {
  tools::Accelerator &accelerator = session->accelerator();
  for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
    SCOPED_TRACE(layoutName(layout));
    std::filesystem::remove(pack);
    OperatorInputs gradient = draw(layout);
    ASSERT_NO_FATAL_FAILURE(writePackOf(gradient));
    const tools::EngineHandle served = engine(":memory:", pack, NSA_MISS_FAIL);
    ASSERT_TRUE(served);
    const std::set<T> saved = tools::savedFor(Operator::kNsaBwd);
    OperatorInputs forward = tools::forwardInputs(gradient);
    const tools::PlanHandle forwardPlan = planOf(served, forward), gradientPlan = planOf(served, gradient);
    ASSERT_TRUE(forwardPlan && gradientPlan);

    // What the gradient takes from the forward pass, and what both read, are the forward pass's tensors.
    Result<tools::DeviceOperator> forwardJob = tools::DeviceOperator::upload(accelerator, forward, saved);
    ASSERT_TRUE(forwardJob) << forwardJob.status().toString();
    OperatorInputs bound = gradient;
    for (const T name : saved)
      bound.tensors[name] = tools::HostTensor::make(tools::dtypeOf(forward.spec, name),
                                                    tools::shapeOf(forward.spec, name, forward.extents));
    Result<tools::DeviceOperator> gradientJob = tools::DeviceOperator::upload(accelerator, bound, {});
    ASSERT_TRUE(gradientJob) << gradientJob.status().toString();
    for (const auto &[name, tensor] : bound.tensors)
      if (name != T::kDOut) {
        const nsa_tensor &own = forwardJob->tensor(name);
        gradientJob->rebind(name, own.data, {own.strides, own.strides + own.rank});
      }
    ASSERT_TRUE(forwardJob->allocateWorkspace(forwardPlan.get()).isOk());
    ASSERT_TRUE(gradientJob->allocateWorkspace(gradientPlan.get()).isOk());

    Result<tools::Recording> step = accelerator.record([&]() -> Status {
      NSA_RETURN_IF_ERROR(forwardJob->enqueue(forwardPlan.get()));
      return gradientJob->enqueue(gradientPlan.get());
    });
    ASSERT_TRUE(step) << step.status().toString();

    // The recording knows only addresses, and each step has other values.
    for (int replay = 0; replay < 3; ++replay) {
      if (replay > 0) {
        const OperatorInputs fresh = draw(layout);
        for (const auto &[name, tensor] : fresh.tensors) {
          tools::DeviceOperator &job = name == T::kDOut ? *gradientJob : *forwardJob;
          ASSERT_TRUE(accelerator.upload(job.tensor(name).data, tensor.bytes.data(), tensor.bytes.size()).isOk());
        }
        gradient.tensors = fresh.tensors;
        forward = tools::forwardInputs(fresh);
      }
      ASSERT_TRUE(forwardJob->poisonOutputs().isOk() && gradientJob->poisonOutputs().isOk());
      ASSERT_TRUE((*step)().isOk());
      for (const tools::PlanHandle *plan : {&forwardPlan, &gradientPlan}) {
        const Status status = tools::toStatus(nsa_plan_status(plan->get(), accelerator.stream(), nullptr));
        ASSERT_TRUE(status.isOk()) << status.toString();
      }
      const Result<NamedTensors> outputs = forwardJob->download(), gradients = gradientJob->download();
      ASSERT_TRUE(outputs && gradients);
      checkOutputs(forward, *outputs);
      OperatorInputs read = gradient;
      for (const T name : saved)
        read.tensors[name] = outputs->at(name);
      checkOutputs(read, *gradients);
    }
  }
}

NSA_INSTANTIATE_PER_TYPE(TrainingStep);

} // namespace
} // namespace nsa::test
