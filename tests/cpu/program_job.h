// What tests of the command line's work on the CPU device share: the program, the trained model's tensors, a cache.
// Thread-safety: one thread.
#pragma once

#include "tests/harness/scratch.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <sqlite3.h>
#include <string>
#include <sys/wait.h>

namespace nsa::tools {

class ProgramJob : public ::testing::Test {
protected:
  // Standard output; the exit code must be the expected one. `environment`: "NAME=value ...".
  std::string run(const std::string &arguments, int expected = 0, const std::string &environment = "") {
    const std::string command = "env -u NSA_MISS -u NSA_CACHE_DIR " + environment + " '" NSA_PROGRAM "' " + arguments +
                                " >" + scratch.file("stdout") + " 2>" + scratch.file("stderr");
    const int status = std::system(command.c_str());
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == expected) << command << "\n"
                                                                      << test::readFile(scratch.file("stderr"));
    return test::readFile(scratch.file("stdout"));
  }
  nlohmann::json runJson(const std::string &arguments) {
    const std::string text = run(arguments + " --json");
    nlohmann::json report = nlohmann::json::parse(text, nullptr, false);
    EXPECT_TRUE(report.is_object()) << text;
    return report;
  }

  void execute(const std::string &statement) const {
    sqlite3 *connection = nullptr;
    ASSERT_EQ(sqlite3_open(database.c_str(), &connection), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(connection, statement.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(connection);
    sqlite3_close(connection);
  }

  // Every output has its verdict, and a good one.
  static void expectChecked(const nlohmann::json &report, const std::set<std::string> &outputs) {
    std::set<std::string> checked;
    for (const nlohmann::json &check : report["checks"]) {
      checked.insert(check.value("output", ""));
      EXPECT_TRUE(check.value("within", false)) << check.dump(2);
    }
    EXPECT_EQ(checked, outputs) << report.dump(2);
  }

  test::Scratch scratch;
  const std::string data = NSA_TEST_DATA;
  const std::string input = data + "/nsa_layer3_2048_group0.safetensors";
  const std::string output = scratch.file("out.safetensors");
  const std::string database = scratch.file("kernels.db");
  const std::string job = "run --op window --config " + data + "/window.json --input " + input + " --output " + output +
                          " --device cpu --cache " + database + " --check --all-outputs";
};

} // namespace nsa::tools
