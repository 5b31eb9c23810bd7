// Keeps sqlite intact across fork(). The child of a fork inherits sqlite's tables of open files, but not their locks. A
// connection that the child of a fork opens would share the parent's view and lock nothing
// (docs/decisions/0002-leases.md). To prevent shared connections, every connection is closed before a fork, while no
// call is inside sqlite. Parent and child each open a new connection when they next need one.
// Ownership: a ForkFence borrows its members, which must leave before they end.
// Thread-safety: any thread may call all functions of a ForkFence.
#pragma once

#include <mutex>

namespace nsa {

class ForkFence {
public:
  class Member {
  public:
    virtual void lockAndClose() = 0; // in the thread that forks
    virtual void unlock() = 0;       // in the same thread, and in its copy in the child
    Member *next = nullptr;          // belongs to the fence

  protected:
    ~Member() = default;
  };

  // A fork waits while the lock of the fence is held. The caller of `hold` must not hold a member's own lock.
  static std::unique_lock<std::mutex> hold();
  // The caller of `join` and `leave` holds the fence. After `join` a member is locked at each fork, and after `leave`
  // no more.
  static void join(Member &member);
  static void leave(Member &member);
};

} // namespace nsa
