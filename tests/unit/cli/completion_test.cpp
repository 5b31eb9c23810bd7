// Words are typed into a shell on a terminal, with a TAB behind them. The command there prints what it was called with.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;

constexpr int kLongMs = 60'000; // a shell that says nothing for so long never will

class Completion : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    const std::string shell = GetParam();
    if (std::system(("command -v " + shell + " >/dev/null").c_str()) != 0)
      GTEST_SKIP() << shell << " is not installed";
    char name[] = "/tmp/nsa_completion_XXXXXX";
    folder = mkdtemp(name);
    fs::create_directory(folder / "results");
    for (const char *file : {"model.json", "resultant.json"})
      std::ofstream(folder / file) << "{}";
    // zsh loads a completion by its name.
    fs::create_symlink(fs::path(NSA_PAGES) / "_nsa", folder / "_nsa");
    child = forkpty(&terminal, nullptr, nullptr, nullptr);
    ASSERT_GE(child, 0);
    if (child == 0) {
      if (chdir(folder.c_str()) != 0)
        _exit(126);
      setenv("TERM", "dumb", 1);
      setenv("HOME", folder.c_str(), 1);
      shell == "bash" ? execlp("bash", "bash", "--noprofile", "--norc", "-i", nullptr)
                      : execlp("zsh", "zsh", "-f", "-i", nullptr);
      _exit(127);
    }
    const std::string load = shell == "bash" ? "source '" NSA_PAGES "/nsa.bash'"
                                             : "fpath=(\"$PWD\" $fpath); autoload -U compinit; compinit -u -D; "
                                               "unsetopt zle_bracketed_paste; setopt no_auto_remove_slash";
    type(load + "; nsa() { printf '[%s]' \"$@\"; echo ' do''ne'; }; echo load''ed\n");
    ASSERT_TRUE(readUntil("loaded")) << heard;
  }
  void TearDown() override {
    if (child > 0) {
      close(terminal);
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    if (!folder.empty())
      fs::remove_all(folder);
  }

  void type(const std::string &text) const {
    ASSERT_EQ(write(terminal, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  bool readUntil(const std::string &end) {
    heard.clear();
    pollfd ready{terminal, POLLIN, 0};
    char part[4096];
    while (heard.find(end) == std::string::npos) {
      if (poll(&ready, 1, kLongMs) <= 0)
        return false;
      const ssize_t count = read(terminal, part, sizeof part);
      if (count <= 0)
        return false;
      heard.append(part, static_cast<size_t>(count));
    }
    return true;
  }
  // What `nsa` is called with when `words` are typed, a TAB, and RETURN: "[run][--op]".
  std::string completed(const std::string &words) {
    type("nsa " + words + "\t\n");
    if (!readUntil(" done"))
      return "nothing: " + heard;
    const size_t end = heard.find(" done");
    const size_t line = heard.rfind('\n', end) + 1;
    return heard.substr(line, end - line);
  }

  fs::path folder;
  int terminal = -1;
  pid_t child = -1;
  std::string heard;
};

TEST_P(Completion, OfVerbs) {
  EXPECT_EQ(completed("du"), "[dump-selection]");
  EXPECT_EQ(completed("bench sum"), "[bench][summarize]");
  EXPECT_EQ(completed("cache ver"), "[cache][verify]");
  EXPECT_EQ(completed("help du"), "[help][dump-selection]");
}

TEST_P(Completion, OfOptions) {
  EXPECT_EQ(completed("--ver"), "[--version]");
  EXPECT_EQ(completed("run --all"), "[run][--all-outputs]");
  EXPECT_EQ(completed("bench prefill --res"), "[bench][prefill][--results]");
  EXPECT_EQ(completed("run --config model.json --ch"), "[run][--config][model.json][--check]");
  EXPECT_EQ(completed("doctor --all"), "[doctor][--all]") << "it has no such option";
}

TEST_P(Completion, OfValues) {
  EXPECT_EQ(completed("run --op wi"), "[run][--op][window]");
  EXPECT_EQ(completed("compile --op ranks --target sm_8"), "[compile][--op][ranks][--target][sm_8]")
      << "there are several";
  EXPECT_EQ(completed("compile --target sm_12"), "[compile][--target][sm_120a]");
  EXPECT_EQ(completed("run --miss back"), "[run][--miss][background]");
}

TEST_P(Completion, OfFilesAndFolders) {
  EXPECT_EQ(completed("run --config mo"), "[run][--config][model.json]");
  EXPECT_EQ(completed("cache verify mo"), "[cache][verify][model.json]");
  EXPECT_EQ(completed("bench prefill --results resu"), "[bench][prefill][--results][results/]");
  EXPECT_EQ(completed("run --batch mo"), "[run][--batch][mo]") << "a number is no file";
}

INSTANTIATE_TEST_SUITE_P(In, Completion, testing::Values("bash", "zsh"),
                         [](const auto &shell) { return std::string(shell.param); });

} // namespace
