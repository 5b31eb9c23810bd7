// The program as a user meets it: exit codes, where texts go, and nothing left behind by a failure.
#include "tests/unit/cli/program_fixture.h"

#include <nlohmann/json.hpp>

namespace nsa::tools {
namespace {

TEST_F(Program, SummarizePrintsADecodingBenchOrSaysWhatIsWrong) {
  const std::string header = "S,ms_total,ms_cmp,ms_sel,ms_win,reads_actual,reads_expected\n";
  const std::string good = scratch.write("good.csv", header + "512,8,2,4,1,1123,1571\n");
  const Outcome one = run("bench summarize " + good);
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out, "S    ms total  cmp %  sel %  win %  reads actual/expected  decode only\n"
                     "512  8.00      25.0   50.0   12.5   1123/1571              -/-\n");
  const Outcome two = run("bench summarize " + good + " " + good);
  EXPECT_EQ(two.out, good + "\n" + one.out + "\n" + good + "\n" + one.out);

  const std::string bad = scratch.write("bad.csv", header + "512,8,2,4,1,many,1571\n");
  expectFailure("bench summarize " + good + " " + bad, bad + ":2 reads_actual = many: must be a number from 0 on");
  expectFailure("bench summarize " + scratch.file("absent.csv"), "absent.csv");
  expectFailure("bench summarize " + scratch.file(""), "regular file");
  expectUsageError("bench summarize", "FILE is required");
}

TEST_F(Program, BenchRejectsWhatItCannotMeasure) {
  expectUsageError("bench prefill --tokens 0", "--tokens");
  expectUsageError("bench selection --samples 0", "--samples");
  expectUsageError("bench compress --warm-ups 0", "--warm-ups");
  expectUsageError("bench selection --peers x", "--peers");
  expectUsageError("bench decode --S_list 0", "--tokens");
  expectUsageError("bench decode --heads 0", "--heads");
  expectUsageError("bench decode --heads 4 --config " + shape, "--config");
  for (const std::string type : {"int8", "fp8_e4m3"})
    expectUsageError("bench decode --dtype " + type, "dtype = '" + type + "': must be one of bf16, fp16, fp32");
  expectUsageError("bench decode --new-tokens 0", "--new-tokens");
  const std::string results = " --results " + scratch.file("results");
  expectFailure("bench prefill --config " + scratch.file("absent.json") + results, "absent.json");
  expectFailure("bench prefill --config " + config + results, "lacks");
  expectFailure("bench prefill --tokens 3000000000 --config " + shape + results, "seqlen");
  expectFailure("bench prefill --device tpu --config " + shape + results, "tpu");
  expectFailure("bench selection --tokens 64 --config " + shape + results, "absent.so");
  expectFailure("bench decode --heads 7" + results, "query_heads = 7");
  expectFailure("bench decode --page-size 100" + results, "page_size = 100: must be a multiple of sel_block = 64");
  expectFailure("bench decode --iters 8 --warmup 8" + results, "--warm-ups = 8: must be below --samples = 8");
  expectFailure(
      "bench decode --tokens 512,64 --samples 64 --max-tokens 575" + results,
      "--max-tokens = 575: must be at least 576: the greatest number of --tokens, and what --samples steps append");
  expectFailure("bench decode --tokens 3000000000" + results, "seqlen");
  expectFailure("bench decode --config " + scratch.file("absent.json") + results, "absent.json");
  expectFailure("bench decode --S_list 64 --dim 256 --branch_force_mode env" + results, "absent.so");
}

TEST_F(Program, NumbersThatAreNoneAreNamedWithTheirRule) {
  for (const char *size : {"-1", "0", "0KB", "18446744073709551616", "9223372036854775808", "nan"})
    expectUsageError("cache gc --max-bytes " + std::string(size),
                     "--max-bytes: " + std::string(size) + " must be a size from 1 byte on, below 2^63 bytes");
  expectUsageError("cache gc --max-bytes 99999999999GiB", "--max-bytes: 99999999999 multiplied by gib");
  expectUsageError("cache gc --max-bytes 1x", "--max-bytes: x unit not recognized");
  for (const char *budget : {"nan", "inf", "1e999", "0", "-1", "x"}) {
    const std::string rule = ": " + std::string(budget) + " must be a number of seconds above 0\n";
    expectUsageError("tune --budget " + std::string(budget) + " nsa128", "--budget" + rule);
    expectUsageError("run --kernel-budget " + std::string(budget), "--kernel-budget" + rule);
  }
  expectUsageError("run --decode-last -1", "--decode-last: -1 must be a whole number from 1 on\n");
  expectUsageError("cache gc --older-than-days 99999999999999999999", "must be a whole number from 0 on\n");
  expectUsageError("bench prefill --samples 10001", "--samples: 10001 must be a whole number from 1 to 10000\n");
  expectFailure("cache gc --max-bytes 64KiB --cache " + scratch.file("absent.db"), "there is no kernel database");
}

TEST_F(Program, AKeyHasAName) {
  expectUsageError("cache keygen ''", "NAME: '' must be the name of a file");
  expectUsageError("cache keygen " + scratch.file(""), "must be the name of a file");
}

TEST_F(Program, AConfigurationMayBeAWordOrComeFromAPipe) {
  const std::string text = R"({"query_heads": 4, "kv_heads": 1, "qk_dim": 64, "window": 64})";
  const std::string explain = "explain --op window --cache :memory: --json --config ";
  const Outcome file = run(explain + shape);
  EXPECT_NE(file.out.find("window dtype=bf16 group=4"), std::string::npos) << file.out << file.err;
  for (const auto &[word, before] :
       {std::pair("'" + text + "'", std::string()), std::pair(std::string("-"), "printf '%s' '" + text + "' | "),
        std::pair("'  " + text + "'", std::string())}) {
    const Outcome outcome = run(explain + word, before);
    EXPECT_EQ(outcome.code, file.code) << word << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, file.out) << word;
  }
  expectFailure(explain + "'{\"window\": 0}'", "--config: window = 0: must be an integer from 1");
  expectFailure("generate --op window --output " + output + " --config '{\"window\": 0}'", "--config: window = 0");
  expectFailure("bench prefill --tokens 64 --config '{\"query_heads\": 4, \"windw\": 64}'",
                "--config: unknown key \"windw\"");
  expectFailure("validate --output " + scratch.file("folder") + " --config '{\"branches\": [\"cmp\"]}'",
                "branches = in --config: must be left out");
  EXPECT_NE(run(explain + "-", "echo '{\"window\": 0}' | ").err.find("standard input: window = 0"), std::string::npos);
  EXPECT_NE(run(explain + "-", "</dev/null ").err.find("standard input is not valid JSON"), std::string::npos);
}

TEST_F(Program, ExplainTakesNoMoreQueriesThanKeys) {
  expectFailure("explain --op window --seqlen-q 200 --seqlen-k 100 --config " + shape,
                "--seqlen-q = 200: must be at most --seqlen-k = 100: queries are the last tokens of their sequence");
  expectFailure("explain --op window --seqlen-k 3000000000 --config " + shape,
                "--seqlen-q = 3000000000: must be below");
  expectFailure("explain --op decode --seqlen-q 1 --seqlen-k 4194305 --config " + shape,
                "--seqlen-k = 4194305: must be at most 4194304");
  expectFailure("explain --op window --batch 3000000000 --config " + shape, "--batch = 3000000000: must be below");
  expectFailure("explain --op window --tokens-q 3000000000 --config " +
                    scratch.write("packed.json", R"({"query_heads": 4, "kv_heads": 1, "qk_dim": 64, "window": 64,
                                                     "layout": "packed"})"),
                "--tokens-q = 3000000000: must be below");
  // compress has no queries, and combine has no keys.
  for (const std::string op : {"compress", "combine"}) {
    const Outcome outcome = run("explain --op " + op + " --seqlen-q 200 --seqlen-k 100 --config " + shape);
    EXPECT_NE(outcome.err.find("a plan of this would fail"), std::string::npos) << op << "\n" << outcome.err;
    const Outcome made =
        run("generate --op " + op + " --seqlen-q 200 --seqlen-k 100 --output " + output + " --config " + shape);
    EXPECT_EQ(made.code, 0) << op << "\n" << made.err;
  }
}

TEST_F(Program, ALostStdoutIsAFailure) {
  for (const std::string &arguments :
       {std::string("--version"), std::string("run --help"),
        "explain --op window --config " + shape + " --device cpu --cache :memory: --json"}) {
    const int status =
        std::system(("'" NSA_PROGRAM "' " + arguments + " >/dev/full 2>" + scratch.file("stderr")).c_str());
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 1) << arguments;
    EXPECT_NE(readFile(scratch.file("stderr")).find("stdout cannot be written"), std::string::npos) << arguments;
  }
}

TEST_F(Program, TuneTakesAWorkloadOrASpec) {
  const std::string tiny = NSA_TEST_DATA "/tune_tiny.json";
  expectUsageError("tune", "WORKLOAD, --op, --program or --list is required");
  expectUsageError("tune --json", "WORKLOAD, --op, --program or --list is required");
  expectUsageError("tune " + tiny + " --op window --config " + shape, "excludes");
  expectUsageError("tune --op window", "--config");
  expectUsageError("tune --config " + shape, "--op");
  expectUsageError("tune " + tiny + " --seqlen-k 64", "--seqlen-k requires --op");
  expectUsageError("tune --op window --config " + shape + " --budget 5",
                   "--budget requires WORKLOAD; with --op and --program the option is --kernel-budget\n");
  expectUsageError("tune --list --budget 5", "--budget requires WORKLOAD");
  expectUsageError("tune --op window --config " + shape + " --dry-run", "--dry-run requires WORKLOAD");
  expectUsageError("tune --op window --config " + shape + " --report r.html", "--report requires WORKLOAD");
  expectUsageError("tune " + tiny + " --budget 0", "--budget");
  expectUsageError("tune " + tiny + " --target sm_90a", "needs --compile-only or --dry-run");
  expectUsageError("tune " + tiny + " --compile-only", "--compile-only requires --target");
  expectUsageError("tune " + tiny + " --compile-only --target sm_75", "sm_75");
  expectUsageError("tune " + tiny + " --compile-only --target cpu --budget 5", "excludes");
  expectUsageError("tune " + tiny + " --compile-only --target cpu --dry-run", "excludes");
  expectUsageError("tune " + tiny + " --dry-run --target cpu --device cpu", "excludes");
  expectUsageError("tune --op window --config " + shape + " --operators window", "--operators requires WORKLOAD");
  expectUsageError("tune --op window --config " + shape + " --direction both", "--direction requires WORKLOAD");
  expectUsageError("tune " + tiny + " --direction bakward",
                   "--direction: bakward must be one of forward, backward, both: did you mean backward?");
  expectFailure("tune nsa129", "did you mean nsa128?");
  expectFailure("tune " + tiny + " --dry-run --operators cmp,selekt",
                "--operators = selekt: must be an operator of one");
  expectFailure("tune absent.json", "absent.json");
  expectFailure("tune " + config, "config.json: name = (absent)");
  expectFailure("tune " + tiny + " --dry-run", "absent.so");
  expectFailure("tune " + tiny + " --compile-only --target cpu", "absent.so");
  const Outcome list = run("tune --list");
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_NE(list.out.find("nsa192               64 heads in 4 groups, 192/128"), std::string::npos) << list.out;
}

TEST_F(Program, UsageErrorsAreTwo) {
  expectUsageError("run", "--output");
  expectUsageError("run --op conv --config c --input i --output o", "conv");
  expectUsageError("run --op sequences --config c --input i --output o", "sequences");
  expectUsageError("run --op window --input i --output o", "--config");
  expectUsageError("run --op window --config c --input i --output o --wings", "--wings");
  expectUsageError("run --op window --config c --input i --output o --miss maybe", "maybe");
  expectUsageError("compile --op window --config " + shape + " --target sm_75 --emit cuda", "sm_75");
  expectUsageError("compile --op window --config " + shape + " --target cpu --emit assembly", "assembly");
  expectUsageError("compile --op window --config " + shape + " --target cpu", "--emit or --list");
  expectUsageError("compile --op window --config " + shape + " --target cpu --emit ptx",
                   "ptx does not exist for --target cpu");
  expectUsageError("compile --op window --config " + shape + " --target sm_80 --emit llvm",
                   "llvm does not exist for --target sm_80");
  expectUsageError("compile --op window --config " + shape + " --target sm_80 --emit cubin",
                   "name a file with --output");
  expectUsageError("compile --op window --config " + shape + " --target cpu --list --emit llvm", "--emit");
  expectUsageError("compile --op window --config " + shape + " --target cpu --emit llvm --set query_tile",
                   "NAME=VALUE");
  expectUsageError("explain --op window --config " + shape + " --batch 0", "--batch");
  expectUsageError("explain --op window --config " + shape + " --input x --batch 2", "--batch");
  expectUsageError("tune --op window --config " + shape + " --kernel-budget -1", "--kernel-budget");
  expectUsageError("generate --op nsa --config c --output o --structure spiral",
                   "spiral must be one of random, clustered, recency, needle, real-locality");
  expectUsageError("generate --op nsa --config c --output o --needle-position -1", "--needle-position");
  expectUsageError("generate --op nsa --config c", "--output");
  expectUsageError("dump-selection --op window --config c --input i", "window");
  expectUsageError("dump-selection --op nsa --config c", "--input");
  expectUsageError("cache show", "KEY");
}

TEST_F(Program, BadFilesAreNamedAndNothingIsWritten) {
  const std::string input = writeInput();
  const std::string rest = " --output " + output + " --cache :memory:";
  expectFailure("run --op window --config " + scratch.file("no.json") + " --input " + input + rest, "no.json");
  expectFailure("run --op window --config " + scratch.write("bad.json", "{") + " --input " + input + rest, "bad.json");
  expectFailure("run --op window --config " + scratch.write("typo.json", R"({"windw": 1})") + " --input " + input +
                    rest,
                "unknown key \"windw\"");
  expectFailure("run --op window --config " + scratch.write("other.json", R"({"kv_heads": 2})") + " --input " + input +
                    rest,
                "kv_heads = 2");
  expectFailure("run --op window --config " + config + " --input " + scratch.file("no.safetensors") + rest,
                "no.safetensors");
  expectFailure("run --op window --config " + config + " --input " +
                    scratch.write("cut.safetensors", readFile(input).substr(0, 200)) + rest,
                "truncated");
  EXPECT_FALSE(std::filesystem::exists(output));
}

TEST_F(Program, TensorsBeyondTheMemoryAreAFailureNotACrash) {
#if defined(NSA_ADDRESS_SANITIZER) || defined(NSA_THREAD_SANITIZER)
  GTEST_SKIP() << "a sanitizer needs the address space";
#endif
  // A hole of 8 GiB in a file that says it is q, read with 1 GiB of address space.
  const uint64_t bytes = uint64_t{8} << 30;
  std::string header =
      R"({"q":{"dtype":"F32","shape":[33554432,8,8],"data_offsets":[0,)" + std::to_string(bytes) + "]}}";
  const uint64_t length = header.size();
  header.insert(0, reinterpret_cast<const char *>(&length), sizeof length);
  const std::string input = scratch.write("huge.safetensors", header);
  std::filesystem::resize_file(input, header.size() + bytes);
  const Outcome outcome = run("run --op window --config " + config + " --input " + input + " --output " + output +
                                  " --cache :memory: --device cpu",
                              "ulimit -v 1048576; ");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_NE(outcome.err.find("not enough memory"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(output));
}

TEST_F(Program, AMissWithoutACompilerIsAnErrorWithAHint) {
  const std::string job = "run --op window --config " + config + " --input " + writeInput() + " --output " + output +
                          " --cache :memory: --device cpu";
  const Outcome outcome = run(job);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("absent.so"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("hint"), std::string::npos) << outcome.err;
  expectFailure(job + " --miss fail", "cache miss");
  EXPECT_FALSE(std::filesystem::exists(output));
  expectFailure("compile --op window --config " + shape + " --target cpu --emit llvm", "absent.so");
}

TEST_F(Program, AnOperatorOfSeveralKernelsIsCompiledOneByOne) {
  const std::string rest = " --target cpu --emit tile --config ";
  expectFailure("compile --op nsa" + rest + shape, "--op = nsa: is several kernels, and this compiles one (hint: name "
                                                   "one of them: compress, cmp, select, sel, window, combine)");
  // The launches of this very spec: packed, without a branch, and short enough that each block is selected.
  const std::string other = scratch.write(
      "other.json",
      R"({"query_heads": 4, "kv_heads": 1, "qk_dim": 64, "layout": "packed", "branches": ["cmp", "sel"]})");
  expectFailure("compile --op nsa --seqlen-k 1024" + rest + other,
                "one of them: sequences, compress, cmp, select, dense, combine)");
  // The gradient of queries has two ways. Slots are not possible if a block does not fit into shared memory.
  for (const auto &[block, kernels] :
       {std::pair(64, ", sel_dq, sel_dkv, sum_parts, index_slots, index_ranges, sel_dq_slots, sum_slots)"),
        std::pair(512, ", sel_dq, sel_dkv, sum_parts)")})
    expectFailure("compile --op sel_bwd" + rest + R"('{"query_heads": 8, "kv_heads": 1, "qk_dim": 64, "sel_block": )" +
                      std::to_string(block) + "}'",
                  kernels);
  // Each of them gets as far as the compiler.
  for (const char *op : {"sequences", "compress", "cmp", "select", "sel", "dense", "window", "combine"})
    expectFailure("compile --op " + std::string(op) + rest + other, "absent.so");
}

TEST_F(Program, ExplainSaysItOfEachKernel) {
  const Outcome outcome = run("explain --op nsa --config " + shape + " --device cpu --cache :memory: --json");
  ASSERT_EQ(outcome.code, 1) << "without a compiler a plan would fail";
  const nlohmann::json report = nlohmann::json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << outcome.out;
  EXPECT_EQ(report["kernels"].size(), 6u);
  const Outcome text = run("explain --op nsa --config " + shape + " --device cpu --cache :memory:");
  for (const char *op : {"compress", "cmp", "select", "sel", "window", "combine"})
    EXPECT_NE(text.out.find("problem    " + std::string(op) + " "), std::string::npos) << text.out;
}

TEST_F(Program, GenerateGivesTheSameFileForTheSameSeed) {
  const std::string job = "generate --op nsa --config " + shape + " --seqlen-k 200 --batch 2 --output " + output;
  ASSERT_EQ(run(job + " --seed 7").code, 0);
  const std::string first = readFile(output);
  ASSERT_EQ(run(job + " --seed 7").code, 0);
  EXPECT_EQ(readFile(output), first);
  ASSERT_EQ(run(job + " --seed 8").code, 0);
  EXPECT_NE(readFile(output), first);
  ASSERT_EQ(run(job + " --seed 7 --structure recency").code, 0);
  EXPECT_NE(readFile(output), first);

  const Result<SafetensorsFile> file = SafetensorsFile::open(output);
  ASSERT_TRUE(file) << file.status().toString();
  EXPECT_EQ(file->entries().at("q").shape, (std::vector<int64_t>{2, 200, 4, 64}));
  EXPECT_EQ(file->entries().at("k_sel").shape, (std::vector<int64_t>{2, 200, 1, 64}));
  EXPECT_EQ(file->entries().at("gates").shape, (std::vector<int64_t>{2, 200, 4, 3}));
}

TEST_F(Program, GenerateMakesNoListsWithoutRoomForTheForcedBlocks) {
  for (const std::string op : {"nsa", "nsa_bwd"})
    expectFailure("generate --op " + op + " --seqlen-k 200 --output " + output + " --config " +
                      scratch.write("few.json", R"({"query_heads": 2, "kv_heads": 1, "qk_dim": 16, "sel_count": 2})"),
                  "sel_count = 2: must be at least init_blocks + local_blocks = 3");
}

TEST_F(Program, EveryOperatorTakesWhatIsGeneratedForIt) {
  const std::string packed =
      scratch.write("packed.json", R"({"query_heads": 4, "kv_heads": 2, "qk_dim": 16, "v_dim": 8, "layout": "packed",
                                       "cmp_kind": "mlp", "mlp_hidden": 5, "gate_per_group": true})");
  const std::string pages =
      scratch.write("pages.json", R"({"query_heads": 2, "kv_heads": 1, "qk_dim": 16, "page_size": 64})");
  for (const std::string &op :
       {"dense", "window", "compress", "cmp", "select", "sel", "combine", "nsa", "decode", "rotate", "rotate_bwd",
        "combine_bwd", "dense_bwd", "window_bwd", "cmp_bwd", "invert", "compress_bwd", "sel_bwd", "nsa_bwd"})
    for (const std::string &path : {shape, packed, pages}) {
      const Outcome made = run("generate --op " + op + " --config " + path + " --seqlen-k 150 --output " + output);
      ASSERT_EQ(made.code, 0) << op << "\n" << made.err;
      EXPECT_NE(made.out, "");
      const Outcome explained =
          run("explain --op " + op + " --config " + path + " --input " + output + " --device cpu --cache :memory:");
      EXPECT_NE(explained.err.find("a plan of this would fail"), std::string::npos) << op << "\n" << explained.err;
    }
}

TEST_F(Program, WhatCannotBeGeneratedIsNamed) {
  const std::string job = "generate --config " + shape + " --output " + output + " --op ";
  expectFailure(job + "nsa --seqlen-k 10 --seqlen-q 11", "--seqlen-q = 11: must be at most --seqlen-k = 10");
  expectFailure(job + "cmp --seqlen-k 10 --seqlen-q 5", "--seqlen-q = 5: must be --seqlen-k = 10 for cmp");
  expectFailure(job + "window --structure recency",
                "op = window: must be nsa, nsa_bwd or decode for the structure recency");
  expectFailure(job + "decode --seqlen-k 10 --seqlen-q 11", "--seqlen-q = 11: must be at most --seqlen-k = 10");
  expectFailure("generate --op decode --output " + output + " --config " +
                    scratch.write("page.json", R"({"query_heads": 2, "kv_heads": 1, "qk_dim": 16, "page_size": 65})"),
                "page_size = 65: must be a multiple of sel_block = 64");
  expectFailure(job + "nsa --structure needle --seqlen-k 10 --needle-position 10", "needle_position = 10: must be");
  expectFailure("generate --op nsa --config " + config + " --output " + output, "lacks query_heads");
  EXPECT_FALSE(std::filesystem::exists(output));
  expectFailure("generate --op nsa --config " + shape + " --output " + scratch.file("absent/o"),
                "the folder must exist");
}

TEST_F(Program, ASelectionThatCannotBeDumpedIsNamed) {
  const std::string input = scratch.file("nsa.safetensors");
  ASSERT_EQ(run("generate --op nsa --config " + shape + " --seqlen-k 100 --output " + input).code, 0);
  const std::string rest = " --device cpu --cache :memory: --input " + input + " --config ";
  expectFailure("dump-selection --op nsa" + rest + scratch.write("cmp.json", R"({"branches": ["cmp", "win"]})"),
                "branches = without sel: must name sel");
  expectFailure("dump-selection --op select" + rest + config, "has no tensor \"k_comp\"");
  expectFailure("dump-selection --op nsa --miss fail" + rest + config, "cache miss");
  expectFailure("dump-selection --op nsa" + rest + config + " --output " + scratch.file("absent/o"),
                "the folder must exist");
}

TEST_F(Program, WhatCannotBeDecodedIsNamed) {
  const std::string input = scratch.file("nsa.safetensors");
  ASSERT_EQ(run("generate --op nsa --config " + shape + " --seqlen-k 100 --seqlen-q 50 --output " + input).code, 0);
  const std::string rest = " --device cpu --cache :memory: --config " + config + " --output " + output + " --input ";
  expectFailure("run --op nsa --decode-last 8" + rest + input,
                "--decode-last = 8: needs as many queries as keys, not 50 and 100");
  ASSERT_EQ(run("generate --op nsa --config " + shape + " --seqlen-k 100 --output " + input).code, 0);
  expectFailure("run --op nsa --decode-last 100" + rest + input,
                "--decode-last = 100: must be below the length of every sequence, 100");
  expectFailure("run --op window --decode-last 8" + rest + writeInput(), "--decode-last = 8: is of --op nsa only");
  expectFailure("run --op decode" + rest + input, "has no tensor \"k_cache\"");
  expectUsageError("run --op nsa --decode-last 0" + rest + input, "--decode-last");
  EXPECT_FALSE(std::filesystem::exists(output));
}

TEST_F(Program, AFailedRunLeavesTheOldOutput) {
  scratch.write("out.safetensors", "the old result");
  expectFailure("run --op window --config " + config + " --input " + writeInput() + " --output " + output +
                    " --cache :memory: --device cpu --miss fail",
                "cache miss");
  EXPECT_EQ(readFile(output), "the old result");
}

// An unknown device would be refused when the engine opens: the output is looked at before.
TEST_F(Program, AnOutputThatCannotBeWrittenIsFoundFirst) {
  const std::string job = "run --op window --config " + config + " --input " + writeInput() + " --device tpu --output ";
  expectFailure(job + scratch.file("absent/out.safetensors"), "the folder must exist and be writable");
  expectFailure(job + scratch.file(""), "is not a regular file");
  expectFailure(job + output, "tpu");
  EXPECT_NE(std::system(("ls " + output + "* 2>/dev/null").c_str()), 0) << "a temporary file was left";
}

TEST_F(Program, UnknownDevicesAreRefused) {
  const std::string job = "run --op window --config " + config + " --input " + writeInput() + " --output " + output +
                          " --cache :memory: --device ";
  expectFailure(job + "tpu", "tpu");
  expectFailure(job + "cuda:x", "cuda:x");
}

TEST_F(Program, AMissingDatabaseIsNamed) {
  expectFailure("cache list --cache " + scratch.file("none.db"), "none.db");
  expectFailure("cache show abc --cache " + scratch.file("none.db"), "none.db");
}

TEST_F(Program, ExplainSaysWhyNothingWouldRun) {
  const Outcome outcome = run("explain --op window --config " + shape + " --device cpu --cache :memory: --json");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("a plan of this would fail:\n  window dtype="), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(": would fail: "), std::string::npos) << outcome.err;
  const nlohmann::json report = nlohmann::json::parse(outcome.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << outcome.out;
  const Outcome missed = run("explain --op window --config " + shape + " --device cpu --cache :memory: --miss fail");
  EXPECT_EQ(missed.code, 1);
  EXPECT_NE(missed.err.find(": would fail with a cache miss"), std::string::npos) << missed.err;
  EXPECT_NE(missed.out.find("would      fail with a cache miss"), std::string::npos) << missed.out;
  EXPECT_NE(missed.out.find("stored     no kernel for it; looked in :memory:\n"), std::string::npos) << missed.out;
  EXPECT_NE(report.value("candidates_trouble", "").find("absent.so"), std::string::npos) << outcome.out;
  EXPECT_FALSE(report["database"].value("found", true));
}

TEST_F(Program, LookingMakesNothing) {
  const std::string diary(5000, 'x');
  for (const std::string &arguments : {"explain --op window --config " + shape + " --device cpu", std::string("doctor"),
                                       std::string("cache list"), std::string("cache show 00")}) {
    (void)run(arguments);
    EXPECT_NE(std::system(("test -e " + scratch.file("xdg")).c_str()), 0) << arguments << " made a cache folder";
    const std::string file = scratch.write("diary.txt", diary);
    (void)run(arguments + " --cache " + file);
    EXPECT_EQ(readFile(file), diary) << arguments;
    EXPECT_NE(std::system(("ls " + file + "?* 2>/dev/null").c_str()), 0) << arguments << " left a file";
  }
}

TEST_F(Program, DoctorSaysWhatIsMissingAndFailsWhereNothingCanRun) {
  const Outcome outcome = run("doctor --cache :memory:");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("absent.so"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("to do:"), std::string::npos) << outcome.out;
  const std::string absent = "absent.db (is made when the first kernel is stored)";
  EXPECT_EQ(outcome.out.find("is made when"), std::string::npos) << outcome.out;
  EXPECT_NE(run("doctor --cache " + scratch.file("absent.db")).out.find(absent), std::string::npos);
  EXPECT_NE(outcome.err.find("neither a compiler nor a stored kernel"), std::string::npos) << outcome.err;
  const std::string both = scratch.file("both");
  (void)std::system((commandOf("doctor --cache :memory:") + " >" + both + " 2>&1").c_str());
  EXPECT_EQ(readFile(both), outcome.out + outcome.err) << "the verdict stands below the lines";
  const Outcome json = run("doctor --cache :memory: --json");
  const nlohmann::json report = nlohmann::json::parse(json.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << json.out;
  EXPECT_TRUE(report["cpu"].is_null()) << "not tried";
}

TEST_F(Program, AValidationShowsNothingOfAnEarlierOne) {
  const std::string folder = scratch.file("folder");
  std::filesystem::create_directories(folder + "/decode");
  for (const char *name : {"parity.json", "decode.json", "decode/decode.csv", "report.html", "thresholds.json.log"})
    test::writeFile(folder + "/" + name, R"({"checks": [{"output": "of an earlier run", "within": true}]})");
  const Outcome outcome =
      run("validate --output " + folder + " --device cpu --cache :memory: --tokens 128 --samples 1");
  EXPECT_EQ(outcome.code, 1) << outcome.out;
  EXPECT_NE(outcome.err.find("steps that failed: environment, routing, branch cmp, branch sel, branch win, parity, "
                             "gradient routing, gradient, selection, decode, decode summary, thresholds"),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.out.find("decode_summary.txt: not run: it needs what `decode` makes"), std::string::npos)
      << outcome.out;
  const std::string page = readFile(folder + "/report.html");
  EXPECT_NE(page.find("12 of 13 steps failed"), std::string::npos);
  EXPECT_EQ(page.find("of an earlier run"), std::string::npos);
  EXPECT_EQ(readFile(folder + "/thresholds.json.log").find("of an earlier run"), std::string::npos);
}

TEST_F(Program, DoctorFailsWhereNoEngineOpens) {
  setenv("NSA_PIN", scratch.file("absent.nsapack").c_str(), 1);
  const Outcome outcome = run("doctor --cache :memory:");
  unsetenv("NSA_PIN");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.out.find("engine    -"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("absent.nsapack"), std::string::npos) << outcome.out;
}

} // namespace
} // namespace nsa::tools
