//! Compiles the kernels for the host, for tests.

fn main() {
    println!("cargo:rerun-if-changed=kernels");
    #[cfg(feature = "host")]
    cc::Build::new()
        .cpp(true)
        .cpp_link_stdlib(None)
        .std("c++17")
        .opt_level(2)
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        .flag("-Wno-unknown-pragmas")
        .file("kernels/host.cpp")
        .compile("hekaton_gpu_host");
}
