// The plugin: the only part of the program that knows librsvg and cairo.
#include <cairo.h>
#include <librsvg/rsvg.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "report/png/plugin.h"

namespace boltbeam::report {
namespace {

struct Target {
  PngSink sink;
  void* to;
};

cairo_status_t Write(void* closure, const unsigned char* bytes, unsigned int count) {
  const auto* target = static_cast<const Target*>(closure);
  target->sink(target->to, reinterpret_cast<const char*>(bytes), count);
  return CAIRO_STATUS_SUCCESS;
}

template <auto Free>
struct Releaser {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Handle = std::unique_ptr<RsvgHandle, Releaser<g_object_unref>>;
using Surface = std::unique_ptr<cairo_surface_t, Releaser<cairo_surface_destroy>>;
using Context = std::unique_ptr<cairo_t, Releaser<cairo_destroy>>;
using Failure = std::unique_ptr<GError, Releaser<g_error_free>>;

constexpr double kMostPixels = 16384;  // of a side

}  // namespace

extern "C" __attribute__((visibility("default"))) bool BoltbeamDrawPng(const char* svg, std::size_t bytes, double scale,
                                                                       PngSink sink, void* png, void* error) {
  const auto refuse = [&](const char* why) {
    sink(error, why, std::strlen(why));
    return false;
  };
  GError* failure = nullptr;
  const Handle handle(rsvg_handle_new_from_data(reinterpret_cast<const guint8*>(svg), bytes, &failure));
  if (!handle) return refuse(Failure(failure)->message);
  double width = 0, height = 0;
  if (rsvg_handle_get_intrinsic_size_in_pixels(handle.get(), &width, &height) == FALSE) return refuse("no size");
  width *= scale;
  height *= scale;
  if (!(width >= 1 && height >= 1 && width <= kMostPixels && height <= kMostPixels))
    return refuse("a size beyond reason");
  const Surface surface(cairo_image_surface_create(CAIRO_FORMAT_ARGB32, static_cast<int>(std::ceil(width)),
                                                   static_cast<int>(std::ceil(height))));
  const Context context(cairo_create(surface.get()));
  const RsvgRectangle view{0, 0, width, height};
  if (rsvg_handle_render_document(handle.get(), context.get(), &view, &failure) == FALSE) {
    return refuse(Failure(failure)->message);
  }
  Target target{sink, png};
  const cairo_status_t status = cairo_surface_write_to_png_stream(surface.get(), Write, &target);
  return status == CAIRO_STATUS_SUCCESS || refuse(cairo_status_to_string(status));
}

}  // namespace boltbeam::report
