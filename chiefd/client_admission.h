// Decides which command lines may stay connected. Pure.
//
// Where all places are taken, one client makes room for a new one. Candidates are tried in this order; among equals a
// client of another host, and the one whose last request or answer is longest ago:
// 1. A client that has asked nothing for 2 s (kMinClientIdle).
// 2. A client that follows log lines or waits for a job's end: it may stay for hours.
// 3. A client that has only just come, or was just answered.
// A client that waits for an answer keeps its place, and one of this host gives its place only to another of this host.
// Where no candidate is left, the new client is refused. The last 16 places (kLocalClients) are for clients of this
// host, so that an operator always gets in. A client that asks nothing for 1 min has to leave anyway.
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
inline constexpr Duration kMinClientIdle =
    std::chrono::seconds(2);  // a pause between two requests, or before the first, may be this long

class ClientAdmission {
 public:
  enum class Use {
    kIdle,
    kStays,  // it follows lines or events, or waits for a job's end
    kAsks,   // its answer comes within seconds
  };
  using UseOf = std::function<Use(PeerId)>;

  // Finds a place for one more client. `leaves`: the client that has to go for it.
  struct Verdict {
    bool is_free = false;
    std::optional<PeerId> leaves;
  };
  Verdict find_place(bool is_local, Instant now, const UseOf& use_of) const;

  void take(PeerId client, bool is_local, Instant now) { clients_[client] = {is_local, now}; }
  void leave(PeerId client) { clients_.erase(client); }
  // The client asks, was answered, or was sent a line.
  void stir(PeerId client, Instant now);
  // Clients that have asked nothing for kMaxClientIdle.
  std::vector<PeerId> idle(Instant now, const UseOf& use_of) const;

 private:
  struct Client {
    bool is_local = false;
    Instant stirred;
  };
  // Only among those that were stirred no later than `latest`.
  std::optional<PeerId> longest(Use use, bool is_local, Instant latest, const UseOf& use_of) const;

  std::map<PeerId, Client> clients_;
};

}  // namespace disttrain::chiefd
