#include "engine/routes.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/embedded.h"

namespace boltbeam::engine {
namespace {

/// Empty when the registry is not as it must be: a test of this build would have said so.
std::vector<Route> ReadRegistry() {
  const Result<std::string_view> text = base::Embedded("routes/routes.json");
  if (!text) return {};
  try {
    std::vector<Route> routes;
    const nlohmann::json registry = nlohmann::json::parse(*text);
    for (const nlohmann::json& row : registry.at("routes")) {
      Route route;
      row.at("name").get_to(route.name);
      row.at("does").get_to(route.does);
      row.at("needs").get_to(route.needs);
      row.at("bitwise").get_to(route.bitwise);
      row.at("on").get_to(route.on);
      route.refuted = row.value("refuted", std::string());
      route.saves_waits = row.value("saves", std::string()) == "waits";
      route.in_place_of = row.value("in_place_of", std::string());
      routes.push_back(std::move(route));
    }
    return routes;
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

bool Contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::span<const Route> Routes() {
  static const std::vector<Route> kRoutes = ReadRegistry();
  return kRoutes;
}

const Route* FindRoute(std::string_view name) {
  const std::span<const Route> routes = Routes();
  const auto found = std::ranges::find(routes, name, &Route::name);
  return found == routes.end() ? nullptr : &*found;
}

bool IsRouteOn(std::string_view name, const std::vector<std::string>& with, const std::vector<std::string>& without) {
  if (Contains(without, name)) return false;
  if (Contains(with, name)) return true;
  const Route* const route = FindRoute(name);
  return route != nullptr && route->on;
}

}  // namespace boltbeam::engine
