//! How the binary is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Relocations in a hundredth of the room: at every start, all of them are read into memory (3.5 MB).
    if std::env::var("TARGET").is_ok_and(|target| target.ends_with("linux-gnu")) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
