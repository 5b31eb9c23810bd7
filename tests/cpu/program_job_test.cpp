// The command line doing its work on the CPU device: a cold and a warm run over the trained model's tensors, every
// stage of `compile`, tuning, and what the database then shows.
#include "cache/cache_file.h"
#include "cache/kernel_store.h"
#include "runtime/base/digest.h"
#include "tests/cpu/program_job.h"
#include "tools/nsa/files/safetensors.h"

#include <algorithm>
#include <map>

namespace nsa::tools {
namespace {

TEST_F(ProgramJob, TheSecondProcessFindsWhatTheFirstStored) {
  const nlohmann::json cold = runJson(job);
  EXPECT_EQ(cold["plan"].value("source", ""), "compiled");
  EXPECT_EQ(cold["plan"]["launches"][0].value("template", ""), "attention");
  EXPECT_GT(cold["milliseconds"].value("compile", 0.0), 0.0);
  EXPECT_TRUE(cold.value("compiler_mapped", false));
  expectChecked(cold, {"out", "reads"});
  const std::string first = test::readFile(output);

  const nlohmann::json warm = runJson(job + " --miss fail");
  EXPECT_EQ(warm["plan"].value("source", ""), "database");
  EXPECT_EQ(warm["milliseconds"].value("compile", 1.0), 0.0);
  EXPECT_FALSE(warm.value("compiler_mapped", true));
  EXPECT_EQ(test::readFile(output), first) << "the same kernel gave other bits";

  const Result<SafetensorsFile> file = SafetensorsFile::open(output);
  ASSERT_TRUE(file) << file.status().toString();
  const Result<HostTensor> out = file->read("out"), lse = file->read("lse"), reads = file->read("reads");
  ASSERT_TRUE(out && lse && reads);
  EXPECT_EQ(reads->shape, (std::vector<int64_t>{2048, 1}));
  EXPECT_EQ(out->dtype, DType::kBf16);
  EXPECT_EQ(out->shape, (std::vector<int64_t>{2048, 8, 64}));
  EXPECT_EQ(lse->dtype, DType::kF32);
  EXPECT_EQ(lse->shape, (std::vector<int64_t>{2048, 8}));
}

TEST_F(ProgramJob, TheHumanReportNamesKernelTimesAndError) {
  const std::string text = run(job);
  for (const char *part :
       {"kernel   window  attention  ", "from compiled", "compile ", "run ",
        "check    out         within the contract: relative RMS", "check    reads       within the contract"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST_F(ProgramJob, OnlyWhatMustBeWrittenIsUnlessAllIsAskedFor) {
  run("run --op window --config " + data + "/window.json --input " + input + " --output " + output +
      " --device cpu --cache " + database);
  const Result<SafetensorsFile> file = SafetensorsFile::open(output);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->entries().size(), 1u);
  EXPECT_TRUE(file->contains("out"));
}

TEST_F(ProgramJob, TheInputIsNotReplaced) {
  const std::string own = scratch.file("own.safetensors"), link = scratch.file("link.safetensors");
  std::filesystem::copy_file(input, own);
  std::filesystem::create_symlink(own, link);
  const std::string before = test::readFile(own);
  for (const std::string &path : {own, link}) {
    run("run --op window --config " + data + "/window.json --input " + own + " --output " + path +
            " --device cpu --cache " + database,
        1);
    const std::string text = test::readFile(scratch.file("stderr"));
    EXPECT_NE(text.find("--output = " + path + ": must not be the file of --input"), std::string::npos) << text;
    EXPECT_EQ(test::readFile(own), before);
  }
}

TEST_F(ProgramJob, TheWholeForwardIsCheckedOutputByOutput) {
  const std::string forward = "run --op nsa --config " + data + "/nsa.json --input " + input + " --output " + output +
                              " --device cpu --cache " + database + " --check --all-outputs";
  const nlohmann::json report = runJson(forward);
  // Log-sum-exps are checked with the outputs that they belong to.
  expectChecked(report, {"out", "o_cmp", "o_sel", "o_win", "block_list", "k_comp", "v_comp", "reads"});
  std::string operators;
  for (const nlohmann::json &launch : report["plan"]["launches"])
    operators += launch.value("operator", "") + " ";
  EXPECT_EQ(operators, "compress cmp select sel window combine ");
  EXPECT_EQ(report["selecting"].value("queries", 0), 2048);
  EXPECT_EQ(report["selecting"].value("leave_blocks_out", 0), 1024);
  const Result<SafetensorsFile> file = SafetensorsFile::open(output);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->entries().size(), 11u);
  EXPECT_EQ(file->entries().at("k_comp").shape, (std::vector<int64_t>{127, 1, 64}));
  EXPECT_EQ(file->entries().at("lse_sel").shape, (std::vector<int64_t>{2048, 8}));
  EXPECT_EQ(file->entries().at("block_list").shape, (std::vector<int64_t>{2048, 1, 16}));

  const std::string text = run(forward + " --miss fail");
  for (const char *part : {"kernel   select  ", "kernel   combine  ",
                           "selects  1024 of 2048 queries have more blocks than they may attend",
                           "check    block_list  within the contract: 2048 lists", "check    reads       within"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

// Where scores lie hundreds apart, fp32 flushes most weights of the selection: the lists are right all the same.
TEST_F(ProgramJob, TheTrainedLayerIsRightAtLargeScales) {
  nlohmann::json config = nlohmann::json::parse(test::readFile(data + "/nsa.json"));
  for (const double scale : {1.5, 4.0}) {
    SCOPED_TRACE(scale);
    config["scale"] = scale;
    const nlohmann::json report =
        runJson("run --op nsa --config " + scratch.write("scaled.json", config.dump()) + " --input " + input +
                " --output " + output + " --device cpu --cache " + database + " --check --all-outputs");
    expectChecked(report, {"out", "o_cmp", "o_sel", "o_win", "block_list", "k_comp", "v_comp", "reads"});
    EXPECT_EQ(report["selecting"].value("leave_blocks_out", 0), 1024);
  }
}

// Every operator alone, on what is generated for it.
TEST_F(ProgramJob, EveryOperatorRunsAlone) {
  const std::string config = scratch.write(
      "small.json", R"({"query_heads": 4, "kv_heads": 2, "qk_dim": 16, "v_dim": 8, "dtype": "fp32", "window": 40,
                        "cmp_block": 8, "cmp_stride": 4, "sel_block": 16, "sel_count": 5, "layout": "packed"})");
  for (const std::string op : {"dense", "window", "compress", "cmp", "select", "sel", "combine"}) {
    const std::string file = scratch.file("in.safetensors");
    run("generate --op " + op + " --config " + config + " --batch 2 --seqlen-k 150 --seqlen-q 70 --output " + file);
    const nlohmann::json report = runJson("run --op " + op + " --config " + config + " --input " + file + " --output " +
                                          output + " --device cpu --cache " + database + " --check");
    EXPECT_FALSE(report["checks"].empty()) << op;
    for (const nlohmann::json &check : report["checks"])
      EXPECT_TRUE(check.value("within", false)) << op << " " << check.dump(2);
  }
}

// A step from a file, the file of the next one, and every output and byte of the cache checked.
TEST_F(ProgramJob, DecodeRunsOverTheCacheOfAFile) {
  const std::string common =
      R"("query_heads": 4, "kv_heads": 2, "qk_dim": 16, "v_dim": 8, "dtype": "fp32", "window": 40, "cmp_block": 8,
         "cmp_stride": 4, "sel_block": 16, "sel_count": 5)";
  const std::string file = scratch.file("cache.safetensors");
  const std::set<std::string> cache = {"k_sel_cache", "v_sel_cache",  "k_win_cache",  "v_win_cache",  "k_raw",
                                       "v_raw",       "k_comp_cache", "v_comp_cache", "cache_seqlens"};
  for (const std::string more : {"", R"(, "page_size": 32)", R"(, "page_size": 32, "layout": "packed")",
                                 R"(, "cmp_kind": "mlp", "mlp_hidden": 12)"})
    for (const std::string queries : {"1", "9", "150"}) {
      SCOPED_TRACE(more + " " + queries);
      const std::string config = scratch.write("cache.json", "{" + common + more + "}");
      run("generate --op decode --config " + config + " --batch 2 --seqlen-k 150 --seqlen-q " + queries + " --output " +
          file);
      const std::string step = "run --op decode --config " + config + " --input " + file + " --output " + output +
                               " --device cpu --cache " + database;
      std::set<std::string> names = cache;
      names.insert({"out", "reads"});
      run(step);
      const Result<SafetensorsFile> plain = SafetensorsFile::open(output);
      ASSERT_TRUE(plain) << plain.status().toString();
      std::set<std::string> written;
      for (const auto &[name, entry] : plain->entries())
        written.insert(name);
      EXPECT_EQ(written, names);
      const Result<HostTensor> lengths = plain->read("cache_seqlens");
      ASSERT_TRUE(lengths);
      EXPECT_EQ(reinterpret_cast<const int32_t *>(lengths->bytes.data())[1], 150);
      names.insert({"o_cmp", "o_sel", "o_win", "block_list"});
      expectChecked(runJson(step + " --check --all-outputs --miss fail"), names);
    }
}

// Lengths that the cache has no room for are the kernels' to find.
TEST_F(ProgramJob, ACacheWithoutRoomIsAnErrorThatNamesTheSequence) {
  const std::string config =
      scratch.write("cache.json", R"({"query_heads": 2, "kv_heads": 1, "qk_dim": 16, "page_size": 64})");
  const std::string file = scratch.file("cache.safetensors"), full = scratch.file("full.safetensors");
  run("generate --op decode --config " + config + " --seqlen-k 100 --seqlen-q 1 --output " + file);
  const Result<SafetensorsFile> read = SafetensorsFile::open(file);
  ASSERT_TRUE(read) << read.status().toString();
  std::map<std::string, HostTensor> tensors;
  for (const auto &[name, entry] : read->entries())
    tensors.emplace(name, std::move(*read->read(name)));
  reinterpret_cast<int32_t *>(tensors.at("cache_seqlens").bytes.data())[0] = 192; // three pages
  std::vector<std::pair<std::string, const HostTensor *>> list;
  for (const auto &[name, tensor] : tensors)
    list.emplace_back(name, &tensor);
  ASSERT_TRUE(writeSafetensors(OutputFile::create(full), list).isOk());
  run("run --op decode --config " + config + " --input " + full + " --output " + output + " --device cpu --cache " +
          database,
      1);
  EXPECT_NE(test::readFile(scratch.file("stderr")).find("cache_seqlens"), std::string::npos)
      << test::readFile(scratch.file("stderr"));
  EXPECT_FALSE(std::filesystem::exists(output));
}

// What tools/quickstart shows last.
TEST_F(ProgramJob, TheLastTokensAreDecodedAsPrefillHasThem) {
  const std::string forward = "run --op nsa --config " + data + "/nsa.json --input " + input + " --output " + output +
                              " --device cpu --cache " + database + " --decode-last 64";
  const nlohmann::json report = runJson(forward);
  ASSERT_EQ(report["decode"].size(), 2u);
  for (const nlohmann::json &decode : report["decode"]) {
    expectChecked(decode, {"out", "o_cmp", "o_sel", "o_win", "block_list", "k_comp", "v_comp", "reads"});
    EXPECT_EQ(decode.value("rows", 0), 64);
    EXPECT_EQ(decode.value("lists", 0), 64);
    EXPECT_EQ(decode.value("unlike_prefill", -1), 0) << decode.dump(2);
    EXPECT_LE(decode.value("unlike_prefill_in_ties", 65), 1) << decode.dump(2);
    std::string operators;
    for (const nlohmann::json &launch : decode["plan"]["launches"])
      operators += launch.value("operator", "") + " ";
    EXPECT_NE(operators.find("append "), std::string::npos) << operators;
  }
  EXPECT_NE(report["decode"][0].value("page_size", 0), report["decode"][1].value("page_size", 0));
  const std::string text = run(forward + " --miss fail");
  for (const char *part : {"decode   64 rows one by one from a contiguous cache, after a prompt in 2 chunks",
                           "decode   64 rows one by one from a cache in pages of 128 tokens",
                           "lists    64, unlike prefill's: ", " within ties, 0 outside of them"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

// The tokens of each line are those of the list that the same run wrote.
TEST_F(ProgramJob, ADumpedSelectionIsTheListsTokens) {
  const std::string config =
      scratch.write("nsa.json", R"({"query_heads": 4, "kv_heads": 2, "qk_dim": 32, "v_dim": 16, "sel_count": 6})");
  const std::string file = scratch.file("needle.safetensors"), dumped = scratch.file("selection.jsonl");
  run("generate --op nsa --config " + config +
      " --structure needle --needle-position 500 --batch 2 --seqlen-k 1500 --seqlen-q 100 --output " + file);
  const std::string rest = " --config " + config + " --input " + file + " --device cpu --cache " + database;
  run("run --op nsa --all-outputs --output " + output + rest);
  run("dump-selection --op nsa --output " + dumped + rest);
  const Result<SafetensorsFile> outputs = SafetensorsFile::open(output);
  ASSERT_TRUE(outputs) << outputs.status().toString();
  const Result<HostTensor> lists = outputs->read("block_list");
  ASSERT_TRUE(lists);
  const auto *block = reinterpret_cast<const int32_t *>(lists->bytes.data());
  std::ifstream lines(dumped);
  int64_t count = 0;
  for (std::string text; std::getline(lines, text); ++count) {
    const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
    const int64_t t = 1400 + count % 100;
    ASSERT_EQ(line.value("t", 0), t) << text;
    ASSERT_EQ(line.value("sequence", -1), count / 100) << text;
    ASSERT_EQ(line["ranges"].size(), 2u) << text;
    for (const nlohmann::json &ranges : line["ranges"]) {
      std::set<int64_t> expected, tokens;
      for (int slot = 0; slot < 6; ++slot, ++block)
        for (int64_t token = *block * int64_t{64}; *block >= 0 && token < (*block + 1) * int64_t{64} && token <= t;
             ++token)
          expected.insert(token);
      int64_t before = -1;
      for (const nlohmann::json &range : ranges) {
        EXPECT_GT(range[0].get<int64_t>(), before) << "merged ranges do not touch: " << text;
        before = range[1].get<int64_t>();
        for (int64_t token = range[0].get<int64_t>(); token < before; ++token)
          tokens.insert(token);
      }
      EXPECT_EQ(tokens, expected) << text;
      EXPECT_TRUE(tokens.contains(500) || t < 1500 - 64) << "the needle: " << text;
    }
  }
  EXPECT_EQ(count, 200);
}

// One dense sequence has lines without its number, and stdout takes them.
TEST_F(ProgramJob, SelectAloneIsDumpedToo) {
  const std::string config =
      scratch.write("select.json", R"({"query_heads": 2, "kv_heads": 1, "qk_dim": 16, "sel_count": 4})");
  const std::string file = scratch.file("select.safetensors");
  run("generate --op select --config " + config + " --seqlen-k 400 --output " + file);
  const std::string text =
      run("dump-selection --op select --config " + config + " --input " + file + " --device cpu --cache " + database);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 400);
  EXPECT_EQ(text.rfind("{\"t\":0,\"ranges\":[[[0,1]]]}\n", 0), 0u) << text.substr(0, 200);
}

TEST_F(ProgramJob, CompileShowsEveryStage) {
  const std::string base = "compile --op window --config " + data + "/window_64.json ";
  EXPECT_NE(run(base + "--target cpu --emit template").find("kernel attention serves"), std::string::npos);
  EXPECT_NE(run(base + "--target sm_80 --emit tile").find("tile.dot"), std::string::npos);
  EXPECT_NE(run(base + "--target sm_80 --emit scheduled").find("tile.layout"), std::string::npos);
  EXPECT_NE(run(base + "--target sm_90a --emit cuda").find("__global__"), std::string::npos);
  EXPECT_NE(run(base + "--target cpu --emit llvm").find("define"), std::string::npos);
  const std::string image = scratch.file("kernel.image");
  const nlohmann::json report =
      runJson(base + "--target cpu --emit image --output " + image + " --set query_tile=32 --set key_tile=16");
  EXPECT_EQ(test::readFile(image).size(), report.value("bytes", size_t{0}));
  EXPECT_NE(report.value("manifest", "").find("key_tile=16 queries_shared=0 query_tile=32"), std::string::npos)
      << report.dump(2);
  EXPECT_GE(runJson(base + "--target cpu --list")["candidates"].size(), 12u);
}

TEST_F(ProgramJob, TuningIsStoredWithItsEvidence) {
  const std::string spec =
      "--op window --config " + data + "/window_64.json --seqlen-k 256 --device cpu --cache " + database;
  const nlohmann::json report = runJson("tune " + spec + " --kernel-budget 5");
  EXPECT_GE(report.value("measured", 0), 4);
  const nlohmann::json listing = runJson("cache list --cache " + database);
  ASSERT_EQ(listing["choices"].size(), 1u);
  EXPECT_TRUE(listing["choices"][0].value("tuned", false));
  const std::string key = listing["choices"][0].value("kernel", "");
  const nlohmann::json shown = runJson("cache show " + key.substr(0, 12) + " --cache " + database);
  EXPECT_EQ(shown.value("key", ""), key);
  EXPECT_EQ(shown["choices"][0]["evidence"].size(), report["candidates"].size());
  const nlohmann::json explained = runJson("explain " + spec);
  EXPECT_EQ(explained["database"].value("content", ""), key);
  EXPECT_TRUE(explained["database"].value("tuned", false));
}

// A release's compiler differs from the one that measured: its kernels are made anew, what was measured stays.
TEST_F(ProgramJob, RenewedKernelsKeepTheirChoices) {
  const std::string spec =
      "--op window --config " + data + "/window_64.json --seqlen-k 128 --device cpu --cache " + database;
  run("tune " + spec + " --kernel-budget 2");
  const auto choiceNow = [&] { return runJson("cache list --cache " + database)["choices"][0]; };
  const nlohmann::json before = choiceNow();
  const std::string revision = runJson("cache renew --cache " + database).value("compiler", "");
  const auto storeAs = [&](const std::string &from, const std::string &to) {
    Result<CacheFile> file = CacheFile::open(database);
    ASSERT_TRUE(file) << file.status().toString();
    StoredChoice choice = file->choices()->front();
    StoredKernel kernel = **file->kernel(choice.content);
    const size_t at = kernel.manifest.find(from);
    ASSERT_NE(at, std::string::npos) << kernel.manifest;
    kernel.manifest.replace(at, from.size(), to);
    choice.provenance = "compiler=older driver=1";
    std::string warning;
    ASSERT_TRUE((*KernelStore::open({.path = database}, warning))->put(kernel, &choice).isOk());
  };

  storeAs("compiler=" + revision, "compiler=older");
  nlohmann::json report = runJson("cache renew --cache " + database);
  EXPECT_EQ(report.value("renewed", 0), 1) << report;
  EXPECT_EQ(report.value("current", 1), 0) << report;
  nlohmann::json after = choiceNow();
  EXPECT_EQ(after["provenance"], "compiler=older driver=1 remade=" + revision);
  EXPECT_EQ(after["evidence"], before["evidence"]);
  EXPECT_EQ(after["kernel"], before["kernel"]) << "the same source is the same kernel";
  EXPECT_EQ(runJson("explain " + spec).value("would", ""), "run what the database holds");
  EXPECT_NE(run("cache renew --cache " + database).find("0 kernels compiled again, 1 of this compiler already"),
            std::string::npos);

  // Templates of a folder, which are not those that were measured; then one that is gone: the stored kernel stays.
  storeAs("compiler=" + revision, "compiler=older");
  setenv("NSA_TEMPLATE_DIR", NSA_TEMPLATES, 1);
  EXPECT_NE(run("cache renew --cache " + database, 1).find("which are not at hand"), std::string::npos);
  unsetenv("NSA_TEMPLATE_DIR");
  storeAs("template attention", "template gone");
  const std::string told = run("cache renew --cache " + database, 1);
  EXPECT_NE(told.find("stays as it is: " + before["kernel"].get<std::string>().substr(0, 12)), std::string::npos)
      << told;
  EXPECT_NE(told.find("gone"), std::string::npos) << told;
  EXPECT_EQ(choiceNow()["kernel"], before["kernel"]);

  // The text of a program of one's own is in no cache.
  storeAs("operator window", "operator twice@0123");
  EXPECT_NE(run("cache renew --cache " + database, 1)
                .find("it is a kernel of the program twice, whose text no cache holds (hint: create the program with "
                      "this database (nsa_program_create), which compiles it again)"),
            std::string::npos)
      << test::readFile(scratch.file("stdout"));
  storeAs("operator twice@0123", "operator window");

  run("cache export " + scratch.file("p.nsapack") + " --cache " + database);
  run("cache renew --cache " + scratch.file("p.nsapack"), 1);
  EXPECT_NE(test::readFile(scratch.file("stderr")).find("packs do not change"), std::string::npos);

  // What cannot be read is told of, and the others are made: damage, and a manifest of another time.
  storeAs("template gone", "template attention");
  const std::string damaged(64, 'd'), strange(64, 'e');
  for (const std::string &content : {damaged, strange}) {
    CacheFile file = std::move(*CacheFile::open(database));
    StoredChoice choice = file.choices()->front();
    StoredKernel kernel = **file.kernel(choice.content);
    choice.problem += content;
    choice.content = kernel.content = content;
    std::string warning;
    ASSERT_TRUE((*KernelStore::open({.path = database}, warning))->put(kernel, &choice).isOk());
    Digest digest;
    if (content == strange)
      digest.field(content).field(std::string_view("strange")).field(kernel.binary);
    execute("UPDATE kernels SET manifest = 'strange', digest = x'" + digest.finishHex() + "' WHERE content = '" +
            content + "'");
  }
  const std::string some = run("cache renew --cache " + database, 1);
  EXPECT_NE(some.find(": 1 kernel compiled again, 0 of this compiler already, 2 failed\n"), std::string::npos) << some;
  EXPECT_NE(some.find("stays as it is: dddddddddddd, it cannot be read: "), std::string::npos) << some;
  EXPECT_NE(some.find("stays as it is: eeeeeeeeeeee, its manifest cannot be read: "), std::string::npos) << some;
  report = nlohmann::json::parse(run("cache renew --json --cache " + database, 1));
  EXPECT_EQ(report.value("current", 0), 1) << report;
  EXPECT_EQ(report.value("left", 1), 0) << report;
  EXPECT_EQ(report["failed"].size(), 2u) << report;
}

// The main job's heads and window, and fewer tokens, as every candidate is measured on all of them.
TEST_F(ProgramJob, TheMainJobsTunerHasAChoice) {
  const std::string config =
      scratch.write("main.json", R"({"query_heads": 8, "kv_heads": 1, "qk_dim": 64, "window": 512})");
  const std::string tokens = scratch.file("tokens.safetensors");
  run("generate --op window --config " + config + " --seqlen-k 512 --output " + tokens);
  const std::string spec =
      "--op window --config " + config + " --input " + tokens + " --device cpu --cache " + database;
  const nlohmann::json report = runJson("tune " + spec + " --kernel-budget 60");
  EXPECT_GE(report.value("compiled", 0), 12) << report.dump(2);
  EXPECT_GE(report.value("measured", 0), 4) << report.dump(2);
  const nlohmann::json listing = runJson("cache list --cache " + database);
  ASSERT_EQ(listing["choices"].size(), 1u);
  size_t timed = 0;
  for (const nlohmann::json &measurement : listing["choices"][0]["evidence"])
    timed += measurement.value("milliseconds", 0.0) > 0;
  EXPECT_EQ(timed, report.value("measured", size_t{0})) << "every time that was taken is kept";
}

// A person is not shown one by one what never ran.
TEST_F(ProgramJob, ATableSumsUpWhatWasNotCompiled) {
  const std::string table =
      run("tune --op window --config " + data + "/window_64.json --seqlen-k 64 --device cpu --cache " + database +
              " --kernel-budget 0.001",
          3);
  EXPECT_NE(table.find("winner "), std::string::npos) << table;
  EXPECT_EQ(table.find("pruned"), std::string::npos) << table;
  EXPECT_NE(table.find(" more were not compiled: out of budget\n"), std::string::npos) << table;
  const nlohmann::json listing = runJson("cache list --cache " + database);
  EXPECT_FALSE(listing["choices"][0].value("tuned", true)) << "nothing was measured";
}

TEST_F(ProgramJob, AWinnerThatCannotBeStoredIsAFailure) {
  scratch.write("file", "no database, so it is left alone");
  const std::string spec = "tune --op window --config " + data + "/window_64.json --seqlen-k 64 --device cpu" +
                           " --kernel-budget 0.001 --cache ";
  EXPECT_NE(run(spec + scratch.file("file"), 1).find("winner "), std::string::npos);
  EXPECT_NE(test::readFile(scratch.file("stderr")).find("the winner was not stored"), std::string::npos);
  run(spec + ":memory:", 3); // asked for, so no failure: nothing was measured
}

// An answer from lengths that do not hold it must not decide for all of them.
TEST_F(ProgramJob, AThresholdIsStoredWhereTheWholeRangeWasMeasured) {
  const std::string config = scratch.write("config.json", R"({"dtype": "fp32", "query_heads": 2, "kv_heads": 1,
    "qk_dim": 64, "v_dim": 64, "sel_block": 64, "sel_count": 4})");
  const std::string job = "bench thresholds --config " + config + " --device cpu --samples 1 --results " +
                          scratch.file("results") + " --store --cache " + database + " --tokens ";
  const std::string table = run(job + "64,128");
  EXPECT_NE(table.find("not stored: "), std::string::npos) << table;
  EXPECT_NE(table.find("sizes = 64 to 128: must reach from 64 to 256"), std::string::npos) << table;
  EXPECT_FALSE(std::filesystem::exists(database));
  setenv("NSA_TEMPLATE_DIR", NSA_TEMPLATES, 1);
  run(job + "64,512");
  unsetenv("NSA_TEMPLATE_DIR");
  const nlohmann::json routes = runJson("cache list --cache " + database)["routes"];
  ASSERT_EQ(routes.size(), 1u);
  EXPECT_EQ(routes[0].value("name", ""), "sel.dense_up_to");
  EXPECT_NE(routes[0].value("device", "").find(" templates="), std::string::npos) << "of the templates that were run";
}

TEST_F(ProgramJob, DoctorFindsAWorkingCpu) {
  setenv("NSA_FALLBACKS", "exact", 1); // forbids compiling to the host's engines, not to doctor's
  const nlohmann::json report = runJson("doctor --cache " + database);
  unsetenv("NSA_FALLBACKS");
  EXPECT_TRUE(report.value("cpu", false)) << report.dump(2);
}

// Where kernels come from packs alone: good without a compiler, and not with a pack that is refused.
TEST_F(ProgramJob, DoctorLooksAtPacks) {
  const std::string pack = scratch.file("kernels.nsapack");
  run("tune --op window --config " + data +
          "/window_64.json --seqlen-k 64 --device cpu --kernel-budget 0.001 --cache " + database,
      3);
  run("cache export " + pack + " --cache " + database);
  setenv("NSA_COMPILER", "absent.so", 1);
  setenv("NSA_CACHE_PACKS", pack.c_str(), 1);
  const std::string doctor = "doctor --cache :memory:";
  const nlohmann::json report = runJson(doctor);
  EXPECT_TRUE(report.value("packs", false)) << report.dump(2);
  EXPECT_TRUE(report["cpu"].is_null()) << report.dump(2);
  std::string bytes = test::readFile(pack);
  bytes.at(bytes.find("template attention")) ^= 1; // in the manifest; not every byte of a file holds something
  test::writeFile(pack, bytes);
  const std::string refused = run(doctor, 1);
  unsetenv("NSA_COMPILER");
  unsetenv("NSA_CACHE_PACKS");
  EXPECT_NE(refused.find("pack      -     "), std::string::npos) << refused;
  EXPECT_NE(refused.find("kernels.nsapack"), std::string::npos) << refused;
}

} // namespace
} // namespace nsa::tools
