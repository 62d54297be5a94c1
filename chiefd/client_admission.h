// Which command lines may stay connected. Where all places are taken, a client gives its place up to one that comes:
// first one that has asked nothing for a while, then one that follows lines or waits for a job's end, which may stay
// for hours, then one that has only just come. Of several the one that has been so for longest. A client that asks
// nothing leaves by itself in time. The last places are for clients of this host, so that an operator always gets in.
// Pure.
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
    std::chrono::seconds(2);  // the time between two requests, or before the first

class ClientAdmission {
 public:
  enum class Use {
    kIdle,
    kStays,  // it is sent lines as they arise, or waits for a job's end
    kAsks,   // its answer comes within seconds
  };
  using UseOf = std::function<Use(PeerId)>;

  // A place for one more. `leaves`: the one that gives it up.
  struct Verdict {
    bool is_free = false;
    std::optional<PeerId> leaves;
  };
  Verdict find_place(bool is_local, Instant now, const UseOf& use_of) const;

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
  // Of those that were stirred at `latest` at the latest.
  std::optional<PeerId> longest(Use use, bool is_local, Instant latest, const UseOf& use_of) const;

  std::map<PeerId, Client> clients_;
};

}  // namespace disttrain::chiefd
