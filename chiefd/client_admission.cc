// With a limit on the number of clients alone, 255 idle clients locked the operator out. A limit for each address was
// rejected, because all operators behind a NAT have the same address.
#include "chiefd/client_admission.h"

#include <array>
#include <utility>

namespace disttrain::chiefd {

std::optional<PeerId> ClientAdmission::longest(Use use, bool is_local, Instant latest, const UseOf& use_of) const {
  std::optional<PeerId> found;
  for (const auto& [id, client] : clients_)
    if (client.is_local == is_local && client.stirred <= latest &&
        (!found || client.stirred < clients_.at(*found).stirred) && use_of(id) == use)
      found = id;
  return found;
}

ClientAdmission::Verdict ClientAdmission::find_place(bool is_local, Instant now, const UseOf& use_of) const {
  const std::size_t places = is_local ? kMaxClients : kMaxClients - kLocalClients;
  if (clients_.size() < places) return {true, std::nullopt};
  const std::array<std::pair<Use, Instant>, 3> order = {
      {{Use::kIdle, now - kMinClientIdle}, {Use::kStays, now}, {Use::kIdle, now}}};
  for (const auto& [use, latest] : order) {
    std::optional<PeerId> leaves = longest(use, false, latest, use_of);
    if (!leaves && is_local) leaves = longest(use, true, latest, use_of);
    if (leaves) return {true, leaves};
  }
  return {};
}

void ClientAdmission::stir(PeerId client, Instant now) {
  const auto found = clients_.find(client);
  if (found != clients_.end()) found->second.stirred = now;
}

std::vector<PeerId> ClientAdmission::idle(Instant now, const UseOf& use_of) const {
  std::vector<PeerId> idle;
  for (const auto& [id, client] : clients_)
    if (now - client.stirred > kMaxClientIdle && use_of(id) == Use::kIdle) idle.push_back(id);
  return idle;
}

}  // namespace disttrain::chiefd
