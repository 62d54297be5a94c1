// A PJRT plugin that has something wrong with it. The macro FAKE_PLUGIN says what: CMake builds one shared library for
// each value.
#include <cstddef>
#include <string>

#include "engine/pjrt/abi.h"

namespace abi = disttrain::workerd::pjrt::abi;

namespace {

enum Kind { kNoTable, kOtherVersion, kOldVersion, kLacksFunction, kFailsToInitialize, kFailsToOpen, kNoDevices };
constexpr Kind kKind = FAKE_PLUGIN;

const char kName[] = "fake";
const std::string& message() {
  // Longer than any reader wants, and with control characters.
  static const std::string text = "the \x1b[31mfan\nis stuck" + std::string(100'000, '.');
  return text;
}

abi::Error* the_error() {
  static int error = 0;
  return reinterpret_cast<abi::Error*>(&error);
}

void error_message(abi::ErrorMessageArgs* args) {
  args->message = message().data();
  args->message_size = message().size();
}

abi::Error* error_code(abi::ErrorGetCodeArgs* args) {
  args->code = static_cast<abi::ErrorCode>(14);  // unavailable
  return nullptr;
}

void error_destroy(abi::ErrorDestroyArgs*) {}

abi::Error* initialize(abi::PluginInitializeArgs*) {
  return kKind == kFailsToInitialize ? the_error() : nullptr;
}

abi::Error* create(abi::ClientCreateArgs* args) {
  if (kKind == kFailsToOpen) return the_error();
  static int client = 0;
  args->client = reinterpret_cast<abi::Client*>(&client);
  return nullptr;
}

abi::Error* destroy(abi::ClientDestroyArgs*) {
  return nullptr;
}

abi::Error* platform(abi::ClientPlatformNameArgs* args) {
  args->name = kName;
  args->name_size = sizeof(kName) - 1;
  return nullptr;
}

abi::Error* devices(abi::ClientAddressableDevicesArgs* args) {
  args->devices = nullptr;
  args->device_count = 0;
  return nullptr;
}

abi::Error* unused(void*) {
  return the_error();
}

template <typename Function>
void set(abi::Api& api, abi::Function index, Function function) {
  api.functions[index] = reinterpret_cast<void (*)()>(function);
}

abi::Api make_api() {
  abi::Api api{};
  api.struct_size = kKind == kOldVersion ? sizeof(abi::Api) - sizeof(void*) : sizeof(abi::Api);
  api.version.struct_size = sizeof(abi::Version);
  api.version.major_version = kKind == kOtherVersion ? 1 : 0;
  api.version.minor_version = kKind == kOldVersion ? 7 : 81;
  for (const abi::Function function : abi::kUsedFunctions) set(api, function, unused);
  set(api, abi::kErrorMessage, error_message);
  set(api, abi::kErrorGetCode, error_code);
  set(api, abi::kErrorDestroy, error_destroy);
  set(api, abi::kPluginInitialize, initialize);
  set(api, abi::kClientCreate, create);
  set(api, abi::kClientDestroy, destroy);
  set(api, abi::kClientPlatformName, platform);
  set(api, abi::kClientAddressableDevices, devices);
  if (kKind == kLacksFunction) api.functions[abi::kClientCompile] = nullptr;
  return api;
}

}  // namespace

extern "C" const abi::Api* GetPjrtApi() {
  static const abi::Api api = make_api();
  return kKind == kNoTable ? nullptr : &api;
}
