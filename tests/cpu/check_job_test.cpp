// `nsa run --check` of inputs that are not finite: rows that they reach are named, and all others judged. And of the
// gradients, which are named after the tensors of the file.
#include "tests/cpu/program_job.h"
#include "tools/nsa/files/safetensors.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace nsa::tools {
namespace {

class CheckJob : public ProgramJob {
protected:
  // The trained model's tensors with one element of another value, each as bf16.
  std::string inputsWith(const std::string &name, int64_t element, uint16_t bits) {
    const Result<SafetensorsFile> file = SafetensorsFile::open(input);
    EXPECT_TRUE(file) << file.status().toString();
    std::vector<HostTensor> tensors;
    std::vector<std::pair<std::string, const HostTensor *>> list;
    tensors.reserve(file->entries().size());
    for (const auto &[entry, unused] : file->entries()) {
      tensors.push_back(*file->read(entry));
      if (entry == name)
        std::memcpy(tensors.back().bytes.data() + element * 2, &bits, sizeof bits);
      list.emplace_back(entry, &tensors.back());
    }
    const std::string path = scratch.file("changed.safetensors");
    EXPECT_TRUE(writeSafetensors(OutputFile::create(path), list).isOk());
    return path;
  }
  std::string errorOf(const std::string &changed, const std::string &options = "") {
    run("run --op window --config " + data + "/window.json --input " + changed + " --output " + output +
            " --device cpu --cache " + database + " --check " + options,
        1);
    return test::readFile(scratch.file("stderr"));
  }

  static constexpr uint16_t kNan = 0x7fc0, kInfinity = 0x7f80; // bf16
  static constexpr int64_t kLast = 2047, kHeads = 8, kDim = 64;
};

TEST_F(CheckJob, RowsThatCannotBeJudgedAreNamed) {
  const std::string nan = inputsWith("q", (kLast * kHeads + 3) * kDim + 5, kNan);
  std::string error = errorOf(nan);
  EXPECT_EQ(error.find("internal"), std::string::npos) << error;
  for (const std::string part :
       {"invalid argument", "--input", nan.c_str(), "the reference is not finite there: 2, the first at row (2047, 3)",
        "every other row is right"})
    EXPECT_NE(error.find(part), std::string::npos) << part << "\n" << error;
  EXPECT_FALSE(std::filesystem::exists(output));

  // The two last queries see the last token but one, with all their heads; weights are finite.
  error = errorOf(inputsWith("v_win", (kLast - 1) * kDim, kInfinity));
  EXPECT_NE(error.find("not finite there: 16, the first at row (2046, 0)"), std::string::npos) << error;
}

TEST_F(CheckJob, WithoutTheCheckTheOutputIsWritten) {
  run("run --op window --config " + data + "/window.json --input " +
      inputsWith("q", (kLast * kHeads + 3) * kDim + 5, kNan) + " --output " + output + " --device cpu --cache " +
      database);
  EXPECT_TRUE(std::filesystem::exists(output));
}

// One tensor for the keys of all branches: its gradient has its name.
TEST_F(CheckJob, GradientsOfAttentionHaveTheNamesOfTheFilesTensors) {
  const std::string config = scratch.write("small.json", R"({"query_heads": 4, "kv_heads": 2, "qk_dim": 16,
    "v_dim": 8, "dtype": "fp32", "window": 40, "cmp_block": 8, "cmp_stride": 4})");
  const std::map<std::string, std::string> plain = {{"k_win", "k"}, {"v_win", "v"}, {"q_cmp", "q"}};
  for (const auto &[op, gradients] : std::map<std::string, std::set<std::string>>{
           {"dense_bwd", {"d_q", "d_k", "d_v"}}, {"cmp_bwd", {"d_q", "d_k_comp", "d_v_comp"}}}) {
    SCOPED_TRACE(op);
    const std::string own = scratch.file("own.safetensors"), renamed = scratch.file("renamed.safetensors");
    run("generate --op " + op + " --config " + config + " --seqlen-k 150 --output " + own);
    const Result<SafetensorsFile> file = SafetensorsFile::open(own);
    ASSERT_TRUE(file) << file.status().toString();
    std::map<std::string, HostTensor> tensors;
    for (const auto &[name, entry] : file->entries())
      tensors.insert_or_assign(plain.contains(name) ? plain.at(name) : name, std::move(*file->read(name)));
    const auto write = [&] {
      std::vector<std::pair<std::string, const HostTensor *>> list;
      for (const auto &[name, tensor] : tensors)
        list.emplace_back(name, &tensor);
      ASSERT_TRUE(writeSafetensors(OutputFile::create(renamed), list).isOk());
    };
    write();
    const std::string job = "run --op " + op + " --config " + config + " --input " + renamed + " --output " + output +
                            " --device cpu --cache " + database;
    run(job);
    const Result<SafetensorsFile> written = SafetensorsFile::open(output);
    ASSERT_TRUE(written) << written.status().toString();
    std::set<std::string> names;
    for (const auto &[name, entry] : written->entries())
      names.insert(name);
    EXPECT_EQ(names, gradients);
    const nlohmann::json report = runJson(job + " --check");
    std::set<std::string> checked = gradients;
    checked.insert("delta");
    expectChecked(report, checked);
    EXPECT_EQ(report["checks"][0].value("relative_rms_limit", 0.0), 2e-5) << "gradients have limits of their own";

    std::filesystem::remove(output);
    for (const std::string wrong : {"lse", "out"}) {
      float &last = reinterpret_cast<float *>(tensors.at(wrong).bytes.data())[tensors.at(wrong).elements() - 1];
      last += 3;
      write();
      run(job + " --check", 1);
      const std::string error = test::readFile(scratch.file("stderr"));
      EXPECT_NE(
          error.find("invalid argument: --input = " + renamed +
                     ": must have the 'out' and 'lse' of the forward pass of its other tensors under --config: out: "),
          std::string::npos)
          << error;
      EXPECT_FALSE(std::filesystem::exists(output));
      last -= 3;
    }
  }
}

// A gradient of nsa is right for what its file holds, so a wrong file is no fault of the library.
TEST_F(CheckJob, WhatTheGradientOfNsaTakesIsThatOfTheForwardPass) {
  const std::string config = scratch.write("nsa_small.json", R"({"query_heads": 4, "kv_heads": 2, "qk_dim": 16,
    "v_dim": 8, "dtype": "fp32", "window": 40, "cmp_block": 16, "cmp_stride": 8, "sel_block": 16, "sel_count": 4})");
  const std::string own = scratch.file("nsa.safetensors"), wrong = scratch.file("nsa_wrong.safetensors");
  run("generate --op nsa_bwd --config " + config + " --seqlen-k 150 --output " + own);
  const auto jobOf = [&](const std::string &file) {
    return "run --op nsa_bwd --config " + config + " --input " + file + " --output " + output +
           " --device cpu --check --cache " + database;
  };
  run(jobOf(own));
  std::filesystem::remove(output);
  const Result<SafetensorsFile> file = SafetensorsFile::open(own);
  ASSERT_TRUE(file) << file.status().toString();
  std::map<std::string, HostTensor> tensors;
  std::vector<std::pair<std::string, const HostTensor *>> list;
  for (const auto &[name, entry] : file->entries())
    list.emplace_back(name, &tensors.insert_or_assign(name, std::move(*file->read(name))).first->second);
  std::ranges::fill(tensors.at("lse_win").bytes, std::byte{0});
  ASSERT_TRUE(writeSafetensors(OutputFile::create(wrong), list).isOk());
  run(jobOf(wrong), 1);
  const std::string error = test::readFile(scratch.file("stderr"));
  EXPECT_NE(error.find("invalid argument: --input = " + wrong +
                       ": must have the 'o_*', 'lse_*', 'k_comp' and 'v_comp' of the forward pass of its other tensors "
                       "under --config: o_win: "),
            std::string::npos)
      << error;
  EXPECT_FALSE(std::filesystem::exists(output));
}

// The inverse of the lists may come from a file, and a wrong one is found.
TEST_F(CheckJob, AGradientTakesTheInverseOfItsLists) {
  for (const std::string layout : {"", " --batch 2", "packed"}) {
    SCOPED_TRACE(layout);
    const bool packed = layout == "packed";
    const std::string config = scratch.write(
        "sel.json", R"({"query_heads": 4, "kv_heads": 2, "qk_dim": 16, "v_dim": 8, "dtype": "fp32", "sel_block": 16,
        "sel_count": 4, "layout": ")" +
                        std::string(packed ? "packed" : "dense") + "\"}");
    const std::string own = scratch.file("sel.safetensors"), indexed = scratch.file("indexed.safetensors"),
                      inverse = scratch.file("inverse.safetensors");
    run("generate --op sel_bwd --config " + config + " --seqlen-k 150" + (packed ? " --batch 2" : layout) +
        " --output " + own);
    run("run --op invert --config " + config + " --input " + own + " --output " + inverse + " --device cpu --cache " +
        database);
    std::map<std::string, HostTensor> tensors;
    for (const std::string &path : {own, inverse}) {
      const Result<SafetensorsFile> file = SafetensorsFile::open(path);
      ASSERT_TRUE(file) << file.status().toString();
      for (const auto &[name, entry] : file->entries())
        tensors.insert_or_assign(name, std::move(*file->read(name)));
    }
    ASSERT_TRUE(tensors.contains("block_index"));
    const auto write = [&] {
      std::vector<std::pair<std::string, const HostTensor *>> list;
      for (const auto &[name, tensor] : tensors)
        list.emplace_back(name, &tensor);
      ASSERT_TRUE(writeSafetensors(OutputFile::create(indexed), list).isOk());
    };
    const std::string job = "run --op sel_bwd --config " + config + " --input " + indexed + " --output " + output +
                            " --device cpu --check --cache " + database;
    write();
    const nlohmann::json report = runJson(job);
    std::string operators;
    for (const nlohmann::json &launch : report["plan"]["launches"])
      operators += launch.value("operator", "") + " ";
    EXPECT_NE(operators.find("index_check "), std::string::npos) << operators;
    int32_t &count = reinterpret_cast<int32_t *>(tensors.at("block_index").bytes.data())[1];
    count += 1;
    write();
    run(job, 1);
    const std::string error = test::readFile(scratch.file("stderr"));
    EXPECT_NE(error.find("block_index"), std::string::npos) << error;
  }
}

// A file without position embeddings has no gradient of them, and the check asks for all others.
TEST_F(CheckJob, GradientsOfCompressionAreThoseOfTheFilesTensors) {
  const std::string config = scratch.write("mlp.json", R"({"query_heads": 2, "kv_heads": 2, "qk_dim": 16, "v_dim": 8,
    "dtype": "fp32", "cmp_block": 8, "cmp_stride": 4, "cmp_kind": "mlp", "mlp_hidden": 12})");
  const std::string whole = scratch.file("whole.safetensors"), some = scratch.file("some.safetensors");
  run("generate --op compress_bwd --config " + config + " --seqlen-k 150 --output " + whole);
  const Result<SafetensorsFile> file = SafetensorsFile::open(whole);
  ASSERT_TRUE(file) << file.status().toString();
  std::map<std::string, HostTensor> tensors;
  for (const auto &[name, entry] : file->entries())
    if (!name.starts_with("pe_"))
      tensors.insert_or_assign(name == "k_cmp" ? "k" : name, std::move(*file->read(name)));
  std::vector<std::pair<std::string, const HostTensor *>> list;
  for (const auto &[name, tensor] : tensors)
    list.emplace_back(name, &tensor);
  ASSERT_TRUE(writeSafetensors(OutputFile::create(some), list).isOk());
  const auto check = [&](const std::string &path) {
    return runJson("run --op compress_bwd --config " + config + " --input " + path + " --output " + output +
                   " --device cpu --check --cache " + database);
  };
  std::set<std::string> names = {"d_k_cmp", "d_v_cmp"};
  for (const std::string weight : {"pe", "w1", "b1", "w2", "b2"})
    names.insert({"d_" + weight + "_k", "d_" + weight + "_v"});
  expectChecked(check(whole), names);
  for (const std::string name : {"d_k_cmp", "d_pe_k", "d_pe_v"})
    names.erase(name);
  names.insert("d_k");
  expectChecked(check(some), names);
}

} // namespace
} // namespace nsa::tools
