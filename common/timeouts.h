// Every time limit of the control plane, derived from the operator's one number ([heartbeat] timeout) so that the
// limits nest: a shorter wait always ends before the longer one that contains it.
#pragma once

#include "common/time.h"

namespace disttrain {

struct Timeouts {
  Duration silent;             // a task without heartbeats is silent                       = timeout
  Duration interval;           // between heartbeats                                        = timeout / 10
  Duration probe;              // one reconnect attempt that proves a task dead             = timeout / 4
  Duration unreachable;        // two tasks can't reach each other for this
                               // long: one is removed                                     = 3 * timeout
  Duration relink;             // a worker that couldn't reach a ps retries after           = 2 * timeout
  Duration silent_ps;          // a silent ps is waited for at least this                   = 5 * timeout
  Duration reconnect_first;    // first pause between attempts to reach the chief           = timeout / 20
  Duration reconnect_longest;  // the pauses double up to this                              = timeout
  Duration dial;               // one connection attempt, hello answered                    = 2 * timeout
  Duration setup;              // a stage of a job's start without progress                 = 120 * timeout
  Duration close;              // tasks release a closed job; then the chief goes on        = 5 * timeout
  Duration leave;              // a worker that was told to end waits for the grant         = 60 * timeout
  Duration leave_ps;           // the same for a ps, which may wait for a checkpoint attempt; the
                               // chief gives that up after 600 * timeout                   = 660 * timeout
};

constexpr Timeouts derive_timeouts(Duration heartbeat_timeout) {
  return Timeouts{
      .silent = heartbeat_timeout,
      .interval = heartbeat_timeout / 10,
      .probe = heartbeat_timeout / 4,
      .unreachable = heartbeat_timeout * 3,
      .relink = heartbeat_timeout * 2,
      .silent_ps = heartbeat_timeout * 5,
      .reconnect_first = heartbeat_timeout / 20,
      .reconnect_longest = heartbeat_timeout,
      .dial = heartbeat_timeout * 2,
      .setup = heartbeat_timeout * 120,
      .close = heartbeat_timeout * 5,
      .leave = heartbeat_timeout * 60,
      .leave_ps = heartbeat_timeout * 660,
  };
}

}  // namespace disttrain
