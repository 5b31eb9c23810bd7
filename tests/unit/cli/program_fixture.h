// A fixture that runs the program as a user does, in an environment in which runs end the same on every machine.
// NSA_COMPILER names a library that no loader finds. Thread-safety: one thread.
#pragma once

#include "tests/harness/scratch.h"
#include "tools/nsa/files/safetensors.h"

#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>

namespace nsa::tools {

using test::readFile;
using test::Scratch;

struct Outcome {
  int code = -1;
  std::string out, err;
};

class Program : public ::testing::Test {
protected:
  Outcome run(const std::string &arguments, const std::string &before = "") {
    const std::string command =
        before + commandOf(arguments) + " >" + scratch.file("stdout") + " 2>" + scratch.file("stderr");
    const int status = std::system(command.c_str());
    Outcome outcome;
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    outcome.out = readFile(scratch.file("stdout"));
    outcome.err = readFile(scratch.file("stderr"));
    return outcome;
  }

  // A command for a shell.
  std::string commandOf(const std::string &arguments) const {
    return "env -u NSA_MISS -u NSA_CACHE_DIR NSA_COMPILER=absent.so NSA_DEVICE=cpu XDG_CACHE_HOME=" +
           scratch.file("xdg") + " '" NSA_PROGRAM "' " + arguments;
  }

  void expectUsageError(const std::string &arguments, const std::string &reason) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err.find(reason), std::string::npos) << arguments << "\n" << outcome.err;
  }

  void expectFailure(const std::string &arguments, const std::string &reason) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 1) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err.find(reason), std::string::npos) << arguments << "\n" << outcome.err;
  }

  // A small valid job.
  std::string writeInput() {
    const HostTensor q = HostTensor::make(DType::kF32, {6, 2, 8}), k = HostTensor::make(DType::kF32, {9, 1, 8});
    const std::string path = scratch.file("in.safetensors");
    EXPECT_TRUE(writeSafetensors(OutputFile::create(path), {{"q", &q}, {"k", &k}, {"v", &k}}).isOk());
    return path;
  }

  Scratch scratch;
  std::string config = scratch.write("config.json", R"({"window": 4})");
  std::string shape = scratch.write("shape.json", R"({"query_heads": 4, "kv_heads": 1, "qk_dim": 64, "window": 64})");
  std::string output = scratch.file("out.safetensors");
};

} // namespace nsa::tools
