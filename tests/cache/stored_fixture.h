// A database that holds something: kernels 0 to 3 with tuned choices and routes, which whatever happens to the file
// must leave as they are. Thread-safety: one thread.
#pragma once

#include "tests/cache/pack_fixture.h"

#include <string>

namespace nsa {

class StoredTest : public PackTest {
protected:
  static constexpr int kStored = 4;

  void SetUp() override { fill({0, 1, 2, 3}, path); }
  // What the file holds now is what `restore` brings back.
  void keep();
  void restore() const;
  // What was stored by SetUp is all there and right, and the file is whole.
  void expectNothingLost() const;

  std::string kept;
};

} // namespace nsa
