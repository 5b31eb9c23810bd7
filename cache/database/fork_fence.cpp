#include "cache/database/fork_fence.h"

#include <pthread.h>

namespace nsa {

namespace {

constinit std::mutex fence;
constinit ForkFence::Member *first = nullptr;

void beforeFork() {
  fence.lock();
  for (ForkFence::Member *member = first; member; member = member->next)
    member->lockAndClose();
}

void afterFork() {
  for (ForkFence::Member *member = first; member; member = member->next)
    member->unlock();
  fence.unlock();
}

} // namespace

std::unique_lock<std::mutex> ForkFence::hold() {
  // The first caller registers the handlers. Before that there is no member, and nothing to close.
  static const int registered = pthread_atfork(beforeFork, afterFork, afterFork);
  (void)registered;
  return std::unique_lock(fence);
}

void ForkFence::join(Member &member) {
  member.next = first;
  first = &member;
}

void ForkFence::leave(Member &member) {
  Member **link = &first;
  while (*link != &member)
    link = &(*link)->next;
  *link = member.next;
}

} // namespace nsa
