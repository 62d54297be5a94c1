// Decides which clients (command lines) may stay connected to the chief. Does no I/O.
//
// The chief serves at most 256 clients (kMaxClients). The last 16 places (kLocalClients) are for clients of the chief's
// own host, so that an operator can always connect: for a client of another host the chief is full at 240 clients.
//
// If the chief is full for a new client, it drops another client to make room. It tries these groups in turn:
// 1. Clients that have been idle for 2 s (kMinClientIdle). A client is idle if it waits for nothing and follows
// nothing.
// 2. Clients that follow log lines or events, or wait for a job's end. Such a client may stay for hours.
// 3. Clients that have been idle for less than 2 s.
// Within a group it drops a client of another host rather than a client of its own host. Of several such clients it
// drops the one whose last request or answer is the oldest.
//
// The chief never drops a client that waits for an answer. It drops a client of its own host only for another client of
// its own host. If it finds no client to drop, it refuses the new client. The chief also drops every client that has
// been idle for 1 min (kMaxClientIdle).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "chiefd/peer.h"
#include "common/time.h"

namespace disttrain::chiefd {

inline constexpr std::size_t kMaxClients = 256;
inline constexpr std::size_t kLocalClients = 16;  // of these
inline constexpr Duration kMaxClientIdle = std::chrono::minutes(1);
// A client may pause this long before its first request and between two requests. A client that pauses longer is one of
// the first that the chief drops to make room.
inline constexpr Duration kMinClientIdle = std::chrono::seconds(2);

class ClientAdmission {
 public:
  enum class Use {
    kIdle,
    kStays,  // the client follows log lines or events, or waits for a job's end
    kAsks,   // the client waits for an answer, which it gets within seconds
  };
  using UseOf = std::function<Use(PeerId)>;

  // `is_free`: one more client may connect. `leaves`: the client that the chief must drop for it.
  struct Verdict {
    bool is_free = false;
    std::optional<PeerId> leaves;
  };
  Verdict find_place(bool is_local, Instant now, const UseOf& use_of) const;

  void take(PeerId client, bool is_local, Instant now) { clients_[client] = {is_local, now}; }
  void leave(PeerId client) { clients_.erase(client); }
  // Call this when the client has sent a request, or the chief has sent it an answer, a log line or an event.
  void stir(PeerId client, Instant now);
  // The clients that have been idle for kMaxClientIdle. The chief drops them.
  std::vector<PeerId> idle(Instant now, const UseOf& use_of) const;

 private:
  struct Client {
    bool is_local = false;
    Instant stirred;  // when stir() was last called
  };
  // Of the clients with this use, the one whose last stir() is the oldest. Looks only at clients of this host (if
  // `is_local`) or only at clients of other hosts, and ignores clients whose last stir() is later than `latest`.
  std::optional<PeerId> longest(Use use, bool is_local, Instant latest, const UseOf& use_of) const;

  std::map<PeerId, Client> clients_;
};

}  // namespace disttrain::chiefd
