// The broken links between tasks. A link is broken if a task reports that it can't reach a ps, although the chief hears
// from both. The job decides what to do about a broken link (job/rules/links.h).
#pragma once

#include <map>
#include <string>
#include <utility>

#include "common/ids.h"
#include "common/time.h"

namespace disttrain::chiefd {

class Links {
 public:
  struct Link {
    TaskId from;  // the task that reports
    TaskId to;    // a ps
    auto operator<=>(const Link&) const = default;
  };
  struct Outage {
    Instant since;         // when `from` last heard `to`
    Instant told;          // when the newest complaint came
    bool is_told = false;  // true: an event has told the operator of the outage
    std::string reason{};  // what went wrong, as the newest complaint says. Empty if none has said it
  };

  // Notes a complaint that the link has been broken for the time `lasts`. The first complaint of an outage sets the
  // begin of the outage. Later complaints can only make the begin earlier. `reason` is the sender's, or empty.
  void accuse(Instant now, const Link& link, Duration lasts, const std::string& reason);
  // Notes that the link works again. Returns the outage that is over. Empty: the link wasn't broken.
  std::map<Link, Outage>::node_type mend(const Link& link) { return broken_.extract(link); }
  // Forgets all links from and to a task. Call this when the task is gone, or when another process has taken its place.
  void forget(TaskId task);
  // Forgets the links between ps tasks.
  void forget_peers();
  void set_told(const Link& link);

  bool is_broken(const Link& link) const { return broken_.count(link) != 0; }
  const std::map<Link, Outage>& broken() const { return broken_; }
  // Describes a broken link, such as "worker/0 can't reach ps/0 (no answer for 3.2 s; connection refused)". The
  // link must be broken.
  std::string text(Instant now, const Link& link) const;

 private:
  std::map<Link, Outage> broken_;
};

}  // namespace disttrain::chiefd
