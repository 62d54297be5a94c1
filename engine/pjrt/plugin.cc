// A plugin is never unloaded, because its state belongs to the process.
#include "engine/pjrt/plugin.h"

#include <dlfcn.h>

#include <cstddef>
#include <filesystem>
#include <mutex>
#include <set>

#include "common/printable.h"

namespace disttrain::workerd::pjrt {
namespace {

constexpr std::size_t kMaxMessageBytes = 2000;  // of a plugin's error; compilers may add pages of text

std::string bounded(const char* text, std::size_t size) {
  if (text == nullptr) return "no reason";
  const std::string message = printable(cut_text({text, size}, kMaxMessageBytes));
  return size > kMaxMessageBytes ? message + "..." : message;
}

// Loads the library and finds its table of functions.
Result<const abi::Api*> find_api(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return fail(ErrorCode::kNoInput, "PJRT plugin \"" + path + "\" doesn't exist or isn't a file; let the worker's " +
                                         "device name a plugin's shared library: device = \"pjrt:/path/plugin.so\"");
  // dlopen() would look for a name without a slash in the system's folders.
  const std::string absolute = std::filesystem::absolute(path).string();
  void* library = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(ErrorCode::kConfig, "can't load PJRT plugin \"" + path + "\": " + dlerror() +
                                        "; expected a shared library for this machine, with the libraries it needs");
  const auto get_api = reinterpret_cast<abi::GetApi>(dlsym(library, "GetPjrtApi"));
  if (get_api == nullptr) {
    dlclose(library);
    return fail(ErrorCode::kConfig, "\"" + path + "\" is not a PJRT plugin: it has no function GetPjrtApi; let the " +
                                        "worker's device name a library that implements the PJRT C API");
  }
  return get_api();
}

Status check_version(const abi::Api* api, const std::string& path) {
  // The version comes first in the struct, so that every plugin has it.
  if (api == nullptr || api->struct_size < offsetof(abi::Api, functions))
    return fail(ErrorCode::kConfig, "PJRT plugin \"" + path + "\" gives no API: GetPjrtApi() returned no table of " +
                                        "functions; install the plugin again");
  const std::string found =
      std::to_string(api->version.major_version) + "." + std::to_string(api->version.minor_version);
  const std::string expected = std::to_string(abi::kMajorVersion) + "." + std::to_string(abi::kMinorVersion);
  if (api->version.major_version != abi::kMajorVersion)
    return fail(ErrorCode::kConfig, "PJRT plugin \"" + path + "\" has version " + found +
                                        " of the PJRT C API; expected " + expected +
                                        " or another version with the same first number");
  if (api->struct_size < sizeof(abi::Api))
    return fail(ErrorCode::kConfig, "PJRT plugin \"" + path + "\" has version " + found +
                                        " of the PJRT C API, which lacks functions that disttrain needs; expected " +
                                        expected + " or later: install a newer plugin");
  for (const abi::Function function : abi::kUsedFunctions) {
    if (api->functions[function] == nullptr)
      return fail(ErrorCode::kConfig, "PJRT plugin \"" + path + "\" lacks function " + std::to_string(function) +
                                          " of the PJRT C API " + found +
                                          ", which disttrain needs: install a newer plugin");
  }
  return {};
}

}  // namespace

Result<Plugin> Plugin::load(const std::string& path) {
  // A plugin's state belongs to the process, so the memory of what was initialized does too.
  static std::mutex mutex;
  static std::set<const abi::Api*> initialized;  // guarded by `mutex`

  const Result<const abi::Api*> api = find_api(path);
  if (!api) return tl::unexpected(api.error());
  if (Status status = check_version(*api, path); !status) return tl::unexpected(status.error());
  const Plugin plugin(*api);
  const std::lock_guard lock(mutex);
  if (!initialized.contains(*api)) {
    abi::PluginInitializeArgs args{};
    Status status = plugin.call(abi::kPluginInitialize, args, "initializing PJRT plugin \"" + path + "\"");
    if (!status) return fail(ErrorCode::kUnavailable, status.error().message);
    initialized.insert(*api);
  }
  return plugin;
}

Status Plugin::status_of(abi::Error* error, const std::string& doing) const {
  if (error == nullptr) return {};
  abi::ErrorMessageArgs message{sizeof(abi::ErrorMessageArgs), nullptr, error, nullptr, 0};
  reinterpret_cast<void (*)(abi::ErrorMessageArgs*)>(api_->functions[abi::kErrorMessage])(&message);
  std::string text = doing + ": the PJRT plugin said: " + bounded(message.message, message.message_size);
  abi::ErrorGetCodeArgs code{sizeof(abi::ErrorGetCodeArgs), nullptr, error, {}};
  drop(reinterpret_cast<abi::Error* (*)(abi::ErrorGetCodeArgs*)>(api_->functions[abi::kErrorGetCode])(&code));
  drop(error);
  if (code.code == abi::kResourceExhausted)
    return fail(ErrorCode::kFailed, text + "; the device is out of memory: use a smaller batch or model");
  return fail(ErrorCode::kFailed, std::move(text));
}

void Plugin::drop(abi::Error* error) const {
  if (error == nullptr) return;
  abi::ErrorDestroyArgs args{sizeof(abi::ErrorDestroyArgs), nullptr, error};
  reinterpret_cast<void (*)(abi::ErrorDestroyArgs*)>(api_->functions[abi::kErrorDestroy])(&args);
}

Status await(const Plugin& plugin, abi::Event* event, const std::string& doing) {
  abi::EventAwaitArgs args{};
  args.event = event;
  Status status = plugin.call(abi::kEventAwait, args, doing);
  plugin.destroy<abi::EventDestroyArgs>(abi::kEventDestroy, event);
  return status;
}

Result<std::unique_ptr<Client>> Client::open(const std::string& plugin_path) {
  Result<Plugin> plugin = Plugin::load(plugin_path);
  if (!plugin) return tl::unexpected(plugin.error());
  const std::string of_plugin = " of PJRT plugin \"" + plugin_path + "\"";
  abi::ClientCreateArgs create{};
  if (Status status = plugin->call(abi::kClientCreate, create, "opening the devices" + of_plugin); !status)
    return fail(ErrorCode::kUnavailable, status.error().message);
  std::unique_ptr<Client> client(new Client(*plugin, create.client));

  abi::ClientPlatformNameArgs name{};
  name.client = create.client;
  if (Status status = plugin->call(abi::kClientPlatformName, name, "asking for the platform" + of_plugin); !status)
    return tl::unexpected(status.error());
  client->platform_ = bounded(name.name, name.name_size);

  abi::ClientAddressableDevicesArgs devices{};
  devices.client = create.client;
  if (Status status = plugin->call(abi::kClientAddressableDevices, devices, "listing the devices" + of_plugin); !status)
    return tl::unexpected(status.error());
  if (devices.device_count == 0)
    return fail(ErrorCode::kUnavailable,
                "PJRT plugin \"" + plugin_path + "\" (platform " + client->platform_ +
                    ") has no devices that this process may use; check that the device is there and its driver works");
  client->device_ = devices.devices[0];
  return client;
}

}  // namespace disttrain::workerd::pjrt
