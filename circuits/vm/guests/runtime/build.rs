//! Puts the link script where the linker of every program that depends on this crate finds it.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let out = std::env::var("OUT_DIR").map_err(std::io::Error::other)?;
    std::fs::copy("guest.ld", Path::new(&out).join("guest.ld"))?;
    println!("cargo::rustc-link-search={out}");
    println!("cargo::rerun-if-changed=guest.ld");
    Ok(())
}
