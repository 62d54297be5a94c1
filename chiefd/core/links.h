// Links between two tasks that the chief itself hears: those that don't carry now, as the tasks tell. What becomes of
// either end is the job's to decide (job/link_failures.cc). A value.
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
    TaskId from;  // says so
    TaskId to;    // a ps
    auto operator<=>(const Link&) const = default;
  };
  struct Outage {
    Instant since;         // the other end was heard last
    Instant told;          // the newest complaint
    bool is_told = false;  // an event has told the operator
  };

  // A complaint. The first one of an outage says how long it has lasted; later ones may only make it longer.
  void accuse(Instant now, const Link& link, Duration lasts);
  // The outage that is over; nothing where there was none.
  std::map<Link, Outage>::node_type mend(const Link& link) { return broken_.extract(link); }
  // The task, as either end, is gone or is another process.
  void forget(TaskId task);
  // Links between ps tasks.
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
