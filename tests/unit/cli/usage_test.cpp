// The texts that help a user of the command line: lists of verbs, help, answers to a mistyped command line, exit codes.
#include "tests/harness/on_terminal.h"
#include "tests/unit/cli/program_fixture.h"
#include "tools/nsa/command/command.h"
#include "tools/nsa/command/exit_code.h"
#include "tools/nsa/command/parser_texts.h"

#include <functional>
#include <memory>
#include <regex>
#include <sstream>

namespace nsa::tools {
namespace {

const std::vector<std::string> kVerbs = {"run",     "generate", "dump-selection", "tune",  "compile", "cache",
                                         "explain", "doctor",   "validate",       "bench", "help"};

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

// Visits each verb of the whole command line with its path.
void forEachVerb(const std::function<void(const CLI::App &, const std::string &)> &visit) {
  Action action;
  const std::unique_ptr<CLI::App> app = makeCommandLine(action);
  const std::function<void(const CLI::App &)> walk = [&](const CLI::App &verb) {
    visit(verb, verbPath(verb));
    for (const CLI::App *below : verb.get_subcommands([](const CLI::App *) { return true; }))
      walk(*below);
  };
  walk(*app);
}

class Usage : public Program {};

TEST_F(Usage, HelpListsTheVerbsInGroupsALineEach) {
  const Outcome help = run("help");
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_EQ(help.out, run("--help").out);
  for (const char *group : {"Run an operator", "Make kernels and ship them", "Look and check", "Measure", "Help"})
    EXPECT_NE(help.out.find("\n" + std::string(group) + ":\n"), std::string::npos) << help.out;
  const std::vector<std::string> lines = linesOf(help.out);
  for (const std::string &verb : kVerbs) {
    const std::regex wanted("  " + verb + " {2,}\\S.*");
    const auto line =
        std::ranges::find_if(lines, [&](const std::string &each) { return std::regex_match(each, wanted); });
    ASSERT_NE(line, lines.end()) << verb << "\n" << help.out;
    EXPECT_FALSE((line + 1)->starts_with("   ")) << "it goes on in another line: " << *(line + 1);
  }
}

// A person gets the list. A script whose variable with the verb is empty gets a failure. `go` does the same.
TEST_F(Usage, WithoutAVerbTheListIsPrintedAndItFails) {
  for (const std::string &verb : {std::string(), std::string("cache"), std::string("bench")}) {
    const Outcome alone = run(verb);
    EXPECT_EQ(alone.code, 2) << verb;
    EXPECT_EQ(alone.out, "") << verb;
    const std::string path = verb.empty() ? "nsa" : "nsa " + verb;
    EXPECT_EQ(alone.err, run(verb + " --help").out + "nsa: name a verb of `" + path + "`\n");
  }
}

TEST_F(Usage, HelpOfEachVerbIsWhatItsHelpFlagPrints) {
  size_t verbs = 0;
  forEachVerb([&](const CLI::App &verb, const std::string &path) {
    ++verbs;
    const std::string words = path == "nsa" ? "" : path.substr(4);
    const Outcome help = run("help " + words), flag = run(words + " --help");
    EXPECT_EQ(help.code, 0) << path << help.err;
    EXPECT_EQ(help.out, flag.out) << path;
    EXPECT_EQ(help.out, helpOf(verb)) << path;
    EXPECT_EQ(flag.err, "") << path;
  });
  EXPECT_GT(verbs, 28u);
  const Outcome version = run("--version");
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out.rfind("nsa 0.", 0), 0u) << version.out;
}

TEST_F(Usage, NoLineOfHelpIsLongerThanAHundredCharacters) {
  forEachVerb([&](const CLI::App &verb, const std::string &path) {
    for (const std::string &line : linesOf(helpOf(verb)))
      EXPECT_LE(line.size(), 100u) << path << "\n" << line;
  });
}

TEST_F(Usage, AMistypedVerbIsToldWhichItMayBe) {
  expectUsageError("swim", "nsa: unknown verb 'swim'\nRun `nsa --help`.");
  expectUsageError("expain", "unknown verb 'expain': did you mean explain?");
  expectUsageError("cache lst", "unknown verb 'lst' of `nsa cache`: did you mean list?\nRun `nsa cache --help`.");
  expectUsageError("bench prefil --tokens 64", "unknown verb 'prefil' of `nsa bench`: did you mean prefill?");
  expectUsageError("swim run --op window", "unknown verb 'swim'");
  expectUsageError("help cache lst", "unknown verb 'lst' of `nsa cache`: did you mean list?");
  expectUsageError("help tun", "unknown verb 'tun': did you mean tune?");
  expectUsageError("run --confg x", "unexpected arguments '--confg', 'x': did you mean --config?");
  expectUsageError("doctor --jsn=x", "unexpected argument '--jsn=x': did you mean --json?");
  expectUsageError("run --cfg x", "unexpected arguments '--cfg', 'x': did you mean --config?");
  expectUsageError("--vers", "unexpected argument '--vers': did you mean --version?");
  expectUsageError("doctor --js", "unexpected argument '--js': did you mean --json?");
}

TEST_F(Usage, AMistypedNameOfAValueGetsTheListAndTheNearestName) {
  expectUsageError("explain --op windw --config x",
                   "--op: windw must be one of dense, window, compress, cmp, select, "
                   "sel, combine, nsa, decode, rotate, rotate_bwd, combine_bwd, "
                   "dense_bwd, window_bwd, cmp_bwd, invert, compress_bwd, sel_bwd, nsa_bwd: did you mean window?\nRun");
  expectUsageError("explain --op 1 --config x", "--op: 1 must be one of dense, window, ");
  expectUsageError("run --op nsa --miss tuen",
                   "--miss: tuen must be one of default, fail, tune, background: did you mean tune?");
  expectUsageError("dump-selection --op selct", "--op: selct must be one of select, nsa: did you mean select?");
  expectUsageError("cache merge x --prefer sauce",
                   "--prefer: sauce must be one of destination, source: did you mean source?");
  expectUsageError("bench search --ops cmp,nsa",
                   "--ops: nsa must be one of dense, window, compress, cmp, select, sel, combine");
}

TEST_F(Usage, UnexpectedArgumentsStandInTheirOrder) {
  expectUsageError("doctor one two --three four", "unexpected arguments 'one', 'two', '--three', 'four'\n");
  expectUsageError("doctor one", "unexpected argument 'one'\nRun `nsa doctor --help`.");
}

TEST_F(Usage, ExitCodesAreOneTable) {
  std::string help = run("help").out;
  for (size_t at; (at = help.find("\n     ")) != std::string::npos;)
    help.replace(at, 6, " "); // as it was before it was broken into lines
  const std::string page = readFile(NSA_SOURCE_DIR "/docs/cli.md");
  for (const auto &[code, meaning] : kExitCodes) {
    const std::string number = std::to_string(static_cast<int>(code));
    EXPECT_NE(help.find("\n  " + number + "  " + std::string(meaning) + "\n"), std::string::npos) << help;
    EXPECT_NE(page.find("\n| " + number + " | " + std::string(meaning) + " |\n"), std::string::npos) << number;
  }
}

TEST_F(Usage, ErrorsHaveColourOnATerminalThatWantsIt) {
  const std::string red = "\033[1;31mnsa:\033[0m unknown verb 'swim'", plain = "nsa: unknown verb 'swim'";
  const auto shown = [&](const std::string &environment) {
    const test::OnTerminal result = test::runOnTerminal("env " + environment + " '" NSA_PROGRAM "' swim");
    EXPECT_EQ(result.code, 2) << result.text;
    return result.text;
  };
  EXPECT_EQ(shown("-u NO_COLOR TERM=xterm").rfind(red, 0), 0u);
  EXPECT_EQ(shown("NO_COLOR= TERM=xterm").rfind(red, 0), 0u) << "empty is as if it were not set";
  EXPECT_EQ(shown("NO_COLOR=1 TERM=xterm").rfind(plain, 0), 0u);
  EXPECT_EQ(shown("-u NO_COLOR TERM=dumb").rfind(plain, 0), 0u);
  EXPECT_EQ(shown("-u NO_COLOR -u TERM").rfind(plain, 0), 0u);
  EXPECT_EQ(run("swim", "export TERM=xterm; unset NO_COLOR; ").err.rfind(plain, 0), 0u);
}

} // namespace
} // namespace nsa::tools
