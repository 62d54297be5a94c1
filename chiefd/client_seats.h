// Which command lines may stay connected. A client that asks nothing gives its seat up to one that comes, the longest
// idle first, and leaves by itself after a while. Where none is idle, one that follows lines or waits for a job's end
// gives its seat up: it may stay for hours. The last seats are for clients of this host, so that an operator always
// gets in. Pure.
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
  enum class Use {
    kIdle,
    kStays,  // it is sent lines as they arise, or waits for a job's end
    kAsks,   // its answer comes within seconds
  };
  using UseOf = std::function<Use(PeerId)>;

  // A seat for one more. `leaves`: the one that gives it up.
  struct Verdict {
    bool is_free = false;
    std::optional<PeerId> leaves;
  };
  Verdict find_seat(bool is_local, const UseOf& use_of) const;

  void take(PeerId client, bool is_local, Instant now) { clients_[client] = {is_local, now}; }
  void leave(PeerId client) { clients_.erase(client); }
  // It asks, or was answered, or was sent a line.
  void stir(PeerId client, Instant now);
  // Those that have asked nothing for kMaxClientIdle.
  std::vector<PeerId> idle(Instant now, const UseOf& use_of) const;

 private:
  struct Client {
    bool is_local = false;
    Instant stirred;
  };
  std::optional<PeerId> longest(Use use, bool is_local, const UseOf& use_of) const;

  std::map<PeerId, Client> clients_;
};

}  // namespace disttrain::chiefd
