// PsExchange: one channel to each shard of a job. Payloads leave straight from the gradients and arrive straight in the
// parameters. Requests to several shards are in flight at once.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <vector>

#include "common/layout.h"
#include "common/messages/session.h"
#include "common/timeouts.h"
#include "transport/connection.h"
#include "transport/wire/codec.h"
#include "workerd/exchange/exchange.h"

namespace disttrain::workerd {

struct PsExchangeOptions {
  std::string cluster;
  std::uint64_t cluster_hash = 0;
  JobId job;
  Generation generation;
  std::uint64_t token = 0;
  Member self;
  std::vector<Owner> owners;  // of each shard of the layout
  Timeouts timeouts;
};

class PsExchange final : public Exchange {
 public:
  // All references outlive it.
  PsExchange(asio::io_context& loop, transport::Transport& transport, const Layout& layout, PsExchangeOptions options,
             ExchangeHandler& handler);
  ~PsExchange() override;

  void open(const Roster& roster) override;
  void abort() override;
  void close() override;
  void push(const SendPush& send, std::span<const float> gradients) override;
  void pull(const SendPull& send) override;
  void mark(const SendMark& send) override;

 private:
  class Link;

  wire::FrameHeader header(wire::FrameType type, Sequence sequence) const;

  asio::io_context& loop_;
  transport::Transport& transport_;
  const Layout& layout_;
  const PsExchangeOptions options_;
  ExchangeHandler& handler_;
  wire::ScratchBuffer scratch_;
  std::vector<std::unique_ptr<Link>> links_;  // by shard
};

}  // namespace disttrain::workerd
