//! Where does this crate's source lie? `busbound` compiles it a second time, into the library that it injects; from a registry
//! as from the workspace it learns the place by `DEP_BUSBOUND_CAPTURE_SOURCE`.

fn main() -> Result<(), std::env::VarError> {
    println!("cargo::metadata=source={}/src", std::env::var("CARGO_MANIFEST_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    Ok(())
}
