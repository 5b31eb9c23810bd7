#include "runtime/engine/plan/plan_record.h"

#include "runtime/base/config_text.h"
#include "runtime/process/file_limit_signal.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace nsa {

namespace {

constexpr mode_t kRights = 0644;

// A file that is open for appending. Closing tells of bytes that a network has lost.
class OpenFile {
public:
  explicit OpenFile(const std::string &path)
      // Another user may have put a link or a pipe there. A pipe without a reader would block a process that opens it.
      : descriptor(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                          kRights)),
        error(descriptor < 0 ? errno : 0) {}
  ~OpenFile() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  OpenFile(const OpenFile &) = delete;
  OpenFile &operator=(const OpenFile &) = delete;

  // "" or why the file may not be used.
  std::string fault() const {
    if (error == ELOOP)
      return "it is a link, which is not followed here";
    if (error != 0)
      return std::generic_category().message(error);
    struct stat facts{};
    if (::fstat(descriptor, &facts) != 0)
      return std::generic_category().message(errno);
    if (!S_ISREG(facts.st_mode))
      return "it is not a regular file";
    if (facts.st_uid != 0 && facts.st_uid != ::geteuid())
      return "it belongs to another user (uid " + std::to_string(facts.st_uid) + ")";
    if (facts.st_nlink > 1)
      return "it has a second name, so it may be another file of yours";
    return "";
  }
  // Whether the last line has its end: a full disk, or an editor, may have left it without.
  bool endsInLine() const {
    struct stat facts{};
    char last = '\n';
    return ::fstat(descriptor, &facts) != 0 || facts.st_size == 0 ||
           ::pread(descriptor, &last, 1, facts.st_size - 1) != 1 || last == '\n';
  }
  // One call of the system, so that no other writer's line stands within this text. 0, or what went wrong.
  int append(const std::string &text) {
    ssize_t done = 0;
    do
      done = ::write(descriptor, text.data(), text.size());
    while (done < 0 && errno == EINTR);
    const int failure = done < 0 ? errno : static_cast<size_t>(done) < text.size() ? ENOSPC : 0;
    const int lost = ::close(std::exchange(descriptor, -1)) != 0 ? errno : 0;
    return failure ? failure : lost;
  }

private:
  int descriptor;
  int error;
};

} // namespace

Result<std::unique_ptr<PlanRecord>> PlanRecord::open(const std::string &source, const std::string &path) {
  if (const std::string fault = OpenFile(path).fault(); !fault.empty())
    return Status::invalid(source, path, "must be a file that can be appended to: " + fault,
                           "record_path (NSA_RECORD) names the file that receives the plans; its folder must exist");
  return std::unique_ptr<PlanRecord>(new PlanRecord(path));
}

Status PlanRecord::add(const Spec &spec, const Maxima &maxima) {
  const std::lock_guard lock(mutex);
  if (known.insert(PlanKey::make(spec, maxima)).second) {
    waiting += planText(spec, maxima) + "\n";
    ++waitingLines;
  }
  return writeWaiting();
}

Status PlanRecord::flush() {
  const std::lock_guard lock(mutex);
  return writeWaiting();
}

Status PlanRecord::writeWaiting() {
  if (waiting.empty())
    return Status::ok();
  OpenFile file(path);
  std::string fault = file.fault();
  if (fault.empty()) {
    const FileLimitSignalHeld held;
    // What was cut off becomes a line of its own, and is written again whole. Where another process is just writing,
    // this may make an empty line, which says nothing.
    const int error = file.append(file.endsInLine() ? waiting : "\n" + waiting);
    if (error != 0)
      fault = std::generic_category().message(error);
  }
  if (!fault.empty())
    return Status::error(ErrorCode::kIoError, "cannot append to the plan record '" + path + "': " + fault + "; " +
                                                  std::to_string(waitingLines) +
                                                  (waitingLines == 1 ? " plan waits" : " plans wait") +
                                                  " for the next attempt");
  waiting.clear();
  waitingLines = 0;
  return Status::ok();
}

} // namespace nsa
