// Loads PJRT plugins, and opens their devices.
//
// A plugin is code that the operator trusts: it runs inside the worker. A plugin that crashes ends the worker.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/result.h"
#include "engine/pjrt/abi.h"

namespace disttrain::workerd::pjrt {

// The functions of a plugin. A value; all copies refer to the same plugin. It stays loaded until the process ends,
// because its threads may still run its code.
class Plugin {
 public:
  // Loads the shared library and lets the plugin initialize itself, once per process. Any thread may call it. `path` is
  // absolute, or relative to the working folder. Errors, each one sentence: kNoInput if there is no such file. kConfig
  // if it can't be loaded, isn't a plugin, or has another version of the API. kUnavailable if the plugin can't
  // initialize itself.
  static Result<Plugin> load(const std::string& path);

  // Calls a function of the plugin. The template sets struct_size. An error's message begins with `doing`.
  template <typename Args>
  Status call(abi::Function function, Args& args, const std::string& doing) const {
    args.struct_size = sizeof(Args);
    using Call = abi::Error* (*)(Args*);
    return status_of(reinterpret_cast<Call>(api_->functions[function])(&args), doing);
  }

  // Frees an object of the plugin.
  template <typename Args, typename Object>
  void destroy(abi::Function function, Object* object) const {
    Args args{sizeof(Args), nullptr, object};
    drop(reinterpret_cast<abi::Error* (*)(Args*)>(api_->functions[function])(&args));
  }

 private:
  explicit Plugin(const abi::Api* api) : api_(api) {}

  Status status_of(abi::Error* error, const std::string& doing) const;
  void drop(abi::Error* error) const;

  const abi::Api* api_;
};

// An object of the plugin that this handle frees. Move-only. `kDestroy` is the function that frees it, and `Args` are
// that function's arguments.
template <typename Object, typename Args, abi::Function kDestroy>
class Handle {
 public:
  Handle(const Plugin& plugin, Object* object) : plugin_(&plugin), object_(object) {}
  Handle(Handle&& other) noexcept : plugin_(other.plugin_), object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(plugin_, other.plugin_);
    std::swap(object_, other.object_);
    return *this;
  }
  ~Handle() {
    if (object_ != nullptr) plugin_->destroy<Args>(kDestroy, object_);
  }

  Object* get() const { return object_; }

 private:
  const Plugin* plugin_;  // outlives the handle
  Object* object_;
};

// Waits for the event and frees it. The error is the one of the operation that the event belongs to.
Status await(const Plugin& plugin, abi::Event* event, const std::string& doing);

using ClientHandle = Handle<abi::Client, abi::ClientDestroyArgs, abi::kClientDestroy>;
using BufferHandle = Handle<abi::Buffer, abi::BufferDestroyArgs, abi::kBufferDestroy>;
using LoadedExecutableHandle =
    Handle<abi::LoadedExecutable, abi::LoadedExecutableDestroyArgs, abi::kLoadedExecutableDestroy>;
using ExecutableHandle = Handle<abi::Executable, abi::ExecutableDestroyArgs, abi::kExecutableDestroy>;

// A connection to the plugin's devices. Everything here uses the first device that this process may use. An operator
// chooses among several devices by the means of the plugin, such as CUDA_VISIBLE_DEVICES. Used by one thread at a time.
class Client {
 public:
  // Loads the plugin and creates a client, which may take seconds. Errors: as Plugin::load(). kUnavailable if the
  // plugin can't create a client, or has no devices.
  static Result<std::unique_ptr<Client>> open(const std::string& plugin_path);

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Plugin& plugin() const { return plugin_; }
  const std::string& platform() const { return platform_; }  // such as "cpu", "cuda" or "tpu"
  abi::Client* get() const { return client_.get(); }
  abi::Device* device() const { return device_; }

 private:
  Client(Plugin plugin, abi::Client* client) : plugin_(std::move(plugin)), client_(plugin_, client) {}

  const Plugin plugin_;
  const ClientHandle client_;
  std::string platform_;
  abi::Device* device_ = nullptr;
};

}  // namespace disttrain::workerd::pjrt
