# The Debian package: `make deb`, or cpack in a build folder. What it needs of other packages follows from the libraries
# that the program and its plugins are linked with.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON) # a package needs no test programs
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME boltbeam)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_CONTACT "The BoltBeam authors <boltbeam@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "audits what a token of an LLM costs the chip that computes it")
set(CPACK_PACKAGE_DESCRIPTION
    "It reads a GGUF file, measures the chip, runs the model with kernels that are generated for both, and puts every
 microsecond of a token on a line: the floor, what kernels lose, the gaps between them.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/boltbeam" RENAME copyright)
include(CPack)
