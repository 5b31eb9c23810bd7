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
  kKilled,        // a test failed
  kSurvived,      // all passed
  kEquivalent,    // all passed, and the table says why they must
  kNotEquivalent, // a test failed, and the table says that none can
  kCrashed,       // the tests' program ended by a signal, or without its report
  kHung,          // it did not end in time
  kNotCompiled,   // a compiler refused the changed template: the mutant is none
  kNotRun,        // no test matched, or one was skipped
  kOtherDevice,   // all were skipped, as the template is for another architecture
};
std::string_view verdictName(Verdict verdict);
// Whether a run of the suite may end well with it. A crash and a hang are noticed by whoever runs the tests.
bool isExpected(Verdict verdict);

struct Outcome {
  Verdict verdict = Verdict::kNotRun;
  int tests = 0, failed = 0;
  double seconds = 0;
  std::string detail; // the first test that failed, the compiler's words, the signal
};

// The folder of this program, where the tests' programs are too.
std::string ownFolder();

struct TestProgram {
  std::string path;
  double limitSeconds = 0; // of one run
};

// An error where the text to change does not stand in its file exactly once, or the run cannot be started.
Result<Outcome> runMutant(const Mutant &mutant, const TestProgram &program);
// The same tests on the templates as they are; kSurvived is what they must be.
Result<Outcome> runUnchanged(std::string_view tests, const TestProgram &program);

// How often a text stands in a template.
Result<int> occurrences(std::string_view file, std::string_view text);

} // namespace nsa::mutation
