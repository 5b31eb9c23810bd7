// Plans of gradients that compare their kernels with the kernels that define them, for every device.
#include "compiler/driver/TemplateFiles.h"
#include "runtime/base/key_splits.h"
#include "tests/harness/operator_fixture.h"
#include "tests/harness/seed.h"
#include "tests/harness/template_folder.h"
#include "tools/reference/elements.h"
#include "tools/support/forward_pass.h"

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace nsa::test {
namespace {

using Json = nlohmann::json;
using T = TensorName;

class GradientComparisons : public OperatorTest {
protected:
  using Parts = std::map<std::string, Json>;

  static OperatorInputs draw(Operator op, Layout layout) {
    Spec spec = smallSpec(op, DType::kF32);
    spec.layout = layout;
    return tools::drawInputs(spec,
                             layout == Layout::kDense ? tools::SequenceLengths{{150, 150}, {150, 150}}
                                                      : tools::SequenceLengths{{90, 0, 7, 33}, {150, 0, 7, 129}},
                             freshSeed());
  }

  // Values far from 0, whose products with `d_out` cancel, so that rounding takes much of each delta.
  static OperatorInputs drawLosingDigits() {
    Spec spec = smallSpec(Operator::kNsaBwd, DType::kBf16);
    OperatorInputs inputs = tools::drawInputs(spec, {{300, 300}, {300, 300}}, freshSeed());
    const auto change = [&](T name, const std::function<float(float value, float before, int64_t at)> &changed) {
      const auto found = inputs.tensors.find(name);
      if (found == inputs.tensors.end())
        return;
      tools::HostTensor &tensor = found->second;
      float before = 0;
      for (int64_t i = 0; i < tensor.elements(); ++i) {
        before = changed(reference::loadElement(tensor.dtype, tensor.bytes.data(), i), before, i);
        reference::storeElement(tensor.dtype, tensor.bytes.data(), i, before);
      }
    };
    for (const T name : {T::kV, T::kVCmp, T::kVSel, T::kVWin})
      change(name, [](float value, float, int64_t) { return value + 64; });
    change(T::kDOut, [](float value, float before, int64_t at) { return at % 2 == 0 ? value : -before; });
    tools::addReferenceSaved(inputs);
    return inputs;
  }

  // What a run of a plan that compares says, by part. Before the run its stream fills the workspace so many times.
  static Parts compare(Session &session, const OperatorInputs &inputs, NamedTensors *outputs = nullptr, int fills = 1) {
    nsa_plan_options options = NSA_INIT(nsa_plan_options);
    options.compare = 1;
    Result<tools::PlanHandle> made =
        tools::createPlan(session.engine(), inputs.spec, inputs.maxima, session.accelerator().stream(), &options);
    EXPECT_TRUE(made.isOk()) << made.status().toString();
    Result<tools::DeviceOperator> job =
        tools::DeviceOperator::upload(session.accelerator(), inputs, tools::allOutputs(inputs.spec.op));
    EXPECT_TRUE(job.isOk()) << job.status().toString();
    for (int i = 0; i < fills; ++i)
      EXPECT_TRUE(job->allocateWorkspace(made->get()).isOk());
    EXPECT_TRUE(job->enqueue(made->get()).isOk());
    EXPECT_EQ(nsa_plan_status(made->get(), session.accelerator().stream(), nullptr), NSA_OK);
    Result<NamedTensors> results = job->download();
    EXPECT_TRUE(results.isOk()) << results.status().toString();
    if (outputs)
      *outputs = std::move(*results);
    char *text = nullptr;
    EXPECT_EQ(nsa_plan_compare_report(made->get(), &text, nullptr), NSA_OK);
    Parts parts;
    const Json report = Json::parse(text);
    for (const Json &part : report["parts"])
      parts[part["part"]] = part;
    nsa_free(text);
    return parts;
  }

  static std::set<std::string> partsOf(Operator op) {
    if (op == Operator::kSelBwd)
      return {"deltas", "dq_slots", "dkv"};
    if (op != Operator::kNsaBwd)
      return {"deltas", "dq", "dkv"};
    return {"compress", "cmp", "sel", "win", "gates", "dq_cmp", "dq_slots", "dq_win", "dkv_cmp", "dkv_sel", "dkv_win"};
  }
};

TEST_F(GradientComparisons, EveryKernelIsComparedAndNoResultChanges) {
  for (const Operator op :
       {Operator::kDenseBwd, Operator::kWindowBwd, Operator::kCmpBwd, Operator::kSelBwd, Operator::kNsaBwd})
    for (const Layout layout : {Layout::kDense, Layout::kPacked}) {
      SCOPED_TRACE(std::string(operatorName(op)) + " " + std::string(layoutName(layout)));
      OperatorInputs inputs = draw(op, layout);
      if (op == Operator::kNsaBwd) // the kernels of the branches run too
        for (const T name : {T::kOCmp, T::kOSel, T::kOWin, T::kKComp, T::kVComp})
          inputs.tensors.erase(name);
      NamedTensors outputs;
      Parts parts = compare(*session, inputs, &outputs);
      for (const auto &[name, tensor] : run(inputs))
        EXPECT_EQ(tensor.bytes, outputs.at(name).bytes) << tensorName(name);
      for (const std::string &name : partsOf(op)) {
        ASSERT_TRUE(parts.contains(name)) << name;
        const Json &part = parts[name];
        EXPECT_EQ(part["compared"], true) << part;
        EXPECT_LT(part.value("relative_rms", 1.0), 1e-5) << part;
        EXPECT_GE(part.value("elements", 0), 2 * 9 * 32) << part;
        EXPECT_EQ(part.value("unequal_nan", 1) + part.value("unequal_inf", 1), 0) << part;
        parts.erase(name);
      }
      for (const auto &[name, part] : parts)
        EXPECT_EQ(part["compared"], false) << part;
    }
}

// A comparison writes zeros where blocks of short sequences would lie, and the stream still fills the workspace then.
TEST_F(GradientComparisons, AComparisonWaitsForWhatItsStreamHasToDo) {
  OperatorInputs inputs = draw(Operator::kCompress, Layout::kPacked);
  const Parts parts = compare(*session, inputs, nullptr, 300);
  const Json &part = parts.at("compress");
  EXPECT_GE(part["elements"], 4 * 17 * 2 * (48 + 32)) << part;
  EXPECT_EQ(part["unequal_nan"], 0) << part;
  EXPECT_EQ(part["max_abs"], 0) << part;
}

// In chunks of queries, each at its place.
TEST_F(GradientComparisons, ChunksAreComparedToo) {
  Spec spec = smallSpec(Operator::kNsaBwd, DType::kF32);
  spec.queryHeads = 128;
  spec.kvHeads = 1;
  spec.qkDim = 8;
  spec.vDim = 256;
  const Parts parts = compare(*session, tools::drawInputs(spec, {{150}, {170}}, freshSeed()));
  const int64_t chunk = session->isCuda() ? 150 : 64, chunks = session->isCuda() ? 1 : 3;
  for (const char *name : {"dq_cmp", "dq_sel", "dq_win"}) {
    constexpr int64_t kOfHead = 8 + 1; // the next delta, too
    EXPECT_EQ(parts.at(name)["elements"], chunks * chunk * 128 * kOfHead) << parts.at(name);
    EXPECT_LT(parts.at(name)["relative_rms"], 1e-5) << parts.at(name);
  }
}

// Kernels of all queries at once, in plans that walk in chunks of queries.
TEST_F(GradientComparisons, AllQueriesAreComparedWhereAKernelTakesThemAtOnce) {
  const auto rows = [&](const Spec &spec, int64_t tokens, const char *name, int64_t elements) {
    const Parts parts = compare(*session, tools::drawInputs(spec, {{tokens, tokens}, {tokens, tokens}}, freshSeed()));
    ASSERT_TRUE(parts.contains(name));
    const Json &part = parts.at(name);
    EXPECT_EQ(part["compared"], true) << part;
    EXPECT_EQ(part["elements"], elements) << part;
    EXPECT_LT(part["relative_rms"], 1e-5) << part;
    EXPECT_EQ(part.value("unequal_nan", 1) + part.value("unequal_inf", 1), 0) << part;
  };
  Spec listed = smallSpec(Operator::kSelBwd, DType::kF32);
  listed.queryHeads = 8;
  listed.kvHeads = 2;
  listed.qkDim = listed.vDim = 64;
  listed.selBlock = listed.selCount = 16;
  EXPECT_TRUE(takesSlots(listed, {.batch = 2, .tokensQ = 2000, .seqlenQ = 1000, .seqlenK = 1000}))
      << "without slots a plan has one chunk";
  rows(listed, 1000, "deltas", 2 * 1000 * 8);
  Spec unread = smallSpec(Operator::kNsaBwd, DType::kF32);
  unread.queryHeads = 64;
  unread.kvHeads = 16;
  unread.vDim = 128;
  unread.branches = kBranchSel | kBranchWin; // the gradient of q_cmp is 0
  rows(unread, 300, "zero_queries", int64_t{2} * 300 * unread.queryHeads * unread.qkDim);
}

// A kernel in memory was compiled before its template was mended, and differs from the definition.
TEST_F(GradientComparisons, AWrongKernelIsFoundInItsPart) {
  const struct {
    const char *file, *before, *after;
    std::set<std::string> parts;
    bool losesDigits = false;
  } mistakes[] = {
      {"tile/attention_dq.tile", "(dq - rest * mean_key) * scale,", "dq - rest * mean_key,", {"dq_cmp", "dq_win"}},
      {"tile/attention_dq.tile",
       "store delta_next[place] = delta_row + error_of_delta",
       "store delta_next[place] = delta_row",
       {"dq_cmp", "dq_win"},
       true},
      {"tile/combine_bwd.tile",
       "store delta_of[branch: b][place] = own[branch: b]",
       "store delta_of[branch: b][place] = 0.0",
       {"gates"}},
      {"tile/combine_bwd.tile",
       "store weight_of[branch: b][place] = g[branch: b]",
       "store weight_of[branch: b][place] = 0.0",
       {"gates"}},
      {"tile/sel_dq_slots.tile", "p * (change - delta_row)", "p * change", {"dq_slots"}},
      {"tile/sel_dq_slots.tile", "key_slots[part] = dot(p, k_tile)", "key_slots[part] = dot(ds, k_tile)", {"dq_slots"}},
      {"tile/attention_dkv.tile", "let whole = dk * scale", "let whole = dk", {"dkv_cmp", "dkv_win"}},
      {"tile/sel_dkv.tile",
       "store dk_pieces[row, kv_head] = dk * scale",
       "store dk_pieces[row, kv_head] = dk",
       {"dkv_sel"}}};
  for (const auto &mistake : mistakes) {
    SCOPED_TRACE(mistake.file);
    TemplateFolder folder;
    for (const TemplateFile &file : TemplateFiles::embedded().files())
      folder.write(file.path, file.text);
    const std::string right = folder.read(mistake.file);
    folder.replace(mistake.file, mistake.before, mistake.after);
    const std::unique_ptr<Session> wrong = Session::open("attention", folder.path());
    ASSERT_TRUE(wrong->engine());
    OperatorInputs inputs = mistake.losesDigits ? drawLosingDigits() : draw(Operator::kNsaBwd, Layout::kDense);
    const Result<tools::PlanHandle> before =
        tools::createPlan(wrong->engine(), inputs.spec, inputs.maxima, wrong->accelerator().stream());
    ASSERT_TRUE(before.isOk()) << before.status().toString();
    folder.write(mistake.file, right);
    const Parts parts = compare(*wrong, inputs);
    for (const std::string &name : partsOf(Operator::kNsaBwd))
      if (const auto part = parts.find(name); part != parts.end() && part->second["compared"] == true)
        EXPECT_EQ(part->second["relative_rms"] > 1e-2, mistake.parts.contains(name)) << part->second;
    for (const std::string &name : mistake.parts)
      EXPECT_EQ(parts.at(name)["same_kernel"], false) << name;
  }
}

} // namespace
} // namespace nsa::test
