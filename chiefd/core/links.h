// The links between two tasks that are broken now, as the tasks report. The chief itself hears both ends. The job
// decides what happens to them (job/link_failures.h). A value.
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
    bool is_told = false;  // an event has told the operator
  };

  // A complaint. The first complaint of an outage sets its begin; later ones can only make it earlier.
  void accuse(Instant now, const Link& link, Duration lasts);
  // Returns the outage that is over; empty: the link wasn't broken.
  std::map<Link, Outage>::node_type mend(const Link& link) { return broken_.extract(link); }
  // The task is gone or is another process: forgets all its links.
  void forget(TaskId task);
  // Forgets the links between ps tasks.
  void forget_peers();
  void set_told(const Link& link);

  bool is_broken(const Link& link) const { return broken_.count(link) != 0; }
  const std::map<Link, Outage>& broken() const { return broken_; }
  // "worker/0 can't reach ps/0 (no answer for 3.2 s)". The link must be broken.
  std::string text(Instant now, const Link& link) const;

 private:
  std::map<Link, Outage> broken_;
};

}  // namespace disttrain::chiefd
