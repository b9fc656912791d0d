# boltbeam_embed(TARGET FILE...): the registries under data/ become part of TARGET, so that the program needs no
# installed files. base/embedded.h finds them by their path below data/.
function(boltbeam_embed target)
  set(out "${CMAKE_CURRENT_BINARY_DIR}/embedded_data.cc")
  set(inputs)
  foreach(file IN LISTS ARGN)
    list(APPEND inputs "${PROJECT_SOURCE_DIR}/data/${file}")
  endforeach()
  string(JOIN "|" names ${ARGN})
  add_custom_command(
    OUTPUT "${out}"
    COMMAND ${CMAKE_COMMAND} "-DROOT=${PROJECT_SOURCE_DIR}/data" "-DNAMES=${names}" "-DOUT=${out}" -P
            "${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake"
    DEPENDS ${inputs} "${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake"
    VERBATIM)
  # An object library of its own: a generated file is only known in the folder that makes it.
  add_library(boltbeam_data OBJECT "${out}")
  target_include_directories(boltbeam_data PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(boltbeam_data PRIVATE boltbeam_options)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:boltbeam_data>)
endfunction()
