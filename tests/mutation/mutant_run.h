// Runs tests of the ordinary suites on a changed copy of the templates, in a process of their own, and says whether
// they noticed. Ownership: the folder of a run is gone with it. Thread-safety: functions may be called by several
// threads at once.
#pragma once

#include "runtime/base/status.h"
#include "tests/mutation/mutant.h"

#include <string>
#include <string_view>

namespace nsa::mutation {

enum class Verdict {
  kKilled,        // a test of each filter failed, or ended as the table says that it may
  kSurvived,      // all tests of a filter passed
  kEquivalent,    // all passed, and the table says why they must
  kNotEquivalent, // a test failed, or the program crashed or hung, and the table says that nothing can be told
  kCrashed,       // the tests' program ended by a signal, as the table says that it may
  kHung,          // it did not end in time, as the table says that it may
  kCrashedUnforeseen,
  kHungUnforeseen,
  kNotCompiled, // a compiler refused the changed template: the mutant is none
  kNotRun,      // no test matched, one was skipped, or the program exited without a report
  kOtherDevice, // all were skipped, as the template is for another architecture
};
std::string_view verdictName(Verdict verdict);
// Whether a run of the table may end well with it.
bool isExpected(Verdict verdict);

struct Outcome {
  Verdict verdict = Verdict::kNotRun;
  int tests = 0, failed = 0;
  double seconds = 0;
  std::string detail; // the first test that failed, the filter that noticed nothing, the compiler's words, the signal
};

// The folder of this program, where the tests' programs are too.
std::string ownFolder();

struct TestProgram {
  std::string path;
  double limitSeconds = 0; // of one run
};

// Runs the filters in turn, up to the first one with a verdict that ends a run of the table badly. A crash or a hang
// that the table foresees is the verdict, whatever the other filters find. An error where the
// text to change does not stand in its file exactly once, or the run cannot be started.
Result<Outcome> runMutant(const Mutant &mutant, const TestProgram &program);
// The same tests on the templates as they are; kSurvived is what they must be.
Result<Outcome> runUnchanged(std::string_view tests, const TestProgram &program);

// How often a text stands in a template.
Result<int> occurrences(std::string_view file, std::string_view text);

} // namespace nsa::mutation
