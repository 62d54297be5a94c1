// Exchange: how gradients leave a worker and parameters come back. `ps` (ps_exchange.h) speaks with the shards of a
// job; an all-reduce among the workers is to stand beside it.
//
// It belongs to one loop, that of the worker's step thread, which also calls the engine: nothing is handed from thread
// to thread between a computation and the network.
#pragma once

#include <span>
#include <string>

#include "common/messages/control.h"
#include "common/messages/data.h"
#include "common/result.h"
#include "workerd/core/events.h"

namespace disttrain::workerd {

// What an exchange tells its owner. Called on its loop, never from within a call to the exchange.
class ExchangeHandler {
 public:
  virtual ~ExchangeHandler() = default;

  // Open, for the first time or again; `last` is the last frame that the shard has taken.
  virtual void on_channel_opened(ShardId shard, Sequence last) = 0;
  // It was open and isn't any more; it is dialled again until close(). `lasts`: since anything came from the shard's
  // ps.
  virtual void on_channel_lost(ShardId shard, const std::string& reason, Duration lasts) = 0;
  // The ps of a channel that isn't open doesn't answer: told at each attempt, from Timeouts::silent on.
  virtual void on_unreachable(ShardId shard, const std::string& reason, Duration lasts) = 0;
  // After on_channel_lost or on_unreachable: the shard's ps answers, in whatever way.
  virtual void on_reached(ShardId shard) = 0;
  // A channel can't be opened, and dialling again won't help.
  virtual void on_refused(const Error& why) = 0;

  // The payload already lies where it belongs.
  virtual void on_parameters(ShardId shard, const Parameters& parameters) = 0;
  virtual void on_acknowledge(ShardId shard, const Acknowledge& acknowledge) = 0;
  virtual void on_mark_taken(ShardId shard, const MarkTaken& taken) = 0;

  // The flat array into which parameters are received at this moment: all elements of the layout. Written only while
  // the loop runs.
  virtual std::span<float> landing() = 0;
};

class Exchange {
 public:
  // Closes.
  virtual ~Exchange() = default;

  // Connects with whom the roster needs; the answers are on_channel_opened.
  virtual void open(const Roster& roster) = 0;
  // Drops the channels and what is on its way. open() may follow.
  virtual void abort() = 0;
  // The end: no handler call is made after it.
  virtual void close() = 0;

  // `gradients`: the flat array that send.gradients names; its bucket stays as it is until the frame is acknowledged.
  // Dropped while the channel isn't open: the owner sends again what on_channel_opened shows to be lacking.
  virtual void push(const SendPush& send, std::span<const float> gradients) = 0;
  virtual void pull(const SendPull& send) = 0;
  virtual void mark(const SendMark& send) = 0;
};

}  // namespace disttrain::workerd
