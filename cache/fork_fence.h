// Keeps sqlite whole across fork(). A child inherits sqlite's tables of open files, whose locks it does not hold: a
// connection that it opened would share the parent's view and lock nothing (docs/decisions/0002-leases.md). So every
// connection is closed before a fork, with no call inside sqlite, and parent and child open their own when they next
// need one.
// Ownership: borrows its members, which leave before they end. Thread-safety: all functions, any thread.
#pragma once

#include <mutex>

namespace nsa {

class ForkFence {
public:
  class Member {
  public:
    virtual void lockAndClose() = 0; // in the thread that forks
    virtual void unlock() = 0;       // in the same thread, and in its copy in the child
    Member *next = nullptr;          // the fence's

  protected:
    ~Member() = default;
  };

  // While held, a fork waits. A member's own lock must not be held by who asks for it.
  static std::unique_lock<std::mutex> hold();
  // Both with the fence held. A member is asked for at each fork from here on, and no more.
  static void join(Member &member);
  static void leave(Member &member);
};

} // namespace nsa
