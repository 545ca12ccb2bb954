# Copyright The Hekaton authors
#
# SPDX-License-Identifier: (Apache-2.0 OR MIT)

from spack_repo.builtin.build_systems.cargo import CargoPackage

from spack.package import *


class Hekaton(CargoPackage):
    """Hekaton is a zero-knowledge prover for computations too large for one machine. It proves the parts of a
    computation on many ranks, and aggregates their proofs into one."""

    homepage = "https://crates.io/crates/hekaton-cli"
    url = "https://static.crates.io/crates/hekaton-cli/hekaton-cli-0.1.0.crate"

    license("MIT OR Apache-2.0")

    # The digest is known once the crate is published: RELEASING.md. Until then: spack install --no-checksum
    version("0.1.0", extension="tar.gz")

    variant("mpi", default=True, description="Prove on many ranks")

    depends_on("c", type="build")
    depends_on("rust@1.90:", type="build")
    depends_on("openmpi", when="+mpi")
    # bindgen reads mpi.h with libclang
    depends_on("llvm+clang", type="build", when="+mpi")

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        if self.spec.satisfies("+mpi"):
            env.set("MPICC", self.spec["mpi"].mpicc)
            env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)

    @property
    def build_args(self):
        return ["--locked", *(["--features", "mpi"] if self.spec.satisfies("+mpi") else [])]

    def check(self):
        """The crate has no tests that run without the repository."""

    @run_after("install")
    def install_manual(self):
        hekaton = Executable(self.prefix.bin.hekaton)
        mkdirp(self.prefix.share.man.man1)
        hekaton("man", self.prefix.share.man.man1)
        completions = join_path(self.prefix.share, "bash-completion", "completions")
        mkdirp(completions)
        with open(join_path(completions, "hekaton"), "w") as script:
            hekaton("completions", "bash", output=script)
