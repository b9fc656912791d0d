# Compile options shared by every target of the project, and only by those.
add_library(boltbeam_options INTERFACE)
target_compile_options(
  boltbeam_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wvla -Wold-style-cast
                             -Werror=unused-result $<$<BOOL:${BOLTBEAM_WERROR}>:-Werror>
                             # GCC 12 reports these inside its own library at higher optimisation (bugs 105329, 105651).
                             $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow>
                             # libstdc++ 12's stable_sort calls a function that C++17 deprecated.
                             $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
if(BOLTBEAM_SANITIZE)
  # function: a generated kernel has no type in front of its code, where Clang's check of indirect calls looks for one.
  target_compile_options(
    boltbeam_options INTERFACE -fsanitize=${BOLTBEAM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
                               $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
  target_compile_definitions(boltbeam_options INTERFACE BOLTBEAM_SANITIZED)  # tests of time and memory ask
  target_link_options(boltbeam_options INTERFACE -fsanitize=${BOLTBEAM_SANITIZE})
endif()
