#include "chiefd/client_seats.h"

namespace disttrain::chiefd {

std::optional<PeerId> ClientSeats::longest_idle(bool is_local, const IsWaiting& is_waiting) const {
  std::optional<PeerId> found;
  for (const auto& [id, client] : clients_)
    if (client.is_local == is_local && (!found || client.stirred < clients_.at(*found).stirred) && !is_waiting(id))
      found = id;
  return found;
}

ClientSeats::Verdict ClientSeats::find_seat(bool is_local, const IsWaiting& is_waiting) const {
  const std::size_t seats = is_local ? kMaxClients : kMaxClients - kLocalSeats;
  if (clients_.size() < seats) return {true, std::nullopt};
  std::optional<PeerId> leaves = longest_idle(false, is_waiting);
  if (!leaves && is_local) leaves = longest_idle(true, is_waiting);
  return {leaves.has_value(), leaves};
}

void ClientSeats::stir(PeerId client, Instant now) {
  const auto found = clients_.find(client);
  if (found != clients_.end()) found->second.stirred = now;
}

std::vector<PeerId> ClientSeats::idle(Instant now, const IsWaiting& is_waiting) const {
  std::vector<PeerId> idle;
  for (const auto& [id, client] : clients_)
    if (now - client.stirred > kMaxClientIdle && !is_waiting(id)) idle.push_back(id);
  return idle;
}

}  // namespace disttrain::chiefd
