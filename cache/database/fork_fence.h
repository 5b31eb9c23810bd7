// Keeps sqlite intact across fork(). The child of a fork inherits sqlite's tables of open files, but not their locks.
// If connections stayed open at a fork, a connection that the child opens would use the parent's state of the file and
// would lock nothing (docs/decisions/0002-leases.md). To prevent shared connections, every connection is closed before
// a fork, while no call is inside sqlite. Parent and child each open a new connection when they next use the database.
// Ownership: a ForkFence borrows its members, and each member must call `leave` before it is destroyed.
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

  // A fork waits while a thread holds the lock of the ForkFence. The caller of `hold` must not hold the lock of a
  // Member of the ForkFence.
  static std::unique_lock<std::mutex> hold();
  // The caller of `join` and `leave` must hold the lock of the ForkFence. Between the calls of `join` and `leave` for a
  // Member, each fork locks and closes this Member.
  static void join(Member &member);
  static void leave(Member &member);
};

} // namespace nsa
