// Exchange: how gradients leave a worker and parameters come back. `ps` (ps_exchange.h) talks to the shards of a job;
// an all-reduce among the workers is planned beside it.
//
// It belongs to the loop of the worker's step thread, which also calls the engine: no thread switch lies between a
// computation and the network.
#pragma once

#include <span>
#include <string>

#include "common/messages/control.h"
#include "common/messages/data.h"
#include "common/result.h"
#include "workerd/core/events.h"

namespace disttrain::workerd {

// The exchange's reports to its owner. Called on its loop, never from within a call to the exchange.
class ExchangeHandler {
 public:
  virtual ~ExchangeHandler() = default;

  // The channel is open, for the first time or again; `last` is the last frame that the shard has taken.
  virtual void on_channel_opened(ShardId shard, Sequence last) = 0;
  // The channel was open and is lost; it is dialled again until close(). `lasts`: time since the shard's ps was last
  // heard.
  virtual void on_channel_lost(ShardId shard, const std::string& reason, Duration lasts) = 0;
  // The ps of a channel that isn't open doesn't answer: called at each attempt, after Timeouts::silent.
  virtual void on_unreachable(ShardId shard, const std::string& reason, Duration lasts) = 0;
  // After on_channel_lost or on_unreachable: the shard's ps answers, even if it refuses.
  virtual void on_reached(ShardId shard) = 0;
  // A channel can't be opened, and dialling again won't help.
  virtual void on_refused(const Error& why) = 0;

  // The payload already lies in landing().
  virtual void on_parameters(ShardId shard, const Parameters& parameters) = 0;
  virtual void on_acknowledge(ShardId shard, const Acknowledge& acknowledge) = 0;
  virtual void on_mark_taken(ShardId shard, const MarkTaken& taken) = 0;

  // The flat array into which parameters are received now: all elements of the layout. Written only while the loop
  // runs.
  virtual std::span<float> landing() = 0;
};

class Exchange {
 public:
  // Closes the exchange.
  virtual ~Exchange() = default;

  // Connects to the tasks that the roster needs; each connection is answered by on_channel_opened.
  virtual void open(const Roster& roster) = 0;
  // Drops the channels and everything under way. open() may follow.
  virtual void abort() = 0;
  // No handler call is made afterwards.
  virtual void close() = 0;

  // `gradients`: the flat array that send.gradients names; its bucket doesn't change until the frame is acknowledged.
  // Dropped while the channel isn't open: at on_channel_opened the owner sends the missing frames again.
  virtual void push(const SendPush& send, std::span<const float> gradients) = 0;
  virtual void pull(const SendPull& send) = 0;
  virtual void mark(const SendMark& send) = 0;
};

}  // namespace disttrain::workerd
