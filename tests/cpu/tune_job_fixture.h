// Runs `nsa tune` of the tiny workload in processes of its own, with few choices for each template, and reads what a
// run stored.
#pragma once

#include "tests/harness/template_folder.h"
#include "tools/support/engine.h"

#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sqlite3.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace nsa::tools {

inline constexpr size_t kKernels = 12; // of the tiny workload: tests/unit/cli/tune_jobs_test.cpp has their list

class TuneJobTest : public ::testing::Test {
public:
  void SetUp() override {
    templates.copyFrom(NSA_TEMPLATES);
    templates.keepFewChoices();
  }

  std::vector<std::string> tune(const std::vector<std::string> &more) const {
    std::vector<std::string> arguments = {NSA_PROGRAM, "tune", workload, "--cache", database};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // A process of its own whose output is added to `log`.
  pid_t start(std::vector<std::string> arguments) const {
    const pid_t child = fork();
    if (child != 0)
      return child;
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    setenv("NSA_TEMPLATE_DIR", templates.path().c_str(), 1);
    setenv("NSA_DEVICE", "cpu", 1);
    setenv("NSA_CPU_THREADS", "1", 1); // kernels of microseconds: waiting for a second thread would be all there is
    setenv("NSA_MISS", "fail", 1);     // of plans: who asks for tuning gets it
    for (const char *name : {"NSA_CACHE_DIR", "NSA_TUNE_BUDGET", "NSA_FORCE_VARIANT", "NSA_CACHE_PACKS"})
      unsetenv(name);
    if (!packs.empty())
      setenv("NSA_CACHE_PACKS", packs.c_str(), 1);
    std::vector<char *> pointers;
    for (std::string &argument : arguments)
      pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    execv(NSA_PROGRAM, pointers.data());
    _exit(127);
  }
  static int codeOf(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  // What it printed; the exit code must be the expected one.
  std::string run(const std::vector<std::string> &arguments, int expected = 0) const {
    std::filesystem::remove(log);
    const int code = codeOf(start(arguments));
    const std::string output = test::readFile(log);
    EXPECT_EQ(code, expected) << output;
    return output;
  }

  struct Stored {
    std::string winner;
    std::set<std::string> tied; // who may be as fast
    double milliseconds = 0;
    std::string evidence; // to find out why two tables differ
  };
  // Of each stored problem, by the program's own listing.
  std::map<std::string, Stored> storedChoices(bool tuned = true) const {
    std::map<std::string, Stored> stored;
    const nlohmann::json listing =
        nlohmann::json::parse(run({NSA_PROGRAM, "cache", "list", "--json", "--cache", database}));
    for (const nlohmann::json &choice : listing["choices"]) {
      EXPECT_EQ(choice.value("tuned", !tuned), tuned) << choice.dump();
      Stored entry;
      entry.evidence = choice["evidence"].dump();
      for (const nlohmann::json &measured : choice["evidence"]) {
        const std::string config = measured.value("template", "") + " " + measured.value("config", "");
        if (measured.value("outcome", "") == "winner") {
          entry.winner = config;
          entry.milliseconds = measured.value("milliseconds", 0.0);
        }
        if (measured.value("detail", "") == "may be as fast as the winner")
          entry.tied.insert(config);
      }
      EXPECT_TRUE(stored.emplace(choice.value("problem", ""), entry).second);
    }
    return stored;
  }

  void expectWholeFile() const {
    if (!std::filesystem::exists(database))
      return;
    sqlite3 *connection = nullptr;
    ASSERT_EQ(sqlite3_open(database.c_str(), &connection), SQLITE_OK);
    std::string answer;
    const auto first = [](void *text, int, char **values, char **) {
      *static_cast<std::string *>(text) += values[0];
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(connection, "PRAGMA integrity_check", first, &answer, nullptr), SQLITE_OK);
    EXPECT_EQ(answer, "ok");
    sqlite3_close(connection);
  }
  void removeDatabase() const {
    for (const char *ending : {"", "-wal", "-shm"})
      std::filesystem::remove(database + ending);
  }

  test::Scratch scratch;
  test::TemplateFolder templates;
  const std::string workload = NSA_TEST_DATA "/tune_tiny.json";
  const std::string database = scratch.file("kernels.db"), log = scratch.file("log");
  std::string packs; // NSA_CACHE_PACKS of the next process
};

} // namespace nsa::tools
