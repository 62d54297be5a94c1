// Which command lines may stay connected. A client that asks nothing gives its seat up to one that comes, the longest
// idle first, and leaves by itself after a while; the last seats are for clients of this host, so that an operator
// always gets in. Pure.
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
inline constexpr std::size_t kLocalSeats = 16;  // of these
inline constexpr Duration kMaxClientIdle = std::chrono::minutes(1);

class ClientSeats {
 public:
  // Whether a client waits for something that it asked for: then it isn't idle.
  using IsWaiting = std::function<bool(PeerId)>;

  // A seat for one more. `leaves`: the one that gives it up.
  struct Verdict {
    bool is_free = false;
    std::optional<PeerId> leaves;
  };
  Verdict find_seat(bool is_local, const IsWaiting& is_waiting) const;

  void take(PeerId client, bool is_local, Instant now) { clients_[client] = {is_local, now}; }
  void leave(PeerId client) { clients_.erase(client); }
  // It asks, or was answered.
  void stir(PeerId client, Instant now);
  // Those that have asked nothing for kMaxClientIdle.
  std::vector<PeerId> idle(Instant now, const IsWaiting& is_waiting) const;

 private:
  struct Client {
    bool is_local = false;
    Instant stirred;
  };
  std::optional<PeerId> longest_idle(bool is_local, const IsWaiting& is_waiting) const;

  std::map<PeerId, Client> clients_;
};

}  // namespace disttrain::chiefd
